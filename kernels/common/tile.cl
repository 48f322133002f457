/* Products by tiles of both operands in local memory: a work-group has BM x BN of the result, a
 * work-item TM x TN of them in registers. BK terms of the sum are in local memory while the next BK
 * are loaded. PRODUCT: of matrices by steps; else convolution as an implicit matrix product. */

#define WG ((BM / TM) * (BN / TN))
#ifdef PRODUCT /* so that adjacent work-items write to different banks */
#define A_PITCH (BM + 4)
#define B_PITCH (BN + 4)
#else
#define A_PITCH BM
#define B_PITCH BN
#endif
#define TILES                                                                                       \
    __local float4 a_tile[2][BK * A_PITCH / 4];                                                     \
    __local float4 b_tile[2][BK * B_PITCH / 4];                                                     \
    const int tm = get_local_id(0) / (BN / TN), tn = get_local_id(0) % (BN / TN);                   \
    float4 sum[TM][TN / 4];                                                                         \
    for (int i = 0; i < TM; i++)                                                                    \
        for (int j = 0; j < TN / 4; j++) sum[i][j] = 0.0f;
/* The position of sum[i], and of component q of sum[][j], in the tile. */
#define ROW_OF(i) ((i) / 4 * (4 * (BM / TM)) + tm * 4 + (i) % 4)
/* Column of a work-item's sum. */
#define COLUMN_OF(j, q) ((j) * (4 * (BN / TN)) + tn * 4 + (q))
/* Component q of a vector. */
#define COMPONENT(v, q) ((q) == 0 ? (v).s0 : (q) == 1 ? (v).s1 : (q) == 2 ? (v).s2 : (v).s3)

#define LATE (BK / 4) /* terms that are multiplied while the next are staged */
/* NAME adds the products of the staged terms from BEGIN to END to the sums in registers. */
#define MULTIPLY(NAME, BEGIN, END)                                                                  \
    __attribute__((always_inline)) void NAME(__local const float4 *a_tile,                          \
                                             __local const float4 *b_tile, int tm, int tn,          \
                                             float4 sum[TM][TN / 4]) {                              \
        _Pragma("unroll") for (int k = BEGIN; k < END; k++) {                                       \
            float4 b[TN / 4];                                                                       \
            float a[TM];                                                                            \
            _Pragma("unroll") for (int j = 0; j < TN / 4; j++)                                      \
                b[j] = b_tile[k * (B_PITCH / 4) + j * (BN / TN) + tn];                              \
            _Pragma("unroll") for (int i = 0; i < TM / 4; i++) {                                    \
                const float4 q = a_tile[k * (A_PITCH / 4) + i * (BM / TM) + tm];                    \
                a[4 * i] = q.s0;                                                                    \
                a[4 * i + 1] = q.s1;                                                                \
                a[4 * i + 2] = q.s2;                                                                \
                a[4 * i + 3] = q.s3;                                                                \
            }                                                                                       \
            _Pragma("unroll") for (int i = 0; i < TM; i++)                                          \
                _Pragma("unroll") for (int j = 0; j < TN / 4; j++)                                  \
                    sum[i][j] = MAD((float4)(a[i]), b[j], sum[i][j]);                               \
        }                                                                                           \
    }
MULTIPLY(multiply_first, 0, BK - LATE)
MULTIPLY(multiply_last, BK - LATE, BK)

#ifdef PRODUCT
/* ---- matrix product. If a launch would have too few groups (SPLIT), the sum is split, and
 * matrix_sum adds the parts. A_ALONG if a's terms are adjacent (else its rows count as adjacent),
 * B_ALONG if b's columns are ---- */

#define A1 (BM * BK / WG)
#define B1 (BN * BK / WG)
#ifdef A_ALONG
/* Row of element e of A's tile. */
#define A_ROW(e) ((e) / BK)
/* Term of element e of A's tile. */
#define A_TERM(e) ((e) % BK)
#else
/* Row of element e of A's tile. */
#define A_ROW(e) ((e) % BM)
/* Term of element e of A's tile. */
#define A_TERM(e) ((e) / BM)
#endif
#ifdef B_ALONG
/* Column of element e of B's tile. */
#define B_COLUMN(e) ((e) % BN)
/* Term of element e of B's tile. */
#define B_TERM(e) ((e) / BN)
#else
/* Column of element e of B's tile. */
#define B_COLUMN(e) ((e) / BK)
/* Term of element e of B's tile. */
#define B_TERM(e) ((e) % BK)
#endif

#ifdef SPLIT
#define PARTS __global float *part, int part_at,
/* Batch of slice z of the work, where terms are split. */
#define BATCH_OF(z) ((z) / range.s6)
/* First term of slice z. */
#define BEGIN_OF(z) ((z) % range.s6 * range.s7)
/* End of slice z's terms. */
#define END_OF(z) min(range.s4, BEGIN_OF(z) + range.s7)
#else
#define PARTS
/* Batch of slice z. */
#define BATCH_OF(z) (z)
/* First term of a slice. */
#define BEGIN_OF(z) 0
/* End of a slice's terms. */
#define END_OF(z) range.s4
#endif
/* Writes a sum, times alpha, with beta * c and the epilogue. */
#define FINISH(sum, to)                                                                             \
    float value = factors.s0 * (sum);                                                               \
    if (range.s5) value = MAD(factors.s1, c[c_at + row * steps.s4 + column * steps.s5], value);     \
    y[y_at + to] = chain(value, to CHAIN_PASS);

__attribute__((reqd_work_group_size(WG, 1, 1)))
__kernel void matrix_tile(__global const float *a, int a_at, __global const float *b, int b_at,
                          __global const float *c, int c_at, __global float *y, int y_at, PARTS int8 steps,
                          int8 range, int4 batch, float2 factors CHAIN_PARAMETERS) {
    const int id = get_local_id(0), z = BATCH_OF((int)get_global_id(2));
    const int K0 = BEGIN_OF((int)get_global_id(2)), K = END_OF((int)get_global_id(2));
    const int i0 = range.s0 + get_global_id(1) * BM, j0 = range.s2 + get_group_id(0) * BN;
    __global const float *rows = a + a_at + z * batch.s0, *columns = b + b_at + z * batch.s1;

    float a_next[A1], b_next[B1];
    TILES

/* Beyond an edge, another row is read and the result not stored; terms beyond the last are 0. */
#define FETCH(k0)                                                                                   \
    _Pragma("unroll") for (int l = 0; l < A1; l++) {                                                \
        const int e = id + l * WG, i = min(i0 + A_ROW(e), range.s1 - 1), k = (k0) + A_TERM(e);      \
        a_next[l] = k < K ? rows[i * steps.s0 + k * steps.s1] : 0.0f;                               \
    }                                                                                               \
    _Pragma("unroll") for (int l = 0; l < B1; l++) {                                                \
        const int e = id + l * WG, j = min(j0 + B_COLUMN(e), range.s3 - 1), k = (k0) + B_TERM(e);   \
        b_next[l] = k < K ? columns[j * steps.s2 + k * steps.s3] : 0.0f;                            \
    }
/* Writes what was fetched to the local tiles. */
#define STAGE(buffer)                                                                               \
    _Pragma("unroll") for (int l = 0; l < A1; l++) {                                                \
        const int e = id + l * WG;                                                                  \
        ((__local float *)a_tile[buffer])[A_TERM(e) * A_PITCH + A_ROW(e)] = a_next[l];              \
    }                                                                                               \
    _Pragma("unroll") for (int l = 0; l < B1; l++) {                                                \
        const int e = id + l * WG;                                                                  \
        ((__local float *)b_tile[buffer])[B_TERM(e) * B_PITCH + B_COLUMN(e)] = b_next[l];           \
    }

    FETCH(K0)
    STAGE(0)
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k0 = K0, now = 0; k0 < K; k0 += BK, now = 1 - now) {
        if (k0 + BK < K) {
            FETCH(k0 + BK)
        }
        multiply_first(a_tile[now], b_tile[now], tm, tn, sum);
        if (k0 + BK < K) {
            STAGE(1 - now)
        }
        multiply_last(a_tile[now], b_tile[now], tm, tn, sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#pragma unroll
    for (int i = 0; i < TM; i++) {
        const int row = i0 + ROW_OF(i);
        if (row >= range.s1) continue;
#pragma unroll
        for (int j = 0; j < TN / 4; j++)
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const int column = j0 + COLUMN_OF(j, q);
                if (column >= range.s3) continue;
                const int to = z * batch.s2 + row * steps.s6 + column;
#ifdef SPLIT
                const int split = (int)get_global_id(2) % range.s6;
                part[part_at + split * batch.s2 * batch.s3 + to] = COMPONENT(sum[i][j], q);
#else
                FINISH(COMPONENT(sum[i][j], q), to)
#endif
            }
    }
}

#ifdef SPLIT
__kernel void matrix_sum(__global const float *a, int a_at, __global const float *b, int b_at,
                         __global const float *c, int c_at, __global float *y, int y_at, PARTS int8 steps,
                         int8 range, int4 batch, float2 factors CHAIN_PARAMETERS) {
    const int column = range.s2 + get_global_id(0), row = range.s0 + get_global_id(1);
    const int to = get_global_id(2) * batch.s2 + row * steps.s6 + column;
    float sum = 0.0f;
    if (column >= range.s3) return;
    for (int s = 0; s < range.s6; s++) sum += part[part_at + s * batch.s2 * batch.s3 + to];
    FINISH(sum, to)
}
#endif

#else
/* ---- convolution of channels by pixels (of all samples, in one row). If a launch would have too
 * few groups, the sum is split into `splits` parts, which conv_sum adds. Built with the window KH
 * KW, strides SH SW, dilations DH DW. FEW: few channels, with terms in the order [channel][tap];
 * else [tap][channel]. Weights are packed [group][term][channel out]. DEEP: three spatial axes; KD
 * SD DD are those of the first ---- */

#ifdef DEEP
#define KK (KD * KH * KW)
#define DEPTHS range.sa /* of the part that is computed */
#define IN_DEPTHS range.sb
#define OUT_DEPTHS range.sc
/* Depth of a pixel of the tile. */
#define DEPTH_OF(pixel_) ((pixel_) / plane % DEPTHS)
#else
#define KK (KH * KW)
#define DEPTHS 1
#define IN_DEPTHS 1
#define OUT_DEPTHS 1
/* Depth of a pixel: the only one. */
#define DEPTH_OF(pixel_) 0
#endif
#define A4 ((BM * BK / 4 + WG - 1) / WG) /* float4 of weights that a work-item stages */
#define ROWS (WG / BN)                   /* terms of pixels staged at once */
#define B1 (BK / ROWS)

/* Weights stay as they are stored until they are staged: a conversion behind the load would wait for
 * memory before the products that hide it. */
#ifdef HALF /* of the weights; sums are floats */
#define STORED half
#define STORED4 uint2
/* Offset in halves of a place in floats. */
#define STORED_AT(at) (2 * (at))
/* Four stored weights as floats. */
#define FLOAT4(stored) vload_half4(0, (const __private half *)&(stored))
#else
#define STORED float
#define STORED4 float4
/* Offset of a place in floats. */
#define STORED_AT(at) (at)
/* Four stored weights as floats. */
#define FLOAT4(stored) (stored)
#endif

/* Sample, from n0 on, of a pixel of the tile. */
#define SAMPLE_OF(pixel_) ((pixel_) / (plane * DEPTHS))
/* Element of y for a pixel of the tile and output channel m_. */
#define TO(pixel_, m_) ((((n0 + SAMPLE_OF(pixel_)) * M + (m_)) * OUT_DEPTHS + d0 + DEPTH_OF(pixel_)) * OH * OW + \
                        (h0 + (pixel_) % plane / BW) * OW + w0 + (pixel_) % BW)

__attribute__((reqd_work_group_size(WG, 1, 1)))
__kernel void conv_tile(__global const float *x, int x_at, __global const STORED *weight,
                        int weight_at, __global const float *bias, int bias_at, __global float *y,
                        int y_at, __global float *part, int part_at, int16 shape,
                        int16 range CHAIN_PARAMETERS) {
    const int C = shape.s0, CG = shape.s1, H = shape.s2, W = shape.s3, OH = shape.s4;
    const int OW = shape.s5, M = shape.s6, MG = shape.s7;
    const int slices = shape.sb, each = shape.sc, tiles = shape.sd, splits = shape.se;
    const int n0 = range.s0, h0 = range.s1, w0 = range.s2, BH = range.s3, BW = range.s4;
    const int pixels = range.s5, c0 = range.s6, c1 = range.s7, d0 = range.s9;
    const int id = get_local_id(0), pixel0 = get_group_id(0) * BN;
    const int tile = range.s8 + get_global_id(1), split = get_global_id(2);
    const int group = tile / tiles, m0 = tile % tiles * BM, plane = BH * BW;
    const int first = split * each, last = min(slices, first + each);

    /* the pixel that this work-item stages, and its first tap */
    const int mine = min(pixel0 + id % BN, pixels - 1), row = id / BN;
    const int ih0 = (h0 + mine % plane / BW) * SH - shape.s8;
    const int iw0 = (w0 + mine % BW) * SW - shape.s9, deep = IN_DEPTHS * H * W;
#ifdef DEEP
    const int id0 = (d0 + DEPTH_OF(mine)) * SD - range.sd;
/* Declares depth, ih and iw: the input place that tap t reads. */
#define TAP(t) const int depth = id0 + (t) / (KH * KW) * DD, ih = ih0 + (t) / KW % KH * DH, iw = iw0 + (t) % KW * DW;
#define INSIDE ((uint)depth < (uint)IN_DEPTHS && (uint)ih < (uint)H && (uint)iw < (uint)W)
#define PLACE ((depth * H + ih) * W + iw)
#else
/* Declares ih and iw: the input place that tap t reads. */
#define TAP(t) const int ih = ih0 + (t) / KW * DH, iw = iw0 + (t) % KW * DW;
#define INSIDE ((uint)ih < (uint)H && (uint)iw < (uint)W)
#define PLACE (ih * W + iw)
#endif
    __global const float *from = x + x_at + ((n0 + SAMPLE_OF(mine)) * C + group * CG) * deep;
    __global const STORED *rows = weight + STORED_AT(weight_at) + group * slices * BK * tiles * BM + m0;
    const int pitch = tiles * (BM / 4);
#ifndef FEW
    const int along = (CG + BK - 1) / BK; /* slices of a tap */
#endif

    STORED4 a_next[A4];
    float b_next[B1];
    TILES

#ifdef FEW
/* Fetches this work-item's part of B for step s into b_next; 0 outside the picture. */
#define FETCH_B(s)                                                                                  \
    _Pragma("unroll") for (int j = 0; j < B1; j++) {                                                \
        const int k = (s) * BK + row + j * ROWS, c = k / KK, t = k % KK;                            \
        TAP(t)                                                                                      \
        b_next[j] = c < CG && INSIDE ? from[c * deep + PLACE] : 0.0f;                               \
    }
#else
/* Fetches this work-item's part of B for step s, of one tap, into b_next; 0 outside the picture. */
#define FETCH_B(s)                                                                                  \
    {                                                                                               \
        const int t = (s) / along, c = (s) % along * BK + row;                                      \
        TAP(t)                                                                                      \
        const int in = INSIDE;                                                                      \
        __global const float *at = from + c * deep + PLACE;                                         \
        _Pragma("unroll") for (int j = 0; j < B1; j++)                                              \
            b_next[j] = in && c + j * ROWS < CG ? at[j * ROWS * deep] : 0.0f;                       \
    }
#endif
/* Fetches this work-item's parts of A and B for step s, into a_next and b_next. */
#define FETCH(s)                                                                                    \
    _Pragma("unroll") for (int i = 0; i < A4; i++) {                                                \
        const int at = id + i * WG;                                                                 \
        if (at < BM * BK / 4)                                                                       \
            a_next[i] = ((__global const STORED4 *)rows)[((s) * BK + at / (BM / 4)) * pitch +       \
                                                         at % (BM / 4)];                            \
    }                                                                                               \
    FETCH_B(s)
/* Writes what was fetched to the local tiles. */
#define STAGE(buffer)                                                                               \
    _Pragma("unroll") for (int i = 0; i < A4; i++)                                                  \
        if (id + i * WG < BM * BK / 4) a_tile[buffer][id + i * WG] = FLOAT4(a_next[i]);             \
    _Pragma("unroll") for (int j = 0; j < B1; j++)                                                  \
        ((__local float *)b_tile[buffer])[(row + j * ROWS) * BN + id % BN] = b_next[j];

    if (first < last) {
        FETCH(first)
        STAGE(0)
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = first; s < last; s++) {
        const int now = (s - first) & 1;
        if (s + 1 < last) {
            FETCH(s + 1)
        }
        multiply_first(a_tile[now], b_tile[now], tm, tn, sum);
        if (s + 1 < last) {
            STAGE(1 - now)
        }
        multiply_last(a_tile[now], b_tile[now], tm, tn, sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#pragma unroll
    for (int j = 0; j < TN / 4; j++)
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const int pixel = pixel0 + COLUMN_OF(j, q);
            if (pixel >= pixels) continue;
            const int to = TO(pixel, 0);
#pragma unroll
            for (int i = 0; i < TM; i++) {
                const int within = m0 + ROW_OF(i);
                const int m = group * MG + within;
                if (within >= MG || m < c0 || m >= c1) continue;
                float value = COMPONENT(sum[i][j], q);
                if (splits > 1) {
                    part[part_at + (split * (c1 - c0) + m - c0) * pixels + pixel] = value;
                } else {
                    if (shape.sa) value += bias[bias_at + m];
                    const int at = to + m * OUT_DEPTHS * OH * OW;
                    y[y_at + at] = chain(value, at CHAIN_PASS);
                }
            }
        }
}

/* Adds the parts; adjacent work-items have adjacent pixels of a channel. */
__kernel void conv_sum(__global const float *part, int part_at, __global const float *bias,
                       int bias_at, __global float *y, int y_at, int16 shape,
                       int16 range CHAIN_PARAMETERS) {
    const int OH = shape.s4, OW = shape.s5, M = shape.s6, splits = shape.se;
    const int n0 = range.s0, h0 = range.s1, w0 = range.s2, BW = range.s4;
    const int pixels = range.s5, c0 = range.s6, many = (range.s7 - c0) * pixels, d0 = range.s9;
    const int plane = range.s3 * BW, i = get_global_id(0);
    if (i >= many) return;
    const int m = c0 + i / pixels, pixel = i % pixels;
    float value = shape.sa ? bias[bias_at + m] : 0.0f;
    for (int s = 0; s < splits; s++) value += part[part_at + s * many + i];
    const int at = TO(pixel, m);
    y[y_at + at] = chain(value, at CHAIN_PASS);
}
#endif
