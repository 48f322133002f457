/* layer_normalization: normalises over the axes from `axis` on by their mean and variance. */
#include "ops_norm.h"

static const cnr_attr_spec attrs[] =
    {OPS_AXIS_ROW(-1, "the first axis that is normalised, with all after it"),
     OPS_EPSILON_ROW(1e-5),
     {.name = "centred",
      .type = CNR_ATTR_BOOL,
      .default_i = 1,
      .help = "false: RMS normalisation; the mean is taken for 0"},
     {.name = "stash_type",
      .type = CNR_ATTR_INT,
      .default_i = 1,
      .help = "ONNX's: the type of mean and inv_std_dev; always f32 here"},
     {.name = "bias",
      .type = CNR_ATTR_BOOL,
      .default_i = 1,
      .help = "false: no b is created if none is given"}};
static const cnr_port in[] = {{.name = "x", .help = "any tensor"},
                              {.name = "scale",
                               .flags = CNR_PORT_PARAMETER,
                               .help = "broadcasts to the normalised axes"},
                              {.name = "b",
                               .flags = CNR_PORT_OPTIONAL | CNR_PORT_PARAMETER,
                               .help = "shape of scale; added last"}};
static const cnr_port out[] = {{.name = "y", .help = "the same shape"},
                               {.name = "mean",
                                .flags = CNR_PORT_OPTIONAL,
                                .help = "shape of x with 1 for the normalised axes (f32)"},
                               {.name = "inv_std_dev",
                                .flags = CNR_PORT_OPTIONAL,
                                .help = "1 / deviation, like mean"}};
static const char *const aliases[] = {"layer_norm", NULL};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    int32_t axis;
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 1, CNR_MAX_RANK, err));
    const cnr_tensor *x = node->inputs[0];
    CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    for (int32_t p = 1; p < 3; p++) {
        const cnr_tensor *t = cnr_own_input(node, p);
        if (!t && p == 2) continue;
        CNR_TRY(ops_want(node, p, OPS_FLOATS, 0, x->rank, err));
        for (int32_t i = 0; i < t->rank; i++) {
            const int32_t own = x->rank - t->rank + i;
            if (t->dim[i] != 1 && (own < axis || !ops_dims_agree(t->dim[i], x->dim[own])))
                return ops_fail(err, CNR_E_SHAPE, node,
                                "input %s does not broadcast to the axes from %d on", in[p].name,
                                axis);
        }
    }
    ops_like(outputs[0], x);
    for (int32_t o = 1; o < node->n_outputs; o++) {
        ops_like(outputs[o], x);
        outputs[o]->dtype = CNR_f32;
        for (int32_t i = axis; i < x->rank; i++) outputs[o]->dim[i] = 1;
    }
    return CNR_OK;
}

/* Method parameters: *t receives type and shape of the weight at `port`, and *init how it is
 * first filled. */
static cnr_status parameters(const cnr_node *node, int32_t port, cnr_tensor *t, cnr_init *init,
                             cnr_error *err) {
    int32_t axis;
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 1, CNR_MAX_RANK, err));
    if (port == 2 && !cnr_attr_int(node, "bias")) return CNR_E_NOT_FOUND;
    const cnr_tensor *x = node->inputs[0];
    CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    t->dtype = x->dtype;
    t->rank = x->rank - axis;
    for (int32_t i = 0; i < t->rank; i++) {
        t->dim[i] = x->dim[axis + i];
        if (t->dim[i] < 1)
            return ops_fail(err, CNR_E_SHAPE, node, "axis %d of x must be known", axis + i);
    }
    init->kind = port == 1 ? CNR_INIT_ONE : CNR_INIT_ZERO;
    return CNR_OK;
}

/* Method split_axes: axes receives at most max output axes that a run may be cut along; returns
 * how many. */
static int32_t split_axes(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    int32_t axis, n = 0;
    if (ops_axis(node, "axis", node->outputs[0]->rank, 0, &axis, NULL) != CNR_OK) return 0;
    for (; n < axis && n < max; n++) axes[n] = (cnr_split_axis){.axis = n, .alignment = 1};
    return n;
}

/* Index of the element of t, which broadcasts to a lane of x, for the lane's element i. */
static int64_t place(const cnr_tensor *x, const cnr_tensor *t, int64_t i) {
    int64_t at = 0, step = 1;
    for (int32_t a = t->rank - 1; a >= 0; a--) {
        const int64_t d = x->dim[x->rank - t->rank + a];
        if (t->dim[a] != 1) {
            at += i % d * step;
            step *= d;
        }
        i /= d;
    }
    return at;
}

/* The mean of the squares of n elements from `first` on. */
OPS_INLINE double mean_square(int32_t dtype, const void *data, int64_t first, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = ops_get(dtype, data, first + i);
        sum += v * v;
    }
    return sum / (double)n;
}

OPS_INLINE void body(const cnr_run *run, int32_t axis, int32_t dtype) {
    const cnr_tensor *x = run->node->inputs[0], *scale = run->node->inputs[1];
    const cnr_tensor *shift = cnr_own_input(run->node, 2);
    const int64_t block = cnr_span(x, axis, x->rank);
    const double epsilon = cnr_attr_float(run->node, "epsilon");
    const cnr_pieces runs = cnr_pieces_of(run);
    for (int64_t r = 0; r < runs.n; r++)
        for (int64_t b = 0; b < runs.length; b += block) {
            const int64_t first = runs.first + r * runs.pitch + b;
            double mean, variance;
            if (ops_cancelled(run)) return;
            if (cnr_attr_int(run->node, "centred"))
                ops_moments(dtype, x->data, first, block, &mean, &variance);
            else mean = 0, variance = mean_square(dtype, x->data, first, block);
            const double inverse = 1 / sqrt(variance + epsilon);
            const double stats[] = {mean, inverse};
            for (int32_t o = 1; o < run->node->n_outputs; o++)
                ops_put(CNR_f32, run->outputs[o]->data, first / block, stats[o - 1]);
            for (int64_t i = 0; i < block; i++) {
                double v = (ops_get(dtype, x->data, first + i) - mean) * inverse *
                           ops_vector(scale, place(x, scale, i), 1);
                if (shift) v += ops_vector(shift, place(x, shift, i), 0);
                ops_put(dtype, run->outputs[0]->data, first + i, v);
            }
        }
}

/* Method reference of layer_normalization: normalises the axes from `axis` on to mean 0 and
 * deviation 1, then scales and shifts. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    int32_t axis;
    CNR_TRY(ops_axis(run->node, "axis", run->outputs[0]->rank, 0, &axis, err));
    if (cnr_count(run->outputs[0]) > 0)
        OPS_SPECIALISE(run->outputs[0]->dtype, body(run, axis, dtype));
    return CNR_OK;
}

/* Method gradient: of rows over the axes from attribute axis on. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    const cnr_tensor *x = node->inputs[0];
    int32_t axis;
    CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    if (!cnr_attr_int(node, "centred"))
        return ops_fail(err, CNR_E_UNSUPPORTED, node,
                        "only a centred normalisation has a gradient");
    return ops_norm_gradient(host, graph, node, inputs, outputs, grad_out, want, grad_in, err,
                             cnr_span(x, 0, axis), x, node->inputs[1], cnr_own_input(node, 2));
}

const cnr_op ops_layer_normalization = {
    CNR_OP_SIZES,
    .name = "layer_normalization",
    .summary =
        "Normalises the axes from `axis` on to mean 0 and deviation 1, then scales and shifts.",
    .aliases = aliases,
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = ops_norm_cost,
    .buffer_aliases = ops_alias_inplace,
    .split_axes = split_axes,
    .input_range = ops_region_first,
    .parameters = parameters,
    .gradient = gradient,
    .reference = reference,
};
