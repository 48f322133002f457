/* Shared by the operators: checks of inputs, splitting. */
#include "ops.h"

cnr_status tld_want(const cnr_node *node, int32_t i, int32_t dtype, int32_t rank, cnr_error *err) {
    const cnr_tensor *t = i < node->n_inputs ? node->inputs[i] : NULL;
    const char *port = node->desc->inputs[i].name;
    if (!t) return tld_host->fail(err, CNR_E_ARG, node->name, "input %s is missing", port);
    if (t->dtype != dtype || t->encoding)
        return tld_host->fail(err, CNR_E_SHAPE, node->name, "input %s: want %s", port,
                              cnr_dtype_name(dtype));
    if (t->rank != rank)
        return tld_host->fail(err, CNR_E_SHAPE, node->name, "input %s: want rank %d", port,
                              (int)rank);
    return CNR_OK;
}

cnr_status tld_want_size(const cnr_node *node, int32_t i, int32_t axis, int64_t size,
                         cnr_error *err) {
    const int64_t got = node->inputs[i]->dim[axis];
    if (size < 0 || got < 0 || got == size) return CNR_OK;
    return tld_host->fail(err, CNR_E_SHAPE, node->name,
                          "input %s: want %lld along axis %d, got %lld", node->desc->inputs[i].name,
                          (long long)size, (int)axis, (long long)got);
}

void tld_by_window(const cnr_node *node, cnr_tensor *const *outputs) {
    outputs[0]->dtype = CNR_f32;
    outputs[0]->rank = 1;
    outputs[0]->dim[0] = node->inputs[1]->dim[0];
}

int32_t tld_split_windows(const cnr_node *node, cnr_split_axis *out, int32_t max) {
    (void)node;
    if (max < 1) return 0;
    out[0] = (cnr_split_axis){0, 1};
    return 1;
}

/* Method region: the same range of inputs 1 and 4, which are along the windows; other inputs as a
 * whole. */
void tld_region_of(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *out) {
    (void)node;
    (void)axis;
    if (port == 1 || port == 4) *out = (cnr_input_range){0, begin, end};
    else *out = (cnr_input_range){-1, 0, 0};
}

void tld_unplan(const cnr_device *device, void *state) {
    (void)device;
    tld_host->free(state);
}
