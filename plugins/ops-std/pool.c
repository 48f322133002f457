/* Hooks shared by the poolings. */
#include "ops_window.h"

/* *w receives the pooling's window over x; fails where it does not fit. */
cnr_status ops_pool_window(const cnr_node *node, const cnr_tensor *x, cnr_window *w,
                           cnr_error *err) {
    int64_t n, kernel[CNR_MAX_SPATIAL] = {0};
    const int64_t *given = cnr_attr_ints(node, "kernel_shape", &n);
    for (int64_t i = 0; i < n && i < CNR_MAX_SPATIAL; i++) kernel[i] = given[i];
    const char *why = ops_host->window_resolve(node, x, kernel, w);
    return why ? ops_fail(err, CNR_E_SHAPE, node, "%s", why) : CNR_OK;
}

cnr_status ops_pool_geometry(const cnr_run *run, const cnr_tensor *x, ops_geometry *g,
                             cnr_error *err) {
    cnr_window w;
    const cnr_status status = ops_pool_window(run->node, x, &w, err);
    if (status == CNR_OK) ops_geometry_of(&w, x, run, g);
    return status;
}

/* Method infer of poolings of these types (bits): the output's spatial axes are the window's
 * places. Fails where types or ranks differ. */
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

/* Elements of a pooling's window, at most UINT64_MAX. */
uint64_t ops_pool_taps(const cnr_node *node) {
    int64_t n;
    uint64_t product = 1;
    const int64_t *kernel = cnr_attr_ints(node, "kernel_shape", &n);
    for (int64_t i = 0; i < n; i++) product = ops_mul(product, (uint64_t)kernel[i]);
    return product;
}

/* Method cost of poolings: an operation for each element of each window. */
void ops_pool_cost(const cnr_node *node, cnr_cost *c) {
    c->flops = ops_mul(ops_elements(node->outputs[0]), ops_pool_taps(node));
}

/* Method region of poolings: the rows that the windows of [begin, end) cover. */
void ops_pool_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                     cnr_input_range *r) {
    cnr_window w;
    *r = (cnr_input_range){.axis = -1};
    if (port != 0) return;
    if (axis < 2) *r = (cnr_input_range){axis, begin, end};
    else if (ops_pool_window(node, node->inputs[0], &w, NULL) == CNR_OK)
        *r = ops_window_region(&w, axis - 2, begin, end);
}
