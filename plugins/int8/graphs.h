/* What the rewrites share: looking at graphs, adding quantised nodes, numbers in metadata. */
#ifndef INT8_GRAPHS_H
#define INT8_GRAPHS_H

#include "int8.h"

typedef struct cnr_graph graph;

/* Node `index`'s operator has this name. */
static inline int graph_is(const cnr_node *node, const char *op) {
    return node && strcmp(node->desc->name, op) == 0;
}
/* Output 0 is input 0's numbers, each at another place or the largest of several, so that whole
 * numbers can take their way; concat joins all its inputs. */
int graph_passes(const cnr_node *node);
int graph_joins(const cnr_node *node);
/* Constants of the graph, of that name, or (stem NULL) one that is found; -1 when it can't. */
cnr_value graph_f32(graph *g, const char *stem, const char *suffix, const float *v, int64_t n);
cnr_value graph_bytes(graph *g, const char *stem, const char *suffix, int32_t dtype, const void *v,
                      int32_t rank, const int64_t *dim);
/* Adds node `name` with those attributes of `like` (NULL: none) that were given and that `op` has;
 * its output, or -1. */
cnr_value graph_add(graph *g, const char *op, const char *name, const cnr_node *like,
                    const cnr_value *in, int32_t n_in);
/* And with these attributes, which `like` has not given. */
cnr_value graph_add_with(graph *g, const char *op, const char *name, const cnr_node *like,
                         const cnr_attr *more, int32_t n_more, const cnr_value *in, int32_t n_in);

#endif
