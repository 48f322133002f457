/* Shared by the rewrites: access to graphs, quantised nodes, numbers in metadata. */
#ifndef INT8_GRAPHS_H
#define INT8_GRAPHS_H

#include "int8.h"

typedef struct cnr_graph graph;

/* Whether the node's operator has this name. */
static inline int graph_is(const cnr_node *node, const char *op) {
    return node && strcmp(node->desc->name, op) == 0;
}
/* graph_passes: whether each element of output 0 is one of input 0 or a maximum of several, so that
 * the node can work on quantised values. graph_joins: whether the node is a concat. */
int graph_passes(const cnr_node *node);
/* 1 if the node is a concat. */
int graph_joins(const cnr_node *node);
/* Number of the slopes by which a node multiplies what is negative in its input and nothing else,
 * as leaky_relu and prelu do: 1, or one for each channel (axis 1). They go to `out` (NULL:
 * nowhere), which has room for all channels. 0: the node is another, or its slopes are unknown. */
int64_t graph_slopes(const cnr_node *node, float *out);
/* Adds the node's slopes as a constant named STEM.int8_slope; -1: failed. */
cnr_value graph_slope_constant(graph *g, const char *stem, const cnr_node *node);
/* Adds a constant named stem + suffix, or (stem NULL) with a generated name; -1: failed. */
cnr_value graph_f32(graph *g, const char *stem, const char *suffix, const float *v, int64_t n);
/* Adds a constant of bytes, named STEM.SUFFIX; -1: failed. */
cnr_value graph_bytes(graph *g, const char *stem, const char *suffix, int32_t dtype, const void *v,
                      int32_t rank, const int64_t *dim);
/* Adds node `name` with those attributes of `like` (NULL: none) that were set and that `op` has.
 * Returns its output, or -1. */
cnr_value graph_add(graph *g, const char *op, const char *name, const cnr_node *like,
                    const cnr_value *in, int32_t n_in);
/* Like graph_add, with the `n_more` attributes `more` in addition, which `like` does not set.
 * Returns the new node's output, or -1. */
cnr_value graph_add_with(graph *g, const char *op, const char *name, const cnr_node *like,
                         const cnr_attr *more, int32_t n_more, const cnr_value *in, int32_t n_in);

/* Builds in g a small graph that the rewrite of this name changes, with output y. */
cnr_status int8_example_fold(graph *g, cnr_error *err);
/* Builds the example by which the rewrite of rewrite_pass.c is judged. */
cnr_status int8_example_pass(graph *g, cnr_error *err);
/* Builds the example by which the rewrite of rewrite_equalize.c is judged. */
cnr_status int8_example_equalize(graph *g, cnr_error *err);

#endif
