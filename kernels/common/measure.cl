/* Benchmarks of a device: multiply-adds in registers, reading, copying. */

#ifdef PROCESSOR /* a work-item is a loop on a core: wide vectors, and a contiguous range of memory */
typedef float16 vec;
/* Four sums of a vector's elements. */
#define LEVEL(v) ((v).lo.lo + (v).lo.hi + (v).hi.lo + (v).hi.hi)
/* Loop over this work-item's share. */
#define EACH(i) for (int i = get_global_id(0) * each, end = min(count, i + each); i < end; i++)
#else /* adjacent work-items read adjacent memory */
typedef float4 vec;
/* The vector's elements. */
#define LEVEL(v) (v)
/* Loop over this work-item's share. */
#define EACH(i) for (int i = get_global_id(0); i < count; i += get_global_size(0))
#endif

/* 8 independent chains hide the latency; `many` rounds of 8 multiply-adds of a vector each. */
__kernel void measure_fma(__global float *y, int y_at, int many, float from, float by) {
    const float seed = get_global_id(0) * 1e-6f;
    const vec a = from, b = by;
    vec s0 = seed, s1 = seed + 1, s2 = seed + 2, s3 = seed + 3, s4 = seed + 4, s5 = seed + 5;
    vec s6 = seed + 6, s7 = seed + 7;
    for (int i = 0; i < many; i++) {
        s0 = MAD(s0, a, b);
        s1 = MAD(s1, a, b);
        s2 = MAD(s2, a, b);
        s3 = MAD(s3, a, b);
        s4 = MAD(s4, a, b);
        s5 = MAD(s5, a, b);
        s6 = MAD(s6, a, b);
        s7 = MAD(s7, a, b);
    }
    const vec all = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
    const float4 s = LEVEL(all);
    y[y_at + get_global_id(0)] = s.s0 + s.s1 + s.s2 + s.s3;
}

__kernel void measure_read(__global const float4 *x, int x_at, __global float *y, int y_at, int each,
                           int count) {
    float4 sum = 0.0f;
    EACH(i) sum += x[x_at / 4 + i];
    y[y_at + get_global_id(0)] = sum.s0 + sum.s1 + sum.s2 + sum.s3;
}

__kernel void measure_copy(__global const float4 *x, int x_at, __global float4 *y, int y_at, int each,
                           int count) {
    EACH(i) y[y_at / 4 + i] = x[x_at / 4 + i];
}

__kernel void measure_launch(__global float *y, int y_at) {
    if (get_global_id(0) == 0) y[y_at] = 0.0f;
}
