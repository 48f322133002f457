/* The table of Caffe's layers, and the road of each through it. */
#include "layer.h"

#include <stdio.h>

enum { SPATIAL_FREE = 1 }; /* gives an output for any height and width */

static const struct row {
    const char *type;
    int32_t min_in, max_in, flags;
    void (*convert)(caffe_job *);
} rows[] = {
    {"AbsVal", 1, 1, SPATIAL_FREE, caffe_simple},
    {"ArgMax", 1, 1, 0, caffe_arg_max},
    {"Axpy", 3, 3, SPATIAL_FREE, caffe_axpy},
    {"BNLL", 1, 1, SPATIAL_FREE, caffe_simple},
    {"BatchNorm", 1, 1, SPATIAL_FREE, caffe_batch_norm},
    {"Bias", 1, 2, SPATIAL_FREE, caffe_scale},
    {"Concat", 1, CAFFE_MAX_NAMES, SPATIAL_FREE, caffe_concat},
    {"Convolution", 1, 1, SPATIAL_FREE, caffe_convolution},
    {"ConvolutionDepthwise", 1, 1, SPATIAL_FREE, caffe_convolution},
    {"Crop", 2, 2, SPATIAL_FREE, caffe_crop},
    {"CropCenter", 1, 1, SPATIAL_FREE, caffe_crop_center},
    {"Deconvolution", 1, 1, SPATIAL_FREE, caffe_convolution},
    {"DepthwiseConvolution", 1, 1, SPATIAL_FREE, caffe_convolution},
    {"DetectionOutput", 3, 3, 0, caffe_detection_output},
    {"Dropout", 1, 1, SPATIAL_FREE, caffe_dropout},
    {"ELU", 1, 1, SPATIAL_FREE, caffe_elu},
    {"Eltwise", 1, CAFFE_MAX_NAMES, SPATIAL_FREE, caffe_eltwise},
    {"Exp", 1, 1, SPATIAL_FREE, caffe_exponential},
    {"Flatten", 1, 1, 0, caffe_flatten},
    {"GELU", 1, 1, SPATIAL_FREE, caffe_simple},
    {"HSwish", 1, 1, SPATIAL_FREE, caffe_simple},
    {"InnerProduct", 1, 1, 0, caffe_inner_product},
    {"Interp", 1, 2, 0, caffe_interpolate},
    {"LRN", 1, 1, SPATIAL_FREE, caffe_lrn},
    {"Log", 1, 1, SPATIAL_FREE, caffe_exponential},
    {"MVN", 1, 1, SPATIAL_FREE, caffe_mvn},
    {"Mish", 1, 1, SPATIAL_FREE, caffe_simple},
    {"Normalize", 1, 1, SPATIAL_FREE, caffe_normalize},
    {"PReLU", 1, 1, SPATIAL_FREE, caffe_prelu},
    {"Permute", 1, 1, 0, caffe_permute},
    {"Pooling", 1, 1, SPATIAL_FREE, caffe_pooling},
    {"Power", 1, 1, SPATIAL_FREE, caffe_power},
    {"PriorBox", 2, 2, 0, caffe_prior_box},
    {"ROIPooling", 2, 2, SPATIAL_FREE, caffe_roi_pooling},
    {"ReLU", 1, 1, SPATIAL_FREE, caffe_relu},
    {"ReLU6", 1, 1, SPATIAL_FREE, caffe_relu6},
    {"Reduction", 1, 1, 0, caffe_reduction},
    {"Reshape", 1, 1, 0, caffe_reshape},
    {"Scale", 1, 2, SPATIAL_FREE, caffe_scale},
    {"ShuffleChannel", 1, 1, SPATIAL_FREE, caffe_shuffle},
    {"Sigmoid", 1, 1, SPATIAL_FREE, caffe_simple},
    {"Slice", 1, 1, SPATIAL_FREE, caffe_slice},
    {"Softmax", 1, 1, SPATIAL_FREE, caffe_softmax},
    {"SoftmaxWithLoss", 1, CAFFE_MAX_NAMES, SPATIAL_FREE, caffe_softmax},
    {"Split", 1, 1, SPATIAL_FREE, caffe_split},
    {"Swish", 1, 1, SPATIAL_FREE, caffe_simple},
    {"TanH", 1, 1, SPATIAL_FREE, caffe_simple},
    {"Threshold", 1, 1, SPATIAL_FREE, caffe_threshold},
    {"Tile", 1, 1, 0, caffe_tile},
    {"Upsample", 1, 1, SPATIAL_FREE, caffe_upsample},
};

static const struct row *row_of(const char *type) {
    for (size_t i = 0; type && i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].type, type) == 0) return &rows[i];
    return NULL;
}

int caffe_layer_is_skipped(const char *type) {
    static const char *const skipped[] = {
        "Accuracy", "SegAccuracy", "Silence", "EuclideanLoss", "HingeLoss", "SigmoidCrossEntropyLoss",
        "ContrastiveLoss", "InfogainLoss", "MultinomialLogisticLoss", "MultiBoxLoss", "HDF5Output"};
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
    /* A loss reads labels too, which are not there at inference, and may give no top. */
    const int loss = row && strcmp(row->type, "SoftmaxWithLoss") == 0;
    caffe_job j = {.net = net,
                   .layer = layer,
                   .name = layer->name ? layer->name : "layer",
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
        if (j.in[i] < 0) j.failed = 1; /* already told, or follows from what was told */
        j.n_in++;
    }
    if (!j.failed) row->convert(&j);
    if (j.failed) /* bind its tops all the same, so that readers don't complain again */
        for (size_t i = 0; i < layer->n_top; i++) caffe_bind(net, layer->top[i], -1);
}
