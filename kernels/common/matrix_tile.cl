/* Products of matrices by steps, tiles of both staged in local memory: a work-group has BM rows of BN columns,
 * a work-item TM x TN of them in registers; BK terms lie in local memory, the next BK are on their way. Built
 * with A_ALONG where a's terms lie side by side (else its rows are taken to), B_ALONG where b's columns do. */

#define WG ((BM / TM) * (BN / TN))
#define A1 (BM * BK / WG)
#define B1 (BN * BK / WG)
#define AW (BM + 4) /* so that neighbours write to banks of their own */
#define BW (BN + 4)

#ifdef A_ALONG
#define A_ROW(e) ((e) / BK)
#define A_TERM(e) ((e) % BK)
#else
#define A_ROW(e) ((e) % BM)
#define A_TERM(e) ((e) / BM)
#endif
#ifdef B_ALONG
#define B_COLUMN(e) ((e) % BN)
#define B_TERM(e) ((e) / BN)
#else
#define B_COLUMN(e) ((e) / BK)
#define B_TERM(e) ((e) % BK)
#endif

__attribute__((reqd_work_group_size(WG, 1, 1)))
__kernel void matrix_tile(__global const float *a, int a_at, __global const float *b, int b_at,
                          __global const float *c, int c_at, __global float *y, int y_at, int8 steps,
                          int8 range, int4 batch, float2 factors CHAIN_PARAMETERS) {
    __local float4 a_tile[2][BK * AW / 4];
    __local float4 b_tile[2][BK * BW / 4];
    const int id = get_local_id(0), z = get_global_id(2), K = range.s4;
    const int i0 = range.s0 + get_global_id(1) * BM, j0 = range.s2 + get_group_id(0) * BN;
    const int tm = id / (BN / TN), tn = id % (BN / TN);
    __global const float *rows = a + a_at + z * batch.s0, *columns = b + b_at + z * batch.s1;

    float a_next[A1], b_next[B1];
    float4 sum[TM][TN / 4];
    for (int i = 0; i < TM; i++)
        for (int j = 0; j < TN / 4; j++) sum[i][j] = 0.0f;

/* What lies past an edge is some other row's, and not stored; terms past the last are 0. */
#define FETCH(k0)                                                                                   \
    _Pragma("unroll") for (int l = 0; l < A1; l++) {                                                \
        const int e = id + l * WG, i = min(i0 + A_ROW(e), range.s1 - 1), k = (k0) + A_TERM(e);      \
        a_next[l] = k < K ? rows[i * steps.s0 + k * steps.s1] : 0.0f;                               \
    }                                                                                               \
    _Pragma("unroll") for (int l = 0; l < B1; l++) {                                                \
        const int e = id + l * WG, j = min(j0 + B_COLUMN(e), range.s3 - 1), k = (k0) + B_TERM(e);   \
        b_next[l] = k < K ? columns[j * steps.s2 + k * steps.s3] : 0.0f;                            \
    }
#define STAGE(buffer)                                                                               \
    _Pragma("unroll") for (int l = 0; l < A1; l++) {                                                \
        const int e = id + l * WG;                                                                  \
        ((__local float *)a_tile[buffer])[A_TERM(e) * AW + A_ROW(e)] = a_next[l];                   \
    }                                                                                               \
    _Pragma("unroll") for (int l = 0; l < B1; l++) {                                                \
        const int e = id + l * WG;                                                                  \
        ((__local float *)b_tile[buffer])[B_TERM(e) * BW + B_COLUMN(e)] = b_next[l];                \
    }

    FETCH(0)
    STAGE(0)
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k0 = 0, now = 0; k0 < K; k0 += BK, now = 1 - now) {
        if (k0 + BK < K) {
            FETCH(k0 + BK)
        }
#pragma unroll
        for (int k = 0; k < BK; k++) {
            float4 v[TN / 4];
            float u[TM];
#pragma unroll
            for (int j = 0; j < TN / 4; j++) v[j] = b_tile[now][k * (BW / 4) + j * (BN / TN) + tn];
#pragma unroll
            for (int i = 0; i < TM / 4; i++) {
                const float4 q = a_tile[now][k * (AW / 4) + i * (BM / TM) + tm];
                u[4 * i] = q.s0;
                u[4 * i + 1] = q.s1;
                u[4 * i + 2] = q.s2;
                u[4 * i + 3] = q.s3;
            }
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN / 4; j++) sum[i][j] = MAD((float4)(u[i]), v[j], sum[i][j]);
        }
        if (k0 + BK < K) {
            STAGE(1 - now)
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#pragma unroll
    for (int i = 0; i < TM; i++) {
        const int row = i0 + i / 4 * (4 * (BM / TM)) + tm * 4 + i % 4;
        if (row >= range.s1) continue;
#pragma unroll
        for (int j = 0; j < TN / 4; j++)
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const int column = j0 + j * (4 * (BN / TN)) + tn * 4 + q;
                if (column >= range.s3) continue;
                const float4 v = sum[i][j];
                float value = factors.s0 * (q == 0 ? v.s0 : q == 1 ? v.s1 : q == 2 ? v.s2 : v.s3);
                if (range.s5) value = MAD(factors.s1, c[c_at + row * steps.s4 + column * steps.s5], value);
                const int to = z * batch.s2 + row * steps.s6 + column;
                y[y_at + to] = chain(value, to CHAIN_PASS);
            }
    }
}
