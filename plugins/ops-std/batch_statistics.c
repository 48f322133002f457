/* batch_statistics: batch normalisation in training, by the batch's mean and variance; updates the
 * stored ones. Its gradient also passes through mean and variance. */
#include "ops_norm.h"

enum { X, SCALE, B, MEAN, VAR, MOMENTS };

static const cnr_attr_spec attrs[] = {OPS_BATCH_EPSILON_ROW,
                                      {.name = "momentum",
                                       .type = CNR_ATTR_FLOAT,
                                       .flags = CNR_ATTR_BOUNDED,
                                       .min = 0,
                                       .max = 1,
                                       .default_f = 0.9,
                                       .help = "factor of the old statistics"},
                                      {.name = "part",
                                       .type = CNR_ATTR_FLOAT,
                                       .flags = CNR_ATTR_BOUNDED,
                                       .min = 1e-9,
                                       .max = 1,
                                       .default_f = 1,
                                       .help = "part of the batch that moments describes"}};
static const cnr_attr_spec grad_attrs[] = {OPS_BATCH_EPSILON_ROW};
static const cnr_port in[] =
    {{.name = "x", .help = "N C and any axes"},
     {.name = "scale", .flags = CNR_PORT_PARAMETER, .help = "C"},
     {.name = "b", .flags = CNR_PORT_PARAMETER, .help = "C, added last"},
     {.name = "mean", .flags = CNR_PORT_PARAMETER | CNR_PORT_STATISTIC, .help = "C, stored"},
     {.name = "var", .flags = CNR_PORT_PARAMETER | CNR_PORT_STATISTIC, .help = "C, stored"},
     {.name = "moments",
      .flags = CNR_PORT_OPTIONAL,
      .help = "f64, as batch_moments gives them, of a batch that several processes share"}};
static const cnr_port out[] =
    {{.name = "y", .help = "the same shape"},
     {.name = "new_mean", .flags = CNR_PORT_STATISTIC, .help = "the new stored statistics"},
     {.name = "new_var", .flags = CNR_PORT_STATISTIC, .help = "the new stored statistics"},
     {.name = "batch_mean", .flags = CNR_PORT_STATISTIC, .help = "C, for the gradient"},
     {.name = "batch_var",
      .flags = CNR_PORT_STATISTIC,
      .help = "C, for the gradient; of the population"}};
static const cnr_port grad_in_ports[] = {{.name = "dy", .help = "gradient of y"},
                                         {.name = "x", .help = "as it was"},
                                         {.name = "scale", .help = "C"},
                                         {.name = "mean", .help = "of the batch"},
                                         {.name = "var",
                                          .flags = CNR_PORT_STATISTIC,
                                          .help = "of the batch"},
                                         {.name = "sums",
                                          .flags = CNR_PORT_OPTIONAL,
                                          .help = "f64, as batch_statistics_sums gives them, of "
                                                  "a batch that several processes share"}};
static const cnr_port grad_out_ports[] = {{.name = "dx", .help = "of x"},
                                          {.name = "dscale", .help = "of the scale"},
                                          {.name = "db", .help = "of b"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, X, OPS_FLOATS, 1, CNR_MAX_RANK, err));
    const cnr_tensor *x = node->inputs[X];
    const int64_t channels = ops_channels(x);
    for (int32_t p = SCALE; p <= VAR; p++) CNR_TRY(ops_want_vector(node, p, channels, err));
    if (cnr_own_input(node, MOMENTS))
        CNR_TRY(ops_want_sums(node, MOMENTS, channels < 0 ? -1 : 2 * channels + 1, err));
    ops_like(outputs[0], x);
    for (int32_t i = 1; i < node->n_outputs; i++)
        ops_like(outputs[i], node->inputs[i == 1 || i == 3 ? MEAN : VAR]);
    return CNR_OK;
}

/* Method aliases: the running mean and variance are updated in place, as outputs 1 and 2. Returns
 * how many rows it wrote. */
static int32_t aliases_of(const cnr_node *node, cnr_alias *to, int32_t max) {
    const cnr_alias all[] = {{CNR_ALIAS_UPDATE, MEAN, 1, 0}, {CNR_ALIAS_UPDATE, VAR, 2, 0}};
    int32_t n = 0;
    for (; n < 2 && n < max && n + 1 < node->n_outputs; n++) to[n] = all[n];
    return n;
}

/* Mean and variance of channel c from the sums that batch_moments gives. */
static void shared_moments(const double *moments, int64_t channels, int64_t c, double *mean,
                           double *variance) {
    const double n = moments[2 * channels];
    *mean = n > 0 ? moments[c] / n : 0;
    *variance = n > 0 ? moments[channels + c] / n - *mean * *mean : 0;
    if (*variance < 0) *variance = 0;
}

OPS_INLINE void body(const cnr_run *run, int32_t dtype) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[X];
    cnr_tensor *const *y = run->outputs;
    const int64_t images = x->dim[0], channels = ops_channels(x), inner = ops_plane(x);
    const cnr_tensor *moments = cnr_own_input(node, MOMENTS);
    const double keep = cnr_attr_float(node, "momentum"), epsilon = cnr_attr_float(node, "epsilon");
    for (int64_t c = 0; c < channels; c++) {
        double mean, variance;
        if (moments) shared_moments(moments->data, channels, c, &mean, &variance);
        else ops_channel_moments(x, dtype, c, &mean, &variance);
        const double scale = ops_vector(node->inputs[SCALE], c, 1) / sqrt(variance + epsilon);
        const double shift = ops_vector(node->inputs[B], c, 0) - mean * scale;
        for (int64_t k = 0; k < images; k++)
            for (int64_t i = 0; i < inner; i++) {
                const int64_t at = (k * channels + c) * inner + i;
                ops_put(dtype, y[0]->data, at, ops_get(dtype, x->data, at) * scale + shift);
            }
        const double stored[] = {ops_vector(node->inputs[MEAN], c, 0),
                                 ops_vector(node->inputs[VAR], c, 1), 0, 0};
        const double found[] = {mean, variance, mean, variance};
        for (int32_t i = 0; i < 4 && i + 1 < node->n_outputs; i++)
            ops_put(y[i + 1]->dtype, y[i + 1]->data, c,
                    i < 2 ? keep * stored[i] + (1 - keep) * found[i] : found[i]);
    }
}

OPS_REFERENCE(reference, body, outputs[0])

/* ---- the gradient ---- */

/* Method infer of grad: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status grad_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want_gradient_of(node, 2, 4, err));
    const cnr_tensor *x = node->inputs[1];
    const int64_t channels = ops_channels(x);
    if (cnr_own_input(node, 5))
        CNR_TRY(ops_want_sums(node, 5, channels < 0 ? -1 : 2 * channels, err));
    ops_like(outputs[0], x);
    for (int32_t i = 1; i < node->n_outputs; i++) ops_like(outputs[i], node->inputs[2]);
    return CNR_OK;
}

/* With z = (x - mean) / deviation: db = sum dy, dscale = sum dy z. Since mean and deviation depend
 * on x, dx = scale / deviation (dy - db / n - z dscale / n). dx takes db and dscale from
 * `sums`, if that is given. */
OPS_INLINE void grad_body(const cnr_run *run, int32_t dtype) {
    const cnr_node *node = run->node;
    const cnr_tensor *dy = node->inputs[0], *x = node->inputs[1];
    const int64_t images = x->dim[0], channels = ops_channels(x), inner = ops_plane(x);
    const double n = (double)images * (double)inner, epsilon = cnr_attr_float(node, "epsilon");
    const cnr_tensor *sums = cnr_own_input(node, 5);
    for (int64_t c = 0; c < channels; c++) {
        const double mean = ops_vector(node->inputs[3], c, 0);
        const double variance = ops_vector(node->inputs[4], c, 1);
        const double part = 1 / sqrt((variance < 0 ? 0 : variance) + epsilon);
        double sum, product;
        ops_gradient_sums(dy, x, dtype, c, mean, part, &sum, &product);
        if (node->n_outputs > 1) ops_put(run->outputs[1]->dtype, run->outputs[1]->data, c, product);
        if (node->n_outputs > 2) ops_put(run->outputs[2]->dtype, run->outputs[2]->data, c, sum);
        if (sums) {
            sum = ((const double *)sums->data)[c];
            product = ((const double *)sums->data)[channels + c];
        }
        const double scale = ops_vector(node->inputs[2], c, 1) * part;
        for (int64_t k = 0; k < images; k++)
            for (int64_t i = 0; i < inner; i++) {
                const int64_t at = (k * channels + c) * inner + i;
                const double z = (ops_get(dtype, x->data, at) - mean) * part;
                ops_put(dtype, run->outputs[0]->data, at,
                        scale * (ops_get(dtype, dy->data, at) - sum / n - z * product / n));
            }
    }
}

OPS_REFERENCE(grad_reference, grad_body, outputs[0])

/* Adds the gradients where processes share the batch: the sums of `from` over all of them come
 * first. The group's operators are those that summed the moments. dy is this process' own, which
 * weighs by its part of the batch; so do its sums, and dx divides by its own number of elements.
 * made: as batch_statistics_grad gives it. */
static cnr_status shared_gradient(kit_build *b, const cnr_node *node, cnr_value moments,
                                  const cnr_value *from, const cnr_attr *epsilon, cnr_value *made,
                                  cnr_error *err) {
    const int64_t channels = ops_channels(node->inputs[X]);
    const cnr_attr *const list[] = {epsilon};
    const cnr_value sums_of[] = {from[0], from[1], from[3], from[4]}, *in = NULL;
    const cnr_node *end = kit_maker(b->graph, moments, &in);
    const cnr_node *begin = end ? kit_maker(b->graph, in[0], &in) : NULL;
    cnr_value sums[3];
    if (!begin)
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "moments that no group sums: no gradient");
    CNR_TRY(b->host->graph_node(b->graph, "batch_statistics_sums", NULL, NULL, sums_of, 4, list, 1,
                                sums, 3));
    const cnr_value all = ops_group_sum(b, begin->desc->name, end->desc->name, sums[0],
                                        2 * channels, cnr_attr_float(node, "part"));
    const cnr_value grad_of[] = {from[0], from[1], from[2], from[3], from[4], all};
    made[0] = kit_node(b, "batch_statistics_grad", grad_of, 6, epsilon, 1);
    made[1] = sums[1];
    made[2] = sums[2];
    return kit_built(b, node, err);
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    const cnr_attr epsilon = kit_attr_float("epsilon", cnr_attr_float(node, "epsilon"));
    const cnr_attr *const list[] = {&epsilon};
    kit_build b = {.host = host, .graph = graph};
    cnr_value made[3];
    if (grad_out[0] < 0 || !(want[X] || want[SCALE] || want[B])) return CNR_OK;
    if (node->n_outputs < 5) return ops_fail(err, CNR_E_STATE, node, "want all five outputs");
    const cnr_value from[] = {grad_out[0], inputs[X], inputs[SCALE], outputs[3], outputs[4]};
    const cnr_status status =
        cnr_own_input(node, MOMENTS)
            ? shared_gradient(&b, node, inputs[MOMENTS], from, &epsilon, made, err)
            : host->graph_node(graph, "batch_statistics_grad", NULL, NULL, from, 5, list, 1, made,
                               3);
    if (status != CNR_OK) return ops_fail(err, status, node, "cannot add batch_statistics_grad");
    for (int32_t i = 0; i < 3; i++)
        if (want[i]) grad_in[i] = made[i];
    return CNR_OK;
}

/* Method cost of grad: counts the arithmetic operations of a run. */
static void grad_cost(const cnr_node *node, cnr_cost *c) {
    c->flops = ops_mul(ops_elements(node->inputs[1]), 10);
}

const cnr_op ops_batch_statistics = {
    CNR_OP_SIZES,
    .name = "batch_statistics",
    .summary = "Batch normalisation in training, with the mean and variance of the batch.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = ops_norm_cost,
    .buffer_aliases = aliases_of,
    .parameters = ops_channel_parameters,
    .gradient = gradient,
    .reference = reference,
};

const cnr_op ops_batch_statistics_grad = {
    CNR_OP_SIZES,
    .name = "batch_statistics_grad",
    .summary = "The gradients of batch_statistics.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(grad_attrs),
    CNR_OP_PORTS(grad_in_ports, grad_out_ports),
    .infer = grad_infer,
    .cost = grad_cost,
    .reference = grad_reference,
};
