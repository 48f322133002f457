/* The P-expert and N-expert: what the detector learns from a frame, and from the first one. */
#include "learn.h"
#include <math.h>

enum { FIRST_NEGATIVES = 100, MOST_EXAMPLES = 50 * 200 };

/* Draws a rotation of at most half of `degrees` either way, and likewise a shift and a scaling. */
static tld_warp draw_warp(tld_dice *d, double degrees, double shift, double scale) {
    const double turn = (tld_draw(d) - 0.5) * degrees * 3.14159265358979 / 180;
    const double by = 1 + (tld_draw(d) - 0.5) * scale;
    return (tld_warp){by * cos(turn), -by * sin(turn), by * sin(turn), by * cos(turn),
                      (tld_draw(d) - 0.5) * shift, (tld_draw(d) - 0.5) * shift,
                      /* sigma of 2, the remainder of a deviation of 5 in the picture after the
                       * blur: the sum of three draws has a deviation of 0.5 */
                      2.0};
}

/* ---- ferns ---- */

/* Learns warped views of the windows around the box, if the ferns do not know them yet. */
static void learn_views(tld_tracker *t, tld_box box, int32_t warps, double degrees) {
    int64_t near[64];
    uint16_t codes[TLD_MOST_FERNS];
    const tld_view *v = &t->views[t->now];
    const int32_t n = tld_closest(&t->grid, box, 0.6, (int32_t)t->o.closest, near);
    for (int32_t k = 0; k <= warps; k++)
        for (int32_t i = 0; i < n; i++) {
            const tld_warp warp = draw_warp(&t->dice, degrees, 0.02, 0.02);
            tld_codes(&t->ferns, v, tld_window(&t->grid, near[i]), k ? &warp : NULL, &t->dice,
                      codes);
            if (tld_vote(&t->ferns, codes) <= t->fern_threshold)
                tld_ferns_learn(&t->ferns, codes, true);
        }
}

/* Learns, as negatives, windows elsewhere that the ferns took for the object. */
static void learn_elsewhere(tld_tracker *t, tld_box box) {
    uint16_t codes[TLD_MOST_FERNS];
    const tld_view *v = &t->views[t->now];
    for (int64_t i = 0; i < t->scan.n; i++) {
        const tld_box w = tld_window(&t->grid, t->scan.list[i].window);
        if (tld_overlap(w, box) >= 0.2) continue;
        tld_codes(&t->ferns, v, w, NULL, NULL, codes);
        if (tld_vote(&t->ferns, codes) >= 0.5) tld_ferns_learn(&t->ferns, codes, false);
    }
}

/* ---- nearest neighbour ---- */

/* Learns a patch as an example for (positive) or against the object, if it is new. */
static void teach(tld_tracker *t, const float *patch, bool positive) {
    tld_similar s;
    tld_compare(&t->nearest, patch, 1, &s);
    if (positive && s.relative <= fmax(t->nn_threshold, t->agreed > 0 ? t->o.learn_below : 0))
        tld_remember(&t->nearest, true, patch, s.to_positive > t->o.same ? s.nearest_positive : -1);
    if (!positive && s.relative > 0.5) tld_remember(&t->nearest, false, patch, -1);
}

void tld_learn(tld_tracker *t) {
    float patch[TLD_PATCH_PITCH];
    tld_similar s;
    const double variance = tld_patch(&t->views[t->now], t->box, patch);
    tld_compare(&t->nearest, patch, 1, &s);
    if (s.relative < t->o.learn_floor || variance < t->least_variance ||
        s.to_negative > t->o.same) { /* too different, flat or negative */
        t->valid = false;
        return;
    }
    learn_views(t, t->box, (int32_t)t->o.warps, 10);
    learn_elsewhere(t, t->box);
    teach(t, patch, true);
    for (int32_t i = 0; i < t->n_candidates; i++)
        if (tld_overlap(tld_window(&t->grid, t->scan.list[i].window), t->box) < 0.2)
            teach(t, t->patches + (int64_t)i * TLD_PATCH_PITCH, false);
}

/* ---- the first frame ---- */

/* Other windows of the first frame, chosen at random and with enough variance: one half is learned,
 * the other half gives the highest vote and similarity of negatives. */
static void learn_first_rest(tld_tracker *t) {
    float patch[TLD_PATCH_PITCH];
    uint16_t codes[TLD_MOST_FERNS];
    tld_similar s;
    const tld_view *v = &t->views[t->now];
    double vote = t->fern_threshold, like = t->nn_threshold;
    int32_t kept = 0;
    for (int32_t i = 0; i < 20 * FIRST_NEGATIVES && kept < 2 * FIRST_NEGATIVES; i++) {
        const int64_t at = (int64_t)(tld_draw(&t->dice) * (double)t->grid.windows);
        const tld_box w = tld_window(&t->grid, at);
        if (tld_overlap(w, t->box) >= 0.2 ||
            tld_variance(v, (int32_t)w.x, (int32_t)w.y, (int32_t)w.w, (int32_t)w.h) <
                t->least_variance)
            continue;
        tld_codes(&t->ferns, v, w, NULL, NULL, codes);
        tld_patch(v, w, patch);
        if (++kept % 2) {
            if (tld_vote(&t->ferns, codes) >= 0.5) tld_ferns_learn(&t->ferns, codes, false);
            teach(t, patch, false);
            continue;
        }
        vote = fmax(vote, tld_vote(&t->ferns, codes));
        tld_compare(&t->nearest, patch, 1, &s);
        like = fmax(like, s.relative);
    }
    t->fern_threshold = vote;
    t->nn_threshold = like;
    t->valid_threshold = fmax(t->valid_threshold, like);
}

/* Cuts *box to the picture; CNR_E_ARG if fewer than 4 x 4 pixels are left. */
static cnr_status check_box(const tld_view *v, tld_box *box, cnr_error *err) {
    const double x1 = fmin(v->w, box->x + box->w), y1 = fmin(v->h, box->y + box->h);
    const double x0 = fmax(0, box->x), y0 = fmax(0, box->y);
    if (!isfinite(box->x + box->y + box->w + box->h) || !(x1 - x0 >= 4) || !(y1 - y0 >= 4))
        return tld_host->fail(err, CNR_E_ARG, "box",
                              "want x, y, width, height with 4 pixels or more of "
                              "each side within the picture's %d x %d, got %g,%g,%g,%g",
                              v->w, v->h, box->x, box->y, box->w, box->h);
    *box = (tld_box){x0, y0, x1 - x0, y1 - y0};
    return CNR_OK;
}

cnr_status tld_init(tld_tracker *t, const cnr_tensor *picture, tld_box box, cnr_error *err) {
    float patch[TLD_PATCH_PITCH];
    t->begun = t->tracked = t->valid = t->prepared = t->picked = false;
    CNR_TRY(tld_view_make(&t->views[t->now], picture, t->o.blur, err));
    const tld_view *v = &t->views[t->now];
    CNR_TRY(check_box(v, &box, err));
    CNR_TRY(tld_make_room(t, err));
    tld_grid_make(&t->grid, &t->o, box.w, box.h, v->w, v->h);
    const double variance = tld_patch(v, box, patch);
    if (variance < 1)
        return tld_host->fail(err, CNR_E_ARG, "box",
                              "what it holds has one colour: nothing to know it by");
    t->box = t->target = box;
    t->least_variance = t->o.variance * variance;
    t->fern_threshold = t->o.fern_threshold;
    t->nn_threshold = t->o.nn_threshold;
    t->valid_threshold = t->o.valid_threshold;
    t->n_found = t->n_candidates = 0;
    t->scan.n = 0;
    t->doubts = t->unlike = t->agreed = t->rivalled = 0;
    t->motion[0] = t->motion[1] = 0;
    t->usual = (tld_usual){.frames = 0};
    t->seen = 2 * (int32_t)t->o.probation;
    t->fresh = t->doubted = false;
    t->frames = 1;
    tld_remember(&t->nearest, true, patch, -1);
    learn_views(t, box, (int32_t)t->o.warps_first, 20);
    learn_first_rest(t);
    t->begun = t->tracked = t->valid = true;
    t->confidence = t->likeness = t->relative = 1;
    /* similar windows elsewhere in this frame are negatives */
    CNR_TRY(tld_detect(t, NULL, err));
    if (t->o.learning != 0) {
        learn_elsewhere(t, box);
        learn_views(t, box, (int32_t)t->o.warps, 20);
    }
    return CNR_OK;
}

cnr_status tld_place(tld_tracker *t, const cnr_tensor *picture, tld_box box, cnr_error *err) {
    float patch[TLD_PATCH_PITCH];
    if (!t->begun)
        return tld_host->fail(err, CNR_E_STATE, "tld", "nothing is learnt yet: init comes first");
    t->tracked = t->valid = t->prepared = t->picked = false;
    CNR_TRY(tld_view_make(&t->views[t->now], picture, t->o.blur, err));
    const tld_view *v = &t->views[t->now];
    CNR_TRY(check_box(v, &box, err));
    tld_grid_make(&t->grid, &t->o, t->target.w, t->target.h, v->w, v->h);
    t->box = box;
    CNR_TRY(tld_detect(t, NULL, err));
    tld_patch(v, box, patch);
    learn_views(t, box, (int32_t)t->o.warps, 10);
    learn_elsewhere(t, box);
    teach(t, patch, true);
    t->tracked = t->valid = true;
    t->fresh = t->doubted = false;
    t->doubts = t->unlike = t->agreed = t->rivalled = 0;
    t->motion[0] = t->motion[1] = 0;
    t->usual = (tld_usual){.frames = 0};
    t->seen = 2 * (int32_t)t->o.probation;
    t->confidence = t->likeness = t->relative = 1;
    return CNR_OK;
}
