/* weighted_sum: sum of the inputs, each times its coefficient (Caffe's Eltwise). */
#include "broadcast.h"

static const cnr_port in[] = {
    {.name = "x", .flags = CNR_PORT_VARIADIC, .min = 1, .help = "operands; they broadcast"}};
static const cnr_port out[] = {{.name = "y", .help = "the result in the broadcast shape"}};
static const cnr_attr_spec attrs[] = {{.name = "coeffs",
                                       .type = CNR_ATTR_FLOATS,
                                       .alias = "coeff",
                                       .help = "one factor per input; missing ones are 1"}};

/* Coefficient of input i; 1 where none is given. */
static double factor(const cnr_node *node, int32_t i) {
    int64_t n;
    const double *list = cnr_attr_floats(node, "coeffs", &n);
    return i < n ? list[i] : 1;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    static const fold_row row = {.dtypes = OPS_FLOATS};
    int64_t n;
    cnr_attr_floats(node, "coeffs", &n);
    if (n > node->n_inputs)
        return ops_fail(err, CNR_E_ARG, node, "%lld coefficients for %d inputs", (long long)n,
                        (int)node->n_inputs);
    return fold_infer(node, &row, outputs, err);
}

/* Method reference of weighted_sum: the sum of the inputs, each times its coefficient; returns
 * CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *y = run->outputs[0];
    broadcast_walk w;
    (void)err;
    if (!broadcast_begin(&w, run, node->inputs, node->n_inputs)) return CNR_OK;
    do {
        elem_run sum, operand;
        for (int64_t i = 0; i < w.run; i++) sum.f[i] = 0;
        for (int32_t k = 0; k < node->n_inputs; k++) {
            const double scale = factor(node, k);
            broadcast_load(&w, k, node->inputs[k], ELEM_F, &operand);
            for (int64_t i = 0; i < w.run; i++) sum.f[i] += scale * operand.f[i];
        }
        elem_store(y->dtype, y->data, w.out, w.run, ELEM_F, &sum);
    } while (broadcast_next(&w));
    return CNR_OK;
}

/* Computes n weighted sums of two inputs, for a fused epilogue; y NULL: of one. */
static void apply(const cnr_node *node, const float *x, const float *y, float *to, int64_t n) {
    const float a = (float)factor(node, 0), b = (float)factor(node, 1);
    for (int64_t i = 0; i < n; i++) to[i] = y ? a * x[i] + b * y[i] : a * x[i];
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    (void)inputs, (void)outputs;
    for (int32_t i = 0; grad_out[0] >= 0 && i < node->n_inputs; i++) {
        if (!want[i]) continue;
        const cnr_value scale = kit_constant(&b, node->outputs[0]->dtype, factor(node, i));
        grad_in[i] = kit_unbroadcast(&b, kit_node2(&b, "mul", grad_out[0], scale), node->outputs[0],
                                     node->inputs[i]);
    }
    return kit_built(&b, node, err);
}

const cnr_op ops_weighted_sum = {
    CNR_OP_SIZES,
    .name = "weighted_sum",
    .summary = "The sum of the inputs, each times its coefficient.",
    .flags = CNR_OP_ELEMENTWISE | CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = fold_cost,
    .gradient = gradient,
    .apply_f32 = apply,
    .reference = reference,
};
