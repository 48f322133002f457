/* Median flow: tracks points of the box forward and backward; the better half determines the
 * motion. */
#include "tld.h"
#include <math.h>

enum { MOST = 32 * 32, MARGIN = 5, DEEPEST = 5 };

/* The k-th smallest of n numbers, k from 0; reorders v. */
static float select_at(float *v, int32_t n, int32_t k) {
    int32_t lo = 0, hi = n - 1;
    while (lo < hi) {
        const float pivot = v[(lo + hi) / 2];
        int32_t i = lo, j = hi;
        while (i <= j) {
            while (v[i] < pivot) i++;
            while (v[j] > pivot) j--;
            if (i > j) break;
            const float swap = v[i];
            v[i++] = v[j];
            v[j--] = swap;
        }
        if (k <= j) hi = j;
        else if (k >= i) lo = i;
        else break;
    }
    return v[k];
}

/* Median of n numbers, which it reorders; of an even n the mean of both middle ones. */
static float median(float *v, int32_t n) {
    const float high = select_at(v, n, n / 2);
    return n % 2 ? high : 0.5f * (high + select_at(v, n, n / 2 - 1));
}

/* Tracks point p of `from` in `to`, from the coarsest level to the finest; q: first guess, then
 * result. False: lost. */
static bool follow(const tld_view *from, const tld_view *to, int32_t levels, const float *p,
                   float *q) {
    float x = q[0] / (float)(1 << levels), y = q[1] / (float)(1 << levels);
    for (int32_t i = levels - 1; i >= 0; i--) {
        const tld_level *a = &from->levels[i], *b = &to->levels[i];
        const tld_pair pair = {a->at, b->at, a->pitch, a->w, a->h};
        const float unit = 1.0f / (float)(1 << i);
        x *= 2;
        y *= 2;
        if (!tld_v->climb(&pair, p[0] * unit, p[1] * unit, &x, &y) && i == 0) return false;
    }
    q[0] = x;
    q[1] = y;
    return true;
}

/* A point that is followed from frame to frame and back. */
typedef struct path {
    float from[2], to[2], back, alike;
} path;

/* Start of the tracking: an approximate motion, and enough levels for the remaining one. */
typedef struct guess {
    float x, y;
    int32_t levels;
} guess;

/* Tracks points forward and backward; returns how many succeeded. dice NULL: points of a grid, else
 * random ones. */
static int32_t follow_all(const tld_view *from, const tld_view *to, tld_box box, int32_t side,
                          tld_dice *dice, guess start, path *out) {
    const int32_t levels = (int32_t)cnr_min(cnr_min(from->n_levels, to->n_levels), start.levels);
    const tld_level *a = from->levels, *b = to->levels;
    const tld_pair pair = {a->at, b->at, a->pitch, a->w, a->h};
    const double mx = fmin(MARGIN, box.w / 6), my = fmin(MARGIN, box.h / 6);
    int32_t n = 0;
    for (int32_t k = 0; k < side * side; k++) {
        path *p = &out[n];
        const double u = dice ? tld_draw(dice) : (double)(k % side) / (side - 1);
        const double v = dice ? tld_draw(dice) : (double)(k / side) / (side - 1);
        p->from[0] = (float)(box.x + mx + (box.w - 2 * mx) * u);
        p->from[1] = (float)(box.y + my + (box.h - 2 * my) * v);
        if (p->from[0] < 0 || p->from[1] < 0 || p->from[0] >= (float)a->w ||
            p->from[1] >= (float)a->h)
            continue; /* no texture there */
        p->to[0] = p->from[0] + start.x;
        p->to[1] = p->from[1] + start.y;
        if (!follow(from, to, levels, p->from, p->to)) continue;
        float back[2] = {p->to[0] - start.x, p->to[1] - start.y};
        if (!follow(to, from, levels, p->to, back)) continue;
        p->back = hypotf(back[0] - p->from[0], back[1] - p->from[1]);
        p->alike = tld_v->alike(&pair, p->from[0], p->from[1], p->to[0], p->to[1]);
        n++;
    }
    return n;
}

/* The median ratio of distances between pairs of points; 1 if it is above o->growth a frame or
 * below its inverse, as that comes from a few wrong points. room: for `most` ratios, which bound
 * the pairs. */
static float growth(const path *p, int32_t n, float *room, int32_t most, const tld_options *o) {
    int32_t m = 0;
    for (int32_t gap = 1; gap < n && m + n <= most; gap++)
        for (int32_t i = 0; i + gap < n; i++) {
            const path *a = &p[i], *b = &p[i + gap];
            const float was = hypotf(a->from[0] - b->from[0], a->from[1] - b->from[1]);
            if (was > 0) room[m++] = hypotf(a->to[0] - b->to[0], a->to[1] - b->to[1]) / was;
        }
    const float by = m ? median(room, m) : 1;
    return by > o->growth || by * o->growth < 1 ? 1 : by;
}

/* Mean distance, in pixels, between n points and where they are followed back to. */
static float mean_back(const path *paths, int32_t n) {
    float sum = 0;
    for (int32_t i = 0; i < n; i++) sum += paths[i].back;
    return sum / (float)n;
}

/* The box by the better points: those with below-median error and above-median similarity (the
 * authors), or with error below half the mean (S16). Returns the median backward error; infinity:
 * too few points. */
static float better_of(path *paths, int32_t n, tld_box box, const tld_options *o, tld_box *out,
                       tld_quality *q) {
    enum { PAIRS = 4096 };
    float room[PAIRS];
    if (n < 4) return INFINITY;
    for (int32_t i = 0; i < n; i++) room[i] = paths[i].back;
    const float error = median(room, n);
    for (int32_t i = 0; i < n; i++) room[i] = paths[i].alike;
    const float likeness = median(room, n);
    const bool by_mean = o->random_points != 0;
    const float least = by_mean ? -1 : likeness,
                most = by_mean ? 0.5f * mean_back(paths, n) : error;
    int32_t m = 0;
    for (int32_t i = 0; i < n; i++)
        if (paths[i].back <= most && paths[i].alike >= least) paths[m++] = paths[i];
    if (m < 2) return INFINITY;
    for (int32_t i = 0; i < m; i++) room[i] = paths[i].to[0] - paths[i].from[0];
    const float dx = median(room, m);
    for (int32_t i = 0; i < m; i++) room[i] = paths[i].to[1] - paths[i].from[1];
    const float dy = median(room, m), by = growth(paths, m, room, PAIRS, o);
    *out = (tld_box){box.x + dx - 0.5 * (by - 1) * box.w, box.y + dy - 0.5 * (by - 1) * box.h,
                     box.w * by, box.h * by};
    for (int32_t i = 0; i < m; i++)
        room[i] =
            hypotf(paths[i].to[0] - paths[i].from[0] - dx, paths[i].to[1] - paths[i].from[1] - dy);
    *q = (tld_quality){error, likeness, median(room, m)};
    return error;
}

/* True if enough of the box is in the picture. */
static bool is_in_picture(const tld_view *v, tld_box b) {
    /* outside the picture nothing is left to compare */
    return b.w >= 4 && b.h >= 4 && b.x + b.w > 2 && b.y + b.h > 2 && b.x < v->w - 2 &&
           b.y < v->h - 2 && b.w < 4 * v->w && b.h < 4 * v->h;
}

/* Follows a box from one frame to the next. False: it is lost. */
static bool flow_from(const tld_view *from, const tld_view *to, tld_box box, const tld_options *o,
                      tld_dice *dice, guess start, tld_box *out, tld_quality *quality) {
    path paths[MOST];
    const int32_t n = follow_all(from, to, box, (int32_t)o->points,
                                 o->random_points != 0 ? dice : NULL, start, paths);
    return better_of(paths, n, box, o, out, quality) <= o->flow_fails && is_in_picture(to, *out);
}

/* ---- matching the whole box ---- */

/* Pixels of a patch's cell, but one at least. */
static double cell_of(tld_box box) { return fmax(1, fmin(box.w, box.h) / TLD_SIDE); }

/* How alike a box of the frame is to a patch, -1 to 1. */
static float likeness_at(const tld_view *v, tld_box box, const float *patch) {
    float now[TLD_PATCH_PITCH], out;
    tld_patch(v, box, now);
    tld_v->products(now, 1, patch, 1, &out);
    return out;
}

/* Searches the position where the box looks most as before: `reach` cells of a patch in each
 * direction from (x, y) cells on, in steps of two cells, then of one. */
static guess search(const tld_view *to, tld_box box, const float *patch, int32_t from_x,
                    int32_t from_y, int32_t reach, float *best) {
    const double cell = cell_of(box);
    int32_t at_x = from_x, at_y = from_y, levels = 2;
    *best =
        likeness_at(to, (tld_box){box.x + at_x * cell, box.y + at_y * cell, box.w, box.h}, patch);
    for (int32_t step = 2; step > 0; step--) {
        const int32_t mx = at_x, my = at_y, far = step == 2 ? reach : 1;
        for (int32_t y = my - far; y <= my + far; y += step)
            for (int32_t x = mx - far; x <= mx + far; x += step) {
                const tld_box there = {box.x + x * cell, box.y + y * cell, box.w, box.h};
                const float now = likeness_at(to, there, patch);
                if (now <= *best) continue;
                *best = now;
                at_x = x;
                at_y = y;
            }
    }
    for (double c = cell; c >= 2; c /= 2)
        levels++; /* a cell is two pixels of the coarsest level or less */
    return (guess){(float)(at_x * cell), (float)(at_y * cell), levels};
}

/* Searches the box near where it was, and where it would be if it went on as before (ahead NULL:
 * not there). */
static guess search_both(const tld_view *to, tld_box box, const float *patch, const double *ahead,
                         float *best) {
    enum { NEAR = TLD_SIDE / 2 + 1, AHEAD = 4 };
    const double cell = cell_of(box);
    const guess here = search(to, box, patch, 0, 0, NEAR, best);
    const int32_t x = ahead ? (int32_t)lround(ahead[0] / cell) : 0;
    const int32_t y = ahead ? (int32_t)lround(ahead[1] / cell) : 0;
    if (x * x + y * y < AHEAD) return here;
    float found;
    const guess there = search(to, box, patch, x, y, AHEAD, &found);
    if (found <= *best) return here;
    *best = found;
    return there;
}

/* Motion of the box between two views. Small or fast objects vanish in the pyramid: coarse levels
 * show only their surroundings, and their points follow these. Matching the whole box gives another
 * start for the points; the result that looks more as before counts. */
bool tld_flow(const tld_view *from, const tld_view *to, tld_box box, const double *ahead,
              const tld_options *o, tld_dice *dice, tld_box *out, tld_quality *quality) {
    if (from->w != to->w || from->h != to->h) return false;
    const bool good = flow_from(from, to, box, o, dice, (guess){0, 0, DEEPEST}, out, quality);
    if (o->search == 0) return good;
    float patch[TLD_PATCH_PITCH], found;
    tld_patch(from, box, patch);
    const float usual = good ? likeness_at(to, *out, patch) : -1;
    if (usual > 0.9f) return true; /* found already */
    const guess start = search_both(to, box, patch, o->predict != 0 ? ahead : NULL, &found);
    if (good) {
        const double dx = (double)start.x - (out->x - box.x),
                     dy = (double)start.y - (out->y - box.y);
        if (found < usual || hypot(dx, dy) < 0.1 * fmin(box.w, box.h)) return true;
    }
    tld_box other;
    tld_quality its;
    if (!flow_from(from, to, box, o, dice, start, &other, &its)) return good;
    if (good && likeness_at(to, other, patch) <= usual) return true;
    *out = other;
    *quality = its;
    return true;
}
