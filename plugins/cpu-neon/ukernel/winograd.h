/* Winograd convolution's microkernels; included by template.h. The product is conv_sum's. */

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
#define NEAR 0.70710678118654752f /* two of the points for 4x4 outputs */
#define FAR 1.41421356237309505f
#define OUT 4
#include "wino_tile.h"
#undef OUT
#define OUT 2
#include "wino_tile.h"
#undef OUT
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
/* a * b + c, with one rounding. */
#define FUSE(a, b, c) ((oct)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define OUT 4
#include "wino_tile.h"
#undef OUT
#define OUT 2
#include "wino_tile.h"
#undef OUT
#endif

/* Indexed by the tile's width, then by the lanes. */
#if VL == 16
/* Calls the function for the job's tile side and number of lanes. */
#define WINO_RUN(name, job) \
    do { \
        if ((job)->out_side == 2) (job)->lanes == 8 ? name##2x8(job) : name##2x16(job); \
        else (job)->lanes == 8 ? name##4x8(job) : name##4x16(job); \
    } while (0)
#else
/* Calls the function for the job's tile side. */
#define WINO_RUN(name, job) \
    do { \
        if ((job)->out_side == 2) NEON_PASTE(name##2x, VL)(job); \
        else NEON_PASTE(name##4x, VL)(job); \
    } while (0)
#endif

static void wino_input(const neon_wino_input *job) { WINO_RUN(wino_input_, job); }
static void wino_output(const neon_wino_output *job) { WINO_RUN(wino_output_, job); }

/* G of three values, for 2x2 outputs; for 4x4, the squares of its points are 1/2 and 2. */
INLINE void wino_weight2(const vec *w, int step, vec *out) {
    const vec even = w[0] + w[2 * step];
    out[0] = w[0];
    out[1] = splat(0.5f) * (even + w[step]);
    out[2] = splat(0.5f) * (even - w[step]);
    out[3] = w[2 * step];
}

INLINE void wino_weight4(const vec *w, int step, vec *out) {
    const vec even = fuse(splat(0.5f), w[2 * step], w[0]), odd = splat(NEAR) * w[step];
    const vec more = fuse(splat(2.0f), w[2 * step], w[0]), rest = splat(FAR) * w[step];
    out[0] = w[0];
    out[1] = splat(-2.0f / 3.0f) * (even + odd);
    out[2] = splat(-2.0f / 3.0f) * (even - odd);
    out[3] = splat(1.0f / 6.0f) * (more + rest);
    out[4] = splat(1.0f / 6.0f) * (more - rest);
    out[5] = w[2 * step];
}

/* Defines the transform of a vector of 3 x 3 filters for tiles of side N. */
#define WINO_WEIGHTS(N, SIDE) \
    INLINE void wino_filters##N(const vec *given, float *u, int64_t component) { \
        vec half_way[3 * SIDE], one[SIDE]; \
        UNROLL(3) \
        for (int j = 0; j < 3; j++) wino_weight##N(given + j, 3, half_way + SIDE * j); \
        UNROLL(SIDE) \
        for (int i = 0; i < SIDE; i++) { \
            wino_weight##N(half_way + i, SIDE, one); \
            UNROLL(SIDE) \
            for (int j = 0; j < SIDE; j++) store(u + (i * SIDE + j) * component, one[j]); \
        } \
    }
WINO_WEIGHTS(2, 4)
WINO_WEIGHTS(4, 6)

/* Transforms n 3 x 3 filters in f32. */
static void wino_weights(int64_t out_side, const float *w, int64_t step, int64_t n, float *u,
                         int64_t component) {
    vec given[9] = {{0}};
    float *at = (float *)given;
    for (int64_t o = 0; o < n; o++)
        for (int64_t k = 0; k < 9; k++) at[k * VL + o] = w[o * step + k];
    if (out_side == 2) wino_filters2(given, u, component);
    else wino_filters4(given, u, component);
}

INLINE void wino_widened(const int side, const neon_stored as, const uint16_t *w, int64_t n,
                         int64_t vectors, float *u, int64_t component) {
    const int64_t width = vectors * VL;
    for (int64_t c = 0; c < n; c++, w += 9 * width, u += width)
        for (int64_t v = 0; v < width; v += VL) {
            vec given[9];
            UNROLL(9)
            for (int k = 0; k < 9; k++) given[k] = load_as(as, w + k * width + v);
            if (side == 2) wino_filters2(given, u + v, component);
            else wino_filters4(given, u + v, component);
        }
}

/* Transforms n 3 x 3 filters stored in 16 bits. */
static void wino_halves(int64_t out_side, neon_stored as, const uint16_t *w, int64_t n,
                        int64_t vectors, float *u, int64_t component) {
    if (out_side == 2 && as == NEON_F16) wino_widened(2, NEON_F16, w, n, vectors, u, component);
    else if (out_side == 2) wino_widened(2, NEON_BF16, w, n, vectors, u, component);
    else if (as == NEON_F16) wino_widened(4, NEON_F16, w, n, vectors, u, component);
    else wino_widened(4, NEON_BF16, w, n, vectors, u, component);
}
