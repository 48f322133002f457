/* Writes graphs as ONNX files of operator set 21. */
#include "export.h"

enum { OPSET = 21, IR_VERSION = 10 };

/* Writes a node of the graph. */
static void write_node(out_writer *w, int32_t index) {
    const cnr_value *in, *out;
    const cnr_node *n = imp_host->graph_node_at(w->graph, index, &in, &out);
    out_job *j = (out_job *)out_make(w, sizeof *j);
    if (!j) return;
    j->w = w;
    j->node = n;
    if (n->n_inputs > OUT_MAX_PORTS || n->n_outputs > OUT_MAX_PORTS)
        return out_unsupported(w, n, "too many inputs");
    for (j->n_in = 0; j->n_in < n->n_inputs; j->n_in++)
        j->in[j->n_in] = in[j->n_in] < 0 ? "" : imp_host->graph_value_name(w->graph, in[j->n_in]);
    for (j->n_out = 0; j->n_out < n->n_outputs; j->n_out++)
        j->out[j->n_out] = imp_host->graph_value_name(w->graph, out[j->n_out]);
    if (!out_own(j) && !out_quantized(j) && !out_row(j) && !out_plugin_row(j))
        out_unsupported(w, n, "ONNX has no operator for it that this exporter knows");
}

void out_use_domain(out_writer *w, const char *domain, int32_t version) {
    for (size_t i = 0; i < w->n_sets; i++)
        if (strcmp(w->sets[i]->domain, domain) == 0) {
            if (version > w->sets[i]->version) w->sets[i]->version = version;
            return;
        }
    Onnx__OperatorSetIdProto *set = (Onnx__OperatorSetIdProto *)out_make(w, sizeof *set);
    if (!set) return;
    if (w->n_sets == CNR_ROWS(w->sets)) {
        w->no_memory = 1; /* more domains than a file may have */
        return;
    }
    onnx__operator_set_id_proto__init(set);
    set->domain = out_text(w, domain);
    set->has_version = 1;
    set->version = version;
    w->sets[w->n_sets++] = set;
}

/* Writes the constants that nodes read, each once. */
static void write_constants(out_writer *w) {
    const int32_t n_nodes = imp_host->graph_node_count(w->graph);
    onnx_names seen = NULL;
    for (int32_t i = 0; i < n_nodes; i++) {
        const cnr_value *in, *out;
        const cnr_node *n = imp_host->graph_node_at(w->graph, i, &in, &out);
        for (int32_t k = 0; k < n->n_inputs; k++) {
            cnr_value other;
            if (in[k] < 0 || imp_host->graph_producer(w->graph, in[k]) >= 0) continue;
            const cnr_tensor *t = imp_host->graph_type(w->graph, in[k]);
            const char *name = imp_host->graph_value_name(w->graph, in[k]);
            if (!(t->flags & (CNR_TENSOR_CONST | CNR_TENSOR_VARIABLE)) ||
                onnx_names_get(&seen, name, &other))
                continue;
            if (onnx_names_set(&seen, name, in[k])) w->no_memory = 1;
            if (t->encoding)
                out_unsupported(w, n, "its weight is encoded: convert the net to dense first");
            else if (!t->data && cnr_count(t) != 0) out_unsupported(w, n, "its weight has no data");
            else if (!out_data_type(t->dtype)) out_unsupported(w, n, "its data type is not ONNX's");
            else out_tensor(w, name, t->dtype, t->dim, t->rank, t->data, cnr_dense_bytes(t));
        }
    }
    imp_host->map_free(seen);
}

/* Type of an input or output as ONNX has it; NULL: out of memory. */
static Onnx__ValueInfoProto *value_info(out_writer *w, cnr_value v) {
    const cnr_tensor *t = imp_host->graph_type(w->graph, v);
    Onnx__ValueInfoProto *info = (Onnx__ValueInfoProto *)out_make(w, sizeof *info);
    Onnx__TypeProto *type = (Onnx__TypeProto *)out_make(w, sizeof *type);
    Onnx__TensorType *tt = (Onnx__TensorType *)out_make(w, sizeof *tt);
    Onnx__TensorShapeProto *shape = (Onnx__TensorShapeProto *)out_make(w, sizeof *shape);
    if (!info || !type || !tt || !shape) return NULL;
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__tensor_type__init(tt);
    onnx__tensor_shape_proto__init(shape);
    info->name = out_text(w, imp_host->graph_value_name(w->graph, v));
    info->type = type;
    type->tensor_type = tt;
    tt->has_elem_type = 1;
    tt->elem_type = out_data_type(t->dtype);
    tt->shape = shape;
    shape->dim = (Onnx__Dimension **)out_make(w, (size_t)(t->rank + 1) * sizeof(void *));
    for (int32_t i = 0; shape->dim && i < t->rank; i++) {
        Onnx__Dimension *d = (Onnx__Dimension *)out_make(w, sizeof *d);
        if (!d) return NULL;
        onnx__dimension__init(d);
        if (t->dim[i] >= 0) d->has_dim_value = 1, d->dim_value = t->dim[i];
        else if (t->dim[i] < CNR_DIM_UNKNOWN)
            d->dim_param =
                out_text(w, imp_host->graph_symbol_name(w->graph, CNR_SYMBOL_OF_DIM(t->dim[i])));
        shape->dim[shape->n_dim++] = d;
    }
    return info;
}

/* File that protobuf writes to. */
typedef struct file_buffer {
    ProtobufCBuffer base;
    struct cnr_output *out;
    cnr_status status;
    cnr_error *err;
} file_buffer;

/* Writes bytes; the first error stays in b->status. */
static void append(ProtobufCBuffer *buffer, size_t n, const uint8_t *data) {
    file_buffer *b = (file_buffer *)buffer;
    if (!b->status) b->status = imp_host->output_write(b->out, data, n, b->err);
}

/* Writes the model to a file. */
static cnr_status save(const Onnx__ModelProto *model, const char *path, cnr_error *err) {
    file_buffer b = {.base = {append}, .err = err};
    const cnr_status status = imp_host->output_begin(path, 0, &b.out, err);
    if (status) return status;
    onnx__model_proto__pack_to_buffer(model, &b.base);
    return imp_host->output_end(b.out, b.status, err);
}

/* Builds the model from a graph and writes it. */
static cnr_status write_graph(out_writer *w, const char *path, cnr_error *err) {
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    Onnx__OperatorSetIdProto *sets[1 + CNR_ROWS(w->sets)] = {&opset};
    const int32_t n_in = imp_host->graph_input_count(w->graph);
    const int32_t n_out = imp_host->graph_output_count(w->graph);
    graph.name = (char *)"cnnrun";
    graph.input = (Onnx__ValueInfoProto **)out_make(w, (size_t)(n_in + 1) * sizeof(void *));
    graph.output = (Onnx__ValueInfoProto **)out_make(w, (size_t)(n_out + 1) * sizeof(void *));
    write_constants(w);
    for (int32_t i = 0; i < imp_host->graph_node_count(w->graph); i++) write_node(w, i);
    for (int32_t i = 0; graph.input && i < n_in; i++)
        graph.input[graph.n_input++] = value_info(w, imp_host->graph_input_at(w->graph, i));
    for (int32_t i = 0; graph.output && i < n_out; i++)
        graph.output[graph.n_output++] = value_info(w, imp_host->graph_output_at(w->graph, i));
    if (w->no_memory) return imp_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    if (w->problems)
        return imp_host->fail(err, CNR_E_UNSUPPORTED, path,
                              "%d nodes or weights cannot be exported (listed above)", w->problems);
    graph.n_node = w->n_nodes;
    graph.node = w->nodes;
    graph.n_initializer = w->n_tensors;
    graph.initializer = w->tensors;
    opset.has_version = 1;
    opset.version = OPSET;
    opset.domain = (char *)"";
    model.has_ir_version = 1;
    model.ir_version = IR_VERSION;
    model.producer_name = (char *)"cnnrun";
    model.n_opset_import = 1 + w->n_sets;
    for (size_t i = 0; i < w->n_sets; i++) sets[1 + i] = w->sets[i];
    model.opset_import = sets;
    model.graph = &graph;
    return save(&model, path, err);
}

/* The exporter's function. */
static cnr_status export_graph(const struct cnr_graph *graph, const char *path, cnr_error *err) {
    out_writer w = {.graph = graph};
    const cnr_status status = write_graph(&w, path, err);
    imp_pool_free(&w.pool);
    return status;
}

static int32_t accepts(const char *path) { return imp_ends_with(path, ".onnx") ? 100 : 0; }

const cnr_exporter onnx_exporter = {
    .size = sizeof(cnr_exporter),
    .name = "onnx",
    .summary = "ONNX, operator set 21",
    .accepts = accepts,
    .write = export_graph,
};
