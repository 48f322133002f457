/* Part of template.h: convolutions on channel blocks, vectorised along the outputs. */

/* ---- maxima of a row's windows ---- */

/* out[i]: the largest bytes, by channel of a block, of `window` pixels `dilation` bytes apart, from
 * x + i * stride on. Comparison is of bytes ^ flip. */
static inline __attribute__((always_inline)) void largest_of(const uint8_t *x, int64_t n,
                                                             int64_t window, int64_t stride,
                                                             int64_t dilation, const int block,
                                                             uint8_t flip, uint8_t *restrict out) {
    for (int64_t i = 0; i < n; i++, x += stride, out += block) {
        uint8_t top[16];
        for (int c = 0; c < block; c++) top[c] = x[c] ^ flip;
        for (int64_t k = 1; k < window; k++)
            for (int c = 0; c < block; c++) {
                const uint8_t v = x[k * dilation + c] ^ flip;
                top[c] = v > top[c] ? v : top[c];
            }
        for (int c = 0; c < block; c++) out[c] = top[c] ^ flip;
    }
}

/* Largest bytes along windows of n positions of a block of channels. */
static void max_blocks(const uint8_t *x, int64_t n, int64_t window, int64_t stride,
                       int64_t dilation, int64_t block, uint8_t flip, uint8_t *out) {
    if (block == 16) largest_of(x, n, window, stride, dilation, 16, flip, out);
    else largest_of(x, n, window, stride, dilation, 8, flip, out);
}

#if defined(INT8_NEON)

#include "neon_blocked.h"

#else

/* ---- requantising sums ---- */

#if defined(__AVX512VNNI__)

/* What turns sums into bytes. */
typedef struct finishing {
    __m512 scale, low, high, slope;
    __m512i offset, zero;
    int sloped; /* slope is not 1 */
} finishing;

/* Reads the finishing of the rows from `at` on that `mask` has. */
static inline finishing finish_of(const int8_finish *f, int64_t at, __mmask16 mask) {
    return (finishing){.scale = _mm512_maskz_loadu_ps(mask, f->scale + at),
                       .low = _mm512_set1_ps(f->low),
                       .high = _mm512_set1_ps(f->high),
                       .slope = f->slope ? _mm512_maskz_loadu_ps(mask, f->slope + at)
                                         : _mm512_set1_ps(1),
                       .offset = _mm512_maskz_loadu_epi32(mask, f->offset + at),
                       .zero = _mm512_set1_epi32(f->zero),
                       .sloped = f->slope != NULL};
}

/* Requantises 16 sums into 16 bytes. */
static inline __m128i finished(__m512i sum, const finishing *f) {
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(sum, f->offset)), f->scale);
    if (f->sloped)
        v = _mm512_mask_mul_ps(v, _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ), v,
                               f->slope);
    v = _mm512_min_ps(_mm512_max_ps(v, f->low), f->high);
    return _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(v), f->zero));
}

#else

/* Requantises n sums of outputs from `at` on, into n bytes of y. */
static inline __attribute__((always_inline)) void
finish(const int32_t *sums, int n, const int8_finish *f, int64_t at, uint8_t *restrict y) {
    const int32_t *offset = f->offset + at;
    const float *scale = f->scale + at, low = f->low, high = f->high;
    for (int i = 0; i < n; i++) {
        float v = (float)(int32_t)((uint32_t)sums[i] + (uint32_t)offset[i]) * scale[i];
        if (f->slope) v = v < 0 ? v * f->slope[at + i] : v;
        v = v < low ? low : v;
        v = v > high ? high : v;
        v = (v + 0x1.8p23f) - 0x1.8p23f;
        y[i] = (uint8_t)((int32_t)v + f->zero);
    }
}

#endif

/* ---- full convolution: all channels into each output ---- */

#if defined(__AVX512VNNI__)

/* Computes a tile of `pixels` positions by `panels` panels of 16 outputs, with the sums in
 * registers; `pixel`: bytes stored for a pixel of x. */
static inline __attribute__((always_inline)) void tile_of(const int8_tile *t, const int pixels,
                                                          const int panels, const int pixel) {
    __m512i s[INT8_MOST_PANELS][INT8_MOST_PIXELS];
    const int8_t *w = t->w;
    const int64_t panel = t->panel_bytes;
#pragma GCC unroll 2
    for (int v = 0; v < panels; v++)
#pragma GCC unroll 14
        for (int p = 0; p < pixels; p++) s[v][p] = _mm512_setzero_si512();
    for (int64_t k = 0; k < t->k4; k++, w += 4 * INT8_PANEL) {
        const uint8_t *x = t->x + t->tap[k];
        const __m512i w0 = _mm512_loadu_si512(w);
        const __m512i w1 = panels > 1 ? _mm512_loadu_si512(w + panel) : w0;
#pragma GCC unroll 14
        for (int p = 0; p < pixels; p++) {
            const __m512i a = _mm512_set1_epi32(four((const int8_t *)x + p * pixel));
            add_products(&s[0][p], a, w0);
            if (panels > 1) add_products(&s[1][p], a, w1);
        }
    }
#pragma GCC unroll 2
    for (int v = 0; v < panels; v++) {
        const finishing f = finish_of(&t->finish, v * INT8_PANEL, 0xffff);
        uint8_t *y = t->y + v * t->y_panel;
#pragma GCC unroll 14
        for (int p = 0; p < pixels; p++)
            _mm_storeu_si128((__m128i *)(y + p * INT8_PANEL), finished(s[v][p], &f));
    }
}

/* Case of a tile of n positions, with one or two panels. */
#define TILE_CASE(n) \
    case n: \
        if (t->panels > 1) tile_of(t, n, 2, pixel); \
        else tile_of(t, n, 1, pixel); \
        break;
/* Defines tile_BYTES, which calls the tile's function for its number of positions, for pixels of
 * that many bytes. */
#define TILE_PIXELS(bytes) \
    static void tile_##bytes(const int8_tile *t) { \
        enum { pixel = bytes }; \
        switch (t->pixels) { \
            TILE_CASE(1) \
            TILE_CASE(2) \
            TILE_CASE(3) \
            TILE_CASE(4) \
            TILE_CASE(5) \
            TILE_CASE(6) \
            TILE_CASE(7) \
            TILE_CASE(8) \
            TILE_CASE(9) \
            TILE_CASE(10) \
            TILE_CASE(11) \
            TILE_CASE(12) \
            TILE_CASE(13) \
            TILE_CASE(14) \
        } \
    }
TILE_PIXELS(4)
TILE_PIXELS(8)
TILE_PIXELS(16)

/* Computes a tile, by the bytes of a pixel. */
static void tile(const int8_tile *t) {
    if (t->pixel == 16) tile_16(t);
    else if (t->pixel == 8) tile_8(t);
    else tile_4(t);
}

#elif defined(__AVX2__)

/* Computes one panel at up to three positions: widens bytes to 16 bits and multiplies pairs. */
static inline __attribute__((always_inline)) void
tile_of(const int8_tile *t, const uint8_t *x, const int8_t *w, const int pixels, int32_t *sums) {
    __m256i s[3][4];
    for (int p = 0; p < pixels; p++)
        for (int v = 0; v < 4; v++) s[p][v] = _mm256_setzero_si256();
    for (int64_t k = 0; k < t->k4; k++, w += 4 * INT8_PANEL) {
        const uint8_t *from = x + t->tap[k];
        __m256i a[3];
        for (int p = 0; p < pixels; p++) {
            int32_t v;
            memcpy(&v, from + p * t->pixel, sizeof v);
            a[p] = _mm256_cvtepu8_epi16(_mm_set1_epi32(v));
        }
        for (int v = 0; v < 4; v++) {
            const __m256i b = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(w + 16 * v)));
            for (int p = 0; p < pixels; p++)
                s[p][v] = _mm256_add_epi32(s[p][v], _mm256_madd_epi16(a[p], b));
        }
    }
    for (int p = 0; p < pixels; p++)
        for (int v = 0; v < 4; v += 2) {
            const __m256i pairs = _mm256_hadd_epi32(s[p][v], s[p][v + 1]);
            _mm256_storeu_si256((__m256i *)(sums + p * INT8_PANEL + 4 * v),
                                _mm256_permute4x64_epi64(pairs, 0xd8));
        }
}

/* Computes a tile, three positions at a time. */
static void tile(const int8_tile *t) {
    int32_t sums[3 * INT8_PANEL];
    for (int64_t v = 0; v < t->panels; v++)
        for (int64_t p = 0; p < t->pixels; p += 3) {
            const uint8_t *x = t->x + p * t->pixel;
            const int8_t *w = t->w + v * t->panel_bytes;
            const int n = t->pixels - p < 3 ? (int)(t->pixels - p) : 3;
            if (n == 3) tile_of(t, x, w, 3, sums);
            else if (n == 2) tile_of(t, x, w, 2, sums);
            else tile_of(t, x, w, 1, sums);
            for (int i = 0; i < n; i++)
                finish(sums + i * INT8_PANEL, INT8_PANEL, &t->finish, v * INT8_PANEL,
                       t->y + v * t->y_panel + (p + i) * INT8_PANEL);
        }
}

#else

/* Computes a tile in plain C, without vectors of the processor. */
static void tile(const int8_tile *t) {
    for (int64_t v = 0; v < t->panels; v++)
        for (int64_t p = 0; p < t->pixels; p++) {
            const int8_t *w = t->w + v * t->panel_bytes;
            int32_t sums[INT8_PANEL] = {0};
            for (int64_t k = 0; k < t->k4; k++, w += 4 * INT8_PANEL) {
                const int8_blocked_byte *x = t->x + t->tap[k] + p * t->pixel;
                const int32_t x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
                for (int i = 0; i < INT8_PANEL; i++)
                    sums[i] +=
                        x0 * w[4 * i] + x1 * w[4 * i + 1] + x2 * w[4 * i + 2] + x3 * w[4 * i + 3];
            }
            finish(sums, INT8_PANEL, &t->finish, v * INT8_PANEL,
                   t->y + v * t->y_panel + p * INT8_PANEL);
        }
}

#endif

/* ---- depthwise convolution ---- */

#if defined(__AVX512VNNI__)

/* Interleaves four adjacent positions of 16 channels: four bytes for each channel. */
static inline __m512i quad_16(const uint8_t *x) {
    const __m512i dwords = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(dwords, _mm512_loadu_si512(x)), bytes);
}

/* Four adjacent pixels of 8 channels at x, as the four bytes of each channel side by side,
 * twice. */
static inline __m512i quad_8(const uint8_t *x) {
    const __m256i dwords = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    const __m256i bytes = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    return _mm512_castsi256_si512(
        _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)x),
                                                        dwords),
                            bytes));
}

/* Weights of four taps of a block of 16 or 8 channels; for 8 the upper half is undefined. */
static inline __m512i weights_of(const int8_t *w, const int block) {
    return block == 16 ? _mm512_loadu_si512(w)
                       : _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)w));
}

/* Stores the `block` bytes of v, 16 or 8. */
static inline void store_block(uint8_t *y, __m128i v, const int block) {
    if (block == 16) _mm_storeu_si128((__m128i *)y, v);
    else _mm_storel_epi64((__m128i *)y, v);
}

enum { MOST_QUADS = 8 }; /* positions of a tile */

/* Two adjacent outputs, one column apart, share each quad of x; the second uses the shifted
 * weights. */
static inline __attribute__((always_inline)) void window_of(const int8_window *t, const uint8_t *x,
                                                            const int pixels, const int pairs,
                                                            const int block, const finishing *f,
                                                            uint8_t *y) {
    __m512i s[MOST_QUADS];
    const int8_t *w = t->quad, *shifted = t->shifted;
#pragma GCC unroll 8
    for (int p = 0; p < pixels; p++) s[p] = _mm512_setzero_si512();
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t q = 0; q < t->quads; q++, w += 4 * block, shifted += 4 * block) {
            const uint8_t *from = x + t->row[r] + q * 4 * block;
            const __m512i w0 = weights_of(w, block);
            const __m512i w1 = pairs ? weights_of(shifted, block) : w0;
#pragma GCC unroll 8
            for (int p = 0; p < pixels; p += 1 + pairs) {
                const __m512i a =
                    block == 16 ? quad_16(from + p * t->step) : quad_8(from + p * t->step);
                add_products(&s[p], a, w0);
                if (pairs && p + 1 < pixels) add_products(&s[p + 1], a, w1);
            }
        }
#pragma GCC unroll 8
    for (int p = 0; p < pixels; p++) store_block(y + p * block, finished(s[p], f), block);
}

/* Computes a row of outputs of a depthwise window where pixels have no gaps, as many at once as
 * registers hold; pairs: two adjacent outputs share each quad. */
static inline __attribute__((always_inline)) void window_row(const int8_window *t, const int pairs,
                                                             const int block) {
    const finishing f = finish_of(&t->finish, 0, block == 16 ? 0xffff : 0xff);
    int64_t p = 0;
    for (; p + MOST_QUADS <= t->pixels; p += MOST_QUADS)
        window_of(t, t->x + p * t->step, MOST_QUADS, pairs, block, &f, t->y + p * block);
    for (; p + 2 <= t->pixels; p += 2)
        window_of(t, t->x + p * t->step, 2, pairs, block, &f, t->y + p * block);
    if (p < t->pixels) window_of(t, t->x + p * t->step, 1, pairs, block, &f, t->y + p * block);
}

/* For other strides and dilations: widens and multiplies each column by itself. */
static void window_apart(const int8_window *t) {
    for (int64_t p = 0; p < t->pixels; p++) {
        const int16_t *w = t->word;
        __m512i sum = _mm512_setzero_si512();
        const __mmask16 mask = t->block == 16 ? 0xffff : 0xff;
        for (int64_t r = 0; r < t->rows; r++)
            for (int64_t c = 0; c < t->columns; c++, w += t->block) {
                const uint8_t *x = t->x + t->row[r] + p * t->step + c * t->dilation;
                const __m512i a =
                    _mm512_cvtepu8_epi32(t->block == 16 ? _mm_loadu_si128((const __m128i *)x)
                                                        : _mm_loadl_epi64((const __m128i *)x));
                const __m256i b = t->block == 16
                                      ? _mm256_loadu_si256((const __m256i *)w)
                                      : _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)w));
                sum = _mm512_add_epi32(sum, _mm512_madd_epi16(a, _mm512_cvtepi16_epi32(b)));
            }
        const finishing f = finish_of(&t->finish, 0, mask);
        store_block(t->y + p * t->block, finished(sum, &f), (int)t->block);
    }
}

/* Computes a row of windows of a block of channels. */
static void window(const int8_window *t) {
    const int near = t->step == t->block && t->columns % 4;
    if (t->dilation != t->block) window_apart(t);
    else if (t->block == 16 && near) window_row(t, 1, 16);
    else if (t->block == 16) window_row(t, 0, 16);
    else if (near) window_row(t, 1, 8);
    else window_row(t, 0, 8);
}

#else

/* Computes a row of outputs of a depthwise window in plain C, from the weights of 16 bits. */
static inline __attribute__((always_inline)) void window_row(const int8_window *t,
                                                             const int block) {
    for (int64_t p = 0; p < t->pixels; p++) {
        const int16_t *w = t->word;
        int32_t sums[16] = {0};
        for (int64_t r = 0; r < t->rows; r++) {
            const int8_blocked_byte *x = t->x + t->row[r] + p * t->step;
            for (int64_t c = 0; c < t->columns; c++, w += block, x += t->dilation)
                for (int i = 0; i < block; i++) sums[i] += x[i] * w[i];
        }
        finish(sums, block, &t->finish, 0, t->y + p * block);
    }
}

/* Computes a row of windows of a block of channels. */
static void window(const int8_window *t) {
    if (t->block == 16) window_row(t, 16);
    else window_row(t, 8);
}

#endif

#endif
