/* The source of all microkernels, in GCC's vector extension. A file for each instruction set
 * includes it with NEON_ISA, NEON_VL (floats a vector) and NEON_REGISTERS set. No code here may run
 * before the processor's features are checked, so all but the table is static. */
#include "ukernel.h"

#include <math.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif
#if defined(__ARM_NEON) && !defined(__aarch64__) /* ARMv7: 16 vectors, and no fused lane products \
                                                  */
#define NEON_ARMV7 1
#else
#define NEON_ARMV7 0
#endif

/* Joins two words; NEON_PASTE expands them first. */
#define NEON_PASTE_(a, b) a##b
/* Joins two words into one name. */
#define NEON_PASTE(a, b) NEON_PASTE_(a, b)
/* A word as text; NEON_TEXT expands it first. */
#define NEON_TEXT_(a) #a
/* A word as text. */
#define NEON_TEXT(a) NEON_TEXT_(a)
#define VL NEON_VL
#define NV 3
#if NEON_REGISTERS == 32
#define MR 8
#define DOT_M 4
#define DOT_N 6
#else
#define MR 4
#define DOT_M 3
#define DOT_N 4
#endif
#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__) /* n: trip count at most; fully unrolled loops keep arrays in registers */
/* Unrolls the loop that follows. */
#define UNROLL(n) _Pragma("clang loop unroll(full)")
#else
/* Unrolls the loop that follows, n times. */
#define UNROLL(n) _Pragma(NEON_TEXT(GCC unroll n))
#endif
/* Hides a pointer's origin, or compilers keep a register for each of many loads. */
#define FORGET(p) __asm__("" : "+r"(p))

typedef float vec __attribute__((vector_size(VL * 4)));
typedef float vec_u __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(VL * 4)));
typedef float quad __attribute__((vector_size(16)));
typedef float quad_u __attribute__((vector_size(16), aligned(4), may_alias));
typedef float oct __attribute__((vector_size(32)));

/* Fused multiply-add where the processor has it, always or never: results must not depend on the
 * compiler's choice for each form of a loop. */
#if defined(__AVX512F__)
INLINE vec fuse(vec a, vec b, vec c) {
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
#elif defined(__FMA__)
INLINE vec fuse(vec a, vec b, vec c) {
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
#elif defined(__aarch64__)
INLINE vec fuse(vec a, vec b, vec c) {
    return (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
#elif NEON_ARMV7 /* never fused: VMLA can take a lane of a vector, VFMA can't */
INLINE vec fuse(vec a, vec b, vec c) {
    return (vec)vmlaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
#else
INLINE vec fuse(vec a, vec b, vec c) { return a * b + c; }
#endif

INLINE vec load(const float *p) { return *(const vec_u *)p; }
INLINE void store(float *p, vec v) { *(vec_u *)p = v; }
INLINE vec splat(float x) { return x - (vec){0}; }

#include "peak.h"
#include "half.h"
INLINE vec choose(ivec mask, vec a, vec b) { return (vec)(((ivec)a & mask) | ((ivec)b & ~mask)); }
/* vmax: NaN wins, on either side. NaN stays in positive and within, whose limits are never NaN
 * (neon_link_of). */
#if defined(__ARM_NEON)
INLINE vec vmax(vec a, vec b) { return (vec)vmaxq_f32((float32x4_t)a, (float32x4_t)b); }
INLINE vec positive(vec x) { return (vec)vmaxq_f32((float32x4_t)x, (float32x4_t){0}); }
INLINE vec within(vec x, vec low, vec high) {
    return (vec)vminq_f32(vmaxq_f32((float32x4_t)x, (float32x4_t)low), (float32x4_t)high);
}
#elif !defined(__AVX2__)
INLINE vec vmax(vec a, vec b) { return choose((a >= b) | (a != a), a, b); }
INLINE vec positive(vec x) { return choose(x < splat(0.0f), splat(0.0f), x); }
INLINE vec within(vec x, vec low, vec high) {
    x = choose(x < low, low, x);
    return choose(x > high, high, x);
}
#else /* returns the second operand if they are equal or one is NaN */
INLINE oct oct_max(oct a, oct b) {
    const __m256 x = (__m256)b;
    return (oct)_mm256_blendv_ps(_mm256_max_ps(x, (__m256)a), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}
INLINE oct oct_positive(oct x) { return (oct)_mm256_max_ps(_mm256_setzero_ps(), (__m256)x); }
INLINE oct oct_within(oct x, oct low, oct high) {
    return (oct)_mm256_min_ps((__m256)high, _mm256_max_ps((__m256)low, (__m256)x));
}
#if VL == 8
INLINE vec vmax(vec a, vec b) { return oct_max(a, b); }
INLINE vec positive(vec x) { return oct_positive(x); }
INLINE vec within(vec x, vec low, vec high) { return oct_within(x, low, high); }
#else
INLINE vec vmax(vec a, vec b) {
    const __m512 x = (__m512)b;
    return (vec)_mm512_mask_max_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, (__m512)a);
}
INLINE vec positive(vec x) { return (vec)_mm512_max_ps(_mm512_setzero_ps(), (__m512)x); }
INLINE vec within(vec x, vec low, vec high) {
    return (vec)_mm512_min_ps((__m512)high, _mm512_max_ps((__m512)low, (__m512)x));
}
#endif
#endif

/* Loads n < VL floats; the others are 0. */
#if defined(__AVX512F__)
INLINE vec load_part(const float *p, int64_t n) {
    return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

INLINE void store_part(float *p, vec v, int64_t n) {
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
}
#else
INLINE vec load_part(const float *p, int64_t n) {
    float t[VL] = {0};
    for (int64_t i = 0; i < n; i++) t[i] = p[i];
    return load(t);
}

INLINE void store_part(float *p, vec v, int64_t n) {
    float t[VL];
    store(t, v);
    for (int64_t i = 0; i < n; i++) p[i] = t[i];
}
#endif

/* Adds halves pairwise, so that the sum does not depend on the compiler. */
INLINE float sum_quad(quad q) {
    const quad pair = q + __builtin_shufflevector(q, q, 2, 3, 2, 3);
    return pair[0] + pair[1];
}

INLINE quad half_sum(oct o) {
    return __builtin_shufflevector(o, o, 0, 1, 2, 3) + __builtin_shufflevector(o, o, 4, 5, 6, 7);
}

INLINE float sum_lanes(vec v) {
#if NEON_VL == 16
    return sum_quad(half_sum(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                             __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)));
#elif NEON_VL == 8
    return sum_quad(half_sum(v));
#else
    return sum_quad(v);
#endif
}

#include "product.h"

/* ---- packing ---- */

/* Packs rows k0 to k1 - 1 of a convolution's columns: each tap of each channel, along the
 * segments. */
static void pack_taps(float *panel, int64_t width, int64_t k0, int64_t k1, const float *base,
                      const float *end, int64_t plane, const int64_t *tap, int64_t taps,
                      const neon_segment *segment, int64_t segments) {
    int64_t channel = k0 / taps, t = k0 % taps;
    for (int64_t k = k0; k < k1; k++, panel += width) {
        const float *from = base + channel * plane + tap[t];
        float *to = panel;
        for (int64_t s = 0; s < segments; s++) {
            /* whole vectors: surplus elements are overwritten by the next segment or row */
            const float *x = from + segment[s].from;
            const int64_t n = segment[s].n;
            for (int64_t i = 0; i < n; i += VL)
                store(to + i, end - (x + i) < VL ? load_part(x + i, n - i) : load(x + i));
            to += n;
        }
        if (++t == taps) {
            t = 0;
            channel++;
        }
    }
}

/* Packs k rows of n columns into a panel of `width` columns, filled with zeros. */
static void pack_rows(float *panel, int64_t width, int64_t n, int64_t k, const float *b,
                      int64_t ldb) {
    const int64_t whole = n / VL * VL;
    for (int64_t i = 0; i < k; i++, panel += width, b += ldb) {
        for (int64_t j = 0; j < whole; j += VL) store(panel + j, load(b + j));
        if (whole < width) store(panel + whole, load_part(b + whole, n - whole));
    }
}

/* Transposes four rows and columns at a time in registers, in every instruction set. */
INLINE void turn_quad(const float *a, int64_t rs, float scale, float *to) {
    const quad by = scale - (quad){0};
    const quad a0 = *(const quad_u *)a * by, a1 = *(const quad_u *)(a + rs) * by;
    const quad a2 = *(const quad_u *)(a + 2 * rs) * by, a3 = *(const quad_u *)(a + 3 * rs) * by;
    const quad l0 = __builtin_shufflevector(a0, a1, 0, 4, 1, 5);
    const quad h0 = __builtin_shufflevector(a0, a1, 2, 6, 3, 7);
    const quad l1 = __builtin_shufflevector(a2, a3, 0, 4, 1, 5);
    const quad h1 = __builtin_shufflevector(a2, a3, 2, 6, 3, 7);
    *(quad_u *)to = __builtin_shufflevector(l0, l1, 0, 1, 4, 5);
    *(quad_u *)(to + MR) = __builtin_shufflevector(l0, l1, 2, 3, 6, 7);
    *(quad_u *)(to + 2 * MR) = __builtin_shufflevector(h0, h1, 0, 1, 4, 5);
    *(quad_u *)(to + 3 * MR) = __builtin_shufflevector(h0, h1, 2, 3, 6, 7);
}

/* Packs MR rows of k columns times scale, column by column, into the panel; rs: floats from row to
 * row of a. */
static void pack_columns(float *panel, int64_t k, const float *a, int64_t rs, float scale) {
    int64_t j = 0;
    for (; j + 4 <= k; j += 4)
        for (int i = 0; i < MR; i += 4) turn_quad(a + i * rs + j, rs, scale, panel + j * MR + i);
    for (; j < k; j++)
        for (int i = 0; i < MR; i++) panel[j * MR + i] = a[i * rs + j] * scale;
}

/* ---- sliding windows over a padded plane ---- */

INLINE vec window_step(neon_window_kind kind, vec acc, vec x, const float *weight, int64_t t) {
    if (kind == NEON_WINDOW_FMA) return fuse(x, splat(weight[t]), acc);
    if (kind == NEON_WINDOW_SUM) return acc + x;
    return vmax(acc, x);
}

INLINE void window_tile(neon_window_kind kind, const neon_window_rows *w, const float *base,
                        float *out, const int rows, const int nv, int64_t last) {
    vec acc[4][2];
    UNROLL(4)
    for (int r = 0; r < rows; r++) {
        const float *x = base + r * w->row_stride + (kind == NEON_WINDOW_MAX ? w->tap[0] : 0);
        UNROLL(2)
        for (int j = 0; j < nv; j++)
            acc[r][j] = kind == NEON_WINDOW_MAX ? load(x + j * VL)
                                                : splat(kind == NEON_WINDOW_FMA ? w->start : 0.0f);
    }
    for (int64_t t = kind == NEON_WINDOW_MAX; t < w->taps; t++) {
        const float *x = base + w->tap[t];
        UNROLL(4)
        for (int r = 0; r < rows; r++) {
            UNROLL(2)
            for (int j = 0; j < nv; j++)
                acc[r][j] = window_step(kind, acc[r][j], load(x + r * w->row_stride + j * VL),
                                        w->weight, t);
        }
    }
    UNROLL(4)
    for (int r = 0; r < rows; r++) {
        UNROLL(2)
        for (int j = 0; j < nv; j++) {
            if (j == nv - 1 && last < VL)
                store_part(out + r * w->out_stride + j * VL, acc[r][j], last);
            else store(out + r * w->out_stride + j * VL, acc[r][j]);
        }
    }
}

INLINE void window_strip(neon_window_kind kind, const neon_window_rows *w, int64_t row,
                         const int rows) {
    const float *base = w->base + row * w->row_stride;
    float *out = w->out + row * w->out_stride;
    int64_t x = 0;
    for (; x + VL < w->n; x += 2 * VL)
        window_tile(kind, w, base + x, out + x, rows, 2, w->n - x - VL < VL ? w->n - x - VL : VL);
    if (x < w->n) window_tile(kind, w, base + x, out + x, rows, 1, w->n - x);
}

INLINE void window_all(neon_window_kind kind, const neon_window_rows *w) {
    int64_t row = 0;
    for (; row + 4 <= w->rows; row += 4) window_strip(kind, w, row, 4);
    for (; row < w->rows; row++) window_strip(kind, w, row, 1);
}

/* Computes rows of windows: a weighted sum, a sum or a maximum. */
static void window(neon_window_kind kind, const neon_window_rows *w) {
    if (kind == NEON_WINDOW_FMA) window_all(NEON_WINDOW_FMA, w);
    else if (kind == NEON_WINDOW_SUM) window_all(NEON_WINDOW_SUM, w);
    else window_all(NEON_WINDOW_MAX, w);
}

#if NEON_VL == 16
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODDS 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif NEON_VL == 8
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14
#define ODDS 1, 3, 5, 7, 9, 11, 13, 15
#else
#define EVENS 0, 2, 4, 6
#define ODDS 1, 3, 5, 7
#endif

INLINE vec pair(neon_window_kind kind, vec a, vec b) {
    return kind == NEON_WINDOW_MAX ? vmax(a, b) : a + b;
}

INLINE void pairs_all(neon_window_kind kind, const float *top, const float *bottom, float *out,
                      int64_t n) {
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t here = n - i < VL ? n - i : VL, first = 2 * here < VL ? 2 * here : VL;
        vec a, b;
        if (here == VL) {
            a = pair(kind, load(top + 2 * i), load(bottom + 2 * i));
            b = pair(kind, load(top + 2 * i + VL), load(bottom + 2 * i + VL));
        } else {
            a = pair(kind, load_part(top + 2 * i, first), load_part(bottom + 2 * i, first));
            b = pair(kind, load_part(top + 2 * i + first, 2 * here - first),
                     load_part(bottom + 2 * i + first, 2 * here - first));
        }
        const vec v =
            pair(kind, __builtin_shufflevector(a, b, EVENS), __builtin_shufflevector(a, b, ODDS));
        if (here == VL) store(out + i, v);
        else store_part(out + i, v, here);
    }
}

/* Sum or maximum of 2 x 2 windows of two rows. */
static void pairs(neon_window_kind kind, const float *top, const float *bottom, float *out,
                  int64_t n) {
    if (kind == NEON_WINDOW_MAX) pairs_all(NEON_WINDOW_MAX, top, bottom, out, n);
    else pairs_all(NEON_WINDOW_SUM, top, bottom, out, n);
}

/* Gradient of pooling, for one tap: adds each output's gradient to the tap's element; of max
 * pooling only where that is the maximum, and then nothing is left for later taps. */
static void pool_tap(const neon_pool_tap *t) {
    for (int64_t row = 0; row < t->rows; row++) {
        float *to = t->dx + row * t->row, *rest = t->rest + row * t->pitch;
        for (int64_t i = 0; i < t->pitch; i += VL) {
            vec r = load(rest + i);
            if (t->x) {
                const vec v = load(t->x + row * t->row + i);
                const ivec here = (v == load(t->top + row * t->pitch + i)) | (v != v);
                store(rest + i, (vec)((ivec)r & ~here));
                r = (vec)((ivec)r & here);
            }
            store(to + i, load(to + i) + r);
        }
    }
}

/* Copies n elements of x, `stride` apart, to out. */
static void strided(const float *x, int64_t stride, float *out, int64_t n) {
    if (stride == 2) /* a constant stride becomes shuffles */
        for (int64_t i = 0; i < n; i++) out[i] = x[2 * i];
    else
        for (int64_t i = 0; i < n; i++) out[i] = x[i * stride];
}

/* ---- element-wise loops, vectorised by the compiler ---- */

/* x = max(x, 0) */
static void relu(float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = x[i] < 0.0f ? 0.0f : x[i];
}

/* x = x * slope where x < 0. */
static void leaky_relu(float *x, float slope, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = x[i] < 0.0f ? x[i] * slope : x[i];
}

/* Slopes are repeated to fill vectors, so that one loop serves all block sizes. */
#define PRELU_RUN 64
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
/* x * slope where x < 0, with one slope for each channel of a block. */
static void prelu_block(const float *x, const float *slope, int64_t block, int64_t n, float *out) {
    float by[PRELU_RUN];
    const int64_t all = n * block, run = PRELU_RUN / block * block;
    for (int64_t i = 0; i < run; i++) by[i] = slope[i % block];
    for (int64_t i = 0; i < all; i += run) {
        const int64_t end = all - i < run ? all - i : run;
        const float *from = x + i;
        float *to = out + i;
        INDEPENDENT
        for (int64_t k = 0; k < end; k++) to[k] = from[k] < 0.0f ? from[k] * by[k] : from[k];
    }
}

/* Limits x to low..high. */
static void clip(float *x, float low, float high, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i] < low ? low : x[i];
        x[i] = v > high ? high : v;
    }
}

/* x += y. */
static void add(float *x, const float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] += y[i];
}

/* x *= y. */
static void mul(float *x, const float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] *= y[i];
}

/* x /= y. */
static void divide(float *x, const float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] /= y[i];
}

/* out = x * scale + shift. */
static void affine(const float *x, float scale, float shift, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = x[i] * scale + shift;
}

/* Returns the largest of n elements, n at least 1; NaN if there is one. */
static float max_of(const float *x, int64_t n) {
    vec v = splat(x[0]);
    float t[VL], best = x[0];
    int64_t i = 0;
    for (; i + VL <= n; i += VL) v = vmax(v, load(x + i));
    store(t, v);
    for (int l = 0; l < VL; l++)
        if (!(t[l] <= best) && best == best) best = t[l];
    for (; i < n; i++)
        if (!(x[i] <= best) && best == best) best = x[i];
    return best;
}

/* Sum of n elements. */
static float sum_of(const float *x, int64_t n) {
    vec v[4] = {{0}, {0}, {0}, {0}};
    int64_t i = 0;
    for (; i + 4 * VL <= n; i += 4 * VL) {
        UNROLL(4)
        for (int j = 0; j < 4; j++) v[j] += load(x + i + j * VL);
    }
    for (; i + VL <= n; i += VL) v[0] += load(x + i);
    if (i < n) v[1] += load_part(x + i, n - i);
    return sum_lanes((v[0] + v[1]) + (v[2] + v[3]));
}

/* p * 2^k for an integer k from -126 to 128. */
INLINE vec scaled(vec p, vec k, vec shifted) {
#if defined(__AVX512F__)
    (void)shifted;
    return (vec)_mm512_scalef_ps((__m512)p, (__m512)k);
#else
    /* k may be 128, beyond the exponent's range: two steps */
    const ivec n = (ivec)shifted - (ivec)splat(12582912.0f), half = n >> 1;
    (void)k;
    return p * (vec)((half + 127) << 23) * (vec)((n - half + 127) << 23);
#endif
}

/* exp to about 1 ulp: 2^k * p(r), r within ln2/2 of 0; Cephes' polynomial. NaN stays. */
INLINE vec vexp(vec x) {
    x = choose(x < splat(-87.33f), splat(-87.33f), x);
    x = choose(x > splat(89.0f), splat(89.0f), x); /* exp is infinite from there on */
    const vec magic = splat(12582912.0f);          /* 1.5 * 2^23: adding it rounds to an integer */
    const vec shifted = fuse(x, splat(1.44269504f), magic);
    const vec k = shifted - magic;
    const vec r = fuse(k, splat(2.12194440e-4f), fuse(k, splat(-0.693359375f), x));
    vec p = splat(1.9875691500e-4f);
    p = fuse(p, r, splat(1.3981999507e-3f));
    p = fuse(p, r, splat(8.3334519073e-3f));
    p = fuse(p, r, splat(4.1665795894e-2f));
    p = fuse(p, r, splat(1.6666665459e-1f));
    p = fuse(p, r, splat(5.0000001201e-1f));
    p = fuse(p * r, r, r) + splat(1.0f);
    return scaled(p, k, shifted);
}

/* out = exp(x - shift); returns their sum. */
static float exp_sum(const float *x, float shift, float *out, int64_t n) {
    vec total = {0};
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        const vec e = vexp(load(x + i) - splat(shift));
        store(out + i, e);
        total += e;
    }
    float sum = sum_lanes(total);
    if (i < n) {
        const vec e = vexp(load_part(x + i, n - i) - splat(shift));
        store_part(out + i, e, n - i);
        for (int64_t l = 0; l < n - i; l++) sum += out[i + l];
    }
    return sum;
}

/* 1 / x to about 1 ulp, for x >= 1; infinity gives 0. */
INLINE vec reciprocal(vec x) {
#if defined(__AVX512F__)
    const vec r = (vec)_mm512_rcp14_ps((__m512)x);
    const vec better = fuse(r, fuse(-x, r, splat(1.0f)), r);
    return choose(r == splat(0.0f), r, better);
#else
    return splat(1.0f) / x;
#endif
}

INLINE vec vsigmoid(vec x) { return reciprocal(splat(1.0f) + vexp(-x)); }

/* Near 0 the quotient of exponentials loses digits: uses a polynomial there (Cephes). */
INLINE vec vtanh(vec x) {
    const vec e = vexp(x + x);
    const vec far = splat(1.0f) - splat(2.0f) / (e + splat(1.0f));
    const vec s = x * x;
    vec p = splat(-5.70498872745e-3f);
    p = p * s + splat(2.06390887954e-2f);
    p = p * s + splat(-5.37397155531e-2f);
    p = p * s + splat(1.33314422036e-1f);
    p = p * s + splat(-3.33332819422e-1f);
    const vec near = p * s * x + x;
    return choose(s < splat(0.390625f), near, far);
}

#include "erf.h"

static void sigmoid(const float *x, float *out, int64_t n) { EACH_VECTOR(vsigmoid); }
static void tanh_of(const float *x, float *out, int64_t n) { EACH_VECTOR(vtanh); }

/* out = x * sigmoid(alpha * x) */
static void swish(const float *x, float alpha, float *out, int64_t n) {
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        const vec v = load(x + i);
        store(out + i, v * vsigmoid(v * splat(alpha)));
    }
    if (i < n) {
        const vec v = load_part(x + i, n - i);
        store_part(out + i, v * vsigmoid(v * splat(alpha)), n - i);
    }
}

/* x = alpha * x + beta, limited to 0..1. */
static void hard_sigmoid(float *x, float alpha, float beta, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float v = alpha * x[i] + beta, low = v < 0.0f ? 0.0f : v;
        x[i] = low > 1.0f ? 1.0f : low;
    }
}

/* x *= x / 6 + 0.5, limited to 0..1. */
static void hard_swish(float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i] * (1.0f / 6.0f) + 0.5f, low = v < 0.0f ? 0.0f : v;
        x[i] *= low > 1.0f ? 1.0f : low;
    }
}

/* acc += x * x. */
static void add_squares(const float *x, float *acc, int64_t n) {
    for (int64_t i = 0; i < n; i++) acc[i] += x[i] * x[i];
}

/* out = x / (bias + scale acc)^beta for n elements. The exponents that nets use need only square
 * roots. */
static void lrn(const float *x, const float *acc, float scale, float bias, float beta, float *out,
                int64_t n) {
    if (beta == 0.75f)
        for (int64_t i = 0; i < n; i++) {
            const float root = __builtin_sqrtf(bias + scale * acc[i]);
            out[i] = x[i] / (root * __builtin_sqrtf(root));
        }
    else if (beta == 0.5f)
        for (int64_t i = 0; i < n; i++) out[i] = x[i] / __builtin_sqrtf(bias + scale * acc[i]);
    else
        for (int64_t i = 0; i < n; i++) out[i] = x[i] / powf(bias + scale * acc[i], beta);
}

/* Sum of (x - mean_x) * (y - mean_y), in doubles. */
static double centred(const float *x, double mean_x, const float *y, double mean_y, int64_t n) {
    double sum[8] = {0}, rest = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        UNROLL(8)
        for (int j = 0; j < 8; j++)
            sum[j] += ((double)x[i + j] - mean_x) * ((double)y[i + j] - mean_y);
    }
    for (; i < n; i++) rest += ((double)x[i] - mean_x) * ((double)y[i] - mean_y);
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7])) + rest;
}

/* out = a * x + b * (y - mean) + c. */
static void blend(const float *x, double a, const float *y, double mean, double b, double c,
                  float *restrict out, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)(a * (double)x[i] + (b * ((double)y[i] - mean) + c));
}

/* One step of gradient descent with momentum for n weights x, in place, as their velocity. */
static void sgd(float *restrict x, float *restrict velocity, const float *restrict gradient,
                const neon_sgd *by, int64_t n) {
    const float momentum = by->momentum, decay = by->decay, along = by->along, down = by->down;
    for (int64_t i = 0; i < n; i++) {
        const float g = gradient[i] + decay * x[i], v = momentum * velocity[i] + g;
        velocity[i] = v;
        x[i] -= along * v + down * g;
    }
}

/* One step of Adam for n weights: updates x, mean and square in place by the gradient. */
static void adam(float *restrict x, float *restrict mean, float *restrict square,
                 const float *restrict gradient, const neon_adam *by, int64_t n) {
    const neon_adam k = *by;
    for (int64_t i = 0; i < n; i++) {
        const float g = gradient[i] + k.decay * x[i];
        const float old = square[i] > 0.0f ? square[i] : 0.0f;
        const float m = k.beta1 * mean[i] + k.rest1 * g;
        const float s = k.beta2 * old + k.rest2 * g * g;
        mean[i] = m;
        square[i] = s;
        x[i] -= k.rate * m / (__builtin_sqrtf(s * k.fill) + k.epsilon);
    }
}

#include "norm.h"
#include "recurrent.h"
#include "resample.h"
#include "turn.h"
#include "blocked.h"
#include "winograd.h"
#include "wino_planes.h"

const neon_ukernels NEON_PASTE(neon_ukernels_, NEON_ISA) = {
    .name = NEON_TEXT(NEON_ISA),
    .vl = VL,
    .mr = MR,
    .nr = NV * VL,
    .dot_m = DOT_M,
    .dot_n = DOT_N,
    .peak = peak,
    .read = read_all,
    .block = VL,
    .tile_columns = TILE_COLUMNS,
    .tile_vectors = TILE_VECTORS,
    .conv_tile = conv_tile,
#if defined(__AVX512F__)
    .conv_pairs = conv_pairs,
    .to_pairs = to_pairs,
#endif
    .affine_block = affine_block,
    .plane = plane,
    .whole_plane = whole_plane,
    .conv_sum = conv_sum_of,
    .wino_input = wino_input,
    .wino_output = wino_output,
    .wino_weights = wino_weights,
    .wino_halves = wino_halves,
    .wino_take = wino_take,
    .wino_spread = wino_spread,
    .wino_give = wino_give,
    .wino_filter = wino_filter,
    .wino_slope = wino_slope,
    .sgemm = sgemm,
    .sdot = {dot_f32, dot_f16, dot_bf16},
    .narrow = {NULL, narrow_f16, narrow_bf16},
    .widen = {NULL, widen_f16, widen_bf16},
    .pack_taps = pack_taps,
    .pack_rows = pack_rows,
    .pack_columns = pack_columns,
    .window = window,
    .pairs = pairs,
    .pool_tap = pool_tap,
    .strided = strided,
    .relu = relu,
    .leaky_relu = leaky_relu,
    .prelu_block = prelu_block,
    .clip = clip,
    .add = add,
    .mul = mul,
    .divide = divide,
    .affine = affine,
    .max = max_of,
    .sum = sum_of,
    .exp_sum = exp_sum,
    .sigmoid = sigmoid,
    .tanh = tanh_of,
    .erf = erf_of,
    .gelu = gelu,
    .gelu_tanh = gelu_tanh,
    .swish = swish,
    .hard_sigmoid = hard_sigmoid,
    .hard_swish = hard_swish,
    .add_squares = add_squares,
    .lrn = lrn,
    .lstm_cell = lstm_cell,
    .gru_reset = gru_reset,
    .gru_cell = gru_cell,
    .turn = turn,
    .resample = resample,
    .add_scaled = add_scaled,
    .moments = moments,
    .normalise = normalise,
    .centred = centred,
    .blend = blend,
    .sgd = sgd,
    .adam = adam,
};
