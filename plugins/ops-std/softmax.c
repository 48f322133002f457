/* softmax, log_softmax and hardmax along an axis. */
#include "ops_lane.h"

static const cnr_attr_spec attrs[] = {
    OPS_AXIS_ROW(-1, "the axis along which the results add up to 1")};
static const cnr_port in[] = {{.name = "x", .help = "scores"}};
static const cnr_port out[] = {{.name = "y", .help = "the same shape"}};

/* The maximum, and the sum of exp(x - maximum); any NaN gives NaN. */
OPS_INLINE double exp_sum(int32_t dtype, const void *x, const ops_lane *l, double *largest) {
    double sum = 0;
    *largest = -INFINITY;
    for (int64_t i = 0; i < l->n; i++) {
        const double v = ops_get(dtype, x, l->first + i * l->step);
        if (v > *largest) *largest = v;
    }
    for (int64_t i = 0; i < l->n; i++)
        sum += exp(ops_get(dtype, x, l->first + i * l->step) - *largest);
    return sum;
}

/* Softmax of one line. */
static void softmax(const cnr_run *run, const ops_lane *l, int32_t dtype) {
    const void *x = run->node->inputs[0]->data;
    double largest;
    const double sum = exp_sum(dtype, x, l, &largest);
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t at = l->first + i * l->step;
        ops_put(dtype, run->outputs[0]->data, at, exp(ops_get(dtype, x, at) - largest) / sum);
    }
}

/* Logarithm of the softmax of one line. */
static void log_softmax(const cnr_run *run, const ops_lane *l, int32_t dtype) {
    const void *x = run->node->inputs[0]->data;
    double largest;
    const double shift = log(exp_sum(dtype, x, l, &largest));
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t at = l->first + i * l->step;
        ops_put(dtype, run->outputs[0]->data, at, ops_get(dtype, x, at) - largest - shift);
    }
}

/* 1 at the first largest element of a line, 0 elsewhere. */
static void hardmax(const cnr_run *run, const ops_lane *l, int32_t dtype) {
    const void *x = run->node->inputs[0]->data;
    int64_t top = 0;
    double best = l->n > 0 ? ops_get(dtype, x, l->first) : 0;
    for (int64_t i = 1; i < l->n; i++) {
        const double v = ops_get(dtype, x, l->first + i * l->step);
        if (v > best) {
            best = v;
            top = i;
        }
    }
    for (int64_t i = 0; i < l->n; i++) /* NaN wins only at the first position, as in arg_max */
        ops_put(dtype, run->outputs[0]->data, l->first + i * l->step, i == top && best == best);
}

/* Method reference of softmax. */
static cnr_status run_softmax(const cnr_run *run, cnr_error *err) {
    return ops_each_lane(run, softmax, err);
}
/* Method reference of log_softmax. */
static cnr_status run_log_softmax(const cnr_run *run, cnr_error *err) {
    return ops_each_lane(run, log_softmax, err);
}
/* Method reference of hardmax. */
static cnr_status run_hardmax(const cnr_run *run, cnr_error *err) {
    return ops_each_lane(run, hardmax, err);
}

/* Method gradient of add: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status add_gradient(const char *op, OPS_GRADIENT_ARGS) {
    const cnr_value in_g[] = {grad_out[0], outputs[0]};
    (void)inputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    return ops_grad_node(host, graph, node, op, in_g, 2, node->attrs, node->n_attrs, &grad_in[0],
                         err);
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    return add_gradient("softmax_grad", host, graph, node, inputs, outputs, grad_out, want, grad_in,
                        err);
}

/* Method gradient of log: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status log_gradient(OPS_GRADIENT_ARGS) {
    return add_gradient("log_softmax_grad", host, graph, node, inputs, outputs, grad_out, want,
                        grad_in, err);
}

#define SOFTMAX_HOOKS \
    .flags = CNR_OP_PURE | CNR_OP_RANGES, CNR_OP_ATTRS(attrs), CNR_OP_PORTS(in, out), \
    .infer = ops_lane_infer, .cost = ops_lane_cost, .buffer_aliases = ops_alias_inplace, \
    .split_axes = ops_lane_split, .input_range = ops_lane_region

const cnr_op ops_softmax = {
    CNR_OP_SIZES,
    .name = "softmax",
    .summary = "exp(x) divided by its sum along an axis; all NaN where one is NaN or +infinity.",
    SOFTMAX_HOOKS,
    .gradient = gradient,
    .reference = run_softmax,
};

const cnr_op ops_log_softmax = {
    CNR_OP_SIZES,
    .name = "log_softmax",
    .summary = "The logarithm of softmax, without its underflow; NaN where softmax is.",
    SOFTMAX_HOOKS,
    .gradient = log_gradient,
    .reference = run_log_softmax,
};

const cnr_op ops_hardmax = {
    CNR_OP_SIZES,
    .name = "hardmax",
    .summary = "1 at the first of the largest along an axis, else 0; all 0 if the first is NaN.",
    SOFTMAX_HOOKS,
    .reference = run_hardmax,
};
