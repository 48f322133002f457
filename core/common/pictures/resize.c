/* Antialiased bilinear scaling of 8-bit pictures, equal to Pillow's bit for bit (seen with 10.4 and
 * 12.0; 13.0 sometimes takes the passes in the other order, which moves some values by one).
 *
 * Pillow scales in two passes, rows then columns, with an 8-bit picture between them. A pass sums
 * pixels with weights of a triangle that widens with the reduction; weights are rounded to 22
 * fractional bits, sums to the nearest. Doing the same operations in the same order gives the same
 * bytes. */
#include "pictures/pictures.h"
#include <math.h>

enum { BITS = 22 };

/* How one axis is resampled: for each output position its input positions and weights. */
typedef struct axis {
    int64_t taps;  /* weights stored for each output position */
    int64_t *from; /* first input position of each output position */
    int64_t *n;    /* number of input positions of each output position */
    int32_t *weight;
} axis;

/* Frees the lists of an axis, not the struct. */
static void axis_free(axis *a) {
    cnri_free(a->from);
    cnri_free(a->n);
    cnri_free(a->weight);
}

/* Weight of linear interpolation at distance x. */
static double triangle(double x) {
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* Computes the weights of one output position. `real` has room for `taps` numbers. */
static void weigh(axis *a, int64_t in, int64_t position, double scale, double *real) {
    const double widen = scale < 1.0 ? 1.0 : scale;
    const double centre = ((double)position + 0.5) * scale, narrow = 1.0 / widen;
    int64_t from = (int64_t)(centre - widen + 0.5), to = (int64_t)(centre + widen + 0.5);
    if (from < 0) from = 0;
    if (to > in) to = in;
    double sum = 0;
    for (int64_t i = from; i < to; i++) {
        real[i - from] = triangle(((double)i - centre + 0.5) * narrow);
        sum += real[i - from];
    }
    int32_t *weight = a->weight + position * a->taps;
    for (int64_t i = 0; i < to - from; i++) {
        const double w = sum != 0 ? real[i] / sum : real[i];
        weight[i] = (int32_t)(0.5 + w * (1 << BITS));
    }
    a->from[position] = from;
    a->n[position] = to - from;
}

/* Computes positions and fixed-point weights for one axis. False: out of memory. */
static bool axis_make(axis *a, int64_t in, int64_t out) {
    const double scale = (double)in / (double)out;
    bool overflow = false;
    memset(a, 0, sizeof *a);
    a->taps = (int64_t)ceil(scale < 1.0 ? 1.0 : scale) * 2 + 1;
    const size_t positions = cnri_mul((size_t)out, sizeof *a->from, &overflow);
    const size_t weights =
        cnri_mul(cnri_mul((size_t)out, (size_t)a->taps, &overflow), sizeof *a->weight, &overflow);
    if (overflow) return false;
    double *real = cnri_alloc((size_t)a->taps * sizeof *real);
    a->from = cnri_alloc(positions);
    a->n = cnri_alloc(positions);
    a->weight = cnri_alloc(weights);
    const bool good = real && a->from && a->n && a->weight;
    for (int64_t i = 0; good && i < out; i++) weigh(a, in, i, scale, real);
    cnri_free(real);
    return good;
}

/* A fixed-point sum as a pixel, limited to 0..255. */
static uint8_t rounded(int32_t sum) {
    sum >>= BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* Computes one output pixel of three channels from n input pixels with fixed-point weights. */
static void sum_rgb(const uint8_t *from, const int32_t *weight, int64_t n, uint8_t *out) {
    int32_t r = 1 << (BITS - 1), g = r, b = r;
    for (int64_t i = 0; i < n; i++, from += 3) {
        r += from[0] * weight[i];
        g += from[1] * weight[i];
        b += from[2] * weight[i];
    }
    out[0] = rounded(r);
    out[1] = rounded(g);
    out[2] = rounded(b);
}

/* Scales each row from w to out_w pixels. */
static void rows_pass(const axis *a, const uint8_t *in, int64_t h, int64_t w, int64_t channels,
                      uint8_t *out, int64_t out_w) {
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < out_w; x++) {
            const int32_t *weight = a->weight + x * a->taps;
            const uint8_t *from = in + (y * w + a->from[x]) * channels;
            if (channels == 3) {
                sum_rgb(from, weight, a->n[x], out);
                out += 3;
                continue;
            }
            for (int64_t c = 0; c < channels; c++) {
                int32_t sum = 1 << (BITS - 1);
                for (int64_t i = 0; i < a->n[x]; i++) sum += from[i * channels + c] * weight[i];
                *out++ = rounded(sum);
            }
        }
}

/* Scales the columns of `in` to the out_h rows of `out`. `bytes`: the length of a row, for which
 * `sums` has room. */
static void columns_pass(const axis *a, const uint8_t *in, int64_t bytes, uint8_t *out,
                         int64_t out_h, int32_t *sums) {
    for (int64_t y = 0; y < out_h; y++) {
        const int32_t *weight = a->weight + y * a->taps;
        const uint8_t *from = in + a->from[y] * bytes;
        for (int64_t x = 0; x < bytes; x++) sums[x] = 1 << (BITS - 1);
        for (int64_t i = 0; i < a->n[y]; i++)
            for (int64_t x = 0; x < bytes; x++) sums[x] += from[i * bytes + x] * weight[i];
        for (int64_t x = 0; x < bytes; x++) out[x] = rounded(sums[x]);
        out += bytes;
    }
}

cnr_status cnri_resize_u8(const uint8_t *in, int64_t h, int64_t w, int64_t channels, uint8_t *out,
                          int64_t out_h, int64_t out_w) {
    bool overflow = false;
    axis across = {0}, down = {0};
    uint8_t *between = NULL;
    int32_t *sums = NULL;
    cnr_status status = CNR_OK;
    if (h < 1 || w < 1 || channels < 1 || out_h < 1 || out_w < 1) return CNR_E_ARG;
    const size_t row = cnri_mul((size_t)out_w, (size_t)channels, &overflow);
    const size_t whole = cnri_mul(row, (size_t)h, &overflow);
    const size_t sum_bytes = cnri_mul(row, sizeof *sums, &overflow);
    if (overflow) return CNR_E_LIMIT;
    if (w == out_w && h == out_h) {
        memcpy(out, in, whole);
        return CNR_OK;
    }
    if (w != out_w) {
        if (h != out_h) between = cnri_alloc(whole);
        if (!axis_make(&across, w, out_w) || (h != out_h && !between)) status = CNR_E_MEMORY;
        else rows_pass(&across, in, h, w, channels, between ? between : out, out_w);
    }
    if (h != out_h && !status) {
        sums = cnri_alloc(sum_bytes);
        if (!axis_make(&down, h, out_h) || !sums) status = CNR_E_MEMORY;
        else columns_pass(&down, between ? between : in, (int64_t)row, out, out_h, sums);
    }
    axis_free(&across);
    axis_free(&down);
    cnri_free(between);
    cnri_free(sums);
    return status;
}
