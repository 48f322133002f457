/* Aligns the path's box to where it looks most like the learned object: errors of the flow
 * accumulate, learned patches do not move. */
#include "tld.h"
#include <math.h>

/* The highest correlation with any learned patch; with one patch alone the box would follow the
 * patch learned last and drift with it. */
static double likeness(const tld_view *v, tld_box box, const tld_shelf *known) {
    enum { SOME = 64 };
    float patch[TLD_PATCH_PITCH], row[SOME], best = -1;
    tld_patch(v, box, patch);
    for (int32_t at = 0; at < known->n; at += SOME) {
        const int32_t n = (int32_t)cnr_min(SOME, known->n - at);
        tld_v->products(patch, 1, known->at + (int64_t)at * TLD_PATCH_PITCH, n, row);
        for (int32_t i = 0; i < n; i++) best = fmaxf(best, row[i]);
    }
    return (double)best;
}

/* The box shifted by fractions of its sides and scaled about its centre. */
static tld_box move(tld_box b, double right, double down, double grown) {
    return (tld_box){b.x + (right - 0.5 * grown) * b.w, b.y + (down - 0.5 * grown) * b.h,
                     b.w * (1 + grown), b.h * (1 + grown)};
}

/* One step along a direction, `far` times the unit (x, y, size): to the maximum of the parabola
 * through the box and one step to either side, at most one step, times `part`. Returns that box,
 * with its likeness in *best, if it is higher; else the box itself. */
static tld_box climb(const tld_view *v, tld_box box, const double *unit, double far,
                     const tld_shelf *known, double part, double *best) {
    const double way[3] = {unit[0] * far, unit[1] * far, unit[2] * far};
    const double ahead = likeness(v, move(box, way[0], way[1], way[2]), known);
    const double back = likeness(v, move(box, -way[0], -way[1], -way[2]), known);
    const double bend = ahead + back - 2 * *best;
    double at = bend < 0 ? 0.5 * (back - ahead) / bend : ahead > back ? 1 : -1;
    at = part * fmax(-1, fmin(1, at));
    const tld_box there = move(box, at * way[0], at * way[1], at * way[2]);
    const double now = likeness(v, there, known);
    if (now <= *best) return box;
    *best = now;
    return there;
}

enum { WAYS = 3 };
static const double units[WAYS][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
static const double step = 0.02; /* fraction of the box's sides */

/* Aligns to the first patch, the only one that is known to be placed exactly; later ones may each
 * be slightly off. Returns the correlation with it at *box. */
static double anchor(const tld_view *v, tld_box *box, const tld_shelf *first) {
    double best = likeness(v, *box, first);
    for (double far = 4 * step; far >= step; far /= 2)
        for (int32_t i = 0; i < (far > 2 * step ? WAYS - 1 : WAYS); i++)
            *box = climb(v, *box, units[i], far, first, 1, &best);
    return best;
}

tld_box tld_align(const tld_tracker *t, tld_box box, tld_box before) {
    const double least = 0.5;
    const tld_view *v = &t->views[t->now];
    tld_shelf known = t->nearest.positive;
    double best = likeness(v, box, &known);
    /* the flow's scale errs more than its motion, and a shrinking box shows ever less that would
     * correct it */
    const tld_box kept = {box.x + 0.5 * (box.w - before.w), box.y + 0.5 * (box.h - before.h),
                          before.w, before.h};
    const double as_before = likeness(v, kept, &known);
    if (as_before > best) {
        best = as_before;
        box = kept;
    }
    if (t->o.anchor < 1) {
        tld_shelf first = known;
        tld_box there = box;
        first.n = 1;
        if (anchor(v, &there, &first) > t->o.anchor) return there;
        known.n = (known.n + 1) / 2; /* as in the conservative similarity */
        best = likeness(v, box, &known);
    }
    if (best < least) return box; /* no patch is similar enough */
    for (int32_t i = 0; i < WAYS; i++)
        box = climb(v, box, units[i], step, &known, t->o.align, &best);
    return box;
}
