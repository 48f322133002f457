/* The source of all microkernels. A file for each instruction set includes it with INT8_ISA set. No
 * code here may run before the processor's features are checked, so everything but the table is
 * static. */
#include "ukernel.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* Joins two words; INT8_PASTE expands them first. */
#define INT8_PASTE_(a, b) a##b
/* Joins two words into one name. */
#define INT8_PASTE(a, b) INT8_PASTE_(a, b)
/* A word as text; INT8_TEXT expands it first. */
#define INT8_TEXT_(a) #a
/* A word as text. */
#define INT8_TEXT(a) INT8_TEXT_(a)

/* ---- products ---- */

#if defined(__AVX512VNNI__)

/* Four weights at w as one number of 32 bits. */
static int32_t four(const int8_t *w) {
    int32_t v;
    memcpy(&v, w, sizeof v);
    return v;
}

/* sum += four products in each lane. In assembly, since gcc 12 copies each sum before it adds. */
static inline __attribute__((always_inline)) void add_products(__m512i *sum, __m512i x, __m512i w) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(x), "v"(w));
}

/* Sums of INT8_MR rows and INT8_NR columns, over k4 steps of four. */
static void gemm(int64_t k4, const int8_t *w, const uint8_t *x, int32_t *sums) {
    __m512i s[INT8_MR][2];
    for (int r = 0; r < INT8_MR; r++) s[r][0] = s[r][1] = _mm512_setzero_si512();
    for (int64_t k = 0; k < k4; k++, w += INT8_MR * 4, x += INT8_NR * 4) {
        const __m512i x0 = _mm512_loadu_si512(x), x1 = _mm512_loadu_si512(x + 64);
#pragma GCC unroll 8
        for (int r = 0; r < INT8_MR; r++) {
            const __m512i b = _mm512_set1_epi32(four(w + 4 * r));
            add_products(&s[r][0], x0, b);
            add_products(&s[r][1], x1, b);
        }
    }
    for (int r = 0; r < INT8_MR; r++) {
        _mm512_storeu_si512(sums + r * INT8_NR, s[r][0]);
        _mm512_storeu_si512(sums + r * INT8_NR + 16, s[r][1]);
    }
}

/* Dot products of x with INT8_DOT_ROWS rows of w, `stride` bytes apart. */
static void dot(int64_t n, const uint8_t *x, const int8_t *w, int64_t stride, int32_t *sums) {
    __m512i s[INT8_DOT_ROWS];
    for (int r = 0; r < INT8_DOT_ROWS; r++) s[r] = _mm512_setzero_si512();
    for (int64_t i = 0; i < n; i += 64) {
        const __m512i a = _mm512_loadu_si512(x + i);
#pragma GCC unroll 4
        for (int r = 0; r < INT8_DOT_ROWS; r++)
            add_products(&s[r], a, _mm512_loadu_si512(w + r * stride + i));
    }
    for (int r = 0; r < INT8_DOT_ROWS; r++) sums[r] = _mm512_reduce_add_epi32(s[r]);
}

#elif defined(__AVX2__)

/* Widens bytes to 16 bits: vpmaddubsw would be shorter but saturates. */
static __m256i widened(const uint8_t *x) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)x));
}

/* Four weights at w, widened to 16 bits, repeated in all lanes. */
static __m256i four(const int8_t *w) {
    int32_t v;
    memcpy(&v, w, sizeof v);
    return _mm256_cvtepi8_epi16(_mm_set1_epi32(v));
}

/* Two rows by 16 columns of a tile. */
static void gemm_part(int64_t k4, const int8_t *w, const uint8_t *x, int32_t *sums) {
    __m256i s[2][4];
    for (int r = 0; r < 2; r++)
        for (int v = 0; v < 4; v++) s[r][v] = _mm256_setzero_si256();
    for (int64_t k = 0; k < k4; k++, w += INT8_MR * 4, x += INT8_NR * 4) {
        const __m256i w0 = four(w), w1 = four(w + 4);
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) {
            const __m256i a = widened(x + 16 * v);
            s[0][v] = _mm256_add_epi32(s[0][v], _mm256_madd_epi16(a, w0));
            s[1][v] = _mm256_add_epi32(s[1][v], _mm256_madd_epi16(a, w1));
        }
    }
    for (int r = 0; r < 2; r++)
        for (int v = 0; v < 4; v += 2) {
            const __m256i pairs = _mm256_hadd_epi32(s[r][v], s[r][v + 1]);
            _mm256_storeu_si256((__m256i *)(sums + r * INT8_NR + 4 * v),
                                _mm256_permute4x64_epi64(pairs, 0xd8));
        }
}

/* Sums of INT8_MR rows and INT8_NR columns, over k4 steps of four. */
static void gemm(int64_t k4, const int8_t *w, const uint8_t *x, int32_t *sums) {
    for (int r = 0; r < INT8_MR; r += 2)
        for (int j = 0; j < INT8_NR; j += 16)
            gemm_part(k4, w + 4 * r, x + 4 * j, sums + r * INT8_NR + j);
}

/* Dot products of x with INT8_DOT_ROWS rows of w, `stride` bytes apart. */
static void dot(int64_t n, const uint8_t *x, const int8_t *w, int64_t stride, int32_t *sums) {
    __m256i s[INT8_DOT_ROWS];
    for (int r = 0; r < INT8_DOT_ROWS; r++) s[r] = _mm256_setzero_si256();
    for (int64_t i = 0; i < n; i += 16) {
        const __m256i a = widened(x + i);
#pragma GCC unroll 4
        for (int r = 0; r < INT8_DOT_ROWS; r++) {
            const __m128i b = _mm_loadu_si128((const __m128i *)(w + r * stride + i));
            s[r] = _mm256_add_epi32(s[r], _mm256_madd_epi16(a, _mm256_cvtepi8_epi16(b)));
        }
    }
    for (int r = 0; r < INT8_DOT_ROWS; r++) {
        int32_t lane[8];
        _mm256_storeu_si256((__m256i *)lane, s[r]);
        sums[r] = 0;
        for (int i = 0; i < 8; i++) sums[r] += lane[i];
    }
}

#elif defined(INT8_NEON)

#include "neon.h"

#else

/* Sums of INT8_MR rows and INT8_NR columns, over k4 steps of four. */
static void gemm(int64_t k4, const int8_t *w, const uint8_t *x, int32_t *sums) {
    memset(sums, 0, INT8_MR * INT8_NR * sizeof *sums);
    for (int64_t k = 0; k < k4; k++, w += INT8_MR * 4, x += INT8_NR * 4)
        for (int r = 0; r < INT8_MR; r++) {
            const int32_t w0 = w[4 * r], w1 = w[4 * r + 1], w2 = w[4 * r + 2], w3 = w[4 * r + 3];
            int32_t *s = sums + r * INT8_NR;
            for (int j = 0; j < INT8_NR; j++)
                s[j] += x[4 * j] * w0 + x[4 * j + 1] * w1 + x[4 * j + 2] * w2 + x[4 * j + 3] * w3;
        }
}

/* Dot products of x with INT8_DOT_ROWS rows of w, `stride` bytes apart. */
static void dot(int64_t n, const uint8_t *x, const int8_t *w, int64_t stride, int32_t *sums) {
    for (int r = 0; r < INT8_DOT_ROWS; r++) {
        int32_t s = 0;
        for (int64_t i = 0; i < n; i++) s += x[i] * w[r * stride + i];
        sums[r] = s;
    }
}

#endif

typedef uint8_t int8_bytes __attribute__((vector_size(16)));

/* Loads 16 bytes. */
static int8_bytes load16(const uint8_t *x) {
    int8_bytes v;
    memcpy(&v, x, sizeof v);
    return v;
}

static void store16(uint8_t *out, int8_bytes v) { memcpy(out, &v, sizeof v); }

/* Takes bytes of a and b in turn. */
#define ZIP1(a, b, from) \
    __builtin_shufflevector(a, b, from, from + 16, from + 1, from + 17, from + 2, from + 18, \
                            from + 3, from + 19, from + 4, from + 20, from + 5, from + 21, \
                            from + 6, from + 22, from + 7, from + 23)
/* Takes pairs of bytes of a and b in turn. */
#define ZIP2(a, b, from) \
    __builtin_shufflevector(a, b, from, from + 1, from + 16, from + 17, from + 2, from + 3, \
                            from + 18, from + 19, from + 4, from + 5, from + 20, from + 21, \
                            from + 6, from + 7, from + 22, from + 23)

/* Takes a byte of each of four rows in turn. */
static void interleave(const uint8_t *const rows[4], uint8_t *out) {
    for (int j = 0; j < INT8_NR; j += 16, out += 64) {
        const int8_bytes a = load16(rows[0] + j), b = load16(rows[1] + j);
        const int8_bytes c = load16(rows[2] + j), d = load16(rows[3] + j);
        const int8_bytes ab0 = ZIP1(a, b, 0), ab1 = ZIP1(a, b, 8);
        const int8_bytes cd0 = ZIP1(c, d, 0), cd1 = ZIP1(c, d, 8);
        store16(out, ZIP2(ab0, cd0, 0));
        store16(out + 16, ZIP2(ab0, cd0, 8));
        store16(out + 32, ZIP2(ab1, cd1, 0));
        store16(out + 48, ZIP2(ab1, cd1, 8));
    }
}

/* ---- conversion between sums, bytes and real numbers ---- */

/* The byte of a sum: offset, scale, slope, clamp and zero of `how`. Adding and subtracting 1.5 *
 * 2^23 rounds to the nearest even integer, as rintf does; clamping first, to integers, changes
 * nothing, and keeps a compiler from fusing product and sum. */
static inline uint8_t requantized(int32_t sum, const int8_requant *how) {
    float v = (float)(int32_t)((uint32_t)sum + (uint32_t)how->offset) * how->scale;
    v = v < 0 ? v * how->slope : v;
    v = v < how->low ? how->low : v;
    v = v > how->high ? how->high : v;
    v = (v + 0x1.8p23f) - 0x1.8p23f;
    return (uint8_t)((int32_t)v + how->zero);
}

/* A constant count lets the compiler choose vectors of a panel's size. */
static void requantize(const int32_t *sums, int64_t n, const int8_requant *how, uint8_t *out) {
    const int8_requant own = *how;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++) out[i + k] = requantized(sums[i + k], &own);
    for (; i < n; i++) out[i] = requantized(sums[i], &own);
}

/* Quantises n floats: x / scale, limited and rounded, plus zero. */
static void quantize(const float *x, int64_t n, float scale, float low, float high, int32_t zero,
                     uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        float v = x[i] / scale;
        v = v > low ? v : low; /* also for NaN */
        v = v > high ? high : v;
        v = (v + 0x1.8p23f) - 0x1.8p23f;
        out[i] = (uint8_t)((int32_t)v + zero);
    }
}

/* out[i] = (x[i] - zero) * scale for n bytes, which are i8 if is_signed, else u8. */
static void dequantize(const uint8_t *x, int64_t n, int32_t is_signed, int32_t zero, float scale,
                       float *out) {
    if (is_signed)
        for (int64_t i = 0; i < n; i++) out[i] = (float)((int8_t)x[i] - zero) * scale;
    else
        for (int64_t i = 0; i < n; i++) out[i] = (float)(x[i] - zero) * scale;
}

/* out = max(out, x) of bytes; flip: 0x80 for signed ones. */
static void max(uint8_t *out, const uint8_t *x, int64_t n, uint8_t flip) {
    for (int64_t i = 0; i < n; i++) {
        const uint8_t a = out[i] ^ flip, b = x[i] ^ flip;
        out[i] = (a > b ? a : b) ^ flip;
    }
}

/* max_along for one stride and window: inlined with constants that nets use, so that loops can be
 * unrolled. */
static inline __attribute__((always_inline)) void along(const uint8_t *x, int64_t n, int64_t window,
                                                        int64_t stride, int64_t dilation,
                                                        uint8_t flip, uint8_t *restrict out) {
    for (int64_t i = 0; i < n; i++) {
        uint8_t top = 0;
        for (int64_t k = 0; k < window; k++) {
            const uint8_t v = x[i * stride + k * dilation] ^ flip;
            top = v > top ? v : top;
        }
        out[i] = top ^ flip;
    }
}

/* out[i] = the largest of `window` bytes, `dilation` apart, from x + i * stride on, for n outputs;
 * bytes are compared as byte ^ flip. */
static void max_along(const uint8_t *x, int64_t n, int64_t window, int64_t stride, int64_t dilation,
                      uint8_t flip, uint8_t *out) {
    if (dilation != 1) along(x, n, window, stride, dilation, flip, out);
    else if (window == 2 && stride == 2) along(x, n, 2, 2, 1, flip, out);
    else if (window == 3 && stride == 2) along(x, n, 3, 2, 1, flip, out);
    else if (window == 3 && stride == 1) along(x, n, 3, 1, 1, flip, out);
    else along(x, n, window, stride, 1, flip, out);
}

#include "blocked.h"
#include "packed.h"
#include "pointwise.h"

const int8_ukernels INT8_PASTE(int8_ukernels_, INT8_ISA) = {
    .name = INT8_TEXT(INT8_ISA),
    .packed_order = packed_order,
    .packed_dot = packed_dot,
    .gemm = gemm,
    .dot = dot,
    .interleave = interleave,
    .requantize = requantize,
    .quantize = quantize,
    .dequantize = dequantize,
    .max = max,
    .max_along = max_along,
    .max_blocks = max_blocks,
    .tile = tile,
    .window = window,
    .add = add,
    .mul = mul,
    .scale = scale,
    .table = table,
    .mean = mean,
};
