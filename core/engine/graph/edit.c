/* Queries and changes of a graph: replace and remove nodes and values; the host table's
 * functions for these. */
#include "graph/parts.h"

static int32_t graph_node_count(const cnr_graph *g) { return g->nodes.n; }

/* Node i; *inputs and *outputs (may be NULL): its values. NULL: there is no such node. */
static const cnr_node *graph_node_at(const cnr_graph *g, int32_t i, const cnr_value **inputs,
                                     const cnr_value **outputs) {
    if (i < 0 || i >= g->nodes.n) return NULL;
    const cnri_node *node = g->nodes.at[i];
    if (inputs) *inputs = node->in;
    if (outputs) *outputs = node->out;
    return &node->view;
}

static int32_t graph_input_count(const cnr_graph *g) { return g->inputs.n; }
cnr_value cnri_graph_input_at(const cnr_graph *g, int32_t i) {
    return i >= 0 && i < g->inputs.n ? g->inputs.at[i] : -1;
}
static int32_t graph_output_count(const cnr_graph *g) { return g->outputs.n; }
cnr_value cnri_graph_output_at(const cnr_graph *g, int32_t i) {
    return i >= 0 && i < g->outputs.n ? g->outputs.at[i] : -1;
}
static bool value_exists(const cnr_graph *g, cnr_value v) { return v >= 0 && v < g->values.n; }
const cnr_tensor *cnri_graph_type(const cnr_graph *g, cnr_value v) {
    return value_exists(g, v) ? g->values.at[v].type : NULL;
}
const char *cnri_graph_value_name(const cnr_graph *g, cnr_value v) {
    return value_exists(g, v) ? g->values.at[v].name : "";
}
int32_t cnri_graph_producer(const cnr_graph *g, cnr_value v) {
    return value_exists(g, v) ? g->values.at[v].producer : -1;
}
int32_t cnri_graph_uses(const cnr_graph *g, cnr_value v) {
    return value_exists(g, v) ? g->values.at[v].uses : 0;
}
void cnri_graph_insert_before(cnr_graph *g, int32_t node) {
    g->insert_before = node >= 0 && node < g->nodes.n ? node : -1;
}

/* True if reads of `from` can be replaced by `to`: every node that reads `from` comes after the
 * node that makes `to`. */
static bool order_holds(const cnr_graph *g, cnr_value from, cnr_value to) {
    const int32_t producer = g->values.at[to].producer;
    for (int32_t i = 0; i < producer; i++)
        for (int32_t k = 0; k < g->nodes.at[i]->view.n_inputs; k++)
            if (g->nodes.at[i]->in[k] == from) return false;
    return true;
}

cnr_status cnri_graph_replace(cnr_graph *g, cnr_value from, cnr_value to) {
    if (!value_exists(g, from) || !value_exists(g, to)) return CNR_E_ARG;
    if (from == to) return CNR_OK;
    if (!order_holds(g, from, to)) return CNR_E_STATE;
    /* The node that makes `to` may itself read `from` (x -> f(x)); it keeps doing so. */
    const int32_t producer = g->values.at[to].producer;
    for (int32_t i = producer + 1; i < g->nodes.n; i++) {
        cnri_node *node = g->nodes.at[i];
        for (int32_t k = 0; k < node->view.n_inputs; k++) {
            if (node->in[k] != from) continue;
            node->in[k] = to;
            cnri_value_use(g, from, -1);
            cnri_value_use(g, to, 1);
        }
        cnri_node_link(g, node);
    }
    for (int32_t i = 0; i < g->outputs.n; i++) {
        if (g->outputs.at[i] != from) continue;
        g->outputs.at[i] = to;
        cnri_value_use(g, from, -1);
        cnri_value_use(g, to, 1);
    }
    return CNR_OK;
}

/* Removes a node whose outputs nobody reads; indices behind it move down. CNR_E_STATE: one is read;
 * CNR_E_ARG: no such node. */
cnr_status cnri_graph_remove(cnr_graph *g, int32_t index) {
    if (index < 0 || index >= g->nodes.n) return CNR_E_ARG;
    cnri_node *node = g->nodes.at[index];
    for (int32_t k = 0; k < node->view.n_outputs; k++)
        if (g->values.at[node->out[k]].uses > 0) return CNR_E_STATE;
    for (int32_t k = 0; k < node->view.n_inputs; k++) cnri_value_use(g, node->in[k], -1);
    for (int32_t k = 0; k < node->view.n_outputs; k++) {
        cnri_value *v = &g->values.at[node->out[k]];
        cnri_map_set(&g->value_names, v->name, NULL);
        cnri_value_clear(v);
        v->producer = -1;
    }
    cnri_map_set(&g->node_names, node->name, NULL);
    cnri_node_free(node);
    memmove(&g->nodes.at[index], &g->nodes.at[index + 1],
            (size_t)(g->nodes.n - index - 1) * sizeof g->nodes.at[0]);
    g->nodes.n--;
    cnri_nodes_shifted(g, index, -1);
    if (g->insert_before > index) g->insert_before--;
    if (g->insert_before >= g->nodes.n) g->insert_before = -1;
    return CNR_OK;
}

cnr_value cnri_node_updates(const cnr_graph *g, const cnri_node *node, int32_t output) {
    const cnr_op *op = node->view.desc;
    cnr_alias found[8];
    if (!g->updates || !CNRI_HAS(op, buffer_aliases)) return -1;
    int32_t n = op->buffer_aliases(&node->view, found, CNRI_COUNT(found));
    if (n > (int32_t)CNRI_COUNT(found)) n = CNRI_COUNT(found);
    for (int32_t i = 0; i < n; i++) {
        if (found[i].kind != CNR_ALIAS_UPDATE || found[i].output != output) continue;
        const int32_t k = found[i].input;
        const cnr_value v = k >= 0 && k < node->view.n_inputs ? node->in[k] : -1;
        if (v < 0 || g->values.at[v].producer >= 0 || g->values.at[v].is_input) continue;
        const cnr_tensor *in = node->view.inputs[k], *out = node->view.outputs[output];
        if (in->flags & CNR_TENSOR_VARIABLE && !in->encoding && in->dtype == out->dtype &&
            cnr_same_shape(in, out))
            return v;
    }
    return -1;
}

void cnri_graph_install(cnr_host *host) {
    host->graph_input = cnri_graph_input;
    host->graph_symbol = cnri_graph_symbol;
    host->graph_constant = cnri_graph_constant;
    host->graph_constant_read = cnri_graph_constant_read;
    host->graph_node = cnri_graph_node;
    host->graph_output = cnri_graph_output;
    host->graph_set_meta = cnri_graph_set_meta;
    host->graph_meta = cnri_graph_meta;
    host->graph_problem = cnri_graph_problem;
    host->graph_node_count = graph_node_count;
    host->graph_node_at = graph_node_at;
    host->graph_input_count = graph_input_count;
    host->graph_input_at = cnri_graph_input_at;
    host->graph_output_count = graph_output_count;
    host->graph_output_at = cnri_graph_output_at;
    host->graph_type = cnri_graph_type;
    host->graph_value_name = cnri_graph_value_name;
    host->graph_producer = cnri_graph_producer;
    host->graph_use_count = cnri_graph_uses;
    host->graph_replace = cnri_graph_replace;
    host->graph_remove = cnri_graph_remove;
    host->graph_insert_before = cnri_graph_insert_before;
    host->graph_symbol_name = cnri_graph_symbol_name;
    cnri_calibration_install(host);
    cnri_import_rows_install(host);
}
