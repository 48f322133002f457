/* trim-taps: taps of a dilated convolution that see nothing but padding go, as those of a 3x3
 * window with dilation 36 do on 14 x 14 elements: all but the middle one. */
#include <cnnrun/window.h>

#include "ops_kit.h"

extern const cnr_rewrite ops_trim_taps;

enum { MOST_ATTRS = 32 };

/* The taps [first, first + n) of a window, and the pads that go with them. */
typedef struct taps {
    int64_t first[CNR_MAX_SPATIAL], n[CNR_MAX_SPATIAL], pads[2 * CNR_MAX_SPATIAL];
} taps;

/* True if tap k of axis i reads an element for some output. */
static int is_seen(const cnr_window *w, int32_t i, int64_t k) {
    const int64_t first = k * w->dilation[i] - w->pad_begin[i], step = w->stride[i];
    const int64_t skipped = first < 0 ? (-first + step - 1) / step : 0;
    return skipped < w->out[i] && first + skipped * step < w->in[i];
}

/* What is left of a convolution's window; 0: all of it, or its sizes are not known. */
static int taps_of(const cnr_node *node, cnr_window *w, taps *t) {
    const cnr_tensor *x = node->inputs[0], *weight = cnr_own_input(node, 1);
    int fewer = 0;
    if (strcmp(node->desc->name, "conv") != 0 || !x || !cnr_is_constant(weight)) return 0;
    if (weight->rank != x->rank || cnr_count(weight) <= 0) return 0;
    if (cnr_window_resolve(node, x, weight->dim + 2, w)) return 0;
    for (int32_t i = 0; i < w->spatial; i++) {
        int64_t end = w->kernel[i];
        if (w->in[i] < 1 || w->out[i] < 1) return 0;
        t->first[i] = 0;
        while (t->first[i] < end - 1 && !is_seen(w, i, t->first[i])) t->first[i]++;
        while (end > t->first[i] + 1 && !is_seen(w, i, end - 1)) end--;
        t->n[i] = end - t->first[i];
        t->pads[i] = w->pad_begin[i] - t->first[i] * w->dilation[i];
        t->pads[i + w->spatial] = w->pad_end[i] - (w->kernel[i] - end) * w->dilation[i];
        fewer |= t->n[i] < w->kernel[i];
    }
    return fewer;
}

static cnr_status trim(struct cnr_graph *g, int32_t index, const cnr_window *w, const taps *t) {
    const cnr_value *in, *out;
    const cnr_node *node = ops_host->graph_node_at(g, index, &in, &out);
    const cnr_value old = out[0];
    cnr_value values[8], made = -1;
    int64_t ends[CNR_MAX_SPATIAL], axes[CNR_MAX_SPATIAL];
    const cnr_attr *attrs[MOST_ATTRS];
    cnr_attr kept[MOST_ATTRS];
    int32_t n = 0;
    kit_build b = {ops_host, g, CNR_OK};
    for (int32_t i = 0; i < w->spatial; i++) {
        axes[i] = 2 + i;
        ends[i] = t->first[i] + t->n[i];
    }
    const cnr_attr cut[] = {kit_attr_ints("starts", t->first, w->spatial),
                            kit_attr_ints("ends", ends, w->spatial),
                            kit_attr_ints("axes", axes, w->spatial)};
    for (int32_t i = 0; i < node->desc->n_attrs && n < MOST_ATTRS - 2; i++) {
        const cnr_attr *a = cnr_attr_find(node, node->desc->attrs[i].name);
        if (!a || !a->set || strcmp(a->name, "pads") == 0 || strcmp(a->name, "auto_pad") == 0 ||
            strcmp(a->name, "kernel_shape") == 0)
            continue;
        kept[n] = *a;
        n++;
    }
    kept[n++] = kit_attr_ints("pads", t->pads, 2 * w->spatial);
    kept[n++] = kit_attr_ints("kernel_shape", t->n, w->spatial);
    for (int32_t i = 0; i < n; i++) attrs[i] = &kept[i];
    const int32_t n_inputs = node->n_inputs;
    for (int32_t i = 0; i < n_inputs; i++) values[i] = in[i];
    ops_host->graph_insert_before(g, index);
    values[1] = kit_node(&b, "slice", &values[1], 1, cut, 3);
    CNR_TRY(b.status);
    ops_host->graph_insert_before(g, index + 1);
    CNR_TRY(ops_host->graph_node(g, "conv", NULL, NULL, values, n_inputs, attrs, n, &made, 1));
    CNR_TRY(ops_host->graph_replace(g, old, made));
    return ops_host->graph_remove(g, index + 2);
}

static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < ops_host->graph_node_count(g); i++) {
        const cnr_value *out;
        const cnr_node *node = ops_host->graph_node_at(g, i, NULL, &out);
        cnr_window w;
        taps t;
        if (node->n_inputs > 3 || ops_host->graph_uses(g, out[0]) == 0 || !taps_of(node, &w, &t))
            continue;
        const cnr_status status = trim(g, i, &w, &t);
        if (status != CNR_OK)
            return ops_host->fail(err, status, ops_trim_taps.name, "could not be applied");
        changes++;
    }
    return changes;
}

const cnr_rewrite ops_trim_taps = {
    .size = sizeof(cnr_rewrite),
    .order = 25, /* behind those who look for weights as a file has them */
    .name = "trim-taps",
    .summary = "leaves taps of dilated convolutions out that see only padding",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE,
};
