/* Epilogue chains: elementwise operators applied to a result while it is in the cache. */
#include "chain.h"
#include "neon.h"

neon_link neon_link_of(const cnr_node *node) {
    static const struct {
        const char *name;
        neon_link_kind kind;
        const char *a, *b; /* attributes */
    } known[] = {
        {"relu", NEON_LINK_RELU, NULL, NULL},
        {"relu6", NEON_LINK_CLIP, NULL, NULL},
        {"clip", NEON_LINK_CLIP, "min", "max"},
        {"leaky_relu", NEON_LINK_LEAKY_RELU, "alpha", NULL},
        {"add", NEON_LINK_ADD, NULL, NULL},
        {"mul", NEON_LINK_MUL, NULL, NULL},
        {"tanh", NEON_LINK_TANH, NULL, NULL},
        {"sigmoid", NEON_LINK_SIGMOID, NULL, NULL},
        {"swish", NEON_LINK_SWISH, "alpha", NULL},
        {"hard_sigmoid", NEON_LINK_HARD_SIGMOID, "alpha", "beta"},
        {"hard_swish", NEON_LINK_HARD_SWISH, NULL, NULL},
    };
    neon_link link = {NEON_LINK_APPLY, -1, 0.0f, 6.0f};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(node->desc->name, known[i].name) != 0) continue;
        link.kind = known[i].kind;
        if (known[i].a) link.a = (float)cnr_attr_float(node, known[i].a);
        if (known[i].b) link.b = (float)cnr_attr_float(node, known[i].b);
    }
    if (link.kind == NEON_LINK_CLIP && link.a != link.a) link.a = -__builtin_inff(); /* no limit */
    if (link.kind == NEON_LINK_CLIP && link.b != link.b) link.b = __builtin_inff();
    /* limits may come as inputs too: the operator knows */
    for (int32_t i = 1; i < node->n_inputs; i++)
        if (link.kind == NEON_LINK_CLIP && node->inputs[i]) link.kind = NEON_LINK_APPLY;
    return link;
}

int32_t neon_chain_accepts(const cnr_node *node, int32_t rank, const int64_t *dim) {
    return cnr_chain_length(node, rank, dim, NEON_MAX_CHAIN, NULL);
}

void neon_chain_plan(const cnr_node *node, neon_chain *chain) {
    chain->first = 0;
    chain->n = (int32_t)cnr_min(node->n_epilogue, NEON_MAX_CHAIN);
    for (int32_t i = 0; i < chain->n; i++) {
        chain->link[i] = neon_link_of(node->epilogue[i]->node);
        chain->link[i].operand = node->epilogue[i]->operand;
    }
}

void neon_link_unary(const neon_link *link, const cnr_node *node, const float *x, float *out,
                     int64_t n) {
    const neon_ukernels *uk = neon_uk;
    switch (link->kind) {
    case NEON_LINK_SIGMOID: uk->sigmoid(x, out, n); return;
    case NEON_LINK_TANH: uk->tanh(x, out, n); return;
    case NEON_LINK_SWISH: uk->swish(x, link->a, out, n); return;
    case NEON_LINK_RELU:
    case NEON_LINK_LEAKY_RELU:
    case NEON_LINK_CLIP:
    case NEON_LINK_HARD_SIGMOID:
    case NEON_LINK_HARD_SWISH: break;
    default: node->desc->apply_f32(node, x, NULL, out, n); return;
    }
    if (out != x) memcpy(out, x, (size_t)n * sizeof *x);
    if (link->kind == NEON_LINK_RELU) uk->relu(out, n);
    else if (link->kind == NEON_LINK_LEAKY_RELU) uk->leaky_relu(out, link->a, n);
    else if (link->kind == NEON_LINK_CLIP) uk->clip(out, link->a, link->b, n);
    else if (link->kind == NEON_LINK_HARD_SIGMOID) uk->hard_sigmoid(out, link->a, link->b, n);
    else uk->hard_swish(out, n);
}

void neon_chain_run(const neon_chain *chain, const cnr_node *node, float *x, int64_t first,
                    int64_t n) {
    for (int32_t i = chain->first; i < chain->n; i++) {
        const neon_link *link = &chain->link[i];
        const float *y = link->operand < 0
                             ? NULL : (const float *)node->inputs[link->operand]->data + first;
        if (!y) neon_link_unary(link, node->epilogue[i]->node, x, x, n);
        else if (link->kind == NEON_LINK_ADD) neon_uk->add(x, y, n);
        else if (link->kind == NEON_LINK_MUL) neon_uk->mul(x, y, n);
        else cnr_link_run(node, node->epilogue[i], x, first, n);
    }
}
