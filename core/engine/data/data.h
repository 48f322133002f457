/* data: samples by spec, pictures to inputs, and the sizes of inputs. */
#ifndef CNRI_DATA_H
#define CNRI_DATA_H

#include "graph/graph.h"
#include <cnnrun/cnnrun.h>

/* ---- preprocess.c: turns a picture (u8 H W C) into a net's input. The settings are metadata of
 * the graph, keys "input.<name>.resize", ".crop", ".mean", ".std", ".scale", ".channels";
 * options of a command set them too. ---- */
/* How a picture becomes a net's input. */
typedef struct cnri_preprocess {
    /* Pixels; 0: the input's size; resize_w -1: the shorter side becomes resize_h. */
    int64_t resize_h, resize_w;
    int64_t crop_h, crop_w; /* pixels, of the centre; 0: no crop */
    /* Input = (pixel - mean) * scale / std; preprocess.c says more. */
    double mean[4], std[4], scale;
    int32_t n_mean, n_std;
    float *mean_image;
    uint64_t mean_count; /* numbers of mean_image (C H W), which replaces mean; 0: none */
    int32_t channels;    /* 0: as the net wants; 1 grey, 3 RGB, -3 BGR */
    bool letterbox, letterbox_corner;
    float letterbox_fill;
    /* The centre's part of the picture that is kept, before resizing; 0: all of it. */
    double crop_part;
    uint64_t memory_limit; /* bytes of any picture on the way; 0: cnri_memory_share */
} cnri_preprocess;
/* Reads the keys of an input from the graph's metadata; what lacks gets its default. The caller
 * frees *out. */
cnr_status cnri_preprocess_read(const cnr_graph *g, const char *input, cnri_preprocess *out,
                                cnr_error *err);
/* Checks and sets one key from text ("256x256", "104,117,123"). */
cnr_status cnri_preprocess_set(cnr_graph *g, const char *input, const char *key, const char *text,
                               cnr_error *err);
/* Writes one sample into `out` (floats or u8, C H W or its own layout, host memory). */
cnr_status cnri_preprocess_apply(const cnri_preprocess *p, const cnr_tensor *picture,
                                 cnr_tensor *out, cnr_error *err);
/* Where the picture lies in the input, for height and width: input = picture * scale + shift, in
 * pixels. */
typedef struct cnri_framing {
    double scale[2], shift[2];
} cnri_framing;
/* Like cnri_preprocess_apply, into out's data; *framing says which part of the picture the input
 * shows. */
cnr_status cnri_preprocess_framed(const cnri_preprocess *p, const cnr_tensor *picture,
                                  cnr_tensor *out, cnri_framing *framing, cnr_error *err);
/* preset.c: calls fn for each step of a preset that an importer plugin brings. */
typedef cnr_status (*cnri_step_fn)(void *arg, const char *key, const char *text, cnr_error *err);
/* Calls fn(arg, key, text, err) for each step of the preset of that name; the texts live only
 * during the call. Stops at the first failure and returns it; CNR_E_ARG: there is no preset of
 * that name. */
cnr_status cnri_preset_each(const char *name, cnri_step_fn fn, void *arg, cnr_error *err);
/* An error for a mean and a std that can't be of pixels from 0 to 255. */
cnr_status cnri_preprocess_units(const cnri_preprocess *p, const char *where, cnr_error *err);
/* Fails if the net does not have `labels` classes. */
cnr_status cnri_labels_check(const cnr_graph *g, int64_t labels, const char *where, cnr_error *err);
/* labels.c: makes the lines of a file the net's class names; CNR_E_ARG if it has another number of
 * classes. */
cnr_status cnri_labels_read(cnr_graph *g, const char *path, cnr_error *err);
/* Like cnri_preprocess_set, but changes *p alone and not the graph. */
cnr_status cnri_preprocess_change(cnri_preprocess *p, const char *key, const char *text,
                                  cnr_error *err);
void cnri_preprocess_free(cnri_preprocess *p); /* frees the mean image, not the struct */
/* shape.c: metadata "symbol.NAME.default" of an open dimension, or the largest of its range; -1:
 * none. */
int64_t cnri_dim_default(const cnr_graph *g, int64_t dim);
/* Which axis of a picture input is which; -1: it has none. The width follows the height.
 * Channels come last if the last axis is 1 or 3 and the axis before height and width is neither.
 * At rank 3 the first axis counts samples if it is open or 1. */
typedef struct cnri_axes {
    int32_t batch, channels, height;
} cnri_axes;
/* Which axes of a tensor hold batch, channels and height (width follows); -1: it has none. */
cnri_axes cnri_picture_axes(const cnr_tensor *type);
/* Sources for the sizes that the net leaves open, the first that is given wins: `symbols` with
 * `values`; `batch`; `side`; the size that the preprocessing fixes; the net's default; the
 * picture's size; 3 for channels of pictures; 1. With `preprocess` NULL the sources about
 * pictures are skipped. */
typedef struct cnri_sizes {
    const char *const *symbols;
    const int64_t *values;
    int32_t n_symbols;
    int64_t batch;                     /* number of samples; 0: the net's default */
    const int64_t *side;               /* height and width that were asked for; NULL: none */
    const cnri_preprocess *preprocess; /* the settings of this input; NULL: it takes no pictures */
    const cnr_tensor *picture;         /* NULL: not known yet */
} cnri_sizes;
/* *out: the type of an input with unknown sizes filled from a picture, a side, or 1. */
void cnri_input_sizes(const cnr_graph *g, int32_t index, const cnri_sizes *from, cnr_tensor *out);
/* Fails unless every symbol in `from` is one of the graph's. */
cnr_status cnri_symbols_check(const cnr_graph *g, const cnri_sizes *from, cnr_error *err);
/* resize.c: antialiased bilinear scaling, equal to Pillow's bit for bit; `channels` 8-bit values
 * a pixel. */
cnr_status cnri_resize_u8(const uint8_t *in, int64_t h, int64_t w, int64_t channels, uint8_t *out,
                          int64_t out_h, int64_t out_w);

/* How pictures are varied for training; the words for it are read in samples/ of lab. */
typedef struct cnri_augment {
    double shift; /* at most this many pixels up, down and sideways; whole pixels are drawn */
    double flip;  /* probability of exchanging left and right */
    /* Least part of each side that is cut out and scaled back to full size; 1: no crop. */
    double crop;
    double turn;   /* at most this many degrees, either way */
    double colour; /* at most this relative change of brightness, contrast and saturation */
    bool any;
} cnri_augment;

/* ---- samples.c: sources by spec ---- */
/* An open source of samples. */
typedef struct cnri_samples {
    const cnr_source *source;
    void *state;
    cnr_source_info info;
    cnri_augment augment;
    int64_t every;             /* only every N-th sample of the source is read */
    const cnri_limits *limits; /* limits of the script that opened them; NULL: no script did */
} cnri_samples;
/* Opens a source by its specification, which may end in augmentation words. The caller closes
 * *out, also on failure. */
cnr_status cnri_samples_open(const char *spec, const char *split, cnri_samples *out,
                             cnr_error *err);
/* Reads one sample, varied if the source says so; out->label is -1 without a label. */
cnr_status cnri_samples_read(cnri_samples *s, int64_t index, cnr_sample *out, cnr_error *err);
void cnri_samples_close(cnri_samples *s); /* closes the source and zeroes s; none open: nothing */

#endif
