/* group_normalization: normalises groups of a sample's channels by their mean and variance. */
#include "ops_norm.h"

static const cnr_attr_spec attrs[] = {OPS_EPSILON_ROW(1e-5),
                                      {.name = "num_groups",
                                       .type = CNR_ATTR_INT,
                                       .flags = CNR_ATTR_REQUIRED | CNR_ATTR_BOUNDED,
                                       .alias = "groups",
                                       .min = 1,
                                       .max = 1 << 20,
                                       .help = "number of groups of channels"},
                                      {.name = "stash_type",
                                       .type = CNR_ATTR_INT,
                                       .default_i = 1,
                                       .help =
                                           "ONNX's: the type to compute in; always double here"}};
static const cnr_port in[] = {{.name = "x", .help = "N C and any axes"},
                              {.name = "scale",
                               .flags = CNR_PORT_PARAMETER,
                               .help = "C, or one per group"},
                              {.name = "bias", .flags = CNR_PORT_PARAMETER, .help = "as scale"}};
static const cnr_port out[] = {{.name = "y", .help = "the same shape"}};
static const char *const aliases[] = {"group_norm", NULL};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const int64_t groups = cnr_attr_int(node, "num_groups");
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    const cnr_tensor *x = node->inputs[0];
    if (x->dim[1] >= 0 && x->dim[1] % groups != 0)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld channels do not fall into %lld groups",
                        (long long)x->dim[1], (long long)groups);
    for (int32_t p = 1; p < 3; p++) {
        CNR_TRY(ops_want_vector(node, p, -1, err));
        const int64_t n = node->inputs[p]->dim[0];
        if (!ops_dims_agree(n, x->dim[1]) && n != groups)
            return ops_fail(err, CNR_E_SHAPE, node, "input %s: want one for each channel or group",
                            in[p].name);
    }
    if (!ops_dims_agree(node->inputs[1]->dim[0], node->inputs[2]->dim[0]))
        return ops_fail(err, CNR_E_SHAPE, node, "scale and bias must be equally long");
    ops_like(outputs[0], x);
    return CNR_OK;
}

/* Method split_axes: axes receives at most max output axes that a run may be cut along; returns
 * how many. */
static int32_t split_axes(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    const int32_t n = ops_split_two(node, axes, max);
    const int64_t each = node->outputs[0]->dim[1] / cnr_attr_int(node, "num_groups");
    if (n > 1 && each > 0) axes[1].alignment = each;
    return n;
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    ops_channel_region(node, axis, begin, end, port, r);
    if (port > 0 && r->axis == 0 && cnr_own_input(node, port) &&
        node->inputs[port]->dim[0] != node->outputs[0]->dim[1])
        r->axis = -1; /* one for each group */
}

OPS_INLINE void body(const cnr_run *run, int32_t dtype) {
    const cnr_tensor *x = run->node->inputs[0], *scale = run->node->inputs[1];
    const int64_t groups = cnr_attr_int(run->node, "num_groups"), each = x->dim[1] / groups;
    const int64_t inner = cnr_span(x, 2, x->rank), block = each * inner;
    const double epsilon = cnr_attr_float(run->node, "epsilon");
    const int by_channel = scale->dim[0] == x->dim[1];
    const cnr_pieces runs = cnr_pieces_of(run);
    for (int64_t r = 0; r < runs.n; r++)
        for (int64_t b = 0; b < runs.length; b += block) {
            const int64_t first = runs.first + r * runs.pitch + b, group = first / block % groups;
            double mean, variance;
            if (ops_cancelled(run)) return;
            ops_moments(dtype, x->data, first, block, &mean, &variance);
            for (int64_t i = 0; i < block; i++) {
                const int64_t p = by_channel ? group * each + i / inner : group;
                const double v =
                    (ops_get(dtype, x->data, first + i) - mean) / sqrt(variance + epsilon);
                ops_put(dtype, run->outputs[0]->data, first + i,
                        v * ops_vector(scale, p, 1) + ops_vector(run->node->inputs[2], p, 0));
            }
        }
}

/* y = (x - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and variance of a group.
 * It cannot fail: the node was checked by `infer`. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    if (cnr_count(run->outputs[0]) > 0) OPS_SPECIALISE(run->outputs[0]->dtype, body(run, dtype));
    return CNR_OK;
}

/* Method gradient: of groups of channels. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    return ops_channel_gradient(host, graph, node, inputs, outputs, grad_out, want, grad_in, err,
                                cnr_attr_int(node, "num_groups"));
}

const cnr_op ops_group_normalization = {
    CNR_OP_SIZES,
    .name = "group_normalization",
    .summary = "Normalises groups of channels to mean 0 and deviation 1, then scales and shifts.",
    .aliases = aliases,
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = ops_norm_cost,
    .buffer_aliases = ops_alias_inplace,
    .split_axes = split_axes,
    .input_range = region,
    .parameters = ops_channel_parameters,
    .gradient = gradient,
    .reference = reference,
};
