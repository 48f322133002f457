/* Shared by the importer's files. */
#ifndef TORCH7_H
#define TORCH7_H

#include "import_common.h"

/* ---- read.c: a file as a tree of Lua values. Text and elements stay in the file's memory. ---- */

/* Kinds of values. */
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

/* Element type of a storage. */
typedef struct t7_element {
    const char *name; /* the part between "torch." (or "torch.Cuda") and "Storage" */
    int32_t bytes;
    int32_t dtype;
} t7_element;

/* A value that was read. */
typedef struct t7_value {
    t7_kind kind;
    int32_t rank;     /* tensor */
    double number;    /* of a number or boolean */
    const char *text; /* string; class of an object, tensor or storage: not terminated by 0 */
    size_t n_text;
    const struct t7_value **pairs;  /* table: key, value, key, value ... */
    int64_t n;                      /* table: pairs; storage: elements; tensor: offset, from 1 */
    const struct t7_value *content; /* object: its table; tensor: its storage */
    const int64_t *dim;             /* tensor: sizes, then strides */
    const uint8_t *data;            /* of a storage */
    const t7_element *element;      /* storage: its element type */
} t7_value;

/* A file that is being read. */
typedef struct t7_file {
    const char *path;
    const uint8_t *data;
    size_t bytes, at;
    int ascii, long_bytes;
    const t7_value **objects; /* by index, for back references */
    int64_t n_objects;
    imp_pool pool; /* memory of the tree */
    int depth;
    cnr_error *err;
} t7_file;

/* The root object; NULL with err filled. The file's bytes must outlive it. */
const t7_value *t7_read(t7_file *f);
/* Frees all values. */
void t7_release(t7_file *f);
/* 1 if the bytes begin like a Torch7 file, else 0. */
int t7_looks_right(const uint8_t *head, size_t n);

/* ---- value.c: access to the tree ---- */

int t7_is(const t7_value *v, const char *text); /* 1 if v's text or class is `text` */
/* A field of a table or object; NULL: missing or nil. */
const t7_value *t7_field(const t7_value *v, const char *name);
/* item `index` of a list, from 1; NULL: none */
const t7_value *t7_item(const t7_value *v, int64_t index);
/* Number in a field; `fallback`: there is none. */
double t7_number(const t7_value *v, const char *field, double fallback);
/* Whole number in a field; `fallback`: there is none. */
int64_t t7_int(const t7_value *v, const char *field, int64_t fallback);
/* True or false in a field; `fallback`: there is none. */
int t7_bool(const t7_value *v, const char *field, int fallback);
/* Writes the integers of a torch.LongStorage, tensor or list to out, at most max; returns how many,
 * -1: it is none of these. */
int32_t t7_ints(const t7_value *v, int64_t *out, int32_t max);
/* Number of elements of a tensor; -1: not a tensor, or it exceeds its storage. */
int64_t t7_count(const t7_value *tensor);
/* writes all elements of a tensor, in order, to out */
void t7_floats(const t7_value *tensor, float *out);
/* Copies the class without its package into `out`; 0: not a module of nn and related packages. */
int t7_class(const t7_value *m, char *out, size_t room);

/* ---- layers.c: converts modules to nodes ---- */

enum { T7_MAX_BRANCHES = 128, T7_MAX_NESTED = 64, T7_MAX_LAYERS = 1 << 14 };

typedef struct t7_flow { /* the data between modules: one value, or a table of values */
    cnr_value at[T7_MAX_BRANCHES];
    int32_t n, is_table;
} t7_flow;

/* A net that is being imported. */
typedef struct t7_net {
    imp_net b;
    /* bound on the number of elements that weights may still have: a few times what the file holds,
     * however often it refers to them */
    int64_t budget;
    int32_t n_layers, depth;
} t7_net;

/* A module that is being converted. */
typedef struct t7_job {
    t7_net *net;
    const t7_value *m; /* the module that is converted */
    const char *kind;  /* its class without "nn." */
    const char *name;  /* name of its node */
    const char *op;    /* op: of its table row */
    const t7_flow *in;
    t7_flow *out;
    cnr_value x; /* the only input; -1: a table, or an input that failed */
    int failed;
} t7_job;

/* Converts the module; problems are added to the graph. */
void t7_module(t7_net *net, const t7_value *m, const char *path, const t7_flow *in, t7_flow *out);
/* Notes a problem of the module and marks it as failed. */
void t7_problem(t7_job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the output to one value. */
void t7_give(t7_job *j, cnr_value v);

/* Adds a node named after the module; -1: see the problems. */
cnr_value t7_op(t7_job *j, const char *op, const char *suffix, const cnr_value *in, int32_t n_in,
                const imp_attrs *attrs);
/* sets the output to an operator on x alone */
void t7_give_op(t7_job *j, const char *op, const imp_attrs *attrs);
/* size of axis 1 of the input; 0: unknown, and the layer has failed */
int64_t t7_channels(t7_job *j);
/* Reads the fields of a two-dimensional window, kH kW dH dW padH padW, and adds them to l; 0 with a
 * problem: they are wrong. */
int t7_window(t7_job *j, imp_attrs *l, int64_t kernel[2], int64_t stride[2], int64_t pad[4]);

/* ---- the table row for a class of module, or NULL ---- */

typedef void (*t7_convert)(t7_job *j);
typedef IMP_ROW(t7_convert) t7_row;
/* tables.c: row of containers, and of modules that read or give tables; NULL: none */
const t7_row *t7_table_row(const char *kind);
void t7_graph(t7_job *j); /* graph.c: converts nn.gModule */
/* windows.c: row of pooling, padding, resizing; NULL: none */
const t7_row *t7_window_row(const char *kind);
/* shapes.c: row of modules that move, slice or reduce elements; NULL: none */
const t7_row *t7_shape_row(const char *kind);
/* Our axis for one counted from 1, in a sample of nInputDims axes or in the batch; -1: wrong. */
int64_t t7_axis(t7_job *j, int64_t dimension, int64_t inner);

/* ---- size.c: infers the input's size from the layers ---- */

/* Size of a net's input, found from its modules. */
typedef struct t7_size {
    int64_t dim[CNR_MAX_RANK];
    int32_t rank;      /* of a sample; 0: unknown */
    int open;          /* fully convolutional: accepts any height and width */
    int64_t low, high; /* several sizes fit, from low to high; 0: none does */
} t7_size;
/* Finds the size of the input from what its first reader and the layers behind need. */
void t7_find_size(const t7_value *m, t7_size *out);

#endif
