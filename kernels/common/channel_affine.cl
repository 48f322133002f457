/* x * scale[channel] + shift[channel]; `table` holds all scales, then all shifts. */

__kernel void channel_affine(__global const float *x, int x_at, __global const float *table,
                             int table_at, __global float *y, int y_at, int inner, int channels,
                             int begin, int end CHAIN_PARAMETERS) {
    const int at = begin + get_global_id(0);
    if (at >= end) return;
    const int c = at / inner % channels;
    const float value = MAD(x[x_at + at], table[table_at + c], table[table_at + channels + c]);
    y[y_at + at] = chain(value, at CHAIN_PASS);
}
