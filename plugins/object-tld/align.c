/* Where a path's box looks most like what was learnt: errors of the flow add up, what is known
 * stays. */
#include "tld.h"
#include <math.h>

/* The highest correlation with any patch of the object: with one alone a box would follow the last
 * that was learnt, and drift with those. */
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

/* Moved by parts of its sides and grown about its middle. */
static tld_box move(tld_box b, double right, double down, double grown) {
    return (tld_box){b.x + (right - 0.5 * grown) * b.w, b.y + (down - 0.5 * grown) * b.h,
                     b.w * (1 + grown), b.h * (1 + grown)};
}

/* Along one direction, `far` times the unit: the top of the parabola through the box and a step to
 * either side, a step at most, and of that the part. */
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
static const double step = 0.02; /* of the box's sides */

/* The first patch is the only one that is sure to show the object where it is: those learnt later
 * may lie beside it, each a little farther. Returns the correlation with it at *box. */
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
    /* the flow's growth errs more than its motion, and boxes that shrink see ever less that would
     * tell */
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
        known.n = (known.n + 1) / 2; /* as the conservative similarity has it */
        best = likeness(v, box, &known);
    }
    if (best < least) return box; /* there is nothing to go by */
    for (int32_t i = 0; i < WAYS; i++)
        box = climb(v, box, units[i], step, &known, t->o.align, &best);
    return box;
}
