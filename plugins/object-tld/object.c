/* The object "tld": its options and methods. */
#include "tld.h"
#include <math.h>

/* Tracker and arguments of a method. */
typedef struct call {
    tld_tracker *t;
    const cnr_tensor *const *in;
    cnr_tensor *const *out;
    cnr_error *err;
} call;

/* Frees a tracker and all that it has. */
static void destroy(void *state) {
    tld_tracker_free(state);
    tld_host->free(state);
}

/* Creates a tracker with options; *state receives it. Fails with the option's fault or
 * CNR_E_MEMORY. */
static cnr_status create(const cnr_attr *const *options, int32_t n, void **state, cnr_error *err) {
    tld_tracker *t = tld_host->alloc(sizeof *t);
    if (!t) return tld_host->fail(err, CNR_E_MEMORY, "tld", "out of memory");
    memset(t, 0, sizeof *t);
    const cnr_status status = tld_options_read(options, n, &t->o, err);
    if (status) destroy(t);
    else *state = t;
    return status;
}

/* Gives result `i` its type and dims, and memory of the host's, which it returns for the caller to
 * fill. NULL with err: out of memory. */
static void *give_sized(const call *c, int32_t i, int32_t dtype, int32_t rank, const int64_t *dim) {
    cnr_tensor *t = c->out[i];
    t->dtype = dtype;
    t->rank = rank;
    memcpy(t->dim, dim, (size_t)rank * sizeof *dim);
    t->data = tld_host->alloc((size_t)cnr_dense_bytes(t) + 1);
    if (!t->data) tld_host->fail(c->err, CNR_E_MEMORY, "tld", "out of memory");
    return t->data;
}

/* Memory of result i, of d0 or d0 x d1 elements; NULL: out of memory. */
static void *give(const call *c, int32_t i, int32_t dtype, int32_t rank, int64_t d0, int64_t d1) {
    return give_sized(c, i, dtype, rank, (int64_t[]){d0, d1});
}

/* Calls `how` with picture and box of the call. */
static cnr_status begin_in(const call *c, cnr_status (*how)(tld_tracker *, const cnr_tensor *,
                                                            tld_box, cnr_error *)) {
    const cnr_tensor *box = c->in[1];
    if (box->dtype != CNR_f64 || cnr_count(box) != 4)
        return tld_host->fail(c->err, CNR_E_ARG, "box", "want four numbers: x, y, width, height");
    const double *v = box->data;
    return how(c->t, c->in[0], (tld_box){v[0], v[1], v[2], v[3]}, c->err);
}

static cnr_status init(const call *c) { return begin_in(c, tld_init); }
static cnr_status place(const call *c) { return begin_in(c, tld_place); }

/* Gives box (x, y, w, h) and confidence as results 0 and 1. */
static cnr_status give_box(const call *c) {
    double *box = give(c, 0, CNR_f64, 1, 4, 1),
           *confidence = box ? give(c, 1, CNR_f64, 0, 1, 1) : NULL;
    if (!confidence) return CNR_E_MEMORY;
    memcpy(box, (double[]){c->t->box.x, c->t->box.y, c->t->box.w, c->t->box.h}, 4 * sizeof *box);
    *confidence = c->t->confidence;
    return CNR_OK;
}

/* Method track: the box in the next frame. */
static cnr_status track(const call *c) {
    CNR_TRY(tld_track(c->t, c->in[0], c->err));
    return give_box(c);
}

/* ---- methods for detector stages that run elsewhere ---- */

/* Method prepare: begins a frame whose votes a net computes. */
static cnr_status prepare(const call *c) {
    CNR_TRY(tld_prepare(c->t, c->in[0], c->err));
    const tld_view *v = &c->t->views[c->t->now];
    uint8_t *grey = give(c, 0, CNR_u8, 2, v->h, v->w),
            *blurred = grey ? give(c, 1, CNR_u8, 2, v->h, v->w) : NULL;
    if (!blurred) return CNR_E_MEMORY;
    for (int64_t y = 0; y < v->h; y++)
        memcpy(grey + y * v->w, v->levels[0].at + y * v->levels[0].pitch, (size_t)v->w);
    for (int64_t i = 0; i < (int64_t)v->w * v->h; i++) blurred[i] = v->blurred[i] ^ 128;
    return CNR_OK;
}

/* The votes, one for each window; NULL with err: wrong shape. */
static const float *votes_of(const call *c) {
    const cnr_tensor *votes = c->in[0];
    if (votes->dtype == CNR_f32 && cnr_count(votes) == c->t->grid.windows) return votes->data;
    tld_host->fail(c->err, CNR_E_ARG, "votes", "want f32, one for each of the %lld windows",
                   (long long)c->t->grid.windows);
    return NULL;
}

/* Method finish: ends a frame with the net's votes. */
static cnr_status finish(const call *c) {
    const float *votes = votes_of(c);
    if (!votes) return CNR_E_ARG;
    CNR_TRY(tld_finish(c->t, votes, c->err));
    return give_box(c);
}

/* Copies n patches without padding; the rest of `room` is 0. */
static void copy_patches(float *to, const float *from, int32_t n, int32_t room) {
    memset(to, 0, (size_t)room * TLD_PATCH * sizeof *to);
    for (int32_t i = 0; i < n; i++)
        memcpy(to + i * TLD_PATCH, from + i * TLD_PATCH_PITCH, TLD_PATCH * sizeof *to);
}

/* Always the maximum number of rows, so that a net has a fixed shape; unused ones are 0. */
static cnr_status candidates(const call *c) {
    const float *votes = votes_of(c);
    if (!votes) return CNR_E_ARG;
    CNR_TRY(tld_pick(c->t, votes, c->err));
    const tld_tracker *t = c->t;
    const tld_shelf *p = &t->nearest.positive, *q = &t->nearest.negative;
    const int32_t most = (int32_t)t->o.candidates;
    float *patches = give(c, 0, CNR_f32, 2, most, TLD_PATCH),
          *known = patches ? give(c, 1, CNR_f32, 2, p->most + q->most, TLD_PATCH) : NULL;
    if (!known) return CNR_E_MEMORY;
    copy_patches(patches, t->patches, t->n_candidates, most);
    copy_patches(known, p->at, p->n, p->most);
    copy_patches(known + (int64_t)p->most * TLD_PATCH, q->at, q->n, q->most);
    return CNR_OK;
}

/* Method compared: ends a frame with the net's correlations. */
static cnr_status compared(const call *c) {
    const cnr_tensor *products = c->in[0];
    const tld_tracker *t = c->t;
    const int64_t all = t->nearest.positive.most + (int64_t)t->nearest.negative.most,
                  rows = (int64_t)t->o.candidates;
    if (products->dtype != CNR_f32 || cnr_count(products) != rows * all)
        return tld_host->fail(c->err, CNR_E_ARG, "products", "want f32, %lld x %lld",
                              (long long)rows, (long long)all);
    CNR_TRY(tld_finish_compared(c->t, products->data, c->err));
    return give_box(c);
}

/* Method windows: result 0 is i32 of n x 4, x, y, width and height in pixels of each window. */
static cnr_status windows(const call *c) {
    const tld_grid *g = &c->t->grid;
    int32_t *v = give(c, 0, CNR_i32, 2, g->windows, 4);
    if (!v) return CNR_E_MEMORY;
    for (int32_t k = 0; k < g->n; k++)
        for (int32_t i = 0; i < g->scales[k].nx * g->scales[k].ny; i++, v += 4) {
            const tld_scale *s = &g->scales[k];
            memcpy(v, (int32_t[]){i % s->nx * s->step, i / s->nx * s->step, s->w, s->h},
                   4 * sizeof *v);
        }
    return CNR_OK;
}

/* The ferns' points, posteriors, and the variance that a window needs. */
static cnr_status ferns(const call *c) {
    const tld_ferns *f = &c->t->ferns;
    if (!f->posterior)
        return tld_host->fail(c->err, CNR_E_STATE, "tld", "init or load comes first");
    float *points = give_sized(c, 0, CNR_f32, 3, (int64_t[]){f->n, f->bits, 4});
    float *posteriors = points ? give(c, 1, CNR_f32, 2, f->n, (int64_t)1 << f->bits) : NULL;
    double *least = posteriors ? give(c, 2, CNR_f64, 0, 1, 1) : NULL;
    if (!least) return CNR_E_MEMORY;
    for (int32_t k = 0; k < f->n; k++)
        memcpy(points + (size_t)k * (size_t)f->bits * 4, f->place[k],
               (size_t)f->bits * 4 * sizeof *points);
    memcpy(posteriors, f->posterior, ((size_t)f->n << f->bits) * sizeof *posteriors);
    *least = c->t->least_variance;
    return CNR_OK;
}

/* Method detections: result 0 is f64 of n x 5, box (x, y, w, h) and similarity of each detection of
 * this frame. */
static cnr_status detections(const call *c) {
    const tld_tracker *t = c->t;
    double *v = give(c, 0, CNR_f64, 2, t->n_found, 5);
    if (!v) return CNR_E_MEMORY;
    for (int32_t i = 0; i < t->n_found; i++, v += 5) {
        const tld_found *f = &t->found[i];
        memcpy(v, (double[]){f->box.x, f->box.y, f->box.w, f->box.h, f->similarity}, 5 * sizeof *v);
    }
    return CNR_OK;
}

/* Method patches: results 0 and 1 are the positive and the negative shelf, each a grey picture with
 * patches below each other. */
static cnr_status patches(const call *c) {
    for (int32_t k = 0; k < 2; k++) {
        const tld_shelf *s = k ? &c->t->nearest.negative : &c->t->nearest.positive;
        uint8_t *v =
            give_sized(c, k, CNR_u8, 3, (int64_t[]){(int64_t)s->n * TLD_SIDE, TLD_SIDE, 1});
        if (!v) return CNR_E_MEMORY;
        for (int32_t i = 0; i < s->n; i++)
            for (int32_t p = 0; p < TLD_PATCH; p++)
                v[i * TLD_PATCH + p] =
                    (uint8_t)fmax(0, fmin(255, 128 + 640 * s->at[i * TLD_PATCH_PITCH + p]));
    }
    return CNR_OK;
}

/* Method times: result 0 is f64 [10] of the last frame: ms of view, flow, variance, ferns,
 * nearest, learning and all, then numbers of windows: in the grid, past the variance test, past
 * the ferns. */
static cnr_status times(const call *c) {
    const tld_times *t = &c->t->times;
    const double list[] = {t->view,
                           t->flow,
                           t->variance,
                           t->ferns,
                           t->nearest,
                           t->learning,
                           t->all,
                           (double)c->t->grid.windows,
                           (double)c->t->scan.past,
                           (double)c->t->scan.n};
    double *v = give(c, 0, CNR_f64, 1, CNR_ROWS(list), 1);
    if (!v) return CNR_E_MEMORY;
    memcpy(v, list, sizeof list);
    return CNR_OK;
}

/* Method save: result 0 is what was learned, as bytes; CNR_E_STATE before a beginning. */
static cnr_status save(const call *c) {
    uint8_t *data;
    size_t bytes;
    CNR_TRY(tld_save(c->t, &data, &bytes, c->err));
    *c->out[0] = (cnr_tensor){.size = c->out[0]->size,
                              .dtype = CNR_u8,
                              .rank = 1,
                              .dim = {(int64_t)bytes},
                              .data = data};
    return CNR_OK;
}

/* Method load: goes on from saved bytes. */
static cnr_status load(const call *c) {
    const cnr_tensor *model = c->in[0];
    if (model->dtype != CNR_u8 || model->rank != 1)
        return tld_host->fail(c->err, CNR_E_ARG, "model", "want what save gave");
    return tld_load(c->t, model->data, (size_t)model->dim[0], c->err);
}

/* Changes an option of tracking or learning; others determine the memory layout. */
static cnr_status change(const call *c, double *option) {
    if (c->in[0]->dtype != CNR_f64 || cnr_count(c->in[0]) != 1)
        return tld_host->fail(c->err, CNR_E_ARG, "tld", "want true or false");
    *option = *(const double *)c->in[0]->data != 0;
    return CNR_OK;
}

static cnr_status tracking(const call *c) { return change(c, &c->t->o.tracking); }
static cnr_status learning(const call *c) { return change(c, &c->t->o.learning); }

/* Method options: result 0 is the text of all options with their defaults. */
static cnr_status options(const call *c) {
    char *text = tld_options_text();
    if (!text) return tld_host->fail(c->err, CNR_E_MEMORY, "tld", "out of memory");
    *c->out[0] = (cnr_tensor){.size = c->out[0]->size,
                              .dtype = CNR_u8,
                              .rank = 1,
                              .dim = {(int64_t)strlen(text)},
                              .data = text};
    return CNR_OK;
}

/* ---- the table ---- */

/* Calls X for each method: name, numbers of inputs and results, help. */
/* clang-format off */
#define METHODS(X) \
    X(init, 2, 0, "init(picture, { x, y, width, height })") \
    X(place, 2, 0, "place(picture, { x, y, width, height })") \
    X(track, 1, 2, "track(picture) -> box, confidence") \
    X(prepare, 1, 2, "prepare(picture) -> grey, blurred") \
    X(finish, 1, 2, "finish(votes) -> box, confidence") \
    X(candidates, 1, 2, "candidates(votes) -> patches, known") \
    X(compared, 1, 2, "compared(correlations) -> box, confidence") \
    X(windows, 0, 1, "windows() -> list") \
    X(ferns, 0, 3, "ferns() -> points, posteriors, variance") \
    X(detections, 0, 1, "detections() -> boxes") \
    X(patches, 0, 2, "patches() -> positive, negative") \
    X(times, 0, 1, "times() -> list") \
    X(save, 0, 1, "save() -> model") \
    X(load, 1, 0, "load(model)") \
    X(tracking, 1, 0, "tracking(on)") \
    X(learning, 1, 0, "learning(on)") \
    X(options, 0, 1, "options() -> text")
/* clang-format on */

static const struct method {
    cnr_status (*run)(const call *c);
    int32_t n_in, n_out;
} table[] = {
/* a method's function and numbers */
#define X(run, n_in, n_out, text) {run, n_in, n_out},
    METHODS(X)
#undef X
};

static const char *const methods[] = {
/* a method's help */
#define X(run, n_in, n_out, text) text,
    METHODS(X)
#undef X
};

/* Calls a method by its index, after checking the numbers of inputs and results; fails with the
 * method's reason. */
static cnr_status call_method(void *state, int32_t method, const cnr_tensor *const *in,
                              int32_t n_in, cnr_tensor *const *out, int32_t n_out, cnr_error *err) {
    const call c = {state, in, out, err};
    if (method < 0 || method >= CNR_ROWS(table))
        return tld_host->fail(err, CNR_E_ARG, "tld", "no such method");
    if (n_in != table[method].n_in || n_out < table[method].n_out)
        return tld_host->fail(err, CNR_E_ARG, "tld", "want %s", methods[method]);
    return table[method].run(&c);
}

const cnr_object tld_object = {.size = sizeof tld_object,
                               .n_methods = CNR_ROWS(methods),
                               .name = "tld",
                               .summary = "A tracker that learns: tld { seed = 1, ... }, options() "
                                          "tells what there is. A confidence "
                                          "below 0: absent.",
                               .methods = methods,
                               .create = create,
                               .call = call_method,
                               .destroy = destroy};
