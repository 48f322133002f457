/* fuse-normalization: replaces layer normalisation written as several nodes by one node, and a
 * square written as a power by a product. */
#include "ops_kit.h"
#include "shapes.h"

extern const cnr_rewrite ops_fuse_normalization, ops_fuse_rms;

typedef struct normal { /* (x - mean) / sqrt(variance + epsilon) over the axes from `axis` on */
    cnr_value x;
    int is_rms; /* the mean is taken for 0 */
    int32_t axis;
    double epsilon;
} normal;

/* Whether `value` is the mean of `of` over the axes from *axis on, with those axes kept at size
 * 1. */
static int is_mean(const struct cnr_graph *g, cnr_value value, cnr_value *of, int32_t *axis) {
    const cnr_value *in;
    const cnr_node *node = kit_maker(g, value, &in);
    if (!kit_is(node, "reduce_mean") || !node->inputs[0] || !cnr_attr_int(node, "keepdims"))
        return 0;
    const int32_t rank = node->inputs[0]->rank;
    const int64_t set = shape_reduced_axes(node);
    *of = in[0];
    for (*axis = 0; *axis < rank; ++*axis)
        if (set == ((1 << rank) - 1) - ((1 << *axis) - 1)) return 1;
    return 0;
}

/* Whether `value` is x minus its mean. */
static int is_centred(const struct cnr_graph *g, cnr_value value, cnr_value *x, int32_t *axis) {
    const cnr_value *in;
    cnr_value of;
    const cnr_node *node = kit_maker(g, value, &in);
    if (!kit_is(node, "sub")) return 0;
    *x = in[0];
    const cnr_value mean = in[1];
    return is_mean(g, mean, &of, axis) && of == *x;
}

/* Whether `value` is the square of `of`, in any form. */
static int is_square(const struct cnr_graph *g, cnr_value value, cnr_value *of) {
    const cnr_value *in;
    double power;
    const cnr_node *node = kit_maker(g, value, &in);
    if (!kit_is(node, "mul") && !kit_is(node, "pow")) return 0;
    *of = in[0];
    if (kit_is(node, "mul")) return in[0] == in[1];
    return kit_number(g, in[1], &power) && power == 2 &&
           cnr_same_shape(node->outputs[0], node->inputs[0]);
}

/* Whether `value` is sqrt(variance of n->x + n->epsilon). */
static int is_deviation(const struct cnr_graph *g, cnr_value value, normal *n) {
    const cnr_value *in;
    cnr_value square, centred, x;
    int32_t axis, inner;
    if (!kit_is(kit_maker(g, value, &in), "sqrt") || !kit_is(kit_maker(g, in[0], &in), "add"))
        return 0;
    const cnr_value a = in[0], b = in[1];
    const int first = kit_number(g, a, &n->epsilon);
    if (!first && !kit_number(g, b, &n->epsilon)) return 0;
    return is_mean(g, first ? b : a, &square, &axis) && axis == n->axis &&
           is_square(g, square, &centred) && is_centred(g, centred, &x, &inner) && x == n->x &&
           inner == axis;
}

/* Whether `value` is 1 / of, in either form. */
static int is_inverse(const struct cnr_graph *g, cnr_value value, cnr_value *of) {
    const cnr_value *in;
    double one;
    const cnr_node *node = kit_maker(g, value, &in);
    if (kit_is(node, "reciprocal")) return *of = in[0], 1;
    if (!kit_is(node, "div") || !kit_number(g, in[0], &one) || one != 1) return 0;
    *of = in[1];
    return 1;
}

/* 1: the value is a normalised x, and *n receives how. */
static int is_normal(const struct cnr_graph *g, cnr_value value, normal *n) {
    const cnr_value *in;
    cnr_value deviation;
    const cnr_node *node = kit_maker(g, value, &in);
    if (!kit_is(node, "div") && !kit_is(node, "mul")) return 0;
    const int divides = kit_is(node, "div");
    const cnr_value a = in[0], b = in[1];
    for (int32_t k = 0; k < 1 + !divides; k++) {
        const cnr_value other = k ? a : b;
        if (!is_centred(g, k ? b : a, &n->x, &n->axis)) continue;
        if (!cnr_same_shape(ops_host->graph_type(g, value), ops_host->graph_type(g, n->x)))
            continue;
        if (divides) return is_deviation(g, other, n);
        return is_inverse(g, other, &deviation) && is_deviation(g, deviation, n);
    }
    return 0;
}

/* Whether `value` is sqrt(mean of squares of n->x + n->epsilon). */
static int is_root_mean_square(const struct cnr_graph *g, cnr_value value, normal *n) {
    const cnr_value *in;
    cnr_value square, of;
    if (!kit_is(kit_maker(g, value, &in), "sqrt") || !kit_is(kit_maker(g, in[0], &in), "add"))
        return 0;
    const cnr_value a = in[0], b = in[1];
    const int first = kit_number(g, a, &n->epsilon);
    if (!first && !kit_number(g, b, &n->epsilon)) return 0;
    return is_mean(g, first ? b : a, &square, &n->axis) && is_square(g, square, &of) && of == n->x;
}

/* 1: the value is x over its root mean square, and *n receives how. */
static int is_rms(const struct cnr_graph *g, cnr_value value, normal *n, cnr_value *none) {
    const cnr_value *in;
    cnr_value root;
    const cnr_node *node = kit_maker(g, value, &in);
    (void)none;
    if (!kit_is(node, "div") && !kit_is(node, "mul")) return 0;
    const int divides = kit_is(node, "div");
    const cnr_value pair[2] = {in[0], in[1]};
    for (int32_t k = 0; k < 1 + !divides; k++) {
        *n = (normal){.x = pair[k], .is_rms = 1};
        root = pair[1 - k];
        if ((divides || is_inverse(g, pair[1 - k], &root)) && is_root_mean_square(g, root, n))
            return cnr_same_shape(ops_host->graph_type(g, value), ops_host->graph_type(g, n->x));
    }
    return 0;
}

/* Whether the value is a constant that broadcasts over the axes of x from n->axis on only. */
static int suits(const struct cnr_graph *g, cnr_value value, const normal *n) {
    const cnr_tensor *t = ops_host->graph_type(g, value), *x = ops_host->graph_type(g, n->x);
    if (!cnr_is_constant(t) || t->rank > x->rank - n->axis || t->dtype != x->dtype) return 0;
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dim[i] != 1 && t->dim[i] != x->dim[x->rank - t->rank + i]) return 0;
    return 1;
}

/* A node `op` of a value with no other reader and a suitable constant: returns both. */
static int with_constant(const struct cnr_graph *g, cnr_value value, const char *op,
                         int (*operand)(const struct cnr_graph *, cnr_value, normal *, cnr_value *),
                         normal *n, cnr_value *scale, cnr_value *constant) {
    const cnr_value *in;
    if (!kit_is(kit_maker(g, value, &in), op)) return 0;
    const cnr_value pair[2] = {in[0], in[1]};
    for (int32_t k = 0; k < 2; k++) {
        *constant = pair[1 - k];
        if (pair[k] >= 0 && *constant >= 0 && ops_host->graph_use_count(g, pair[k]) == 1 &&
            operand(g, pair[k], n, scale) && suits(g, *constant, n))
            return 1;
    }
    return 0;
}

/* 1: the value is a normalised x without scale. */
static int bare(const struct cnr_graph *g, cnr_value value, normal *n, cnr_value *none) {
    (void)none;
    return is_normal(g, value, n);
}

/* 1: the value is a normalised x times a constant, which *scale receives. */
static int scaled(const struct cnr_graph *g, cnr_value value, normal *n, cnr_value *scale) {
    cnr_value none;
    return with_constant(g, value, "mul", bare, n, &none, scale);
}

/* Adds a constant of ones in the normalised shape. */
static cnr_value one(struct cnr_graph *g, const normal *n) {
    const int32_t dtype = ops_host->graph_type(g, n->x)->dtype;
    uint64_t number = 0; /* large enough for any type */
    elem_run run = {.f = {1}};
    elem_store(dtype, &number, 0, 1, ELEM_F, &run);
    const cnr_tensor t = {.size = sizeof t, .dtype = dtype, .data = &number};
    return ops_host->graph_constant(g, NULL, &t);
}

/* Replaces node `index`, whose value is `old`, by layer_normalization. */
static cnr_status replace(struct cnr_graph *g, int32_t index, const normal *n, cnr_value scale,
                          cnr_value shift, cnr_value old) {
    cnr_value made = -1;
    ops_host->graph_insert_before(g, index);
    const cnr_value inputs[3] = {n->x, scale >= 0 ? scale : one(g, n), shift};
    const cnr_attr axis = kit_attr_int("axis", n->axis),
                   epsilon = kit_attr_float("epsilon", n->epsilon);
    const cnr_attr bias = {.name = "bias", .type = CNR_ATTR_BOOL, .set = 1, .i = shift >= 0},
                   centred = {.name = "centred", .type = CNR_ATTR_BOOL, .set = 1, .i = !n->is_rms};
    const cnr_attr *const attrs[] = {&axis, &epsilon, &bias, &centred};
    CNR_TRY(ops_host->graph_node(g, "layer_normalization", NULL, NULL, inputs, 2 + (shift >= 0),
                                 attrs, 3 + n->is_rms, &made, 1));
    return ops_host->graph_replace(g, old, made);
}

/* Replaces `old` by x times x, before node `index`. */
static cnr_status square(struct cnr_graph *g, int32_t index, cnr_value x, cnr_value old) {
    const cnr_value inputs[2] = {x, x};
    cnr_value made = -1;
    ops_host->graph_insert_before(g, index);
    CNR_TRY(ops_host->graph_node(g, "mul", NULL, NULL, inputs, 2, NULL, 0, &made, 1));
    return ops_host->graph_replace(g, old, made);
}

/* One round over all nodes; returns how many changes it made, negative on failure. */
static int32_t pass(struct cnr_graph *g, int round, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < ops_host->graph_node_count(g); i++) {
        const cnr_value *in, *out;
        const cnr_node *node = ops_host->graph_node_at(g, i, &in, &out);
        cnr_value scale = -1, shift = -1, of = -1;
        normal n = {.x = -1};
        cnr_status status = CNR_OK;
        if (node->n_outputs != 1 || ops_host->graph_use_count(g, out[0]) == 0) continue;
        const cnr_value old = out[0];
        if (round == 3 && kit_is(node, "pow") && is_square(g, old, &of))
            status = square(g, i, of, old);
        else if ((round == 0 && with_constant(g, old, "add", scaled, &n, &scale, &shift)) ||
                 (round == 1 && scaled(g, old, &n, &scale)) ||
                 (round == 2 && is_normal(g, old, &n)))
            status = replace(g, i, &n, scale, shift, old);
        else continue;
        if (status != CNR_OK)
            return ops_host->fail(err, status, ops_fuse_normalization.name, "could not be applied");
        changes++;
    }
    return changes;
}

/* First forms with scale and shift, then with scale, then with neither; then the remaining
 * squares. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int round = 0; round < 4; round++) {
        const int32_t made = pass(g, round, err);
        if (made < 0) return made;
        changes += made;
    }
    return changes;
}

const cnr_rewrite ops_fuse_normalization = {
    .size = sizeof(cnr_rewrite),
    .order = 8,
    .name = "fuse-normalization",
    .summary = "makes one node of layer normalisation that is written as several",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE,
    .example = ops_example_normalization,
};

/* Makes RMS normalisations of nodes: with a scale, or those that have none. */
static int32_t rms_pass(struct cnr_graph *g, int has_scale, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < ops_host->graph_node_count(g); i++) {
        const cnr_value *in, *out;
        const cnr_node *node = ops_host->graph_node_at(g, i, &in, &out);
        cnr_value scale = -1, none;
        normal n = {.x = -1};
        if (node->n_outputs != 1 || ops_host->graph_use_count(g, out[0]) == 0) continue;
        const cnr_value old = out[0];
        if (has_scale ? !with_constant(g, old, "mul", is_rms, &n, &none, &scale)
                      : !is_rms(g, old, &n, &none))
            continue;
        const cnr_status status = replace(g, i, &n, scale, -1, old);
        if (status) return ops_host->fail(err, status, ops_fuse_rms.name, "could not be applied");
        i++; /* the node that was put before this one */
        changes++;
    }
    return changes;
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply_rms(struct cnr_graph *g, cnr_error *err) {
    const int32_t with = rms_pass(g, 1, err), without = with < 0 ? 0 : rms_pass(g, 0, err);
    return with < 0 ? with : without < 0 ? without : with + without;
}

const cnr_rewrite ops_fuse_rms = {
    .size = sizeof(cnr_rewrite),
    .order = 9,
    .name = "fuse-rms",
    .summary = "makes one node of RMS normalisation that is written as several",
    .apply = apply_rms,
    .flags = CNR_REWRITE_STRUCTURE | CNR_REWRITE_PLAN,
    .example = ops_example_rms,
};
