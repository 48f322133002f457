/* Poolings, their gradients, softmax and normalisations of cpu-neon against the references. */
#include "plugins/cpu-neon/neoncall.h"
#include <math.h>

static uint64_t seed = 23;

static cnr_tensor *draw(const char *dims) { return t_random(CNR_f32, dims, seed++); }

/* A pooling. */
typedef struct shape {
    const char *x, *attrs;
} shape;

static const shape shapes[] = {
    {"1x1x2x2", "kernel_shape=2; strides=2"},
    {"2x3x24x24", "kernel_shape=2; strides=2"},
    {"1x5x13x13", "kernel_shape=3; strides=2"},
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
    {"1x33x6x6", "kernel_shape=6"},
};

/* Tests: poolings. */
static void pools(void) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const shape *s = &shapes[i];
        char with_pad[256];
        cnr_tensor *x = draw(s->x), *y[1];
        snprintf(with_pad, sizeof with_pad, "%s; count_include_pad=1", s->attrs);
        neon_check("max_pool", s->attrs, i % 2 ? "relu" : "", 1, x);
        neon_check("average_pool", s->attrs, i % 2 ? "" : "relu", 1, x);
        neon_check("average_pool", with_pad, "", 1, x);
        op_call("max_pool", s->attrs, y, 1, 1, x);
        cnr_tensor *dy = t_copy(y[0]);
        for (int64_t e = 0; e < cnr_count(dy); e++) t_set(dy, e, (double)(e * 31 % 17) / 8 - 1);
        neon_check("max_pool_grad", s->attrs, "", 2, dy, x);
        neon_check("average_pool_grad", s->attrs, "", 2, dy, x);
        neon_check("average_pool_grad", with_pad, "", 2, dy, x);
    }
}

/* A NaN is larger than anything, wherever in the window it is. */
static void not_numbers(void) {
    cnr_tensor *x = draw("1x1x8x40");
    for (int64_t e = 5; e < cnr_count(x); e += 23) t_set(x, e, NAN);
    neon_check("max_pool", "kernel_shape=3; strides=2; pads=1", "", 1, x);
}

/* Tests: softmax. */
static void softmax(void) {
    static const char *const dims[] = {"1x10", "3x1000", "2x21x7x9", "1x1x5", "7", "2x3x130"};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        cnr_tensor *x = draw(dims[i]);
        for (int64_t e = 0; e < cnr_count(x); e++) t_set(x, e, t_get(x, e) * 30);
        neon_check("softmax", "axis=-1", "", 1, x);
        neon_check("softmax", "axis=0", "", 1, x);
        if (x->rank > 1) neon_check("softmax", "axis=1", "", 1, x);
    }
}

/* Tests: global poolings. */
static void global_pools(void) {
    static const char *const dims[] = {"1x3x1x1", "2x17x7x7", "1x5x33x19", "3x4x50", "1x2x3x4x5"};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        neon_check("global_average_pool", "", "", 1, draw(dims[i]));
        neon_check("global_max_pool", "", "", 1, draw(dims[i]));
    }
}

/* Tests: normalisations. */
static void normalisations(void) {
    static const char *const dims[] = {"2x7x5x9", "1x5x40x41", "3x11", "1x6x30"};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        cnr_tensor *x = draw(dims[i]), *list[4];
        char channels[32];
        snprintf(channels, sizeof channels, "%lld", (long long)x->dim[1]);
        for (int k = 0; k < 4; k++) list[k] = draw(channels);
        for (int64_t e = 0; e < x->dim[1]; e++) t_set(list[3], e, t_get(list[3], e) + 1.5);
        neon_check("batch_normalization", "", i % 2 ? "relu" : "", 5, x, list[0], list[1], list[2],
                   list[3]);
        neon_check("lrn", "size=5; alpha=0.1; beta=0.75; bias=2", "", 1, x);
        neon_check("lrn", "size=4; alpha=1; beta=0.5", i % 2 ? "" : "relu", 1, x);
        neon_check("lrn", "size=3; alpha=0.5; beta=0.6", "", 1, x);
    }
    /* a mean so large that the difference from it is lost unless it is taken first */
    cnr_tensor *x = draw("2x3x5x7"), *mean = draw("3"), *variance = draw("3");
    for (int64_t e = 0; e < cnr_count(x); e++) t_set(x, e, t_get(x, e) + 4096);
    for (int64_t e = 0; e < 3; e++) t_set(mean, e, 4096.5), t_set(variance, e, 1e-4);
    neon_check("batch_normalization", "", "", 5, x, draw("3"), draw("3"), mean, variance);
}

/* Rows by their own moments, also where the mean is large and little is left of it. */
static void row_normalisations(void) {
    static const char *const scales[] = {"37", "1", "5x37", "5x1", ""};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        cnr_tensor *x = draw("3x5x37");
        for (int64_t e = 0; e < cnr_count(x); e++) t_set(x, e, t_get(x, e) + (i == 1 ? 1000 : 0));
        neon_check("layer_normalization", i < 2 ? "axis=-1" : "axis=1", i ? "" : "relu", 3, x,
                   draw(scales[i]), draw(scales[i]));
        neon_check("layer_normalization", "axis=1", "", 3, x, draw(scales[i]), draw("37"));
        neon_check("layer_normalization", "axis=-1", "", 2, x, draw("37"));
    }
    neon_check("instance_normalization", "", "relu", 3, draw("2x5x9x7"), draw("5"), draw("5"));
    neon_check("group_normalization", "num_groups=3", "relu", 3, draw("2x6x9x7"), draw("6"),
               draw("6"));
    neon_check("group_normalization", "num_groups=3", "", 3, draw("2x6x50"), draw("3"), draw("3"));
    cnr_tensor *x = draw("6x40");
    t_set(x, 3, NAN);
    t_set(x, 90, INFINITY);
    for (int64_t e = 120; e < 160; e++) t_set(x, e, 2.5); /* no variance */
    neon_check("layer_normalization", "axis=-1", "", 3, x, draw("40"), draw("40"));
}

/* Axes at the end, the begin and between; one task and several; a NaN in each place. */
static void reductions(void) {
    static const char *const ops[] = {"reduce_sum", "reduce_mean", "reduce_max",       "reduce_min",
                                      "reduce_l1",  "reduce_l2",   "reduce_sum_square"};
    cnr_tensor *x = t_random(CNR_f32, "3x70x5x290", 31), *odd = t_random(CNR_f32, "5x7x19", 32);
    t_set(odd, 0, NAN);
    t_set(odd, 200, NAN);
    cnr_tensor *planes = t_random(CNR_f32, "2x32x9x11", 35);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        neon_check(ops[i], "axes=-1", "", 1, x);
        neon_check(ops[i], "axes=1,2; keepdims=0", "", 1, x);
        neon_check(ops[i], "axes=0", "", 1, odd);
        neon_check(ops[i], "axes=1,2", "", 1, odd);
        neon_check(ops[i], "", "", 1, x);
        neon_check(ops[i], "axes=2,3", "", 1, planes); /* also of channel blocks */
        neon_check(ops[i], "axes=-2", "", 1, planes);
        neon_check(ops[i], "axes=-1; keepdims=0", "", 1, planes);
    }
}

/* A grid that reaches beyond the plane, every mode; more positions than a task's. */
static void grids(void) {
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    cnr_tensor *x = t_random(CNR_f32, "2x3x9x13", 33), *grid = t_random(CNR_f32, "2x70x90x2", 34);
    for (int64_t i = 0; i < cnr_count(grid); i++) t_set(grid, i, t_get(grid, i) * 1.4);
    t_set(grid, 7, NAN);
    t_set(grid, 20, INFINITY);
    for (int i = 0; i < 12; i++) {
        char attrs[96];
        snprintf(attrs, sizeof attrs, "mode=%s; padding_mode=%s; align_corners=%d",
                 i % 2 ? "nearest" : "linear", paddings[i / 2 % 3], i / 6);
        neon_check("grid_sample", attrs, "", 2, x, grid);
    }
}

int main(void) {
    neon_open();
    NEON_EACH_ISA {
        pools();
        not_numbers();
        softmax();
        global_pools();
        normalisations();
        row_normalisations();
        reductions();
        grids();
    }
    return op_done();
}
