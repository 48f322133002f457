/* conv_grad_weight: the gradient of a convolution's weight. */
#include "ops_window.h"

static const cnr_port in[] = {{.name = "dy", .help = "gradient of the convolution's output"},
                              {.name = "x", .help = "the convolution's input"},
                              {.name = "weight", .help = "gives the shape; its data is not read"}};
static const cnr_port out[] = {{.name = "dw", .help = "gradient of the weight"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    return ops_conv_grad_infer(node, node->inputs[1], node->inputs[2], outputs[0], err);
}

/* Method cost: counts the arithmetic operations of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    ops_conv_grad_cost(node, node->inputs[2], c);
}

/* Method split_axes: axes receives at most max output axes that a run may be cut along; returns
 * how many. */
static int32_t split_axes(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    return cnr_attr_int(node, "group") == 1 ? ops_split_first(node, axes, max) : 0;
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    (void)node;
    *r = (cnr_input_range){.axis = -1};
    if (axis == 0 && port == 0) *r = (cnr_input_range){1, begin, end};
    if (axis == 0 && port == 2) *r = (cnr_input_range){0, begin, end};
}

/* Output positions [first, last) on one axis for which tap k is inside x. */
static inline void positions(const ops_geometry *g, int axis, int64_t k, int64_t *first,
                             int64_t *last) {
    const int64_t shift = k * g->d[axis] - g->p[axis], s = g->s[axis], in = g->in[axis];
    *first = shift >= 0 ? 0 : (-shift + s - 1) / s;
    *last = shift >= in ? 0 : (in - shift + s - 1) / s;
    if (*last > g->out[axis]) *last = g->out[axis];
    if (*last < *first) *last = *first;
}

/* dw[m][c][k] = sum over n and o of dy[n][m][o] * x[n][c][o * s - p + k * d] */
OPS_INLINE double element(const ops_geometry *g, int32_t dtype, const void *dy, const void *x,
                          int64_t m_count, int64_t m, int64_t c, const int64_t *k) {
    int64_t first[3], last[3];
    double sum = 0;
    for (int a = 0; a < 3; a++) positions(g, a, k[a], &first[a], &last[a]);
    for (int64_t n = 0; n < g->n; n++) {
        const int64_t from = (n * m_count + m) * ops_volume(g->out);
        const int64_t to = (n * g->c + c) * ops_volume(g->in);
        for (int64_t i = first[0]; i < last[0]; i++)
            for (int64_t j = first[1]; j < last[1]; j++) {
                const int64_t a = from + (i * g->out[1] + j) * g->out[2];
                const int64_t d = i * g->s[0] - g->p[0] + k[0] * g->d[0];
                const int64_t h = j * g->s[1] - g->p[1] + k[1] * g->d[1];
                const int64_t b = to + (d * g->in[1] + h) * g->in[2] - g->p[2] + k[2] * g->d[2];
                for (int64_t v = first[2]; v < last[2]; v++)
                    sum += ops_get(dtype, dy, a + v) * ops_get(dtype, x, b + v * g->s[2]);
            }
    }
    return sum;
}

OPS_INLINE void body(const cnr_run *run, const ops_geometry *g, int64_t lo, int64_t hi,
                     int32_t dtype) {
    const cnr_tensor *dy = run->node->inputs[0], *x = run->node->inputs[1], *dw = run->outputs[0];
    const int64_t each = dw->dim[0] / cnr_attr_int(run->node, "group"), c_count = dw->dim[1];
    int64_t at = lo * c_count * ops_volume(g->k), k[3];
    for (int64_t m = lo; m < hi; m++) {
        if (ops_cancelled(run)) return;
        for (int64_t c = 0; c < c_count; c++)
            for (k[0] = 0; k[0] < g->k[0]; k[0]++)
                for (k[1] = 0; k[1] < g->k[1]; k[1]++)
                    for (k[2] = 0; k[2] < g->k[2]; k[2]++, at++)
                        ops_put(dtype, dw->data, at,
                                element(g, dtype, dy->data, x->data, dw->dim[0], m,
                                        m / each * c_count + c, k));
    }
}

/* Method reference of conv_grad_weight: the gradient of a convolution's weight; the convolution's
 * own attributes. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[1];
    cnr_window w;
    ops_geometry g;
    const cnr_status status = ops_conv_check(run->node, x, run->node->inputs[2], &w, err);
    if (status != CNR_OK) return status;
    ops_geometry_of(&w, x, run, &g);
    OPS_SPECIALISE(run->outputs[0]->dtype, body(run, &g, g.lo[0], g.hi[0], dtype));
    return CNR_OK;
}

const cnr_op ops_conv_grad_weight = {
    CNR_OP_SIZES,
    .name = "conv_grad_weight",
    .summary = "The gradient of a convolution's weight; the convolution's own attributes.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    .n_attrs = OPS_CONV_N_ATTRS,
    .attrs = ops_conv_attrs,
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .split_axes = split_axes,
    .input_range = region,
    .reference = reference,
};
