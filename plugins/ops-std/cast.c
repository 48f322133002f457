/* cast, cast_like: conversion to another data type. */
#include "broadcast.h"

static const cnr_port one[] = {{.name = "x", .help = "any shape"}};
static const cnr_port two[] = {{.name = "x", .help = "any shape"},
                               {.name = "like", .help = "gives the data type"}};
static const cnr_port out[] = {{.name = "y", .help = "the shape of x"}};
#define SATURATE \
    { \
        .name = "saturate", .type = CNR_ATTR_BOOL, .default_i = 1, \
        .help = "of 8-bit floats only: no effect on the types here" \
    }
static const cnr_attr_spec cast_attrs[] = {{.name = "to",
                                            .type = CNR_ATTR_DTYPE,
                                            .flags = CNR_ATTR_REQUIRED,
                                            .alias = "dtype",
                                            .help = "the new data type"},
                                           SATURATE};
static const cnr_attr_spec cast_like_attrs[] = {SATURATE};

/* Gives y the input's shape and `dtype`; fails for types that cannot be converted. */
static cnr_status infer_as(const cnr_node *node, cnr_tensor *y, int32_t dtype, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_WHOLE | ELEM_NIBBLES, 0, CNR_MAX_RANK, err));
    if (!elem_in(dtype, OPS_WHOLE | ELEM_NIBBLES))
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "no cast to %s", cnr_dtype_name(dtype));
    ops_like(y, node->inputs[0]);
    y->dtype = dtype;
    return CNR_OK;
}

/* Method infer of cast: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status cast_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    return infer_as(node, outputs[0], (int32_t)cnr_attr_int(node, "to"), err);
}

/* Method infer of cast_like: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status cast_like_infer(const cnr_node *node, cnr_tensor *const *outputs,
                                  cnr_error *err) {
    return infer_as(node, outputs[0], node->inputs[1]->dtype, err);
}

/* Converts integers to integers bit by bit, others by value; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    broadcast_walk w;
    (void)err;
    if (!broadcast_begin(&w, run, run->node->inputs, 1)) return CNR_OK;
    do {
        elem_run v;
        const elem_domain domain = elem_domain_of(x->dtype);
        broadcast_load(&w, 0, x, domain, &v);
        elem_store(y->dtype, y->data, w.out, w.run, domain, &v);
    } while (broadcast_next(&w));
    return CNR_OK;
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    (void)outputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    grad_in[0] = kit_node2(&b, "cast_like", grad_out[0], inputs[0]);
    return kit_built(&b, node, err);
}

const cnr_op ops_cast = {
    CNR_OP_SIZES,
    .name = "cast",
    .summary = "Converts to another data type; NaN becomes 0 as an integer, true as a bool.",
    .flags = CNR_OP_ELEMENTWISE | CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(cast_attrs),
    CNR_OP_PORTS(one, out),
    .infer = cast_infer,
    .cost = kit_cost_flops,
    .gradient = gradient,
    .reference = reference,
};

const cnr_op ops_cast_like = {
    CNR_OP_SIZES,
    .name = "cast_like",
    .summary = "Converts to the data type of another tensor.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(cast_like_attrs),
    CNR_OP_PORTS(two, out),
    .infer = cast_like_infer,
    .cost = kit_cost_flops,
    .gradient = gradient,
    .reference = reference,
};
