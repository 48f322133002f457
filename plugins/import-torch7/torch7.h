/* What the importer's files share. */
#ifndef TORCH7_H
#define TORCH7_H

#include "import_common.h"

/* ---- read.c: a file as a tree of Lua values. Text and elements stay in the file's bytes. ---- */

typedef enum t7_kind {
    T7_NIL,
    T7_NUMBER,
    T7_BOOLEAN,
    T7_STRING,
    T7_TABLE,
    T7_OBJECT,
    T7_TENSOR,
    T7_STORAGE,
    T7_FUNCTION
} t7_kind;

enum { T7_MAX_DIMS = 64 };

typedef struct t7_element {
    const char *name; /* between "torch." (and "Cuda") and "Storage" */
    int32_t bytes;
    int32_t dtype;
} t7_element;

typedef struct t7_value {
    t7_kind kind;
    int32_t rank;     /* tensor */
    double number;    /* number, boolean */
    const char *text; /* string; class of an object, a tensor or a storage: not ended by 0 */
    size_t n_text;
    const struct t7_value **pairs;  /* table: key, value, key, value ... */
    int64_t n;                      /* table: pairs; storage: elements; tensor: offset, from 1 */
    const struct t7_value *content; /* object: its table; tensor: its storage */
    const int64_t *dim;             /* tensor: sizes, then strides */
    const uint8_t *data;            /* storage */
    const t7_element *element;      /* storage: how one is read */
} t7_value;

typedef struct t7_file {
    const char *path;
    const uint8_t *data;
    size_t bytes, at;
    int ascii, long_bytes;
    const t7_value **objects; /* by index, for references back */
    int64_t n_objects;
    imp_pool pool; /* memory of the tree */
    int depth;
    cnr_error *err;
} t7_file;

/* The root object, or NULL with err filled. The file's bytes must outlive it. */
const t7_value *t7_read(t7_file *f);
void t7_release(t7_file *f);
/* 1 when the bytes begin like a file of this kind. */
int t7_looks_right(const uint8_t *head, size_t n);

/* ---- value.c: looking at the tree ---- */

int t7_is(const t7_value *v, const char *text); /* its text or class is that */
/* A field of a table or an object; NULL: not there, or nil. */
const t7_value *t7_field(const t7_value *v, const char *name);
const t7_value *t7_item(const t7_value *v, int64_t index); /* of a list, from 1 */
double t7_number(const t7_value *v, const char *field, double fallback);
int64_t t7_int(const t7_value *v, const char *field, int64_t fallback);
int t7_bool(const t7_value *v, const char *field, int fallback);
/* Integers of a torch.LongStorage, a tensor or a list; -1: it is none. */
int32_t t7_ints(const t7_value *v, int64_t *out, int32_t max);
/* Elements of a tensor: -1 when it is none or reaches outside its storage. */
int64_t t7_count(const t7_value *tensor);
void t7_floats(const t7_value *tensor, float *out); /* all of them, in order */
/* The class without its package into `out`; 0: not a module of nn or its kin. */
int t7_class(const t7_value *m, char *out, size_t room);

/* ---- layers.c: modules to nodes ---- */

enum { T7_MAX_BRANCHES = 128, T7_MAX_NESTED = 64, T7_MAX_LAYERS = 1 << 14 };

typedef struct t7_flow { /* what runs between modules: a value, or a table of them */
    cnr_value at[T7_MAX_BRANCHES];
    int32_t n, is_table;
} t7_flow;

typedef struct t7_net {
    imp_net b;
    int64_t budget; /* elements that weights may still take: a file can't ask for more than a few
                     * times what it holds, however often it refers to them */
    int32_t n_layers, depth;
} t7_net;

typedef struct t7_job {
    t7_net *net;
    const t7_value *m; /* the module */
    const char *kind;  /* its class without "nn." */
    const char *name;  /* of its node */
    const char *op;    /* of its row */
    const t7_flow *in;
    t7_flow *out;
    cnr_value x; /* the only input; -1: a table, or something failed before */
    int failed;
} t7_job;

/* Adds the module's nodes; what is wrong becomes problems of the graph. */
void t7_module(t7_net *net, const t7_value *m, const char *path, const t7_flow *in, t7_flow *out);
void t7_problem(t7_job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
void t7_give(t7_job *j, cnr_value v);

cnr_value t7_op(t7_job *j, const char *op, const char *suffix, const cnr_value *in, int32_t n_in,
                const imp_attrs *attrs);
void t7_give_op(t7_job *j, const char *op, const imp_attrs *attrs); /* of x alone */
int64_t t7_channels(t7_job *j); /* of the input (axis 1), or 0 with the layer failed */
/* The window's fields of two axes: kH kW dH dW padH padW. */
int t7_window(t7_job *j, imp_attrs *l, int64_t kernel[2], int64_t stride[2], int64_t pad[4]);

/* ---- rows of modules, or NULL ---- */

typedef void (*t7_convert)(t7_job *j);
typedef IMP_ROW(t7_convert) t7_row;
const t7_row *t7_table_row(const char *kind); /* tables.c: containers, what takes or gives tables */
void t7_graph(t7_job *j);                     /* graph.c: nn.gModule */
const t7_row *t7_window_row(const char *kind); /* windows.c: pooling, borders, other grids */
const t7_row *t7_shape_row(const char *kind);  /* shapes.c: what moves, cuts or reduces elements */
/* An axis counted from 1 in a sample of nInputDims axes, or in the batch: ours, or -1. */
int64_t t7_axis(t7_job *j, int64_t dimension, int64_t inner);

/* ---- size.c: the input's size, from what the layers fit ---- */

typedef struct t7_size {
    int64_t dim[CNR_MAX_RANK];
    int32_t rank;      /* 0: not known */
    int open;          /* fully convolutional: any height and width will do */
    int64_t low, high; /* several sizes fit: from, to; 0: none does */
} t7_size;
void t7_find_size(const t7_value *m, t7_size *out);

#endif
