/* Rectangles, dots, lines and areas. */
#include "draw.h"
#include <math.h>

enum { MOST_DASHES = 8 };

/* Makes the pen's path a rectangle (x, y, w, h) with corners rounded by `radius`, at most half a
 * side. */
static void trace(cairo_t *pen, const double r[4], double radius) {
    const double most = fmin(fabs(r[2]), fabs(r[3])) / 2;
    const double x0 = r[0], y0 = r[1], x1 = r[0] + r[2], y1 = r[1] + r[3];
    radius = fmax(0, fmin(radius, most));
    cairo_new_path(pen);
    if (radius <= 0) {
        cairo_rectangle(pen, r[0], r[1], r[2], r[3]);
        return;
    }
    cairo_arc(pen, x1 - radius, y0 + radius, radius, -M_PI / 2, 0);
    cairo_arc(pen, x1 - radius, y1 - radius, radius, 0, M_PI / 2);
    cairo_arc(pen, x0 + radius, y1 - radius, radius, M_PI / 2, M_PI);
    cairo_arc(pen, x0 + radius, y0 + radius, radius, M_PI, 3 * M_PI / 2);
    cairo_close_path(pen);
}

cnr_status draw_fill(const draw_call *c) {
    double r[4], radius = 0;
    DRAW_TRY(draw_numbers(c->in[0], "rectangle", 4, r, c->err));
    DRAW_TRY(draw_colour(c->s, c->in[1], c->err));
    if (c->n_in > 2) DRAW_TRY(draw_numbers(c->in[2], "radius", 1, &radius, c->err));
    trace(c->s->pen, r, radius);
    cairo_fill(c->s->pen);
    return draw_check(c->s, c->err);
}

cnr_status draw_outline(const draw_call *c) {
    double r[4], thickness, radius = 0;
    DRAW_TRY(draw_numbers(c->in[0], "rectangle", 4, r, c->err));
    DRAW_TRY(draw_colour(c->s, c->in[1], c->err));
    DRAW_TRY(draw_numbers(c->in[2], "thickness", 1, &thickness, c->err));
    if (c->n_in > 3) DRAW_TRY(draw_numbers(c->in[3], "radius", 1, &radius, c->err));
    trace(c->s->pen, r, radius);
    cairo_set_line_width(c->s->pen, fmax(0, thickness));
    cairo_stroke(c->s->pen);
    return draw_check(c->s, c->err);
}

cnr_status draw_dot(const draw_call *c) {
    double at[2], radius;
    DRAW_TRY(draw_numbers(c->in[0], "place", 2, at, c->err));
    DRAW_TRY(draw_numbers(c->in[1], "radius", 1, &radius, c->err));
    DRAW_TRY(draw_colour(c->s, c->in[2], c->err));
    cairo_new_path(c->s->pen);
    cairo_arc(c->s->pen, at[0], at[1], fmax(0, radius), 0, 2 * M_PI);
    cairo_fill(c->s->pen);
    return draw_check(c->s, c->err);
}

/* The points of a line or area, x and y alternating, as a path. */
static cnr_status points(const draw_call *c) {
    const cnr_tensor *t = c->in[0];
    const double *at = t->data;
    const int64_t n = cnr_count(t);
    double p[2];
    if (t->dtype != CNR_f64 || n < 4 || n % 2 != 0)
        return draw_fail(c->err, CNR_E_ARG, "points", "want x, y, x, y ...: two points or more");
    cairo_new_path(c->s->pen);
    for (int64_t i = 0; i < n; i += 2) {
        for (int k = 0; k < 2; k++) {
            if (!isfinite(at[i + k]))
                return draw_fail(c->err, CNR_E_ARG, "points", "want finite numbers");
            p[k] = fmax(-2.0 * DRAW_MOST_SIDE, fmin(2.0 * DRAW_MOST_SIDE, at[i + k]));
        }
        cairo_line_to(c->s->pen, p[0], p[1]);
    }
    return CNR_OK;
}

/* Sets the pen's dashes from argument 3, alternating lengths of dashes and gaps; CNR_E_ARG: more
 * than eight. */
static cnr_status use_dashes(const draw_call *c) {
    double dashes[MOST_DASHES], sum = 0;
    const int32_t n = (int32_t)fmin((double)cnr_count(c->in[3]), MOST_DASHES + 1);
    if (n > MOST_DASHES)
        return draw_fail(c->err, CNR_E_ARG, "dashes", "want at most eight lengths");
    DRAW_TRY(draw_numbers(c->in[3], "dashes", n, dashes, c->err));
    for (int32_t i = 0; i < n; i++) {
        if (dashes[i] < 0) return draw_fail(c->err, CNR_E_ARG, "dashes", "want lengths >= 0");
        sum += dashes[i];
    }
    cairo_set_dash(c->s->pen, dashes, sum > 0 ? n : 0, 0);
    return CNR_OK;
}

cnr_status draw_line(const draw_call *c) {
    double thickness;
    DRAW_TRY(draw_colour(c->s, c->in[1], c->err));
    DRAW_TRY(draw_numbers(c->in[2], "thickness", 1, &thickness, c->err));
    DRAW_TRY(points(c));
    if (c->n_in > 3) DRAW_TRY(use_dashes(c));
    cairo_set_line_width(c->s->pen, fmax(0, thickness));
    cairo_stroke(c->s->pen);
    cairo_set_dash(c->s->pen, NULL, 0, 0);
    return draw_check(c->s, c->err);
}

cnr_status draw_area(const draw_call *c) {
    DRAW_TRY(draw_colour(c->s, c->in[1], c->err));
    DRAW_TRY(points(c));
    cairo_fill(c->s->pen);
    return draw_check(c->s, c->err);
}

/* Clips drawing to a rectangle until the next call; without a rectangle, ends the clipping. */
cnr_status draw_clip(const draw_call *c) {
    double r[4];
    if (c->n_in > 0) DRAW_TRY(draw_numbers(c->in[0], "rectangle", 4, r, c->err));
    cairo_reset_clip(c->s->pen);
    if (c->n_in > 0) {
        cairo_new_path(c->s->pen);
        cairo_rectangle(c->s->pen, r[0], r[1], r[2], r[3]);
        cairo_clip(c->s->pen);
    }
    return draw_check(c->s, c->err);
}
