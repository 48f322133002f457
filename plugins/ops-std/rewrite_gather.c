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

/* The slice that gives a gather's elements; -1: none does. */
static cnr_value sliced(kit_build *b, const cnr_node *node, const cnr_value *in) {
    cut c;
    if (!cut_of(node, &c)) return -1;
    const cnr_attr attrs[] = {kit_attr_ints("axes", &c.axis, 1),
                              kit_attr_ints("starts", &c.start, 1),
                              kit_attr_ints("ends", &c.end, 1), kit_attr_ints("steps", &c.step, 1)};
    const cnr_value y = kit_node(b, "slice", &in[0], 1, attrs, CNR_ROWS(attrs));
    return c.drops_axis ? kit_node(b, "squeeze", &y, 1, attrs, 1) : y;
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    return kit_replace_nodes(g, &ops_gather_to_slice, sliced, err);
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
