/* Winograd's transforms for training, on tiles of 6 x 6: windows of 3 x 3 with tiles of 4 x 4
 * outputs, and of 5 x 5 with tiles of 2 x 2. Both have the points of winograd.h and the same
 * transform of the input; included by template.h.
 *
 * With d = B^T x, u = G w and y = A^T (u d), the gradient of w is G^T ((A dy) d). */

/* Calls winograd.h's transforms for whole vectors. */
#define WINO_WHOLE(name) NEON_PASTE(NEON_PASTE(name, 4x), VL)
INLINE void wino_b(const vec *x, int step, vec *out) { WINO_WHOLE(wino_in_)(x, step, out); }
INLINE void wino_at4(const vec *m, int step, vec *out) { WINO_WHOLE(wino_out_)(m, step, out); }

/* Values at the points of a polynomial whose even and odd parts at the near and far ones are
 * given. */
INLINE void wino_points(vec near, vec odd, vec far, vec odder, vec *out) {
    out[1] = fuse(splat(NEAR), odd, near);
    out[2] = fuse(splat(-NEAR), odd, near);
    out[3] = fuse(splat(FAR), odder, far);
    out[4] = fuse(splat(-FAR), odder, far);
}

/* A of four outputs. */
INLINE void wino_a4(const vec *y, int step, vec *out) {
    const vec y1 = y[step], y2 = y[2 * step], y3 = y[3 * step];
    out[0] = y[0];
    wino_points(fuse(splat(0.5f), y2, y[0]), fuse(splat(0.5f), y3, y1), fuse(splat(2.0f), y2, y[0]),
                fuse(splat(2.0f), y3, y1), out);
    out[5] = y3;
}

/* A of two outputs. */
INLINE void wino_a2(const vec *y, int step, vec *out) {
    out[0] = y[0];
    wino_points(y[0], y[step], y[0], y[step], out);
    out[5] = y[step];
}

/* A^T of six sums, for two outputs. */
INLINE void wino_at2(const vec *m, int step, vec *out) {
    const vec s = m[step] + m[2 * step], d = m[step] - m[2 * step];
    const vec t = m[3 * step] + m[4 * step], e = m[3 * step] - m[4 * step];
    out[0] = (m[0] + s) + t;
    out[1] = fuse(splat(FAR), e, fuse(splat(NEAR), d, m[5 * step]));
}

/* G of three taps, and of five. */
INLINE void wino_g4(const vec *w, int step, vec *out) { wino_weight4(w, step, out); }
INLINE void wino_g2(const vec *w, int step, vec *out) {
    const vec w1 = w[step], w2 = w[2 * step], w3 = w[3 * step], w4 = w[4 * step];
    const vec even = fuse(splat(0.25f), w4, fuse(splat(0.5f), w2, w[0]));
    const vec more = fuse(splat(4.0f), w4, fuse(splat(2.0f), w2, w[0]));
    const vec odd = splat(NEAR) * fuse(splat(0.5f), w3, w1);
    const vec rest = splat(FAR) * fuse(splat(2.0f), w3, w1);
    out[0] = w[0];
    out[1] = splat(-2.0f / 3.0f) * (even + odd);
    out[2] = splat(-2.0f / 3.0f) * (even - odd);
    out[3] = splat(1.0f / 6.0f) * (more + rest);
    out[4] = splat(1.0f / 6.0f) * (more - rest);
    out[5] = w4;
}

/* G^T of six sums: sums and differences at the points, scaled as G's rows are. */
#define WINO_PAIRS(s, step) \
    const vec near = splat(-2.0f / 3.0f) * (s[step] + s[2 * step]); \
    const vec odd = splat(-2.0f / 3.0f * NEAR) * (s[step] - s[2 * step]); \
    const vec far = splat(1.0f / 6.0f) * (s[3 * step] + s[4 * step]); \
    const vec odder = splat(1.0f / 6.0f * FAR) * (s[3 * step] - s[4 * step])

/* G^T for three taps. */
INLINE void wino_gt4(const vec *s, int step, vec *out) {
    WINO_PAIRS(s, step);
    out[0] = (s[0] + near) + far;
    out[1] = odd + odder;
    out[2] = fuse(splat(2.0f), far, fuse(splat(0.5f), near, s[5 * step]));
}

/* G^T for five taps. */
INLINE void wino_gt2(const vec *s, int step, vec *out) {
    WINO_PAIRS(s, step);
    out[0] = (s[0] + near) + far;
    out[1] = odd + odder;
    out[2] = fuse(splat(2.0f), far, splat(0.5f) * near);
    out[3] = fuse(splat(2.0f), odder, splat(0.5f) * odd);
    out[4] = fuse(splat(4.0f), far, fuse(splat(0.25f), near, s[5 * step]));
}

/* Defines a transform of both axes of a square: IN x IN vectors to OUT x OUT. */
#define WINO_SQUARE(name, IN, OUT) \
    INLINE void name##_square(const vec *x, vec *out) { \
        vec half_way[IN * OUT], one[6]; \
        UNROLL(IN) \
        for (int j = 0; j < IN; j++) { \
            name(x + j, IN, one); \
            UNROLL(OUT) \
            for (int i = 0; i < OUT; i++) half_way[i * IN + j] = one[i]; \
        } \
        UNROLL(OUT) \
        for (int i = 0; i < OUT; i++) name(half_way + i * IN, 1, out + i * OUT); \
    }
WINO_SQUARE(wino_b, 6, 6)
WINO_SQUARE(wino_a4, 4, 6)
WINO_SQUARE(wino_a2, 2, 6)
WINO_SQUARE(wino_at4, 6, 4)
WINO_SQUARE(wino_at2, 6, 2)
WINO_SQUARE(wino_g4, 3, 6)
WINO_SQUARE(wino_g2, 5, 6)
WINO_SQUARE(wino_gt4, 6, 3)
WINO_SQUARE(wino_gt2, 6, 5)

/* Address of the first position of tile i of the grid. */
INLINE float *wino_corner(const neon_wino_grid *g, int64_t i) {
    const int64_t tile = g->first + i;
    return g->x + tile / g->wide * g->side * g->row + tile % g->wide * g->side * VL;
}

/* Reads a square of positions. */
INLINE void wino_read(const float *x, int64_t row, const int side, vec *to) {
    UNROLL(6)
    for (int i = 0; i < side; i++) {
        UNROLL(6)
        for (int j = 0; j < side; j++) to[i * side + j] = load(x + i * row + j * VL);
    }
}

/* B^T x B of each tile. */
static void wino_take(const neon_wino_grid *g) {
    for (int64_t t = 0; t < g->n; t++) {
        vec x[36], v[36];
        float *to = g->v + t * g->pitch;
        wino_read(wino_corner(g, t), g->row, 6, x);
        wino_b_square(x, v);
        for (int k = 0; k < 36; k++) store(to + k * g->component, v[k]);
    }
}

/* Writes a vector to panels of MR rows. */
INLINE void wino_panel(float *to, int64_t panel, vec x) {
    const int part = MR < VL ? MR : VL;
    for (int i = 0; i < VL / part; i++)
        memcpy(to + i * panel, (const float *)&x + i * part, (size_t)part * sizeof *to);
}

/* A x A^T of each tile, to panels. */
static void wino_spread(const neon_wino_grid *g) {
    for (int64_t t = 0; t < g->n; t++) {
        vec x[16], v[36];
        float *to = g->v + t * g->pitch;
        wino_read(wino_corner(g, t), g->row, (int)g->side, x);
        if (g->side == 4) wino_a4_square(x, v);
        else wino_a2_square(x, v);
        for (int k = 0; k < 36; k++) wino_panel(to + k * g->component, g->panel, v[k]);
    }
}

/* A^T v A + bias of each tile. */
static void wino_give(const neon_wino_grid *g) {
    const vec bias = load(g->bias);
    for (int64_t t = 0; t < g->n; t++) {
        vec v[36], x[16];
        const int side = (int)g->side;
        const float *from = g->v + t * g->pitch;
        float *to = wino_corner(g, t);
        for (int k = 0; k < 36; k++) v[k] = load(from + k * g->component);
        if (side == 4) wino_at4_square(v, x);
        else wino_at2_square(v, x);
        for (int i = 0; i < side; i++)
            for (int j = 0; j < side; j++) store(to + i * g->row + j * VL, x[i * side + j] + bias);
    }
}

/* G w G^T of n <= VL filters, `lane` floats apart; their taps in reverse if `turned`. */
static void wino_filter(int64_t side, const float *w, int64_t lane, int64_t n, int turned, float *u,
                        int64_t component) {
    const int64_t taps = side == 4 ? 9 : 25;
    vec given[25] = {{0}}, out[36];
    float *at = (float *)given;
    for (int64_t o = 0; o < n; o++)
        for (int64_t k = 0; k < taps; k++)
            at[k * VL + o] = w[o * lane + (turned ? taps - 1 - k : k)];
    if (side == 4) wino_g4_square(given, out);
    else wino_g2_square(given, out);
    for (int k = 0; k < 36; k++) store(u + k * component, out[k]);
}

/* G^T s G of n <= VL filters, `lane` floats apart. */
static void wino_slope(int64_t side, const float *s, int64_t component, int64_t n, float *dw,
                       int64_t lane) {
    const int64_t taps = side == 4 ? 9 : 25;
    vec sums[36], out[25];
    const float *at = (const float *)out;
    for (int k = 0; k < 36; k++) sums[k] = load(s + k * component);
    if (side == 4) wino_gt4_square(sums, out);
    else wino_gt2_square(sums, out);
    for (int64_t o = 0; o < n; o++)
        for (int64_t k = 0; k < taps; k++) dw[o * lane + k] = at[k * VL + o];
}
