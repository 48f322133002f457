/* Gives a net that is trained on a new head: its last layer with weights gets one output for
 * each class, filled at random. */
#include "train/train.h"
#include <math.h>

/* The axis of input k that has an entry for each class, if the input is an f32 weight; else -1. */
static int32_t axis_at(const cnr_graph *g, const cnri_node *node, int32_t k, int64_t classes) {
    const cnr_value v = node->in[k];
    if (v < 0 || g->values.at[v].producer >= 0 || g->values.at[v].is_input) return -1;
    const cnr_tensor *type = g->values.at[v].type;
    const bool port = cnri_train_is_parameter(node, k);
    if (type->dtype != CNR_f32 || type->encoding || type->rank < 1) return -1;
    if (!port && !cnri_train_is_linear(g, node, k)) return -1;
    const int32_t bias = cnri_train_bias_axis(g, node, k);
    const int32_t axis = bias >= 0 ? bias : cnri_train_class_axis(node, k);
    return axis >= 0 && type->dim[axis] == classes ? axis : -1;
}

/* The input value that the node's other operands act on: the first that is no constant; -1:
 * none. */
static cnr_value carried(const cnr_graph *g, const cnri_node *node) {
    for (int32_t k = 0; k < node->view.n_inputs; k++)
        if (node->in[k] >= 0 &&
            (g->values.at[node->in[k]].producer >= 0 || g->values.at[node->in[k]].is_input))
            return node->in[k];
    return -1;
}

/* The layer that computes the scores; NULL: there is none, or a layer with other weights follows
 * it. *bias is the node behind it that adds its bias, or NULL. */
static const cnri_node *find_head(const cnr_graph *g, int64_t classes, const cnri_node **bias) {
    *bias = NULL;
    for (cnr_value v = g->outputs.at[0]; v >= 0 && g->values.at[v].producer >= 0;) {
        const cnri_node *node = g->nodes.at[g->values.at[v].producer];
        for (int32_t k = 0; k < node->view.n_inputs; k++) {
            const cnr_value in = node->in[k];
            if (in < 0 || in == carried(g, node)) continue;
            const bool port = cnri_train_is_parameter(node, k);
            if (!port && !cnri_train_is_weight(g, in)) continue;
            const bool fits = axis_at(g, node, k, classes) >= 0;
            const bool added = cnri_train_bias_axis(g, node, k) >= 0;
            if (!added && g->values.at[in].type->rank > 1) return fits ? node : NULL;
            if (!added || !fits) return NULL;
            *bias = node;
        }
        v = carried(g, node);
    }
    return NULL;
}

/* Fills a weight evenly within 1 / sqrt(inputs), and a bias with 0. */
static void fill(float *data, const cnr_tensor *type, int32_t axis, bool is_bias, uint64_t seed) {
    const int64_t n = cnr_count(type);
    const double bound =
        type->dim[axis] > 0 && n > 0 ? sqrt((double)type->dim[axis] / (double)n) : 0;
    uint64_t s = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int64_t i = 0; i < n; i++) {
        s = s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const double part = (double)(s >> 11) / 9007199254740992.0;
        data[i] = is_bias ? 0 : (float)(bound * (2 * part - 1));
    }
}

enum { MAX_PARTS = 16 };
/* The weights and attributes of a last layer that get a new size. */
typedef struct parts {
    cnri_resizing list[MAX_PARTS];
    cnr_tensor types[MAX_PARTS];
    int32_t n;
} parts;

/* Adds a weight with entries for the new number of classes, filled at random. */
static cnr_status add_weight(parts *p, const cnr_graph *g, cnr_value v, int32_t axis, bool is_bias,
                             int64_t classes, uint64_t seed, cnr_error *err) {
    cnr_tensor *type = &p->types[p->n];
    *type = *g->values.at[v].type;
    type->dim[axis] = classes;
    type->flags = 0;
    type->bytes = cnr_dense_bytes(type);
    type->data = cnri_alloc((size_t)type->bytes + 1);
    if (!type->data) return cnri_out_of_memory(err, g->name);
    fill(type->data, type, axis, is_bias, seed);
    p->list[p->n++] = (cnri_resizing){.name = g->values.at[v].name, .data = type};
    return CNR_OK;
}

/* Adds the weights of a node that have an axis of classes. */
static cnr_status add_weights(parts *p, const cnr_graph *g, const cnri_node *node, int64_t from,
                              int64_t classes, uint64_t seed, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t k = 0; k < node->view.n_inputs && p->n < MAX_PARTS && !status; k++) {
        const int32_t axis = axis_at(g, node, k, from);
        if (axis < 0) continue;
        const bool is_bias =
            g->values.at[node->in[k]].type->rank == 1 || cnri_train_bias_axis(g, node, k) >= 0;
        status = add_weight(p, g, node->in[k], axis, is_bias, classes, seed, err);
    }
    return status;
}

/* Gives the last layer, and the node that adds its bias (NULL: none), a new number of classes. */
static cnr_status resize(cnr_graph *g, const cnri_node *head, const cnri_node *bias, int64_t from,
                         int64_t classes, uint64_t seed, cnr_error *err) {
    parts p = {.n = 0};
    cnr_status status = add_weights(&p, g, head, from, classes, seed, err);
    if (!status && bias) status = add_weights(&p, g, bias, from, classes, seed, err);
    for (int32_t k = 0; k < head->view.n_attrs && p.n < MAX_PARTS; k++) {
        const cnr_attr *a = head->view.attrs[k];
        if (a->type == CNR_ATTR_INT && a->set && a->i == from)
            p.list[p.n++] = (cnri_resizing){head->name, NULL, a->name, classes};
    }
    if (!status) status = cnri_graph_resize(g, p.list, p.n, err);
    for (int32_t i = 0; i < MAX_PARTS; i++) cnri_free(p.types[i].data);
    return status;
}

/* Gives the graph, which has one output, the new head. */
static cnr_status give_head(cnr_graph *g, int64_t classes, uint64_t seed, cnr_error *err) {
    const cnr_tensor *scores = cnri_graph_type(g, g->outputs.at[0]);
    const int64_t from = scores->rank > 1 ? scores->dim[1] : -1;
    const cnri_node *bias = NULL, *head = from > 0 ? find_head(g, from, &bias) : NULL;
    if (!head)
        return cnri_fail(err, CNR_E_UNSUPPORTED, g->name,
                         "can't have a new head because its scores are not computed by a last "
                         "layer with weights of its own");
    CNR_TRY(resize(g, head, bias, from, classes, seed, err));
    scores = cnri_graph_type(g, g->outputs.at[0]);
    if (scores->rank < 2 || scores->dim[1] != classes)
        return cnri_fail(err, CNR_E_UNSUPPORTED, g->name,
                         "can't have a new head because its scores lie along axis 1 and the "
                         "channels of %s along another axis",
                         head->name);
    return cnri_graph_meta(g, "labels") && from != classes ? cnri_graph_set_meta(g, "labels", NULL)
                                                           : CNR_OK;
}

bool cnri_train_is_head(const cnr_graph *g, cnr_value v) {
    const cnr_tensor *scores = cnri_graph_type(g, g->outputs.at[0]);
    const cnri_node *nodes[2] = {NULL, NULL};
    if (scores->rank > 1 && scores->dim[1] > 0) nodes[0] = find_head(g, scores->dim[1], &nodes[1]);
    for (int i = 0; i < 2; i++)
        for (int32_t k = 0; nodes[i] && k < nodes[i]->view.n_inputs; k++)
            if (nodes[i]->in[k] == v) return true;
    return false;
}

cnr_status cnri_train_head(cnr_graph **net, int64_t classes, uint64_t seed, cnr_error *err) {
    cnr_graph *g = NULL;
    cnr_status status =
        (*net)->outputs.n == 1
            ? cnri_graph_clone(*net, &g, err)
            : cnri_fail(err, CNR_E_UNSUPPORTED, (*net)->name,
                        "can't have a new head because it has %d outputs", (*net)->outputs.n);
    if (!status) status = give_head(g, classes, seed, err);
    if (status) {
        cnri_graph_free(g);
        return status;
    }
    cnri_graph_free(*net);
    *net = g;
    return CNR_OK;
}
