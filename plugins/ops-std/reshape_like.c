/* reshape_like: reshapes a tensor to the shape of another (gradients of reshapes). */
#include "ops.h"

static const cnr_port in[] = {{.name = "x", .help = "the elements"},
                              {.name = "like", .help = "gives the shape; its data is not read"}};
static const cnr_port out[] = {{.name = "y", .help = "x in the shape of like"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    cnr_status status = ops_want(node, 0, OPS_WHOLE, 0, CNR_MAX_RANK, err);
    if (status != CNR_OK) return status;
    if ((status = ops_want(node, 1, ~0u, 0, CNR_MAX_RANK, err)) != CNR_OK) return status;
    const cnr_tensor *x = node->inputs[0], *like = node->inputs[1];
    const int64_t have = cnr_count(x), wanted = cnr_count(like);
    if (have >= 0 && wanted >= 0 && have != wanted)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld elements do not fit into %lld",
                        (long long)have, (long long)wanted);
    ops_like(outputs[0], like);
    outputs[0]->dtype = x->dtype;
    return CNR_OK;
}

const cnr_op ops_reshape_like = {
    CNR_OP_SIZES,
    .name = "reshape_like",
    .summary = "The elements of x in the shape of another tensor.",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .buffer_aliases = ops_alias_view,
    .gradient = ops_gradient_reshape,
    .reference = ops_reference_copy,
};
