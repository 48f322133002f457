/* Element-wise operators by their own apply_f32, broadcasting, and references run in parts. */
#include "plugins/cpu-neon/neoncall.h"

static uint64_t seed = 31;

static cnr_tensor *draw(const char *dims) { return t_random(CNR_f32, dims, seed++); }

/* Tests: operators of one input. */
static void one_operand(void) {
    static const char *const names[] = {"erf",  "gelu",  "relu",         "leaky_relu", "sigmoid",
                                        "tanh", "elu",   "exp",          "abs",        "relu6",
                                        "clip", "swish", "hard_sigmoid", "hard_swish"};
    static const char *const dims[] = {"1", "17", "2x3x45x67", "1x5x100x100"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t j = 0; j < sizeof dims / sizeof dims[0]; j++) {
            cnr_tensor *x = draw(dims[j]);
            for (int64_t e = 0; e < cnr_count(x); e++) t_set(x, e, t_get(x, e) * 12);
            neon_check(names[i], "", j == 2 ? "relu" : "", 1, x);
        }
    neon_check("clip", "min=-0.5; max=0.25", "clip min=-0.1", 1, draw("3x700"));
    neon_check("hard_sigmoid", "alpha=0.3; beta=0.4", "", 1, draw("3x70"));
    neon_check("swish", "alpha=1.7", "hard_swish", 1, draw("3x70"));
    neon_check("gelu", "approximate=tanh", "gelu approximate=tanh", 1, draw("3x70"));
    /* near 0, and where exponentials overflow */
    const double values[] = {0, -0.0, 1e-20, 1e-5, 0.6249, 0.6251, 44, 89, 100, -89, -104, 1e30};
    cnr_tensor *x = t_of(CNR_f32, "12", values);
    neon_check("tanh", "", "", 1, x);
    neon_check("erf", "", "", 1, x);
    neon_check("sigmoid", "", "", 1, x);
    /* NaN and infinities in any lane of a vector, and in the rest */
    x = draw("3x45");
    for (int64_t e = 0; e < cnr_count(x); e += 4)
        t_set(x, e, e % 3 == 0 ? NAN : e % 3 == 1 ? INFINITY : -INFINITY);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        neon_check(names[i], "", "", 1, x);
        neon_check("neg", "", names[i], 1, x);
    }
    neon_check("max", "", "relu6", 2, x, draw("3x45"));
    neon_check("min", "", "hard_swish", 2, draw("3x45"), x);
}

/* Tests: operators of two inputs. */
static void two_operands(void) {
    static const char *const shapes[][2] = {{"7", "7"},
                                            {"2x3x40x50", "2x3x40x50"},
                                            {"2x3x40x50", "3x1x1"},
                                            {"1", "5x6"},
                                            {"3x1x5x1", "4x1x6"},
                                            {"2x1x33", "2x9x33"},
                                            {"64x500", "500"},
                                            {"", "3x4"},
                                            {"1x8x200x200", "1x8x1x1"}};
    static const char *const names[] = {"add", "mul", "sub", "div"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            neon_check(names[k], "", i == 1 ? "relu" : "", 2, draw(shapes[i][0]),
                       draw(shapes[i][1]));
}

/* Tests: operators in ranges. */
static void in_parts(void) {
    cnr_tensor *x = draw("4x10x30x31"), *dy = draw("4x10x30x31");
    neon_check("relu_grad", "", "", 2, x, dy);
    neon_check("tanh_grad", "", "", 2, x, dy);
    neon_check("reduce_sum", "axes=0,2,3", "", 1, draw("64x20x20x20"));
    neon_check("log_softmax", "axis=1", "", 1, x);
    neon_check("concat", "axis=1", "", 2, x, dy);
}

/* Tests: transposes. */
static void transposes(void) {
    static const struct {
        const char *x, *perm;
    } moves[] = {{"2x3x17x21", "perm=0,2,3,1"},
                 {"2x17x21x3", "perm=0,3,1,2"},
                 {"1x49x3x4x32", "perm=2,0,3,1,4"},
                 {"1x49x3x4x32", "perm=2,0,3,4,1"},
                 {"33x70", ""},
                 {"2x3x4x5x6", ""},
                 {"1x8x1x5", "perm=3,2,1,0"},
                 {"1x1", ""},
                 {"2x3x64x64", "perm=1,0,3,2"}};
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        neon_check("transpose", moves[i].perm, "", 1, draw(moves[i].x));
}

int main(void) {
    neon_open();
    NEON_EACH_ISA {
        one_operand();
        two_operands();
        transposes();
        if (isa_ == 0) in_parts();
    }
    return op_done();
}
