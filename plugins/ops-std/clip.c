/* clip: limits values to a minimum and a maximum. */
#include "broadcast.h"

static const cnr_port in[] =
    {{.name = "x", .help = "any shape"},
     {.name = "min", .flags = CNR_PORT_OPTIONAL, .help = "one number, instead of the attribute"},
     {.name = "max", .flags = CNR_PORT_OPTIONAL, .help = "one number, instead of the attribute"}};
static const cnr_port out[] = {{.name = "y", .help = "the shape of x"}};
static const cnr_attr_spec attrs[] =
    {{.name = "min", .type = CNR_ATTR_FLOAT, .default_f = -INFINITY, .help = "least value"},
     {.name = "max", .type = CNR_ATTR_FLOAT, .default_f = INFINITY, .help = "largest value"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_NUMBERS, 0, CNR_MAX_RANK, err));
    for (int32_t i = 1; i < 3; i++) {
        const cnr_tensor *limit = cnr_own_input(node, i);
        CNR_TRY(kit_want(node, i, 1u << node->inputs[0]->dtype, 0, 1, err));
        if (limit && limit->rank == 1 && !ops_dims_agree(limit->dim[0], 1))
            return ops_fail(err, CNR_E_SHAPE, node, "a limit has %lld numbers, not 1",
                            (long long)limit->dim[0]);
    }
    ops_like(outputs[0], node->inputs[0]);
    return CNR_OK;
}

/* 1: input `port` is a constant that is not empty. */
static int has(const cnr_node *node, int32_t port) {
    const cnr_tensor *t = cnr_own_input(node, port);
    return t && t->data && cnr_count(t) > 0;
}

/* The limit: input `port` where given, else attribute `name`. */
static double limit_f(const cnr_node *node, int32_t port, const char *name) {
    return has(node, port) ? elem_f64(node->inputs[port], 0) : cnr_attr_float(node, name);
}

/* A limit for integers, clamped to the type's range: input `port` where given, else attribute
 * `name`; u64 by its bits. */
static uint64_t limit_i(const cnr_node *node, int32_t port, const char *name) {
    const elem_domain domain = elem_domain_of(node->inputs[0]->dtype);
    elem_run room;
    if (has(node, port)) return (uint64_t)elem_i64(node->inputs[port], 0);
    const double v = cnr_attr_float(node, name);
    elem_load(CNR_f64, &v, 0, 1, 1, domain, &room);
    return domain == ELEM_U && v <= 0 ? 0 : room.u[0];
}

/* Method reference of clip: x limited from below by min, then from above by max. NaN stays NaN; a
 * limit that is NaN has no effect; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const elem_domain domain = elem_domain_of(x->dtype);
    const double low = limit_f(run->node, 1, "min"), high = limit_f(run->node, 2, "max");
    const uint64_t least = limit_i(run->node, 1, "min"), most = limit_i(run->node, 2, "max");
    broadcast_walk w;
    (void)err;
    if (!broadcast_begin(&w, run, run->node->inputs, 1)) return CNR_OK;
    do {
        elem_run v;
        broadcast_load(&w, 0, x, domain, &v);
        for (int64_t i = 0; i < w.run; i++) {
            if (domain == ELEM_F) {
                if (v.f[i] < low) v.f[i] = low;
                if (v.f[i] > high) v.f[i] = high;
            } else if (domain == ELEM_I) {
                if (v.i[i] < (int64_t)least) v.i[i] = (int64_t)least;
                if (v.i[i] > (int64_t)most) v.i[i] = (int64_t)most;
            } else {
                if (v.u[i] < least) v.u[i] = least;
                if (v.u[i] > most) v.u[i] = most;
            }
        }
        elem_store(y->dtype, y->data, w.out, w.run, domain, &v);
    } while (broadcast_next(&w));
    return CNR_OK;
}

/* Clips n elements of a fused epilogue, of which the limits are constants, or one of them is the
 * other operand y. */
static void apply(const cnr_node *node, const float *x, const float *y, float *to, int64_t n) {
    const float low = (float)limit_f(node, 1, "min"), high = (float)limit_f(node, 2, "max");
    const int y_is_min = y && cnr_own_input(node, 1), y_is_max = y && !y_is_min;
    for (int64_t i = 0; i < n; i++) {
        const float least = y_is_min ? y[i] : low, most = y_is_max ? y[i] : high;
        float v = x[i];
        if (v < least) v = least;
        if (v > most) v = most;
        to[i] = v;
    }
}

/* Writes the OpenCL formula into text; its length, or -1: too long. */
static int32_t expression(const cnr_node *node, char *text, size_t bytes) {
    const float high = (float)limit_f(node, 2, "max"), low = (float)limit_f(node, 1, "min");
    /* the maximum wins if it is below the minimum */
    const float limits[2] = {low > high ? high : low, high};
    static const char formula[] = "(x < as_float(0x00000000u) ? as_float(0x00000000u) : "
                                  "x > as_float(0x00000000u) ? as_float(0x00000000u) : x)";
    /* index of the limits' last digit in the text */
    static const int last[2][2] = {{23, 47}, {75, 99}};
    if (bytes < sizeof formula) return -1;
    for (int i = 1; i < 3; i++)
        if (cnr_own_input(node, i) && !has(node, i)) return -1;
    memcpy(text, formula, sizeof formula);
    for (int k = 0; k < 2; k++) {
        uint32_t bits;
        memcpy(&bits, &limits[k], sizeof bits);
        for (int i = 0; i < 16; i++)
            text[last[k][i / 8] - i % 8] = "0123456789abcdef"[bits >> (4 * (i % 8)) & 15];
    }
    return (int32_t)sizeof formula - 1;
}

/* Passes the gradient to x where y equals x, else to the limit that y equals. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    const cnr_tensor *y = node->outputs[0];
    if (grad_out[0] < 0) return CNR_OK;
    const cnr_value kept = kit_node2(&b, "equal", inputs[0], outputs[0]);
    const cnr_value zero = kit_constant(&b, y->dtype, 0);
    if (want[0]) grad_in[0] = kit_node3(&b, "where", kept, grad_out[0], zero);
    for (int32_t i = 1; i < node->n_inputs; i++) {
        if (!want[i]) continue;
        const cnr_value cut = kit_node2(&b, "equal", outputs[0], inputs[i]);
        const cnr_value dy = kit_node3(&b, "where", cut, grad_out[0], zero);
        grad_in[i] =
            kit_unbroadcast(&b, kit_node3(&b, "where", kept, zero, dy), y, node->inputs[i]);
    }
    return kit_built(&b, node, err);
}

const cnr_op ops_clip = {
    CNR_OP_SIZES,
    .name = "clip",
    .summary = "x limited from below by min, then from above by max. NaN stays NaN; a limit that "
               "is NaN has no effect.",
    .flags = CNR_OP_ELEMENTWISE | CNR_OP_EPILOGUE | CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = kit_cost_flops,
    .gradient = gradient,
    .apply_f32 = apply,
    .expression = expression,
    .reference = reference,
};
