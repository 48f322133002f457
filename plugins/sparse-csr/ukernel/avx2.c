/* Microkernels for x86-64 with AVX2, FMA and F16C. */
#include <immintrin.h>

#include "ukernel.h"

#define CSR_ISA avx2
#define CSR_VL 8
#define CSR_WIDE_1 8
#define CSR_WIDE_4 2

#define CSR_SLICE_STATE __m256i low = _mm256_setzero_si256(), high = low
/* One step: the columns of 16 lanes, and their elements of x. */
#define CSR_SLICE_STEP(x, gap, step, wide) \
    if (wide) { \
        const __m128i *at = (const __m128i *)(gap) + (step)*2; \
        low = _mm256_add_epi32(low, _mm256_cvtepu16_epi32(_mm_loadu_si128(at))); \
        high = _mm256_add_epi32(high, _mm256_cvtepu16_epi32(_mm_loadu_si128(at + 1))); \
    } else { \
        const __m128i b = _mm_loadu_si128((const __m128i *)(gap) + (step)); \
        low = _mm256_add_epi32(low, _mm256_cvtepu8_epi32(b)); \
        high = _mm256_add_epi32(high, _mm256_cvtepu8_epi32(_mm_srli_si128(b, 8))); \
    } \
    const __m256 g0 = _mm256_i32gather_ps(x, low, 4), g1 = _mm256_i32gather_ps(x, high, 4)
/* Adds the products of value row r to its sums. */
#define CSR_SLICE_SUM(r, value, at, type) \
    sums[r][0] = _mm256_fmadd_ps(g0, load(value, at, type), sums[r][0]); \
    sums[r][1] = _mm256_fmadd_ps(g1, load(value, (at) + 8, type), sums[r][1])
#define CSR_SLICE_SUMS \
    __m256 sums[4][2] = {{_mm256_setzero_ps(), _mm256_setzero_ps()}, \
                         {_mm256_setzero_ps(), _mm256_setzero_ps()}, \
                         {_mm256_setzero_ps(), _mm256_setzero_ps()}, \
                         {_mm256_setzero_ps(), _mm256_setzero_ps()}}
/* Writes the 16 sums of row r. */
#define CSR_SLICE_STORE(r, out) \
    (_mm256_storeu_ps(out, sums[r][0]), _mm256_storeu_ps((out) + 8, sums[r][1]))

/* Eight values from index `at` on, as floats; type: a CSR_VALUE_. */
static inline __attribute__((always_inline)) __m256 load(const void *value, int64_t at, int type) {
    if (type == CSR_VALUE_F32) return _mm256_loadu_ps((const float *)value + at);
    if (type == CSR_VALUE_F16)
        return _mm256_cvtph_ps(
            _mm_loadu_si128((const __m128i *)(const void *)((const uint16_t *)value + at)));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(
        _mm_loadl_epi64((const __m128i *)(const void *)((const int8_t *)value + at))));
}
#include "template.h"
