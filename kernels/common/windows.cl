/* Windows of a grey picture, int32 x, y, width, height: their variance by integral images, their
 * votes by random ferns. A window is shifted and cut to lie within the picture, as in the
 * operators' references. */
#pragma OPENCL FP_CONTRACT OFF

#define LINE 128

/* A window (x, y, width, height) cut to the picture. */
int4 within(int4 v, int w, int h) {
    const int x = clamp(v.x, 0, w), y = clamp(v.y, 0, h);
    return (int4)(x, y, clamp(v.z, 0, w - x), clamp(v.w, 0, h - y));
}

/* One row for each work-group: each work-item sums a piece, then adds the sum of the pieces before
 * it. The integral image has a row and a column of zeros first. */
__kernel void sum_rows(__global const uchar *x, int x_at, __global ulong *squares, int squares_at, int w,
                       int h) {
    __local uint part[LINE], part2[LINE];
    const int i = get_local_id(0), n = get_local_size(0), y = get_global_id(1), wide = w + 1;
    const int begin = (int)((long)w * i / n), end = (int)((long)w * (i + 1) / n);
    __global const uchar *row = x + 4 * x_at + y * w;
    __global ulong *q = squares + squares_at / 2 + (y + 1) * wide;
    __global uint *s = (__global uint *)(squares + squares_at / 2 + (h + 1) * wide) + (y + 1) * wide;
    uint a = 0, b = 0;
    for (int k = begin; k < end; k++) {
        const uint v = row[k];
        a += v;
        b += v * v;
    }
    part[i] = a;
    part2[i] = b;
    barrier(CLK_LOCAL_MEM_FENCE);
    a = b = 0;
    for (int k = 0; k < i; k++) {
        a += part[k];
        b += part2[k];
    }
    if (i == 0) s[0] = q[0] = 0;
    for (int k = begin; k < end; k++) {
        const uint v = row[k];
        a += v;
        b += v * v;
        s[k + 1] = a;
        q[k + 1] = b;
    }
}

/* One column for each work-item, downwards. */
__kernel void sum_columns(__global ulong *squares, int squares_at, int w, int h) {
    const int c = get_global_id(0), wide = w + 1;
    if (c >= wide) return;
    __global ulong *q = squares + squares_at / 2 + c;
    __global uint *s = (__global uint *)(squares + squares_at / 2 + (h + 1) * wide) + c;
    uint a = 0;
    ulong b = 0;
    s[0] = q[0] = 0;
    for (int y = 1; y <= h; y++) {
        a += s[y * wide];
        b += q[y * wide];
        s[y * wide] = a;
        q[y * wide] = b;
    }
}

/* n * squares - sum * sum is computed in integers, so nothing cancels before the conversion to
 * float. */
__kernel void window_variance(__global const ulong *squares, int squares_at, __global const int *windows,
                              int windows_at, __global float *out, int out_at, int w, int h, int begin,
                              int end) {
    const int i = begin + get_global_id(0), wide = w + 1;
    if (i >= end) return;
    const int4 v = within(vload4(i, windows + windows_at), w, h);
    __global const ulong *q = squares + squares_at / 2;
    __global const uint *s = (__global const uint *)(q + (h + 1) * wide);
    const int a = v.y * wide + v.x, b = a + v.z, c = a + v.w * wide, d = c + v.z;
    const ulong n = (ulong)v.z * (ulong)v.w, sum = s[d] - s[c] - s[b] + s[a];
    const ulong sum2 = q[d] - q[c] - q[b] + q[a];
    out[out_at + i] = n > 0 ? (float)(n * sum2 - sum * sum) / ((float)n * (float)n) : 0.0f;
}

/* The pixel at a point (px, py), 0 to 1, of window v of a picture that is w pixels wide. */
uchar seen(__global const uchar *x, int w, int4 v, float px, float py) {
    const float fx = fmin(fmax(px, 0.0f), 1.0f) * (float)(v.z - 1);
    const float fy = fmin(fmax(py, 0.0f), 1.0f) * (float)(v.w - 1);
    return x[(v.y + (int)floor(fy + 0.5f)) * w + v.x + (int)floor(fx + 0.5f)];
}

/* One window for each work-item; adjacent work-items read adjacent pixels. gated 0: no gate. */
__kernel void random_ferns(__global const uchar *x, int x_at, __global const int *windows, int windows_at,
                           __global const float *points, int points_at, __global const float *posteriors,
                           int posteriors_at, __global const float *gate, int gate_at, __global float *out,
                           int out_at, int4 size, int4 ferns, float least) {
    const int w = size.x, h = size.y, i = size.z + get_global_id(0), codes = ferns.z;
    if (i >= size.w) return;
    const int4 v = within(vload4(i, windows + windows_at), w, h);
    const bool dropped = v.z < 1 || v.w < 1 || (ferns.w && gate[gate_at + i] < least);
    float sum = 0.0f;
    x += 4 * x_at;
    posteriors += posteriors_at;
    for (int f = 0; f < ferns.x && !dropped; f++, posteriors += codes) {
        int code = 0;
        for (int b = 0; b < ferns.y; b++) {
            const float4 p = vload4(f * ferns.y + b, points + points_at);
            code = 2 * code + (seen(x, w, v, p.x, p.y) > seen(x, w, v, p.z, p.w));
        }
        sum += posteriors[code % codes];
    }
    out[out_at + i] = sum / (float)ferns.x;
}
