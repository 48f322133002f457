/* merge-branches: the sum of two convolutions of one input becomes one convolution whose window is
 * the larger one, as RepVGG and MobileOne have branches of several windows and of a normalisation.
 * After Ding et al., "RepVGG: Making VGG-style ConvNets Great Again", 2021. */
#include "ops_kit.h"
#include "ops_window.h"
#include <math.h>

extern const cnr_rewrite ops_merge_branches;

/* A convolution, or a batch normalisation as one whose window is 1. */
typedef struct branch {
    const cnr_node *node; /* valid until nodes are added */
    int norm;
    cnr_value x, weight, bias; /* of a normalisation: made later; bias -1: none */
    cnr_window window;
    int64_t group; /* 0: any */
} branch;

/* 1: the constant can be read as f32. */
static int is_plain(const cnr_tensor *t) {
    return cnr_is_constant(t) && t->dtype == CNR_f32 && !t->encoding;
}

/* Fills *b for a batch normalisation with constants. */
static int norm_of(const cnr_node *node, branch *b) {
    const int64_t channels = node->inputs[0]->dim[1];
    for (int32_t p = 1; p < 5; p++)
        if (!is_plain(node->inputs[p]) || !node->inputs[p]->data ||
            cnr_count(node->inputs[p]) != channels)
            return 0;
    b->norm = 1;
    b->window.spatial = node->inputs[0]->rank - 2;
    for (int32_t i = 0; i < b->window.spatial; i++) {
        b->window.kernel[i] = b->window.stride[i] = b->window.dilation[i] = 1;
        b->window.pad_begin[i] = 0;
        b->window.out[i] = node->inputs[0]->dim[2 + i];
    }
    return 1;
}

/* The branch that ends in a value, which nothing else reads; 0: it is none. */
static int branch_of(const struct cnr_graph *g, cnr_value value, branch *b) {
    const cnr_value *in;
    cnr_error err = CNR_ERROR_INIT;
    const cnr_node *node = kit_sole_maker(g, value, &in);
    *b = (branch){.node = node, .bias = -1};
    if (!node) return 0;
    const cnr_tensor *x = node->inputs[0];
    if (!x || x->dtype != CNR_f32 || x->rank < 3 || x->rank > 2 + CNR_MAX_SPATIAL ||
        !kit_known(x) || !kit_known(node->outputs[0]))
        return 0;
    b->x = in[0];
    if (kit_is(node, "batch_normalization") && node->n_outputs == 1) return norm_of(node, b);
    if (!kit_is(node, "conv") || !is_plain(node->inputs[1])) return 0;
    if (cnr_own_input(node, 2) && !is_plain(node->inputs[2])) return 0;
    b->weight = in[1];
    if (cnr_own_input(node, 2)) b->bias = in[2];
    b->group = cnr_attr_int(node, "group");
    return !ops_conv_check(node, x, node->inputs[1], &b->window, &err);
}

/* Where the small window lies in the large one, by axis; 0: not within it, or it moves otherwise.
 */
static int place_of(const branch *large, const branch *small, int64_t *at) {
    const cnr_window *l = &large->window, *s = &small->window;
    if (small->group && small->group != large->group) return 0;
    for (int32_t i = 0; i < l->spatial; i++) {
        const int64_t apart = l->pad_begin[i] - s->pad_begin[i];
        if (l->stride[i] != s->stride[i] || l->out[i] != s->out[i] || apart < 0 ||
            apart % l->dilation[i] || (s->kernel[i] > 1 && l->dilation[i] != s->dilation[i]))
            return 0;
        at[i] = apart / l->dilation[i];
        if (at[i] + s->kernel[i] > l->kernel[i]) return 0;
    }
    return 1;
}

/* A constant of `count` numbers in *data, which is freed. */
static cnr_value constant(kit_build *b, cnr_tensor *t, float *data) {
    *t = (cnr_tensor){.size = sizeof *t,
                      .dtype = CNR_f32,
                      .rank = t->rank,
                      .dim = {t->dim[0], t->dim[1], t->dim[2], t->dim[3], t->dim[4]},
                      .flags = CNR_TENSOR_CONST,
                      .data = data};
    t->bytes = (uint64_t)cnr_count(t) * sizeof(float);
    const cnr_value made = b->status ? -1 : ops_host->graph_constant(b->graph, NULL, t);
    ops_host->free(data);
    return made;
}

/* Makes weight and bias of a normalisation: the diagonal of each group. */
static void make_norm(kit_build *b, branch *n, int64_t group) {
    const cnr_tensor *const *in = (const cnr_tensor *const *)n->node->inputs;
    const int64_t channels = in[0]->dim[1], each = channels / group;
    cnr_tensor w = {.rank = in[0]->rank, .dim = {channels, each, 1, 1, 1}};
    cnr_tensor v = {.rank = 1, .dim = {channels}};
    float *weight = ops_host->alloc((size_t)(channels * each) * sizeof *weight);
    float *bias = ops_host->alloc((size_t)channels * sizeof *bias);
    if (!weight || !bias) {
        ops_host->free(weight);
        ops_host->free(bias);
        b->status = CNR_E_MEMORY;
        return;
    }
    memset(weight, 0, (size_t)(channels * each) * sizeof *weight);
    for (int64_t c = 0; c < channels; c++) {
        const double variance = (double)((const float *)in[4]->data)[c];
        const double factor = (double)((const float *)in[1]->data)[c] /
                              sqrt(variance + cnr_attr_float(n->node, "epsilon"));
        weight[c * each + c % each] = (float)factor;
        bias[c] = (float)((double)((const float *)in[2]->data)[c] -
                          (double)((const float *)in[3]->data)[c] * factor);
    }
    n->weight = constant(b, &w, weight);
    n->bias = constant(b, &v, bias);
}

/* The small weight with zeros around it, as large as the other. */
static cnr_value widened(kit_build *b, const branch *large, const branch *small,
                         const int64_t *at) {
    int64_t pads[2 * (2 + CNR_MAX_SPATIAL)] = {0};
    const int32_t spatial = large->window.spatial, rank = spatial + 2;
    int any = 0;
    for (int32_t i = 0; i < spatial; i++) {
        pads[2 + i] = at[i];
        pads[rank + 2 + i] = large->window.kernel[i] - small->window.kernel[i] - at[i];
        any |= large->window.kernel[i] != small->window.kernel[i];
    }
    const cnr_attr list = kit_attr_ints("pads", pads, 2 * rank);
    return any ? kit_node(b, "pad", &small->weight, 1, &list, 1) : small->weight;
}

/* The large convolution with the small one's taps added to its own. */
static cnr_value joined(kit_build *b, branch *large, branch *small, const int64_t *at) {
    const cnr_node node = *large->node;
    const cnr_attr *attrs[OPS_CONV_N_ATTRS];
    cnr_value own[3] = {large->x, -1, large->bias}, y = -1;
    int32_t n = 0;
    if (small->norm) make_norm(b, small, large->group);
    for (int32_t i = 0; i < node.n_attrs && n < OPS_CONV_N_ATTRS; i++)
        if (node.attrs[i]->set &&
            (strcmp(node.attrs[i]->name, "bias") != 0 || (large->bias < 0 && small->bias < 0)))
            attrs[n++] = node.attrs[i];
    own[1] = kit_node2(b, "add", large->weight, widened(b, large, small, at));
    if (own[2] < 0) own[2] = small->bias;
    else if (small->bias >= 0) own[2] = kit_node2(b, "add", own[2], small->bias);
    if (!b->status)
        b->status = ops_host->graph_node(b->graph, "conv", node.name, NULL, own, own[2] < 0 ? 2 : 3,
                                         attrs, n, &y, 1);
    return y;
}

/* What a sum of two branches is replaced by; -1: it stays. */
static cnr_value merged(kit_build *b, const cnr_node *node, const cnr_value *in) {
    branch two[2];
    int64_t at[CNR_MAX_SPATIAL];
    if (!kit_is(node, "add") || in[0] == in[1] || !branch_of(b->graph, in[0], &two[0]) ||
        !branch_of(b->graph, in[1], &two[1]) || two[0].x != two[1].x ||
        !cnr_same_shape(two[0].node->outputs[0], two[1].node->outputs[0]))
        return -1;
    for (int k = 0; k < 2; k++)
        if (!two[k].norm && place_of(&two[k], &two[1 - k], at))
            return joined(b, &two[k], &two[1 - k], at);
    return -1;
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    return kit_replace_nodes(g, &ops_merge_branches, merged, err);
}

const cnr_rewrite ops_merge_branches = {
    .size = sizeof(cnr_rewrite),
    .order = 66,
    .name = "merge-branches",
    .summary = "adds the windows of convolutions of one input that are summed",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE | CNR_REWRITE_PLAN,
    .example = ops_example_branches,
};
