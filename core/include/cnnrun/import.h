/* Importers, exporters and rewrites: who builds and changes graphs, through the host table. */
#ifndef CNNRUN_IMPORT_H
#define CNNRUN_IMPORT_H

#include <cnnrun/op.h>

CNR_BEGIN_C

struct cnr_graph;

typedef struct cnr_import_args {
    uint32_t size;
    int32_t n_paths;
    const char *const *paths; /* the model, then its weights where they are apart */
    int32_t n_options;
    const char *const *options; /* "name=value" */
    /* NULL, or a net that wants weights of these files: the graph is then to hold
     * constants of the names and types of its parameters. Files that name theirs alike need not
     * look at it. */
    const struct cnr_graph *net;
} cnr_import_args;

typedef struct cnr_importer {
    uint32_t size;
    const char *name; /* "caffe" */
    const char *summary;
    /* > 0: this looks like mine, highest wins. head: the first bytes of paths[0]. */
    int32_t (*accepts)(const char *path, const uint8_t *head, size_t head_bytes);
    /* Builds into an empty graph. Unsupported layers are reported one by one with
     * host->graph_problem and the rest goes on, so that a user sees all of them at once. */
    cnr_status (*import)(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err);
    /* (optional) What it takes as args->options, a row each, NULL-terminated: "key=NAME
     * which of the file's nets". What stands before '=' is the name; one that ends in ".*",
     * "shape.*=C,H,W", stands for all that begin so. Any other option is refused before `import` is
     * called, with the names there are. NULL: `import` receives all. */
    const char *const *options;
    /* (optional) How pictures were prepared for the nets of such files, by names that
     * people know: "caffe channels=bgr mean=104,117,123 std=1 scale=1", NULL-terminated. Steps as
     * in a net's metadata; of pixels from 0 to 255. */
    const char *const *presets;
} cnr_importer;

typedef struct cnr_exporter {
    uint32_t size;
    const char *name;
    const char *summary;
    int32_t (*accepts)(const char *path);
    /* Through host->output_begin: whole or not at all. */
    cnr_status (*write)(const struct cnr_graph *graph, const char *path, cnr_error *err);
} cnr_exporter;

/* A change of a graph that keeps its outputs. Run to a fixed point before planning, in order of
 * `order`, unless switched off by name.
 *
 * One that quantises does so only where the graph is asked to (host->graph_should_quantise), keeps
 * the outputs nearly, and answers by host->graph_set_quantised. */
typedef struct cnr_rewrite {
    uint32_t size;
    int32_t order;
    const char *name;
    const char *summary;
    /* Returns the number of changes, or a negative cnr_status. */
    int32_t (*apply)(struct cnr_graph *graph, cnr_error *err);
    uint32_t flags; /* CNR_REWRITE_... */
    /* (optional: any) Family or class of a device: the rewrite applies to plans alone that can use
     * such a device. A plan that leaves the device, after it was lost, is made without it. */
    const char *device;
    /* (optional) Builds a small graph that the rewrite changes, into an empty one. conform compares
     * its answers with and without; other rewrites are tried on drawn graphs alone. */
    cnr_status (*example)(struct cnr_graph *graph, cnr_error *err);
} cnr_rewrite;

enum { /* of weights with two axes or more it looks at types alone, unless it is asked to quantise:
          weights that others are folded into need not be made for it */
       CNR_REWRITE_STRUCTURE = 1 << 0,
       /* of plans alone, not of nets that are to be trained, or quantised and saved */
       CNR_REWRITE_PLAN = 1 << 1
};

/* ---- operators of model formats that a plugin imports ---- */

struct cnr_host;

/* A node of a model file, as its importer read it. Lives until the call of `import` returns. */
typedef struct cnr_import_node {
    uint32_t size;
    int32_t version; /* of the domain's operators; 0: the format has none */
    const char *format, *domain, *type;
    const char *name;  /* of the node; "": none */
    const char *where; /* for messages: file and place */
    int32_t n_inputs, n_outputs;
    const cnr_value *inputs; /* in the graph; -1: omitted */
    int32_t n_attrs;
    const cnr_attr *attrs; /* as the file has them: FLOAT, INT, STRING, INTS, FLOATS or BOOL */
} cnr_import_node;

/* Imports one operator of a model format, for all importers that ask the host for rows ("onnx",
 * "tensorflow", "caffe"). Constant, owned by the plugin, valid until exit. */
typedef struct cnr_import_row {
    uint32_t size;
    int32_t version;  /* the first version of the domain's operators that it is for; 0: any */
    const char *name; /* of the row: "onnx com.acme::Gelu"; each name once */
    const char *summary;
    const char *format, *domain; /* domain NULL: the format's own */
    const char *type;            /* "Gelu" */
    /* The operator that the node becomes, with the same inputs; attributes that the operator does
     * not have are an error. Exporters write nodes of `op` by this row. */
    const char *op;
    /* (optional) Names of attributes, "file's=operator's"; NULL-terminated. Other attributes keep
     * their names. */
    const char *const *attrs;
    /* (optional: as `op` says) Adds nodes; outputs[0 .. n_outputs) receives their values. */
    cnr_status (*import)(const struct cnr_host *host, struct cnr_graph *graph,
                         const cnr_import_node *node, cnr_value *outputs, cnr_error *err);
} cnr_import_row;

CNR_END_C
#endif
