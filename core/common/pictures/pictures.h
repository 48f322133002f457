/* pictures: samples of sources, and the way from a picture to a net's input. */
#ifndef CNRI_PICTURES_H
#define CNRI_PICTURES_H

#include "data/data.h"

/* ---- convert.c: by the settings of core/engine/data/preprocess.c ---- */
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
