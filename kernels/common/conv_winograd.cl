/* Winograd's transforms of 3x3 windows: EDGE x EDGE outputs (2 or 4) from A x A inputs, A = EDGE +
 * 2. EDGE 4 uses the points 0, +-1/sqrt(2), +-sqrt(2) and infinity, which lose fewer digits than 0,
 * +-1, +-2. The tiles of all samples form one row; the intermediate is [A * A][channel][tile],
 * which conv_panel multiplies. A work-item has VW tiles of a channel at a time, BLOCK in all: one
 * on a GPU, whole vectors on a CPU. */
#define A (EDGE + 2)
#define NEAR 0.70710678118654752f
#define FAR 1.41421356237309505f

#if VW == 16
typedef float16 vec;
/* A vector of 16 floats from memory at p. */
#define LOAD(p) vload16(0, p)
/* Writes vector v of 16 floats to memory at p. */
#define SAVE(v, p) vstore16(v, 0, p)
#else
typedef float vec;
/* A float from memory. */
#define LOAD(p) (*(p))
/* Writes a float to memory. */
#define SAVE(v, p) (*(p) = (v))
#endif
/* A vector with `value` in all lanes. */
#define ALL(value) ((vec)(value))
#define ROOM (BLOCK + VW - 1)

/* out = B^T x, of EDGE + 2 vectors: one direction of the input's transform. */
void into(const vec *x, vec *out) {
#if EDGE == 4
    const vec near = MAD(ALL(-2.0f), x[2], x[4]), odd = MAD(ALL(-2.0f), x[1], x[3]);
    const vec far = MAD(ALL(-0.5f), x[2], x[4]), odder = MAD(ALL(-0.5f), x[1], x[3]);
    out[0] = MAD(ALL(-2.5f), x[2], x[0] + x[4]);
    out[1] = MAD(ALL(NEAR), odd, near);
    out[2] = MAD(ALL(-NEAR), odd, near);
    out[3] = MAD(ALL(FAR), odder, far);
    out[4] = MAD(ALL(-FAR), odder, far);
    out[5] = MAD(ALL(-2.5f), x[3], x[1] + x[5]);
#else
    out[0] = x[0] - x[2];
    out[1] = x[1] + x[2];
    out[2] = x[2] - x[1];
    out[3] = x[1] - x[3];
#endif
}

/* out = A^T m: EDGE vectors of EDGE + 2 sums, one direction of the way back. */
void out_of(const vec *m, vec *out) {
#if EDGE == 4
    const vec s = m[1] + m[2], d = m[1] - m[2], t = m[3] + m[4], e = m[3] - m[4];
    out[0] = (m[0] + s) + t;
    out[1] = MAD(ALL(FAR), e, ALL(NEAR) * d);
    out[2] = MAD(ALL(2.0f), t, ALL(0.5f) * s);
    out[3] = MAD(ALL(2 * FAR), e, MAD(ALL(0.5f * NEAR), d, m[5]));
#else
    out[0] = m[0] + m[1] + m[2];
    out[1] = m[1] - m[2] - m[3];
#endif
}

/* shape: C H W, channels out, OH OW, rows and columns of tiles, padding at top and left, has_bias,
 * pitch of the intermediate, number of tiles. range: first tile of this pass, number of tiles. */
#if VW == 16
/* The even elements of a and b. */
#define EVEN(a, b) ((float16)((a).even, (b).even))
/* The odd elements of a and b. */
#define ODD(a, b) ((float16)((a).odd, (b).odd))
/* Elements of a and b in turn. */
#define ZIP(a, b)                                                                                     \
    (float16)((a).s0, (b).s0, (a).s1, (b).s1, (a).s2, (b).s2, (a).s3, (b).s3, (a).s4, (b).s4, (a).s5, \
              (b).s5, (a).s6, (b).s6, (a).s7, (b).s7)

/* Every EDGEth element from p, p + 1 ... on. */
void apart(const float *p, vec *out) {
#if EDGE == 4
    const vec a = LOAD(p), b = LOAD(p + 16), c = LOAD(p + 32), d = LOAD(p + 48);
    const vec e = EVEN(a, b), f = EVEN(c, d), g = ODD(a, b), h = ODD(c, d);
    out[0] = EVEN(e, f);
    out[1] = EVEN(g, h);
    out[2] = ODD(e, f);
    out[3] = ODD(g, h);
#else
    const vec a = LOAD(p), b = LOAD(p + 16);
    out[0] = EVEN(a, b);
    out[1] = ODD(a, b);
#endif
}

/* Writes EDGE vectors, whose lanes are tiles, to p as one row of adjacent pixels. */
void together(const vec *v, float *p) {
#if EDGE == 4
    const vec a = ZIP(v[0], v[2]), b = ZIP(v[0].hi, v[2].hi), c = ZIP(v[1], v[3]), d = ZIP(v[1].hi, v[3].hi);
    SAVE(ZIP(a, c), p);
    SAVE(ZIP(a.hi, c.hi), p + 16);
    SAVE(ZIP(b, d), p + 32);
    SAVE(ZIP(b.hi, d.hi), p + 48);
#else
    SAVE(ZIP(v[0], v[1]), p);
    SAVE(ZIP(v[0].hi, v[1].hi), p + 16);
#endif
}

/* Reads element (i, j) of `run` adjacent tiles, the first at row ih and column iw of the plane,
 * into given[i * A + j]; writes up to 15 surplus elements. */
void take(__global const float *plane, int H, int W, int ih0, int iw, int run, float given[A * A][ROOM], int at) {
    const int many = run * EDGE + 2, first = clamp(-iw, 0, many), last = clamp(W - iw, first, many);
    float line[(BLOCK + 17) * EDGE];
    for (int i = 0; i < A; i++) {
        const int ih = ih0 + i, inside = (uint)ih < (uint)H;
        __global const float *from = plane + ih * W + iw;
        for (int k = 0; k < (inside ? first : many); k++) line[k] = 0.0f;
        for (int k = first; inside && k < last; k++) line[k] = from[k];
        for (int k = last; inside && k < many; k++) line[k] = 0.0f;
        for (int t = 0; t < run; t += 16) {
            vec here[EDGE], next[EDGE];
            apart(line + t * EDGE, here);
            apart(line + t * EDGE + EDGE, next);
#pragma unroll
            for (int j = 0; j < EDGE; j++) SAVE(here[j], given[i * A + j] + at + t);
#pragma unroll
            for (int j = 0; j < 2; j++) SAVE(next[j], given[i * A + EDGE + j] + at + t);
        }
    }
}
#else
/* Writes a tile's row of EDGE values to p. */
void together(const vec *v, float *p) {
#pragma unroll
    for (int j = 0; j < EDGE; j++) p[j] = v[j];
}

/* Reads the tiles of a run of pixels, with zeros outside of the plane. */
void take(__global const float *plane, int H, int W, int ih, int iw, int run, float given[A * A][ROOM], int at) {
#pragma unroll
    for (int i = 0; i < A; i++)
#pragma unroll
        for (int j = 0; j < A; j++)
            given[i * A + j][at] = (uint)(ih + i) < (uint)H && (uint)(iw + j) < (uint)W
                                       ? plane[(ih + i) * W + iw + j] : 0.0f;
}
#endif

__kernel void winograd_in(__global const float *x, int x_at, __global float *to, int to_at, int16 shape,
                          int2 range) {
    const int C = shape.s0, H = shape.s1, W = shape.s2, high = shape.s6, wide = shape.s7;
    const int at = get_global_id(0) * BLOCK, c = get_global_id(1), pitch = shape.sb;
    const int end = min(at + BLOCK, range.s1);
    float given[A * A][ROOM];
    if (at >= pitch) return;
    for (int t = at; t < end;) { /* a run of adjacent tiles */
        const int tile = range.s0 + t, column = tile % wide, row = tile / wide % high;
        const int run = min(end - t, wide - column), n = tile / wide / high;
        __global const float *plane = x + x_at + (n * C + c) * H * W;
        take(plane, H, W, row * EDGE - shape.s8, column * EDGE - shape.s9, run, given, t - at);
        t += run;
    }
    for (int i = 0; i < A * A; i++)
        for (int t = max(0, end - at); t < BLOCK; t++) given[i][t] = 0.0f;
    __global float *v = to + to_at + c * pitch + at;
    for (int t = 0; t < BLOCK && at + t < pitch; t += VW) {
        vec half_way[A][A], one[A], all[A];
#pragma unroll
        for (int i = 0; i < A; i++) {
#pragma unroll
            for (int j = 0; j < A; j++) one[j] = LOAD(given[i * A + j] + t);
            into(one, half_way[i]);
        }
#pragma unroll
        for (int j = 0; j < A; j++) {
#pragma unroll
            for (int i = 0; i < A; i++) one[i] = half_way[i][j];
            into(one, all);
#pragma unroll
            for (int i = 0; i < A; i++) SAVE(all[i], v + (i * A + j) * C * pitch + t);
        }
    }
}

__kernel void winograd_out(__global const float *sums, int sums_at, __global const float *bias, int bias_at,
                           __global float *y, int y_at, int16 shape, int2 range CHAIN_PARAMETERS) {
    const int K = shape.s3, OH = shape.s4, OW = shape.s5, high = shape.s6, wide = shape.s7;
    const int at = get_global_id(0) * BLOCK, m = get_global_id(1), pitch = shape.sb;
    const int end = min(at + BLOCK, range.s1);
    float line[EDGE][BLOCK * EDGE];
    if (at >= range.s1) return;
    const vec start = shape.sa ? bias[bias_at + m] : 0.0f;
    __global const float *from = sums + sums_at + m * pitch + at;
    for (int t = 0; t < end - at; t += VW) {
        vec half_way[A][EDGE], one[A], all[EDGE][EDGE];
#pragma unroll
        for (int i = 0; i < A; i++) {
#pragma unroll
            for (int j = 0; j < A; j++) one[j] = LOAD(from + (i * A + j) * K * pitch + t);
            out_of(one, half_way[i]);
        }
#pragma unroll
        for (int j = 0; j < EDGE; j++) {
            vec column_of[EDGE];
#pragma unroll
            for (int i = 0; i < A; i++) one[i] = half_way[i][j];
            out_of(one, column_of);
#pragma unroll
            for (int i = 0; i < EDGE; i++) all[i][j] = column_of[i] + start;
        }
#pragma unroll
        for (int i = 0; i < EDGE; i++) together(all[i], line[i] + t * EDGE);
    }
    for (int t = at; t < end;) {
        const int tile = range.s0 + t, column = tile % wide, row = tile / wide % high;
        const int run = min(end - t, wide - column), n = tile / wide / high;
        const int columns = min(run * EDGE, OW - column * EDGE), rows = min(EDGE, OH - row * EDGE);
        for (int i = 0; i < rows; i++) {
            const int to = ((n * K + m) * OH + row * EDGE + i) * OW + column * EDGE;
            for (int k = 0; k < columns; k++)
                y[y_at + to + k] = chain(line[i][(t - at) * EDGE + k], to + k CHAIN_PASS);
        }
        t += run;
    }
}
