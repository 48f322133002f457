/* conv_grad_input: the gradient of a convolution's input. */
#include "ops_window.h"

static const cnr_port in[] = {{.name = "dy", .help = "gradient of the convolution's output"},
                              {.name = "weight", .help = "of the convolution"},
                              {.name = "x", .help = "gives the shape; its data is not read"}};
static const cnr_port out[] = {{.name = "dx", .help = "gradient of x"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    return ops_conv_grad_infer(node, node->inputs[2], node->inputs[1], outputs[0], err);
}

/* Method cost: counts the arithmetic operations of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    ops_conv_grad_cost(node, node->inputs[1], c);
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    (void)node;
    *r = (cnr_input_range){.axis = -1};
    if (axis == 0 && port != 1) *r = (cnr_input_range){0, begin, end};
}

/* Method reference of conv_grad_input: the gradient of a convolution's input; the convolution's own
 * attributes. */
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
    CNR_OP_SIZES,
    .name = "conv_grad_input",
    .summary = "The gradient of a convolution's input; the convolution's own attributes.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    .n_attrs = OPS_CONV_N_ATTRS,
    .attrs = ops_conv_attrs,
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .split_axes = ops_split_first,
    .input_range = region,
    .reference = reference,
};
