/* Part of quantize-layers: also quantises sums and products of two values, functions of one
 * value (as tables) and means of planes, if quantised layers produce all inputs and one
 * reads the result. */
#include "quantize.h"

#include <math.h>
#include <stdio.h>

enum { REAL = 1u << CNR_f32 };

/* ---- candidates ---- */

/* 1 if b has a's shape, or (by_channel) one number for each channel of a. */
static int goes_with(const cnr_tensor *a, const cnr_tensor *b, int by_channel) {
    if (a->rank != b->rank) return 0;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i] && !(by_channel && i >= 2 && b->dim[i] == 1)) return 0;
    return 1;
}

/* 1 for add and mul of two pictures of the same shape. */
static int is_pair(const cnr_node *node) {
    const int mul = graph_is(node, "mul");
    if ((!mul && !graph_is(node, "add")) || node->n_inputs != 2) return 0;
    const cnr_tensor *a = node->inputs[0], *b = node->inputs[1];
    return a && b && a->rank >= 2 && (goes_with(a, b, mul) || goes_with(b, a, mul));
}

/* The data of the second operand if it is constant; NULL: it is not. */
static const float *second_of(const cnr_node *node) {
    return node->n_inputs == 2 && node->inputs[1] ? node->inputs[1]->data : NULL;
}

/* Whether the node is an element-wise operator of one value and constants (an operand, or
 * limits). */
static int is_function(const cnr_node *node) {
    if (!(node->desc->flags & CNR_OP_ELEMENTWISE) || !CNR_HAS(node->desc, apply_f32)) return 0;
    for (int32_t i = 1; i < node->n_inputs; i++)
        if (node->inputs[i] && !int8_is_scalar(node->inputs[i], REAL)) return 0;
    return 1;
}

/* 1 if the node can work on quantised values: its inputs are computed f32 values, and it adds or
 * multiplies two pictures, is a function of one value, or a global average pool. */
int follow_can(const cnr_node *node, const cnr_value *in, const graph *g) {
    if (node->n_inputs < 1 || node->n_outputs != 1 || node->n_epilogue) return 0;
    for (int32_t i = 0; i < follow_values(node); i++)
        if (in[i] < 0 || !node->inputs[i] || node->inputs[i]->dtype != CNR_f32 ||
            node->inputs[i]->encoding || int8_host->graph_producer(g, in[i]) < 0)
            return 0;
    if (node->outputs[0]->dtype != CNR_f32 || graph_passes(node)) return 0;
    return is_pair(node) || is_function(node) || graph_is(node, "global_average_pool");
}

int32_t follow_values(const cnr_node *node) { return is_pair(node) ? 2 : 1; }

/* ---- selection ---- */

/* Number of the node's first inputs that it reads as bytes: its operands, or the values it
 * moves. */
static int32_t reads(const work *w, int32_t index, const cnr_node *node) {
    if (w->layer[index] == FOLLOWER) return follow_values(node);
    if (w->layer[index] || w->relu_of[index] != NONE) return 1;
    return !graph_passes(node) ? 0 : graph_joins(node) ? node->n_inputs : 1;
}

/* Sets is_byte: values that quantised layers and nodes that move bytes produce. */
static void mark_bytes(work *w) {
    memset(w->is_byte, 0, (size_t)w->n_values);
    for (int32_t i = 0; i < w->n_nodes; i++) {
        const cnr_value *in, *out;
        const cnr_node *node = int8_host->graph_node_at(w->g, i, &in, &out);
        const int32_t n = reads(w, i, node);
        int all = n > 0;
        for (int32_t k = 0; k < n && w->layer[i] != LAYER; k++)
            all &= in[k] >= 0 && w->is_byte[in[k]];
        if (node->n_outputs > 0) w->is_byte[out[0]] = (uint8_t)all;
    }
}

/* Sets is_wanted: values that a quantised layer reads, directly or moved. */
static void mark_wanted(work *w) {
    memset(w->is_wanted, 0, (size_t)w->n_values);
    for (int32_t i = w->n_nodes - 1; i >= 0; i--) {
        const cnr_value *in, *out;
        const cnr_node *node = int8_host->graph_node_at(w->g, i, &in, &out);
        const int32_t n = reads(w, i, node);
        const int wanted = w->layer[i] == LAYER || (node->n_outputs > 0 && w->is_wanted[out[0]]);
        for (int32_t k = 0; k < n && wanted; k++)
            if (in[k] >= 0) w->is_wanted[in[k]] = 1;
    }
}

int follow_withdraw(work *w) {
    int changed = 0;
    mark_bytes(w);
    mark_wanted(w);
    for (int32_t i = 0; i < w->n_nodes; i++) {
        const cnr_value *out;
        if (w->layer[i] != FOLLOWER) continue;
        int8_host->graph_node_at(w->g, i, NULL, &out);
        if (w->is_byte[out[0]] && w->is_wanted[out[0]]) continue;
        w->layer[i] = 0;
        changed = 1;
    }
    return changed;
}

/* ---- creating nodes ---- */

/* The table of the node's quantised results for all dequantised bytes. */
static cnr_value table_of(work *w, const cnr_node *node, const char *name, cnr_value x,
                          cnr_value y) {
    const value_group *from = &w->groups[quantize_find(w, x)];
    const value_group *to = &w->groups[quantize_find(w, y)];
    const int64_t n = 256;
    float in[256], other[256], out[256];
    uint8_t table[256];
    for (int32_t i = 0; i < 256; i++) {
        in[i] = (float)(i - from->zero) * from->scale;
        other[i] = second_of(node) ? *second_of(node) : 0;
    }
    node->desc->apply_f32(node, in, second_of(node) ? other : NULL, out, 256);
    for (int32_t i = 0; i < 256; i++) {
        const float v = rintf(out[i] / to->scale) + (float)to->zero;
        table[i] = (uint8_t)(v > 255 ? 255 : v > 0 ? v : 0);
    }
    return graph_bytes(w->g, name, "table", CNR_u8, table, 1, &n);
}

/* in[0..2]: the quantised form of a value: bytes, scale and zero point, which are added. 0:
 * failed. */
static int operand(work *w, cnr_value v, cnr_value *in) {
    quantize_constants(w, v, &in[1], &in[2]);
    const cnr_value list[] = {v, in[1], in[2]};
    in[0] = graph_add(w->g, "quantize_linear", NULL, NULL, list, 3);
    return in[0] >= 0;
}

cnr_status follow_quantise(work *w, int32_t index) {
    const cnr_value *nin, *nout;
    const cnr_node *node = int8_host->graph_node_at(w->g, index, &nin, &nout);
    const int pair = is_pair(node), function = !pair && is_function(node);
    const cnr_value y = nout[0];
    cnr_value values[2] = {nin[0], pair ? nin[1] : -1}, in[8], made, ys[3];
    char name[256], op[64];
    if (pair && cnr_count(node->inputs[0]) < cnr_count(node->inputs[1])) {
        values[0] = nin[1];
        values[1] = nin[0];
    }
    snprintf(name, sizeof name, "%.240s.int8", node->name);
    snprintf(op, sizeof op, "qlinear_%s", function ? "table" : node->desc->name);
    const cnr_value table = function ? table_of(w, node, name, values[0], y) : -1;
    quantize_constants(w, y, &ys[1], &ys[2]);
    int8_host->graph_insert_before(w->g, index);
    if (!operand(w, values[0], in) || (pair && !operand(w, values[1], in + 3))) return CNR_E_STATE;
    int32_t n = pair ? 6 : 3;
    if (function) {
        in[1] = table;
        n = 2;
    } else {
        in[n++] = ys[1];
        in[n++] = ys[2];
    }
    made = graph_add(w->g, op, name, NULL, in, n);
    ys[0] = made;
    const cnr_value real = made < 0 ? -1 : graph_add(w->g, "dequantize_linear", NULL, NULL, ys, 3);
    if (real < 0) return CNR_E_STATE;
    CNR_TRY(int8_host->graph_replace(w->g, y, real));
    return int8_host->graph_remove(w->g, index + (pair ? 4 : 3));
}
