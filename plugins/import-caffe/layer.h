/* Shared by the converters of layers: the current layer, attributes, nodes, weights. */
#ifndef CAFFE_LAYER_H
#define CAFFE_LAYER_H

#include "caffe.h"

enum { CAFFE_MAX_NAMES = 256 };

/* The layer being converted. */
typedef struct caffe_job {
    caffe_net *net;
    const Caffe__LayerParameter *layer;
    const char *name, *op; /* op: of its table row */
    Caffe__BlobProto **blobs;
    size_t n_blobs;
    cnr_value in[CAFFE_MAX_NAMES];
    int32_t n_in, n_made; /* count of helper values, for their names */
    int32_t failed;
} caffe_job;

/* ---- build.c ---- */

/* Reports a problem of the layer, and marks the layer as failed. */
void caffe_problem(caffe_job *j, const char *text);
/* Adds a node, named after the layer and `suffix`, and returns its output; -1 on failure, which the
 * graph reports. */
cnr_value caffe_node(caffe_job *j, const char *op, const char *suffix, const cnr_value *in,
                     int32_t n_in, const imp_attrs *attrs);
/* A constant number. */
cnr_value caffe_scalar(caffe_job *j, double value);
/* Blob `index` as a constant of the given dims, which must have as many elements; rank < 0: the
 * blob's own dims. A missing blob becomes a weight to be filled later, so that a prototxt alone can
 * be shown. */
cnr_value caffe_blob(caffe_job *j, size_t index, const char *suffix, const int64_t *dim,
                     int32_t rank, double factor);
/* Type of a value; NULL: not known. */
const cnr_tensor *caffe_type(caffe_job *j, cnr_value v);
/* Size of axis 1 of input 0; 0: unknown, and the layer has failed. */
int64_t caffe_channels(caffe_job *j);
/* Makes v the layer's output `top`; a layer without outputs gives it the layer's name. */
void caffe_give(caffe_job *j, size_t top, cnr_value v);
/* Counts a negative axis from the end of input 0's axes, if their number is known. */
int64_t caffe_axis(caffe_job *j, int64_t axis);
/* y = x * factor + shift, without the steps that would change nothing */
cnr_value caffe_affine(caffe_job *j, cnr_value x, double factor, double shift);

/* ---- converters, one for each type of layer ---- */

void caffe_arg_max(caffe_job *j);
void caffe_axpy(caffe_job *j);
void caffe_batch_norm(caffe_job *j);
void caffe_concat(caffe_job *j);
void caffe_convolution(caffe_job *j);
void caffe_crop(caffe_job *j);
void caffe_crop_center(caffe_job *j);
void caffe_detection_output(caffe_job *j);
void caffe_dropout(caffe_job *j);
void caffe_eltwise(caffe_job *j);
void caffe_elu(caffe_job *j);
void caffe_exponential(caffe_job *j);
void caffe_flatten(caffe_job *j);
void caffe_inner_product(caffe_job *j);
void caffe_interpolate(caffe_job *j);
void caffe_lrn(caffe_job *j);
void caffe_mvn(caffe_job *j);
void caffe_normalize(caffe_job *j);
void caffe_permute(caffe_job *j);
void caffe_pooling(caffe_job *j);
void caffe_power(caffe_job *j);
void caffe_prelu(caffe_job *j);
void caffe_prior_box(caffe_job *j);
void caffe_reduction(caffe_job *j);
void caffe_relu(caffe_job *j);
void caffe_relu6(caffe_job *j);
void caffe_reshape(caffe_job *j);
void caffe_roi_pooling(caffe_job *j);
void caffe_scale(caffe_job *j);
void caffe_shuffle(caffe_job *j);
void caffe_simple(caffe_job *j);
void caffe_slice(caffe_job *j);
void caffe_softmax(caffe_job *j);
void caffe_split(caffe_job *j);
void caffe_theirs(caffe_job *j);
void caffe_threshold(caffe_job *j);
void caffe_tile(caffe_job *j);
void caffe_upsample(caffe_job *j);

#endif
