/* Channel blocks: the block size of a value, and how kernels accept it and apply epilogues.
 *
 * Element (n, c, p), where p is its position in the plane, of block size b is at ((n * C/b + c/b) *
 * plane + p) * b + c%b; b = 1 is the plain layout. The block size depends on the shape and the
 * instruction set only, so that successive layers agree. */
#ifndef NEON_BLOCKED_H
#define NEON_BLOCKED_H

#include "support.h"

/* The block size for this number of channels, if they have planes; 0: plain. */
int32_t neon_channel_block(int64_t channels);
/* The block size of a value of this shape; 0: plain. */
int32_t neon_block_of(int32_t rank, const int64_t *dim);
/* Accepts a node with one output; its epilogue's operands have the output's layout. */
void neon_blocked_take(const cnr_node *node, cnr_accept *out, int32_t score, int32_t in_block,
                       int32_t out_block);

/* The number of parts into which n things are cut, near `wanted`, so that threads have equal work
 * if each part is done `others` times. Part i is [i * n / parts, (i + 1) * n / parts). */
int64_t neon_even_parts(int64_t n, int64_t wanted, int64_t others, int32_t threads);

/* The epilogue of a tile: what is applied in registers; links from `rest` on follow on the stored
 * result. */
#define NEON_STRETCH 2048 /* floats to which links are applied at a time; they fit the L1 cache */
/* What follows a blocked kernel: an added input, a bound, then other operators. */
typedef struct neon_ending {
    neon_bound bound;
    int32_t operand; /* input that is added; -1: none */
    neon_chain rest;
} neon_ending;
/* Splits the operators behind a node into an added operand, a bound and the rest; operand -1:
 * none. */
void neon_ending_plan(const cnr_node *node, neon_ending *out);
/* neon_ending_plan without an operand, for kernels whose store adds none. */
void neon_bound_plan(const cnr_node *node, neon_ending *out);

/* Fills *out with what a window of one or two axes is for all planes, in blocks of `block`
 * channels. */
void neon_plane_of(const cnr_window *w, int64_t block, neon_plane *out);

#endif
