/* Imports TensorFlow: a frozen GraphDef or a SavedModel. */
#include "tensorflow.h"

static ProtobufCAllocator allocator = {imp_library_alloc, imp_library_free, NULL};

/* 1 if the bytes begin like a SavedModel, with its version and a graph; a GraphDef begins with a
 * node. */
static int is_saved_model(const uint8_t *data, size_t n) {
    return n > 3 && data[0] == 0x08 && data[1] == 1 && data[2] == 0x12;
}

/* 1 if the bytes are a text with TensorFlow's nodes: node { name: ... op: ... } */
static int is_text(const uint8_t *data, size_t n) {
    char text[512];
    if (!imp_is_text(data, n)) return 0;
    n = n < sizeof text - 1 ? n : sizeof text - 1;
    memcpy(text, data, n);
    text[n] = 0;
    const char *op = strstr(text, "op: \"");
    return strncmp(text, "node {", 6) == 0 && op != NULL;
}

static const char text_refusal[] =
    "is a GraphDef as text: write it in binary (google.protobuf.text_format.Parse in Python, then "
    "SerializeToString)";
static const char variables_refusal[] =
    "is a SavedModel whose weights are in variables beside it: freeze it first, "
    "convert_variables_to_constants_v2 in Python (plugins/IMPORTING.md has the lines)";

/* 1 if the graph has variables, whose values are in other files. */
static int has_variables(const Tf__GraphDef *def) {
    for (size_t i = 0; i < def->n_node; i++) {
        const char *op = def->node[i]->op ? def->node[i]->op : "";
        if (strcmp(op, "VarHandleOp") == 0 || strcmp(op, "VariableV2") == 0 ||
            strcmp(op, "Variable") == 0)
            return 1;
    }
    return 0;
}

/* Writes the outputs of the SavedModel's signature into `text`; 0: it has none. */
static int entrance(const Tf__MetaGraph *m, char *text, size_t room) {
    const Tf__Entries *found = NULL;
    size_t at = 0;
    for (size_t i = 0; i < m->n_signature_def; i++) {
        const Tf__Entrance *e = m->signature_def[i];
        const int usual = e->key && strcmp(e->key, "serving_default") == 0;
        if (e->value && e->value->n_outputs && (!found || usual)) found = e->value;
    }
    for (size_t i = 0; found && i < found->n_outputs; i++) {
        const Tf__TensorInfo *t = found->outputs[i]->value;
        size_t n = t && t->name ? strlen(t->name) : 0;
        if (n > 2 && strcmp(t->name + n - 2, ":0") == 0) n -= 2;
        if (n == 0 || at + n + 2 > room) return 0;
        if (at) text[at++] = ',';
        memcpy(text + at, t->name, n);
        at += n;
    }
    text[at] = 0;
    return at > 0;
}

/* Indexes, orders and converts the nodes of a graph; problems go to it. */
static cnr_status build(tf_net *net, const Tf__GraphDef *def, cnr_error *err) {
    if (!def || def->n_node == 0 || def->n_node > 1 << 24)
        return imp_host->fail(err, CNR_E_FORMAT, net->b.path,
                              "is no GraphDef: the protobuf message is damaged or has no nodes");
    size_t n = 0;
    const Tf__NodeDef **nodes = tf_write_out(net, def, &n);
    cnr_status status = nodes ? tf_index(net, nodes, n, err)
                              : imp_host->fail(err, CNR_E_MEMORY, net->b.path, "out of memory");
    if (!status) status = tf_build(net, err);
    imp_host->free(nodes);
    tf_release(net);
    return status;
}

/* Where a graph, or a saved model, has tensors' contents. */
enum {
    IN_SAVED = 1,
    IN_META,
    IN_GRAPH,
    IN_LIBRARY,
    IN_FUNCTION,
    IN_NODE,
    IN_ENTRY,
    IN_VALUE,
    IN_TENSOR
};
#define THIN_GRAPH \
    {IN_GRAPH, 1, IN_NODE}, {IN_GRAPH, 2, IN_LIBRARY}, {IN_LIBRARY, 1, IN_FUNCTION}, \
        {IN_FUNCTION, 3, IN_NODE}, {IN_NODE, 5, IN_ENTRY}, {IN_ENTRY, 2, IN_VALUE}, \
        {IN_VALUE, 8, IN_TENSOR}, { \
        IN_TENSOR, 4, IMP_THIN_BULK \
    }
static const imp_thin_row graph_rows[] = {THIN_GRAPH, {0}};
static const imp_thin_row saved_rows[] = {{IN_SAVED, 2, IN_META},
                                          {IN_META, 2, IN_GRAPH},
                                          THIN_GRAPH,
                                          {0}};

/* Imports a graph or saved model. */
static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    uint8_t *data, head[IMP_HEAD];
    size_t bytes = 0, n = 0;
    tf_net net = {.b = {.graph = graph, .path = args->paths[0]},
                  .args = args,
                  .outputs = imp_option(args, "outputs"),
                  .dead = {.plain = -1, .turned = -1, .dead = 1}};
    if (args->n_paths > 1)
        return imp_host->fail(err, CNR_E_ARG, args->paths[1], "a frozen graph is one file");
    cnr_status status = imp_read_head(net.b.path, head, &n, err);
    if (status) return status;
    const int text = is_text(head, n), whole = is_saved_model(head, n);
    status = imp_read_thin(net.b.path, whole ? saved_rows : graph_rows, &data, &bytes, err);
    if (status) return status;
    Tf__SavedModel *saved = whole ? tf__saved_model__unpack(&allocator, bytes, data) : NULL;
    Tf__GraphDef *single = saved || text ? NULL : tf__graph_def__unpack(&allocator, bytes, data);
    const Tf__MetaGraph *meta = saved && saved->n_meta_graphs ? saved->meta_graphs[0] : NULL;
    const Tf__GraphDef *def = meta ? meta->graph_def : single;
    char outputs[2000];
    if (!net.outputs && meta && entrance(meta, outputs, sizeof outputs)) net.outputs = outputs;
    imp_host->free(data);
    if (text) status = imp_host->fail(err, CNR_E_UNSUPPORTED, net.b.path, text_refusal);
    else if (saved && def && has_variables(def))
        status = imp_host->fail(err, CNR_E_UNSUPPORTED, net.b.path, variables_refusal);
    else status = build(&net, def, err);
    if (saved) tf__saved_model__free_unpacked(saved, &allocator);
    if (single) tf__graph_def__free_unpacked(single, &allocator);
    return status;
}

/* How surely a file is TensorFlow's, 0 to 100. A GraphDef begins with a node (field 1, a message),
 * which begins with its name (field 1). */
static int32_t accepts(const char *path, const uint8_t *head, size_t bytes) {
    const int named = imp_ends_with(path, ".pb");
    if (is_text(head, bytes)) return 60;
    if (is_saved_model(head, bytes)) return named ? 70 : 30;
    if (bytes < 8 || head[0] != 0x0a) return 0;
    size_t i = 1;
    while (i < bytes && i < 6 && head[i] & 0x80) i++;
    i++;
    if (i + 2 >= bytes || head[i] != 0x0a || head[i + 1] == 0 || head[i + 1] & 0x80) return 0;
    const size_t end = i + 2 + head[i + 1];
    return end + 1 < bytes && head[end] == 0x12 ? (named ? 70 : 50) : 0;
}

static const char *const preset_rows[] = {"tf channels=rgb mean=127.5 std=127.5 scale=1", NULL};

static const char *const option_rows[] =
    {"shape=H,W,C the input's size, where the graph leaves it open",
     "shape.*=H,W,C the same of the node of that name, where the graph is then cut",
     "outputs=A,B the nodes that are the outputs",
     "value.*=NUMBER what a placeholder is: a dropout's keep_prob, is_training", NULL};

static const cnr_importer importer = {
    .size = sizeof importer,
    .name = "tensorflow",
    .summary = "TensorFlow: a frozen GraphDef, GRAPH.pb (options shape=H,W,C, outputs=A,B, "
               "value.PLACEHOLDER=1)",
    .accepts = accepts,
    .import = import,
    .options = option_rows,
    .presets = preset_rows,
};

IMP_PLUGIN("import-tensorflow", "1.1", "reads frozen TensorFlow graphs", importer)
