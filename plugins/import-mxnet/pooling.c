/* Pooling and resizing. */
#include "mxnet.h"

#include <stdio.h>

/* Attributes of pooling. */
typedef struct pool {
    int64_t kernel[3], stride[3], pad[6]; /* pad: begins, then ends */
    int32_t rank;
    int max, sum, full, old; /* old: Pooling_v1, which pads with zeros */
} pool;

/* 1 if an attribute has that text. */
static int is_text(const mx_node *n, const char *key, const char *text) {
    const char *have = mx_text(n, key);
    return have && strcmp(have, text) == 0;
}

/* Number of windows that "full" gives along an axis of n pixels. */
static int64_t steps(const pool *p, int32_t i, int64_t n) {
    return (n + 2 * p->pad[i] - p->kernel[i] + p->stride[i] - 1) / p->stride[i] + 1;
}

/* Whether "full" gives a window without pixels, which our operators leave out. */
static int hangs_over(const pool *p, const cnr_tensor *x) {
    for (int32_t i = 0; i < p->rank; i++) {
        const int64_t n = x->dim[2 + i];
        if (n >= 0 && (steps(p, i, n) - 1) * p->stride[i] >= n + p->pad[i]) return 1;
    }
    return 0;
}

/* Adds a padding with actual zeros, for sums and for Pooling_v1, and clears p->pad; returns the
 * padded value. */
static cnr_value with_border(mx_job *j, pool *p) {
    const cnr_tensor *x = mx_type(j, j->x);
    int64_t pads[10] = {0};
    int any = 0;
    for (int32_t i = 0; i < p->rank; i++) {
        int64_t end = p->pad[i];
        if (p->full && !p->max) /* the last window counts as whole, wherever it ends */
            end = (steps(p, i, x->dim[2 + i]) - 1) * p->stride[i] + p->kernel[i] - x->dim[2 + i] -
                  p->pad[i];
        pads[2 + i] = p->pad[i];
        pads[2 + p->rank + 2 + i] = end;
        any = any || p->pad[i] || end;
        p->pad[i] = p->pad[p->rank + i] = 0;
    }
    if (!p->max) p->full = 0;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "pads", pads, 2 * (p->rank + 2));
    return any ? mx_op(j, "pad", ".border", &j->x, 1, &l) : j->x;
}

/* Sets padding for "same": ceil(size / stride) windows, padded at the end; 0: failed. */
static int same_ends(mx_job *j, pool *p, const cnr_tensor *x) {
    for (int32_t i = 0; i < p->rank; i++) {
        const int64_t n = x->dim[2 + i] + 2 * p->pad[i], s = p->stride[i];
        if (!p->max || x->dim[2 + i] < 1)
            return mx_problem(j, "\"same\" wants max and known sizes"), 0;
        p->pad[p->rank + i] += ((n + s - 1) / s - 1) * s + p->kernel[i] - n;
        if (p->pad[p->rank + i] < 0)
            return mx_problem(j, "\"same\" with a stride above the kernel"), 0;
    }
    return 1;
}

/* Reads kernel, stride and padding. 0: failed, a problem is noted. */
static int read_pool(mx_job *j, pool *p, const cnr_tensor *x) {
    p->rank = mx_ints(j->n, "kernel", p->kernel, 3, 1);
    if (p->rank < 1 || p->rank != x->rank - 2) return mx_problem(j, "kernel is wrong"), 0;
    if (!mx_spatial(j, "stride", p->rank, 1, p->stride) ||
        !mx_spatial(j, "pad", p->rank, 0, p->pad))
        return 0;
    memcpy(p->pad + p->rank, p->pad, (size_t)p->rank * sizeof p->pad[0]);
    for (int32_t i = 0; i < p->rank; i++)
        if (p->kernel[i] < 1 || p->stride[i] < 1 || p->pad[i] < 0)
            return mx_problem(j, "kernel, stride or pad is wrong"), 0;
    if (p->full && hangs_over(p, x)) return mx_problem(j, "its last window lies in the padding"), 0;
    if (p->full && !p->max && (p->sum || p->old))
        for (int32_t i = 0; i < p->rank; i++)
            if (x->dim[2 + i] < 0) return mx_problem(j, "it wants known sizes"), 0;
    return !is_text(j->n, "pooling_convention", "same") || same_ends(j, p, x);
}

/* Converts global pooling: maximum, mean or sum of each channel. */
static void global_pooling(mx_job *j, const pool *p, const cnr_tensor *x) {
    const int64_t axes[] = {2, 3, 4};
    imp_attrs l = {.n = 0};
    if (!p->sum)
        return mx_give(j, mx_op(j, p->max ? "global_max_pool" : "global_average_pool", "", &j->x, 1,
                                NULL));
    if (x->rank < 3 || x->rank > 5) return mx_problem(j, "its input is no picture");
    imp_ints(&l, "axes", axes, x->rank - 2);
    imp_bool(&l, "keepdims", 1);
    mx_give(j, mx_op(j, "reduce_sum", "", &j->x, 1, &l));
}

/* Converts Pooling: windows or global; max, average, sum or Lp norm. */
static void pooling(mx_job *j) {
    const char *type = mx_text(j->n, "pool_type");
    const cnr_tensor *x = mx_type(j, j->x);
    const int norm = type && strcmp(type, "lp") == 0;
    pool p = {.max = !type || strcmp(type, "max") == 0,
              .sum = type && strcmp(type, "sum") == 0,
              .full = is_text(j->n, "pooling_convention", "full"),
              .old = strcmp(j->n->op, "Pooling_v1") == 0};
    if (!x || !mx_is_channels_first(j)) return;
    if (!p.max && !p.sum && !norm && strcmp(type, "avg") != 0)
        return mx_problem(j, "pool_type %.20s is not supported", type);
    if (norm && (mx_int(j->n, "p_value", 2) != 2 || mx_bool(j->n, "global_pool", 0)))
        return mx_problem(j, "norms other than the second, or global ones");
    if (mx_bool(j->n, "global_pool", 0)) return global_pooling(j, &p, x);
    if (!read_pool(j, &p, x)) return;
    const cnr_value in = p.sum || p.old ? with_border(j, &p) : j->x;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "kernel_shape", p.kernel, p.rank);
    imp_ints(&l, "strides", p.stride, p.rank);
    imp_ints(&l, "pads", p.pad, 2 * p.rank);
    imp_bool(&l, "ceil_mode", p.full);
    if (!p.max && !norm) imp_bool(&l, "count_include_pad", mx_bool(j->n, "count_include_pad", 1));
    cnr_value y = mx_op(j,
                        p.max  ? "max_pool"
                        : norm ? "lp_pool"
                               : "average_pool",
                        p.sum ? ".mean" : "", &in, 1, &l);
    double count = 1;
    for (int32_t i = 0; i < p.rank; i++) count *= (double)p.kernel[i];
    if (p.sum) y = imp_affine(&j->net->b, j->n->name, y, count, 0);
    mx_give(j, y);
}

/* Converts AdaptiveAvgPooling2D; what does not fit is noted as a problem and sets j->failed. */
static void adaptive_pooling(mx_job *j) {
    int64_t size[2] = {1, 1};
    const cnr_tensor *x = mx_type(j, j->x);
    const int32_t n = mx_ints(j->n, "output_size", size, 2, 1);
    if (!x || x->rank != 4) return mx_problem(j, "its input is no picture");
    if (n < 0) return mx_problem(j, "output_size is wrong");
    if (n == 1) size[1] = size[0];
    mx_give(j, imp_adaptive_average(&j->net->b, j->n->name, j->x, size));
    if (j->out[0] < 0) j->failed = 1;
}

/* ---- resizing ---- */

/* Enlarges several inputs to the size of the first result, and concatenates or adds them. */
static void nearest(mx_job *j, int64_t scale) {
    const cnr_tensor *x = mx_type(j, j->x);
    const int sum = is_text(j->n, "multi_input_mode", "sum");
    cnr_value in[MX_MAX_INPUTS];
    const int64_t height = x->dim[2] < 0 ? -1 : x->dim[2] * scale;
    for (int32_t i = 0; i < j->n_in; i++) {
        char name[300];
        const cnr_value v = mx_data(j, i);
        const cnr_tensor *t = mx_type(j, v);
        if (j->failed || !t) return;
        if (j->n_in > 1 && (t->rank != 4 || t->dim[2] < 1 || height < 1 || height % t->dim[2]))
            return mx_problem(j, "its inputs' sizes do not divide, or are not known");
        snprintf(name, sizeof name, j->n_in > 1 ? "%.250s.input%d" : "%.250s", j->n->name, (int)i);
        in[i] = imp_upscale(&j->net->b, name, v, i ? height / t->dim[2] : scale, 0);
    }
    mx_give(j, j->n_in == 1 ? in[0]
               : sum        ? mx_op(j, "sum", "", in, j->n_in, NULL)
                            : imp_concat(&j->net->b, j->n->name, in, j->n_in, 1));
}

/* Converts UpSampling: repeats pixels, or bilinear; what does not fit is noted as a problem and
 * sets j->failed. */
static void upsampling(mx_job *j) {
    const int64_t scale = mx_int(j->n, "scale", 0), c = mx_channels(j);
    if (j->failed) return;
    if (mx_type(j, j->x)->rank != 4) return mx_problem(j, "its input is no picture");
    if (scale < 1 || scale > 1024) return mx_problem(j, "scale is wrong");
    if (!is_text(j->n, "sample_type", "bilinear")) return nearest(j, scale);
    /* bilinear: a transposed convolution of each channel with a tent-shaped filter */
    const int64_t k = 2 * scale - scale % 2, pad = scale / 2, dim[] = {c, 1, k, k};
    const int64_t kernel[] = {k, k}, stride[] = {scale, scale}, pads[] = {pad, pad, pad, pad};
    const cnr_value w = mx_weight(j, 1, dim, 4);
    if (j->failed) return;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "kernel_shape", kernel, 2);
    imp_ints(&l, "strides", stride, 2);
    imp_ints(&l, "pads", pads, 4);
    imp_int(&l, "group", c);
    imp_bool(&l, "bias", 0);
    mx_give(j, mx_op(j, "conv_transpose", "", (cnr_value[]){j->x, w, -1}, 3, &l));
}

/* Converts BilinearResize2D by size, scale or a second input; what does not fit is noted as a
 * problem and sets j->failed. */
static void bilinear_resize(mx_job *j) {
    const cnr_tensor *x = mx_type(j, j->x), *like = NULL;
    int64_t size[] = {mx_int(j->n, "height", 1), mx_int(j->n, "width", 1)};
    const double scales[] = {mx_float(j->n, "scale_height", 0), mx_float(j->n, "scale_width", 0)};
    const char *mode = mx_text(j->n, "mode");
    const int64_t axes[] = {2, 3};
    if (!x || x->rank != 4) return mx_problem(j, "its input is no picture");
    if (mode && strcmp(mode, "size") != 0 && strcmp(mode, "like") != 0)
        return mx_problem(j, "mode %.20s is not supported", mode);
    if (mode && strcmp(mode, "like") == 0 && !(like = mx_type(j, mx_data(j, 1)))) return;
    if (like && like->rank != 4) return mx_problem(j, "its second input is no picture");
    for (int i = 0; i < 2; i++) {
        if (like) size[i] = like->dim[2 + i];
        else if (scales[i] > 0) size[i] = (int64_t)((double)x->dim[2 + i] * scales[i]);
        if (size[i] < 1 || x->dim[2 + i] < 1) return mx_problem(j, "its sizes are not known");
    }
    imp_attrs l = {.n = 0};
    imp_ints(&l, "sizes", size, 2);
    imp_ints(&l, "axes", axes, 2);
    imp_enum(&l, "mode", "linear");
    imp_enum(&l, "coordinate_transformation_mode",
             mx_bool(j->n, "align_corners", 1) ? "align_corners" : "half_pixel");
    mx_give(j, mx_op(j, "resize", "", &j->x, 1, &l));
}

/* ---- the table ---- */

/* 1 if a pooling accepts any height and width: "full" does at any size at which its last window
 * contains a pixel. */
static int pool_is_open(const mx_node *n) {
    int64_t kernel[3] = {0}, stride[3] = {1, 1, 1}, pad[3] = {0};
    mx_ints(n, "kernel", kernel, 3, 1);
    mx_ints(n, "stride", stride, 3, 1);
    mx_ints(n, "pad", pad, 3, 0);
    if (mx_bool(n, "global_pool", 0) || !mx_text(n, "pooling_convention") ||
        is_text(n, "pooling_convention", "valid"))
        return 1;
    for (int i = 0; i < 3 && kernel[i] > 0; i++)
        if (kernel[i] <= pad[i] + stride[i] - 1) return 0;
    const int sum = is_text(n, "pool_type", "sum"), mean = is_text(n, "pool_type", "avg");
    return is_text(n, "pooling_convention", "full") && !sum &&
           !(mean && strcmp(n->op, "Pooling_v1") == 0);
}

/* Converter of a pooling or resizing operator, and its *flags; NULL: it is none. */
mx_convert mx_pooling_row(const mx_node *n, int *flags) {
    if (strcmp(n->op, "Pooling") == 0 || strcmp(n->op, "Pooling_v1") == 0) {
        *flags = pool_is_open(n) ? MX_OPEN : 0;
        return pooling;
    }
    if (strcmp(n->op, "UpSampling") == 0) {
        const int one = mx_int(n, "num_args", 1) < 2 || is_text(n, "sample_type", "bilinear");
        *flags = one ? MX_OPEN : 0;
        return upsampling;
    }
    *flags = 0;
    if (strcmp(n->op, "_contrib_AdaptiveAvgPooling2D") == 0) {
        int64_t size[2] = {1, 1};
        mx_ints(n, "output_size", size, 2, 1);
        *flags = size[0] == 1 && size[1] == 1 ? MX_OPEN : 0;
        return adaptive_pooling;
    }
    return strcmp(n->op, "_contrib_BilinearResize2D") == 0 ? bilinear_resize : NULL;
}
