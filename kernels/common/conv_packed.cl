/* Convolution with packed weights [block of 4 channels][channel in][tap][4]: a work-item holds four
 * channels of some pixels in registers and stages nothing in local memory, which is main memory on
 * some GPUs. From a buffer, it has four adjacent pixels. With -DIMAGE, weights are an image of RGBA
 * pixels, a row for each block of channels, read through the texture cache; then it has two pixels
 * half a row of work-items apart, so that adjacent work-items read adjacent memory. Built with the
 * window KD KH KW, strides SD SH SW, dilations DD DH DW. */

#ifdef IMAGE
__constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
#define WEIGHTS __read_only image2d_t weight
/* Four weights of channel block `block`, as step i of the image has them. */
#define WEIGHT(i) READ4(weight, nearest, (int2)(i, block))
/* Calls `what` for each pixel of the work-item. */
#define ALL(what) what(0) what(1)
#define BESIDE 1
#define APART NW
#else
#define WEIGHTS __global const STORED *weight, int weight_at
/* Four weights of step i of channel block `block`. */
#define WEIGHT(i) WEIGHT4(weight + STORED_AT(weight_at) + block * CG * (KD * KH * KW) * 4, i)
/* Calls `what` for each pixel of the work-item. */
#define ALL(what) what(0) what(1) what(2) what(3)
#define BESIDE 4 /* adjacent pixels of a work-item, and the distance of its pixels */
#define APART 1
#endif
/* A pixel of a row; 0 outside of it. */
#define LOAD(row, i) ((uint)(i) < (uint)W ? (row)[i] : 0.0f)
/* Writes the sum of pixel p and channel q, after the epilogue, if both are wanted. */
#define STORE(p, q, value)                                                               \
    if (ow + p * APART < w1 && m + q >= c0 && m + q < m1) {                              \
        const int to = ((n * M + m + q) * OD + od) * OH * OW + oh * OW + ow + p * APART; \
        y[y_at + to] = chain(value, to CHAIN_PASS);                                      \
    }
/* Writes the four channels of pixel p. */
#define STORE4(p) STORE(p, 0, a##p.s0) STORE(p, 1, a##p.s1) STORE(p, 2, a##p.s2) STORE(p, 3, a##p.s3)
/* Begins the sums of pixel p. */
#define SUM(p) float4 a##p = begin;
/* Adds a term to the sums of pixel p. */
#define PIXEL(p) TERM(p, k, LOAD(row, i + p * APART * SW))

__kernel void conv_packed(__global const float *x, int x_at, WEIGHTS, __global const float *bias,
                          int bias_at, __global float *y, int y_at, int16 shape,
                          int16 range CHAIN_PARAMETERS) {
    const int C = shape.s0, CG = shape.s1, D = shape.s2, H = shape.s3, W = shape.s4;
    const int OD = shape.s5, OH = shape.s6, OW = shape.s7, M = shape.s8, MG = shape.s9;
    const int BLOCKS = shape.sa;
    const int ND = range.s3, NH = range.s4, NW = range.s5, w1 = range.s6, c0 = range.s7;
    const int at = get_global_id(0), block = range.sa + get_global_id(1);
    const int n = range.s9 + get_global_id(2);
    if (at >= ND * NH * NW) return;
    const int ow = range.s2 + at % NW * BESIDE, oh = range.s1 + at / NW % NH;
    const int od = range.s0 + at / NW / NH;
    const int group = block / BLOCKS, m = group * MG + block % BLOCKS * 4;
    const int m1 = min(range.s8, (group + 1) * MG);
    float4 begin = 0.0f;
    if (shape.se) {
        if (m < M) begin.s0 = bias[bias_at + m];
        if (m + 1 < M) begin.s1 = bias[bias_at + m + 1];
        if (m + 2 < M) begin.s2 = bias[bias_at + m + 2];
        if (m + 3 < M) begin.s3 = bias[bias_at + m + 3];
    }
    __global const float *plane = x + x_at + (n * C + group * CG) * D * H * W;
    const int id0 = od * SD - shape.sb, ih0 = oh * SH - shape.sc, iw0 = ow * SW - shape.sd;
    int tap = 0;
    ALL(SUM)
    TERMS
    ALL(BEGIN)
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
                    const real4 k = WEIGHT(first + kw);
                    ALL(PIXEL)
                }
                if (FULL(KW)) {
                    ALL(END)
                }
            }
        }
    }
    ALL(END)
    ALL(STORE4)
}
