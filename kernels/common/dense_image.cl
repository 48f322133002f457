/* Products with a constant matrix, packed as an image of RGBA pixels: row k, a pixel for a block of
 * 4 outputs, read through the texture cache: four outputs of ROWS samples a work-item. */

__constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;

#define WEIGHT(k) READ4(weight, nearest, (int2)(block, (k)))
#define STORE(i, q, value)                                          \
    if (row + i < range.s1 && j + q >= range.s2 && j + q < range.s3) { \
        const int to = (row + i) * N + j + q;                       \
        y[y_at + to] = chain(value, to CHAIN_PASS);                 \
    }
#define STORE4(i, a) STORE(i, 0, a.s0) STORE(i, 1, a.s1) STORE(i, 2, a.s2) STORE(i, 3, a.s3)
#if ROWS == 4
#define ALL(what) what(0) what(1) what(2) what(3)
#else
#define ALL(what) what(0)
#endif
#define ROW(i) from[min(row + i, range.s1 - 1) * K + k]

__kernel void dense_image(__global const float *x, int x_at, __read_only image2d_t weight,
                          __global const float *bias, int bias_at, __global float *y, int y_at,
                          int8 range, int4 shape CHAIN_PARAMETERS) {
    const int K = shape.s0, N = shape.s1, BLOCKS = (N + 3) / 4;
    const int block = range.s4 + get_global_id(0), row = range.s0 + get_global_id(1) * ROWS;
    const int j = block * 4;
    if (j >= range.s3) return;
    float4 a0 = 0.0f;
    if (shape.s2) {
        a0.s0 = bias[bias_at + j];
        if (j + 1 < N) a0.s1 = bias[bias_at + j + 1];
        if (j + 2 < N) a0.s2 = bias[bias_at + j + 2];
        if (j + 3 < N) a0.s3 = bias[bias_at + j + 3];
    }
    __global const float *from = x + x_at;
#if ROWS == 4
    float4 a1 = a0, a2 = a0, a3 = a0;
#endif
    TERMS
    ALL(BEGIN)
    for (int k = 0; k < K; k++) {
        const real4 w = WEIGHT(k);
        TERM(0, w, ROW(0))
#if ROWS == 4
        TERM(1, w, ROW(1))
        TERM(2, w, ROW(2))
        TERM(3, w, ROW(3))
#endif
        if (FULL(1)) {
            ALL(END)
        }
    }
    ALL(END)
    STORE4(0, a0)
#if ROWS == 4
    STORE4(1, a1)
    STORE4(2, a2)
    STORE4(3, a3)
#endif
}
