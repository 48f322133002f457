/* Hooks shared by the normalising operators. */
#include "ops_norm.h"

cnr_status ops_want_vector(const cnr_node *node, int32_t port, int64_t n, cnr_error *err) {
    CNR_TRY(ops_want(node, port, OPS_FLOATS, 1, 1, err));
    return ops_want_shape(node, port, node->inputs[port]->dtype, 1, &n, err);
}

cnr_status ops_channel_parameters(const cnr_node *node, int32_t port, cnr_tensor *t, cnr_init *init,
                                  cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    const cnr_tensor *x = node->inputs[0];
    const char *name = node->desc->inputs[port].name;
    if (x->dim[1] < 1) return ops_fail(err, CNR_E_SHAPE, node, "the channels of x must be known");
    t->dtype = x->dtype;
    t->rank = 1;
    t->dim[0] = x->dim[1];
    init->kind =
        strcmp(name, "scale") == 0 || strcmp(name, "var") == 0 ? CNR_INIT_ONE : CNR_INIT_ZERO;
    return CNR_OK;
}

void ops_channel_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end,
                        int32_t port, cnr_input_range *r) {
    *r = (cnr_input_range){.axis = -1};
    if (port == 0) *r = (cnr_input_range){axis, begin, end};
    else if (axis == 1 && port < node->desc->n_inputs) *r = (cnr_input_range){0, begin, end};
}

/* Method cost: six operations an output element. */
void ops_norm_cost(const cnr_node *node, cnr_cost *c) {
    c->flops = ops_mul(ops_elements(node->outputs[0]), 6);
}

cnr_value ops_grad_vector(const cnr_host *host, struct cnr_graph *graph, int32_t dtype, int64_t n,
                          double value) {
    if (n < 0 || n > INT32_MAX) return -1;
    cnr_tensor t = {.size = sizeof t, .dtype = dtype, .rank = 1, .flags = CNR_TENSOR_CONST};
    t.dim[0] = n;
    t.bytes = cnr_dense_bytes(&t);
    if ((t.data = host->alloc(t.bytes ? t.bytes : 1)) == NULL) return -1;
    for (int64_t i = 0; i < n; i++) ops_put(dtype, t.data, i, value);
    const cnr_value v = host->graph_constant(graph, NULL, &t);
    host->free(t.data);
    return v;
}
