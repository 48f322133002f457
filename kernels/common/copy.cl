/* Rows of 4-byte elements from one place to another; the two may share a buffer, which
 * clEnqueueCopyBufferRect forbids when their pitches differ. */

__kernel void copy_rows(__global const uint *x, int x_at, __global uint *y, int y_at, int length,
                        int x_pitch, int y_pitch) {
    const int i = get_global_id(0), row = get_global_id(1);
    if (i < length) y[y_at + row * y_pitch + i] = x[x_at + row * x_pitch + i];
}
