/* Sums of a batch that several processes share, for batch_statistics and its gradient: each process
 * sums its own samples, the group adds these up, and the operators take the totals as an input. */
#include "ops_norm.h"

cnr_status ops_want_gradient_of(const cnr_node *node, int32_t first, int32_t last, cnr_error *err) {
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 1, CNR_MAX_RANK, err));
    const cnr_tensor *x = node->inputs[1];
    CNR_TRY(ops_want(node, 0, 1u << x->dtype, x->rank, x->rank, err));
    for (int32_t a = 0; a < x->rank; a++)
        if (!ops_dims_agree(x->dim[a], node->inputs[0]->dim[a]))
            return ops_fail(err, CNR_E_SHAPE, node, "dy: want the shape of x");
    for (int32_t p = first; p <= last; p++) CNR_TRY(ops_want_vector(node, p, ops_channels(x), err));
    return CNR_OK;
}

cnr_status ops_want_sums(const cnr_node *node, int32_t port, int64_t n, cnr_error *err) {
    CNR_TRY(ops_want(node, port, 1u << CNR_f64, 1, 1, err));
    return ops_want_shape(node, port, CNR_f64, 1, &n, err);
}

cnr_value ops_group_sum(kit_build *b, const char *begin, const char *end, cnr_value x, int64_t n,
                        double multiplier) {
    const cnr_attr scale = kit_attr_float("multiplier", multiplier);
    const cnr_attr whole[] = {kit_attr_int("offset", 0), kit_attr_ints("dims", &n, 1)};
    return kit_node(b, end, (cnr_value[]){kit_node(b, begin, &x, 1, &scale, 1)}, 1, whole, 2);
}

/* Sets a vector of n f64, or of unknown size, as output. */
static void sums_out(cnr_tensor *t, int64_t n) {
    t->dtype = CNR_f64;
    t->rank = 1;
    t->dim[0] = n < 0 ? -1 : n;
}

/* ---- batch_moments ---- */

static const cnr_port in[] = {{.name = "x", .help = "N C and any axes"}};
static const cnr_port out[] = {
    {.name = "moments",
     .help = "f64 [2 C + 1]: sums of the channels, sums of their squares, elements of a channel"}};

/* Method infer: checks the type of x. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 1, CNR_MAX_RANK, err));
    const int64_t channels = ops_channels(node->inputs[0]);
    sums_out(outputs[0], channels < 0 ? -1 : 2 * channels + 1);
    return CNR_OK;
}

OPS_INLINE void body(const cnr_run *run, int32_t dtype) {
    const cnr_tensor *x = run->node->inputs[0];
    const int64_t channels = ops_channels(x);
    const double n = (double)x->dim[0] * (double)ops_plane(x);
    double *to = run->outputs[0]->data;
    for (int64_t c = 0; c < channels; c++) {
        double mean, variance;
        ops_channel_moments(x, dtype, c, &mean, &variance);
        to[c] = mean * n;
        to[channels + c] = (variance + mean * mean) * n;
    }
    to[2 * channels] = n;
}

OPS_REFERENCE(reference, body, node->inputs[0])

/* Method cost: counts the arithmetic operations of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    c->flops = ops_mul(ops_elements(node->inputs[0]), 4);
}

const cnr_op ops_batch_moments = {
    CNR_OP_SIZES,
    .name = "batch_moments",
    .summary = "Sums of each channel and of its squares, which add up over processes.",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .reference = reference,
};

/* ---- batch_statistics_sums ---- */

static const cnr_attr_spec grad_attrs[] = {OPS_BATCH_EPSILON_ROW};
static const cnr_port grad_in_ports[] = {{.name = "dy", .help = "gradient of y"},
                                         {.name = "x", .help = "as it was"},
                                         {.name = "mean", .help = "of the batch"},
                                         {.name = "var",
                                          .flags = CNR_PORT_STATISTIC,
                                          .help = "of the batch"}};
static const cnr_port grad_out_ports[] =
    {{.name = "sums", .help = "f64 [2 C]: those of b, those of the scale; they add up"},
     {.name = "dscale", .help = "of the scale, by these samples"},
     {.name = "db", .help = "of b, by these samples"}};

/* Method infer of sums: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status grad_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want_gradient_of(node, 2, 3, err));
    const int64_t channels = ops_channels(node->inputs[1]);
    sums_out(outputs[0], channels < 0 ? -1 : 2 * channels);
    for (int32_t i = 1; i < node->n_outputs; i++) ops_like(outputs[i], node->inputs[2]);
    return CNR_OK;
}

OPS_INLINE void grad_body(const cnr_run *run, int32_t dtype) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[1];
    const int64_t channels = ops_channels(x);
    double *to = run->outputs[0]->data;
    for (int64_t c = 0; c < channels; c++) {
        const double variance = ops_vector(node->inputs[3], c, 0);
        const double part =
            1 / sqrt((variance < 0 ? 0 : variance) + cnr_attr_float(node, "epsilon"));
        double *sum = to + c, *product = to + channels + c;
        ops_gradient_sums(node->inputs[0], x, dtype, c, ops_vector(node->inputs[2], c, 0), part,
                          sum, product);
        if (node->n_outputs > 1)
            ops_put(run->outputs[1]->dtype, run->outputs[1]->data, c, *product);
        if (node->n_outputs > 2) ops_put(run->outputs[2]->dtype, run->outputs[2]->data, c, *sum);
    }
}

OPS_REFERENCE(grad_reference, grad_body, node->inputs[1])

const cnr_op ops_batch_statistics_sums = {
    CNR_OP_SIZES,
    .name = "batch_statistics_sums",
    .summary = "Sums for the gradients of batch_statistics, which add up over processes.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(grad_attrs),
    CNR_OP_PORTS(grad_in_ports, grad_out_ports),
    .infer = grad_infer,
    .cost = cost,
    .reference = grad_reference,
};
