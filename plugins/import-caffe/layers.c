/* One function a kind of Caffe layer: its parameters into operators of ours. */
#include "caffe.h"

#include <stdio.h>

enum { MAX_ATTRS = 16, MAX_NAMES = 256 };

/* The layer being converted. */
typedef struct job {
    caffe_net *net;
    const Caffe__LayerParameter *layer;
    const char *name;
    Caffe__BlobProto **blobs;
    size_t n_blobs;
    cnr_value in[MAX_NAMES];
    int32_t n_in, n_made; /* helper values made so far, for their names */
    int32_t failed;
} job;

/* ---- attributes ---- */

typedef struct list {
    cnr_attr at[MAX_ATTRS];
    const cnr_attr *ptr[MAX_ATTRS];
    int32_t n;
} list;

static cnr_attr *add(list *l, const char *name, int32_t type) {
    cnr_attr *a = &l->at[l->n];
    memset(a, 0, sizeof *a);
    a->name = name;
    a->type = type;
    l->ptr[l->n++] = a;
    return a;
}
static void put_int(list *l, const char *name, int64_t value) {
    add(l, name, CNR_ATTR_INT)->i = value;
}
static void put_bool(list *l, const char *name, int value) {
    add(l, name, CNR_ATTR_BOOL)->i = value != 0;
}
static void put_float(list *l, const char *name, double value) {
    add(l, name, CNR_ATTR_FLOAT)->f = value;
}
static void put_enum(list *l, const char *name, const char *value) {
    add(l, name, CNR_ATTR_ENUM)->s = value;
}
static void put_ints(list *l, const char *name, const int64_t *values, int64_t n) {
    cnr_attr *a = add(l, name, CNR_ATTR_INTS);
    a->ints = values;
    a->n = n;
}
static void put_floats(list *l, const char *name, const double *values, int64_t n) {
    cnr_attr *a = add(l, name, CNR_ATTR_FLOATS);
    a->floats = values;
    a->n = n;
}

/* ---- nodes and constants ---- */

static void problem(job *j, const char *text) {
    caffe_host->graph_problem(j->net->graph, j->net->path, "layer %s (%s): %s", j->name,
                              j->layer->type, text);
    j->failed = 1;
}

static cnr_value node(job *j, const char *op, const char *suffix, const cnr_value *in, int32_t n_in,
                      const list *attrs) {
    char name[512];
    cnr_value out = -1;
    snprintf(name, sizeof name, "%s%s", j->name, suffix);
    caffe_host->graph_node(j->net->graph, op, name, j->net->path, in, n_in,
                           attrs ? attrs->ptr : NULL, attrs ? attrs->n : 0, &out, 1);
    return out;
}

/* A constant of ours: f32 with `rank` dims, n values. */
static cnr_value constant(job *j, const char *suffix, const float *values, const int64_t *dim,
                          int32_t rank) {
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = rank, .flags = CNR_TENSOR_CONST};
    char name[512];
    for (int32_t i = 0; i < rank; i++) t.dim[i] = dim[i];
    t.data = (void *)values;
    t.bytes = cnr_dense_bytes(&t);
    snprintf(name, sizeof name, "%s.%s", j->name, suffix);
    return caffe_host->graph_constant(j->net->graph, name, &t);
}

static cnr_value scalar(job *j, double value) {
    char suffix[24];
    const float f = (float)value;
    snprintf(suffix, sizeof suffix, "value%d", (int)++j->n_made);
    return constant(j, suffix, &f, NULL, 0);
}

/* Blob `index` as a constant of the dims given; its own count must agree. rank < 0: its own dims.
 * A missing one is a weight yet to be filled, so that a prototxt alone can be shown. */
static cnr_value blob(job *j, size_t index, const char *suffix, const int64_t *dim, int32_t rank,
                      double factor) {
    int64_t own[CNR_MAX_RANK], n = 1;
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32};
    char name[512];
    snprintf(name, sizeof name, "%s.%s", j->name, suffix);
    for (int32_t i = 0; i < rank; i++) t.dim[i] = dim[i];
    t.rank = rank;
    if (index >= j->n_blobs) {
        if (rank < 0) return problem(j, "its weights are missing"), -1;
        if (j->net->weights) return problem(j, "its weights are not in the caffemodel"), -1;
        return caffe_host->graph_constant(j->net->graph, name, &t);
    }
    const Caffe__BlobProto *b = j->blobs[index];
    const int32_t own_rank = caffe_blob_dims(b, own);
    if (own_rank < 0) return problem(j, "a blob's shape does not fit its data"), -1;
    if (rank < 0) {
        t.rank = own_rank;
        memcpy(t.dim, own, sizeof own);
    }
    for (int32_t i = 0; i < t.rank; i++)
        if (t.dim[i] < 0 || (t.dim[i] && n > INT64_MAX / t.dim[i]) || (n *= t.dim[i]) < 0)
            return problem(j, "its weights are too large"), -1;
    if (n != caffe_blob_count(b)) {
        char text[128];
        snprintf(text, sizeof text, "blob %d holds %lld values, %lld are wanted", (int)index,
                 (long long)caffe_blob_count(b), (long long)n);
        return problem(j, text), -1;
    }
    float *values = (float *)caffe_host->alloc((size_t)n * sizeof(float) + 1);
    if (!values) {
        j->net->status = CNR_E_MEMORY;
        return -1;
    }
    for (int64_t i = 0; i < n; i++) values[i] = (float)((double)caffe_blob_at(b, i) * factor);
    t.data = values;
    t.bytes = (uint64_t)n * sizeof(float);
    t.flags = CNR_TENSOR_CONST;
    const cnr_value v = caffe_host->graph_constant(j->net->graph, name, &t);
    caffe_host->free(values);
    return v;
}

static const cnr_tensor *type_of(job *j, cnr_value v) {
    return v < 0 ? NULL : caffe_host->graph_type(j->net->graph, v);
}

/* Channels of input 0 (axis 1), or 0 with a problem. */
static int64_t channels_of(job *j) {
    const cnr_tensor *x = type_of(j, j->in[0]);
    if (x && x->rank >= 2 && x->dim[1] > 0) return x->dim[1];
    if (j->in[0] >= 0 && x && x->dtype) problem(j, "the channels of its input are not known");
    j->failed = 1;
    return 0;
}

static void give(job *j, size_t top, cnr_value v) {
    if (top < j->layer->n_top) caffe_bind(j->net, j->layer->top[top], v);
}

static int64_t axis_of(job *j, int64_t axis) {
    const cnr_tensor *x = type_of(j, j->in[0]);
    return axis < 0 && x ? axis + x->rank : axis;
}

/* y = x * factor + shift, leaving out what does nothing */
static cnr_value affine(job *j, cnr_value x, double factor, double shift) {
    if (factor != 1) x = node(j, "mul", ".scaled", (cnr_value[]){x, scalar(j, factor)}, 2, NULL);
    if (shift != 0) x = node(j, "add", ".shifted", (cnr_value[]){x, scalar(j, shift)}, 2, NULL);
    return x;
}

/* ---- convolution, dense, pooling ---- */

/* A field that is repeated (one for all or one an axis) or given as _h and _w. */
static void spatial(const uint32_t *values, size_t n, int has_h, uint32_t h, int has_w, uint32_t w,
                    int64_t fallback, int32_t rank, int64_t *out) {
    for (int32_t i = 0; i < rank; i++)
        out[i] = n == 0 ? fallback : values[(size_t)i < n ? (size_t)i : n - 1];
    if (rank == 2 && has_h) out[0] = h;
    if (rank == 2 && has_w) out[1] = w;
}

static void convolution(job *j) {
    static const Caffe__ConvolutionParameter none = CAFFE__CONVOLUTION_PARAMETER__INIT;
    const Caffe__ConvolutionParameter *p =
        j->layer->convolution_param ? j->layer->convolution_param : &none;
    const int turned = strcmp(j->layer->type, "Deconvolution") == 0;
    const int64_t channels = channels_of(j), out = p->num_output;
    const cnr_tensor *x = type_of(j, j->in[0]);
    int64_t kernel[3], stride[3], dilation[3], pad[6];
    if (j->failed) return;
    const int32_t rank = x->rank - 2;
    int64_t group = p->group;
    if (strstr(j->layer->type, "epthwise") && !p->has_group) group = channels;
    if (p->axis != 1 || rank < 1 || rank > 3) return problem(j, "axis 1 of N C spatial is wanted");
    if (out < 1 || group < 1 || channels % group || out % group)
        return problem(j, "num_output and group do not fit the input's channels");
    spatial(p->kernel_size, p->n_kernel_size, p->has_kernel_h, p->kernel_h, p->has_kernel_w,
            p->kernel_w, 0, rank, kernel);
    spatial(p->stride, p->n_stride, p->has_stride_h, p->stride_h, p->has_stride_w, p->stride_w, 1,
            rank, stride);
    spatial(p->dilation, p->n_dilation, 0, 0, 0, 0, 1, rank, dilation);
    spatial(p->pad, p->n_pad, p->has_pad_h, p->pad_h, p->has_pad_w, p->pad_w, 0, rank, pad);
    memcpy(pad + rank, pad, (size_t)rank * sizeof pad[0]);
    int64_t dim[5] = {turned ? channels : out, (turned ? out : channels) / group};
    for (int32_t i = 0; i < rank; i++) {
        if (kernel[i] < 1) return problem(j, "kernel_size is missing");
        dim[2 + i] = kernel[i];
    }
    const cnr_value from[] = {j->in[0], blob(j, 0, "weight", dim, rank + 2, 1),
                              p->bias_term ? blob(j, 1, "bias", &out, 1, 1) : -1};
    if (j->failed) return;
    list l = {.n = 0};
    put_ints(&l, "kernel_shape", kernel, rank);
    put_ints(&l, "strides", stride, rank);
    put_ints(&l, "dilations", dilation, rank);
    put_ints(&l, "pads", pad, 2 * rank);
    put_int(&l, "group", group);
    if (!p->bias_term) put_bool(&l, "bias", 0);
    give(j, 0, node(j, turned ? "conv_transpose" : "conv", "", from, 3, &l));
}

static void inner_product(job *j) {
    const Caffe__InnerProductParameter *p = j->layer->inner_product_param;
    const cnr_tensor *x = type_of(j, j->in[0]);
    if (!p || p->num_output < 1) return problem(j, "num_output is missing");
    if (!x || x->rank < 1) {
        j->failed = 1;
        return;
    }
    const int64_t out = p->num_output, axis = axis_of(j, p->axis);
    int64_t k = 1;
    for (int32_t i = (int32_t)axis; i >= 0 && i < x->rank; i++) k = x->dim[i] < 0 ? -1 : k * x->dim[i];
    if (k < 0 && j->n_blobs) k = caffe_blob_count(j->blobs[0]) / out;
    if (k < 1) return problem(j, "the size of its input is not known");
    const int64_t plain[] = {out, k}, turned[] = {k, out};
    cnr_value weight = blob(j, 0, p->transpose ? "weight_t" : "weight",
                            p->transpose ? turned : plain, 2, 1);
    const cnr_value bias = p->bias_term ? blob(j, 1, "bias", &out, 1, 1) : -1;
    const int64_t swap[] = {1, 0};
    list perm = {.n = 0};
    put_ints(&perm, "perm", swap, 2);
    if (j->failed) return;
    if (axis == 1) {
        if (p->transpose) weight = node(j, "transpose", ".weight", &weight, 1, &perm);
        list l = {.n = 0};
        if (!p->bias_term) put_bool(&l, "bias", 0);
        give(j, 0, node(j, "dense", "", (cnr_value[]){j->in[0], weight, bias}, 3, &l));
    } else if (axis == x->rank - 1) {
        if (!p->transpose) weight = node(j, "transpose", ".weight", &weight, 1, &perm);
        cnr_value y = node(j, "matmul", bias < 0 ? "" : ".product",
                           (cnr_value[]){j->in[0], weight}, 2, NULL);
        if (bias >= 0) y = node(j, "add", "", (cnr_value[]){y, bias}, 2, NULL);
        give(j, 0, y);
    } else {
        problem(j, "axis must be 1 or the last");
    }
}

static void pooling(job *j) {
    static const Caffe__PoolingParameter none = CAFFE__POOLING_PARAMETER__INIT;
    const Caffe__PoolingParameter *p = j->layer->pooling_param ? j->layer->pooling_param : &none;
    const int max = p->pool == CAFFE__POOLING_PARAMETER__POOL_METHOD__MAX;
    if (p->pool == CAFFE__POOLING_PARAMETER__POOL_METHOD__STOCHASTIC)
        return problem(j, "stochastic pooling is for training only");
    if (j->layer->n_top > 1) return problem(j, "the mask output of pooling is not supported");
    if (p->global_pooling)
        return give(j, 0, node(j, max ? "global_max_pool" : "global_average_pool", "", j->in, 1, NULL));
    int64_t kernel[2], stride[2], pad[4];
    spatial(&p->kernel_size, p->has_kernel_size, p->has_kernel_h, p->kernel_h, p->has_kernel_w,
            p->kernel_w, 0, 2, kernel);
    spatial(&p->stride, p->has_stride, p->has_stride_h, p->stride_h, p->has_stride_w, p->stride_w, 1,
            2, stride);
    spatial(&p->pad, p->has_pad, p->has_pad_h, p->pad_h, p->has_pad_w, p->pad_w, 0, 2, pad);
    pad[2] = pad[0], pad[3] = pad[1];
    if (kernel[0] < 1 || kernel[1] < 1) return problem(j, "kernel_size is missing");
    list l = {.n = 0};
    put_ints(&l, "kernel_shape", kernel, 2);
    put_ints(&l, "strides", stride, 2);
    put_ints(&l, "pads", pad, 4);
    put_bool(&l, "ceil_mode",
             p->round_mode == CAFFE__POOLING_PARAMETER__ROUND_MODE__CEIL && p->ceil_mode);
    if (!max) put_bool(&l, "count_include_pad", 1); /* clipped where the padding ends, as Caffe does */
    give(j, 0, node(j, max ? "max_pool" : "average_pool", "", j->in, 1, &l));
}

/* ---- normalisation ---- */

static void lrn(job *j) {
    static const Caffe__LRNParameter none = CAFFE__LRNPARAMETER__INIT;
    const Caffe__LRNParameter *p = j->layer->lrn_param ? j->layer->lrn_param : &none;
    const int within = p->norm_region == CAFFE__LRNPARAMETER__NORM_REGION__WITHIN_CHANNEL;
    list l = {.n = 0};
    put_int(&l, "size", p->local_size);
    put_float(&l, "alpha", (double)p->alpha);
    put_float(&l, "beta", (double)p->beta);
    put_float(&l, "bias", within ? 1.0 : (double)p->k);
    give(j, 0, node(j, within ? "lrn_within" : "lrn", "", j->in, 1, &l));
}

static void batch_norm(job *j) {
    const int64_t c = channels_of(j);
    if (j->failed) return;
    const double eps = j->layer->batch_norm_param ? (double)j->layer->batch_norm_param->eps : 1e-5;
    double factor = 1;
    if (j->n_blobs > 2 && caffe_blob_count(j->blobs[2]) > 0) {
        const float f = caffe_blob_at(j->blobs[2], 0);
        factor = f == 0 ? 0 : 1.0 / (double)f;
    }
    float *ones = (float *)caffe_host->alloc((size_t)c * sizeof(float) * 2);
    if (!ones) {
        j->net->status = CNR_E_MEMORY;
        return;
    }
    for (int64_t i = 0; i < c; i++) ones[i] = 1, ones[c + i] = 0;
    const cnr_value from[] = {j->in[0], constant(j, "scale", ones, &c, 1),
                              constant(j, "shift", ones + c, &c, 1),
                              blob(j, 0, "mean", &c, 1, factor), blob(j, 1, "var", &c, 1, factor)};
    caffe_host->free(ones);
    if (j->failed) return;
    list l = {.n = 0};
    put_float(&l, "epsilon", eps);
    give(j, 0, node(j, "batch_normalization", "", from, 5, &l));
}

/* A blob shaped so that it broadcasts against input 0 from `axis` on. */
static cnr_value broadcast_blob(job *j, size_t index, const char *suffix, int64_t axis) {
    const cnr_tensor *x = type_of(j, j->in[0]);
    int64_t own[CNR_MAX_RANK], dim[CNR_MAX_RANK];
    int32_t rank = 0;
    if (!x || x->rank < 1 || axis < 0 || axis >= x->rank) return problem(j, "axis is out of range"), -1;
    const int32_t covered = x->rank - (int32_t)axis;
    if (index < j->n_blobs) {
        rank = caffe_blob_dims(j->blobs[index], own);
        if (rank < 0) return problem(j, "a blob's shape does not fit its data"), -1;
        while (rank > 1 && own[0] == 1 && !j->blobs[index]->shape) /* legacy 1 1 1 C */
            memmove(own, own + 1, (size_t)--rank * sizeof own[0]);
    } else {
        own[rank++] = x->dim[axis];
    }
    if (rank > covered) return problem(j, "its blob has more axes than its input"), -1;
    for (int32_t i = 0; i < covered; i++) dim[i] = i < rank ? own[i] : 1;
    return blob(j, index, suffix, dim, covered, 1);
}

static void scale(job *j) {
    const int bias_only = strcmp(j->layer->type, "Bias") == 0;
    const Caffe__ScaleParameter *p = j->layer->scale_param;
    const int64_t axis = axis_of(
        j, bias_only ? (j->layer->bias_param ? j->layer->bias_param->axis : 1) : p ? p->axis : 1);
    const int with_bias = !bias_only && p && p->bias_term;
    cnr_value y = j->in[0];
    if (j->n_in > 1) { /* the factor is computed: it covers axes from `axis` on */
        const cnr_tensor *x = type_of(j, y), *f = type_of(j, j->in[1]);
        if (!x || !f) {
            j->failed = 1;
            return;
        }
        int64_t axes[CNR_MAX_RANK];
        int64_t n = 0;
        for (int64_t i = axis + f->rank; i < x->rank; i++) axes[n] = f->rank + n, n++;
        list l = {.n = 0};
        put_ints(&l, "axes", axes, n);
        cnr_value factor = j->in[1];
        if (n) factor = node(j, "unsqueeze", ".factor", &factor, 1, &l);
        y = node(j, bias_only ? "add" : "mul", with_bias ? ".scaled" : "",
                 (cnr_value[]){y, factor}, 2, NULL);
        if (with_bias) {
            const cnr_value shift = broadcast_blob(j, 0, "bias", axis);
            y = node(j, "add", "", (cnr_value[]){y, shift}, 2, NULL);
        }
        return give(j, 0, y);
    }
    if (bias_only) {
        const cnr_value shift = broadcast_blob(j, 0, "bias", axis);
        if (j->failed) return;
        return give(j, 0, node(j, "add", "", (cnr_value[]){y, shift}, 2, NULL));
    }
    if (axis == 1) { /* the usual: per channel, which folds into a convolution */
        const int64_t c = channels_of(j);
        if (j->failed) return;
        const cnr_value factor = blob(j, 0, "scale", &c, 1, 1);
        const cnr_value shift = with_bias ? blob(j, 1, "bias", &c, 1, 1) : -1;
        if (j->failed) return;
        list l = {.n = 0};
        if (!with_bias) put_bool(&l, "bias", 0);
        return give(j, 0, node(j, "scale_bias", "", (cnr_value[]){y, factor, shift}, 3, &l));
    }
    const cnr_value factor = broadcast_blob(j, 0, "scale", axis);
    if (j->failed) return;
    y = node(j, "mul", with_bias ? ".scaled" : "", (cnr_value[]){y, factor}, 2, NULL);
    if (with_bias) {
        const cnr_value shift = broadcast_blob(j, 1, "bias", axis);
        if (j->failed) return;
        y = node(j, "add", "", (cnr_value[]){y, shift}, 2, NULL);
    }
    give(j, 0, y);
}

static void mvn(job *j) {
    const Caffe__MVNParameter *p = j->layer->mvn_param;
    const cnr_tensor *x = type_of(j, j->in[0]);
    int64_t axes[CNR_MAX_RANK], n = 0;
    if (!x) {
        j->failed = 1;
        return;
    }
    for (int32_t i = p && p->across_channels ? 1 : 2; i < x->rank; i++) axes[n++] = i;
    list l = {.n = 0};
    put_ints(&l, "axes", axes, n);
    if (p && !p->normalize_variance) { /* only the mean goes */
        put_bool(&l, "keepdims", 1);
        const cnr_value mean = node(j, "reduce_mean", ".mean", j->in, 1, &l);
        return give(j, 0, node(j, "sub", "", (cnr_value[]){j->in[0], mean}, 2, NULL));
    }
    put_float(&l, "epsilon", p ? (double)p->eps : 1e-9);
    give(j, 0, node(j, "mean_variance_normalization", "", j->in, 1, &l));
}

static void normalize(job *j) {
    const Caffe__NormalizeParameter *p = j->layer->norm_param;
    const int64_t c = channels_of(j);
    if (j->failed) return;
    /* x / sqrt(sum of squares + eps), then a factor for all or one a channel */
    int64_t axes[CNR_MAX_RANK], n = 0;
    const cnr_tensor *x = type_of(j, j->in[0]);
    for (int32_t i = 1; i < x->rank; i++)
        if (i == 1 || !p || p->across_spatial) axes[n++] = i;
    list l = {.n = 0};
    put_ints(&l, "axes", axes, n);
    put_bool(&l, "keepdims", 1);
    cnr_value norm = node(j, "reduce_sum_square", ".squares", j->in, 1, &l);
    norm = affine(j, norm, 1, p ? (double)p->eps : 1e-10);
    norm = node(j, "sqrt", ".norm", &norm, 1, NULL);
    const cnr_value y = node(j, "div", ".unit", (cnr_value[]){j->in[0], norm}, 2, NULL);
    const int64_t one = 1, per_channel[] = {c, 1, 1};
    const cnr_value factor = p && !p->channel_shared ? blob(j, 0, "scale", per_channel, 3, 1)
                                                     : blob(j, 0, "scale", &one, 1, 1);
    if (j->failed) return;
    give(j, 0, node(j, "mul", "", (cnr_value[]){y, factor}, 2, NULL));
}

static void softmax(job *j) {
    list l = {.n = 0};
    put_int(&l, "axis", j->layer->softmax_param ? j->layer->softmax_param->axis : 1);
    give(j, 0, node(j, "softmax", "", j->in, 1, &l));
}

/* ---- element-wise ---- */

static void relu(job *j) {
    const double slope =
        j->layer->relu_param ? (double)j->layer->relu_param->negative_slope : 0;
    list l = {.n = 0};
    if (slope != 0) put_float(&l, "alpha", slope);
    give(j, 0, node(j, slope != 0 ? "leaky_relu" : "relu", "", j->in, 1, &l));
}

static void relu6(job *j) {
    list l = {.n = 0};
    put_float(&l, "min", 0);
    put_float(&l, "max", 6);
    give(j, 0, node(j, "clip", "", j->in, 1, &l));
}

static void prelu(job *j) {
    const int shared = j->layer->prelu_param && j->layer->prelu_param->channel_shared;
    const cnr_tensor *x = type_of(j, j->in[0]);
    const int64_t c = channels_of(j);
    if (j->failed) return;
    int64_t dim[CNR_MAX_RANK] = {shared ? 1 : c, 1, 1, 1, 1, 1, 1};
    const cnr_value slope = blob(j, 0, "slope", dim, shared ? 1 : x->rank - 1, 1);
    if (j->failed) return;
    give(j, 0, node(j, "prelu", "", (cnr_value[]){j->in[0], slope}, 2, NULL));
}

static void elu(job *j) {
    list l = {.n = 0};
    put_float(&l, "alpha", j->layer->elu_param ? (double)j->layer->elu_param->alpha : 1.0);
    give(j, 0, node(j, "elu", "", j->in, 1, &l));
}

static void simple(job *j) {
    static const char *const pairs[][2] = {
        {"Sigmoid", "sigmoid"}, {"TanH", "tanh"}, {"AbsVal", "abs"}, {"BNLL", "softplus"},
        {"Swish", "swish"}, {"Mish", "mish"}, {"HSwish", "hard_swish"}, {"GELU", "gelu"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (strcmp(j->layer->type, pairs[i][0]) == 0)
            return give(j, 0, node(j, pairs[i][1], "", j->in, 1, NULL));
}

static void power(job *j) {
    const Caffe__PowerParameter *p = j->layer->power_param;
    cnr_value y = affine(j, j->in[0], p ? (double)p->scale : 1, p ? (double)p->shift : 0);
    if (p && p->power != 1)
        y = node(j, "pow", "", (cnr_value[]){y, scalar(j, (double)p->power)}, 2, NULL);
    give(j, 0, y);
}

static void exponential(job *j) { /* base ^ (shift + scale * x), and log's counterpart */
    const Caffe__ExpParameter *e = j->layer->exp_param;
    const Caffe__LogParameter *g = j->layer->log_param;
    if (strcmp(j->layer->type, "Exp") == 0) {
        cnr_value y = affine(j, j->in[0], e ? (double)e->scale : 1, e ? (double)e->shift : 0);
        if (e && e->base_ > 0)
            y = node(j, "pow", "", (cnr_value[]){scalar(j, (double)e->base_), y}, 2, NULL);
        else y = node(j, "exp", "", &y, 1, NULL);
        return give(j, 0, y);
    }
    cnr_value y = affine(j, j->in[0], g ? (double)g->scale : 1, g ? (double)g->shift : 0);
    y = node(j, "log", g && g->base_ > 0 ? ".natural" : "", &y, 1, NULL);
    if (g && g->base_ > 0) {
        const cnr_value base = scalar(j, (double)g->base_);
        const cnr_value unit = node(j, "log", ".base", &base, 1, NULL);
        y = node(j, "div", "", (cnr_value[]){y, unit}, 2, NULL);
    }
    give(j, 0, y);
}

static void eltwise(job *j) {
    const Caffe__EltwiseParameter *p = j->layer->eltwise_param;
    const int kind = p ? (int)p->operation : CAFFE__ELTWISE_PARAMETER__ELTWISE_OP__SUM;
    const char *op = kind == CAFFE__ELTWISE_PARAMETER__ELTWISE_OP__PROD  ? "mul"
                     : kind == CAFFE__ELTWISE_PARAMETER__ELTWISE_OP__MAX ? "max"
                                                                         : "add";
    const int weighted = p && p->n_coeff > 0 && *op == 'a';
    if (weighted && (int32_t)p->n_coeff != j->n_in) return problem(j, "one coeff a bottom is wanted");
    cnr_value y = weighted ? affine(j, j->in[0], (double)p->coeff[0], 0) : j->in[0];
    for (int32_t i = 1; i < j->n_in; i++) {
        char suffix[24] = "";
        if (i + 1 < j->n_in) snprintf(suffix, sizeof suffix, ".part%d", (int)i);
        cnr_value x = j->in[i];
        if (weighted && p->coeff[i] == -1) {
            y = node(j, "sub", suffix, (cnr_value[]){y, x}, 2, NULL);
            continue;
        }
        if (weighted && p->coeff[i] != 1) {
            char factor[32];
            snprintf(factor, sizeof factor, ".weighted%d", (int)i);
            x = node(j, "mul", factor, (cnr_value[]){x, scalar(j, (double)p->coeff[i])}, 2, NULL);
        }
        y = node(j, op, suffix, (cnr_value[]){y, x}, 2, NULL);
    }
    give(j, 0, y);
}

static void axpy(job *j) { /* a * x + y, a one value a channel */
    if (j->n_in != 3) return problem(j, "three bottoms are wanted");
    const cnr_tensor *a = type_of(j, j->in[0]), *x = type_of(j, j->in[1]);
    cnr_value factor = j->in[0];
    if (a && x && a->rank < x->rank) {
        int64_t axes[CNR_MAX_RANK], n = 0;
        for (int32_t i = a->rank; i < x->rank; i++) axes[n++] = i;
        list l = {.n = 0};
        put_ints(&l, "axes", axes, n);
        factor = node(j, "unsqueeze", ".factor", &factor, 1, &l);
    }
    const cnr_value product = node(j, "mul", ".product", (cnr_value[]){j->in[1], factor}, 2, NULL);
    give(j, 0, node(j, "add", "", (cnr_value[]){product, j->in[2]}, 2, NULL));
}

static void threshold(job *j) {
    const double t = j->layer->threshold_param ? (double)j->layer->threshold_param->threshold : 0;
    const cnr_value over =
        node(j, "greater", ".over", (cnr_value[]){j->in[0], scalar(j, t)}, 2, NULL);
    list l = {.n = 0};
    add(&l, "to", CNR_ATTR_DTYPE)->i = CNR_f32;
    give(j, 0, node(j, "cast", "", &over, 1, &l));
}

/* ---- movement ---- */

static void concat(job *j) {
    const Caffe__ConcatParameter *p = j->layer->concat_param;
    list l = {.n = 0};
    put_int(&l, "axis", p ? (p->has_concat_dim ? (int64_t)p->concat_dim : p->axis) : 1);
    give(j, 0, node(j, "concat", "", j->in, j->n_in, &l));
}

static void slice(job *j) {
    const Caffe__SliceParameter *p = j->layer->slice_param;
    const int64_t axis = axis_of(j, p ? (p->has_slice_dim ? (int64_t)p->slice_dim : p->axis) : 1);
    const cnr_tensor *x = type_of(j, j->in[0]);
    const size_t n = j->layer->n_top;
    int64_t sizes[MAX_NAMES], begin = 0;
    cnr_value out[MAX_NAMES];
    if (!x || axis < 0 || axis >= x->rank || x->dim[axis] < 1 || n > MAX_NAMES || n < 1)
        return problem(j, "axis is out of range or its size not known");
    if (p && p->n_slice_point && p->n_slice_point != n - 1)
        return problem(j, "one slice_point less than tops is wanted");
    for (size_t i = 0; i < n; i++) {
        int64_t end = x->dim[axis];
        if (i + 1 < n) end = p && p->n_slice_point ? (int64_t)p->slice_point[i]
                                                   : x->dim[axis] / (int64_t)n * (int64_t)(i + 1);
        if (end <= begin || end > x->dim[axis]) return problem(j, "slice_point must rise");
        sizes[i] = end - begin;
        begin = end;
    }
    list l = {.n = 0};
    put_int(&l, "axis", axis);
    put_ints(&l, "split", sizes, (int64_t)n);
    for (size_t i = 0; i < n; i++) out[i] = -1;
    caffe_host->graph_node(j->net->graph, "split", j->name, j->net->path, j->in, 1, l.ptr, l.n, out,
                           (int32_t)n);
    for (size_t i = 0; i < n; i++) give(j, i, out[i]);
}

static void split(job *j) {
    for (size_t i = 0; i < j->layer->n_top; i++) give(j, i, j->in[0]);
}

static void reshape_to(job *j, const int64_t *shape, int64_t n) {
    list l = {.n = 0};
    put_ints(&l, "shape", shape, n);
    give(j, 0, node(j, "reshape", "", j->in, 1, &l));
}

static void flatten(job *j) {
    const Caffe__FlattenParameter *p = j->layer->flatten_param;
    const cnr_tensor *x = type_of(j, j->in[0]);
    if (!x || x->rank < 1) {
        j->failed = 1;
        return;
    }
    const int64_t from = axis_of(j, p ? p->axis : 1), to = axis_of(j, p ? p->end_axis : -1);
    int64_t shape[CNR_MAX_RANK], n = 0;
    if (from < 0 || to < from || to >= x->rank) return problem(j, "axis is out of range");
    for (int64_t i = 0; i < from; i++) shape[n++] = 0;
    shape[n++] = -1;
    for (int64_t i = to + 1; i < x->rank; i++) {
        if (x->dim[i] < 0) return problem(j, "the sizes behind end_axis are not known");
        shape[n++] = x->dim[i];
    }
    reshape_to(j, shape, n);
}

static void reshape(job *j) {
    const Caffe__ReshapeParameter *p = j->layer->reshape_param;
    const cnr_tensor *x = type_of(j, j->in[0]);
    int64_t shape[CNR_MAX_RANK], n = 0;
    if (!p || !p->shape) return problem(j, "shape is missing");
    if (!x) {
        j->failed = 1;
        return;
    }
    const int64_t from = p->axis < 0 ? p->axis + x->rank + 1 : p->axis;
    const int64_t to = p->num_axes < 0 ? x->rank : from + p->num_axes;
    if (from < 0 || to > x->rank || from > to) return problem(j, "axis is out of range");
    if (from + (int64_t)p->shape->n_dim + x->rank - to > CNR_MAX_RANK)
        return problem(j, "too many axes");
    for (int64_t i = 0; i < from; i++) shape[n++] = 0;
    for (size_t i = 0; i < p->shape->n_dim; i++) {
        int64_t d = p->shape->dim[i];
        /* 0 copies the axis of the same place among those reshaped, which is ours while n agrees */
        if (d == 0 && n != from + (int64_t)i) d = x->dim[from + (int64_t)i];
        shape[n++] = d;
    }
    for (int64_t i = to; i < x->rank; i++) {
        if (n != i && x->dim[i] < 0) return problem(j, "the sizes behind num_axes are not known");
        shape[n] = n == i ? 0 : x->dim[i];
        n++;
    }
    reshape_to(j, shape, n);
}

static void permute(job *j) {
    const Caffe__PermuteParameter *p = j->layer->permute_param;
    const cnr_tensor *x = type_of(j, j->in[0]);
    int64_t perm[CNR_MAX_RANK], n = 0;
    int seen[CNR_MAX_RANK] = {0};
    if (!p || !x) return problem(j, "order is missing");
    for (size_t i = 0; i < p->n_order; i++) {
        if ((int32_t)p->order[i] >= x->rank || seen[p->order[i]]) return problem(j, "bad order");
        seen[p->order[i]] = 1;
        perm[n++] = p->order[i];
    }
    for (int32_t i = 0; i < x->rank; i++)
        if (!seen[i]) perm[n++] = i;
    list l = {.n = 0};
    put_ints(&l, "perm", perm, n);
    give(j, 0, node(j, "transpose", "", j->in, 1, &l));
}

static void slice_node(job *j, const int64_t *axes, const int64_t *from, const int64_t *to,
                       int64_t n) {
    list l = {.n = 0};
    put_ints(&l, "starts", from, n);
    put_ints(&l, "ends", to, n);
    put_ints(&l, "axes", axes, n);
    give(j, 0, node(j, "slice", "", j->in, 1, &l));
}

static void crop(job *j) { /* to the size of bottom 1, from `axis` on */
    const Caffe__CropParameter *p = j->layer->crop_param;
    const cnr_tensor *x = type_of(j, j->in[0]), *like = type_of(j, j->n_in > 1 ? j->in[1] : -1);
    const int64_t axis = axis_of(j, p ? p->axis : 2);
    int64_t offset[CNR_MAX_RANK], n = 0;
    if (!x || !like || axis < 0 || axis >= x->rank) return problem(j, "axis or bottoms do not fit");
    for (int64_t i = axis; i < x->rank; i++, n++)
        offset[n] = !p || p->n_offset == 0 ? 0
                    : p->offset[p->n_offset == 1 ? 0 : (size_t)n < p->n_offset ? (size_t)n : 0];
    list l = {.n = 0};
    put_int(&l, "axis", axis);
    put_ints(&l, "offset", offset, n);
    give(j, 0, node(j, "crop", "", j->in, 2, &l));
}

static void crop_center(job *j) { /* crop_size off both ends of each axis */
    const Caffe__CropCenterParameter *p = j->layer->crop_center_param;
    const cnr_tensor *x = type_of(j, j->in[0]);
    int64_t axes[CNR_MAX_RANK], from[CNR_MAX_RANK], to[CNR_MAX_RANK], n = 0;
    if (!p || !x || (int32_t)p->n_crop_size != x->rank)
        return problem(j, "one crop_size an axis is wanted");
    for (int32_t i = 0; i < x->rank; i++)
        if (p->crop_size[i]) {
            axes[n] = i;
            from[n] = p->crop_size[i];
            to[n++] = -(int64_t)p->crop_size[i];
        }
    if (n == 0) return give(j, 0, j->in[0]);
    slice_node(j, axes, from, to, n);
}

static void tile(job *j) {
    const Caffe__TileParameter *p = j->layer->tile_param;
    const cnr_tensor *x = type_of(j, j->in[0]);
    const int64_t axis = axis_of(j, p ? p->axis : 1);
    int64_t repeats[CNR_MAX_RANK];
    if (!p || !x || axis < 0 || axis >= x->rank) return problem(j, "axis is out of range");
    for (int32_t i = 0; i < x->rank; i++) repeats[i] = i == axis ? p->tiles : 1;
    list l = {.n = 0};
    put_ints(&l, "repeats", repeats, x->rank);
    give(j, 0, node(j, "tile", "", j->in, 1, &l));
}

static void shuffle(job *j) {
    list l = {.n = 0};
    put_int(&l, "group",
            j->layer->shuffle_channel_param ? j->layer->shuffle_channel_param->group : 1);
    give(j, 0, node(j, "channel_shuffle", "", j->in, 1, &l));
}

static void interpolate(job *j) {
    const Caffe__InterpParameter *p = j->layer->interp_param;
    const cnr_tensor *x = type_of(j, j->in[0]);
    if (!p || !x || x->rank != 4 || x->dim[2] < 0 || x->dim[3] < 0)
        return problem(j, "four known dimensions are wanted");
    int64_t sizes[4] = {x->dim[0], x->dim[1]};
    for (int i = 2; i < 4; i++) {
        int64_t d = x->dim[i] + p->pad_beg + p->pad_end;
        if (p->shrink_factor > 1) d = (d - 1) / p->shrink_factor + 1;
        if (p->zoom_factor > 1) d = d + (d - 1) * (p->zoom_factor - 1);
        sizes[i] = d;
    }
    if (p->height > 0) sizes[2] = p->height;
    if (p->width > 0) sizes[3] = p->width;
    if (p->pad_beg || p->pad_end) return problem(j, "padding is not supported");
    list l = {.n = 0};
    const int64_t axes[] = {2, 3};
    put_enum(&l, "mode", "linear");
    put_enum(&l, "coordinate_transformation_mode", "align_corners");
    put_ints(&l, "axes", axes, 2);
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_i64, .rank = 1, .dim = {2},
                    .flags = CNR_TENSOR_CONST, .data = sizes + 2, .bytes = 16};
    char name[512];
    snprintf(name, sizeof name, "%s.sizes", j->name);
    const cnr_value size = caffe_host->graph_constant(j->net->graph, name, &t);
    give(j, 0, node(j, "resize", "", (cnr_value[]){j->in[0], -1, -1, size}, 4, &l));
}

/* ---- reductions, detection ---- */

static void arg_max(job *j) {
    const Caffe__ArgMaxParameter *p = j->layer->argmax_param;
    if (p && (p->top_k != 1 || p->out_max_val)) return problem(j, "top_k 1 without values is wanted");
    list l = {.n = 0};
    cnr_value x = j->in[0];
    if (!p || !p->has_axis) {
        x = node(j, "flatten", ".flat", &x, 1, NULL);
        put_int(&l, "axis", 1);
    } else {
        put_int(&l, "axis", p->axis);
    }
    put_bool(&l, "keepdims", 1);
    const cnr_value index = node(j, "arg_max", ".index", &x, 1, &l);
    list f = {.n = 0};
    add(&f, "to", CNR_ATTR_DTYPE)->i = CNR_f32;
    give(j, 0, node(j, "cast", "", &index, 1, &f));
}

static void reduction(job *j) {
    const Caffe__ReductionParameter *p = j->layer->reduction_param;
    static const char *const ops[] = {"reduce_sum", "reduce_sum", "reduce_l1", "reduce_sum_square",
                                      "reduce_mean"};
    const cnr_tensor *x = type_of(j, j->in[0]);
    const int64_t from = axis_of(j, p ? p->axis : 0);
    const int kind = p ? (int)p->operation : 1;
    int64_t axes[CNR_MAX_RANK], n = 0;
    if (!x || from < 0 || kind < 0 || kind > 4) return problem(j, "axis or operation is wrong");
    for (int64_t i = from; i < x->rank; i++) axes[n++] = i;
    list l = {.n = 0};
    put_ints(&l, "axes", axes, n);
    put_bool(&l, "keepdims", 0);
    cnr_value y = node(j, ops[kind], "", j->in, 1, &l);
    if (p && p->coeff != 1)
        y = node(j, "mul", ".scaled", (cnr_value[]){y, scalar(j, (double)p->coeff)}, 2, NULL);
    give(j, 0, y);
}

static int64_t to_doubles(const float *from, size_t n, double *out) {
    size_t k = 0;
    for (; k < n && k < 64; k++) out[k] = (double)from[k];
    return (int64_t)k;
}

static void prior_box(job *j) {
    const Caffe__PriorBoxParameter *p = j->layer->prior_box_param;
    double min[64], max[64], ratio[64], variance[64];
    if (!p || p->n_min_size == 0) return problem(j, "min_size is missing");
    list l = {.n = 0};
    put_floats(&l, "min_size", min, to_doubles(p->min_size, p->n_min_size, min));
    put_floats(&l, "max_size", max, to_doubles(p->max_size, p->n_max_size, max));
    put_floats(&l, "aspect_ratio", ratio, to_doubles(p->aspect_ratio, p->n_aspect_ratio, ratio));
    if (p->n_variance)
        put_floats(&l, "variance", variance, to_doubles(p->variance, p->n_variance, variance));
    put_bool(&l, "flip", p->flip);
    put_bool(&l, "clip", p->clip);
    put_float(&l, "offset", (double)p->offset);
    put_float(&l, "step_h", (double)(p->has_step_h ? p->step_h : p->step));
    put_float(&l, "step_w", (double)(p->has_step_w ? p->step_w : p->step));
    put_int(&l, "img_h", p->has_img_h ? p->img_h : p->img_size);
    put_int(&l, "img_w", p->has_img_w ? p->img_w : p->img_size);
    give(j, 0, node(j, "prior_box", "", j->in, 2, &l));
}

static void detection_output(job *j) {
    static const char *const codes[] = {"CORNER", "CORNER", "CENTER_SIZE", "CORNER_SIZE"};
    const Caffe__DetectionOutputParameter *p = j->layer->detection_output_param;
    if (!p || p->num_classes < 1) return problem(j, "num_classes is missing");
    list l = {.n = 0};
    put_int(&l, "num_classes", p->num_classes);
    put_bool(&l, "share_location", p->share_location);
    put_int(&l, "background_label_id", p->background_label_id);
    put_float(&l, "nms_threshold", p->nms_param ? (double)p->nms_param->nms_threshold : 0.3);
    put_int(&l, "top_k", p->nms_param && p->nms_param->has_top_k ? p->nms_param->top_k : -1);
    put_float(&l, "eta", p->nms_param ? (double)p->nms_param->eta : 1.0);
    put_enum(&l, "code_type", codes[(unsigned)p->code_type & 3]);
    put_bool(&l, "variance_encoded_in_target", p->variance_encoded_in_target);
    put_int(&l, "keep_top_k", p->keep_top_k);
    put_float(&l, "confidence_threshold",
              p->has_confidence_threshold ? (double)p->confidence_threshold : -1e30);
    give(j, 0, node(j, "detection_output", "", j->in, 3, &l));
}

static void dropout(job *j) {
    give(j, 0, node(j, "dropout", "", j->in, 1, NULL));
}

/* ---- the table ---- */

enum { SPATIAL_FREE = 1 }; /* gives an output for any height and width */

static const struct row {
    const char *type;
    int32_t min_in, max_in, flags;
    void (*convert)(job *);
} rows[] = {
    {"AbsVal", 1, 1, SPATIAL_FREE, simple},
    {"ArgMax", 1, 1, 0, arg_max},
    {"Axpy", 3, 3, SPATIAL_FREE, axpy},
    {"BNLL", 1, 1, SPATIAL_FREE, simple},
    {"BatchNorm", 1, 1, SPATIAL_FREE, batch_norm},
    {"Bias", 1, 2, SPATIAL_FREE, scale},
    {"Concat", 1, MAX_NAMES, SPATIAL_FREE, concat},
    {"Convolution", 1, 1, SPATIAL_FREE, convolution},
    {"ConvolutionDepthwise", 1, 1, SPATIAL_FREE, convolution},
    {"Crop", 2, 2, SPATIAL_FREE, crop},
    {"CropCenter", 1, 1, SPATIAL_FREE, crop_center},
    {"Deconvolution", 1, 1, SPATIAL_FREE, convolution},
    {"DepthwiseConvolution", 1, 1, SPATIAL_FREE, convolution},
    {"DetectionOutput", 3, 3, 0, detection_output},
    {"Dropout", 1, 1, SPATIAL_FREE, dropout},
    {"ELU", 1, 1, SPATIAL_FREE, elu},
    {"Eltwise", 1, MAX_NAMES, SPATIAL_FREE, eltwise},
    {"Exp", 1, 1, SPATIAL_FREE, exponential},
    {"Flatten", 1, 1, 0, flatten},
    {"GELU", 1, 1, SPATIAL_FREE, simple},
    {"HSwish", 1, 1, SPATIAL_FREE, simple},
    {"InnerProduct", 1, 1, 0, inner_product},
    {"Interp", 1, 1, 0, interpolate},
    {"LRN", 1, 1, SPATIAL_FREE, lrn},
    {"Log", 1, 1, SPATIAL_FREE, exponential},
    {"MVN", 1, 1, SPATIAL_FREE, mvn},
    {"Mish", 1, 1, SPATIAL_FREE, simple},
    {"Normalize", 1, 1, SPATIAL_FREE, normalize},
    {"PReLU", 1, 1, SPATIAL_FREE, prelu},
    {"Permute", 1, 1, 0, permute},
    {"Pooling", 1, 1, SPATIAL_FREE, pooling},
    {"Power", 1, 1, SPATIAL_FREE, power},
    {"PriorBox", 2, 2, 0, prior_box},
    {"ReLU", 1, 1, SPATIAL_FREE, relu},
    {"ReLU6", 1, 1, SPATIAL_FREE, relu6},
    {"Reduction", 1, 1, 0, reduction},
    {"Reshape", 1, 1, 0, reshape},
    {"Scale", 1, 2, SPATIAL_FREE, scale},
    {"ShuffleChannel", 1, 1, SPATIAL_FREE, shuffle},
    {"Sigmoid", 1, 1, SPATIAL_FREE, simple},
    {"Slice", 1, 1, SPATIAL_FREE, slice},
    {"Softmax", 1, 1, SPATIAL_FREE, softmax},
    {"SoftmaxWithLoss", 1, MAX_NAMES, SPATIAL_FREE, softmax},
    {"Split", 1, 1, SPATIAL_FREE, split},
    {"Swish", 1, 1, SPATIAL_FREE, simple},
    {"TanH", 1, 1, SPATIAL_FREE, simple},
    {"Threshold", 1, 1, SPATIAL_FREE, threshold},
    {"Tile", 1, 1, 0, tile},
};

static const struct row *row_of(const char *type) {
    for (size_t i = 0; type && i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].type, type) == 0) return &rows[i];
    return NULL;
}

int caffe_layer_is_skipped(const char *type) {
    static const char *const skipped[] = {"Accuracy", "Silence", "EuclideanLoss", "HingeLoss",
                                          "SigmoidCrossEntropyLoss", "ContrastiveLoss",
                                          "InfogainLoss", "MultinomialLogisticLoss", "HDF5Output"};
    for (size_t i = 0; i < sizeof skipped / sizeof skipped[0]; i++)
        if (strcmp(skipped[i], type) == 0) return 1;
    return 0;
}

int caffe_layer_is_convolutional(const Caffe__LayerParameter *layer) {
    const struct row *row = row_of(layer->type);
    return !row || row->flags & SPATIAL_FREE;
}

void caffe_layer(caffe_net *net, const Caffe__LayerParameter *layer, Caffe__BlobProto **blobs,
                 size_t n_blobs) {
    const struct row *row = row_of(layer->type);
    job j = {.net = net, .layer = layer, .name = layer->name ? layer->name : "layer",
             .blobs = blobs, .n_blobs = n_blobs};
    if (!row) {
        caffe_host->graph_problem(net->graph, net->path, "layer %s: type \"%s\" is not supported",
                                  j.name, layer->type ? layer->type : "");
        j.failed = 1;
    } else if (layer->n_top < 1 || (int32_t)layer->n_bottom < row->min_in ||
               layer->n_bottom > MAX_NAMES ||
               ((int32_t)layer->n_bottom > row->max_in && row->max_in != MAX_NAMES)) {
        problem(&j, "it has the wrong number of bottoms or tops");
    }
    /* A loss reads labels too, which are not there at inference. */
    const int loss = row && strcmp(row->type, "SoftmaxWithLoss") == 0;
    for (size_t i = 0; i < (loss ? 1 : layer->n_bottom) && i < MAX_NAMES; i++) {
        j.in[i] = caffe_bound(net, layer->bottom[i], j.name);
        if (j.in[i] < 0) j.failed = 1; /* already told, or follows from what was told */
        j.n_in++;
    }
    if (!j.failed) row->convert(&j);
    if (j.failed) /* bind its tops all the same, so that readers don't complain again */
        for (size_t i = 0; i < layer->n_top; i++) caffe_bind(net, layer->top[i], -1);
}
