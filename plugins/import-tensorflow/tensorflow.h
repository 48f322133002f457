/* What the importer's files share.
 *
 * TensorFlow lays pictures out N H W C, we N C H W. A value has up to two twins: `plain`, the tensor
 * as TensorFlow has it, and `turned`, with the channels moved to axis 1. Convolutions and their kin
 * take and give turned ones, element-wise operators stay turned when they can, and everything else
 * takes the plain one; the transpose between is made once, when first asked for. */
#ifndef TENSORFLOW_H
#define TENSORFLOW_H

#include <cnnrun/plugin.h>

#include "graph.pb-c.h"

extern const cnr_host *tf_host;
extern ProtobufCAllocator tf_allocator;

typedef struct tf_twins {
    cnr_value plain, turned; /* -1: not made (yet) */
} tf_twins;

enum { TF_MAX_OUTPUTS = 64 };

/* A node of the GraphDef and what became of it. */
typedef struct tf_entry {
    const Tf__NodeDef *node;
    tf_twins *out;   /* n_out of them; NULL until converted */
    int32_t n_out;
    int32_t state;   /* 0 untouched, 1 under way, 2 done */
    int32_t read;    /* some other node reads it */
    int32_t failed;
} tf_entry;

typedef struct tf_net {
    struct cnr_graph *graph;
    const char *path;
    tf_entry *entries;
    int32_t n, n_made;
    int32_t *index; /* hash of names to entries, room a power of two */
    uint32_t room;
    const cnr_import_args *args;
    cnr_status status; /* E_MEMORY once memory ran out */
} tf_net;

/* The option shape=H,W,C (or N,H,W,C) into dim; -1 when it was not given. */
int32_t tf_shape_option(const tf_net *net, int64_t dim[CNR_MAX_RANK]);

/* values.c */
tf_entry *tf_find(const tf_net *net, const char *name, size_t bytes);
/* "name", "name:2", "^name" (control: NULL). */
tf_entry *tf_input(const tf_net *net, const char *text, int32_t *output);
cnr_value tf_plain(tf_net *net, tf_twins *twins);
cnr_value tf_turned(tf_net *net, tf_twins *twins); /* rank 4 */
const cnr_tensor *tf_type(const tf_net *net, const tf_twins *twins); /* of the plain one, by rank */
/* Logical dims as TensorFlow has them, whichever twin is there; returns the rank, -1 unknown. */
int32_t tf_dims(const tf_net *net, const tf_twins *twins, int64_t dim[CNR_MAX_RANK]);
cnr_value tf_node(tf_net *net, const char *op, const char *name, const cnr_value *in, int32_t n_in,
                  const cnr_attr *const *attrs, int32_t n_attrs);

/* constants.c */
int32_t tf_dtype(int32_t type);
const char *tf_dtype_name(int32_t type);
/* A constant's data into memory of host->alloc; NULL when fine, else what is wrong (static). */
const char *tf_tensor(const Tf__Tensor *proto, cnr_tensor *out);

/* nodes.c: converts one node whose inputs are done. */
void tf_convert(tf_net *net, tf_entry *entry);

#endif
