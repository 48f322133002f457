#include "host/internal.h"

/* True if t is plain f32 of this shape, without channel blocks. */
static int has_shape(const cnr_tensor *t, int32_t rank, const int64_t *dim) {
    return cnr_is_plain(t, 1u << CNR_f32) && t->block <= 1 && t->rank == rank &&
           memcmp(t->dim, dim, (size_t)rank * sizeof *dim) == 0;
}

int cnri_link_fits(const cnr_epilogue *link, int32_t rank, const int64_t *dim) {
    const cnr_node *node = link->node;
    if (!(node->desc->flags & CNR_OP_ELEMENTWISE) || node->n_outputs != 1) return 0;
    if (link->chain_port < 0 || link->chain_port > 1) return 0;
    for (int32_t i = -1; i < node->n_inputs; i++) {
        const cnr_tensor *t = i < 0 ? node->outputs[0] : node->inputs[i];
        if (i == link->chain_port || !t) continue;
        if (i > 1 || (i >= 0 && link->operand < 0) || !has_shape(t, rank, dim)) return 0;
    }
    return 1;
}

int32_t cnri_chain_length(const cnr_node *node, int32_t rank, const int64_t *dim, int32_t max) {
    int32_t n = 0;
    while (n < node->n_epilogue && n < max && cnri_link_fits(node->epilogue[n], rank, dim) &&
           CNR_HAS(node->epilogue[n]->node->desc, apply_f32))
        n++;
    return n;
}
