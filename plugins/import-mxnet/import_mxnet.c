/* Imports MXNet: NET-symbol.json with NET-0000.params, or the parameters alone. */
#include "mxnet.h"
#include "weights.h"

#include <stdio.h>

enum { MOST_NODES = 1 << 16 };

/* ---- inputs ---- */

/* Sizes from option shape.NAME=..., or shape=... for the first input; returns their number, 0: not
 * given. */
static int32_t given_shape(mx_net *net, const char *name, int64_t dim[CNR_MAX_RANK]) {
    char key[256];
    snprintf(key, sizeof key, "shape.%.240s", name);
    const char *text = imp_option(net->args, key);
    if (!text && net->n_inputs == 0) text = imp_option(net->args, "shape");
    const int32_t rank = imp_shape(text, dim);
    if (rank < 0 || rank >= CNR_MAX_RANK)
        imp_host->graph_problem(net->b.graph, net->b.path,
                                "shape=%s: sizes of one sample are wanted, 3,224,224", text);
    return rank >= CNR_MAX_RANK ? -1 : rank;
}

cnr_value mx_add_input(mx_net *net, const mx_node *n, int64_t channels, int32_t want) {
    int64_t dim[CNR_MAX_RANK] = {0}, whole[CNR_MAX_RANK];
    int32_t rank = given_shape(net, n->name, dim);
    int open = net->open_size;
    if (rank == 0) { /* a variable may have a shape attribute, with the batch first */
        const int32_t k = mx_ints(n, "__shape__", whole, CNR_MAX_RANK, 0);
        int known = k > 1;
        for (int32_t i = 1; i < k; i++) known = known && whole[i] > 0 && whole[i] < 1 << 24;
        if (known) memcpy(dim, whole + 1, (size_t)(rank = k - 1) * sizeof dim[0]);
    }
    if (rank == 0 && want == 2 && channels > 0) {
        rank = 1;
        dim[0] = channels;
    } else if (rank == 0 && want == 4 && channels > 0 && net->open_size) {
        rank = 3;
        dim[0] = channels;
    } else if (rank == 0) {
        imp_host->graph_problem(net->b.graph, net->b.path,
                                "input %s: MXNet's files do not say how large it is: give "
                                "--option shape%s%s=CHANNELS,HEIGHT,WIDTH",
                                n->name, net->n_inputs ? "." : "", net->n_inputs ? n->name : "");
    }
    net->n_inputs++;
    return rank < 1 ? -1 : imp_input(&net->b, n->name, dim, rank, open);
}

/* ---- the JSON ---- */

/* Whether the height and width of its output depend on the net's input. After a global pooling they
 * do not, so a dense layer does not fix the input's size. */
static int still_sized(const mx_net *net, const mx_node *n) {
    int64_t from, output;
    if (strncmp(n->op, "Pooling", 7) == 0 && mx_bool(n, "global_pool", 0)) return 0;
    if (strcmp(n->op, "_contrib_AdaptiveAvgPooling2D") == 0 && mx_is_open(n)) return 0;
    for (int32_t i = 0; mx_input(n, i, &from, &output); i++) {
        if (from < 0 || from >= n - net->nodes) continue;
        const mx_node *source = &net->nodes[from];
        if (strcmp(source->op, "null") == 0 ? i == 0 : source->sized) return 1;
    }
    return 0;
}

/* Makes names of nodes unique, by appending a number: a Gluon block that is called twice gives
 * nodes of the same name. */
static void name_apart(json_t *nodes) {
    json_t *seen = json_object(), *one;
    size_t i;
    json_array_foreach(nodes, i, one) {
        const char *op = json_string_value(json_object_get(one, "op"));
        const char *name = json_string_value(json_object_get(one, "name"));
        if (!op || !name || strcmp(op, "null") == 0) continue;
        if (json_object_get(seen, name))
            json_object_set_new(one, "name", json_sprintf("%s.%zu", name, i));
        else json_object_set_new(seen, name, json_true());
    }
    json_decref(seen);
}

/* Reads all nodes. 0: failed, a problem is noted. */
static int read_nodes(mx_net *net, const json_t *root) {
    json_t *nodes = json_object_get(root, "nodes"), *one;
    const size_t n = json_array_size(nodes);
    size_t i;
    if (n < 1 || n > MOST_NODES) {
        imp_host->graph_problem(net->b.graph, net->b.path, "it has no nodes, or too many");
        return 0;
    }
    net->nodes = (mx_node *)imp_host->alloc(n * sizeof net->nodes[0]);
    if (!net->nodes) return net->b.status = CNR_E_MEMORY, 0;
    memset(net->nodes, 0, n * sizeof net->nodes[0]);
    net->n_nodes = (int32_t)n;
    net->open_size = 1;
    name_apart(nodes);
    json_array_foreach(nodes, i, one) {
        mx_node *node = &net->nodes[i];
        node->op = json_string_value(json_object_get(one, "op"));
        node->name = json_string_value(json_object_get(one, "name"));
        node->attrs[0] = json_object_get(one, "attrs");
        node->attrs[1] = json_object_get(one, "param");
        node->attrs[2] = json_object_get(one, "attr");
        node->inputs = json_object_get(one, "inputs");
        if (!node->op || !node->name) {
            imp_host->graph_problem(net->b.graph, net->b.path, "node %zu has no op or no name", i);
            return 0;
        }
        node->first = net->n_values;
        node->n_out = mx_op_outputs(node);
        net->n_values += node->n_out;
        node->sized = still_sized(net, node);
        if (node->sized && !mx_is_open(node)) net->open_size = node->sized = 0;
    }
    net->values = (cnr_value *)imp_host->alloc((size_t)net->n_values * sizeof net->values[0]);
    if (!net->values) return net->b.status = CNR_E_MEMORY, 0;
    for (int32_t k = 0; k < net->n_values; k++) net->values[k] = -2;
    return 1;
}

/* Marks the nodes that the outputs depend on; the others are skipped. */
static void mark(const mx_net *net, const json_t *heads, uint8_t *wanted) {
    const json_t *one;
    size_t i;
    json_array_foreach(heads, i, one) {
        const json_int_t at = json_integer_value(json_array_get(one, 0));
        if (json_is_array(one) && at >= 0 && at < net->n_nodes) wanted[at] = 1;
    }
    if (json_array_size(heads) == 0) wanted[net->n_nodes - 1] = 1;
    for (int32_t k = net->n_nodes - 1; k >= 0; k--) {
        int64_t from, output;
        for (int32_t s = 0; wanted[k] && mx_input(&net->nodes[k], s, &from, &output); s++)
            if (from >= 0 && from < k) wanted[from] = 1;
    }
}

/* Adds output `output` of node `at` as an output of the net; a wrong one is a problem. */
static void add_output(mx_net *net, int64_t at, int64_t output) {
    if (at < 0 || at >= net->n_nodes || output < 0 || output >= net->nodes[at].n_out) {
        imp_host->graph_problem(net->b.graph, net->b.path, "a head names no output of a node");
        return;
    }
    const mx_node *n = &net->nodes[at];
    char name[300];
    snprintf(name, sizeof name, output ? "%.250s.%d" : "%.250s", n->name, (int)output);
    const cnr_value v = net->values[n->first + output];
    if (v >= 0 && imp_host->graph_output(net->b.graph, v, name)) net->b.status = CNR_E_MEMORY;
}

/* Converts the nodes that the heads need, and adds the outputs; problems go to the graph. */
static void build(mx_net *net, const json_t *root) {
    const json_t *heads = json_object_get(root, "heads"), *one;
    size_t i;
    if (!read_nodes(net, root)) return;
    uint8_t *wanted = (uint8_t *)imp_host->alloc((size_t)net->n_nodes);
    if (!wanted) {
        net->b.status = CNR_E_MEMORY;
        return;
    }
    memset(wanted, 0, (size_t)net->n_nodes);
    mark(net, heads, wanted);
    for (int32_t k = 0; k < net->n_nodes && !net->b.status; k++)
        if (wanted[k] && strcmp(net->nodes[k].op, "null") != 0) mx_layer(net, &net->nodes[k]);
    imp_host->free(wanted);
    json_array_foreach(heads, i, one) if (!net->b.status)
        add_output(net, json_integer_value(json_array_get(one, 0)),
                   json_integer_value(json_array_get(one, 1)));
    if (json_array_size(heads) == 0 && !net->b.status) add_output(net, net->n_nodes - 1, 0);
}

/* ---- entry points ---- */

/* Parameters without a symbol: a graph of named constants, which can fill another net's weights. */
static void constants_alone(mx_net *net) {
    for (int32_t i = 0; i < net->params->n && !net->b.status; i++) {
        mx_array *a = &net->params->at[i];
        const int64_t n = mx_array_count(a);
        char name[300];
        if (n < 1) continue;
        snprintf(name, sizeof name, "%.*s", (int)(a->n_name < 250 ? a->n_name : 250), a->name);
        const cnr_value v = mx_array_weight(&net->b, a, name, "", a->dim, a->rank);
        if (v >= 0) net->b.status = imp_host->graph_output(net->b.graph, v, name);
    }
}

/* ---- weights for a net that is described elsewhere ---- */

/* Reads array i as floats into *data, host memory; frees nothing. */
static cnr_status load(void *owner, int32_t i, void **data, cnr_error *err) {
    const mx_array *a = &((const mx_params *)owner)->at[i];
    *data = imp_host->alloc((size_t)mx_array_count(a) * sizeof(float) + 1);
    if (!*data) return imp_host->fail(err, CNR_E_MEMORY, "mxnet", "out of memory");
    if (mx_array_floats(a, 0, mx_array_count(a), (float *)*data)) return CNR_OK;
    imp_host->free(*data);
    *data = NULL;
    return imp_host->fail(err, CNR_E_IO, "mxnet", "the file was cut short");
}

/* Element `at` of data that load made. */
static double get(const void *owner, int32_t i, const void *data, int64_t at) {
    (void)owner, (void)i;
    return (double)((const float *)data)[at];
}

/* Gives the arrays to a net that is there already. */
static cnr_status weights_for_net(mx_net *net, cnr_error *err) {
    const mx_params *p = net->params;
    enum { NAME = 300 };
    imp_array *list = (imp_array *)imp_host->alloc((size_t)p->n * (sizeof *list + NAME) + 1);
    if (!list) return imp_host->fail(err, CNR_E_MEMORY, net->b.path, "out of memory");
    char *name = (char *)(list + p->n);
    for (int32_t i = 0; i < p->n; i++, name += NAME) {
        const mx_array *a = &p->at[i];
        int64_t step = 1;
        list[i] = (imp_array){.name = name, .file = net->b.path, .rank = a->rank};
        snprintf(name, NAME, "%.*s", (int)(a->n_name < 250 ? a->n_name : 250), a->name);
        memcpy(list[i].dim, a->dim, sizeof a->dim);
        const int fits = imp_count(a->dim, a->rank) >= 0; /* arrays without data were not counted */
        for (int32_t k = a->rank - 1; k >= 0; step = fits ? step * a->dim[k] : 0, k--)
            list[i].stride[k] = step;
    }
    const imp_arrays arrays = {.at = list,
                               .n = p->n,
                               .owner = net->params,
                               .load = load,
                               .get = get};
    const cnr_status status = imp_weights(net->args, &net->b, &arrays, err);
    imp_host->free(list);
    return status;
}

/* Imports a net from its JSON text. */
static cnr_status from_json(mx_net *net, const char *text, size_t bytes, cnr_error *err) {
    json_error_t why;
    json_t *root = json_loadb(text, bytes, 0, &why);
    if (!root)
        return imp_host->fail(err, CNR_E_FORMAT, net->b.path, "line %d: %s", why.line, why.text);
    build(net, root);
    json_decref(root);
    return net->b.status;
}

/* Imports a symbol file with its parameters. */
static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    uint8_t *text = NULL, head[IMP_HEAD];
    size_t bytes = 0;
    mx_params params = {.n = 0};
    mx_net net = {.b = {.graph = graph, .path = args->paths[0]}, .args = args};
    if (args->n_paths > 2)
        return imp_host->fail(err, CNR_E_ARG, args->paths[2],
                              "one symbol (JSON) and one file of parameters are wanted");
    cnr_status status = imp_read_head(net.b.path, head, &bytes, err);
    const int alone = !status && mx_params_looks_right(head, bytes);
    if (alone && args->n_paths > 1)
        status = imp_host->fail(err, CNR_E_ARG, args->paths[0],
                                "holds parameters: give the symbol (JSON) first");
    if (!status && !alone) status = imp_read_file(net.b.path, &text, &bytes, err);
    if (!status && (args->n_paths > 1 || alone)) {
        net.params = &params;
        status = mx_params_open(&params, args->paths[args->n_paths - 1], err);
        net.budget = 4 * (int64_t)params.bytes;
    }
    if (!status && alone && imp_net_of(args)) status = weights_for_net(&net, err);
    else if (!status && alone) constants_alone(&net);
    else if (!status) status = from_json(&net, (const char *)text, bytes, err);
    if (net.b.status) status = imp_host->fail(err, net.b.status, net.b.path, "out of memory");
    imp_host->free(net.values);
    imp_host->free(net.nodes);
    mx_params_close(&params);
    imp_host->free(text);
    return status;
}

/* How surely a file is MXNet's, 0 to 100. */
static int32_t accepts(const char *path, const uint8_t *head, size_t bytes) {
    if (mx_params_looks_right(head, bytes)) return 60;
    if (!imp_is_text(head, bytes)) return 0;
    char text[2049];
    const size_t k = bytes < sizeof text - 1 ? bytes : sizeof text - 1;
    memcpy(text, head, k);
    text[k] = 0;
    if (!strchr(text, '{') || !strstr(text, "\"nodes\"") || !strstr(text, "\"op\"")) return 0;
    return imp_ends_with(path, ".json") ? 80 : 60;
}

static const char *const preset_rows[] =
    {"gluon channels=rgb mean=123.675,116.28,103.53 std=58.395,57.12,57.375 scale=1", NULL};

static const char *const option_rows[] = {"shape=C,H,W the first input's size",
                                          "shape.*=C,H,W the size of the input of that name",
                                          IMP_LAYOUT_ROWS, NULL};

static const cnr_importer importer = {
    .size = sizeof importer,
    .name = "mxnet",
    .summary = "MXNet: NET-symbol.json NET-0000.params (option shape=C,H,W: the input's size)",
    .accepts = accepts,
    .import = import,
    .options = option_rows,
    .presets = preset_rows,
};

IMP_PLUGIN("import-mxnet", "1.0", "reads MXNet models", importer)
