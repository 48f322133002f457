/* exp(x - maximum) divided by its sum along an axis: one lane of n elements for each work-item. */

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

#ifdef LINE
/* The largest value (largest: 1) or the sum of all work-items' values, for one lane in each
 * work-group of LINE items; all get the result. */
float gather(__local float *part, float value, int largest) {
    const int id = get_local_id(0);
    part[id] = value;
    for (int apart = LINE / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < apart)
            part[id] = largest ? (part[id + apart] > part[id] ? part[id + apart] : part[id])
                               : part[id] + part[id + apart];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float all = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return all;
}

__attribute__((reqd_work_group_size(LINE, 1, 1)))
__kernel void softmax_group(__global const float *x, int x_at, __global float *y, int y_at, int n,
                            int step, int begin, int end) {
    __local float part[LINE];
    const int lane = begin + get_group_id(0), id = get_local_id(0);
    const int first = lane / step * step * n + lane % step;
    __global const float *from = x + x_at + first;
    __global float *to = y + y_at + first;
    float largest = -INFINITY, sum = 0.0f;
    for (int i = id; i < n; i += LINE) largest = from[i * step] > largest ? from[i * step] : largest;
    largest = gather(part, largest, 1);
    for (int i = id; i < n; i += LINE) sum += exp(from[i * step] - largest);
    sum = gather(part, sum, 0);
    for (int i = id; i < n; i += LINE) to[i * step] = exp(from[i * step] - largest) / sum;
}
#endif
