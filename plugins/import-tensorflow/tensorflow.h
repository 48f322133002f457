/* What the importer's files share.
 *
 * TensorFlow lays pictures out N H W C, we N C H W. A value has up to two layouts: `plain`, the
 * tensor as TensorFlow has it, and `turned`, with the channels moved to axis 1. Convolutions and
 * their kin take and give turned ones, element-wise operators stay turned when they can, and
 * everything else takes the plain one; the transpose between is made once, when first asked for. */
#ifndef TENSORFLOW_H
#define TENSORFLOW_H

#include "graph.pb-c.h"
#include "import_common.h"

/* A whole number that shapes are made of: known, or open until the net runs. */
typedef struct tf_size {
    int64_t value; /* not known: CNR_DIM_SYMBOL when it is a dimension's, else CNR_DIM_UNKNOWN */
    int32_t known;
    int32_t axis; /* open: factor times this dimension of `of`, plus shift; of NULL: anything */
    const struct tf_layouts *of;
    int64_t factor, shift;
} tf_size;

typedef struct tf_layouts {
    cnr_value plain, turned; /* -1: not made (yet) */
    int32_t rank;            /* of the turned one */
    int32_t dead;            /* on the side of a branch that is not taken */
    const tf_size *sizes;    /* of a vector or number that holds open ones; else NULL */
    int32_t n_sizes;
    int32_t noise; /* random numbers, evenly in [low, high) */
    double low, high;
} tf_layouts;

struct tf_job;
typedef void (*tf_converter)(struct tf_job *j);
typedef IMP_ROW(tf_converter) tf_row;

/* A node of the GraphDef and what became of it. */
typedef struct tf_entry {
    const Tf__NodeDef *node;
    const tf_row *row; /* how it is converted; NULL: it can't be */
    tf_layouts *out;   /* n_out of them; NULL until converted */
    int32_t n_out;
    int32_t state; /* 0 untouched, 1 under way, 2 done */
    size_t next;   /* inputs before this one are done */
    int32_t read;  /* some other node reads it */
    int32_t dead;  /* on the side of a branch that is not taken */
    int32_t failed;
} tf_entry;

typedef struct tf_net {
    imp_net b;
    tf_entry *entries;
    int32_t n, n_made;
    struct cnr_map *index; /* names to entries */
    const cnr_import_args *args;
    const char *outputs; /* "A,B:1", those that are wanted; NULL: what no node reads */
    tf_layouts dead;     /* what dead entries give */
    imp_pool pool;       /* memory that lives as long as this */
} tf_net;

/* ---- names.c ---- */

/* Entries of nodes by name. */
cnr_status tf_index(tf_net *net, const Tf__NodeDef *const *nodes, size_t n, cnr_error *err);
tf_entry *tf_find(const tf_net *net, const char *name, size_t bytes);
/* "name", "name:2", "^name" (control: NULL, as for names that are not there). */
tf_entry *tf_input(const tf_net *net, const char *text, int32_t *output);
const Tf__AttrValue *tf_node_attr(const Tf__NodeDef *node, const char *key);
int tf_is_op(const tf_entry *e, const char *op);
void *tf_block(tf_net *net, size_t bytes); /* freed with the net; NULL: net->b.status says it */
void tf_release(tf_net *net);

/* ---- functions.c ---- */

/* The graph's nodes with all calls of functions replaced by their nodes; memory of host->alloc, or
 * NULL when there is none. */
const Tf__NodeDef **tf_write_out(tf_net *net, const Tf__GraphDef *def, size_t *n);

/* ---- values.c ---- */

cnr_value tf_plain(tf_net *net, tf_layouts *layouts);
cnr_value tf_turned(tf_net *net, tf_layouts *layouts,
                    int32_t rank); /* rank: taken where none is known */
/* Dims as TensorFlow has them, whichever layout is there; returns the rank, -1 unknown. */
int32_t tf_dims(const tf_net *net, const tf_layouts *layouts, int64_t dim[CNR_MAX_RANK]);
/* The data of a value known now; NULL otherwise. */
const cnr_tensor *tf_known(const tf_net *net, const tf_layouts *layouts);
cnr_value tf_node(tf_net *net, const char *op, const char *name, const cnr_value *in, int32_t n_in,
                  const imp_attrs *attrs);

/* ---- constants.c ---- */

int32_t tf_dtype(int32_t type);
/* A constant's data into memory of host->alloc; NULL when fine, else what is wrong (static). */
const char *tf_tensor(const Tf__Tensor *proto, cnr_tensor *out);

/* ---- nodes.c ---- */

const tf_row *tf_row_of(const char *op);       /* NULL: not supported */
void tf_convert(tf_net *net, tf_entry *entry); /* one node whose inputs are done */

/* ---- roads.c: what is converted, in which order, and what the outputs are ---- */

cnr_status tf_build(tf_net *net, cnr_error *err);

#endif
