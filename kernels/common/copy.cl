/* Copies rows of 4-byte elements of up to eight sources side by side into rows of y; source k ends
 * at element ends.sk of this launch's range. All sources may share a buffer. */

/* An input and its offset. */
#define SOURCE(k) __global const uint *x##k, int x##k##_at
/* Takes the value from input k, if it lies there. */
#define TAKE(k, first) \
    if (i < ends.s##k) value = x##k[x##k##_at + row * (ends.s##k - (first)) + i - (first)]; else

__kernel void copy_rows(SOURCE(0), SOURCE(1), SOURCE(2), SOURCE(3), SOURCE(4), SOURCE(5), SOURCE(6), SOURCE(7),
                        __global uint *y, int y_at, int8 ends, int pitch) {
    const int i = get_global_id(0), row = get_global_id(1);
    uint value = 0;
    if (i >= ends.s7) return;
    TAKE(0, 0) TAKE(1, ends.s0) TAKE(2, ends.s1) TAKE(3, ends.s2)
    TAKE(4, ends.s3) TAKE(5, ends.s4) TAKE(6, ends.s5) TAKE(7, ends.s6) value = 0;
    y[y_at + row * pitch + i] = value;
}
