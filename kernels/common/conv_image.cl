/* Convolution with weights through the texture cache: an image of RGBA pixels, a pixel for four
 * channels' weights of one tap, a row for a block of four channels. A work-item has four channels
 * of two pixels that lie half a row of work-items apart, so that neighbours read neighbours.
 * Built with the window: KD KH KW, strides SD SH SW, dilations DD DH DW. */

__constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;

#define LOAD(row, i) ((uint)(i) < (uint)W ? (row)[i] : 0.0f)
#define STORE(p, q, value)                                                              \
    if (p < w1 && m + q >= c0 && m + q < m1) {                                          \
        const int to = ((n * M + m + q) * OD + od) * OH * OW + oh * OW + p;             \
        y[y_at + to] = chain(value, to CHAIN_PASS);                                     \
    }
#define STORE4(p, a) STORE(p, 0, a.s0) STORE(p, 1, a.s1) STORE(p, 2, a.s2) STORE(p, 3, a.s3)

__kernel void conv_image(__global const float *x, int x_at, __read_only image2d_t weight,
                         __global const float *bias, int bias_at, __global float *y, int y_at,
                         int16 shape, int16 range CHAIN_PARAMETERS) {
    const int C = shape.s0, CG = shape.s1, D = shape.s2, H = shape.s3, W = shape.s4;
    const int OD = shape.s5, OH = shape.s6, OW = shape.s7, M = shape.s8, MG = shape.s9;
    const int BLOCKS = shape.sa;
    const int ND = range.s3, NH = range.s4, NW = range.s5, w1 = range.s6, c0 = range.s7;
    const int at = get_global_id(0), block = range.sa + get_global_id(1);
    const int n = range.s9 + get_global_id(2);
    if (at >= ND * NH * NW) return;
    const int ow = range.s2 + at % NW, second = ow + NW, oh = range.s1 + at / NW % NH;
    const int od = range.s0 + at / NW / NH;
    const int group = block / BLOCKS, m = group * MG + block % BLOCKS * 4;
    const int m1 = min(range.s8, (group + 1) * MG);
    float4 a0 = 0.0f;
    if (shape.se) {
        if (m < M) a0.s0 = bias[bias_at + m];
        if (m + 1 < M) a0.s1 = bias[bias_at + m + 1];
        if (m + 2 < M) a0.s2 = bias[bias_at + m + 2];
        if (m + 3 < M) a0.s3 = bias[bias_at + m + 3];
    }
    float4 a1 = a0;
    __global const float *plane = x + x_at + (n * C + group * CG) * D * H * W;
    const int id0 = od * SD - shape.sb, ih0 = oh * SH - shape.sc;
    const int iw0 = ow * SW - shape.sd, apart = NW * SW;
    int tap = 0;
    TERMS
    BEGIN(0) BEGIN(1)
    for (int c = 0; c < CG; c++, plane += D * H * W, tap += KD * KH * KW) {
        for (int kd = 0; kd < KD; kd++) {
            const int id = id0 + kd * DD;
            if ((uint)id >= (uint)D) continue;
            for (int kh = 0; kh < KH; kh++) {
                const int ih = ih0 + kh * DH;
                if ((uint)ih >= (uint)H) continue;
                __global const float *row = plane + (id * H + ih) * W;
                const int first = tap + (kd * KH + kh) * KW;
                for (int kw = 0; kw < KW; kw++) {
                    const int i = iw0 + kw * DW;
                    const real4 k = READ4(weight, nearest, (int2)(first + kw, block));
                    TERM(0, k, LOAD(row, i))
                    TERM(1, k, LOAD(row, i + apart))
                }
                if (FULL(KW)) {
                    END(0) END(1)
                }
            }
        }
    }
    END(0) END(1)
    STORE4(ow, a0)
    STORE4(second, a1)
}
