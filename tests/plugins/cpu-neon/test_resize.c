/* Resizing kernels of cpu-neon against the reference: modes, grids, axes, NaN and infinities. */
#include "plugins/cpu-neon/neoncall.h"

static uint64_t seed = 47;

static cnr_tensor *draw(const char *dims) { return t_random(CNR_f32, dims, seed++); }

static const char *const grids[] = {"half_pixel",         "half_pixel_symmetric",
                                    "pytorch_half_pixel", "align_corners",
                                    "asymmetric",         "tf_half_pixel_for_nn"};
static const char *const modes[] = {"nearest", "linear", "cubic", "linear; antialias=1",
                                    "cubic; exclude_outside=1"};

/* Tests: resizes. */
static void resizes(void) {
    static const struct {
        const char *x, *by;
    } shapes[] = {{"1x3x5x7", "scales=1,1,2,2"},
                  {"2x16x6x5", "sizes=2,16,13,9"},
                  {"1x2x9x40", "scales=1,1,0.4,0.6"},
                  {"1x7x5x3", "scales=1,1.5,2,1"}, /* channels last */
                  {"3x4x5", "scales=2,1,1"},
                  {"1x1x3x4x5", "sizes=4,6,33; axes=2,3,4"},
                  {"9", "scales=3.7"}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
            char attrs[256];
            snprintf(attrs, sizeof attrs, "%s; mode=%s; coordinate_transformation_mode=%s",
                     shapes[i].by, modes[m], grids[(i + m) % 6]);
            neon_check("resize", attrs, i == 0 ? "relu" : "", 1, draw(shapes[i].x));
        }
    neon_check("upsample", "scales=1,1,2,3; mode=nearest", "", 1, draw("1x3x4x21"));
    neon_check("upsample", "scales=1,1,2,3; mode=linear", "", 1, draw("1x3x4x21"));
}

/* A pixel that weighs nothing does not spoil its neighbours. */
static void specials(void) {
    cnr_tensor *x = draw("1x2x9x33");
    for (int64_t e = 5; e < cnr_count(x); e += 37) t_set(x, e, e % 2 ? NAN : INFINITY);
    for (size_t m = 0; m < 3; m++) {
        char attrs[256];
        snprintf(attrs, sizeof attrs,
                 "scales=1,1,3,3; mode=%s; coordinate_transformation_mode=asymmetric", modes[m]);
        neon_check("resize", attrs, "", 1, x);
    }
}

int main(void) {
    neon_open();
    NEON_EACH_ISA {
        resizes();
        specials();
    }
    return op_done();
}
