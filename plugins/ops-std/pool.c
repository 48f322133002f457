/* Hooks that all windowed poolings share, and those of their gradients. */
#include "ops_window.h"

cnr_status ops_pool_window(const cnr_node *node, const cnr_tensor *x, cnr_window *w,
                           cnr_error *err) {
    int64_t n, kernel[CNR_MAX_SPATIAL] = {0};
    const int64_t *given = cnr_attr_ints(node, "kernel_shape", &n);
    for (int64_t i = 0; i < n && i < CNR_MAX_SPATIAL; i++) kernel[i] = given[i];
    const char *why = cnr_window_resolve(node, x, kernel, w);
    return why ? ops_fail(err, CNR_E_SHAPE, node, "%s", why) : CNR_OK;
}

cnr_status ops_pool_infer(const cnr_node *node, uint32_t dtypes, cnr_tensor *const *outputs,
                          cnr_error *err) {
    cnr_window w;
    cnr_status status = ops_want(node, 0, dtypes, 3, 2 + CNR_MAX_SPATIAL, err);
    if (status != CNR_OK) return status;
    if ((status = ops_pool_window(node, node->inputs[0], &w, err)) != CNR_OK) return status;
    ops_like(outputs[0], node->inputs[0]);
    for (int32_t i = 0; i < w.spatial; i++) outputs[0]->dim[2 + i] = w.out[i];
    return CNR_OK;
}

static uint64_t taps(const cnr_node *node) {
    int64_t n;
    uint64_t product = 1;
    const int64_t *kernel = cnr_attr_ints(node, "kernel_shape", &n);
    for (int64_t i = 0; i < n; i++) product = ops_mul(product, (uint64_t)kernel[i]);
    return product;
}

void ops_pool_cost(const cnr_node *node, cnr_cost *c) {
    c->flops = ops_mul(ops_elements(node->outputs[0]), taps(node));
}

void ops_pool_grad_cost(const cnr_node *node, cnr_cost *c) {
    c->flops = ops_mul(ops_elements(node->inputs[0]), taps(node));
}

int32_t ops_pool_split(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    int32_t n = 0;
    for (; n < node->outputs[0]->rank && n < max; n++)
        axes[n] = (cnr_split_axis){.axis = n, .alignment = 1};
    return n;
}

void ops_pool_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                     cnr_region *r) {
    cnr_window w;
    *r = (cnr_region){.axis = -1};
    if (port != 0) return;
    if (axis < 2) *r = (cnr_region){axis, begin, end};
    else if (ops_pool_window(node, node->inputs[0], &w, NULL) == CNR_OK)
        *r = ops_window_region(&w, axis - 2, begin, end);
}

cnr_status ops_pool_grad_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
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

int32_t ops_pool_grad_split(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    int32_t n = 0;
    (void)node;
    for (; n < 2 && n < max; n++) axes[n] = (cnr_split_axis){.axis = n, .alignment = 1};
    return n;
}

void ops_pool_grad_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end,
                          int32_t port, cnr_region *r) {
    (void)node, (void)port;
    *r = (cnr_region){axis, begin, end};
}

uint64_t ops_pool_grad_workspace(const cnr_node *node) {
    const cnr_tensor *dx = node->outputs[0];
    const int64_t plane = ops_span(dx, 2, dx->rank);
    return plane < 0 ? 0 : (uint64_t)plane * sizeof(double);
}
