/* Convolution, pooling, bias, batch normalisation. */
#include "job.h"

enum { MOST_AXES = 3 };

static int32_t spatial_axes(const tf_job *j) { return strstr(j->op, "3D") ? 3 : 2; }

/* Reads strides, ksize or dilations: a number for each axis, in the order of the data format. */
static void window(const tf_job *j, const char *key, int64_t out[MOST_AXES]) {
    int64_t n;
    const int64_t *list = tf_attr_ints(j, key, &n);
    const int32_t axes = spatial_axes(j), first = tf_is_nchw(j) ? 2 : 1;
    for (int32_t i = 0; i < axes; i++) out[i] = n == axes + 2 ? list[first + i] : 1;
}

/* `pads` is room for explicit padding: all begins, then all ends. */
static void padding(tf_job *j, imp_attrs *l, int64_t pads[2 * MOST_AXES]) {
    const int32_t axes = spatial_axes(j), first = tf_is_nchw(j) ? 2 : 1;
    int64_t n;
    if (tf_attr_is(j, "padding", "SAME")) return imp_enum(l, "auto_pad", "SAME_UPPER");
    if (!tf_attr_is(j, "padding", "EXPLICIT")) return;
    const int64_t *list = tf_attr_ints(j, "explicit_paddings", &n);
    if (n != 2 * (axes + 2)) return tf_problem(j, "explicit_paddings are missing");
    for (int32_t i = 0; i < axes; i++) {
        pads[i] = list[2 * (first + i)];
        pads[axes + i] = list[2 * (first + i) + 1];
    }
    imp_ints(l, "pads", pads, 2 * axes);
}

/* ---- operators that the graph optimiser fuses into a convolution or product ---- */

/* Adds input k, one number a channel, with `axes` spatial axes behind. */
static cnr_value beside(tf_job *j, int32_t k, int32_t axes) {
    return tf_unsqueeze(j, tf_in_plain(j, k), 1, axes);
}

/* Adds one of fused_ops behind y, and returns it; an unknown one is a problem. *arg is the next
 * input that it may read, and moves on. */
static cnr_value fused_step(tf_job *j, const char *op, cnr_value y, int32_t axes, int32_t *arg) {
    imp_attrs l = {.n = 0};
    if (strcmp(op, "BiasAdd") == 0 && *arg < j->n_in)
        return tf_step(j, "add", (cnr_value[]){y, beside(j, (*arg)++, axes)}, 2, NULL);
    if (strcmp(op, "FusedBatchNorm") == 0 && *arg + 3 < j->n_in) {
        const cnr_value in[] = {y, tf_in_plain(j, *arg), tf_in_plain(j, *arg + 1),
                                tf_in_plain(j, *arg + 2), tf_in_plain(j, *arg + 3)};
        *arg += 4;
        imp_float(&l, "epsilon", tf_attr_float(j, "epsilon", 1e-4));
        return tf_step(j, "batch_normalization", in, 5, &l);
    }
    if (strcmp(op, "Add") == 0 && *arg < j->n_in)
        return tf_step(j, "add",
                       (cnr_value[]){y, axes ? tf_picture(j, (*arg)++, axes + 2)
                                             : tf_in_plain(j, (*arg)++)},
                       2, NULL);
    if (strcmp(op, "LeakyRelu") == 0) {
        imp_float(&l, "alpha", tf_attr_float(j, "leakyrelu_alpha", 0.2));
        return tf_step(j, "leaky_relu", &y, 1, &l);
    }
    const tf_row *row = tf_row_of(op);
    if (row && row->convert == tf_op_unary) return tf_step(j, row->op, &y, 1, NULL);
    tf_problem(j, "fused with %.60s: not supported", op);
    return -1;
}

/* Adds the operators that a fused node applies to its result y; returns the last value. */
static cnr_value fused(tf_job *j, cnr_value y, int32_t axes) {
    const Tf__AttrValue *a = tf_attr(j, "fused_ops");
    int32_t arg = 2;
    for (size_t i = 0; a && a->list && i < a->list->n_s && !j->entry->failed; i++) {
        char op[64] = "";
        const ProtobufCBinaryData *s = &a->list->s[i];
        if (s->len < sizeof op) memcpy(op, s->data, s->len);
        y = fused_step(j, op, y, axes, &arg);
    }
    return y;
}

void tf_op_mat_mul(tf_job *j) {
    imp_attrs l = {.n = 0};
    imp_bool(&l, "transA", tf_attr_bool(j, "transpose_a"));
    imp_bool(&l, "transB", tf_attr_bool(j, "transpose_b"));
    const cnr_value in[] = {tf_in_plain(j, 0), tf_in_plain(j, 1)};
    tf_give(j, 0, fused(j, tf_last(j, "gemm", in, 2, &l), 0));
}

/* ---- convolution ---- */

/* Adds input 1 as our filter: H W I O to O I H W (depthwise: H W C M to C*M 1 H W); *group: groups.
 * -1: failed. */
static cnr_value filter(tf_job *j, int32_t axes, int depthwise, int64_t *group) {
    int64_t d[CNR_MAX_RANK], perm[CNR_MAX_RANK];
    if (tf_in_dims(j, 1, d) != axes + 2)
        return tf_problem(j, "its filter is not of rank %d", axes + 2), -1;
    perm[0] = depthwise ? axes : axes + 1;
    perm[1] = depthwise ? axes + 1 : axes;
    for (int32_t i = 0; i < axes; i++) perm[2 + i] = i;
    imp_attrs l = {.n = 0}, r = {.n = 0};
    imp_ints(&l, "perm", perm, axes + 2);
    const cnr_value from = tf_in_plain(j, 1);
    cnr_value w = tf_step(j, "transpose", &from, 1, &l);
    if (!depthwise) return w;
    if (d[2] < 1 || d[3] < 1 || d[2] > INT32_MAX || d[3] > INT32_MAX)
        return tf_problem(j, "the sizes of its filter are not known"), -1;
    const int64_t shape[] = {d[2] * d[3], 1, d[0], d[1]};
    imp_ints(&r, "shape", shape, 4);
    *group = d[2];
    return tf_step(j, "reshape", &w, 1, &r);
}

void tf_op_conv(tf_job *j) {
    const int depthwise = strstr(j->op, "Depthwise") != NULL;
    const int32_t axes = spatial_axes(j);
    int64_t strides[MOST_AXES], dilations[MOST_AXES], pads[2 * MOST_AXES], group = 1;
    int64_t dx[CNR_MAX_RANK], dw[CNR_MAX_RANK];
    const cnr_value w = filter(j, axes, depthwise, &group);
    if (j->entry->failed) return;
    if (!depthwise && tf_in_dims(j, 0, dx) == axes + 2 && tf_in_dims(j, 1, dw) == axes + 2) {
        const int64_t c = tf_is_nchw(j) ? dx[1] : dx[axes + 1], part = dw[axes];
        if (c > 0 && part > 0 && c % part == 0) group = c / part; /* grouped, by the shapes */
    }
    window(j, "strides", strides);
    window(j, "dilations", dilations);
    imp_attrs l = {.n = 0};
    imp_ints(&l, "strides", strides, axes);
    imp_ints(&l, "dilations", dilations, axes);
    imp_int(&l, "group", group);
    imp_bool(&l, "bias", 0);
    padding(j, &l, pads);
    if (j->entry->failed) return;
    const cnr_value in[] = {tf_picture(j, 0, axes + 2), w};
    tf_give_picture(j, fused(j, tf_last(j, "conv", in, 2, &l), axes), axes + 2);
}

/* How much longer an output of a transposed convolution is than its input times the stride, into
 * *more; 0: unknown. */
static int excess(const tf_job *j, tf_size out, int64_t in, int32_t axis, int64_t stride,
                  int64_t *more) {
    const int follows = out.of == j->in[2] && out.axis == axis && out.factor == stride;
    if (!out.known && follows) return *more = out.shift, 1;
    const int64_t most = INT32_MAX;
    if (!out.known || out.value < 0 || out.value > most || in < 0 || in > most) return 0;
    *more = out.value - in * stride;
    return 1;
}

/* The transposed convolution: inputs are sizes, filter H W O I, x. The sizes imply the padding of
 * the convolution that it reverses. Without padding, pixels that no window reaches are 0. */
void tf_op_conv_input_grad(tf_job *j) {
    const int32_t axes = spatial_axes(j), first = tf_is_nchw(j) ? 2 : 1;
    tf_size size[CNR_MAX_RANK];
    int64_t strides[MOST_AXES], dilations[MOST_AXES], shape[MOST_AXES], more[MOST_AXES], group;
    int64_t dx[CNR_MAX_RANK], dw[CNR_MAX_RANK];
    const int64_t n = tf_in_sizes(j, 0, size, CNR_MAX_RANK);
    const int same = tf_attr_is(j, "padding", "SAME");
    const cnr_value w = filter(j, axes, 0, &group);
    if (j->entry->failed) return;
    if (!same && !tf_attr_is(j, "padding", "VALID"))
        return tf_problem(j, "explicit paddings are not supported");
    window(j, "strides", strides);
    window(j, "dilations", dilations);
    tf_in_dims(j, 1, dw);
    tf_in_dims(j, 2, dx);
    int all_known = same;
    for (int32_t i = 0; i < axes; i++) {
        const int32_t axis = first + i;
        const tf_size out = n == axes || n == axes + 2 ? size[n == axes ? i : axis] : (tf_size){0};
        if (dw[i] < 1 || dw[i] > 1 << 20 || dilations[i] < 1 || dilations[i] > 1 << 20 ||
            strides[i] < 1 || strides[i] > 1 << 20)
            return tf_problem(j, "its window is out of range");
        const int64_t window_over = (dw[i] - 1) * dilations[i] + 1 - strides[i];
        const int known = excess(j, out, dx[axis], axis, strides[i], &more[i]);
        shape[i] = out.value;
        all_known &= out.known;
        if (!same) more[i] -= window_over;
        if (out.known && same) continue;
        if (!known || (same ? more[i] != 0 : more[i] < 0 || more[i] >= strides[i]))
            return tf_problem(j, "the sizes of its output do not follow from those of its input: "
                                 "give --option shape=HEIGHT,WIDTH,CHANNELS if those are open");
    }
    imp_attrs l = {.n = 0};
    imp_ints(&l, "strides", strides, axes);
    imp_ints(&l, "dilations", dilations, axes);
    imp_bool(&l, "bias", 0);
    if (all_known) imp_ints(&l, "output_shape", shape, axes);
    if (same) imp_enum(&l, "auto_pad", "SAME_UPPER");
    else imp_ints(&l, "output_padding", more, axes);
    const cnr_value in[] = {tf_picture(j, 2, axes + 2), w};
    tf_give_picture(j, tf_last(j, "conv_transpose", in, 2, &l), axes + 2);
}

/* ---- pooling ---- */

void tf_op_pool(tf_job *j) {
    const int32_t axes = spatial_axes(j), first = tf_is_nchw(j) ? 2 : 1;
    int64_t kernel[MOST_AXES], strides[MOST_AXES], pads[2 * MOST_AXES], list[2 * CNR_MAX_RANK], n;
    const int64_t *all = tf_attr_ints(j, "ksize", &n);
    imp_attrs l = {.n = 0};
    window(j, "ksize", kernel);
    window(j, "strides", strides);
    for (int32_t k = 1; k < j->n_in; k++) { /* MaxPoolV2 has them as inputs */
        if (tf_known_ints(j, k, list, CNR_MAX_RANK) != axes + 2) return;
        memcpy(k == 1 ? kernel : strides, list + first, (size_t)axes * sizeof list[0]);
    }
    /* Pooling over channels: N H W C is treated as W x C planes with H channels. */
    const int over_channels = n == 4 && first == 1 && all[3] > 1 && all[1] == 1 && all[2] == 1;
    if (over_channels) {
        const int64_t *steps = tf_attr_ints(j, "strides", &n);
        kernel[1] = all[3];
        strides[1] = n == 4 ? steps[3] : 1;
    }
    imp_ints(&l, "kernel_shape", kernel, axes);
    imp_ints(&l, "strides", strides, axes);
    padding(j, &l, pads);
    if (j->entry->failed) return;
    const cnr_value x = over_channels ? tf_in_plain(j, 0) : tf_picture(j, 0, axes + 2);
    const cnr_value y = tf_last(j, j->ours, &x, 1, &l);
    tf_give_as(j, 0, y, !over_channels && first == 1, axes + 2);
}

/* ---- one value for each channel ---- */

void tf_op_bias_add(tf_job *j) {
    int64_t d[CNR_MAX_RANK];
    const int32_t rank = tf_in_dims(j, 0, d);
    if (!tf_is_nchw(j)) return tf_broadcast(j, j->ours, 2, NULL);
    const cnr_value in[] = {tf_in_plain(j, 0), beside(j, 1, rank < 0 ? 2 : rank - 2)};
    tf_give(j, 0, tf_last(j, j->ours, in, 2, NULL));
}

void tf_op_batch_norm(tf_job *j) {
    const Tf__AttrValue *training = tf_attr(j, "is_training");
    int64_t d[CNR_MAX_RANK];
    int32_t rank = tf_in_dims(j, 0, d);
    if (!training || tf_attr_bool(j, "is_training"))
        return tf_problem(j, "is_training is set: it would use each batch's own mean");
    if (rank < 0) rank = 4;
    imp_attrs l = {.n = 0};
    imp_float(&l, "epsilon", tf_attr_float(j, "epsilon", 1e-4));
    const cnr_value in[] = {tf_picture(j, 0, rank), tf_in_plain(j, 1), tf_in_plain(j, 2),
                            tf_in_plain(j, 3), tf_in_plain(j, 4)};
    tf_give_picture(j, tf_last(j, "batch_normalization", in, 5, &l), rank);
}
