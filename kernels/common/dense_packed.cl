/* Products with a constant matrix, packed [row of k][block of 4 outputs][4]: four outputs of ROWS
 * samples for each work-item. From a buffer, so that adjacent work-items read adjacent weights;
 * with -DIMAGE, from an image of RGBA pixels, through the texture cache. */

#ifdef IMAGE
__constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
#define WEIGHTS __read_only image2d_t weight
/* Four weights of step k, from an image. */
#define WEIGHT(k) READ4(weight, nearest, (int2)(block, (k)))
#else
#define WEIGHTS __global const STORED *weight, int weight_at
/* Four weights of step k, from a buffer. */
#define WEIGHT(k) WEIGHT4(weight + STORED_AT(weight_at), (k) * BLOCKS + block)
#endif
/* Writes output q of row i, after the epilogue, if both are wanted. */
#define STORE(i, q, value)                                             \
    if (row + i < range.s1 && j + q >= range.s2 && j + q < range.s3) { \
        const int to = (row + i) * N + j + q;                          \
        y[y_at + to] = chain(value, to CHAIN_PASS);                    \
    }
/* Writes four outputs of row i. */
#define STORE4(i) STORE(i, 0, a##i.s0) STORE(i, 1, a##i.s1) STORE(i, 2, a##i.s2) STORE(i, 3, a##i.s3)
#if ROWS == 4
/* Calls `what` for each of four rows. */
#define ALL(what) what(0) what(1) what(2) what(3)
#else
/* Calls `what` for the only row. */
#define ALL(what) what(0)
#endif
/* Begins the sums of row i. */
#define SUM(i) float4 a##i = begin;
/* Adds a term to the sums of row i. */
#define ROW(i) TERM(i, w, from[min(row + i, range.s1 - 1) * K + k])

__kernel void dense_packed(__global const float *x, int x_at, WEIGHTS, __global const float *bias,
                           int bias_at, __global float *y, int y_at, int8 range,
                           int4 shape CHAIN_PARAMETERS) {
    const int K = shape.s0, N = shape.s1, BLOCKS = (N + 3) / 4;
    const int block = range.s4 + get_global_id(0), row = range.s0 + get_global_id(1) * ROWS;
    const int j = block * 4;
    if (j >= range.s3) return;
    float4 begin = 0.0f;
    if (shape.s2) {
        begin.s0 = bias[bias_at + j];
        if (j + 1 < N) begin.s1 = bias[bias_at + j + 1];
        if (j + 2 < N) begin.s2 = bias[bias_at + j + 2];
        if (j + 3 < N) begin.s3 = bias[bias_at + j + 3];
    }
    __global const float *from = x + x_at;
    ALL(SUM)
    TERMS
    ALL(BEGIN)
    for (int k = 0; k < K; k++) {
        const real4 w = WEIGHT(k);
        ALL(ROW)
        if (FULL(1)) {
            ALL(END)
        }
    }
    ALL(END)
    ALL(STORE4)
}
