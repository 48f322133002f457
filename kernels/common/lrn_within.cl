/* x / (bias + alpha * mean of squares round it in its channel, zeros past edges) ^ beta. */

__kernel void lrn_within(__global const float *x, int x_at, __global float *y, int y_at, int4 shape,
                         int2 range, float4 factors CHAIN_PARAMETERS) {
    const int H = shape.s0, W = shape.s1, half_size = shape.s2, at = range.s0 + get_global_id(0);
    if (at >= range.s1) return;
    const int w = at % W, h = at / W % H;
    __global const float *plane = x + x_at + at / W / H * H * W;
    float sum = 0.0f;
    for (int ih = max(0, h - half_size); ih <= min(H - 1, h + half_size); ih++)
        for (int iw = max(0, w - half_size); iw <= min(W - 1, w + half_size); iw++)
            sum = MAD(plane[ih * W + iw], plane[ih * W + iw], sum);
    const float base = MAD(factors.s0, sum, factors.s2);
#ifdef THREE_QUARTERS
    const float value = x[x_at + at] / (sqrt(base) * sqrt(sqrt(base)));
#else
    const float value = x[x_at + at] * pow(base, -factors.s1);
#endif
    y[y_at + at] = chain(value, at CHAIN_PASS);
}
