/* Shared by this plugin's files: the host, the selected microkernels, quantised layers. */
#ifndef INT8_H
#define INT8_H

#include "shapes.h"
#include "ukernel/ukernel.h"

#include <cnnrun/kit.h>

extern const cnr_host *int8_host;    /* set by init */
extern const int8_ukernels *int8_uk; /* set by init, from the processor's features */

extern const cnr_op int8_qlinear_dense, int8_qlinear_add, int8_qlinear_mul, int8_qlinear_table,
    int8_qlinear_global_average_pool;
extern const cnr_kernel int8_add, int8_mul, int8_table, int8_mean, int8_concat, int8_conv_blocked,
    int8_conv_depthwise, int8_conv, int8_conv_integer, int8_matmul_integer, int8_dense_gemm,
    int8_dynamic_quantize, int8_cast, int8_dense, int8_quantize, int8_dequantize, int8_max_pool,
    int8_packed_dense, int8_packed_gemm;
extern const cnr_rewrite int8_fold, int8_quantize_layers, int8_pass_through, int8_equalize;
extern const cnr_encoding int8_encoding;

/* Returns the widest microkernels that this processor supports; the environment's CNNRUN_CPU_ISA
 * may select narrower ones. */
const int8_ukernels *int8_choose_isa(void);

/* 1 if the tensor is of u8 or i8. */
static inline int int8_is_byte(const cnr_tensor *t) {
    return t->dtype == CNR_u8 || t->dtype == CNR_i8;
}
/* Whether t is a dense scalar known at planning. */
int int8_is_scalar(const cnr_tensor *t, uint32_t dtypes);
/* element i of an i8 or u8 tensor; a tensor of one element gives it for every i */
int32_t int8_byte_at(const cnr_tensor *t, int64_t i);
/* *low and *high: the range of stored values of dtype minus `zero`, to which results are
 * clamped. */
void int8_bounds(int32_t dtype, int32_t zero, float *low, float *high);
/* A plan_free hook that frees a single block. */
void int8_free_state(const cnr_device *device, void *state);
/* Defines a CPU kernel for operator `op_name` from the file's `prepare_size`, `prepare`, `plan` and
 * `run`; its plan is a single block. */
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

/* ---- layers: qlinear_conv and qlinear_dense have the same ports ---- */

enum {
    INT8_X,
    INT8_X_SCALE,
    INT8_X_ZERO,
    INT8_W,
    INT8_W_SCALE,
    INT8_W_ZERO,
    INT8_Y_SCALE,
    INT8_Y_ZERO,
    INT8_BIAS,
    INT8_SLOPE,
    INT8_LAYER_PORTS
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
    /* ports of conv_integer and matmul_integer after x */
    INT8_INTEGER_W = 1,
    INT8_INTEGER_X_ZERO,
    INT8_INTEGER_W_ZERO
};

/* How b broadcasts to a, whose shape the result has; INT8_PAIR_NONE: not supported by kernels. */
enum { INT8_PAIR_NONE, INT8_PAIR_SAME, INT8_PAIR_CHANNEL, INT8_PAIR_ROW };
/* Returns the INT8_PAIR_ form in which b goes with a; multiplies: for a product, in which b may
 * have one value per channel. INT8_PAIR_ROW: b repeats along the axes before its own. 0: none. */
int int8_pair_form(const cnr_tensor *a, const cnr_tensor *b, int multiplies);

/* Kernels use unsigned activations and signed weights. Signed activations and unsigned weights have
 * their top bits flipped, which shifts their zero points by 128. Most kernels need weights whose
 * zero point is then 0; others (`shifts`) subtract the sum of x times the zero point. */
typedef struct int8_layer {
    int32_t x_zero, y_zero; /* x_zero: after the flip */
    /* x_flip, w_flip: 0x80 or 0, to XOR bytes with; shifts: the weights' zero point is not 0;
     * narrow: no weight is -128 after the flip */
    uint8_t x_flip, w_flip, shifts, narrow;
    uint8_t sloped;  /* it has slopes */
    float low, high; /* bounds of y minus y_zero */
} int8_layer;

/* Header of the blob. It is followed by `rows` offsets (int32), scales (float), zero points of
 * weights (int32) and slopes (float), then by the kernel's packed weights. */
typedef struct int8_blob {
    int8_layer layer;  /* a copy, since the inputs that define it may be absent at run time */
    int64_t rows;      /* a multiple of INT8_MR; surplus rows are zeros */
    int64_t weight_at; /* byte offset in the blob */
} int8_blob;

/* Returns NULL if a kernel can compute the layer exactly, else why it can't. any_w_zero: the kernel
 * allows zero points of weights other than the middle of their type. */
const char *int8_layer_fits(const cnr_node *node, int any_w_zero);
/* The inputs of a layer that its prepared weights stand for, as bits. */
uint32_t int8_layer_prepared(const cnr_node *node);
/* What requantises the sums of a row. */
int8_requant int8_requant_of(const int8_blob *b, int64_t row);
/* Whether all weight zero points are the middle of their type: 0, or 128 for u8. */
int int8_is_middle(const cnr_node *node);
/* Number of bytes before the packed weights in a blob of `rows` rows, rounded up to 64. */
int64_t int8_blob_head(int64_t rows);
/* Fills the head of a layer's blob: offsets, scales and limits of all rows. */
void int8_blob_fill(const cnr_node *node, int64_t rows, int8_blob *blob);
/* NULL if conv_integer and matmul_integer kernels can compute the node, else why not; its x zero
 * point may be known only at run time, as kernels multiply offsets by it. */
const char *int8_integer_fits(const cnr_node *node);
/* Why sums of the layer do not fit 32 bits; NULL: they do. */
const char *int8_integer_sums_fit(const cnr_node *node, int64_t rows);
/* zero point of x after the flip: i8's values are stored with the top bit flipped */
int32_t int8_integer_x_zero(const cnr_node *node);
/* Fills the head of the blob, that is offsets, scales and zero points of rows, for conv_integer and
 * matmul_integer; weights as in int8_integer_fits. */
void int8_integer_fill(const cnr_node *node, int64_t rows, int64_t row_count, int64_t depth,
                       int64_t step, int8_blob *blob);
static inline const int32_t *int8_offsets(const int8_blob *b) { return (const int32_t *)(b + 1); }
/* The blob's array of scales, one for each row. */
static inline const float *int8_scales(const int8_blob *b) {
    return (const float *)(int8_offsets(b) + b->rows);
}
/* The blob's array of zero points of the weights, one for each row. */
static inline const int32_t *int8_w_zeros(const int8_blob *b) {
    return (const int32_t *)(int8_scales(b) + b->rows);
}
/* The blob's array of slopes, one for each row. */
static inline const float *int8_slopes(const int8_blob *b) {
    return (const float *)(int8_w_zeros(b) + b->rows);
}
/* The offset of a row for an x whose elements sum to `total`. */
static inline int32_t int8_shifted(const int8_blob *b, int64_t row, int32_t total) {
    const uint32_t shift = (uint32_t)int8_w_zeros(b)[row] * (uint32_t)total;
    return (int32_t)((uint32_t)int8_offsets(b)[row] - shift);
}
/* The packed weights, behind the blob's head. */
static inline const int8_t *int8_weights(const int8_blob *b) {
    return (const int8_t *)b + b->weight_at;
}

#endif
