/* conv_grad_input: the gradient of a convolution's input. */
#include "ops_window.h"

static const cnr_port in[] = {{.name = "dy", .help = "gradient of the convolution's output"},
                              {.name = "weight", .help = "of the convolution"},
                              {.name = "x", .help = "gives the shape; its data is not read"}};
static const cnr_port out[] = {{.name = "dx", .help = "gradient of x"}};

static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    cnr_window w;
    for (int32_t i = 0; i < 3; i++) {
        const cnr_status status = ops_want(node, i, OPS_FLOATS, 3, 2 + CNR_MAX_SPATIAL, err);
        if (status != CNR_OK) return status;
    }
    const cnr_tensor *weight = node->inputs[1], *x = node->inputs[2];
    const cnr_status status = ops_conv_check(node, x, weight, &w, err);
    if (status != CNR_OK) return status;
    int64_t dim[CNR_MAX_RANK] = {x->dim[0], weight->dim[0]};
    for (int32_t i = 0; i < w.spatial; i++) dim[2 + i] = w.out[i];
    ops_like(outputs[0], x);
    return ops_want_shape(node, 0, x->dtype, x->rank, dim, err);
}

static void cost(const cnr_node *node, cnr_cost *c) {
    const cnr_tensor *weight = node->inputs[1];
    const int64_t taps = ops_span(weight, 1, weight->rank);
    c->macs = ops_mul(ops_elements(node->inputs[0]), taps < 0 ? 0 : (uint64_t)taps);
}

static int32_t split_axes(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    (void)node;
    if (max < 1) return 0;
    axes[0] = (cnr_split_axis){.axis = 0, .alignment = 1};
    return 1;
}

static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_region *r) {
    (void)node;
    *r = (cnr_region){.axis = -1};
    if (axis == 0 && port != 1) *r = (cnr_region){0, begin, end};
}

static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *weight = run->node->inputs[1], *x = run->node->inputs[2];
    cnr_window w;
    ops_geometry g;
    const cnr_status status = ops_conv_check(run->node, x, weight, &w, err);
    if (status != CNR_OK) return status;
    ops_geometry_of(&w, x, run, &g);
    ops_transposed(run, &g, cnr_attr_int(run->node, "group"), run->node->inputs[0], weight, NULL);
    return CNR_OK;
}

const cnr_op ops_conv_grad_input = {
    OPS_SIZES,
    .name = "conv_grad_input",
    .summary = "The gradient of a convolution's input; the convolution's own attributes.",
    .flags = CNR_OP_PURE,
    .n_attrs = OPS_CONV_N_ATTRS,
    .attrs = ops_conv_attrs,
    OPS_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .split_axes = split_axes,
    .region = region,
    .reference = reference,
};
