/* Upgrades Caffe's first layer format (2013), a record inside each V1 record, to V1 fields. */
#include "caffe.h"

static const struct {
    const char *name;
    Caffe__V1LayerParameter__LayerType type;
} types[] = {
/* Row of a layer's old name and its V1 type. */
#define X(NAME, TYPE) {NAME, CAFFE__V1_LAYER_PARAMETER__LAYER_TYPE__##TYPE},
    X("accuracy", ACCURACY) X("bnll", BNLL) X("concat", CONCAT) X("conv", CONVOLUTION)
        X("data", DATA) X("dropout", DROPOUT) X("euclidean_loss", EUCLIDEAN_LOSS)
            X("flatten", FLATTEN) X("hdf5_data", HDF5_DATA) X("hdf5_output", HDF5_OUTPUT)
                X("images", IMAGE_DATA) X("infogain_loss", INFOGAIN_LOSS)
                    X("innerproduct", INNER_PRODUCT) X("lrn", LRN)
                        X("multinomial_logistic_loss", MULTINOMIAL_LOGISTIC_LOSS) X("pool", POOLING)
                            X("relu", RELU) X("sigmoid", SIGMOID) X("softmax", SOFTMAX)
                                X("softmax_loss", SOFTMAX_LOSS) X("split", SPLIT) X("tanh", TANH)
                                    X("window_data", WINDOW_DATA)
#undef X
};

/* Returns a new message, owned by the net and released with it; NULL: out of memory. */
static void *made(const ProtobufCMessageDescriptor *desc) {
    ProtobufCMessage *m = (ProtobufCMessage *)imp_host->alloc(desc->sizeof_message);
    if (m) desc->message_init(m);
    return m;
}

/* *list: a list of one number, from the host's alloc; *n: 1. 0: out of memory. */
static int one(uint32_t **list, size_t *n, uint32_t value) {
    if (!(*list = (uint32_t *)imp_host->alloc(sizeof value))) return 0;
    **list = value;
    *n = 1;
    return 1;
}

/* Copies the parameters of a convolution from `o` to l->convolution_param. 0: out of memory. */
static int convolution(Caffe__V1LayerParameter *l, const Caffe__V0LayerParameter *o) {
    Caffe__ConvolutionParameter *p = l->convolution_param =
        (Caffe__ConvolutionParameter *)made(&caffe__convolution_parameter__descriptor);
    if (!p) return 0;
    p->num_output = o->num_output;
    p->bias_term = o->biasterm;
    p->group = o->group;
    return one(&p->kernel_size, &p->n_kernel_size, o->kernelsize) &&
           one(&p->stride, &p->n_stride, o->stride) && one(&p->pad, &p->n_pad, o->pad);
}

/* Copies the parameters of a layer of the oldest form. 0: out of memory. */
static int parameters(Caffe__V1LayerParameter *l, const Caffe__V0LayerParameter *o) {
    const char *type = o->type ? o->type : "";
    if (strcmp(type, "conv") == 0) return convolution(l, o);
    if (strcmp(type, "innerproduct") == 0) {
        Caffe__InnerProductParameter *p = l->inner_product_param =
            (Caffe__InnerProductParameter *)made(&caffe__inner_product_parameter__descriptor);
        if (p) p->num_output = o->num_output, p->bias_term = o->biasterm;
        return p != NULL;
    }
    if (strcmp(type, "pool") == 0) {
        Caffe__PoolingParameter *p = l->pooling_param =
            (Caffe__PoolingParameter *)made(&caffe__pooling_parameter__descriptor);
        if (!p) return 0;
        p->pool = (Caffe__PoolingParameter__PoolMethod)o->pool;
        p->has_kernel_size = p->has_stride = p->has_pad = 1;
        p->kernel_size = o->kernelsize, p->stride = o->stride, p->pad = o->pad;
        return 1;
    }
    if (strcmp(type, "lrn") == 0) {
        Caffe__LRNParameter *p = l->lrn_param =
            (Caffe__LRNParameter *)made(&caffe__lrnparameter__descriptor);
        if (p) p->local_size = o->local_size, p->alpha = o->alpha, p->beta = o->beta, p->k = o->k;
        return p != NULL;
    }
    if (strcmp(type, "concat") == 0 && o->has_concat_dim) {
        Caffe__ConcatParameter *p = l->concat_param =
            (Caffe__ConcatParameter *)made(&caffe__concat_parameter__descriptor);
        if (p) p->has_concat_dim = 1, p->concat_dim = o->concat_dim;
        return p != NULL;
    }
    return 1;
}

/* Brings a layer of the oldest form into the next. 0: out of memory. */
static int upgrade(Caffe__V1LayerParameter *l) {
    Caffe__V0LayerParameter *o = l->layer;
    for (size_t i = 0; o->type && i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, o->type) == 0) l->has_type = 1, l->type = types[i].type;
    if (!l->name) l->name = o->name, o->name = NULL;
    if (l->n_blobs == 0) {
        l->blobs = o->blobs, l->n_blobs = o->n_blobs;
        o->blobs = NULL, o->n_blobs = 0;
    }
    if ((o->has_scale || o->has_cropsize) && !l->transform_param) {
        Caffe__TransformationParameter *p = l->transform_param =
            (Caffe__TransformationParameter *)made(&caffe__transformation_parameter__descriptor);
        if (!p) return 0;
        p->has_scale = o->has_scale, p->scale = o->scale;
        p->has_crop_size = o->has_cropsize, p->crop_size = o->cropsize;
    }
    return parameters(l, o);
}

int caffe_is_padding(const Caffe__V1LayerParameter *l) {
    return l->layer && l->layer->type && strcmp(l->layer->type, "padding") == 0 &&
           l->n_bottom == 1 && l->n_top == 1;
}

/* A separate layer did the padding. Its reader takes over the padding and its input. The two names
 * are swapped, so that each is still released once. */
static void skip_padding(const Caffe__NetParameter *net, size_t at) {
    Caffe__V1LayerParameter *l = net->layers[at];
    for (size_t k = at; l->layer && l->n_bottom == 1 && k-- > 0;) {
        Caffe__V1LayerParameter *from = net->layers[k];
        if (from->n_top != 1 || strcmp(from->top[0], l->bottom[0]) != 0) continue;
        if (!caffe_is_padding(from)) return;
        char *name = l->bottom[0];
        l->bottom[0] = from->bottom[0];
        from->bottom[0] = name;
        l->layer->pad = from->layer->pad;
        return;
    }
}

int caffe_upgrade_v0(const Caffe__NetParameter *net) {
    for (size_t i = 0; i < net->n_layers; i++) skip_padding(net, i);
    for (size_t i = 0; i < net->n_layers; i++)
        if (net->layers[i]->layer && !upgrade(net->layers[i])) return 0;
    return 1;
}
