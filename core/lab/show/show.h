/* show: plans, candidates, nets, attributes and encodings as text and as lists. */
#ifndef CNRI_SHOW_H
#define CNRI_SHOW_H

#include "run/run.h"

/* ---- plan.c, rows.c, candidates.c: plans, and what they were chosen from ---- */
/* alone.c: the cost of the net on that device; nodes that it can't run are on the first other
 * device that can. */
cnr_status cnri_table_alone(const cnri_table *t, int32_t device, cnri_cost *out, cnr_error *err);
/* For people, or an object a row and one at the end; node NULL: all. */
cnr_status cnri_table_print(const cnri_table *t, const char *node, bool json, cnri_text *out,
                            cnr_error *err);
const char *cnri_source_name(cnri_source source);           /* "measured" */
const char *cnri_row_why(const cnri_table *t, int32_t row); /* "": it was not taken */
/* Multiply-accumulates of a kernel's step: of its node, without what is fused behind it; of a split
 * node, those of the step's part. as_stored: counts only the numbers that an encoded weight has. */
double cnri_step_macs(const cnr_plan *plan, const cnri_step *s, bool as_stored);
/* A table for people (`show`), or one JSON object a node and one for the net. */
void cnri_plan_print(const cnr_plan *plan, bool json, cnri_text *out);
/* The value that a copy step moves, and its devices. False: the step is no copy. */
typedef struct cnri_transfer_row {
    const char *value, *from, *to;
    uint64_t bytes;
    double ns; /* as expected, by what the record says of the link or by a guess */
    cnri_source source;
} cnri_transfer_row;
bool cnri_step_transfer(const cnr_plan *plan, int32_t step, cnri_transfer_row *out);
/* A plan of the caller's own, by the record that the cache has; with its table, if wanted. */
cnr_status cnri_plan_for_inspection(const cnr_model *m, const cnr_tensor *const *types, int32_t n,
                                    bool table, cnr_plan **out, cnr_error *err);

/* ---- dot.c: for Graphviz ---- */
void cnri_graph_dot(const cnr_graph *g, cnri_text *out);

/* ---- attributes.c: rows of schemas, for help ---- */
/* What an omitted attribute is; nothing when it has none. */
void cnri_attr_print_default(const cnr_attr_spec *row, cnri_text *out);
/* ", 1 to 4", ", >= 1"; nothing without bounds. */
void cnri_attr_print_bounds(const cnr_attr_spec *row, cnri_text *out);
/* Row i of a list of ports whose rows may be shorter than ours. */
cnr_port cnri_port_at(const cnr_op *op, const cnr_port *rows, int32_t i);

/* ---- encodings.c: "sparse-csr:density=0.1"; settings as cnri_attrs_resolve makes them:
 * cnri_free ---- */
cnr_status cnri_encoding_parse(const char *words, const cnr_encoding **encoding,
                               cnr_attr ***settings, cnr_error *err);

#endif
