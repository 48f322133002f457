/* sgd, adam: one step of an optimiser for one weight, as operators of the training graph; assign,
 * the last operator of composed optimisers. */
#include "ops_kit.h"

enum { RATE, STEP, WEIGHT, GRADIENT, MEMORY };

#define OPTIMIZER_PORTS \
    {.name = "rate", .help = "learning rate; of rank 0"}, \
        {.name = "step", .help = "number of the step, from 1 on; of rank 0"}, \
        {.name = "x", .help = "the weight"}, { \
        .name = "gradient", .help = "of the weight" \
    }
#define DECAY_ROW \
    { \
        .name = "weight_decay", .type = CNR_ATTR_FLOAT, .flags = CNR_ATTR_BOUNDED, \
        .alias = "decay", .min = 0, .max = 1e6, \
        .help = "factor of x that is added to the gradient" \
    }

/* Weight, gradient and optimiser state have one shape; rate and step are scalars. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    for (int32_t p = RATE; p <= STEP; p++) CNR_TRY(ops_want(node, p, OPS_FLOATS, 0, 0, err));
    CNR_TRY(ops_want(node, WEIGHT, OPS_FLOATS, 0, CNR_MAX_RANK, err));
    const cnr_tensor *x = node->inputs[WEIGHT];
    for (int32_t p = GRADIENT; p < node->n_inputs; p++) {
        CNR_TRY(ops_want(node, p, 1u << x->dtype, x->rank, x->rank, err));
        for (int32_t a = 0; a < x->rank; a++)
            if (!ops_dims_agree(x->dim[a], node->inputs[p]->dim[a]))
                return ops_fail(err, CNR_E_SHAPE, node, "%s: want the weight's shape",
                                node->desc->inputs[p].name);
    }
    for (int32_t i = 0; i < node->n_outputs; i++) ops_like(outputs[i], x);
    return CNR_OK;
}

/* Method aliases: the weight and its memories are updated in place, as the outputs in their order.
 * Returns how many rows it wrote. */
static int32_t aliases_of(const cnr_node *node, cnr_alias *out, int32_t max) {
    int32_t n = 0;
    for (; n < node->n_outputs && n < max; n++)
        out[n] = (cnr_alias){CNR_ALIAS_UPDATE, n == 0 ? WEIGHT : MEMORY + n - 1, n, 0};
    return n;
}

/* The single element of input `port`, of any float type. */
static double scalar(const cnr_node *node, int32_t port) {
    return ops_get(node->inputs[port]->dtype, node->inputs[port]->data, 0);
}

/* ---- sgd ---- */

static const cnr_attr_spec sgd_attrs[] = {{.name = "momentum",
                                           .type = CNR_ATTR_FLOAT,
                                           .flags = CNR_ATTR_BOUNDED,
                                           .min = 0,
                                           .max = 1,
                                           .default_f = 0.9,
                                           .help = "factor of the old velocity"},
                                          {.name = "nesterov",
                                           .type = CNR_ATTR_BOOL,
                                           .help = "look ahead along the new velocity"},
                                          DECAY_ROW};
static const cnr_port sgd_in[] = {OPTIMIZER_PORTS, {.name = "velocity", .help = "0 at first"}};
static const cnr_port sgd_out[] = {{.name = "y", .help = "the new weight"},
                                   {.name = "new_velocity", .help = "for the next step"}};

OPS_INLINE void sgd_body(const cnr_run *run, int32_t dtype) {
    const cnr_node *node = run->node;
    const double rate = scalar(node, RATE), momentum = cnr_attr_float(node, "momentum"),
                 decay = cnr_attr_float(node, "weight_decay");
    const int nesterov = cnr_attr_int(node, "nesterov") != 0;
    const void *x = node->inputs[WEIGHT]->data, *gradient = node->inputs[GRADIENT]->data;
    const void *velocity = node->inputs[MEMORY]->data;
    for (int64_t i = 0, n = cnr_count(run->outputs[0]); i < n; i++) {
        const double w = ops_get(dtype, x, i), g = ops_get(dtype, gradient, i) + decay * w;
        const double v = momentum * ops_get(dtype, velocity, i) + g;
        ops_put(dtype, run->outputs[0]->data, i, w - rate * (nesterov ? g + momentum * v : v));
        ops_put(dtype, run->outputs[1]->data, i, v);
    }
}

OPS_REFERENCE(sgd_reference, sgd_body, outputs[0])

/* Method cost of sgd: counts the arithmetic operations of a run. */
static void sgd_cost(const cnr_node *node, cnr_cost *c) {
    c->flops = ops_mul(ops_elements(node->inputs[WEIGHT]), 6);
}

const cnr_op ops_sgd = {
    CNR_OP_SIZES,
    .name = "sgd",
    .summary = "A step of gradient descent with momentum: v = momentum v + g, x - rate v.",
    .flags = CNR_OP_PURE | CNR_OP_OPTIMIZER,
    CNR_OP_ATTRS(sgd_attrs),
    CNR_OP_PORTS(sgd_in, sgd_out),
    .infer = infer,
    .cost = sgd_cost,
    .buffer_aliases = aliases_of,
    .reference = sgd_reference,
};

/* ---- adam ---- */

static const cnr_attr_spec adam_attrs[] = {{.name = "beta1",
                                            .type = CNR_ATTR_FLOAT,
                                            .flags = CNR_ATTR_BOUNDED,
                                            .min = 0,
                                            .max = 0.999999,
                                            .default_f = 0.9,
                                            .help = "factor of the old mean"},
                                           {.name = "beta2",
                                            .type = CNR_ATTR_FLOAT,
                                            .flags = CNR_ATTR_BOUNDED,
                                            .min = 0,
                                            .max = 0.999999,
                                            .default_f = 0.999,
                                            .help = "factor of the old mean square"},
                                           {.name = "epsilon",
                                            .type = CNR_ATTR_FLOAT,
                                            .flags = CNR_ATTR_BOUNDED,
                                            .alias = "eps",
                                            .min = 1e-30,
                                            .max = 1,
                                            .default_f = 1e-8,
                                            .help = "added to the divisor"},
                                           DECAY_ROW};
static const cnr_port adam_in[] = {OPTIMIZER_PORTS,
                                   {.name = "mean", .help = "of gradients; 0 at first"},
                                   {.name = "square", .help = "mean of their squares; 0 at first"}};
static const cnr_port adam_out[] = {{.name = "y", .help = "the new weight"},
                                    {.name = "new_mean", .help = "for the next step"},
                                    {.name = "new_square", .help = "for the next step"}};

OPS_INLINE void adam_body(const cnr_run *run, int32_t dtype) {
    const cnr_node *node = run->node;
    const double b1 = cnr_attr_float(node, "beta1"), b2 = cnr_attr_float(node, "beta2"),
                 epsilon = cnr_attr_float(node, "epsilon"),
                 decay = cnr_attr_float(node, "weight_decay"), step = fmax(scalar(node, STEP), 1);
    /* bias correction, since both means start at 0 */
    const double rate = scalar(node, RATE) / (1 - pow(b1, step)), fill = 1 - pow(b2, step);
    const void *x = node->inputs[WEIGHT]->data, *gradient = node->inputs[GRADIENT]->data;
    const void *mean = node->inputs[MEMORY]->data, *square = node->inputs[MEMORY + 1]->data;
    for (int64_t i = 0, n = cnr_count(run->outputs[0]); i < n; i++) {
        const double w = ops_get(dtype, x, i), g = ops_get(dtype, gradient, i) + decay * w;
        const double m = b1 * ops_get(dtype, mean, i) + (1 - b1) * g;
        const double s = b2 * fmax(ops_get(dtype, square, i), 0) + (1 - b2) * g * g;
        ops_put(dtype, run->outputs[0]->data, i, w - rate * m / (sqrt(s / fill) + epsilon));
        ops_put(dtype, run->outputs[1]->data, i, m);
        ops_put(dtype, run->outputs[2]->data, i, s);
    }
}

OPS_REFERENCE(adam_reference, adam_body, outputs[0])

/* Method cost of adam: counts the arithmetic operations of a run. */
static void adam_cost(const cnr_node *node, cnr_cost *c) {
    c->flops = ops_mul(ops_elements(node->inputs[WEIGHT]), 14);
}

const cnr_op ops_adam = {
    CNR_OP_SIZES,
    .name = "adam",
    .summary = "A step of Adam: x - rate mean / sqrt(mean of squares), with bias correction.",
    .flags = CNR_OP_PURE | CNR_OP_OPTIMIZER,
    CNR_OP_ATTRS(adam_attrs),
    CNR_OP_PORTS(adam_in, adam_out),
    .infer = infer,
    .cost = adam_cost,
    .buffer_aliases = aliases_of,
    .reference = adam_reference,
};

/* ---- assign ---- */

static const cnr_port assign_in[] = {{.name = "x", .help = "a weight, or a state of the optimiser"},
                                     {.name = "value", .help = "of its type and shape"}};
static const cnr_port assign_out[] = {{.name = "y", .help = "the value"}};

/* Method infer of assign: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status assign_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *value = node->inputs[1];
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 0, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, 1u << x->dtype, x->rank, x->rank, err));
    for (int32_t a = 0; a < x->rank; a++)
        if (!ops_dims_agree(x->dim[a], value->dim[a]))
            return ops_fail(err, CNR_E_SHAPE, node, "value: want the shape of x");
    ops_like(outputs[0], x);
    return CNR_OK;
}

/* Method aliases: output 0 is input 0, updated in place. Returns 1, or 0 if max is below 1. */
static int32_t assign_aliases(const cnr_node *node, cnr_alias *out, int32_t max) {
    (void)node;
    if (max > 0) out[0] = (cnr_alias){CNR_ALIAS_UPDATE, 0, 0, 0};
    return max > 0 ? 1 : 0;
}

/* Method reference of assign: returns the value; in training it also replaces the weight or state
 * x; returns CNR_OK. */
static cnr_status assign_reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    const cnr_tensor *y = run->outputs[0];
    if (cnr_count(y) > 0) memmove(y->data, run->node->inputs[1]->data, (size_t)cnr_dense_bytes(y));
    return CNR_OK;
}

const cnr_op ops_assign = {
    CNR_OP_SIZES,
    .name = "assign",
    .summary = "Returns the value; in training it also replaces the weight or state x.",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(assign_in, assign_out),
    .infer = assign_infer,
    .buffer_aliases = assign_aliases,
    .reference = assign_reference,
};
