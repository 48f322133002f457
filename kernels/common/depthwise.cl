/* Depthwise convolution: four pixels of a row for each work-item. Built with the window KD KH KW,
 * strides SD SH SW, dilations DD DH DW. */

/* A pixel of a row; 0 outside of it. */
#define LOAD(row, i) ((uint)(i) < (uint)W ? (row)[i] : 0.0f)
/* Writes the sum of pixel p, after the epilogue, if it is wanted. */
#define STORE(p, value)                                                         \
    if (ow + p < range.s6) {                                                    \
        const int to = ((n * M + m) * OD + od) * OH * OW + oh * OW + ow + p;    \
        y[y_at + to] = chain(value, to CHAIN_PASS);                             \
    }

__kernel void depthwise(__global const float *x, int x_at, __global const float *weight,
                        int weight_at, __global const float *bias, int bias_at,
                        __global float *y, int y_at, int16 shape, int16 range CHAIN_PARAMETERS) {
    const int C = shape.s0, D = shape.s2, H = shape.s3, W = shape.s4;
    const int OD = shape.s5, OH = shape.s6, OW = shape.s7, M = shape.s8, MG = shape.s9;
    const int ND = range.s3, NH = range.s4, NW = range.s5;
    const int at = get_global_id(0), m = range.s7 + get_global_id(1);
    const int n = range.s9 + get_global_id(2);
    if (at >= ND * NH * NW) return;
    const int ow = range.s2 + at % NW * 4, oh = range.s1 + at / NW % NH;
    const int od = range.s0 + at / NW / NH;
    __global const float *plane = x + x_at + (n * C + m / MG) * D * H * W;
    __global const float *tap = weight + weight_at + m * (KD * KH * KW);
    const float first = shape.se ? bias[bias_at + m] : 0.0f;
    float a0 = first, a1 = first, a2 = first, a3 = first;
    for (int kd = 0; kd < KD; kd++) {
        const int id = od * SD - shape.sb + kd * DD;
        if ((uint)id >= (uint)D) continue;
        for (int kh = 0; kh < KH; kh++) {
            const int ih = oh * SH - shape.sc + kh * DH;
            if ((uint)ih >= (uint)H) continue;
            __global const float *row = plane + (id * H + ih) * W;
            for (int kw = 0; kw < KW; kw++) {
                const int i = ow * SW - shape.sd + kw * DW;
                const float k = tap[(kd * KH + kh) * KW + kw];
                a0 = MAD(k, LOAD(row, i), a0);
                a1 = MAD(k, LOAD(row, i + SW), a1);
                a2 = MAD(k, LOAD(row, i + 2 * SW), a2);
                a3 = MAD(k, LOAD(row, i + 3 * SW), a3);
            }
        }
    }
    STORE(0, a0)
    STORE(1, a1)
    STORE(2, a2)
    STORE(3, a3)
}
