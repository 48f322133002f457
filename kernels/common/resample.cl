/* Resizes the last three axes: an output is the sum over its inputs along each of them. `table` has
 * for each output of the first axis, then of the second and of the third, `taps` pairs of the
 * input's place (times the axis's stride) and its weight. */
__kernel void resample(__global const float *x, int x_at, __global const float *table, int table_at,
                       __global float *y, int y_at, int4 in, int4 out, int4 taps) {
    const int at = get_global_id(0), plane = get_global_id(1);
    const int ow = at % out.s2, oh = at / out.s2 % out.s1, od = at / out.s2 / out.s1;
    if (od >= out.s0) return;
    __global const float *deep = table + table_at;
    __global const float *rows = deep + 2 * out.s0 * taps.s0, *columns = rows + 2 * out.s1 * taps.s1;
    __global const float *from = x + x_at + plane * in.s0 * in.s1 * in.s2;
    deep += 2 * od * taps.s0;
    rows += 2 * oh * taps.s1;
    columns += 2 * ow * taps.s2;
    float sum = 0;
    for (int i = 0; i < taps.s0; i++)
        for (int j = 0; j < taps.s1; j++) {
            const float by = deep[2 * i + 1] * rows[2 * j + 1];
            const int base = (int)deep[2 * i] + (int)rows[2 * j];
            /* an input of weight 0 must not count, even if it is infinite or NaN */
            for (int k = 0; k < taps.s2; k++) {
                const float weight = by * columns[2 * k + 1];
                if (weight != 0) sum = MAD(weight, from[base + (int)columns[2 * k]], sum);
            }
        }
    y[y_at + plane * out.s0 * out.s1 * out.s2 + at] = sum;
}
