/* NaN, infinities, -0 and denormals by each operator that compares,
           limits or rounds. The numbers are what
 * ONNX Runtime gives on x86 (mish to more digits),
           but where a comment says why it gives no rule. */
#include "opcall.h"

#define N NAN
#define I INFINITY
#define TINY 1e-40f
/* Entries of a list. */
#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

static const double x_values[] = {N, I, -I, -0.0, TINY, -TINY, 1.5, -2.5, 7};

/* Tests: activations. */
static void activations(void) {
    static const struct {
        const char *op, *attrs;
        double y[9];
    } rows[] = {
        {"relu", "", {N, I, 0, 0, TINY, 0, 1.5, 0, 7}},
        {"relu6", "", {N, 6, 0, 0, TINY, 0, 1.5, 0, 6}},
        {"clip", "min=0; max=6", {N, 6, 0, 0, TINY, 0, 1.5, 0, 6}},
        {"clip", "min=6; max=0", {N, 0, 0, 0, 0, 0, 0, 0, 0}},
        {"leaky_relu", "alpha=0.1", {N, I, -I, 0, TINY, -TINY * 0.1f, 1.5, -0.25, 7}},
        {"thresholded_relu", "", {0, I, 0, 0, 0, 0, 1.5, 0, 7}},
        {"elu", "", {N, I, -1, 0, TINY, -TINY, 1.5, -0.917915, 7}},
        {"selu", "", {N, I, -1.758099, 0, 0, 0, 1.576051, -1.613786, 7.354907}},
        {"celu", "", {N, I, -1, 0, TINY, -TINY, 1.5, -0.917915, 7}},
        {"hard_sigmoid", "", {N, 1, 0, 0.5, 0.5, 0.5, 0.8, 0, 1}},
        {"hard_swish", "", {N, I, N, 0, 0, 0, 1.125, -0.2083333, 7}},
        {"sigmoid", "", {N, 1, 0, 0.5, 0.5, 0.5, 0.817574, 0.075858, 0.999089}},
        {"mish", "", {N, I, N, 0, 0, 0, 1.403378, -0.1968162, 6.999989}},
        {"gelu", "", {N, I, N, 0, 0, 0, 1.399789, -0.0155241, 7}},
        {"softplus", "", {N, I, 0, 0.6931472, 0.6931472, 0.6931472, 1.701413, 0.0788897, 7.000911}},
        {"softsign", "", {N, N, N, 0, 0, 0, 0.6, -0.7142857, 0.875}},
        {"tanh", "", {N, 1, -1, 0, 0, 0, 0.9051482, -0.9866143, 0.9999983}},
        {"erf", "", {N, 1, -1, 0, 0, 0, 0.9661052, -0.9995931, 1}},
        {"shrink", "", {0, I, -I, 0, 0, 0, 1.5, -2.5, 7}},
        {"exp", "", {N, I, 0, 1, 1, 1, 4.481689, 0.082085, 1096.633}},
        {"log", "", {N, I, N, -I, -92.10341, N, 0.405465, N, 1.94591}},
        {"sqrt", "", {N, I, N, 0, 1e-20, N, 1.224745, N, 2.645751}},
        {"reciprocal", "", {N, 0, 0, -I, I, -I, 0.6666667, -0.4, 0.1428571}},
        {"abs", "", {N, I, I, 0, TINY, TINY, 1.5, 2.5, 7}},
        {"sign", "", {N, 1, -1, 0, 1, -1, 1, -1, 1}},
        {"floor", "", {N, I, -I, 0, 0, -1, 1, -3, 7}},
        {"ceil", "", {N, I, -I, 0, 1, 0, 2, -2, 7}},
        {"round", "", {N, I, -I, 0, 0, 0, 2, -2, 7}},
        {"is_nan", "", {1, 0, 0, 0, 0, 0, 0, 0, 0}},
        {"is_inf", "", {0, 1, 1, 0, 0, 0, 0, 0, 0}},
        {"sin", "", {N, N, N, 0, 0, 0, 0.9974950, -0.5984722, 0.6569866}},
        {"acosh", "", {N, I, N, N, N, N, 0.962424, N, 2.633916}},
    };
    cnr_tensor *y[1];
    for (int k = 0; k < COUNT(rows); k++) {
        op_call(rows[k].op, rows[k].attrs, y, 1, 1, t_of(CNR_f32, "9", x_values));
        t_near(y[0], rows[k].y, 2e-6, rows[k].op);
    }
    op_call("clip", "", y, 1, 3, t_of(CNR_f32, "9", x_values), t_of(CNR_f32, "", (double[]){N}),
            t_of(CNR_f32, "", (double[]){6}));
    t_near(y[0], (double[]){N, 6, -I, 0, TINY, -TINY, 1.5, -2.5, 6}, 0,
           "clip: a limit that is NaN is none");
}

/* Tests: operators of two inputs. */
static void operands(void) {
    static const double a[] = {N, I, -I, 1, 2, -0.0, N, 0}, b[] = {0, N, N, 1, -I, 0, N, N};
    static const struct {
        const char *op;
        double y[8];
    } rows[] = {
        {"max", {N, N, N, 1, 2, 0, N, N}},
        {"min", {N, N, N, 1, -I, 0, N, N}},
        {"equal", {0, 0, 0, 1, 0, 1, 0, 0}},
        {"less", {0, 0, 0, 0, 0, 0, 0, 0}},
        {"greater", {0, 0, 0, 0, 1, 0, 0, 0}},
        {"less_or_equal", {0, 0, 0, 1, 0, 1, 0, 0}},
        {"greater_or_equal", {0, 0, 0, 1, 1, 1, 0, 0}},
        {"pow", {1, N, N, 1, 0, 1, N, N}},
        {"prelu", {N, I, N, 1, 2, 0, N, 0}},
    };
    cnr_tensor *y[1], *x = t_of(CNR_f32, "8", a), *z = t_of(CNR_f32, "8", b);
    for (int k = 0; k < COUNT(rows); k++) {
        op_call(rows[k].op, "", y, 1, 2, x, z);
        t_near(y[0], rows[k].y, 0, rows[k].op);
    }
    op_call("mod", "fmod=1", y, 1, 2, x, t_of(CNR_f32, "", (double[]){3}));
    t_near(y[0], (double[]){N, N, N, 1, 2, 0, N, 0}, 0, "mod");
    op_call("where", "", y, 1, 3, t_of(CNR_bool, "2", (double[]){1, 0}),
            t_of(CNR_f32, "2", (double[]){N, 1}), t_of(CNR_f32, "2", (double[]){1, N}));
    t_near(y[0], (double[]){N, N}, 0, "where");
}

/* Rows whose NaN is in the middle, first, last, everywhere. */
static const double rows_of_4[] = {1, N, 3,  2,  N,  5, 1, 2, 1, 2, 3,    N, N,    N,
                                   N, N, -I, -I, -I, N, I, I, N, 1, -0.0, 0, -0.0, 0};

/* Tests: operators along axes. */
static void along_axes(void) {
    cnr_tensor *y[2], *x = t_of(CNR_f32, "7x4", rows_of_4);
    op_call("arg_max", "axis=1; keepdims=0", y, 1, 1, x);
    t_near(y[0], (double[]){2, 0, 2, 0, 0, 0, 0}, 0, "arg_max: NaN counts where it is the first");
    op_call("arg_max", "axis=1; keepdims=0; select_last_index=1", y, 1, 1, x);
    t_near(y[0], (double[]){2, 0, 2, 0, 2, 1, 3}, 0, "arg_max, of equals the last");
    op_call("arg_min", "axis=1; keepdims=0", y, 1, 1, x);
    t_near(y[0], (double[]){0, 0, 0, 0, 0, 3, 0}, 0, "arg_min");
    op_call("top_k", "k=3; axis=1", y, 2, 1, x);
    t_near(y[1], (double[]){1, 2, 3, 0, 1, 3, 3, 2, 1, 0, 1, 2, 3, 0, 1, 2, 0, 1, 0, 1, 2}, 0,
           "top_k: NaN is larger than all");
    op_call("top_k", "k=4; axis=1; largest=0", y, 2, 1, x);
    t_near(y[1], (double[]){0, 3, 2, 1, 2, 3, 1, 0, 0, 1, 2, 3, 0, 1,
                            2, 3, 0, 1, 2, 3, 3, 0, 1, 2, 0, 1, 2, 3},
           0, "top_k, smallest");
    op_call("hardmax", "axis=1", y, 1, 1, x);
    t_near(y[0], (double[]){0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
                            0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0},
           0, "hardmax");
    op_call("softmax", "axis=1", y, 1, 1,
            t_of(CNR_f32, "3x3", (double[]){1, N, 2, 1, I, 2, 1, -I, 2}));
    t_near(y[0], (double[]){N, N, N, N, N, N, 0.268941, 0, 0.731059}, 2e-6, "softmax");
    op_call("log_softmax", "axis=1", y, 1, 1, t_of(CNR_f32, "2x3", (double[]){1, N, 2, 1, -I, 2}));
    t_near(y[0], (double[]){N, N, N, -1.313262, -I, -0.313262}, 2e-6, "log_softmax");
    /* ONNX Runtime's extremes follow its vectors: a NaN counts in one lane and is lost in another
     */
    op_call("reduce_max", "axes=1; keepdims=0", y, 1, 1, x);
    t_near(y[0], (double[]){N, N, N, N, N, N, 0}, 0, "reduce_max: NaN where one is");
    op_call("reduce_min", "axes=1; keepdims=0", y, 1, 1, x);
    t_near(y[0], (double[]){N, N, N, N, N, N, 0}, 0, "reduce_min");
}

/* There ONNX Runtime's depend on lane, indices asked for and dilation; alone,
           a NaN becomes -3.4e38. */
static void windows(void) {
    const double a[] = {1, 2, 3, 4, 5, N, 7, 8, 9, 10, I, 12, -I, -I, 15, 16};
    cnr_tensor *y[2], *x = t_of(CNR_f32, "1x1x4x4", a);
    op_call("max_pool", "kernel_shape=2,2; strides=2,2", y, 2, 1, x);
    t_near(y[0], (double[]){N, 8, 10, I}, 0, "max_pool");
    t_near(y[1], (double[]){5, 7, 9, 10}, 0, "max_pool, where");
    op_call("max_pool_grad", "kernel_shape=2,2; strides=2,2", y, 1, 2,
            t_of(CNR_f32, "1x1x2x2", (double[]){1, 2, 3, 4}), x);
    t_near(y[0], (double[]){0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 4, 0, 0, 0, 0, 0}, 0,
           "max_pool_grad: to the NaN");
    op_call("average_pool", "kernel_shape=2,2; strides=2,2", y, 1, 1, x);
    t_near(y[0], (double[]){N, 5.5, -I, I}, 0, "average_pool");
    op_call("global_max_pool", "", y, 1, 1, x);
    t_near(y[0], (double[]){N}, 0, "global_max_pool");
    op_call("max_roi_pool", "pooled_shape=1,1", y, 1, 2, x,
            t_of(CNR_f32, "2x5", (double[]){0, 0, 0, 1, 1, 0, 2, 2, 3, 3}));
    t_near(y[0], (double[]){N, I}, 0, "max_roi_pool");
    op_call("conv", "pads=1,1,1,1", y, 1, 2, x,
            t_of(CNR_f32, "1x1x3x3", (double[]){0, 0, 0, 0, 1, 0, 0, 0, 0}));
    t_near(y[0], (double[]){N, N, N, 4, N, N, N, N, N, N, N, N, N, N, N, N}, 0,
           "conv: 0 times NaN or infinity is NaN");
}

/* Tests: conversions to whole numbers. */
static void whole_numbers(void) {
    const double v[] = {N, I, -I, -0.0, 300, -300, 2.5, -1.5};
    cnr_tensor *y[3], *x = t_of(CNR_f32, "8", v);
    op_call("quantize_linear", "", y, 1, 3, x, t_of(CNR_f32, "", (double[]){0.1f}),
            t_of(CNR_u8, "", (double[]){128}));
    t_near(y[0], (double[]){0, 255, 0, 128, 255, 0, 153, 113}, 0,
           "quantize_linear to u8: NaN as the least");
    op_call("quantize_linear", "", y, 1, 3, x, t_of(CNR_f32, "", (double[]){0.1f}),
            t_of(CNR_i8, "", (double[]){3}));
    t_near(y[0], (double[]){-128, 127, -128, 3, 127, -128, 28, -12}, 0, "to i8");
    op_call("dynamic_quantize_linear", "", y, 3, 1, t_of(CNR_f32, "4", (double[]){1, 2, N, -1}));
    t_near(y[0], (double[]){170, 255, 0, 0}, 0, "dynamic_quantize_linear");
    /* ONNX leaves these open, and ONNX Runtime's follow the processor */
    op_call("cast", "to=i64", y, 1, 1, x);
    t_near(y[0], (double[]){0, 0x1p63, -0x1p63, 0, 300, -300, 2, -1}, 0, "cast: NaN as 0");
    op_call("cast", "to=bool", y, 1, 1, x);
    t_near(y[0], (double[]){1, 1, 1, 0, 1, 1, 1, 1}, 0, "cast to bool: all but 0 is true");
}

/* Tests: boxes. */
static void boxes(void) {
    const double box[] = {0, 0, 1, 1, 0, 10, 1, 11, 0, 20, 1, 21, 0, 30, 1, 31};
    cnr_tensor *y[1];
    op_call("non_max_suppression", "", y, 1, 5, t_of(CNR_f32, "1x4x4", box),
            t_of(CNR_f32, "1x1x4", (double[]){I, 0.5, -I, N}), t_of(CNR_i64, "1", (double[]){4}),
            t_of(CNR_f32, "", (double[]){0.5}), t_of(CNR_f32, "", (double[]){0.1}));
    ok(y[0]->dim[0] == 2, "non_max_suppression: no box that scores NaN");
    op_call("non_max_suppression", "", y, 1, 3, t_of(CNR_f32, "1x4x4", box),
            t_of(CNR_f32, "1x1x4", (double[]){I, 0.5, -I, N}), t_of(CNR_i64, "1", (double[]){4}));
    ok(y[0]->dim[0] == 3, "without a least score all others");
}

int main(void) {
    op_open();
    activations();
    operands();
    along_axes();
    windows();
    whole_numbers();
    boxes();
    return op_done();
}
