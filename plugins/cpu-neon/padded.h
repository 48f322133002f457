/* Padded planes: a channel's input copied with its padding, so that no kernel checks borders.
 *
 * Rows are stored by phases of the stride along the last axis, so that one tap of all output
 * positions of a row is consecutive whatever the stride:
 *
 *     stride 2:   x0 x2 x4 ... | x1 x3 x5 ...
 *     position (iz, iy, ix) of the padded input is at
 *         iz * slice + iy * pitch + (ix % stride) * phase + ix / stride */
#ifndef NEON_PADDED_H
#define NEON_PADDED_H

#include "neon.h"

#include <cnnrun/kit.h>

/* A window and the padded planes that it moves over. */
typedef struct neon_padded {
    cnr_window w; /* always 3 axes; missing leading ones have size 1 */
    int64_t taps; /* number of taps */
    int64_t n;    /* output positions of a channel */
    int64_t in;   /* input floats of a channel, without padding */
    /* floats of a phase (of a stride), from row to row, of a slice, and of a padded channel */
    int64_t phase, pitch, slice, plane;
    int64_t high, deep; /* rows of a slice, slices of a plane */
    int64_t tap[];      /* offset of each tap */
} neon_padded;

/* Vector loads may exceed the last plane by this many floats. */
#define NEON_SLACK 64

/* Number of output positions of a channel. */
static inline int64_t neon_outputs(const cnr_window *w) {
    int64_t n = 1;
    for (int32_t i = 0; i < w->spatial; i++) n *= w->out[i];
    return n;
}
/* Allocated by the host; NULL when out of memory. */
neon_padded *neon_padded_new(const cnr_window *w);
/* Returns the offset, in floats, of the first output position of row `row` (of depth * height rows)
 * in a padded channel. */
int64_t neon_padded_row(const neon_padded *g, int64_t row);
/* 1 if the input plane itself can be used: stride 1 and no padding. */
int neon_unpadded(const neon_padded *g);
/* Copies one channel x to out with its padding, filled with `fill`; within a row, elements are
 * sorted by their phase of the stride. */
void neon_pad(const neon_padded *g, const float *x, float fill, float *out);
/* Copies a padded channel back to a plane x: its padding is left out, and what no window reaches
 * becomes 0. */
void neon_unpad(const neon_padded *g, const float *padded, float *x);
/* Splits output columns [col, col + n) into segments; at most n. Returns how many. */
int64_t neon_segments(const neon_padded *g, int64_t col, int64_t n, neon_segment *out);
/* Adds a tap's values, one for each output position in rows `pitch` apart, to an unpadded input
 * plane x; drops those in the padding. */
void neon_col2im_tap(const neon_padded *g, int64_t tap, const float *from, int64_t pitch, float *x);
/* Whether the window has one tap, stride 1 and no padding: the product then reads the input in
 * place. */
int neon_pointwise(const cnr_window *w);

#endif
