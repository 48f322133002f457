/* What the operators of this plugin share: registration, errors, shapes, elements, ranges.
 *
 * An operator is one `const cnr_op ops_NAME` in NAME.c (kin may share a file) and a line OP(NAME)
 * in ops.inc. A reference is written once, over `double`, with the dtype as a parameter:
 *
 *     static inline void body(const cnr_run *run, int32_t dtype) {
 *         ... ops_put(dtype, y, i, f(ops_get(dtype, x, i)));
 *     }
 *     OPS_REFERENCE(reference, body, node->inputs[0])
 */
#ifndef OPS_H
#define OPS_H

#include <cnnrun/kit.h>
#include <math.h>

extern const cnr_host *ops_host;

/* Declares the operator ops_NAME. */
#define OP(name) extern const cnr_op ops_##name;
#include "ops.inc"
#include <cnnrun/half.h>
#include "shapes.h"
#undef OP

/* ---- descriptors ---- */

/* The row of attribute axis with this default and help. */
#define OPS_AXIS_ROW(value, text) \
    { .name = "axis", .type = CNR_ATTR_INT, .default_i = (value), .help = (text) }
/* The row of attribute epsilon with this default. */
#define OPS_EPSILON_ROW(value) \
    { \
        .name = "epsilon", .type = CNR_ATTR_FLOAT, .alias = "eps", .default_f = (value), \
        .help = "added to the variance, against division by zero" \
    }
#define OPS_WINDOW_ROWS \
    {.name = "strides", \
     .type = CNR_ATTR_INTS, \
     .flags = CNR_ATTR_SPATIAL | CNR_ATTR_BOUNDED, \
     .alias = "stride", \
     .min = 1, \
     .max = 1 << 20, \
     .fill = 1, \
     .help = "step of the window along each spatial axis"}, \
        {.name = "pads", \
         .type = CNR_ATTR_INTS, \
         .flags = CNR_ATTR_SPATIAL_PAIRS | CNR_ATTR_BOUNDED, \
         .alias = "pad", \
         .min = 0, \
         .max = 1 << 20, \
         .fill = 0, \
         .help = \
             "elements added at the begin and the end of each spatial axis, all begins first"}, \
        {.name = "dilations", \
         .type = CNR_ATTR_INTS, \
         .flags = CNR_ATTR_SPATIAL | CNR_ATTR_BOUNDED, \
         .alias = "dilation", \
         .min = 1, \
         .max = 1 << 20, \
         .fill = 1, \
         .help = "distance between the window's elements along each spatial axis"}, \
    { \
        .name = "auto_pad", .type = CNR_ATTR_ENUM, .default_s = "NOTSET", \
        .choices = ops_auto_pads, \
        .help = "SAME_*: as many outputs as inputs divided by stride; VALID: no padding" \
    }
extern const char *const ops_auto_pads[];

/* ---- errors; the node's name is the place ---- */

/* Fails with the node's name before the message. */
#define ops_fail(err, code, node, ...) ops_host->fail(err, code, (node)->name, __VA_ARGS__)

/* ---- shapes (shape.c). Dims above OPS_MAX_DIM are refused, so that sums do not overflow ---- */

#define OPS_MAX_DIM ((int64_t)1 << 40)

enum {
    OPS_FLOATS = 1u << CNR_f32 | 1u << CNR_f64 | 1u << CNR_f16 | 1u << CNR_bf16,
    OPS_SIGNED = 1u << CNR_i8 | 1u << CNR_i16 | 1u << CNR_i32 | 1u << CNR_i64,
    OPS_UNSIGNED = 1u << CNR_u8 | 1u << CNR_u16 | 1u << CNR_u32 | 1u << CNR_u64,
    OPS_INTS = OPS_SIGNED | OPS_UNSIGNED,
    OPS_NUMBERS = OPS_FLOATS | OPS_INTS,
    OPS_WHOLE = OPS_NUMBERS | 1u << CNR_bool /* every dtype of whole bytes */
};
static inline int ops_is_float(int32_t dtype) { return (OPS_FLOATS >> dtype & 1u) != 0; }

/* Checks that the input exists and that its dtype is in the mask, its rank in range and its dims
 * below OPS_MAX_DIM. */
cnr_status ops_want(const cnr_node *node, int32_t port, uint32_t dtypes, int32_t min_rank,
                    int32_t max_rank, cnr_error *err);
/* Checks that optional input `port`, if present, has this dtype, rank and dims (negative: any);
 * fails else. */
cnr_status ops_want_shape(const cnr_node *node, int32_t port, int32_t dtype, int32_t rank,
                          const int64_t *dim, cnr_error *err);
/* Attribute `name`, an axis that may be negative, as 0 .. rank - 1; past_end: `rank` is allowed
 * too. */
cnr_status ops_axis(const cnr_node *node, const char *name, int32_t rank, int past_end,
                    int32_t *axis, cnr_error *err);
/* Attribute "axis" of t, after infer has checked it. */
static inline int32_t ops_axis_of(const cnr_node *node, const cnr_tensor *t) {
    return shape_axis(cnr_attr_int(node, "axis"), t->rank);
}
/* Copies dtype and shape of a tensor to an output. */
static inline void ops_like(cnr_tensor *out, const cnr_tensor *t) {
    out->dtype = t->dtype;
    out->rank = t->rank;
    memcpy(out->dim, t->dim, sizeof out->dim);
}
/* infer hooks: output 0 is like input 0, of any dtype of whole bytes; of floats only. */
cnr_status ops_infer_same(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err);
/* Method infer: one float input; the output has its type and shape. */
cnr_status ops_infer_float(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err);
/* Product of dims [from, to) of t; CNR_DIM_UNKNOWN if one is unknown or the product exceeds
 * OPS_MAX_DIM * 2^20. */
int64_t ops_span(const cnr_tensor *t, int32_t from, int32_t to);
/* Whether two dims agree, as far as they are known. */
static inline int ops_dims_agree(int64_t a, int64_t b) { return a < 0 || b < 0 || a == b; }
/* a * b, at most UINT64_MAX; for costs. */
static inline uint64_t ops_mul(uint64_t a, uint64_t b) {
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}
/* Elements of t; 0 where t is NULL or a dimension is unknown. */
static inline uint64_t ops_elements(const cnr_tensor *t) {
    const int64_t n = t ? cnr_count(t) : 0;
    return n < 0 ? 0 : (uint64_t)n;
}

/* ---- splitting (shape.c) ---- */

/* Method split_axes: every axis of output 0; returns how many it wrote, at most max. */
int32_t ops_split_all(const cnr_node *node, cnr_split_axis *axes, int32_t max);
/* Method split_axes: the first two axes of output 0, or fewer if it has fewer; returns how many. */
int32_t ops_split_two(const cnr_node *node, cnr_split_axis *axes, int32_t max);
/* Method split_axes: axis 0 of output 0, if there is one; returns how many. */
int32_t ops_split_first(const cnr_node *node, cnr_split_axis *axes, int32_t max);
/* Method region: the output's range of that axis of each input that is given. */
void ops_region_every(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                      cnr_input_range *r);
/* Method region: the output's range of input 0, and all of the other inputs (axis -1). */
void ops_region_first(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                      cnr_input_range *r);

/* ---- elements ---- */

/* Element i of the array p of elements of dtype, as a double. */
static inline double ops_get(int32_t dtype, const void *p, int64_t i) {
    switch (dtype) {
    case CNR_f32: return (double)((const float *)p)[i];
    case CNR_f64: return ((const double *)p)[i];
    case CNR_f16: return (double)cnr_f16_to_f32(((const uint16_t *)p)[i]);
    case CNR_bf16: return (double)cnr_bf16_to_f32(((const uint16_t *)p)[i]);
    case CNR_i8: return ((const int8_t *)p)[i];
    case CNR_u8: return ((const uint8_t *)p)[i];
    case CNR_i16: return ((const int16_t *)p)[i];
    case CNR_u16: return ((const uint16_t *)p)[i];
    case CNR_i32: return ((const int32_t *)p)[i];
    case CNR_u32: return ((const uint32_t *)p)[i];
    case CNR_i64: return (double)((const int64_t *)p)[i];
    case CNR_u64: return (double)((const uint64_t *)p)[i];
    case CNR_bool: return ((const uint8_t *)p)[i] != 0;
    default: return 0;
    }
}

/* Integers: towards zero, clamped to the type; NaN becomes 0. */
static inline void ops_put(int32_t dtype, void *p, int64_t i, double v) {
    switch (dtype) {
    case CNR_f32: ((float *)p)[i] = (float)v; break;
    case CNR_f64: ((double *)p)[i] = v; break;
    default: ops_host->elements_write(dtype, p, i, 1, CNR_f64, &v);
    }
}

/* Element i of the array p of whole numbers of dtype, exactly; u64 as its bits. */
static inline int64_t ops_get_int(int32_t dtype, const void *p, int64_t i) {
    switch (dtype) {
    case CNR_i8: return ((const int8_t *)p)[i];
    case CNR_u8: return ((const uint8_t *)p)[i];
    case CNR_i16: return ((const int16_t *)p)[i];
    case CNR_u16: return ((const uint16_t *)p)[i];
    case CNR_i32: return ((const int32_t *)p)[i];
    case CNR_u32: return ((const uint32_t *)p)[i];
    case CNR_i64: return ((const int64_t *)p)[i];
    case CNR_u64: return (int64_t)((const uint64_t *)p)[i];
    case CNR_bool: return ((const uint8_t *)p)[i] != 0;
    default: return 0;
    }
}
/* Writes element i of the array p of whole numbers of dtype; v wraps, as in C's conversions. */
static inline void ops_put_int(int32_t dtype, void *p, int64_t i, int64_t v) {
    switch (dtype) {
    case CNR_i8:
    case CNR_u8: ((uint8_t *)p)[i] = (uint8_t)v; break;
    case CNR_i16:
    case CNR_u16: ((uint16_t *)p)[i] = (uint16_t)v; break;
    case CNR_i32:
    case CNR_u32: ((uint32_t *)p)[i] = (uint32_t)v; break;
    case CNR_i64:
    case CNR_u64: ((uint64_t *)p)[i] = (uint64_t)v; break;
    case CNR_bool: ((uint8_t *)p)[i] = v != 0; break;
    default: break;
    }
}

/* Runs `call` with `dtype` as a constant for the most common types, so that the compiler removes
 * dtype tests from loops, and as a variable for the others. `call` must be inlined. */
#define OPS_SPECIALISE(type, call) \
    do { \
        const int32_t type_ = (type); \
        if (type_ == CNR_f32) { \
            enum { dtype = CNR_f32 }; \
            call; \
        } else { \
            const int32_t dtype = type_; \
            call; \
        } \
    } while (0)
#define OPS_INLINE static inline __attribute__((always_inline))
/* Defines a reference hook that calls a body with the dtype of a tensor: outputs[0], or
 * node->inputs[0]. */
#define OPS_REFERENCE(name, body, tensor) \
    static cnr_status name(const cnr_run *run, cnr_error *err) { \
        (void)err; \
        OPS_SPECIALISE(run->tensor->dtype, body(run, dtype)); \
        return CNR_OK; \
    }

/* Bytes of an element; for types of whole bytes. */
static inline size_t ops_size(int32_t dtype) { return cnr_dtype_bits(dtype) / 8; }

/* Whether the run was cancelled; long loops check it from time to time. */
static inline int ops_cancelled(const cnr_run *run) { return cnr_cancelled(run->stream); }

/* ---- gradients (grad.c) ---- */

#define OPS_GRADIENT_ARGS \
    const cnr_host *host, struct cnr_graph *graph, const cnr_node *node, const cnr_value *inputs, \
        const cnr_value *outputs, const cnr_value *grad_out, const int32_t *want, \
        cnr_value *grad_in, cnr_error *err
#define OPS_GRADIENT_UNUSED \
    (void)host, (void)graph, (void)node, (void)inputs, (void)outputs, (void)grad_out, (void)want, \
        (void)grad_in, (void)err
/* Adds a node with one output, named after `node`. */
cnr_status ops_grad_node(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node,
                         const char *op, const cnr_value *inputs, int32_t n_inputs,
                         const cnr_attr *const *attrs, int32_t n_attrs, cnr_value *out,
                         cnr_error *err);
/* Adds a node of `op` on (grad_out[0], inputs[0]) with the node's attributes, as grad_in[0]. */
cnr_status ops_grad_of_input(const char *op, OPS_GRADIENT_ARGS);
/* Adds a sum of `value` over n_axes `axes`, which are not kept; *out receives it, or `value` itself
 * where n_axes is 0. */
cnr_status ops_grad_sum(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node,
                        cnr_value value, const int64_t *axes, int32_t n_axes, cnr_value *out,
                        cnr_error *err);
/* Gradient hooks: passes the gradient through; reshapes it to the input's shape. */
cnr_status ops_gradient_through(OPS_GRADIENT_ARGS);
/* Method gradient of operators that only reshape: the gradient in the input's shape. */
cnr_status ops_gradient_reshape(OPS_GRADIENT_ARGS);
/* Method aliases: output 0 is input 0's memory. Returns 1, or 0 if max is below 1. */
int32_t ops_alias_view(const cnr_node *node, cnr_alias *out, int32_t max);
/* Method aliases: the output may be written over the input. */
int32_t ops_alias_inplace(const cnr_node *node, cnr_alias *out, int32_t max);

/* Copies input 0 to output 0 unless they are the same memory. */
cnr_status ops_reference_copy(const cnr_run *run, cnr_error *err);

#endif
