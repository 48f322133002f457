/* Part of blocked.h: convolutions on channel blocks by NEON. */

/* Parameters to requantise 16 or 8 outputs. Sums begin at `offset`. Saturating instructions clamp
 * to the bounds of the stored type. Signed results are computed as unsigned bytes; their top bit is
 * flipped in the end. */
typedef struct finishing {
    int32x4_t offset[4];
    float32x4_t scale[4], slope[4];
    int16x8_t zero;
    uint8x16_t flip;
    int sloped; /* a slope is not 1 */
} finishing;

/* Reads the finishing of `block` rows, 16 or 8, from `at` on. */
static inline __attribute__((always_inline)) finishing finish_of(const int8_finish *f, int64_t at,
                                                                 const int block) {
    const int is_signed = (int32_t)f->low + f->zero < 0;
    finishing out = {.zero = vdupq_n_s16((int16_t)(f->zero + (is_signed ? 128 : 0))),
                     .flip = vdupq_n_u8(is_signed ? 0x80 : 0),
                     .sloped = f->slope != NULL};
    for (int v = 0; v < block / 4; v++) {
        out.offset[v] = vld1q_s32(f->offset + at + 4 * v);
        out.scale[v] = vld1q_f32(f->scale + at + 4 * v);
        out.slope[v] = f->slope ? vld1q_f32(f->slope + at + 4 * v) : vdupq_n_f32(1);
    }
    return out;
}

/* Sums v of s, scaled and rounded to the nearest integer, ties to even. */
static inline int32x4_t rounded(const int32x4_t *s, const finishing *f, int v) {
    float32x4_t scaled = vmulq_f32(vcvtq_f32_s32(s[v]), f->scale[v]);
    if (f->sloped)
        scaled =
            vbslq_f32(vcltq_f32(scaled, vdupq_n_f32(0)), vmulq_f32(scaled, f->slope[v]), scaled);
    return vcvtnq_s32_f32(scaled);
}

/* Sums v and v + 1 of s, scaled and rounded, plus the zero point, saturated to 16 bits. */
static inline int16x8_t eight_of(const int32x4_t *s, const finishing *f, int v) {
    const int16x4_t low = vqmovn_s32(rounded(s, f, v));
    return vqaddq_s16(vqmovn_high_s32(low, rounded(s, f, v + 1)), f->zero);
}

/* Requantises `block` sums, 16 or 8, into as many bytes of y. */
static inline __attribute__((always_inline)) void finish(const int32x4_t *s, const int block,
                                                         const finishing *f, uint8_t *y) {
    const uint8x8_t first = vqmovun_s16(eight_of(s, f, 0));
    if (block == 16) vst1q_u8(y, veorq_u8(vqmovun_high_s16(first, eight_of(s, f, 2)), f->flip));
    else vst1_u8(y, veor_u8(first, vget_low_u8(f->flip)));
}

/* ---- full convolution: all channels into each output ---- */

/* The bytes of a position: 16, or 8 and a copy of them. */
static inline __attribute__((always_inline)) int8x16_t position(const int8_t *x, const int pixel) {
    return pixel == 16 ? vld1q_s8(x) : vcombine_s8(vld1_s8(x), vld1_s8(x));
}

#if defined(__ARM_FEATURE_MATMUL_INT8)

enum { TILE_PIXELS = 6 };

/* Two positions by eight steps of k, each position a row of SMMLA's operand. */
static inline int8x16_t rows_of(int8x16_t a, int8x16_t b, const int high) {
    const int64x2_t x = vreinterpretq_s64_s8(a), y = vreinterpretq_s64_s8(b);
    return vreinterpretq_s8_s64(high ? vzip2q_s64(x, y) : vzip1q_s64(x, y));
}

/* Adds eight steps of k to s[pair of positions][pair of outputs]. */
static inline __attribute__((always_inline)) void
eight_steps(const int8x16_t *rows, const int8_t *w, const int pairs, int32x4_t s[][8]) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; v++) {
        const int32x4_t a = vreinterpretq_s32_s8(vld1q_s8(w + 16 * v));
        const int32x4_t b = vreinterpretq_s32_s8(vld1q_s8(w + 4 * INT8_PANEL + 16 * v));
        const int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(a, b));
        const int8x16_t high = vreinterpretq_s8_s32(vzip2q_s32(a, b));
#pragma GCC unroll 3
        for (int q = 0; q < pairs; q++) {
            s[q][2 * v] = vmmlaq_s32(s[q][2 * v], rows[q], low);
            s[q][2 * v + 1] = vmmlaq_s32(s[q][2 * v + 1], rows[q], high);
        }
    }
}

/* Adds to `sums` those of `pixels` positions for 16 outputs, by SMMLA, two positions at a time;
 * `pixel`: bytes stored for a pixel of x. */
static inline __attribute__((always_inline)) void tile_of(const int8_tile *t, const int8_t *x,
                                                          const int8_t *w, const int pixels,
                                                          const int pixel, int32x4_t sums[][4]) {
    const int pairs = (pixels + 1) / 2;
    int32x4_t s[TILE_PIXELS / 2][8];
    int64_t k = 0;
    for (int q = 0; q < pairs; q++)
        for (int v = 0; v < 8; v++) {
            const int64x2_t begin = vreinterpretq_s64_s32(sums[2 * q][v / 2]);
            s[q][v] = vreinterpretq_s32_s64(v % 2 ? vdupq_laneq_s64(begin, 1)
                                                  : vdupq_laneq_s64(begin, 0));
        }
    do { /* at least once, as below */
        const int8_t *from = x + t->tap[k];
        int8x16_t low[TILE_PIXELS / 2], high[TILE_PIXELS / 2];
#pragma GCC unroll 3
        for (int q = 0; q < pairs; q++) {
            const int other = 2 * q + 1 < pixels ? 2 * q + 1 : 2 * q;
            const int8x16_t a = position(from + 2 * q * pixel, pixel);
            const int8x16_t b = position(from + other * pixel, pixel);
            low[q] = rows_of(a, b, 0);
            high[q] = rows_of(a, b, 1);
        }
        eight_steps(low, w, pairs, s);
        if (pixel == 16) eight_steps(high, w + 8 * INT8_PANEL, pairs, s);
        k += pixel / 4;
        w += pixel * INT8_PANEL;
    } while (k < t->k4);
    for (int p = 0; p < pixels; p++)
        for (int v = 0; v < 4; v++) {
            const int64x2_t a = vreinterpretq_s64_s32(s[p / 2][2 * v]);
            const int64x2_t b = vreinterpretq_s64_s32(s[p / 2][2 * v + 1]);
            sums[p][v] = vreinterpretq_s32_s64(p % 2 ? vzip2q_s64(a, b) : vzip1q_s64(a, b));
        }
}

#elif defined(__ARM_FEATURE_DOTPROD)

enum { TILE_PIXELS = 5 };

/* One instruction loads the weights of a step; positions, weights and sums take 29 registers. */
#define STEP(lane) \
    do { \
        const int8x16x4_t b = vld1q_s8_x4(w); \
        w += 4 * INT8_PANEL; \
        __asm__("" : "+r"(w)); \
        for (int p = 0; p < pixels; p++) \
            for (int v = 0; v < 4; v++) s[p][v] = vdotq_laneq_s32(s[p][v], b.val[v], a[p], lane); \
    } while (0)

/* Adds to s the sums of `pixels` positions for 16 outputs, by dot products of four bytes. */
static inline __attribute__((always_inline)) void tile_of(const int8_tile *t, const int8_t *x,
                                                          const int8_t *w, const int pixels,
                                                          const int pixel, int32x4_t s[][4]) {
    int64_t k = 0;
    do { /* at least once: a while loop makes the compiler keep the initial sums separately */
        const int8_t *from = x + t->tap[k];
        int8x16_t a[TILE_PIXELS];
        for (int p = 0; p < pixels; p++) a[p] = position(from + p * pixel, pixel);
        STEP(0);
        STEP(1);
        if (pixel == 16) {
            STEP(2);
            STEP(3);
        }
        k += pixel / 4;
    } while (k < t->k4);
}

#else

#if defined(__aarch64__)
enum { TILE_PIXELS = 2 };
#else
enum { TILE_PIXELS = 1 }; /* 16 registers hold the sums of one */
#endif

/* Adds two steps of k. A product of two bytes fits 16 bits; so does the sum of two products, unless
 * a weight is -128. */
#define STEPS(lane) \
    for (int p = 0; p < pixels; p++) { \
        const int8x16_t x0 = LANE(a[p], lane), x1 = LANE(a[p], (lane) + 1); \
        for (int v = 0; v < 4; v++) { \
            const int8x16_t w0 = vld1q_s8(w + (lane)*4 * INT8_PANEL + 16 * v); \
            const int8x16_t w1 = vld1q_s8(w + ((lane) + 1) * 4 * INT8_PANEL + 16 * v); \
            two_steps(&s[p][2 * v], w0, w1, x0, x1, narrow); \
        } \
    }

/* Adds two steps of k to two sums, by products of 16 bits; narrow: two products fit 16 bits
 * together. */
static inline __attribute__((always_inline)) void
two_steps(int32x4_t *s, int8x16_t w0, int8x16_t w1, int8x16_t x0, int8x16_t x1, const int narrow) {
    int16x8_t low = vmull_s8(vget_low_s8(w0), vget_low_s8(x0)), high = vmull_high_s8(w0, x0);
    if (narrow) {
        low = vmlal_s8(low, vget_low_s8(w1), vget_low_s8(x1));
        high = vmlal_high_s8(high, w1, x1);
    } else {
        s[0] = vpadalq_s16(s[0], vmull_s8(vget_low_s8(w1), vget_low_s8(x1)));
        s[1] = vpadalq_s16(s[1], vmull_high_s8(w1, x1));
    }
    s[0] = vpadalq_s16(s[0], low);
    s[1] = vpadalq_s16(s[1], high);
}

/* Adds to `sums` those of `pixels` positions for 16 outputs, by products of 16 bits; narrow as in
 * two_steps. */
static inline __attribute__((always_inline)) void tile_by(const int8_tile *t, const int8_t *x,
                                                          const int8_t *w, const int pixels,
                                                          const int pixel, const int narrow,
                                                          int32x4_t sums[][4]) {
    int32x4_t s[TILE_PIXELS][8];
    for (int p = 0; p < pixels; p++)
        for (int v = 0; v < 8; v++) s[p][v] = vdupq_n_s32(0);
    for (int64_t k = 0; k < t->k4; k += pixel / 4, w += pixel * INT8_PANEL) {
        const int8_t *from = x + t->tap[k];
        int8x16_t a[TILE_PIXELS];
        for (int p = 0; p < pixels; p++) a[p] = position(from + p * pixel, pixel);
        STEPS(0)
        if (pixel == 16) { STEPS(2) }
    }
    for (int p = 0; p < pixels; p++)
        for (int v = 0; v < 4; v++)
            sums[p][v] = vaddq_s32(sums[p][v], vpaddq_s32(s[p][2 * v], s[p][2 * v + 1]));
}

/* Adds to `sums` those of `pixels` positions for 16 outputs; weights without -128 (t->narrow)
 * allow the shorter way. */
static inline __attribute__((always_inline)) void tile_of(const int8_tile *t, const int8_t *x,
                                                          const int8_t *w, const int pixels,
                                                          const int pixel, int32x4_t sums[][4]) {
    if (t->narrow) tile_by(t, x, w, pixels, pixel, 1, sums);
    else tile_by(t, x, w, pixels, pixel, 0, sums);
}

#endif

/* Four positions of four bytes, which one register holds. */
static inline __attribute__((always_inline)) void
tile_of_fours(const int8_tile *t, const int8_t *x, const int8_t *w, int32x4_t s[4][4]) {
    for (int64_t k = 0; k < t->k4; k++, w += 4 * INT8_PANEL) {
        const int8x16_t a = vld1q_s8(x + t->tap[k]);
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) {
            const int8x16_t b = vld1q_s8(w + 16 * v);
            s[0][v] = ADD_LANE(s[0][v], b, a, 0);
            s[1][v] = ADD_LANE(s[1][v], b, a, 1);
            s[2][v] = ADD_LANE(s[2][v], b, a, 2);
            s[3][v] = ADD_LANE(s[3][v], b, a, 3);
        }
    }
}

/* Computes sums from the offsets and products, and requantises them. pixel 4: four positions. The
 * sums pass through memory, since the compiler would otherwise copy each between registers. */
static inline __attribute__((always_inline)) void tile_part(const int8_tile *t, const finishing *f,
                                                            int64_t panel, int64_t at,
                                                            const int pixels, const int pixel) {
    int32x4_t s[TILE_PIXELS < 4 ? 4 : TILE_PIXELS][4], sums[TILE_PIXELS < 4 ? 4 : TILE_PIXELS][4];
    const int8_t *x = t->x + at * pixel;
    const int8_t *w = t->w + panel * t->panel_bytes;
    uint8_t *y = t->y + panel * t->y_panel + at * INT8_PANEL;
    for (int p = 0; p < pixels; p++)
        for (int v = 0; v < 4; v++) s[p][v] = f->offset[v];
    if (pixel == 4) tile_of_fours(t, x, w, s);
    else tile_of(t, x, w, pixels, pixel, s);
    for (int p = 0; p < pixels; p++)
        for (int v = 0; v < 4; v++) sums[p][v] = s[p][v];
    __asm__("" : : "r"(sums) : "memory");
    const int stored = pixel == 4 && t->pixels - at < 4 ? (int)(t->pixels - at) : pixels;
#pragma GCC unroll 1
    for (int p = 0; p < stored; p++) finish(sums[p], 16, f, y + p * INT8_PANEL);
}

/* Computes the tile's positions for one panel of 16 outputs, in parts of at most TILE_PIXELS. */
static inline __attribute__((always_inline)) void tile_panel(const int8_tile *t, const finishing *f,
                                                             int64_t panel, const int pixel) {
    const int64_t parts = (t->pixels + TILE_PIXELS - 1) / TILE_PIXELS;
    for (int64_t i = 0, at = 0; i < parts; i++) {
        const int64_t left = t->pixels - at, even = left / (parts - i);
        const int64_t n = TILE_PIXELS % 2 || even == left ? even : (even + 1) / 2 * 2;
        if (n == 1) tile_part(t, f, panel, at, 1, pixel);
        else if (n == 2) tile_part(t, f, panel, at, TILE_PIXELS < 2 ? 1 : 2, pixel);
        else if (n == 3) tile_part(t, f, panel, at, TILE_PIXELS < 3 ? 1 : 3, pixel);
        else if (n == 4) tile_part(t, f, panel, at, TILE_PIXELS < 4 ? 1 : 4, pixel);
        else if (n == 5) tile_part(t, f, panel, at, TILE_PIXELS < 5 ? 1 : 5, pixel);
        else tile_part(t, f, panel, at, TILE_PIXELS < 6 ? 1 : 6, pixel);
        at += n;
    }
}

/* Computes a tile, panel by panel. */
static void tile(const int8_tile *t) {
    for (int64_t panel = 0; panel < t->panels; panel++) {
        const finishing f = finish_of(&t->finish, panel * INT8_PANEL, 16);
        if (t->pixel == 16) tile_panel(t, &f, panel, 16);
        else if (t->pixel == 8) tile_panel(t, &f, panel, 8);
        else
            for (int64_t at = 0; at < t->pixels; at += 4) tile_part(t, &f, panel, at, 4, 4);
    }
}

/* ---- depthwise convolution ---- */

/* Multiplies numbers of 16 bits; any distance between columns is allowed. */
static inline __attribute__((always_inline)) void window_words(const int8_window *t,
                                                               const finishing *f, int64_t at,
                                                               const int pixels, const int block) {
    int32x4_t s[4][4];
    const int16_t *w = t->word;
    for (int p = 0; p < pixels; p++)
        for (int v = 0; v < block / 4; v++) s[p][v] = f->offset[v];
    for (int64_t r = 0; r < t->rows; r++) {
        const int8_t *x = t->x + t->row[r] + at * t->step;
        for (int64_t c = 0; c < t->columns; c++, w += block, x += t->dilation)
#pragma GCC unroll 4
            for (int p = 0; p < pixels; p++)
#pragma GCC unroll 2
                for (int v = 0; v < block / 8; v++) {
                    const int16x8_t a = vmovl_s8(vld1_s8(x + p * t->step + 8 * v));
                    const int16x8_t b = vld1q_s16(w + 8 * v);
                    s[p][2 * v] = vmlal_s16(s[p][2 * v], vget_low_s16(a), vget_low_s16(b));
                    s[p][2 * v + 1] = vmlal_high_s16(s[p][2 * v + 1], a, b);
                }
    }
    for (int p = 0; p < pixels; p++) finish(s[p], block, f, t->y + (at + p) * block);
}

#if defined(__ARM_FEATURE_DOTPROD)

/* Four adjacent positions: four bytes for each of four channels in a register. */
static inline __attribute__((always_inline)) void quad_of(const int8_t *x, const int block,
                                                          int8x16_t out[4]) {
    int8x16_t row[4], pair[4];
    for (int i = 0; i < 4; i++) row[i] = position(x + i * block, block);
    for (int i = 0; i < 2; i++) {
        pair[i] = vzip1q_s8(row[2 * i], row[2 * i + 1]);
        pair[2 + i] = vzip2q_s8(row[2 * i], row[2 * i + 1]);
    }
    for (int i = 0; i < block / 8; i++) {
        const int16x8_t a = vreinterpretq_s16_s8(pair[2 * i]);
        const int16x8_t b = vreinterpretq_s16_s8(pair[2 * i + 1]);
        out[2 * i] = vreinterpretq_s8_s16(vzip1q_s16(a, b));
        out[2 * i + 1] = vreinterpretq_s8_s16(vzip2q_s16(a, b));
    }
}

/* Two adjacent outputs share each quad of x; the second uses the shifted weights. */
static inline __attribute__((always_inline)) void window_quads(const int8_window *t,
                                                               const finishing *f, int64_t at,
                                                               const int pixels, const int shared,
                                                               const int block) {
    int32x4_t s[4][4];
    const int8_t *w = t->quad, *shifted = t->shifted;
    for (int p = 0; p < pixels; p++)
        for (int v = 0; v < block / 4; v++) s[p][v] = f->offset[v];
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t q = 0; q < t->quads; q++, w += 4 * block, shifted += 4 * block) {
            const int8_t *from = t->x + t->row[r] + q * 4 * block + at * t->step;
#pragma GCC unroll 4
            for (int p = 0; p < pixels; p += 1 + shared) {
                int8x16_t a[4];
                quad_of(from + p * t->step, block, a);
#pragma GCC unroll 4
                for (int v = 0; v < block / 4; v++) {
                    s[p][v] = vdotq_s32(s[p][v], a[v], vld1q_s8(w + 16 * v));
                    if (!shared || p + 1 >= pixels) continue;
                    s[p + 1][v] = vdotq_s32(s[p + 1][v], a[v], vld1q_s8(shifted + 16 * v));
                }
            }
        }
    for (int p = 0; p < pixels; p++) finish(s[p], block, f, t->y + (at + p) * block);
}

/* Computes a row of outputs of a depthwise window by dot products, four at a time; shared: two
 * adjacent outputs share each quad of x. */
static inline __attribute__((always_inline)) void window_row(const int8_window *t, const int shared,
                                                             const int block) {
    const finishing f = finish_of(&t->finish, 0, block);
    int64_t p = 0;
    for (; p + 4 <= t->pixels; p += 4) window_quads(t, &f, p, 4, shared, block);
    for (; p < t->pixels; p++) window_quads(t, &f, p, 1, 0, block);
}

#endif

/* Computes a row of outputs of a depthwise window from the weights of 16 bits, four at a time. */
static inline __attribute__((always_inline)) void window_apart(const int8_window *t,
                                                               const int block) {
    const finishing f = finish_of(&t->finish, 0, block);
    int64_t p = 0;
    for (; p + 4 <= t->pixels; p += 4) window_words(t, &f, p, 4, block);
    for (; p < t->pixels; p++) window_words(t, &f, p, 1, block);
}

/* Computes a row of windows of a block of channels. */
static void window(const int8_window *t) {
#if defined(__ARM_FEATURE_DOTPROD)
    const int shared = t->step == t->block && t->columns % 4;
    if (t->dilation == t->block) {
        if (t->block == 16 && shared) window_row(t, 1, 16);
        else if (t->block == 16) window_row(t, 0, 16);
        else if (shared) window_row(t, 1, 8);
        else window_row(t, 0, 8);
        return;
    }
#endif
    if (t->block == 16) window_apart(t, 16);
    else window_apart(t, 8);
}
