/* Ranges of values from their histograms: the full range, or a smaller one if finer steps
 * outweigh clipping. */
#include "work/calibrate.h"
#include <math.h>

enum { BINS = 2048, LEVELS = 255, PARTS = 40 };
#define TAIL 1e-4 /* part of the numbers that a percentile range leaves out at each end */

static const char *const methods[] = {"auto", "minmax", "percentile", "mse", "kl"};

cnr_status cnri_range_method(const char *name, cnri_method *out, cnr_error *err) {
    if (!name) name = "minmax"; /* auto was never better on held-back pictures */
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(name, methods[i]) == 0) {
            *out = (cnri_method)i;
            return CNR_OK;
        }
    return cnri_fail(err, CNR_E_ARG, "quantize",
                     "method \"%s\" is unknown; want auto, minmax, percentile, mse or kl", name);
}

const char *cnri_range_method_name(cnri_method method) { return methods[method]; }

/* ---- counting ---- */

/* Counts numbers. Zeros are not counted, because 0 has a byte of its own in any range. */
void cnri_histogram_add(cnri_histogram *h, const cnri_range *all, const cnr_tensor *t) {
    const float *v = t->data;
    const int64_t n = t->dtype == CNR_f32 ? cnr_count(t) : 0;
    const double width = all->high - all->low;
    if (!all->seen || !(width > 0) || !isfinite(width) || n <= 0) return;
    if (!h->bin) h->bin = cnri_alloc_zero(BINS * sizeof *h->bin);
    if (!h->bin) return;
    const float low = (float)all->low, per = (float)(BINS / width);
    for (int64_t i = 0; i < n; i++) {
        const float at = (v[i] - low) * per;
        if (v[i] == 0 || !(at >= 0 && at < (float)BINS * 2)) continue;
        h->bin[at < BINS ? (int)at : BINS - 1]++;
        h->n++;
    }
}

/* Middle of part i of a range. */
static double middle(const cnri_range *all, int i) {
    return all->low + (all->high - all->low) * (i + 0.5) / BINS;
}

/* ---- choosing ---- */

/* Range that leaves out the share TAIL of the numbers at either end. */
static cnri_range by_percentile(const cnri_histogram *h, const cnri_range *all) {
    cnri_range r = *all;
    const double tail = h->n * TAIL, width = (all->high - all->low) / BINS;
    double sum = 0;
    for (int i = 0; i < BINS && (sum += h->bin[i]) <= tail; i++) r.low = all->low + (i + 1) * width;
    sum = 0;
    for (int i = BINS - 1; i >= 0 && (sum += h->bin[i]) <= tail; i--) r.high = all->low + i * width;
    return r;
}

/* Mean square error of bytes over [low, high]: rounding and clipping. */
static double square_error(const cnri_histogram *h, const cnri_range *all, double low,
                           double high) {
    const double step = (high - low) / LEVELS, rounding = step * step / 12;
    double sum = 0;
    for (int i = 0; i < BINS; i++) {
        const double v = middle(all, i), off = v < low ? low - v : v > high ? v - high : 0;
        sum += h->bin[i] * (off > 0 ? off * off : rounding);
    }
    return sum;
}

/* Number of the 8-bit level that a bin falls into, 0 to LEVELS - 1; wide: bins per level. */
static int level_of(int bin, double wide) {
    const int level = (int)(bin / wide);
    return level < LEVELS ? level : LEVELS - 1;
}

/* Kullback-Leibler divergence between the counts within the range and their LEVELS quantised
 * steps. */
static double divergence(const cnri_histogram *h, const cnri_range *all, double low, double high) {
    double cut[BINS], level[LEVELS] = {0}, filled[LEVELS] = {0};
    int first = BINS, last = -1;
    for (int i = 0; i < BINS; i++) {
        const double v = middle(all, i);
        cut[i] = 0;
        if (v < low || v > high) continue;
        if (first > i) first = i;
        last = i;
    }
    if (last < first) return INFINITY;
    for (int i = 0; i < BINS; i++) {
        const int k = i < first ? first : i > last ? last : i;
        cut[k] += h->bin[i];
    }
    const double wide = (last - first + 1) / (double)LEVELS;
    for (int i = first; i <= last; i++) {
        const int k = level_of(i - first, wide);
        level[k] += h->bin[i]; /* clipped numbers are left out here, which is what they cost */
        filled[k] += cut[i] > 0;
    }
    double sum = 0, p_all = 0, q_all = 0;
    for (int i = first; i <= last; i++) p_all += cut[i];
    for (int k = 0; k < LEVELS; k++) q_all += level[k];
    if (!(p_all > 0) || !(q_all > 0)) return INFINITY;
    for (int i = first; i <= last; i++) {
        const int k = level_of(i - first, wide);
        if (!(cut[i] > 0)) continue;
        const double p = cut[i] / p_all;
        const double q = fmax(level[k] / filled[k] / q_all, 1e-9);
        sum += p * log(p / q);
    }
    return sum;
}

typedef double (*cost_fn)(const cnri_histogram *h, const cnri_range *all, double low, double high);

/* Finds the range of least cost, first along the low end, then along the high end; 0 stays
 * inside. */
static cnri_range by_cost(const cnri_histogram *h, const cnri_range *all, cost_fn cost) {
    cnri_range r = *all;
    r.low = fmin(0, all->low);
    r.high = fmax(0, all->high);
    const cnri_range from = r;
    for (int end = 0; end < 2; end++) {
        double best = INFINITY;
        const double whole = end ? from.low : from.high;
        for (int i = 0; i <= PARTS && whole != 0; i++) {
            const double to = whole * (1 - 0.9 * i / PARTS);
            const double c = end ? cost(h, all, to, r.high) : cost(h, all, r.low, to);
            if (!(c < best)) continue;
            best = c;
            *(end ? &r.low : &r.high) = to;
        }
    }
    return r;
}

/* Range of a histogram by one method; `all` if nothing was counted. */
static cnri_range by_method(cnri_method method, const cnri_histogram *h, const cnri_range *all) {
    if (!all->seen || !h->bin || h->n == 0) return *all;
    switch (method) {
    case CNRI_METHOD_PERCENTILE: return by_percentile(h, all);
    case CNRI_METHOD_MSE: return by_cost(h, all, square_error);
    case CNRI_METHOD_KL: return by_cost(h, all, divergence);
    default: return *all;
    }
}

/* True if clipping costs the value more than 1% of its signal, and more than coarse steps would:
 * then a few numbers make most of the value. */
static bool spoils(const cnri_histogram *h, const cnri_range *all, const cnri_range *r) {
    double signal = 0;
    for (int i = 0; i < BINS; i++) signal += h->bin[i] * middle(all, i) * middle(all, i);
    const double cost = square_error(h, all, r->low, r->high);
    return cost > signal / 100 && cost > square_error(h, all, all->low, all->high);
}

cnri_range cnri_range_by(cnri_method method, bool careful, const cnri_histogram *h,
                         const cnri_range *all) {
    const cnri_range r = by_method(method, h, all);
    return careful && h->bin && h->n > 0 && spoils(h, all, &r) ? *all : r;
}

/* ---- values that only a function reads ---- */

/* Number of parts at one end (the last ones with `from_top`) whose results all lie within `most` of
 * the result at the next part. */
static int flat_parts(const float *results, bool from_top, double most) {
    double low = INFINITY, high = -INFINITY;
    int flat = 0;
    for (int i = 0; i < BINS; i++) {
        const double y = (double)results[from_top ? BINS - 1 - i : i];
        low = fmin(low, y);
        high = fmax(high, y);
        if (high - y <= most && y - low <= most) flat = i;
    }
    return flat;
}

cnri_range cnri_range_before(const cnr_node *function, const cnri_range *given) {
    float x[BINS], y[BINS];
    double low = INFINITY, high = -INFINITY;
    cnri_range r = *given;
    bool only_bounds = true; /* a layer's output is bounded without it */
    if (!r.seen || !(r.high > r.low)) return r;
    for (int i = 0; i < BINS; i++) x[i] = (float)(r.low + (r.high - r.low) * i / (BINS - 1));
    function->desc->apply_f32(function, x, NULL, y, BINS);
    for (int i = 0; i < BINS; i++) {
        if (!isfinite(y[i])) return r;
        low = fmin(low, (double)y[i]);
        high = fmax(high, (double)y[i]);
        only_bounds &= y[i] == fminf(fmaxf(x[i], y[0]), y[BINS - 1]);
    }
    const double half = (high - low) / LEVELS / 2;
    if (only_bounds || !(half > 0)) return r;
    r.low = fmin(0, fmax(r.low, (double)x[flat_parts(y, false, half)]));
    r.high = fmax(0, fmin(r.high, (double)x[BINS - 1 - flat_parts(y, true, half)]));
    return r;
}
