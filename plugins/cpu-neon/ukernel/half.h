/* Conversion between vectors of floats and stored halves, fp16 and bf16; included by template.h. */
#include <cnnrun/tensor.h>
#include <cnnrun/half.h>

typedef uint16_t hvec __attribute__((vector_size(VL * 2)));
typedef uint16_t hvec_u __attribute__((vector_size(VL * 2), aligned(2), may_alias));
typedef uint32_t uvec __attribute__((vector_size(VL * 4)));

#if defined(__aarch64__) || defined(__ARM_FP16_FORMAT_IEEE) /* what arm_neon.h has */
#define NEON_HALVES 1
#else
#define NEON_HALVES 0
#endif

INLINE uvec load_halves(const void *p) {
    return __builtin_convertvector((hvec) * (const hvec_u *)p, uvec);
}

INLINE vec load_bf16(const void *p) { return (vec)(load_halves(p) << 16); }

#if defined(__AVX512F__)
INLINE vec load_f16(const void *p) { return (vec)_mm512_cvtph_ps(_mm256_loadu_si256(p)); }
#elif defined(__F16C__)
INLINE vec load_f16(const void *p) { return (vec)_mm256_cvtph_ps(_mm_loadu_si128(p)); }
#elif defined(__ARM_NEON) && NEON_HALVES
INLINE vec load_f16(const void *p) { return (vec)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
#else
/* The exponent's bias changes from 15 to 127; infinity and NaN get the largest exponent. Below the
 * smallest normal number, the implicit bit that was added is subtracted again. */
INLINE vec load_f16(const void *p) {
    const uvec h = load_halves(p), bits = (h & 0x7fffu) << 13, exponent = bits & 0x0f800000u;
    const uvec top = (uvec)(exponent == 0x0f800000u), least = (uvec)(exponent == 0u);
    const uvec normal = bits + (112u << 23) + (top & (112u << 23));
    const vec low = (vec)(bits + (113u << 23)) - (vec)((uvec){0} + (113u << 23));
    return (vec)((normal & ~least) | ((uvec)low & least) | (h & 0x8000u) << 16);
}
#endif

INLINE vec load_as(const neon_stored as, const void *p) {
    return as == NEON_F16 ? load_f16(p) : as == NEON_BF16 ? load_bf16(p) : load(p);
}

/* Converts n numbers from f16 to f32. */
static void widen_f16(const uint16_t *from, float *to, int64_t n) {
    int64_t i = 0;
    for (; i + VL <= n; i += VL) store(to + i, load_f16(from + i));
    for (; i < n; i++) to[i] = cnr_f16_to_f32(from[i]);
}

/* Converts n numbers from bf16 to f32. */
static void widen_bf16(const uint16_t *from, float *to, int64_t n) {
    int64_t i = 0;
    for (; i + VL <= n; i += VL) store(to + i, load_bf16(from + i));
    for (; i < n; i++) to[i] = cnr_bf16_to_f32(from[i]);
}

/* Converts n numbers from f32 to f16. */
static void narrow_f16(const float *from, uint16_t *to, int64_t n) {
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + VL <= n; i += VL)
        _mm256_storeu_si256((void *)(to + i),
                            _mm512_cvtps_ph((__m512)load(from + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    for (; i + VL <= n; i += VL)
        _mm_storeu_si128((void *)(to + i),
                         _mm256_cvtps_ph((__m256)load(from + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__ARM_NEON) && NEON_HALVES
    for (; i + VL <= n; i += VL)
        vst1_u16(to + i, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)load(from + i))));
#endif
    for (; i < n; i++) to[i] = cnr_f32_to_f16(from[i]);
}

/* Converts n numbers from f32 to bf16. */
static void narrow_bf16(const float *from, uint16_t *to, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = cnr_f32_to_bf16(from[i]);
}
