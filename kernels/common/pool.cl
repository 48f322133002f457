/* The maximum (MAX) or the mean of each window: one output for each work-item. */

__kernel void pool(__global const float *x, int x_at, __global float *y, int y_at, int16 shape,
                   int16 range, int16 window, int4 ends CHAIN_PARAMETERS) {
    const int D = shape.s2, H = shape.s3, W = shape.s4;
    const int OD = shape.s5, OH = shape.s6, OW = shape.s7, C = shape.s8;
    const int ND = range.s3, NH = range.s4, NW = range.s5;
    const int at = get_global_id(0), c = range.s7 + get_global_id(1);
    const int n = range.s9 + get_global_id(2);
    if (at >= ND * NH * NW) return;
    const int ow = range.s2 + at % NW, oh = range.s1 + at / NW % NH, od = range.s0 + at / NW / NH;
    const int d0 = od * window.s3 - shape.sb, h0 = oh * window.s4 - shape.sc;
    const int w0 = ow * window.s5 - shape.sd;
    __global const float *plane = x + x_at + (n * C + c) * D * H * W;
#ifdef MAX
    float value = -INFINITY;
#else
    float value = 0.0f;
    int many = 0;
#endif
    for (int kd = 0; kd < window.s0; kd++)
        for (int kh = 0; kh < window.s1; kh++)
            for (int kw = 0; kw < window.s2; kw++) {
                const int id = d0 + kd * window.s6, ih = h0 + kh * window.s7;
                const int iw = w0 + kw * window.s8;
#ifndef MAX
                /* positions beyond the edge due to rounding up are not padding */
                if (ends.s3 && id < D + ends.s0 && ih < H + ends.s1 && iw < W + ends.s2) many++;
#endif
                if ((uint)id >= (uint)D || (uint)ih >= (uint)H || (uint)iw >= (uint)W) continue;
                const float v = plane[(id * H + ih) * W + iw];
#ifdef MAX
                if (!(v <= value) && value == value) value = v; /* NaN stays */
#else
                value += v;
                if (!ends.s3) many++;
#endif
            }
#ifndef MAX
    value = many > 0 ? value / many : 0.0f;
#endif
    const int to = ((n * C + c) * OD + od) * OH * OW + oh * OW + ow;
    y[y_at + to] = chain(value, to CHAIN_PASS);
}
