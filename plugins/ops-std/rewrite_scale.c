/* scale-products: multiplies a matrix product by a number instead of its operand, as attention is
 * exported, so that the product's own kernel scales what it stores. */
#include "ops_kit.h"

extern const cnr_rewrite ops_scale_products;

/* The operand of a product of `value` by one constant number, which nothing else reads; -1. */
static cnr_value scaled_by(const struct cnr_graph *g, cnr_value value, cnr_value *number) {
    const cnr_value *in;
    const cnr_node *node = kit_sole_maker(g, value, &in);
    if (!kit_is(node, "mul") || node->n_inputs != 2) return -1;
    for (int32_t k = 0; k < 2; k++) {
        const cnr_tensor *factor = node->inputs[k], *x = node->inputs[1 - k];
        if (!cnr_is_constant(factor) || cnr_count(factor) != 1 || factor->rank > x->rank ||
            factor->dtype != CNR_f32 || cnr_is_constant(x))
            continue;
        *number = in[k];
        return in[1 - k];
    }
    return -1;
}

/* Node `index` multiplies x where it multiplied `scaled`, and its product by the number follows. */
static cnr_status move_behind(struct cnr_graph *g, int32_t index, cnr_value scaled, cnr_value x,
                              cnr_value number) {
    kit_build b = {ops_host, g, CNR_OK};
    const cnr_value *out;
    ops_host->graph_node_at(g, index, NULL, &out);
    const cnr_value product = out[0];
    CNR_TRY(ops_host->graph_replace(g, scaled, x));
    ops_host->graph_insert_before(g, index + 1);
    const cnr_value y = kit_node2(&b, "mul", product, number);
    return b.status ? b.status : ops_host->graph_replace(g, product, y);
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < ops_host->graph_node_count(g); i++) {
        const cnr_value *in, *out;
        const cnr_node *node = ops_host->graph_node_at(g, i, &in, &out);
        if (!kit_is(node, "matmul") || ops_host->graph_use_count(g, out[0]) == 0 ||
            node->outputs[0]->rank < 2)
            continue;
        for (int32_t k = 0; k < 2; k++) {
            cnr_value number = -1;
            const cnr_value x = scaled_by(g, in[k], &number);
            if (x < 0) continue;
            const cnr_status status = move_behind(g, i, in[k], x, number);
            if (status)
                return ops_host->fail(err, status, ops_scale_products.name, "could not be applied");
            changes++;
            break;
        }
    }
    return changes;
}

const cnr_rewrite ops_scale_products = {
    .size = sizeof(cnr_rewrite),
    .order = 12,
    .name = "scale-products",
    .summary = "multiplies matrix products by numbers instead of their operands",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE,
    .example = ops_example_scale,
};
