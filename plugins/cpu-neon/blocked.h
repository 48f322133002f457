/* Channels in blocks: which block a value has, how kernels take it, how they end.
 *
 * Element (n, c, p), p its place in the plane, of block b is at ((n * C/b + c/b) * plane + p) * b +
 * c%b; b 1 is plain. The block is a function of the shape and the instruction set, never of the
 * layer, so that neighbours agree. */
#ifndef NEON_BLOCKED_H
#define NEON_BLOCKED_H

#include "support.h"

/* The block of so many channels, wherever they have planes; 0: none. */
int32_t neon_channel_block(int64_t channels);
/* The block of a value of this shape; 0: it is plain. */
int32_t neon_block_of(int32_t rank, const int64_t *dim);
/* Takes the node with one result; operands of its chain come as the result goes. */
void neon_blocked_take(const cnr_node *node, cnr_accept *out, int32_t score, int32_t in_block,
                       int32_t out_block);

/* Into how many parts n things are cut, about as many as wanted, when each is done `others` times:
 * so that the threads get the same. Part i is [i * n / parts, (i + 1) * n / parts). */
int64_t neon_even_parts(int64_t n, int64_t wanted, int64_t others, int32_t threads);

/* A chain as a tile ends with it: what fits into registers, and the links from `rest` on. */
#define NEON_STRETCH \
    2048 /* floats that links are run on at a time: the first-level cache has them */
typedef struct neon_ending {
    neon_bound bound;
    int32_t operand; /* an input, -1 */
    neon_chain rest;
} neon_ending;
void neon_ending_plan(const cnr_node *node, neon_ending *out);
/* The same without the operand, for kernels whose store takes none. */
void neon_bound_plan(const cnr_node *node, neon_ending *out);

/* What of a window over planes does not change from one to the next; of one or two axes. */
void neon_plane_of(const cnr_window *w, int64_t block, neon_plane *out);

#endif
