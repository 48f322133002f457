/* fold-quantized for layers: conv, dense, gemm, matmul and average_pool become qlinear_conv and
 * qlinear_dense where the kernels can compute them exactly. */
#include "fold.h"

#include <math.h>
#include <stdio.h>
#include "shapes.h"

enum { REAL = 1u << CNR_f32, BYTES = 1u << CNR_u8 | 1u << CNR_i8 };

/* Weights in the form that a layer's ports require. */
typedef struct layer_weights {
    /* the quantised value, its scale and its zero point (-1: zero is 0) */
    cnr_value q, scale, zero;
    int64_t rows;
    const float *step; /* for each row, or one for all */
    int64_t n_steps;
    int turned; /* q is transposed: inputs by outputs */
} layer_weights;

/* 1 if a tensor is a plain constant of one of the types. */
static int is_known(const cnr_tensor *t, uint32_t dtypes) {
    return cnr_is_constant(t) && cnr_is_plain(t, dtypes);
}

/* Reads constant bytes with one scale, or one for each slice of `axis`; 0: the value is none such.
 */
static int weights_of(const fold_work *f, cnr_value value, int32_t axis, layer_weights *out) {
    const cnr_value *in;
    const int32_t producer = value < 0 ? -1 : int8_host->graph_producer(f->g, value);
    const cnr_node *node =
        producer < 0 ? NULL : int8_host->graph_node_at(f->g, producer, &in, NULL);
    if (!node || !graph_is(node, "dequantize_linear") || node->n_inputs < 2) return 0;
    const cnr_tensor *q = node->inputs[0], *scale = node->inputs[1], *zero = cnr_own_input(node, 2);
    if (!is_known(q, BYTES) || !is_known(scale, REAL) || (zero && !is_known(zero, BYTES))) return 0;
    if (cnr_attr_int(node, "block_size") != 0 || scale->rank > 1 || (zero && zero->rank > 1))
        return 0;
    const int64_t n = cnr_count(scale), rows = q->dim[axis];
    if (n != 1 && (n != rows || shape_axis(cnr_attr_int(node, "axis"), q->rank) != axis)) return 0;
    if (zero && cnr_count(zero) != 1 && cnr_count(zero) != rows) return 0;
    *out = (layer_weights){.q = in[0],
                           .scale = in[1],
                           .zero = zero ? in[2] : -1,
                           .rows = rows,
                           .step = scale->data,
                           .n_steps = n,
                           .turned = axis == 1};
    return 1;
}

/* Whether the scale of the bias is the product of the scales of x and weights: computed by a node,
 * or nearly equal. */
static int is_bias_scale(const fold_work *f, cnr_value scale, const cnr_tensor *t,
                         const fold_operand *x, const layer_weights *w) {
    const cnr_value *in;
    const int32_t producer = int8_host->graph_producer(f->g, scale);
    if (!is_known(t, REAL)) {
        const cnr_node *node =
            producer < 0 ? NULL : int8_host->graph_node_at(f->g, producer, &in, NULL);
        return graph_is(node, "mul") && ((in[0] == x->scale && in[1] == w->scale) ||
                                         (in[1] == x->scale && in[0] == w->scale));
    }
    const int64_t n = cnr_count(t);
    if (n != 1 && n != w->rows) return 0;
    for (int64_t r = 0; r < w->rows; r++) {
        const double own = (double)((const float *)t->data)[n == 1 ? 0 : r];
        const double want = (double)x->step * (double)w->step[w->n_steps == 1 ? 0 : r];
        if (fabs(own - want) > 1e-5 * fabs(want)) return 0;
    }
    return 1;
}

/* Reads the numbers of a float constant, or of a dequantised one; 0: the value is none such. */
static int reals_of(const fold_work *f, cnr_value value, int64_t n, float *out) {
    const cnr_value *in;
    const cnr_tensor *t = int8_host->graph_type(f->g, value);
    const int32_t producer = int8_host->graph_producer(f->g, value);
    if (is_known(t, REAL) && cnr_count(t) == n) {
        memcpy(out, t->data, (size_t)n * sizeof *out);
        return 1;
    }
    const cnr_node *node =
        producer < 0 ? NULL : int8_host->graph_node_at(f->g, producer, &in, NULL);
    if (!node || !graph_is(node, "dequantize_linear")) return 0;
    const cnr_tensor *q = node->inputs[0], *s = node->inputs[1], *z = cnr_own_input(node, 2);
    if (!is_known(q, 1u << CNR_i32 | BYTES) || !is_known(s, REAL) || cnr_count(q) != n) return 0;
    if (z && (q->dtype == CNR_i32 ? !int8_is_scalar(z, 1u << CNR_i32) || *(const int32_t *)z->data
                                  : !int8_is_scalar(z, BYTES)))
        return 0;
    if (cnr_count(s) != 1 && cnr_count(s) != n) return 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t v = q->dtype == CNR_i32 ? ((const int32_t *)q->data)[i]
                                              : int8_byte_at(q, i) - (z ? int8_byte_at(z, 0) : 0);
        out[i] = (float)v * ((const float *)s->data)[cnr_count(s) == 1 ? 0 : i];
    }
    return 1;
}

/* *out: the bias as integers in units of the sum, as stored, or rounded, with 1. 0: impossible. */
static int bias_of(fold_work *f, cnr_value value, const fold_operand *x, const layer_weights *w,
                   cnr_value *out) {
    const cnr_value *in;
    const int32_t producer = int8_host->graph_producer(f->g, value);
    const cnr_node *node =
        producer < 0 ? NULL : int8_host->graph_node_at(f->g, producer, &in, NULL);
    if (node && graph_is(node, "dequantize_linear") && is_known(node->inputs[0], 1u << CNR_i32) &&
        node->inputs[0]->rank == 1 && cnr_count(node->inputs[0]) == w->rows &&
        !cnr_own_input(node, 2) && is_bias_scale(f, in[1], node->inputs[1], x, w)) {
        *out = in[0];
        return 1;
    }
    float *real = int8_host->alloc((size_t)w->rows * sizeof *real);
    int32_t *sum = int8_host->alloc((size_t)w->rows * sizeof *sum);
    int good = real && sum && reals_of(f, value, w->rows, real);
    for (int64_t r = 0; good && r < w->rows; r++) {
        const double unit = (double)x->step * (double)w->step[w->n_steps == 1 ? 0 : r];
        const double steps = rint((double)real[r] / unit);
        good = fabs(steps) < 1 << 30;
        if (good) sum[r] = (int32_t)steps;
    }
    *out = good ? graph_bytes(f->g, NULL, NULL, CNR_i32, sum, 1, &w->rows) : -1;
    int8_host->free(real);
    int8_host->free(sum);
    return *out >= 0;
}

/* Adds a constant: the matrix of bytes `value` transposed. Returns it, or -1. */
static cnr_value turned(fold_work *f, cnr_value value) {
    const cnr_tensor *t = int8_host->graph_type(f->g, value);
    const int64_t dim[2] = {t->dim[1], t->dim[0]}, n = cnr_count(t);
    uint8_t *to = int8_host->alloc((size_t)cnr_max(1, n));
    if (!to) return -1;
    for (int64_t i = 0; i < n; i++)
        to[i % dim[0] * dim[1] + i / dim[0]] = ((const uint8_t *)t->data)[i];
    const cnr_value made = graph_bytes(f->g, NULL, NULL, t->dtype, to, 2, dim);
    int8_host->free(to);
    return made;
}

/* Adds a reshape; returns its output, or -1. */
static cnr_value reshaped(graph *g, const char *name, cnr_value x, int32_t rank,
                          const int64_t *dim) {
    const cnr_attr shape = {.name = "shape",
                            .type = CNR_ATTR_INTS,
                            .set = 1,
                            .n = rank,
                            .ints = dim};
    return graph_add_with(g, "reshape", name, NULL, &shape, 1, &x, 1);
}

/* Adds the quantised layer; returns its output, -1 on failure, or FOLD_NOT (with nothing added but
 * constants) where kernels would refuse it. */
static cnr_value layer(fold_work *f, const char *op, const fold_operand *x, const layer_weights *w,
                       cnr_value bias, const cnr_node *like) {
    const uint8_t none = 0;
    cnr_value in[INT8_LAYER_PORTS];
    const int32_t w_type = int8_host->graph_type(f->g, w->q)->dtype;
    in[INT8_X] = x->q;
    in[INT8_X_SCALE] = x->scale;
    in[INT8_X_ZERO] = fold_zero(f->g, x);
    in[INT8_W] = w->turned ? turned(f, w->q) : w->q;
    in[INT8_W_SCALE] = w->scale;
    in[INT8_W_ZERO] =
        w->zero >= 0 ? w->zero : graph_bytes(f->g, NULL, NULL, w_type, &none, 0, NULL);
    in[INT8_Y_SCALE] = f->y.scale;
    in[INT8_Y_ZERO] = fold_zero(f->g, &f->y);
    in[INT8_BIAS] = bias;
    if (f->sloped) {
        const int64_t n = graph_slopes(f->sloped, NULL);
        if (n != 1 && n != w->rows) return FOLD_NOT;
        in[INT8_SLOPE] = graph_slope_constant(f->g, NULL, f->sloped);
        if (in[INT8_SLOPE] < 0) return -1;
    }
    const int32_t n_in = f->sloped ? INT8_SLOPE + 1 : bias < 0 ? 8 : 9;
    const cnr_value made = graph_add(f->g, op, f->name, like, in, n_in);
    if (made < 0) return -1;
    const int32_t at = int8_host->graph_producer(f->g, made);
    if (!int8_layer_fits(int8_host->graph_node_at(f->g, at, NULL, NULL), 1)) return made;
    return int8_host->graph_remove(f->g, at) == CNR_OK ? FOLD_NOT : -1;
}

/* Adds a dense layer for all rows of an x with more than two axes, between two reshapes. Returns
 * the output, -1 on failure, or FOLD_NOT if more than one of the leading sizes is unknown or
 * kernels would refuse it. x->q becomes the flat x. */
static cnr_value dense_of_rows(fold_work *f, fold_operand *x, const layer_weights *w) {
    const cnr_tensor *t = int8_host->graph_type(f->g, x->q);
    const int32_t rank = t->rank;
    const int64_t flat[2] = {-1, t->dim[rank - 1]};
    int64_t back[CNR_MAX_RANK];
    int32_t unknown = 0;
    for (int32_t i = 0; i < rank - 1; i++) {
        back[i] = t->dim[i] < 0 ? -1 : t->dim[i];
        unknown += t->dim[i] < 0;
    }
    if (unknown > 1 || flat[1] < 1) return FOLD_NOT;
    if (f->sloped && graph_slopes(f->sloped, NULL) != 1) return FOLD_NOT; /* by another axis */
    back[rank - 1] = w->rows;
    x->q = reshaped(f->g, f->name, x->q, 2, flat);
    if (x->q < 0) return -1;
    const cnr_value made = layer(f, "qlinear_dense", x, w, -1, NULL);
    return made < 0 ? made : reshaped(f->g, f->name, made, rank, back);
}

/* The axis of the weights with an element per output; -1: not a supported layer. */
static int32_t output_axis(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0], *w = cnr_own_input(node, 1);
    if (!x || !w) return -1;
    if (graph_is(node, "conv")) return w->rank >= 3 ? 0 : -1;
    if (w->rank != 2) return -1;
    if (graph_is(node, "dense")) return 0;
    if (graph_is(node, "matmul")) return x->rank >= 2 ? 1 : -1;
    if (!graph_is(node, "gemm") || cnr_attr_int(node, "transA") || x->rank != 2) return -1;
    if (cnr_attr_float(node, "alpha") != 1) return -1;
    if (cnr_own_input(node, 2) && cnr_attr_float(node, "beta") != 1) return -1;
    return cnr_attr_int(node, "transB") ? 0 : 1;
}

cnr_value fold_layer(fold_work *f) {
    const int32_t axis = output_axis(f->node);
    const int conv = graph_is(f->node, "conv");
    fold_operand x;
    layer_weights w;
    cnr_value bias = -1;
    if (axis < 0 || !fold_operand_of(f->g, f->in[0], &x) || !weights_of(f, f->in[1], axis, &w))
        return FOLD_NOT;
    if (cnr_is_constant(int8_host->graph_type(f->g, x.q))) return FOLD_NOT;
    const int32_t rank = f->node->inputs[0]->rank;
    if (cnr_own_input(f->node, 2) && !bias_of(f, f->in[2], &x, &w, &bias)) return FOLD_NOT;
    if (graph_is(f->node, "matmul") && rank > 2) return dense_of_rows(f, &x, &w);
    return layer(f, conv ? "qlinear_conv" : "qlinear_dense", &x, &w, bias, conv ? f->node : NULL);
}

/* ---- average_pool: a depthwise window of ones with scale 1 / number ---- */

/* Adds sums over windows as a convolution with ones; returns the value, or -1: failed. */
static cnr_value by_ones(fold_work *f, const fold_operand *x, const cnr_window *win) {
    const int64_t channels = f->node->inputs[0]->dim[1];
    const cnr_attr group = {.name = "group", .type = CNR_ATTR_INT, .set = 1, .i = channels};
    const int8_t none = 0;
    int64_t dim[CNR_MAX_RANK] = {channels, 1}, taps = 1;
    for (int32_t i = 0; i < win->spatial; i++) {
        dim[2 + i] = win->kernel[i];
        taps *= win->kernel[i];
    }
    const float scale = 1 / (float)taps;
    int8_t *ones = int8_host->alloc((size_t)(channels * taps));
    if (!ones) return -1;
    memset(ones, 1, (size_t)(channels * taps));
    const cnr_node *like = f->node;
    const cnr_value in[] = {x->q,
                            x->scale,
                            fold_zero(f->g, x),
                            graph_bytes(f->g, NULL, NULL, CNR_i8, ones, 2 + win->spatial, dim),
                            graph_f32(f->g, NULL, NULL, &scale, 1),
                            graph_bytes(f->g, NULL, NULL, CNR_i8, &none, 0, NULL),
                            f->y.scale,
                            fold_zero(f->g, &f->y)};
    int8_host->free(ones);
    return graph_add_with(f->g, "qlinear_conv", f->name, like, &group, 1, in, 8);
}

cnr_value fold_mean_window(fold_work *f) {
    const cnr_node *node = f->node;
    cnr_window win;
    fold_operand x;
    if (!graph_is(node, "average_pool") || !fold_operand_of(f->g, f->in[0], &x)) return FOLD_NOT;
    if (cnr_attr_int(node, "ceil_mode") ||
        int8_host->window_resolve(node, node->inputs[0], NULL, &win))
        return FOLD_NOT;
    const int64_t channels = node->inputs[0]->dim[1];
    int64_t taps = 1;
    for (int32_t i = 0; i < win.spatial; i++) {
        const int padded = win.pad_begin[i] || win.pad_end[i];
        taps *= win.kernel[i];
        if (win.out[i] < 0 || taps > 1 << 12 ||
            (padded && !cnr_attr_int(node, "count_include_pad")))
            return FOLD_NOT;
    }
    return channels < 1 || channels > 1 << 16 ? FOLD_NOT : by_ones(f, &x, &win);
}

/* ---- qlinear_matmul ---- */

/* *out receives the operand at port `port`: bytes, scale and zero point in consecutive inputs, with
 * one scale; 0: it has none. */
static int direct(const cnr_node *node, const cnr_value *in, int32_t port, fold_operand *out) {
    const cnr_tensor *scale = node->inputs[port + 1], *zero = node->inputs[port + 2];
    if (!int8_is_scalar(scale, REAL) || !int8_is_scalar(zero, BYTES)) return 0;
    *out = (fold_operand){.q = in[port],
                          .scale = in[port + 1],
                          .zero = in[port + 2],
                          .dtype = zero->dtype,
                          .offset = int8_byte_at(zero, 0),
                          .step = *(const float *)scale->data};
    return scale->rank <= 1 && zero->rank <= 1;
}

int32_t fold_product(graph *g, int32_t index, cnr_error *err) {
    const cnr_value *in, *out;
    const cnr_node *node = int8_host->graph_node_at(g, index, &in, &out);
    fold_work f = {.g = g, .node = node, .in = in};
    fold_operand x;
    if (!graph_is(node, "qlinear_matmul") || int8_host->graph_use_count(g, out[0]) == 0) return 0;
    if (node->outputs[0]->flags & CNR_TENSOR_DYNAMIC) return 0;
    const cnr_tensor *a = node->inputs[0], *b = node->inputs[INT8_W];
    const cnr_tensor *scale = node->inputs[INT8_W_SCALE], *zero = node->inputs[INT8_W_ZERO];
    if (a->rank < 2 || b->rank != 2 || !is_known(b, BYTES) || scale->rank > 1 || zero->rank > 1)
        return 0;
    if (!direct(node, in, INT8_X, &x) || cnr_is_constant(a) || !is_known(scale, REAL)) return 0;
    if (!int8_is_scalar(node->inputs[INT8_Y_SCALE], REAL) ||
        !int8_is_scalar(node->inputs[INT8_Y_ZERO], BYTES))
        return 0;
    const layer_weights w = {.q = in[INT8_W],
                             .scale = in[INT8_W_SCALE],
                             .zero = in[INT8_W_ZERO],
                             .rows = b->dim[1],
                             .step = scale->data,
                             .n_steps = cnr_count(scale),
                             .turned = 1};
    const cnr_value old = out[0];
    f.y = (fold_operand){.q = old, .scale = in[INT8_Y_SCALE], .zero = in[INT8_Y_ZERO]};
    snprintf(f.name, sizeof f.name, "%.240s.int8", node->name);
    int8_host->graph_insert_before(g, index);
    const cnr_value made =
        a->rank > 2 ? dense_of_rows(&f, &x, &w) : layer(&f, "qlinear_dense", &x, &w, -1, NULL);
    if (made == FOLD_NOT) return 0;
    if (made < 0 || int8_host->graph_replace(g, old, made) != CNR_OK)
        return int8_host->fail(err, CNR_E_STATE, "fold-quantized", "could not be applied");
    return 1;
}
