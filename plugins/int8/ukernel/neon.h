/* Part of template.h: products of bytes by NEON, with SDOT where the file's options have it.
 *
 * These instructions multiply signed bytes, so the top bit of an activation is flipped, which
 * subtracts 128; 128 times the sum of the weights is then added. */
#include <arm_neon.h>
#if !defined(__aarch64__)
#include "armv7.h"
#endif

/* 16 bytes as signed ones. */
static inline int8x16_t signed_of(const uint8_t *x) {
    return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(x), vdupq_n_u8(0x80)));
}

#if defined(__ARM_FEATURE_DOTPROD)

/* sum += four products in each lane. */
static inline int32x4_t add_products(int32x4_t sum, int8x16_t x, int8x16_t w) {
    return vdotq_s32(sum, x, w);
}

/* sum += four products of each lane of x with the four bytes of one lane of `by`. */
#define ADD_LANE(sum, x, by, lane) vdotq_laneq_s32(sum, x, by, lane)

#else

/* sum plus the products of 16 bytes, four to each lane. */
static inline int32x4_t add_products(int32x4_t sum, int8x16_t x, int8x16_t w) {
    const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(w)), high = vmull_high_s8(x, w);
    return vaddq_s32(sum, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
}

/* Four bytes of a lane in all lanes. */
#define LANE(by, lane) vreinterpretq_s8_s32(vdupq_laneq_s32(vreinterpretq_s32_s8(by), lane))
/* sum += four products of each lane of x with the four bytes of one lane of `by`, without the dot
 * product's instruction. */
#define ADD_LANE(sum, x, by, lane) add_products(sum, x, LANE(by, lane))

#endif

/* Four rows by 16 columns of a tile; `begin`: the first value of each row's sums. */
static void gemm_part(int64_t k4, const int8_t *w, const uint8_t *x, const int32_t *begin,
                      int32_t *sums) {
    int32x4_t s[4][4];
    for (int r = 0; r < 4; r++)
        for (int v = 0; v < 4; v++) s[r][v] = vdupq_n_s32(begin[r]);
    for (int64_t k = 0; k < k4; k++, w += INT8_MR * 4, x += INT8_NR * 4) {
        const int8x16_t b = vld1q_s8(w);
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) {
            const int8x16_t a = signed_of(x + 16 * v);
            s[0][v] = ADD_LANE(s[0][v], a, b, 0);
            s[1][v] = ADD_LANE(s[1][v], a, b, 1);
            s[2][v] = ADD_LANE(s[2][v], a, b, 2);
            s[3][v] = ADD_LANE(s[3][v], a, b, 3);
        }
    }
    for (int r = 0; r < 4; r++)
        for (int v = 0; v < 4; v++) vst1q_s32(sums + r * INT8_NR + 4 * v, s[r][v]);
}

/* Sums of INT8_MR rows and INT8_NR columns, over k4 steps of four. */
static void gemm(int64_t k4, const int8_t *w, const uint8_t *x, int32_t *sums) {
    int32x4_t low = vdupq_n_s32(0), high = low;
    int32_t begin[INT8_MR];
    for (int64_t k = 0; k < k4; k++) {
        low = add_products(low, vdupq_n_s8(1), vld1q_s8(w + k * INT8_MR * 4));
        high = add_products(high, vdupq_n_s8(1), vld1q_s8(w + k * INT8_MR * 4 + 16));
    }
    vst1q_s32(begin, vshlq_n_s32(low, 7));
    vst1q_s32(begin + 4, vshlq_n_s32(high, 7));
    for (int r = 0; r < INT8_MR; r += 4)
        for (int j = 0; j < INT8_NR; j += 16)
            gemm_part(k4, w + 4 * r, x + 4 * j, begin + r, sums + r * INT8_NR + j);
}

/* Dot products of x with INT8_DOT_ROWS rows of w. */
static void dot(int64_t n, const uint8_t *x, const int8_t *w, int64_t stride, int32_t *sums) {
    int32x4_t s[INT8_DOT_ROWS], total[INT8_DOT_ROWS];
    for (int r = 0; r < INT8_DOT_ROWS; r++) s[r] = total[r] = vdupq_n_s32(0);
    for (int64_t i = 0; i < n; i += 16) {
        const int8x16_t a = signed_of(x + i);
#pragma GCC unroll 4
        for (int r = 0; r < INT8_DOT_ROWS; r++) {
            const int8x16_t b = vld1q_s8(w + r * stride + i);
            s[r] = add_products(s[r], a, b);
            total[r] = add_products(total[r], vdupq_n_s8(1), b);
        }
    }
    for (int r = 0; r < INT8_DOT_ROWS; r++)
        sums[r] = vaddvq_s32(vaddq_s32(s[r], vshlq_n_s32(total[r], 7)));
}
