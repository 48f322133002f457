/* Checks of nodes and tensors, shapes, scratch. */
#ifndef NEON_SUPPORT_H
#define NEON_SUPPORT_H

#include "chain.h"
#include "neon.h"
#include "padded.h"

/* Data of a tensor as floats; NULL: no tensor. */
static inline const float *neon_floats(const cnr_tensor *t) {
    return t ? (const float *)t->data : NULL;
}
/* Whether all inputs and outputs of the operator itself that are present are dense f32. */
static inline int neon_all_f32(const cnr_node *node) { return cnr_all_plain(node, 1u << CNR_f32); }
#define NEON_WANTS_F32 "dense f32 is wanted, and no input missing"
/* Reads the window of a convolution of x with `weight`; returns NULL, or why it is refused, as for
 * sizes that would overflow. */
const char *neon_conv_window(const cnr_node *node, const cnr_tensor *x, const cnr_tensor *weight,
                             cnr_window *w);
/* Whether the node is the gradient of a convolution's input, not a convolution. At stride 1 it is a
 * convolution too: of the output's gradient, with the taps in reverse and channels exchanged. */
int neon_is_gradient(const cnr_node *node);
/* Fills w with the window over input 0 of a convolution, or of its input's gradient at stride 1;
 * returns NULL, or why it is refused. */
const char *neon_turned_window(const cnr_node *node, cnr_window *w);
/* Nanoseconds of one thread at a share of the peak speed; the estimate does not depend on the
 * number of threads. For a convolution: a share for large planes and one for small ones. */
double neon_cost_ns(double flops, double share);
/* Estimated ns of a convolution; large, small: GFLOPS reached on large and small planes. */
double neon_conv_cost(const cnr_node *node, const cnr_window *w, double large, double small);
/* Whether padded planes of `w` for `channels` have a reasonable size. */
int neon_padded_fits(const cnr_window *w, int64_t channels);

/* Returns the sum of n floats: short stretches in float and these in double; float alone loses
 * digits on long rows. */
double neon_long_sum(const float *x, int64_t n);

/* Reserves floats of a workspace that is a stack of arrays, each 64-byte aligned: returns their
 * offset in floats, and adds to *total. */
static inline int64_t neon_reserve(int64_t *total, int64_t floats) {
    const int64_t at = *total;
    *total += cnr_round_up(floats, 16);
    return at;
}

/* The part of output 0 that is computed. */
typedef struct neon_part {
    /* begin and end of images, channels and rows (axis 2) */
    int64_t image0, image1, channel0, channel1, row0, row1;
} neon_part;
/* Returns the part of output 0 that a run computes: images, channels and rows. */
neon_part neon_part_of(const cnr_run *run);

/* Defines a kernel without prepare from the file's accepts and run. */
#define NEON_KERNEL(variable, kernel_name, op_name, plan_fn, unplan_fn) \
    NEON_KERNEL_WITH(0, variable, kernel_name, op_name, plan_fn, unplan_fn)
/* Defines a kernel with flags from the file's accepts and run. */
#define NEON_KERNEL_WITH(with_flags, variable, kernel_name, op_name, plan_fn, unplan_fn) \
    const cnr_kernel variable = {.size = sizeof(cnr_kernel), \
                                 .version = 1, \
                                 .name = kernel_name, \
                                 .op = op_name, \
                                 .device = "cpu-neon", \
                                 .accepts = accepts, \
                                 .plan = plan_fn, \
                                 .plan_free = unplan_fn, \
                                 .run = run, \
                                 .flags = with_flags}

/* Fails if a finite weight, input 1, is infinite as fp16. */
cnr_status neon_f16_holds(const cnr_node *node, cnr_error *err);

/* Defines three kernels that store prepared weights as f32, fp16 and bf16, named "name" "_f32"
 * "_way", from the file's run and from hooks that take the storage type as first argument. */
#define NEON_WEIGHT_KERNELS(variable, kernel_name, way, op_name, unplan_fn) \
    NEON_WEIGHT_KERNEL(variable, NEON_F32, 0, kernel_name "_f32" way, op_name, unplan_fn) \
    NEON_WEIGHT_KERNEL(variable##_f16, NEON_F16, CNR_KERNEL_F16, kernel_name "_f16" way, op_name, \
                       unplan_fn) \
    NEON_WEIGHT_KERNEL(variable##_bf16, NEON_BF16, CNR_KERNEL_BF16, kernel_name "_bf16" way, \
                       op_name, unplan_fn)
/* Defines a kernel that stores its weights as `as`. */
#define NEON_WEIGHT_KERNEL(variable, as, as_flags, kernel_name, op_name, unplan_fn) \
    static cnr_status variable##_accepts(const cnr_device *device, const cnr_node *node, \
                                         cnr_accept *out) { \
        return accepts(as, device, node, out); \
    } \
    static cnr_status variable##_prepare_size(const cnr_device *device, const cnr_node *node, \
                                              cnr_space *out, cnr_error *err) { \
        return prepare_size(as, device, node, out, err); \
    } \
    static cnr_status variable##_prepare(const cnr_device *device, const cnr_node *node, \
                                         void *blob, cnr_error *err) { \
        CNR_TRY(prepare(as, device, node, blob, err)); \
        return as == NEON_F16 ? neon_f16_holds(node, err) : CNR_OK; \
    } \
    static cnr_status variable##_plan(const cnr_device *device, const cnr_node *node, \
                                      cnr_space *workspace, void **state, cnr_error *err) { \
        return plan(as, device, node, workspace, state, err); \
    } \
    const cnr_kernel variable = {.size = sizeof(cnr_kernel), \
                                 .version = 1, \
                                 .name = kernel_name, \
                                 .op = op_name, \
                                 .device = "cpu-neon", \
                                 .accepts = variable##_accepts, \
                                 .prepare_size = variable##_prepare_size, \
                                 .prepare = variable##_prepare, \
                                 .plan = variable##_plan, \
                                 .plan_free = unplan_fn, \
                                 .run = run, \
                                 .flags = as_flags};

/* Bytes of n stored weights. */
static inline uint64_t neon_stored_bytes(neon_stored as, int64_t n) {
    return (uint64_t)n * (as == NEON_F32 ? sizeof(float) : sizeof(uint16_t));
}
/* Address of weight number `at` of a blob, for reading. */
static inline const void *neon_stored_at(neon_stored as, const void *blob, int64_t at) {
    return (const char *)blob + neon_stored_bytes(as, at);
}
/* Returns n weights of a blob from `at` on, as floats: in place, or converted into `room`. */
static inline const float *neon_widened(neon_stored as, const void *blob, int64_t at, int64_t n,
                                        float *room) {
    if (as == NEON_F32) return (const float *)blob + at;
    neon_uk->widen[as]((const uint16_t *)blob + at, room, n);
    return room;
}

/* A plan_free hook that frees a single block. */
void neon_free_state(const cnr_device *device, void *state);
/* Returns a zeroed state of `bytes` that begins with a neon_padded * made for `w`; NULL with err:
 * out of memory. Then the plan_free hook for states of that kind. */
void *neon_padded_state(const cnr_node *node, const cnr_window *w, size_t bytes, cnr_error *err);
/* Frees a plan's state that begins with its neon_padded. */
void neon_free_padded_state(const cnr_device *device, void *state);

#endif
