/* Shared by the rewrites: access to graphs, quantised nodes, numbers in metadata. */
#include "graphs.h"

#include <math.h>
#include <stdio.h>

int graph_passes(const cnr_node *node) {
    static const char *const ops[] = {"max_pool",       "global_max_pool", "reshape",   "flatten",
                                      "squeeze",        "unsqueeze",       "transpose", "identity",
                                      "space_to_depth", "depth_to_space",  "slice"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (graph_is(node, ops[i])) return 1;
    return graph_joins(node);
}

int graph_joins(const cnr_node *node) { return graph_is(node, "concat"); }

/* Whether t has one element, or else only one for each channel of x. */
static int is_by_channel(const cnr_tensor *x, const cnr_tensor *t) {
    const int32_t axis = 1 - (x->rank - t->rank);
    if (cnr_count(t) == 1) return 1;
    return x->rank >= 2 && axis >= 0 && t->dim[axis] == x->dim[1] && cnr_count(t) == x->dim[1];
}

int64_t graph_slopes(const cnr_node *node, float *out) {
    const float alpha = graph_is(node, "leaky_relu") ? (float)cnr_attr_float(node, "alpha") : 0;
    const cnr_tensor *x = node->n_inputs > 0 ? node->inputs[0] : NULL, *t = NULL;
    if (!x || x->dtype != CNR_f32) return 0;
    if (graph_is(node, "prelu")) t = cnr_own_input(node, 1);
    else if (!graph_is(node, "leaky_relu")) return 0;
    if (t && (!cnr_is_constant(t) || !cnr_is_plain(t, 1u << CNR_f32) || !is_by_channel(x, t)))
        return 0;
    const int64_t n = t ? cnr_count(t) : 1;
    const float *from = t ? t->data : &alpha;
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(from[i])) return 0;
    if (out) memcpy(out, from, (size_t)n * sizeof *out);
    return n;
}

cnr_value graph_slope_constant(graph *g, const char *stem, const cnr_node *node) {
    const int64_t n = graph_slopes(node, NULL);
    float *slopes = int8_host->alloc((size_t)cnr_max(1, n) * sizeof *slopes);
    if (!slopes) return -1;
    graph_slopes(node, slopes);
    const cnr_value made = graph_f32(g, stem, "int8_slope", slopes, n);
    int8_host->free(slopes);
    return made;
}

/* Adds a constant with the data of t, named STEM.SUFFIX (stem NULL: without name); changes t's size
 * and flags. Returns its value, or -1. */
static cnr_value constant(graph *g, const char *stem, const char *suffix, cnr_tensor *t) {
    char name[256];
    if (stem) snprintf(name, sizeof name, "%.200s.%s", stem, suffix);
    t->size = sizeof *t;
    t->flags = CNR_TENSOR_CONST;
    t->bytes = cnr_dense_bytes(t);
    return int8_host->graph_constant(g, stem ? name : NULL, t);
}

cnr_value graph_f32(graph *g, const char *stem, const char *suffix, const float *v, int64_t n) {
    cnr_tensor t = {.dtype = CNR_f32, .rank = n > 1, .dim = {n}, .data = (void *)v};
    return constant(g, stem, suffix, &t);
}

cnr_value graph_bytes(graph *g, const char *stem, const char *suffix, int32_t dtype, const void *v,
                      int32_t rank, const int64_t *dim) {
    cnr_tensor t = {.dtype = dtype, .rank = rank, .data = (void *)v};
    for (int32_t i = 0; i < rank; i++) t.dim[i] = dim[i];
    return constant(g, stem, suffix, &t);
}

/* 1 if an operator has that attribute. */
static int has_attr(const cnr_op *op, const char *name) {
    for (int32_t i = 0; i < op->n_attrs; i++) {
        const char *row = (const char *)op->attrs + (size_t)i * op->attr_spec_size;
        if (strcmp(((const cnr_attr_spec *)(const void *)row)->name, name) == 0) return 1;
    }
    return 0;
}

cnr_value graph_add_with(graph *g, const char *op, const char *name, const cnr_node *like,
                         const cnr_attr *more, int32_t n_more, const cnr_value *in, int32_t n_in) {
    const cnr_op *desc = int8_host->find_op(op);
    const cnr_attr *attrs[32];
    int32_t n = 0;
    cnr_value out = -1;
    if (!desc) return -1;
    for (; n < n_more; n++) attrs[n] = &more[n];
    for (int32_t i = 0; like && i < like->n_attrs && n < 32; i++)
        if (like->attrs[i]->set && has_attr(desc, like->attrs[i]->name))
            attrs[n++] = like->attrs[i];
    const cnr_status status = int8_host->graph_node(g, op, name, NULL, in, n_in, attrs, n, &out, 1);
    return status == CNR_OK ? out : -1;
}

cnr_value graph_add(graph *g, const char *op, const char *name, const cnr_node *like,
                    const cnr_value *in, int32_t n_in) {
    return graph_add_with(g, op, name, like, NULL, 0, in, n_in);
}
