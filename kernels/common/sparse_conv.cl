/* Convolution by a weight stored as compressed sparse rows: each entry multiplies a run of pixels, where
 * they lie (no matrix of windows is made); a window of 1x1 is a product of a sparse matrix and the picture.
 *
 *   blob: uint taps at, values at (words) | begin[blocks + 1] | {uint offset, row << 16 | column}[entries]
 *         | float value[entry][BLOCK]
 *
 * offset is from a window's first element to the entry's, row and column where it lies in the window.
 * A work-item has PIXELS of a row, of BLOCK channels: 16 where it is a vector's loop, whose input
 * sparse_pad has laid out with its padding. Built with strides SH, SW; EDGES: windows reach over the edge. */

#if PIXELS == 1
typedef float pixels;
/* An element of a row; 0 beyond its ends. */
#define READ(p, i, w) (EDGES && (uint)(w) >= (uint)W ? 0.0f : (p)[i])
#else
typedef float16 pixels;

/* 16 elements, i, i + SW and so on, of p, which has `total`; 0 behind its end. */
static float16 read(__global const float *p, int i, int total) {
    if (SW <= 2 && i + 16 * SW <= total) {
#if SW == 2
        const float16 a = vload16(0, p + i), b = vload16(1, p + i);
        return (float16)(a.even, b.even);
#else
        return vload16(0, p + i);
#endif
    }
    float one[16];
    for (int k = 0; k < 16; k++) one[k] = i + k * SW < total ? p[i + k * SW] : 0.0f;
    return vload16(0, one);
}
/* 16 elements of p, i, i + SW and so on; 0 behind its end. */
#define READ(p, i, w) read(p, i, total)

/* Copies a row of the input for each work-item: planes of H rows of W, with `above` rows and `left`
 * columns of zeros before. */
__kernel void sparse_pad(__global const float *x, int x_at, __global float *to, int to_at, int8 shape) {
    const int at = get_global_id(0), H = shape.s0, W = shape.s1, high = shape.s2, wide = shape.s3;
    const int r = at % high - shape.s4, left = shape.s5;
    if (at >= shape.s6) return;
    __global const float *from = x + x_at + (at / high * H + r) * W;
    __global float *row = to + to_at + at * wide;
    if ((uint)r >= (uint)H) {
        for (int k = 0; k < wide; k++) row[k] = 0.0f;
        return;
    }
    for (int k = 0; k < left; k++) row[k] = 0.0f;
    for (int k = 0; k < W; k++) row[left + k] = from[k];
    for (int k = left + W; k < wide; k++) row[k] = 0.0f;
}
#endif

__kernel void sparse_conv(__global const float *x, int x_at, __global const uint *blob, int blob_at,
                          __global const float *bias, int bias_at, __global float *y, int y_at,
                          int16 shape, int16 range CHAIN_PARAMETERS) {
    const int C = shape.s0, H = shape.s3, W = shape.s4, OH = shape.s6, OW = shape.s7, M = shape.s8;
    const int total = shape.sf * C * H * W, at = get_global_id(0), rows = range.s4, wide = range.s5;
    const int block = range.sa + get_global_id(1), n = range.s9 + get_global_id(2);
    if (at >= rows * wide) return;
    const int oh = range.s1 + at / wide, ow = range.s2 + at % wide * PIXELS;
    const int ih = oh * SH - shape.sc, iw = ow * SW - shape.sd;
    const int first = (n * C + block * BLOCK / shape.s9 * shape.s1) * H * W + ih * W + iw;
    __global const uint *words = blob + blob_at, *begin = words + 2;
    __global const uint2 *taps = (__global const uint2 *)(words + words[0]);
    __global const float *value = (__global const float *)(words + words[1]), *from = x + x_at;
    pixels sum[BLOCK];
#pragma unroll
    for (int b = 0; b < BLOCK; b++) sum[b] = 0.0f;
    for (uint e = begin[block]; e < begin[block + 1]; e++) {
        const uint2 tap = taps[e];
        if (EDGES && (uint)(ih + (int)(tap.y >> 16)) >= (uint)H) continue;
        const pixels v = READ(from, first + (int)tap.x, iw + (int)(tap.y & 0xffff));
#pragma unroll
        for (int b = 0; b < BLOCK; b++) sum[b] = mad((pixels)(value[e * BLOCK + b]), v, sum[b]);
    }
#pragma unroll
    for (int b = 0; b < BLOCK; b++) {
        const int m = block * BLOCK + b, to = ((n * M + m) * OH + oh) * OW + ow;
        if (m < range.s7 || m >= range.s8) continue;
        const float more = shape.se ? bias[bias_at + m] : 0.0f;
#if PIXELS == 1
        y[y_at + to] = chain(sum[b] + more, to CHAIN_PASS);
#else
        float one[PIXELS];
        vstore16(sum[b] + more, 0, one);
        for (int k = 0; k < min(PIXELS, range.s6 - ow); k++)
            y[y_at + to + k] = chain(one[k], to + k CHAIN_PASS);
#endif
    }
}
