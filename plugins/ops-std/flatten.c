/* flatten: reshapes to a matrix of the axes before `axis` and those from it on. */
#include "ops.h"

static const cnr_attr_spec attrs[] = {
    OPS_AXIS_ROW(1, "the first axis that goes into the matrix's columns")};
static const cnr_port in[] = {{.name = "x", .help = "any tensor"}};
static const cnr_port out[] = {{.name = "y", .help = "the same elements as a matrix"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    int32_t axis;
    cnr_status status = ops_want(node, 0, OPS_WHOLE, 0, CNR_MAX_RANK, err);
    if (status != CNR_OK) return status;
    const cnr_tensor *x = node->inputs[0];
    if ((status = ops_axis(node, "axis", x->rank, 1, &axis, err)) != CNR_OK) return status;
    outputs[0]->dtype = x->dtype;
    outputs[0]->rank = 2;
    /* A single symbolic dim on a side stays symbolic. */
    outputs[0]->dim[0] = axis == 1 ? x->dim[0] : ops_span(x, 0, axis);
    outputs[0]->dim[1] = axis == x->rank - 1 ? x->dim[axis] : ops_span(x, axis, x->rank);
    return CNR_OK;
}

const cnr_op ops_flatten = {
    CNR_OP_SIZES,
    .name = "flatten",
    .summary = "Reshapes to a matrix: the axes before `axis` become rows, the others columns.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .buffer_aliases = ops_alias_view,
    .gradient = ops_gradient_reshape,
    .reference = ops_reference_copy,
};
