/* Epilogues on results while they are in the cache: bounds and sums vectorised, others by the
 * operators' apply_f32 hooks. */
#include "sparse.h"

#include <math.h>

/* An epilogue step in the form that the kernels compute: a bound, an addition, or else the
 * operator's own function. */
static csr_link link_of(const cnr_epilogue *e) {
    const cnr_node *node = e->node;
    const char *name = node->desc->name;
    csr_link link = {.kind = CSR_LINK_APPLY, .operand = e->operand, .low = 0, .high = INFINITY};
    if (e->operand >= 0) {
        if (strcmp(name, "add") == 0) link.kind = CSR_LINK_ADD;
        return link;
    }
    if (strcmp(name, "relu") == 0) link.kind = CSR_LINK_BOUND;
    if (strcmp(name, "relu6") == 0) {
        link.kind = CSR_LINK_BOUND;
        link.high = 6;
    }
    if (strcmp(name, "clip") == 0) {
        link.kind = CSR_LINK_BOUND;
        link.low = (float)cnr_attr_float(node, "min");
        link.high = (float)cnr_attr_float(node, "max");
    }
    return link;
}

/* *out receives the node's epilogue in the kernels' form. */
void csr_chain_of(const cnr_node *node, csr_chain *out) {
    out->n = node->n_epilogue;
    for (int32_t i = 0; i < out->n; i++) out->link[i] = link_of(node->epilogue[i]);
}

/* Limits n values to [low, high], in place; not-a-number stays. */
static void bound(const csr_link *link, float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) { /* NaN stays */
        const float y = x[i] < link->low ? link->low : x[i];
        x[i] = y > link->high ? link->high : y;
    }
}

void csr_chain_run(const csr_chain *chain, int32_t from, const cnr_node *node, float *x,
                   int64_t first, int64_t n) {
    for (int32_t i = from; i < chain->n; i++) {
        const csr_link *link = &chain->link[i];
        if (link->kind == CSR_LINK_BOUND) bound(link, x, n);
        else if (link->kind == CSR_LINK_ADD) {
            const float *y = (const float *)node->inputs[link->operand]->data + first;
            for (int64_t k = 0; k < n; k++) x[k] += y[k];
        } else cnr_link_run(node, node->epilogue[i], x, first, n);
    }
}
