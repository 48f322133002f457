/* Convolution of any kind, with weights in the tensor's own layout: one output for each
 * work-item. */

__kernel void conv_plain(__global const float *x, int x_at, __global const float *weight,
                         int weight_at, __global const float *bias, int bias_at,
                         __global float *y, int y_at, int16 shape, int16 range,
                         int16 window CHAIN_PARAMETERS) {
    const int C = shape.s0, CG = shape.s1, D = shape.s2, H = shape.s3, W = shape.s4;
    const int OD = shape.s5, OH = shape.s6, OW = shape.s7, M = shape.s8, MG = shape.s9;
    const int KD = window.s0, KH = window.s1, KW = window.s2;
    const int ND = range.s3, NH = range.s4, NW = range.s5;
    const int at = get_global_id(0), m = range.s7 + get_global_id(1);
    const int n = range.s9 + get_global_id(2);
    if (at >= ND * NH * NW) return;
    const int ow = range.s2 + at % NW, oh = range.s1 + at / NW % NH, od = range.s0 + at / NW / NH;
    const int id0 = od * window.s3 - shape.sb, ih0 = oh * window.s4 - shape.sc;
    const int iw0 = ow * window.s5 - shape.sd;
    __global const float *plane = x + x_at + (n * C + m / MG * CG) * D * H * W;
    __global const float *tap = weight + weight_at + m * CG * KD * KH * KW;
    float sum = shape.se ? bias[bias_at + m] : 0.0f;
    for (int c = 0; c < CG; c++, plane += D * H * W)
        for (int kd = 0; kd < KD; kd++)
            for (int kh = 0; kh < KH; kh++, tap += KW) {
                const int id = id0 + kd * window.s6, ih = ih0 + kh * window.s7;
                if ((uint)id >= (uint)D || (uint)ih >= (uint)H) continue;
                __global const float *row = plane + (id * H + ih) * W;
                for (int kw = 0; kw < KW; kw++) {
                    const int i = iw0 + kw * window.s8;
                    if ((uint)i < (uint)W) sum = MAD(row[i], tap[kw], sum);
                }
            }
    const int to = ((n * M + m) * OD + od) * OH * OW + oh * OW + ow;
    y[y_at + to] = chain(sum, to CHAIN_PASS);
}
