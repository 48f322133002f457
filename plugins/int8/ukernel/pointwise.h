/* Part of template.h: sums, products, tables and means of bytes. */

/* Rounds and clamps a number in units of y's scale to y's byte. */
static inline __attribute__((always_inline)) uint8_t byte_of(float v, const int8_pair *how) {
    v = v < how->low ? how->low : v;
    v = v > how->high ? how->high : v;
    v = (v + 0x1.8p23f) - 0x1.8p23f;
    return (uint8_t)((int32_t)v + how->zero);
}

/* y = a + b of quantised numbers. */
static void add(const uint8_t *a, const uint8_t *b, int64_t n, const int8_pair *how, uint8_t *y) {
    const int8_pair h = *how;
    for (int64_t i = 0; i < n; i++) {
        const float of_a = (float)((a[i] ^ h.a_flip) - h.a_zero) * h.a_factor;
        const float of_b = (float)((b[i] ^ h.b_flip) - h.b_zero) * h.b_factor;
        y[i] = byte_of(of_a + of_b, &h);
    }
}

/* y = a * b of quantised numbers. */
static void mul(const uint8_t *a, const uint8_t *b, int64_t n, const int8_pair *how, uint8_t *y) {
    const int8_pair h = *how;
    for (int64_t i = 0; i < n; i++) {
        const int32_t of_a = (a[i] ^ h.a_flip) - h.a_zero, of_b = (b[i] ^ h.b_flip) - h.b_zero;
        y[i] = byte_of((float)(of_a * of_b) * h.a_factor, &h);
    }
}

/* y = a * b for n pixels of `block` channels, where b has one byte for each channel, requantised by
 * `how`. */
static inline __attribute__((always_inline)) void scale_of(const uint8_t *a, int64_t n,
                                                           const int block, const uint8_t *b,
                                                           const int8_pair *how,
                                                           uint8_t *restrict y) {
    const int8_pair h = *how;
    int32_t by[16];
    for (int c = 0; c < block; c++) by[c] = (b[c] ^ h.b_flip) - h.b_zero;
    for (int64_t i = 0; i < n; i++, a += block, y += block)
        for (int c = 0; c < block; c++)
            y[c] = byte_of((float)(((a[c] ^ h.a_flip) - h.a_zero) * by[c]) * h.a_factor, &h);
}

/* y = a * b with one b a channel. */
static void scale(const uint8_t *a, int64_t n, int64_t block, const uint8_t *b,
                  const int8_pair *how, uint8_t *y) {
    if (block == 16) scale_of(a, n, 16, b, how, y);
    else if (block == 8) scale_of(a, n, 8, b, how, y);
    else scale_of(a, n, 1, b, how, y);
}

#if defined(__AVX512BW__)
/* Looks up bytes in a table of 256, each half of which two registers hold. */
static __attribute__((target("avx512vbmi"))) int64_t table_wide(const uint8_t *x, int64_t n,
                                                                const uint8_t *t, uint8_t *y) {
    const __m512i t0 = _mm512_loadu_si512(t), t1 = _mm512_loadu_si512(t + 64);
    const __m512i t2 = _mm512_loadu_si512(t + 128), t3 = _mm512_loadu_si512(t + 192);
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
        const __m512i v = _mm512_loadu_si512(x + i);
        const __m512i low = _mm512_permutex2var_epi8(t0, v, t1);
        const __m512i high = _mm512_permutex2var_epi8(t2, v, t3);
        _mm512_storeu_si512(y + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high));
    }
    return i;
}
#endif

/* y[i] = t[x[i]] for n bytes; t has 256. */
static void table(const uint8_t *x, int64_t n, const uint8_t *t, uint8_t *y) {
    int64_t i = 0;
#if defined(__AVX512BW__)
    if (__builtin_cpu_supports("avx512vbmi")) i = table_wide(x, n, t, y);
#endif
    for (; i < n; i++) y[i] = t[x[i]];
}

/* y[c] = the mean of channel c over n pixels of `block` channels at x, requantised by `how`. */
static inline __attribute__((always_inline)) void
mean_of(const uint8_t *x, int64_t n, const int block, const int8_pair *how, uint8_t *y) {
    const uint8_t flip = how->a_flip;
    int32_t sum[16] = {0};
    for (int64_t i = 0; i < n; i++, x += block)
        for (int c = 0; c < block; c++) sum[c] += x[c] ^ flip;
    for (int c = 0; c < block; c++)
        y[c] = byte_of((float)(sum[c] - (int32_t)n * how->a_zero) * how->a_factor, how);
}

/* Quantised mean of n positions of a block of channels. */
static void mean(const uint8_t *x, int64_t n, int64_t block, const int8_pair *how, uint8_t *y) {
    if (block == 16) mean_of(x, n, 16, how, y);
    else if (block == 8) mean_of(x, n, 8, how, y);
    else mean_of(x, n, 1, how, y);
}
