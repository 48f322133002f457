/* Layer, instance and group normalisation of rows of n consecutive elements: (x - mean) /
 * deviation, scaled and shifted. Element i of row r uses number r % rows * step + i / each % many
 * of the scale, and likewise of the shift. One row for each work-group of LINE items; without LINE,
 * for each work-item. */

#ifdef LINE
/* Sums each work-item's value; all get the result. */
float add_up(__local float *part, float value) {
    const int id = get_local_id(0);
    part[id] = value;
    for (int apart = LINE / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < apart) part[id] += part[id + apart];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float all = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return all;
}
#define ROW get_group_id(0)
#define FIRST get_local_id(0)
#define PARTS __local float line[LINE];
/* The sum over the work-items of a row. */
#define ADD_UP(value) add_up(line, value)
#define GROUPED __attribute__((reqd_work_group_size(LINE, 1, 1)))
#else
#define LINE 1
#define ROW get_global_id(0)
#define FIRST 0
#define PARTS
/* The value: one work-item has the whole row. */
#define ADD_UP(value) (value)
#define GROUPED
#endif
/* Sums `element` over all i, BLOCK at a time, for smaller rounding errors. */
#define BLOCK 64
/* The sum of `element` over [from, to), some at a time to keep its precision. */
#define SUM_OVER(all, from, to, element)                                    \
    for (int i = (from) + FIRST; i < (to);) {                               \
        float few = 0.0f;                                                   \
        for (int k = 0; k < BLOCK && i < (to); k++, i += LINE) few += element; \
        all += few;                                                         \
    }
/* The square of a value. */
#define SQUARE(value) (value) * (value)
#define STORE                                                                          \
    float value = (x[x_at + first + i] - mean) * inverse;                              \
    if (shape.s5 & 1) value *= scale[scale_at + base + i / by.s0 % by.s1];             \
    if (shape.s5 & 2) value += shift[shift_at + base + i / by.s2 % by.s3];             \
    y[y_at + first + i] = chain(value, first + i CHAIN_PASS);
#define PARAMETERS                                                                            \
    __global const float *x, int x_at, __global const float *scale, int scale_at,             \
        __global const float *shift, int shift_at, __global float *y, int y_at,               \
        __global float2 *part, int part_at, int8 shape, int4 by, float epsilon CHAIN_PARAMETERS

GROUPED
__kernel void row_norm(PARAMETERS) {
    PARTS
    const int row = shape.s0 + ROW, n = shape.s2, base = row % shape.s3 * shape.s4, first = row * n;
    if (row >= shape.s1) return;
    float sum = 0.0f, squares = 0.0f;
    SUM_OVER(sum, 0, n, x[x_at + first + i])
    const float mean = shape.s5 & 4 ? 0.0f : ADD_UP(sum) / n;
    SUM_OVER(squares, 0, n, SQUARE(x[x_at + first + i] - mean))
    const float inverse = 1.0f / sqrt(ADD_UP(squares) / n + epsilon);
    for (int i = FIRST; i < n; i += LINE) { STORE }
}

#ifdef CUT
/* For few long rows: each work-group has a piece of shape.s6 elements, the last piece of a row the
 * remainder. First the moments of the pieces, then those of the row. */
#define PIECE                                                                        \
    const int row = shape.s0 + get_group_id(0) / CUT, n = shape.s2, first = row * n; \
    const int begin = get_group_id(0) % CUT * shape.s6, end = min(n, begin + shape.s6);

GROUPED
__kernel void row_moments(PARAMETERS) {
    PARTS
    PIECE
    float sum = 0.0f, squares = 0.0f;
    SUM_OVER(sum, begin, end, x[x_at + first + i])
    const float mean = ADD_UP(sum) / (end - begin);
    SUM_OVER(squares, begin, end, SQUARE(x[x_at + first + i] - mean))
    squares = ADD_UP(squares);
    if (get_local_id(0) == 0) part[part_at / 2 + get_group_id(0)] = (float2)(mean, squares);
}

GROUPED
__kernel void row_scale(PARAMETERS) {
    PIECE
    __global const float2 *pieces = part + part_at / 2 + get_group_id(0) / CUT * CUT;
    const int base = row % shape.s3 * shape.s4;
    float mean = 0.0f, squares = 0.0f, count = 0.0f;
    for (int k = 0; k < CUT; k++) { /* combines the moments of two sets (Chan, Golub, LeVeque) */
        const float more = min(n - k * shape.s6, shape.s6), apart = pieces[k].s0 - mean;
        count += more;
        mean += apart * (more / count);
        squares += pieces[k].s1 + apart * apart * more * ((count - more) / count);
    }
    const float inverse = 1.0f / sqrt(squares / n + epsilon);
    for (int i = begin + FIRST; i < end; i += LINE) { STORE }
}
#endif
