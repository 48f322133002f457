/* graph: values and nodes, shape inference, rewrites; knows operators only by their descriptors.
 *
 *     values  v0 data [-2,1,28,28]   v1 conv1.weight const   v2 conv1.bias const   v3 conv1
 *     nodes   n0 conv (v0 v1 v2) -> (v3)      n1 relu (v3) -> (v4) ...
 *
 * A node's cnr_node view points at the tensors inside the values, so hooks see types directly. */
#ifndef CNRI_GRAPH_H
#define CNRI_GRAPH_H

#include "base/base.h"
#include "host/host.h"
#include <stdatomic.h>

/* What a file says of the data of a weight; not compared yet when the file is mapped. Owned by the
 * graph that was read, shared by its copies. */
typedef struct cnri_seal {
    const char *file, *name;
    const void *data;
    uint64_t bytes;
    const uint8_t *digest; /* SHA-256 */
    const uint8_t *print;  /* as cnri_fingerprints makes it; NULL: an older file */
    atomic_bool releases;  /* its pages are not to stay in memory: see cnri_digest */
    atomic_int sound;      /* compared, with which of them (core/engine/graph/seal.c) */
} cnri_seal;

/* How data follows from another weight's: its channels, n times scaled one after the other. */
typedef struct cnri_late {
    cnr_value from;
    int32_t axis, n;
    int64_t channels;
    float *scales; /* n x channels */
} cnri_late;

typedef struct cnri_value {
    char *name;
    cnr_tensor *type; /* own allocation: stable address; data owned unless `borrowed` */
    int32_t producer; /* node index, -1: input or constant */
    int32_t output;   /* which output of the producer */
    bool is_input, borrowed, unfilled; /* unfilled: a weight without data yet */
    cnr_init init;                     /* for an unfilled parameter */
    int32_t uses;                      /* by inputs of nodes and as outputs of the graph */
    cnri_seal *seal; /* of data that is a file's; NULL: the data is our own, or believed */
    cnri_late *late; /* NULL: the data is there; else it is space for what late.c makes */
} cnri_value;

typedef struct cnri_node {
    cnr_node view;      /* name, attrs, inputs/outputs arrays owned by the graph */
    char *name, *where; /* where: "net.lua:14" or NULL */
    cnr_value *in, *out;
    bool borrowed; /* the attributes belong to the graph this one is a copy of */
} cnri_node;

typedef struct cnri_problem {
    char *where, *text;
} cnri_problem;

typedef struct cnr_graph {
    char *name;
    CNRI_VEC(cnri_value) values;
    CNRI_VEC(cnri_node *) nodes; /* topological order */
    CNRI_VEC(cnr_value) inputs;
    struct {
        cnr_value *at;
        int32_t n, capacity;
        char **names;
    } outputs;
    CNRI_VEC(char *) symbols;
    CNRI_VEC(cnri_problem) problems;
    CNRI_VEC(char *) warnings; /* what is odd and may be meant: "where: text" */
    struct {
        char **keys, **texts;
        int32_t n, capacity;
    } meta;
    int32_t insert_before;
    cnri_mapping file;           /* backs borrowed data; unmapped with the graph */
    const cnri_mapping *backing; /* of a copy: the file of the graph that it is one of */
    bool late_folds; /* a plan's: weights that others are folded into wait until they are read */
    struct {
        cnri_seal *at;
        char *file;
    } seals;
    bool is_compiled; /* it came of a compiled model, whose plan its model looks for */
    bool no_verify;   /* weights are believed, whatever digests say */
    bool out_of_memory;
    bool updates; /* nodes write to the variables that they update: its data is whose plans train it
                   */
    int64_t *ranges; /* what dim_range of its values points to; NULL: nothing */
    bool renames;    /* while hooks and rewrites add nodes: a name that is taken gets a suffix */
    cnri_map value_names, node_names;     /* name -> index + 1; see build.c */
    struct cnri_calibration *calibration; /* NULL: nobody asks for whole numbers */
} cnr_graph;

/* A type that is not known yet, or never will be since the node that makes it failed. */
static inline bool cnri_is_type_unknown(const cnr_tensor *t) { return t->dtype == CNR_DTYPE_NONE; }

/* ---- the host table's graph slots, described in plugin.h ---- */
cnr_value cnri_graph_input(cnr_graph *g, const char *name, const cnr_tensor *type);
int32_t cnri_graph_symbol(cnr_graph *g, const char *name);
cnr_value cnri_graph_constant(cnr_graph *g, const char *name, const cnr_tensor *type);
cnr_status cnri_graph_node(cnr_graph *g, const char *op, const char *name, const char *where,
                           const cnr_value *inputs, int32_t n_inputs, const cnr_attr *const *attrs,
                           int32_t n_attrs, cnr_value *outputs, int32_t n_outputs);
cnr_status cnri_graph_output(cnr_graph *g, cnr_value value, const char *name);
cnr_status cnri_graph_set_meta(cnr_graph *g, const char *key, const char *text);
const char *cnri_graph_meta(const cnr_graph *g, const char *key);
void cnri_graph_problem(cnr_graph *g, const char *where, const char *format, ...) CNRI_PRINTF(3, 4);
cnr_value cnri_graph_input_at(const cnr_graph *g, int32_t index);
cnr_value cnri_graph_output_at(const cnr_graph *g, int32_t index);
const cnr_tensor *cnri_graph_type(const cnr_graph *g, cnr_value value);
const char *cnri_graph_value_name(const cnr_graph *g, cnr_value value);
int32_t cnri_graph_producer(const cnr_graph *g, cnr_value value);
int32_t cnri_graph_uses(const cnr_graph *g, cnr_value value);
cnr_status cnri_graph_replace(cnr_graph *g, cnr_value from, cnr_value to);
cnr_status cnri_graph_remove(cnr_graph *g, int32_t node);
void cnri_graph_insert_before(cnr_graph *g, int32_t node);
const char *cnri_graph_symbol_name(const cnr_graph *g, int32_t symbol);

/* ---- build.c ---- */
cnr_graph *cnri_graph_new(const char *name);
void cnri_graph_free(cnr_graph *g);
void cnri_graph_install(cnr_host *host); /* fills the graph slots of the table */
cnr_graph *
cnri_graph_copy(const cnr_graph *g); /* weights are borrowed from g, which must outlive it */
/* ... or its own, weights, attributes and all; CNR_E_FORMAT: damaged weights. */
cnr_status cnri_graph_clone(const cnr_graph *g, cnr_graph **out, cnr_error *err);
/* "x [2,3,batch] f32" into a text. */
void cnri_type_print(const cnr_graph *g, const cnr_tensor *type, cnri_text *out);
/* Fills the types of the outputs, and their data where it follows from constants. Failures become
 * problems and leave the types unknown. */
cnr_status cnri_node_infer(cnr_graph *g, cnri_node *node);
/* A constant whose data stays where it is (a mapped file). */
cnr_value cnri_graph_borrow(cnr_graph *g, const char *name, const cnr_tensor *type);
/* cnri_graph_node for a stored node: what it lacks stays lacking, no parameter is made. */
cnr_status cnri_node_load(cnr_graph *g, const char *op, const char *name, const char *where,
                          const cnr_value *inputs, int32_t n_inputs, const cnr_attr *const *attrs,
                          int32_t n_attrs, cnr_value *outputs, int32_t n_outputs);
cnr_value cnri_graph_find(const cnr_graph *g, const char *value_name); /* -1: none */
/* Copies data into weight `value`, checking dtype and shape. */
cnr_status cnri_graph_fill(cnr_graph *g, cnr_value value, const cnr_tensor *data, cnr_error *err);
/* ---- seal.c: whoever is about to read weights asks first; CNR_E_FORMAT: damaged. `threads` 0: as
 * many as there are processors ---- */
/* All weights in use, or the values that are wanted. Damage is found by fingerprints; only digests,
 * `exact`, tell data apart from what someone made to look like it. */
cnr_status cnri_graph_verify_weights(const cnr_graph *g, const bool *wanted, bool exact,
                                     int32_t threads, cnr_error *err);
cnr_status cnri_value_verify(const cnri_value *v, bool exact, int32_t threads, cnr_error *err);

/* ---- late.c ---- */
/* Rows of a late weight, and one of them written to its place in `to`, which has space for all. */
int64_t cnri_late_rows(const cnr_graph *g, cnr_value value);
void cnri_late_write(const cnr_graph *g, cnr_value value, int64_t row, float *to);
/* Computes the data of a late weight and keeps it; does nothing for others. */
void cnri_late_keep(cnr_graph *g, cnr_value value);
/* Returns the pages of a weight in a mapped file to the system, until somebody reads them again; of
 * a late weight, those of the weight that it is computed from. */
void cnri_value_release_pages(const cnr_graph *g, cnr_value value);
/* Whether the data of a constant lies in a file that is mapped, so that its pages can be released.
 */
bool cnri_value_in_file(const cnr_graph *g, cnr_value value);

/* Filling by name, one after the other; what does not fit is told in the end, all together. */
typedef struct cnri_filling {
    cnr_graph *graph;
    cnri_text misfits;
    int32_t n;
} cnri_filling;
/* Fails only for want of memory. `data` NULL: the one named is no good, as *err says. */
cnr_status cnri_filling_add(cnri_filling *f, const char *name, const cnr_tensor *data,
                            cnr_error *err);
/* Nothing may be left unfilled. `path`: where the weights come from. Frees what f holds. */
cnr_status cnri_filling_end(cnri_filling *f, cnr_status status, const char *path, cnr_error *err);
/* Fills every unfilled weight by its init from `seed`, scaled by its fan-in and by what it will
 * meet (spread.c), so that activations neither die nor overflow. */
cnr_status cnri_graph_fill_random(cnr_graph *g, uint64_t seed, cnr_error *err);
/* Gives unfilled weights memory, for a net that is looked at but never run: what is large is never
 * touched, so it takes no memory, and holds anything. What finds no memory stays unfilled. */
void cnri_graph_fill_blank(cnr_graph *g);
/* Logs what is odd and may be meant, and keeps it for what tells of results (`--json`). */
void cnri_graph_warn(cnr_graph *g, const char *where, const char *format, ...) CNRI_PRINTF(3, 4);
/* CNR_OK, or an error that summarises the problems (each is logged whole at ERROR level). Also
 * refuses a graph with no outputs, or unfilled weights when `filled` is asked. */
cnr_status cnri_graph_status(const cnr_graph *g, bool filled, cnr_error *err);
/* Whether an input or a weight decides shapes, so that a plan is made for its data. */
bool cnri_value_decides_shapes(const cnr_graph *g, cnr_value value);
/* Infers every type again after symbols were bound: dims[i] of symbol i, or input types given. An
 * input type with data becomes a constant (see above). */
cnr_status cnri_graph_bind(cnr_graph *g, const cnr_tensor *const *input_types, int32_t n,
                           cnr_error *err);

/* ---- ranges.c: sizes that vary between plans of a net ---- */
/* Metadata "symbol.NAME.range", "1,16"; false: there is none. */
bool cnri_symbol_range(const cnr_graph *g, int32_t symbol, int64_t range[2]);
/* "NAME=LEAST..LARGEST" into metadata. */
cnr_status cnri_graph_add_range(cnr_graph *g, const char *text, cnr_error *err);
/* Sizes by symbol, each in its range; one below 0 becomes the least. */
cnr_status cnri_ranges_check(const cnr_graph *g, int64_t *sizes, cnr_error *err);

/* The variable that output `output` of a node is the new value of; -1: none, or not in this
 * graph. */
cnr_value cnri_node_updates(const cnr_graph *g, const cnri_node *node, int32_t output);

/* ---- rewrite.c: the core's own rewrites in general terms (identity, fold-constants, dead,
 * fold-affine) and those of plugins, to a fixed point. Rewrites for a device run if one of
 * `devices` is such a device (n_devices 0: none is). ---- */
cnr_status cnri_graph_rewrite(cnr_graph *g, const char *const *off,
                              const cnr_device *const *devices, int32_t n_devices, cnr_error *err);
/* Once, those that change weights alone: before these are put in a form that nothing can be folded
 * into. */
cnr_status cnri_graph_fold(cnr_graph *g, cnr_error *err);
/* Names and summaries of all, for --help: false past the end. */
bool cnri_rewrite_at(int32_t index, const char **name, const char **summary);

/* ---- calibration.c ---- */
typedef struct cnri_range {
    double low, high;
    bool seen;
} cnri_range;
typedef struct cnri_quantised_value { /* as host->graph_set_quantised tells */
    cnr_value real, stored;
    double scale, zero, low;
} cnri_quantised_value;
/* Rewrites are to quantise the nodes that `wanted` holds by index, by `ranges` of all values that
 * there are now, which must outlive the graph. */
cnr_status cnri_graph_request_quantise(cnr_graph *g, const bool *wanted, const cnri_range *ranges,
                                       cnr_error *err);
void cnri_calibration_free(cnr_graph *g); /* nobody asks any more; NULL: nothing */
const cnri_quantised_value *cnri_graph_quantised_at(const cnr_graph *g,
                                                    int32_t index); /* NULL: end */

#endif
