/* Which constants of a net are weights. Layers of convolutional nets have ports for weights. Other
 * programs also write a linear layer as a product by a constant and a sum with another one. */
#include "train/train.h"

/* CNR_PORT_... flags of an operator's input k; 0: it has no such port. */
static uint32_t port_flags(const cnr_op *op, int32_t k) {
    if (k >= op->n_inputs) return 0;
    const char *row = (const char *)op->inputs + (size_t)k * op->port_size;
    return ((const cnr_port *)(const void *)row)->flags;
}

bool cnri_train_is_parameter(const cnri_node *node, int32_t k) {
    return port_flags(node->view.desc, k) & CNR_PORT_PARAMETER;
}

enum { MAX_OPERANDS = 4 };

/* Copies the type to *copy, with 1 for sizes that are open, and returns copy; NULL: t is NULL. */
static cnr_tensor *closed(const cnr_tensor *t, cnr_tensor *copy) {
    if (!t) return NULL;
    *copy = *t;
    for (int32_t a = 0; a < copy->rank; a++)
        if (copy->dim[a] < 0) copy->dim[a] = 1;
    return copy;
}

/* True if the node has two or more inputs, one output, a gradient, and a cost with products that
 * are summed. */
static bool multiplies(const cnri_node *node) {
    const cnr_op *op = node->view.desc;
    const cnr_tensor *inputs[MAX_OPERANDS], *output[1];
    cnr_tensor copies[MAX_OPERANDS + 1];
    cnr_cost cost = {0, 0};
    cnr_node view = node->view;
    if (!CNRI_HAS(op, cost) || !CNRI_HAS(op, gradient) || view.n_inputs < 2 ||
        view.n_inputs > MAX_OPERANDS || view.n_outputs != 1)
        return false;
    for (int32_t k = 0; k < view.n_inputs; k++)
        inputs[k] = closed(node->view.inputs[k], &copies[k]);
    output[0] = closed(node->view.outputs[0], &copies[MAX_OPERANDS]);
    view.inputs = inputs;
    view.outputs = output;
    op->cost(&view, &cost);
    return cost.macs > 0;
}

/* True if a node computes the value, or if it is an input of the net. */
static bool is_computed(const cnr_graph *g, cnr_value v) {
    return v >= 0 && (g->values.at[v].producer >= 0 || g->values.at[v].is_input);
}

int32_t cnri_train_class_axis(const cnri_node *node, int32_t k) {
    const cnr_op *op = node->view.desc;
    if (cnri_train_is_parameter(node, k)) return 0;
    const cnr_tensor *y = node->view.outputs[0], *w = node->view.inputs[k];
    cnr_input_range r = {.axis = -1};
    if (k < 1 || !w || y->rank < 2 || !CNRI_HAS(op, input_range)) return -1;
    op->input_range(&node->view, y->rank - 1, 0, 1, k, &r);
    return r.axis < w->rank ? r.axis : -1;
}

/* The axis of a weight of a product, or of what the product's node adds, that has an entry for each
 * channel; -1: input k is neither. */
static int32_t factor_axis(const cnr_graph *g, const cnri_node *node, int32_t k) {
    const cnr_tensor *x = node->view.inputs[0], *w = node->view.inputs[k];
    if (k < 1 || !x || x->rank < 2 || !is_computed(g, node->in[0]) || !multiplies(node)) return -1;
    const bool added = port_flags(node->view.desc, k) & CNR_PORT_OPTIONAL;
    if (!added && w->rank < 2) return -1;
    const int32_t axis = cnri_train_class_axis(node, k);
    const cnr_tensor *y = node->view.outputs[0];
    /* With one output a bias of one element is not told from one that all outputs share. */
    if (axis < 0 && added && w->rank > 0 && cnr_count(w) == 1 && y->dim[y->rank - 1] == 1)
        return w->rank - 1;
    return axis;
}

/* True if the node adds its two operands: it is asked for two sums. */
static bool adds(const cnri_node *node) {
    const cnr_op *op = node->view.desc;
    const float x[] = {0, 2}, y[] = {3, 3};
    float sum[2] = {0};
    if (node->view.n_inputs != 2 || !(op->flags & CNR_OP_ELEMENTWISE) || !CNRI_HAS(op, apply_f32) ||
        !CNRI_HAS(op, gradient))
        return false;
    op->apply_f32(&node->view, x, y, sum, 2);
    return sum[0] == 3 && sum[1] == 5;
}

/* The axis of a product's outputs along which its channels lie; -1: it is no product by a
 * constant. */
static int32_t channels_of(const cnr_graph *g, const cnri_node *product) {
    for (int32_t i = 1; i < product->view.n_inputs; i++)
        if (product->in[i] >= 0 && !is_computed(g, product->in[i]) &&
            factor_axis(g, product, i) >= 0)
            return cnri_train_is_parameter(product, i) ? 1 : product->view.outputs[0]->rank - 1;
    return -1;
}

/* The axis of input k that has an entry for each channel, if the node adds it to a product by a
 * constant and all its other axes have the size 1; else -1. */
static int32_t sum_axis(const cnr_graph *g, const cnri_node *node, int32_t k) {
    const cnr_tensor *w = node->view.inputs[k], *y = node->view.outputs[0];
    if (node->view.n_inputs != 2 || !w || w->rank < 1 || w->rank > y->rank || !adds(node))
        return -1;
    const cnr_value other = node->in[1 - k];
    const int32_t maker = is_computed(g, other) ? g->values.at[other].producer : -1;
    const int32_t channels = maker < 0 ? -1 : channels_of(g, g->nodes.at[maker]);
    const int32_t axis = channels - (y->rank - w->rank);
    if (channels < 0 || axis < 0 || w->dim[axis] != y->dim[channels]) return -1;
    return cnr_count(w) == w->dim[axis] ? axis : -1;
}

int32_t cnri_train_bias_axis(const cnr_graph *g, const cnri_node *node, int32_t k) {
    if (!cnri_train_is_parameter(node, k) && port_flags(node->view.desc, k) & CNR_PORT_OPTIONAL)
        return factor_axis(g, node, k);
    return sum_axis(g, node, k);
}

bool cnri_train_is_linear(const cnr_graph *g, const cnri_node *node, int32_t k) {
    return factor_axis(g, node, k) >= 0 || sum_axis(g, node, k) >= 0;
}

/* True if every node that reads the value reads it as a weight of a linear layer. */
static bool fed_as_linear(const cnr_graph *g, cnr_value v) {
    bool any = false;
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        for (int32_t k = 0; k < node->view.n_inputs; k++) {
            if (node->in[k] != v) continue;
            if (!cnri_train_is_linear(g, node, k)) return false;
            any = true;
        }
    }
    return any;
}

bool cnri_train_fed_as_weight(const cnr_graph *g, cnr_value v) {
    return cnri_train_fed_as(g, v, CNR_PORT_PARAMETER) || fed_as_linear(g, v);
}

bool cnri_train_is_weight(const cnr_graph *g, cnr_value v) {
    const cnri_value *value = &g->values.at[v];
    const cnr_tensor *t = value->type;
    return value->producer < 0 && !value->is_input && value->uses > 0 && t->data &&
           t->dtype == CNR_f32 && !t->encoding && !t->quant && cnri_train_fed_as_weight(g, v);
}

/* True if the value is computed of constants by a few nodes, `depth` in a row at most. */
static bool is_constant(const cnr_graph *g, cnr_value v, int depth) {
    if (v < 0) return true;
    const cnri_value *value = &g->values.at[v];
    if (value->producer < 0) return !value->is_input;
    const cnri_node *node = g->nodes.at[value->producer];
    for (int32_t k = 0; k < node->view.n_inputs; k++)
        if (depth == 0 || !is_constant(g, node->in[k], depth - 1)) return false;
    return node->view.n_inputs > 0;
}

bool cnri_train_is_turned(const cnr_graph *g, cnr_value v) {
    return g->values.at[v].producer >= 0 && g->values.at[v].uses > 0 &&
           cnri_train_fed_as_weight(g, v) && is_constant(g, v, 4);
}

cnr_status cnri_train_fold(cnr_graph *net, cnr_error *err) {
    bool own = false, linear = false, turned = false;
    for (cnr_value v = 0; v < net->values.n; v++) {
        const bool weight = cnri_train_is_weight(net, v);
        const bool port = weight && cnri_train_fed_as(net, v, CNR_PORT_PARAMETER);
        own = own || port;
        linear = linear || (weight && !port);
        turned = turned || cnri_train_is_turned(net, v);
    }
    return own || (linear && !turned) ? CNR_OK : cnri_graph_rewrite(net, NULL, NULL, 0, err);
}
