/* The mean of each channel: one channel of one sample for each work-item. */

__kernel void global_average_pool(__global const float *x, int x_at, __global float *y, int y_at,
                                  int plane, int begin, int end CHAIN_PARAMETERS) {
    const int at = begin + get_global_id(0);
    if (at >= end) return;
    __global const float *from = x + x_at + at * plane;
    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
    int i = 0;
    for (; i + 4 <= plane; i += 4) {
        s0 += from[i];
        s1 += from[i + 1];
        s2 += from[i + 2];
        s3 += from[i + 3];
    }
    for (; i < plane; i++) s0 += from[i];
    const float mean = plane > 0 ? ((s0 + s1) + (s2 + s3)) / plane : 0.0f;
    y[y_at + at] = chain(mean, at CHAIN_PASS);
}

#ifdef LINE
/* The same, one channel for each work-group of LINE items. */
__attribute__((reqd_work_group_size(LINE, 1, 1)))
__kernel void global_average_pool_group(__global const float *x, int x_at, __global float *y, int y_at,
                                        int plane, int begin, int end CHAIN_PARAMETERS) {
    __local float part[LINE];
    const int at = begin + get_group_id(0), id = get_local_id(0);
    __global const float *from = x + x_at + at * plane;
    float sum = 0.0f;
    for (int i = id; i < plane; i += LINE) sum += from[i];
    part[id] = sum;
    for (int apart = LINE / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < apart) part[id] += part[id + apart];
    }
    if (id == 0) y[y_at + at] = chain(plane > 0 ? part[0] / plane : 0.0f, at CHAIN_PASS);
}
#endif
