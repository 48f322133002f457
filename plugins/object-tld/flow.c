/* Median flow: points of the box followed there and back; the better half says where it went. */
#include "tld.h"
#include <math.h>

enum { MOST = 32 * 32, MARGIN = 5, DEEPEST = 5 };

/* The k-th smallest, from 0 on; v is put in another order. */
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

static float median(float *v, int32_t n) {
    const float high = select_at(v, n, n / 2);
    return n % 2 ? high : 0.5f * (high + select_at(v, n, n / 2 - 1));
}

/* (x, y) of `from` as it is in `to`: from the coarsest level down. */
static bool follow(const tld_view *from, const tld_view *to, int32_t levels, const float *p, float *q) {
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

typedef struct path { float from[2], to[2], back, alike; } path;

/* Points that were found, there and back. */
static int32_t follow_all(const tld_view *from, const tld_view *to, tld_box box, int32_t side, path *out) {
    const int32_t levels = (int32_t)cnr_min(cnr_min(from->n_levels, to->n_levels), DEEPEST);
    const tld_level *a = from->levels, *b = to->levels;
    const tld_pair pair = {a->at, b->at, a->pitch, a->w, a->h};
    const double mx = fmin(MARGIN, box.w / 6), my = fmin(MARGIN, box.h / 6);
    int32_t n = 0;
    for (int32_t k = 0; k < side * side; k++) {
        path *p = &out[n];
        p->from[0] = (float)(box.x + mx + (box.w - 2 * mx) * (k % side) / (side - 1));
        p->from[1] = (float)(box.y + my + (box.h - 2 * my) * (k / side) / (side - 1));
        if (p->from[0] < 0 || p->from[1] < 0 || p->from[0] >= (float)a->w || p->from[1] >= (float)a->h)
            continue; /* nothing is seen there */
        memcpy(p->to, p->from, sizeof p->to);
        if (!follow(from, to, levels, p->from, p->to)) continue;
        float back[2] = {p->to[0], p->to[1]};
        if (!follow(to, from, levels, p->to, back)) continue;
        p->back = hypotf(back[0] - p->from[0], back[1] - p->from[1]);
        p->alike = tld_v->alike(&pair, p->from[0], p->from[1], p->to[0], p->to[1]);
        n++;
    }
    return n;
}

/* The median of how much farther apart pairs of points are now. Nothing grows in a frame by more than `growth`: few
 * points that went astray did. */
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

/* The box by the better half of the points: those that came back nearest and look most alike. Returns
 * the median error of the way back; infinity: too few were found. */
static float half_of(path *paths, int32_t n, tld_box box, const tld_options *o, tld_box *out, tld_quality *q) {
    enum { PAIRS = 4096 };
    float room[PAIRS];
    if (n < 4) return INFINITY;
    for (int32_t i = 0; i < n; i++) room[i] = paths[i].back;
    const float error = median(room, n);
    for (int32_t i = 0; i < n; i++) room[i] = paths[i].alike;
    const float likeness = median(room, n);
    int32_t m = 0;
    for (int32_t i = 0; i < n; i++)
        if (paths[i].back <= error && paths[i].alike >= likeness) paths[m++] = paths[i];
    if (m < 2) return INFINITY;
    for (int32_t i = 0; i < m; i++) room[i] = paths[i].to[0] - paths[i].from[0];
    const float dx = median(room, m);
    for (int32_t i = 0; i < m; i++) room[i] = paths[i].to[1] - paths[i].from[1];
    const float dy = median(room, m), by = growth(paths, m, room, PAIRS, o);
    *out = (tld_box){box.x + dx - 0.5 * (by - 1) * box.w, box.y + dy - 0.5 * (by - 1) * box.h,
                     box.w * by, box.h * by};
    for (int32_t i = 0; i < m; i++)
        room[i] = hypotf(paths[i].to[0] - paths[i].from[0] - dx, paths[i].to[1] - paths[i].from[1] - dy);
    *q = (tld_quality){error, likeness, median(room, m)};
    return error;
}

bool tld_flow(const tld_view *from, const tld_view *to, tld_box box, const tld_options *o, tld_box *out,
              tld_quality *quality) {
    path paths[MOST];
    if (from->w != to->w || from->h != to->h) return false;
    const int32_t n = follow_all(from, to, box, (int32_t)o->points, paths);
    if (!(half_of(paths, n, box, o, out, quality) <= o->flow_fails)) return false;
    /* out of the picture: nothing is left that could be compared */
    return out->w >= 4 && out->h >= 4 && out->x + out->w > 2 && out->y + out->h > 2 &&
           out->x < to->w - 2 && out->y < to->h - 2 && out->w < 4 * to->w && out->h < 4 * to->h;
}
