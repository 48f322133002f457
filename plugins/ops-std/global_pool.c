/* global_average_pool, global_max_pool, global_lp_pool: reduce each channel to one number. */
#include "ops_kit.h"

static const cnr_attr_spec lp_attrs[] = {{.name = "p",
                                          .type = CNR_ATTR_INT,
                                          .flags = CNR_ATTR_BOUNDED,
                                          .min = 1,
                                          .max = 1024,
                                          .default_i = 2,
                                          .help = "the p of the norm"}};
static const cnr_port in[] = {{.name = "x", .help = "N C and spatial axes"}};
static const cnr_port out[] = {{.name = "y", .help = "N C, the spatial axes being 1"}};
static const cnr_port grad_in_ports[] = {{.name = "dy", .help = "gradient of the output"},
                                         {.name = "x", .help = "the input"}};
static const cnr_port grad_out_ports[] = {{.name = "dx", .help = "gradient of x"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    ops_like(outputs[0], node->inputs[0]);
    for (int32_t i = 2; i < outputs[0]->rank; i++) outputs[0]->dim[i] = 1;
    return CNR_OK;
}

/* Method infer of grad: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status grad_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    const cnr_tensor *x = node->inputs[1];
    const int64_t dim[CNR_MAX_RANK] = {x->dim[0], x->dim[1], 1, 1, 1, 1, 1, 1};
    ops_like(outputs[0], x);
    return ops_want_shape(node, 0, x->dtype, x->rank, dim, err);
}

/* Method cost: counts the arithmetic operations of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    c->flops = ops_elements(node->inputs[node->n_inputs - 1]);
}

/* Called for each channel of each sample in the run's range: its elements in x start at `first`,
 * its result is y[at]. */
typedef void (*plane_fn)(const cnr_run *run, int32_t dtype, int64_t first, int64_t n, int64_t at);

/* Calls fn for each plane in the run's range. */
static void each_plane(const cnr_run *run, const cnr_tensor *x, plane_fn fn) {
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    const int64_t plane = cnr_span(x, 2, x->rank);
    cnr_range_of(run, lo, hi);
    for (int64_t n = lo[0]; n < hi[0]; n++)
        for (int64_t c = lo[1]; c < hi[1]; c++) {
            const int64_t at = n * x->dim[1] + c;
            if (ops_cancelled(run)) return;
            fn(run, x->dtype, at * plane, plane, at);
        }
}

/* The mean of n elements from `first`, to element `at`. */
static void average(const cnr_run *run, int32_t dtype, int64_t first, int64_t n, int64_t at) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += ops_get(dtype, run->node->inputs[0]->data, first + i);
    ops_put(dtype, run->outputs[0]->data, at, n > 0 ? sum / (double)n : 0);
}

/* Index of the largest element, the first of equals, and its value in *best; NaN counts as largest.
 * -1: n is 0. */
static int64_t largest(const void *x, int32_t dtype, int64_t first, int64_t n, double *best) {
    int64_t top = -1;
    *best = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double v = ops_get(dtype, x, first + i);
        if (top < 0 || (!(v <= *best) && *best == *best)) {
            *best = v;
            top = i;
        }
    }
    return top;
}

/* The largest of n elements from `first`, to element `at`. */
static void maximum(const cnr_run *run, int32_t dtype, int64_t first, int64_t n, int64_t at) {
    double best;
    largest(run->node->inputs[0]->data, dtype, first, n, &best);
    ops_put(dtype, run->outputs[0]->data, at, best);
}

/* The p-norm of n elements from `first`, to element `at`. */
static void norm(const cnr_run *run, int32_t dtype, int64_t first, int64_t n, int64_t at) {
    const double p = (double)cnr_attr_int(run->node, "p");
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = ops_get(dtype, run->node->inputs[0]->data, first + i);
        sum += p == 2 ? v * v : pow(fabs(v), p);
    }
    ops_put(dtype, run->outputs[0]->data, at, p == 2 ? sqrt(sum) : pow(sum, 1 / p));
}

/* Spreads gradient `at` evenly over n elements from `first`. */
static void average_grad(const cnr_run *run, int32_t dtype, int64_t first, int64_t n, int64_t at) {
    const double dy = ops_get(dtype, run->node->inputs[0]->data, at);
    for (int64_t i = 0; i < n; i++)
        ops_put(dtype, run->outputs[0]->data, first + i, dy / (double)n);
}

/* Gives the gradient, number `at` of input 0, to the largest of the n elements of input 1 from
 * `first` (the first of equals; NaN counts as largest), and 0 to the others, in output 0. */
static void max_grad(const cnr_run *run, int32_t dtype, int64_t first, int64_t n, int64_t at) {
    double best;
    const int64_t top = largest(run->node->inputs[1]->data, dtype, first, n, &best);
    const double dy = ops_get(dtype, run->node->inputs[0]->data, at);
    for (int64_t i = 0; i < n; i++)
        ops_put(dtype, run->outputs[0]->data, first + i, i == top ? dy : 0);
}

/* Method gradient of average: adds a node global_average_pool_grad that computes the wanted
 * gradient of the input. */
static cnr_status average_gradient(OPS_GRADIENT_ARGS) {
    return ops_grad_of_input("global_average_pool_grad", host, graph, node, inputs, outputs,
                             grad_out, want, grad_in, err);
}

/* Method gradient of max: adds a node global_max_pool_grad that computes the wanted gradient of
 * the input. */
static cnr_status max_gradient(OPS_GRADIENT_ARGS) {
    return ops_grad_of_input("global_max_pool_grad", host, graph, node, inputs, outputs, grad_out,
                             want, grad_in, err);
}

/* Defines NAME, computed by FN for each plane of input PORT; the remaining arguments go into the
 * descriptor. */
#define GLOBAL_OP(NAME, SUMMARY, PORT, FN, ...) \
    static cnr_status NAME##_reference(const cnr_run *run, cnr_error *err) { \
        (void)err; \
        each_plane(run, run->node->inputs[PORT], FN); \
        return CNR_OK; \
    } \
    const cnr_op ops_##NAME = {CNR_OP_SIZES, \
                               .name = #NAME, \
                               .summary = SUMMARY, \
                               .cost = cost, \
                               .flags = CNR_OP_PURE | CNR_OP_RANGES, \
                               .split_axes = ops_split_two, \
                               .input_range = ops_region_every, \
                               .reference = NAME##_reference, \
                               __VA_ARGS__}

GLOBAL_OP(global_average_pool, "The mean of each channel.", 0, average, .infer = infer,
          CNR_OP_PORTS(in, out), .gradient = average_gradient);
GLOBAL_OP(global_max_pool, "The largest of each channel.", 0, maximum, .infer = infer,
          CNR_OP_PORTS(in, out), .gradient = max_gradient);
GLOBAL_OP(global_lp_pool, "The p-norm of each channel.", 0, norm, .infer = infer,
          CNR_OP_PORTS(in, out), CNR_OP_ATTRS(lp_attrs));
GLOBAL_OP(global_average_pool_grad, "The gradient of global_average_pool's input.", 1, average_grad,
          .infer = grad_infer, CNR_OP_PORTS(grad_in_ports, grad_out_ports));
GLOBAL_OP(global_max_pool_grad, "The gradient of global_max_pool's input.", 1, max_grad,
          .infer = grad_infer, CNR_OP_PORTS(grad_in_ports, grad_out_ports));
