/* Shared by kernels of quantised layers: checks of nodes, scales and offsets. */
#include "int8.h"

#include <math.h>
#include <stdlib.h>

/* The largest product of an activation and a weight, each minus its zero point. */
enum { MOST_MIDDLE = 255 * 128, MOST_ANY = 255 * 255 };

void int8_free_state(const cnr_device *device, void *state) {
    (void)device;
    int8_host->free(state);
}

/* 1 if a tensor is a plain constant of one of the types. */
static int known(const cnr_tensor *t, uint32_t dtypes) {
    return cnr_is_constant(t) && cnr_is_plain(t, dtypes);
}

int int8_is_scalar(const cnr_tensor *t, uint32_t dtypes) {
    return known(t, dtypes) && cnr_count(t) == 1;
}

int32_t int8_byte_at(const cnr_tensor *t, int64_t i) {
    if (cnr_count(t) == 1) i = 0;
    return t->dtype == CNR_i8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

/* *low and *high: the range of stored values of dtype minus `zero`, to which results are
 * clamped. */
void int8_bounds(int32_t dtype, int32_t zero, float *low, float *high) {
    *low = (float)((dtype == CNR_i8 ? -128 : 0) - zero);
    *high = (float)((dtype == CNR_i8 ? 127 : 255) - zero);
}

/* Scale of row i; a tensor of one element holds for all rows. */
static float scale_at(const cnr_tensor *t, int64_t i) {
    return ((const float *)t->data)[cnr_count(t) == 1 ? 0 : i];
}

/* The factor from the integer sum of row `row` to steps of y: x_scale * w_scale / y_scale, rounded
 * once to f32 as in the reference. */
static float factor(const cnr_node *node, int64_t row) {
    return (float)((double)scale_at(node->inputs[INT8_X_SCALE], 0) *
                   (double)scale_at(node->inputs[INT8_W_SCALE], row) /
                   (double)scale_at(node->inputs[INT8_Y_SCALE], 0));
}

static int32_t middle(const cnr_tensor *w) { return w->dtype == CNR_i8 ? 0 : 128; }

/* 1 if all zero points are the middle of their type. */
static int has_middle_zeros(const cnr_tensor *w, const cnr_tensor *zero) {
    for (int64_t i = 0; i < cnr_count(zero); i++)
        if (int8_byte_at(zero, i) != middle(w)) return 0;
    return 1;
}

int int8_is_middle(const cnr_node *node) {
    return has_middle_zeros(node->inputs[INT8_W], node->inputs[INT8_W_ZERO]);
}

/* The largest absolute value that the sum of a row's products can have for any x. */
static int64_t most_of_row(const cnr_tensor *w, const cnr_tensor *zero, int64_t row) {
    const int64_t depth = cnr_span(w, 1, w->rank);
    const int32_t middle = int8_byte_at(zero, row);
    int64_t sum = 0;
    for (int64_t i = 0; i < depth; i++) sum += abs(int8_byte_at(w, row * depth + i) - middle);
    return 255 * sum;
}

/* Whether sums with bias fit 32 bits for any x. Rows of small weights may have a large bias. */
static int sums_fit(const cnr_tensor *w, const cnr_tensor *zero, const cnr_tensor *bias,
                    int64_t product) {
    const int64_t most = cnr_span(w, 1, w->rank) * product;
    for (int64_t i = 0; bias && i < w->dim[0]; i++) {
        const int64_t size = llabs((long long)((const int32_t *)bias->data)[i]);
        if (most + size > INT32_MAX && most_of_row(w, zero, i) + size > INT32_MAX) return 0;
    }
    return 1;
}

/* 1 if the slopes, where there are some, are finite constants. */
static int has_finite_slopes(const cnr_node *node) {
    const cnr_tensor *slope = cnr_own_input(node, INT8_SLOPE);
    if (slope && !known(slope, 1u << CNR_f32)) return 0;
    for (int64_t i = 0; slope && i < cnr_count(slope); i++)
        if (!isfinite(((const float *)slope->data)[i])) return 0;
    return 1;
}

uint32_t int8_layer_prepared(const cnr_node *node) {
    return 0xfe | (cnr_own_input(node, INT8_BIAS) ? 1u << INT8_BIAS : 0) |
           (cnr_own_input(node, INT8_SLOPE) ? 1u << INT8_SLOPE : 0);
}

int8_requant int8_requant_of(const int8_blob *b, int64_t row) {
    const int8_layer *l = &b->layer;
    return (int8_requant){.offset = int8_offsets(b)[row],
                          .zero = l->y_zero,
                          .scale = int8_scales(b)[row],
                          .low = l->low,
                          .high = l->high,
                          .slope = l->sloped ? int8_slopes(b)[row] : 1};
}

const char *int8_layer_fits(const cnr_node *node, int any_w_zero) {
    const uint32_t bytes = 1u << CNR_u8 | 1u << CNR_i8, real = 1u << CNR_f32;
    if (node->n_inputs <= INT8_Y_ZERO) return "inputs are missing";
    const cnr_tensor *const *in = node->inputs, *w = in[INT8_W];
    const cnr_tensor *bias = cnr_own_input(node, INT8_BIAS);
    if (!in[INT8_X] || !int8_is_byte(in[INT8_X]) || in[INT8_X]->encoding) return "x is not bytes";
    if (!known(w, bytes)) return "w must be a constant of bytes";
    if (!known(in[INT8_W_ZERO], bytes)) return "w_zero_point must be a constant of bytes";
    if (!known(in[INT8_W_SCALE], real)) return "w_scale must be a constant of f32";
    if (!int8_is_scalar(in[INT8_X_SCALE], real)) return "x_scale must be a constant, one f32";
    if (!int8_is_scalar(in[INT8_Y_SCALE], real)) return "y_scale must be a constant, one f32";
    if (!int8_is_scalar(in[INT8_X_ZERO], bytes)) return "x_zero_point must be a constant, one byte";
    if (!int8_is_scalar(in[INT8_Y_ZERO], bytes)) return "y_zero_point must be a constant, one byte";
    if (bias && !known(bias, 1u << CNR_i32)) return "bias must be a constant of i32";
    if (!has_finite_slopes(node)) return "slope must be a constant of finite f32";
    const int64_t product = has_middle_zeros(w, in[INT8_W_ZERO]) ? MOST_MIDDLE : MOST_ANY;
    if (product == MOST_ANY && !any_w_zero)
        return "w_zero_point must be the middle, 0 or of u8 128";
    for (int64_t i = 0; i < w->dim[0]; i++)
        if (!isnormal(factor(node, i)) && factor(node, i) != 0)
            return "a scale is no number, or a denormal";
    if (w->dim[0] < 1 || cnr_span(w, 1, w->rank) > INT32_MAX / product ||
        cnr_span(w, 1, w->rank) < 1)
        return "sums would not fit 32 bits";
    return sums_fit(w, in[INT8_W_ZERO], bias, product)
               ? NULL
               : "sums with their bias would not fit 32 bits";
}

/* Fills *out with zero points, flips of the sign and limits of a quantised layer. */
static void layer_of(const cnr_node *node, int8_layer *out) {
    const cnr_tensor *const *in = node->inputs;
    out->x_flip = in[INT8_X]->dtype == CNR_i8 ? 0x80 : 0;
    out->w_flip = in[INT8_W]->dtype == CNR_u8 ? 0x80 : 0;
    out->shifts = !int8_is_middle(node);
    out->narrow = 0;
    out->sloped = cnr_own_input(node, INT8_SLOPE) != NULL;
    out->x_zero = int8_byte_at(in[INT8_X_ZERO], 0) + out->x_flip;
    out->y_zero = int8_byte_at(in[INT8_Y_ZERO], 0);
    int8_bounds(in[INT8_Y_ZERO]->dtype, out->y_zero, &out->low, &out->high);
}

int64_t int8_blob_head(int64_t rows) {
    return cnr_round_up((int64_t)sizeof(int8_blob) +
                            rows * (int64_t)(2 * sizeof(int32_t) + 2 * sizeof(float)),
                        64);
}

/* Fills the head of a layer's blob. sum (x - x_zero) (w - w_zero) + bias = sum x w - w_zero sum x +
 * offset, computed modulo 2^32: the result itself fits 32 bits. */
void int8_blob_fill(const cnr_node *node, int64_t rows, int8_blob *blob) {
    const cnr_tensor *w = node->inputs[INT8_W], *bias = cnr_own_input(node, INT8_BIAS);
    const cnr_tensor *slopes = cnr_own_input(node, INT8_SLOPE);
    const int64_t depth = cnr_span(w, 1, w->rank);
    layer_of(node, &blob->layer);
    blob->rows = rows;
    blob->weight_at = int8_blob_head(rows);
    int32_t *offset = (int32_t *)(blob + 1);
    float *scale = (float *)(offset + rows);
    int32_t *w_zero = (int32_t *)(scale + rows);
    float *slope = (float *)(w_zero + rows);
    memset(offset, 0, (size_t)(4 * rows) * sizeof *offset);
    for (int64_t r = 0; r < w->dim[0]; r++) {
        const uint8_t *from = (const uint8_t *)w->data + r * depth;
        int64_t sum = 0;
        for (int64_t i = 0; i < depth; i++) sum += (int8_t)(from[i] ^ blob->layer.w_flip);
        const int64_t shift = bias ? ((const int32_t *)bias->data)[r] : 0;
        w_zero[r] = int8_byte_at(node->inputs[INT8_W_ZERO], r) - middle(w);
        offset[r] = (int32_t)(uint32_t)(shift - (sum - depth * w_zero[r]) * blob->layer.x_zero);
        scale[r] = factor(node, r);
        slope[r] = slopes ? scale_at(slopes, r) : 1;
    }
}

/* ---- conv_integer and matmul_integer ---- */

/* NULL if conv_integer and matmul_integer kernels can compute the node, else why not; its x zero
 * point may be known only at run time, as kernels multiply offsets by it. */
const char *int8_integer_fits(const cnr_node *node) {
    const uint32_t bytes = 1u << CNR_u8 | 1u << CNR_i8;
    const cnr_tensor *x = node->inputs[INT8_X], *w = node->inputs[INT8_INTEGER_W];
    const cnr_tensor *x_zero = cnr_own_input(node, INT8_INTEGER_X_ZERO);
    const cnr_tensor *w_zero = cnr_own_input(node, INT8_INTEGER_W_ZERO);
    if (!x || !cnr_is_plain(x, bytes)) return "x is not bytes";
    if (!known(w, bytes)) return "w must be a constant of bytes";
    if (x_zero && (!cnr_is_plain(x_zero, bytes) || cnr_count(x_zero) != 1))
        return "x_zero_point must be one byte";
    if (w_zero && (!known(w_zero, bytes) || w_zero->rank > 1))
        return "w_zero_point must be a constant of bytes, one or one an output";
    return NULL;
}

const char *int8_integer_sums_fit(const cnr_node *node, int64_t rows) {
    const int64_t count = cnr_count(node->inputs[INT8_INTEGER_W]);
    if (rows < 1 || count < 1) return "w is empty";
    return count / rows > INT32_MAX / MOST_ANY ? "sums would not fit 32 bits" : NULL;
}

int32_t int8_integer_x_zero(const cnr_node *node) {
    const cnr_tensor *zero = cnr_own_input(node, INT8_INTEGER_X_ZERO);
    const int32_t flip = node->inputs[INT8_X]->dtype == CNR_i8 ? 0x80 : 0;
    return (zero ? int8_byte_at(zero, 0) : 0) + flip;
}

void int8_integer_fill(const cnr_node *node, int64_t rows, int64_t row_count, int64_t depth,
                       int64_t step, int8_blob *blob) {
    const cnr_tensor *w = node->inputs[INT8_INTEGER_W];
    const cnr_tensor *zero = cnr_own_input(node, INT8_INTEGER_W_ZERO);
    const int64_t row_step = step == 1 ? depth : 1;
    int32_t *offset = (int32_t *)(blob + 1), *w_zero = offset + 2 * rows;
    memset(blob, 0, sizeof *blob);
    memset(offset, 0, (size_t)(4 * rows) * sizeof *offset);
    blob->layer.x_flip = node->inputs[INT8_X]->dtype == CNR_i8 ? 0x80 : 0;
    blob->layer.w_flip = w->dtype == CNR_u8 ? 0x80 : 0;
    blob->rows = rows;
    blob->weight_at = int8_blob_head(rows);
    for (int64_t r = 0; r < row_count; r++) {
        const uint8_t *from = (const uint8_t *)w->data + r * row_step;
        int64_t sum = 0;
        w_zero[r] = (zero ? int8_byte_at(zero, r) : 0) - middle(w);
        if (w_zero[r]) blob->layer.shifts = 1;
        for (int64_t i = 0; i < depth; i++) sum += (int8_t)(from[i * step] ^ blob->layer.w_flip);
        offset[r] = (int32_t)(depth * w_zero[r] - sum);
    }
}
