/* Pictures varied by the words behind a spec: what the words mean, and that seed, round and index
 * alone decide. */
#include "samples/samples.h"
#include "data/data.h"
#include "tap.h"

enum { SIDE = 12, N = SIDE * SIDE };

/* A square picture over data, which it fills with rising numbers. */
static cnr_tensor picture(uint8_t *data, int64_t channels) {
    for (int i = 0; i < N * channels; i++) data[i] = (uint8_t)(i * 37 + 11);
    return (cnr_tensor){.size = sizeof(cnr_tensor),
                        .dtype = CNR_u8,
                        .rank = 3,
                        .dim = {SIDE, SIDE, channels},
                        .data = data,
                        .bytes = (uint64_t)(N * channels)};
}

/* Reads the words of augmentation into *out; `left` receives the source without them. True: they
 * are right. */
static bool reads(const char *words, cnri_augment *out, char *left, size_t room) {
    cnr_error err = CNR_ERROR_INIT;
    snprintf(left, room, "%s", words);
    return cnri_augment_read(left, out, &err) == CNR_OK;
}

/* The augmentation that the words describe; a test fails if they can't be read. */
static cnri_augment of(const char *words) {
    cnri_augment a;
    char spec[100];
    if (!reads(words, &a, spec, sizeof spec)) ok(0, "%s is read", words);
    return a;
}

/* Words are read, and wrong ones refused. */
static void words(void) {
    cnri_augment a;
    char left[100];
    ok(reads("mnist:/d,shift=2,flip", &a, left, sizeof left) && a.shift == 2 && a.flip == 0.5 &&
           a.any && strcmp(left, "mnist:/d") == 0,
       "words are read, and cut off: %s", left);
    ok(reads("images:a,b.txt", &a, left, sizeof left) && !a.any &&
           strcmp(left, "images:a,b.txt") == 0,
       "a path keeps its commas");
    ok(reads("d,shift=1,x,turn=3", &a, left, sizeof left) && strcmp(left, "d,shift=1,x") == 0 &&
           a.turn == 3 && a.shift == 0,
       "what stands before a strange word belongs to the path");
    ok(cnri_augment_cut("mnist:/d:test,crop=.8,colour=.2") == 13, "what names files is the rest");
    ok(!reads("d,shift=-1", &a, left, sizeof left) && !reads("d,shift", &a, left, sizeof left) &&
           !reads("d,flip=2", &a, left, sizeof left) && !reads("d,turn=x", &a, left, sizeof left) &&
           !reads("d,crop=0", &a, left, sizeof left),
       "numbers out of range are refused");
}

static bool equal(const uint8_t *a, const uint8_t *b) { return memcmp(a, b, N) == 0; }

/* Shifts and flips move pixels. */
static void moves(void) {
    uint8_t plain[N], got[N], want[N];
    const cnri_augment shift = of("d,shift=3"), flip = of("d,flip=1"), none = of("d");
    picture(plain, 1);
    cnr_tensor t = picture(got, 1);
    ok(!cnri_augment_apply(&none, 1, 0, 0, &t, NULL) && equal(got, plain), "no words, no change");
    cnri_augment_apply(&flip, 1, 0, 0, &t, NULL);
    for (int i = 0; i < N; i++) want[i] = plain[i / SIDE * SIDE + SIDE - 1 - i % SIDE];
    ok(equal(got, want), "flip=1 changes left and right, pixel by pixel");
    int found = 0, seen[7][7] = {{0}}, all = 0;
    for (int k = 0; k < 2000; k++) {
        t = picture(got, 1);
        cnri_augment_apply(&shift, 5, 0, k, &t, NULL);
        for (int dy = -3; dy <= 3; dy++)
            for (int dx = -3; dx <= 3; dx++) {
                for (int i = 0; i < N; i++) {
                    const int y = i / SIDE - dy, x = i % SIDE - dx;
                    const int cy = y < 0       ? 0
                                   : y >= SIDE ? SIDE - 1
                                               : y,
                              cx = x < 0       ? 0
                                   : x >= SIDE ? SIDE - 1
                                               : x;
                    want[i] = plain[cy * SIDE + cx];
                }
                if (!equal(got, want)) continue;
                found++;
                all += !seen[dy + 3][dx + 3]++;
            }
    }
    ok(found == 2000 && all == 49, "shift=3 moves by whole pixels, each of the 49 ways: %d, %d",
       found, all);
}

/* Seeds decide what is drawn. */
static void draws(void) {
    uint8_t a[N], b[N];
    const cnri_augment o = of("d,shift=2,turn=10,crop=.8,flip,colour=.3");
    int same = 0, rounds = 0, seeds = 0;
    for (int k = 0; k < 50; k++) {
        cnr_tensor t = picture(a, 1), u = picture(b, 1);
        cnri_augment_apply(&o, 1, 0, k, &t, NULL);
        cnri_augment_apply(&o, 1, 0, k, &u, NULL);
        same += equal(a, b);
        u = picture(b, 1);
        cnri_augment_apply(&o, 1, 1, k, &u, NULL);
        rounds += equal(a, b);
        u = picture(b, 1);
        cnri_augment_apply(&o, 2, 0, k, &u, NULL);
        seeds += equal(a, b);
    }
    ok(same == 50 && rounds == 0 && seeds == 0,
       "the same for seed, round and index, and another for others");
    const cnri_augment more = of("d,shift=2,colour=0"), less = of("d,shift=2");
    cnr_tensor t = picture(a, 1), u = picture(b, 1);
    cnri_augment_apply(&more, 3, 4, 5, &t, NULL);
    cnri_augment_apply(&less, 3, 4, 5, &u, NULL);
    ok(equal(a, b), "a word more changes no other's draw");
}

/* Colours change within their bound. */
static void colours(void) {
    uint8_t data[3 * N], grey[3 * N];
    const cnri_augment o = of("d,colour=.5");
    cnr_tensor t = picture(data, 3);
    for (int i = 0; i < 3 * N; i++) grey[i] = data[i] = (uint8_t)(i / 3 % 100 + 50);
    cnri_augment_apply(&o, 1, 0, 1, &t, NULL);
    bool even = true;
    for (int i = 0; i < N; i++)
        even = even && data[3 * i] == data[3 * i + 1] && data[3 * i] == data[3 * i + 2];
    ok(even && memcmp(data, grey, sizeof data) != 0, "grey stays grey, of another brightness");
}

int main(void) {
    words();
    moves();
    draws();
    colours();
    return done();
}
