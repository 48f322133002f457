/* Offsets of the arena: never overlapping, and within 5% of the best that brute force finds. */
#include "plan/plan.h"
#include "tap.h"
#include <sys/resource.h>

static uint32_t dice_state = 12345;
/* A number below n, at random. */
static uint32_t dice(uint32_t n) {
    dice_state = dice_state * 1664525u + 1013904223u;
    return (dice_state >> 8) % n;
}

/* bytes rounded up to alignment. */
static uint64_t up(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

/* True: no two blocks that live at once overlap, and all lie in total. */
static bool sound(const cnri_block *b, int32_t n, uint64_t alignment, uint64_t total) {
    for (int32_t i = 0; i < n; i++) {
        if (b[i].offset % alignment || b[i].offset + b[i].bytes > total) return false;
        for (int32_t k = 0; k < i; k++) {
            const bool together = b[i].first <= b[k].last && b[k].first <= b[i].last;
            if (together && b[i].offset < b[k].offset + b[k].bytes &&
                b[k].offset < b[i].offset + b[i].bytes)
                return false;
        }
    }
    return true;
}

/* The least height over all orders, each block as low as it can be above those before it: a best
 * placement read from the bottom up is one of these. */
typedef struct brute {
    const cnri_block *blocks;
    int32_t n, placed[10];
    uint64_t at[10], best, alignment;
} brute;

/* Tries all orders, to find the best layout. */
static void try_all(brute *b, int32_t depth, uint32_t used, uint64_t top) {
    if (top >= b->best) return;
    if (depth == b->n) {
        b->best = top;
        return;
    }
    for (int32_t i = 0; i < b->n; i++) {
        if (used >> i & 1) continue;
        uint64_t low = 0;
        for (int32_t k = 0; k < depth; k++) {
            const cnri_block *o = &b->blocks[b->placed[k]];
            if (o->first > b->blocks[i].last || b->blocks[i].first > o->last) continue;
            const uint64_t end = b->at[b->placed[k]] + up(o->bytes, b->alignment);
            if (end > low) low = end;
        }
        b->placed[depth] = i;
        b->at[i] = low;
        const uint64_t end = low + up(b->blocks[i].bytes, b->alignment);
        try_all(b, depth + 1, used | 1u << i, end > top ? end : top);
    }
}

/* The most alive at any one step, step by step. */
static uint64_t most_alive(const cnri_block *b, int32_t n, uint64_t alignment) {
    uint64_t most = 0;
    for (int32_t step = -1; step < 200; step++) {
        uint64_t sum = 0;
        for (int32_t i = 0; i < n; i++)
            if (b[i].first <= step && step <= b[i].last) sum += up(b[i].bytes, alignment);
        if (sum > most) most = sum;
    }
    return most;
}

/* Tests: small cases against the best layout. */
static void small_cases(void) {
    int32_t faults = 0, far = 0, bounds = 0, exact = 0;
    const int32_t cases = 2000;
    for (int32_t c = 0; c < cases; c++) {
        cnri_block blocks[8];
        const int32_t n = 2 + (int32_t)dice(6);
        const uint64_t alignment = dice(2) ? 1 : 16;
        for (int32_t i = 0; i < n; i++) {
            blocks[i] = (cnri_block){.bytes = dice(100), .first = (int32_t)dice(6) - 1};
            blocks[i].last = blocks[i].first + (int32_t)dice(4);
        }
        brute b = {.blocks = blocks, .n = n, .alignment = alignment, .best = UINT64_MAX};
        try_all(&b, 0, 0, 0);
        const uint64_t bound = cnri_arena_bound(blocks, n, alignment);
        if (bound != most_alive(blocks, n, alignment) || bound > b.best) bounds++;
        const uint64_t got = cnri_arena_place(blocks, n, alignment);
        if (!sound(blocks, n, alignment, got) || got < b.best) faults++;
        if (got * 100 > b.best * 105) far++;
        exact += got == b.best;
    }
    is_int(faults, 0, "no overlap, no misalignment, nothing below the optimum");
    is_int(bounds, 0, "the bound is the most that is alive at once");
    is_int(far, 0, "within 5% of the optimum in every case");
    note("%d of %d exactly optimal", (int)exact, (int)cases);
}

/* Blocks as networks make them: a chain with branches that join, and workspaces. */
static int32_t net_blocks(cnri_block *b, int32_t layers) {
    int32_t n = 0, step = 0;
    b[n++] = (cnri_block){.bytes = 3 * 224 * 224 * 4, .first = -1, .last = 0};
    while (step < layers) {
        const uint64_t bytes = 1000 + dice(1000000);
        const int32_t branches = dice(3) == 0 ? 2 + (int32_t)dice(3) : 1;
        for (int32_t k = 0; k < branches; k++) {
            b[n++] = (cnri_block){.bytes = bytes / (uint64_t)branches,
                                  .first = step + k,
                                  .last = step + branches + (dice(6) == 0 ? (int32_t)dice(6) : 0)};
            if (dice(2))
                b[n++] = (cnri_block){.bytes = dice(500000), .first = step + k, .last = step + k};
        }
        step += branches;
    }
    return n;
}

/* Tests: cases as nets have them. */
static void net_cases(void) {
    int32_t faults = 0, far = 0;
    double worst = 1, sum = 0;
    const int32_t cases = 100;
    for (int32_t c = 0; c < cases; c++) {
        cnri_block blocks[1000];
        const int32_t n = net_blocks(blocks, 10 + (int32_t)dice(120));
        const uint64_t bound = cnri_arena_bound(blocks, n, 64);
        const uint64_t got = cnri_arena_place(blocks, n, 64);
        const double ratio = (double)got / (double)bound;
        if (!sound(blocks, n, 64, got) || bound != most_alive(blocks, n, 64)) faults++;
        far += ratio > 1.05;
        sum += ratio;
        if (ratio > worst) worst = ratio;
    }
    is_int(faults, 0, "nets: sound, and the bound is right");
    is_int(far, 0, "nets: within 5% of the bound");
    note("mean %.4f, worst %.4f of the bound", sum / cases, worst);
}

/* Places 400,000 blocks within 60 s of processor time, which an algorithm that is quadratic in
 * the blocks would exceed. */
static void long_net(void) {
    enum { N = 400000 };
    const struct rlimit work = {60, 60};
    setrlimit(RLIMIT_CPU, &work);
    cnri_block *b = cnri_alloc(N * sizeof *b);
    uint64_t most = 0;
    bool good = b != NULL;
    if (!b) return;
    for (int32_t i = 0; i < N; i++) {
        b[i] = (cnri_block){.bytes = 64 + 64 * dice(100), .first = i - 1, .last = i};
        if (i > 0 && b[i].bytes + b[i - 1].bytes > most) most = b[i].bytes + b[i - 1].bytes;
    }
    is_int((long long)cnri_arena_bound(b, N, 64), (long long)most, "a long net: the bound");
    const uint64_t total = cnri_arena_place(b, N, 64);
    for (int32_t i = 1; i < N && good; i++)
        good =
            b[i].offset + b[i].bytes <= total && (b[i].offset >= b[i - 1].offset + b[i - 1].bytes ||
                                                  b[i - 1].offset >= b[i].offset + b[i].bytes);
    ok(good, "and its blocks are placed soundly");
    cnri_free(b);
}

int main(void) {
    cnri_block one = {.bytes = 5, .first = 0, .last = 0};
    is_int((long long)cnri_arena_place(NULL, 0, 64), 0, "no blocks take nothing");
    is_int((long long)cnri_arena_place(&one, 1, 64), 64, "one block takes its aligned size");
    small_cases();
    net_cases();
    long_net();
    return done();
}
