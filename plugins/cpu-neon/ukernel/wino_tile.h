/* Winograd's transforms of 3x3 windows, LANES channels at a time: OUT x OUT outputs from tiles that
 * are two wider. OUT 4 uses the points 0, +-1/sqrt(2), +-sqrt(2) and infinity, which lose fewer
 * digits than 0, +-1, +-2; OUT 2 uses 0, +-1 and infinity. winograd.h includes this for each of the
 * two. */
#define W(name) NEON_PASTE(NEON_PASTE(NEON_PASTE(name, OUT), x), LANES)
/* A vector with x in all lanes. */
#define ALL(x) ((x) - (VEC){0})
#define SIDE (OUT + 2)

#if OUT == 2
/* B^T of four values, `step` apart. */
INLINE void W(wino_in_)(const VEC *x, int step, VEC *out) {
    const VEC x1 = x[step], x2 = x[2 * step];
    out[0] = x[0] - x2;
    out[1] = x1 + x2;
    out[2] = x2 - x1;
    out[3] = x1 - x[3 * step];
}

/* A^T of four sums. */
INLINE void W(wino_out_)(const VEC *m, int step, VEC *out) {
    out[0] = m[0] + m[step] + m[2 * step];
    out[1] = m[step] - m[2 * step] - m[3 * step];
}
#else
/* B^T of six values, `step` apart. */
INLINE void W(wino_in_)(const VEC *x, int step, VEC *out) {
    const VEC x1 = x[step], x2 = x[2 * step], x3 = x[3 * step], x4 = x[4 * step];
    const VEC near = FUSE(ALL(-2.0f), x2, x4), odd = FUSE(ALL(-2.0f), x1, x3);
    const VEC far = FUSE(ALL(-0.5f), x2, x4), odder = FUSE(ALL(-0.5f), x1, x3);
    out[0] = FUSE(ALL(-2.5f), x2, x[0] + x4);
    out[1] = FUSE(ALL(NEAR), odd, near);
    out[2] = FUSE(ALL(-NEAR), odd, near);
    out[3] = FUSE(ALL(FAR), odder, far);
    out[4] = FUSE(ALL(-FAR), odder, far);
    out[5] = FUSE(ALL(-2.5f), x3, x1 + x[5 * step]);
}

/* A^T of six sums. */
INLINE void W(wino_out_)(const VEC *m, int step, VEC *out) {
    const VEC s = m[step] + m[2 * step], d = m[step] - m[2 * step];
    const VEC t = m[3 * step] + m[4 * step], e = m[3 * step] - m[4 * step];
    out[0] = (m[0] + s) + t;
    out[1] = FUSE(ALL(FAR), e, ALL(NEAR) * d);
    out[2] = FUSE(ALL(2.0f), t, ALL(0.5f) * s);
    out[3] = FUSE(ALL(2 * FAR), e, FUSE(ALL(0.5f * NEAR), d, m[5 * step]));
}
#endif

INLINE void W(wino_in_tile_)(const float *x, int64_t row, int64_t column, float *v,
                             int64_t component) {
    VEC half_way[SIDE * SIDE], one[SIDE];
    UNROLL(SIDE)
    for (int j = 0; j < SIDE; j++) {
        UNROLL(SIDE)
        for (int i = 0; i < SIDE; i++) one[i] = *(const VEC_U *)(x + i * row + j * column);
        W(wino_in_)(one, 1, half_way + SIDE * j);
    }
    UNROLL(SIDE)
    for (int i = 0; i < SIDE; i++) {
        W(wino_in_)(half_way + i, SIDE, one);
        UNROLL(SIDE)
        for (int j = 0; j < SIDE; j++) *(VEC_U *)(v + (i * SIDE + j) * component) = one[j];
    }
}

static void W(wino_input_)(const neon_wino_input *p) {
    for (int64_t t = 0; t < p->n; t++) {
        const int64_t y = (p->first + t) / p->tiles_wide * OUT - p->pad[0];
        const int64_t x = (p->first + t) % p->tiles_wide * OUT - p->pad[1];
        float *v = p->v + t * LANES;
        if (y >= 0 && x >= 0 && y + SIDE <= p->in[0] && x + SIDE <= p->in[1]) {
            W(wino_in_tile_)
            (p->x + (y * p->in[1] + x) * p->step, p->in[1] * p->step, p->step, v, p->v_component);
            continue;
        }
        VEC room[SIDE * SIDE] = {{0}};
        for (int64_t i = 0; i < SIDE * SIDE; i++) {
            const int64_t iy = y + i / SIDE, ix = x + i % SIDE;
            if (iy >= 0 && ix >= 0 && iy < p->in[0] && ix < p->in[1])
                room[i] = *(const VEC_U *)(p->x + (iy * p->in[1] + ix) * p->step);
        }
        W(wino_in_tile_)((const float *)room, SIDE * LANES, LANES, v, p->v_component);
    }
}

INLINE VEC W(wino_bounded_)(const neon_bound_kind kind, float low, float high, VEC x) {
    if (kind == NEON_BOUND_RELU) return (VEC)((IVEC)x & ~(x < ALL(0.0f))); /* NaN stays */
    if (kind == NEON_BOUND_LEAKY) {
        const IVEC below = x < ALL(0.0f);
        return (VEC)(((IVEC)(x * ALL(low)) & below) | ((IVEC)x & ~below));
    }
    if (kind == NEON_BOUND_CLIP) {
        /* first, so that the upper limit wins if the limits cross */
        const IVEC below = x < ALL(low);
        x = (VEC)(((IVEC)ALL(low) & below) | ((IVEC)x & ~below));
        const IVEC above = x > ALL(high);
        return (VEC)(((IVEC)ALL(high) & above) | ((IVEC)x & ~above));
    }
    return x;
}

INLINE void W(wino_output_all_)(const neon_wino_output *p, const neon_bound_kind kind) {
    const VEC bias = *(const VEC_U *)p->bias;
    for (int64_t t = 0; t < p->n; t++) {
        const int64_t y = (p->first + t) / p->tiles_wide * OUT;
        const int64_t x = (p->first + t) % p->tiles_wide * OUT;
        const int64_t rows = p->out[0] - y < OUT ? p->out[0] - y : OUT;
        const int64_t columns = p->out[1] - x < OUT ? p->out[1] - x : OUT;
        const float *m = p->m + t * VL;
        VEC half_way[OUT * SIDE], one[SIDE], sum[OUT * OUT];
        UNROLL(SIDE)
        for (int j = 0; j < SIDE; j++) {
            UNROLL(SIDE)
            for (int i = 0; i < SIDE; i++)
                one[i] = *(const VEC_U *)(m + (i * SIDE + j) * p->m_component);
            W(wino_out_)(one, 1, half_way + OUT * j);
        }
        UNROLL(OUT)
        for (int i = 0; i < OUT; i++) W(wino_out_)(half_way + i, OUT, sum + OUT * i);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                const int64_t at = ((y + i) * p->out[1] + x + j) * p->step;
                VEC v = sum[OUT * i + j] + bias;
                if (p->operand) v += *(const VEC_U *)(p->operand + at);
                *(VEC_U *)(p->y + at) = W(wino_bounded_)(kind, p->bound.low, p->bound.high, v);
            }
    }
}

static void W(wino_output_)(const neon_wino_output *p) {
    switch (p->bound.kind) {
    case NEON_BOUND_RELU: W(wino_output_all_)(p, NEON_BOUND_RELU); return;
    case NEON_BOUND_LEAKY: W(wino_output_all_)(p, NEON_BOUND_LEAKY); return;
    case NEON_BOUND_CLIP: W(wino_output_all_)(p, NEON_BOUND_CLIP); return;
    default: W(wino_output_all_)(p, NEON_BOUND_NONE); return;
    }
}

#undef W
#undef ALL
#undef SIDE
