/* Poolings, softmax, normalisations, element-wise operators, copies by OpenCL. */
#include "plugins/opencl-mali/oclcall.h"

static uint64_t seed = 23;

static cnr_tensor *draw(const char *dims) { return t_random(CNR_f32, dims, seed++); }

/* A weight at random whose numbers are at least `least`. */
static cnr_tensor *weight(const char *dims, double least) {
    cnr_tensor *t = draw(dims);
    for (int64_t e = 0; e < cnr_count(t); e++) t_set(t, e, fabs(t_get(t, e)) + least);
    t->flags |= CNR_TENSOR_CONST;
    return t;
}

/* Tests: poolings. */
static void pools(void) {
    static const char *const shapes[][2] = {
        {"1x1x2x2", "kernel_shape=2; strides=2"},
        {"2x3x24x24", "kernel_shape=2; strides=2"},
        {"1x5x14x15", "kernel_shape=3; strides=2; ceil_mode=1"},
        {"1x4x28x28", "kernel_shape=3; strides=1; pads=1"},
        {"2x2x9x70", "kernel_shape=2,5; strides=2,3; pads=0,1,1,2"},
        {"1x3x12x12", "kernel_shape=3; dilations=2; strides=1"},
        {"1x3x10x11", "kernel_shape=3; strides=2; auto_pad=SAME_UPPER"},
        {"1x3x7x8", "kernel_shape=2; strides=3; ceil_mode=1; pads=1"},
        {"2x17x2x4", "kernel_shape=3,6; strides=2,3; ceil_mode=1"},
        {"2x17x2x4", "kernel_shape=3,6; strides=2,3; pads=0,0,1,2"}, /* none lies inside */
        {"3x2x19", "kernel_shape=4; strides=3"},
        {"1x2x6x7x8", "kernel_shape=2,3,2; strides=2; pads=1,1,0,0,1,1"},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char with_pad[256];
        cnr_tensor *x = draw(shapes[i][0]);
        snprintf(with_pad, sizeof with_pad, "%s; count_include_pad=1", shapes[i][1]);
        ocl_check("max_pool", shapes[i][1], i % 2 ? "relu" : "", 1, x);
        ocl_check("average_pool", shapes[i][1], "", 1, x);
        ocl_check("average_pool", with_pad, "", 1, x);
    }
    cnr_tensor *x = draw("1x1x8x40"); /* a NaN is larger than anything */
    for (int64_t e = 5; e < cnr_count(x); e += 23) t_set(x, e, NAN);
    ocl_check("max_pool", "kernel_shape=3; strides=2; pads=1", "", 1, x);
    static const char *const dims[] = {"1x3x1x1", "2x17x7x7", "3x4x50", "1x2x3x4x5"};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
        ocl_check("global_average_pool", "", i == 1 ? "relu" : "", 1, draw(dims[i]));
}

/* Tests: operators along lines. */
static void lanes(void) {
    static const char *const dims[] = {"1x10", "3x1000", "2x21x7x9", "7"};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        cnr_tensor *x = draw(dims[i]);
        for (int64_t e = 0; e < cnr_count(x); e++) t_set(x, e, t_get(x, e) * 30);
        ocl_check("softmax", "axis=-1", "", 1, x);
        ocl_check("softmax", "axis=0", "", 1, x);
        if (x->rank > 1) ocl_check("softmax", "axis=1", "", 1, x);
    }
    ocl_check("lrn", "size=5; alpha=0.01; beta=0.75; bias=1", "", 1, draw("2x9x5x6"));
    ocl_check("lrn", "size=4; alpha=0.3; beta=0.5; bias=2", "relu", 1, draw("1x3x7x11"));
    ocl_check("lrn", "size=1", "", 1, draw("3x70"));
}

/* Tests: operators by channel. */
static void channels(void) {
    ocl_check("batch_normalization", "", "", 5, draw("2x7x5x9"), weight("7", 0.5), weight("7", 0),
              weight("7", 0), weight("7", 0.2));
    ocl_check("batch_normalization", "epsilon=0.01", "relu", 5, draw("1x3x40"), weight("3", 0.5),
              weight("3", 0), weight("3", 0), weight("3", 0.2));
    ocl_check("scale_bias", "", "", 3, draw("2x6x5"), weight("6", 0), weight("6", 0));
}

/* Tests: elementwise operators. */
static void elementwise(void) {
    static const char *const names[] = {"relu",  "leaky_relu", "sigmoid", "tanh", "elu",
                                        "exp",   "abs",        "relu6",   "clip", "hard_swish",
                                        "swish", "softplus",   "sqrt",    "floor"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cnr_tensor *x = draw("2x3x45x7");
        const int root = strcmp(names[i], "sqrt") == 0;
        for (int64_t e = 0; e < cnr_count(x); e++)
            t_set(x, e, root ? fabs(t_get(x, e)) : t_get(x, e) * 8);
        ocl_check(names[i], "", i % 4 == 1 ? "relu" : "", 1, x);
    }
    ocl_check("clip", "min=-0.5; max=0.25", "clip min=-0.1", 1, draw("3x70"));
    ocl_check("clip", "", "", 3, draw("3x70"), weight("", 0.1), weight("", 0.4));
    static const char *const shapes[][2] = {{"7", "7"},
                                            {"2x3x4x5", "2x3x4x5"},
                                            {"2x3x4x5", "3x1x1"},
                                            {"1", "5x6"},
                                            {"3x1x5x1", "4x1x6"},
                                            {"2x1x33", "2x9x33"},
                                            {"64x50", "50"},
                                            {"", "3x4"},
                                            {"2x1x3x1x2x1x2x2", "1x2x1x2x1x2x1x2"}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        ocl_check(i % 2 ? "sub" : "div", "", i == 1 ? "relu; add" : "", 2, draw(shapes[i][0]),
                  draw(shapes[i][1]));
    ocl_check("prelu", "", "", 2, draw("2x5x6x7"), weight("5x1x1", 0.1));
    ocl_check("max", "", "", 2, draw("2x5"), draw("2x5"));
}

/* Tests: copies. */
static void copies(void) {
    ocl_check("concat", "axis=1", "", 3, draw("2x3x4x5"), draw("2x1x4x5"), draw("2x6x4x5"));
    ocl_check("concat", "axis=0", "", 2, draw("2x3"), draw("5x3"));
    ocl_check("concat", "axis=-1", "", 2, draw("70000x1"), draw("70000x2")); /* a tall grid */
    ocl_check("concat", "axis=-1", "", 2, draw("4x3x2"), draw("4x3x7"));
    ocl_check("flatten", "axis=1", "", 1, draw("2x3x4x5"));
}

/* Tests: attention. */
static void attentions(void) {
    ocl_check("attention", "scale=0.3", "", 3, draw("2x3x40x24"), draw("2x3x50x24"),
              draw("2x3x50x9"));
    ocl_check("attention", "", "", 5, draw("4x2x17x70"), draw("2x33x70"), draw("33x140"),
              draw("2x1x33"), draw("17x33"));
    /* many rows of k for one of q: they are shared among work-groups */
    ocl_check("attention", "scale=0.2", "", 3, draw("1x20"), draw("700x20"), draw("700x33"));
    /* an infinite value whose weight is too small for a float: still infinite */
    cnr_tensor *values = draw("16x8");
    t_set(values, 11, -INFINITY);
    ocl_check("attention", "scale=30", "", 3, draw("16x64"), draw("16x64"), values);
    /* parts of one tensor [2 batches][7 rows][3][4 heads][5], and an output in the same order */
    ocl_check("attention",
              "scale=0.5; sizes=1,2,4,7,7,5,5; "
              "views=0,0,420,5,60,1,20,0,420,5,60,1,40,0,420,5,60,1; "
              "perm=0,1,3,2,4",
              "", 3, draw("2x7x60"), draw("2x7x60"), draw("2x7x60"));
}

int main(void) {
    ocl_open("opencl-mali");
    OCL_EACH_DEVICE {
        attentions();
        pools();
        lanes();
        channels();
        elementwise();
        copies();
    }
    return ocl_done();
}
