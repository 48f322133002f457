/* alpha * a * b + beta * c by strides, for products whose operands are not packed: one output for
 * each work-item. */

__kernel void matrix(__global const float *a, int a_at, __global const float *b, int b_at,
                     __global const float *c, int c_at, __global float *y, int y_at, int8 steps,
                     int8 range, int4 batch, float2 factors CHAIN_PARAMETERS) {
    const int j = range.s2 + get_global_id(0), i = range.s0 + get_global_id(1);
    const int z = get_global_id(2);
    if (j >= range.s3) return;
    __global const float *row = a + a_at + z * batch.s0 + i * steps.s0;
    __global const float *column = b + b_at + z * batch.s1 + j * steps.s2;
    float sum = 0.0f;
    for (int k = 0; k < range.s4; k++) sum = MAD(row[k * steps.s1], column[k * steps.s3], sum);
    sum *= factors.s0;
    if (range.s5) sum = MAD(factors.s1, c[c_at + i * steps.s4 + j * steps.s5], sum);
    const int to = z * batch.s2 + i * steps.s6 + j;
    y[y_at + to] = chain(sum, to CHAIN_PASS);
}
