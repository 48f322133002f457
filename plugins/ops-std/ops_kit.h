/* What most operators share: checks, dimensions that may be unknown, broadcasting, constant
 * lists, and adding nodes for gradients. */
#ifndef OPS_KIT_H
#define OPS_KIT_H

#include "elem.h"
#include "ops.h"

/* ---- checks ---- */
/* As ops_want, but the input may be omitted. */
cnr_status kit_want(const cnr_node *node, int32_t port, uint32_t dtypes, int32_t min_rank,
                    int32_t max_rank, cnr_error *err);
/* Of any rank. */
cnr_status kit_dtype(const cnr_node *node, int32_t port, uint32_t dtypes, cnr_error *err);
/* A possibly negative axis, as one below rank. */
cnr_status kit_axis(const cnr_node *node, int64_t axis, int32_t rank, int32_t *out, cnr_error *err);

/* ---- dimensions: < 0 is unknown, and makes the result unknown ---- */
cnr_status kit_mul(const cnr_node *node, int64_t a, int64_t b, int64_t *out, cnr_error *err);
cnr_status kit_add(const cnr_node *node, int64_t a, int64_t b, int64_t *out, cnr_error *err);
/* The one dimension that both must be; unknown ones fit everything. */
cnr_status kit_same(const cnr_node *node, int64_t a, int64_t b, int64_t *out, cnr_error *err);
int kit_known(const cnr_tensor *t); /* every dimension is */

/* The broadcast shape of inputs [first, first + n); omitted ones are passed over. */
cnr_status kit_broadcast(const cnr_node *node, int32_t first, int32_t n, cnr_tensor *out,
                         cnr_error *err);
/* Element strides of a dense tensor. */
void kit_dense_strides(const cnr_tensor *t, int64_t *strides);

/* ---- lists that are an input, or else an attribute of the same meaning ---- */
typedef struct kit_list {
    int known; /* 0: an input whose data is not known yet */
    int given; /* an input, or an attribute that was set */
    int64_t n; /* -1 when even that is unknown */
    int64_t at[2 * CNR_MAX_RANK];
} kit_list;
/* port < 0: attribute only; attr NULL: input only. */
cnr_status kit_ints(const cnr_node *node, int32_t port, const char *attr, kit_list *out,
                    cnr_error *err);
/* Turns axes into a set of bits, refusing those that repeat. */
cnr_status kit_axis_set(const cnr_node *node, const kit_list *axes, int32_t rank, uint32_t *out,
                        cnr_error *err);
/* The value of a one-element input or the attribute; *known 0 when not there yet. */
double kit_scalar(const cnr_node *node, int32_t port, const char *attr, int *known);

/* Gives `out` (whose dims are known) constant data of n i64 values. */
cnr_status kit_set_data(const cnr_node *node, cnr_tensor *out, const int64_t *values, int64_t n,
                        cnr_error *err);

/* ---- hooks many operators can use as they are ---- */
void kit_cost_flops(const cnr_node *node, cnr_cost *out); /* one operation an output element */

/* ---- adding nodes ---- */
static inline cnr_attr kit_attr_int(const char *name, int64_t value) {
    return (cnr_attr){.name = name, .type = CNR_ATTR_INT, .set = 1, .i = value};
}
static inline cnr_attr kit_attr_float(const char *name, double value) {
    return (cnr_attr){.name = name, .type = CNR_ATTR_FLOAT, .set = 1, .f = value};
}
static inline cnr_attr kit_attr_ints(const char *name, const int64_t *values, int64_t n) {
    return (cnr_attr){.name = name, .type = CNR_ATTR_INTS, .set = 1, .n = n, .ints = values};
}
/* A graph under construction by a gradient: the first failure sticks, -1 flows on. */
typedef struct kit_build {
    const cnr_host *host;
    struct cnr_graph *graph;
    cnr_status status;
} kit_build;
cnr_value kit_node(kit_build *b, const char *op, const cnr_value *inputs, int32_t n_inputs,
                   const cnr_attr *attrs, int32_t n_attrs);
cnr_value kit_node1(kit_build *b, const char *op, cnr_value x);
cnr_value kit_node2(kit_build *b, const char *op, cnr_value x, cnr_value y);
cnr_value kit_node3(kit_build *b, const char *op, cnr_value x, cnr_value y, cnr_value z);
/* `value` in every element of a tensor like `like`. */
cnr_value kit_filled(kit_build *b, const cnr_tensor *like, double value);
/* What a gradient hook returns: the build's status, with a message. */
cnr_status kit_built(const kit_build *b, const cnr_node *node, cnr_error *err);
cnr_value kit_reshape(kit_build *b, cnr_value x, const cnr_tensor *shape);
/* Sums gradient `g` (of the broadcast shape) back to the shape of `operand`. */
cnr_value kit_unbroadcast(kit_build *b, cnr_value g, const cnr_tensor *shape,
                          const cnr_tensor *operand);
/* A one-element f32 constant (of dtype). */
cnr_value kit_constant(kit_build *b, int32_t dtype, double value);

#endif
