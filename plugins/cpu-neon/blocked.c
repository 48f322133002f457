/* Channel blocks: the block size of a value, and how kernels accept it and apply epilogues. */
#include "blocked.h"

int32_t neon_channel_block(int64_t channels) {
    for (int32_t b = neon_uk->block; channels > 0 && b >= cnr_min(8, neon_uk->vl); b /= 2)
        if (channels % b == 0) return b;
    return 0;
}

int32_t neon_block_of(int32_t rank, const int64_t *dim) {
    int64_t plane = 1;
    for (int32_t i = 2; i < rank; i++) plane *= dim[i];
    /* 1: the memory is the same as plain */
    return rank < 3 || plane <= 1 ? 0 : neon_channel_block(dim[1]);
}

void neon_blocked_take(const cnr_node *node, cnr_accept *out, int32_t score, int32_t in_block,
                       int32_t out_block) {
    cnr_take(node, out, score);
    out->in_block[0] = in_block;
    out->out_block[0] = out_block;
    for (int32_t i = cnr_own_inputs(node); i < node->n_inputs; i++) out->in_block[i] = out_block;
}

int64_t neon_even_parts(int64_t n, int64_t wanted, int64_t others, int32_t threads) {
    wanted = cnr_max(1, cnr_min(n, wanted));
    if (wanted == 1 || others * wanted % threads == 0) return wanted;
    const int64_t even = cnr_round_up(wanted, threads);
    /* Takes the first operator of the rest as a bound, if it is a relu or clip. */
    return even <= n ? even : wanted;
}

/* Makes the first of the remaining operators the bound, if it is a relu, leaky relu or clip; else
 * changes nothing. */
static void take_bound(neon_ending *e) {
    const neon_link *link = &e->rest.link[e->rest.first];
    if (e->rest.first >= e->rest.n || link->operand >= 0) return;
    e->bound = (neon_bound){NEON_BOUND_NONE, link->a, link->b};
    if (link->kind == NEON_LINK_RELU) e->bound.kind = NEON_BOUND_RELU;
    else if (link->kind == NEON_LINK_LEAKY_RELU)
        e->bound = (neon_bound){NEON_BOUND_LEAKY, link->a, 0};
    else if (link->kind == NEON_LINK_CLIP) e->bound.kind = NEON_BOUND_CLIP;
    e->rest.first += e->bound.kind != NEON_BOUND_NONE;
}

void neon_ending_plan(const cnr_node *node, neon_ending *out) {
    *out = (neon_ending){.operand = -1};
    neon_chain_plan(node, &out->rest);
    const neon_link *link = out->rest.link;
    if (out->rest.n && link->kind == NEON_LINK_ADD && link->operand >= 0) {
        out->operand = link->operand;
        out->rest.first = 1;
    }
    take_bound(out);
}

void neon_bound_plan(const cnr_node *node, neon_ending *out) {
    *out = (neon_ending){.operand = -1};
    neon_chain_plan(node, &out->rest);
    take_bound(out);
}

void neon_plane_of(const cnr_window *window, int64_t block, neon_plane *out) {
    const cnr_window w = shape_window_three(window);
    *out = (neon_plane){.block = block, .out_wide = w.out[2], .row1 = w.out[1]};
    for (int i = 0; i < 2; i++) {
        out->in[i] = w.in[i + 1];
        out->kernel[i] = w.kernel[i + 1];
        out->stride[i] = w.stride[i + 1];
        out->dilation[i] = w.dilation[i + 1];
        out->pad[i] = w.pad_begin[i + 1];
    }
    const int64_t stride = out->stride[1], pad = out->pad[1];
    const int64_t room = out->in[1] - 1 + pad - (out->kernel[1] - 1) * out->dilation[1];
    out->whole0 = cnr_min(out->out_wide, pad > 0 ? cnr_div_up(pad, stride) : 0);
    out->whole1 = cnr_max(out->whole0, cnr_min(out->out_wide, room < 0 ? 0 : room / stride + 1));
}
