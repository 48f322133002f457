/* Augments pictures for training: a geometric transform, then a change of colours.
 *
 * The random numbers follow from seed, round and index alone, so the result does not depend on time
 * or on the number of threads. All of them are drawn even if an option is off, so that an option
 * does not change the effect of the others. */
#include "samples/samples.h"
#include <math.h>

/* One step of splitmix64: returns z with its bits mixed. */
static uint64_t mixed(uint64_t z) {
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

enum { DOWN, ACROSS, MIRROR, PART, TOP, LEFT, TURN, BRIGHT, CONTRAST, SATURATION, N_DRAWS };

/* Draws N_DRAWS numbers in [0, 1) into out; the same seed, round and index give the same
 * numbers. */
static void draw(uint64_t seed, int64_t round, int64_t index, double *out) {
    uint64_t state = mixed(mixed(mixed(seed) ^ (uint64_t)round) ^ (uint64_t)index);
    for (int i = 0; i < N_DRAWS; i++) {
        state = mixed(state);
        out[i] = (double)(state >> 11) * 0x1p-53;
    }
}

/* Maps a drawn number to [-max, max). */
static double within(double drawn, double max) { return (2 * drawn - 1) * max; }

/* ---- geometry: output pixel (y', x') is read from y = a[0] y' + a[1] x' + a[2] and
 * x = a[3] y' + a[4] x' + a[5] ---- */

/* Computes the transform `a` of a picture of h by w pixels; false: it changes nothing. */
static bool place(const cnri_augment *o, const double *drawn, double h, double w, double *a) {
    const double shift = floor(drawn[DOWN] * (2 * o->shift + 1)) - o->shift;
    const double aside = floor(drawn[ACROSS] * (2 * o->shift + 1)) - o->shift;
    const double part = o->crop + (1 - o->crop) * drawn[PART];
    const double angle = within(drawn[TURN], o->turn) * 3.14159265358979323846 / 180;
    const double mirror = drawn[MIRROR] < o->flip ? -1 : 1;
    const double cosine = o->turn > 0 ? cos(angle) : 1, sine = o->turn > 0 ? sin(angle) : 0;
    const double cy = (h - 1) / 2, cx = (w - 1) / 2;
    a[0] = part * cosine;
    a[1] = part * sine * mirror;
    a[3] = -part * sine;
    a[4] = part * cosine * mirror;
    a[2] = cy - a[0] * cy - a[1] * cx - shift + (drawn[TOP] - 0.5) * (1 - part) * h;
    a[5] = cx - a[3] * cy - a[4] * cx - aside + (drawn[LEFT] - 0.5) * (1 - part) * w;
    return part < 1 || sine != 0 || mirror < 0 || shift != 0 || aside != 0;
}

static double clamped(double x, double max) { return x < 0 ? 0 : x > max ? max : x; }

/* Applies the transform a (2 x 3) with bilinear interpolation, into `to`. Positions outside the
 * picture take the nearest pixel of its edge. */
static void move(const cnr_tensor *from, uint8_t *to, const double *a) {
    const int64_t h = from->dim[0], w = from->dim[1], n = from->dim[2];
    const uint8_t *in = from->data;
    for (int64_t i = 0; i < h * w; i++) {
        const double y0 = (double)(i / w), x0 = (double)(i % w);
        const double y = clamped(a[0] * y0 + a[1] * x0 + a[2], (double)(h - 1));
        const double x = clamped(a[3] * y0 + a[4] * x0 + a[5], (double)(w - 1));
        const int64_t top = (int64_t)y, left = (int64_t)x;
        const int64_t below = top + 1 < h ? top + 1 : top, right = left + 1 < w ? left + 1 : left;
        const double v = y - (double)top, u = x - (double)left;
        for (int64_t c = 0; c < n; c++) {
            const double upper =
                (1 - u) * in[(top * w + left) * n + c] + u * in[(top * w + right) * n + c];
            const double lower =
                (1 - u) * in[(below * w + left) * n + c] + u * in[(below * w + right) * n + c];
            to[i * n + c] = (uint8_t)((1 - v) * upper + v * lower + 0.5);
        }
    }
}

/* ---- colours: brightness, contrast (from the mean), saturation (from grey) ---- */

/* Brightness of a pixel of n channels, 0 to 255. */
static double grey_of(const uint8_t *p, int64_t n) {
    return n == 1 ? p[0] : 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
}

/* Varies brightness, contrast and saturation of a picture, in place, by the drawn numbers. */
static void tint(cnr_tensor *t, const cnri_augment *o, const double *drawn) {
    const int64_t pixels = t->dim[0] * t->dim[1], n = t->dim[2];
    const double bright = 1 + within(drawn[BRIGHT], o->colour);
    const double contrast = 1 + within(drawn[CONTRAST], o->colour);
    const double saturation = 1 + within(drawn[SATURATION], o->colour);
    uint8_t *data = t->data;
    double mean = 0;
    for (int64_t i = 0; i < pixels; i++) mean += grey_of(data + i * n, n);
    mean /= (double)pixels;
    for (int64_t i = 0; i < pixels; i++) {
        uint8_t *p = data + i * n;
        const double grey = grey_of(p, n);
        for (int64_t c = 0; c < n; c++) {
            const double own = grey + saturation * (p[c] - grey);
            p[c] = (uint8_t)clamped(bright * (mean + contrast * (own - mean)) + 0.5, 255);
        }
    }
}

cnr_status cnri_augment_apply(const cnri_augment *o, uint64_t seed, int64_t round, int64_t index,
                              cnr_tensor *picture, cnr_error *err) {
    double drawn[N_DRAWS], a[6];
    if (!o->any) return CNR_OK;
    draw(seed, round, index, drawn);
    if (place(o, drawn, (double)picture->dim[0], (double)picture->dim[1], a)) {
        uint8_t *moved = cnri_alloc((size_t)cnr_count(picture));
        if (!moved) return cnri_out_of_memory(err, "augmentation");
        move(picture, moved, a);
        memcpy(picture->data, moved, (size_t)cnr_count(picture));
        cnri_free(moved);
    }
    if (o->colour > 0) tint(picture, o, drawn);
    return CNR_OK;
}
