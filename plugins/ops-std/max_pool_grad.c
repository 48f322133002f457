/* max_pool_grad: the gradient of max_pool's input; each window's goes to its largest element. */
#include "ops_window.h"

static const cnr_port in[] = {{.name = "dy", .help = "gradient of the pooling's output"},
                              {.name = "x", .help = "the pooling's input"}};
static const cnr_port out[] = {{.name = "dx", .help = "gradient of x"}};

OPS_INLINE void body(const cnr_run *run, const ops_geometry *g, int32_t dtype) {
    const cnr_tensor *dy = run->node->inputs[0], *x = run->node->inputs[1], *dx = run->outputs[0];
    const int64_t plane = ops_volume(g->in);
    double *sum = run->workspace_data, best;
    int64_t o[3];
    for (int64_t n = g->lo[0]; n < g->hi[0]; n++)
        for (int64_t c = g->lo[1]; c < g->hi[1]; c++) {
            const int64_t base = (n * g->c + c) * plane;
            int64_t at = (n * g->c + c) * ops_volume(g->out);
            if (ops_cancelled(run)) return;
            for (int64_t i = 0; i < plane; i++) sum[i] = 0;
            for (o[0] = 0; o[0] < g->out[0]; o[0]++)
                for (o[1] = 0; o[1] < g->out[1]; o[1]++)
                    for (o[2] = 0; o[2] < g->out[2]; o[2]++, at++) {
                        const int64_t top = ops_window_max(g, dtype, x->data, base, o, &best);
                        if (top >= 0) sum[top] += ops_get(dtype, dy->data, at);
                    }
            for (int64_t i = 0; i < plane; i++) ops_put(dtype, dx->data, base + i, sum[i]);
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

const cnr_op ops_max_pool_grad = {
    OPS_SIZES,
    .name = "max_pool_grad",
    .summary = "The gradient of max_pool's input; max_pool's own attributes.",
    .flags = CNR_OP_PURE,
    .n_attrs = OPS_MAX_POOL_N_ATTRS,
    .attrs = ops_max_pool_attrs,
    OPS_PORTS(in, out),
    .infer = ops_pool_grad_infer,
    .cost = ops_pool_grad_cost,
    .split_axes = ops_pool_grad_split,
    .region = ops_pool_grad_region,
    .reference = reference,
    .reference_workspace = ops_pool_grad_workspace,
};
