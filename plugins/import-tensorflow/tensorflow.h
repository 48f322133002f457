/* Shared by the importer's files.
 *
 * TensorFlow orders pictures N H W C, we N C H W. A value has up to two layouts: `plain`,
 * TensorFlow's, and `turned`, with the channels at axis 1. Convolutions and similar operators read
 * and give turned ones, element-wise operators keep a turned layout if they can, and all others use
 * the plain one. The transpose between the layouts is added once, when it is first needed. */
#ifndef TENSORFLOW_H
#define TENSORFLOW_H

#include "graph.pb-c.h"
#include "import_common.h"

/* An integer that shapes are computed from: known, or open until the net runs. */
typedef struct tf_size {
    /* if unknown: CNR_DIM_SYMBOL if it derives from a dimension, else CNR_DIM_UNKNOWN */
    int64_t value;
    int32_t known;
    int32_t axis; /* open: factor times dimension `axis` of `of`, plus shift; of NULL: unrelated */
    const struct tf_layouts *of;
    int64_t factor, shift;
} tf_size;

/* A value, in TensorFlow's layout and with channels on axis 1, whichever exist. */
typedef struct tf_layouts {
    cnr_value plain, turned; /* -1: not created (yet) */
    int32_t rank;            /* rank of the turned layout */
    int32_t dead;            /* on the side of a branch that is not taken */
    const tf_size *sizes;    /* of a vector or scalar with open integers; else NULL */
    int32_t n_sizes;
    int32_t noise; /* random numbers, uniform in [low, high) */
    double low, high;
} tf_layouts;

struct tf_job;
typedef void (*tf_converter)(struct tf_job *j);
typedef IMP_ROW(tf_converter) tf_row;

/* A node of the GraphDef and the state of its conversion. */
typedef struct tf_entry {
    const Tf__NodeDef *node;
    const tf_row *row; /* how it is converted; NULL: not supported */
    tf_layouts *out;   /* n_out values; NULL until converted */
    int32_t n_out;
    int32_t state; /* 0 not visited, 1 in progress, 2 done */
    size_t next;   /* inputs before this one are done */
    int32_t read;  /* another node reads it */
    int32_t dead;  /* on the side of a branch that is not taken */
    int32_t failed;
} tf_entry;

/* A net that is being imported. */
typedef struct tf_net {
    imp_net b;
    tf_entry *entries;
    int32_t n, n_made;
    struct cnr_map *index; /* map from names to entries */
    const cnr_import_args *args;
    const char *outputs; /* requested outputs "A,B:1"; NULL: the values that no node reads */
    tf_layouts dead;     /* the output of all dead entries */
    imp_pool pool;       /* memory that lives as long as the net */
} tf_net;

/* ---- names.c ---- */

/* Makes an entry for each of n nodes, found by its name. */
cnr_status tf_index(tf_net *net, const Tf__NodeDef *const *nodes, size_t n, cnr_error *err);
/* Entry of a node by name; NULL: there is none. */
tf_entry *tf_find(const tf_net *net, const char *name, size_t bytes);
/* The entry of "name" or "name:2", and its *output; NULL for "^name" (a control input) and unknown
 * names. */
tf_entry *tf_input(const tf_net *net, const char *text, int32_t *output);
/* An attribute of a node; NULL: there is none. */
const Tf__AttrValue *tf_node_attr(const Tf__NodeDef *node, const char *key);
/* 1 if the entry is a node of that operator. */
int tf_is_op(const tf_entry *e, const char *op);
/* freed with the net; NULL: net->b.status has the error */
void *tf_block(tf_net *net, size_t bytes);
/* Frees the index and all memory of the net. */
void tf_release(tf_net *net);

/* ---- functions.c: inlining of functions ---- */

/* The graph's nodes, *n, with all function calls inlined; from host->alloc, NULL: out of memory. */
const Tf__NodeDef **tf_write_out(tf_net *net, const Tf__GraphDef *def, size_t *n);

/* ---- values.c ---- */

/* The value in TensorFlow's layout; adds a transpose if there is only the other. */
cnr_value tf_plain(tf_net *net, tf_layouts *layouts);
/* The value with channels on axis 1; adds a transpose if need be. rank: assumed if unknown */
cnr_value tf_turned(tf_net *net, tf_layouts *layouts, int32_t rank);
/* Dims in TensorFlow's order, whichever layout exists; returns the rank, -1 unknown. */
int32_t tf_dims(const tf_net *net, const tf_layouts *layouts, int64_t dim[CNR_MAX_RANK]);
/* The data of a value that is known at import; NULL otherwise. */
const cnr_tensor *tf_known(const tf_net *net, const tf_layouts *layouts);
/* Adds a node; name NULL: a name that no node has. */
cnr_value tf_node(tf_net *net, const char *op, const char *name, const cnr_value *in, int32_t n_in,
                  const imp_attrs *attrs);

/* ---- constants.c ---- */

/* Our type for TensorFlow's; 0: not supported. */
int32_t tf_dtype(int32_t type);
/* Reads a constant's data, which may lie in the file at `path`, into memory of host->alloc. Returns
 * NULL, or the problem (static text). */
const char *tf_tensor(const char *path, const Tf__Tensor *proto, cnr_tensor *out);

/* ---- nodes.c ---- */

const tf_row *tf_row_of(const char *op); /* how an operator is converted; NULL: not supported */
/* converts a node whose inputs have been converted */
void tf_convert(tf_net *net, tf_entry *entry);

/* ---- order.c: the nodes to convert, their order, and the outputs ---- */

/* Converts all nodes that outputs need, in order, and adds the outputs. */
cnr_status tf_build(tf_net *net, cnr_error *err);

#endif
