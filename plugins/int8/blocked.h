/* The channel-blocked layout of bytes: block sizes of values, and padded copies of x for windows.
 *
 * Element (n, c, p), where p is its position in the plane, of block size b is at ((n C/b + c/b)
 * plane + p) b + c%b. The block size depends on the shape alone, so that successive layers
 * agree. */
#ifndef INT8_BLOCKED_H
#define INT8_BLOCKED_H

#include "int8.h"

/* The block size for so many channels: 16, 8, or 0 if neither divides their number or it is below
 * 1. */
int32_t int8_channel_block(int64_t channels);
/* The block size, in channels, of a value of this shape; 0: plain, which is the case below rank 3
 * and where a plane has at most one element (both layouts are the same then). */
int32_t int8_block_of(int32_t rank, const int64_t *dim);
/* Accepts the node, which the caller has checked, with `in_block` for input 0 and `out_block` for
 * output 0. Returns CNR_OK. */
cnr_status int8_blocked_take(const cnr_node *node, cnr_accept *out, int32_t score, int32_t in_block,
                             int32_t out_block);

/* Padded copies of x's planes, with `pixel` bytes per position. Columns whose distance is the
 * stride are stored next to each other and form a phase, so that adjacent outputs read adjacent
 * bytes. */
typedef struct int8_planes {
    cnr_window w; /* of the convolution or pooling, with always 3 spatial axes */
    /* pixel: 16, 8 or, for a plain x, 4 (groups of four channels); n: planes of a sample */
    int64_t pixel, n;
    int64_t rows[2], columns;   /* rows of a padded plane; columns of a phase */
    int64_t phases, row, plane; /* row, plane: bytes of a row of all phases, and of a plane */
    int64_t points;             /* positions of y */
} int8_planes;

/* Reads the node's window; returns NULL, or why it is refused. dim: of y. */
const char *int8_conv_window(const cnr_node *node, cnr_window *out, int64_t *dim);
/* Computes sizes and strides of the padded planes. */
void int8_planes_of(const cnr_node *node, const cnr_window *w, int64_t pixel, int8_planes *out);
/* int8_planes_flat: whether each window is one position and y has all positions in order.
 * int8_planes_lie: whether the kernel can, in addition, read x in place. */
int int8_planes_flat(const cnr_window *w, int64_t pixel);
/* 1 if the planes of x can be read in place: no padding, and its bytes need no flip. */
int int8_planes_lie(const cnr_node *node, const cnr_window *w, int64_t pixel);
/* int8_planes_tap: byte offset of a tap from the position of an output's first tap.
 * int8_planes_row: byte offset of the first tap for row `row` of y. */
int64_t int8_planes_tap(const int8_planes *p, int64_t z, int64_t y, int64_t x);
/* Byte offset, in a padded plane, of the first tap of output row `row`, which counts over depth and
 * height. */
int64_t int8_planes_row(const int8_planes *p, int64_t row);
/* Copies plane `index` of the sample with padding `fill`; XORs each byte with `flip`. */
void int8_planes_copy(const int8_planes *p, const cnr_tensor *x, int64_t sample, int64_t index,
                      uint8_t flip, uint8_t fill, uint8_t *to);

#endif
