/* Computed from a picture once: grey, pyramid, blurred picture, integral images; and patches. */
#include "tld.h"
#include <math.h>

enum { MOST_RADIUS = 20, SLACK = 128 };

/* Frees the view's memory and clears v. */
void tld_view_free(tld_view *v) {
    tld_host->free(v->block);
    *v = (tld_view){0};
}

static size_t rounded(size_t bytes) { return (bytes + SLACK + 63) / 64 * 64; }

/* Assigns the memory of all parts; returns the bytes. base NULL: only computes the size. */
static size_t lay(tld_view *v, uint8_t *base) {
    size_t at = 0;
    int32_t w = v->w, h = v->h;
    for (v->n_levels = 0; v->n_levels < TLD_LEVELS && (v->n_levels == 0 || (w >= 16 && h >= 16));
         v->n_levels++, w /= 2, h /= 2) {
        tld_level *l = &v->levels[v->n_levels];
        *l = (tld_level){w, h, w + 2 * TLD_PAD + 16, NULL};
        if (base) l->at = base + at + TLD_PAD * l->pitch + TLD_PAD;
        at += rounded((size_t)(l->pitch * (h + 2 * TLD_PAD)));
    }
    const size_t pixels = (size_t)v->w * (size_t)v->h,
                 corners = (size_t)(v->w + 1) * (size_t)(v->h + 1);
    if (base) v->blurred = base + at;
    at += rounded(pixels);
    if (base) v->sum = (uint32_t *)(base + at);
    at += rounded(corners * sizeof *v->sum);
    if (base) v->squares = (uint64_t *)(base + at);
    return at + rounded(corners * sizeof *v->squares);
}

/* Makes room for a picture of that size and lays out its levels; the old room stays where it
 * suffices. Fails with CNR_E_MEMORY. */
static cnr_status size_to(tld_view *v, int32_t w, int32_t h, cnr_error *err) {
    if (v->block && v->w == w && v->h == h) return CNR_OK;
    v->w = w;
    v->h = h;
    const size_t bytes = lay(v, NULL);
    if (bytes > v->bytes) {
        tld_host->free(v->block);
        v->block = tld_host->alloc(bytes);
        v->bytes = v->block ? bytes : 0;
    }
    if (!v->block) {
        *v = (tld_view){0};
        return tld_host->fail(err, CNR_E_MEMORY, "tld", "no memory for a picture");
    }
    memset(v->block, 0, v->bytes); /* bytes between rows are read but have no effect */
    (void)lay(v, v->block);
    return CNR_OK;
}

/* Fills the border with the outermost pixels. */
static void pad(const tld_level *l) {
    for (int32_t y = 0; y < l->h; y++) {
        uint8_t *row = l->at + y * l->pitch;
        memset(row - TLD_PAD, row[0], TLD_PAD);
        memset(row + l->w, row[l->w - 1], TLD_PAD + 16);
    }
    for (int32_t y = 1; y <= TLD_PAD; y++) {
        memcpy(l->at - TLD_PAD - y * l->pitch, l->at - TLD_PAD, (size_t)l->pitch);
        memcpy(l->at - TLD_PAD + (l->h - 1 + y) * l->pitch, l->at - TLD_PAD + (l->h - 1) * l->pitch,
               (size_t)l->pitch);
    }
}

/* Writes the Gaussian weights from the middle one on, whose sum over both sides is 256; returns the
 * radius. */
static int32_t taps_of(double deviation, uint16_t *taps) {
    const int32_t radius = (int32_t)cnr_min(MOST_RADIUS, (int64_t)ceil(2.5 * deviation));
    double sum = 0, weight[MOST_RADIUS + 1];
    for (int32_t k = 0; k <= radius; k++) {
        weight[k] = exp(-0.5 * k * k / (deviation * deviation));
        sum += k ? 2 * weight[k] : weight[k];
    }
    int32_t rest = 256;
    for (int32_t k = 1; k <= radius; k++) {
        taps[k] = (uint16_t)lround(256 * weight[k] / sum);
        rest -= 2 * taps[k];
    }
    taps[0] = (uint16_t)rest;
    return radius;
}

/* Fails unless a tensor is a picture, u8 of H W C with C 1 or 3, of 16 pixels to TLD_MOST_SIDE a
 * side. */
static cnr_status check(const cnr_tensor *p, cnr_error *err) {
    if (!p || p->dtype != CNR_u8 || p->rank != 3 || !p->data || (p->dim[2] != 1 && p->dim[2] != 3))
        return tld_host->fail(err, CNR_E_ARG, "picture", "want u8, height x width x 1 or 3");
    if (p->dim[0] < 16 || p->dim[1] < 16 || p->dim[0] > TLD_MOST_SIDE || p->dim[1] > TLD_MOST_SIDE)
        return tld_host->fail(err, CNR_E_LIMIT, "picture",
                              "want 16 to %d pixels a side, got %d x %d", TLD_MOST_SIDE,
                              (int)p->dim[1], (int)p->dim[0]);
    return CNR_OK;
}

/* Makes the view of a picture, u8 of H W C with C 1 or 3, in the view's memory: grey, blurred by
 * deviation (pixels), in levels. */
cnr_status tld_view_make(tld_view *v, const cnr_tensor *picture, double deviation, cnr_error *err) {
    uint16_t taps[MOST_RADIUS + 1];
    CNR_TRY(check(picture, err));
    const int32_t w = (int32_t)picture->dim[1], h = (int32_t)picture->dim[0];
    CNR_TRY(size_to(v, w, h, err));
    const uint8_t *from = picture->data;
    const tld_level *l = v->levels;
    for (int32_t y = 0; y < h; y++) {
        if (picture->dim[2] == 3) tld_v->grey(from + (int64_t)y * w * 3, w, l->at + y * l->pitch);
        else memcpy(l->at + y * l->pitch, from + (int64_t)y * w, (size_t)w);
    }
    pad(l);
    for (int32_t i = 1; i < v->n_levels; i++) {
        tld_v->halve(l[i - 1].at, l[i - 1].pitch, l[i - 1].w, l[i - 1].h, l[i].at, l[i].pitch);
        pad(&l[i]);
    }
    const int32_t radius = taps_of(deviation, taps);
    uint16_t *rows = tld_host->alloc((size_t)(2 * radius + 1) * (size_t)(w + 64) * sizeof *rows);
    if (!rows) return tld_host->fail(err, CNR_E_MEMORY, "tld", "no memory for a picture");
    tld_v->blur(l->at, l->pitch, w, h, taps, radius, rows, v->blurred);
    tld_host->free(rows);
    tld_v->integrate(l->at, l->pitch, w, h, v->sum, v->squares);
    return CNR_OK;
}

double tld_variance(const tld_view *v, int32_t x, int32_t y, int32_t w, int32_t h) {
    const int64_t wide = v->w + 1, a = y * wide + x, b = a + w, c = a + h * wide, d = c + w;
    const double n = (double)w * h;
    const double s = (double)(uint32_t)(v->sum[d] - v->sum[c] - v->sum[b] + v->sum[a]);
    const double q = (double)(v->squares[d] - v->squares[c] - v->squares[b] + v->squares[a]);
    return q / n - s / n * (s / n);
}

/* A sample's place on an axis: the pixel before it, and its distance from that. */
typedef struct place {
    int64_t at;
    float part;
} place;

/* The middles of a patch's cells, from `from` on `length` pixels of the picture, in a level. */
static void places_of(double from, double length, float unit, int32_t side, place *out) {
    for (int32_t k = 0; k < TLD_SIDE; k++) {
        float at = (float)(from + (k + 0.5) * length / TLD_SIDE) * unit - 0.5f;
        at = fmaxf(-1, fminf(at, (float)side));
        out[k].at = (int64_t)floorf(at);
        out[k].part = at - (float)out[k].at;
    }
}

/* Writes the box's normalised patch to `out`, and returns the variance of its pixels. It samples
 * the level at which a cell of the patch is one to two pixels, so that every pixel contributes. */
double tld_patch(const tld_view *v, tld_box box, float *out) {
    const double cell = fmax(box.w, box.h) / TLD_SIDE;
    int32_t i = 0;
    while (i + 1 < v->n_levels && cell / (1 << i) >= 2) i++;
    const tld_level *l = &v->levels[i];
    const float unit = 1.0f / (float)(1 << i);
    float value[TLD_PATCH], sum = 0, squares = 0;
    place across[TLD_SIDE], down[TLD_SIDE];
    places_of(box.x, box.w, unit, l->w, across);
    places_of(box.y, box.h, unit, l->h, down);
    for (int32_t r = 0; r < TLD_SIDE; r++) {
        const uint8_t *row = l->at + down[r].at * l->pitch;
        for (int32_t c = 0; c < TLD_SIDE; c++) {
            const uint8_t *p = row + across[c].at, *q = p + l->pitch;
            const float fx = across[c].part;
            const float above = (float)p[0] + fx * ((float)p[1] - (float)p[0]);
            const float below = (float)q[0] + fx * ((float)q[1] - (float)q[0]);
            value[r * TLD_SIDE + c] = above + down[r].part * (below - above);
        }
    }
    for (int32_t k = 0; k < TLD_PATCH; k++) sum += value[k];
    for (int32_t k = 0; k < TLD_PATCH; k++) {
        value[k] -= sum / TLD_PATCH;
        squares += value[k] * value[k];
    }
    const float length = squares > 1e-6f ? 1 / sqrtf(squares) : 0;
    for (int32_t k = 0; k < TLD_PATCH; k++) out[k] = value[k] * length;
    memset(out + TLD_PATCH, 0, (TLD_PATCH_PITCH - TLD_PATCH) * sizeof *out);
    return squares / TLD_PATCH;
}
