/* Depthwise convolution, several rows of outputs for each work-item. It copies its input rows with
 * padding, split by the phases of the strides, so that sums are whole vectors that run from row to
 * row; sums beyond an edge are not stored. For devices whose work-items are loops on a CPU. Built
 * with the window KH KW SH SW DH DW, and ROOM, the floats of the copy and of the sums. */

/* Phases of a stride that a window reads; offset of its last tap in lines or columns. */
#define PHASES(k, s, d) ((d) == 1 && (k) < (s) ? (k) : (s))
/* Steps that a window of k reaches beyond its first. */
#define REACH(k, s, d) (((k) - 1) * (d) / (s))
#define PH PHASES(KH, SH, DH)
#define PW PHASES(KW, SW, DW)

/* strip: rows of outputs for each work-item, lines of a phase, elements of a line. */
__kernel void depthwise_strip(__global const float *x, int x_at, __global const float *weight,
                              int weight_at, __global const float *bias, int bias_at,
                              __global float *y, int y_at, int16 shape, int16 range,
                              int4 strip CHAIN_PARAMETERS) {
    const int C = shape.s0, H = shape.s3, W = shape.s4, OH = shape.s6, OW = shape.s7, M = shape.s8;
    const int m = range.s7 + get_global_id(1), n = range.s9 + get_global_id(2);
    const int begin = get_global_id(0) * strip.s0, rows = min(strip.s0, range.s4 - begin);
    const int oh = range.s1 + begin, high = strip.s1, wide = strip.s2;
    float lines[ROOM], sums[ROOM];
    if (rows <= 0) return;
    __global const float *plane = x + x_at + (n * C + m / shape.s9) * H * W;
    for (int p = 0; p < PH * PW; p++)
        for (int i = 0; i < rows + REACH(KH, SH, DH); i++) {
            float *to = lines + (p * high + i) * wide;
            const int ih = (oh + i) * SH + p / PW - shape.sc, iw = p % PW - shape.sd;
            const int inside = (uint)ih < (uint)H ? wide : 0;
            __global const float *from = plane + ih * W + iw;
            const int first = min(inside, iw >= 0 ? 0 : (-iw + SW - 1) / SW);
            const int last = max(first, min(inside, (W - iw + SW - 1) / SW));
            for (int k = 0; k < first; k++) to[k] = 0.0f;
            for (int k = first; k < last; k++) to[k] = from[k * SW];
            for (int k = last; k < wide; k++) to[k] = 0.0f;
        }
    float tap[KH * KW];
#pragma unroll
    for (int k = 0; k < KH * KW; k++) tap[k] = weight[weight_at + m * (KH * KW) + k];
    const float16 start = shape.se ? bias[bias_at + m] : 0.0f;
    for (int q = 0; q < rows * wide; q += 16) {
        float16 sum = start;
#pragma unroll
        for (int kh = 0; kh < KH; kh++)
#pragma unroll
            for (int kw = 0; kw < KW; kw++) {
                const int phase = kh * DH % SH * PW + kw * DW % SW;
                const float *at = lines + (phase * high + kh * DH / SH) * wide + kw * DW / SW;
                sum = MAD((float16)(tap[kh * KW + kw]), vload16(0, at + q), sum);
            }
        vstore16(sum, 0, sums + q);
    }
    for (int i = 0; i < rows; i++) {
        const int to = ((n * M + m) * OH + oh + i) * OW;
        for (int k = range.s2; k < range.s6; k++)
            y[y_at + to + k] = chain(sums[i * wide + k], to + k CHAIN_PASS);
    }
}
