/* Channels in blocks: which block a value has, how kernels take it, what they are taken to cost.
 *
 * Element (n, c, p), p its place in the plane, of block b is at ((n * C/b + c/b) * plane + p) * b + c%b;
 * b 1 is plain. The block is a function of the shape and the instruction set, never of the layer, so
 * that neighbours agree. */
#ifndef NEON_BLOCKED_H
#define NEON_BLOCKED_H

#include "support.h"

/* The block of a value of this shape; 0: it is plain. */
int32_t neon_block_of(int32_t rank, const int64_t *dim);
/* 1 for plain. */
static inline int64_t neon_block(int32_t block) { return block > 1 ? block : 1; }
static inline int64_t neon_block_in(const cnr_tensor *t) { return neon_block(t->block); }

/* Takes the node with one result; operands of its chain come as the result goes. */
void neon_blocked_take(const cnr_node *node, cnr_accept *out, int32_t score, int32_t in_block,
                       int32_t out_block);
/* Nanoseconds of one thread at that share of what its vectors could do. */
double neon_cost_ns(double flops, double share);

/* A chain as a tile ends with it: what fits into registers, and the links from `rest` on. */
typedef struct neon_ending {
    neon_bound bound;
    int32_t operand; /* an input, -1 */
    neon_chain rest;
} neon_ending;
void neon_ending_plan(const cnr_node *node, neon_ending *out);

#endif
