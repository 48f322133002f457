/* trim-taps: leaves out the rows and columns of a convolution's weight that meet nothing but
 * padding, as widely dilated ones do on small pictures. */
#include "ops_kit.h"
#include "ops_window.h"

extern const cnr_rewrite ops_trim_taps;

/* The taps that meet the input, along each spatial axis, and the padding they need. */
typedef struct taps {
    int64_t first[CNR_MAX_SPATIAL], end[CNR_MAX_SPATIAL], pads[2 * CNR_MAX_SPATIAL];
    int32_t spatial;
} taps;

/* 0: none can be left out. */
static int taps_of(const cnr_node *node, taps *t) {
    cnr_window w;
    cnr_error err = CNR_ERROR_INIT;
    int fewer = 0;
    if (!kit_is(node, "conv")) return 0;
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    if (!cnr_is_constant(weight) || !weight->data) return 0;
    if (ops_conv_check(node, x, weight, &w, &err)) return 0;
    t->spatial = w.spatial;
    for (int32_t i = 0; i < w.spatial; i++) {
        const int64_t step = w.dilation[i], last = w.kernel[i] - 1;
        const int64_t reach = (w.out[i] - 1) * w.stride[i] - w.pad_begin[i];
        if (w.in[i] < 1 || w.out[i] < 1) return 0;
        t->first[i] = 0, t->end[i] = last + 1;
        int64_t *begin = &t->pads[i], *end = &t->pads[w.spatial + i];
        *begin = w.pad_begin[i], *end = w.pad_end[i];
        for (; t->first[i] < last && t->first[i] * step + reach < 0 && *begin >= step;
             *begin -= step)
            t->first[i]++;
        for (; t->end[i] - 1 > t->first[i] && *end >= step &&
               (t->end[i] - 1) * step - w.pad_begin[i] >= w.in[i];
             *end -= step)
            t->end[i]--;
        fewer |= t->end[i] - t->first[i] <= last;
    }
    return fewer;
}

/* Adds a slice of the weight that keeps the taps of t; returns it, or -1. */
static cnr_value trimmed_weight(kit_build *b, cnr_value weight, const taps *t) {
    static const int64_t axis[] = {2, 3, 4};
    const cnr_attr list[] = {kit_attr_ints("starts", t->first, t->spatial),
                             kit_attr_ints("ends", t->end, t->spatial),
                             kit_attr_ints("axes", axis, t->spatial)};
    return kit_node(b, "slice", &weight, 1, list, CNR_ROWS(list));
}

/* The convolution with fewer taps; its other attributes stay. -1: all taps are needed. */
static cnr_value trimmed(kit_build *b, const cnr_node *node, const cnr_value *in) {
    taps t;
    if (!taps_of(node, &t)) return -1;
    const cnr_attr pads = kit_attr_ints("pads", t.pads, 2 * t.spatial);
    const cnr_attr *attrs[OPS_CONV_N_ATTRS + 1];
    cnr_value own[3] = {in[0], trimmed_weight(b, in[1], &t), node->n_inputs > 2 ? in[2] : -1},
              y = -1;
    int32_t n = 0;
    for (int32_t i = 0; i < node->n_attrs && n < OPS_CONV_N_ATTRS; i++) {
        const char *name = node->attrs[i]->name;
        if (node->attrs[i]->set && strcmp(name, "pads") != 0 && strcmp(name, "auto_pad") != 0 &&
            strcmp(name, "kernel_shape") != 0)
            attrs[n++] = node->attrs[i];
    }
    attrs[n++] = &pads;
    if (!b->status)
        b->status = ops_host->graph_node(b->graph, "conv", node->name, NULL, own,
                                         own[2] < 0 ? 2 : 3, attrs, n, &y, 1);
    return y;
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    return kit_replace_nodes(g, &ops_trim_taps, trimmed, err);
}

const cnr_rewrite ops_trim_taps = {
    .size = sizeof(cnr_rewrite),
    .order = 70,
    .name = "trim-taps",
    .summary = "leaves out taps of convolutions that meet nothing but padding",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE | CNR_REWRITE_PLAN,
    .example = ops_example_taps,
};
