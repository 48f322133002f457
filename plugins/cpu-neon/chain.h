/* Epilogue chains: element-wise operators applied to a result while it is in the cache. */
#ifndef NEON_CHAIN_H
#define NEON_CHAIN_H

#include <cnnrun/kernel.h>

#define NEON_MAX_CHAIN 8

/* Operators that kernels apply to their results. */
typedef enum neon_link_kind {
    NEON_LINK_APPLY, /* by the operator's apply_f32 hook */
    NEON_LINK_RELU,
    NEON_LINK_LEAKY_RELU,
    NEON_LINK_ADD,
    NEON_LINK_MUL,
    NEON_LINK_DIV,
    NEON_LINK_SIGMOID,
    NEON_LINK_TANH,
    NEON_LINK_CLIP,
    NEON_LINK_SWISH,
    NEON_LINK_HARD_SIGMOID,
    NEON_LINK_HARD_SWISH,
    NEON_LINK_ERF,
    NEON_LINK_GELU,
    NEON_LINK_GELU_TANH
} neon_link_kind;

/* One operator behind a kernel: its fast form, its operand's port (-1: none), constants, and how
 * the operand repeats. */
typedef struct neon_link {
    neon_link_kind kind;
    int32_t operand;
    float a, b;
    /* Element i of the result uses element i / each % n of a broadcast operand; n = 0: the operand
     * has the result's shape. */
    int64_t each, n;
} neon_link;

/* The operators behind a kernel; those before `first` are done already. */
typedef struct neon_chain {
    int32_t first, n; /* links [first, n) are applied */
    neon_link link[NEON_MAX_CHAIN];
} neon_chain;

/* Returns how many links of the node's epilogue, from the first on, can be applied to a result of
 * this shape. */
int32_t neon_chain_accepts(const cnr_node *node, int32_t rank, const int64_t *dim);
/* neon_chain_accepts for a plain result, whose operands may also broadcast along a contiguous range
 * of its axes. */
int32_t neon_chain_accepts_broadcast(const cnr_node *node, int32_t rank, const int64_t *dim);
/* Fills `chain` from the node's accepted epilogue. */
void neon_chain_plan(const cnr_node *node, neon_chain *chain);
/* Applies the chain to x[0 .. n), the elements of output 0 from `first` on. */
void neon_chain_run(const neon_chain *chain, const cnr_node *node, float *x, int64_t first,
                    int64_t n);
/* The fast form of an operator on one f32 operand; NEON_LINK_APPLY if there is none. */
neon_link neon_link_of(const cnr_node *node);
/* out = link(x) for a link without operand; out may be x. */
void neon_link_unary(const neon_link *link, const cnr_node *node, const float *x, float *out,
                     int64_t n);

#endif
