/* Nodes, constants and weights of the layer under way. */
#include "layer.h"

#include <stdio.h>

cnr_attr *caffe_attr(caffe_attrs *l, const char *name, int32_t type) {
    cnr_attr *a = &l->at[l->n];
    memset(a, 0, sizeof *a);
    a->name = name;
    a->type = type;
    l->ptr[l->n++] = a;
    return a;
}
void caffe_put_int(caffe_attrs *l, const char *name, int64_t value) {
    caffe_attr(l, name, CNR_ATTR_INT)->i = value;
}
void caffe_put_bool(caffe_attrs *l, const char *name, int value) {
    caffe_attr(l, name, CNR_ATTR_BOOL)->i = value != 0;
}
void caffe_put_float(caffe_attrs *l, const char *name, double value) {
    caffe_attr(l, name, CNR_ATTR_FLOAT)->f = value;
}
void caffe_put_enum(caffe_attrs *l, const char *name, const char *value) {
    caffe_attr(l, name, CNR_ATTR_ENUM)->s = value;
}
void caffe_put_ints(caffe_attrs *l, const char *name, const int64_t *values, int64_t n) {
    cnr_attr *a = caffe_attr(l, name, CNR_ATTR_INTS);
    a->ints = values;
    a->n = n;
}
void caffe_put_floats(caffe_attrs *l, const char *name, const double *values, int64_t n) {
    cnr_attr *a = caffe_attr(l, name, CNR_ATTR_FLOATS);
    a->floats = values;
    a->n = n;
}

/* ---- nodes and constants ---- */

void caffe_problem(caffe_job *j, const char *text) {
    caffe_host->graph_problem(j->net->graph, j->net->path, "layer %s (%s): %s", j->name,
                              j->layer->type, text);
    j->failed = 1;
}

cnr_value caffe_node(caffe_job *j, const char *op, const char *suffix, const cnr_value *in,
                     int32_t n_in, const caffe_attrs *attrs) {
    char name[512];
    cnr_value out = -1;
    snprintf(name, sizeof name, "%s%s", j->name, suffix);
    caffe_host->graph_node(j->net->graph, op, name, j->net->path, in, n_in,
                           attrs ? attrs->ptr : NULL, attrs ? attrs->n : 0, &out, 1);
    return out;
}

/* A constant of ours: f32 with `rank` dims, n values. */
cnr_value caffe_constant(caffe_job *j, const char *suffix, const float *values, const int64_t *dim,
                         int32_t rank) {
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = rank, .flags = CNR_TENSOR_CONST};
    char name[512];
    for (int32_t i = 0; i < rank; i++) t.dim[i] = dim[i];
    t.data = (void *)values;
    t.bytes = cnr_dense_bytes(&t);
    snprintf(name, sizeof name, "%s.%s", j->name, suffix);
    return caffe_host->graph_constant(j->net->graph, name, &t);
}

cnr_value caffe_scalar(caffe_job *j, double value) {
    char suffix[24];
    const float f = (float)value;
    snprintf(suffix, sizeof suffix, "value%d", (int)++j->n_made);
    return caffe_constant(j, suffix, &f, NULL, 0);
}

/* Blob `index` as a constant of the dims given; its own count must agree. rank < 0: its own dims.
 * A missing one is a weight yet to be filled, so that a prototxt alone can be shown. */
cnr_value caffe_blob(caffe_job *j, size_t index, const char *suffix, const int64_t *dim,
                     int32_t rank, double factor) {
    int64_t own[CNR_MAX_RANK], n = 1;
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32};
    char name[512];
    snprintf(name, sizeof name, "%s.%s", j->name, suffix);
    for (int32_t i = 0; i < rank; i++) t.dim[i] = dim[i];
    t.rank = rank;
    if (index >= j->n_blobs) {
        if (rank < 0) return caffe_problem(j, "its weights are missing"), -1;
        if (j->net->weights) return caffe_problem(j, "its weights are not in the caffemodel"), -1;
        return caffe_host->graph_constant(j->net->graph, name, &t);
    }
    const Caffe__BlobProto *b = j->blobs[index];
    const int32_t own_rank = caffe_blob_dims(b, own);
    if (own_rank < 0) return caffe_problem(j, "a blob's shape does not fit its data"), -1;
    if (rank < 0) {
        t.rank = own_rank;
        memcpy(t.dim, own, sizeof own);
    }
    for (int32_t i = 0; i < t.rank; i++)
        if (t.dim[i] < 0 || (t.dim[i] && n > INT64_MAX / t.dim[i]) || (n *= t.dim[i]) < 0)
            return caffe_problem(j, "its weights are too large"), -1;
    if (n != caffe_blob_count(b)) {
        char text[128];
        snprintf(text, sizeof text, "blob %d holds %lld values, %lld are wanted", (int)index,
                 (long long)caffe_blob_count(b), (long long)n);
        return caffe_problem(j, text), -1;
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

const cnr_tensor *caffe_type(caffe_job *j, cnr_value v) {
    return v < 0 ? NULL : caffe_host->graph_type(j->net->graph, v);
}

/* Channels of input 0 (axis 1), or 0 with a problem. */
int64_t caffe_channels(caffe_job *j) {
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    if (x && x->rank >= 2 && x->dim[1] > 0) return x->dim[1];
    if (j->in[0] >= 0 && x && x->dtype) caffe_problem(j, "the channels of its input are not known");
    j->failed = 1;
    return 0;
}

void caffe_give(caffe_job *j, size_t top, cnr_value v) {
    if (top < j->layer->n_top) caffe_bind(j->net, j->layer->top[top], v);
}

int64_t caffe_axis(caffe_job *j, int64_t axis) {
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    return axis < 0 && x ? axis + x->rank : axis;
}

/* y = x * factor + shift, leaving out what does nothing */
cnr_value caffe_affine(caffe_job *j, cnr_value x, double factor, double shift) {
    if (factor != 1)
        x = caffe_node(j, "mul", ".scaled", (cnr_value[]){x, caffe_scalar(j, factor)}, 2, NULL);
    if (shift != 0)
        x = caffe_node(j, "add", ".shifted", (cnr_value[]){x, caffe_scalar(j, shift)}, 2, NULL);
    return x;
}
