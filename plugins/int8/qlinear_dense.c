/* qlinear_dense: dense of quantised numbers with a quantised result, exact in integers. */
#include "int8.h"

#include <math.h>

static const cnr_port in[] = {{.name = "x", .help = "N and any axes, which count as one; u8 or i8"},
                              {.name = "x_scale", .help = "one number"},
                              {.name = "x_zero_point", .help = "one number"},
                              {.name = "w", .help = "out, inputs per sample; u8 or i8"},
                              {.name = "w_scale", .help = "one, or one per output"},
                              {.name = "w_zero_point", .help = "one, or one per output"},
                              {.name = "y_scale", .help = "one number"},
                              {.name = "y_zero_point", .help = "one number; gives the type of y"},
                              {.name = "bias",
                               .flags = CNR_PORT_OPTIONAL,
                               .help = "i32, one per output, in units of x_scale "
                                       "w_scale"},
                              {.name = "slope",
                               .flags = CNR_PORT_OPTIONAL,
                               .help = "f32, one, or one per output; negative results are "
                                       "multiplied by it before they are rounded, as by leaky "
                                       "ReLU and PReLU"}};
static const cnr_port out[] = {{.name = "y", .help = "N out, of the type of y_zero_point"}};

/* Fills err: what is wrong with the node. */
static cnr_status wrong(cnr_error *err, const cnr_node *node, const char *text) {
    return int8_host->fail(err, CNR_E_SHAPE, node->name, "qlinear_dense: %s", text);
}

/* Checks that the input is a scalar or has one number for each of the m outputs. */
static cnr_status want_each(const cnr_node *node, int32_t port, int32_t dtype, int64_t m,
                            cnr_error *err) {
    const cnr_tensor *t = node->inputs[port];
    if (t->dtype == dtype && t->rank <= 1 && !t->encoding &&
        (t->rank == 0 || t->dim[0] < 0 || t->dim[0] == 1 || m < 0 || t->dim[0] == m))
        return CNR_OK;
    return int8_host->fail(err, CNR_E_SHAPE, node->name,
                           "qlinear_dense: input %s: want %s, 1 or %lld", in[port].name,
                           cnr_dtype_name(dtype), (long long)(m < 0 ? 1 : m));
}

/* Product of the dims after the batch; -1: unknown, -2: too large. */
static int64_t inputs_of(const cnr_tensor *x) {
    cnr_tensor sample = {.rank = x->rank - 1};
    for (int32_t i = 1; i < x->rank; i++) {
        if (x->dim[i] < 0) return -1;
        sample.dim[i - 1] = x->dim[i];
    }
    const int64_t n = cnr_count(&sample);
    return n < 0 ? -2 : n;
}

/* Checks the inputs and gives the output its type and the shape samples x outputs;
 * fails with a reason. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *const *t = node->inputs;
    if (node->n_inputs <= INT8_Y_ZERO) return wrong(err, node, "eight inputs are wanted");
    for (int32_t i = 0; i <= INT8_Y_ZERO; i++)
        if (!t[i]) return wrong(err, node, "only bias and slope may be left out");
    const cnr_tensor *x = t[INT8_X], *w = t[INT8_W], *bias = cnr_own_input(node, INT8_BIAS);
    if (!int8_is_byte(x) || x->rank < 1 || x->encoding)
        return wrong(err, node, "input x: want u8 or i8");
    if (!int8_is_byte(w) || w->rank != 2 || w->encoding)
        return wrong(err, node, "input w: want u8 or i8, of rank 2");
    const int64_t inputs = inputs_of(x), m = w->dim[0];
    if (inputs == -2) return wrong(err, node, "x is too large");
    if (inputs >= 0 && w->dim[1] >= 0 && inputs != w->dim[1])
        return int8_host->fail(err, CNR_E_SHAPE, node->name,
                               "qlinear_dense: input w: want %lld along axis 1, as many as x has a "
                               "sample, got %lld",
                               (long long)inputs, (long long)w->dim[1]);
    if (!int8_is_byte(t[INT8_Y_ZERO]))
        return wrong(err, node, "input y_zero_point: want u8 or i8, which y will be of");
    const struct {
        int32_t port, dtype;
        int64_t m;
    } wanted[] = {{INT8_X_SCALE, CNR_f32, 1}, {INT8_X_ZERO, x->dtype, 1},
                  {INT8_W_SCALE, CNR_f32, m}, {INT8_W_ZERO, w->dtype, m},
                  {INT8_Y_SCALE, CNR_f32, 1}, {INT8_Y_ZERO, t[INT8_Y_ZERO]->dtype, 1}};
    for (int32_t i = 0; i < CNR_ROWS(wanted); i++)
        CNR_TRY(want_each(node, wanted[i].port, wanted[i].dtype, wanted[i].m, err));
    if (bias && (bias->dtype != CNR_i32 || bias->rank != 1 || bias->encoding ||
                 (bias->dim[0] >= 0 && m >= 0 && bias->dim[0] != m)))
        return int8_host->fail(err, CNR_E_SHAPE, node->name,
                               "qlinear_dense: input bias: want i32, one an output, %lld",
                               (long long)m);
    if (cnr_own_input(node, INT8_SLOPE)) CNR_TRY(want_each(node, INT8_SLOPE, CNR_f32, m, err));
    outputs[0]->dtype = t[INT8_Y_ZERO]->dtype;
    outputs[0]->rank = 2;
    outputs[0]->dim[0] = x->dim[0];
    outputs[0]->dim[1] = m;
    return CNR_OK;
}

/* Sets c->macs, the multiply-accumulates; leaves it where sizes are unknown. */
static void cost(const cnr_node *node, cnr_cost *c) {
    const cnr_tensor *w = node->inputs[INT8_W], *y = node->outputs[0];
    if (cnr_count(w) < 0 || y->dim[0] < 0) return;
    c->macs = (uint64_t)cnr_count(w) * (uint64_t)y->dim[0];
}

/* Element i of a tensor of floats; one element is for all. */
static double real_at(const cnr_tensor *t, int64_t i) {
    return (double)((const float *)t->data)[cnr_count(t) == 1 ? 0 : i];
}

/* v, clamped to the range of u8 or i8, as a byte with the bits of that type. */
static uint8_t stored(int32_t dtype, double v) {
    const double low = dtype == CNR_i8 ? -128 : 0, high = dtype == CNR_i8 ? 127 : 255;
    v = v > high ? high : v >= low ? v : low;
    return (uint8_t)(int32_t)v;
}

/* Computes the layer by integer sums and one rounding each, for all samples and outputs; fails only
 * when cancelled. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *const *t = run->node->inputs, *y = run->outputs[0];
    const cnr_tensor *x = t[INT8_X], *w = t[INT8_W], *bias = cnr_own_input(run->node, INT8_BIAS);
    const int64_t k = w->dim[1], m = w->dim[0], x_zero = int8_byte_at(t[INT8_X_ZERO], 0);
    const int64_t y_zero = int8_byte_at(t[INT8_Y_ZERO], 0);
    const cnr_tensor *slopes = cnr_own_input(run->node, INT8_SLOPE);
    const int one_x = cnr_count(x) == 1, one_w = cnr_count(w) == 1;
    (void)err;
    for (int64_t i = 0; i < y->dim[0] * m; i++) {
        const int64_t n = i / m, o = i % m, w_zero = int8_byte_at(t[INT8_W_ZERO], o);
        int64_t sum = bias ? ((const int32_t *)bias->data)[o] : 0;
        if (cnr_cancelled(run->stream)) return CNR_E_CANCELLED;
        for (int64_t j = 0; j < k; j++)
            sum += (int8_byte_at(x, one_x ? 0 : n * k + j) - x_zero) *
                   (int8_byte_at(w, one_w ? 0 : o * k + j) - w_zero);
        const float scale = (float)(real_at(t[INT8_X_SCALE], 0) * real_at(t[INT8_W_SCALE], o) /
                                    real_at(t[INT8_Y_SCALE], 0));
        float steps = (float)sum * scale; /* in f32, as in qlinear_conv */
        if (slopes && steps < 0) steps *= (float)real_at(slopes, o);
        ((uint8_t *)y->data)[i] = stored(y->dtype, (double)rintf(steps) + (double)y_zero);
    }
    return CNR_OK;
}

const cnr_op int8_qlinear_dense = {
    CNR_OP_SIZES,
    .name = "qlinear_dense",
    .summary = "Dense layer on quantised numbers, with a quantised result.",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .reference = reference,
};
