/* Arrays of a file become the parameters of a net: by their names, or else one after the other. */
#ifndef IMPORT_WEIGHTS_H
#define IMPORT_WEIGHTS_H

#include "import_common.h"

/* The options that all who fill nets take, as rows of cnr_importer.options. */
#define IMP_LAYOUT_ROWS \
    "flip=true kernels of convolutions lie turned by 180 degrees", \
        "layout=hwio kernels lie height, width, in, out (oihw)", \
        "transpose=true matrices lie in, out (as layout says)", \
        "flatten=hwc pictures were flattened height, width, channels (as layout says)", \
        "batch_norm=ORDER the order of the four arrays of a normalisation"

/* What lies in a file: element (i, j, ..) is number i * stride[0] + j * stride[1] + .. of it. */
typedef struct imp_array {
    const char *name, *file; /* of the array; of where it lies, for messages */
    int32_t rank;
    int64_t dim[CNR_MAX_RANK], stride[CNR_MAX_RANK];
} imp_array;

/* Arrays are read when it is known that they fit. */
typedef struct imp_arrays {
    const imp_array *at;
    int32_t n;
    int listed; /* they are in an order that somebody meant */
    void *owner;
    /* The elements as they lie in the file; freed with imp_host->free, also after an error. */
    cnr_status (*load)(void *owner, int32_t array, void **data, cnr_error *err);
    double (*get)(const void *owner, int32_t array, const void *data, int64_t i);
} imp_arrays;

/* The net that wants weights; NULL: none does. */
const struct cnr_graph *imp_net_of(const cnr_import_args *args);

/* Adds a constant to net->graph for each parameter of imp_net_of(args). What is missing, left over
 * or does not fit becomes a problem of the graph. Options, all of which may be left out:
 *
 *   flip=true              kernels turned by 180 degrees: made for true convolutions
 *   layout=hwio            kernels as height, width, in, out, not out, in, height, width
 *   transpose=true         square matrices are in, out; of others the shape tells. hwio means it
 *   flatten=hwc            rows of a matrix behind pictures count them so, not chw. hwio means it
 *   batch_norm=beta,gamma  the order of a normalisation's arrays, where they go by position */
cnr_status imp_weights(const cnr_import_args *args, imp_net *net, const imp_arrays *arrays,
                       cnr_error *err);

/* ---- inside ---- */

typedef struct imp_parameter {
    cnr_value value;
    const char *name, *layer, *port;
    const cnr_node *node; /* the first that reads it */
    int32_t at;           /* of the node, in the net */
    const cnr_tensor *type;
    int32_t array; /* -1: none */
    int inverse;   /* the array holds 1 / sqrt(it + epsilon) */
} imp_parameter;

/* fit.c: how arrays lie, and what is made of them */
typedef struct imp_layout {
    int flip, transpose, hwio, hwc;
    const char *batch_norm;
} imp_layout;
void imp_layout_read(const cnr_import_args *args, imp_net *net, imp_layout *out);

typedef struct imp_view {
    int32_t rank;
    int64_t dim[CNR_MAX_RANK], stride[CNR_MAX_RANK], offset;
} imp_view;
/* 1: `out` is the array in the parameter's order. */
int imp_fit(const struct cnr_graph *net, const imp_parameter *p, const imp_array *a,
            const imp_layout *layout, imp_view *out);
cnr_status imp_write(imp_net *net, const imp_parameter *p, const imp_arrays *arrays,
                     const imp_view *view, cnr_error *err);
/* "20x1x5x5" */
const char *imp_shape_text(const int64_t *dim, int32_t rank, char text[160]);

/* names.c: how others spell them. 2: this parameter's name, or its layer's and a word for it;
 * 1: the same in an outer scope; 0: another's. */
int imp_name_level(const char *array, const imp_parameter *p, int *inverse);
/* `word` is another for the port of this name. */
int imp_is_port_word(const char *port, const char *word, size_t n);
int imp_is_inverse(const char *word, size_t n);
/* Nothing that a net computes with. */
int imp_name_is_idle(const char *array);
/* Names that differ in a number at the end only. */
int imp_names_are_numbered(const imp_arrays *arrays);

#endif
