/* x / (bias + scale * sum of squares) ^ beta: over adjacent channels (lrn), or over adjacent pixels
 * of the same channel (lrn_within). Neighbours beyond an edge count as 0. factors: scale, beta,
 * bias. */

/* x divided by the power of its window's sum of squares. */
static float normalised(float x, float sum, float4 factors) {
    const float base = MAD(factors.s0, sum, factors.s2);
#ifdef THREE_QUARTERS /* the exponent that nets use; on some devices pow takes a hundred times as long as a root */
    /* like pow; other negative bases give NaN */
    const float size = base == -INFINITY ? INFINITY : base;
    return x / (sqrt(size) * sqrt(sqrt(size)));
#else
    return x / pow(base, factors.s1); /* multiplying by pow(base, -beta) would overflow earlier */
#endif
}

__kernel void lrn(__global const float *x, int x_at, __global float *y, int y_at, int8 shape,
                  float4 factors CHAIN_PARAMETERS) {
    const int inner = shape.s0, channels = shape.s1, below = shape.s2, above = shape.s3;
    const int c = shape.s4 + get_global_id(1), n = shape.s5 + get_global_id(2);
    const int i = get_global_id(0);
    if (i >= inner) return;
    __global const float *from = x + x_at + n * channels * inner + i;
    const int last = min(channels - 1, c + above);
    float sum = 0.0f;
    for (int k = max(0, c - below); k <= last; k++)
        sum = MAD(from[k * inner], from[k * inner], sum);
    const int to = (n * channels + c) * inner + i;
    y[y_at + to] = chain(normalised(from[c * inner], sum, factors), to CHAIN_PASS);
}

__kernel void lrn_within(__global const float *x, int x_at, __global float *y, int y_at, int8 shape,
                         float4 factors CHAIN_PARAMETERS) {
    const int H = shape.s0, W = shape.s1, half_size = shape.s2, at = shape.s3 + get_global_id(0);
    if (at >= shape.s4) return;
    const int w = at % W, h = at / W % H;
    __global const float *plane = x + x_at + at / W / H * H * W;
    float sum = 0.0f;
    for (int ih = max(0, h - half_size); ih <= min(H - 1, h + half_size); ih++)
        for (int iw = max(0, w - half_size); iw <= min(W - 1, w + half_size); iw++)
            sum = MAD(plane[ih * W + iw], plane[ih * W + iw], sum);
    y[y_at + at] = chain(normalised(x[x_at + at], sum, factors), at CHAIN_PASS);
}
