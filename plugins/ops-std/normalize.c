/* normalize: divides a sample, or each pixel of it, by its L2 norm and scales it (Caffe's SSD). */
#include "ops_norm.h"

static const cnr_attr_spec attrs[] =
    {{.name = "across_spatial",
      .type = CNR_ATTR_BOOL,
      .default_i = 1,
      .help = "one norm per sample; else one for each position, over the channels"},
     {.name = "channel_shared",
      .type = CNR_ATTR_BOOL,
      .default_i = 1,
      .help = "one scale for all channels, if the scale is not given"},
     {.name = "epsilon",
      .type = CNR_ATTR_FLOAT,
      .alias = "eps",
      .default_f = 1e-10,
      .help = "added to the sum of squares"}};
static const cnr_port in[] = {{.name = "x", .help = "N C and any axes"},
                              {.name = "scale",
                               .flags = CNR_PORT_PARAMETER,
                               .help = "C, or one for all"}};
static const cnr_port out[] = {{.name = "y", .help = "the same shape"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    CNR_TRY(ops_want_vector(node, 1, -1, err));
    const cnr_tensor *x = node->inputs[0], *scale = node->inputs[1];
    if (scale->dim[0] != 1 && !ops_dims_agree(scale->dim[0], x->dim[1]))
        return ops_fail(err, CNR_E_SHAPE, node, "scale: want 1 or %lld, got %lld",
                        (long long)x->dim[1], (long long)scale->dim[0]);
    ops_like(outputs[0], x);
    return CNR_OK;
}

/* Method parameters: *t receives type and shape of the weight at `port`, and *init how it is
 * first filled. */
static cnr_status parameters(const cnr_node *node, int32_t port, cnr_tensor *t, cnr_init *init,
                             cnr_error *err) {
    CNR_TRY(ops_channel_parameters(node, port, t, init, err));
    if (cnr_attr_int(node, "channel_shared")) t->dim[0] = 1;
    return CNR_OK;
}

/* Method split_axes: axes receives at most max output axes that a run may be cut along; returns
 * how many. */
static int32_t split_axes(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    int32_t n = ops_split_first(node, axes, max);
    if (cnr_attr_int(node, "across_spatial")) return n;
    for (int32_t a = 2; a < node->outputs[0]->rank && n < max; a++)
        axes[n++] = (cnr_split_axis){.axis = a, .alignment = 1};
    return n;
}

/* Normalises `places` adjacent pixels from element `first` on by one norm over all channels. */
OPS_INLINE void block(const cnr_run *run, int32_t dtype, int64_t first, int64_t places) {
    const cnr_tensor *x = run->node->inputs[0], *scale = run->node->inputs[1];
    const int64_t channels = x->dim[1], inner = cnr_span(x, 2, x->rank);
    double sum = cnr_attr_float(run->node, "epsilon");
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < places; i++) {
            const double v = ops_get(dtype, x->data, first + c * inner + i);
            sum += v * v;
        }
    for (int64_t c = 0; c < channels; c++) {
        const double by = ops_vector(scale, scale->dim[0] == 1 ? 0 : c, 1) / sqrt(sum);
        for (int64_t i = 0; i < places; i++) {
            const int64_t at = first + c * inner + i;
            ops_put(dtype, run->outputs[0]->data, at, ops_get(dtype, x->data, at) * by);
        }
    }
}

OPS_INLINE void body(const cnr_run *run, int32_t dtype) {
    const cnr_tensor *y = run->outputs[0];
    const int64_t inner = cnr_span(y, 2, y->rank), sample = y->dim[1] * inner;
    const int32_t axis = run->range_axis;
    const int64_t first = axis == 0 ? run->range_begin : 0;
    const int64_t last = axis == 0 ? run->range_end : y->dim[0];
    const int64_t below = axis >= 2 ? cnr_span(y, axis + 1, y->rank) : 1;
    for (int64_t n = first; n < last; n++) {
        if (ops_cancelled(run)) return;
        if (cnr_attr_int(run->node, "across_spatial")) block(run, dtype, n * sample, inner);
        else
            for (int64_t i = 0; i < inner; i++) {
                const int64_t at = axis >= 2 ? i / below % y->dim[axis] : 0;
                if (axis < 2 || (at >= run->range_begin && at < run->range_end))
                    block(run, dtype, n * sample + i, 1);
            }
    }
}

OPS_REFERENCE(reference, body, outputs[0])

const cnr_op ops_normalize = {
    CNR_OP_SIZES,
    .name = "normalize",
    .summary = "x divided by its L2 norm, over a sample or its channels, and scaled.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = ops_norm_cost,
    .buffer_aliases = ops_alias_inplace,
    .split_axes = split_axes,
    .input_range = ops_region_first,
    .parameters = parameters,
    .reference = reference,
};
