/* drop-copies: removes casts to the type that a value already has, scatters that replace every
 * element, as assignments to whole ranges are exported, and expansions of an operand that its
 * reader would broadcast anyway, as normalised vectors are. */
#include "ops_kit.h"

extern const cnr_rewrite ops_drop_copies;

/* 1: the node converts to the type that its input has. */
static int is_same_cast(const cnr_node *node) {
    return (strcmp(node->desc->name, "cast") == 0 || strcmp(node->desc->name, "cast_like") == 0) &&
           node->inputs[0]->dtype == node->outputs[0]->dtype;
}

/* 1: the scatter replaces all of x: row i of the indices is the place of slice i, in order. */
static int replaces_all(const cnr_node *node) {
    if (strcmp(node->desc->name, "scatter_nd") != 0) return 0;
    const cnr_tensor *x = node->inputs[0], *indices = node->inputs[1];
    const int32_t depth = (int32_t)indices->dim[indices->rank - 1];
    if (!cnr_is_constant(indices) || !kit_known(x) || depth < 1 ||
        cnr_attr_find(node, "reduction")->i != 0)
        return 0;
    const int64_t n = cnr_span(indices, 0, indices->rank - 1);
    if (n < 1 || n != cnr_span(x, 0, depth)) return 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t to = 0;
        for (int32_t d = 0; d < depth; d++) {
            const int64_t at = ops_get_int(indices->dtype, indices->data, i * depth + d);
            if (at < 0 || at >= x->dim[d]) return 0;
            to = to * x->dim[d] + at;
        }
        if (to != i) return 0;
    }
    return 1;
}

/* Replaces a scatter that writes every element by its updates, in x's shape. */
static cnr_status replace_scatter(struct cnr_graph *g, int32_t index, const cnr_tensor *x,
                                  cnr_value updates, cnr_value old) {
    kit_build b = {ops_host, g, CNR_OK};
    const cnr_attr shape = kit_attr_ints("shape", x->dim, x->rank);
    ops_host->graph_insert_before(g, index);
    const cnr_value y = kit_node(&b, "reshape", &updates, 1, &shape, 1);
    return b.status ? b.status : ops_host->graph_replace(g, old, y);
}

/* A sum, product or the like whose expanded operand is read as it was before; -1: it stays. */
static cnr_value spared(kit_build *b, const cnr_node *node, const cnr_value *in) {
    static const char *const ops[] = {"add", "sub", "mul", "div", "pow", "max", "min"};
    const cnr_attr *attrs[4];
    cnr_value two[2] = {in[0], node->n_inputs == 2 ? in[1] : -1}, y = -1;
    int known = 0, fewer = 0, n = 0;
    for (size_t i = 0; i < CNR_ROWS(ops); i++) known |= kit_is(node, ops[i]);
    if (!known || two[1] < 0 || node->n_attrs > (int32_t)CNR_ROWS(attrs)) return -1;
    for (int k = 0; k < 2 && !fewer; k++) {
        const cnr_value *from;
        if (!kit_is(kit_maker(b->graph, two[k], &from), "expand") || !kit_known(node->outputs[0]) ||
            !cnr_same_shape(node->inputs[1 - k], node->outputs[0]))
            continue;
        two[k] = from[0];
        fewer = 1;
    }
    if (!fewer) return -1;
    for (int32_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i]->set) attrs[n++] = node->attrs[i];
    b->status =
        ops_host->graph_node(b->graph, node->desc->name, node->name, NULL, two, 2, attrs, n, &y, 1);
    return y;
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < ops_host->graph_node_count(g); i++) {
        const cnr_value *in, *out;
        cnr_status status = CNR_OK;
        const cnr_node *node = ops_host->graph_node_at(g, i, &in, &out);
        if (ops_host->graph_use_count(g, out[0]) == 0) continue;
        if (replaces_all(node)) {
            status = replace_scatter(g, i, node->inputs[0], in[2], out[0]);
        } else if (is_same_cast(node) &&
                   (ops_host->graph_producer(g, in[0]) >= 0 || !kit_is_output(g, out[0]))) {
            status = ops_host->graph_replace(g, out[0], in[0]);
        } else {
            continue;
        }
        if (status)
            return ops_host->fail(err, status, ops_drop_copies.name, "could not be applied");
        changes++;
    }
    const int32_t more = kit_replace_nodes(g, &ops_drop_copies, spared, err);
    return more < 0 ? more : changes + more;
}

const cnr_rewrite ops_drop_copies = {
    .size = sizeof(cnr_rewrite),
    .order = 7,
    .name = "drop-copies",
    .summary = "removes casts to the same type, scatters that replace all of a tensor, needless "
               "expansions",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE,
};
