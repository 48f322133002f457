/* Part of template.h: multiplies floats by integers of 2, 4 or 8 bits.
 *
 * Each lane of a vector is a word of 32 bits and holds `each` = 32 / bits integers. In step j, lane
 * l multiplies integer l * each + j; x is reordered accordingly, once for all rows. With VNNI, x is
 * instead split into one-byte digits. */
#if defined(__aarch64__)
#include <arm_neon.h>
#endif
#if defined(__AVX512F__)
enum { PACKED_LANES = 16 };
#elif defined(__AVX2__)
enum { PACKED_LANES = 8 };
#else
enum { PACKED_LANES = 4 };
#endif
#define PACKED_INLINE static inline __attribute__((always_inline))

typedef int32_t packed_words __attribute__((vector_size(PACKED_LANES * 4)));
typedef float packed_reals __attribute__((vector_size(PACKED_LANES * 4)));

/* The header that packed_order writes, one cache line; x follows. */
typedef struct packed_x {
    double unit;      /* unit of the digits; 0: x follows as floats */
    int64_t total[4]; /* sum of the digits of each place */
    int64_t reserved[3];
} packed_x;

enum { PACKED_AHEAD = 8192 }; /* bytes; each weight is read once, from memory */

PACKED_INLINE void packed_fetch(const uint8_t *w) {
    for (int r = 0; r < INT8_PACKED_ROWS; r++)
        __builtin_prefetch(w + PACKED_AHEAD + r * INT8_PACKED_BYTES, 0, 2);
}

/* Scales x and reorders it as packed_rows reads it. */
static void packed_reorder(const float *x, int64_t n, int32_t bits, float scale, float *out) {
    const int each = 32 / bits;
    const int64_t end = int8_packed_blocks(n, bits) * int8_packed_block(bits);
    for (int64_t b = 0; b < end; b += PACKED_LANES * each)
        for (int j = 0; j < each; j++)
            for (int l = 0; l < PACKED_LANES; l++) {
                const int64_t at = b + l * each + j;
                *out++ = at < n ? x[at] * scale : 0;
            }
}

/* Integer j of each word, as a float. */
PACKED_INLINE packed_reals packed_number(packed_words w, int j, const int bits) {
    return __builtin_convertvector((w << (32 - bits * (j + 1))) >> (32 - bits), packed_reals);
}

/* sum + a * b, fused only by an explicit instruction: these files are built without contraction. */
PACKED_INLINE packed_reals packed_add(packed_reals sum, packed_reals a, packed_reals b) {
#if defined(__AVX512F__)
    return (packed_reals)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif defined(__FMA__)
    return (packed_reals)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#elif defined(__aarch64__)
    return (packed_reals)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
#else
    return sum + a * b;
#endif
}

PACKED_INLINE void packed_by_floats(const uint8_t *w, int64_t blocks, const float *x, float *sums,
                                    const int bits) {
    packed_reals sum[INT8_PACKED_ROWS] = {{0}};
    for (int64_t b = 0; b < blocks; b++, w += INT8_PACKED_ROWS * INT8_PACKED_BYTES) {
        packed_fetch(w);
        for (int at = 0; at < INT8_PACKED_BYTES; at += PACKED_LANES * 4) {
            packed_words words[INT8_PACKED_ROWS];
            for (int r = 0; r < INT8_PACKED_ROWS; r++)
                memcpy(&words[r], w + r * INT8_PACKED_BYTES + at, sizeof words[r]);
#pragma GCC unroll 16
            for (int j = 0; j < 32 / bits; j++, x += PACKED_LANES) {
                packed_reals v;
                memcpy(&v, x, sizeof v);
#pragma GCC unroll 8
                for (int r = 0; r < INT8_PACKED_ROWS; r++)
                    sum[r] = packed_add(sum[r], packed_number(words[r], j, bits), v);
            }
        }
    }
    for (int r = 0; r < INT8_PACKED_ROWS; r++) {
        sums[r] = 0;
        for (int l = 0; l < PACKED_LANES; l++) sums[r] += sum[r][l];
    }
}

#if defined(__AVX512VNNI__)

/* x as four one-byte digits, precise to 2^-31 of its maximum; products with bytes are summed
 * exactly. One instruction multiplies 64 numbers by a digit; with floats, 16 numbers take three or
 * four. 64 digits of the same place are adjacent, as are those multiplied by the same bits of a
 * byte. */
enum {
    DIGITS = 3,
    OUTLIER = 64, /* bound on the ratio of the maximum to the mean */
    LEAST_TERMS = 256,
    MOST_TERMS = 65536 /* 255 * 128 each, within 32 bits */
};

/* Returns 2^22 divided by the smallest power of two above the maximum of x * scale. 0: x has
 * infinity, NaN, or an outlier that would leave too few digits for the other numbers. */
static float packed_places(const float *x, int64_t n, float scale) {
    float part[16] = {0}, top[16] = {0}, sum = 0, most = 0;
    for (int64_t i = 0; i < n; i += 16)
        for (int64_t l = 0; l < 16 && i + l < n; l++) {
            const float v = fabsf(x[i + l] * scale);
            part[l] += v;
            top[l] = v > top[l] ? v : top[l];
        }
    for (int l = 0; l < 16; l++) {
        sum += part[l];
        most = top[l] > most ? top[l] : most;
    }
    if (!(sum <= FLT_MAX) || most * (float)n > OUTLIER * sum) return 0;
    int exponent = 0;
    if (most > 0) frexpf(most, &exponent);
    return exponent < -100 ? 0 : ldexpf(1, 22 - exponent);
}

/* Rounds to nearest by adding 1.5 * 2^23, as requantized does. */
static void packed_digits(const float *x, int64_t n, int32_t bits, float scale, float places,
                          packed_x *out) {
    const int each = 8 / bits;
    int8_t *to = (int8_t *)(out + 1);
    for (int64_t b = 0; b < n; b += (int64_t)each * INT8_PACKED_BYTES)
        for (int g = 0; g < each; g++, to += DIGITS * INT8_PACKED_BYTES) {
            float value[INT8_PACKED_BYTES] = {0};
            int32_t total[DIGITS] = {0};
            const int64_t left = (n - b - g + each - 1) / each;
            const int count = left < INT8_PACKED_BYTES ? (int)left : INT8_PACKED_BYTES;
            for (int l = 0; l < count; l++) value[l] = x[b + (int64_t)l * each + g];
            for (int l = 0; l < INT8_PACKED_BYTES; l++) {
                const float v = value[l] * scale * places;
                const int32_t whole = (int32_t)((v + 0x1.8p23f) - 0x1.8p23f);
                const int8_t low = (int8_t)whole, middle = (int8_t)((whole - low) >> 8);
                const int8_t high = (int8_t)((((whole - low) >> 8) - middle) >> 8);
                to[l] = low;
                to[INT8_PACKED_BYTES + l] = middle;
                to[2 * INT8_PACKED_BYTES + l] = high;
                total[0] += low;
                total[1] += middle;
                total[2] += high;
            }
            for (int k = 0; k < DIGITS; k++) out->total[k] += total[k];
        }
    out->unit = 1 / (double)places;
}

/* Integer g of each byte, plus 2^(bits - 1). */
PACKED_INLINE __m512i packed_part(__m512i w, int g, const int bits) {
    if (bits == 8) return w;
    return _mm512_and_si512(_mm512_srli_epi16(w, (unsigned)(g * bits)),
                            _mm512_set1_epi8((char)((1 << bits) - 1)));
}

PACKED_INLINE void packed_by_digits(const uint8_t *w, int64_t blocks, const packed_x *form,
                                    float *sums, const int bits) {
    const __m512i signs = _mm512_set1_epi8((char)(bits == 8 ? 0x80 : bits == 4 ? 0x88 : 0xaa));
    const int8_t *x = (const int8_t *)(form + 1);
    __m512i sum[INT8_PACKED_ROWS][DIGITS];
    for (int r = 0; r < INT8_PACKED_ROWS; r++)
        for (int k = 0; k < DIGITS; k++) sum[r][k] = _mm512_setzero_si512();
    for (int64_t b = 0; b < blocks; b++, w += INT8_PACKED_ROWS * INT8_PACKED_BYTES) {
        __m512i word[INT8_PACKED_ROWS];
        packed_fetch(w);
#pragma GCC unroll 8
        for (int r = 0; r < INT8_PACKED_ROWS; r++)
            word[r] = _mm512_xor_si512(_mm512_loadu_si512(w + r * INT8_PACKED_BYTES), signs);
#pragma GCC unroll 8
        for (int g = 0; g < 8 / bits; g++, x += DIGITS * INT8_PACKED_BYTES) {
            __m512i digit[DIGITS];
#pragma GCC unroll 8
            for (int k = 0; k < DIGITS; k++)
                digit[k] = _mm512_loadu_si512(x + k * INT8_PACKED_BYTES);
#pragma GCC unroll 8
            for (int r = 0; r < INT8_PACKED_ROWS; r++) {
                const __m512i part = packed_part(word[r], g, bits);
#pragma GCC unroll 8
                for (int k = 0; k < DIGITS; k++) add_products(&sum[r][k], part, digit[k]);
            }
        }
    }
    for (int r = 0; r < INT8_PACKED_ROWS; r++) {
        int64_t all = 0;
        for (int k = DIGITS - 1; k >= 0; k--)
            all =
                all * 256 + _mm512_reduce_add_epi32(sum[r][k]) - form->total[k] * (1 << (bits - 1));
        sums[r] = (float)((double)all * form->unit);
    }
}

#endif

/* Writes x in the form that the processor multiplies fastest: digits, or floats. */
static void packed_order(const float *x, int64_t n, int32_t bits, float scale, void *out) {
    packed_x *form = out;
    memset(form, 0, sizeof *form);
#if defined(__AVX512VNNI__)
    const float places = n >= LEAST_TERMS && n <= MOST_TERMS ? packed_places(x, n, scale) : 0;
    if (places > 0) packed_digits(x, n, bits, scale, places, form);
    else
#endif
        packed_reorder(x, n, bits, scale, (float *)(form + 1));
}

PACKED_INLINE void packed_rows(const uint8_t *w, int64_t blocks, const packed_x *form, float *sums,
                               const int bits) {
#if defined(__AVX512VNNI__)
    if (form->unit != 0) {
        packed_by_digits(w, blocks, form, sums, bits);
        return;
    }
#endif
    packed_by_floats(w, blocks, (const float *)(form + 1), sums, bits);
}

/* Dot products of x with rows of weights of `bits` bits. */
static void packed_dot(const uint8_t *w, int64_t blocks, int32_t bits, const void *x, float *sums) {
    if (bits == 2) packed_rows(w, blocks, x, sums, 2);
    else if (bits == 4) packed_rows(w, blocks, x, sums, 4);
    else packed_rows(w, blocks, x, sums, 8);
}
