/* The tracker by the C door: a square that moves, hides, comes back; seeds, threads, saved models,
 * bad input. */
#include "tap.h"
#include <cnnrun/cnnrun.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { W = 160, H = 120, SIDE = 36, GONE = 30, BACK = 45, FRAMES = 60 };

static cnr_runtime *rt;
static uint8_t pixels[W * H * 3];
static const cnr_tensor picture = {.size = sizeof picture,
                                   .dtype = CNR_u8,
                                   .rank = 3,
                                   .dim = {H, W, 3},
                                   .data = pixels,
                                   .bytes = sizeof pixels};

/* A number made of x. */
static uint32_t noise(uint32_t x) {
    x = (x ^ 61) ^ (x >> 16);
    x *= 9;
    x = (x ^ (x >> 4)) * 0x27d4eb2du;
    return x ^ (x >> 15);
}

/* The grey at (x, y) of blotches of 4 pixels, between two levels, by a seed. */
static uint8_t blotch(int x, int y, uint32_t seed, int low, int high) {
    return (uint8_t)(low +
                     (int)(noise((uint32_t)(x / 4) * 7919u + (uint32_t)(y / 4) * 104729u + seed) %
                           (uint32_t)(high - low)));
}

/* Draws frame `frame`; *box receives where the object is. */
static void draw(int frame, double *box) {
    const bool here = frame < GONE || frame >= BACK;
    const int at = frame < GONE ? frame : frame - BACK;
    box[0] = frame < GONE ? 20 + 2 * at : 60 + at;
    box[1] = frame < GONE ? 30 + at : 20 + at;
    box[2] = box[3] = SIDE;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            const int ox = x - (int)box[0], oy = y - (int)box[1];
            const bool in = here && ox >= 0 && oy >= 0 && ox < SIDE && oy < SIDE;
            const uint8_t v = in ? blotch(ox, oy, 99, 0, 255) : blotch(x, y, 5, 90, 150);
            for (int c = 0; c < 3; c++) pixels[(y * W + x) * 3 + c] = v;
        }
}

/* Common area of two boxes by the area of both. */
static double overlap(const double *a, const double *b) {
    const double w = fmin(a[0] + a[2], b[0] + b[2]) - fmax(a[0], b[0]);
    const double h = fmin(a[1] + a[3], b[1] + b[3]) - fmax(a[1], b[1]);
    return w > 0 && h > 0 ? w * h / (a[2] * a[3] + b[2] * b[3] - w * h) : 0;
}

/* A tracker with these options. */
static cnr_instance *make(const char *options) {
    cnr_error err = CNR_ERROR_INIT;
    char text[256], *word;
    const char *list[16];
    int n = 0;
    cnr_instance *o = NULL;
    snprintf(text, sizeof text, "%s", options);
    for (char *at = text; (word = strtok(at, " ")); at = NULL) list[n++] = word;
    list[n] = NULL;
    if (cnr_object_make(rt, "tld", list, &o, &err)) note("%s: %s", err.where, err.text);
    return o;
}

/* Calls the tracker's init. */
static cnr_status begin(cnr_instance *o, const cnr_tensor *p, double *box, cnr_error *err) {
    const cnr_tensor where =
        {.size = sizeof where, .dtype = CNR_f64, .rank = 1, .dim = {4}, .data = box, .bytes = 32};
    const cnr_tensor *in[] = {p, &where};
    return cnr_object_call(o, "init", in, 2, NULL, 0, err);
}

/* One frame; the confidence, NaN after an error. */
static double step(cnr_instance *o, const cnr_tensor *p, double *box, cnr_error *err) {
    const cnr_tensor *out[2];
    if (cnr_object_call(o, "track", &p, 1, out, 2, err)) return NAN;
    memcpy(box, out[0]->data, 4 * sizeof *box);
    return *(const double *)out[1]->data;
}

/* What a tracker said of all frames. */
typedef struct run {
    double box[FRAMES][4], confidence[FRAMES];
    int right, absent, lost, back;
} run;

/* Tracks from a frame on. */
static void play(cnr_instance *o, int from, run *r) {
    cnr_error err = CNR_ERROR_INIT;
    double truth[4];
    *r = (run){.back = -1};
    for (int i = from; i < FRAMES; i++) {
        draw(i, truth);
        if (i == 0) {
            if (begin(o, &picture, truth, &err)) note("%s: %s", err.where, err.text);
            continue;
        }
        r->confidence[i] = step(o, &picture, r->box[i], &err);
        const bool here = i < GONE || i >= BACK, said = r->confidence[i] >= 0;
        r->right += here && said && overlap(truth, r->box[i]) > 0.5;
        r->absent += !here && !said;
        r->lost += here && !said;
        if (i >= BACK && r->back < 0 && said && overlap(truth, r->box[i]) > 0.5) r->back = i - BACK;
    }
}

/* Tests: the object is followed. */
static void follows(void) {
    static run a, b, c;
    cnr_instance *one = make("seed=1"), *same = make("seed=1 threads=3"), *other = make("seed=2");
    play(one, 0, &a);
    note("right %d, absent %d, lost %d, back after %d", a.right, a.absent, a.lost, a.back);
    ok(a.right >= 40, "the square is followed");
    ok(a.absent >= BACK - GONE - 4, "it is said that it is gone");
    ok(a.back >= 0 && a.back < 10, "and found again when it is back");
    play(same, 0, &b);
    ok(memcmp(&a, &b, sizeof a) == 0, "the same boxes with three threads");
    play(other, 0, &c);
    ok(memcmp(&a, &c, sizeof a) != 0 && c.right >= 40,
       "other ones by another seed, and right as well");
    cnr_object_free(one);
    cnr_object_free(same);
    cnr_object_free(other);
}

/* Draws a frame in which the square stands, and a board with a picture of its own slides in front
 * of it and away again; box: the square's. */
static void draw_board(int frame, double *box) {
    enum { COMES = 30, GOES = 60, TAKES = 12, WIDE = 64 };
    int at = W; /* its left side */
    draw(0, box);
    if (frame >= COMES && frame < GOES + TAKES) {
        const int in = frame < COMES + TAKES ? frame - COMES
                       : frame < GOES        ? TAKES
                                             : GOES + TAKES - frame;
        at = W - (W - (int)box[0] + 10) * in / TAKES;
    }
    for (int y = 10; y < 90; y++)
        for (int x = at; x < W && x < at + WIDE; x++)
            for (int c = 0; c < 3; c++)
                pixels[(y * W + x) * 3 + c] = blotch(x - at, y, 44, 20, 230);
}

/* Tests: the object is hidden for a while. */
static void occluded(const char *options) {
    enum { ALL = 100, HIDDEN = 42, SHOWN = 62, FREE = 74 };
    cnr_error err = CNR_ERROR_INIT;
    double truth[4], box[4];
    cnr_instance *o = make(options);
    int wrong = 0, said = 0, back = -1, right = 0;
    draw_board(0, truth);
    begin(o, &picture, truth, &err);
    for (int i = 1; i < ALL; i++) {
        draw_board(i, truth);
        const bool there = step(o, &picture, box, &err) >= 0;
        said += i >= HIDDEN && i < 60 && there;
        right += i < 30 && there && overlap(box, truth) > 0.5;
        if (back < 0 && i >= SHOWN && there && overlap(box, truth) > 0.5) back = i;
        wrong += i >= FREE && there && overlap(box, truth) < 0.5;
    }
    note("%s: right %d, said while hidden %d, back at %d, wrong %d", options, right, said, back,
         wrong);
    ok(right == 29, "nothing is lost while it is in view: %s", options);
    ok(said <= 3, "what hides it is not taken for it");
    ok(back >= 0 && back < FREE + 10 && wrong == 0, "and it is found again behind that");
    cnr_object_free(o);
}

/* Draws a frame in which the square changes until it is no more sure to be what was learnt, then a
 * veil covers it for some frames; box: the square's. */
static void draw_veiled(int frame, double *box) {
    enum { CHANGED = 60, PART = 10, COMES = 90, GOES = 93 };
    const int part = PART * (frame < CHANGED ? frame : CHANGED) / CHANGED;
    draw(0, box);
    for (int i = 0; i < SIDE * SIDE; i++) {
        const int ox = i % SIDE, oy = i / SIDE, x = (int)box[0] + ox, y = (int)box[1] + oy;
        int v = (blotch(ox, oy, 99, 0, 255) * (50 - part) + blotch(ox, oy, 7, 0, 255) * part) / 50;
        v = (9 * v + blotch(4 * x, 4 * y, (uint32_t)frame, 0, 255)) / 10;
        if (frame >= COMES && frame < GOES) v = (3 * v + blotch(ox + 4 * frame, oy, 3, 0, 255)) / 4;
        for (int c = 0; c < 3; c++) pixels[(y * W + x) * 3 + c] = (uint8_t)v;
    }
}

/* Tests: another object comes. */
static void doubted(void) {
    enum { ALL = 130, COMES = 90, GOES = 93 };
    cnr_error err = CNR_ERROR_INIT;
    double truth[4], box[4], low = 1;
    cnr_instance *o = make("learning=0 nn_threshold=0.99 valid_threshold=1");
    int before = 0, doubts = 0, after = 0;
    draw_veiled(0, truth);
    begin(o, &picture, truth, &err);
    for (int i = 1; i < ALL; i++) {
        draw_veiled(i, truth);
        const double sure = step(o, &picture, box, &err);
        const bool there = sure >= 0 && overlap(box, truth) > 0.5;
        if (i == COMES - 1) low = sure;
        before += i < COMES && there;
        doubts += i >= COMES && i < GOES && sure < 0;
        after += i >= ALL - 10 && there;
    }
    note("told %d, as sure as %.2f, doubted %d, told again %d", before, low, doubts, after);
    ok(before == COMES - 1 && low < 0.99 && doubts > 0, "what changed is doubted behind a veil");
    ok(after == 10, "and told again when it is as it was before that");
    cnr_object_free(o);
}

/* Where the square is, something else appears, so slowly that the path does not notice. The reports
 * in the last frames, in which nothing of the square is left. */
static int changed(const char *options) {
    enum { FROM = 20, TO = 80, ALL = 100 };
    cnr_error err = CNR_ERROR_INIT;
    double truth[4], box[4];
    int reports = 0;
    cnr_instance *o = make(options);
    for (int frame = 0; frame < ALL; frame++) {
        const int part = frame < FROM ? 0 : frame < TO ? frame - FROM : TO - FROM;
        draw(0, truth);
        for (int i = 0; i < SIDE * SIDE; i++) {
            const int ox = i % SIDE, oy = i / SIDE, x = (int)truth[0] + ox, y = (int)truth[1] + oy;
            const int v = (blotch(ox, oy, 99, 0, 255) * (TO - FROM - part) +
                           blotch(ox, oy, 7, 0, 255) * part) /
                          (TO - FROM);
            for (int c = 0; c < 3; c++) pixels[(y * W + x) * 3 + c] = (uint8_t)v;
        }
        if (frame == 0) begin(o, &picture, truth, &err);
        else if (step(o, &picture, box, &err) >= 0) reports += frame >= TO;
    }
    cnr_object_free(o);
    return reports;
}

/* How long a path goes on over something else, and what is reported meanwhile. */
static void reported(void) {
    const char *const never =
        "learning=0 patience=1000000 surprise=1000000 report_surprise=1000000 "
        "report_likeness=-1";
    ok(changed(never) == 20, "a path goes on over something else");
    ok(changed("learning=0 patience=1000000 surprise=1000000 report_surprise=1000000") == 0,
       "but is not reported, since it looks like nothing that was learned");
}

/* Follows the square as it grows about its middle; returns its width as it was told last, *truth:
 * as it is. */
static double grown(const char *options, double *truth) {
    enum { ALL = 20 };
    cnr_error err = CNR_ERROR_INIT;
    double box[4] = {0};
    cnr_instance *o = make(options);
    for (int i = 0; i < ALL; i++) {
        const double by = pow(1.03, i), side = SIDE * by;
        truth[0] = 80 - side / 2;
        truth[1] = 60 - side / 2;
        truth[2] = truth[3] = side;
        for (int at = 0; at < W * H; at++) {
            const int x = at % W, y = at / W;
            const double ox = x + 0.5 - truth[0], oy = y + 0.5 - truth[1];
            const bool in = ox >= 0 && oy >= 0 && ox < side && oy < side;
            const uint8_t v =
                in ? blotch((int)(ox / by), (int)(oy / by), 99, 0, 255) : blotch(x, y, 5, 90, 150);
            for (int c = 0; c < 3; c++) pixels[at * 3 + c] = v;
        }
        if (i == 0) begin(o, &picture, truth, &err);
        else if (!(step(o, &picture, box, &err) >= 0)) note("%s: lost at %d", options, i);
    }
    cnr_object_free(o);
    return box[2];
}

/* Tests: the object grows. */
static void grows(void) {
    double truth[4];
    const double free = grown("", truth),
                 bound = grown("align=0 pull=1e6 learning=0 growth=1.01", truth);
    note("%.1f wide, told %.1f; bound %.1f", truth[2], free, bound);
    ok(fabs(free / truth[2] - 1) < 0.1, "a box grows with what is in it");
    ok(fabs(bound / SIDE - 1) < 0.02, "but not by more than it may");
}

/* A narrow thing that goes 6 pixels a frame to the right, before blotches that go 5 to the left.
 * Flow and nothing else; frames in which it is followed. */
static int narrow(const char *options) {
    enum { ALL = 16, WIDE = 14, HIGH = 36 };
    cnr_error err = CNR_ERROR_INIT;
    double box[4] = {0};
    int right = 0;
    cnr_instance *o = make(options);
    for (int i = 0; i < ALL; i++) {
        double truth[4] = {20 + 6 * i, 40, WIDE, HIGH};
        for (int at = 0; at < W * H; at++) {
            const int x = at % W, y = at / W, ox = x - (int)truth[0], oy = y - (int)truth[1];
            const bool in = ox >= 0 && oy >= 0 && ox < WIDE && oy < HIGH;
            const uint8_t v = in ? blotch(ox, oy, 99, 0, 255) : blotch(x + 5 * i, y, 5, 30, 220);
            for (int c = 0; c < 3; c++) pixels[at * 3 + c] = v;
        }
        if (i == 0) begin(o, &picture, truth, &err);
        else right += step(o, &picture, box, &err) >= 0 && overlap(truth, box) > 0.5;
    }
    cnr_object_free(o);
    return right;
}

/* Tests: the search. */
static void searched(void) {
    const char *const flow = "learning=0 align=0 anchor=1 nn_threshold=1 patience=1e6 surprise=1e6";
    char points[128], whole[128], random[128];
    snprintf(points, sizeof points, "%s search=0", flow);
    snprintf(whole, sizeof whole, "%s search=1", flow);
    snprintf(random, sizeof random, "%s search=1 random_points=1", flow);
    const int by_points = narrow(points), by_whole = narrow(whole), by_random = narrow(random);
    note("followed in %d of 15 frames by points, %d with a search, %d by points at random",
         by_points, by_whole, by_random);
    ok(by_points < 8, "points alone go with what is around a narrow thing");
    ok(by_whole >= 14, "the box as a whole is found");
    ok(by_random >= 14, "with points at random as well");
}

/* The square fades into something else by a third, and for `shown` frames its first look is seen
 * elsewhere. Whether the box is there in the last of them. */
static bool taken_over(const char *options, int shown) {
    enum { COMES = 10 };
    cnr_error err = CNR_ERROR_INIT;
    double box[4] = {0}, truth[4] = {20, 40, SIDE, SIDE};
    const double other[4] = {100, 60, SIDE, SIDE};
    cnr_instance *o = make(options);
    for (int i = 0; i < COMES + shown; i++) {
        for (int at = 0; at < W * H; at++) {
            const int x = at % W, y = at / W, ox = x - 20, oy = y - 40, rx = x - 100, ry = y - 60;
            int v = blotch(x, y, 5, 90, 150);
            if (ox >= 0 && oy >= 0 && ox < SIDE && oy < SIDE) {
                v = blotch(ox, oy, 99, 0, 255);
                if (i > 0) v = (2 * v + blotch(ox, oy, 7, 0, 255)) / 3;
            } else if (i >= COMES && rx >= 0 && ry >= 0 && rx < SIDE && ry < SIDE) {
                v = blotch(rx, ry, 99, 0, 255);
            }
            for (int c = 0; c < 3; c++) pixels[at * 3 + c] = (uint8_t)v;
        }
        if (i == 0) begin(o, &picture, truth, &err);
        else step(o, &picture, box, &err);
    }
    cnr_object_free(o);
    return overlap(other, box) > 0.5;
}

/* Tests: a rival path. */
static void rivalled(void) {
    ok(taken_over("learning=0 rivalry=1", 1), "one frame takes a path over where that is enough");
    ok(!taken_over("learning=0", 1), "but not by default");
    ok(!taken_over("learning=0", 2), "nor do two");
    ok(taken_over("learning=0", 3), "three do");
}

/* Tests: the detector alone. */
static void detector_alone(void) {
    static run r;
    cnr_error err = CNR_ERROR_INIT;
    double truth[4], box[4], off = 0;
    const cnr_tensor no = {.size = sizeof no, .dtype = CNR_f64, .data = &off, .bytes = 8},
                     *in = &no;
    cnr_instance *o = make("");
    draw(0, truth);
    begin(o, &picture, truth, &err);
    for (int i = 1; i < GONE; i++) {
        draw(i, truth);
        step(o, &picture, box, &err);
    }
    ok(cnr_object_call(o, "tracking", &in, 1, NULL, 0, &err) == CNR_OK,
       "the flow can be turned off");
    play(o, GONE, &r);
    ok(r.back >= 0 && r.back < 10, "the detector alone finds it within 10 frames of its return");
    cnr_object_free(o);
}

/* Tests: stored models. */
static void models(void) {
    static run r;
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor *model;
    cnr_instance *o = make(""), *fresh = make("");
    ok(cnr_object_call(o, "save", NULL, 0, &model, 1, &err) == CNR_E_STATE,
       "nothing learnt: nothing saved");
    play(o, 0, &r);
    ok(cnr_object_call(o, "save", NULL, 0, &model, 1, &err) == CNR_OK && model->dtype == CNR_u8,
       "what was learnt is saved");
    ok(cnr_object_call(fresh, "load", &model, 1, NULL, 0, &err) == CNR_OK, "and read");
    play(fresh, 1, &r);
    ok(r.right >= 38, "it is found without being marked: %d", r.right);
    uint8_t *copy = malloc((size_t)model->bytes);
    cnr_tensor cut = *model;
    int refused = 0;
    memcpy(copy, model->data, (size_t)model->bytes);
    cut.data = copy;
    for (int k = 0; k < 50; k++) { /* cut short anywhere */
        cut.dim[0] = (int64_t)((double)model->dim[0] * k / 50);
        cut.bytes = (uint64_t)cut.dim[0];
        const cnr_tensor *in = &cut;
        refused += cnr_object_call(fresh, "load", &in, 1, NULL, 0, &err) == CNR_E_FORMAT;
    }
    is_int(refused, 50, "one that is cut short is refused");
    cut = *model;
    cut.data = copy;
    for (int k = 0; k < 200; k++) { /* other bytes in it: refused, or taken without harm */
        const cnr_tensor *in = &cut;
        double box[4];
        const size_t at = noise((uint32_t)k) % (k % 2 ? 200u : (uint32_t)model->bytes);
        copy[at] ^= (uint8_t)(1u << k % 8);
        if (cnr_object_call(fresh, "load", &in, 1, NULL, 0, &err) == CNR_OK)
            step(fresh, &picture, box, &err);
        copy[at] = ((const uint8_t *)model->data)[at];
    }
    ok(true, "one with other bytes does no harm");
    free(copy);
    cnr_object_free(o);
    cnr_object_free(fresh);
}

/* Tests: wrong input. */
static void bad_input(void) {
    cnr_error err = CNR_ERROR_INIT;
    double truth[4], box[4];
    cnr_instance *o = make("");
    draw(0, truth);
    ok(isnan(step(o, &picture, box, &err)) && err.code == CNR_E_STATE, "init comes first");
    const double wrong[][4] = {{-50, 0, 40, 40},    {200, 10, 30, 30}, {10, 10, 0, 30},
                               {10, 10, -5, 5},     {10, 10, NAN, 5},  {158, 118, 30, 30},
                               {1e300, 0, 1e300, 5}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memcpy(box, wrong[i], sizeof box);
        ok(begin(o, &picture, box, &err) == CNR_E_ARG, "no such box: %g %g %g %g", box[0], box[1],
           box[2], box[3]);
    }
    ok(strstr(err.text, "160 x 120") != NULL, "the message tells the picture's size");
    memset(pixels, 77, sizeof pixels);
    is_int(begin(o, &picture, truth, &err), CNR_E_ARG, "one colour is nothing to follow");
    ok(isnan(step(o, &picture, box, &err)) && err.code == CNR_E_STATE,
       "and nothing is followed then");
    draw(0, truth);
    is_int(begin(o, &picture, truth, &err), CNR_OK, "a good box after bad ones");
    cnr_tensor small = picture, flat = picture;
    small.dim[0] = 64;
    small.dim[1] = 80;
    small.bytes = 64 * 80 * 3;
    ok(step(o, &small, box, &err) < 0, "a frame of another size: absent");
    draw(1, truth);
    ok(!isnan(step(o, &picture, box, &err)), "and back");
    flat.dtype = CNR_f32;
    flat.bytes = 0;
    flat.dim[0] /= 4;
    ok(isnan(step(o, &flat, box, &err)) && err.code == CNR_E_ARG, "a frame that is none is told");
    int found = 0;
    for (int i = 2; i < 20; i++) {
        draw(i, truth);
        found += step(o, &picture, box, &err) >= 0 && overlap(box, truth) > 0.5;
    }
    ok(found >= 10, "and survived: %d of 18", found);
    cnr_object_free(o);
}

/* Tests: calls from C. */
static void by_c(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_instance *o = NULL;
    const char *words[] = {"sed=1", NULL}, *far[] = {"ferns=99", NULL}, *no[] = {"seed", NULL},
               *text[] = {"seed=one", NULL};
    const cnr_tensor *out[2];
    is_int(cnr_object_make(rt, "no such thing", NULL, &o, &err), CNR_E_NOT_FOUND, "no such object");
    is_int(cnr_object_make(rt, "tld", words, &o, &err), CNR_E_ARG, "no such option");
    is_int(cnr_object_make(rt, "tld", far, &o, &err), CNR_E_ARG, "out of its bounds");
    is_int(cnr_object_make(rt, "tld", no, &o, &err), CNR_E_ARG, "no option without a value");
    is_int(cnr_object_make(rt, "tld", text, &o, &err), CNR_E_ARG, "a text is no number");
    ok(!o, "nothing was made");
    is_int(cnr_object_make(rt, "tld", NULL, &o, &err), CNR_OK, "none at all: the defaults");
    is_int(cnr_object_call(o, "tack", NULL, 0, out, 2, &err), CNR_E_NOT_FOUND, "no such method");
    is_int(cnr_object_call(o, "track", NULL, 0, out, 2, &err), CNR_E_ARG, "too few arguments");
    is_int(cnr_object_call(o, "options", NULL, 0, out, 2, &err), CNR_E_ARG,
           "more results than there are");
    is_int(cnr_object_call(o, "options", NULL, 0, out, 1, &err), CNR_OK, "results are tensors");
    ok(out[0]->dtype == CNR_u8 && strstr(out[0]->data, "nn_threshold 0.65") != NULL,
       "texts are bytes");
    cnr_object_free(o);
    cnr_object_free(NULL);
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    const char *const dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .no_default_dirs = 1};
    if (cnr_open(&rt, &options, &err)) {
        ok(false, "%s", err.text);
        return done();
    }
    cnr_instance *there = make("");
    if (!there) {
        printf("1..0 # SKIP the plugin object-tld is missing\n");
        return 0;
    }
    cnr_object_free(there);
    by_c();
    follows();
    for (int i = 1; i <= 3; i++) {
        char options[16];
        snprintf(options, sizeof options, "seed=%d", i);
        occluded(options);
    }
    doubted();
    reported();
    grows();
    searched();
    rivalled();
    detector_alone();
    models();
    bad_input();
    cnr_close(rt);
    return done();
}
