/* Shared by the importer's files. */
#ifndef DARKNET_H
#define DARKNET_H

#include "import_common.h"

/* ---- config.c: the .cfg text as sections of keys. Names and values point into `text`. ---- */

/* A section of the configuration: one layer. */
typedef struct dn_section {
    const char *name;       /* such as "convolutional" */
    int32_t line, first, n; /* its keys: [first, first + n) */
} dn_section;

/* A configuration that was read. */
typedef struct dn_config {
    char *text;
    dn_section *sections;
    int32_t n_sections, sections_room;
    struct dn_key {
        const char *name, *value;
    } * keys;
    int32_t n_keys, keys_room;
} dn_config;

/* Reads a configuration from `text`, host memory that c owns afterwards; free with dn_config_free,
 * also after an error. */
cnr_status dn_config_parse(dn_config *c, char *text, const char *path, cnr_error *err);
void dn_config_free(dn_config *c); /* frees text and lists; c is zero */
/* Text of a section's key, owned by c; `fallback`: there is none. */
const char *dn_text(const dn_config *c, const dn_section *s, const char *key, const char *fallback);
/* Number of a section's key; `fallback`: there is none, or it is no number. */
double dn_float(const dn_config *c, const dn_section *s, const char *key, double fallback);
/* Whole number of a section's key, limited to +-2^24, so that products of two or three of them do
 * not overflow. */
int64_t dn_int(const dn_config *c, const dn_section *s, const char *key, int64_t fallback);
/* Parses "1, 2,3" into at most `max` numbers; returns how many. */
int32_t dn_list(const char *text, double *out, int32_t max);

/* ---- the import in progress ---- */

/* A net that is being imported. */
typedef struct dn_net {
    imp_net b; /* its path is that of the current section, "yolo.cfg:12" */
    const char *path, *weights_path;
    const dn_config *config;
    const uint8_t *weights;    /* floats; NULL without a weights file */
    uint64_t n_weights, taken; /* floats in the file; floats that layers have read so far */
    int transposed;            /* [connected] weights of some old files are transposed */
    int64_t width, height;
    struct dn_done {
        cnr_value value;
        uint64_t taken; /* offset of its weights */
        double step[2]; /* distance between rows and between columns, in pixels of the input */
    } * done;           /* one for each layer */
} dn_net;

/* The section that is being converted. */
typedef struct dn_layer {
    dn_net *net;
    const dn_section *section;
    int32_t index; /* index of the layer, from 0; [net] does not count */
    char name[64];
    cnr_value x; /* output of the previous layer */
    int failed;  /* the file of weights ended early, or an input has failed */
} dn_layer;

/* layer.c: converts section `index` (from 1) after its predecessors; sets done[index - 1]. */
void dn_convert(dn_net *net, int32_t index, cnr_value x);

/* Whole number of a key of the layer; `fallback`: there is none. */
int64_t dn_key_int(const dn_layer *l, const char *key, int64_t fallback);
/* Number of a key of the layer; `fallback`: there is none. */
double dn_key_float(const dn_layer *l, const char *key, double fallback);
/* Text of a key of the layer; `fallback`: there is none. */
const char *dn_key_text(const dn_layer *l, const char *key, const char *fallback);
/* Records what cannot be imported. The import continues, so that all problems are listed. */
void dn_problem(dn_layer *l, const char *text);
/* Records a problem for each of these keys that is set and not 0. */
void dn_refuse(dn_layer *l, const char *const *keys);
/* Adds a node named after the layer; -1: see the problems. */
cnr_value dn_node(dn_layer *l, const char *op, const char *suffix, const cnr_value *in,
                  int32_t n_in, const imp_attrs *attrs);
/* Adds a node with one input, named after the layer; -1: see the problems. */
cnr_value dn_unary(dn_layer *l, const char *op, const char *suffix, cnr_value x,
                   const imp_attrs *attrs);
/* Type of a value; NULL: not known. */
const cnr_tensor *dn_type(const dn_layer *l, cnr_value v);
/* *c: number of channels of the layer's input, with 1; 0: unknown, the layer fails. */
int dn_channels(dn_layer *l, int64_t *c);
/* *c, *h and *w: channels, height and width of the layer's input (1 if it has none), with 1; 0:
 * unknown, the layer fails. */
int dn_sizes(dn_layer *l, int64_t *c, int64_t *h, int64_t *w);
/* Output of a layer given by its index, or relative to this one if negative; -1 with a problem. */
cnr_value dn_other(dn_layer *l, double number);
/* Attributes of a square window. */
typedef struct dn_window {
    imp_attrs attrs;
    int64_t kernel[2], strides[2], pads[4], dilations[2];
} dn_window;
/* Sets the attributes of a window: size, strides, padding before and after. */
void dn_window_set(dn_window *w, int64_t size, const int64_t strides[2], int64_t before,
                   int64_t after);
/* Reads stride, stride_x and stride_y; strides[0] is the height's. 0 with a problem. */
int dn_strides(dn_layer *l, int64_t strides[2]);
/* Adds the blur of antialiasing=, which performs the stride instead; returns x itself if not
 * set. */
cnr_value dn_blur(dn_layer *l, cnr_value x, const int64_t strides[2]);

/* activation.c: adds the activation of activation=, or `fallback` if not set; "linear" returns x.
 * -1: see the problems. */
cnr_value dn_activate(dn_layer *l, cnr_value x, const char *fallback);

/* Converters, one for each type of section: layers.c, weighted.c, heads.c. */
/* clang-format off */
#define DN_CONVERTERS(X) \
    X(convolutional) X(deconvolutional) X(connected) X(local) X(batchnorm) X(shortcut) \
    X(maxpool) X(local_avgpool) X(avgpool) X(route) X(scale_channels) X(upsample) X(reorg) X(reorg3d) \
    X(dropout) X(softmax) X(l2norm) X(logistic) X(crop) X(activation) X(cost) X(yolo) \
    X(gaussian_yolo) X(region) X(detection)
/* Declares the converter of one type of section: returns the layer's output, -1: see the
 * problems. */
/* clang-format on */
#define X(NAME) cnr_value dn_##NAME(dn_layer *l);
DN_CONVERTERS(X)
#undef X

#endif
