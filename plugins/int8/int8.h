/* What the files of this plugin share: the host, the chosen microkernels, quantised layers. */
#ifndef INT8_H
#define INT8_H

#include "ukernel/ukernel.h"

#include <cnnrun/kit.h>
#include <cnnrun/window.h>

extern const cnr_host *int8_host;    /* set by init */
extern const int8_ukernels *int8_uk; /* set by init, from what the processor can do */

extern const cnr_op int8_qlinear_dense, int8_qlinear_add, int8_qlinear_mul, int8_qlinear_table,
    int8_qlinear_global_average_pool;
extern const cnr_kernel int8_add, int8_mul, int8_table, int8_mean, int8_concat, int8_conv_blocked,
    int8_conv_depthwise, int8_conv, int8_conv_integer, int8_matmul_integer, int8_dense_gemm,
    int8_dynamic_quantize, int8_cast, int8_dense, int8_quantize, int8_dequantize, int8_max_pool,
    int8_packed_dense, int8_packed_gemm;
extern const cnr_rewrite int8_fold, int8_quantize_layers, int8_pass_through, int8_equalize;
extern const cnr_encoding int8_encoding;

/* The best microkernels that this processor runs. CNNRUN_CPU_ISA may name a lesser set. */
const int8_ukernels *int8_choose_isa(void);

static inline int int8_is_byte(const cnr_tensor *t) {
    return t->dtype == CNR_u8 || t->dtype == CNR_i8;
}
/* One number known at planning, dense. */
int int8_is_scalar(const cnr_tensor *t, uint32_t dtypes);
int32_t int8_byte_at(const cnr_tensor *t, int64_t i); /* of i8 or u8 */
/* The range of stored values less `zero`: what rounding is kept in. */
void int8_bounds(int32_t dtype, int32_t zero, float *low, float *high);
/* An plan_free that frees a single block. */
void int8_free_state(const cnr_device *device, void *state);
/* A kernel of the CPU's for the operator `op_name`, by the file's own `prepare_size`, `prepare`,
 * `plan` and `run`; what it plans is a single block. */
#define INT8_KERNEL(variable, n, kernel, op_name, accepts_fn) \
    const cnr_kernel variable = {.size = sizeof(cnr_kernel), \
                                 .version = n, \
                                 .name = kernel, \
                                 .op = op_name, \
                                 .device = "cpu", \
                                 .accepts = accepts_fn, \
                                 .prepare_size = prepare_size, \
                                 .prepare = prepare, \
                                 .plan = plan, \
                                 .plan_free = int8_free_state, \
                                 .run = run}

/* ---- layers: the ports of qlinear_conv and of qlinear_dense are the same ---- */

enum {
    INT8_X,
    INT8_X_SCALE,
    INT8_X_ZERO,
    INT8_W,
    INT8_W_SCALE,
    INT8_W_ZERO,
    INT8_Y_SCALE,
    INT8_Y_ZERO,
    INT8_BIAS
};

/* Ports of qlinear_add and qlinear_mul, and of qlinear_global_average_pool. */
enum {
    INT8_A,
    INT8_A_SCALE,
    INT8_A_ZERO,
    INT8_B,
    INT8_B_SCALE,
    INT8_B_ZERO,
    INT8_PAIR_Y_SCALE,
    INT8_PAIR_Y_ZERO,
    INT8_MEAN_Y_ZERO = 4,
    /* of conv_integer and matmul_integer, behind x */
    INT8_INTEGER_W = 1,
    INT8_INTEGER_X_ZERO,
    INT8_INTEGER_W_ZERO
};

/* How b goes with a, whose shape the result has: INT8_PAIR_NONE, no kernel has it. */
enum { INT8_PAIR_NONE, INT8_PAIR_SAME, INT8_PAIR_CHANNEL, INT8_PAIR_ROW };
/* multiplies: a number a channel will do. A row: all of b for each of the axes before its own. */
int int8_pair_form(const cnr_tensor *a, const cnr_tensor *b, int multiplies);

/* Kernels work with unsigned activations and signed weights. Signed activations have their top bit
 * flipped (128 more, as their zero point), unsigned weights (128 less) too. Most want weights whose
 * zero point is then 0; of others (`shifts`) the sum of x, times the zero point, is taken off. */
typedef struct int8_layer {
    int32_t x_zero, y_zero; /* x_zero: of flipped bytes */
    uint8_t x_flip, w_flip, shifts;
    float low, high; /* of y less y_zero */
} int8_layer;

/* The blob: this, `rows` offsets (i32), scales (f32), zero points of weights (i32), then the
 * kernel's packed weights. */
typedef struct int8_blob {
    int8_layer layer;  /* the inputs that say it need not be there when the kernel runs */
    int64_t rows;      /* a multiple of INT8_MR; those past the last are zeros */
    int64_t weight_at; /* bytes from the blob's begin */
} int8_blob;

/* NULL when a kernel can run the layer exactly, else why not. any_w_zero: also of weights whose
 * zero point is not the middle of their type. */
const char *int8_layer_fits(const cnr_node *node, int any_w_zero);
/* The zero points of the weights are all the middle of their type, 0 or of u8 128. */
int int8_is_middle(const cnr_node *node);
/* Bytes before the packed weights; and fills them. */
int64_t int8_blob_head(int64_t rows);
void int8_blob_fill(const cnr_node *node, int64_t rows, int8_blob *blob);
/* conv_integer and matmul_integer: likewise; the zero point of x may be known at the run only.
 * Weights are `row_count` rows of `depth`, elements of a row `step` apart: 1, or rows side by side.
 * Offsets are to be multiplied by the zero point of x. */
const char *int8_integer_fits(const cnr_node *node);
const char *int8_integer_sums_fit(const cnr_node *node, int64_t rows);
int32_t int8_integer_x_zero(const cnr_node *node); /* of flipped bytes */
void int8_integer_fill(const cnr_node *node, int64_t rows, int64_t row_count, int64_t depth,
                       int64_t step, int8_blob *blob);
static inline const int32_t *int8_offsets(const int8_blob *b) { return (const int32_t *)(b + 1); }
static inline const float *int8_scales(const int8_blob *b) {
    return (const float *)(int8_offsets(b) + b->rows);
}
static inline const int32_t *int8_w_zeros(const int8_blob *b) {
    return (const int32_t *)(int8_scales(b) + b->rows);
}
/* The offset of a row whose x sum up to `total`. */
static inline int32_t int8_shifted(const int8_blob *b, int64_t row, int32_t total) {
    const uint32_t shift = (uint32_t)int8_w_zeros(b)[row] * (uint32_t)total;
    return (int32_t)((uint32_t)int8_offsets(b)[row] - shift);
}
static inline const int8_t *int8_weights(const int8_blob *b) {
    return (const int8_t *)b + b->weight_at;
}

#endif
