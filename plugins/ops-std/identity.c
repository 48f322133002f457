/* identity: the input, unchanged. */
#include "ops.h"

static const cnr_port in[] = {{.name = "x", .help = "anything"}};
static const cnr_port out[] = {{.name = "y", .help = "the same"}};

const cnr_op ops_identity = {
    CNR_OP_SIZES,
    .name = "identity",
    .summary = "The input, unchanged.",
    .flags = CNR_OP_PASS | CNR_OP_PURE,
    CNR_OP_PORTS(in, out),
    .infer = ops_infer_same,
    .buffer_aliases = ops_alias_view,
    .gradient = ops_gradient_through,
    .reference = ops_reference_copy,
};
