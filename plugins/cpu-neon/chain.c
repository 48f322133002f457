/* Epilogue chains: element-wise operators applied to a result while it is in the cache. */
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
        {"div", NEON_LINK_DIV, NULL, NULL},
        {"tanh", NEON_LINK_TANH, NULL, NULL},
        {"sigmoid", NEON_LINK_SIGMOID, NULL, NULL},
        {"swish", NEON_LINK_SWISH, "alpha", NULL},
        {"hard_sigmoid", NEON_LINK_HARD_SIGMOID, "alpha", "beta"},
        {"hard_swish", NEON_LINK_HARD_SWISH, NULL, NULL},
        {"erf", NEON_LINK_ERF, NULL, NULL},
        {"gelu", NEON_LINK_GELU, NULL, NULL},
    };
    neon_link link = {.operand = -1, .b = 6.0f};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(node->desc->name, known[i].name) != 0) continue;
        link.kind = known[i].kind;
        if (known[i].a) link.a = (float)cnr_attr_float(node, known[i].a);
        if (known[i].b) link.b = (float)cnr_attr_float(node, known[i].b);
    }
    /* no lower limit */
    if (link.kind == NEON_LINK_CLIP && link.a != link.a) link.a = -__builtin_inff();
    if (link.kind == NEON_LINK_CLIP && link.b != link.b) link.b = __builtin_inff();
    /* limits may be inputs as well: use the operator's hook */
    for (int32_t i = 1; i < node->n_inputs; i++)
        if (link.kind == NEON_LINK_CLIP && node->inputs[i]) link.kind = NEON_LINK_APPLY;
    if (link.kind == NEON_LINK_GELU && cnr_attr_is(node, "approximate", "tanh"))
        link.kind = NEON_LINK_GELU_TANH;
    return link;
}

int32_t neon_chain_accepts(const cnr_node *node, int32_t rank, const int64_t *dim) {
    return neon_host->chain_length(node, rank, dim, NEON_MAX_CHAIN);
}

/* Whether the link adds, multiplies by or divides by a broadcast operand. */
static int is_broadcast_link(const cnr_node *node, const cnr_epilogue *link, int32_t rank,
                             const int64_t *dim) {
    neon_link known = neon_link_of(link->node);
    const int divides = known.kind == NEON_LINK_DIV && link->chain_port == 0;
    if ((known.kind != NEON_LINK_ADD && known.kind != NEON_LINK_MUL && !divides) ||
        link->operand < 0)
        return 0;
    const cnr_tensor *t = node->inputs[link->operand], *y = link->node->outputs[0];
    if (!t || !cnr_is_plain(t, 1u << CNR_f32) || t->block > 1) return 0;
    if (!cnr_is_plain(y, 1u << CNR_f32) || y->block > 1 || y->rank != rank ||
        memcmp(y->dim, dim, (size_t)rank * sizeof *dim) != 0)
        return 0;
    return shape_stretch(t, rank, dim, &known.each, &known.n);
}

int32_t neon_chain_accepts_broadcast(const cnr_node *node, int32_t rank, const int64_t *dim) {
    int32_t n = 0;
    for (; n < node->n_epilogue && n < NEON_MAX_CHAIN; n++) {
        const cnr_epilogue *link = node->epilogue[n];
        if (is_broadcast_link(node, link, rank, dim)) continue;
        if (!neon_host->link_fits(link, rank, dim) || !CNR_HAS(link->node->desc, apply_f32)) break;
    }
    return n;
}

void neon_chain_plan(const cnr_node *node, neon_chain *chain) {
    chain->first = 0;
    chain->n = (int32_t)cnr_min(node->n_epilogue, NEON_MAX_CHAIN);
    for (int32_t i = 0; i < chain->n; i++) {
        chain->link[i] = neon_link_of(node->epilogue[i]->node);
        const int32_t operand = node->epilogue[i]->operand;
        const cnr_tensor *y = node->outputs[0];
        chain->link[i].operand = operand;
        if (operand >= 0 && cnr_count(node->inputs[operand]) != cnr_count(y))
            shape_stretch(node->inputs[operand], y->rank, y->dim, &chain->link[i].each,
                          &chain->link[i].n);
    }
}

void neon_link_unary(const neon_link *link, const cnr_node *node, const float *x, float *out,
                     int64_t n) {
    const neon_ukernels *uk = neon_uk;
    switch (link->kind) {
    case NEON_LINK_SIGMOID: uk->sigmoid(x, out, n); return;
    case NEON_LINK_TANH: uk->tanh(x, out, n); return;
    case NEON_LINK_ERF: uk->erf(x, out, n); return;
    case NEON_LINK_GELU: uk->gelu(x, out, n); return;
    case NEON_LINK_GELU_TANH: uk->gelu_tanh(x, out, n); return;
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

/* Applies x op y by elements, in place: add, mul or div. */
static void by_operand(neon_link_kind kind, float *x, const float *y, int64_t n) {
    if (kind == NEON_LINK_ADD) neon_uk->add(x, y, n);
    else if (kind == NEON_LINK_MUL) neon_uk->mul(x, y, n);
    else neon_uk->divide(x, y, n);
}

/* Applies x op y for one number y, in place. */
static void by_number(neon_link_kind kind, float *x, float y, int64_t n) {
    if (kind == NEON_LINK_ADD) neon_uk->affine(x, 1.0f, y, x, n);
    else if (kind == NEON_LINK_MUL) neon_uk->affine(x, y, 0.0f, x, n);
    else
        for (int64_t i = 0; i < n; i++) x[i] /= y;
}

enum { SHORT_OPERAND = 64, REPEATED = 256 };

/* A short operand that repeats along the last axis is written out, so that vectors are long. */
static void repeat_link(const neon_link *link, const float *operand, float *x, int64_t first,
                        int64_t n) {
    float repeated[REPEATED];
    const int64_t step = REPEATED / link->n * link->n, all = cnr_min(step, n);
    for (int64_t i = 0, at = first % link->n; i < all; i++, at = at + 1 < link->n ? at + 1 : 0)
        repeated[i] = operand[at];
    for (int64_t i = 0; i < n; i += step)
        by_operand(link->kind, x + i, repeated, cnr_min(step, n - i));
}

/* Applies a link with a broadcast operand to n results in place; first: position of x[0] in the
 * output. */
static void broadcast_link(const neon_link *link, const float *operand, float *x, int64_t first,
                           int64_t n) {
    if (link->each == 1 && link->n > 1 && link->n <= SHORT_OPERAND && n > 2 * link->n) {
        repeat_link(link, operand, x, first, n);
        return;
    }
    while (n > 0) {
        const int64_t at = first / link->each % link->n;
        int64_t here = link->each == 1 ? link->n - at : link->each - first % link->each;
        if (link->n == 1) here = n;
        here = cnr_min(here, n);
        if (link->each == 1 && link->n > 1) by_operand(link->kind, x, operand + at, here);
        else by_number(link->kind, x, operand[at], here);
        x += here;
        first += here;
        n -= here;
    }
}

void neon_chain_run(const neon_chain *chain, const cnr_node *node, float *x, int64_t first,
                    int64_t n) {
    for (int32_t i = chain->first; i < chain->n; i++) {
        const neon_link *link = &chain->link[i];
        const float *operand = link->operand < 0 ? NULL : node->inputs[link->operand]->data;
        if (!operand) neon_link_unary(link, node->epilogue[i]->node, x, x, n);
        else if (link->n) broadcast_link(link, operand, x, first, n);
        else if (link->kind == NEON_LINK_ADD || link->kind == NEON_LINK_MUL ||
                 (link->kind == NEON_LINK_DIV && node->epilogue[i]->chain_port == 0))
            by_operand(link->kind, x, operand + first, n);
        else cnr_link_run(node, node->epilogue[i], x, first, n);
    }
}
