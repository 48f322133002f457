/* Fills the parameters of a net with a file's arrays: by name, else in order. */
#ifndef IMPORT_WEIGHTS_H
#define IMPORT_WEIGHTS_H

#include "import_common.h"

/* Options of importers that fill nets, as rows of cnr_importer.options. */
#define IMP_LAYOUT_ROWS \
    "flip=true kernels of convolutions lie turned by 180 degrees", \
        "layout=hwio kernels lie height, width, in, out (oihw)", \
        "transpose=true matrices lie in, out (as layout says)", \
        "flatten=hwc pictures were flattened height, width, channels (as layout says)", \
        "batch_norm=ORDER the order of the four arrays of a normalisation"

/* An array in a file: element (i, j, ..) is number i * stride[0] + j * stride[1] + .. of it. */
typedef struct imp_array {
    const char *name, *file; /* name of the array; name of its file, for messages */
    int32_t rank;
    int64_t dim[CNR_MAX_RANK], stride[CNR_MAX_RANK];
} imp_array;

/* The arrays of a file. Elements are read only once an array is known to fit. */
typedef struct imp_arrays {
    const imp_array *at;
    int32_t n;
    int listed; /* their order is meaningful, so they may be assigned by position */
    void *owner;
    /* Reads the elements in the file's order; freed with imp_host->free, also after an error. */
    cnr_status (*load)(void *owner, int32_t array, void **data, cnr_error *err);
    double (*get)(const void *owner, int32_t array, const void *data, int64_t i);
} imp_arrays;

/* The net whose weights are to be filled; NULL: none. */
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

/* A parameter of a net, and the array that fills it. */
typedef struct imp_parameter {
    cnr_value value;
    const char *name, *layer, *port;
    const cnr_node *node; /* the first node that reads it */
    int32_t at;           /* index of that node in the graph */
    const cnr_tensor *type;
    int32_t array; /* index of the array that was given; -1: none */
    int inverse;   /* the array holds 1 / sqrt(value + epsilon) */
} imp_parameter;

/* fit.c: layouts, and conversion between them */
typedef struct imp_layout {
    int flip, transpose, hwio, hwc;
    const char *batch_norm;
} imp_layout;
/* Reads the options that say how arrays are laid out. */
void imp_layout_read(const cnr_import_args *args, imp_net *net, imp_layout *out);

/* An array as a tensor of another layout. */
typedef struct imp_view {
    int32_t rank;
    int64_t dim[CNR_MAX_RANK], stride[CNR_MAX_RANK], offset;
} imp_view;
/* 1: `out` views the array in the parameter's order. */
int imp_fit(const struct cnr_graph *net, const imp_parameter *p, const imp_array *a,
            const imp_layout *layout, imp_view *out);
/* Writes an array, seen through the view, as the parameter's constant. */
cnr_status imp_write(imp_net *net, const imp_parameter *p, const imp_arrays *arrays,
                     const imp_view *view, cnr_error *err);
/* writes and returns "20x1x5x5" */
const char *imp_shape_text(const int64_t *dim, int32_t rank, char text[160]);

/* names.c. How well an array's name matches a parameter: 2: its name, or its layer's with a synonym
 * of the port; 1: the same after a scope; 0: no match. *inverse: it holds 1 / deviation. */
int imp_name_level(const char *array, const imp_parameter *p, int *inverse);
/* Whether `word` is a synonym of the port's name. */
int imp_is_port_word(const char *port, const char *word, size_t n);
/* 1 if a name means the inverse of a standard deviation. */
int imp_is_inverse(const char *word, size_t n);
/* Whether the array is not a parameter (a step counter and the like). */
int imp_name_is_idle(const char *array);
/* Whether the names differ only in a number at their end. */
int imp_names_are_numbered(const imp_arrays *arrays);

#endif
