/* conv: convolution over one to three spatial axes, with groups, dilation and padding. */
#include "ops_window.h"

const cnr_attr_spec ops_conv_attrs[] = {OPS_CONV_ROWS, OPS_WINDOW_ROWS};
_Static_assert(CNR_ROWS(ops_conv_attrs) == OPS_CONV_N_ATTRS, "the schema's length");

static const cnr_port in[] =
    {{.name = "x", .help = "N C and one to three spatial axes"},
     {.name = "weight", .flags = CNR_PORT_PARAMETER, .help = "out, C / group, the window's axes"},
     {.name = "bias", .flags = CNR_PORT_OPTIONAL | CNR_PORT_PARAMETER, .help = "out"}};
static const cnr_port out[] = {{.name = "y", .help = "N out and the spatial axes"}};
static const char *const aliases[] = {"conv1d", "conv2d", "conv3d", NULL};

void ops_conv_kernel(const cnr_node *node, const cnr_tensor *weight, int64_t *kernel) {
    int64_t n;
    const int64_t *given = cnr_attr_ints(node, "kernel_shape", &n);
    for (int32_t i = 0; i < CNR_MAX_SPATIAL; i++) {
        kernel[i] = i < n ? given[i] : 0;
        if (kernel[i] == 0) kernel[i] = weight && 2 + i < weight->rank ? weight->dim[2 + i] : -1;
    }
}

cnr_status ops_conv_check(const cnr_node *node, const cnr_tensor *x, const cnr_tensor *weight,
                          cnr_window *w, cnr_error *err) {
    int64_t kernel[CNR_MAX_SPATIAL];
    const int64_t group = cnr_attr_int(node, "group"), c = x->dim[1];
    if (weight->dtype != x->dtype)
        return ops_fail(err, CNR_E_SHAPE, node, "weight is %s, x is %s",
                        cnr_dtype_name(weight->dtype), cnr_dtype_name(x->dtype));
    if (weight->rank != x->rank)
        return ops_fail(err, CNR_E_SHAPE, node, "weight has rank %d, x has %d", weight->rank,
                        x->rank);
    ops_conv_kernel(node, weight, kernel);
    const char *why = ops_host->window_resolve(node, x, kernel, w);
    if (why) return ops_fail(err, CNR_E_SHAPE, node, "%s", why);
    if (c >= 0 && weight->dim[1] >= 0 && weight->dim[1] * group != c)
        return ops_fail(err, CNR_E_SHAPE, node,
                        "weight wants %lld channels in each of %lld groups, x has %lld in all",
                        (long long)weight->dim[1], (long long)group, (long long)c);
    if (weight->dim[0] >= 0 && weight->dim[0] % group != 0)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld output channels do not fall into %lld groups",
                        (long long)weight->dim[0], (long long)group);
    for (int32_t i = 0; i < w->spatial; i++)
        if (!ops_dims_agree(weight->dim[2 + i], kernel[i]))
            return ops_fail(err, CNR_E_SHAPE, node,
                            "kernel_shape is %lld along spatial axis %d, the weight's is %lld",
                            (long long)kernel[i], i, (long long)weight->dim[2 + i]);
    return CNR_OK;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    cnr_window w;
    cnr_status status = ops_want(node, 0, OPS_FLOATS, 3, 2 + CNR_MAX_SPATIAL, err);
    if (status != CNR_OK) return status;
    if ((status = ops_want(node, 1, OPS_FLOATS, 3, 2 + CNR_MAX_SPATIAL, err)) != CNR_OK)
        return status;
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    if ((status = ops_conv_check(node, x, weight, &w, err)) != CNR_OK) return status;
    const int64_t wish = cnr_attr_int(node, "out");
    if (wish > 0 && !ops_dims_agree(weight->dim[0], wish))
        return ops_fail(err, CNR_E_SHAPE, node, "out is %lld, the weight has %lld", (long long)wish,
                        (long long)weight->dim[0]);
    if ((status = ops_want_shape(node, 2, x->dtype, 1, weight->dim, err)) != CNR_OK) return status;
    ops_like(outputs[0], x);
    outputs[0]->dim[1] = weight->dim[0];
    for (int32_t i = 0; i < w.spatial; i++) outputs[0]->dim[2 + i] = w.out[i];
    return CNR_OK;
}

/* Method parameters: gives *t the weight's shape: out, in/group, kernel; transposed: in, out/group,
 * kernel. */
cnr_status ops_conv_parameters(const cnr_node *node, int32_t port, int transposed, cnr_tensor *t,
                               cnr_init *init, cnr_error *err) {
    const int64_t group = cnr_attr_int(node, "group"), channels = cnr_attr_int(node, "out");
    int64_t kernel[CNR_MAX_SPATIAL];
    const cnr_status status = ops_want(node, 0, OPS_FLOATS, 3, 2 + CNR_MAX_SPATIAL, err);
    if (status != CNR_OK) return status;
    if (port == 2 && !cnr_attr_int(node, "bias")) return CNR_E_NOT_FOUND;
    const cnr_tensor *x = node->inputs[0], *weight = cnr_own_input(node, 1);
    t->dtype = x->dtype;
    if (port == 2) {
        t->rank = 1;
        t->dim[0] = channels;
        if (weight && weight->rank > transposed && weight->dim[transposed] <= OPS_MAX_DIM)
            t->dim[0] = weight->dim[transposed] * (transposed ? group : 1);
        init->kind = CNR_INIT_ZERO;
        return CNR_OK;
    }
    if (channels < 1)
        return ops_fail(err, CNR_E_ARG, node, "out: want the number of output channels");
    if (x->dim[1] < 1) return ops_fail(err, CNR_E_SHAPE, node, "the channels of x must be known");
    if (x->dim[1] % group != 0 || channels % group != 0)
        return ops_fail(err, CNR_E_SHAPE, node,
                        "group: want a divisor of %lld and %lld (channels in and out), got %lld",
                        (long long)x->dim[1], (long long)channels, (long long)group);
    ops_conv_kernel(node, NULL, kernel);
    t->rank = x->rank;
    t->dim[0] = transposed ? x->dim[1] : channels;
    t->dim[1] = (transposed ? channels : x->dim[1]) / group;
    for (int32_t i = 2; i < x->rank; i++) {
        if (kernel[i - 2] < 1)
            return ops_fail(err, CNR_E_ARG, node, "kernel_shape: want 1 or more for each axis");
        t->dim[i] = kernel[i - 2];
    }
    const int64_t window = ops_span(t, 2, t->rank), each = x->dim[1] / group;
    init->kind = CNR_INIT_HE;
    init->fan_in = window < 1 || each > OPS_MAX_DIM / window ? 0 : each * window;
    if (init->fan_in < 1) return ops_fail(err, CNR_E_LIMIT, node, "the weight would be too large");
    return CNR_OK;
}

/* Method parameters: *t receives type and shape of the weight at `port`, and *init how it is
 * first filled. */
static cnr_status parameters(const cnr_node *node, int32_t port, cnr_tensor *t, cnr_init *init,
                             cnr_error *err) {
    return ops_conv_parameters(node, port, 0, t, init, err);
}

/* Method cost: counts the arithmetic operations of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    const cnr_tensor *weight = node->inputs[1];
    const uint64_t outputs = ops_elements(node->outputs[0]);
    const int64_t taps = ops_span(weight, 1, weight->rank);
    c->macs = ops_mul(outputs, taps < 0 ? 0 : (uint64_t)taps);
    c->flops = cnr_own_input(node, 2) ? outputs : 0;
}

cnr_status ops_conv_grad_infer(const cnr_node *node, const cnr_tensor *x, const cnr_tensor *weight,
                               cnr_tensor *out, cnr_error *err) {
    cnr_window w;
    for (int32_t i = 0; i < 3; i++) {
        const cnr_status status = ops_want(node, i, OPS_FLOATS, 3, 2 + CNR_MAX_SPATIAL, err);
        if (status != CNR_OK) return status;
    }
    const cnr_status status = ops_conv_check(node, x, weight, &w, err);
    if (status != CNR_OK) return status;
    int64_t dim[CNR_MAX_RANK] = {x->dim[0], weight->dim[0]};
    for (int32_t i = 0; i < w.spatial; i++) dim[2 + i] = w.out[i];
    ops_like(out, node->inputs[2]);
    return ops_want_shape(node, 0, x->dtype, x->rank, dim, err);
}

/* Sets c->macs to the multiply-adds of a gradient of a convolution with this weight. */
void ops_conv_grad_cost(const cnr_node *node, const cnr_tensor *weight, cnr_cost *c) {
    const int64_t taps = ops_span(weight, 1, weight->rank);
    c->macs = ops_mul(ops_elements(node->inputs[0]), taps < 0 ? 0 : (uint64_t)taps);
}

/* Method split_axes: axes receives at most max output axes that a run may be cut along; returns
 * how many. */
static int32_t split_axes(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    const cnr_tensor *y = node->outputs[0];
    const int64_t group = cnr_attr_int(node, "group");
    int32_t n = 0;
    for (int32_t a = 0; a < y->rank && n < max; a++, n++) {
        axes[n] = (cnr_split_axis){.axis = a, .alignment = 1};
        if (a == 1 && group > 1) axes[n].alignment = y->dim[1] > group ? y->dim[1] / group : 1;
    }
    return n;
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const int64_t group = cnr_attr_int(node, "group");
    int64_t kernel[CNR_MAX_SPATIAL];
    cnr_window w;
    *r = (cnr_input_range){.axis = -1};
    if (axis == 0 && port == 0) *r = (cnr_input_range){0, begin, end};
    if (axis == 1 && (port == 1 || port == 2)) *r = (cnr_input_range){0, begin, end};
    if (axis == 1 && port == 0 && group > 1) {
        const int64_t each = weight->dim[0] / group, c = x->dim[1] / group;
        if (each > 0) *r = (cnr_input_range){1, begin / each * c, (end + each - 1) / each * c};
    }
    if (axis >= 2 && port == 0) {
        ops_conv_kernel(node, weight, kernel);
        if (!ops_host->window_resolve(node, x, kernel, &w))
            *r = ops_window_region(&w, axis - 2, begin, end);
    }
}

/* Method linear: *l receives the ports of weight and bias; returns 1. */
static int32_t linear(const cnr_node *node, cnr_linear *l) {
    (void)node;
    *l = (cnr_linear){.weight_port = 1, .bias_port = 2, .weight_axis = 0};
    return 1;
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    const cnr_value dx[] = {grad_out[0], inputs[1], inputs[0]};
    const cnr_value dw[] = {grad_out[0], inputs[0], inputs[1]};
    const int64_t axes[] = {0, 2, 3, 4};
    cnr_status status = CNR_OK;
    (void)outputs;
    if (grad_out[0] < 0) return CNR_OK;
    if (want[0])
        status = ops_grad_node(host, graph, node, "conv_grad_input", dx, 3, node->attrs,
                               node->n_attrs, &grad_in[0], err);
    if (status == CNR_OK && want[1])
        status = ops_grad_node(host, graph, node, "conv_grad_weight", dw, 3, node->attrs,
                               node->n_attrs, &grad_in[1], err);
    if (status == CNR_OK && node->n_inputs > 2 && want[2])
        status = ops_grad_sum(host, graph, node, grad_out[0], axes, node->inputs[0]->rank - 1,
                              &grad_in[2], err);
    return status;
}

/* One output element: the sum over the window's taps inside x and the channels of the group. */
OPS_INLINE double element(const ops_geometry *g, int32_t dtype, const void *x, const void *w,
                          int64_t c_count, const int64_t *o) {
    const int64_t plane = ops_volume(g->in), window = ops_volume(g->k);
    int64_t first[3], last[3], start[3];
    double sum = 0;
    for (int a = 0; a < 3; a++) {
        ops_taps(g, a, o[a], &first[a], &last[a]);
        start[a] = o[a] * g->s[a] - g->p[a];
    }
    for (int64_t c = 0; c < c_count; c++)
        for (int64_t i = first[0]; i < last[0]; i++)
            for (int64_t j = first[1]; j < last[1]; j++) {
                const int64_t row =
                    c * plane +
                    ((start[0] + i * g->d[0]) * g->in[1] + start[1] + j * g->d[1]) * g->in[2] +
                    start[2];
                const int64_t taps = c * window + (i * g->k[1] + j) * g->k[2];
                for (int64_t k = first[2]; k < last[2]; k++)
                    sum += ops_get(dtype, x, row + k * g->d[2]) * ops_get(dtype, w, taps + k);
            }
    return sum;
}

OPS_INLINE void body(const cnr_run *run, const ops_geometry *g, int32_t dtype) {
    const cnr_tensor *x = run->node->inputs[0], *weight = run->node->inputs[1];
    const cnr_tensor *bias = cnr_own_input(run->node, 2), *y = run->outputs[0];
    const int64_t each = weight->dim[0] / cnr_attr_int(run->node, "group"), c = weight->dim[1];
    const int64_t size = (int64_t)ops_size(dtype);
    int64_t o[3];
    for (int64_t n = g->lo[0]; n < g->hi[0]; n++)
        for (int64_t m = g->lo[1]; m < g->hi[1]; m++) {
            const char *from =
                (const char *)x->data + (n * g->c + m / each * c) * ops_volume(g->in) * size;
            const char *w = (const char *)weight->data + m * c * ops_volume(g->k) * size;
            const double shift = bias ? ops_get(dtype, bias->data, m) : 0;
            const int64_t base = (n * y->dim[1] + m) * ops_volume(g->out);
            if (ops_cancelled(run)) return;
            for (o[0] = g->lo[2]; o[0] < g->hi[2]; o[0]++)
                for (o[1] = g->lo[3]; o[1] < g->hi[3]; o[1]++)
                    for (o[2] = g->lo[4]; o[2] < g->hi[4]; o[2]++)
                        ops_put(dtype, y->data, base + (o[0] * g->out[1] + o[1]) * g->out[2] + o[2],
                                shift + element(g, dtype, from, w, c, o));
        }
}

/* Method reference of conv: convolution over one to three spatial axes; with groups, dilation and
 * padding. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    cnr_window w;
    ops_geometry g;
    const cnr_status status =
        ops_conv_check(run->node, run->node->inputs[0], run->node->inputs[1], &w, err);
    if (status != CNR_OK) return status;
    ops_geometry_of(&w, run->node->inputs[0], run, &g);
    OPS_SPECIALISE(run->outputs[0]->dtype, body(run, &g, dtype));
    return CNR_OK;
}

const cnr_op ops_conv = {
    CNR_OP_SIZES,
    .name = "conv",
    .summary = "Convolution over one to three spatial axes; with groups, dilation and padding.",
    .aliases = aliases,
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(ops_conv_attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .split_axes = split_axes,
    .input_range = region,
    .linear = linear,
    .parameters = parameters,
    .gradient = gradient,
    .reference = reference,
};
