/* TensorFlow: a frozen GraphDef into a graph. */
#include "tensorflow.h"

#include <stdio.h>
#include <stdlib.h>

const cnr_host *tf_host;

static void *allocate(void *data, size_t bytes) {
    (void)data;
    return tf_host->alloc(bytes);
}
static void release(void *data, void *block) {
    (void)data;
    tf_host->free(block);
}
ProtobufCAllocator tf_allocator = {allocate, release, NULL};

static cnr_status read_file(const char *path, uint8_t **out, size_t *bytes, cnr_error *err) {
    FILE *file = fopen(path, "rb");
    *out = NULL;
    if (!file) return tf_host->fail(err, CNR_E_IO, path, "cannot be opened");
    cnr_status status = CNR_OK;
    long end = -1;
    if (fseek(file, 0, SEEK_END) == 0) end = ftell(file);
    rewind(file);
    if (end < 0) status = tf_host->fail(err, CNR_E_IO, path, "is not a regular file");
    else if (!(*out = (uint8_t *)tf_host->alloc((size_t)end + 1)))
        status = tf_host->fail(err, CNR_E_MEMORY, path, "out of memory for %ld bytes", end);
    else if (fread(*out, 1, (size_t)end, file) != (size_t)end)
        status = tf_host->fail(err, CNR_E_IO, path, "could not be read whole");
    fclose(file);
    if (status) {
        tf_host->free(*out);
        *out = NULL;
        return status;
    }
    *bytes = (size_t)end;
    return CNR_OK;
}

int32_t tf_shape_option(const tf_net *net, int64_t dim[CNR_MAX_RANK]) {
    const char *text = NULL;
    int32_t rank = 0;
    for (int32_t i = 0; i < net->args->n_options; i++)
        if (strncmp(net->args->options[i], "shape=", 6) == 0) text = net->args->options[i] + 6;
    while (text && *text && rank < CNR_MAX_RANK) {
        char *end;
        dim[rank++] = strtoll(text, &end, 10);
        if (end == text || (*end && *end != ',' && *end != 'x')) return -1;
        text = *end ? end + 1 : end;
    }
    if (rank == 3) { /* the batch is left out */
        memmove(dim + 1, dim, 3 * sizeof dim[0]);
        dim[0] = -1;
        rank = 4;
    }
    return rank ? rank : -1;
}

/* Entries by name. */
static cnr_status index_names(tf_net *net, const Tf__GraphDef *def, cnr_error *err) {
    net->n = (int32_t)def->n_node;
    for (net->room = 64; net->room < 4 * def->n_node; net->room *= 2) {}
    net->entries = (tf_entry *)tf_host->alloc((def->n_node + 1) * sizeof *net->entries);
    net->index = (int32_t *)tf_host->alloc(net->room * sizeof *net->index);
    if (net->entries) memset(net->entries, 0, (def->n_node + 1) * sizeof *net->entries);
    if (!net->entries || !net->index)
        return tf_host->fail(err, CNR_E_MEMORY, net->path, "out of memory");
    for (uint32_t i = 0; i < net->room; i++) net->index[i] = -1;
    for (int32_t i = 0; i < net->n; i++) {
        const char *name = def->node[i]->name ? def->node[i]->name : "";
        net->entries[i].node = def->node[i];
        if (tf_find(net, name, strlen(name)) && i > 0)
            return tf_host->fail(err, CNR_E_FORMAT, net->path, "two nodes are called \"%s\"", name);
        uint32_t h = 2166136261u;
        for (const char *c = name; *c; c++) h = (h ^ (uint8_t)*c) * 16777619u;
        uint32_t at = h & (net->room - 1);
        while (net->index[at] >= 0) at = (at + 1) & (net->room - 1);
        net->index[at] = i;
    }
    return CNR_OK;
}

/* Converts what `root` needs, then itself; the file's order is any. */
static cnr_status visit(tf_net *net, int32_t root, int32_t *stack, cnr_error *err) {
    int32_t depth = 0;
    stack[depth++] = root;
    while (depth > 0 && !net->status) {
        tf_entry *e = &net->entries[stack[depth - 1]];
        int32_t waiting = -1;
        if (e->state == 2) {
            depth--;
            continue;
        }
        e->state = 1;
        for (size_t i = 0; i < e->node->n_input && waiting < 0; i++) {
            int32_t output;
            tf_entry *from = tf_input(net, e->node->input[i], &output);
            if (!from || from->state == 2) continue;
            if (from->state == 1) {
                tf_host->graph_problem(net->graph, net->path,
                                       "node %s is part of a loop: control flow is not supported",
                                       from->node->name);
                from->failed = 1;
                continue;
            }
            waiting = (int32_t)(from - net->entries);
        }
        if (waiting >= 0) {
            stack[depth++] = waiting;
            continue;
        }
        if (e->failed) e->n_out = 0;
        else tf_convert(net, e);
        e->state = 2;
        depth--;
    }
    return net->status ? tf_host->fail(err, net->status, net->path, "out of memory") : CNR_OK;
}

/* Control flow is told by name once, not through everything that hangs on it. */
static int control_flow(tf_net *net) {
    static const char *const ops[] = {"Enter", "Exit", "Switch", "Merge", "NextIteration", "LoopCond",
                                      "While", "If", "StatelessWhile", "StatelessIf",
                                      "TensorArrayV3", "PartitionedCall",
                                      "StatefulPartitionedCall"};
    int found = 0;
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
        int32_t n = 0;
        const char *first = NULL;
        for (int32_t i = 0; i < net->n; i++)
            if (net->entries[i].node->op && strcmp(net->entries[i].node->op, ops[k]) == 0) {
                if (n++ == 0) first = net->entries[i].node->name;
            }
        if (n)
            tf_host->graph_problem(net->graph, net->path,
                                   "%d nodes %s (the first: %s): control flow is not supported",
                                   (int)n, ops[k], first ? first : "");
        found += n;
    }
    return found;
}

static int is_quiet(const char *op) { /* nothing to compute */
    return !op || strcmp(op, "NoOp") == 0 || strcmp(op, "Assert") == 0;
}

static cnr_status build(tf_net *net, cnr_error *err) {
    if (control_flow(net)) return CNR_OK; /* the graph's problems say it */
    int32_t *stack = (int32_t *)tf_host->alloc((size_t)(net->n + 1) * sizeof *stack);
    if (!stack) return tf_host->fail(err, CNR_E_MEMORY, net->path, "out of memory");
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < net->n; i++)
        for (size_t k = 0; k < net->entries[i].node->n_input; k++) {
            int32_t output;
            tf_entry *from = tf_input(net, net->entries[i].node->input[k], &output);
            if (from) from->read = 1;
        }
    for (int32_t i = 0; i < net->n && !status; i++) {
        tf_entry *e = &net->entries[i];
        const char *op = e->node->op;
        if (e->read || is_quiet(op) || (op && strcmp(op, "Const") == 0)) continue;
        status = visit(net, i, stack, err);
        if (!status && !e->failed && e->n_out)
            status = tf_host->graph_output(net->graph, tf_plain(net, &e->out[0]), e->node->name);
    }
    tf_host->free(stack);
    return status;
}

static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    uint8_t *data;
    size_t bytes = 0;
    tf_net net = {.graph = graph, .path = args->paths[0], .args = args};
    if (args->n_paths > 1)
        return tf_host->fail(err, CNR_E_ARG, args->paths[1], "a frozen graph is one file");
    cnr_status status = read_file(net.path, &data, &bytes, err);
    if (status) return status;
    Tf__GraphDef *def = tf__graph_def__unpack(&tf_allocator, bytes, data);
    tf_host->free(data);
    if (!def || def->n_node == 0 || def->n_node > 1 << 24)
        status = tf_host->fail(err, CNR_E_FORMAT, net.path,
                               "is no GraphDef: the protobuf message is damaged or has no nodes");
    if (!status) status = index_names(&net, def, err);
    if (!status) status = build(&net, err);
    for (int32_t i = 0; net.entries && i < net.n; i++) tf_host->free(net.entries[i].out);
    tf_host->free(net.entries);
    tf_host->free(net.index);
    if (def) tf__graph_def__free_unpacked(def, &tf_allocator);
    return status;
}

/* A GraphDef begins with a node (field 1, a message) that begins with its name (field 1). */
static int32_t accepts(const char *path, const uint8_t *head, size_t bytes) {
    const size_t n = strlen(path);
    const int named = n > 3 && strcmp(path + n - 3, ".pb") == 0;
    if (bytes < 8 || head[0] != 0x0a) return 0;
    size_t i = 1;
    while (i < bytes && i < 6 && head[i] & 0x80) i++;
    i++;
    if (i + 2 >= bytes || head[i] != 0x0a || head[i + 1] == 0 || head[i + 1] & 0x80) return 0;
    const size_t end = i + 2 + head[i + 1];
    return end + 1 < bytes && head[end] == 0x12 ? (named ? 70 : 50) : 0;
}

static const cnr_importer importer = {
    .size = sizeof importer,
    .name = "tensorflow",
    .summary = "TensorFlow: a frozen GraphDef, GRAPH.pb",
    .accepts = accepts,
    .import = import,
};

static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    tf_host = host;
    return host->add(registrar, CNR_KIND_IMPORTER, &importer);
}

static const cnr_plugin plugin = {
    .size = sizeof plugin,
    .magic = CNR_PLUGIN_MAGIC,
    .abi = CNR_ABI,
    .signature = CNR_SIGNATURE,
    .name = "import-tensorflow",
    .version = "1.0",
    .summary = "reads frozen TensorFlow graphs",
    .licence = "MIT",
    .init = init,
};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
