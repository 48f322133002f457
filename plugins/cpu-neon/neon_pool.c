/* max_pool and average_pool: taps over a padded plane, as in depthwise convolution. */
#include "pool.h"

/* Plan of pooling by windows. */
typedef struct pool_state {
    neon_padded *pad;
    neon_chain chain;
    int64_t channels, room;
    int pairs; /* windows of 2 by 2 with stride 2 and no padding are read in place */
    neon_window_kind kind;
    float scale[]; /* average: a factor for each output position */
} pool_state;

/* Whether windows are summed or their largest element is taken. */
static neon_window_kind kind_of(const cnr_node *node) {
    return strcmp(node->desc->name, "max_pool") == 0 ? NEON_WINDOW_MAX : NEON_WINDOW_SUM;
}

const char *neon_pool_window(const cnr_node *node, const cnr_tensor *x, cnr_window *w) {
    const char *why = neon_host->window_resolve(node, x, NULL, w);
    if (why) return why;
    return neon_padded_fits(w, 1) ? NULL : "too large once padded";
}

/* Takes f32 max_pool and average_pool; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    const cnr_tensor *x = cnr_own_input(node, 0);
    (void)device;
    if (!x || node->n_outputs != 1 || !neon_all_f32(node)) return cnr_refuse(out, NEON_WANTS_F32);
    if ((out->why = neon_pool_window(node, x, &w))) return CNR_OK;
    int64_t dim[CNR_MAX_RANK] = {x->dim[0], x->dim[1]};
    memcpy(dim + 2, w.out, (size_t)w.spatial * sizeof dim[0]);
    cnr_take(node, out, 500);
    out->epilogue = neon_chain_accepts_broadcast(node, x->rank, dim);
    out->ranges = 1 << 0 | 1 << 1;
    if (w.spatial > 1) out->ranges |= 1 << 2;
    return CNR_OK;
}

/* Number of elements that the window at output position o averages over; include: those in the
 * padding, too. */
static int64_t divisor(const cnr_window *w, int include, const int64_t *o) {
    int64_t n = 1;
    for (int i = 0; i < 3; i++) {
        const int64_t d = w->dilation[i], start = o[i] * w->stride[i] - w->pad_begin[i];
        const int64_t end = include ? w->in[i] + w->pad_end[i] : w->in[i];
        const int64_t first = include || start >= 0 ? 0 : cnr_div_up(-start, d);
        const int64_t last = start >= end ? 0 : cnr_min(w->kernel[i], cnr_div_up(end - start, d));
        n *= cnr_max(0, last - first);
    }
    return n;
}

/* scale[i]: the factor of the sum at output position i that gives the average; include: padding
 * counts. */
void neon_pool_scale(const neon_padded *g, int include, float *scale) {
    const int64_t *out = g->w.out;
    for (int64_t i = 0; i < g->n; i++) {
        const int64_t o[3] = {i / out[2] / out[1], i / out[2] % out[1], i % out[2]};
        const int64_t n = divisor(&g->w, include, o);
        scale[i] = n > 0 ? 1.0f / (float)n : 0.0f;
    }
}

void neon_window_plane(const neon_padded *g, neon_window_kind kind, const float *padded,
                       int64_t row0, int64_t row1, float *out, int64_t pitch) {
    const int64_t high = g->w.out[1];
    for (int64_t row = row0; row < row1;) {
        const int64_t rows = cnr_min(high - row % high, row1 - row); /* rows of one slice */
        const neon_window_rows w = {
            .base = padded + neon_padded_row(g, row),
            .row_stride = g->w.stride[1] * g->pitch,
            .tap = g->tap,
            .taps = g->taps,
            .out = out + row * pitch,
            .out_stride = pitch,
            .rows = rows,
            .n = pitch,
        };
        neon_uk->window(kind, &w);
        row += rows;
    }
}

/* 1 for windows of 2 x 2 with stride 2 and no padding. */
static int in_pairs(const cnr_window *w) {
    for (int i = 0; i < 3; i++) {
        const int64_t wanted = i == 0 ? 1 : 2;
        if (w->kernel[i] != wanted || w->stride[i] != wanted || w->pad_begin[i] ||
            w->out[i] * wanted > w->in[i])
            return 0;
    }
    return w->dilation[1] == 1 && w->dilation[2] == 1;
}

/* Computes rows [row0, row1) of all slices' output rows directly from the input plane. */
static void plane_of_pairs(const pool_state *s, const float *x, int64_t row0, int64_t row1,
                           float *y) {
    const cnr_window *w = &s->pad->w;
    const int64_t wide = w->in[2];
    for (int64_t row = row0; row < row1; row++) {
        const float *top = x + (row / w->out[1] * w->in[1] + row % w->out[1] * 2) * wide;
        neon_uk->pairs(s->kind, top, top + wide, y + row * w->out[2], w->out[2]);
    }
}

/* Finds window and padding, and the factors of averages. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    cnr_window w;
    const cnr_tensor *x = node->inputs[0];
    const char *why = neon_pool_window(node, x, &w);
    if (why) return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    const neon_window_kind kind = kind_of(node);
    const int64_t scales = kind == NEON_WINDOW_SUM ? neon_outputs(&w) : 0;
    pool_state *s = neon_padded_state(node, &w, sizeof *s + (size_t)scales * sizeof(float), err);
    if (!s) return CNR_E_MEMORY;
    s->kind = kind;
    neon_chain_plan(node, &s->chain);
    s->channels = x->dim[1];
    s->pairs = in_pairs(&s->pad->w);
    s->room = cnr_round_up(s->pad->plane + NEON_SLACK, 16);
    if (scales) neon_pool_scale(s->pad, cnr_attr_int(node, "count_include_pad") != 0, s->scale);
    workspace->bytes = (uint64_t)(s->room * device->concurrency) * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct pool_job {
    const pool_state *s;
    const cnr_run *run;
    neon_part part;
} pool_job;

/* Task i of the pool_job `arg`: pools one plane. */
static void one_plane(void *arg, int64_t i, int32_t thread) {
    const pool_job *job = arg;
    const pool_state *s = job->s;
    const neon_padded *g = s->pad;
    const cnr_node *node = job->run->node;
    const int64_t channels = job->part.channel1 - job->part.channel0;
    const int64_t plane =
        (job->part.image0 + i / channels) * s->channels + job->part.channel0 + i % channels;
    float *padded = (float *)job->run->workspace_data + thread * s->room;
    float *y = (float *)job->run->outputs[0]->data + plane * g->n;
    const int64_t wide = g->w.out[2], rank = node->inputs[0]->rank;
    const int64_t a_row = rank == 5 ? g->w.out[1] : 1;
    const int64_t row0 = rank == 3 ? 0 : job->part.row0 * a_row;
    const int64_t row1 = rank == 3 ? 1 : job->part.row1 * a_row;
    if (cnr_cancelled(job->run->stream)) return;
    const float *x = neon_floats(node->inputs[0]) + plane * g->in;
    if (s->pairs) plane_of_pairs(s, x, row0, row1, y);
    else {
        neon_pad(g, x, s->kind == NEON_WINDOW_MAX ? -__builtin_inff() : 0.0f, padded);
        neon_window_plane(g, s->kind, padded, row0, row1, y, wide);
    }
    const int64_t first = row0 * wide, n = (row1 - row0) * wide;
    if (s->kind == NEON_WINDOW_SUM) neon_uk->mul(y + first, s->scale + first, n);
    neon_chain_run(&s->chain, node, y + first, plane * g->n + first, n);
}

/* Pools all planes on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    pool_job job = {run->state, run, neon_part_of(run)};
    (void)err;
    cnr_parallel(run->stream,
                 (job.part.image1 - job.part.image0) * (job.part.channel1 - job.part.channel0),
                 one_plane, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_max_pool, "max_pool_f32_planes", "max_pool", plan, neon_free_padded_state);
NEON_KERNEL(neon_average_pool, "average_pool_f32_planes", "average_pool", plan,
            neon_free_padded_state);
