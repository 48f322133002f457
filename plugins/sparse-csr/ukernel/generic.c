/* Microkernels for any processor: NEON on Arm, SSE2 on x86-64, by the compiler's vector
 * extension. */
#include <cnnrun/tensor.h>

#include <cnnrun/half.h>
#include "ukernel.h"

#ifndef CSR_ISA
#define CSR_ISA generic
#endif
#define CSR_VL 4
#if defined(__aarch64__)
#define CSR_WIDE_1 8
#define CSR_WIDE_4 6
#else
#define CSR_WIDE_1 8
#define CSR_WIDE_4 2
#endif

/* A half as a float. */
static inline float f16_to_f32(uint16_t h) {
#if defined(__aarch64__)
    __fp16 half;
    __builtin_memcpy(&half, &h, sizeof half);
    return (float)half;
#else
    return cnr_f16_to_f32(h);
#endif
}

/* Value `at` as a float; type: a CSR_VALUE_. */
static inline __attribute__((always_inline)) float value_at(const void *value, int64_t at,
                                                            int type) {
    if (type == CSR_VALUE_F32) return ((const float *)value)[at];
    if (type == CSR_VALUE_F16) return f16_to_f32(((const uint16_t *)value)[at]);
    return (float)((const int8_t *)value)[at];
}

#define CSR_SLICE_STATE uint32_t index[16] = {0}
/* One step: the columns of 16 lanes, and their elements of x. */
#define CSR_SLICE_STEP(x, gap, step, wide) \
    float g[16]; \
    for (int l = 0; l < 16; l++) { \
        index[l] += (wide) ? ((const uint16_t *)(gap))[(step)*16 + l] \
                           : ((const uint8_t *)(gap))[(step)*16 + l]; \
        g[l] = (x)[index[l]]; \
    }
/* Adds the products of value row r to its sums. */
#define CSR_SLICE_SUM(r, value, at, type) \
    for (int l = 0; l < 16; l++) sums[r][l] += g[l] * value_at(value, (at) + l, type)
#define CSR_SLICE_SUMS float sums[4][16] = {{0}}
/* Writes the 16 sums of row r. */
#define CSR_SLICE_STORE(r, out) \
    for (int l = 0; l < 16; l++) (out)[l] = sums[r][l]
#include "template.h"
