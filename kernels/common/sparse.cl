/* Products of a sparse matrix and vectors: slices of 16 blocks of rows, an entry of each a step, so that
 * neighbouring work-items (or the lanes of one vector) read neighbouring numbers:
 *
 *   blob: uint begin[slices + 1] | index [step][16], INDEX each | float value [step][BLOCK][16]
 *
 * A block with fewer entries than its slice has steps is filled up with weights of 0 for element 0 of x.
 * What a weight of 0 multiplies is taken as 0, since it may be infinite or NaN there.
 *
 * With LINE 1 a work-item has a slice to itself; else a work-group has, LINE / 16 steps at once. */

#define LANES 16
/* Element of x in column c. */
#define COLUMN(c) v[c]
/* Elements of x in the 16 columns of c. */
#define GATHER(c)                                                                                   \
    (float16)(COLUMN(c.s0), COLUMN(c.s1), COLUMN(c.s2), COLUMN(c.s3), COLUMN(c.s4), COLUMN(c.s5),   \
              COLUMN(c.s6), COLUMN(c.s7), COLUMN(c.s8), COLUMN(c.s9), COLUMN(c.sa), COLUMN(c.sb),   \
              COLUMN(c.sc), COLUMN(c.sd), COLUMN(c.se), COLUMN(c.sf))

__attribute__((reqd_work_group_size(LINE, 1, 1)))
__kernel void sparse(__global const float *x, int x_at, __global const uint *blob, int blob_at,
                     __global const float *bias, int bias_at, __global float *y, int y_at, int8 range,
                     int8 shape CHAIN_PARAMETERS) {
    const int K = shape.s0, N = shape.s1, slice = range.s4 + get_group_id(0);
    const int sample = range.s0 + get_global_id(1);
    __global const uint *begin = blob + blob_at;
    __global const INDEX *index = (__global const INDEX *)(begin + shape.s3);
    __global const float *value = (__global const float *)(begin + shape.s4);
    __global const float *v = x + x_at + sample * K;
    const int from = begin[slice], end = begin[slice + 1];
#if LINE == 1
    float16 sum[BLOCK];
    float part[BLOCK * LANES];
#pragma unroll
    for (int b = 0; b < BLOCK; b++) sum[b] = 0.0f;
    for (int t = from; t < end; t++) {
        const INDEX16 c = vload16(t, index);
        const float16 q = GATHER(c);
#pragma unroll
        for (int b = 0; b < BLOCK; b++) {
            const float16 w = vload16(t * BLOCK + b, value);
            sum[b] = MAD(w, select(q, 0.0f, w == 0.0f), sum[b]);
        }
    }
#pragma unroll
    for (int b = 0; b < BLOCK; b++) vstore16(sum[b], b, part);
    for (int at = 0; at < BLOCK * LANES; at++) {
        const float one = part[at];
#else
    __local float part[BLOCK * LINE];
    const int id = get_local_id(0), own = id % LANES;
    float sum[BLOCK];
#pragma unroll
    for (int b = 0; b < BLOCK; b++) sum[b] = 0.0f;
    for (int t = from + id / LANES; t < end; t += LINE / LANES) {
        const float q = v[index[t * LANES + own]];
#pragma unroll
        for (int b = 0; b < BLOCK; b++) {
            const float w = value[(t * BLOCK + b) * LANES + own];
            sum[b] = MAD(w, w == 0.0f ? 0.0f : q, sum[b]);
        }
    }
#pragma unroll
    for (int b = 0; b < BLOCK; b++) part[b * LINE + id] = sum[b];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int at = id; at < BLOCK * LANES; at += LINE) {
        float one = 0.0f;
        for (int k = at % LANES; k < LINE; k += LANES) one += part[at / LANES * LINE + k];
#endif
        const int j = (slice * LANES + at % LANES) * BLOCK + at / LANES;
        if (j < range.s2 || j >= range.s3) continue;
        const int to = sample * N + j;
        y[y_at + to] = chain(shape.s2 ? one + bias[bias_at + j] : one, to CHAIN_PASS);
    }
}
