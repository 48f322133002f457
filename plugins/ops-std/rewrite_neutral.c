/* drop-neutral: removes products and quotients by the number 1, powers of 1 and subtractions of 0,
 * as exporters write an operation's default factor. For plans only: training may change the
 * number. */
#include "ops_kit.h"

extern const cnr_rewrite ops_drop_neutral;

/* The input that the node returns unchanged; -1: there is none. */
static int32_t kept_input(const struct cnr_graph *g, const cnr_node *node, const cnr_value *in) {
    static const struct {
        const char *op;
        double neutral;
        int32_t first; /* the number may also be input 0 */
    } rules[] = {{"mul", 1, 1}, {"div", 1, 0}, {"pow", 1, 0}, {"sub", 0, 0}};
    if (node->n_inputs != 2) return -1;
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++)
        for (int32_t k = rules[r].first; k >= 0; k--) {
            double number;
            const cnr_tensor *x = node->inputs[k ? 1 : 0], *y = node->outputs[0];
            if (!kit_is(node, rules[r].op) || !kit_number(g, in[k ? 0 : 1], &number)) continue;
            if (number == rules[r].neutral && x->dtype == y->dtype && cnr_same_shape(x, y))
                return k ? 1 : 0;
        }
    return -1;
}

/* Replaces the outputs of nodes that change nothing by their inputs; returns how many, negative:
 * failed. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < ops_host->graph_node_count(g); i++) {
        const cnr_value *in, *out;
        const cnr_node *node = ops_host->graph_node_at(g, i, &in, &out);
        const int32_t kept =
            ops_host->graph_use_count(g, out[0]) == 0 ? -1 : kept_input(g, node, in);
        if (kept < 0 || !kit_known(node->outputs[0]) ||
            (ops_host->graph_producer(g, in[kept]) < 0 && kit_is_output(g, out[0])))
            continue;
        const cnr_status status = ops_host->graph_replace(g, out[0], in[kept]);
        if (status)
            return ops_host->fail(err, status, ops_drop_neutral.name, "could not be applied");
        changes++;
    }
    return changes;
}

const cnr_rewrite ops_drop_neutral = {
    .size = sizeof(cnr_rewrite),
    .order = 4,
    .name = "drop-neutral",
    .summary = "removes products and quotients by 1, powers of 1 and subtractions of 0",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE | CNR_REWRITE_PLAN,
    .example = ops_example_neutral,
};
