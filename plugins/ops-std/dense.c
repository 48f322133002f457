/* dense: fully connected layer; x is flattened from axis 1 on. */
#include "ops_kit.h"

static const cnr_attr_spec attrs[] = {{.name = "out",
                                       .type = CNR_ATTR_INT,
                                       .flags = CNR_ATTR_BOUNDED,
                                       .min = 0,
                                       .max = 1 << 30,
                                       .help = "outputs per sample, if the weight is not given"},
                                      {.name = "bias",
                                       .type = CNR_ATTR_BOOL,
                                       .default_i = 1,
                                       .help = "whether a bias is created with the weight"}};
static const cnr_port in[] =
    {{.name = "x", .help = "N and any axes, which count as one"},
     {.name = "weight", .flags = CNR_PORT_PARAMETER, .help = "out, inputs per sample"},
     {.name = "bias", .flags = CNR_PORT_OPTIONAL | CNR_PORT_PARAMETER, .help = "out"}};
static const cnr_port out[] = {{.name = "y", .help = "N out"}};
static const char *const aliases[] = {"linear", "fully_connected", NULL};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 1, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 2, 2, err));
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const int64_t wish = cnr_attr_int(node, "out");
    const int64_t dim[2] = {wish > 0 ? wish : -1, ops_span(x, 1, x->rank)};
    CNR_TRY(ops_want_shape(node, 1, x->dtype, 2, dim, err));
    CNR_TRY(ops_want_shape(node, 2, x->dtype, 1, weight->dim, err));
    outputs[0]->dtype = x->dtype;
    outputs[0]->rank = 2;
    outputs[0]->dim[0] = x->dim[0];
    outputs[0]->dim[1] = weight->dim[0];
    return CNR_OK;
}

/* Method parameters: *t receives type and shape of the weight at `port`, and *init how it is
 * first filled. */
static cnr_status parameters(const cnr_node *node, int32_t port, cnr_tensor *t, cnr_init *init,
                             cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 1, CNR_MAX_RANK, err));
    if (port == 2 && !cnr_attr_int(node, "bias")) return CNR_E_NOT_FOUND;
    const cnr_tensor *x = node->inputs[0], *weight = cnr_own_input(node, 1);
    const int64_t inputs = ops_span(x, 1, x->rank);
    t->dtype = x->dtype;
    t->dim[0] = weight && weight->rank > 0 ? weight->dim[0] : cnr_attr_int(node, "out");
    if (t->dim[0] < 1)
        return ops_fail(err, CNR_E_ARG, node, "out: want the number of outputs a sample");
    t->rank = port == 2 ? 1 : 2;
    if (port == 2) {
        init->kind = CNR_INIT_ZERO;
        return CNR_OK;
    }
    if (inputs < 1)
        return ops_fail(err, CNR_E_SHAPE, node, "all dimensions of x but the first must be known");
    t->dim[1] = inputs;
    init->kind = CNR_INIT_HE;
    init->fan_in = inputs;
    return CNR_OK;
}

/* Method cost: counts the multiply-adds of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    const uint64_t outputs = ops_elements(node->outputs[0]);
    const int64_t inputs = node->inputs[1]->dim[1];
    c->macs = ops_mul(outputs, inputs < 0 ? 0 : (uint64_t)inputs);
    c->flops = cnr_own_input(node, 2) ? outputs : 0;
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    (void)node;
    *r = (cnr_input_range){.axis = -1};
    if ((axis == 0) == (port == 0)) *r = (cnr_input_range){0, begin, end};
}

/* Method linear: *l receives the ports of weight and bias; returns 1. */
static int32_t linear(const cnr_node *node, cnr_linear *l) {
    (void)node;
    *l = (cnr_linear){.weight_port = 1, .bias_port = 2, .weight_axis = 0};
    return 1;
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    const cnr_attr trans = kit_attr_int("transA", 1);
    const cnr_value dy = grad_out[0];
    const int64_t batch = 0;
    kit_build b = {.host = host, .graph = graph};
    (void)outputs;
    if (dy < 0) return CNR_OK;
    if (want[0]) {
        const cnr_value flat = kit_node2(&b, "gemm", dy, inputs[1]);
        grad_in[0] = kit_node2(&b, "reshape_like", flat, inputs[0]);
    }
    if (want[1]) {
        const cnr_value in_w[] = {dy, kit_node1(&b, "flatten", inputs[0])};
        grad_in[1] = kit_node(&b, "gemm", in_w, 2, &trans, 1);
    }
    if (b.status != CNR_OK) return ops_fail(err, b.status, node, "cannot add its gradient");
    if (node->n_inputs > 2 && want[2])
        return ops_grad_sum(host, graph, node, dy, &batch, 1, &grad_in[2], err);
    return CNR_OK;
}

OPS_INLINE void body(const cnr_run *run, const int64_t *lo, const int64_t *hi, int32_t dtype) {
    const cnr_tensor *weight = run->node->inputs[1], *bias = cnr_own_input(run->node, 2);
    const int64_t k = weight->dim[1], m = weight->dim[0], size = (int64_t)ops_size(dtype);
    for (int64_t n = lo[0]; n < hi[0]; n++) {
        const char *x = (const char *)run->node->inputs[0]->data + n * k * size;
        if (ops_cancelled(run)) return;
        for (int64_t o = lo[1]; o < hi[1]; o++) {
            const char *w = (const char *)weight->data + o * k * size;
            double sum = bias ? ops_get(dtype, bias->data, o) : 0;
            for (int64_t i = 0; i < k; i++) sum += ops_get(dtype, x, i) * ops_get(dtype, w, i);
            ops_put(dtype, run->outputs[0]->data, n * m + o, sum);
        }
    }
}

/* Method reference of dense: x, flattened from axis 1, times the transposed weight, plus bias. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    (void)err;
    cnr_range_of(run, lo, hi);
    OPS_SPECIALISE(run->outputs[0]->dtype, body(run, lo, hi, dtype));
    return CNR_OK;
}

const cnr_op ops_dense = {
    CNR_OP_SIZES,
    .name = "dense",
    .summary =
        "Fully connected layer: x, flattened from axis 1, times the transposed weight, plus bias.",
    .aliases = aliases,
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .split_axes = ops_split_two,
    .input_range = region,
    .linear = linear,
    .parameters = parameters,
    .gradient = gradient,
    .reference = reference,
};
