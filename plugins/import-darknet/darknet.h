/* What the importer's files share. */
#ifndef DARKNET_H
#define DARKNET_H

#include "import_common.h"

/* ---- config.c: the .cfg text as sections of keys. Names and values point into `text`. ---- */

typedef struct dn_section {
    const char *name;       /* "convolutional" */
    int32_t line, first, n; /* its keys: [first, first + n) */
} dn_section;

typedef struct dn_config {
    char *text;
    dn_section *sections;
    int32_t n_sections, sections_room;
    struct dn_key {
        const char *name, *value;
    } * keys;
    int32_t n_keys, keys_room;
} dn_config;

/* Takes `text` over (host memory). */
cnr_status dn_config_parse(dn_config *c, char *text, const char *path, cnr_error *err);
void dn_config_free(dn_config *c);
const char *dn_text(const dn_config *c, const dn_section *s, const char *key, const char *fallback);
double dn_float(const dn_config *c, const dn_section *s, const char *key, double fallback);
/* Cut to +- 2^24, so that products of two or three of them fit. */
int64_t dn_int(const dn_config *c, const dn_section *s, const char *key, int64_t fallback);
/* "1, 2,3" into at most `max` numbers; returns how many. */
int32_t dn_list(const char *text, double *out, int32_t max);

/* ---- the import under way ---- */

typedef struct dn_net {
    imp_net b; /* its path is the section's, "yolo.cfg:12", while a layer is built */
    const char *path, *weights_path;
    const dn_config *config;
    const uint8_t *weights;    /* floats; NULL without a weights file */
    uint64_t n_weights, taken; /* floats, which layers take in their order */
    int transposed;            /* weights of [connected] in some old files */
    int64_t width, height;
    struct dn_done {
        cnr_value value;
        uint64_t taken; /* where its weights begin */
        double step[2]; /* pixels of the input from row to row, from column to column */
    } * done;           /* a layer each */
} dn_net;

/* The section being turned into operators. */
typedef struct dn_layer {
    dn_net *net;
    const dn_section *section;
    int32_t index; /* of the layer, from 0: [net] is none */
    char name[64];
    cnr_value x; /* what the layer before gives */
    int failed;  /* its file of weights ended, or what it reads from has failed */
} dn_layer;

/* layer.c: section `index` (1 ...) after its predecessors; sets done[index - 1]. */
void dn_convert(dn_net *net, int32_t index, cnr_value x);

int64_t dn_key_int(const dn_layer *l, const char *key, int64_t fallback);
double dn_key_float(const dn_layer *l, const char *key, double fallback);
const char *dn_key_text(const dn_layer *l, const char *key, const char *fallback);
/* Remembers what cannot be imported; the import goes on, so that everything is listed. */
void dn_problem(dn_layer *l, const char *text);
/* A problem for each of these keys that is there and not 0. */
void dn_refuse(dn_layer *l, const char *const *keys);
cnr_value dn_node(dn_layer *l, const char *op, const char *suffix, const cnr_value *in,
                  int32_t n_in, const imp_attrs *attrs);
/* A node of one input. */
cnr_value dn_unary(dn_layer *l, const char *op, const char *suffix, cnr_value x,
                   const imp_attrs *attrs);
const cnr_tensor *dn_type(const dn_layer *l, cnr_value v);
/* The input's channels; with dn_sizes height and width too (1 where there are none). 0: unknown,
 * or with a problem. */
int dn_channels(dn_layer *l, int64_t *c);
int dn_sizes(dn_layer *l, int64_t *c, int64_t *h, int64_t *w);
/* A layer named by its number, or by how far back it is; -1 with a problem. */
cnr_value dn_other(dn_layer *l, double number);
/* Attributes of a window of size x size. */
typedef struct dn_window {
    imp_attrs attrs;
    int64_t kernel[2], strides[2], pads[4], dilations[2];
} dn_window;
void dn_window_set(dn_window *w, int64_t size, const int64_t strides[2], int64_t before,
                   int64_t after);
/* stride, stride_x and stride_y: height's first. 0 with a problem. */
int dn_strides(dn_layer *l, int64_t strides[2]);
/* antialiasing=: the blur that takes the stride over; x where there is none. */
cnr_value dn_blur(dn_layer *l, cnr_value x, const int64_t strides[2]);

/* activation.c: what activation= says, `fallback` where it says nothing. */
cnr_value dn_activate(dn_layer *l, cnr_value x, const char *fallback);

/* The converters, a kind of section each: layers.c, weighted.c, heads.c. */
/* clang-format off */
#define DN_CONVERTERS(X) \
    X(convolutional) X(deconvolutional) X(connected) X(local) X(batchnorm) X(shortcut) \
    X(maxpool) X(local_avgpool) X(avgpool) X(route) X(scale_channels) X(upsample) X(reorg) X(reorg3d) \
    X(dropout) X(softmax) X(l2norm) X(logistic) X(crop) X(activation) X(cost) X(yolo) \
    X(gaussian_yolo) X(region) X(detection)
/* clang-format on */
#define X(NAME) cnr_value dn_##NAME(dn_layer *l);
DN_CONVERTERS(X)
#undef X

#endif
