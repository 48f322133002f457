/* The detector's third stage: nearest neighbour among positive and negative patches. */
#include "tld.h"
#include <math.h>

/* Number of learning steps after which a use of a patch counts half. */
static const double half_life = 200;

/* Frees the patches of a shelf, and clears it. */
static void free_shelf(tld_shelf *s) {
    tld_host->free(s->at);
    tld_host->free(s->used);
    tld_host->free(s->born);
    *s = (tld_shelf){0};
}

/* Frees both shelves, not n. */
void tld_nearest_free(tld_nearest *n) {
    free_shelf(&n->positive);
    free_shelf(&n->negative);
}

/* Makes an empty shelf for `most` patches. False: out of memory. */
static bool make_shelf(tld_shelf *s, int32_t most) {
    free_shelf(s);
    s->most = most;
    s->at = tld_host->alloc((size_t)most * TLD_PATCH_PITCH * sizeof *s->at);
    s->used = tld_host->alloc((size_t)most * sizeof *s->used);
    s->born = tld_host->alloc((size_t)most * sizeof *s->born);
    return s->at && s->used && s->born;
}

cnr_status tld_nearest_make(tld_nearest *n, const tld_options *o, cnr_error *err) {
    n->clock = 0;
    if (make_shelf(&n->positive, (int32_t)o->positives) &&
        make_shelf(&n->negative, (int32_t)o->negatives))
        return CNR_OK;
    tld_nearest_free(n);
    return tld_host->fail(err, CNR_E_MEMORY, "tld", "no memory for patches");
}

/* Index of the highest of the first `n` correlations, and its value in *out; -1, and -1: there are
 * none. */
static int32_t highest(const float *row, int32_t n, float *out) {
    int32_t best = -1;
    *out = -1;
    for (int32_t i = 0; i < n; i++)
        if (best < 0 || row[i] > *out) {
            *out = row[i];
            best = i;
        }
    return best;
}

/* Similarity from correlations: with distance 1 - correlation, S = distance to negatives / sum of
 * both distances. */
static float relative(float positive, float negative) {
    const float p = 0.5f - 0.5f * positive, n = 0.5f - 0.5f * negative;
    return p + n > 0 ? n / (p + n) : 0;
}

/* Judges a patch by its correlations with the patches of both shelves; counts the nearest one as
 * used. */
static tld_similar judge(tld_nearest *n, const float *row, const float *against) {
    const tld_shelf *p = &n->positive, *q = &n->negative;
    tld_similar s;
    float first;
    const int32_t near = highest(row, p->n, &s.to_positive);
    const int32_t far = highest(against, q->n, &s.to_negative);
    highest(row, (p->n + 1) / 2, &first);
    s.nearest_positive = near;
    s.relative = relative(s.to_positive, s.to_negative);
    s.conservative = relative(first, s.to_negative);
    if (near >= 0) p->used[near] += pow(2, (double)n->clock / half_life);
    if (far >= 0) q->used[far] += pow(2, (double)n->clock / half_life);
    return s;
}

/* Compares `count` patches with all that are remembered, and fills out[i] for patch i; without
 * memory they are like none. */
void tld_compare(tld_nearest *n, const float *patches, int32_t count, tld_similar *out) {
    enum { SOME = 16 };
    const tld_shelf *p = &n->positive, *q = &n->negative;
    float *room = tld_host->alloc(SOME * (size_t)(p->n + q->n + 1) * sizeof *room);
    for (int32_t i = 0; i < count; i++) out[i] = (tld_similar){.nearest_positive = -1};
    for (int32_t at = 0; room && at < count; at += SOME) {
        const int32_t some = (int32_t)cnr_min(SOME, count - at);
        const float *from = patches + (int64_t)at * TLD_PATCH_PITCH;
        float *against = room + (int64_t)SOME * p->n;
        tld_v->products(from, some, p->at, p->n, room);
        tld_v->products(from, some, q->at, q->n, against);
        for (int32_t i = 0; i < some; i++)
            out[at + i] = judge(n, room + (int64_t)i * p->n, against + (int64_t)i * q->n);
    }
    tld_host->free(room);
}

void tld_compared(tld_nearest *n, const float *products, int32_t count, tld_similar *out) {
    const int64_t positives = n->positive.most, all = positives + n->negative.most;
    for (int32_t i = 0; i < count; i++)
        out[i] = judge(n, products + i * all, products + i * all + positives);
}

/* Removes patch i; the index of each later patch falls by 1. */
static void drop(tld_shelf *s, int32_t i) {
    s->n--;
    memmove(s->at + (int64_t)i * TLD_PATCH_PITCH, s->at + (int64_t)(i + 1) * TLD_PATCH_PITCH,
            (size_t)(s->n - i) * TLD_PATCH_PITCH * sizeof *s->at);
    memmove(s->used + i, s->used + i + 1, (size_t)(s->n - i) * sizeof *s->used);
    memmove(s->born + i, s->born + i + 1, (size_t)(s->n - i) * sizeof *s->born);
}

/* Index of the patch that was nearest least often; the first patch, 0, stays. */
static int32_t least_useful(const tld_shelf *s) {
    int32_t worst = 1; /* the first is the user's and stays */
    for (int32_t i = 2; i < s->n; i++)
        if (s->used[i] < s->used[worst]) worst = i;
    return worst;
}

/* Remembers a patch of the object (positive) or of others, behind patch `behind` (-1: at the end);
 * a full shelf drops its least useful one. */
void tld_remember(tld_nearest *n, bool positive, const float *patch, int32_t behind) {
    tld_shelf *s = positive ? &n->positive : &n->negative;
    int32_t at = behind < 0 || behind >= s->n ? s->n : behind + 1;
    if (s->n == s->most) {
        const int32_t i = least_useful(s);
        drop(s, i);
        if (at > i) at--;
    }
    memmove(s->at + (int64_t)(at + 1) * TLD_PATCH_PITCH, s->at + (int64_t)at * TLD_PATCH_PITCH,
            (size_t)(s->n - at) * TLD_PATCH_PITCH * sizeof *s->at);
    memmove(s->used + at + 1, s->used + at, (size_t)(s->n - at) * sizeof *s->used);
    memmove(s->born + at + 1, s->born + at, (size_t)(s->n - at) * sizeof *s->born);
    memcpy(s->at + (int64_t)at * TLD_PATCH_PITCH, patch, TLD_PATCH_PITCH * sizeof *patch);
    s->n++;
    s->born[at] = n->clock;
    s->used[at] = pow(2, (double)++n->clock / half_life);
    if (n->clock < 100 * (uint64_t)half_life) return;
    for (int32_t k = 0; k < 2; k++) { /* rescale before the numbers overflow a double */
        tld_shelf *each = k ? &n->positive : &n->negative;
        for (int32_t i = 0; i < each->n; i++)
            each->used[i] *= pow(2, -(double)n->clock / half_life);
    }
    n->clock = 0;
}
