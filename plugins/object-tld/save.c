/* Serialises the learned state: little-endian numbers after a header with their counts. */
#include "tld.h"
#include <math.h>

#define MAGIC "CNRTLD1\n"
enum { HEAD = 16 };

/* The header's fields, stored as doubles in this order. */
typedef enum slot {
    FERNS,
    BITS,
    POSITIVES,
    NEGATIVES,
    WIDTH,
    HEIGHT,
    VARIANCE,
    VOTE,
    SIMILAR,
    VALID,
    SEED,
    CLOCK,
    N_SLOTS
} slot;

/* Bytes of saved ferns and patches, from the head. */
static size_t bytes_of(const double *head) {
    const double entries = head[FERNS] * ldexp(1, (int)head[BITS]);
    return sizeof MAGIC - 1 + HEAD * 8 + (size_t)(head[FERNS] * head[BITS]) * 16 +
           (size_t)entries * 4 + (size_t)(head[POSITIVES] + head[NEGATIVES]) * (TLD_PATCH * 4);
}

/* Position in the bytes. */
typedef struct cursor {
    uint8_t *at;
} cursor;

/* Writes a little-endian number of `bytes` bytes, and moves on. */
static void put(cursor *c, uint64_t v, int32_t bytes) {
    for (int32_t i = 0; i < bytes; i++) *c->at++ = (uint8_t)(v >> 8 * i);
}
/* Reads a little-endian number of `bytes` bytes, and moves on. */
static uint64_t take(cursor *c, int32_t bytes) {
    uint64_t v = 0;
    for (int32_t i = 0; i < bytes; i++) v |= (uint64_t)*c->at++ << 8 * i;
    return v;
}
/* Writes a double of 8 bytes, and moves on. */
static void put_double(cursor *c, double v) {
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    put(c, u, 8);
}
/* Reads a double of 8 bytes, and moves on. */
static double take_double(cursor *c) {
    const uint64_t u = take(c, 8);
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}
/* Writes a float of 4 bytes, and moves on. */
static void put_float(cursor *c, float v) {
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    put(c, u, 4);
}
/* Reads a float of 4 bytes, and moves on. */
static float take_float(cursor *c) {
    const uint32_t u = (uint32_t)take(c, 4);
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* Writes the patches of a shelf, without their padding. */
static void put_shelf(cursor *c, const tld_shelf *s) {
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t p = 0; p < TLD_PATCH; p++)
            put_float(c, s->at[(int64_t)i * TLD_PATCH_PITCH + p]);
}

cnr_status tld_save(const tld_tracker *t, uint8_t **data, size_t *bytes, cnr_error *err) {
    const tld_ferns *f = &t->ferns;
    if (!t->begun) return tld_host->fail(err, CNR_E_STATE, "tld", "nothing is learnt yet");
    const double head[HEAD] = {[FERNS] = f->n,
                               [BITS] = f->bits,
                               [POSITIVES] = t->nearest.positive.n,
                               [NEGATIVES] = t->nearest.negative.n,
                               [WIDTH] = t->target.w,
                               [HEIGHT] = t->target.h,
                               [VARIANCE] = t->least_variance,
                               [VOTE] = t->fern_threshold,
                               [SIMILAR] = t->nn_threshold,
                               [VALID] = t->valid_threshold,
                               [SEED] = t->o.seed};
    *bytes = bytes_of(head);
    *data = tld_host->alloc(*bytes);
    if (!*data) return tld_host->fail(err, CNR_E_MEMORY, "tld", "out of memory");
    cursor c = {*data};
    memcpy(c.at, MAGIC, sizeof MAGIC - 1);
    c.at += sizeof MAGIC - 1;
    for (int32_t i = 0; i < HEAD; i++) put_double(&c, head[i]);
    for (int32_t k = 0; k < f->n; k++)
        for (int32_t b = 0; b < f->bits; b++)
            for (int32_t i = 0; i < 4; i++) put_float(&c, f->place[k][b][i]);
    for (size_t i = 0; i < (size_t)f->n << f->bits; i++) {
        put(&c, f->hits[2 * i], 2);
        put(&c, f->hits[2 * i + 1], 2);
    }
    put_shelf(&c, &t->nearest.positive);
    put_shelf(&c, &t->nearest.negative);
    return CNR_OK;
}

static bool within(double v, double least, double most) { return v >= least && v <= most; }
/* True for a whole number from least to most. */
static bool whole(double v, double least, double most) {
    return within(v, least, most) && v == floor(v);
}

/* True if all numbers of the head are possible. */
static bool sound(const double *h) {
    return whole(h[FERNS], 1, TLD_MOST_FERNS) && whole(h[BITS], 1, TLD_MOST_BITS) &&
           whole(h[POSITIVES], 1, 5000) && whole(h[NEGATIVES], 0, 5000) &&
           within(h[WIDTH], 4, TLD_MOST_SIDE) && within(h[HEIGHT], 4, TLD_MOST_SIDE) &&
           within(h[VARIANCE], 0, 1e6) && within(h[VOTE], 0, 1) && within(h[SIMILAR], 0, 1) &&
           within(h[VALID], 0, 1);
}

/* Reads `count` patches of the object (positive) or of others, as tld_patch makes them; false:
 * invalid. */
static bool take_shelf(cursor *c, tld_nearest *n, bool positive, int32_t count) {
    float patch[TLD_PATCH_PITCH] = {0};
    for (int32_t i = 0; i < count; i++) {
        double squares = 0;
        for (int32_t p = 0; p < TLD_PATCH; p++) {
            patch[p] = take_float(c);
            if (!(fabsf(patch[p]) <= 1.001f)) return false;
            squares += (double)patch[p] * (double)patch[p];
        }
        if (squares > 1.01) return false;
        tld_remember(n, positive, patch, -1);
    }
    return true;
}

/* Reads the ferns. False: a number is impossible. */
static bool take_ferns(cursor *c, tld_ferns *f) {
    for (int32_t k = 0; k < f->n; k++)
        for (int32_t b = 0; b < f->bits; b++)
            for (int32_t i = 0; i < 4; i++) {
                f->place[k][b][i] = take_float(c);
                if (!(f->place[k][b][i] >= 0 && f->place[k][b][i] <= 1)) return false;
            }
    for (size_t i = 0; i < (size_t)f->n << f->bits; i++) {
        const uint16_t yes = (uint16_t)take(c, 2), no = (uint16_t)take(c, 2);
        f->hits[2 * i] = yes;
        f->hits[2 * i + 1] = no;
        f->posterior[i] = yes + no ? (float)yes / (float)(yes + no) : 0;
    }
    return true;
}

/* Fails with CNR_E_FORMAT: why the bytes are refused. */
static cnr_status refuse(cnr_error *err, const char *why) {
    return tld_host->fail(err, CNR_E_FORMAT, "model", "%s", why);
}

/* Replaces what was learned by saved bytes; the next frame is searched as after a loss. Fails for
 * bytes that are no sound model; the tracker may then have to begin anew. */
cnr_status tld_load(tld_tracker *t, const uint8_t *data, size_t bytes, cnr_error *err) {
    double head[HEAD];
    if (bytes < sizeof MAGIC - 1 + sizeof head || memcmp(data, MAGIC, sizeof MAGIC - 1) != 0)
        return refuse(err, "that is no tracker's model");
    cursor c = {(uint8_t *)data + sizeof MAGIC - 1};
    for (int32_t i = 0; i < HEAD; i++) head[i] = take_double(&c);
    if (!sound(head) || bytes != bytes_of(head))
        return refuse(err, "a tracker's model, and damaged");
    t->begun = t->tracked = t->valid = t->prepared = false;
    t->o.ferns = head[FERNS];
    t->o.comparisons = head[BITS];
    t->o.positives = fmax(t->o.positives, head[POSITIVES]);
    t->o.negatives = fmax(t->o.negatives, head[NEGATIVES]);
    CNR_TRY(tld_make_room(t, err));
    if (!take_ferns(&c, &t->ferns) ||
        !take_shelf(&c, &t->nearest, true, (int32_t)head[POSITIVES]) ||
        !take_shelf(&c, &t->nearest, false, (int32_t)head[NEGATIVES]))
        return refuse(err, "a tracker's model, and damaged");
    t->target = (tld_box){0, 0, head[WIDTH], head[HEIGHT]};
    t->box = t->target;
    t->least_variance = head[VARIANCE];
    t->fern_threshold = head[VOTE];
    t->nn_threshold = head[SIMILAR];
    t->valid_threshold = head[VALID];
    t->grid = (tld_grid){0}; /* created for the first picture */
    t->confidence = -1;
    t->fresh = t->doubted = false; /* no frame of a video yet */
    t->doubts = t->unlike = t->agreed = t->rivalled = 0;
    t->motion[0] = t->motion[1] = 0;
    t->usual = (tld_usual){.frames = 0};
    t->seen = 0;
    t->begun = true;
    return CNR_OK;
}
