/* Hooks shared by the normalising operators. */
#include "ops_norm.h"

cnr_status ops_want_vector(const cnr_node *node, int32_t port, int64_t n, cnr_error *err) {
    CNR_TRY(ops_want(node, port, OPS_FLOATS, 1, 1, err));
    return ops_want_shape(node, port, node->inputs[port]->dtype, 1, &n, err);
}

/* Method parameters: *t is a vector with one element for each channel of x; *init is 1 for a port
 * named scale or var, else 0. */
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

/* ---- gradients ---- */

/* Adds the mean of each row of x, axis 1, which is kept with size 1; -1: failed. */
static cnr_value row_mean(kit_build *b, cnr_value x) {
    const int64_t axis = 1;
    const cnr_attr attr = kit_attr_ints("axes", &axis, 1);
    return kit_node(b, "reduce_mean", &x, 1, &attr, 1);
}

/* Adds (x - mean) / deviation of each row, with epsilon added to the variance; returns it, and
 * *inverse receives 1 / deviation. */
static cnr_value normalised(kit_build *b, cnr_value x, int32_t dtype, double epsilon,
                            cnr_value *inverse) {
    const cnr_value far = kit_node2(b, "sub", x, row_mean(b, x));
    const cnr_value variance = row_mean(b, kit_node2(b, "mul", far, far));
    const cnr_value sum = kit_node2(b, "add", variance, kit_constant(b, dtype, epsilon));
    *inverse = kit_node1(b, "reciprocal", kit_node1(b, "sqrt", sum));
    return kit_node2(b, "mul", far, *inverse);
}

/* Adds and returns dx = (g - mean(g) - n mean(g n)) / deviation, where g = dy scale, n is the
 * normalised x, and inverse = 1 / deviation. */
static cnr_value row_gradient(kit_build *b, cnr_value g, cnr_value n, cnr_value inverse) {
    const cnr_value along = kit_node2(b, "mul", n, row_mean(b, kit_node2(b, "mul", g, n)));
    const cnr_value level = kit_node2(b, "sub", g, row_mean(b, g));
    return kit_node2(b, "mul", kit_node2(b, "sub", level, along), inverse);
}

cnr_status ops_norm_gradient(OPS_GRADIENT_ARGS, int64_t rows, const cnr_tensor *wide,
                             const cnr_tensor *scale, const cnr_tensor *shift) {
    const cnr_tensor *x = node->inputs[0];
    kit_build b = {.host = host, .graph = graph};
    (void)outputs;
    for (int32_t o = 1; o < node->n_outputs; o++)
        if (grad_out[o] >= 0)
            return ops_fail(err, CNR_E_UNSUPPORTED, node, "mean and inv_std_dev have no gradient");
    if (grad_out[0] < 0 || rows < 1 || cnr_count(x) < 1) return CNR_OK;
    if (x->dtype != node->inputs[1]->dtype)
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "no gradient for x and scale of two types");
    cnr_tensor flat = {.size = sizeof flat, .dtype = x->dtype, .rank = 2, .dim = {rows}};
    flat.dim[1] = cnr_count(x) / rows;
    const cnr_value dy = kit_reshape(&b, grad_out[0], wide);
    cnr_value inverse = -1, n = -1;
    if (want[0] || want[1])
        n = normalised(&b, kit_reshape(&b, inputs[0], &flat), x->dtype,
                       cnr_attr_float(node, "epsilon"), &inverse);
    if (want[0]) {
        const cnr_value g = kit_node2(&b, "mul", dy, kit_reshape(&b, inputs[1], scale));
        grad_in[0] = kit_reshape(&b, row_gradient(&b, kit_reshape(&b, g, &flat), n, inverse), x);
    }
    if (want[1]) {
        const cnr_value g = kit_node2(&b, "mul", dy, kit_reshape(&b, n, wide));
        grad_in[1] = kit_reshape(&b, kit_unbroadcast(&b, g, wide, scale), node->inputs[1]);
    }
    if (shift && want[2])
        grad_in[2] = kit_reshape(&b, kit_unbroadcast(&b, dy, wide, shift), node->inputs[2]);
    return kit_built(&b, node, err);
}

cnr_status ops_channel_gradient(OPS_GRADIENT_ARGS, int64_t groups) {
    const cnr_tensor *x = node->inputs[0], *scale = node->inputs[1];
    const int64_t n = x->dim[0], parts = scale->dim[0];
    cnr_tensor wide = {.size = sizeof wide, .dtype = x->dtype, .rank = 3, .dim = {n, parts}};
    cnr_tensor each = {.size = sizeof each, .dtype = scale->dtype, .rank = 2, .dim = {parts, 1}};
    wide.dim[2] = n > 0 && parts > 0 ? cnr_count(x) / n / parts : 0;
    return ops_norm_gradient(host, graph, node, inputs, outputs, grad_out, want, grad_in, err,
                             n * groups, &wide, &each, &each);
}
