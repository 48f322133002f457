/* Microkernels on channel blocks (N C/b H W b), vectorised along the channels; included by
 * template.h. A block is one vector, or half of one on the widest vectors. */

#if VL == 16
#define TILE_COLUMNS 14
#define TILE_VECTORS 2
#elif NEON_REGISTERS == 32 /* a vector for each column, and the weights: 29 registers */
#define TILE_COLUMNS 5
#define TILE_VECTORS 4
#elif NEON_ARMV7 /* a vector for each column, and two of the weights: 14 registers */
#define TILE_COLUMNS 4
#define TILE_VECTORS 2
#else
#define TILE_COLUMNS 6
#define TILE_VECTORS 2
#endif

/* ---- convolution: sums in registers; their start and end are in the tile's own memory ---- */

/* Reads columns of one vector of y, or of memory laid out like it; high NULL: half a vector. */
static void read_columns(const float *low, const float *high, int64_t step, int64_t n, float *to) {
    for (int64_t j = 0; j < n; j++, low += step, to += VL) {
        memcpy(to, low, VL * 2);
        if (high) memcpy(to + VL / 2, high + j * step, VL * 2);
        else memset(to + VL / 2, 0, VL * 2);
    }
}

/* Writes n vectors of two blocks: their lower halves to low, upper halves to high. */
static void write_columns(float *low, float *high, int64_t step, int64_t n, const float *from) {
    for (int64_t j = 0; j < n; j++, low += step, from += VL) {
        memcpy(low, from, VL * 2);
        if (high) memcpy(high + j * step, from + VL / 2, VL * 2);
    }
}

/* base + offset; NULL for offset -1, which stands for channels that are not there. */
#define AT(base, offset) ((offset) < 0 ? NULL : (base) + (offset))

INLINE vec bounded(const neon_bound b, vec x) {
    switch (b.kind) {
    case NEON_BOUND_RELU: return positive(x);
    case NEON_BOUND_LEAKY: return choose(x < splat(0.0f), x * splat(b.low), x);
    case NEON_BOUND_CLIP: return within(x, splat(b.low), splat(b.high));
    default: return x;
    }
}

INLINE void store_bounded(const neon_conv_tile *t, float *y, const float *operand, const float *sum,
                          const neon_bound_kind kind) {
    const neon_bound b = {kind, t->bound.low, t->bound.high};
    for (int64_t j = 0; j < t->n; j++, sum += VL, y += t->y_column) {
        vec x = load(sum);
        if (operand) x += load(operand + j * t->y_column);
        store(y, bounded(b, x));
    }
}

/* Writes one vector's columns from the sum to y. */
static void finish_vector(const neon_conv_tile *t, int64_t v, float *sum) {
    float *low = t->y + t->low[v], *high = AT(t->y, t->high[v]), room[TILE_COLUMNS * VL];
    if (high == low + VL / 2) {
        const float *operand = t->operand ? t->operand + t->low[v] : NULL;
        switch (t->bound.kind) {
        case NEON_BOUND_RELU: store_bounded(t, low, operand, sum, NEON_BOUND_RELU); return;
        case NEON_BOUND_LEAKY: store_bounded(t, low, operand, sum, NEON_BOUND_LEAKY); return;
        case NEON_BOUND_CLIP: store_bounded(t, low, operand, sum, NEON_BOUND_CLIP); return;
        default: store_bounded(t, low, operand, sum, NEON_BOUND_NONE); return;
        }
    }
    if (t->operand) {
        read_columns(t->operand + t->low[v], AT(t->operand, t->high[v]), t->y_column, t->n, room);
        for (int64_t i = 0; i < t->n * VL; i++) sum[i] += room[i];
    }
    for (int64_t i = 0; i < t->n * VL; i += VL) store(sum + i, bounded(t->bound, load(sum + i)));
    write_columns(low, high, t->y_column, t->n, sum);
}

/* Weights are read once for each tile, from the L2 cache or beyond, and prefetched this many floats
 * ahead (128: 10% slower over vgg16's layers, 1024: 5%). */
#define WEIGHT_AHEAD 512

/* Stores registers to y if whole vectors are adjacent. */
INLINE void conv_store(const neon_conv_tile *t, float *to, vec acc[TILE_COLUMNS][TILE_VECTORS],
                       const int n, const int nv, const neon_bound_kind kind) {
    const vec low = splat(t->bound.low), high = splat(t->bound.high);
    UNROLL(4)
    for (int v = 0; v < nv; v++) {
        float *y = to + t->low[v];
        if (t->operand) {
            const float *operand = t->operand + (y - t->y);
            UNROLL(14)
            for (int j = 0; j < n; j++) acc[j][v] += load(operand + j * VL);
        }
        UNROLL(14)
        for (int j = 0; j < n; j++) {
            vec x = acc[j][v];
            if (kind == NEON_BOUND_RELU) x = positive(x);
            else if (kind == NEON_BOUND_CLIP) x = within(x, low, high);
            store(y + j * VL, x);
        }
    }
}

#if defined(__ARM_NEON) /* products with a lane of a vector */
#define LANE_PRODUCTS 1
#else
#define LANE_PRODUCTS 0
#endif

/* sum + x w: of floats, or of pairs in bf16. In assembly, since the file's options lack the
 * instruction; callers have asked the processor. */
INLINE vec conv_fuse(vec x, vec w, vec sum, const int pairs) {
#if defined(__AVX512F__)
    if (pairs) {
        __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
        return sum;
    }
#endif
    (void)pairs;
    return fuse(x, w, sum);
}

INLINE const float *conv_channel(vec acc[TILE_COLUMNS][TILE_VECTORS], const float *x,
                                 const float *w, const int n, const int nv, const int64_t column,
                                 const int pairs) {
    vec k[TILE_VECTORS];
    UNROLL(4)
    for (int v = 0; v < nv; v++) {
        if (!LANE_PRODUCTS) __builtin_prefetch(w + WEIGHT_AHEAD + v * VL);
        k[v] = load(w + v * VL);
    }
    UNROLL(14)
    for (int j = 0; j < n; j++) {
        const vec value = splat(x[j * column]);
        UNROLL(4)
        for (int v = 0; v < nv; v++) acc[j][v] = conv_fuse(value, k[v], acc[j][v], pairs);
    }
    return w + nv * VL;
}

#if defined(__aarch64__)
/* Multiplies one input channel with all its output channels. */
#define CONV_LANE(lane) \
    do { \
        if (nv == 4) { \
            const float32x4x4_t four = vld1q_f32_x4(w); \
            for (int v = 0; v < nv; v++) k[v] = four.val[v]; \
        } else { \
            for (int v = 0; v < nv; v++) k[v] = vld1q_f32(w + v * VL); \
        } \
        w += nv * VL; \
        FORGET(w); \
        for (int j = 0; j < n; j++) \
            for (int v = 0; v < nv; v++) \
                acc[j][v] = (vec)vfmaq_laneq_f32((float32x4_t)acc[j][v], k[v], x[j], lane); \
    } while (0)

/* Four adjacent channels: lane products need no broadcasts. Returns the weights after these. */
INLINE const float *conv_quad(vec acc[TILE_COLUMNS][TILE_VECTORS], const float *from,
                              const float *w, const int n, const int nv, const int64_t column) {
    float32x4_t x[TILE_COLUMNS], k[TILE_VECTORS];
    FORGET(from);
    for (int j = 0; j < n; j++) x[j] = vld1q_f32(from + j * column);
    CONV_LANE(0);
    CONV_LANE(1);
    CONV_LANE(2);
    CONV_LANE(3);
    return w;
}
#elif NEON_ARMV7
/* Eight floats, and *p moved behind them: by one instruction, which compilers do not choose. */
INLINE float32x4x2_t load_pair(const float **p) {
#if defined(__clang__)
    const float32x4x2_t pair = {{vld1q_f32(*p), vld1q_f32(*p + 4)}};
    *p += 8;
#else
    float32x4x2_t pair;
    __asm__("vld1.32 %h0, [%1]!" : "=w"(pair), "+r"(*p) : "m"(*(const float(*)[8]) * p));
#endif
    return pair;
}

/* Sixteen floats, by one instruction. */
INLINE float32x4x4_t load_four(const float *p) {
#if defined(__clang__)
    return (float32x4x4_t){{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
#else
    float32x4x4_t four;
    __asm__("vldmia %1, %h0" : "=w"(four) : "r"(p), "m"(*(const float(*)[16])p));
    return four;
#endif
}

/* Multiplies one input channel with all its output channels. */
#define CONV_LANE(half, lane) \
    do { \
        if (nv == 2) { \
            const float32x4x2_t pair = load_pair(&w); \
            for (int v = 0; v < nv; v++) k[v] = pair.val[v]; \
        } else { \
            for (int v = 0; v < nv; v++, w += VL) k[v] = vld1q_f32(w); \
            FORGET(w); \
        } \
        for (int j = 0; j < n; j++) \
            for (int v = 0; v < nv; v++) \
                acc[j][v] = (vec)vmlaq_lane_f32((float32x4_t)acc[j][v], k[v], half(x[j]), lane); \
    } while (0)

/* As on AArch64; lanes are of half vectors. */
INLINE const float *conv_quad(vec acc[TILE_COLUMNS][TILE_VECTORS], const float *from,
                              const float *w, const int n, const int nv, const int64_t column) {
    float32x4_t x[TILE_COLUMNS], k[TILE_VECTORS];
    FORGET(from);
    if (column == VL && n == 4) {
        const float32x4x4_t four = load_four(from);
        for (int j = 0; j < n; j++) x[j] = four.val[j];
    } else {
        for (int j = 0; j < n; j++) x[j] = vld1q_f32(from + j * column);
    }
    CONV_LANE(vget_low_f32, 0);
    CONV_LANE(vget_low_f32, 1);
    CONV_LANE(vget_high_f32, 0);
    CONV_LANE(vget_high_f32, 1);
    return w;
}
#else
INLINE const float *conv_quad(vec acc[TILE_COLUMNS][TILE_VECTORS], const float *from,
                              const float *w, const int n, const int nv, const int64_t column) {
    for (int i = 0; i < 4; i++) w = conv_channel(acc, from + i, w, n, nv, column, 0);
    return w;
}
#endif

/* Runs of four channels without gaps between their weights, two at a time (four at a time exceed
 * the registers). Returns how many were done. */
INLINE int64_t conv_quads(const neon_conv_tile *t, const float *x, const float **w,
                          vec acc[TILE_COLUMNS][TILE_VECTORS], const int n, const int nv,
                          const int64_t column) {
    const int64_t *run = t->run, whole = t->runs / 2 * 2;
    for (const int64_t *end = run + whole; run != end; run += 2) {
        const float *x0 = x + run[0], *x1 = x + run[1];
        *w = conv_quad(acc, x0, *w, n, nv, column);
        *w = conv_quad(acc, x1, *w, n, nv, column);
    }
    return whole;
}

/* Start of the sum: the bias, or y. */
INLINE void conv_start(const neon_conv_tile *t, const float *y, const float *sum,
                       vec acc[TILE_COLUMNS][TILE_VECTORS], const int n, const int nv) {
    UNROLL(4)
    for (int v = 0; v < nv; v++) {
        UNROLL(14)
        for (int j = 0; j < n; j++) acc[j][v] = load(t->bias + v * VL);
    }
    if (!t->more) return;
    UNROLL(4)
    for (int v = 0; v < nv; v++) {
        const float *from = t->straight ? y + t->low[v] : sum + v * n * VL;
        UNROLL(14)
        for (int j = 0; j < n; j++) acc[j][v] = load(from + j * VL);
    }
}

INLINE void conv_sum(const neon_conv_tile *t, float *sum, const int n, const int nv,
                     const int64_t column, const int64_t count, const int pairs) {
    const float *from = t->x, *ahead = t->ahead;
    float *y = t->y;
    for (int64_t tile = t->tiles; tile > 0; tile--, from += n * column, y += n * VL) {
        vec acc[TILE_COLUMNS][TILE_VECTORS];
        conv_start(t, y, sum, acc, n, nv);
        const float *w = t->weight;
        int64_t r = LANE_PRODUCTS && count == 4 ? conv_quads(t, from, &w, acc, n, nv, column) : 0;
        for (; r < t->runs; r++) {
            const float *x = from + t->run[r];
            int64_t i = count;
            for (int64_t l = t->ahead_lines; l > 0; l--, ahead += 16)
                __builtin_prefetch(ahead, 0, 2);
            for (; LANE_PRODUCTS && i >= 4; i -= 4, x += 4) w = conv_quad(acc, x, w, n, nv, column);
            for (; i > 0; i--, x++) w = conv_channel(acc, x, w, n, nv, column, pairs);
            w += t->weight_gap;
        }
        if (t->straight) {
            switch (t->bound.kind) {
            case NEON_BOUND_RELU: conv_store(t, y, acc, n, nv, NEON_BOUND_RELU); break;
            case NEON_BOUND_CLIP: conv_store(t, y, acc, n, nv, NEON_BOUND_CLIP); break;
            default: conv_store(t, y, acc, n, nv, NEON_BOUND_NONE); break;
            }
            continue;
        }
        UNROLL(14)
        for (int j = 0; j < n; j++) {
            UNROLL(4)
            for (int v = 0; v < nv; v++) store(sum + (v * n + j) * VL, acc[j][v]);
        }
        sum += nv * n * VL;
    }
}

/* Case of a tile of n columns and nv vectors. */
#define CONV_TILE(n, nv, column, count) \
    case (n)*8 + (nv): conv_sum(t, sum, n, nv, column, count, CONV_PAIRS); return;
/* Cases of tiles of n columns. */
#define CONV_TILES_(n, c, k) CONV_TILE(n, 1, c, k) CONV_TILE(n, 2, c, k)
#if TILE_VECTORS == 4
/* Cases of tiles of n columns. */
#define CONV_TILES(n, c, k) CONV_TILES_(n, c, k) CONV_TILE(n, 3, c, k) CONV_TILE(n, 4, c, k)
#else
/* Cases of tiles of n columns. */
#define CONV_TILES(n, c, k) CONV_TILES_(n, c, k)
#endif
#if TILE_COLUMNS == 14
/* Cases of tiles of five columns or more. */
#define CONV_MORE(c, k) \
    CONV_TILES(5, c, k) \
    CONV_TILES(6, c, k) \
    CONV_TILES(7, c, k) \
    CONV_TILES(8, c, k) \
    CONV_TILES(9, c, k) \
    CONV_TILES(10, c, k) \
    CONV_TILES(11, c, k) \
    CONV_TILES(12, c, k) \
    CONV_TILES(13, c, k) \
    CONV_TILES(14, c, k)
#elif TILE_COLUMNS == 6
/* Cases of tiles of five columns or more. */
#define CONV_MORE(c, k) \
    CONV_TILES(5, c, k) \
    CONV_TILES(6, c, k)
#elif TILE_COLUMNS == 5
/* Cases of tiles of five columns or more. */
#define CONV_MORE(c, k) CONV_TILES(5, c, k)
#else
/* Cases of tiles of five columns or more: none. */
#define CONV_MORE(c, k)
#endif
/* Constant distances become address displacements; others need registers. k: channels of a run. */
#define CONV_TILE_FOR(name, c, k) \
    static void name(const neon_conv_tile *t, float *sum) { \
        switch (t->n * 8 + t->vectors) { \
            CONV_TILES(1, c, k) \
            CONV_TILES(2, c, k) \
            CONV_TILES(3, c, k) \
            CONV_TILES(4, c, k) \
            CONV_MORE(c, k) default : return; \
        } \
    }

#define CONV_PAIRS 0
#define RUN (VL == 4 ? VL : t->count)
CONV_TILE_FOR(conv_sum_1, VL, RUN)
CONV_TILE_FOR(conv_sum_2, 2 * VL, RUN)
#if VL == 16
CONV_TILE_FOR(conv_sum_8, 8, RUN)
#endif
#if VL > 4 /* few plain channels, read one by one, with the strides of a first layer */
CONV_TILE_FOR(conv_sum_plain_1, 1, 1)
CONV_TILE_FOR(conv_sum_plain_2, 2, 1)
CONV_TILE_FOR(conv_sum_plain_4, 4, 1)
#endif
CONV_TILE_FOR(conv_sum_any, t->x_column, t->count)

/* Computes a tile by the code for its column step and count. */
static void conv_sum_of(const neon_conv_tile *t, float *sum) {
    if (t->x_column == VL && t->count == RUN) conv_sum_1(t, sum);
    else if (t->x_column == 2 * VL && t->count == RUN) conv_sum_2(t, sum);
#if VL == 16
    else if (t->x_column == 8) conv_sum_8(t, sum);
#endif
#if VL > 4
    else if (t->x_column == 1 && t->count == 1) conv_sum_plain_1(t, sum);
    else if (t->x_column == 2 && t->count == 1) conv_sum_plain_2(t, sum);
    else if (t->x_column == 4 && t->count == 1) conv_sum_plain_4(t, sum);
#endif
    else conv_sum_any(t, sum);
}

#if defined(__AVX512F__)
#undef CONV_PAIRS
#define CONV_PAIRS 1
CONV_TILE_FOR(pairs_sum_8, 8, 4)
CONV_TILE_FOR(pairs_sum_16, 16, 4)
CONV_TILE_FOR(pairs_sum_any, t->x_column, t->count)

/* Computes a tile of pairs by the code for its column step and count. */
static void pairs_sum_of(const neon_conv_tile *t, float *sum) {
    if (t->x_column == 8 && t->count == 4) pairs_sum_8(t, sum);
    else if (t->x_column == 16 && t->count == 4) pairs_sum_16(t, sum);
    else pairs_sum_any(t, sum);
}

/* Converts n floats to bf16, two to each float of `to`. */
static void to_pairs(const float *from, int64_t n, float *to) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16, to += 8) {
        __m256i halves;
        __asm__("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(_mm512_loadu_ps(from + i)));
        _mm256_storeu_si256((void *)to, halves);
    }
    if (i == n) return;
    __m128i halves;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(_mm256_loadu_ps(from + i)));
    _mm_storeu_si128((void *)to, halves);
}
#endif

INLINE void conv_tile_by(const neon_conv_tile *given,
                         void (*sum_of)(const neon_conv_tile *, float *)) {
    if (given->straight) {
        sum_of(given, NULL);
        return;
    }
    neon_conv_tile t = *given;
    t.tiles = 1;
    for (int64_t tile = given->tiles; tile > 0; tile--) {
        _Alignas(64) float sum[TILE_VECTORS * TILE_COLUMNS * VL];
        for (int64_t v = 0; v < t.vectors && t.more; v++)
            read_columns(t.y + t.low[v], AT(t.y, t.high[v]), t.y_column, t.n, sum + v * t.n * VL);
        sum_of(&t, sum);
        for (int64_t v = 0; v < t.vectors; v++) finish_vector(&t, v, sum + v * t.n * VL);
        t.x += t.n * t.x_column;
        t.y += t.n * t.y_column;
        if (t.operand) t.operand += t.n * t.y_column;
        t.ahead += t.ahead_lines * t.runs * 16;
    }
}

static void conv_tile(const neon_conv_tile *given) { conv_tile_by(given, conv_sum_of); }
#if defined(__AVX512F__)
static void conv_pairs(const neon_conv_tile *given) { conv_tile_by(given, pairs_sum_of); }
#endif

/* ---- sliding windows, vectorised along channels ---- */

/* *begin and *end: the taps of output row (axis 0) or column `at` that lie within the input. */
static void taps_within(const neon_plane *p, int axis, int64_t at, int64_t *begin, int64_t *end) {
    const int64_t first = at * p->stride[axis] - p->pad[axis], d = p->dilation[axis];
    const int64_t left = p->in[axis] - first;
    *begin = first < 0 ? (-first + d - 1) / d : 0;
    *end = left <= 0 ? 0 : (left + d - 1) / d;
    if (*end > p->kernel[axis]) *end = p->kernel[axis];
    if (*end < *begin) *end = *begin;
}

#define LANES VL
#define VEC vec
#define VEC_U vec_u
#define IVEC ivec
#define FUSE fuse
#define LARGER vmax
#define POSITIVE positive
#define WITHIN within
#include "plane.h"
#if VL == 16 /* blocks of half a vector */
typedef float half_u __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t ihalf __attribute__((vector_size(32)));
#undef LANES
#undef VEC
#undef VEC_U
#undef IVEC
#undef FUSE
#undef LARGER
#undef POSITIVE
#undef WITHIN
#define LANES 8
#define VEC oct
#define VEC_U half_u
#define IVEC ihalf
/* a * b + c, with one rounding. */
#define FUSE(a, b, c) ((oct)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define LARGER oct_max
#define POSITIVE oct_positive
#define WITHIN oct_within
#include "plane.h"
#endif

/* Computes a plane by the code for its block. */
static void plane(neon_window_kind kind, const neon_plane *p) {
#if VL == 16
    if (p->block == 8) {
        NEON_PASTE(plane_of_, 8)(kind, p);
        return;
    }
#endif
    NEON_PASTE(plane_of_, VL)(kind, p);
}

/* Sum or maximum of a whole plane times scale, for each channel of a block. */
static void whole_plane(neon_window_kind kind, const float *x, int64_t block, int64_t n,
                        float scale, float *y) {
#if VL == 16
    if (block == 8) {
        NEON_PASTE(whole_plane_, 8)(kind, x, block, n, scale, y);
        return;
    }
#endif
    for (int64_t l = 0; l < block; l += VL)
        NEON_PASTE(whole_plane_, VL)(kind, x + l, block, n, scale, y + l);
}

/* Scales and shifts n pixels of a block of channels. */
static void affine_block(const float *x, const float *scale, const float *shift, int64_t block,
                         int64_t n, float *out) {
#if VL == 16
    if (block == 8) {
        NEON_PASTE(affine_block_, 8)(x, scale, shift, block, n, out);
        return;
    }
#endif
    for (int64_t l = 0; l < block; l += VL) NEON_PASTE(affine_block_, VL)
    (x + l, scale ? scale + l : NULL, shift ? shift + l : NULL, block, n, out + l);
}
