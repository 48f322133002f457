/* soft_threshold_grad: the gradient of soft_threshold, an operator of two operands. */
#include "template.h"

/* dx = dy where y is not 0 */
static const cnr_port grad_inputs[] = {{.name = "y", .help = "output of soft_threshold"},
                                       {.name = "dy", .help = "its gradient"}};
static const cnr_port grad_outputs[] = {{.name = "dx", .help = "gradient of x"}};

/* dx receives dy where the output y is not 0, else 0. */
static void apply_grad(const cnr_node *node, const float *y, const float *dy, float *dx,
                       int64_t n) {
    (void)node;
    for (int64_t i = 0; i < n; i++) dx[i] = y[i] != 0.0f ? dy[i] : 0.0f;
}

/* Method infer: both operands must have the same shape and type, and the output has it. Operands of
 * ELEMENTWISE operators may broadcast if infer lets them; these may not, since template_apply steps
 * through both alike. */
static cnr_status infer_grad(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    const cnr_tensor *y = node->inputs[0], *dy = node->inputs[1];
    int same = y->rank == dy->rank && dy->dtype == y->dtype;
    for (int32_t i = 0; same && i < y->rank; i++)
        same = y->dim[i] == dy->dim[i] || y->dim[i] < 0 || dy->dim[i] < 0;
    if (!same) return template_host->fail(err, CNR_E_SHAPE, node->name, "y and dy must be alike");
    if (y->dtype != CNR_f32)
        return template_host->fail(err, CNR_E_UNSUPPORTED, node->name, "f32 is wanted");
    out[0]->dtype = y->dtype;
    out[0]->rank = y->rank;
    memcpy(out[0]->dim, y->dim, sizeof y->dim);
    return CNR_OK;
}

/* Method reference of the gradient; returns CNR_OK. */
static cnr_status reference_grad(const cnr_run *run, cnr_error *err) {
    (void)err;
    template_apply(run, apply_grad);
    return CNR_OK;
}

const cnr_op template_soft_threshold_grad = {
    CNR_OP_SIZES,
    .name = "soft_threshold_grad",
    .summary = "gradient of soft_threshold",
    .flags = CNR_OP_ELEMENTWISE | CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_PORTS(grad_inputs, grad_outputs),
    .infer = infer_grad,
    .apply_f32 = apply_grad,
    .reference = reference_grad,
};
