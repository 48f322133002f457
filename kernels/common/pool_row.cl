/* The maximum (MAX) or the mean of each window, a row of outputs for each work-item: first along
 * the columns, then along the row. For devices whose work-items are loops on a CPU, which
 * vectorise. Built with the window KH KW SH SW DH DW, and WIDE, the length of an input row. */

#ifdef MAX
#define FIRST -INFINITY
/* Takes v into the maximum a; NaN stays. */
#define TAKE(a, v) (!((v) <= (a)) && (a) == (a) ? (v) : (a))
#else
#define FIRST 0.0f
/* Takes v into the sum a. */
#define TAKE(a, v) ((a) + (v))
#endif

/* How many of `taps` places from `begin` on, `step` apart, count: with `include` all below end +
 * past, else those in [0, end). */
int counted(int begin, int taps, int step, int end, int past, int include) {
    int many = 0;
    for (int k = 0; k < taps; k++) {
        const int i = begin + k * step;
        many += include ? i < end + past : (uint)i < (uint)end;
    }
    return many;
}

__kernel void pool_row(__global const float *x, int x_at, __global float *y, int y_at, int16 shape,
                       int16 range, int4 ends CHAIN_PARAMETERS) {
    const int H = shape.s3, W = WIDE, OH = shape.s6, OW = shape.s7, C = shape.s8;
    const int at = get_global_id(0), n = range.s9 + get_global_id(2), c = range.s7 + get_global_id(1);
    if (at >= range.s4) return;
    const int oh = range.s1 + at, h0 = oh * SH - shape.sc;
    __global const float *plane = x + x_at + (n * C + c) * H * W;
    float column[WIDE], row[WIDE + 1];
    for (int i = 0; i < W; i++) column[i] = FIRST;
    for (int kh = 0; kh < KH; kh++) {
        const int ih = h0 + kh * DH;
        if ((uint)ih >= (uint)H) continue;
        __global const float *from = plane + ih * W;
        for (int i = 0; i < W; i++) column[i] = TAKE(column[i], from[i]);
    }
    const int w0 = range.s2, many = range.s5, pad = shape.sd;
    /* outputs whose windows are inside need no bounds checks */
    const int inner = min(many, max(0, (pad + SW - 1) / SW - w0));
    const int room = W - 1 - (KW - 1) * DW + pad; /* below 0: no window is inside */
    const int outer = room < 0 ? inner : max(inner, min(many, room / SW + 1 - w0));
    for (int o = 0; o < many; o++) {
        if (o == inner) o = outer;
        if (o >= many) break;
        float value = FIRST;
        for (int kw = 0; kw < KW; kw++) {
            const int i = (w0 + o) * SW - pad + kw * DW;
            if ((uint)i < (uint)W) value = TAKE(value, column[i]);
        }
        row[o] = value;
    }
    for (int o = inner; o < outer; o++) {
        const float *from = column + (w0 + o) * SW - pad;
        float value = from[0];
        for (int kw = 1; kw < KW; kw++) value = TAKE(value, from[kw * DW]);
        row[o] = value;
    }
#ifndef MAX
    const int down = counted(h0, KH, DH, H, ends.s1, ends.s3);
    for (int o = 0; o < many; o++) {
        const int all = down * counted((w0 + o) * SW - pad, KW, DW, W, ends.s2, ends.s3);
        row[o] = all > 0 ? row[o] / all : 0.0f;
    }
#endif
    const int to = ((n * C + c) * OH + oh) * OW + w0;
    for (int o = 0; o < many; o++) y[y_at + to + o] = chain(row[o], to + o CHAIN_PASS);
}
