/* average_pool_grad: the gradient of average_pool's input; each window's is spread evenly. */
#include "ops_window.h"

static const cnr_port in[] = {{.name = "dy", .help = "gradient of the pooling's output"},
                              {.name = "x", .help = "gives the shape; its data is not read"}};
static const cnr_port out[] = {{.name = "dx", .help = "gradient of x"}};

OPS_INLINE void body(const cnr_run *run, const ops_geometry *g, int32_t dtype) {
    const cnr_tensor *dy = run->node->inputs[0], *dx = run->outputs[0];
    const int include = cnr_attr_int(run->node, "count_include_pad") != 0;
    const int64_t plane = ops_volume(g->in);
    double *sum = run->workspace_data;
    int64_t o[3];
    for (int64_t n = g->lo[0]; n < g->hi[0]; n++)
        for (int64_t c = g->lo[1]; c < g->hi[1]; c++) {
            int64_t at = (n * g->c + c) * ops_volume(g->out);
            if (ops_cancelled(run)) return;
            for (int64_t i = 0; i < plane; i++) sum[i] = 0;
            for (o[0] = 0; o[0] < g->out[0]; o[0]++)
                for (o[1] = 0; o[1] < g->out[1]; o[1]++)
                    for (o[2] = 0; o[2] < g->out[2]; o[2]++, at++) {
                        const double share = ops_get(dtype, dy->data, at) /
                                             ops_average_divisor(g, include, o);
                        OPS_EACH_TAP(g, o, index, sum[index] += share);
                    }
            for (int64_t i = 0; i < plane; i++)
                ops_put(dtype, dx->data, (n * g->c + c) * plane + i, sum[i]);
        }
}

static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[1];
    cnr_window w;
    ops_geometry g;
    const cnr_status status = ops_pool_window(run->node, x, &w, err);
    if (status != CNR_OK) return status;
    ops_geometry_of(&w, x, run, &g);
    OPS_SPECIALISE(x->dtype, body(run, &g, dtype));
    return CNR_OK;
}

const cnr_op ops_average_pool_grad = {
    OPS_SIZES,
    .name = "average_pool_grad",
    .summary = "The gradient of average_pool's input; average_pool's own attributes.",
    .flags = CNR_OP_PURE,
    .n_attrs = OPS_AVERAGE_POOL_N_ATTRS,
    .attrs = ops_average_pool_attrs,
    OPS_PORTS(in, out),
    .infer = ops_pool_grad_infer,
    .cost = ops_pool_grad_cost,
    .split_axes = ops_pool_grad_split,
    .region = ops_pool_grad_region,
    .reference = reference,
    .reference_workspace = ops_pool_grad_workspace,
};
