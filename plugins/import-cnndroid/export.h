/* Shared by the writer's files: a NetFile that is being made, and the parameters that go beside it.
 */
#ifndef CNNDROID_EXPORT_H
#define CNNDROID_EXPORT_H

#include "import_common.h"

/* Weights and biases of a layer; both are the graph's. */
typedef struct cd_parameters {
    char file[96];
    const cnr_tensor *weight, *bias; /* bias NULL: zeros */
} cd_parameters;

/* A layer's name, which is part of files' names. */
typedef struct cd_name {
    char text[64];
} cd_name;

/* A net that is being exported. */
typedef struct cd_writer {
    const struct cnr_graph *graph;
    const char *path; /* of the NetFile */
    cnr_error *err;
    char *text; /* host memory */
    size_t n, room;
    cd_parameters *parameters;
    int32_t n_parameters, parameters_room;
    cd_name *names; /* of the layers so far; the last one's is being written */
    int32_t n_names, names_room;
    int32_t problems; /* the first is in err */
    int32_t border;   /* zeros around what comes next, which must be a pooling; 0: none */
    int positive;     /* nothing that comes next is below 0 */
    int flat;         /* a sample is one row of numbers, as behind a dense layer */
    int made_flat;    /* ... by a node that CNNdroid does not have, and nothing else yet */
    int no_memory;
} cd_writer;

/* Why the net cannot be written; the export fails at its end. node NULL: the net as a whole. */
void cd_refuse(cd_writer *w, const cnr_node *node, const char *why);
__attribute__((format(printf, 2, 3))) void cd_print(cd_writer *w, const char *format, ...);
/* A layer without its last line: "layer {", its type, its name. */
void cd_begin(cd_writer *w, const cnr_node *node, const char *type);
/* Names a parameter file after the current layer. Refuses weights that are not dense f32. */
void cd_parameters_of(cd_writer *w, const cnr_node *node, const cnr_tensor *weight,
                      const cnr_tensor *bias);

/* ---- export_layers.c ---- */

/* Writes a node whose first input is the output of the layer before; its other inputs must be
 * constants. */
void cd_layer_of(cd_writer *w, const cnr_node *node);

/* ---- export_message.c: MessagePack ---- */

/* Writes weights (a matrix as one row), then biases, to `path`. */
cnr_status cd_message_write(const char *path, const cnr_tensor *weight, const cnr_tensor *bias,
                            cnr_error *err);
/* Writes a picture [channel][row][column]. */
cnr_status cd_picture_write(const char *path, const float *data, const int64_t dim[3],
                            cnr_error *err);

extern const cnr_exporter cd_exporter;

#endif
