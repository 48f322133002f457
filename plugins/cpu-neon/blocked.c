/* Channels in blocks: which block a value has, how kernels take it, what they are taken to cost. */
#include "blocked.h"

int32_t neon_block_of(int32_t rank, const int64_t *dim) {
    int64_t plane = 1;
    for (int32_t i = 2; i < rank; i++) plane *= dim[i];
    if (rank < 3 || plane <= 1 || dim[1] < 1) return 0; /* the bytes are the same */
    for (int32_t b = neon_uk->block; b >= 8 || b >= neon_uk->vl; b /= 2)
        if (dim[1] % b == 0) return b;
    return 0;
}

void neon_blocked_take(const cnr_node *node, cnr_accept *out, int32_t score, int32_t in_block,
                       int32_t out_block) {
    cnr_take(node, out, score);
    out->in_block[0] = in_block;
    out->out_block[0] = out_block;
    for (int32_t i = cnr_own_inputs(node); i < node->n_inputs; i++) out->in_block[i] = out_block;
}

double neon_cost_ns(double flops, double share) {
    /* two vectors of multiply-adds a cycle, at about 3.2 GHz */
    return flops / (share * 12.8 * neon_uk->vl);
}

void neon_ending_plan(const cnr_node *node, neon_ending *out) {
    neon_chain all;
    int32_t taken = 0;
    neon_chain_plan(node, &all);
    *out = (neon_ending){.operand = -1};
    if (taken < all.n && all.link[taken].kind == NEON_LINK_ADD && all.link[taken].operand >= 0)
        out->operand = all.link[taken++].operand;
    if (taken < all.n && all.link[taken].operand < 0) {
        const neon_link *link = &all.link[taken];
        out->bound = (neon_bound){NEON_BOUND_NONE, link->a, link->b};
        if (link->kind == NEON_LINK_RELU) out->bound.kind = NEON_BOUND_RELU;
        else if (link->kind == NEON_LINK_LEAKY_RELU) out->bound.kind = NEON_BOUND_LEAKY;
        else if (link->kind == NEON_LINK_CLIP) out->bound.kind = NEON_BOUND_CLIP;
        if (out->bound.kind) taken++;
    }
    out->rest = all;
    out->rest.first = taken;
}
