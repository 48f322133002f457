/* softmax_grad, log_softmax_grad: computed from the output and its gradient. */
#include "ops_lane.h"

static const cnr_attr_spec attrs[] = {OPS_AXIS_ROW(-1, "the axis of the forward operator")};
static const cnr_port in[] = {{.name = "dy", .help = "gradient of the output"},
                              {.name = "y", .help = "the output"}};
static const cnr_port out[] = {{.name = "dx", .help = "gradient of the input"}};

/* y * (dy - sum(dy * y)) */
static void softmax(const cnr_run *run, const ops_lane *l, int32_t dtype) {
    const void *dy = run->node->inputs[0]->data, *y = run->node->inputs[1]->data;
    double dot = 0;
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t at = l->first + i * l->step;
        dot += ops_get(dtype, dy, at) * ops_get(dtype, y, at);
    }
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t at = l->first + i * l->step;
        ops_put(dtype, run->outputs[0]->data, at,
                ops_get(dtype, y, at) * (ops_get(dtype, dy, at) - dot));
    }
}

/* dy - exp(y) * sum(dy) */
static void log_softmax(const cnr_run *run, const ops_lane *l, int32_t dtype) {
    const void *dy = run->node->inputs[0]->data, *y = run->node->inputs[1]->data;
    double sum = 0;
    for (int64_t i = 0; i < l->n; i++) sum += ops_get(dtype, dy, l->first + i * l->step);
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t at = l->first + i * l->step;
        ops_put(dtype, run->outputs[0]->data, at,
                ops_get(dtype, dy, at) - exp(ops_get(dtype, y, at)) * sum);
    }
}

/* Method reference of the gradient of softmax. */
static cnr_status run_softmax(const cnr_run *run, cnr_error *err) {
    return ops_each_lane(run, softmax, err);
}
/* Method reference of the gradient of log_softmax. */
static cnr_status run_log_softmax(const cnr_run *run, cnr_error *err) {
    return ops_each_lane(run, log_softmax, err);
}

#define GRAD_HOOKS \
    .flags = CNR_OP_PURE | CNR_OP_RANGES, CNR_OP_ATTRS(attrs), CNR_OP_PORTS(in, out), \
    .infer = ops_lane_grad_infer, .cost = ops_lane_cost, .buffer_aliases = ops_alias_inplace, \
    .split_axes = ops_lane_split, .input_range = ops_lane_region

const cnr_op ops_softmax_grad = {
    CNR_OP_SIZES, .name = "softmax_grad",   .summary = "The gradient of softmax's input.",
    GRAD_HOOKS,   .reference = run_softmax,
};

const cnr_op ops_log_softmax_grad = {
    CNR_OP_SIZES, .name = "log_softmax_grad",   .summary = "The gradient of log_softmax's input.",
    GRAD_HOOKS,   .reference = run_log_softmax,
};
