/* Adds nodes, constants and weights for the layer being converted. */
#include "layer.h"

#include <stdio.h>

void caffe_problem(caffe_job *j, const char *text) {
    imp_host->graph_problem(j->net->b.graph, j->net->b.path, "layer %s (%s): %s", j->name,
                            j->layer->type, text);
    j->failed = 1;
}

cnr_value caffe_node(caffe_job *j, const char *op, const char *suffix, const cnr_value *in,
                     int32_t n_in, const imp_attrs *attrs) {
    return imp_node(&j->net->b, op, j->name, suffix, in, n_in, attrs);
}

cnr_value caffe_scalar(caffe_job *j, double value) {
    char suffix[24];
    snprintf(suffix, sizeof suffix, ".value%d", (int)++j->n_made);
    return imp_scalar(&j->net->b, j->name, suffix, value);
}

/* Adds blob `index` as a constant of the given dims, which must have as many elements, or -1 with a
 * problem; rank < 0: the blob's own dims. A missing blob becomes a weight to be filled later, so
 * that a prototxt alone can be shown. */
cnr_value caffe_blob(caffe_job *j, size_t index, const char *suffix, const int64_t *dim,
                     int32_t rank, double factor) {
    int64_t own[CNR_MAX_RANK];
    char text[128];
    if (index >= j->n_blobs) {
        if (rank < 0) return caffe_problem(j, "its weights are missing"), -1;
        if (j->net->weights) return caffe_problem(j, "its weights are not in the caffemodel"), -1;
        return imp_weight(&j->net->b, j->name, suffix, NULL, dim, rank);
    }
    const Caffe__BlobProto *b = j->blobs[index];
    const int32_t own_rank = caffe_blob_dims(b, own);
    if (own_rank < 0) return caffe_problem(j, "a blob's shape does not fit its data"), -1;
    if (rank < 0) dim = own, rank = own_rank;
    const int64_t n = imp_count(dim, rank);
    if (n != caffe_blob_count(b)) {
        snprintf(text, sizeof text, "blob %d holds %lld values, %lld are wanted", (int)index,
                 (long long)caffe_blob_count(b), (long long)n);
        return caffe_problem(j, text), -1;
    }
    float *values = (float *)imp_host->alloc((size_t)n * sizeof(float) + 1);
    if (!values) {
        j->net->b.status = CNR_E_MEMORY;
        return -1;
    }
    for (int64_t i = 0; i < n; i++) values[i] = (float)((double)caffe_blob_at(b, i) * factor);
    const cnr_value v = imp_weight(&j->net->b, j->name, suffix, values, dim, rank);
    imp_host->free(values);
    return v;
}

const cnr_tensor *caffe_type(caffe_job *j, cnr_value v) { return imp_type(&j->net->b, v); }

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
    else if (top == 0) caffe_bind(j->net, j->name, v); /* named as in Caffe */
}

int64_t caffe_axis(caffe_job *j, int64_t axis) {
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    return axis < 0 && x ? axis + x->rank : axis;
}

cnr_value caffe_affine(caffe_job *j, cnr_value x, double factor, double shift) {
    char name[512];
    snprintf(name, sizeof name, "%.450s.affine", j->name);
    return imp_affine(&j->net->b, name, x, factor, shift);
}
