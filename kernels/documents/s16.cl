/* The steps of the product of matrices of S16 (thesis of 2016, sections 3.2 and 3.3) and WX18 on an Adreno 330.
 *
 * C (M x N) = A (M x K) * B (K x N). A, B and C lie in column-major order, as MXNet gives them; from `rows` on A is
 * stored anew in row-major order. Work-groups are the documents' {1, 32} with the two dimensions exchanged. */

/* Section 3.2, groups of {1,1}: a work-item an element. size: M, N, K, whether there is D, which is added by `steps`. */
__kernel void naive(__global const float *a, int a_at, __global const float *b, int b_at, __global const float *d,
                    int d_at, __global float *c, int c_at, int4 size, int2 steps) {
    const int i = get_global_id(0), j = get_global_id(1), M = size.s0, K = size.s2;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += a[a_at + k * M + i] * b[b_at + j * K + k];
    if (size.s3) sum += d[d_at + i * steps.s0 + j * steps.s1];
    c[c_at + j * M + i] = sum;
}

/* Section 3.3: a column-major matrix with zeros up to multiples of 32; size: rows and columns, of it and of the new one. */
__kernel void pad(__global const float *from, int from_at, __global float *to, int to_at, int4 size) {
    const int i = get_global_id(0), j = get_global_id(1);
    if (i >= size.s2) return;
    to[to_at + j * size.s2 + i] = i < size.s0 && j < size.s1 ? from[from_at + j * size.s0 + i] : 0.0f;
}

/* The same, and stored in row-major order. */
__kernel void pad_rows(__global const float *from, int from_at, __global float *to, int to_at, int4 size) {
    const int j = get_global_id(0), i = get_global_id(1);
    if (j >= size.s3) return;
    to[to_at + i * size.s3 + j] = i < size.s0 && j < size.s1 ? from[from_at + j * size.s0 + i] : 0.0f;
}

/* The result without padding, with D added. size: rows and columns, padded rows, whether there is D. */
__kernel void cut(__global const float *from, int from_at, __global const float *d, int d_at, __global float *to,
                  int to_at, int4 size, int2 steps) {
    const int i = get_global_id(0), j = get_global_id(1);
    if (i >= size.s0) return;
    float value = from[from_at + j * size.s2 + i];
    if (size.s3) value += d[d_at + i * steps.s0 + j * steps.s1];
    to[to_at + j * size.s0 + i] = value;
}

/* Padded, no branch left; groups of {1,1}. size: padded M, N, K. */
__kernel void padded(__global const float *a, int a_at, __global const float *b, int b_at, __global float *c,
                     int c_at, int4 size) {
    const int i = get_global_id(0), j = get_global_id(1), M = size.s0, K = size.s2;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += a[a_at + k * M + i] * b[b_at + j * K + k];
    c[c_at + j * M + i] = sum;
}

/* A in row-major order. */
__kernel void rows(__global const float *a, int a_at, __global const float *b, int b_at, __global float *c, int c_at,
                   int4 size) {
    const int i = get_global_id(0), j = get_global_id(1), M = size.s0, K = size.s2;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += a[a_at + i * K + k] * b[b_at + j * K + k];
    c[c_at + j * M + i] = sum;
}

/* Section 3.3.1: groups of {1,32}, a tile of 32 x 32 each; a work-item computes one column of it, 32 elements. */
__attribute__((reqd_work_group_size(32, 1, 1)))
__kernel void tiles(__global const float *a, int a_at, __global const float *b, int b_at, __global float *c, int c_at,
                    int4 size) {
    const int j = get_global_id(0), first = get_global_id(1) * 32, M = size.s0, K = size.s2;
    float sum[32];
    for (int i = 0; i < 32; i++) sum[i] = 0.0f;
    for (int k = 0; k < K; k++) {
        const float one = b[b_at + j * K + k];
        for (int i = 0; i < 32; i++) sum[i] += a[a_at + (first + i) * K + k] * one;
    }
    for (int i = 0; i < 32; i++) c[c_at + j * M + first + i] = sum[i];
}

/* Sections 3.3.2 and 3.3.3: both tiles come through local memory, 4 KiB each: numbers are loaded one by one, or with
 * WIDE 4 as float4 (figure 3.5); the loop over a tile's terms has its body UNROLL times. */
#define TERM(u) sum[i] += sub_a[i][k + u] * sub_b[id][k + u];
#if UNROLL == 8
#define TERMS TERM(0) TERM(1) TERM(2) TERM(3) TERM(4) TERM(5) TERM(6) TERM(7)
#else
#define TERMS TERM(0)
#endif

__attribute__((reqd_work_group_size(32, 1, 1)))
__kernel void local_tiles(__global const float *a, int a_at, __global const float *b, int b_at, __global float *c,
                          int c_at, int4 size) {
    __local float sub_a[32][32], sub_b[32][32];
    const int id = get_local_id(0), j = get_global_id(0), first = get_global_id(1) * 32;
    const int M = size.s0, K = size.s2;
    float sum[32];
    for (int i = 0; i < 32; i++) sum[i] = 0.0f;
    a += a_at + (first + id) * K;
    b += b_at + j * K;
    for (int t = 0; t < K; t += 32) {
#if WIDE == 4
        for (int k = 0; k < 32; k += 4) {
            vstore4(vload4(0, a + t + k), 0, &sub_a[id][k]);
            vstore4(vload4(0, b + t + k), 0, &sub_b[id][k]);
        }
#else
        for (int k = 0; k < 32; k++) {
            sub_a[id][k] = a[t + k];
            sub_b[id][k] = b[t + k];
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < 32; i++)
            for (int k = 0; k < 32; k += UNROLL) { TERMS }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c += c_at + j * M + first;
#if WIDE == 4
    for (int i = 0; i < 32; i += 4) vstore4((float4)(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]), 0, c + i);
#else
    for (int i = 0; i < 32; i++) c[i] = sum[i];
#endif
}
