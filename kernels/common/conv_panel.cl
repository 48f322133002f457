/* Convolution without local memory: a work-item holds MT channels of NV vectors of VW pixels in
 * registers, and reads whole vectors without bounds checks from what conv_stage or conv_columns
 * prepared. The pixels of all samples are one row `q` of lines with length `wide`; those beyond an
 * edge are computed but not stored. Built with the window KH KW, strides SH SW, dilations DH DW,
 * which are 1 if the terms of the sum are whole planes of the input. Weights are packed [block of
 * MT channels][channel in][tap][MT]. */

#if VW == 16
typedef float16 vec;
/* A vector of VW floats from memory at p. */
#define LOAD(p) vload16(0, p)
/* Writes vector v of VW floats to memory at p. */
#define SAVE(v, p) vstore16(v, 0, p)
#elif VW == 8
typedef float8 vec;
/* A vector of 8 floats from memory at p. */
#define LOAD(p) vload8(0, p)
/* Writes vector v to memory at p. */
#define SAVE(v, p) vstore8(v, 0, p)
#else
typedef float4 vec;
/* A vector of 4 floats from memory at p. */
#define LOAD(p) vload4(0, p)
/* Writes vector v to memory at p. */
#define SAVE(v, p) vstore4(v, 0, p)
#endif

#ifdef HALF /* of the weights; sums are floats */
typedef half stored;
/* Offset, in stored elements, of a weight's place in floats. */
#define STORED_AT(at) (2 * (at))
#else
typedef float stored;
/* Offset of a weight's place in floats. */
#define STORED_AT(at) (at)
#endif
#ifdef HALF_MATH
/* Weight i of a panel's row for tap `tap`, in half. */
#define WEIGHT(tap, i) WEIGHT1(w, (tap) * MT + (i))
#elif defined HALF && VW == 16 /* a CPU converts 16 at a time */
#define TAPS ((KH * KW * MT + 15) / 16 * 16)
/* Weight i for tap `tap`, which was widened before. */
#define WEIGHT(tap, i) near[(tap) * MT + (i)]
#elif defined HALF
/* Weight i for tap `tap`, widened from half. */
#define WEIGHT(tap, i) vload_half((tap) * MT + (i), w)
#else
/* Weight i for tap `tap`, stored as float. */
#define WEIGHT(tap, i) w[(tap) * MT + (i)]
#endif

#ifdef HALF_MATH /* short sums are halves: terms.cl precedes this source */
/* Joins two words, as written. */
#define NAMED_(a, b) a##b
/* Joins two words, after macros. */
#define NAMED(a, b) NAMED_(a, b)
typedef NAMED(real, VW) term;
/* The number as the multiplication takes it. */
#define NEAR(v) rounded(v)
#define MULTIPLY multiply_add
#define SUM part
#define FLUSH                                                                                       \
    _Pragma("unroll") for (int i = 0; i < MT; i++)                                                  \
        _Pragma("unroll") for (int j = 0; j < NV; j++) {                                            \
            sum[i][j] += widened(part[i][j]);                                                       \
            part[i][j] = (term)(0);                                                                 \
        }
#else
typedef vec term;
/* V as it is multiplied. */
#define NEAR(v) (v)
#define MULTIPLY MAD
#define SUM sum
#define FLUSH
/* True where partial sums are to be moved on. */
#define FULL(n) 0
#endif

/* A GPU's work-item has 64 registers: too few for an address for each of many taps. */
#if VW == 4 && (KH * KW > 9 || SH * SW > 1)
#define ROWS_OF_TAPS _Pragma("unroll 1")
#else
#define ROWS_OF_TAPS _Pragma("unroll")
#endif
#if VW == 4 && KH * KW > 9
#define TAPS_OF_ROW _Pragma("unroll 1")
#else
#define TAPS_OF_ROW _Pragma("unroll")
#endif

/* For a matrix product, the added value is addressed by steps, instead of one number for each
 * channel. */
#ifdef PRODUCT
#define PRODUCT_PARAMETERS , __global const float *c, int8 range, float beta
#define PRODUCT_PASS , bias + bias_at, range, beta
/* The sum i, with beta times c of its place added if there is a c. */
#define PLUS(i) (shape.sa ? MAD(beta, c[m * range.s4 + (q + (i)) * range.s5], part[i]) : part[i])
#else
#define PRODUCT_PARAMETERS
#define PRODUCT_PASS
/* The sum i with the bias. */
#define PLUS(i) (part[i] + bias)
#endif

/* Stores a vector of channel m: the pixels from q on that are within [first, last) and not beyond
 * an edge. */
void store(vec v, int q, int first, int last, int m, float bias, int n, int16 shape,
           __global float *y PRODUCT_PARAMETERS CHAIN_PARAMETERS) {
    const int wide = shape.s4, high = shape.s5, OW = shape.s6, OH = shape.s7, M = shape.s8;
    float part[VW];
    SAVE(v, part);
    int ow = q % wide, oh = q / wide % high, to;
    n += q / wide / high;
    to = ((n * M + m) * OH + oh) * OW + ow;
    if (q >= first && q + VW <= last && ow + VW <= OW && oh < OH) {
#if defined CHAIN_NONE && !defined PRODUCT
        SAVE(v + bias, y + to);
        return;
#endif
        for (int i = 0; i < VW; i++) y[to + i] = chain(PLUS(i), to + i CHAIN_PASS);
        return;
    }
    for (int i = 0; i < VW; i++) {
        if (q + i >= first && q + i < last && ow < OW && oh < OH)
            y[to] = chain(PLUS(i), to CHAIN_PASS);
        ow++;
        to++;
        if (ow < wide) continue;
        ow = 0;
        if (++oh == high) {
            oh = 0;
            n++;
        }
        to = ((n * M + m) * OH + oh) * OW;
    }
}

__kernel void conv_panel(__global const float *x, int x_at, __global const stored *weight,
                         int weight_at, __global const float *bias, int bias_at, __global float *y,
                         int y_at, int16 shape, int8 range
#ifdef PRODUCT
                         , float beta
#endif
                         CHAIN_PARAMETERS) {
    const int tile = get_global_id(0), block = range.s2 + get_global_id(1), n = get_global_id(2);
    const int first = tile * (NV * VW), last = min(first + NV * VW, shape.sc);
    if (first >= shape.sc) return;
    const int q = min(first, shape.sd - NV * VW); /* stay within the readable range */
    const int group = block / shape.sb, m0 = group * shape.s9 + block % shape.sb * MT;
    const int m1 = min(range.s1, (group + 1) * shape.s9), plane = shape.s0, wide = shape.s4;
    __global const float *from = x + x_at + n * shape.s2 + group * shape.s1 + q;
    __global const stored *w = weight + STORED_AT(weight_at) + block * shape.s3 * (KH * KW * MT);
#ifdef PRODUCT
    w += n * range.s3;
#endif
    vec sum[MT][NV];
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NV; j++) sum[i][j] = 0.0f;
#ifdef HALF_MATH
    term part[MT][NV];
    TERMS
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NV; j++) part[i][j] = (term)(0);
#endif
    for (int c = 0; c < shape.s3; c++, from += plane, w += KH * KW * MT) {
#ifdef TAPS
        float near[TAPS];
        for (int k = 0; k < TAPS; k += 16) vstore16(vload_half16(0, w + k), 0, near + k);
#endif
        ROWS_OF_TAPS
        for (int kh = 0; kh < KH; kh++)
            TAPS_OF_ROW
            for (int kw = 0; kw < KW; kw++) {
                const int phase = kh * DH % SH * PW + kw * DW % SW;
                __global const float *at =
                    from + phase * shape.se + kh * DH / SH * wide + kw * DW / SW;
                term b[NV];
#pragma unroll
                for (int j = 0; j < NV; j++) b[j] = NEAR(LOAD(at + j * VW));
#pragma unroll
                for (int i = 0; i < MT; i++)
#pragma unroll
                    for (int j = 0; j < NV; j++) SUM[i][j] =
                            MULTIPLY((term)(WEIGHT(kh * KW + kw, i)), b[j], SUM[i][j]);
                if (kw == KW - 1 && FULL(KW)) {
                    FLUSH
                }
            }
    }
    FLUSH
#pragma unroll
    for (int i = 0; i < MT; i++) {
        const int m = m0 + i;
        if (m < range.s0 || m >= m1) continue;
#ifdef PRODUCT
        const float start = 0.0f;
#else
        const float start = shape.sa ? bias[bias_at + m] : 0.0f;
#endif
#pragma unroll
        for (int j = 0; j < NV; j++)
            store(sum[i][j], q + j * VW, first, last, m, start, n, shape,
                  y + y_at PRODUCT_PASS CHAIN_PASS);
    }
}

/* Lays out the rows of a matrix, times `alpha`, as panels of weights: [sample][block of MT
 * rows][term][MT]. steps: rows, terms, their distances, and samples; blocks. One block for each
 * work-item. */
__kernel void product_lay(__global const float *a, int a_at, __global float *to, int to_at, int8 steps,
                          float alpha) {
    const int block = get_global_id(0), n = get_global_id(1), K = steps.s1;
    if (block >= steps.s5) return;
    __global float *panel = to + to_at + (n * steps.s5 + block) * K * MT;
    for (int i = 0; i < MT; i++) {
        const int row = min(block * MT + i, steps.s0 - 1);
        __global const float *from = a + a_at + n * steps.s4 + row * steps.s2;
        for (int k = 0; k < K; k++) panel[k * MT + i] = alpha * from[k * steps.s3];
    }
}

/* Lays out the input with padding: [channel][phase of the strides][sample][row][column]. One row
 * for each work-item. */
__kernel void conv_stage(__global const float *x, int x_at, __global float *to, int to_at,
                         int16 shape, int4 phases, int count) {
    const int C = shape.s0, H = shape.s1, W = shape.s2, N = shape.s3, wide = shape.s4;
    const int high = shape.s5, at = get_global_id(0);
    if (at >= count) return;
    const int row = at % high, n = at / high % N, phase = at / high / N % (phases.s0 * phases.s1);
    const int c = at / high / N / (phases.s0 * phases.s1);
    const int ih = row * shape.s6 + phase / phases.s1 - shape.s8;
    const int iw0 = phase % phases.s1 - shape.s9, step = shape.s7;
    __global float *line = to + to_at + at * wide;
    __global const float *from = x + x_at + ((n * C + c) * H + ih) * W;
    if ((uint)ih >= (uint)H) {
        for (int i = 0; i < wide; i++) line[i] = 0.0f;
        return;
    }
    const int begin = min(wide, iw0 >= 0 ? 0 : (-iw0 + step - 1) / step);
    const int end = max(begin, min(wide, (W - iw0 + step - 1) / step));
    for (int i = 0; i < begin; i++) line[i] = 0.0f;
    for (int i = begin; i < end; i++) line[i] = from[iw0 + i * step];
    for (int i = end; i < wide; i++) line[i] = 0.0f;
}

/* Lays out the input as the columns of a matrix: [channel][tap][sample][output pixel]. One term of
 * one sample for each work-item. */
__kernel void conv_columns(__global const float *x, int x_at, __global float *to, int to_at,
                           int16 shape, int4 dilation, int count) {
    const int C = shape.s0, H = shape.s1, W = shape.s2, N = shape.s3, pitch = shape.s4;
    const int OW = shape.sa, OH = shape.sb, at = get_global_id(0);
    if (at >= count) return;
    const int n = at % N, term = at / N, kw = term % shape.sd, kh = term / shape.sd % shape.sc;
    const int c = term / shape.sd / shape.sc, iw0 = kw * dilation.s1 - shape.s9, step = shape.s7;
    __global float *line = to + to_at + term * pitch + n * OH * OW;
    for (int oh = 0; oh < OH; oh++, line += OW) {
        const int ih = oh * shape.s6 + kh * dilation.s0 - shape.s8;
        __global const float *from = x + x_at + ((n * C + c) * H + ih) * W + iw0;
        const int in = (uint)ih < (uint)H;
        for (int ow = 0; ow < OW; ow++)
            line[ow] = in && (uint)(iw0 + ow * step) < (uint)W ? from[ow * step] : 0.0f;
    }
}
