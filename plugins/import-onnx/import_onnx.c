/* Imports ONNX models, and single TensorProto files as in test vectors. */
#include "onnx.h"

#include <stdio.h>

ProtobufCAllocator onnx_allocator = {imp_library_alloc, imp_library_free, NULL};

/* ---- telling a model from a tensor by the first fields ---- */

/* What a file holds. */
typedef enum kind { NEITHER, MODEL, TENSOR } kind;

/* Whether bytes are a model, a tensor, or neither. */
static kind kind_of(const uint8_t *at, size_t n) {
    size_t i = 0;
    /* count of field 1: repeated dims in TensorProto, but a single version in ModelProto */
    int varints = 0;
    for (int fields = 0; fields < 12 && i < n; fields++) {
        const unsigned field = at[i] >> 3, wire = at[i] & 7;
        if (at[i] & 0x80) return NEITHER;
        i++;
        uint64_t value = 0;
        if (wire == 0 || wire == 2)
            for (int shift = 0; i < n && shift < 64; shift += 7) {
                value |= (uint64_t)(at[i] & 0x7f) << shift;
                if (!(at[i++] & 0x80)) break;
            }
        if (field == 1 && wire == 0) varints++;
        else if (field == 2 && wire == 0)
            return onnx_dtype_name((int32_t)value)[0] ? TENSOR : NEITHER;
        else if (field == 1 && wire == 2 && value < 64) varints++; /* packed dims */
        else if (varints == 1 && wire == 2 &&
                 (field == 2 || field == 3 || field == 4 || field == 6 || field == 7 || field == 8))
            return MODEL;
        else if (varints == 0 && wire == 2 && (field == 7 || field == 8)) return MODEL;
        else if (!(varints == 1 && wire == 0 && field == 5)) return NEITHER;
        if (wire == 2) i += value < n ? (size_t)value : n;
    }
    return NEITHER;
}

/* ---- the graph ---- */

/* Adds an initializer of the model as a constant, under its name. */
static void add_initializer(onnx_net *net, const Onnx__TensorProto *p) {
    cnr_error err = CNR_ERROR_INIT;
    const char *name = p->name ? p->name : "";
    cnr_value v = -1;
    const cnr_status status =
        onnx_tensor_constant(p, net->imp.graph, net->imp.path, name, &v, &err);
    if (status == CNR_E_MEMORY) net->imp.status = status;
    else if (status)
        imp_host->graph_problem(net->imp.graph, net->imp.path, "initializer %s: %s", name,
                                err.text);
    if (onnx_names_set(&net->values, name, v)) net->imp.status = CNR_E_MEMORY;
}

/* Adds an input, unless it is a constant. */
static void add_input(onnx_net *net, const Onnx__ValueInfoProto *info) {
    cnr_tensor t = {.size = sizeof t};
    cnr_value v = -1;
    const char *name = info->name ? info->name : "";
    /* an initializer that is also listed as an input */
    if (onnx_names_get(&net->values, name, &v)) return;
    const Onnx__TensorType *type = info->type ? info->type->tensor_type : NULL;
    t.dtype = type ? onnx_dtype(type->elem_type) : 0;
    if (!t.dtype || (type->shape && type->shape->n_dim > CNR_MAX_RANK)) {
        imp_host->graph_problem(net->imp.graph, net->imp.path, "input %s: %s is not supported",
                                name,
                                !type      ? "a type that is no tensor"
                                : !t.dtype ? onnx_dtype_name(type->elem_type)
                                           : "a rank over 8");
    } else {
        t.rank = type->shape ? (int32_t)type->shape->n_dim : 0;
        for (int32_t i = 0; i < t.rank; i++) {
            const Onnx__Dimension *d = type->shape->dim[i];
            char own[300];
            snprintf(own, sizeof own, "%.250s_dim%d", name, (int)i);
            const char *symbol = d->dim_param && *d->dim_param ? d->dim_param : own;
            t.dim[i] = d->dim_value;
            if (!d->has_dim_value || d->dim_value < 0 || (d->dim_param && *d->dim_param)) {
                const int32_t k = imp_host->graph_symbol(net->imp.graph, symbol);
                t.dim[i] = k < 0 ? CNR_DIM_UNKNOWN : CNR_DIM_SYMBOL(k);
            }
        }
        v = imp_host->graph_input(net->imp.graph, name, &t);
    }
    if (onnx_names_set(&net->values, name, v)) net->imp.status = CNR_E_MEMORY;
}

void onnx_initializers(onnx_net *net, const Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_initializer && !net->imp.status; i++)
        add_initializer(net, g->initializer[i]);
}

void onnx_nodes(onnx_net *net, const Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_node && !net->imp.status; i++) onnx_node(net, g->node[i]);
}

/* Converts a graph: initializers, inputs, nodes, outputs; problems go to net. */
static void build(onnx_net *net, const Onnx__GraphProto *g) {
    onnx_initializers(net, g);
    for (size_t i = 0; i < g->n_input && !net->imp.status; i++) add_input(net, g->input[i]);
    onnx_nodes(net, g);
    for (size_t i = 0; i < g->n_output && !net->imp.status; i++) {
        const char *name = g->output[i]->name ? g->output[i]->name : "";
        cnr_value v = -1;
        if (!onnx_names_get(&net->values, name, &v))
            imp_host->graph_problem(net->imp.graph, net->imp.path, "output %s: no node gives it",
                                    name);
        else if (v >= 0) net->imp.status = imp_host->graph_output(net->imp.graph, v, name);
    }
}

/* Keeps the model's properties (names of classes and others) as metadata "onnx.KEY". */
static void keep_properties(onnx_net *net, const Onnx__ModelProto *model) {
    char key[128];
    for (size_t i = 0; i < model->n_metadata_props && !net->imp.status; i++) {
        const Onnx__StringStringEntryProto *p = model->metadata_props[i];
        if (!p->key || !p->value || strlen(p->key) > 100) continue;
        snprintf(key, sizeof key, "onnx.%s", p->key);
        imp_meta(&net->imp, key, p->value);
    }
}

int32_t onnx_opset(const onnx_net *net, const char *domain) {
    for (size_t i = 0; net->model && i < net->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *set = net->model->opset_import[i];
        if (strcmp(set->domain ? set->domain : "", domain) == 0) return (int32_t)set->version;
    }
    return 0;
}

/* Where a model has raw data. */
enum { IN_MODEL = 1, IN_GRAPH, IN_NODE, IN_ATTRIBUTE, IN_TENSOR };
static const imp_thin_row thin_rows[] = {
    {IN_MODEL, 7, IN_GRAPH},       {IN_GRAPH, 1, IN_NODE},
    {IN_GRAPH, 5, IN_TENSOR},      {IN_NODE, 5, IN_ATTRIBUTE},
    {IN_ATTRIBUTE, 5, IN_TENSOR},  {IN_ATTRIBUTE, 6, IN_GRAPH},
    {IN_TENSOR, 9, IMP_THIN_BULK}, {0},
};

/* Imports a model, whose weights are read one by one. */
static cnr_status import_model(const char *path, struct cnr_graph *graph, cnr_error *err) {
    uint8_t *data;
    size_t bytes;
    const cnr_status status = imp_read_thin(path, thin_rows, &data, &bytes, err);
    if (status) return status;
    Onnx__ModelProto *model = onnx__model_proto__unpack(&onnx_allocator, bytes, data);
    imp_host->free(data);
    if (!model || !model->graph) {
        if (model) onnx__model_proto__free_unpacked(model, &onnx_allocator);
        return imp_host->fail(err, CNR_E_FORMAT, path,
                              "is no ONNX model: the protobuf message is damaged or has no graph");
    }
    onnx_net net = {.imp = {.graph = graph, .path = path}, .opset = 1, .model = model};
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const char *domain = model->opset_import[i]->domain;
        if (!domain || !*domain || strcmp(domain, "ai.onnx") == 0)
            net.opset = model->opset_import[i]->version;
    }
    keep_properties(&net, model);
    if (!net.imp.status) build(&net, model->graph);
    if (net.imp.status)
        imp_host->fail(err, net.imp.status, path,
                       net.imp.status == CNR_E_MEMORY ? "out of memory"
                                                      : "the graph is not usable");
    imp_host->map_free(net.values);
    imp_host->map_free(net.nodes);
    imp_pool_free(&net.pool);
    onnx_branches_free(&net);
    onnx__model_proto__free_unpacked(model, &onnx_allocator);
    return net.imp.status;
}

/* Imports a single tensor: a graph with one constant as its output. */
static cnr_status import_tensor(const char *path, struct cnr_graph *graph, cnr_error *err) {
    uint8_t *data;
    size_t bytes;
    cnr_status status = imp_read_file(path, &data, &bytes, err);
    if (status) return status;
    Onnx__TensorProto *p = onnx__tensor_proto__unpack(&onnx_allocator, bytes, data);
    cnr_tensor t;
    imp_host->free(data);
    if (!p) return imp_host->fail(err, CNR_E_FORMAT, path, "is no TensorProto");
    const char *name = p->name && *p->name ? p->name : "tensor";
    void *made;
    status = onnx_tensor(p, path, path, &t, &made, err);
    if (!status)
        status = imp_host->graph_output(graph, imp_host->graph_constant(graph, name, &t), name);
    imp_host->free(made);
    onnx__tensor_proto__free_unpacked(p, &onnx_allocator);
    return status;
}

/* Imports a model or a single tensor. */
static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    uint8_t head[IMP_HEAD];
    size_t n = 0;
    const char *path = args->paths[0];
    if (args->n_paths > 1)
        return imp_host->fail(err, CNR_E_ARG, args->paths[1], "an ONNX model is one file");
    const cnr_status status = imp_read_head(path, head, &n, err);
    if (status) return status;
    const kind what = kind_of(head, n);
    if (onnx_other(path) && what == NEITHER)
        return imp_host->fail(err, CNR_E_UNSUPPORTED, path, "%s", onnx_other(path));
    return what == TENSOR ? import_tensor(path, graph, err) : import_model(path, graph, err);
}

/* How surely a file is ONNX, 0 to 100. */
static int32_t accepts(const char *path, const uint8_t *head, size_t bytes) {
    if (imp_ends_with(path, ".onnx")) return 90;
    return kind_of(head, bytes) != NEITHER ? 40 : onnx_other(path) ? 1 : 0;
}

static const char *const preset_rows[] =
    {"torchvision channels=rgb mean=123.675,116.28,103.53 std=58.395,57.12,57.375 scale=1", NULL};

static const char *const option_rows[] = {NULL};

static const cnr_importer importer = {
    .size = sizeof importer,
    .name = "onnx",
    .summary = "ONNX: MODEL.onnx, operator set 1 upward, external data beside it",
    .accepts = accepts,
    .import = import,
    .options = option_rows,
    .presets = preset_rows,
};

/* Registers importer and exporter, and keeps the host. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    static const cnr_item items[] = {{CNR_KIND_IMPORTER, &importer},
                                     {CNR_KIND_EXPORTER, &onnx_exporter}};
    (void)err;
    imp_host = host;
    return cnr_add_all(host, registrar, items, CNR_ROWS(items));
}

CNR_PLUGIN("import-onnx", "1.0", "reads and writes ONNX models", "MIT", init, CNR_TOUCHES_FILES)
