/* Sums, means, norms and extremes along the middle of three axes, outer x n x inner. Built with
 * INITIAL, JOIN(so_far, x): adds an element, MERGE(a, b): combines two results, FINISH(all, n). One
 * result for each work-item; with LINE, for each work-group of LINE items. */

/* The larger; NaN wins, on either side. */
#define MAX_OF(a, b) ((a) != (a) || (a) > (b) ? (a) : (b))
/* The smaller; NaN wins, on either side. */
#define MIN_OF(a, b) ((a) != (a) || (a) < (b) ? (a) : (b))

__kernel void reduce(__global const float *x, int x_at, __global float *y, int y_at, int n, int inner,
                     int results CHAIN_PARAMETERS) {
    const int to = get_global_id(0);
    if (to >= results) return;
    __global const float *from = x + x_at + to / inner * inner * n + to % inner;
    float all = INITIAL;
    for (int i = 0; i < n; i++) all = JOIN(all, from[i * inner]);
    y[y_at + to] = chain(FINISH(all, n), to CHAIN_PASS);
}

#ifdef LINE
__attribute__((reqd_work_group_size(LINE, 1, 1)))
__kernel void reduce_group(__global const float *x, int x_at, __global float *y, int y_at, int n, int inner,
                           int results CHAIN_PARAMETERS) {
    __local float part[LINE];
    const int to = get_group_id(0), id = get_local_id(0);
    __global const float *from = x + x_at + to / inner * inner * n + to % inner;
    float all = INITIAL;
    for (int i = id; i < n; i += LINE) all = JOIN(all, from[i * inner]);
    part[id] = all;
    for (int apart = LINE / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < apart) part[id] = MERGE(part[id], part[id + apart]);
    }
    if (id == 0 && to < results) y[y_at + to] = chain(FINISH(part[0], n), to CHAIN_PASS);
}
#endif
