/* show: prints plans, candidates, nets and attributes; lists candidates; parses encodings. */
#ifndef CNRI_SHOW_H
#define CNRI_SHOW_H

#include "policy/policy.h"
#include "run/run.h"

/* ---- plan.c, rows.c, candidates.c: plans, and the candidates that they were chosen from ---- */
/* alone.c: computes the cost of the net on that device. A node that it can't run is taken to run on
 * the first other device that can. */
cnr_status cnri_table_alone(const cnri_table *t, int32_t device, cnri_cost *out, cnr_error *err);
/* Prints the rows of the nodes that match the pattern `node` (NULL: all): as text, or as JSON with
 * an object for each row and one for the net at the end. */
cnr_status cnri_table_print(const cnri_table *t, const char *node, bool json, cnri_text *out,
                            cnr_error *err);
const char *cnri_source_name(cnri_source source);           /* "recorded", "estimate" or "guess" */
const char *cnri_row_why(const cnri_table *t, int32_t row); /* why it was chosen; "": it was not */
/* Number of multiply-accumulates of a kernel's step; 0 for other steps. Counts the nodes of a
 * subgraph, but not those that are fused behind a node. Of a split node, counts the step's part.
 * as_stored: counts only the numbers that an encoded weight stores. */
double cnri_step_macs(const cnr_plan *plan, const cnri_step *s, bool as_stored);
/* Prints a table (`cnnrun show`), or a JSON object for each node, each copy and the net. */
void cnri_plan_print(const cnr_plan *plan, bool json, cnri_text *out);
/* A copy step: the value that it copies, the source and the target device, bytes and time. */
typedef struct cnri_transfer_row {
    const char *value, *from, *to;
    uint64_t bytes;
    double ns; /* expected time, from the recorded speed of the link or from a guess */
    cnri_source source;
} cnri_transfer_row;
/* Describes a copy step; false: the step is no copy. */
bool cnri_step_transfer(const cnr_plan *plan, int32_t step, cnri_transfer_row *out);
/* Makes a plan in *out that the caller owns, by the times on record in the cache; `table`: with the
 * table of candidates. */
cnr_status cnri_plan_for_inspection(const cnr_model *m, const cnr_tensor *const *types, int32_t n,
                                    bool table, cnr_plan **out, cnr_error *err);

/* ---- dot.c: the graph in the DOT language of Graphviz ---- */
/* Appends the graph in Graphviz's DOT language. */
void cnri_graph_dot(const cnr_graph *g, cnri_text *out);

/* ---- attributes.c: rows of operator schemas, for help ---- */
/* Prints the default of an attribute; prints nothing if it has none. */
void cnri_attr_print_default(const cnr_attr_spec *row, cnri_text *out);
/* Prints the bounds, such as ", 1 to 4" or ", >= 1"; prints nothing if there are none. */
void cnri_attr_print_bounds(const cnr_attr_spec *row, cnri_text *out);
/* Returns row i of a list of ports. A plugin built with an older header has shorter rows. */
cnr_port cnri_port_at(const cnr_op *op, const cnr_port *rows, int32_t i);

/* ---- encodings.c ---- */
/* Fails with `code` at `where`: "WHAT; there are: NAME, NAME", the names of that kind. */
cnr_status cnri_none_such(int32_t code, int32_t kind, const char *where, const char *what,
                          cnr_error *err);
/* Parses a text such as "sparse-csr:density=0.1". *settings: as cnri_attrs_resolve makes them, to
 * be freed by cnri_free. */
cnr_status cnri_encoding_parse(const char *words, const cnr_encoding **encoding,
                               cnr_attr ***settings, cnr_error *err);

#endif
