/* Imports Caffe: a prototxt (text) with a caffemodel (binary), or either alone. */
#include "caffe.h"

#include <stdio.h>

ProtobufCAllocator caffe_allocator = {imp_library_alloc, imp_library_free, NULL};

/* ---- files ---- */

/* Where a net has blobs: layers of three generations. */
enum { IN_NET = 1, IN_LAYER, IN_V1, IN_V0, IN_BLOB };
static const imp_thin_row thin_rows[] = {
    {IN_NET, 100, IN_LAYER}, {IN_NET, 2, IN_V1},   {IN_LAYER, 7, IN_BLOB},      {IN_V1, 1, IN_V0},
    {IN_V1, 6, IN_BLOB},     {IN_V0, 50, IN_BLOB}, {IN_BLOB, 5, IMP_THIN_BULK}, {0},
};

/* Reads a net, as text or protobuf. The caller frees *out. */
static cnr_status read_net(const char *path, Caffe__NetParameter **out, cnr_error *err) {
    uint8_t *data, head[IMP_HEAD];
    size_t bytes;
    *out = NULL;
    cnr_status status = imp_read_head(path, head, &bytes, err);
    if (status) return status;
    const int text = imp_is_text(head, bytes);
    status = text ? imp_read_file(path, &data, &bytes, err)
                  : imp_read_thin(path, thin_rows, &data, &bytes, err);
    if (status) return status;
    if (text) {
        *out = (Caffe__NetParameter *)caffe_parse_text(&caffe__net_parameter__descriptor, path,
                                                       (const char *)data, err);
        if (!*out) status = (cnr_status)(err ? err->code : CNR_E_FORMAT);
    } else {
        *out = caffe__net_parameter__unpack(&caffe_allocator, bytes, data);
        if (!*out)
            status = imp_host->fail(err, CNR_E_FORMAT, path,
                                    "is no caffemodel: the protobuf message is damaged or too "
                                    "large for memory");
    }
    imp_host->free(data);
    if (*out && !caffe_upgrade_v0(*out))
        status = imp_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    return status;
}

/* ---- blobs ---- */

int caffe_blob_place(const Caffe__BlobProto *blob, imp_place *out) {
    if (!blob->has_place || blob->place.len != sizeof *out) return 0;
    memcpy(out, blob->place.data, sizeof *out);
    return 1;
}

int64_t caffe_blob_count(const Caffe__BlobProto *blob) {
    imp_place place;
    if (!caffe_blob_place(blob, &place))
        return (int64_t)(blob->n_data ? blob->n_data : blob->n_double_data);
    return place.bytes % sizeof(float) ? -1 : (int64_t)(place.bytes / sizeof(float));
}

float caffe_blob_at(const Caffe__BlobProto *blob, int64_t i) {
    if (blob->n_data) return blob->data[i];
    return blob->n_double_data ? (float)blob->double_data[i] : 0;
}

int32_t caffe_blob_dims(const Caffe__BlobProto *blob, int64_t dim[CNR_MAX_RANK]) {
    int32_t rank = 0;
    if (blob->shape) {
        if (blob->shape->n_dim > CNR_MAX_RANK) return -1;
        for (size_t i = 0; i < blob->shape->n_dim; i++) dim[rank++] = blob->shape->dim[i];
    } else {
        const int64_t legacy[] = {blob->num, blob->channels, blob->height, blob->width};
        for (int i = 0; i < 4; i++) dim[rank++] = legacy[i];
    }
    return imp_count(dim, rank) == caffe_blob_count(blob) ? rank : -1;
}

/* ---- names ---- */

void caffe_bind(caffe_net *net, const char *name, cnr_value value) {
    if (!imp_grow((void **)&net->bindings, net->n_bindings, &net->room, sizeof net->bindings[0])) {
        net->b.status = CNR_E_MEMORY;
        return;
    }
    net->bindings[net->n_bindings++] = (struct caffe_binding){name, value, 0};
}

cnr_value caffe_bound(caffe_net *net, const char *name, const char *layer) {
    for (int32_t i = net->n_bindings - 1; i >= 0; i--)
        if (strcmp(net->bindings[i].name, name) == 0) {
            net->bindings[i].used = 1;
            return net->bindings[i].value;
        }
    imp_host->graph_problem(net->b.graph, net->b.path,
                            "layer %s reads \"%s\", which no layer gives", layer, name);
    return -1;
}

/* ---- structure ---- */

static const char *const v1_types[] = {
    "",
    "Accuracy",
    "BNLL",
    "Concat",
    "Convolution",
    "Data",
    "Dropout",
    "EuclideanLoss",
    "Flatten",
    "HDF5Data",
    "HDF5Output",
    "Im2col",
    "ImageData",
    "InfogainLoss",
    "InnerProduct",
    "LRN",
    "MultinomialLogisticLoss",
    "Pooling",
    "ReLU",
    "Sigmoid",
    "Softmax",
    "SoftmaxWithLoss",
    "Split",
    "TanH",
    "WindowData",
    "Eltwise",
    "Power",
    "SigmoidCrossEntropyLoss",
    "HingeLoss",
    "MemoryData",
    "ArgMax",
    "Threshold",
    "DummyData",
    "Slice",
    "MVN",
    "AbsVal",
    "Silence",
    "ContrastiveLoss",
    "Exp",
    "Deconvolution",
};

/* Returns a V1 layer in the form of a current one, which shares its memory. */
static Caffe__LayerParameter from_v1(const Caffe__V1LayerParameter *old) {
    Caffe__LayerParameter layer = CAFFE__LAYER_PARAMETER__INIT;
    const size_t type = old->has_type ? (size_t)old->type : 0;
    layer.name = old->name;
    layer.type = (char *)(type < sizeof v1_types / sizeof v1_types[0] ? v1_types[type] : "");
    layer.n_bottom = old->n_bottom;
    layer.bottom = old->bottom;
    layer.n_top = old->n_top;
    layer.top = old->top;
    layer.n_blobs = old->n_blobs;
    layer.blobs = old->blobs;
    layer.n_include = old->n_include;
    layer.include = old->include;
    layer.n_exclude = old->n_exclude;
    layer.exclude = old->exclude;
    layer.transform_param = old->transform_param;
    layer.argmax_param = old->argmax_param;
    layer.concat_param = old->concat_param;
    layer.convolution_param = old->convolution_param;
    layer.eltwise_param = old->eltwise_param;
    layer.exp_param = old->exp_param;
    layer.inner_product_param = old->inner_product_param;
    layer.lrn_param = old->lrn_param;
    layer.memory_data_param = old->memory_data_param;
    layer.mvn_param = old->mvn_param;
    layer.pooling_param = old->pooling_param;
    layer.power_param = old->power_param;
    layer.relu_param = old->relu_param;
    layer.slice_param = old->slice_param;
    layer.softmax_param = old->softmax_param;
    layer.threshold_param = old->threshold_param;
    return layer;
}

/* Number of layers, of the new or old kind. */
static size_t layer_count(const Caffe__NetParameter *net) {
    return net->n_layer ? net->n_layer : net->n_layers;
}
/* Returns layer i, an old one in the current form; it shares the net's memory. */
static Caffe__LayerParameter layer_at(const Caffe__NetParameter *net, size_t i) {
    return net->n_layer ? *net->layer[i] : from_v1(net->layers[i]);
}
static const char *text_of(const char *text) { return text ? text : ""; }

/* Whether the layer is part of the test phase with no stage set. */
static int is_included(const Caffe__LayerParameter *layer) {
    for (size_t i = 0; i < layer->n_exclude; i++)
        if (layer->exclude[i]->n_stage == 0 &&
            (!layer->exclude[i]->has_phase || layer->exclude[i]->phase == CAFFE__PHASE__TEST))
            return 0;
    if (layer->n_include == 0) return !(layer->has_phase && layer->phase == CAFFE__PHASE__TRAIN);
    for (size_t i = 0; i < layer->n_include; i++)
        if (layer->include[i]->n_stage == 0 &&
            (!layer->include[i]->has_phase || layer->include[i]->phase == CAFFE__PHASE__TEST))
            return 1;
    return 0;
}

/* The blobs of the layer of that name in the weights, else NULL; *n: how many. Files keep the order
 * of the layers, so the search starts after the last match, *next. */
static Caffe__BlobProto **blobs_for(const Caffe__NetParameter *weights, const char *name,
                                    size_t *next, size_t *n) {
    const size_t count = weights ? layer_count(weights) : 0;
    for (size_t k = 0; k < count; k++) {
        const size_t i = (*next + k) % count;
        const char *other = weights->n_layer ? weights->layer[i]->name : weights->layers[i]->name;
        if (strcmp(text_of(other), name) != 0) continue;
        *next = i + 1;
        *n = weights->n_layer ? weights->layer[i]->n_blobs : weights->layers[i]->n_blobs;
        return weights->n_layer ? weights->layer[i]->blobs : weights->layers[i]->blobs;
    }
    *n = 0;
    return NULL;
}

/* ---- inputs and preprocessing ---- */

/* Adds an input. With open_size, inputs with as many samples as the first share its open batch;
 * others get an open size of their own. */
static void add_input(caffe_net *net, const char *name, const int64_t *dim, int32_t rank,
                      int open_size) {
    for (int32_t i = 0; i < rank; i++)
        if (dim[i] < 1)
            imp_host->graph_problem(net->b.graph, net->b.path, "input %s: dimension %d is %lld",
                                    name, (int)i, (long long)dim[i]);
    if (rank == 4 && dim[1] == 3)
        imp_input_meta(&net->b, name, "channels", "bgr"); /* Caffe's channel order */
    if (net->first_rank == 0) net->first_rank = rank, net->first_count = dim[0];
    if (rank == net->first_rank && dim[0] == net->first_count) {
        caffe_bind(net, name, imp_input(&net->b, name, dim + 1, rank - 1, open_size));
        return;
    }
    /* not a picture, e.g. regions */
    cnr_tensor type = {.size = sizeof type, .dtype = CNR_f32, .rank = rank};
    memcpy(type.dim, dim, (size_t)rank * sizeof dim[0]);
    const int32_t symbol = imp_host->graph_symbol(net->b.graph, name);
    char key[300], text[32];
    snprintf(key, sizeof key, "symbol.%.200s.default", name);
    snprintf(text, sizeof text, "%lld", (long long)dim[0]);
    imp_meta(&net->b, key, text);
    type.dim[0] = symbol < 0 ? CNR_DIM_UNKNOWN : CNR_DIM_SYMBOL(symbol);
    caffe_bind(net, name, imp_host->graph_input(net->b.graph, name, &type));
}

/* Reads a mean image (BlobProto) into the input's mean: C H W numbers. */
static void mean_image(caffe_net *net, const char *input, const char *path, cnr_error *err) {
    uint8_t *data = NULL;
    size_t bytes = 0;
    net->b.status = imp_read_file(path, &data, &bytes, err);
    if (net->b.status) return;
    Caffe__BlobProto *blob = caffe__blob_proto__unpack(&caffe_allocator, bytes, data);
    imp_host->free(data);
    const int64_t n = blob ? caffe_blob_count(blob) : 0;
    float *values =
        n > 0 && n < 1 << 24 ? (float *)imp_host->alloc((size_t)n * sizeof *values) : NULL;
    if (!values) {
        net->b.status = imp_host->fail(err, CNR_E_FORMAT, path, "is no mean image (BlobProto)");
    } else {
        for (int64_t i = 0; i < n; i++) values[i] = caffe_blob_at(blob, i);
        imp_input_mean(&net->b, input, values, n);
        imp_host->free(values);
    }
    if (blob) caffe__blob_proto__free_unpacked(blob, &caffe_allocator);
}

/* Turns the transformation of a data layer into preprocessing. */
static void transform(caffe_net *net, const char *input, const Caffe__TransformationParameter *t) {
    char text[256] = "";
    if (!t) return;
    if (t->has_scale) {
        imp_host->print_number(text, sizeof text, CNR_f32, (double)t->scale);
        imp_input_meta(&net->b, input, "scale", text);
    }
    size_t at = 0;
    for (size_t i = 0; i < t->n_mean_value && i < 4; i++) {
        if (i) text[at++] = ',';
        imp_host->print_number(text + at, 24, CNR_f32, (double)t->mean_value[i]);
        at += strlen(text + at);
    }
    if (t->n_mean_value) imp_input_meta(&net->b, input, "mean", text);
    if (t->mean_file)
        imp_host->log(CNR_LOG_WARN, "import-caffe",
                      "the net wants the mean image %s: give it with --mean FILE", t->mean_file);
}

/* 1 for layers that bring data. */
static int is_data(const char *type) {
    static const char *const kinds[] = {"Input",    "Data",      "ImageData",  "MemoryData",
                                        "HDF5Data", "DummyData", "WindowData", "AnnotatedData"};
    return imp_is_one_of(type, kinds, CNR_ROWS(kinds));
}

/* Adds the inputs of a data layer, by its shapes or the option; open_size: any height and width. */
static void input_layer(caffe_net *net, const Caffe__LayerParameter *layer, int open_size) {
    const size_t n = layer->input_param ? layer->input_param->n_shape : 0;
    for (size_t i = 0; i < layer->n_top; i++) {
        const Caffe__BlobShape *shape = n ? layer->input_param->shape[i < n ? i : n - 1] : NULL;
        if (!shape || shape->n_dim < 1 || shape->n_dim > CNR_MAX_RANK) {
            imp_host->graph_problem(net->b.graph, net->b.path,
                                    "layer %s: input_param.shape is missing or too long",
                                    text_of(layer->name));
            caffe_bind(net, layer->top[i], -1);
            continue;
        }
        add_input(net, layer->top[i], shape->dim, (int32_t)shape->n_dim, open_size);
        transform(net, layer->top[i], layer->transform_param);
    }
}

/* Makes the first top of a layer that reads pictures an input (open_size: with an open batch); its
 * labels are dropped. */
static void data_layer(caffe_net *net, const Caffe__LayerParameter *layer,
                       const cnr_import_args *args, int open_size) {
    const Caffe__MemoryDataParameter *memory = layer->memory_data_param;
    const int64_t crop = layer->transform_param ? layer->transform_param->crop_size : 0;
    int64_t dim[CNR_MAX_RANK + 1] = {1, 3, crop, crop};
    int32_t rank = imp_shape(imp_option(args, "shape"), dim + 1) + 1;
    if (layer->n_top < 1) return;
    if (rank == 5) { /* the batch size is given too */
        memmove(dim, dim + 1, 4 * sizeof dim[0]);
        rank = 4;
    } else if (rank == 1 && memory) {
        dim[1] = memory->channels, dim[2] = memory->height, dim[3] = memory->width;
        rank = 4;
    } else if (rank == 1 && crop > 0) {
        rank = 4;
    }
    if (rank < 2 || rank > CNR_MAX_RANK) {
        imp_host->graph_problem(net->b.graph, net->b.path,
                                "layer %s (%s) does not say how large its pictures are: give "
                                "--option shape=CHANNELS,HEIGHT,WIDTH",
                                text_of(layer->name), layer->type);
        caffe_bind(net, layer->top[0], -1);
        return;
    }
    add_input(net, layer->top[0], dim, rank, open_size);
    transform(net, layer->top[0], layer->transform_param);
}

/* Adds the inputs that the head of the file names; open_size: with an open batch. */
static void header_inputs(caffe_net *net, const Caffe__NetParameter *model, int open_size) {
    for (size_t i = 0; i < model->n_input; i++) {
        if (i < model->n_input_shape && model->input_shape[i]->n_dim <= CNR_MAX_RANK) {
            const Caffe__BlobShape *shape = model->input_shape[i];
            add_input(net, model->input[i], shape->dim, (int32_t)shape->n_dim, open_size);
        } else if (model->n_input_dim >= 4 * (i + 1)) {
            int64_t dim[4];
            for (int k = 0; k < 4; k++) dim[k] = model->input_dim[4 * i + (size_t)k];
            add_input(net, model->input[i], dim, 4, open_size);
        } else {
            imp_host->graph_problem(net->b.graph, net->b.path,
                                    "input %s has neither input_shape nor four input_dim",
                                    model->input[i]);
            caffe_bind(net, model->input[i], -1);
        }
    }
}

/* ---- building the net ---- */

/* Converts all layers of the model with the weights, and adds inputs and outputs; problems go to
 * the graph. */
static void build(caffe_net *net, const Caffe__NetParameter *model, const cnr_import_args *args) {
    const size_t n = layer_count(model);
    size_t next = 0;
    int open_size = 1, tested = model->n_input > 0, inputs = tested;
    for (size_t i = 0; i < n; i++) {
        const Caffe__LayerParameter layer = layer_at(model, i);
        if (!is_included(&layer)) continue;
        open_size = open_size && caffe_layer_is_convolutional(&layer);
        tested = tested || is_data(text_of(layer.type));
    }
    header_inputs(net, model, open_size);
    for (size_t i = 0; i < n && !net->b.status; i++) {
        const Caffe__LayerParameter layer = layer_at(model, i);
        const char *type = text_of(layer.type);
        const int data = is_data(type);
        if (caffe_layer_is_skipped(type) || (!model->n_layer && caffe_is_padding(model->layers[i])))
            continue;
        /* without a test phase, the training phase's data layer counts */
        if (!is_included(&layer) && !(data && !tested)) continue;
        if (data) {
            inputs = 1;
            if (strcmp(type, "Input") == 0) input_layer(net, &layer, open_size);
            else data_layer(net, &layer, args, open_size);
            continue;
        }
        size_t n_blobs;
        Caffe__BlobProto **blobs = blobs_for(net->weights, text_of(layer.name), &next, &n_blobs);
        net->blobs_path = blobs ? net->weights_path : net->b.path;
        if (!blobs) blobs = layer.blobs, n_blobs = layer.n_blobs;
        caffe_layer(net, &layer, blobs, n_blobs);
    }
    if (n == 0)
        imp_host->graph_problem(net->b.graph, net->b.path,
                                "it has no layers: the net's own prototxt is wanted, not the "
                                "solver's");
    else if (!inputs)
        imp_host->graph_problem(net->b.graph, net->b.path,
                                "the net has no input (give the prototxt before the caffemodel)");
    /* Outputs: values that no layer reads; of each name only the last binding. */
    for (int32_t i = 0; i < net->n_bindings && !net->b.status; i++) {
        int shadowed = net->bindings[i].used || net->bindings[i].value < 0;
        for (int32_t k = i + 1; k < net->n_bindings; k++)
            shadowed |= strcmp(net->bindings[k].name, net->bindings[i].name) == 0;
        if (!shadowed)
            net->b.status =
                imp_host->graph_output(net->b.graph, net->bindings[i].value, net->bindings[i].name);
    }
}

/* Imports a net from its text and weights. */
static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    Caffe__NetParameter *model = NULL, *weights = NULL;
    cnr_status status = read_net(args->paths[0], &model, err);
    if (!status && args->n_paths > 1) status = read_net(args->paths[1], &weights, err);
    if (!status && args->n_paths > 2)
        status = imp_host->fail(err, CNR_E_ARG, args->paths[2],
                                "one prototxt and one caffemodel are wanted");
    if (!status) {
        caffe_net net = {.b = {graph, args->paths[0], CNR_OK},
                         .weights = weights,
                         .weights_path = args->paths[args->n_paths - 1]};
        build(&net, model, args);
        const char *mean = imp_option(args, "mean_file");
        if (!net.b.status && mean && imp_host->graph_input_count(graph) > 0)
            mean_image(&net, imp_host->graph_value_name(graph, imp_host->graph_input_at(graph, 0)),
                       mean, err);
        status = net.b.status;
        if (status == CNR_E_MEMORY)
            imp_host->fail(err, CNR_E_MEMORY, args->paths[0], "out of memory");
        imp_host->free(net.bindings);
    }
    if (model) caffe__net_parameter__free_unpacked(model, &caffe_allocator);
    if (weights) caffe__net_parameter__free_unpacked(weights, &caffe_allocator);
    return status;
}

/* How surely a file is Caffe's, 0 to 100. */
static int32_t accepts(const char *path, const uint8_t *head, size_t bytes) {
    if (imp_ends_with(path, ".prototxt") || imp_ends_with(path, ".caffemodel")) return 80;
    if (!imp_is_text(head, bytes)) return 0;
    /* Whether the text has a layer or an input as Caffe writes them. */
    char text[4097];
    const size_t k = bytes < sizeof text - 1 ? bytes : sizeof text - 1;
    memcpy(text, head, k);
    text[k] = 0;
    return strstr(text, "layer {") || strstr(text, "layers {") || strstr(text, "input_dim:") ? 60
                                                                                             : 0;
}

static const char *const preset_rows[] =
    {"caffe channels=bgr mean=103.939,116.779,123.68 std=1 scale=1", NULL};

static const char *const option_rows[] =
    {"shape=C,H,W the input's size, where the file leaves it open",
     "mean_file=FILE a mean picture, .binaryproto", NULL};

static const cnr_importer importer = {
    .size = sizeof importer,
    .name = "caffe",
    .summary = "Caffe: NET.prototxt WEIGHTS.caffemodel (V1 and V2 layers, SSD's too)",
    .accepts = accepts,
    .import = import,
    .options = option_rows,
    .presets = preset_rows,
};

IMP_PLUGIN("import-caffe", "1.0", "reads Caffe models", importer)
