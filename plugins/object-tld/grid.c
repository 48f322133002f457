/* The windows that the detector scans: several scales, shifted by a fraction of their shorter
 * side. */
#include "tld.h"
#include <math.h>

void tld_grid_make(tld_grid *g, const tld_options *o, double box_w, double box_h, int32_t width,
                   int32_t height) {
    const int32_t most = (int32_t)o->scales;
    const double by = box_w * box_h < o->smallest * o->smallest ? o->shrink : 1;
    const double smallest = fmin(o->smallest, by * fmin(box_w, box_h)); /* includes the first box */
    *g = (tld_grid){.width = width, .height = height};
    for (int32_t k = -most; k <= most; k++) {
        const double at = pow(o->scale_step, k);
        if (box_w * at > width || box_h * at > height) continue;
        const int32_t w = (int32_t)lround(box_w * at), h = (int32_t)lround(box_h * at);
        if (w < 4 || h < 4 || w < floor(smallest) || h < floor(smallest) || w > width || h > height)
            continue;
        /* not finer than for the box's own size: small windows would be the majority */
        const double side = by < 1 ? fmax(fmin(w, h), fmin(box_w, box_h)) : fmin(w, h);
        const int32_t step = (int32_t)cnr_max(1, lround(o->shift * side));
        tld_scale *s = &g->scales[g->n++];
        *s = (tld_scale){w, h, step, (width - w) / step + 1, (height - h) / step + 1, g->windows};
        g->windows += (int64_t)s->nx * s->ny;
    }
}

int32_t tld_scale_of(const tld_grid *g, int64_t index) {
    int32_t k = g->n - 1;
    while (k > 0 && g->scales[k].first > index) k--;
    return k;
}

tld_box tld_window(const tld_grid *g, int64_t index) {
    const tld_scale *s = &g->scales[tld_scale_of(g, index)];
    const int64_t i = index - s->first;
    return (tld_box){(double)(i % s->nx * s->step), (double)(i / s->nx * s->step), s->w, s->h};
}

double tld_overlap(tld_box a, tld_box b) {
    const double w = fmin(a.x + a.w, b.x + b.w) - fmax(a.x, b.x);
    const double h = fmin(a.y + a.h, b.y + b.h) - fmax(a.y, b.y);
    return w <= 0 || h <= 0 ? 0 : w * h / (a.w * a.h + b.w * b.h - w * h);
}

/* [*lo, *hi): window indices along one side that touch [at, at + length). */
static void touching(double at, double length, int32_t size, int32_t step, int32_t n, int32_t *lo,
                     int32_t *hi) {
    *lo = (int32_t)fmax(0, fmin(n, floor((at - size) / step)));
    *hi = (int32_t)fmax(0, fmin(n, ceil((at + length) / step) + 1));
}

/* Writes the windows with the highest overlap with the box, at least `least`, best first, to out,
 * at most `most`. Returns how many. */
int32_t tld_closest(const tld_grid *g, tld_box box, double least, int32_t most, int64_t *out) {
    double best[64];
    int32_t n = 0, x0, x1, y0, y1;
    for (int32_t k = 0; k < g->n; k++) {
        const tld_scale *s = &g->scales[k];
        const double a = (double)s->w * s->h, b = box.w * box.h;
        if (fmin(a, b) / fmax(a, b) < least) continue;
        touching(box.x, box.w, s->w, s->step, s->nx, &x0, &x1);
        touching(box.y, box.h, s->h, s->step, s->ny, &y0, &y1);
        for (int32_t y = y0; y < y1; y++)
            for (int32_t x = x0; x < x1; x++) {
                const tld_box w = {(double)x * s->step, (double)y * s->step, s->w, s->h};
                const double o = tld_overlap(w, box);
                if (o < least || o <= 0 || (n == most && o <= best[n - 1])) continue;
                int32_t i = n < most ? n++ : n - 1;
                for (; i > 0 && best[i - 1] < o; i--) {
                    best[i] = best[i - 1];
                    out[i] = out[i - 1];
                }
                best[i] = o;
                out[i] = s->first + (int64_t)y * s->nx + x;
            }
    }
    return n;
}
