/* Element-wise operators y = f(x; a, b, c), each defined by a row of formulas. */
#ifndef STD_UNARY_H
#define STD_UNARY_H

#include "ops_kit.h"

/* The values of the attributes that the row names, in its order. */
typedef struct unary_coef {
    double a, b, c;
} unary_coef;

/* An operator of one input: its types and formulas. */
typedef struct unary_row {
    uint32_t dtypes; /* of x; types without a formula of their own are computed in double */
    int32_t to_bool;
    const char *coef[3];
    const char *opencl; /* of x; $a $b $c stand for the coefficients */
    void (*f64)(const double *x, double *out, int64_t n, unary_coef k);
    void (*f32)(const float *x, float *out, int64_t n, unary_coef k);
    void (*i64)(const int64_t *x, int64_t *out, int64_t n, unary_coef k);
    void (*u64)(const uint64_t *x, uint64_t *out, int64_t n, unary_coef k);
    /* Operator `grad` computes dy times the derivative, as a function of x or, with grad_of_y, of
     * y. */
    const char *grad;
    int32_t grad_of_y;
} unary_row;

/* The derivative of one. */
typedef struct unary_grad_row {
    const char *coef[3];
    void (*f64)(const double *v, const double *dy, double *out, int64_t n, unary_coef k);
    void (*f32)(const float *v, const float *dy, float *out, int64_t n, unary_coef k);
} unary_grad_row;

/* Method infer with the row's types: the output has the input's shape, and its type or bool. */
cnr_status unary_infer(const cnr_node *node, const unary_row *row, cnr_tensor *const *out,
                       cnr_error *err);
/* Method reference: the row's formula over the run's range. */
cnr_status unary_reference(const cnr_run *run, const unary_row *row, cnr_error *err);
/* Computes n elements by the row's f32 loop. */
void unary_apply(const cnr_node *node, const unary_row *row, const float *x, float *out, int64_t n);
/* Method expression: the OpenCL formula with the attributes' values; its length, or -1. */
int32_t unary_expression(const cnr_node *node, const unary_row *row, char *text, size_t bytes);
/* Method gradient: a node NAME_grad of input or output and the output's gradient. */
cnr_status unary_gradient(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node,
                          const unary_row *row, const cnr_value *inputs, const cnr_value *outputs,
                          const cnr_value *grad_out, const int32_t *want, cnr_value *grad_in);
/* Method infer of the gradient: both inputs are floats that broadcast to one shape. */
cnr_status unary_grad_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err);
/* Method reference of the gradient. */
cnr_status unary_grad_reference(const cnr_run *run, const unary_grad_row *row);
/* out[i] = dy[i] times the function's derivative at v[i], for n elements, with the node's
 * coefficients. */
void unary_grad_apply(const cnr_node *node, const unary_grad_row *row, const float *v,
                      const float *dy, float *out, int64_t n);

extern const cnr_port unary_inputs[1], unary_outputs[1], unary_grad_inputs[2];

/* In a formula: T is its type, x the operand, and R(c) a constant of that type. */
#define R(c) ((T)(c))

/* A loop NAME over n elements by FORMULA, in which a, b, c are the attributes. */
#define UNARY_LOOP(type, NAME, FORMULA) \
    static void NAME(const type *xs, type *out, int64_t n, unary_coef k) { \
        typedef type T; \
        const T a = (T)k.a, b = (T)k.b, c = (T)k.c; \
        (void)a, (void)b, (void)c; \
        for (int64_t at = 0; at < n; at++) { \
            const T x = xs[at]; \
            (void)x; \
            out[at] = (T)(FORMULA); \
        } \
    }

/* Lists as macro arguments, in parentheses because of their commas. */
#define UNARY_PLAIN (.n_attrs = 0)
/* The operator's attributes, in parentheses. */
#define UNARY_ATTRS(name) (CNR_OP_ATTRS(name##_attrs))
/* Names of the attributes a, b, c of a formula, in parentheses. */
#define UNARY_COEF(...) ({__VA_ARGS__})
/* The names without parentheses. */
#define UNARY_LIST(...) __VA_ARGS__

/* Defines hooks and descriptor of an operator whose row is NAME_row. */
#define UNARY_OP(NAME, ALIASES, SUMMARY, ATTRS, FLAGS, GRADIENT) \
    static cnr_status NAME##_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) { \
        return unary_infer(node, &NAME##_row, out, err); \
    } \
    static cnr_status NAME##_reference(const cnr_run *run, cnr_error *err) { \
        return unary_reference(run, &NAME##_row, err); \
    } \
    static void NAME##_apply(const cnr_node *node, const float *x, const float *y, float *out, \
                             int64_t n) { \
        (void)y; \
        unary_apply(node, &NAME##_row, x, out, n); \
    } \
    static int32_t NAME##_expression(const cnr_node *node, char *text, size_t bytes) { \
        return unary_expression(node, &NAME##_row, text, bytes); \
    } \
    GRADIENT(NAME) \
    const cnr_op ops_##NAME = { \
        CNR_OP_SIZES, \
        .name = #NAME, \
        .summary = SUMMARY, \
        .aliases = ALIASES, \
        .flags = CNR_OP_ELEMENTWISE | CNR_OP_PURE | CNR_OP_RANGES | (FLAGS), \
        .n_inputs = 1, \
        .n_outputs = 1, \
        UNARY_LIST ATTRS, \
        .inputs = unary_inputs, \
        .outputs = unary_outputs, \
        .infer = NAME##_infer, \
        .cost = kit_cost_flops, \
        .apply_f32 = ((FLAGS)&CNR_OP_EPILOGUE) ? NAME##_apply : NULL, \
        .expression = ((FLAGS)&CNR_OP_EPILOGUE) ? NAME##_expression : NULL, \
        .reference = NAME##_reference, \
        .gradient = GRADIENT##_HOOK(NAME), \
    };

/* For an operator without gradient: nothing. */
#define UNARY_NO_GRAD(NAME)
/* For an operator without gradient: no method. */
#define UNARY_NO_GRAD_HOOK(NAME) NULL
/* Method gradient of operator NAME and its operator NAME_grad. */
#define UNARY_GRAD(NAME) \
    static cnr_status NAME##_gradient(const cnr_host *host, struct cnr_graph *graph, \
                                      const cnr_node *node, const cnr_value *inputs, \
                                      const cnr_value *outputs, const cnr_value *grad_out, \
                                      const int32_t *want, cnr_value *grad_in, cnr_error *err) { \
        (void)err; \
        return unary_gradient(host, graph, node, &NAME##_row, inputs, outputs, grad_out, want, \
                              grad_in); \
    }
/* Name of that method. */
#define UNARY_GRAD_HOOK(NAME) NAME##_gradient

/* Defines the derivative as operator NAME_grad(v, dy); D is a function of v. */
#define UNARY_GRAD_LOOP(type, FUNCTION, D) \
    static void FUNCTION(const type *vs, const type *dys, type *out, int64_t n, unary_coef k) { \
        typedef type T; \
        const T a = (T)k.a, b = (T)k.b, c = (T)k.c; \
        (void)a, (void)b, (void)c; \
        for (int64_t at = 0; at < n; at++) { \
            const T v = vs[at]; \
            (void)v; \
            out[at] = (T)((D)*dys[at]); \
        } \
    }
/* Defines operator NAME, a derivative: its loops, row, hooks and descriptor. */
#define UNARY_GRAD_OP(NAME, ATTRS, COEF, D) \
    UNARY_GRAD_LOOP(double, NAME##_d, D) \
    UNARY_GRAD_LOOP(float, NAME##_d_f32, D) \
    static const unary_grad_row NAME##_grad_row = {UNARY_LIST COEF, NAME##_d, NAME##_d_f32}; \
    static void NAME##_grad_apply(const cnr_node *node, const float *v, const float *dy, \
                                  float *out, int64_t n) { \
        unary_grad_apply(node, &NAME##_grad_row, v, dy, out, n); \
    } \
    static cnr_status NAME##_grad_reference(const cnr_run *run, cnr_error *err) { \
        (void)err; \
        return unary_grad_reference(run, &NAME##_grad_row); \
    } \
    const cnr_op ops_##NAME##_grad = { \
        CNR_OP_SIZES, \
        .name = #NAME "_grad", \
        .summary = "derivative of " #NAME " times dy", \
        .flags = CNR_OP_ELEMENTWISE | CNR_OP_PURE | CNR_OP_RANGES, \
        .n_inputs = 2, \
        .n_outputs = 1, \
        UNARY_LIST ATTRS, \
        .inputs = unary_grad_inputs, \
        .outputs = unary_outputs, \
        .infer = unary_grad_infer, \
        .cost = kit_cost_flops, \
        .apply_f32 = NAME##_grad_apply, \
        .reference = NAME##_grad_reference, \
    };

#endif
