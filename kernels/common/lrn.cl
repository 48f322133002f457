/* x / (bias + scale * sum of squares over neighbouring channels) ^ beta. */

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
    const float base = MAD(factors.s0, sum, factors.s2);
#ifdef THREE_QUARTERS /* what nets have; pow is a hundred times a root on some devices */
    const float value = from[c * inner] / (sqrt(base) * sqrt(sqrt(base)));
#else
    const float value = from[c * inner] * pow(base, -factors.s1);
#endif
    y[y_at + to] = chain(value, to CHAIN_PASS);
}
