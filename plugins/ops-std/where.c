/* where: selects elements of two operands by a condition. */
#include "broadcast.h"

static const cnr_port in[] = {{.name = "condition", .help = "bool; all three broadcast"},
                              {.name = "x", .help = "taken where it is true"},
                              {.name = "y", .help = "taken where it is false"}};
static const cnr_port out[] = {{.name = "z", .help = "the result in the broadcast shape"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, ELEM_BOOL, 0, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, OPS_WHOLE, 0, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 2, 1u << node->inputs[1]->dtype, 0, CNR_MAX_RANK, err));
    outputs[0]->dtype = node->inputs[1]->dtype;
    return kit_broadcast(node, 0, 3, outputs[0], err);
}

/* A run of elements of 4 bytes of any type, which need no conversion. Usual strides have loops of
 * their own, which compilers vectorise. */
static void pick_words(const broadcast_walk *w, const cnr_tensor *const *ins, uint32_t *z) {
    const uint8_t *c = (const uint8_t *)ins[0]->data + w->at[0];
    const uint32_t *x = (const uint32_t *)ins[1]->data + w->at[1];
    const uint32_t *y = (const uint32_t *)ins[2]->data + w->at[2];
    const int64_t cs = w->inner[0], xs = w->inner[1], ys = w->inner[2];
    if (cs == 1 && xs == 1 && ys == 1)
        for (int64_t i = 0; i < w->run; i++) z[i] = c[i] ? x[i] : y[i];
    else if (cs == 1 && xs == 1 && ys == 0)
        for (int64_t i = 0; i < w->run; i++) z[i] = c[i] ? x[i] : *y;
    else if (cs == 1 && xs == 0 && ys == 1)
        for (int64_t i = 0; i < w->run; i++) z[i] = c[i] ? *x : y[i];
    else
        for (int64_t i = 0; i < w->run; i++) z[i] = c[i * cs] ? x[i * xs] : y[i * ys];
}

/* Method reference of where: x where the condition is true, else y; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *const *ins = run->node->inputs, *z = run->outputs[0];
    const elem_domain domain = elem_domain_of(z->dtype);
    broadcast_walk w;
    (void)err;
    if (!broadcast_begin(&w, run, ins, 3)) return CNR_OK;
    const int words = cnr_dtype_bits(z->dtype) == 32;
    do {
        elem_run c, x, y;
        if (words) {
            pick_words(&w, ins, (uint32_t *)z->data + w.out);
            continue;
        }
        broadcast_load(&w, 0, ins[0], ELEM_U, &c);
        broadcast_load(&w, 1, ins[1], domain, &x);
        broadcast_load(&w, 2, ins[2], domain, &y);
        for (int64_t i = 0; i < w.run; i++) /* 8 bytes in every domain */
            if (!c.u[i]) x.u[i] = y.u[i];
        elem_store(z->dtype, z->data, w.out, w.run, domain, &x);
    } while (broadcast_next(&w));
    return CNR_OK;
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    const cnr_tensor *z = node->outputs[0];
    (void)outputs;
    if (grad_out[0] < 0 || (!want[1] && !want[2])) return CNR_OK;
    const cnr_value zero = kit_constant(&b, z->dtype, 0);
    if (want[1])
        grad_in[1] = kit_unbroadcast(&b, kit_node3(&b, "where", inputs[0], grad_out[0], zero), z,
                                     node->inputs[1]);
    if (want[2])
        grad_in[2] = kit_unbroadcast(&b, kit_node3(&b, "where", inputs[0], zero, grad_out[0]), z,
                                     node->inputs[2]);
    return kit_built(&b, node, err);
}

const cnr_op ops_where = {
    CNR_OP_SIZES,
    .name = "where",
    .summary = "x where the condition is true, else y.",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = kit_cost_flops,
    .gradient = gradient,
    .reference = reference,
};
