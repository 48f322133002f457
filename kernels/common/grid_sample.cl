/* Samples planes at points, with bilinear interpolation: one result for each work-item. Built with
 * ZEROS if the outside counts as 0 (else as the nearest edge), ALIGN if -1 and 1 are the centres of
 * corner pixels. */

/* The pixel position of the grid's coordinate g, -1 to 1, along an axis of `size` pixels, after the
 * padding's rule. */
float position(float g, int size) {
#ifdef ALIGN
    float v = MAD(g, 0.5f * (size - 1), 0.5f * (size - 1));
#else
    float v = MAD(g, 0.5f * size, 0.5f * (size - 1));
#endif
    if (!(fabs(v) < 1e9f)) v = v < 0 ? -2.0f - size : 2.0f * size + 2; /* far outside, or NaN */
#ifndef ZEROS
    v = clamp(v, 0.0f, size - 1.0f);
#endif
    return v;
}

/* Adds a pixel with its weight, if it lies in the picture. */
#define TAP(r, c, weight)                                         \
    if ((uint)(r) < (uint)in.s0 && (uint)(c) < (uint)in.s1)       \
        sum = MAD((weight), from[(r) * in.s1 + (c)], sum);

__kernel void grid_sample(__global const float *x, int x_at, __global const float *grid, int grid_at,
                          __global float *y, int y_at, int4 in) {
    const int point = get_global_id(0), channel = get_global_id(1), image = get_global_id(2);
    const int channels = in.s2, points = in.s3;
    if (point >= points) return;
    __global const float *where = grid + grid_at + (image * points + point) * 2;
    __global const float *from = x + x_at + (image * channels + channel) * in.s0 * in.s1;
    const float w = position(where[0], in.s1), h = position(where[1], in.s0);
    const int left = (int)floor(w), top = (int)floor(h);
    const float u = w - left, t = h - top;
    float sum = 0.0f;
    TAP(top, left, (1 - t) * (1 - u))
    TAP(top, left + 1, (1 - t) * u)
    TAP(top + 1, left, t * (1 - u))
    TAP(top + 1, left + 1, t * u)
    y[y_at + (image * channels + channel) * points + point] = sum;
}
