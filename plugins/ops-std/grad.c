/* Building blocks of gradient hooks, and alias hooks that many operators use. */
#include "ops.h"
#include <stdio.h>

cnr_status ops_grad_node(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node,
                         const char *op, const cnr_value *inputs, int32_t n_inputs,
                         const cnr_attr *const *attrs, int32_t n_attrs, cnr_value *out,
                         cnr_error *err) {
    char name[256];
    for (int32_t i = 0; i < n_inputs; i++)
        if (inputs[i] < 0) return ops_fail(err, CNR_E_STATE, node, "%s lacks an operand", op);
    snprintf(name, sizeof name, "%.200s.%.50s", node->name ? node->name : "", op);
    const cnr_status status =
        host->graph_node(graph, op, name, NULL, inputs, n_inputs, attrs, n_attrs, out, 1);
    if (status != CNR_OK) return ops_fail(err, status, node, "cannot add %s", op);
    return CNR_OK;
}

cnr_status ops_grad_of_input(const char *op, OPS_GRADIENT_ARGS) {
    (void)outputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    const cnr_value in[2] = {grad_out[0], inputs[0]};
    return ops_grad_node(host, graph, node, op, in, 2, node->attrs, node->n_attrs, &grad_in[0],
                         err);
}

cnr_status ops_grad_sum(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node,
                        cnr_value value, const int64_t *axes, int32_t n_axes, cnr_value *out,
                        cnr_error *err) {
    *out = value;
    if (n_axes == 0) return CNR_OK; /* for reduce_sum, no axes would mean all */
    const cnr_attr list = {.name = "axes",
                           .type = CNR_ATTR_INTS,
                           .set = 1,
                           .n = n_axes,
                           .ints = axes};
    const cnr_attr keep = {.name = "keepdims", .type = CNR_ATTR_BOOL, .set = 1, .i = 0};
    const cnr_attr *const attrs[] = {&list, &keep};
    return ops_grad_node(host, graph, node, "reduce_sum", &value, 1, attrs, 2, out, err);
}

cnr_status ops_gradient_through(OPS_GRADIENT_ARGS) {
    OPS_GRADIENT_UNUSED;
    if (want[0]) grad_in[0] = grad_out[0];
    return CNR_OK;
}

/* Method gradient of operators that only reshape: the gradient in the input's shape. */
cnr_status ops_gradient_reshape(OPS_GRADIENT_ARGS) {
    (void)outputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    const cnr_value in[2] = {grad_out[0], inputs[0]};
    return ops_grad_node(host, graph, node, "reshape_like", in, 2, NULL, 0, &grad_in[0], err);
}

int32_t ops_alias_view(const cnr_node *node, cnr_alias *out, int32_t max) {
    (void)node;
    if (max < 1) return 0;
    out[0] = (cnr_alias){.kind = CNR_ALIAS_VIEW};
    return 1;
}

/* Method aliases: the output may be written over the input. */
int32_t ops_alias_inplace(const cnr_node *node, cnr_alias *out, int32_t max) {
    (void)node;
    if (max < 1) return 0;
    out[0] = (cnr_alias){.kind = CNR_ALIAS_INPLACE};
    return 1;
}
