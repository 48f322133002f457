/* spread-row-norms: a batch normalisation of rows (N C) becomes the weight and bias of the matrix
 * product before it, through the reshape between them, as linear layers with such a normalisation
 * are exported. Behind anything else it becomes three operations an element, which kernels of
 * rows run along channels. For plans only: training may change the statistics. */
#include "ops_kit.h"
#include <math.h>

extern const cnr_rewrite ops_spread_row_norms;

/* The normalisation's numbers of each channel: (x - mean) * factor + start. */
typedef struct row_norm {
    int64_t channels;
    float *mean, *factor, *start; /* one allocation, of mean */
} row_norm;

/* 1: the node is a batch normalisation of one number a channel and row, with constants; *norm
 * receives them. */
static int is_row_norm(const cnr_node *node, row_norm *norm) {
    if (!kit_is(node, "batch_normalization") || node->n_outputs != 1) return 0;
    const cnr_tensor *x = node->inputs[0], *const *in = (const cnr_tensor *const *)node->inputs;
    if (x->rank != 2 || x->dtype != CNR_f32 || x->dim[1] < 1) return 0;
    norm->channels = x->dim[1];
    for (int32_t p = 1; p < 5; p++)
        if (!cnr_is_constant(in[p]) || !in[p]->data || in[p]->encoding || in[p]->dtype != CNR_f32 ||
            cnr_count(in[p]) != norm->channels)
            return 0;
    norm->mean = ops_host->alloc((size_t)norm->channels * 3 * sizeof(float));
    if (!norm->mean) return 0;
    norm->factor = norm->mean + norm->channels;
    norm->start = norm->factor + norm->channels;
    for (int64_t c = 0; c < norm->channels; c++) {
        const double variance = (double)((const float *)in[4]->data)[c];
        norm->mean[c] = ((const float *)in[3]->data)[c];
        norm->start[c] = ((const float *)in[2]->data)[c];
        norm->factor[c] = (float)((double)((const float *)in[1]->data)[c] /
                                  sqrt(variance + cnr_attr_float(node, "epsilon")));
    }
    return 1;
}

/* A constant of one number a channel. */
static cnr_value vector(kit_build *b, const row_norm *norm, const float *data) {
    const cnr_tensor t = {.size = sizeof t,
                          .dtype = CNR_f32,
                          .rank = 1,
                          .dim = {norm->channels},
                          .flags = CNR_TENSOR_CONST,
                          .bytes = (uint64_t)norm->channels * sizeof(float),
                          .data = (void *)data};
    return b->status ? -1 : ops_host->graph_constant(b->graph, NULL, &t);
}

/* The product by a constant weight of so many columns that makes a value, through a sum with a
 * constant vector; *bias receives that, or -1. NULL: none does. */
static const cnr_node *product_of(const struct cnr_graph *g, cnr_value value, int64_t channels,
                                  const cnr_value **in, cnr_value *bias) {
    const cnr_node *node = kit_sole_maker(g, value, in);
    *bias = -1;
    for (int k = 0; kit_is(node, "add") && *bias < 0 && k < 2; k++) {
        const cnr_tensor *t = node->inputs[k];
        if (cnr_is_constant(t) && t->rank == 1 && t->dim[0] == channels) *bias = (*in)[k];
        if (*bias >= 0) node = kit_sole_maker(g, (*in)[1 - k], in);
    }
    if (!kit_is(node, "matmul") || node->inputs[1]->rank < 2 || node->inputs[1]->encoding)
        return NULL;
    const cnr_tensor *w = node->inputs[1];
    return cnr_is_constant(w) && w->dim[w->rank - 1] == channels ? node : NULL;
}

/* The product with the normalisation in its weight, and in a bias; -1: there is no product. */
static cnr_value in_product(kit_build *b, const cnr_node *norm_node, cnr_value x,
                            const row_norm *norm) {
    const cnr_value *in;
    cnr_value bias;
    const cnr_tensor rows = *norm_node->outputs[0];
    const cnr_node *reshape = kit_sole_maker(b->graph, x, &in);
    const int reshaped = kit_is(reshape, "reshape") || kit_is(reshape, "flatten");
    const cnr_node *product =
        product_of(b->graph, reshaped ? in[0] : x, norm->channels, &in, &bias);
    if (!product || !kit_known(product->outputs[0]) || !kit_known(&rows)) return -1;
    const cnr_value a = in[0], w = in[1];
    const cnr_value factor = vector(b, norm, norm->factor);
    const cnr_value mean = vector(b, norm, norm->mean);
    cnr_value shift = bias < 0 ? kit_node1(b, "neg", mean) : kit_node2(b, "sub", bias, mean);
    shift = kit_node2(b, "add", kit_node2(b, "mul", shift, factor), vector(b, norm, norm->start));
    const cnr_value y =
        kit_node2(b, "add", kit_node2(b, "matmul", a, kit_node2(b, "mul", w, factor)), shift);
    return reshaped ? kit_reshape(b, y, &rows) : y;
}

/* What the normalisation is replaced by; -1: it stays. */
static cnr_value spread(kit_build *b, const cnr_node *node, const cnr_value *in) {
    row_norm norm;
    const cnr_value x = in[0];
    if (!is_row_norm(node, &norm)) return -1;
    cnr_value y = in_product(b, node, x, &norm);
    if (y < 0 && !b->status) {
        y = kit_node2(b, "sub", x, vector(b, &norm, norm.mean));
        y = kit_node2(b, "mul", y, vector(b, &norm, norm.factor));
        y = kit_node2(b, "add", y, vector(b, &norm, norm.start));
    }
    ops_host->free(norm.mean);
    return y;
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    return kit_replace_nodes(g, &ops_spread_row_norms, spread, err);
}

const cnr_rewrite ops_spread_row_norms = {
    .size = sizeof(cnr_rewrite),
    .order = 32,
    .name = "spread-row-norms",
    .summary = "makes batch normalisations of rows part of the matrix products before them",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE | CNR_REWRITE_PLAN,
    .example = ops_example_rows,
};
