/* affine_grid, col2im, trilu: values by hand, splits, gradients, refusals. */
#include "opcall.h"

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

/* Tests: affine_grid. */
static void affine_grid(void) {
    cnr_tensor *y[1], *size = t_of(CNR_i64, "4", (double[]){1, 1, 2, 2});
    cnr_tensor *same = t_of(CNR_f64, "1x2x3", (double[]){1, 0, 0, 0, 1, 0});
    op_call("affine_grid", "align_corners=1", y, 1, 2, same, size);
    t_near(y[0], (double[]){-1, -1, 1, -1, -1, 1, 1, 1}, 1e-12, "the same places, x first");
    op_call("affine_grid", "", y, 1, 2, t_of(CNR_f64, "1x2x3", (double[]){0, 2, 0.25, 1, 0, 0}),
            size);
    t_near(y[0], (double[]){-0.75, -0.5, -0.75, 0.5, 1.25, -0.5, 1.25, 0.5}, 1e-12,
           "turned, scaled and moved, by pixels' middles");
    cnr_tensor *size3 = t_of(CNR_i64, "5", (double[]){2, 1, 2, 3, 4});
    op_splitcheck("affine_grid", "", 2, IN(t_random(CNR_f64, "2x3x4", 1), size3));
    op_refused("affine_grid", "", "theta must be", 2, IN(same, size3));
    op_refused("affine_grid", "", "no size", 2,
               IN(same, t_of(CNR_i64, "4", (double[]){1, 1, -2, 2})));
}

/* Tests: col2im. */
static void col2im(void) {
    cnr_tensor *y[1], *block = t_of(CNR_i64, "1", (double[]){2});
    cnr_tensor *x = t_of(CNR_f32, "1x2x3", (double[]){1, 2, 3, 10, 20, 30});
    op_call("col2im", "", y, 1, 3, x, t_of(CNR_i64, "1", (double[]){4}), block);
    t_near(y[0], (double[]){1, 12, 23, 30}, 0, "windows of two overlap");
    op_call("col2im", "dilations=2;pads=1,1", y, 1, 3, x, t_of(CNR_i64, "1", (double[]){3}), block);
    t_near(y[0], (double[]){2, 13, 20}, 0, "with holes, and a rim cut off");
    cnr_tensor *image2 = t_of(CNR_i64, "2", (double[]){5, 4});
    cnr_tensor *block2 = t_of(CNR_i64, "2", (double[]){3, 2});
    op_splitcheck("col2im", "strides=2,1", 3, IN(t_random(CNR_f64, "2x12x6", 1), image2, block2));
    op_refused("col2im", "", "rows for windows", 3,
               IN(t_random(CNR_f32, "1x3x3", 1), t_of(CNR_i64, "1", (double[]){4}), block));
    op_refused("col2im", "strides=2", "strides for 2 axes", 3, IN(x, image2, block2));
    op_refused("col2im", "", "larger than", 3, IN(x, t_of(CNR_i64, "1", (double[]){1}), block));
}

/* Tests: trilu. */
static void trilu(void) {
    cnr_tensor *y[1], *x = t_of(CNR_i8, "2x3", (double[]){1, 2, 3, 4, 5, 6});
    op_call("trilu", "", y, 1, 1, x);
    t_near(y[0], (double[]){1, 2, 3, 0, 5, 6}, 0, "the upper part");
    op_call("trilu", "upper=0", y, 1, 2, x, t_of(CNR_i64, "", (double[]){-1}));
    t_near(y[0], (double[]){0, 0, 0, 4, 0, 0}, 0, "below the diagonal");
    op_call("trilu", "", y, 1, 2, x, t_of(CNR_i64, "", (double[]){-9e18}));
    t_near(y[0], (double[]){1, 2, 3, 4, 5, 6}, 0, "a diagonal far away");
    op_call("trilu", "", y, 1, 1, t_type(CNR_f32, "2x0"));
    t_shape(y[0], "2x0", "nothing");
    op_splitcheck("trilu", "upper=0", 1, IN(t_random(CNR_f64, "2x3x4x5", 1)));
    op_gradcheck("trilu", "upper=0", 0, 1, IN(t_random(CNR_f64, "2x4x3", 1)));
    op_refused("trilu", "", "rank", 1, IN(t_random(CNR_f32, "3", 1)));
}

int main(void) {
    op_open();
    affine_grid();
    col2im();
    trilu();
    return op_done();
}
