/* average_pool_grad, max_pool_grad: the gradient of a window is distributed evenly, or goes to its
 * maximum. */
#include "ops_window.h"

static const cnr_port in[] = {{.name = "dy", .help = "gradient of the pooling's output"},
                              {.name = "x", .help = "the pooling's input"}};
static const cnr_port out[] = {{.name = "dx", .help = "gradient of x"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    cnr_window w;
    for (int32_t i = 0; i < 2; i++) {
        const cnr_status status = ops_want(node, i, OPS_FLOATS, 3, 2 + CNR_MAX_SPATIAL, err);
        if (status != CNR_OK) return status;
    }
    const cnr_tensor *x = node->inputs[1];
    const cnr_status status = ops_pool_window(node, x, &w, err);
    if (status != CNR_OK) return status;
    int64_t dim[CNR_MAX_RANK] = {x->dim[0], x->dim[1]};
    for (int32_t i = 0; i < w.spatial; i++) dim[2 + i] = w.out[i];
    ops_like(outputs[0], x);
    return ops_want_shape(node, 0, x->dtype, x->rank, dim, err);
}

/* Method cost: counts the arithmetic operations of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    c->flops = ops_mul(ops_elements(node->inputs[0]), ops_pool_taps(node));
}

/* Adds the gradient of the window at o to a plane's sums. */
typedef void (*spread_fn)(const ops_geometry *g, int32_t dtype, const void *x, int64_t base,
                          const int64_t *o, double dy, int include, double *sum);

OPS_INLINE void evenly(const ops_geometry *g, int32_t dtype, const void *x, int64_t base,
                       const int64_t *o, double dy, int include, double *sum) {
    const double share = dy / ops_average_divisor(g, include, o);
    (void)dtype, (void)x, (void)base;
    OPS_EACH_TAP(g, o, index, sum[index] += share);
}

OPS_INLINE void to_largest(const ops_geometry *g, int32_t dtype, const void *x, int64_t base,
                           const int64_t *o, double dy, int include, double *sum) {
    double best;
    const int64_t top = ops_window_max(g, dtype, x, base, o, &best);
    (void)include;
    if (top >= 0) sum[top] += dy;
}

OPS_INLINE void body(const cnr_run *run, const ops_geometry *g, int32_t dtype, spread_fn spread,
                     int include) {
    const cnr_tensor *dy = run->node->inputs[0], *x = run->node->inputs[1], *dx = run->outputs[0];
    const int64_t plane = ops_volume(g->in);
    double *sum = run->workspace_data;
    int64_t o[3];
    for (int64_t n = g->lo[0]; n < g->hi[0]; n++)
        for (int64_t c = g->lo[1]; c < g->hi[1]; c++) {
            const int64_t base = (n * g->c + c) * plane;
            int64_t at = (n * g->c + c) * ops_volume(g->out);
            if (ops_cancelled(run)) return;
            for (int64_t i = 0; i < plane; i++) sum[i] = 0;
            for (o[0] = 0; o[0] < g->out[0]; o[0]++)
                for (o[1] = 0; o[1] < g->out[1]; o[1]++)
                    for (o[2] = 0; o[2] < g->out[2]; o[2]++, at++)
                        spread(g, dtype, x->data, base, o, ops_get(dtype, dy->data, at), include,
                               sum);
            for (int64_t i = 0; i < plane; i++) ops_put(dtype, dx->data, base + i, sum[i]);
        }
}

/* Method reference of average_pool_grad: the gradient of average_pool's input; average_pool's own
 * attributes. */
static cnr_status average_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[1];
    const int include = cnr_attr_int(run->node, "count_include_pad") != 0;
    ops_geometry g;
    const cnr_status status = ops_pool_geometry(run, x, &g, err);
    if (status != CNR_OK) return status;
    OPS_SPECIALISE(x->dtype, body(run, &g, dtype, evenly, include));
    return CNR_OK;
}

/* Method reference of max_pool_grad: the gradient of max_pool's input; max_pool's own
 * attributes. */
static cnr_status max_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[1];
    ops_geometry g;
    const cnr_status status = ops_pool_geometry(run, x, &g, err);
    if (status != CNR_OK) return status;
    OPS_SPECIALISE(x->dtype, body(run, &g, dtype, to_largest, 0));
    return CNR_OK;
}

uint64_t ops_plane_workspace(const cnr_node *node) {
    const cnr_tensor *dx = node->outputs[0];
    const int64_t plane = ops_span(dx, 2, dx->rank);
    return plane < 0 ? 0 : (uint64_t)plane * sizeof(double);
}

#define POOL_GRAD_HOOKS \
    .flags = CNR_OP_PURE | CNR_OP_RANGES, CNR_OP_PORTS(in, out), .infer = infer, .cost = cost, \
    .split_axes = ops_split_two, .input_range = ops_region_every, \
    .reference_workspace = ops_plane_workspace

const cnr_op ops_average_pool_grad = {
    CNR_OP_SIZES,
    .name = "average_pool_grad",
    .summary = "The gradient of average_pool's input; average_pool's own attributes.",
    .n_attrs = OPS_AVERAGE_POOL_N_ATTRS,
    .attrs = ops_average_pool_attrs,
    .reference = average_reference,
    POOL_GRAD_HOOKS,
};

const cnr_op ops_max_pool_grad = {
    CNR_OP_SIZES,
    .name = "max_pool_grad",
    .summary = "The gradient of max_pool's input; max_pool's own attributes.",
    .n_attrs = OPS_MAX_POOL_N_ATTRS,
    .attrs = ops_max_pool_attrs,
    .reference = max_reference,
    POOL_GRAD_HOOKS,
};
