/* Ferns: comparisons of pixel pairs form a code; each code has a posterior, which is learned. */
#include "tld.h"
#include <math.h>

/* Frees the tables and clears f. */
void tld_ferns_free(tld_ferns *f) {
    tld_host->free(f->posterior);
    tld_host->free(f->hits);
    *f = (tld_ferns){0};
}

/* Draws a point of an 11 x 11 grid and another one, horizontally or vertically, at least a fifth of
 * the window away. */
static void draw_pair(tld_dice *dice, float *p) {
    for (;;) {
        const double far = (tld_draw(dice) < 0.5 ? -1 : 1) * (0.2 + tld_draw(dice));
        p[0] = p[2] = (float)(floor(tld_draw(dice) * 11) / 10);
        p[1] = p[3] = (float)(floor(tld_draw(dice) * 11) / 10);
        p[tld_draw(dice) < 0.5 ? 2 : 3] += (float)far;
        if (p[2] >= 0 && p[2] <= 1 && p[3] >= 0 && p[3] <= 1) return;
    }
}

cnr_status tld_ferns_make(tld_ferns *f, const tld_options *o, tld_dice *dice, cnr_error *err) {
    tld_ferns_free(f);
    f->n = (int32_t)o->ferns;
    f->bits = (int32_t)o->comparisons;
    const size_t room = (size_t)f->n << f->bits;
    f->posterior = tld_host->alloc(room * sizeof *f->posterior);
    f->hits = tld_host->alloc(2 * room * sizeof *f->hits);
    if (!f->posterior || !f->hits) {
        tld_ferns_free(f);
        return tld_host->fail(err, CNR_E_MEMORY, "tld", "no memory for ferns");
    }
    memset(f->posterior, 0, room * sizeof *f->posterior);
    memset(f->hits, 0, 2 * room * sizeof *f->hits);
    for (int32_t k = 0; k < f->n; k++)
        for (int32_t b = 0; b < f->bits; b++) draw_pair(dice, f->place[k][b]);
    return CNR_OK;
}

/* The blurred pixel at the box's point (x, y), 0 to 1, under the warp (NULL: none); outside the
 * view its nearest. */
static int32_t seen(const tld_view *v, tld_box box, const tld_warp *warp, float x, float y) {
    int64_t ix = (int64_t)box.x, iy = (int64_t)box.y;
    if (warp) {
        const double cx = (double)x * (box.w - 1) - box.w / 2,
                     cy = (double)y * (box.h - 1) - box.h / 2;
        ix += lround(warp->a * cx + warp->b * cy + box.w / 2 + warp->dx * box.w);
        iy += lround(warp->c * cx + warp->d * cy + box.h / 2 + warp->dy * box.h);
    } else {
        ix += tld_pixel(x, (int32_t)box.w);
        iy += tld_pixel(y, (int32_t)box.h);
    }
    return (int8_t)
        v->blurred[cnr_max(0, cnr_min(v->h - 1, iy)) * v->w + cnr_max(0, cnr_min(v->w - 1, ix))];
}

/* codes: the code of each fern for a box of a view, warped if warp is not NULL; dice: for the
 * warp's noise. */
void tld_codes(const tld_ferns *f, const tld_view *v, tld_box box, const tld_warp *warp,
               tld_dice *dice, uint16_t *codes) {
    for (int32_t k = 0; k < f->n; k++) {
        uint32_t code = 0;
        for (int32_t b = 0; b < f->bits; b++) {
            const float *p = f->place[k][b];
            double apart = seen(v, box, warp, p[0], p[1]) - seen(v, box, warp, p[2], p[3]);
            if (warp)
                apart += warp->noise * (tld_draw(dice) + tld_draw(dice) + tld_draw(dice) - 1.5);
            code = 2 * code + (apart > 0);
        }
        codes[k] = (uint16_t)code;
    }
}

double tld_vote(const tld_ferns *f, const uint16_t *codes) {
    double sum = 0;
    for (int32_t k = 0; k < f->n; k++) sum += f->posterior[((size_t)k << f->bits) + codes[k]];
    return sum / f->n;
}

void tld_ferns_learn(tld_ferns *f, const uint16_t *codes, bool positive) {
    for (int32_t k = 0; k < f->n; k++) {
        const size_t at = ((size_t)k << f->bits) + codes[k];
        uint16_t *hit = &f->hits[2 * at];
        if (hit[!positive] == UINT16_MAX) { /* halve both, so that the ratio stays */
            hit[0] /= 2;
            hit[1] /= 2;
        }
        hit[!positive]++;
        f->posterior[at] = (float)hit[0] / (float)(hit[0] + hit[1]);
    }
}
