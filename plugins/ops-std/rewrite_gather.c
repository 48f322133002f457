/* gather-to-slice: replaces a gather whose constant indices ascend in equal steps by a slice, which
 * is often a view of its operand. */
#include "ops_kit.h"

extern const cnr_rewrite ops_gather_to_slice;

/* A slice that takes the same elements. */
typedef struct cut {
    int64_t axis, start, end, step;
    int drops_axis; /* one index without an axis of its own */
} cut;

/* The indices as a slice; 0: they are not constant, or no slice. */
static int cut_of(const cnr_node *node, cut *c) {
    if (strcmp(node->desc->name, "gather") != 0) return 0;
    const cnr_tensor *x = node->inputs[0], *indices = node->inputs[1];
    if (!cnr_is_constant(indices) || !indices->data || indices->rank > 1) return 0;
    const int32_t axis = ops_axis_of(node, x);
    const int64_t n = cnr_count(indices), dim = x->dim[axis];
    if (n < 1 || dim < 1) return 0;
    *c = (cut){.axis = axis, .step = 1, .drops_axis = indices->rank == 0};
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = ops_get_int(indices->dtype, indices->data, i);
        if (at < 0) at += dim;
        if (at < 0 || at >= dim) return 0;
        if (i == 0) c->start = at;
        if (i == 1) c->step = at - last;
        if (i > 0 && (at <= last || at - last != c->step)) return 0;
        last = at;
    }
    c->end = last + 1;
    return 1;
}

/* Adds the slice of x. */
static cnr_value sliced(kit_build *b, cnr_value x, const cut *c) {
    const cnr_attr starts = kit_attr_ints("starts", &c->start, 1),
                   ends = kit_attr_ints("ends", &c->end, 1),
                   axes = kit_attr_ints("axes", &c->axis, 1),
                   steps = kit_attr_ints("steps", &c->step, 1);
    const cnr_attr *const attrs[] = {&starts, &ends, &axes, &steps};
    cnr_value y = -1;
    b->status = ops_host->graph_node(b->graph, "slice", NULL, NULL, &x, 1, attrs, 4, &y, 1);
    return b->status || !c->drops_axis ? y : kit_node(b, "squeeze", &y, 1, &axes, 1);
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < ops_host->graph_node_count(g); i++) {
        const cnr_value *in, *out;
        const cnr_node *node = ops_host->graph_node_at(g, i, &in, &out);
        kit_build b = {ops_host, g, CNR_OK};
        cut c;
        if (!cut_of(node, &c) || ops_host->graph_use_count(g, out[0]) == 0) continue;
        const cnr_value x = in[0], old = out[0];
        ops_host->graph_insert_before(g, i);
        const cnr_value y = sliced(&b, x, &c);
        if (!b.status) b.status = ops_host->graph_replace(g, old, y);
        if (b.status)
            return ops_host->fail(err, b.status, ops_gather_to_slice.name, "could not be applied");
        changes++;
    }
    return changes;
}

const cnr_rewrite ops_gather_to_slice = {
    .size = sizeof(cnr_rewrite),
    .order = 8,
    .name = "gather-to-slice",
    .summary = "makes slices of gathers whose constant indices ascend in equal steps",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE,
    .example = ops_example_gather,
};
