/* scale_bias: multiplies and shifts by a value for each index along one or several axes. */
#include "ops_norm.h"

static const cnr_attr_spec attrs[] =
    {OPS_AXIS_ROW(1, "the axis of x that matches the first axis of scale"),
     {.name = "bias",
      .type = CNR_ATTR_BOOL,
      .default_i = 1,
      .help = "whether a bias is created with the scale"}};
static const cnr_port in[] = {{.name = "x", .help = "any tensor"},
                              {.name = "scale",
                               .flags = CNR_PORT_PARAMETER,
                               .help = "dimensions of x along its axes; or a scalar"},
                              {.name = "bias",
                               .flags = CNR_PORT_OPTIONAL | CNR_PORT_PARAMETER,
                               .help = "as scale"}};
static const cnr_port out[] = {{.name = "y", .help = "x * scale + bias"}};
static const char *const aliases[] = {"scale", NULL};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    int32_t axis = 0;
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 0, CNR_MAX_RANK, err));
    const cnr_tensor *x = node->inputs[0];
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 0, x->rank, err));
    const cnr_tensor *scale = node->inputs[1];
    if (scale->rank > 0) CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    if (axis + scale->rank > x->rank)
        return ops_fail(err, CNR_E_SHAPE, node, "scale: rank %d does not fit from axis %d on",
                        scale->rank, axis);
    CNR_TRY(ops_want_shape(node, 1, x->dtype, scale->rank, x->dim + axis, err));
    CNR_TRY(ops_want_shape(node, 2, x->dtype, scale->rank, x->dim + axis, err));
    ops_like(outputs[0], x);
    return CNR_OK;
}

/* Element `at` of x uses scale[at / inner % many]. */
static void places(const cnr_node *node, int64_t *inner, int64_t *many) {
    const cnr_tensor *x = node->inputs[0], *scale = node->inputs[1];
    int32_t axis = 0;
    if (scale->rank > 0) ops_axis(node, "axis", x->rank, 0, &axis, NULL);
    *many = cnr_count(scale);
    *inner = scale->rank > 0 ? cnr_span(x, axis + scale->rank, x->rank) : 1;
}

/* scale and shift receive the constants a channel is multiplied by and shifted by; 0: they are
 * not known. */
static int32_t channel_affine(const cnr_node *node, int64_t channels, float *scale, float *shift) {
    const cnr_tensor *s = node->inputs[1], *b = cnr_own_input(node, 2);
    int32_t axis = -1;
    if (!s->data || (b && !b->data) || s->encoding || (b && b->encoding)) return 0;
    if (s->rank > 0) ops_axis(node, "axis", node->inputs[0]->rank, 0, &axis, NULL);
    if (s->rank > 1 || (s->rank == 1 && (axis != 1 || s->dim[0] != channels))) return 0;
    for (int64_t c = 0; c < channels; c++) {
        scale[c] = (float)ops_vector(s, s->rank ? c : 0, 1);
        shift[c] = (float)ops_vector(b, s->rank ? c : 0, 0);
    }
    return 1;
}

/* Method parameters: *t receives type and shape of the weight at `port`, and *init how it is
 * first filled. */
static cnr_status parameters(const cnr_node *node, int32_t port, cnr_tensor *t, cnr_init *init,
                             cnr_error *err) {
    int32_t axis;
    if (port == 2 && !cnr_attr_int(node, "bias")) return CNR_E_NOT_FOUND;
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 1, CNR_MAX_RANK, err));
    const cnr_tensor *x = node->inputs[0], *scale = cnr_own_input(node, 1);
    init->kind = port == 1 ? CNR_INIT_ONE : CNR_INIT_ZERO;
    t->dtype = x->dtype;
    if (port == 2 && scale) {
        ops_like(t, scale);
        return CNR_OK;
    }
    CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    if (x->dim[axis] < 1)
        return ops_fail(err, CNR_E_SHAPE, node, "axis %d of x must be known", axis);
    t->rank = 1;
    t->dim[0] = x->dim[axis];
    return CNR_OK;
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    const cnr_tensor *scale = node->inputs[1];
    int32_t first = 0;
    *r = (cnr_input_range){.axis = -1};
    if (port == 0) *r = (cnr_input_range){axis, begin, end};
    if (port != 1 && port != 2) return;
    if (scale->rank > 0) ops_axis(node, "axis", node->inputs[0]->rank, 0, &first, NULL);
    if (axis >= first && axis < first + scale->rank)
        *r = (cnr_input_range){axis - first, begin, end};
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    const cnr_tensor *x = node->inputs[0], *scale = node->inputs[1];
    const cnr_attr axis_attr = kit_attr_int("axis", cnr_attr_int(node, "axis"));
    const cnr_attr no_bias = {.name = "bias", .type = CNR_ATTR_BOOL, .set = 1};
    const cnr_attr *const list[] = {&axis_attr, &no_bias};
    int64_t axes[CNR_MAX_RANK];
    int32_t first = 0, n = 0;
    const cnr_value dy = grad_out[0];
    (void)outputs;
    if (dy < 0) return CNR_OK;
    if (scale->rank > 0) CNR_TRY(ops_axis(node, "axis", x->rank, 0, &first, err));
    for (int32_t i = 0; i < x->rank; i++)
        if (i < first || i >= first + scale->rank) axes[n++] = i;
    if (want[0]) {
        const cnr_value pair[] = {dy, inputs[1]};
        CNR_TRY(ops_grad_node(host, graph, node, "scale_bias", pair, 2, list, 2, &grad_in[0], err));
    }
    if (want[1]) {
        const cnr_value pair[] = {dy, inputs[0]};
        cnr_value product;
        CNR_TRY(ops_grad_node(host, graph, node, "mul", pair, 2, NULL, 0, &product, err));
        CNR_TRY(ops_grad_sum(host, graph, node, product, axes, n, &grad_in[1], err));
    }
    if (node->n_inputs > 2 && want[2])
        return ops_grad_sum(host, graph, node, dy, axes, n, &grad_in[2], err);
    return CNR_OK;
}

OPS_INLINE void body(const cnr_run *run, int32_t dtype) {
    const cnr_tensor *x = run->node->inputs[0], *scale = run->node->inputs[1];
    const cnr_tensor *bias = cnr_own_input(run->node, 2);
    const cnr_pieces runs = cnr_pieces_of(run);
    int64_t inner, many;
    places(run->node, &inner, &many);
    for (int64_t r = 0; r < runs.n; r++)
        for (int64_t i = 0; i < runs.length; i++) {
            const int64_t at = runs.first + r * runs.pitch + i, c = at / inner % many;
            const double shift = bias ? ops_get(dtype, bias->data, c) : 0;
            ops_put(dtype, run->outputs[0]->data, at,
                    ops_get(dtype, x->data, at) * ops_get(dtype, scale->data, c) + shift);
        }
}

OPS_REFERENCE(reference, body, outputs[0])

const cnr_op ops_scale_bias = {
    CNR_OP_SIZES,
    .name = "scale_bias",
    .summary = "x * scale + bias, with scale and bias along one or several axes of x.",
    .aliases = aliases,
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = ops_norm_cost,
    .buffer_aliases = ops_alias_inplace,
    .split_axes = ops_split_all,
    .input_range = region,
    .channel_affine = channel_affine,
    .parameters = parameters,
    .gradient = gradient,
    .reference = reference,
};
