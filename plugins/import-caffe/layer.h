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
/* Adds a constant number, named after the layer; negative: it failed. */
cnr_value caffe_scalar(caffe_job *j, double value);
/* Adds blob `index` as a constant of the given dims, which must have as many elements, or -1 with a
 * problem; rank < 0: the blob's own dims. A missing blob becomes a weight to be filled later, so
 * that a prototxt alone can be shown. */
cnr_value caffe_blob(caffe_job *j, size_t index, const char *suffix, const int64_t *dim,
                     int32_t rank, double factor);
/* Type of a value; NULL: not known. */
const cnr_tensor *caffe_type(caffe_job *j, cnr_value v);
/* Size of axis 1 of input 0; 0: unknown, and the layer has failed. */
int64_t caffe_channels(caffe_job *j);
/* Makes v the layer's output `top`; a layer without outputs gives it the layer's name. */
void caffe_give(caffe_job *j, size_t top, cnr_value v);
/* Returns the axis, counted from the end of input 0's axes if it is negative and their number is
 * known. */
int64_t caffe_axis(caffe_job *j, int64_t axis);
/* Returns x * factor + shift, without the steps that would change nothing. */
cnr_value caffe_affine(caffe_job *j, cnr_value x, double factor, double shift);

/* ---- converters, one for each type of layer ---- */

void caffe_arg_max(caffe_job *j);     /* ArgMax, as argmax */
void caffe_axpy(caffe_job *j);        /* Axpy: a * x + y, one a for each channel */
void caffe_batch_norm(caffe_job *j);  /* BatchNorm, with blobs divided by the third one */
void caffe_concat(caffe_job *j);      /* Concat, along axis or concat_dim */
void caffe_convolution(caffe_job *j); /* Convolution and Deconvolution, as conv, conv_transpose */
void caffe_crop(caffe_job *j);        /* Crop to the size of bottom 1 */
void caffe_crop_center(caffe_job *j); /* CropCenter: crop_size, from both ends */
void caffe_detection_output(caffe_job *j); /* DetectionOutput of SSD */
void caffe_dropout(caffe_job *j);          /* Dropout, which changes nothing */
void caffe_eltwise(caffe_job *j);          /* Eltwise: sum with factors, product or maximum */
void caffe_elu(caffe_job *j);              /* ELU, as elu */
void caffe_exponential(caffe_job *j);      /* Exp and Log */
void caffe_flatten(caffe_job *j);          /* Flatten of a range of axes, as reshape */
void caffe_inner_product(caffe_job *j);    /* InnerProduct, as dense or a product */
void caffe_interpolate(caffe_job *j);      /* Interp, to given sizes or bottom 1's */
void caffe_lrn(caffe_job *j);              /* LRN, across or within channels */
void caffe_mvn(caffe_job *j);              /* MVN: less the mean, over the deviation */
void caffe_normalize(caffe_job *j);        /* Normalize of SSD: the L2 norm times a scale */
void caffe_permute(caffe_job *j);          /* Permute, as transpose */
void caffe_pooling(caffe_job *j);          /* Pooling: windows or global, max or average */
void caffe_power(caffe_job *j);            /* Power: (scale * x + shift) ^ power */
void caffe_prelu(caffe_job *j);            /* PReLU, with a slope a channel or one */
void caffe_prior_box(caffe_job *j);        /* PriorBox of SSD */
void caffe_reduction(caffe_job *j);   /* Reduction of the axes from `axis` on, times a factor */
void caffe_relu(caffe_job *j);        /* ReLU, as relu or leaky_relu by its slope */
void caffe_relu6(caffe_job *j);       /* ReLU6, as clip to 0 .. 6 */
void caffe_reshape(caffe_job *j);     /* Reshape of a range of axes */
void caffe_roi_pooling(caffe_job *j); /* ROIPooling, as max_roi_pool */
void caffe_scale(caffe_job *j);       /* Scale and Bias: by a blob or a second input */
void caffe_shuffle(caffe_job *j);     /* ShuffleChannel, as channel_shuffle */
void caffe_simple(caffe_job *j);      /* a layer that is one operator (j->op) without attributes */
void caffe_slice(caffe_job *j);       /* Slice, as pieces of input 0 along an axis */
void caffe_softmax(caffe_job *j);     /* Softmax along axis (1) */
void caffe_split(caffe_job *j);       /* Split: all outputs are input 0 */
void caffe_theirs(caffe_job *j);      /* a layer of another plugin */
void caffe_threshold(caffe_job *j);   /* Threshold: 1 where x exceeds it, else 0 */
void caffe_tile(caffe_job *j);        /* Tile: repeats along one axis */
void caffe_upsample(caffe_job *j);    /* Upsample: repeats each pixel in a square */

#endif
