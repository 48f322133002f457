/* The detector's first two stages over all windows: variance, then ferns, a block of windows at a
 * time. */
#include "tld.h"
#include <math.h>
#include <pthread.h>

/* The blurred picture for one step: row y as `step` rows of every step-th pixel, so that pixels
 * which adjacent windows compare are adjacent. */
typedef struct plane {
    uint8_t *at;
    int64_t pitch;
} plane;

/* A task of a scan: some rows of windows of one scale. */
typedef struct work {
    tld_scan *scan;
    const tld_scale *scale;
    const plane *plane;
    const int32_t *offsets; /* comparisons of all ferns, one fern after the other */
    int32_t first, last;    /* range of rows of windows */
    uint64_t *scratch;
    uint8_t *pass;
    tld_candidate *list;
    int64_t n, past;
    uint64_t ns[2]; /* of variance and votes */
} work;

/* Frees the scratch memory and the list, and clears s. */
void tld_scan_free(tld_scan *s) {
    for (int32_t i = 0; i < 64; i++) tld_host->free(s->scratch[i]);
    tld_host->free(s->list);
    *s = (tld_scan){0};
}

/* Scratch memory number `which`, grown if need be; NULL: out of memory. */
static void *scratch_of(tld_scan *s, int32_t which, size_t bytes) {
    if (s->scratch_bytes[which] < bytes) {
        tld_host->free(s->scratch[which]);
        s->scratch[which] = tld_host->alloc(bytes);
        s->scratch_bytes[which] = s->scratch[which] ? bytes : 0;
    }
    return s->scratch[which];
}

/* Fills out with the pixel offsets, from a window's corner, of both points of all comparisons at a
 * scale, in rows that are sorted by position modulo the step. */
static void offsets_of(const tld_scan *s, const tld_scale *k, int64_t pitch, int32_t *out) {
    const tld_ferns *f = s->ferns;
    for (int32_t i = 0; i < f->n; i++)
        for (int32_t b = 0; b < f->bits; b++)
            for (int32_t end = 0; end < 2; end++) {
                const float *p = &f->place[i][b][2 * end];
                const int64_t x = tld_pixel(p[0], k->w), y = tld_pixel(p[1], k->h);
                *out++ = (int32_t)((y * k->step + x % k->step) * pitch + x / k->step);
            }
}

/* Votes on the windows [at, at + n) of row `y` that passed; stops once none can reach the
 * threshold. */
static void vote(work *w, int32_t y, int32_t at, int32_t n) {
    const tld_scan *s = w->scan;
    const tld_ferns *f = s->ferns;
    const uint8_t *base =
        w->plane->at + (int64_t)y * w->scale->step * w->scale->step * w->plane->pitch + at;
    uint8_t low[TLD_BLOCK], high[TLD_BLOCK], pass[TLD_BLOCK] = {0};
    float sum[TLD_BLOCK] = {0};
    int32_t alive = 0;
    memcpy(pass, w->pass + at, (size_t)n);
    for (int32_t i = 0; i < n; i++) alive += pass[i];
    const float wanted = (float)(s->threshold * f->n);
    for (int32_t k = 0; k < f->n && alive > 0; k++) {
        tld_v->codes(base, w->offsets + 2 * k * f->bits, f->bits, low, high);
        alive = tld_v->add(f->posterior + ((size_t)k << f->bits), low, high, pass,
                           wanted - (float)(f->n - 1 - k), sum);
    }
    const int64_t first = w->scale->first + (int64_t)y * w->scale->nx + at;
    for (int32_t i = 0; i < n && alive > 0; i++)
        if (pass[i] && sum[i] > wanted)
            w->list[w->n++] = (tld_candidate){first + i, sum[i] / (float)f->n};
}

/* Thread: variance of all windows of the rows first, then votes of those that pass: two loops, so
 * that each can be timed. */
static void *run_rows(void *arg) {
    work *w = arg;
    const tld_scan *s = w->scan;
    const tld_scale *k = w->scale;
    const int64_t wide = s->view->w + 1;
    const uint64_t begun = tld_host->now_ns();
    uint8_t *pass = w->pass;
    for (int32_t y = w->first; y < w->last; y++, pass += k->nx) {
        const int64_t top = (int64_t)y * k->step * wide, low = top + k->h * wide;
        w->past +=
            tld_v->variance(s->view->sum + top, s->view->sum + low, s->view->squares + top,
                            s->view->squares + low, (int32_t)wide, k->w, (int64_t)k->w * k->h,
                            k->step, k->nx, s->least_variance, w->scratch, pass);
    }
    const uint64_t between = tld_host->now_ns();
    for (int32_t y = w->first; y < w->last; y++, w->pass += k->nx)
        for (int32_t x = 0; x < k->nx; x += TLD_BLOCK)
            vote(w, y, x, (int32_t)cnr_min(TLD_BLOCK, k->nx - x));
    w->ns[0] = between - begun;
    w->ns[1] = tld_host->now_ns() - between;
    return NULL;
}

/* Distributes the rows of a scale among threads and joins the results in order. */
static cnr_status run_scale(tld_scan *s, const tld_scale *k, const plane *p, const int32_t *offsets,
                            int32_t threads, cnr_error *err) {
    work works[64];
    pthread_t ids[64];
    bool started[64] = {false};
    const int32_t n = (int32_t)cnr_max(1, cnr_min(threads, (int64_t)k->nx * k->ny / 2000));
    const int64_t columns = s->view->w + 1;
    for (int32_t i = 0; i < n; i++) {
        works[i] = (work){s,    k, p, offsets, k->ny * i / n, k->ny * (i + 1) / n, NULL, NULL,
                          NULL, 0, 0, {0}};
        const size_t head = (size_t)columns * 16 + 64;
        const int64_t windows = (int64_t)k->nx * (works[i].last - works[i].first);
        works[i].scratch = scratch_of(s, 4 + i, head + (size_t)windows + TLD_BLOCK);
        works[i].pass = (uint8_t *)works[i].scratch + head;
        works[i].list =
            i ? tld_host->alloc((size_t)windows * sizeof(tld_candidate) + 1) : s->list + s->n;
        if (!works[i].scratch || !works[i].list) {
            while (i > 0) tld_host->free(works[i--].list);
            return tld_host->fail(err, CNR_E_MEMORY, "tld", "no memory for windows");
        }
    }
    for (int32_t i = 1; i < n; i++)
        started[i] = pthread_create(&ids[i], NULL, run_rows, &works[i]) == 0;
    run_rows(&works[0]);
    for (int32_t i = 1; i < n; i++) {
        if (started[i]) pthread_join(ids[i], NULL);
        else run_rows(&works[i]);
    }
    for (int32_t i = 0; i < n; i++) {
        if (i && works[i].n)
            memcpy(s->list + s->n, works[i].list, (size_t)works[i].n * sizeof(tld_candidate));
        s->n += works[i].n;
        s->past += works[i].past;
        s->ns_variance += i ? 0 : works[i].ns[0]; /* the first thread's time */
        s->ns_votes += i ? 0 : works[i].ns[1];
        if (i) tld_host->free(works[i].list);
    }
    return CNR_OK;
}

/* Call first: makes room for an entry for every window, and zeroes the times. CNR_E_MEMORY: there
 * is none. */
cnr_status tld_scan_room(tld_scan *s, cnr_error *err) {
    s->ns_variance = s->ns_votes = 0;
    if (s->list && s->room >= s->grid->windows) return CNR_OK;
    tld_host->free(s->list);
    s->list = tld_host->alloc((size_t)s->grid->windows * sizeof *s->list + 1);
    s->room = s->list ? s->grid->windows : 0;
    s->n = 0;
    return s->list ? CNR_OK : tld_host->fail(err, CNR_E_MEMORY, "tld", "no memory for windows");
}

cnr_status tld_scan_run(tld_scan *s, int32_t threads, cnr_error *err) {
    const tld_grid *g = s->grid;
    const tld_view *v = s->view;
    int32_t step = 0;
    plane p = {0};
    s->n = s->past = 0;
    int32_t *offsets =
        scratch_of(s, 0, (size_t)s->ferns->n * (size_t)s->ferns->bits * 2 * sizeof *offsets);
    if (!offsets) return tld_host->fail(err, CNR_E_MEMORY, "tld", "no memory for windows");
    for (int32_t k = 0; k < g->n; k++) {
        const tld_scale *scale = &g->scales[k];
        if (scale->step != step) {
            step = scale->step;
            p.pitch = v->w / step + 1;
            p.at = scratch_of(s, 1, (size_t)(p.pitch * step * v->h + 2 * TLD_BLOCK));
            if (!p.at) return tld_host->fail(err, CNR_E_MEMORY, "tld", "no memory for windows");
            for (int32_t y = 0; y < v->h; y++)
                tld_v->spread(v->blurred + (int64_t)y * v->w, v->w, step, p.pitch,
                              p.at + (int64_t)y * step * p.pitch);
        }
        offsets_of(s, scale, p.pitch, offsets);
        CNR_TRY(run_scale(s, scale, &p, offsets, threads, err));
    }
    return CNR_OK;
}
