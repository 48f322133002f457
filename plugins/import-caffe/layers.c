/* The table of Caffe's layer types, and the conversion of one layer. */
#include "layer.h"

#include <stdio.h>

enum { SPATIAL_FREE = 1 }; /* works at any height and width */

typedef void (*caffe_convert)(caffe_job *);
typedef IMP_ROW(caffe_convert) caffe_row;

/* A row of the table of layers. */
#define ROW(TYPE, CONVERT, OP, MIN_IN, MAX_IN, FLAGS) \
    IMP_LAYER(TYPE, CONVERT, .op = OP, .min_in = MIN_IN, .max_in = MAX_IN, .flags = FLAGS)
static const caffe_row rows[] = {
    ROW("AbsVal", caffe_simple, "abs", 1, 1, SPATIAL_FREE),
    ROW("ArgMax", caffe_arg_max, NULL, 1, 1, 0),
    ROW("Axpy", caffe_axpy, NULL, 3, 3, SPATIAL_FREE),
    ROW("BNLL", caffe_simple, "softplus", 1, 1, SPATIAL_FREE),
    ROW("BatchNorm", caffe_batch_norm, NULL, 1, 1, SPATIAL_FREE),
    ROW("Bias", caffe_scale, NULL, 1, 2, SPATIAL_FREE),
    ROW("Concat", caffe_concat, NULL, 1, CAFFE_MAX_NAMES, SPATIAL_FREE),
    ROW("Convolution", caffe_convolution, NULL, 1, 1, SPATIAL_FREE),
    ROW("ConvolutionDepthwise", caffe_convolution, NULL, 1, 1, SPATIAL_FREE),
    ROW("Crop", caffe_crop, NULL, 2, 2, SPATIAL_FREE),
    ROW("CropCenter", caffe_crop_center, NULL, 1, 1, SPATIAL_FREE),
    ROW("Deconvolution", caffe_convolution, NULL, 1, 1, SPATIAL_FREE),
    ROW("DepthwiseConvolution", caffe_convolution, NULL, 1, 1, SPATIAL_FREE),
    ROW("DetectionOutput", caffe_detection_output, NULL, 3, 3, 0),
    ROW("Dropout", caffe_dropout, NULL, 1, 1, SPATIAL_FREE),
    ROW("ELU", caffe_elu, NULL, 1, 1, SPATIAL_FREE),
    ROW("Eltwise", caffe_eltwise, NULL, 1, CAFFE_MAX_NAMES, SPATIAL_FREE),
    ROW("Exp", caffe_exponential, NULL, 1, 1, SPATIAL_FREE),
    ROW("Flatten", caffe_flatten, NULL, 1, 1, 0),
    ROW("GELU", caffe_simple, "gelu", 1, 1, SPATIAL_FREE),
    ROW("HSwish", caffe_simple, "hard_swish", 1, 1, SPATIAL_FREE),
    ROW("InnerProduct", caffe_inner_product, NULL, 1, 1, 0),
    ROW("Interp", caffe_interpolate, NULL, 1, 2, 0),
    ROW("LRN", caffe_lrn, NULL, 1, 1, SPATIAL_FREE),
    ROW("Log", caffe_exponential, NULL, 1, 1, SPATIAL_FREE),
    ROW("MVN", caffe_mvn, NULL, 1, 1, SPATIAL_FREE),
    ROW("Mish", caffe_simple, "mish", 1, 1, SPATIAL_FREE),
    ROW("Normalize", caffe_normalize, NULL, 1, 1, SPATIAL_FREE),
    ROW("PReLU", caffe_prelu, NULL, 1, 1, SPATIAL_FREE),
    ROW("Permute", caffe_permute, NULL, 1, 1, 0),
    ROW("Pooling", caffe_pooling, NULL, 1, 1, SPATIAL_FREE),
    ROW("Power", caffe_power, NULL, 1, 1, SPATIAL_FREE),
    ROW("PriorBox", caffe_prior_box, NULL, 2, 2, 0),
    ROW("ROIPooling", caffe_roi_pooling, NULL, 2, 2, SPATIAL_FREE),
    ROW("ReLU", caffe_relu, NULL, 1, 1, SPATIAL_FREE),
    ROW("ReLU6", caffe_relu6, NULL, 1, 1, SPATIAL_FREE),
    ROW("Reduction", caffe_reduction, NULL, 1, 1, 0),
    ROW("Reshape", caffe_reshape, NULL, 1, 1, 0),
    ROW("Scale", caffe_scale, NULL, 1, 2, SPATIAL_FREE),
    ROW("ShuffleChannel", caffe_shuffle, NULL, 1, 1, SPATIAL_FREE),
    ROW("Sigmoid", caffe_simple, "sigmoid", 1, 1, SPATIAL_FREE),
    ROW("Slice", caffe_slice, NULL, 1, 1, SPATIAL_FREE),
    ROW("Softmax", caffe_softmax, NULL, 1, 1, SPATIAL_FREE),
    ROW("SoftmaxWithLoss", caffe_softmax, NULL, 1, CAFFE_MAX_NAMES, SPATIAL_FREE),
    ROW("Split", caffe_split, NULL, 1, 1, SPATIAL_FREE),
    ROW("Swish", caffe_simple, "swish", 1, 1, SPATIAL_FREE),
    ROW("TanH", caffe_simple, "tanh", 1, 1, SPATIAL_FREE),
    ROW("Threshold", caffe_threshold, NULL, 1, 1, SPATIAL_FREE),
    ROW("Tile", caffe_tile, NULL, 1, 1, 0),
    ROW("Upsample", caffe_upsample, NULL, 1, 1, SPATIAL_FREE),
};

/* The row of a layer type; NULL: neither supported here nor imported by another plugin. */
static const caffe_row *row_of(const char *type) {
    static const caffe_row theirs = {.type = "",
                                     .convert = caffe_theirs,
                                     .min_in = 0,
                                     .max_in = CAFFE_MAX_NAMES};
    const caffe_row *row = IMP_ROW_OF(rows, type);
    return row || !type || !imp_host->find_import_row("caffe", NULL, type, 0) ? row : &theirs;
}

int caffe_layer_is_skipped(const char *type) {
    static const char *const skipped[] =
        {"Accuracy",        "SegAccuracy",  "Silence",
         "EuclideanLoss",   "HingeLoss",    "SigmoidCrossEntropyLoss",
         "ContrastiveLoss", "InfogainLoss", "MultinomialLogisticLoss",
         "MultiBoxLoss",    "HDF5Output"};
    return imp_is_one_of(type, skipped, CNR_ROWS(skipped));
}

int caffe_layer_is_convolutional(const Caffe__LayerParameter *layer) {
    const caffe_row *row = row_of(layer->type);
    return !row || row->flags & SPATIAL_FREE;
}

void caffe_layer(caffe_net *net, const Caffe__LayerParameter *layer, Caffe__BlobProto **blobs,
                 size_t n_blobs) {
    const caffe_row *row = row_of(layer->type);
    /* A loss also reads labels, which do not exist at inference, and may have no top. */
    const int loss = row && strcmp(row->type, "SoftmaxWithLoss") == 0;
    caffe_job j = {.net = net,
                   .layer = layer,
                   .name = layer->name ? layer->name : "layer",
                   .op = row ? row->op : NULL,
                   .blobs = blobs,
                   .n_blobs = n_blobs};
    if (!row) {
        imp_host->graph_problem(net->b.graph, net->b.path, "layer %s: type \"%s\" is not supported",
                                j.name, layer->type ? layer->type : "");
        j.failed = 1;
    } else if ((layer->n_top < 1 && !loss) || (int32_t)layer->n_bottom < row->min_in ||
               layer->n_bottom > CAFFE_MAX_NAMES ||
               ((int32_t)layer->n_bottom > row->max_in && row->max_in != CAFFE_MAX_NAMES)) {
        caffe_problem(&j, "it has the wrong number of bottoms or tops");
    }
    for (size_t i = 0; i < (loss ? 1 : layer->n_bottom) && i < CAFFE_MAX_NAMES; i++) {
        j.in[i] = caffe_bound(net, layer->bottom[i], j.name);
        if (j.in[i] < 0) j.failed = 1; /* reported already, here or at a layer before */
        j.n_in++;
    }
    if (!j.failed) row->convert(&j);
    if (j.failed) /* bind its tops nevertheless, so that the layers after it are not reported too */
        for (size_t i = 0; i < layer->n_top; i++) caffe_bind(net, layer->top[i], -1);
}
