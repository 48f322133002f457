/* fold-pads: a border of zeros in front of a convolution or an average pooling becomes that node's
 * own padding, as exporters write causal convolutions and TensorFlow's padding. */
#include "ops_kit.h"
#include "ops_window.h"

extern const cnr_rewrite ops_fold_pads;

enum { MAX_ATTRS = 16 };

/* The window's extent along spatial axis i, dilated. */
static int64_t reach_of(const cnr_node *node, int32_t i) {
    int64_t n_kernel, n_dilations;
    const int64_t *dilations = cnr_attr_ints(node, "dilations", &n_dilations);
    const int64_t *kernel = cnr_attr_ints(node, "kernel_shape", &n_kernel);
    const int64_t k = kit_is(node, "conv") ? node->inputs[1]->dim[2 + i]
                      : i < n_kernel       ? kernel[i]
                                           : 1;
    return (k - 1) * (i < n_dilations ? dilations[i] : 1) + 1;
}

/* The padding of the node together with that of the pad in front of it. 0: they can't be one. */
static int joined_pads(const cnr_node *node, const cnr_node *pad, int64_t *pads) {
    const int32_t rank = node->inputs[0]->rank, spatial = rank - 2;
    int64_t before[CNR_MAX_RANK], after[CNR_MAX_RANK], n;
    const int64_t *own = cnr_attr_ints(node, "pads", &n);
    const char *mode = cnr_attr_string(node, "auto_pad");
    const int valid = strcmp(mode, "VALID") == 0;
    if (spatial < 1 || spatial > CNR_MAX_SPATIAL || (!valid && strcmp(mode, "NOTSET") != 0) ||
        !ops_zero_border(pad, before, after) || before[0] || after[0] || before[1] || after[1])
        return 0;
    for (int32_t i = 0; i < spatial; i++) {
        const int64_t reach = reach_of(node, i);
        pads[i] = before[2 + i] + (valid || i >= n ? 0 : own[i]);
        pads[spatial + i] = after[2 + i] + (valid || spatial + i >= n ? 0 : own[spatial + i]);
        /* windows in the border alone: kernels may not be made for them */
        if (before[2 + i] < 0 || after[2 + i] < 0 || pads[i] >= reach || pads[spatial + i] >= reach)
            return 0;
    }
    return 1;
}

/* Whether the node is an average pooling without padding of its own, whose divisor could then be
 * the whole window. */
static int is_plain_average(const cnr_node *node) {
    int64_t n;
    const int64_t *own = cnr_attr_ints(node, "pads", &n);
    if (!kit_is(node, "average_pool") || cnr_attr_int(node, "ceil_mode")) return 0;
    for (int64_t i = 0; i < n; i++)
        if (own[i]) return 0;
    return 1;
}

/* The node with more padding and without the pad in front; -1: it stays. */
static cnr_value folded(kit_build *b, const cnr_node *node, const cnr_value *in) {
    const int average = is_plain_average(node);
    const cnr_value *from;
    int64_t pads[2 * CNR_MAX_SPATIAL];
    cnr_value own[3], y = -1;
    if (!average && !kit_is(node, "conv")) return -1;
    const cnr_node *pad = kit_maker(b->graph, in[0], &from);
    if (!kit_is(pad, "pad") || node->n_inputs > 3 || !joined_pads(node, pad, pads)) return -1;
    const cnr_attr list = kit_attr_ints("pads", pads, 2 * (int64_t)(node->inputs[0]->rank - 2));
    const cnr_attr whole = kit_attr_int("count_include_pad", 1);
    const cnr_attr *attrs[MAX_ATTRS + 2];
    int32_t n = 0;
    for (int32_t i = 0; i < node->n_attrs; i++) {
        const char *name = node->attrs[i]->name;
        if (!node->attrs[i]->set || strcmp(name, "pads") == 0 || strcmp(name, "auto_pad") == 0 ||
            (average && strcmp(name, whole.name) == 0))
            continue;
        if (n == MAX_ATTRS) return -1;
        attrs[n++] = node->attrs[i];
    }
    attrs[n++] = &list;
    if (average) attrs[n++] = &whole;
    for (int32_t i = 0; i < node->n_inputs; i++) own[i] = i ? in[i] : from[0];
    b->status = ops_host->graph_node(b->graph, node->desc->name, node->name, NULL, own,
                                     node->n_inputs, attrs, n, &y, 1);
    return y;
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    return kit_replace_nodes(g, &ops_fold_pads, folded, err);
}

const cnr_rewrite ops_fold_pads = {
    .size = sizeof(cnr_rewrite),
    .order = 68,
    .name = "fold-pads",
    .summary = "makes borders of zeros in front of convolutions and average poolings their padding",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE | CNR_REWRITE_PLAN,
    .example = ops_example_pads,
};
