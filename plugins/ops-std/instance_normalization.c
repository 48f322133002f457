/* instance_normalization: normalises each channel of each sample by its mean and variance. */
#include "ops_norm.h"

static const cnr_attr_spec attrs[] = {OPS_EPSILON_ROW(1e-5)};
static const cnr_port in[] = {{.name = "x", .help = "N C and spatial axes"},
                              {.name = "scale", .flags = CNR_PORT_PARAMETER, .help = "C"},
                              {.name = "b", .flags = CNR_PORT_PARAMETER, .help = "C, added last"}};
static const cnr_port out[] = {{.name = "y", .help = "the same shape"}};
static const char *const aliases[] = {"instance_norm", NULL};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    for (int32_t p = 1; p < 3; p++) CNR_TRY(ops_want_vector(node, p, node->inputs[0]->dim[1], err));
    ops_like(outputs[0], node->inputs[0]);
    return CNR_OK;
}

OPS_INLINE void body(const cnr_run *run, int32_t dtype) {
    const cnr_tensor *x = run->node->inputs[0];
    const int64_t plane = cnr_span(x, 2, x->rank);
    const double epsilon = cnr_attr_float(run->node, "epsilon");
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    cnr_range_of(run, lo, hi);
    for (int64_t n = lo[0]; n < hi[0]; n++)
        for (int64_t c = lo[1]; c < hi[1]; c++) {
            const int64_t first = (n * x->dim[1] + c) * plane;
            double mean, variance;
            if (ops_cancelled(run)) return;
            ops_moments(dtype, x->data, first, plane, &mean, &variance);
            const double scale = ops_vector(run->node->inputs[1], c, 1) / sqrt(variance + epsilon);
            const double shift = ops_vector(run->node->inputs[2], c, 0);
            for (int64_t i = first; i < first + plane; i++)
                ops_put(dtype, run->outputs[0]->data, i,
                        (ops_get(dtype, x->data, i) - mean) * scale + shift);
        }
}

OPS_REFERENCE(reference, body, outputs[0])

/* Method gradient: every channel is a group. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    return ops_channel_gradient(host, graph, node, inputs, outputs, grad_out, want, grad_in, err,
                                node->inputs[0]->dim[1]);
}

const cnr_op ops_instance_normalization = {
    CNR_OP_SIZES,
    .name = "instance_normalization",
    .summary =
        "Normalises each channel of each sample to mean 0 and deviation 1, then scales and shifts.",
    .aliases = aliases,
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = ops_norm_cost,
    .buffer_aliases = ops_alias_inplace,
    .split_axes = ops_split_two,
    .input_range = ops_channel_region,
    .parameters = ops_channel_parameters,
    .gradient = gradient,
    .reference = reference,
};
