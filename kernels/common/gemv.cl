/* Products of a constant matrix with few vectors: a work-group of LINE items has OUT rows of the
 * matrix, and reads each once for SAMPLES vectors, VW elements a load. With one item in a group
 * there is no reduction and no local memory. The matrix is packed [row][PITCH]; PITCH is a multiple
 * of 16. ALIGNED: so is the length of the vectors. */

#if VW == 16
typedef float16 vec;
/* A vector of 16 floats from memory at p. */
#define LOAD(p) vload16(0, p)
/* Four sums of a vector's 16 elements. */
#define LEVEL(v) ((v).lo.lo + (v).lo.hi + (v).hi.lo + (v).hi.hi)
#elif VW == 8
typedef float8 vec;
/* A vector of 8 floats from memory at p. */
#define LOAD(p) vload8(0, p)
/* Four sums of a vector's elements. */
#define LEVEL(v) ((v).lo + (v).hi)
#else
typedef float4 vec;
/* A vector of 4 floats from memory at p. */
#define LOAD(p) vload4(0, p)
/* The vector's elements. */
#define LEVEL(v) (v)
#endif
#ifdef ALIGNED
/* A vector of x, whose rows are aligned. */
#define LOAD_X(p) (*(__global const vec *)(p))
#else
/* A vector of x. */
#define LOAD_X(p) LOAD(p)
#endif
#ifdef HALF /* of the matrix; sums are floats */
typedef half stored;
/* Offset in halves of a place in floats. */
#define STORED_AT(at) (2 * (at))
/* Joins two words, as written. */
#define JOIN(a, b) a##b
/* The name of vload_half for n. */
#define VLOAD_HALF(n) JOIN(vload_half, n)
/* A vector of weights, widened. */
#define LOAD_W(p) VLOAD_HALF(VW)(0, p)
/* Weight i, widened. */
#define ONE(p, i) vload_half(i, p)
#else
typedef float stored;
/* Offset of a place in floats. */
#define STORED_AT(at) (at)
/* A vector of weights. */
#define LOAD_W(p) (*(__global const vec *)(p))
/* Weight i. */
#define ONE(p, i) (p)[i]
#endif
#define MANY (OUT * SAMPLES)

/* Sum of a vector's elements. */
float level(vec v) {
    const float4 q = LEVEL(v);
    return (q.s0 + q.s1) + (q.s2 + q.s3);
}

__attribute__((reqd_work_group_size(LINE, 1, 1)))
__kernel void gemv(__global const float *x, int x_at, __global const stored *weight, int weight_at,
                   __global const float *bias, int bias_at, __global float *y, int y_at, int8 range,
                   int4 shape CHAIN_PARAMETERS) {
    const int K = shape.s0, N = shape.s1, PITCH = shape.s3, id = get_local_id(0);
    const int row0 = range.s0 + get_global_id(1) * SAMPLES, out0 = range.s2 + get_group_id(0) * OUT;
    __global const stored *w[OUT];
    __global const float *v[SAMPLES];
    vec sum[OUT][SAMPLES];
#pragma unroll
    for (int i = 0; i < OUT; i++) w[i] = weight + STORED_AT(weight_at) + min(out0 + i, N - 1) * PITCH;
#pragma unroll
    for (int r = 0; r < SAMPLES; r++) v[r] = x + x_at + min(row0 + r, range.s1 - 1) * K;
#pragma unroll
    for (int i = 0; i < OUT; i++)
#pragma unroll
        for (int r = 0; r < SAMPLES; r++) sum[i][r] = 0.0f;
    const int whole = K / VW * VW;
    for (int k = id * VW; k < whole; k += LINE * VW) {
        vec q[SAMPLES];
#pragma unroll
        for (int r = 0; r < SAMPLES; r++) q[r] = LOAD_X(v[r] + k);
#pragma unroll
        for (int i = 0; i < OUT; i++) {
            const vec m = LOAD_W(w[i] + k);
#pragma unroll
            for (int r = 0; r < SAMPLES; r++) sum[i][r] = MAD(m, q[r], sum[i][r]);
        }
    }
#if LINE > 1
    __local float part[MANY][LINE];
#endif
#pragma unroll
    for (int i = 0; i < OUT; i++)
#pragma unroll
        for (int r = 0; r < SAMPLES; r++) {
            float one = level(sum[i][r]);
            for (int k = whole + id; k < K; k += LINE) one = MAD(ONE(w[i], k), v[r][k], one);
#if LINE > 1
            part[i * SAMPLES + r][id] = one;
        }
    for (int apart = LINE / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < apart)
            for (int i = 0; i < MANY; i++) part[i][id] += part[i][id + apart];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int at = id; at < MANY; at += LINE) {
        const int i = at / SAMPLES, r = at % SAMPLES;
        const float one = part[at][0];
#else
#endif
            const int j = out0 + i, n = row0 + r;
            if (j >= range.s3 || n >= range.s1) continue;
            const int to = n * N + j;
            y[y_at + to] = chain(shape.s2 ? one + bias[bias_at + j] : one, to CHAIN_PASS);
#if LINE > 1
    }
#else
        }
#endif
}
