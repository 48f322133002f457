/* Normalisation, scale and bias, softmax. */
#include "layer.h"

#include <stdio.h>

void caffe_lrn(caffe_job *j) {
    static const Caffe__LRNParameter none = CAFFE__LRNPARAMETER__INIT;
    const Caffe__LRNParameter *p = j->layer->lrn_param ? j->layer->lrn_param : &none;
    const int within = p->norm_region == CAFFE__LRNPARAMETER__NORM_REGION__WITHIN_CHANNEL;
    imp_attrs l = {.n = 0};
    imp_int(&l, "size", p->local_size);
    imp_float(&l, "alpha", (double)p->alpha);
    imp_float(&l, "beta", (double)p->beta);
    imp_float(&l, "bias", within ? 1.0 : (double)p->k);
    caffe_give(j, 0, caffe_node(j, within ? "lrn_within" : "lrn", "", j->in, 1, &l));
}

void caffe_batch_norm(caffe_job *j) {
    const int64_t c = caffe_channels(j);
    if (j->failed) return;
    const double eps = j->layer->batch_norm_param ? (double)j->layer->batch_norm_param->eps : 1e-5;
    double factor = 1;
    if (j->n_blobs > 2 && caffe_blob_count(j->blobs[2]) == 1) {
        const float f = caffe_blob_at(j->blobs[2], 0);
        factor = f == 0 ? 0 : 1.0 / (double)f;
    }
    float *ones = (float *)imp_host->alloc((size_t)c * sizeof(float) * 2);
    if (!ones) {
        j->net->b.status = CNR_E_MEMORY;
        return;
    }
    for (int64_t i = 0; i < c; i++) ones[i] = 1, ones[c + i] = 0;
    const cnr_value from[] = {j->in[0], imp_weight(&j->net->b, j->name, ".scale", ones, &c, 1),
                              imp_weight(&j->net->b, j->name, ".shift", ones + c, &c, 1),
                              caffe_blob(j, 0, ".mean", &c, 1, factor),
                              caffe_blob(j, 1, ".var", &c, 1, factor)};
    imp_host->free(ones);
    if (j->failed) return;
    imp_attrs l = {.n = 0};
    imp_float(&l, "epsilon", eps);
    caffe_give(j, 0, caffe_node(j, "batch_normalization", "", from, 5, &l));
}

/* Adds blob `index` as a weight, reshaped to broadcast against input 0 from `axis` on; -1: the job
 * failed. */
static cnr_value broadcast_blob(caffe_job *j, size_t index, const char *suffix, int64_t axis) {
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    int64_t own[CNR_MAX_RANK], dim[CNR_MAX_RANK];
    int32_t rank = 0;
    if (!x || x->rank < 1 || axis < 0 || axis >= x->rank)
        return caffe_problem(j, "axis is out of range"), -1;
    const int32_t covered = x->rank - (int32_t)axis;
    if (index < j->n_blobs) {
        rank = caffe_blob_dims(j->blobs[index], own);
        if (rank < 0) return caffe_problem(j, "a blob's shape does not fit its data"), -1;
        while (rank > 1 && own[0] == 1 && !j->blobs[index]->shape) /* legacy blobs are 1 1 1 C */
            memmove(own, own + 1, (size_t)--rank * sizeof own[0]);
    } else {
        own[rank++] = x->dim[axis];
    }
    if (rank > covered) return caffe_problem(j, "its blob has more axes than its input"), -1;
    for (int32_t i = 0; i < covered; i++) dim[i] = i < rank ? own[i] : 1;
    return caffe_blob(j, index, suffix, dim, covered, 1);
}

void caffe_scale(caffe_job *j) {
    const int bias_only = strcmp(j->layer->type, "Bias") == 0;
    const Caffe__ScaleParameter *p = j->layer->scale_param;
    const int64_t axis =
        caffe_axis(j, bias_only ? (j->layer->bias_param ? j->layer->bias_param->axis : 1)
                      : p       ? p->axis
                                : 1);
    const int with_bias = !bias_only && p && p->bias_term;
    cnr_value y = j->in[0];
    if (j->n_in > 1) { /* the factor is a bottom: it covers axes from `axis` on */
        const cnr_tensor *x = caffe_type(j, y), *f = caffe_type(j, j->in[1]);
        if (!x || !f) {
            j->failed = 1;
            return;
        }
        int64_t axes[CNR_MAX_RANK];
        int64_t n = 0;
        for (int64_t i = axis + f->rank; i < x->rank; i++) axes[n] = f->rank + n, n++;
        imp_attrs l = {.n = 0};
        imp_ints(&l, "axes", axes, n);
        cnr_value factor = j->in[1];
        if (n) factor = caffe_node(j, "unsqueeze", ".factor", &factor, 1, &l);
        y = caffe_node(j, bias_only ? "add" : "mul", with_bias ? ".scaled" : "",
                       (cnr_value[]){y, factor}, 2, NULL);
        if (with_bias) {
            const cnr_value shift = broadcast_blob(j, 0, ".bias", axis);
            y = caffe_node(j, "add", "", (cnr_value[]){y, shift}, 2, NULL);
        }
        return caffe_give(j, 0, y);
    }
    if (bias_only) {
        const cnr_value shift = broadcast_blob(j, 0, ".bias", axis);
        if (j->failed) return;
        return caffe_give(j, 0, caffe_node(j, "add", "", (cnr_value[]){y, shift}, 2, NULL));
    }
    if (axis == 1) { /* per channel, so it can be folded into a convolution */
        const int64_t c = caffe_channels(j);
        if (j->failed) return;
        const cnr_value factor = caffe_blob(j, 0, ".scale", &c, 1, 1);
        const cnr_value shift = with_bias ? caffe_blob(j, 1, ".bias", &c, 1, 1) : -1;
        if (j->failed) return;
        imp_attrs l = {.n = 0};
        if (!with_bias) imp_bool(&l, "bias", 0);
        return caffe_give(j, 0,
                          caffe_node(j, "scale_bias", "", (cnr_value[]){y, factor, shift}, 3, &l));
    }
    const cnr_value factor = broadcast_blob(j, 0, ".scale", axis);
    if (j->failed) return;
    y = caffe_node(j, "mul", with_bias ? ".scaled" : "", (cnr_value[]){y, factor}, 2, NULL);
    if (with_bias) {
        const cnr_value shift = broadcast_blob(j, 1, ".bias", axis);
        if (j->failed) return;
        y = caffe_node(j, "add", "", (cnr_value[]){y, shift}, 2, NULL);
    }
    caffe_give(j, 0, y);
}

void caffe_mvn(caffe_job *j) {
    const Caffe__MVNParameter *p = j->layer->mvn_param;
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    int64_t axes[CNR_MAX_RANK], n = 0;
    if (!x) {
        j->failed = 1;
        return;
    }
    for (int32_t i = p && p->across_channels ? 1 : 2; i < x->rank; i++) axes[n++] = i;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", axes, n);
    if (p && !p->normalize_variance) { /* subtracts the mean only */
        imp_bool(&l, "keepdims", 1);
        const cnr_value mean = caffe_node(j, "reduce_mean", ".mean", j->in, 1, &l);
        return caffe_give(j, 0, caffe_node(j, "sub", "", (cnr_value[]){j->in[0], mean}, 2, NULL));
    }
    imp_float(&l, "epsilon", p ? (double)p->eps : 1e-9);
    caffe_give(j, 0, caffe_node(j, "mean_variance_normalization", "", j->in, 1, &l));
}

void caffe_normalize(caffe_job *j) {
    const Caffe__NormalizeParameter *p = j->layer->norm_param;
    const int64_t c = caffe_channels(j);
    if (j->failed) return;
    /* x / sqrt(sum of squares + eps), times one factor, or one for each channel */
    int64_t axes[CNR_MAX_RANK], n = 0;
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    for (int32_t i = 1; i < x->rank; i++)
        if (i == 1 || !p || p->across_spatial) axes[n++] = i;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", axes, n);
    imp_bool(&l, "keepdims", 1);
    cnr_value norm = caffe_node(j, "reduce_sum_square", ".squares", j->in, 1, &l);
    norm = caffe_affine(j, norm, 1, p ? (double)p->eps : 1e-10);
    norm = caffe_node(j, "sqrt", ".norm", &norm, 1, NULL);
    const cnr_value y = caffe_node(j, "div", ".unit", (cnr_value[]){j->in[0], norm}, 2, NULL);
    const int64_t one = 1, per_channel[] = {c, 1, 1};
    const cnr_value factor = p && !p->channel_shared ? caffe_blob(j, 0, ".scale", per_channel, 3, 1)
                                                     : caffe_blob(j, 0, ".scale", &one, 1, 1);
    if (j->failed) return;
    caffe_give(j, 0, caffe_node(j, "mul", "", (cnr_value[]){y, factor}, 2, NULL));
}

void caffe_softmax(caffe_job *j) {
    imp_attrs l = {.n = 0};
    imp_int(&l, "axis", j->layer->softmax_param ? j->layer->softmax_param->axis : 1);
    caffe_give(j, 0, caffe_node(j, "softmax", "", j->in, 1, &l));
}
