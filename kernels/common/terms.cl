/* How sums of products are computed: this source precedes the kernels that use TERM, and conv_panel
 * with -DHALF_MATH.
 *
 * Sums a0, a1 ... are floats; weights are floats, or halves with -DHALF.
 *
 * HALF_MATH: operands, products and sums p0, p1 ... of at most 16 of them are halves; these are
 * then added to the float sums, so that the rounding error grows with 16 terms only.
 *
 * HALF_EMULATED, where the device lacks cl_khr_fp16: floats, with each result rounded to a half;
 * products are rounded separately, the least precise form that mad() allows. */

#ifdef HALF
#define STORED half
/* Offset in halves of a weight's place in floats. */
#define STORED_AT(at) (2 * (at))
#else
#define STORED float
/* Offset of a weight's place in floats. */
#define STORED_AT(at) (at)
#endif

#ifndef HALF_MATH
#define real4 float4
#ifdef HALF
/* Four stored weights from 4 i on, widened. */
#define WEIGHT4(p, i) vload_half4(i, p)
#else
/* Four stored weights from 4 i on. */
#define WEIGHT4(p, i) (((__global const float4 *)(p))[i])
#endif
#define READ4 read_imagef
#define TERMS
/* Begins the partial sum i. */
#define BEGIN(i)
/* Adds k * v to sum i. */
#define TERM(i, k, v) a##i = MAD(k, (float4)(v), a##i);
/* True where partial sums must be moved on, after n more terms. */
#define FULL(n) 0
/* Moves the partial sum to the sum. */
#define END(i)
#else

#define MOST_TERMS 16 /* CNR_F16_TERMS of cnnrun/kernel.h */

#ifdef HALF_EMULATED
/* Types and arithmetic of halves, computed in float. */
#define OF(n)                                                                                       \
    typedef float##n real##n;                                                                       \
    float##n __attribute__((overloadable)) rounded(float##n v) {                                    \
        ushort##n bits;                                                                             \
        vstore_half##n##_rte(v, 0, (half *)&bits);                                                  \
        return vload_half##n(0, (const half *)&bits);                                               \
    }                                                                                               \
    float##n __attribute__((overloadable)) widened(float##n v) { return v; }                        \
    float##n __attribute__((overloadable)) multiply_add(float##n a, float##n b, float##n c) {       \
        return rounded(rounded(a * b) + c);                                                         \
    }
/* Weight i of p, widened. */
#define WEIGHT1(p, i) vload_half(i, p)
/* Four weights from 4 i on, widened. */
#define WEIGHT4(p, i) vload_half4(i, p)
#define READ4 read_imagef
#else
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
/* Types and arithmetic of halves. */
#define OF(n)                                                                                       \
    typedef half##n real##n;                                                                        \
    half##n __attribute__((overloadable)) rounded(float##n v) { return convert_half##n(v); }        \
    float##n __attribute__((overloadable)) widened(half##n v) { return convert_float##n(v); }       \
    half##n __attribute__((overloadable)) multiply_add(half##n a, half##n b, half##n c) {           \
        return MAD(a, b, c);                                                                        \
    }
/* Weight i of p, a half. */
#define WEIGHT1(p, i) (p)[i]
/* Four weights from 4 i on, halves. */
#define WEIGHT4(p, i) vload4(i, p)
#define READ4 read_imageh
#endif
OF()
OF(4)
OF(8)
OF(16)
#undef OF

/* For four at once: TERM of sum i; whether n more terms would exceed the limit; the final sums. */
#define TERMS int terms = 0;
/* Begins the partial sum i, in halves. */
#define BEGIN(i) real4 p##i = (real4)(0);
/* Adds k times v, as halves, to partial sum i. */
#define TERM(i, k, v) p##i = multiply_add(k, (real4)(rounded(v)), p##i);
/* 1 if n more terms would be too many for a partial sum, which begins anew then. */
#define FULL(n) ((terms += (n)) > MOST_TERMS - (n) && ((terms = 0), 1))
/* Adds partial sum i to the float sum, and clears it. */
#define END(i)                                                                                      \
    a##i += widened(p##i);                                                                          \
    p##i = (real4)(0);
#endif

#ifdef PROBE /* tests whether a device computes as it claims */
__kernel void probe(__global const half *k, __global float4 *a) {
    float4 a0 = a[0];
    BEGIN(0)
    TERM(0, WEIGHT4(k, 0), a0.s0)
    END(0)
    a[0] = a0;
}
#ifdef __IMAGE_SUPPORT__
__constant sampler_t plain = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
__kernel void probe_image(__read_only image2d_t image, __global float4 *a) {
    float4 a0 = a[0];
    BEGIN(0)
    TERM(0, READ4(image, plain, (int2)(0, 0)), a0.s0)
    END(0)
    a[0] = a0;
}
#endif
#endif
