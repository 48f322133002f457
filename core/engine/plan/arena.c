/* Offsets for blocks alive over ranges of steps, as low as can be found.
 *
 * Blocks are taken in some order, each to the lowest gap among those alive with it. Every best
 * placement comes from some such order, so the search is over orders: a few that are known to be
 * good, then one that moves a block at the peak forward as long as that may help. */
#include "plan/plan.h"

enum { FEW = 16 }; /* blocks; with more, finding and sorting the few that overlap pays off */
enum { BY_SIZE, BY_LENGTH, BY_FIRST, BY_AREA, BY_LAST, N_RULES, BY_OFFSET = N_RULES };

/* Blocks that are placed in one arena: working lists and the best order so far. */
typedef struct pack {
    cnri_block *blocks;
    int32_t n;
    uint64_t alignment;
    int32_t *order, *best, *trial;
    /* Indices by offset: of all placed blocks; of those that overlap one block in time. */
    int32_t *placed, *near;
    /* Block indices sorted by first step, and the place of each block in that list. */
    int32_t *sorted, *rank;
    /* Tree over `sorted`: the latest last step among the placed blocks below each node. */
    int32_t *tree, leaves;
    uint64_t *offsets; /* of the best placement found so far */
} pack;

/* `bytes` rounded up to the alignment. */
static uint64_t padded(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

/* True if two blocks are in use at the same time. */
static bool meet(const cnri_block *a, const cnri_block *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* True if block x goes before block y under a rule. Ties go by size, then by index, so that
 * plans are reproducible. */
static bool comes_first(const cnri_block *blocks, int32_t r, int32_t x, int32_t y) {
    const cnri_block *a = &blocks[x], *b = &blocks[y];
    const int64_t la = a->last - a->first, lb = b->last - b->first;
    if (r == BY_LENGTH && la != lb) return la > lb;
    if (r == BY_FIRST && a->first != b->first) return a->first < b->first;
    if (r == BY_AREA) {
        const double va = (double)a->bytes * (double)(la + 1);
        const double vb = (double)b->bytes * (double)(lb + 1);
        if (va != vb) return va > vb;
    }
    if (r == BY_LAST && a->last != b->last) return a->last > b->last;
    if (r == BY_OFFSET && a->offset != b->offset) return a->offset < b->offset;
    return a->bytes != b->bytes ? a->bytes > b->bytes : x < y;
}

/* Sorts n block numbers in o by the rule; heapsort: no recursion, no allocation. */
static void sort(const cnri_block *blocks, int32_t *o, int32_t n, int32_t rule) {
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
            if (child + 1 < end && comes_first(blocks, rule, o[child], o[child + 1])) child++;
            if (!comes_first(blocks, rule, o[root], o[child])) break;
            const int32_t t = o[root];
            o[root] = o[child];
            o[child] = t;
        }
    }
}

/* Sorts all block indices into o by a rule. */
static void sort_all(const cnri_block *blocks, int32_t *o, int32_t n, int32_t rule) {
    for (int32_t i = 0; i < n; i++) o[i] = i;
    sort(blocks, o, n, rule);
}

/* ---- those alive with a block ---- */

/* Empties the tree. */
static void tree_clear(pack *p) {
    for (int32_t i = 0; i < 2 * p->leaves; i++) p->tree[i] = INT32_MIN;
}

/* Adds a placed block's last step to the tree. */
static void tree_add(pack *p, int32_t block) {
    const int32_t last = p->blocks[block].last;
    for (int32_t i = p->leaves + p->rank[block]; i > 0 && p->tree[i] < last; i /= 2)
        p->tree[i] = last;
}

/* First place in `sorted`, from `at` on, of a placed block that lives to step `first` or later;
 * p->leaves: none. */
static int32_t tree_next(const pack *p, int32_t at, int32_t first) {
    if (at >= p->leaves) return p->leaves;
    int32_t i = p->leaves + at;
    while (p->tree[i] < first) {
        while (i % 2) i /= 2;
        if (i == 0) return p->leaves;
        i++;
    }
    while (i < p->leaves) i = 2 * i + (p->tree[2 * i] < first);
    return i - p->leaves;
}

/* Fills `near` with at most `capacity` placed blocks that overlap b in time; -1: there are more. */
static int32_t gather(pack *p, const cnri_block *b, int32_t capacity) {
    int32_t n = 0;
    for (int32_t at = tree_next(p, 0, b->first); at < p->n; at = tree_next(p, at + 1, b->first)) {
        if (p->blocks[p->sorted[at]].first > b->last) break;
        if (n == capacity) return -1;
        p->near[n++] = p->sorted[at];
    }
    sort(p->blocks, p->near, n, BY_OFFSET);
    return n;
}

/* ---- placing ---- */

/* Lowest offset in bytes for b among the gaps between n blocks sorted by offset; blocks that don't
 * live with b are skipped. */
static uint64_t lowest(const pack *p, const cnri_block *b, const int32_t *list, int32_t n) {
    const uint64_t bytes = padded(b->bytes, p->alignment);
    uint64_t at = 0;
    for (int32_t k = 0; k < n; k++) {
        const cnri_block *o = &p->blocks[list[k]];
        if (!meet(b, o)) continue;
        if (o->offset >= at + bytes) break;
        const uint64_t end = o->offset + padded(o->bytes, p->alignment);
        if (end > at) at = end;
    }
    return at;
}

/* Inserts a block into `placed`, which holds n in order of offset. */
static void insert(pack *p, int32_t block, int32_t n) {
    const uint64_t at = p->blocks[block].offset;
    int32_t low = 0, high = n;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (p->blocks[p->placed[middle]].offset > at) high = middle;
        else low = middle + 1;
    }
    memmove(&p->placed[low + 1], &p->placed[low], (size_t)(n - low) * sizeof *p->placed);
    p->placed[low] = block;
}

/* Places the blocks in the given order. Returns the height in bytes; gives up once it exceeds
 * `limit`. In long nets few blocks overlap, so those are collected and sorted; if most overlap,
 * the list of all is used. */
static uint64_t place(pack *p, const int32_t *order, uint64_t limit) {
    uint64_t top = 0;
    tree_clear(p);
    for (int32_t i = 0; i < p->n; i++) {
        cnri_block *b = &p->blocks[order[i]];
        const int32_t met = i < FEW ? -1 : gather(p, b, i / FEW);
        b->offset = met < 0 ? lowest(p, b, p->placed, i) : lowest(p, b, p->near, met);
        const uint64_t end = b->offset + padded(b->bytes, p->alignment);
        if (end > top) top = end;
        if (top >= limit) return UINT64_MAX;
        insert(p, order[i], i);
        tree_add(p, order[i]);
    }
    return top;
}

/* Places the blocks in an order and keeps the result if it needs less than `best` bytes; returns
 * the smaller. */
static uint64_t keep(pack *p, const int32_t *order, uint64_t best) {
    const uint64_t top = place(p, order, best);
    if (top >= best) return best;
    memcpy(p->best, order, (size_t)p->n * sizeof *order);
    for (int32_t i = 0; i < p->n; i++) p->offsets[i] = p->blocks[i].offset;
    return top;
}

/* Next number of SplitMix64; *state advances. The seed is fixed, so that plans are reproducible. */
static uint64_t random_next(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Improves the order: moves the block at the top, or one that overlaps it, to an earlier place.
 * Returns the best height. */
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
    uint64_t maximum = 0, sum = 0;
    int32_t *begins = n > 0 ? cnri_alloc((size_t)n * 2 * sizeof *begins) : NULL;
    if (!begins) return 0;
    int32_t *ends = begins + n, gone = n;
    if (alignment == 0) alignment = 1;
    sort_all(blocks, begins, n, BY_FIRST);
    sort_all(blocks, ends, n, BY_LAST); /* by last step, falling */
    for (int32_t i = 0; i < n; i++) {   /* the peak is reached when some block begins */
        const cnri_block *b = &blocks[begins[i]];
        for (; blocks[ends[gone - 1]].last < b->first; gone--)
            sum -= padded(blocks[ends[gone - 1]].bytes, alignment);
        sum += padded(b->bytes, alignment);
        if (sum > maximum) maximum = sum;
    }
    cnri_free(begins);
    return maximum;
}

uint64_t cnri_arena_place(cnri_block *blocks, int32_t n, uint64_t alignment) {
    if (n <= 0) return 0;
    if (alignment == 0) alignment = 1;
    const size_t count = (size_t)n;
    pack p = {.blocks = blocks, .n = n, .alignment = alignment};
    for (p.leaves = 1; p.leaves < n;) p.leaves *= 2;
    const size_t words = 7 * count + 2 * (size_t)p.leaves;
    void *memory = cnri_alloc(count * sizeof(uint64_t) + words * sizeof(int32_t));
    uint64_t best = UINT64_MAX;
    if (!memory) { /* out of memory: place blocks one behind the other, which is always correct */
        uint64_t at = 0;
        for (int32_t i = 0; i < n; i++) {
            blocks[i].offset = at;
            at += padded(blocks[i].bytes, alignment);
        }
        return at;
    }
    p.offsets = memory;
    p.order = (int32_t *)(p.offsets + count);
    p.best = p.order + count;
    p.trial = p.best + count;
    p.placed = p.trial + count;
    p.near = p.placed + count;
    p.sorted = p.near + count;
    p.rank = p.sorted + count;
    p.tree = p.rank + count;
    sort_all(blocks, p.sorted, n, BY_FIRST);
    for (int32_t i = 0; i < n; i++) p.rank[p.sorted[i]] = i;
    const uint64_t bound = cnri_arena_bound(blocks, n, alignment);
    for (int32_t rule = 0; rule < N_RULES && best > bound; rule++) {
        sort_all(blocks, p.order, n, rule);
        best = keep(&p, p.order, best);
    }
    best = search(&p, best, bound);
    for (int32_t i = 0; i < n; i++) blocks[i].offset = p.offsets[i];
    cnri_free(memory);
    return best;
}
