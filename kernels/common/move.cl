/* Outputs that are elements of the input somewhere else, or lie between four of them: a table, made by
 * the operator's own reference, says where from. Its entry `behind` is the value where none is. */

__kernel void move_by_table(__global const float *x, int x_at, __global const int *table, int table_at,
                            __global float *y, int y_at, int count, int behind) {
    const int i = get_global_id(0);
    if (i >= count) return;
    const int from = table[table_at + i];
    y[y_at + i] = from < 0 ? as_float(table[table_at + behind]) : x[x_at + from];
}

/* A plane of `high` rows of `wide`, sampled on another grid; `table` has for each row and then for each
 * column of the output the lower neighbour and the part of the upper one. */
__kernel void move_between(__global const float *x, int x_at, __global const float *table, int table_at,
                           __global float *y, int y_at, int4 in, int4 out) {
    const int at = get_global_id(0), ow = at % out.s1, oh = at / out.s1, plane = get_global_id(1);
    if (oh >= out.s0) return;
    __global const float *rows = table + table_at, *columns = rows + 2 * out.s0;
    const int h = (int)rows[2 * oh], w = (int)columns[2 * ow];
    const int below = min(h + 1, in.s0 - 1), right = min(w + 1, in.s1 - 1);
    const float t = rows[2 * oh + 1], u = columns[2 * ow + 1];
    __global const float *from = x + x_at + plane * in.s0 * in.s1;
    const float a = from[h * in.s1 + w], b = from[h * in.s1 + right];
    const float c = from[below * in.s1 + w], d = from[below * in.s1 + right];
    /* a neighbour of weight 0 counts for nothing, whatever it is */
    const float upper = u == 0 ? a : MAD(u, b, (1 - u) * a), lower = u == 0 ? c : MAD(u, d, (1 - u) * c);
    y[y_at + (plane * out.s0 + oh) * out.s1 + ow] = t == 0 ? upper : MAD(t, lower, (1 - t) * upper);
}
