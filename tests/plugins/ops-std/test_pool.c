/* max_pool, average_pool and their gradients. */
#include "opcall.h"

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

static const double five[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13,
                              14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25};

/* Tests: max_pool by hand. */
static void max_by_hand(void) {
    cnr_tensor *y[2], *x = t_of(CNR_f32, "1x1x5x5", five);
    op_call("max_pool", "kernel_shape=5;pads=2", y, 2, 1, x);
    t_near(y[0], (double[]){13, 14, 15, 15, 15, 18, 19, 20, 20, 20, 23, 24, 25,
                            25, 25, 23, 24, 25, 25, 25, 23, 24, 25, 25, 25},
           0, "padded");
    t_near(y[1], (double[]){12, 13, 14, 14, 14, 17, 18, 19, 19, 19, 22, 23, 24,
                            24, 24, 22, 23, 24, 24, 24, 22, 23, 24, 24, 24},
           0, "its indices");
    op_call("maxpool", "kernel=2;stride=2;storage_order=1", y, 2, 1, x);
    t_near(y[0], (double[]){7, 9, 17, 19}, 0, "strided");
    t_near(y[1], (double[]){6, 16, 8, 18}, 0, "indices along columns");
    op_call("max_pool", "kernel=2;stride=2;ceil_mode=1", y, 1, 1, x);
    t_near(y[0], (double[]){7, 9, 10, 17, 19, 20, 22, 24, 25}, 0, "ceil_mode");
    op_call("max_pool", "kernel=6,7;stride=2,3;ceil_mode=1", y, 1, 1, x);
    t_near(y[0], (double[]){25}, 0, "a window that is a part of a stride larger than its input");
    op_refused("max_pool", "kernel=7;stride=2;ceil_mode=1", "larger", 1, IN(x));
    op_refused("max_pool", "kernel=6;stride=2", "larger", 1, IN(x));
    op_call("max_pool", "kernel=3;stride=2;auto_pad=SAME_UPPER", y, 1, 1, x);
    t_near(y[0], (double[]){7, 9, 10, 17, 19, 20, 22, 24, 25}, 0, "SAME_UPPER");
    op_call("max_pool", "kernel=2;dilations=2", y, 1, 1, x);
    t_near(y[0], (double[]){13, 14, 15, 18, 19, 20, 23, 24, 25}, 0, "dilated");
    cnr_tensor *bytes = t_of(CNR_i8, "1x1x4", (double[]){-128, -7, -9, -8});
    op_call("max_pool", "kernel=2;stride=2", y, 1, 1, bytes);
    ok(y[0]->dtype == CNR_i8, "i8 stays i8");
    t_near(y[0], (double[]){-7, -8}, 0, "i8");
    cnr_tensor *odd = t_of(CNR_f32, "1x1x4", (double[]){1, NAN, 3, -INFINITY});
    op_call("max_pool", "kernel=2;stride=2", y, 2, 1, odd);
    t_near(y[0], (double[]){NAN, 3}, 0, "a NaN wins");
    op_call("max_pool", "kernel=1;stride=3", y, 2, 1, odd);
    t_near(y[1], (double[]){0, 3}, 0, "minus infinity has an index too");
    op_call("max_pool", "kernel=2", y, 1, 1, t_random(CNR_f32, "0x3x5x5", 1));
    t_shape(y[0], "0x3x4x4", "an empty batch");
}

/* Tests: average_pool by hand. */
static void average_by_hand(void) {
    cnr_tensor *y[1], *x = t_of(CNR_f32, "1x1x5x5", five);
    op_call("average_pool", "kernel=3;stride=2;pads=1", y, 1, 1, x);
    t_near(y[0], (double[]){4, 5.5, 7, 11.5, 13, 14.5, 19, 20.5, 22}, 1e-6, "inside only");
    op_call("avgpool", "kernel=3;stride=2;pads=1;count_include_pad=1", y, 1, 1, x);
    t_near(y[0],
           (double[]){16 / 9., 33 / 9., 28 / 9., 69 / 9., 13, 87 / 9., 76 / 9., 123 / 9., 88 / 9.},
           1e-6, "padding counted");
    /* Caffe: the window is cut at input + pad, and that is what it divides by. */
    op_call("avgpool", "kernel=3;stride=3;pads=1;count_include_pad=1;ceil_mode=1", y, 1, 1,
            t_of(CNR_f32, "1x1x6", (double[]){1, 2, 3, 4, 5, 6}));
    t_near(y[0], (double[]){1, 4, 3}, 1e-6, "an overhang is in no padding");
    op_call("average_pool", "kernel=6;stride=2;ceil_mode=1", y, 1, 1, x);
    t_near(y[0], (double[]){13}, 1e-6, "a window larger than its input");
    op_call("average_pool", "kernel=2;dilations=2", y, 1, 1,
            t_of(CNR_f64, "1x1x4", (double[]){1, 2, 3, 4}));
    t_near(y[0], (double[]){2, 3}, 1e-12, "dilated");
    op_call("average_pool", "kernel=2,2,2", y, 1, 1,
            t_of(CNR_f16, "1x1x2x2x2", (double[]){1, 2, 3, 4, 5, 6, 7, 8}));
    t_near(y[0], (double[]){4.5}, 0, "3-D, f16");
}

/* Tests: splits and gradients. */
static void splits_and_gradients(void) {
    static const char *const attrs[] = {"kernel=3;stride=2;pads=1", "kernel=2,3;dilations=2,1",
                                        "kernel=3;stride=2;ceil_mode=1"};
    cnr_tensor *x = t_random(CNR_f64, "2x2x6x7", 3), *y[1];
    for (int i = 0; i < 3; i++) {
        op_splitcheck("max_pool", attrs[i], 1, IN(x));
        op_splitcheck("average_pool", attrs[i], 1, IN(x));
        op_gradcheck("max_pool", attrs[i], 0, 1, IN(x));
        op_gradcheck("average_pool", attrs[i], 0, 1, IN(x));
        op_call("max_pool", attrs[i], y, 1, 1, x);
        op_splitcheck("max_pool_grad", attrs[i], 2, IN(y[0], x));
        op_splitcheck("average_pool_grad", attrs[i], 2, IN(y[0], x));
        op_splitcheck("lp_pool", attrs[i], 1, IN(x));
    }
    op_gradcheck("average_pool", "kernel=3;stride=2;pads=1;count_include_pad=1", 0, 1, IN(x));
}

/* Tests: global and p-norm poolings. */
static void global_and_lp(void) {
    cnr_tensor *y[1], *x = t_of(CNR_f32, "1x2x1x2", (double[]){3, -4, 5, 12});
    op_call("global_average_pool", "", y, 1, 1, x);
    t_near(y[0], (double[]){-0.5, 8.5}, 1e-6, "global average");
    t_shape(y[0], "1x2x1x1", "spatial axes become 1");
    op_call("global_max_pool", "", y, 1, 1, x);
    t_near(y[0], (double[]){3, 12}, 0, "global maximum");
    op_call("global_lp_pool", "", y, 1, 1, x);
    t_near(y[0], (double[]){5, 13}, 1e-6, "global L2");
    op_call("global_lp_pool", "p=1", y, 1, 1, x);
    t_near(y[0], (double[]){7, 17}, 1e-6, "global L1");
    op_call("lp_pool", "kernel=1,2", y, 1, 1, x);
    t_near(y[0], (double[]){5, 13}, 1e-6, "L2 of a window");
    op_call("lp_pool", "kernel=1,2;p=3;pads=0,1,0,0", y, 1, 1, x);
    t_near(y[0], (double[]){3, cbrt(91), 5, cbrt(125 + 1728)}, 1e-6, "L3, padded");
    cnr_tensor *big = t_random(CNR_f64, "2x3x3x2", 9);
    op_gradcheck("global_average_pool", "", 0, 1, IN(big));
    op_gradcheck("global_max_pool", "", 0, 1, IN(big));
    op_splitcheck("global_average_pool", "", 1, IN(big));
    op_splitcheck("global_max_pool", "", 1, IN(big));
}

/* Tests: what is refused. */
static void refusals(void) {
    cnr_tensor *x = t_random(CNR_f32, "1x1x4x4", 1);
    op_refused("max_pool", "", "kernel_shape", 1, IN(x));
    op_refused("max_pool", "kernel=5", "larger", 1, IN(x));
    op_refused("max_pool", "kernel=2,2,2", "got 3", 1, IN(x));
    op_refused("average_pool", "kernel=2", "not supported", 1, IN(t_random(CNR_i32, "1x1x4x4", 1)));
    op_refused("average_pool", "kernel=2;stride=9223372036854775807", "stride", 1, IN(x));
    op_refused("max_pool", "kernel=2", "too large", 1,
               IN(t_type(CNR_f32, "1x1x9223372036854775807x4")));
}

int main(void) {
    op_open();
    max_by_hand();
    average_by_hand();
    splits_and_gradients();
    global_and_lp();
    refusals();
    return op_done();
}
