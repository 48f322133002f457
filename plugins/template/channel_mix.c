/* channel_mix: y[n,o,...] = sum over c of weight[o,c] * x[n,c,...], + bias[o]: a layer with
 * weights, described to the core so that it is split, fused, folded with a following batch norm,
 * and trained.
 */
#include "template.h"

static const cnr_attr_spec attrs[] = {
    {.name = "out",
     .type = CNR_ATTR_INT,
     .flags = CNR_ATTR_BOUNDED,
     .min = 0,
     .max = 1 << 20,
     .help = "output channels; only to make missing weights"},
    {.name = "bias", .type = CNR_ATTR_BOOL, .default_i = 1, .help = "make a missing bias"},
};
static const cnr_port inputs[] = {
    {.name = "x", .help = "N C and any spatial axes"},
    {.name = "weight", .flags = CNR_PORT_PARAMETER, .help = "O C"},
    {.name = "bias", .flags = CNR_PORT_PARAMETER | CNR_PORT_OPTIONAL, .help = "O"},
};
static const cnr_port outputs[] = {{.name = "y", .help = "N O spatial"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1];
    const cnr_tensor *b = cnr_own_input(node, 2);
    if (x->rank < 2 || x->dtype != CNR_f32 || w->dtype != CNR_f32 || w->rank != 2)
        return template_host->fail(err, CNR_E_SHAPE, node->name,
                                   "x must be f32 of rank 2 or more, weight f32 of rank 2");
    if (x->dim[1] >= 0 && w->dim[1] >= 0 && x->dim[1] != w->dim[1])
        return template_host->fail(err, CNR_E_SHAPE, node->name,
                                   "x has %lld channels, weight is for %lld", (long long)x->dim[1],
                                   (long long)w->dim[1]);
    if (b && (b->rank != 1 || b->dtype != CNR_f32 ||
              (b->dim[0] >= 0 && w->dim[0] >= 0 && b->dim[0] != w->dim[0])))
        return template_host->fail(err, CNR_E_SHAPE, node->name,
                                   "bias must be f32 with %lld values", (long long)w->dim[0]);
    out[0]->dtype = x->dtype;
    out[0]->rank = x->rank;
    memcpy(out[0]->dim, x->dim, sizeof x->dim);
    out[0]->dim[1] = w->dim[0];
    return CNR_OK;
}

/* Method parameters: *t receives type and shape of the weight at `port`, and *init how it is
 * first filled. */
static cnr_status parameters(const cnr_node *node, int32_t port, cnr_tensor *out, cnr_init *init,
                             cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *weight = cnr_own_input(node, 1);
    const int64_t channels = weight ? weight->dim[0] : cnr_attr_int(node, "out");
    if (port == 2 && !cnr_attr_int(node, "bias")) return CNR_E_NOT_FOUND;
    if (channels < 1)
        return template_host->fail(err, CNR_E_ARG, node->name, "out: want 1 or more channels");
    if (x->rank < 2 || x->dim[1] < 0)
        return template_host->fail(err, CNR_E_SHAPE, node->name, "x has no known channels");
    out->dtype = CNR_f32;
    out->rank = port == 1 ? 2 : 1;
    out->dim[0] = channels;
    out->dim[1] = port == 1 ? x->dim[1] : 0;
    init->kind = port == 1 ? CNR_INIT_HE : CNR_INIT_ZERO;
    init->fan_in = x->dim[1];
    return CNR_OK;
}

/* Method cost: counts the multiply-adds of a run. */
static void cost(const cnr_node *node, cnr_cost *out) {
    const int64_t n = cnr_count(node->outputs[0]);
    if (n > 0) out->macs = (uint64_t)n * (uint64_t)node->inputs[0]->dim[1];
}

/* Method split_axes: axes receives at most max output axes that a run may be cut along; returns
 * how many. */
static int32_t split_axes(const cnr_node *node, cnr_split_axis *out, int32_t max) {
    int32_t n = 0;
    for (int32_t axis = 0; axis < node->outputs[0]->rank && n < max; axis++)
        out[n++] = (cnr_split_axis){axis, 1};
    return n;
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *out) {
    (void)node;
    /* An output channel needs every input channel; any other axis needs just its own range. */
    if (port == 0)
        *out = axis == 1 ? (cnr_input_range){-1, 0, 0} : (cnr_input_range){axis, begin, end};
    else *out = axis == 1 ? (cnr_input_range){0, begin, end} : (cnr_input_range){-1, 0, 0};
}

/* Method linear: *l receives the ports of weight and bias; returns 1. */
static int32_t linear(const cnr_node *node, cnr_linear *out) {
    (void)node;
    *out = (cnr_linear){.weight_port = 1, .bias_port = 2, .weight_axis = 0};
    return 1;
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node,
                           const cnr_value *in, const cnr_value *out, const cnr_value *grad_out,
                           const int32_t *want, cnr_value *grad_in, cnr_error *err) {
    (void)out;
    (void)err;
    cnr_status status = CNR_OK;
    if (want[0]) { /* dx = channel_mix(dy, transposed weight) */
        cnr_value turned = -1;
        status = host->graph_node(graph, "transpose", NULL, NULL, &in[1], 1, NULL, 0, &turned, 1);
        const cnr_attr none = {.name = "bias", .type = CNR_ATTR_BOOL, .i = 0};
        const cnr_attr *const without[] = {&none};
        const cnr_value from[] = {grad_out[0], turned, -1};
        if (!status)
            status = host->graph_node(graph, "channel_mix", NULL, NULL, from, 3, without, 1,
                                      &grad_in[0], 1);
    }
    if (!status && want[1]) {
        const cnr_value from[] = {in[0], grad_out[0]};
        status = host->graph_node(graph, "channel_mix_grad_weight", NULL, NULL, from, 2, NULL, 0,
                                  &grad_in[1], 1);
    }
    if (!status && node->n_inputs > 2 && want[2]) {
        int64_t axes[CNR_MAX_RANK] = {0};
        for (int32_t i = 2; i < node->inputs[0]->rank; i++) axes[i - 1] = i;
        const cnr_attr over = {.name = "axes",
                               .type = CNR_ATTR_INTS,
                               .n = node->inputs[0]->rank - 1,
                               .ints = axes};
        const cnr_attr flat = {.name = "keepdims", .type = CNR_ATTR_BOOL, .i = 0};
        const cnr_attr *const list[] = {&over, &flat};
        status =
            host->graph_node(graph, "reduce_sum", NULL, NULL, grad_out, 1, list, 2, &grad_in[2], 1);
    }
    return status;
}

/* Computes all of y; ranges are not supported, because the descriptor lacks CNR_OP_RANGES. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    const cnr_tensor *x = run->node->inputs[0], *w = run->node->inputs[1];
    const cnr_tensor *b = cnr_own_input(run->node, 2);
    const float *xs = (const float *)x->data, *ws = (const float *)w->data;
    float *ys = (float *)run->outputs[0]->data;
    const int64_t channels = x->dim[1], places = cnr_span(x, 2, x->rank);
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t o = 0; o < w->dim[0]; o++)
            for (int64_t p = 0; p < places; p++) {
                double sum = b ? ((const float *)b->data)[o] : 0.0;
                for (int64_t c = 0; c < channels; c++)
                    sum += (double)ws[o * channels + c] * xs[(n * channels + c) * places + p];
                ys[(n * w->dim[0] + o) * places + p] = (float)sum;
            }
    return CNR_OK;
}

const cnr_op template_channel_mix = {
    CNR_OP_SIZES,
    .name = "channel_mix",
    .summary = "mixes channels at every place by a matrix",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(inputs, outputs),
    .infer = infer,
    .cost = cost,
    .split_axes = split_axes,
    .input_range = region,
    .linear = linear,
    .parameters = parameters,
    .gradient = gradient,
    .reference = reference,
};
