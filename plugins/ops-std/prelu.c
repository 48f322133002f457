/* prelu: x, or slope times x below 0, with a trained slope for each channel. */
#include "broadcast.h"

static const cnr_port in[] = {{.name = "x", .help = "any shape"},
                              {.name = "slope",
                               .flags = CNR_PORT_PARAMETER,
                               .help = "broadcasts to the shape of x"}};
static const cnr_port out[] = {{.name = "y", .help = "the shape of x"}};
static const cnr_attr_spec attrs[] = {
    {.name = "shared", .type = CNR_ATTR_BOOL, .help = "one slope for all channels, when created"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    CNR_TRY(ops_want(node, 0, OPS_NUMBERS, 0, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, 1u << x->dtype, 0, x->rank, err));
    CNR_TRY(kit_broadcast(node, 0, 2, outputs[0], err));
    for (int32_t a = 0; a < x->rank; a++)
        if (x->dim[a] >= 0 && outputs[0]->dim[a] != x->dim[a])
            return ops_fail(err, CNR_E_SHAPE, node, "the slope is larger than x along axis %d", a);
    ops_like(outputs[0], x);
    return CNR_OK;
}

/* [C, 1, 1 ...], which broadcasts along axis 1; one element if shared, without axes if x has none.
 */
static cnr_status parameters(const cnr_node *node, int32_t port, cnr_tensor *t, cnr_init *init,
                             cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    if (port != 1) return CNR_E_NOT_FOUND;
    const int32_t channels = x->rank > 1 ? 1 : 0;
    const int shared = cnr_attr_int(node, "shared") || x->rank == 0;
    if (!shared && x->dim[channels] < 0)
        return ops_fail(err, CNR_E_SHAPE, node, "the number of channels must be known");
    t->dtype = x->dtype;
    t->rank = shared ? x->rank > 0 : x->rank - channels;
    for (int32_t a = 0; a < t->rank; a++) t->dim[a] = 1;
    if (!shared) t->dim[0] = x->dim[channels];
    *init = (cnr_init){CNR_INIT_CONST, 0, 0.25};
    return CNR_OK;
}

/* Method reference of prelu: x, or slope times x below 0; the slope is a weight. NaN stays NaN;
 * returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *const *ins = run->node->inputs, *y = run->outputs[0];
    const elem_domain domain = elem_domain_of(y->dtype);
    broadcast_walk w;
    (void)err;
    if (!broadcast_begin(&w, run, ins, 2)) return CNR_OK;
    do {
        elem_run x, slope;
        broadcast_load(&w, 0, ins[0], domain, &x);
        broadcast_load(&w, 1, ins[1], domain, &slope);
        for (int64_t i = 0; i < w.run && domain != ELEM_U; i++) {
            if (domain == ELEM_F) x.f[i] = x.f[i] < 0 ? slope.f[i] * x.f[i] : x.f[i];
            else if (x.i[i] < 0) x.i[i] = (int64_t)((uint64_t)slope.i[i] * (uint64_t)x.i[i]);
        }
        elem_store(y->dtype, y->data, w.out, w.run, domain, &x);
    } while (broadcast_next(&w));
    return CNR_OK;
}

/* Computes n elements with their slopes y, for a fused epilogue. */
static void apply(const cnr_node *node, const float *x, const float *y, float *to, int64_t n) {
    (void)node;
    for (int64_t i = 0; i < n; i++) to[i] = x[i] < 0 ? x[i] * y[i] : x[i];
}

/* Writes the OpenCL formula into text; its length, or -1: too long. */
static int32_t expression(const cnr_node *node, char *text, size_t bytes) {
    static const char formula[] = "(x < 0.0f ? x * y : x)";
    (void)node;
    if (bytes < sizeof formula) return -1;
    memcpy(text, formula, sizeof formula);
    return (int32_t)sizeof formula - 1;
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    const cnr_tensor *x = node->inputs[0];
    (void)outputs;
    if (grad_out[0] < 0 || (!want[0] && !want[1])) return CNR_OK;
    const cnr_value zero = kit_constant(&b, x->dtype, 0);
    const cnr_value below = kit_node2(&b, "less", inputs[0], zero);
    if (want[0]) {
        const cnr_value sloped = kit_node2(&b, "mul", grad_out[0], inputs[1]);
        grad_in[0] = kit_node3(&b, "where", below, sloped, grad_out[0]);
    }
    if (want[1]) {
        const cnr_value scaled = kit_node2(&b, "mul", grad_out[0], inputs[0]);
        grad_in[1] =
            kit_unbroadcast(&b, kit_node3(&b, "where", below, scaled, zero), x, node->inputs[1]);
    }
    return kit_built(&b, node, err);
}

const cnr_op ops_prelu = {
    CNR_OP_SIZES,
    .name = "prelu",
    .summary = "x, or slope times x below 0; the slope is a weight. NaN stays NaN.",
    .flags = CNR_OP_ELEMENTWISE | CNR_OP_EPILOGUE | CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = kit_cost_flops,
    .parameters = parameters,
    .gradient = gradient,
    .apply_f32 = apply,
    .expression = expression,
    .reference = reference,
};
