/* Importers, exporters and rewrites: who builds and changes graphs, through the host table. */
#ifndef CNNRUN_IMPORT_H
#define CNNRUN_IMPORT_H

#include <cnnrun/op.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cnr_graph;

typedef struct cnr_import_args {
    uint32_t size;
    int32_t n_paths;
    const char *const *paths; /* the model, then its weights where they are apart */
    int32_t n_options, reserved;
    const char *const *options; /* "name=value" */
    /* NULL, or a net that wants weights of these files: the graph is then to hold
     * constants of the names and types of its parameters. Files that name theirs alike need not
     * look at it. */
    const struct cnr_graph *net;
} cnr_import_args;

typedef struct cnr_importer {
    uint32_t size;
    uint32_t reserved;
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
     * called, with the names there are. Without the field, or NULL: any is handed over, as
     * before 1.2. */
    const char *const *options;
    /* (optional) How pictures were prepared for the nets of such files, by names that
     * people know: "caffe channels=bgr mean=104,117,123 std=1 scale=1", NULL-terminated. Steps as
     * in a net's metadata; of pixels from 0 to 255. */
    const char *const *presets;
} cnr_importer;

typedef struct cnr_exporter {
    uint32_t size;
    uint32_t reserved;
    const char *name;
    const char *summary;
    int32_t (*accepts)(const char *path);
    /* Through host->output_begin: whole or not at all. */
    cnr_status (*write)(const struct cnr_graph *graph, const char *path, cnr_error *err);
} cnr_exporter;

/* A change of a graph that keeps its outputs. Run to a fixed point before planning, in order of
 * `order`, unless switched off by name.
 *
 * One that quantises does so only where the graph is asked to (host->graph_quantise_asked), keeps
 * the outputs nearly, and answers by host->graph_quantised. Rewrites of plugins older than 1.2 are
 * asked and answer by metadata: "quantize" (names, one a line), "range.VALUE" ("low,high") and
 * "quantized.VALUE" ("NAME,scale,zero,low"). */
typedef struct cnr_rewrite {
    uint32_t size;
    int32_t order;
    const char *name;
    const char *summary;
    /* Returns the number of changes, or a negative cnr_status. */
    int32_t (*apply)(struct cnr_graph *graph, cnr_error *err);
    uint32_t flags; /* CNR_REWRITE_... */
    uint32_t reserved;
} cnr_rewrite;

enum { /* of weights with two axes or more it looks at types alone, unless it is asked to quantise:
          weights that others are folded into need not be made for it */
       CNR_REWRITE_STRUCTURE = 1 << 0
};

#ifdef __cplusplus
}
#endif
#endif
