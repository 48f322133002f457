/* Questions of the host sides of kernels about nodes, and code that they share. */
#ifndef OCL_SUPPORT_H
#define OCL_SUPPORT_H

#include "ocl.h"

static inline const ocl_device *ocl_of(const cnr_device *device) { return device->state; }

/* True if all given inputs of the node itself, and its only output, are dense f32 with sizes
 * that fit an int. */
int ocl_plain(const cnr_node *node);
#define OCL_WANTS_F32 "dense f32 is wanted, of sizes that fit an int, and no input missing"
/* True if all inputs of the node itself but the first are omitted or constant, and few enough
 * for `prepared`. */
int ocl_rest_is_constant(const cnr_node *node);
/* True if prepare may pack the tensor, provided that it is a weight, which the planner checks:
 * training does not change it. Its data may be missing when a plan is only inspected. */
static inline int ocl_weight(const cnr_tensor *t) { return t && !(t->flags & CNR_TENSOR_VARIABLE); }
/* Method plan_free: frees what plan kept. */
void ocl_free_state(const cnr_device *device, void *state);
/* Fails with CNR_E_STATE, for the reason `why`, if a hook is called for a node that `accepts`
 * refuses. */
cnr_status ocl_unless(const cnr_node *node, const char *why, cnr_error *err);

/* A kernel with its hooks and flags; a state is one piece of memory. */
#define OCL_KERNEL(symbol, text, op_name, ...) \
    const cnr_kernel symbol = {.size = sizeof(cnr_kernel), \
                               .version = 1, \
                               .name = text, \
                               .op = op_name, \
                               .plan_free = ocl_free_state, \
                               __VA_ARGS__}

/* A plan hook that is a call of what all its kin share. */
#define OCL_PLAN(symbol, call) \
    static cnr_status symbol(const cnr_device *device, const cnr_node *node, cnr_space *workspace, \
                             void **state, cnr_error *err) { \
        return call; \
    }
/* Defines the hooks of the kernel in row `i` of a table; accepts_row, size_row and pack_row get
 * the row. */
#define OCL_ROW(i) \
    static cnr_status accepts_##i(const cnr_device *device, const cnr_node *node, \
                                  cnr_accept *out) { \
        return accepts_row(device, node, out, i); \
    } \
    static cnr_status size_##i(const cnr_device *device, const cnr_node *node, cnr_space *out, \
                               cnr_error *err) { \
        return size_row(device, node, out, err, i); \
    } \
    static cnr_status pack_##i(const cnr_device *device, const cnr_node *node, void *blob, \
                               cnr_error *err) { \
        return pack_row(device, node, blob, err, i); \
    }
/* The hooks accepts_i, size_i and pack_i as fields of a kernel. */
#define OCL_ROW_HOOKS(i) .accepts = accepts_##i, .prepare_size = size_##i, .prepare = pack_##i

/* ---- half.c: kernels whose weights are stored in half of the bytes, and multiplied as f32 ---- */

/* Method accepts of the f16 kernel beside `full`: as `full` answers, with a score that is 5 higher
 * if it takes the node. */
cnr_status ocl_half_accepts(const cnr_kernel *full, const cnr_device *device, const cnr_node *node,
                            cnr_accept *out);
/* Method prepare_size of the f16 kernel beside `full`: half of its bytes. */
cnr_status ocl_half_size(const cnr_kernel *full, const cnr_device *device, const cnr_node *node,
                         cnr_space *out, cnr_error *err);
/* Method prepare of the f16 kernel beside `full`: packs as `full` does, in f16. */
cnr_status ocl_half_pack(const cnr_kernel *full, const cnr_device *device, const cnr_node *node,
                         void *blob, cnr_error *err);
/* Accepts nodes for kernels that also multiply in f16, on devices that can, which is tested once
 * (CNNRUN_OPENCL_HALF=emulated: on any, in f32 with rounding). */
cnr_status ocl_math_accepts(const cnr_kernel *full, const cnr_device *device, const cnr_node *node,
                            cnr_accept *out);
enum {
    OCL_F32,
    OCL_F16,
    OCL_F16_MATH
}; /* weights and products are; weights are; weights and products are */
/* `symbol`: the kernel `full` but for the weights, named `text`; `plan_half` builds it with
 * OCL_F16. */
#define OCL_HALF_KERNEL(symbol, full, text, op_name, plan_half, run_full) \
    static cnr_status symbol##_accepts(const cnr_device *d, const cnr_node *n, cnr_accept *out) { \
        return ocl_half_accepts(&full, d, n, out); \
    } \
    static cnr_status symbol##_size(const cnr_device *d, const cnr_node *n, cnr_space *out, \
                                    cnr_error *err) { \
        return ocl_half_size(&full, d, n, out, err); \
    } \
    static cnr_status symbol##_pack(const cnr_device *d, const cnr_node *n, void *blob, \
                                    cnr_error *err) { \
        return ocl_half_pack(&full, d, n, blob, err); \
    } \
    OCL_KERNEL(symbol, text, op_name, .accepts = symbol##_accepts, .prepare_size = symbol##_size, \
               .prepare = symbol##_pack, .plan = plan_half, .run = run_full, \
               .flags = CNR_KERNEL_F16);
/* Defines kernel `symbol` that multiplies in f16, behind OCL_HALF_KERNEL(half, full ...), whose
 * weights it has. */
#define OCL_MATH_KERNEL(symbol, half, full, text, op_name, plan_math, run_full) \
    static cnr_status symbol##_accepts(const cnr_device *d, const cnr_node *n, cnr_accept *out) { \
        return ocl_math_accepts(&full, d, n, out); \
    } \
    OCL_KERNEL(symbol, text, op_name, .accepts = symbol##_accepts, .prepare_size = half##_size, \
               .prepare = half##_pack, .plan = plan_math, .run = run_full, \
               .flags = CNR_KERNEL_F16_MATH | CNR_KERNEL_UNTESTED);

/* ---- chain.c: epilogues ---- */

#define OCL_MAX_CHAIN 8

/* The tensors that a node's epilogue reads. */
typedef struct ocl_chain {
    int32_t n;                      /* tensors that the chain reads */
    int32_t operand[OCL_MAX_CHAIN]; /* inputs of the host node */
} ocl_chain;

/* How many of the node's epilogue, from the first on, kernels can compute on a result of this
 * shape. */
int32_t ocl_chain_accepts(const cnr_node *node, int32_t rank, const int64_t *dim);
/* Adds the epilogue's tensors to the call's arguments. */
void ocl_chain_args(ocl_call *call, const ocl_chain *chain, const cnr_node *node);
/* 1 when the text has `word` as a word of its own. */
int ocl_mentions(const char *text, char word);

/* ---- geometry of N C and up to three spatial axes, absent leading ones having extent 1 ---- */

/* Sizes of a convolution or pooling, with one to three spatial axes in the last places. */
typedef struct ocl_shape {
    int64_t n, c, m, group; /* samples; channels in and out; groups */
    int64_t in[3], out[3], k[3], stride[3], dilation[3], begin[3], end[3];
    int32_t spatial;
} ocl_shape;

/* `flat`: a window of one element without padding and strides sees the picture as one row. */
void ocl_shape_of(const cnr_window *w, const cnr_tensor *x, const cnr_tensor *y, int64_t group,
                  int flat, ocl_shape *s);
/* True if the first of three spatial axes can be left out: extent 1 before and after, and the one
 * output reads the one input. Padding alone can make an output deep, or be all that it reads. */
int ocl_is_flat(const ocl_shape *s);
/* The part of the output to compute, N C D H W. */
typedef struct ocl_box {
    int64_t begin[5], end[5];
} ocl_box;
/* *box receives the part of the output that the run asks for. */
void ocl_box_of(const cnr_run *run, const ocl_shape *s, ocl_box *box);
/* Arguments `shape` and `range` as the kernels of windows take them; `wide` pixels a work-item. */
void ocl_shape_args(ocl_call *call, const ocl_shape *s, const ocl_box *box, int64_t blocks,
                    int64_t first_block, int64_t wide, int has_bias);
/* Adds the window's sizes to the call's arguments. */
void ocl_window_args(ocl_call *call, const ocl_shape *s);

/* ---- plan.c: planning a kernel. After the first mistake the calls do nothing ---- */

/* A plan being made: its first failure is kept in status, and later steps are left out. */
typedef struct ocl_plan {
    const cnr_device *device;
    const cnr_node *node;
    cnr_error *err;
    void *state;
    cnr_status status;
    char head[12288], options[512]; /* of the requested programs: generated source, build options */
} ocl_plan;

/* The zeroed state; NULL: no memory, which is all there is to say. */
void *ocl_plan_begin(ocl_plan *p, const cnr_device *device, const cnr_node *node, size_t bytes,
                     cnr_error *err);
/* 1 if `why` is NULL and nothing went wrong before; else the plan fails, with `why`. */
int ocl_plan_unless(ocl_plan *p, const char *why);
/* Append to these texts; an option ends with a space: "-DLINE=%d ". */
__attribute__((format(printf, 2, 3))) void ocl_plan_head(ocl_plan *p, const char *format, ...);
__attribute__((format(printf, 2, 3))) void ocl_plan_options(ocl_plan *p, const char *format, ...);
/* Appends the window as build options: -DKD=1 -DKH=3 and so on, for kernel, stride and dilation. */
void ocl_plan_window(ocl_plan *p, const ocl_shape *s);
/* Fills `chain`, and the head with its source: CHAIN_PARAMETERS, CHAIN_PASS, chain(). */
void ocl_plan_chain(ocl_plan *p, ocl_chain *chain);
/* Puts how sums are made (kernels/common/terms.cl) before the head, with the options for it. */
void ocl_plan_terms(ocl_plan *p, int how);
/* *out receives the code of `kernel` in `source`, built with the plan's head and options. */
void ocl_plan_code(ocl_plan *p, const ocl_source *source, const char *kernel, const ocl_code **out);
/* Hands the state over, or gives it back. */
cnr_status ocl_plan_end(ocl_plan *p, void **out);

/* ---- the kernels that all OpenCL devices have; `device` is for whoever registers them ---- */

/* Calls X for the symbol of each kernel. */
/* clang-format off */
#define OCL_KERNEL_LIST(X) \
    X(ocl_conv_buffer) X(ocl_conv_image) X(ocl_conv_depthwise) X(ocl_conv_plain) \
    X(ocl_dense_buffer) X(ocl_dense_image) X(ocl_dense_plain) \
    X(ocl_gemm_buffer) X(ocl_gemm_image) X(ocl_gemm_plain) \
    X(ocl_matmul_buffer) X(ocl_matmul_image) X(ocl_matmul_plain) \
    X(ocl_max_pool) X(ocl_average_pool) X(ocl_global_average_pool) X(ocl_softmax) X(ocl_lrn) \
    X(ocl_lrn_within) \
    X(ocl_layer_normalization) X(ocl_instance_normalization) X(ocl_group_normalization) \
    X(ocl_reduce) X(ocl_conv_transpose) X(ocl_grid_sample) \
    X(ocl_dense_gemv) X(ocl_gemm_gemv) X(ocl_matmul_gemv) \
    X(ocl_dense_sparse) X(ocl_gemm_sparse) X(ocl_conv_sparse) \
    X(ocl_conv_strip) X(ocl_conv_winograd_2) X(ocl_conv_winograd_4) \
    X(ocl_conv_tile_0) X(ocl_conv_tile_1) X(ocl_conv_tile_2) X(ocl_conv_tile_3) \
    X(ocl_conv_panel_0) X(ocl_conv_panel_1) X(ocl_conv_panel_2) X(ocl_conv_panel_3) \
    X(ocl_conv_panel_4) X(ocl_conv_panel_5) \
    X(ocl_conv_tile_4) X(ocl_conv_tile_5) X(ocl_conv_tile_6) X(ocl_conv_tile_7) \
    X(ocl_conv_buffer_half) X(ocl_conv_image_half) \
    X(ocl_dense_buffer_half) X(ocl_dense_image_half) X(ocl_gemm_buffer_half) \
    X(ocl_gemm_image_half) X(ocl_dense_gemv_half) X(ocl_gemm_gemv_half) \
    X(ocl_conv_panel_0_half) X(ocl_conv_panel_1_half) X(ocl_conv_panel_2_half) \
    X(ocl_conv_panel_3_half) X(ocl_conv_panel_4_half) X(ocl_conv_panel_5_half) \
    X(ocl_conv_tile_0_half) X(ocl_conv_tile_1_half) X(ocl_conv_tile_2_half) \
    X(ocl_conv_tile_3_half) X(ocl_conv_tile_4_half) X(ocl_conv_tile_5_half) \
    X(ocl_conv_tile_6_half) X(ocl_conv_tile_7_half) \
    X(ocl_dense_panel) X(ocl_gemm_panel) X(ocl_matmul_panel) \
    X(ocl_conv_buffer_math) X(ocl_conv_image_math) \
    X(ocl_dense_buffer_math) X(ocl_dense_image_math) X(ocl_gemm_buffer_math) \
    X(ocl_gemm_image_math) \
    X(ocl_conv_panel_0_math) X(ocl_conv_panel_1_math) X(ocl_conv_panel_2_math) \
    X(ocl_conv_panel_3_math) X(ocl_conv_panel_4_math) X(ocl_conv_panel_5_math) \
    X(ocl_dense_tile) X(ocl_gemm_tile) X(ocl_matmul_tile) \
    X(ocl_window_variance) X(ocl_random_ferns) X(ocl_correlation) \
    X(ocl_attention) X(ocl_rnn) X(ocl_gru) X(ocl_lstm) X(ocl_move) X(ocl_resize_taps) X(ocl_upsample_taps) X(ocl_concat) X(ocl_channel_affine) X(ocl_elementwise) X(ocl_view)
/* clang-format on */

/* declares one kernel */
#define X(name) extern const cnr_kernel name;
OCL_KERNEL_LIST(X)
#undef X

/* op_conv_tile.c, for kernels/common/tile.cl: work-items of a tile; whether the device has that
 * many and its local memory, with `pad` more in each row; the tile's options. */
extern const ocl_source ocl_tile_source;
/* Work-items of a work-group of tile t. */
int32_t ocl_tile_items(const ocl_tile *t);
/* 1: the device has the work-items and local memory that tile t needs, with rows padded by
 * `pad`. */
int ocl_tile_fits(const ocl_device *d, const ocl_tile *t, int32_t pad);
/* Adds the tile's sizes to the plan's build options. */
void ocl_plan_tile(ocl_plan *p, const ocl_tile *t);
/* Estimated work of a product by a tile. */
typedef struct ocl_tile_work {
    int64_t slices;         /* slices of the sum, bk terms each */
    double groups, outputs; /* work-groups, where the sum is whole; numbers that they compute */
} ocl_tile_work;
/* Estimates the time of a launch, and into how many parts the sum is cut. */
double ocl_tile_ns(const ocl_device *d, const ocl_tile *t, const ocl_tile_work *work,
                   int32_t *splits);
/* Score of a kernel that takes ns nanoseconds, at least `least`. */
int32_t ocl_tile_score(double ns, int32_t least);

/* Kernels by their row of a table: weights as stored, and as f16; then panels that also multiply
 * f16. */
extern const cnr_kernel *const ocl_tile_rows[2][OCL_MOST_TILES];
extern const cnr_kernel *const ocl_panel_rows[3][OCL_MOST_PANELS];

/* A plugin's init: the device class, and all kernels for it whose rows its tables have. */
cnr_status ocl_register(const cnr_host *host, struct cnr_registrar *registrar,
                        const cnr_device_class *cls, const ocl_tune *tunes, int32_t n);

#endif
