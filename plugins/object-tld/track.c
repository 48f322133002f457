/* Tracks a frame: flow and detection, and the integrator that combines them. */
#include "learn.h"
#include <math.h>
#include <stdlib.h>

/* Frees all that the tracker has, not t. */
void tld_tracker_free(tld_tracker *t) {
    tld_view_free(&t->views[0]);
    tld_view_free(&t->views[1]);
    tld_ferns_free(&t->ferns);
    tld_nearest_free(&t->nearest);
    tld_scan_free(&t->scan);
    tld_host->free(t->patches);
    tld_host->free(t->similar);
    tld_host->free(t->found);
    t->patches = NULL;
    t->similar = NULL;
    t->found = NULL;
}

/* Allocates the candidates of a frame, and empty ferns and shelves. */
cnr_status tld_make_room(tld_tracker *t, cnr_error *err) {
    const size_t n = (size_t)t->o.candidates;
    if (!t->patches) t->patches = tld_host->alloc(n * TLD_PATCH_PITCH * sizeof *t->patches);
    if (!t->similar) t->similar = tld_host->alloc(n * sizeof *t->similar);
    if (!t->found) t->found = tld_host->alloc(n * sizeof *t->found);
    if (!t->patches || !t->similar || !t->found)
        return tld_host->fail(err, CNR_E_MEMORY, "tld", "no memory for windows");
    t->dice.state = (uint64_t)t->o.seed;
    CNR_TRY(tld_ferns_make(&t->ferns, &t->o, &t->dice, err));
    return tld_nearest_make(&t->nearest, &t->o, err);
}

/* Milliseconds since *from, which is set to now. */
static double ms_since(uint64_t *from) {
    const uint64_t now = tld_host->now_ns(), was = *from;
    *from = now;
    return (double)(now - was) * 1e-6;
}

/* ---- the detector ---- */

/* Compares votes, the highest first, for qsort. */
static int by_vote(const void *a, const void *b) {
    const tld_candidate *x = a, *y = b;
    if (x->vote != y->vote) return x->vote < y->vote ? 1 : -1;
    return (x->window > y->window) - (x->window < y->window);
}

/* Uses votes computed elsewhere instead of a scan. */
static void take_votes(tld_scan *s, const float *votes, int64_t n) {
    s->n = s->past = 0;
    for (int64_t i = 0; i < n; i++) {
        s->past += votes[i] > 0;
        if ((double)votes[i] > s->threshold) s->list[s->n++] = (tld_candidate){i, votes[i]};
    }
}

/* Selects the windows with the highest votes, whose patches are compared. */
static cnr_status pick(tld_tracker *t, const float *votes, cnr_error *err) {
    tld_scan *s = &t->scan;
    uint64_t clock = tld_host->now_ns();
    s->grid = &t->grid;
    s->view = &t->views[t->now];
    s->ferns = &t->ferns;
    s->least_variance = t->least_variance;
    s->threshold = t->fern_threshold;
    CNR_TRY(tld_scan_room(s, err));
    if (votes) take_votes(s, votes, t->grid.windows);
    else CNR_TRY(tld_scan_run(s, (int32_t)t->o.threads, err));
    t->times.variance = (double)s->ns_variance * 1e-6;
    t->times.ferns = ms_since(&clock) - t->times.variance;
    qsort(s->list, (size_t)s->n, sizeof *s->list, by_vote);
    t->n_candidates = (int32_t)cnr_min(s->n, (int64_t)t->o.candidates);
    for (int32_t i = 0; i < t->n_candidates; i++)
        tld_patch(s->view, tld_window(&t->grid, s->list[i].window),
                  t->patches + (int64_t)i * TLD_PATCH_PITCH);
    t->times.nearest = ms_since(&clock);
    return CNR_OK;
}

/* Fills t->found with the candidates that are similar to the object, by products (NULL: compared
 * here). */
static void find(tld_tracker *t, const float *products) {
    uint64_t clock = tld_host->now_ns();
    if (products) tld_compared(&t->nearest, products, t->n_candidates, t->similar);
    else tld_compare(&t->nearest, t->patches, t->n_candidates, t->similar);
    t->n_found = 0;
    for (int32_t i = 0; i < t->n_candidates; i++)
        if (t->similar[i].relative > t->nn_threshold)
            t->found[t->n_found++] =
                (tld_found){tld_window(&t->grid, t->scan.list[i].window), t->similar[i].relative,
                            t->similar[i].conservative};
    t->times.nearest += ms_since(&clock);
}

cnr_status tld_detect(tld_tracker *t, const float *votes, cnr_error *err) {
    CNR_TRY(pick(t, votes, err));
    find(t, NULL);
    return CNR_OK;
}

/* ---- the integrator ---- */

/* Merges detections reachable from `first` by overlaps of one half, and marks them in `taken`;
 * returns their mean. */
static tld_found merge(const tld_tracker *t, int32_t first, bool *taken) {
    int32_t queue[2048], n = 0;
    tld_found sum = {{0}, 0, 0};
    queue[n++] = first;
    taken[first] = true;
    for (int32_t at = 0; at < n; at++) {
        const tld_found *f = &t->found[queue[at]];
        sum.box.x += f->box.x;
        sum.box.y += f->box.y;
        sum.box.w += f->box.w;
        sum.box.h += f->box.h;
        sum.similarity += f->similarity;
        sum.conservative += f->conservative;
        for (int32_t i = 0; i < t->n_found; i++)
            if (!taken[i] && tld_overlap(f->box, t->found[i].box) > 0.5) {
                taken[i] = true;
                queue[n++] = i;
            }
    }
    return (tld_found){{sum.box.x / n, sum.box.y / n, sum.box.w / n, sum.box.h / n},
                       sum.similarity / (float)n,
                       sum.conservative / (float)n};
}

/* Merges detections that overlap; returns how many are left. */
static int32_t clusters_of(const tld_tracker *t, tld_found *out) {
    bool taken[2048] = {false};
    int32_t n = 0;
    for (int32_t i = 0; i < t->n_found; i++)
        if (!taken[i]) out[n++] = merge(t, i, taken);
    return n;
}

/* Pulls the path's box towards detections at the same place; true: there were some. Small windows
 * are denser than large ones: each is weighted by the area around it, or the box would shrink
 * gradually. */
static bool pull(tld_tracker *t) {
    const double weight = t->o.pull, side = fmin(t->box.w, t->box.h);
    tld_box sum = {weight * t->box.x, weight * t->box.y, weight * t->box.w, weight * t->box.h};
    double n = weight;
    for (int32_t i = 0; i < t->n_found; i++) {
        const tld_box b = t->found[i].box;
        if (tld_overlap(t->box, b) <= 0.7) continue;
        const double by = pow(fmin(b.w, b.h) / side, 2);
        sum = (tld_box){sum.x + by * b.x, sum.y + by * b.y, sum.w + by * b.w, sum.h + by * b.h};
        n += by;
    }
    t->box = (tld_box){sum.x / n, sum.y / n, sum.w / n, sum.h / n};
    return n > weight;
}

/* Takes the box of a detection as the new start of the path, and forgets doubts. */
static void begin_at(tld_tracker *t, const tld_found *f) {
    t->usual.sum = 0;
    t->rivalled = 0;
    t->box = f->box;
    t->confidence = f->similarity;
    t->likeness = t->relative = 1;
    t->motion[0] = t->motion[1] = 0;
    t->tracked = true;
    t->valid = false;
    t->doubts = t->unlike = t->agreed = 0;
    t->fresh = true;
    t->doubted = false;
}

/* True if the detector has found a better match than the path for several frames, at a place that
 * moves like the picture. A single frame may be wrong. */
static bool is_outdone(tld_tracker *t, const tld_found *by) {
    const bool same = t->rivalled > 0 && tld_overlap(t->rival, by->box) > 0.5;
    t->rivalled = same ? t->rivalled + 1 : 1;
    t->rival = by->box;
    return t->doubted || t->rivalled >= t->o.rivalry;
}

/* Decides between the followed box and the detections. */
static cnr_status integrate(tld_tracker *t, cnr_error *err) {
    tld_found *c = tld_host->alloc(((size_t)t->n_found + 1) * sizeof *c);
    if (!c) return tld_host->fail(err, CNR_E_MEMORY, "tld", "out of memory");
    const int32_t n = clusters_of(t, c);
    if (t->tracked) {
        int32_t better = 0, which = 0;
        for (int32_t i = 0; i < n; i++)
            if (tld_overlap(t->box, c[i].box) < 0.5 &&
                (t->doubted || c[i].conservative > t->confidence)) {
                better++;
                which = i;
            }
        if (better != 1) t->rivalled = 0;
        if (better == 1 && is_outdone(t, &c[which])) begin_at(t, &c[which]);
        else if (pull(t) && n == 1) t->agreed++;
        else t->agreed = 0;
        if (t->agreed >= t->o.agreement && !t->doubted) t->valid = true;
    } else if (n == 1) {
        begin_at(t, &c[0]);
    }
    tld_host->free(c);
    return CNR_OK;
}

/* In the dark a camera's noise dominates the variance, and flatness can't be judged. */
static const double noise = 25;

/* The fraction of the box inside the picture. */
static double shown(const tld_view *v, tld_box b) {
    const double w = fmin(v->w, b.x + b.w) - fmax(0, b.x), h = fmin(v->h, b.y + b.h) - fmax(0, b.y);
    return w > 0 && h > 0 ? w * h / (b.w * b.h) : 0;
}

/* A path that is tracked much worse than average is neither reported nor learned until it looks as
 * before: something occludes it. */
static void doubt(tld_tracker *t, const tld_quality *q, double relative) {
    const bool whole =
        shown(&t->views[t->now], t->box) > 0.9; /* otherwise it looks different anyway */
    const double most = 2 * t->o.surprise;
    const bool hidden = t->doubted && relative <= t->nn_threshold;
    const double surprise = tld_unusual(&t->usual, q, whole ? t->confidence : NAN, hidden, most);
    const bool sure = t->confidence > t->valid_threshold;
    if (surprise > t->o.surprise && !sure) {
        t->doubted = true;
        t->seen = 0;
    } else if (sure || surprise <= 0) {
        t->doubted = false;
    }
    if (sure) t->valid = true;
    if (t->doubted) t->valid = false;
    if (t->valid) t->fresh = false;
}

/* Sets the confidence of the followed box, and whether the path stays valid, by what the patch in
 * it is like. */
static void judge_path(tld_tracker *t, const tld_quality *q) {
    float patch[TLD_PATCH_PITCH];
    tld_similar s;
    const double variance = tld_patch(&t->views[t->now], t->box, patch);
    tld_compare(&t->nearest, patch, 1, &s);
    t->confidence = s.conservative;
    t->likeness = (double)s.to_positive;
    t->relative = (double)s.relative;
    doubt(t, q, (double)s.relative);
    /* Windows as flat as that would not be scanned. Motion blur is flat for some frames; a wall or
     * tree in front is so for longer, or flatter, and resembles negatives. */
    const double flat = t->least_variance > noise ? 1 - variance / t->least_variance : 0;
    if (flat <= 0) t->doubts = 0;
    else t->doubts += flat * (t->fresh ? 4 : s.relative < 0.5f ? 2 : 1);
    /* A path more similar to negatives than to the object is followed for a limited time only. */
    t->unlike = s.relative < 0.5f ? t->unlike + 0.5 - (double)s.relative : fmax(0, t->unlike - 0.1);
    if (t->doubts > t->o.patience || t->unlike > 3 * t->o.patience) t->tracked = false;
}

/* Follows the box from the last frame's view to the present one; t->tracked: it was found. */
static void follow_path(tld_tracker *t) {
    const tld_view *now = &t->views[t->now], *before = &t->views[!t->now];
    tld_box moved;
    tld_quality quality, unused;
    t->tracked = t->tracked && t->o.tracking != 0 &&
                 tld_flow(before, now, t->box, t->motion, &t->o, &t->dice, &moved, &quality);
    if (!t->tracked) return;
    if (t->rivalled > 0 && !tld_flow(before, now, t->rival, (const double[]){0, 0}, &t->o, &t->dice,
                                     &t->rival, &unused))
        t->rivalled = 0;
    const tld_box was = t->box;
    t->box = t->o.align > 0 ? tld_align(t, moved, t->box) : moved;
    t->motion[0] = t->box.x + t->box.w / 2 - was.x - was.w / 2;
    t->motion[1] = t->box.y + t->box.h / 2 - was.y - was.h / 2;
    judge_path(t, &quality);
}

cnr_status tld_prepare(tld_tracker *t, const cnr_tensor *picture, cnr_error *err) {
    uint64_t clock = tld_host->now_ns(), begun = clock;
    if (!t->begun) return tld_host->fail(err, CNR_E_STATE, "tld", "init or load comes first");
    const int32_t next = !t->now;
    t->prepared = t->picked = false;
    CNR_TRY(tld_view_make(&t->views[next], picture, t->o.blur, err));
    t->now = next;
    const tld_view *v = &t->views[next];
    t->times = (tld_times){.view = ms_since(&clock)};
    if (v->w != t->grid.width || v->h != t->grid.height)
        tld_grid_make(&t->grid, &t->o, t->target.w, t->target.h, v->w, v->h);
    follow_path(t);
    if (!t->tracked) t->valid = false;
    t->times.flow = ms_since(&clock);
    t->times.all = ms_since(&begun);
    t->prepared = true;
    return CNR_OK;
}

/* Counts frames that show the object (there), and those that don't down. A path that began at a
 * detection counts only while it is more similar to the object than to negatives: it may be
 * something similar. */
static void count_seen(tld_tracker *t, bool there) {
    const int32_t most = 2 * (int32_t)t->o.probation;
    if (!there) t->seen = (int32_t)cnr_max(t->seen - 1, 0);
    else if (!t->fresh || t->relative >= 0.5) t->seen = (int32_t)cnr_min(t->seen + 1, most);
}

/* True if the box is reported. A path that is not may go on: it often recovers. */
static bool is_reported(const tld_tracker *t) {
    if (t->usual.sum > t->o.report_surprise && t->confidence <= t->valid_threshold) return false;
    if (t->likeness < t->o.report_likeness) return false;
    return t->valid || t->seen >= (int32_t)t->o.probation;
}

/* Finishes the frame after detection: chooses between path and detections, learns, and notes times.
 * Fails with CNR_E_MEMORY. */
static cnr_status conclude(tld_tracker *t, uint64_t begun, cnr_error *err) {
    const cnr_status status = integrate(t, err);
    if (status) {
        t->tracked = false;
        return status;
    }
    uint64_t clock = tld_host->now_ns();
    if (t->tracked && t->valid && t->o.learning != 0) tld_learn(t);
    t->times.learning = ms_since(&clock);
    const bool there = t->tracked && !t->doubted;
    count_seen(t, there);
    if (!there || !is_reported(t)) t->confidence = -1;
    t->frames++;
    t->times.all += ms_since(&begun);
    return CNR_OK;
}

cnr_status tld_finish(tld_tracker *t, const float *votes, cnr_error *err) {
    const uint64_t begun = tld_host->now_ns();
    if (!t->prepared) return tld_host->fail(err, CNR_E_STATE, "tld", "prepare comes first");
    t->prepared = t->picked = false;
    const cnr_status status = tld_detect(t, votes, err);
    if (!status) return conclude(t, begun, err);
    t->tracked = false;
    return status;
}

cnr_status tld_pick(tld_tracker *t, const float *votes, cnr_error *err) {
    uint64_t begun = tld_host->now_ns();
    if (!t->prepared) return tld_host->fail(err, CNR_E_STATE, "tld", "prepare comes first");
    t->prepared = false;
    const cnr_status status = pick(t, votes, err);
    t->picked = status == CNR_OK;
    if (status) t->tracked = false;
    t->times.all += ms_since(&begun);
    return status;
}

cnr_status tld_finish_compared(tld_tracker *t, const float *products, cnr_error *err) {
    const uint64_t begun = tld_host->now_ns();
    if (!t->picked) return tld_host->fail(err, CNR_E_STATE, "tld", "candidates comes first");
    t->picked = false;
    find(t, products);
    return conclude(t, begun, err);
}

cnr_status tld_track(tld_tracker *t, const cnr_tensor *picture, cnr_error *err) {
    CNR_TRY(tld_prepare(t, picture, err));
    return tld_finish(t, NULL, err);
}
