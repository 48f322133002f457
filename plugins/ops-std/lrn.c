/* lrn: local response normalisation across channels; and its gradient. */
#include "ops_norm.h"

static const cnr_attr_spec attrs[] =
    {{.name = "size",
      .type = CNR_ATTR_INT,
      .flags = CNR_ATTR_REQUIRED | CNR_ATTR_BOUNDED,
      .min = 1,
      .max = 1 << 20,
      .help = "number of channels, with the element's own in the middle"},
     {.name = "alpha", .type = CNR_ATTR_FLOAT, .default_f = 1e-4, .help = "scales the mean square"},
     {.name = "beta", .type = CNR_ATTR_FLOAT, .default_f = 0.75, .help = "the power"},
     {.name = "bias",
      .type = CNR_ATTR_FLOAT,
      .alias = "k",
      .default_f = 1,
      .help = "added before the power"}};
static const cnr_port in[] = {{.name = "x", .help = "N C and any axes"}};
static const cnr_port out[] = {{.name = "y", .help = "the same shape"}};
static const cnr_port grad_ports[] = {{.name = "dy", .help = "gradient of the output"},
                                      {.name = "x", .help = "the input"}};
static const cnr_port grad_out_ports[] = {{.name = "dx", .help = "gradient of x"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    ops_like(outputs[0], node->inputs[0]);
    if (node->desc->n_inputs < 2) return CNR_OK;
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    return ops_want_shape(node, 1, outputs[0]->dtype, outputs[0]->rank, outputs[0]->dim, err);
}

/* Method cost: counts the arithmetic operations of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    const uint64_t n = ops_elements(node->outputs[0]);
    c->flops = ops_mul(n, 2 * (uint64_t)cnr_attr_int(node, "size") + 4);
}

/* Extends a range of channels by `reach` at both ends: half a window, and twice that for the
 * gradient, which needs the windows of its neighbours. */
static void widen(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int64_t reach,
                  cnr_input_range *r) {
    const int64_t channels = node->outputs[0]->dim[1];
    *r = (cnr_input_range){axis, begin, end};
    if (axis != 1) return;
    r->begin = begin > reach ? begin - reach : 0;
    r->end = end < channels - reach ? end + reach : channels;
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    (void)port;
    widen(node, axis, begin, end, cnr_attr_int(node, "size") / 2, r);
}

/* Method region of grad: *r receives the part of input `port` that [begin, end) of the output's
 * axis needs; axis -1: all. */
static void grad_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end,
                        int32_t port, cnr_input_range *r) {
    (void)port;
    widen(node, axis, begin, end, 2 * (cnr_attr_int(node, "size") / 2), r);
}

/* Sizes of the input, window and factors. */
typedef struct shape {
    int64_t channels, inner, below, above; /* the window is [c - below, c + above] */
    double scale, beta, bias;
} shape;

/* Sizes and factors of the node. */
static shape shape_of(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0];
    const int64_t size = cnr_attr_int(node, "size");
    return (shape){.channels = x->dim[1],
                   .inner = cnr_span(x, 2, x->rank),
                   .below = (size - 1) / 2,
                   .above = size / 2,
                   .scale = cnr_attr_float(node, "alpha") / (double)size,
                   .beta = cnr_attr_float(node, "beta"),
                   .bias = cnr_attr_float(node, "bias")};
}

/* bias + alpha / size * sum of squares around channel c; `first` is channel 0 at the same pixel. */
OPS_INLINE double base(const shape *s, int32_t dtype, const void *x, int64_t first, int64_t c) {
    const int64_t lo = c > s->below ? c - s->below : 0;
    const int64_t hi = c + s->above < s->channels ? c + s->above + 1 : s->channels;
    double sum = 0;
    for (int64_t i = lo; i < hi; i++) {
        const double v = ops_get(dtype, x, first + i * s->inner);
        sum += v * v;
    }
    return s->bias + s->scale * ops_flushed(dtype, sum);
}

OPS_INLINE double forward(const cnr_node *node, const shape *s, int32_t dtype, int64_t first,
                          int64_t c) {
    const void *x = node->inputs[0]->data;
    return ops_get(dtype, x, first + c * s->inner) / pow(base(s, dtype, x, first, c), s->beta);
}

/* dy[c] * base[c]^-beta - 2 * scale * beta * x[c] * sum of dy[j] x[j] base[j]^(-beta - 1) over the
 * channels j whose window contains c. */
OPS_INLINE double backward(const cnr_node *node, const shape *s, int32_t dtype, int64_t first,
                           int64_t c) {
    const void *dy = node->inputs[0]->data, *x = node->inputs[1]->data;
    const int64_t lo = c > s->above ? c - s->above : 0, at = first + c * s->inner;
    const int64_t hi = c + s->below < s->channels ? c + s->below + 1 : s->channels;
    double sum = 0;
    for (int64_t j = lo; j < hi; j++)
        sum += ops_get(dtype, dy, first + j * s->inner) * ops_get(dtype, x, first + j * s->inner) *
               pow(base(s, dtype, x, first, j), -s->beta - 1);
    return ops_get(dtype, dy, at) * pow(base(s, dtype, x, first, c), -s->beta) -
           2 * s->scale * s->beta * ops_get(dtype, x, at) * sum;
}

OPS_INLINE void body(const cnr_run *run, int32_t dtype, int back) {
    const shape s = shape_of(run->node);
    const cnr_pieces runs = cnr_pieces_of(run);
    for (int64_t r = 0; r < runs.n; r++)
        for (int64_t i = 0; i < runs.length; i++) {
            const int64_t at = runs.first + r * runs.pitch + i, c = at / s.inner % s.channels;
            const int64_t first = at - c * s.inner;
            ops_put(dtype, run->outputs[0]->data, at,
                    back ? backward(run->node, &s, dtype, first, c)
                         : forward(run->node, &s, dtype, first, c));
        }
}

/* Method reference of lrn: x / (bias + alpha * mean square over neighbouring channels) ^ beta;
 * returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    OPS_SPECIALISE(run->outputs[0]->dtype, body(run, dtype, 0));
    return CNR_OK;
}

/* Method reference of lrn_grad: the gradient of lrn's input; lrn's own attributes; returns
 * CNR_OK. */
static cnr_status grad_reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    OPS_SPECIALISE(run->outputs[0]->dtype, body(run, dtype, 1));
    return CNR_OK;
}

/* Method gradient: adds a node lrn_grad that computes the wanted gradient of the input. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    return ops_grad_of_input("lrn_grad", host, graph, node, inputs, outputs, grad_out, want,
                             grad_in, err);
}

const cnr_op ops_lrn = {
    CNR_OP_SIZES,
    .name = "lrn",
    .summary = "x / (bias + alpha * mean square over neighbouring channels) ^ beta.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .split_axes = ops_split_all,
    .input_range = region,
    .gradient = gradient,
    .reference = reference,
};

const cnr_op ops_lrn_grad = {
    CNR_OP_SIZES,
    .name = "lrn_grad",
    .summary = "The gradient of lrn's input; lrn's own attributes.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(grad_ports, grad_out_ports),
    .infer = infer,
    .cost = cost,
    .split_axes = ops_split_all,
    .input_range = grad_region,
    .reference = grad_reference,
};
