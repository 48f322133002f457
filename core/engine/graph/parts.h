/* Declarations shared by the files of this room: making values and nodes, inferring one node. */
#ifndef CNRI_GRAPH_PARTS_H
#define CNRI_GRAPH_PARTS_H

#include "graph/graph.h"

/* Constants of at most so many elements are computed as the graph is built (shape arithmetic). */
enum { CNRI_EAGER_ELEMENTS = 65536 };

/* ---- build.c ---- */
/* Adds a value with a copy of `type` and its quantisation, but not of its data. A duplicate name
 * gets a suffix. -1: out of memory. */
cnr_value cnri_value_add(cnr_graph *g, const char *name, const cnr_tensor *type);
/* Frees data and quantisation; the type becomes unknown. */
void cnri_value_clear(cnri_value *v);
/* Adds `change` to the number of readers of a value; -1: nothing. */
void cnri_value_use(cnr_graph *g, cnr_value value, int32_t change);
void cnri_graph_no_memory(cnr_graph *g); /* notes that memory was out while building */
/* Copies `quant` into one block; false if memory is out. */
bool cnri_quant_copy(const cnr_quant *quant, const cnr_quant **out);

void cnri_node_free(cnri_node *node); /* frees a node and its lists; NULL: nothing */
/* Call after the nodes from `first` on moved by `by` places in the list. */
void cnri_nodes_shifted(cnr_graph *g, int32_t first, int32_t by);

/* ---- calibration.c ---- */
/* What the quantising rewrites are asked for and have answered. */
struct cnri_calibration {
    cnri_map requested; /* names of the nodes to quantise */
    const cnri_range *ranges;
    int32_t n_ranges;
    CNRI_VEC(cnri_quantised_value) answers;
};

/* ---- node.c ---- */
/* The port that input (or output) `index` belongs to; NULL past the last. */
const cnr_port *cnri_port_of(const cnr_op *op, const cnr_port *rows, int32_t n_rows, int32_t index,
                             cnr_port *port_buffer);
/* Points the node's view at the tensors of its values. */
void cnri_node_link(cnr_graph *g, cnri_node *node);
/* Allocates a node with that many inputs and outputs; NULL: out of memory. */
cnri_node *cnri_node_new(const cnr_op *op, const char *name, const char *where, int32_t n_inputs,
                         int32_t n_outputs);
/* Resolves attributes against the operator's schema; mistakes become problems. */
cnr_status cnri_node_attrs(cnr_graph *g, const cnr_op *op, const char *name, const char *where,
                           const cnr_attr *const *attrs, int32_t n_attrs, int32_t spatial,
                           cnr_attr ***out);

/* Computes the outputs of a PURE node whose inputs are all constants of at most `limit` elements.
 * Returns 1 when done, 0 when not possible, negative on failure. */
int32_t cnri_node_evaluate(cnri_node *node, int64_t limit, cnr_error *err);

/* ---- calibration.c ---- */
/* Fills the calibration slots of the host table. */
void cnri_calibration_install(cnr_host *host);

/* ---- import_row.c ---- */
/* Fills the slots for import rows in the host table. */
void cnri_import_rows_install(cnr_host *host);

/* ---- late.c ---- */
/* Makes `value`, whose type has room for its data, a late weight: `from` with its channels
 * scaled. False: it failed. */
bool cnri_late_add(cnr_graph *g, cnr_value value, cnr_value from, int32_t axis, const float *scales,
                   int64_t channels);
void cnri_late_free(cnri_late *late); /* frees the description; NULL: nothing */

/* ---- fold_affine.c ---- */
/* Folds scales and shifts into the weights before them; returns the number of changes, negative
 * on failure. */
int32_t cnri_fold_affine(cnr_graph *g, cnr_error *err);

#endif
