/* Shared by the importer's files. */
#ifndef CNNDROID_H
#define CNNDROID_H

#include "import_common.h"

/* ---- netfile.c: the text as layers of keys. Names and values point into `text`. ---- */

/* A layer: the line where it begins, and its keys. */
typedef struct cd_layer {
    int32_t line, first, n; /* its keys: [first, first + n) */
} cd_layer;

/* A NetFile that was read. */
typedef struct cd_netfile {
    char *text;
    struct cd_key {
        const char *name, *value;
        int outside; /* keys before or after all layers; stored in layer 0 */
    } * keys;
    cd_layer *layers;
    int32_t n_keys, keys_room, n_layers, layers_room;
} cd_netfile;

/* Reads a NetFile from `text`, host memory that f owns afterwards; free with cd_netfile_free, also
 * after an error. */
cnr_status cd_netfile_parse(cd_netfile *f, char *text, const char *path, cnr_error *err);
void cd_netfile_free(cd_netfile *f); /* frees text and lists; f is zero */
/* 1 if both texts are equal, without regard to case; NULL: 0 */
int cd_is(const char *word, const char *text);
/* Text of a layer's key, layer 0: of the net; `fallback`: there is none. f owns it. */
const char *cd_text(const cd_netfile *f, int32_t layer, const char *key, const char *fallback);
/* Number of a layer's key; `fallback`: there is none, or it is no number. */
double cd_number(const cd_netfile *f, int32_t layer, const char *key, double fallback);
/* Whole number of a key; `fallback`: there is none. */
int64_t cd_int(const cd_netfile *f, int32_t layer, const char *key, int64_t fallback);

/* ---- message.c: nested arrays of numbers in MessagePack ---- */

/* Numbers of a file of weights. */
typedef struct cd_array {
    float *data; /* host memory */
    int64_t n, dim[4];
    int32_t rank;
} cd_array;

/* Reads a file of up to `max` arrays, one after the other, into out; *n: how many. Free them with
 * cd_message_free, also after an error. */
cnr_status cd_message_read(const char *path, cd_array *out, int32_t max, int32_t *n,
                           cnr_error *err);
/* Frees the data of n arrays. */
void cd_message_free(cd_array *arrays, int32_t n);

/* ---- layers.c ---- */

/* A net that is being imported. */
typedef struct cd_net {
    imp_net b;
    const cnr_import_args *args;
    cd_netfile *file;
    cd_array (*weights)[2]; /* for each layer: weights and biases, if it has a file */
    cnr_error *err;
} cd_net;

/* Opens each layer's parameters_file, relative to the NetFile. */
void cd_read_weights(cd_net *net);
/* dim: the input's size as the layers imply it; returns its rank, 0: unknown. *open: other sizes
 * fit, too. */
int32_t cd_find_size(const cd_net *net, int64_t dim[3], int *open);
/* Converts a layer that reads x, and returns its output; -1: see the graph's problems. */
cnr_value cd_add_layer(cd_net *net, int32_t layer, cnr_value x);
/* The path of `name` beside the NetFile, from host->alloc. NULL with a problem: it leads out of the
 * folder, or `must` is set and it does not exist. */
char *cd_beside(cd_net *net, const char *name, int must);

#endif
