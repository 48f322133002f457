/* The microkernels' source. Who includes it defines CSR_ISA, CSR_VL floats a vector, CSR_WIDE_1 and
 * _4 vectors a tile, and how a step of a slice is taken:
 *     CSR_SLICE_STATE    where the lanes are        CSR_SLICE_STEP   moves them on, gathers x there
 *     CSR_SLICE_SUMS     the sums, zeros            CSR_SLICE_SUM    adds the products of one row
 *     CSR_SLICE_STORE    one row's sums */
#include "ukernel.h"

enum { AHEAD = 3072 };

#define CSR_INLINE static inline __attribute__((always_inline))
/* Joins two words, as written. */
#define CSR_JOIN_(a, b) a##b
/* Joins two words, after macros. */
#define CSR_JOIN(a, b) CSR_JOIN_(a, b)

CSR_INLINE void slice(const void *gap, const void *value, int64_t steps, const float *x, float *sum,
                      const int block, const int wide, const int type) {
    const int bytes = block * 16 * (type == CSR_VALUE_F32 ? 4 : type == CSR_VALUE_F16 ? 2 : 1);
    CSR_SLICE_STATE;
    CSR_SLICE_SUMS;
    for (int64_t s = 0; s < steps; s++) {
        /* Values are read once, from memory: hardware prefetching alone lost a fifth of the
         * time. */
        for (int at = 0; at < bytes; at += 64)
            __builtin_prefetch((const char *)value + s * bytes + AHEAD + at, 0, 3);
        __builtin_prefetch((const char *)gap + s * (wide ? 32 : 16) + AHEAD / 2, 0, 3);
        CSR_SLICE_STEP(x, gap, s, wide);
        CSR_SLICE_SUM(0, value, s * block * 16, type);
        if (block < 4) continue;
        CSR_SLICE_SUM(1, value, s * block * 16 + 16, type);
        CSR_SLICE_SUM(2, value, s * block * 16 + 32, type);
        CSR_SLICE_SUM(3, value, s * block * 16 + 48, type);
    }
    CSR_SLICE_STORE(0, sum);
    if (block < 4) return;
    CSR_SLICE_STORE(1, sum + 16);
    CSR_SLICE_STORE(2, sum + 32);
    CSR_SLICE_STORE(3, sum + 48);
}

/* The slice function of a block size, gap width and value type. */
#define CSR_SLICE(block, wide, type) \
    static void slice_##block##_##wide##_##type(const void *gap, const void *value, int64_t steps, \
                                                const float *x, float *sum) { \
        slice(gap, value, steps, x, sum, block, wide, type); \
    }
/* Defines the slice functions of each value type. */
#define CSR_SLICES(block, wide) \
    CSR_SLICE(block, wide, 0) CSR_SLICE(block, wide, 1) CSR_SLICE(block, wide, 2)
CSR_SLICES(1, 0)
CSR_SLICES(1, 1)
CSR_SLICES(4, 0)
CSR_SLICES(4, 1)

typedef float vec __attribute__((vector_size(CSR_VL * sizeof(float))));
typedef float vec_at __attribute__((vector_size(CSR_VL * sizeof(float)), aligned(4), may_alias));

typedef int32_t mask __attribute__((vector_size(CSR_VL * sizeof(int32_t))));

CSR_INLINE vec choose(mask which, vec a, vec b) {
    return (vec)((which & (mask)a) | (~which & (mask)b));
}

/* Sums stay in registers: block * wide of them. */
CSR_INLINE void tile(const csr_tile *t, const int block, const int wide) {
    vec sum[4][CSR_WIDEST];
    const float *value = t->value;
    for (int r = 0; r < block; r++)
        for (int v = 0; v < wide; v++) sum[r][v] = (vec){0} + t->bias[r];
    for (int64_t i = 0; i < t->n; i++, value += block) {
        const float *x = t->x + t->offset[i];
#pragma GCC unroll 8
        for (int v = 0; v < wide; v++) {
            const vec from = *(const vec_at *)(x + v * CSR_VL);
#pragma GCC unroll 4
            for (int r = 0; r < block; r++) sum[r][v] += from * value[r];
        }
    }
    const vec low = (vec){0} + t->low, high = (vec){0} + t->high;
    for (int r = 0; r < block; r++)
        for (int v = 0; v < wide; v++) {
            const vec y = choose(sum[r][v] < low, low, sum[r][v]); /* NaN stays */
            *(vec_at *)(t->out + r * t->ld + v * CSR_VL) = choose(y > high, high, y);
        }
}

/* The tile function of a block size and width. */
#define CSR_TILE(block, wide) \
    static void tile_##block##_##wide(const csr_tile *t) { \
        tile(t, block, wide <= CSR_WIDE_##block ? wide : CSR_WIDE_##block); \
    }
/* Defines the tile functions of each width. */
#define CSR_TILES(block) \
    CSR_TILE(block, 1) \
    CSR_TILE(block, 2) \
    CSR_TILE(block, 3) \
    CSR_TILE(block, 4) CSR_TILE(block, 5) CSR_TILE(block, 6) CSR_TILE(block, 7) CSR_TILE(block, 8)
CSR_TILES(1)
CSR_TILES(4)

/* A word in quotes, as written. */
#define CSR_TEXT_(a) #a
/* A word in quotes, after macros. */
#define CSR_TEXT(a) CSR_TEXT_(a)
/* Names of the slice functions, by value type. */
#define CSR_ROW(block, wide) \
    { slice_##block##_##wide##_0, slice_##block##_##wide##_1, slice_##block##_##wide##_2 }
/* Names of the tile functions, by width. */
#define CSR_TILE_ROW(b) \
    { \
        tile_##b##_1, tile_##b##_2, tile_##b##_3, tile_##b##_4, tile_##b##_5, tile_##b##_6, \
            tile_##b##_7, tile_##b##_8 \
    }

const csr_ukernels CSR_JOIN(csr_ukernels_, CSR_ISA) = {
    .name = CSR_TEXT(CSR_ISA),
    .vl = CSR_VL,
    .widest = {CSR_WIDE_1, CSR_WIDE_4},
    .slice = {{CSR_ROW(1, 0), CSR_ROW(1, 1)}, {CSR_ROW(4, 0), CSR_ROW(4, 1)}},
    .tile = {CSR_TILE_ROW(1), CSR_TILE_ROW(4)},
};
