/* lp_pool: the p-norm of each window. */
#include "ops_window.h"

static const cnr_attr_spec attrs[] = {OPS_POOL_ROWS,
                                      OPS_WINDOW_ROWS,
                                      {.name = "p",
                                       .type = CNR_ATTR_INT,
                                       .flags = CNR_ATTR_BOUNDED,
                                       .min = 1,
                                       .max = 1024,
                                       .default_i = 2,
                                       .help = "the p of the norm"}};
static const cnr_port in[] = {{.name = "x", .help = "N C and one to three spatial axes"}};
static const cnr_port out[] = {{.name = "y", .help = "the norm of each window"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    return ops_pool_infer(node, OPS_FLOATS, outputs, err);
}

OPS_INLINE double norm(const ops_geometry *g, int32_t dtype, const void *x, int64_t base,
                       const int64_t *o, double p) {
    double sum = 0;
    OPS_EACH_TAP(g, o, index, {
        const double v = ops_get(dtype, x, base + index);
        sum += p == 2 ? v * v : pow(fabs(v), p);
    });
    return p == 2 ? sqrt(sum) : pow(sum, 1 / p);
}

/* Method reference of lp_pool: the p-norm of each window. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const double p = (double)cnr_attr_int(run->node, "p");
    ops_geometry g;
    const cnr_status status = ops_pool_geometry(run, x, &g, err);
    if (status != CNR_OK) return status;
    OPS_SPECIALISE(x->dtype, ops_pool_body(run, &g, dtype, norm, p));
    return CNR_OK;
}

const cnr_op ops_lp_pool = {
    CNR_OP_SIZES,
    .name = "lp_pool",
    .summary = "The p-norm of each window.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = ops_pool_cost,
    .split_axes = ops_split_all,
    .input_range = ops_pool_region,
    .reference = reference,
};
