/* deform_conv: without offsets it is conv; whole offsets shift; fractions interpolate. */
#include "opcall.h"

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

/* A constant tensor of one value. */
static cnr_tensor *constant(const char *dims, double value) {
    cnr_tensor *t = t_random(CNR_f64, dims, 1);
    for (int64_t i = 0; i < cnr_count(t); i++) t_set(t, i, value);
    return t;
}

int main(void) {
    cnr_tensor *y[1], *z[1];
    op_open();
    cnr_tensor *x = t_random(CNR_f64, "2x4x5x6", 1), *w = t_random(CNR_f64, "6x2x3x2", 2);
    cnr_tensor *b = t_random(CNR_f64, "6", 3);
    const char *attrs = "group=2;strides=2,1;pads=1;offset_group=2";
    op_call("conv", "group=2;strides=2,1;pads=1", z, 1, 3, x, w, b);
    op_call("deform_conv", attrs, y, 1, 4, x, w, constant("2x24x3x7", 0), b);
    t_same(y[0], z[0], 1e-12, "no offsets: conv");
    op_call("deform_conv", attrs, y, 1, 5, x, w, constant("2x24x3x7", 0), NULL,
            constant("2x12x3x7", 0.5));
    op_call("conv", "group=2;strides=2,1;pads=1", z, 1, 2, x, w);
    for (int64_t i = 0; i < cnr_count(z[0]); i++) t_set(z[0], i, t_get(z[0], i) / 2);
    t_same(y[0], z[0], 1e-12, "a mask of one half");

    cnr_tensor *line = t_of(CNR_f64, "1x1x4", (double[]){1, 2, 4, 8});
    cnr_tensor *unit = t_of(CNR_f64, "1x1x1", (double[]){1});
    op_call("deform_conv", "", y, 1, 3, line, unit,
            t_of(CNR_f64, "1x1x4", (double[]){1, 0.5, -2, 0.25}));
    t_near(y[0], (double[]){2, 3, 1, 6}, 1e-12, "shifts and fractions");
    op_call("deform_conv", "", y, 1, 3, line, unit,
            t_of(CNR_f64, "1x1x4", (double[]){-0.5, 9e9, NAN, -1e300}));
    t_near(y[0], (double[]){0.5, 0, 0, 0}, 1e-12, "outside is 0, wherever");
    cnr_tensor *square = t_of(CNR_f64, "1x1x2x2", (double[]){1, 2, 3, 4});
    cnr_tensor *unit2 = t_of(CNR_f64, "1x1x1x1", (double[]){1});
    op_call("deform_conv", "", y, 1, 3, square, unit2,
            t_of(CNR_f64, "1x2x2x2", (double[]){0.5, 0, 0, 0, 0.5, 0, 0, 0}));
    t_near(y[0], (double[]){2.5, 2, 3, 4}, 1e-12, "between four neighbours; rows come first");
    op_splitcheck("deform_conv", attrs, 5,
                  IN(x, w, t_random(CNR_f64, "2x24x3x7", 4), b, t_random(CNR_f64, "2x12x3x7", 5)));
    op_refused("deform_conv", attrs, "offset", 3, IN(x, w, t_random(CNR_f64, "2x12x3x7", 4)));
    op_refused("deform_conv", "group=2;offset_group=3", "offset groups", 3,
               IN(x, w, t_random(CNR_f64, "2x12x3x7", 4)));
    return op_done();
}
