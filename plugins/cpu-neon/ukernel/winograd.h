/* Winograd convolution's microkernels; template.h includes this. The product is conv_sum's. */

#undef LANES
#undef VEC
#undef VEC_U
#undef IVEC
#undef FUSE
#define LANES VL
#define VEC vec
#define VEC_U vec_u
#define IVEC ivec
#define FUSE fuse
#include "wino_tile.h"
#if VL == 16 /* blocks of half a vector */
#undef LANES
#undef VEC
#undef VEC_U
#undef IVEC
#undef FUSE
#define LANES 8
#define VEC oct
#define VEC_U oct_u
#define IVEC ioct
typedef float oct_u __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t ioct __attribute__((vector_size(32)));
#define FUSE(a, b, c) ((oct)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#include "wino_tile.h"
#endif

static void wino_input(const neon_wino_input *job) {
#if VL == 16
    if (job->lanes == 8) {
        NEON_PASTE(wino_input_, 8)(job);
        return;
    }
#endif
    NEON_PASTE(wino_input_, VL)(job);
}

static void wino_output(const neon_wino_output *job) {
#if VL == 16
    if (job->lanes == 8) {
        NEON_PASTE(wino_output_, 8)(job);
        return;
    }
#endif
    NEON_PASTE(wino_output_, VL)(job);
}

/* G of three values, of which the points' squares are 1/2 and 2. */
INLINE void wino_weight(const vec *w, int step, vec *out) {
    const vec even = fuse(splat(0.5f), w[2 * step], w[0]), odd = splat(NEAR) * w[step];
    const vec more = fuse(splat(2.0f), w[2 * step], w[0]), rest = splat(FAR) * w[step];
    out[0] = w[0];
    out[1] = splat(-2.0f / 3.0f) * (even + odd);
    out[2] = splat(-2.0f / 3.0f) * (even - odd);
    out[3] = splat(1.0f / 6.0f) * (more + rest);
    out[4] = splat(1.0f / 6.0f) * (more - rest);
    out[5] = w[2 * step];
}

static void wino_weights(const float *w, int64_t step, int64_t n, float *u, int64_t component) {
    vec given[9] = {{0}}, half_way[18], one[6];
    float *at = (float *)given;
    for (int64_t o = 0; o < n; o++)
        for (int64_t k = 0; k < 9; k++) at[k * VL + o] = w[o * step + k];
    UNROLL(3)
    for (int j = 0; j < 3; j++) wino_weight(given + j, 3, half_way + 6 * j);
    UNROLL(6)
    for (int i = 0; i < 6; i++) {
        wino_weight(half_way + i, 6, one);
        UNROLL(6)
        for (int j = 0; j < 6; j++) store(u + (i * 6 + j) * component, one[j]);
    }
}
