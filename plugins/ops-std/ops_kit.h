/* Shared by most operators: checks, dimensions that may be unknown, broadcasting, constant lists,
 * and nodes of gradients. */
#ifndef OPS_KIT_H
#define OPS_KIT_H

#include "elem.h"
#include "ops.h"

/* ---- checks ---- */
/* Checks that input `port`, unless it is omitted, has one of the dtypes (bits) and a rank of
 * [min_rank, max_rank]; fails else. */
cnr_status kit_want(const cnr_node *node, int32_t port, uint32_t dtypes, int32_t min_rank,
                    int32_t max_rank, cnr_error *err);
/* Checks that input `port`, unless it is omitted, has one of the dtypes (bits); fails else. */
cnr_status kit_dtype(const cnr_node *node, int32_t port, uint32_t dtypes, cnr_error *err);
/* *out: an axis that may be negative as 0 .. rank - 1; fails if it is outside. */
cnr_status kit_axis(const cnr_node *node, int64_t axis, int32_t rank, int32_t *out, cnr_error *err);

/* ---- dimensions: < 0 is unknown and makes the result unknown ---- */
/* *out receives a * b; unknown where one is unknown, and a failure where the product is too
 * large. */
cnr_status kit_mul(const cnr_node *node, int64_t a, int64_t b, int64_t *out, cnr_error *err);
/* *out receives a + b; unknown where one is unknown, and a failure where the sum is too large. */
cnr_status kit_add(const cnr_node *node, int64_t a, int64_t b, int64_t *out, cnr_error *err);
/* *out: the dimension that both must have; an unknown one agrees with any. Fails if they differ. */
cnr_status kit_same(const cnr_node *node, int64_t a, int64_t b, int64_t *out, cnr_error *err);
int kit_known(const cnr_tensor *t); /* 1 if all of t's dimensions are known */

/* Gives *out the broadcast shape of inputs [first, first + n); omitted ones are skipped. Fails if
 * they don't broadcast. */
cnr_status kit_broadcast(const cnr_node *node, int32_t first, int32_t n, cnr_tensor *out,
                         cnr_error *err);
/* Fills strides, one for each axis, with element strides of a dense tensor of t's shape. */
void kit_dense_strides(const cnr_tensor *t, int64_t *strides);

/* ---- lists given by an input, or else by an attribute ---- */
/* A list given by an input or an attribute. */
typedef struct kit_list {
    int known; /* 0: an input whose data is not known yet */
    int given; /* as an input, or as an attribute that was set */
    int64_t n; /* number of entries; -1: unknown too */
    int64_t at[2 * CNR_MAX_RANK];
} kit_list;
/* port < 0: attribute only; attr NULL: input only. */
cnr_status kit_ints(const cnr_node *node, int32_t port, const char *attr, kit_list *out,
                    cnr_error *err);
/* *out: the axes as a set of bits; refuses repeated ones. */
cnr_status kit_axis_set(const cnr_node *node, const kit_list *axes, int32_t rank, uint32_t *out,
                        cnr_error *err);
/* The value of a one-element input, or of the attribute; *known is 0 if it is not known yet. */
double kit_scalar(const cnr_node *node, int32_t port, const char *attr, int *known);

/* Makes `out`, whose dims are known, a constant of n i64 values. */
cnr_status kit_set_data(const cnr_node *node, cnr_tensor *out, const int64_t *values, int64_t n,
                        cnr_error *err);

/* ---- hooks shared by many operators ---- */
/* sets out->flops: one operation for each output element, 0 if that number is unknown */
void kit_cost_flops(const cnr_node *node, cnr_cost *out);

/* ---- adding nodes ---- */
/* A whole attribute that is set. */
static inline cnr_attr kit_attr_int(const char *name, int64_t value) {
    return (cnr_attr){.name = name, .type = CNR_ATTR_INT, .set = 1, .i = value};
}
/* A float attribute that is set. */
static inline cnr_attr kit_attr_float(const char *name, double value) {
    return (cnr_attr){.name = name, .type = CNR_ATTR_FLOAT, .set = 1, .f = value};
}
/* A list attribute that is set; values must last as long as it. */
static inline cnr_attr kit_attr_ints(const char *name, const int64_t *values, int64_t n) {
    return (cnr_attr){.name = name, .type = CNR_ATTR_INTS, .set = 1, .n = n, .ints = values};
}
/* A gradient's graph under construction: keeps the first failure; later calls then return -1. */
typedef struct kit_build {
    const cnr_host *host;
    struct cnr_graph *graph;
    cnr_status status;
} kit_build;
/* Adds a node `op` with one output and returns its value; -1 where this or an earlier step
 * failed. */
cnr_value kit_node(kit_build *b, const char *op, const cnr_value *inputs, int32_t n_inputs,
                   const cnr_attr *attrs, int32_t n_attrs);
/* Adds a node of one input, without attributes; returns its output, or -1, with b->status set. */
cnr_value kit_node1(kit_build *b, const char *op, cnr_value x);
/* Adds a node of two inputs, without attributes; returns its output, or -1, with b->status set. */
cnr_value kit_node2(kit_build *b, const char *op, cnr_value x, cnr_value y);
/* 1: the value is an output of the graph. */
int kit_is_output(const struct cnr_graph *graph, cnr_value value);
/* Adds a node of three inputs, without attributes; returns its output, or -1, with b->status
 * set. */
cnr_value kit_node3(kit_build *b, const char *op, cnr_value x, cnr_value y, cnr_value z);
/* Adds a tensor of like's type and shape with `value` in every element; returns it, or -1. */
cnr_value kit_filled(kit_build *b, const cnr_tensor *like, double value);
/* The result of a gradient hook: the build's status, with a message. */
cnr_status kit_built(const kit_build *b, const cnr_node *node, cnr_error *err);
/* Adds a reshape of x to the dims of `shape`; returns its output, or -1. */
cnr_value kit_reshape(kit_build *b, cnr_value x, const cnr_tensor *shape);
/* Adds a sum of gradient `g`, of shape `shape`, over the axes along which `operand` was broadcast,
 * to the shape of `operand`; returns it, or -1. */
cnr_value kit_unbroadcast(kit_build *b, cnr_value g, const cnr_tensor *shape,
                          const cnr_tensor *operand);
/* Adds a constant of dtype without axes, of the given value; returns it, or -1. */
cnr_value kit_constant(kit_build *b, int32_t dtype, double value);

/* ---- patterns of nodes, for rewrites ---- */
/* 1: the node's operator is op; node NULL: 0. */
int kit_is(const cnr_node *node, const char *op);
/* The node that produces a value, and its inputs; NULL: no node does. */
const cnr_node *kit_maker(const struct cnr_graph *graph, cnr_value value, const cnr_value **in);
/* The same for a value that one node reads, once, and that is no output of the graph; else NULL. */
const cnr_node *kit_sole_maker(const struct cnr_graph *graph, cnr_value value,
                               const cnr_value **in);
/* 1, and *out, if the value is one constant number, of any type of floats; else 0. */
int kit_number(const struct cnr_graph *graph, cnr_value value, double *out);

/* Adds the nodes that compute a node's first output otherwise, before the node, and returns their
 * value. -1: the node stays; then nothing was added. */
typedef cnr_value (*kit_replacement)(kit_build *b, const cnr_node *node, const cnr_value *in);
/* Offers each node that is used to `replacement`. Returns the number of nodes replaced; negative:
 * a failure of the rewrite. */
int32_t kit_replace_nodes(struct cnr_graph *graph, const cnr_rewrite *rewrite,
                          kit_replacement replacement, cnr_error *err);

/* Builds in g an example net that the rewrite of activations changes. */
cnr_status ops_example_activations(struct cnr_graph *g, cnr_error *err);
/* Builds in g an example net that the rewrite of normalisations changes. */
cnr_status ops_example_normalization(struct cnr_graph *g, cnr_error *err);
/* Builds in g an example net that the rewrite of einsum changes. */
cnr_status ops_example_einsum(struct cnr_graph *g, cnr_error *err);
/* Builds in g an example net that the rewrite of gather changes. */
cnr_status ops_example_gather(struct cnr_graph *g, cnr_error *err);
/* Builds in g an example net that the rewrite of scales changes. */
cnr_status ops_example_scale(struct cnr_graph *g, cnr_error *err);
/* Example net for the rewrite of neutral numbers. */
cnr_status ops_example_neutral(struct cnr_graph *g, cnr_error *err);
/* Builds in g an example net that the rewrite of attention changes. */
cnr_status ops_example_attention(struct cnr_graph *g, cnr_error *err);
/* Example net for the rewrite of pads. */
cnr_status ops_example_pads(struct cnr_graph *g, cnr_error *err);
/* Example net for the rewrite of normalisations of rows. */
cnr_status ops_example_rows(struct cnr_graph *g, cnr_error *err);
/* Example net for the rewrite of branches. */
cnr_status ops_example_branches(struct cnr_graph *g, cnr_error *err);
/* Example net for the rewrite of RMS normalisations. */
cnr_status ops_example_rms(struct cnr_graph *g, cnr_error *err);
/* Example net for the rewrite of taps. */
cnr_status ops_example_taps(struct cnr_graph *g, cnr_error *err);

#endif
