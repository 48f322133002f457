/* quantize-layers: replaces float layers with calibrated inputs and outputs by integer layers.
 *
 * Runs only if the graph requests it (see cnr_rewrite in import.h). Weights are symmetric i8 with
 * one scale per output channel, activations u8 with one scale per value, biases i32.
 *
 *     y = conv(x, w, b)  ->  y = dequantize(qlinear_conv(quantize(x), ..))
 *
 * Nodes that only move or select elements (pools, concat) have the same scale for inputs and
 * output, so that dequantize and quantize between layers cancel. Other operators between layers are
 * quantised by rewrite_follow.c. A relu behind a layer becomes the saturation of its output, whose
 * least byte then means 0. The same holds for relu6, and for a clip from 0 on, if the largest byte
 * means at most its upper limit. A leaky relu or prelu behind a layer becomes its slopes, so that
 * bytes are made by the range behind it. */
#include "quantize.h"

#include <math.h>
#include <stdio.h>

/* ---- layers ---- */

/* 1 for a plain f32 constant of that rank (-1: any) */
static int constant_f32(const cnr_tensor *t, int32_t rank) {
    return t && t->dtype == CNR_f32 && !t->encoding && t->data && (t->flags & CNR_TENSOR_CONST) &&
           !(t->flags & CNR_TENSOR_VARIABLE) && (rank < 0 || t->rank == rank);
}

/* Whether a gemm is x * w + c, with x not transposed and c a number for each column. */
static int gemm_is_dense(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1], *c = cnr_own_input(node, 2);
    return x && x->rank == 2 && constant_f32(w, 2) && !cnr_attr_int(node, "transA") &&
           cnr_attr_float(node, "alpha") == 1 && (!c || cnr_attr_float(node, "beta") == 1) &&
           (!c || c->dim[0] == w->dim[cnr_attr_int(node, "transB") ? 0 : 1]);
}

/* 1 for conv, dense and gemm with constant f32 weights. */
static int can_quantise(const cnr_node *node) {
    const int conv = graph_is(node, "conv"), gemm = graph_is(node, "gemm");
    if (!conv && !gemm && !graph_is(node, "dense")) return 0;
    const cnr_tensor *x = node->inputs[0], *w = cnr_own_input(node, 1), *b = cnr_own_input(node, 2);
    if (!x || x->dtype != CNR_f32 || !constant_f32(w, conv ? -1 : 2)) return 0;
    if (b && !constant_f32(b, 1)) return 0;
    if (gemm && !gemm_is_dense(node)) return 0;
    for (int64_t i = 0; i < cnr_count(w); i++)
        if (!isfinite(((const float *)w->data)[i])) return 0;
    return cnr_count(w) > 0;
}

/* ---- groups of values ---- */

int32_t quantize_find(work *w, cnr_value v) {
    while (w->of[v] != v) v = w->of[v] = w->of[w->of[v]];
    return v;
}

/* Lets two values share their scale, by giving both groups one representative, the smaller. */
static void unite(work *w, cnr_value a, cnr_value b) {
    a = quantize_find(w, a);
    b = quantize_find(w, b);
    w->of[cnr_max(a, b)] = (int32_t)cnr_min(a, b);
}

/* Whether the node is max(x, 0), limited to *most (infinity: unlimited). */
static int is_relu(const cnr_node *node, double *most) {
    *most = INFINITY;
    if (graph_is(node, "relu")) return 1;
    if (graph_is(node, "relu6")) {
        *most = 6;
        return 1;
    }
    if (!graph_is(node, "clip")) return 0;
    double limit[2] = {cnr_attr_float(node, "min"), cnr_attr_float(node, "max")};
    for (int32_t i = 0; i < 2; i++) {
        const cnr_tensor *t = cnr_own_input(node, i + 1);
        if (t && !int8_is_scalar(t, 1u << CNR_f32)) return 0;
        if (t) limit[i] = (double)*(const float *)t->data;
    }
    if (limit[0] != 0) return 0;
    *most = limit[1];
    return *most > 0;
}

/* Index of the quantised layer whose output, possibly moved, only this relu reads; NONE: there is
 * none. */
static int32_t layer_before(const work *w, int32_t relu) {
    const cnr_value *in, *out;
    int8_host->graph_node_at(w->g, relu, &in, NULL);
    cnr_value v = in[0];
    for (;;) {
        const int32_t producer = int8_host->graph_producer(w->g, v);
        if (producer < 0 || int8_host->graph_use_count(w->g, v) != 1) return NONE;
        if (w->layer[producer]) return producer;
        const cnr_node *node = int8_host->graph_node_at(w->g, producer, &in, &out);
        if (!graph_passes(node) || graph_joins(node)) return NONE;
        v = in[0];
    }
}

/* Index of the quantised layer whose output only this node reads, directly; NONE: there is none. */
static int32_t layer_with(const work *w, int32_t sloped) {
    const cnr_value *in;
    int8_host->graph_node_at(w->g, sloped, &in, NULL);
    const int32_t producer = int8_host->graph_producer(w->g, in[0]);
    if (producer < 0 || int8_host->graph_use_count(w->g, in[0]) != 1) return NONE;
    return w->layer[producer] == LAYER ? producer : NONE;
}

/* Marks the values between the layer and the relu as clipped at 0. */
static void mark_cut(work *w, int32_t relu) {
    const cnr_value *in;
    int8_host->graph_node_at(w->g, relu, &in, NULL);
    for (cnr_value v = in[0];;) {
        const int32_t producer = int8_host->graph_producer(w->g, v);
        w->cut[v] = 1;
        if (producer == w->relu_of[relu]) return;
        int8_host->graph_node_at(w->g, producer, &in, NULL);
        v = in[0];
    }
}

/* Unites values that must share a scale, and merges relus into their layers. */
static void make_groups(work *w) {
    double most;
    for (int32_t v = 0; v < w->n_values; v++) {
        w->of[v] = v;
        w->cut[v] = 0;
    }
    for (int32_t i = 0; i < w->n_nodes; i++) {
        const cnr_value *in, *out;
        const cnr_node *node = int8_host->graph_node_at(w->g, i, &in, &out);
        w->relu_of[i] = NONE;
        if (node->n_inputs < 1 || node->n_outputs < 1 || in[0] < 0) continue;
        if (graph_passes(node)) {
            const int32_t n = graph_joins(node) ? node->n_inputs : 1;
            for (int32_t k = 0; k < n; k++)
                if (in[k] >= 0) unite(w, in[k], out[0]);
        } else if (graph_slopes(node, NULL)) {
            w->relu_of[i] = layer_with(w, i);
            if (w->relu_of[i] == NONE) continue;
            w->layer[i] = 0;
            unite(w, in[0], out[0]);
            mark_cut(w, i);
        } else if (is_relu(node, &most) && w->layer[i] != FOLLOWER) {
            if (!w->banned[i]) w->relu_of[i] = layer_before(w, i);
            if (w->relu_of[i] == NONE) {
                if (w->banned[i] < 2 && int8_host->graph_should_quantise(w->g, i))
                    w->layer[i] = (uint8_t)(follow_can(node, in, w->g) ? FOLLOWER : 0);
                w->banned[i] = 2;
                continue;
            }
            unite(w, in[0], out[0]);
            mark_cut(w, i);
        }
    }
}

/* Computes scale and zero point of each group from the calibrated range of its values, extended to
 * include 0. */
static void measure_groups(work *w) {
    for (int32_t v = 0; v < w->n_values; v++)
        w->groups[v] = (value_group){.scale_at = -1, .zero_at = -1};
    for (int32_t v = 0; v < w->n_values; v++) {
        value_group *group = &w->groups[quantize_find(w, v)];
        double low, high;
        if (w->cut[v] || !int8_host->graph_value_range(w->g, v, &low, &high) || !(low <= high))
            continue;
        group->low = fmin(group->low, low);
        group->high = fmax(group->high, high);
        group->known = 1;
    }
    for (int32_t v = 0; v < w->n_values; v++) {
        value_group *group = &w->groups[v];
        group->scale = (float)((group->high - group->low) / 255);
        if (!(group->scale >= 1e-30f && group->scale <= 1e30f)) group->scale = 1;
        group->zero = (int32_t)fmin(255, fmax(0, rint(-group->low / (double)group->scale)));
    }
}

/* Withdraws decisions that the ranges do not allow; 1: there were some. */
static int withdraw(work *w) {
    int changed = 0;
    for (int32_t i = 0; i < w->n_nodes; i++) {
        const cnr_value *in, *out;
        const cnr_node *node = int8_host->graph_node_at(w->g, i, &in, &out);
        int known = !w->layer[i] || w->groups[quantize_find(w, out[0])].known;
        const int32_t values = w->layer[i] == FOLLOWER ? follow_values(node) : 1;
        for (int32_t k = 0; k < values && w->layer[i]; k++)
            known &= w->groups[quantize_find(w, in[k])].known;
        if (!known) {
            w->layer[i] = 0;
            changed = 1;
        }
        if (w->relu_of[i] == NONE || graph_slopes(node, NULL)) continue;
        const value_group *group = &w->groups[quantize_find(w, out[0])];
        double most;
        is_relu(node, &most);
        /* values up to half a step above the largest byte's saturate to the same byte */
        if (group->zero != 0 || 254.5 * (double)group->scale > most) {
            w->banned[i] = 1;
            changed = 1;
        }
    }
    return changed | follow_withdraw(w);
}

/* ---- creating quantised layers ---- */

/* Returns the constants of the group's scale and zero point, adding them the first time. */
void quantize_constants(work *w, cnr_value v, cnr_value *scale, cnr_value *zero) {
    const int32_t stands = quantize_find(w, v);
    value_group *group = &w->groups[stands];
    const uint8_t byte = (uint8_t)group->zero;
    const char *name = int8_host->graph_value_name(w->g, stands);
    if (group->scale_at < 0)
        group->scale_at = graph_f32(w->g, name, "int8_scale", &group->scale, 1);
    if (group->zero_at < 0)
        group->zero_at = graph_bytes(w->g, name, "int8_zero", CNR_u8, &byte, 0, NULL);
    *scale = group->scale_at;
    *zero = group->zero_at;
}

/* Weights of a layer as `rows` rows of `depth`; the elements of a row are `step` apart. */
typedef struct weights {
    const float *w, *bias;
    int64_t rows, depth, row_step, step;
    double x_scale;
    float *scale;
    int8_t *q;
    int32_t *q_bias;
} weights;

/* Quantises a row by its largest number, or more coarsely if its bias would exceed 32 bits. */
static void quantise_row(const weights *q, int64_t r) {
    double most = 0;
    for (int64_t i = 0; i < q->depth; i++)
        most = fmax(most, fabs((double)q->w[r * q->row_step + i * q->step]));
    const double bias = q->bias ? (double)q->bias[r] : 0;
    double scale = fmax(most / 127, fabs(bias) / q->x_scale / (1 << 30));
    if (!(scale >= 1e-30)) scale = 1e-30;
    q->scale[r] = (float)scale;
    for (int64_t i = 0; i < q->depth; i++) {
        const double v = rint((double)q->w[r * q->row_step + i * q->step] / (double)q->scale[r]);
        q->q[r * q->depth + i] = (int8_t)fmin(127, fmax(-127, v));
    }
    const double steps = rint(bias / (q->x_scale * (double)q->scale[r]));
    if (q->q_bias) q->q_bias[r] = (int32_t)fmin(INT32_MAX, fmax(INT32_MIN, steps));
}

/* Reads a layer's weights and how they lie. */
static void weights_of(const cnr_node *node, weights *q) {
    const cnr_tensor *w = node->inputs[1], *b = cnr_own_input(node, 2);
    const int turned = graph_is(node, "gemm") && !cnr_attr_int(node, "transB");
    q->w = w->data;
    q->bias = b ? b->data : NULL;
    q->rows = w->dim[turned ? 1 : 0];
    q->depth = cnr_count(w) / q->rows;
    q->row_step = turned ? 1 : q->depth;
    q->step = turned ? q->rows : 1;
}

/* Quantises the rows of q and adds the layer's constants, named NAME.w and so on, with weights of
 * these dims; puts their values (-1: could not be added) into `in`. 0: out of memory. q's arrays
 * are freed. */
static int add_weights(work *w, const char *name, int32_t rank, const int64_t *dim, weights *q,
                       cnr_value *in) {
    const int8_t zero = 0;
    q->scale = int8_host->alloc((size_t)q->rows * sizeof(float));
    q->q = int8_host->alloc((size_t)(q->rows * q->depth));
    q->q_bias = q->bias ? int8_host->alloc((size_t)q->rows * sizeof(int32_t)) : NULL;
    const int good = q->scale && q->q && (q->q_bias || !q->bias);
    for (int64_t r = 0; good && r < q->rows; r++) quantise_row(q, r);
    if (good) {
        in[INT8_W] = graph_bytes(w->g, name, "w", CNR_i8, q->q, rank, dim);
        in[INT8_W_SCALE] = graph_f32(w->g, name, "w_scale", q->scale, q->rows);
        in[INT8_W_ZERO] = graph_bytes(w->g, name, "w_zero", CNR_i8, &zero, 0, NULL);
        in[INT8_BIAS] =
            q->bias ? graph_bytes(w->g, name, "bias", CNR_i32, q->q_bias, 1, &q->rows) : -1;
    }
    int8_host->free(q->scale);
    int8_host->free(q->q);
    int8_host->free(q->q_bias);
    return good;
}

/* Replaces node `index` (conv, dense or gemm) by three: quantise, the layer of bytes,
 * dequantise. */
static cnr_status quantise(work *w, int32_t index) {
    const cnr_value *nin, *nout;
    const cnr_node *node = int8_host->graph_node_at(w->g, index, &nin, &nout);
    const cnr_value x = nin[0], y = nout[0];
    const int conv = graph_is(node, "conv");
    cnr_value in[INT8_LAYER_PORTS], scale, zero, stored;
    char name[256];
    weights q = {.x_scale = (double)w->groups[quantize_find(w, x)].scale};
    weights_of(node, &q);
    cnr_tensor shape = {.rank = 2, .dim = {q.rows, q.depth}};
    if (conv) shape = *node->inputs[1];
    snprintf(name, sizeof name, "%.240s.int8", node->name);
    quantize_constants(w, x, &in[INT8_X_SCALE], &in[INT8_X_ZERO]);
    quantize_constants(w, y, &scale, &zero);
    if (!add_weights(w, name, shape.rank, shape.dim, &q, in)) return CNR_E_MEMORY;
    in[INT8_Y_SCALE] = scale;
    in[INT8_Y_ZERO] = zero;
    if (!q.bias) in[INT8_BIAS] = -1;
    in[INT8_SLOPE] = w->slope[index];
    const int32_t n = w->slope[index] != NONE ? INT8_SLOPE + 1 : q.bias ? 9 : 8;
    int8_host->graph_insert_before(w->g, index);
    const cnr_value xs[] = {x, in[INT8_X_SCALE], in[INT8_X_ZERO]};
    in[INT8_X] = graph_add(w->g, "quantize_linear", NULL, NULL, xs, 3);
    if (in[INT8_X] < 0) return CNR_E_STATE;
    node = conv ? int8_host->graph_node_at(w->g, index + 1, NULL, NULL) : NULL;
    stored = graph_add(w->g, conv ? "qlinear_conv" : "qlinear_dense", name, node, in, n);
    const cnr_value ys[] = {stored, scale, zero};
    const cnr_value real =
        stored < 0 ? -1 : graph_add(w->g, "dequantize_linear", NULL, NULL, ys, 3);
    if (real < 0) return CNR_E_STATE;
    const value_group *group = &w->groups[quantize_find(w, y)];
    const double zero_point = group->zero, step = (double)group->scale;
    const cnr_value known_as = w->slope[index] != NONE ? w->result[index] : y;
    CNR_TRY(int8_host->graph_set_quantised(w->g, known_as, stored, step, zero_point,
                                           -zero_point * step));
    CNR_TRY(int8_host->graph_replace(w->g, y, real));
    return int8_host->graph_remove(w->g, index + 3);
}

/* Removes a node that its layer computes too; keeps its slopes for the layer. */
static cnr_status merge(work *w, int32_t index) {
    const cnr_value *in, *out;
    const int32_t layer = w->relu_of[index];
    const cnr_node *node = int8_host->graph_node_at(w->g, index, &in, &out);
    if (graph_slopes(node, NULL)) {
        w->result[layer] = out[0];
        w->slope[layer] = graph_slope_constant(w->g, node->name, node);
        if (w->slope[layer] < 0) return CNR_E_MEMORY;
    }
    CNR_TRY(int8_host->graph_replace(w->g, out[0], in[0]));
    return int8_host->graph_remove(w->g, index);
}

/* Replaces all chosen nodes, the last first, so that earlier indices stay valid; returns how many
 * changed, negative: failed. */
static int32_t quantise_all(work *w, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = w->n_nodes - 1; i >= 0; i--) {
        cnr_status status = CNR_OK;
        if (w->relu_of[i] != NONE) {
            status = merge(w, i);
        } else if (w->layer[i] == FOLLOWER) {
            status = follow_quantise(w, i);
        } else if (w->layer[i]) {
            status = quantise(w, i);
        } else {
            continue;
        }
        if (status != CNR_OK)
            return int8_host->fail(err, status, "quantize-layers", "could not be applied");
        changes++;
    }
    return changes;
}

/* ---- the rewrite ---- */

/* One more than the highest number of a value that the graph's nodes and inputs use. */
static int32_t count_values(const graph *g) {
    int32_t most = -1;
    for (int32_t i = 0; i < int8_host->graph_input_count(g); i++)
        most = (int32_t)cnr_max(most, int8_host->graph_input_at(g, i));
    for (int32_t i = 0; i < int8_host->graph_node_count(g); i++) {
        const cnr_value *in, *out;
        const cnr_node *node = int8_host->graph_node_at(g, i, &in, &out);
        for (int32_t k = 0; k < node->n_inputs; k++) most = (int32_t)cnr_max(most, in[k]);
        for (int32_t k = 0; k < node->n_outputs; k++) most = (int32_t)cnr_max(most, out[k]);
    }
    return most + 1;
}

/* Frees the lists of w, not w. */
static void release(work *w) {
    int8_host->free(w->of);
    int8_host->free(w->layer);
    int8_host->free(w->relu_of);
    int8_host->free(w->slope);
    int8_host->free(w->result);
    int8_host->free(w->banned);
    int8_host->free(w->cut);
    int8_host->free(w->is_byte);
    int8_host->free(w->is_wanted);
    int8_host->free(w->groups);
}

/* Allocates the lists for w's numbers of nodes and values. 0: out of memory; `release` frees what
 * there is. */
static int prepare(work *w) {
    const size_t nodes = (size_t)w->n_nodes + 1, values = (size_t)w->n_values + 1;
    w->of = int8_host->alloc(values * sizeof *w->of);
    w->layer = int8_host->alloc(nodes);
    w->relu_of = int8_host->alloc(nodes * sizeof *w->relu_of);
    w->slope = int8_host->alloc(nodes * sizeof *w->slope);
    w->result = int8_host->alloc(nodes * sizeof *w->result);
    w->banned = int8_host->alloc(nodes);
    w->cut = int8_host->alloc(values);
    w->is_byte = int8_host->alloc(values);
    w->is_wanted = int8_host->alloc(values);
    w->groups = int8_host->alloc(values * sizeof *w->groups);
    if (!w->of || !w->layer || !w->relu_of || !w->banned || !w->cut || !w->groups || !w->is_byte ||
        !w->is_wanted || !w->slope || !w->result)
        return 0;
    for (int32_t i = 0; i < w->n_nodes; i++) w->slope[i] = NONE;
    memset(w->banned, 0, nodes);
    return 1;
}

/* Applies the rewrite to layers that the user asked for; returns changes, or a negative status. */
static int32_t apply(graph *g, cnr_error *err) {
    int asked = 0;
    for (int32_t i = 0; i < int8_host->graph_node_count(g) && !asked; i++)
        asked = int8_host->graph_should_quantise(g, i);
    if (!asked) return 0;
    work w = {.g = g, .n_nodes = int8_host->graph_node_count(g), .n_values = count_values(g)};
    int32_t changes = 0;
    if (!prepare(&w)) {
        release(&w);
        return int8_host->fail(err, CNR_E_MEMORY, "quantize-layers", "out of memory");
    }
    for (int32_t i = 0; i < w.n_nodes; i++) {
        const cnr_value *in;
        const cnr_node *node = int8_host->graph_node_at(g, i, &in, NULL);
        double most;
        w.layer[i] = 0;
        if (!int8_host->graph_should_quantise(g, i)) continue;
        if (can_quantise(node)) w.layer[i] = LAYER;
        else if (!is_relu(node, &most) && follow_can(node, in, g)) w.layer[i] = FOLLOWER;
    }
    do {
        make_groups(&w);
        measure_groups(&w);
    } while (withdraw(&w));
    changes = quantise_all(&w, err);
    release(&w);
    return changes;
}

const cnr_rewrite int8_quantize_layers = {
    .size = sizeof(cnr_rewrite),
    .order = 50,
    .name = "quantize-layers",
    .summary = "makes layers work on whole numbers where that is asked for",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE,
};
