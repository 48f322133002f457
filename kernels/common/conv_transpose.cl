/* Transposed convolution with packed weights [group][block of 4 channels out][tap][channel in][4]:
 * a work-item has four channels of four pixels of a row that are a stride apart and so use the same
 * taps. Built with the window KD KH KW, strides SD SH SW, dilations DD DH DW. */

/* A pixel of a row; 0 outside of it. */
#define LOAD(i) ((uint)(i) < (uint)W ? row[i] : 0.0f)
/* Writes the sum of the pixel and channel q, after the epilogue, if both are wanted. */
#define STORE(q, value)                                                        \
    if (ow < OW && m + q >= c0 && m + q < m1) {                                \
        const int to = ((n * M + m + q) * OD + od) * OH * OW + oh * OW + ow;   \
        y[y_at + to] = chain(value, to CHAIN_PASS);                            \
    }
/* Writes four channels, and goes a stride on. */
#define STORE4(a) STORE(0, a.s0) STORE(1, a.s1) STORE(2, a.s2) STORE(3, a.s3) ow += SW;

__kernel void conv_transpose(__global const float *x, int x_at, __global const float *weight, int weight_at,
                             __global const float *bias, int bias_at, __global float *y, int y_at, int16 shape,
                             int8 range CHAIN_PARAMETERS) {
    const int C = shape.s0, CG = shape.s1, D = shape.s2, H = shape.s3, W = shape.s4;
    const int OD = shape.s5, OH = shape.s6, OW = shape.s7, M = shape.s8, MG = shape.s9, BLOCKS = shape.sa;
    const int c0 = range.s0, QUADS = range.s2; /* groups of four in a row of one phase */
    const int at = get_global_id(0), block = range.s3 + get_global_id(1), n = range.s4 + get_global_id(2);
    const int phase = at / QUADS % SW, oh = at / QUADS / SW % OH, od = at / QUADS / SW / OH;
    const int group = block / BLOCKS, m = group * MG + block % BLOCKS * 4;
    const int m1 = min(range.s1, (group + 1) * MG);
    int ow = at % QUADS * 4 * SW + phase;
    if (od >= OD) return;
    float4 first = 0.0f;
    if (shape.se) {
        if (m < M) first.s0 = bias[bias_at + m];
        if (m + 1 < M) first.s1 = bias[bias_at + m + 1];
        if (m + 2 < M) first.s2 = bias[bias_at + m + 2];
        if (m + 3 < M) first.s3 = bias[bias_at + m + 3];
    }
    float4 a0 = first, a1 = first, a2 = first, a3 = first;
    __global const float *planes = x + x_at + (n * C + group * CG) * D * H * W;
    __global const float4 *taps = (__global const float4 *)(weight + weight_at) + block * (KD * KH * KW) * CG;
    for (int kd = 0; kd < KD; kd++) {
        const int d = od + shape.sb - kd * DD;
        if (d % SD != 0 || (uint)(d / SD) >= (uint)D) continue;
        for (int kh = 0; kh < KH; kh++) {
            const int h = oh + shape.sc - kh * DH;
            if (h % SH != 0 || (uint)(h / SH) >= (uint)H) continue;
            for (int kw = 0; kw < KW; kw++) {
                const int w = ow + shape.sd - kw * DW, i = w / SW;
                if (w % SW != 0) continue;
                __global const float4 *k = taps + ((kd * KH + kh) * KW + kw) * CG;
                __global const float *row = planes + (d / SD * H + h / SH) * W;
                for (int c = 0; c < CG; c++, row += D * H * W) {
                    a0 = MAD(k[c], (float4)(LOAD(i)), a0);
                    a1 = MAD(k[c], (float4)(LOAD(i + 1)), a1);
                    a2 = MAD(k[c], (float4)(LOAD(i + 2)), a2);
                    a3 = MAD(k[c], (float4)(LOAD(i + 3)), a3);
                }
            }
        }
    }
    STORE4(a0)
    STORE4(a1)
    STORE4(a2)
    STORE4(a3)
}
