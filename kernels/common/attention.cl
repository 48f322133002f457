/* Attention with an online softmax (Milakov and Gimelshein; Dao and others): a work-group of 128
 * items holds ROWS * 16 rows of q and reads k and v by blocks of 32 rows. Only the scores of one
 * block are kept. When the maximum of a row grows, its sums so far are scaled down.
 *
 * A work-item computes ROWS rows by 4 columns of the scores, and ROWS rows by 4 * WIDE columns of
 * y. E: columns of q and k. D: columns of v. PART: columns of q and k in local memory at a time. */

#define BM (16 * ROWS)
#define BN 32
#define ITEMS 128
#define BM_PITCH (BM + 4)
#define BN_PITCH (BN + 4)
#define BD (32 * WIDE) /* columns of y in a work-group */

/* Address of the first element of batch `batch` of operand x. In its view, s0 is the offset of the
 * first element; s1 to s3 are the strides of the batch axes, s4 of rows, s5 of columns. */
#define FIRST(x) \
    (x + x##_at + x##_view.s0 + batch.s0 * x##_view.s1 + batch.s1 * x##_view.s2 + \
     batch.s2 * x##_view.s3)
/* Four consecutive elements of row m, from column n on. Columns beyond `last` repeat column
 * `last`. */
#define FOUR(from, view)                                \
    (float4)(from[m * view.s4 + min(n, last) * view.s5], \
             from[m * view.s4 + min(n + 1, last) * view.s5], \
             from[m * view.s4 + min(n + 2, last) * view.s5], \
             from[m * view.s4 + min(n + 3, last) * view.s5])

/* exp(score - most), at least exp(-80). 0 only for a score of -INFINITY, since 0 times an infinite
 * value would be NaN. */
float weight(float score, float most) {
    const float below = score - most;
    return score == -INFINITY ? 0.0f : exp(below < -80.0f ? -80.0f : below);
}

/* Copies `rows` by `columns` elements to tile[column * pitch + row], with zeros from row
 * `rows_left` and column `columns_left` on. Consecutive work-items read along the axis whose stride
 * is 1. */
void load_turned(__local float *tile, int pitch, int rows, int columns, __global const float *from,
                 int step, int along, int rows_left, int columns_left) {
    for (int i = get_local_id(0); i < rows * columns; i += ITEMS) {
        const int row = along == 1 ? i / columns : i % rows;
        const int column = along == 1 ? i % columns : i / rows;
        tile[column * pitch + row] =
            row < rows_left && column < columns_left ? from[row * step + column * along] : 0.0f;
    }
}

/* A sum over its total. ZERO_ROWS: rows without weights, or with some that are not numbers, become 0;
 * their sum is 0, or NaN if a value is infinite. */
#ifdef ZERO_ROWS
#define OVER(sum, total) ((total) > 0 ? (sum) / (total) : (total) == 0 ? (sum) : 0)
#else
#define OVER(sum, total) ((sum) / (total))
#endif

/* If there are few work-groups, the rows of k are divided into cut.s0 cuts of cut.s1 rows, whose
 * results attention_join combines. `parts` has D sums for each cut and row of q, then, after all
 * sums, the maximum and the total of the weights for each cut and row. */
#define SUMS(cut_, b, m) (parts + parts_at + (((cut_) * batches + (b)) * sizes.s2 + (m)) * D)
/* Where the largest score and the sum of a row of q stand, for one cut of the rows of k. */
#define TOTALS(cut_, b, m) \
    (parts + parts_at + (cut.s0 * D + 2 * (cut_)) * batches * sizes.s2 + 2 * ((b) * sizes.s2 + (m)))
#define BATCH (int3)(b / (sizes.s0 * sizes.s1), b / sizes.s1 % sizes.s0, b % sizes.s1)

/* Computes attention. sizes: batch axes 1 and 2, rows of q, rows of k. */
__attribute__((reqd_work_group_size(ITEMS, 1, 1))) __kernel void attention(
    __global const float *q, int q_at, __global const float *k, int k_at, __global const float *v,
    int v_at, __global const float *bias, int bias_at, __global const float *mask, int mask_at,
    __global float *y, int y_at, int4 sizes, int8 q_view, int8 k_view, int8 v_view, int8 bias_view,
    int8 mask_view, int8 y_view, float scale, __global float *parts, int parts_at, int2 cut) {
    __local float rows[PART * BM_PITCH] __attribute__((aligned(16)));    /* [e][m] of q */
    __local float columns[PART * BN_PITCH] __attribute__((aligned(16))); /* [e][n] of k */
    __local float values[BN * BD] __attribute__((aligned(16)));          /* [n][d] of v */
    __local float weights[BN * BM_PITCH] __attribute__((aligned(16)));   /* [n][m] */
    __local float part[BM * 8];                                          /* [row][8] */
    const int id = get_local_id(0), column = id % 8, row = id / 8 * ROWS;
    const int m0 = get_group_id(0) * BM, b = get_global_id(1);
    const int own = get_global_id(2) % cut.s0, d0 = get_global_id(2) / cut.s0 * BD;
    const int m_left = sizes.s2 - m0, n_first = own * cut.s1, n_all = min(sizes.s3, n_first + cut.s1);
    const int3 batch = BATCH;
    __global const float *q_from = FIRST(q) + m0 * q_view.s4, *k_from = FIRST(k),
                         *v_from = FIRST(v) + d0 * v_view.s5;
    float4 sum[ROWS][WIDE];
    float largest[ROWS], total[ROWS];
    for (int i = 0; i < ROWS; i++) {
        largest[i] = -FLT_MAX;
        total[i] = 0.0f;
        for (int j = 0; j < WIDE; j++) sum[i][j] = 0.0f;
    }
    if (PART >= E) load_turned(rows, BM_PITCH, BM, PART, q_from, q_view.s4, q_view.s5, m_left, E);

    for (int n0 = n_first; n0 < n_all; n0 += BN) {
        float4 score[ROWS];
        for (int i = 0; i < ROWS; i++) score[i] = 0.0f;
        for (int e0 = 0; e0 < E; e0 += PART) {
            barrier(CLK_LOCAL_MEM_FENCE); /* all have read the tiles */
            if (PART < E)
                load_turned(rows, BM_PITCH, BM, PART, q_from + e0 * q_view.s5, q_view.s4, q_view.s5,
                            m_left, E - e0);
            load_turned(columns, BN_PITCH, BN, PART, k_from + n0 * k_view.s4 + e0 * k_view.s5,
                        k_view.s4, k_view.s5, n_all - n0, E - e0);
            if (e0 == 0)
                load_turned(values, BD, BD, BN, v_from + n0 * v_view.s4, v_view.s5, v_view.s4,
                            D - d0, n_all - n0);
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int e = 0; e < PART; e++) {
                const float4 right = *(__local const float4 *)&columns[e * BN_PITCH + 4 * column];
                for (int i = 0; i < ROWS; i++)
                    score[i] = mad(rows[e * BM_PITCH + row + i], right, score[i]);
            }
        }
        for (int i = 0; i < ROWS; i++) {
            const int m = m0 + min(row + i, m_left - 1), n = n0 + 4 * column, last = n_all - 1;
            float4 s = score[i] * scale;
#ifdef BIAS
            s += FOUR((FIRST(bias)), bias_view);
#endif
#ifdef MASK
            s += FOUR((FIRST(mask)), mask_view);
#endif
            if (n + 3 > last)
                s = (float4)(n > last ? -INFINITY : s.s0, n + 1 > last ? -INFINITY : s.s1,
                             n + 2 > last ? -INFINITY : s.s2, -INFINITY);
            score[i] = s;
            part[(row + i) * 8 + column] = fmax(fmax(s.s0, s.s1), fmax(s.s2, s.s3));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < ROWS; i++) {
            float most = largest[i];
            for (int j = 0; j < 8; j++) most = fmax(most, part[(row + i) * 8 + j]);
            const float down = weight(largest[i], most);
            const float4 w = (float4)(weight(score[i].s0, most), weight(score[i].s1, most),
                                      weight(score[i].s2, most), weight(score[i].s3, most));
            largest[i] = most;
            total[i] = total[i] * down + (w.s0 + w.s1 + w.s2 + w.s3);
            for (int j = 0; j < WIDE; j++) sum[i][j] *= down;
            weights[(4 * column) * BM_PITCH + row + i] = w.s0;
            weights[(4 * column + 1) * BM_PITCH + row + i] = w.s1;
            weights[(4 * column + 2) * BM_PITCH + row + i] = w.s2;
            weights[(4 * column + 3) * BM_PITCH + row + i] = w.s3;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int n = 0; n < BN; n++)
            for (int j = 0; j < WIDE; j++) {
                const float4 value = *(__local const float4 *)&values[n * BD + 32 * j + 4 * column];
                for (int i = 0; i < ROWS; i++)
                    sum[i][j] = mad(weights[n * BM_PITCH + row + i], value, sum[i][j]);
            }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < ROWS; i++) part[(row + i) * 8 + column] = total[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < ROWS && row + i < m_left; i++) {
        float all = 0.0f;
        for (int j = 0; j < 8; j++) all += part[(row + i) * 8 + j];
#ifdef CUT
        const int batches = get_global_size(1), step = 1;
        __global float *to = SUMS(own, b, m0 + row + i);
        TOTALS(own, b, m0 + row + i)[0] = largest[i];
        TOTALS(own, b, m0 + row + i)[1] = all;
        all = 1.0f;
#else
        const int step = y_view.s5;
        __global float *to = FIRST(y) + (m0 + row + i) * y_view.s4;
#endif
        for (int j = 0; j < WIDE; j++) {
            const float4 value = sum[i][j];
            const float four[4] = {value.s0, value.s1, value.s2, value.s3};
            for (int l = 0; l < 4; l++) {
                const int d = d0 + 32 * j + 4 * column + l;
                if (d < D) to[d * step] = OVER(four[l], all);
            }
        }
    }
}

#ifdef CUT
/* Combines the results of all cuts into y. */
__kernel void attention_join(__global const float *parts, int parts_at, __global float *y, int y_at,
                             int4 sizes, int8 y_view, int2 cut, int batches) {
    const int b = get_global_id(1), m = get_global_id(0) / D, d = get_global_id(0) % D;
    if (m >= sizes.s2) return;
    const int3 batch = BATCH;
    float largest = -FLT_MAX, sum = 0.0f, total = 0.0f;
    for (int i = 0; i < cut.s0; i++) largest = fmax(largest, TOTALS(i, b, m)[0]);
    for (int i = 0; i < cut.s0; i++) {
        const float down = weight(TOTALS(i, b, m)[0], largest);
        sum += SUMS(i, b, m)[d] * down;
        total += TOTALS(i, b, m)[1] * down;
    }
    (FIRST(y))[m * y_view.s4 + d * y_view.s5] = OVER(sum, total);
}
#endif
