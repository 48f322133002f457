/* Microkernels for x86-64 with AVX-512 F, VL, BW and DQ. */
#include <immintrin.h>

#include "ukernel.h"

#define CSR_ISA avx512
#define CSR_VL 16
#define CSR_WIDE_1 8
#define CSR_WIDE_4 6

#define CSR_SLICE_STATE __m512i index = _mm512_setzero_si512()
/* One step: the columns of 16 lanes, and their elements of x. */
#define CSR_SLICE_STEP(x, gap, step, wide) \
    index = _mm512_add_epi32(index, gaps(gap, step, wide)); \
    const __m512 g = _mm512_i32gather_ps(index, x, 4)
/* Adds the products of value row r to its sums. */
#define CSR_SLICE_SUM(r, value, at, type) \
    sums[r] = _mm512_fmadd_ps(g, load(value, at, type), sums[r])
#define CSR_SLICE_SUMS \
    __m512 sums[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), \
                      _mm512_setzero_ps()}
/* Writes the 16 sums of row r. */
#define CSR_SLICE_STORE(r, out) _mm512_storeu_ps(out, sums[r])

/* The gaps of a step's 16 lanes, of two bytes (wide) or one each. */
static inline __attribute__((always_inline)) __m512i gaps(const void *gap, int64_t step, int wide) {
    if (wide)
        return _mm512_cvtepu16_epi32(
            _mm256_loadu_si256((const __m256i *)(const void *)((const short *)gap + step * 16)));
    return _mm512_cvtepu8_epi32(
        _mm_loadu_si128((const __m128i *)(const void *)((const char *)gap + step * 16)));
}

/* Sixteen values from index `at` on, as floats; type: a CSR_VALUE_. */
static inline __attribute__((always_inline)) __m512 load(const void *value, long at, int type) {
    if (type == CSR_VALUE_F32) return _mm512_loadu_ps((const float *)value + at);
    if (type == CSR_VALUE_F16)
        return _mm512_cvtph_ps(
            _mm256_loadu_si256((const __m256i *)(const void *)((const short *)value + at)));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(
        _mm_loadu_si128((const __m128i *)(const void *)((const char *)value + at))));
}
#include "template.h"
