/* Offsets for blocks alive over ranges of steps, as low as can be found.
 *
 * Blocks are taken in some order, each to the lowest gap among those alive with it. Every best
 * placement comes from some such order, so the search is over orders: a few that are known to be
 * good, then one that moves a block at the peak forward as long as that may help. */
#include "core/plan/plan.h"

typedef struct pack {
    cnri_block *blocks;
    int32_t n;
    uint64_t alignment;
    int32_t *order, *best, *trial, *placed; /* placed: by offset */
    uint64_t *offsets; /* of the best */
} pack;

static uint64_t padded(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

static bool meet(const cnri_block *a, const cnri_block *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* Places in the given order; returns the height. Gives up beyond `limit`. */
static uint64_t place(pack *p, const int32_t *order, uint64_t limit) {
    uint64_t top = 0;
    for (int32_t i = 0; i < p->n; i++) {
        cnri_block *b = &p->blocks[order[i]];
        const uint64_t bytes = padded(b->bytes, p->alignment);
        uint64_t at = 0;
        for (int32_t k = 0; k < i; k++) { /* placed blocks by rising offset */
            const cnri_block *o = &p->blocks[p->placed[k]];
            if (!meet(b, o)) continue;
            if (o->offset >= at + bytes) break;
            const uint64_t end = o->offset + padded(o->bytes, p->alignment);
            if (end > at) at = end;
        }
        b->offset = at;
        if (at + bytes > top) top = at + bytes;
        if (top >= limit) return UINT64_MAX;
        int32_t k = i;
        while (k > 0 && p->blocks[p->placed[k - 1]].offset > at) {
            p->placed[k] = p->placed[k - 1];
            k--;
        }
        p->placed[k] = order[i];
    }
    return top;
}

static uint64_t keep(pack *p, const int32_t *order, uint64_t best) {
    const uint64_t top = place(p, order, best);
    if (top >= best) return best;
    memcpy(p->best, order, (size_t)p->n * sizeof *order);
    for (int32_t i = 0; i < p->n; i++) p->offsets[i] = p->blocks[i].offset;
    return top;
}

/* Which comes first under rule r; ties by size, then by index so that plans repeat. */
static bool before(const pack *p, int32_t r, int32_t x, int32_t y) {
    const cnri_block *a = &p->blocks[x], *b = &p->blocks[y];
    const int64_t la = a->last - a->first, lb = b->last - b->first;
    if (r == 1 && la != lb) return la > lb;
    if (r == 2 && a->first != b->first) return a->first < b->first;
    if (r == 3) {
        const double va = (double)a->bytes * (double)(la + 1);
        const double vb = (double)b->bytes * (double)(lb + 1);
        if (va != vb) return va > vb;
    }
    if (r == 4 && a->last != b->last) return a->last > b->last;
    return a->bytes != b->bytes ? a->bytes > b->bytes : x < y;
}

static void sort(pack *p, int32_t rule) { /* heapsort: no recursion, no allocation */
    int32_t *o = p->order;
    const int32_t n = p->n;
    for (int32_t i = 0; i < n; i++) o[i] = i;
    for (int32_t start = n / 2 - 1, end = n; end > 1;) {
        int32_t root;
        if (start >= 0) root = start--;
        else {
            const int32_t t = o[--end];
            o[end] = o[0];
            o[0] = t;
            root = 0;
        }
        for (int32_t child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && before(p, rule, o[child], o[child + 1])) child++;
            if (!before(p, rule, o[root], o[child])) break;
            const int32_t t = o[root];
            o[root] = o[child];
            o[child] = t;
        }
    }
}

static uint64_t random_next(uint64_t *state) { /* splitmix64, fixed seed: plans repeat */
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Moves the block at the top, or one alive with it, to an earlier place in the order. */
static uint64_t search(pack *p, uint64_t best, uint64_t bound) {
    uint64_t seed = 1;
    const int64_t cost = (int64_t)p->n * p->n / 4 + 1;
    int64_t tries = 40000000 / cost;
    if (tries > 4000) tries = 4000;
    for (int64_t t = 0; t < tries && best > bound; t++) {
        memcpy(p->trial, p->best, (size_t)p->n * sizeof *p->trial);
        int32_t peak = 0;
        for (int32_t i = 0; i < p->n; i++) {
            const cnri_block *b = &p->blocks[p->trial[i]];
            if (p->offsets[p->trial[i]] + padded(b->bytes, p->alignment) == best) peak = i;
        }
        const int32_t moves = 1 + (int32_t)(random_next(&seed) % 3);
        for (int32_t m = 0; m < moves; m++) {
            int32_t from = peak;
            if (m > 0 || random_next(&seed) % 4 == 0)
                from = (int32_t)(random_next(&seed) % (uint64_t)p->n);
            const int32_t to = (int32_t)(random_next(&seed) % (uint64_t)(from + 1));
            const int32_t moved = p->trial[from];
            memmove(&p->trial[to + 1], &p->trial[to], (size_t)(from - to) * sizeof *p->trial);
            p->trial[to] = moved;
        }
        best = keep(p, p->trial, best);
    }
    return best;
}

uint64_t cnri_arena_bound(const cnri_block *blocks, int32_t n, uint64_t alignment) {
    uint64_t most = 0;
    if (alignment == 0) alignment = 1;
    for (int32_t i = 0; i < n; i++) { /* the most alive at once is alive when some block begins */
        uint64_t sum = 0;
        for (int32_t k = 0; k < n; k++)
            if (blocks[k].first <= blocks[i].first && blocks[i].first <= blocks[k].last)
                sum += padded(blocks[k].bytes, alignment);
        if (sum > most) most = sum;
    }
    return most;
}

uint64_t cnri_arena_place(cnri_block *blocks, int32_t n, uint64_t alignment) {
    if (n <= 0) return 0;
    if (alignment == 0) alignment = 1;
    const size_t count = (size_t)n;
    pack p = {.blocks = blocks, .n = n, .alignment = alignment};
    void *room = cnri_alloc(count * (4 * sizeof(int32_t) + sizeof(uint64_t)));
    uint64_t best = UINT64_MAX;
    if (!room) { /* correct without a search: one behind the other */
        uint64_t at = 0;
        for (int32_t i = 0; i < n; i++) {
            blocks[i].offset = at;
            at += padded(blocks[i].bytes, alignment);
        }
        return at;
    }
    p.offsets = room;
    p.order = (int32_t *)(p.offsets + count);
    p.best = p.order + count;
    p.trial = p.best + count;
    p.placed = p.trial + count;
    const uint64_t bound = cnri_arena_bound(blocks, n, alignment);
    for (int32_t rule = 0; rule < 5 && best > bound; rule++) {
        sort(&p, rule);
        best = keep(&p, p.order, best);
    }
    best = search(&p, best, bound);
    for (int32_t i = 0; i < n; i++) blocks[i].offset = p.offsets[i];
    cnri_free(room);
    return best;
}
