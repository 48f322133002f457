/* Normalisation of a row: its moments, and the normalised elements. */

typedef double wide __attribute__((vector_size(VL * 4)));
typedef float part_u __attribute__((vector_size(VL * 2), aligned(4), may_alias));

INLINE wide widened(const float *p) { return __builtin_convertvector(*(const part_u *)p, wide); }

INLINE double sum_wide(wide v) {
    double sum = 0;
    for (int l = 0; l < VL / 2; l++) sum += v[l];
    return sum;
}

/* *mean and *variance of n numbers. One pass, in double, over the distances from x[0]: the mean's
 * distance from x[0] is at most sqrt(n) deviations, so little cancels. */
static void moments(const float *x, int64_t n, double *mean, double *variance) {
    const double first = (double)x[0];
    const wide shift = first - (wide){0};
    wide sum[2] = {{0}, {0}}, square[2] = {{0}, {0}};
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        UNROLL(2)
        for (int j = 0; j < 2; j++) {
            const wide d = widened(x + i + j * (VL / 2)) - shift;
            sum[j] += d;
            square[j] += d * d;
        }
    }
    double s = sum_wide(sum[0] + sum[1]), q = sum_wide(square[0] + square[1]);
    for (; i < n; i++) {
        const double d = (double)x[i] - first;
        s += d;
        q += d * d;
    }
    if (!__builtin_isfinite(s)) { /* the mean may be infinite as well as NaN */
        s = 0;
        for (i = 0; i < n; i++) s += (double)x[i];
        *mean = s / (double)n;
        *variance = (double)NAN;
        return;
    }
    s /= (double)n;
    q = q / (double)n - s * s;
    *mean = first + s;
    *variance = q < 0 ? 0 : q;
}

INLINE void normalise_all(const neon_normal *by, const float *x, float *out, int64_t n,
                          const int scaled_by, const int shifted_by) {
    const vec high = splat(by->mean), low = splat(by->mean_rest), factor = splat(by->factor);
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t here = n - i < VL ? n - i : VL;
        const int whole = here == VL;
        vec v = whole ? load(x + i) : load_part(x + i, here);
        vec shift = splat(by->start);
        if (shifted_by) shift += whole ? load(by->shift + i) : load_part(by->shift + i, here);
        v = ((v - high) - low) * factor;
        if (scaled_by)
            v = fuse(v, whole ? load(by->scale + i) : load_part(by->scale + i, here), shift);
        else v += shift;
        if (whole) store(out + i, v);
        else store_part(out + i, v, here);
    }
}

/* Normalises n elements, with scale and shift where there are any. */
static void normalise(const neon_normal *by, const float *x, float *out, int64_t n) {
    if (by->scale && by->shift) normalise_all(by, x, out, n, 1, 1);
    else if (by->scale) normalise_all(by, x, out, n, 1, 0);
    else if (by->shift) normalise_all(by, x, out, n, 0, 1);
    else normalise_all(by, x, out, n, 0, 0);
}
