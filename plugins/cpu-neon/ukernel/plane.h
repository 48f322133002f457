/* Sliding windows over planes of channel blocks, with vectors VEC; blocked.h includes this once for
 * each block width. */

/* A name with the number of lanes behind it. */
#define INTO(name) NEON_PASTE(name, LANES)

INLINE VEC INTO(lanes_)(const float *p) { return *(const VEC_U *)p; }
INLINE VEC INTO(all_)(float x) { return x - (VEC){0}; }
INLINE VEC INTO(either_)(IVEC mask, VEC a, VEC b) {
    return (VEC)(((IVEC)a & mask) | ((IVEC)b & ~mask));
}

INLINE VEC INTO(take_)(neon_window_kind kind, VEC acc, VEC x, VEC w) {
    if (kind == NEON_WINDOW_FMA) return FUSE(x, w, acc);
    if (kind == NEON_WINDOW_SUM) return acc + x;
    return LARGER(acc, x);
}

INLINE VEC INTO(limit_)(const neon_bound b, VEC x) {
    const VEC low = INTO(all_)(b.low), high = INTO(all_)(b.high), zero = {0};
    if (b.kind == NEON_BOUND_RELU) return POSITIVE(x);
    if (b.kind == NEON_BOUND_LEAKY) return INTO(either_)(x < zero, x * low, x);
    return b.kind == NEON_BOUND_CLIP ? WITHIN(x, low, high) : x;
}

/* The taps that lie within the input. */
#ifndef PLANE_TAPS
#define PLANE_TAPS
/* Taps of a window that lie inside the plane. */
typedef struct tap_range {
    int64_t y0, y1, x0, x1;
} tap_range;
#endif

/* `wide` adjacent taps, `stride` columns apart from one output to the next: each column is read
 * once. */
INLINE void INTO(line_)(neon_window_kind kind, const float *x, const float *weight, VEC *acc,
                        const int n, const int wide, const int stride) {
    VEC v[2 * 7 + 5], w;
    FORGET(x);
    UNROLL(19)
    for (int i = 0; i < (n - 1) * stride + wide; i++) v[i] = INTO(lanes_)(x + i * LANES);
    UNROLL(5)
    for (int t = 0; t < wide; t++) {
        w = kind == NEON_WINDOW_FMA ? INTO(lanes_)(weight + t * LANES) : acc[0];
        UNROLL(8)
        for (int j = 0; j < n; j++) acc[j] = INTO(take_)(kind, acc[j], v[j * stride + t], w);
    }
}

INLINE void INTO(end_)(neon_bound_kind kind, const neon_plane *p, const VEC *acc, const int n,
                       float *y) {
    const neon_bound bound = {kind, p->bound.low, p->bound.high};
    UNROLL(8)
    for (int j = 0; j < n; j++) *(VEC_U *)(y + j * LANES) = INTO(limit_)(bound, acc[j]);
}

/* Output columns [c, c + n) of row r, which all have these taps. wide: number of adjacent taps at
 * this stride, as a constant, 0: any; full: all three rows of taps. */
INLINE void INTO(columns_)(neon_window_kind kind, const neon_plane *p, int64_t r, int64_t c,
                           const tap_range taps, const int n, const int wide, const int stride,
                           const int full) {
    const int64_t b = LANES, step = p->stride[1] * b;
    const float *x =
        p->x + ((r * p->stride[0] - p->pad[0]) * p->in[1] + c * p->stride[1] - p->pad[1]) * b;
    const VEC start = kind == NEON_WINDOW_FMA
                          ? INTO(lanes_)(p->start)
                          : INTO(all_)(kind == NEON_WINDOW_MAX ? -INFINITY : 0.0f);
    VEC acc[8];
    UNROLL(8)
    for (int j = 0; j < n; j++) acc[j] = start;
    const int64_t line = p->dilation[0] * p->in[1] * b;
    if (wide == 3 && full) {
        UNROLL(3)
        for (int ky = 0; ky < 3; ky++, x += line)
            INTO(line_)(kind, x, p->weight + ky * 3 * b, acc, n, 3, stride);
    } else if (wide) {
        for (int64_t ky = taps.y0; ky < taps.y1; ky++)
            INTO(line_)(kind, x + ky * line, p->weight + ky * wide * b, acc, n, wide, stride);
    } else {
        for (int64_t ky = taps.y0; ky < taps.y1; ky++)
            for (int64_t kx = taps.x0; kx < taps.x1; kx++) {
                const float *at = x + ky * line + kx * p->dilation[1] * b;
                const VEC w = kind == NEON_WINDOW_FMA
                                  ? INTO(lanes_)(p->weight + (ky * p->kernel[1] + kx) * b)
                                  : start;
                UNROLL(8)
                for (int j = 0; j < n; j++)
                    acc[j] = INTO(take_)(kind, acc[j], INTO(lanes_)(at + j * step), w);
            }
    }
    float *y = p->y + (r * p->out_wide + c) * b;
    UNROLL(8)
    for (int j = 0; j < n && kind == NEON_WINDOW_SUM; j++)
        acc[j] *= INTO(all_)(p->scale[r * p->out_wide + c + j]);
    switch (p->bound.kind) {
    case NEON_BOUND_RELU: INTO(end_)(NEON_BOUND_RELU, p, acc, n, y); break;
    case NEON_BOUND_LEAKY: INTO(end_)(NEON_BOUND_LEAKY, p, acc, n, y); break;
    case NEON_BOUND_CLIP: INTO(end_)(NEON_BOUND_CLIP, p, acc, n, y); break;
    default: INTO(end_)(NEON_BOUND_NONE, p, acc, n, y); break;
    }
}

/* Columns that have all taps of a row, in steps of similar size. */
INLINE void INTO(stretch_)(neon_window_kind kind, const neon_plane *p, int64_t r,
                           const tap_range taps, const int wide, const int stride, const int full) {
    int64_t c = p->whole0, end = p->whole1;
    const int64_t steps = (end - c + 7) / 8;
    const int64_t most = steps ? (end - c + steps - 1) / steps : 0;
    for (int64_t n; c < end; c += n) {
        n = end - c < most ? end - c : most;
        switch (n) {
        case 8: INTO(columns_)(kind, p, r, c, taps, 8, wide, stride, full); break;
        case 7: INTO(columns_)(kind, p, r, c, taps, 7, wide, stride, full); break;
        case 6: INTO(columns_)(kind, p, r, c, taps, 6, wide, stride, full); break;
        case 5: INTO(columns_)(kind, p, r, c, taps, 5, wide, stride, full); break;
        case 4: INTO(columns_)(kind, p, r, c, taps, 4, wide, stride, full); break;
        case 3: INTO(columns_)(kind, p, r, c, taps, 3, wide, stride, full); break;
        case 2: INTO(columns_)(kind, p, r, c, taps, 2, wide, stride, full); break;
        default: INTO(columns_)(kind, p, r, c, taps, 1, wide, stride, full); break;
        }
    }
}

/* A column at the edge; of three taps, the two most frequent cases are constants. */
INLINE void INTO(edge_)(neon_window_kind kind, const neon_plane *p, int64_t r, int64_t c,
                        tap_range t, const int wide, const int full) {
    taps_within(p, 1, c, &t.x0, &t.x1);
    if (full && t.x0 == 1 && t.x1 == 3)
        INTO(columns_)(kind, p, r, c, (tap_range){0, 3, 1, 3}, 1, 0, 0, 0);
    else if (full && t.x0 == 0 && t.x1 == 2)
        INTO(columns_)(kind, p, r, c, (tap_range){0, 3, 0, 2}, 1, 0, 0, 0);
    else if (wide == 5 && t.x0 == 0 && t.x1 == 3)
        INTO(columns_)(kind, p, r, c, (tap_range){t.y0, t.y1, 0, 3}, 1, 0, 0, 0);
    else if (wide == 5 && t.x0 == 0 && t.x1 == 4)
        INTO(columns_)(kind, p, r, c, (tap_range){t.y0, t.y1, 0, 4}, 1, 0, 0, 0);
    else if (wide == 5 && t.x0 == 1 && t.x1 == 5)
        INTO(columns_)(kind, p, r, c, (tap_range){t.y0, t.y1, 1, 5}, 1, 0, 0, 0);
    else if (wide == 5 && t.x0 == 2 && t.x1 == 5)
        INTO(columns_)(kind, p, r, c, (tap_range){t.y0, t.y1, 2, 5}, 1, 0, 0, 0);
    else INTO(columns_)(kind, p, r, c, t, 1, 0, 0, 0);
}

INLINE void INTO(row_)(neon_window_kind kind, const neon_plane *p, int64_t r, tap_range t,
                       const int wide, const int stride, const int full) {
    for (int64_t c = 0; c < p->whole0; c++) INTO(edge_)(kind, p, r, c, t, wide, full);
    t.x0 = 0;
    t.x1 = p->kernel[1];
    INTO(stretch_)(kind, p, r, t, wide, stride, full);
    for (int64_t c = p->whole1; c < p->out_wide; c++) INTO(edge_)(kind, p, r, c, t, wide, full);
}

INLINE void INTO(plane_)(neon_window_kind kind, const neon_plane *p) {
    const int64_t wide = p->kernel[1], stride = p->stride[1];
    const int line =
        kind != NEON_WINDOW_SUM && NEON_REGISTERS == 32 && p->dilation[1] == 1 && stride < 3;
    for (int64_t r = p->row0; r < p->row1; r++) {
        tap_range t;
        taps_within(p, 0, r, &t.y0, &t.y1);
        const int full = t.y0 == 0 && t.y1 == 3;
        if (line && wide == 3 && stride == 1 && full) INTO(row_)(kind, p, r, t, 3, 1, 1);
        else if (line && wide == 3 && stride == 1) INTO(row_)(kind, p, r, t, 3, 1, 0);
        else if (line && wide == 3 && full) INTO(row_)(kind, p, r, t, 3, 2, 1);
        else if (line && wide == 3) INTO(row_)(kind, p, r, t, 3, 2, 0);
        else if (line && wide == 5 && stride == 1) INTO(row_)(kind, p, r, t, 5, 1, 0);
        else if (line && wide == 5) INTO(row_)(kind, p, r, t, 5, 2, 0);
        else INTO(row_)(kind, p, r, t, 0, 0, 0);
    }
}

static void INTO(plane_of_)(neon_window_kind kind, const neon_plane *job) {
    const neon_plane p = *job; /* a copy, so that the compiler knows that no store changes it */
    if (kind == NEON_WINDOW_FMA) INTO(plane_)(NEON_WINDOW_FMA, &p);
    else if (kind == NEON_WINDOW_SUM) INTO(plane_)(NEON_WINDOW_SUM, &p);
    else INTO(plane_)(NEON_WINDOW_MAX, &p);
}

/* The sum, or the maximum, of n positions; four at a time. */
static void INTO(whole_plane_)(neon_window_kind kind, const float *x, int64_t b, int64_t n,
                               float scale, float *y) {
    const VEC start = INTO(all_)(kind == NEON_WINDOW_MAX ? -INFINITY : 0.0f);
    VEC acc[4] = {start, start, start, start};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, x += 4 * b) {
        UNROLL(4)
        for (int j = 0; j < 4; j++)
            acc[j] = kind == NEON_WINDOW_MAX
                         ? INTO(take_)(NEON_WINDOW_MAX, acc[j], INTO(lanes_)(x + j * b), start)
                         : acc[j] + INTO(lanes_)(x + j * b);
    }
    for (; i < n; i++, x += b)
        acc[0] = kind == NEON_WINDOW_MAX
                     ? INTO(take_)(NEON_WINDOW_MAX, acc[0], INTO(lanes_)(x), start)
                     : acc[0] + INTO(lanes_)(x);
    UNROLL(2)
    for (int half = 2; half >= 1; half /= 2)
        for (int j = 0; j < half; j++)
            acc[j] = kind == NEON_WINDOW_MAX
                         ? INTO(take_)(NEON_WINDOW_MAX, acc[j], acc[j + half], start)
                         : acc[j] + acc[j + half];
    *(VEC_U *)y = acc[0] * INTO(all_)(scale);
}

static void INTO(affine_block_)(const float *x, const float *scale, const float *shift, int64_t b,
                                int64_t n, float *out) {
    const VEC m = scale ? INTO(lanes_)(scale) : INTO(all_)(1.0f);
    const VEC a = shift ? INTO(lanes_)(shift) : INTO(all_)(0.0f);
    if (!shift) /* -0 stays -0 */
        for (int64_t i = 0; i < n; i++) *(VEC_U *)(out + i * b) = INTO(lanes_)(x + i * b) * m;
    else if (!scale)
        for (int64_t i = 0; i < n; i++) *(VEC_U *)(out + i * b) = INTO(lanes_)(x + i * b) + a;
    else
        for (int64_t i = 0; i < n; i++)
            *(VEC_U *)(out + i * b) = FUSE(INTO(lanes_)(x + i * b), m, a);
}

#undef INTO
