/* Convolution, pooling, bias, batch normalisation. */
#include "job.h"

#include <stdio.h>

/* strides, ksize, dilations: four numbers in the data format's order */
static void window(const tf_job *j, const char *key, int64_t out[2]) {
    const Tf__AttrValue *a = tf_attr(j, key);
    const int at = tf_is_nchw(j) ? 2 : 1;
    out[0] = out[1] = 1;
    if (!a || !a->list || a->list->n_i < 4) return;
    out[0] = a->list->i[at];
    out[1] = a->list->i[at + 1];
}

/* Explicit pads, if any, begin then end of H and W. */
static void padding(tf_job *j, tf_attrs *l, int64_t pads[4]) {
    if (tf_attr_is(j, "padding", "SAME"))
        tf_put_enum(l, "auto_pad", "SAME_UPPER");
    else if (tf_attr_is(j, "padding", "EXPLICIT")) {
        const Tf__AttrValue *a = tf_attr(j, "explicit_paddings");
        const int at = tf_is_nchw(j) ? 4 : 2;
        if (!a || !a->list || a->list->n_i < 8)
            return tf_problem(j, "explicit_paddings are missing");
        pads[0] = a->list->i[at], pads[1] = a->list->i[at + 2];
        pads[2] = a->list->i[at + 1], pads[3] = a->list->i[at + 3];
        tf_put_ints(l, "pads", pads, 4);
    }
}

/* H W I O -> O I H W (depthwise: H W C M -> C*M 1 H W) */
static cnr_value filter(tf_job *j, int depthwise, int64_t *group) {
    int64_t d[CNR_MAX_RANK];
    static const int64_t plain_perm[] = {3, 2, 0, 1}, deep_perm[] = {2, 3, 0, 1};
    if (tf_in_dims(j, 1, d) != 4) return tf_problem(j, "its filter is not of rank 4"), -1;
    tf_attrs l = {.n = 0};
    tf_put_ints(&l, "perm", depthwise ? deep_perm : plain_perm, 4);
    const cnr_value from = tf_in_plain(j, 1);
    cnr_value w = tf_step(j, "transpose", NULL, &from, 1, &l);
    *group = 1;
    if (depthwise) {
        const int64_t shape[] = {d[2] * d[3], 1, d[0], d[1]};
        tf_attrs r = {.n = 0};
        tf_put_ints(&r, "shape", shape, 4);
        w = tf_step(j, "reshape", NULL, &w, 1, &r);
        *group = d[2];
    }
    return w;
}

void tf_op_conv(tf_job *j) {
    const int depthwise = strcmp(j->op, "DepthwiseConv2dNative") == 0;
    int64_t strides[2], dilations[2], pads[4], group = 1, dx[CNR_MAX_RANK], dw[CNR_MAX_RANK];
    const cnr_value w = filter(j, depthwise, &group);
    if (j->entry->failed) return;
    if (!depthwise && tf_in_dims(j, 0, dx) == 4 && tf_in_dims(j, 1, dw) == 4) {
        const int64_t c = tf_is_nchw(j) ? dx[1] : dx[3];
        if (c > 0 && dw[2] > 0 && c % dw[2] == 0) group = c / dw[2]; /* grouped by its shapes */
    }
    window(j, "strides", strides);
    window(j, "dilations", dilations);
    tf_attrs l = {.n = 0};
    tf_put_ints(&l, "strides", strides, 2);
    tf_put_ints(&l, "dilations", dilations, 2);
    tf_put_int(&l, "group", group);
    tf_put_bool(&l, "bias", 0);
    padding(j, &l, pads);
    if (!j->entry->failed)
        tf_give_picture(j, tf_step(j, "conv", j->name, (cnr_value[]){tf_picture(j, 0), w}, 2, &l));
}

void tf_op_pool(tf_job *j) {
    const int max = strcmp(j->op, "MaxPool") == 0;
    int64_t kernel[2], strides[2], pads[4];
    window(j, "ksize", kernel);
    window(j, "strides", strides);
    tf_attrs l = {.n = 0};
    tf_put_ints(&l, "kernel_shape", kernel, 2);
    tf_put_ints(&l, "strides", strides, 2);
    padding(j, &l, pads);
    if (j->entry->failed) return;
    const cnr_value x = tf_picture(j, 0);
    tf_give_picture(j, tf_step(j, max ? "max_pool" : "average_pool", j->name, &x, 1, &l));
}

/* The transposed convolution: sizes, filter H W O I, x. */
void tf_op_conv_input_grad(tf_job *j) {
    int64_t size[4], strides[2], d[CNR_MAX_RANK];
    static const int64_t perm[] = {3, 2, 0, 1};
    if (tf_known_ints(j, 0, size, 4) != 4 || tf_in_dims(j, 1, d) != 4) return;
    tf_attrs t = {.n = 0}, l = {.n = 0};
    tf_put_ints(&t, "perm", perm, 4);
    const cnr_value f = tf_in_plain(j, 1);
    const cnr_value w = tf_step(j, "transpose", NULL, &f, 1, &t);
    window(j, "strides", strides);
    const int at = tf_is_nchw(j) ? 2 : 1;
    const int64_t shape[] = {size[at], size[at + 1]};
    tf_put_ints(&l, "strides", strides, 2);
    tf_put_ints(&l, "output_shape", shape, 2);
    tf_put_bool(&l, "bias", 0);
    if (tf_attr_is(j, "padding", "SAME")) tf_put_enum(&l, "auto_pad", "SAME_UPPER");
    tf_give_picture(
        j, tf_step(j, "conv_transpose", j->name, (cnr_value[]){tf_picture(j, 2), w}, 2, &l));
}

void tf_op_bias_add(tf_job *j) {
    const int32_t rank = tf_in_dims(j, 0, (int64_t[CNR_MAX_RANK]){0});
    int64_t c[CNR_MAX_RANK];
    if (rank != 4 || (tf_is_nchw(j) ? 0 : j->in[0]->turned < 0)) {
        if (rank == 4 && tf_is_nchw(j)) goto channels;
        return tf_give(j, 0,
                       tf_step(j, "add", j->name,
                               (cnr_value[]){tf_in_plain(j, 0), tf_in_plain(j, 1)}, 2, NULL),
                       -1);
    }
channels:
    if (tf_in_dims(j, 1, c) != 1) return tf_problem(j, "its bias is not of rank 1");
    const int64_t axes[] = {1, 2};
    tf_attrs l = {.n = 0};
    tf_put_ints(&l, "axes", axes, 2);
    const cnr_value b = tf_in_plain(j, 1);
    const cnr_value bias = tf_step(j, "unsqueeze", NULL, &b, 1, &l);
    tf_give_picture(j, tf_step(j, "add", j->name, (cnr_value[]){tf_picture(j, 0), bias}, 2, NULL));
}

void tf_op_batch_norm(tf_job *j) {
    if (tf_attr(j, "is_training") && tf_attr_bool(j, "is_training"))
        return tf_problem(j, "is_training is not supported");
    tf_attrs l = {.n = 0};
    tf_put_float(&l, "epsilon", tf_attr_float(j, "epsilon", 1e-4));
    const cnr_value from[] = {tf_picture(j, 0), tf_in_plain(j, 1), tf_in_plain(j, 2),
                              tf_in_plain(j, 3), tf_in_plain(j, 4)};
    tf_give_picture(j, tf_step(j, "batch_normalization", j->name, from, 5, &l));
}
