/* quantized-pass-through: nodes that only move elements are applied to bytes. Exact:
 *     f(dequantize(q))                    -> dequantize(f(q))    f moves or picks elements
 *     quantize(dequantize(q)), same scale -> q */
#include "graphs.h"

/* 1 if both are one constant number with the same value, or both NULL. */
static int same_data(const cnr_tensor *a, const cnr_tensor *b) {
    if (!a || !b) return a == b;
    return a->dtype == b->dtype && !a->encoding && !b->encoding && a->data && b->data &&
           cnr_count(a) == 1 && cnr_count(b) == 1 &&
           memcmp(a->data, b->data, (size_t)cnr_dense_bytes(a)) == 0;
}

/* The dequantize_linear with one scale that produces `value`, and its inputs; NULL: none. */
static const cnr_node *source(const graph *g, cnr_value value, const cnr_value **in) {
    const int32_t producer = int8_host->graph_producer(g, value);
    if (producer < 0) return NULL;
    const cnr_node *node = int8_host->graph_node_at(g, producer, in, NULL);
    if (!graph_is(node, "dequantize_linear") || !int8_is_byte(node->inputs[0])) return NULL;
    return int8_is_scalar(node->inputs[1], 1u << CNR_f32) ? node : NULL;
}

/* 1 if two nodes have the same scale and zero point. */
static int same_scale(const cnr_node *a, const cnr_node *b) {
    return same_data(cnr_own_input(a, 1), cnr_own_input(b, 1)) &&
           same_data(cnr_own_input(a, 2), cnr_own_input(b, 2));
}

/* Replaces quantising a dequantised q by q itself. 1: done. */
static int32_t cancel(graph *g, int32_t index) {
    const cnr_value *in, *before, *out;
    const cnr_node *node = int8_host->graph_node_at(g, index, &in, &out);
    if (!graph_is(node, "quantize_linear") || int8_host->graph_use_count(g, out[0]) == 0) return 0;
    const cnr_node *from = source(g, in[0], &before);
    if (!from || from->inputs[0]->dtype != node->outputs[0]->dtype || !same_scale(from, node))
        return 0;
    if (int8_host->graph_producer(g, before[0]) < 0) return 0; /* inputs can't become outputs */
    return int8_host->graph_replace(g, out[0], before[0]) == CNR_OK;
}

/* The first of the nodes that dequantise all inputs with the same scale; NULL: not all are. */
static const cnr_node *quantised(const graph *g, const cnr_node *node, const cnr_value *in,
                                 const cnr_value **q) {
    const cnr_node *first = source(g, in[0], q);
    const cnr_value *other;
    for (int32_t i = 1; first && graph_joins(node) && i < node->n_inputs; i++) {
        const cnr_node *next = source(g, in[i], &other);
        if (!next || next->inputs[0]->dtype != first->inputs[0]->dtype || !same_scale(first, next))
            return NULL;
    }
    return first;
}

/* Moves dequantisation behind a node that only moves elements. 1: done. */
static int32_t move_behind(graph *g, int32_t index, cnr_error *err) {
    const cnr_value *in, *out, *q, *other;
    const cnr_node *node = int8_host->graph_node_at(g, index, &in, &out);
    if (!graph_passes(node) || int8_host->graph_use_count(g, out[0]) == 0) return 0;
    for (int32_t i = 1; i < node->n_outputs; i++)
        if (int8_host->graph_use_count(g, out[i]) > 0) return 0;
    if (node->n_inputs < 1 || !node->inputs[0] || node->outputs[0]->dtype != CNR_f32) return 0;
    const cnr_node *from = quantised(g, node, in, &q);
    if (!from) return 0;
    const cnr_value old = out[0];
    cnr_value *list = int8_host->alloc((size_t)node->n_inputs * sizeof *list);
    if (!list) return int8_host->fail(err, CNR_E_MEMORY, node->name, "out of memory");
    for (int32_t i = 0; i < node->n_inputs; i++) {
        const int joined = i == 0 || graph_joins(node);
        list[i] = joined && source(g, in[i], &other) ? other[0] : in[i];
    }
    const cnr_value back[3] = {-1, q[1], from->n_inputs > 2 ? q[2] : -1};
    cnr_value made[3] = {0, back[1], back[2]};
    int8_host->graph_insert_before(g, index);
    made[0] = graph_add(g, node->desc->name, node->name, node, list, node->n_inputs);
    int8_host->free(list);
    const cnr_value real =
        made[0] < 0 ? -1 : graph_add(g, "dequantize_linear", NULL, NULL, made, 3);
    if (real < 0 || int8_host->graph_replace(g, old, real) != CNR_OK)
        return int8_host->fail(err, CNR_E_STATE, "quantized-pass-through", "could not be applied");
    return 1;
}

/* Applies the rewrite; returns changes, or a negative status. */
static int32_t apply(graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < int8_host->graph_node_count(g); i++) {
        int32_t done = cancel(g, i);
        if (!done) done = move_behind(g, i, err);
        if (done < 0) return done;
        changes += done;
    }
    return changes;
}

const cnr_rewrite int8_pass_through = {
    .size = sizeof(cnr_rewrite),
    .order = 60,
    .name = "quantized-pass-through",
    .summary = "lets quantised numbers pass from layer to layer as they are",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE,
    .example = int8_example_pass,
};
