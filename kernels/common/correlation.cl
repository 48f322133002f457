/* Normalised cross-correlation of rows with rows: first mean and norm of each row, then products,
 * TM x TN for each work-item. */

#define TM 4
#define TN 4

/* For the rows of a, then of b: mean, and 1 / norm of the row minus its mean (0 if that is 0). */
__kernel void row_moments(__global const float *a, int a_at, __global const float *b, int b_at,
                          __global float *moments, int moments_at, int m, int n, int k) {
    const int i = get_global_id(0);
    if (i >= m + n) return;
    __global const float *row = i < m ? a + a_at + i * k : b + b_at + (i - m) * k;
    float sum = 0.0f, squares = 0.0f, most = 0.0f;
    for (int c = 0; c < k; c++) sum += row[c];
    const float mean = k > 0 ? sum / (float)k : 0.0f;
    for (int c = 0; c < k; c++) {
        const float d = row[c] - mean;
        squares += d * d;
        most = fmax(most, fabs(row[c]));
    }
    moments[moments_at + 2 * i] = mean;
    moments[moments_at + 2 * i + 1] = squares > 1e-10f * most * most * (float)k ? 1.0f / sqrt(squares) : 0.0f;
}

__kernel void correlation(__global const float *a, int a_at, __global const float *b, int b_at,
                          __global const float *moments, int moments_at, __global float *out, int out_at,
                          int m, int n, int k, int begin, int end) {
    const int j0 = get_global_id(0) * TN, i0 = begin + get_global_id(1) * TM;
    if (j0 >= n || i0 >= end) return;
    float sum[TM][TN], am[TM], bm[TN];
    int ai[TM], bi[TN];
    moments += moments_at;
    for (int r = 0; r < TM; r++) {
        const int i = min(i0 + r, end - 1);
        ai[r] = a_at + i * k;
        am[r] = moments[2 * i];
    }
    for (int s = 0; s < TN; s++) {
        const int j = min(j0 + s, n - 1);
        bi[s] = b_at + j * k;
        bm[s] = moments[2 * (m + j)];
    }
    for (int r = 0; r < TM; r++)
        for (int s = 0; s < TN; s++) sum[r][s] = 0.0f;
    for (int c = 0; c < k; c++) {
        float p[TM], q[TN];
        for (int r = 0; r < TM; r++) p[r] = a[ai[r] + c] - am[r];
        for (int s = 0; s < TN; s++) q[s] = b[bi[s] + c] - bm[s];
        for (int r = 0; r < TM; r++)
            for (int s = 0; s < TN; s++) sum[r][s] += p[r] * q[s];
    }
    for (int r = 0; r < TM && i0 + r < end; r++)
        for (int s = 0; s < TN && j0 + s < n; s++)
            out[out_at + (i0 + r) * n + j0 + s] =
                sum[r][s] * moments[2 * (i0 + r) + 1] * moments[2 * (m + j0 + s) + 1];
}
