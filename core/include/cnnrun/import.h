/* Importers, exporters and rewrites, which build and change graphs through the host table. */
#ifndef CNNRUN_IMPORT_H
#define CNNRUN_IMPORT_H

#include <cnnrun/op.h>

CNR_BEGIN_C

struct cnr_graph;

/* Arguments of an importer: the files, options "name=value" and, if a net is loaded already, that
 * net. */
typedef struct cnr_import_args {
    uint32_t size;
    int32_t n_paths;
    const char *const *paths; /* the model, then its weights if they are separate files */
    int32_t n_options;
    const char *const *options; /* such as "name=value" */
    /* NULL, or a net that takes weights from these files. The importer must then make constants
     * with the names and types of the net's parameters. It may ignore `net` if its files use the
     * same names. */
    const struct cnr_graph *net;
} cnr_import_args;

/* A reader of models in a foreign format. */
typedef struct cnr_importer {
    uint32_t size;
    const char *name; /* such as "caffe" */
    const char *summary;
    /* Returns > 0 if it recognises the file; the highest value wins. head: first bytes of
     * paths[0]. */
    int32_t (*accepts)(const char *path, const uint8_t *head, size_t head_bytes);
    /* Builds the model in an empty graph. Report each unsupported layer with host->graph_problem
     * and continue, so that a user sees all of them together. */
    cnr_status (*import)(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err);
    /* (optional) Accepted args->options, one text per option, NULL-terminated: "key=NAME which of
     * the file's nets". The name is before the '='. A name that ends in ".*", "shape.*=C,H,W", is a
     * prefix. Other options are refused before `import` is called, with a list of the names. NULL:
     * `import` receives all options. */
    const char *const *options;
    /* (optional) Common ways of preparing pictures for nets of this format, by well-known names:
     * "caffe channels=bgr mean=104,117,123 std=1 scale=1". NULL-terminated. The steps are those of
     * a net's metadata, for pixels from 0 to 255. */
    const char *const *presets;
} cnr_importer;

/* A writer of models in a foreign format. */
typedef struct cnr_exporter {
    uint32_t size;
    const char *name;
    const char *summary;
    int32_t (*accepts)(const char *path);
    /* Writes the file with host->output_begin: completely or not at all. */
    cnr_status (*write)(const struct cnr_graph *graph, const char *path, cnr_error *err);
} cnr_exporter;

/* A change of a graph that preserves its outputs. Before planning, rewrites run in ascending order
 * of `order`, repeatedly until none changes the graph. Users can switch off each by name.
 *
 * A rewrite that quantises does so only if host->graph_should_quantise returns 1. It preserves the
 * outputs approximately, and reports its result with host->graph_set_quantised. */
typedef struct cnr_rewrite {
    uint32_t size;
    int32_t order;
    const char *name;
    const char *summary;
    /* Returns the number of changes, or a negative cnr_status. */
    int32_t (*apply)(struct cnr_graph *graph, cnr_error *err);
    uint32_t flags; /* CNR_REWRITE_... */
    /* (optional: any) Family or class of a device. The rewrite is used only for plans that can use
     * such a device. If the device is lost, the new plan is made without the rewrite. */
    const char *device;
    /* (optional) Builds a small graph that the rewrite changes, in an empty one. conform compares
     * its outputs with and without the rewrite. Other rewrites are tested only on random graphs. */
    cnr_status (*example)(struct cnr_graph *graph, cnr_error *err);
} cnr_rewrite;

enum { /* The rewrite reads only the types of weights with two or more axes, unless it
        * quantises. Their data need not be computed for it. */
       CNR_REWRITE_STRUCTURE = 1 << 0,
       /* The rewrite is used only for plans, not for nets that are trained, or quantised and
        * saved. */
       CNR_REWRITE_PLAN = 1 << 1
};

/* ---- operators of model formats that a plugin imports ---- */

struct cnr_host;

/* A node of a model file, as its importer read it. Valid until the importer's `import` returns. */
typedef struct cnr_import_node {
    uint32_t size;
    int32_t version; /* version of the domain's operators; 0: the format has none */
    const char *format, *domain, *type;
    const char *name;  /* name of the node; "": none */
    const char *where; /* file and place, for messages */
    int32_t n_inputs, n_outputs;
    const cnr_value *inputs; /* values in the graph; -1: omitted */
    int32_t n_attrs;
    const cnr_attr *attrs; /* as in the file: FLOAT, INT, STRING, INTS, FLOATS or BOOL */
} cnr_import_node;

/* Imports one operator of a model format ("onnx", "tensorflow", "caffe"), for all importers that
 * use the host's rows. The plugin owns this constant struct, which stays valid until exit. */
typedef struct cnr_import_row {
    uint32_t size;
    int32_t version;  /* first version of the domain's operators that it serves; 0: any */
    const char *name; /* name of the row, unique: "onnx com.acme::Gelu" */
    const char *summary;
    const char *format, *domain; /* domain NULL: the format's own */
    const char *type;            /* such as "Gelu" */
    /* Operator that replaces the node, with the same inputs. Attributes that the operator does not
     * have are an error. Exporters write nodes of `op` by this row. */
    const char *op;
    /* (optional) Renamed attributes, "file's name=operator's name", NULL-terminated. Other
     * attributes keep their names. */
    const char *const *attrs;
    /* (optional: as `op` says) Adds nodes, and stores the node's values in outputs[0 ..
     * n_outputs). */
    cnr_status (*import)(const struct cnr_host *host, struct cnr_graph *graph,
                         const cnr_import_node *node, cnr_value *outputs, cnr_error *err);
} cnr_import_row;

CNR_END_C
#endif
