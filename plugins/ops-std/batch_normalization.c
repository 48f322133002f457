/* batch_normalization: normalises each channel by its stored mean and variance. */
#include "ops_norm.h"
#include <stdio.h>

static const cnr_attr_spec attrs[] =
    {OPS_EPSILON_ROW(1e-5),
     {.name = "momentum",
      .type = CNR_ATTR_FLOAT,
      .default_f = 0.9,
      .help = "momentum of the running statistics; not used at inference"},
     {.name = "training_mode",
      .type = CNR_ATTR_INT,
      .flags = CNR_ATTR_BOUNDED,
      .min = 0,
      .max = 0,
      .help = "0: the stored mean and variance are used"}};
static const cnr_port in[] =
    {{.name = "x", .help = "N C and any axes"},
     {.name = "scale", .flags = CNR_PORT_PARAMETER, .help = "C"},
     {.name = "b", .flags = CNR_PORT_PARAMETER, .help = "C, added last"},
     {.name = "mean", .flags = CNR_PORT_PARAMETER | CNR_PORT_STATISTIC, .help = "C"},
     {.name = "var", .flags = CNR_PORT_PARAMETER | CNR_PORT_STATISTIC, .help = "C"}};
static const cnr_port out[] = {{.name = "y", .help = "the same shape"}};
static const char *const aliases[] = {"batch_norm", NULL};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 1, CNR_MAX_RANK, err));
    const cnr_tensor *x = node->inputs[0];
    const int64_t channels = x->rank > 1 ? x->dim[1] : 1;
    for (int32_t p = 1; p < 5; p++) CNR_TRY(ops_want_vector(node, p, channels, err));
    ops_like(outputs[0], x);
    return CNR_OK;
}

/* y = x * scale + shift for channel c. */
static void affine(const cnr_node *node, int64_t c, double *scale, double *shift) {
    const double variance = ops_vector(node->inputs[4], c, 1);
    *scale = ops_vector(node->inputs[1], c, 1) / sqrt(variance + cnr_attr_float(node, "epsilon"));
    *shift = ops_vector(node->inputs[2], c, 0) - ops_vector(node->inputs[3], c, 0) * *scale;
}

/* scale and shift receive the constants a channel is multiplied by and shifted by; 0: they are
 * not known. */
static int32_t channel_affine(const cnr_node *node, int64_t channels, float *scale, float *shift) {
    for (int32_t p = 1; p < 5; p++)
        if (!cnr_own_input(node, p) || !node->inputs[p]->data || node->inputs[p]->encoding ||
            cnr_count(node->inputs[p]) != channels)
            return 0;
    for (int64_t c = 0; c < channels; c++) {
        double a, b;
        affine(node, c, &a, &b);
        scale[c] = (float)a;
        shift[c] = (float)b;
    }
    return 1;
}

/* The statistics are constants: dx is dy normalised without mean and shift; dscale is the sum of dy
 * times the normalised x. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    const cnr_tensor *x = node->inputs[0];
    const int64_t axes[] = {0, 2, 3, 4, 5, 6, 7}, channels = x->rank > 1 ? x->dim[1] : 1;
    const cnr_value dy = grad_out[0];
    (void)outputs;
    if (dy < 0) return CNR_OK;
    /* Statistics that are stored with the weights get no gradient; for computed ones it is not
     * implemented. */
    if ((want[3] && !node->inputs[3]->data) || (want[4] && !node->inputs[4]->data))
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "mean and var have no gradient");
    const cnr_value zero = ops_grad_vector(host, graph, node->inputs[3]->dtype, channels, 0);
    if (want[0]) {
        const cnr_value list[] = {dy, inputs[1], zero, zero, inputs[4]};
        CNR_TRY(ops_grad_node(host, graph, node, "batch_normalization", list, 5, node->attrs,
                              node->n_attrs, &grad_in[0], err));
    }
    if (want[1]) {
        const cnr_value one = ops_grad_vector(host, graph, node->inputs[1]->dtype, channels, 1);
        const cnr_value list[] = {inputs[0], one, zero, inputs[3], inputs[4]};
        cnr_value pair[2] = {dy, -1}, product;
        CNR_TRY(ops_grad_node(host, graph, node, "batch_normalization", list, 5, node->attrs,
                              node->n_attrs, &pair[1], err));
        CNR_TRY(ops_grad_node(host, graph, node, "mul", pair, 2, NULL, 0, &product, err));
        CNR_TRY(ops_grad_sum(host, graph, node, product, axes, x->rank - 1, &grad_in[1], err));
    }
    if (want[2]) return ops_grad_sum(host, graph, node, dy, axes, x->rank - 1, &grad_in[2], err);
    return CNR_OK;
}

OPS_INLINE void body(const cnr_run *run, int32_t dtype) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int64_t channels = x->rank > 1 ? x->dim[1] : 1;
    const int64_t inner = x->rank > 2 ? cnr_span(x, 2, x->rank) : 1;
    const cnr_pieces runs = cnr_pieces_of(run);
    double scale = 0, shift = 0;
    int64_t channel = -1;
    for (int64_t r = 0; r < runs.n; r++)
        for (int64_t i = 0; i < runs.length; i++) {
            const int64_t at = runs.first + r * runs.pitch + i, c = at / inner % channels;
            if (c != channel) affine(run->node, channel = c, &scale, &shift);
            ops_put(dtype, y->data, at, ops_get(dtype, x->data, at) * scale + shift);
        }
}

OPS_REFERENCE(reference, body, outputs[0])

/* Method training: adds the nodes that normalise by the batch's own mean and variance;
 * those of the samples of all processes, where these share the batch. */
static cnr_status training(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node,
                           const cnr_value *inputs, const cnr_training *t, cnr_value *outputs,
                           cnr_error *err) {
    const int is_shared = CNR_HAS(t, part) && t->sum_begin_op;
    const cnr_attr list[] = {kit_attr_float("epsilon", cnr_attr_float(node, "epsilon")),
                             kit_attr_float("momentum", cnr_attr_float(node, "momentum")),
                             kit_attr_float("part", is_shared ? t->part : 1)};
    const cnr_attr *const attrs_of[] = {&list[0], &list[1], &list[2]};
    cnr_value from[] = {inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], -1}, made[5];
    kit_build b = {.host = host, .graph = graph};
    char name[256];
    if (is_shared)
        from[5] = ops_group_sum(&b, t->sum_begin_op, t->sum_wait_op,
                                kit_node1(&b, "batch_moments", inputs[0]),
                                2 * ops_channels(node->inputs[0]) + 1, 1);
    if (b.status) return ops_fail(err, b.status, node, "cannot sum over the processes");
    snprintf(name, sizeof name, "%.200s.batch", node->name ? node->name : "");
    const cnr_status status =
        host->graph_node(graph, "batch_statistics", name, NULL, from, is_shared ? 6 : 5, attrs_of,
                         is_shared ? 3 : 2, made, 5);
    if (status != CNR_OK) return ops_fail(err, status, node, "cannot add batch_statistics");
    outputs[0] = made[0];
    return CNR_OK;
}

const cnr_op ops_batch_normalization = {
    CNR_OP_SIZES,
    .name = "batch_normalization",
    .summary = "(x - mean) / sqrt(var + epsilon) * scale + b, with numbers for each channel.",
    .aliases = aliases,
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = ops_norm_cost,
    .buffer_aliases = ops_alias_inplace,
    .split_axes = ops_split_all,
    .input_range = ops_channel_region,
    .channel_affine = channel_affine,
    .parameters = ops_channel_parameters,
    .gradient = gradient,
    .reference = reference,
    .training = training,
};
