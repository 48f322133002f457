/* data: what comes in. Samples by spec, pictures to inputs, and the sizes that inputs take. */
#ifndef CNRI_DATA_H
#define CNRI_DATA_H

#include "graph/graph.h"
#include <cnnrun/cnnrun.h>

/* ---- preprocess.c: a picture (u8 H W C) to a net's input. Kept as metadata of the graph, keys
 * "input.<name>.resize", ".crop", ".mean", ".std", ".scale", ".channels"; from flags too. ---- */
typedef struct cnri_preprocess {
    int64_t resize_h, resize_w;    /* 0: to the input's size; h only (w = -1): shorter side */
    int64_t crop_h, crop_w;        /* centre; 0: none */
    double mean[4], std[4], scale; /* (x - mean) * scale / std; the rest is told in preprocess.c */
    int32_t n_mean, n_std;
    float *mean_image;
    uint64_t mean_count; /* C H W; instead of mean */
    int32_t channels;    /* 0 as the net wants: 1 grey, 3 rgb, -3 bgr */
    bool letterbox, letterbox_corner;
    float letterbox_fill;
    double crop_part;      /* 0: none; else this part of the middle, before resizing */
    uint64_t memory_limit; /* of a picture on the way, bytes; 0: a share of what there is */
} cnri_preprocess;
cnr_status cnri_preprocess_read(const cnr_graph *g, const char *input, cnri_preprocess *out,
                                cnr_error *err);
/* Sets one key from text ("256x256", "104,117,123"), checking it. */
cnr_status cnri_preprocess_set(cnr_graph *g, const char *input, const char *key, const char *text,
                               cnr_error *err);
/* Writes one sample into `out` (f32 or u8, C H W or its own layout, host memory). */
cnr_status cnri_preprocess_apply(const cnri_preprocess *p, const cnr_tensor *picture,
                                 cnr_tensor *out, cnr_error *err);
/* Where the picture went, height and width: input = picture * scale + shift, in pixels. */
typedef struct cnri_framing {
    double scale[2], shift[2];
} cnri_framing;
cnr_status cnri_preprocess_framed(const cnri_preprocess *p, const cnr_tensor *picture,
                                  cnr_tensor *out, cnri_framing *framing, cnr_error *err);
/* preset.c: the steps of a preset that some importer brings. */
typedef cnr_status (*cnri_step_fn)(void *arg, const char *key, const char *text, cnr_error *err);
cnr_status cnri_preset_each(const char *name, cnri_step_fn fn, void *arg, cnr_error *err);
/* An error for a mean and a std that can't be of pixels from 0 to 255. */
cnr_status cnri_preprocess_units(const cnri_preprocess *p, const char *where, cnr_error *err);
/* An error when labels, so many, are not those of the net's classes. */
cnr_status cnri_labels_check(const cnr_graph *g, int64_t labels, const char *where, cnr_error *err);
/* labels.c: a file of names, one a line, becomes the net's. */
cnr_status cnri_labels_read(cnr_graph *g, const char *path, cnr_error *err);
/* As cnri_preprocess_set, for this use alone. */
cnr_status cnri_preprocess_change(cnri_preprocess *p, const char *key, const char *text,
                                  cnr_error *err);
void cnri_preprocess_free(cnri_preprocess *p);
/* shape.c: metadata "symbol.NAME.default" of an open dimension, or the largest of its range; -1:
 * none. */
int64_t cnri_dim_default(const cnr_graph *g, int64_t dim);
/* Which axis is what in an input for pictures; -1: none. Width is behind height. Channels come last
 * where the last axis is 1 or 3 and the one before the sides is neither; of rank 3, the first axis
 * counts samples when it is open or 1. */
typedef struct cnri_axes {
    int32_t batch, channels, height;
} cnri_axes;
cnri_axes cnri_picture_axes(const cnr_tensor *type);
/* What says how large an input is where the net leaves that open, best first: symbols that were
 * given; `batch`; `side`; what the preprocessing fixes; the net's default; the picture's; 3 for
 * channels of pictures; 1. Nothing of pictures is asked where `preprocess` is NULL. */
typedef struct cnri_sizes {
    const char *const *symbols;
    const int64_t *values;
    int32_t n_symbols;
    int64_t batch;                     /* 0: its default */
    const int64_t *side;               /* height and width asked for; NULL: none */
    const cnri_preprocess *preprocess; /* of this input; NULL: none */
    const cnr_tensor *picture;         /* NULL: any */
} cnri_sizes;
void cnri_input_sizes(const cnr_graph *g, int32_t index, const cnri_sizes *from, cnr_tensor *out);
/* Each symbol is one of the graph's. */
cnr_status cnri_symbols_check(const cnr_graph *g, const cnri_sizes *from, cnr_error *err);
/* resize.c: Pillow's antialiased bilinear, 8 bits a channel, bit for bit. */
cnr_status cnri_resize_u8(const uint8_t *in, int64_t h, int64_t w, int64_t channels, uint8_t *out,
                          int64_t out_h, int64_t out_w);

/* ---- augment.c: words behind any spec, "DIR,shift=2,flip": how pictures are varied for training
 * ---- */
typedef struct cnri_augment {
    double shift;  /* pixels up, down and aside, at most; whole ones are drawn */
    double flip;   /* the chance that left and right change places */
    double crop;   /* a part of at least this share of each side, brought to the picture's size; 1:
                      all */
    double turn;   /* degrees either way, at most */
    double colour; /* brightness, contrast and saturation by up to this part more or less */
    bool any;
} cnri_augment;
/* The length of a spec without those words: what names files. */
size_t cnri_augment_cut(const char *spec);
/* Reads them, and cuts them off the spec. */
cnr_status cnri_augment_read(char *spec, cnri_augment *out, cnr_error *err);

/* ---- samples.c: sources by spec ---- */
typedef struct cnri_samples {
    const cnr_source *source;
    void *state;
    cnr_source_info info;
    cnri_augment augment;
    int64_t every;             /* of what the source counts */
    const cnri_limits *limits; /* the limits of the script that opened them; NULL: none */
} cnri_samples;
cnr_status cnri_samples_open(const char *spec, const char *split, cnri_samples *out,
                             cnr_error *err);
cnr_status cnri_samples_read(cnri_samples *s, int64_t index, cnr_sample *out, cnr_error *err);
void cnri_samples_close(cnri_samples *s);

#endif
