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

/* The digests that a file stores for the data of one weight. The data of a mapped file is
 * compared with them later. The graph that was read owns this; copies share it. */
typedef struct cnri_seal {
    const char *file, *name;
    const void *data;
    uint64_t bytes;
    const uint8_t *digest; /* SHA-256 of the data, 32 bytes */
    const uint8_t *print;  /* as cnri_fingerprints makes it; NULL: an older file */
    atomic_bool releases;  /* its pages are not to stay in memory: see cnri_digest */
    atomic_int sound;      /* compared, with which of them (core/engine/graph/seal.c) */
} cnri_seal;

/* How a late weight is computed from another: each of its channels is multiplied by n scales,
 * one after the other. */
typedef struct cnri_late {
    cnr_value from;
    int32_t axis, n;
    int64_t channels;
    float *scales; /* n rows of `channels` numbers */
} cnri_late;

/* A value of a graph: an input, a constant or an output of a node. */
typedef struct cnri_value {
    char *name;
    /* An allocation of its own, so the address stays; its data is owned unless `borrowed`. */
    cnr_tensor *type;
    int32_t producer; /* index of the node that computes it; -1: an input or constant */
    int32_t output;   /* number of the producer's output */
    bool is_input, borrowed, unfilled; /* unfilled: a weight that has no data yet */
    cnr_init init;                     /* initialiser of a weight that is unfilled */
    int32_t uses; /* number of readers: inputs of nodes and outputs of the graph */
    /* Digests of data that lies in a file; NULL: the data is in memory, or is not checked. */
    cnri_seal *seal;
    /* NULL: `type` has the data; else it has room for the data that late.c computes. */
    cnri_late *late;
    bool is_aside; /* the data lies in a mapping of its own of the graph's temporary file */
    bool was_late; /* `type` has the data that late.c computed, which lies in no file */
    bool unfolded; /* nothing is folded into it, so that it stays as the file has it */
} cnri_value;

/* A node with what only the engine needs to know. */
typedef struct cnri_node {
    cnr_node view;      /* the graph owns its name, attributes and arrays */
    char *name, *where; /* where: place in the script, "net.lua:14", or NULL */
    cnr_value *in, *out;
    bool borrowed; /* the attributes belong to the graph that this one is a copy of */
} cnri_node;

/* Something wrong that was found while a graph was built. */
typedef struct cnri_problem {
    char *where, *text;
} cnri_problem;

/* A net: values, nodes in topological order, inputs, outputs, symbols and metadata. */
typedef struct cnr_graph {
    char *name;
    CNRI_VEC(cnri_value) values;
    CNRI_VEC(cnri_node *) nodes; /* in topological order */
    CNRI_VEC(cnr_value) inputs;
    struct {
        cnr_value *at;
        int32_t n, capacity;
        char **names;
    } outputs;
    CNRI_VEC(char *) symbols;
    CNRI_VEC(cnri_problem) problems;
    CNRI_VEC(char *) warnings; /* "where: text" of what is unusual but allowed */
    struct {
        char **keys, **texts;
        int32_t n, capacity;
    } meta;
    int32_t insert_before;
    cnri_mapping file;           /* the file that borrowed data lies in; unmapped with the graph */
    const cnri_mapping *backing; /* in a copy: the file of the graph that was copied */
    /* In a plan's copy: scaled weights are computed when they are read, not at once. */
    bool late_folds;
    bool releases; /* under a memory bound: what folding reads of a file is given back at once */
    /* A temporary file for large weights (aside.c): wanted under a memory bound; bytes it has. */
    struct {
        bool wanted, opened;
        int fd;
        uint64_t bytes;
    } aside;
    struct {
        cnri_seal *at;
        char *file;
    } seals;
    /* It was read from a compiled model; plans are looked for in that file first. */
    bool is_compiled;
    bool no_verify; /* weights are not compared with their digests */
    bool out_of_memory;
    bool updates; /* nodes write to the variables that they update: its data is whose plans train it
                   */
    int64_t *ranges; /* what dim_range of its values points to; NULL: nothing */
    bool renames;    /* while hooks and rewrites add nodes: a name that is taken gets a suffix */
    cnri_map value_names, node_names;     /* name -> index + 1; see build.c */
    struct cnri_calibration *calibration; /* NULL: nobody asks for whole numbers */
} cnr_graph;

/* True for a type that is not known yet, or that stays unknown because its node failed. */
static inline bool cnri_is_type_unknown(const cnr_tensor *t) { return t->dtype == CNR_DTYPE_NONE; }

/* ---- the host table's graph slots, described in plugin.h ---- */
/* Adds a net input of this type; returns its value, or a negative status. */
cnr_value cnri_graph_input(cnr_graph *g, const char *name, const cnr_tensor *type);
/* Number of the symbol of that name, which is added if it is new; -1: out of memory. */
int32_t cnri_graph_symbol(cnr_graph *g, const char *name);
/* Reads data piece by piece, from offset 0 on. */
typedef cnr_status (*cnri_read_fn)(void *state, uint64_t offset, void *out, uint64_t bytes);
/* Adds a constant with a copy of type->data; -1: see the problems. */
cnr_value cnri_graph_constant(cnr_graph *g, const char *name, const cnr_tensor *type);
/* Adds a node behind the others, or where cnri_graph_insert_before says; fills `outputs`. */
cnr_status cnri_graph_node(cnr_graph *g, const char *op, const char *name, const char *where,
                           const cnr_value *inputs, int32_t n_inputs, const cnr_attr *const *attrs,
                           int32_t n_attrs, cnr_value *outputs, int32_t n_outputs);
/* Makes a value an output; name NULL: the value's name. */
cnr_status cnri_graph_output(cnr_graph *g, cnr_value value, const char *name);
/* Sets, or with text NULL removes, a text of the metadata. */
cnr_status cnri_graph_set_meta(cnr_graph *g, const char *key, const char *text);
/* A text of the metadata; NULL: there is no such key. */
const char *cnri_graph_meta(const cnr_graph *g, const char *key);
/* Notes a problem; loading the graph fails with the first of them. */
void cnri_graph_problem(cnr_graph *g, const char *where, const char *format, ...) CNRI_PRINTF(3, 4);
/* Value of input `index`; -1: there is no such input. */
cnr_value cnri_graph_input_at(const cnr_graph *g, int32_t index);
/* Value of output `index`; -1: there is no such output. */
cnr_value cnri_graph_output_at(const cnr_graph *g, int32_t index);
/* Type of a value; NULL: there is no such value. */
const cnr_tensor *cnri_graph_type(const cnr_graph *g, cnr_value value);
/* Name of a value; "": there is no such value. */
const char *cnri_graph_value_name(const cnr_graph *g, cnr_value value);
/* The same with data that is read; -1: it can't be read, or see the problems. */
cnr_value cnri_graph_constant_read(cnr_graph *g, const char *name, const cnr_tensor *type,
                                   cnri_read_fn read, void *state);
/* Index of the node that computes a value; -1: an input, a constant or no value. */
int32_t cnri_graph_producer(const cnr_graph *g, cnr_value value);
/* How many readers a value has, outputs of the net included. */
int32_t cnri_graph_uses(const cnr_graph *g, cnr_value value);
/* Lets all readers of `from`, and outputs, read `to`. Fails if nodes would be out of order. */
cnr_status cnri_graph_replace(cnr_graph *g, cnr_value from, cnr_value to);
/* Removes a node whose outputs nobody reads; indices behind it move down. */
cnr_status cnri_graph_remove(cnr_graph *g, int32_t node);
/* New nodes go before this one; -1: behind the last. */
void cnri_graph_insert_before(cnr_graph *g, int32_t node);
/* Name of a symbol; NULL: there is no such symbol. */
const char *cnri_graph_symbol_name(const cnr_graph *g, int32_t symbol);

/* ---- build.c ---- */
/* A new empty net; NULL: out of memory. */
cnr_graph *cnri_graph_new(const char *name);
void cnri_graph_free(cnr_graph *g);      /* frees the net; borrowed data stays. NULL: nothing */
void cnri_graph_install(cnr_host *host); /* fills the graph slots of the table */
/* Copies a graph for cnri_graph_free; weights and attributes are borrowed from g, which must
 * outlive the copy. NULL: out of memory. */
cnr_graph *cnri_graph_copy(const cnr_graph *g);
/* Makes a deep copy in *out with weights and attributes of its own, for cnri_graph_free.
 * CNR_E_FORMAT: a weight is damaged. */
cnr_status cnri_graph_clone(const cnr_graph *g, cnr_graph **out, cnr_error *err);
/* Appends a type such as "[2,3,batch] f32" with symbols by name; "?": unknown, "-": NULL. */
void cnri_type_print(const cnr_graph *g, const cnr_tensor *type, cnri_text *out);
/* Fills the types of the outputs, and their data where it follows from constants. Failures become
 * problems and leave the types unknown. */
cnr_status cnri_node_infer(cnr_graph *g, cnri_node *node);
/* Adds a constant whose data stays where it is (a mapped file) and must outlive the net. Returns
 * it; negative: failed. */
cnr_value cnri_graph_borrow(cnr_graph *g, const char *name, const cnr_tensor *type);
/* Adds a node that was read from a file: unlike cnri_graph_node it makes no missing parameters. */
cnr_status cnri_node_load(cnr_graph *g, const char *op, const char *name, const char *where,
                          const cnr_value *inputs, int32_t n_inputs, const cnr_attr *const *attrs,
                          int32_t n_attrs, cnr_value *outputs, int32_t n_outputs);
/* The value of that name; -1: there is none. */
cnr_value cnri_graph_find(const cnr_graph *g, const char *value_name);
/* Copies data into weight `value`, checking dtype and shape. */
cnr_status cnri_graph_fill(cnr_graph *g, cnr_value value, const cnr_tensor *data, cnr_error *err);
/* ---- seal.c: compares weights of a file with their digests; call before weights are read.
 * CNR_E_FORMAT: damaged. `threads` 0: one for each processor ---- */
/* Checks all weights in use, or the values that `wanted` marks. By default fingerprints are
 * compared, which find damage; with `exact` digests are, which also find forged data. */
cnr_status cnri_graph_verify_weights(const cnr_graph *g, const bool *wanted, bool exact,
                                     int32_t threads, cnr_error *err);
/* Checks a weight read from a file against its digest (exact) or fingerprint, once. */
cnr_status cnri_value_verify(const cnri_value *v, bool exact, int32_t threads, cnr_error *err);

/* ---- late.c ---- */
/* Number of rows of a late weight, and a function that computes one of them into its place in
 * `to`, which has room for all. */
int64_t cnri_late_rows(const cnr_graph *g, cnr_value value);
/* Computes one row of a late weight into `to`. */
void cnri_late_write(const cnr_graph *g, cnr_value value, int64_t row, float *to);
/* Computes and keeps the data of a late weight. Does nothing for other values. */
void cnri_late_keep(cnr_graph *g, cnr_value value);
/* ---- aside.c: weights of imported nets in a temporary file ---- */
/* Copies data to the graph's temporary file and maps it in *out; NULL: keep it in memory. An error:
 * it can't be read, or memory is out. */
cnr_status cnri_aside_put(cnr_graph *g, cnri_read_fn read, void *state, uint64_t bytes, void **out);
void cnri_aside_close(cnr_graph *g);
/* Frees a value's data, unless it is borrowed, and sets it to NULL. */
void cnri_value_drop(cnri_value *v);

/* Gives the memory pages of a weight in a mapped file back to the system until they are read
 * again. For a late weight these are the pages of the weight that it is computed from. */
void cnri_value_release_pages(const cnr_graph *g, cnr_value value);
/* Whether the data of a constant lies in a file that is mapped, so that its pages can be released.
 */
bool cnri_value_in_file(const cnr_graph *g, cnr_value value);

/* Fills weights by name one after the other; names and shapes that don't fit are reported
 * together at the end. */
typedef struct cnri_filling {
    cnr_graph *graph;
    cnri_text misfits;
    int32_t n;
} cnri_filling;
/* Fails only if memory is out. `data` NULL: the weight `name` can't be used, as *err says. */
cnr_status cnri_filling_add(cnri_filling *f, const char *name, const cnr_tensor *data,
                            cnr_error *err);
/* Fails if a weight is left unfilled or something did not fit. `path`: the weights' file, for
 * messages. Frees what f holds. */
cnr_status cnri_filling_end(cnri_filling *f, cnr_status status, const char *path, cnr_error *err);
/* Logs a warning and keeps it for results (`--json`). */
void cnri_graph_warn(cnr_graph *g, const char *where, const char *format, ...) CNRI_PRINTF(3, 4);
/* Returns CNR_OK, or an error that summarises the problems, each of which is logged at ERROR
 * level. A graph without outputs is an error too, and with `filled` so are unfilled weights. */
cnr_status cnri_graph_status(const cnr_graph *g, bool filled, cnr_error *err);
/* True if data of an input or weight decides shapes, so that a plan holds for that data only. */
bool cnri_value_decides_shapes(const cnr_graph *g, cnr_value value);
/* Infers every type again after sizes of symbols or types of inputs are given. An input type
 * with data becomes a constant (see above). */
cnr_status cnri_graph_bind(cnr_graph *g, const cnr_tensor *const *input_types, int32_t n,
                           cnr_error *err);

/* ---- ranges.c: sizes that vary between plans of a net ---- */
/* Metadata "symbol.NAME.range", "1,16"; false: there is none. */
bool cnri_symbol_range(const cnr_graph *g, int32_t symbol, int64_t range[2]);
/* Adds the range of a symbol, "NAME=LEAST..LARGEST", to the metadata. CNR_E_ARG: malformed, or no
 * such symbol. */
cnr_status cnri_graph_add_range(cnr_graph *g, const char *text, cnr_error *err);
/* Sizes by symbol, each in its range; one below 0 becomes the least. */
cnr_status cnri_ranges_check(const cnr_graph *g, int64_t *sizes, cnr_error *err);

/* The variable that output `output` of a node is the new value of; -1: none in this graph. */
cnr_value cnri_node_updates(const cnr_graph *g, const cnri_node *node, int32_t output);

/* ---- rewrite.c: applies the core's rewrites (identity, fold-constants, dead, fold-affine) and
 * those of plugins until nothing changes. A rewrite for a device runs if `devices` holds such a
 * device. ---- */
/* Applies the rewrites of the core and of plugins, but for those named in `off`. */
cnr_status cnri_graph_rewrite(cnr_graph *g, const char *const *off,
                              const cnr_device *const *devices, int32_t n_devices, cnr_error *err);
/* Runs the rewrites that change weights only, once: before the weights get a form that nothing
 * can be folded into. */
cnr_status cnri_graph_fold(cnr_graph *g, cnr_error *err);
/* Name and summary of rewrite `index`, for --help; false past the end. */
bool cnri_rewrite_at(int32_t index, const char **name, const char **summary);

/* ---- calibration.c ---- */
/* The range of a value on calibration pictures. */
typedef struct cnri_range {
    double low, high;
    bool seen;
} cnri_range;
/* Scale and zero point of a value, as host->graph_set_quantised describes. */
typedef struct cnri_quantised_value {
    cnr_value real, stored;
    double scale, zero, low;
} cnri_quantised_value;
/* Requests that rewrites quantise the nodes marked in `wanted`, by the measured `ranges` of all
 * current values. Both arrays must outlive the graph. */
cnr_status cnri_graph_request_quantise(cnr_graph *g, const bool *wanted, const cnri_range *ranges,
                                       cnr_error *err);
void cnri_calibration_free(cnr_graph *g); /* withdraws the request; NULL: does nothing */
/* Entry `index` of the quantised values; NULL past the end. */
const cnri_quantised_value *cnri_graph_quantised_at(const cnr_graph *g, int32_t index);

#endif
