/* exp(x - largest) divided by its sum along an axis: one lane of n elements a work-item. */

__kernel void softmax(__global const float *x, int x_at, __global float *y, int y_at, int n,
                      int step, int begin, int end) {
    const int lane = begin + get_global_id(0);
    if (lane >= end) return;
    const int first = lane / step * step * n + lane % step;
    __global const float *from = x + x_at + first;
    __global float *to = y + y_at + first;
    float largest = -INFINITY, sum = 0.0f;
    for (int i = 0; i < n; i++) largest = from[i * step] > largest ? from[i * step] : largest;
    for (int i = 0; i < n; i++) sum += exp(from[i * step] - largest);
    for (int i = 0; i < n; i++) to[i * step] = exp(from[i * step] - largest) / sum;
}
