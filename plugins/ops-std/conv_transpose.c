/* conv_transpose: transposed convolution, with groups, dilation and a selectable output size. */
#include "ops_kit.h"
#include "ops_window.h"

static const cnr_attr_spec attrs[] =
    {OPS_CONV_ROWS,
     OPS_WINDOW_ROWS,
     {.name = "output_padding",
      .type = CNR_ATTR_INTS,
      .flags = CNR_ATTR_SPATIAL | CNR_ATTR_BOUNDED,
      .min = 0,
      .max = 1 << 20,
      .fill = 0,
      .help = "elements added at the end of each spatial axis"},
     {.name = "output_shape",
      .type = CNR_ATTR_INTS,
      .flags = CNR_ATTR_BOUNDED,
      .min = 1,
      .max = 1 << 30,
      .help = "extent of each spatial axis of y; the pads follow from it"}};
static const cnr_port in[] =
    {{.name = "x", .help = "N C and one to three spatial axes"},
     {.name = "weight", .flags = CNR_PORT_PARAMETER, .help = "C, out / group, the window's axes"},
     {.name = "bias", .flags = CNR_PORT_OPTIONAL | CNR_PORT_PARAMETER, .help = "out"}};
static const cnr_port out[] = {{.name = "y", .help = "N out and the spatial axes"}};
static const char *const aliases[] = {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
                                      "deconv", NULL};

/* Entry i of the list attribute `name`; `missing` where the list is shorter. */
static int64_t entry(const cnr_node *node, const char *name, int32_t i, int64_t missing) {
    int64_t n;
    const int64_t *list = cnr_attr_ints(node, name, &n);
    return i < n ? list[i] : missing;
}

/* The convolution that is transposed: its input w->in is our output, its output our x. */
static cnr_status window_of(const cnr_node *node, cnr_window *w, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const char *mode = cnr_attr_string(node, "auto_pad");
    const int upper = strcmp(mode, "SAME_UPPER") == 0;
    const int same = upper || strcmp(mode, "SAME_LOWER") == 0, valid = strcmp(mode, "VALID") == 0;
    int64_t kernel[CNR_MAX_SPATIAL], n_shape;
    const int64_t *shape = cnr_attr_ints(node, "output_shape", &n_shape);
    ops_conv_kernel(node, weight, kernel);
    *w = (cnr_window){.spatial = x->rank - 2};
    if (n_shape != 0 && n_shape != w->spatial)
        return ops_fail(err, CNR_E_ARG, node, "output_shape: want %d numbers, got %lld", w->spatial,
                        (long long)n_shape);
    for (int32_t i = 0; i < w->spatial; i++) {
        const int64_t stride = entry(node, "strides", i, 1);
        const int64_t dilation = entry(node, "dilations", i, 1), size = x->dim[2 + i];
        if (kernel[i] < 1 || kernel[i] > 1 << 20)
            return ops_fail(err, CNR_E_SHAPE, node, "kernel_shape: want 1 to 1048576");
        if (!ops_dims_agree(weight->dim[2 + i], kernel[i]))
            return ops_fail(err, CNR_E_SHAPE, node, "kernel_shape is %lld, the weight's is %lld",
                            (long long)kernel[i], (long long)weight->dim[2 + i]);
        w->kernel[i] = kernel[i];
        w->stride[i] = stride;
        w->dilation[i] = dilation;
        w->out[i] = size;
        w->pad_begin[i] = valid ? 0 : entry(node, "pads", i, 0);
        w->pad_end[i] = valid ? 0 : entry(node, "pads", i + w->spatial, 0);
        w->in[i] = n_shape ? shape[i] : CNR_DIM_UNKNOWN;
        if (size < 0) continue;
        const int64_t whole = stride * (size - 1) + entry(node, "output_padding", i, 0) +
                              (kernel[i] - 1) * dilation + 1;
        if (n_shape || same) { /* surplus is cropped; what is missing at the end is 0 */
            w->in[i] = n_shape ? shape[i] : size * stride;
            const int64_t total = whole > w->in[i] ? whole - w->in[i] : 0;
            w->pad_begin[i] = upper ? total / 2 : total - total / 2;
            w->pad_end[i] = total - w->pad_begin[i];
        } else w->in[i] = size == 0 ? 0 : whole - w->pad_begin[i] - w->pad_end[i];
        if (size > 0 && w->in[i] < 1)
            return ops_fail(err, CNR_E_SHAPE, node, "the pads leave nothing of the output");
    }
    return CNR_OK;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    cnr_window w;
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 3, 2 + CNR_MAX_SPATIAL, err));
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 3, 2 + CNR_MAX_SPATIAL, err));
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const int64_t group = cnr_attr_int(node, "group"), wish = cnr_attr_int(node, "out");
    if (weight->rank != x->rank || weight->dtype != x->dtype)
        return ops_fail(err, CNR_E_SHAPE, node, "weight: want the rank and type of x");
    if (!ops_dims_agree(weight->dim[0], x->dim[1]))
        return ops_fail(err, CNR_E_SHAPE, node, "weight wants %lld channels, x has %lld",
                        (long long)weight->dim[0], (long long)x->dim[1]);
    if (weight->dim[0] >= 0 && weight->dim[0] % group != 0)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld channels do not fall into %lld groups",
                        (long long)weight->dim[0], (long long)group);
    CNR_TRY(window_of(node, &w, err));
    const int64_t many = weight->dim[1] < 0 ? CNR_DIM_UNKNOWN : weight->dim[1] * group;
    if (wish > 0 && !ops_dims_agree(many, wish))
        return ops_fail(err, CNR_E_SHAPE, node, "out is %lld, the weight has %lld", (long long)wish,
                        (long long)many);
    CNR_TRY(ops_want_shape(node, 2, x->dtype, 1, &many, err));
    ops_like(outputs[0], x);
    outputs[0]->dim[1] = many;
    for (int32_t i = 0; i < w.spatial; i++) outputs[0]->dim[2 + i] = w.in[i];
    return CNR_OK;
}

/* Method parameters: *t receives type and shape of the weight at `port`, and *init how it is
 * first filled. */
static cnr_status parameters(const cnr_node *node, int32_t port, cnr_tensor *t, cnr_init *init,
                             cnr_error *err) {
    return ops_conv_parameters(node, port, 1, t, init, err);
}

/* Method cost: counts the multiply-adds of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    const cnr_tensor *weight = node->inputs[1];
    const int64_t taps = ops_span(weight, 1, weight->rank);
    c->macs = ops_mul(ops_elements(node->inputs[0]), taps < 0 ? 0 : (uint64_t)taps);
    c->flops = cnr_own_input(node, 2) ? ops_elements(node->outputs[0]) : 0;
}

/* Method split_axes: axes receives at most max output axes that a run may be cut along; returns
 * how many. */
static int32_t split_axes(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    const int64_t each = node->inputs[1]->dim[1];
    int32_t n = 0;
    for (int32_t a = 0; a < node->outputs[0]->rank && n < max; a++, n++)
        axes[n] =
            (cnr_split_axis){.axis = a,
                             .alignment =
                                 a == 1 && each > 1 && cnr_attr_int(node, "group") > 1 ? each : 1};
    return n;
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const int64_t group = cnr_attr_int(node, "group"), each = weight->dim[1];
    cnr_window w;
    *r = (cnr_input_range){.axis = -1};
    if (axis == 0 && port == 0) *r = (cnr_input_range){0, begin, end};
    if (axis == 1 && port == 2) *r = (cnr_input_range){0, begin, end};
    if (axis == 1 && port == 1 && group == 1) *r = (cnr_input_range){1, begin, end};
    if (axis == 1 && port < 2 && group > 1 && each > 0) {
        const int64_t c = x->dim[1] / group;
        *r = (cnr_input_range){port == 0 ? 1 : 0, begin / each * c, (end + each - 1) / each * c};
    }
    if (axis < 2 || port != 0 || window_of(node, &w, NULL) != CNR_OK) return;
    const int32_t i = axis - 2;
    const int64_t s = w.stride[i], p = w.pad_begin[i];
    const int64_t before = begin + p - (w.kernel[i] - 1) * w.dilation[i];
    *r = (cnr_input_range){axis, before > 0 ? (before + s - 1) / s : 0, (end - 1 + p) / s + 1};
    if (r->end > w.out[i]) r->end = w.out[i];
    if (r->begin > r->end) r->begin = r->end;
}

/* Method linear: *l receives the ports of weight and bias; 0: the node is not linear in them. */
static int32_t linear(const cnr_node *node, cnr_linear *l) {
    if (cnr_attr_int(node, "group") != 1) return 0;
    *l = (cnr_linear){.weight_port = 1, .bias_port = 2, .weight_axis = 1};
    return 1;
}

/* Method gradient: a convolution of y's gradient for x, conv_grad_weight for the weight, sums for
 * the bias. CNR_E_UNSUPPORTED: that convolution of y would not have x's size. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    const int32_t spatial = node->inputs[0]->rank - 2;
    const cnr_value dx[] = {grad_out[0], inputs[1]}, dw[] = {inputs[0], grad_out[0], inputs[1]};
    const int64_t axes[] = {0, 2, 3, 4};
    int64_t pads[2 * CNR_MAX_SPATIAL];
    cnr_window w;
    cnr_status status = CNR_OK;
    (void)outputs;
    if (grad_out[0] < 0) return CNR_OK;
    CNR_TRY(window_of(node, &w, err));
    for (int32_t i = 0; i < spatial; i++) {
        const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
        pads[i] = w.pad_begin[i];
        pads[i + spatial] = w.pad_end[i];
        const int64_t room = w.in[i] + pads[i] + pads[i + spatial] - reach;
        if (room < 0 || room / w.stride[i] + 1 != w.out[i])
            return ops_fail(err, CNR_E_UNSUPPORTED, node, "no gradient for this output size");
    }
    const cnr_attr list[] = {kit_attr_ints("kernel_shape", w.kernel, spatial),
                             kit_attr_ints("strides", w.stride, spatial),
                             kit_attr_ints("dilations", w.dilation, spatial),
                             kit_attr_ints("pads", pads, 2 * spatial),
                             kit_attr_int("group", cnr_attr_int(node, "group"))};
    const cnr_attr *const given[] = {&list[0], &list[1], &list[2], &list[3], &list[4]};
    const cnr_attr no_bias = {.name = "bias", .type = CNR_ATTR_BOOL, .set = 1};
    const cnr_attr *const plain[] = {&list[0], &list[1], &list[2], &list[3], &list[4], &no_bias};
    if (want[0])
        status = ops_grad_node(host, graph, node, "conv", dx, 2, plain, 6, &grad_in[0], err);
    if (status == CNR_OK && want[1])
        status =
            ops_grad_node(host, graph, node, "conv_grad_weight", dw, 3, given, 5, &grad_in[1], err);
    if (status == CNR_OK && node->n_inputs > 2 && want[2])
        status = ops_grad_sum(host, graph, node, grad_out[0], axes, spatial + 1, &grad_in[2], err);
    return status;
}

/* Method reference of conv_transpose: transposed convolution: every input element adds a window to
 * the output. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    cnr_window w;
    ops_geometry g;
    CNR_TRY(window_of(run->node, &w, err));
    ops_geometry_of(&w, run->node->inputs[0], run, &g);
    ops_transposed(run, &g, cnr_attr_int(run->node, "group"), run->node->inputs[0],
                   run->node->inputs[1], cnr_own_input(run->node, 2));
    return CNR_OK;
}

const cnr_op ops_conv_transpose = {
    CNR_OP_SIZES,
    .name = "conv_transpose",
    .summary = "Transposed convolution: every input element adds a window to the output.",
    .aliases = aliases,
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
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
