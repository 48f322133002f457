/* Bytes with channels in blocks: which block a value has; x with its padding, as windows read it.
 *
 * Element (n, c, p), p its place in the plane, of block b is at ((n C/b + c/b) plane + p) b + c%b.
 * The block is a function of the shape alone, so that neighbours agree. */
#ifndef INT8_BLOCKED_H
#define INT8_BLOCKED_H

#include "int8.h"

/* 16, 8, or 0: neither divides the channels. */
int32_t int8_channel_block(int64_t channels);
/* The block of a value of this shape; 0: it is plain. Planes of one position are both. */
int32_t int8_block_of(int32_t rank, const int64_t *dim);
/* Accepts the node, which the caller has checked, with `in_block` for input 0 and `out_block` for
 * output 0. Returns CNR_OK. */
cnr_status int8_blocked_take(const cnr_node *node, cnr_accept *out, int32_t score, int32_t in_block,
                             int32_t out_block);

/* Planes of x, `pixel` bytes a position, copied with their padding. Columns that are a stride apart
 * lie side by side (a phase each), so that neighbours of y read neighbours. */
typedef struct int8_planes {
    cnr_window w;             /* always three axes */
    int64_t pixel, n;         /* 16, 8 or, of a plain x, 4: channels in fours; planes of a sample */
    int64_t rows[2], columns; /* of a padded plane; of a phase */
    int64_t phases, row, plane; /* bytes of a row of all phases; of a plane */
    int64_t points;             /* positions of y */
} int8_planes;

/* NULL, or why the node's window can't be had. dim: of y. */
const char *int8_conv_window(const cnr_node *node, cnr_window *out, int64_t *dim);
void int8_planes_of(const cnr_node *node, const cnr_window *w, int64_t pixel, int8_planes *out);
/* Positions follow one another as they lie in x, so x needs no copy. */
int int8_planes_lie(const cnr_node *node, const cnr_window *w, int64_t pixel);
/* Bytes from an output's place to what the tap reads; to the first tap of row `row` of y. */
int64_t int8_planes_tap(const int8_planes *p, int64_t z, int64_t y, int64_t x);
int64_t int8_planes_row(const int8_planes *p, int64_t row);
/* Copies plane `index` of the sample: bytes with their top bit flipped or not, `fill` around. */
void int8_planes_copy(const int8_planes *p, const cnr_tensor *x, int64_t sample, int64_t index,
                      uint8_t flip, uint8_t fill, uint8_t *to);

#endif
