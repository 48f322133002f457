/* Shared by the importer's files. */
#ifndef MXNET_H
#define MXNET_H

#include "import_common.h"

#include <jansson.h>

/* ---- params.c: the file of named arrays. Elements stay in the file. ---- */

/* An array of a file of parameters. */
typedef struct mx_array {
    const char *name; /* without "arg:" or "aux:", in mx_params.names; not ended by 0 */
    size_t n_name;
    int32_t rank, type; /* type: MXNet's code, 0 is float32 */
    int64_t dim[CNR_MAX_RANK];
    int fd, has_data;
    uint64_t offset; /* of its elements in the file */
    cnr_value value; /* in the graph; -1: not added yet */
} mx_array;

/* A file of parameters. */
typedef struct mx_params {
    mx_array *at;
    int32_t n, next; /* next: index after the last match */
    int fd, is_open;
    uint64_t bytes; /* of the file */
    imp_pool names;
} mx_params;

/* Finds all arrays of a file, which stays open. After a failure, too, it is to be closed. */
cnr_status mx_params_open(mx_params *p, const char *path, cnr_error *err);
/* Closes the file and frees the list; nothing of a struct of zeros. */
void mx_params_close(mx_params *p);
/* 1 if a file begins as files of parameters do. */
int mx_params_looks_right(const uint8_t *head, size_t n);
/* The array of that name; NULL: none. */
mx_array *mx_params_find(mx_params *p, const char *name);
/* Number of elements; 0: no data. */
int64_t mx_array_count(const mx_array *a);
/* Reads n elements from `first` on and converts them to floats; 0: the file is too short now. */
int mx_array_floats(const mx_array *a, int64_t first, int64_t n, float *out);
/* Adds the array as a float32 weight of that shape, name + suffix, which is read in pieces. */
cnr_value mx_array_weight(imp_net *net, const mx_array *a, const char *name, const char *suffix,
                          const int64_t *dim, int32_t rank);

/* ---- symbol.c: the JSON as nodes ---- */

/* A node of the symbol file. */
typedef struct mx_node {
    const char *op, *name;
    /* "attrs", "param", "attr": which of them exist depends on MXNet's version */
    const json_t *attrs[3];
    const json_t *inputs; /* [node, output, ...] each */
    int32_t first, n_out; /* its values: [first, first + n_out) of net->values */
    int sized;            /* height and width depend on the net's input */
} mx_node;

/* The attribute's text, owned by the file; NULL: none, or "None". */
const char *mx_text(const mx_node *n, const char *key);
/* Whole number of an attribute; `fallback`: there is none. */
int64_t mx_int(const mx_node *n, const char *key, int64_t fallback);
/* Number of an attribute; `fallback`: there is none. */
double mx_float(const mx_node *n, const char *key, double fallback);
/* Attribute that is true or false; `fallback`: there is none. */
int mx_bool(const mx_node *n, const char *key, int fallback);
/* Parses whole numbers, "(3, 3)" or "3", into out, at most max; returns how many, -1: malformed, 0:
 * not set. None counts as `none`. */
int32_t mx_ints(const mx_node *n, const char *key, int64_t *out, int32_t max, int64_t none);
/* Parses numbers, "(1, 2)" or "1", into out, at most max; returns how many, -1: malformed, 0: not
 * set. None counts as `none`. */
int32_t mx_floats(const mx_node *n, const char *key, double *out, int32_t max, double none);
/* *from and *output: node and output that input i of a node reads, with 1; 0: there is none. */
int mx_input(const mx_node *n, int32_t i, int64_t *from, int64_t *output);

/* ---- layers.c ---- */

enum { MX_MAX_INPUTS = 512, MX_MAX_OUTPUTS = 256 };

/* A net that is being imported. */
typedef struct mx_net {
    imp_net b;
    const cnr_import_args *args;
    mx_node *nodes;
    int32_t n_nodes;
    cnr_value *values; /* -2: not made yet; -1: failed */
    int32_t n_values;
    mx_params *params; /* NULL: no file of parameters, weights are filled later */
    int64_t budget;    /* bound on the number of elements that weights may still have */
    int open_size;     /* height and width are not fixed by any operator */
    int n_inputs;
} mx_net;

/* A node that is being converted. */
typedef struct mx_job {
    mx_net *net;
    const mx_node *n;
    cnr_value x; /* input 0 */
    int32_t n_in, n_made;
    cnr_value out[MX_MAX_OUTPUTS];
    int32_t n_out;
    int failed;
} mx_job;

/* Notes a problem of the node and marks it as failed. */
void mx_problem(mx_job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a node named after this one; -1: see the problems. */
cnr_value mx_op(mx_job *j, const char *op, const char *suffix, const cnr_value *in, int32_t n_in,
                const imp_attrs *attrs);
cnr_value mx_data(mx_job *j, int32_t i); /* input i as a value; -1 with the job failed */
/* Data input i as a value, whose variable may declare nothing; `channels` and `rank`: what the
 * reader needs, 0: anything. -1: failed. */
cnr_value mx_data_for(mx_job *j, int32_t i, int64_t channels, int32_t rank);
/* The variable at input i as a weight with those dims; -1: the job failed. */
cnr_value mx_weight(mx_job *j, int32_t i, const int64_t *dim, int32_t rank);
/* Adds a parameter as a constant with those dims (rank < 0: its own), once; -1: the job failed. */
cnr_value mx_constant(mx_job *j, mx_array *a, const int64_t *dim, int32_t rank);
/* The parameter that input i names, before its dims are known; NULL: none. */
mx_array *mx_peek(mx_job *j, int32_t i);
/* Channels of input 0; 0: the job failed. */
int64_t mx_channels(mx_job *j);
/* Fills out with an entry for each spatial axis, `fallback` where the list is not set; 0 with a
 * problem. */
int mx_spatial(mx_job *j, const char *key, int32_t rank, int64_t fallback, int64_t *out);
/* 1 if the layout is N C ...; else 0, and the layer becomes a problem of the graph. */
int mx_is_channels_first(mx_job *j);
/* Adds a transpose that exchanges two axes; returns v if they are the same or its type is
 * unknown. */
cnr_value mx_swapped(mx_job *j, const char *suffix, cnr_value v, int64_t a, int64_t b);
/* Sets output 0, the only one. */
void mx_give(mx_job *j, cnr_value v);
/* Type of a value; NULL: not known. */
const cnr_tensor *mx_type(mx_job *j, cnr_value v);
/* The axis of input 0, from 0 (negative ones count from the end); -1: failed. */
int64_t mx_axis(mx_job *j, int64_t axis);
/* Converts a node whose inputs have been converted. */
void mx_layer(mx_net *net, mx_node *n);
/* 1: the node takes any height and width. */
int mx_is_open(const mx_node *n);
/* Number of outputs that a node has by its operator and attributes, at least 1. */
int mx_op_outputs(const mx_node *n);

/* ---- pointwise.c, pooling.c, shapes.c, boxes.c: the function for an operator, or NULL ---- */

typedef void (*mx_convert)(mx_job *j);
typedef IMP_ROW(mx_convert) mx_row;
enum { MX_OPEN = 1, MX_OWN_INPUT = 2 }; /* accepts any height and width; reads input 0 itself */
/* Converter of a pointwise operator; *flags: MX_OPEN ... NULL: it is none. */
mx_convert mx_pointwise_row(const mx_node *n, int *flags);
/* Converter of a pooling or resizing operator, and its *flags; NULL: it is none. */
mx_convert mx_pooling_row(const mx_node *n, int *flags);
/* Converter of an operator that changes shapes, and its *flags; NULL: it is none. */
mx_convert mx_shape_row(const mx_node *n, int *flags);
/* Converter of an operator on boxes, and its *flags; NULL: it is none. */
mx_convert mx_box_row(const mx_node *n, int *flags);

/* ---- import_mxnet.c ---- */

/* Adds the input named like a variable node, and returns it; `channels` and `want` (rank): what its
 * reader needs, or 0. Negative: failed. */
cnr_value mx_add_input(mx_net *net, const mx_node *n, int64_t channels, int32_t rank);

#endif
