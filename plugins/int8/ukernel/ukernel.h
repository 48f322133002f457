/* The microkernels: what is built once for each instruction set, and chosen as a whole.
 *
 * Bytes of activations are unsigned, of weights signed; sums are 32 bits and never saturate. A tile
 * is INT8_MR rows of weights by INT8_NR columns; both operands hold four steps of k side by side:
 *     w: [k / 4][INT8_MR][4]      x: [k / 4][INT8_NR][4] */
#ifndef INT8_UKERNEL_H
#define INT8_UKERNEL_H

#include <stddef.h>
#include <stdint.h>

enum { INT8_MR = 8, INT8_NR = 32, INT8_DOT_ROWS = 4, INT8_DOT_STEP = 64 };

/* From a sum to a stored byte: round((sum + offset) * scale), kept in [low, high], plus zero. */
typedef struct int8_requant {
    double offset, scale, low, high;
    int32_t zero;
} int8_requant;

typedef struct int8_ukernels {
    const char *name;
    /* sums[row][column] over k4 groups of four. */
    void (*gemm)(int64_t k4, const int8_t *w, const uint8_t *x, int32_t *sums);
    /* sums[r] of x with row r of w, INT8_DOT_ROWS rows `stride` apart; n % INT8_DOT_STEP == 0. */
    void (*dot)(int64_t n, const uint8_t *x, const int8_t *w, int64_t stride, int32_t *sums);
    /* Four rows of INT8_NR bytes side by side. */
    void (*interleave)(const uint8_t *const rows[4], uint8_t *out);
    void (*requantize)(const int32_t *sums, int64_t n, const int8_requant *how, uint8_t *out);
    /* round(x / scale), kept in [low, high], plus zero; a NaN gives a stored 0. */
    void (*quantize)(const float *x, int64_t n, float scale, float low, float high, int32_t zero,
                     uint8_t *out);
    /* (x - zero) * scale; is_signed: x holds signed bytes. */
    void (*dequantize)(const uint8_t *x, int64_t n, int32_t is_signed, int32_t zero, float scale,
                       float *out);
    /* out = max(out, x); flip 0x80 for signed bytes, else 0. */
    void (*max)(uint8_t *out, const uint8_t *x, int64_t n, uint8_t flip);
    /* out[i] = the largest of x[i * stride + k * dilation], k < window */
    void (*max_along)(const uint8_t *x, int64_t n, int64_t window, int64_t stride,
                      int64_t dilation, uint8_t flip, uint8_t *out);
} int8_ukernels;

extern const int8_ukernels int8_ukernels_generic, int8_ukernels_avx2, int8_ukernels_avx512vnni;

#endif
