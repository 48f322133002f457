/* What the importer's files share. */
#ifndef DARKNET_H
#define DARKNET_H

#include <cnnrun/plugin.h>

extern const cnr_host *darknet_host;

/* config.c: the .cfg text as sections of keys. Names and values point into `text`. */
typedef struct darknet_section {
    const char *name; /* "convolutional" */
    int32_t line, first, n; /* its keys: [first, first + n) */
} darknet_section;

typedef struct darknet_config {
    char *text;
    darknet_section *sections;
    int32_t n_sections, sections_room;
    struct darknet_key {
        const char *name, *value;
        int32_t line;
    } *keys;
    int32_t n_keys, keys_room;
} darknet_config;

/* Takes `text` over (host memory). */
cnr_status darknet_config_parse(darknet_config *c, char *text, const char *path, cnr_error *err);
void darknet_config_free(darknet_config *c);
const char *darknet_text(const darknet_config *c, const darknet_section *s, const char *key,
                         const char *fallback);
int64_t darknet_int(const darknet_config *c, const darknet_section *s, const char *key,
                    int64_t fallback);
double darknet_float(const darknet_config *c, const darknet_section *s, const char *key,
                     double fallback);
/* "1, 2,3" into at most `max` numbers; returns how many. */
int32_t darknet_list(const char *text, double *out, int32_t max);
double darknet_number(const char *text, const char **end); /* locale-proof */

/* The import under way. Weights are taken from the file in the order of the layers. */
typedef struct darknet_net {
    struct cnr_graph *graph;
    const char *path, *weights_path;
    const darknet_config *config;
    const uint8_t *weights; /* floats; NULL without a weights file */
    uint64_t n_weights, taken; /* floats */
    int transposed;         /* dense weights of some old files */
    cnr_value *values;      /* output of each layer, in the order of the sections behind [net] */
    char *heads;            /* layers that decode boxes, described for the metadata */
    size_t n_heads, heads_room;
    int32_t n_layers;
    int64_t width, height;
    cnr_status status;
} darknet_net;

/* layers.c: section `index` (1 ...) after its predecessors; sets values[index - 1]. */
void darknet_layer(darknet_net *net, int32_t index, cnr_value x);

#endif
