/* Gradients of max_pool and average_pool: distribute each output's gradient to the inputs of its
 * window. */
#include "pool.h"

/* Plan of the gradient of pooling. */
typedef struct pool_grad_state {
    neon_padded *pad;
    int64_t channels;
    int32_t max;
    int64_t pitch;                         /* length of scratch rows: whole vectors */
    int64_t room, top_at, rest_at, tap_at; /* offsets in a thread's scratch */
    float scale[];                         /* average: a factor for each output position */
} pool_grad_state;

/* Takes f32 gradients of pooling; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    (void)device;
    if (!cnr_own_input(node, 0) || !cnr_own_input(node, 1) || !neon_all_f32(node))
        return cnr_refuse(out, NEON_WANTS_F32);
    if ((out->why = neon_pool_window(node, node->inputs[1], &w))) return CNR_OK;
    cnr_take(node, out, 500);
    out->ranges = 1 << 0 | 1 << 1;
    return CNR_OK;
}

/* Finds window and scratch. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    cnr_window w;
    const char *why = neon_pool_window(node, node->inputs[1], &w);
    if (why) return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    const size_t scales = (size_t)neon_outputs(&w) * sizeof(float);
    pool_grad_state *s = neon_padded_state(node, &w, sizeof *s + scales, err);
    if (!s) return CNR_E_MEMORY;
    const neon_padded *pad = s->pad;
    s->channels = node->inputs[1]->dim[1];
    s->max = strcmp(node->desc->name, "max_pool_grad") == 0;
    neon_pool_scale(pad, cnr_attr_int(node, "count_include_pad") != 0, s->scale);
    s->pitch = cnr_round_up(pad->w.out[2], neon_uk->vl);
    const int64_t scratch = s->pitch * pad->w.out[0] * pad->w.out[1];
    neon_reserve(&s->room, s->max ? pad->plane + NEON_SLACK : 0);
    s->top_at = neon_reserve(&s->room, s->max ? scratch : 0);
    s->rest_at = neon_reserve(&s->room, scratch);
    s->tap_at = neon_reserve(&s->room, s->max ? scratch : 0);
    workspace->bytes = (uint64_t)(s->room * device->concurrency) * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct pool_grad_job {
    const pool_grad_state *s;
    const cnr_run *run;
    neon_part part;
} pool_grad_job;

/* Each output's gradient goes to the first tap with the window's maximum. */
static void max_taps(const pool_grad_state *s, const float *x, float *room, float *dx) {
    const neon_padded *g = s->pad;
    const int64_t rows = g->w.out[0] * g->w.out[1];
    float *top = room + s->top_at, *rest = room + s->rest_at, *tap = room + s->tap_at;
    neon_pad(g, x, -__builtin_inff(), room);
    neon_window_plane(g, NEON_WINDOW_MAX, room, 0, rows, top, s->pitch);
    for (int64_t t = 0; t < g->taps; t++) {
        for (int64_t row = 0; row < rows; row++)
            neon_uk->pick(room + neon_padded_row(g, row) + g->tap[t], top + row * s->pitch,
                          rest + row * s->pitch, tap + row * s->pitch, s->pitch);
        neon_col2im_tap(g, t, tap, s->pitch, dx);
    }
}

/* Task i of the pool_grad_job `arg`: gradient of one plane. */
static void one_plane(void *arg, int64_t i, int32_t thread) {
    const pool_grad_job *job = arg;
    const pool_grad_state *s = job->s;
    const neon_padded *g = s->pad;
    const int64_t channels = job->part.channel1 - job->part.channel0, wide = g->w.out[2];
    const int64_t plane =
        (job->part.image0 + i / channels) * s->channels + job->part.channel0 + i % channels;
    float *room = (float *)job->run->workspace_data + thread * s->room, *rest = room + s->rest_at;
    float *dx = (float *)job->run->outputs[0]->data + plane * g->in;
    if (cnr_cancelled(job->run->stream)) return;
    memset(dx, 0, (size_t)g->in * sizeof *dx);
    const float *dy = neon_floats(job->run->node->inputs[0]) + plane * g->n;
    for (int64_t row = 0; row < g->w.out[0] * g->w.out[1]; row++) {
        memcpy(rest + row * s->pitch, dy + row * wide, (size_t)wide * sizeof *rest);
        if (!s->max) neon_uk->mul(rest + row * s->pitch, s->scale + row * wide, wide);
    }
    if (s->max) {
        max_taps(s, neon_floats(job->run->node->inputs[1]) + plane * g->in, room, dx);
        return;
    }
    for (int64_t t = 0; t < g->taps; t++) neon_col2im_tap(g, t, rest, s->pitch, dx);
}

/* Computes all planes on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    pool_grad_job job = {run->state, run, neon_part_of(run)};
    (void)err;
    cnr_parallel(run->stream,
                 (job.part.image1 - job.part.image0) * (job.part.channel1 - job.part.channel0),
                 one_plane, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_max_pool_grad, "max_pool_grad_f32_planes", "max_pool_grad", plan,
            neon_free_padded_state);
NEON_KERNEL(neon_average_pool_grad, "average_pool_grad_f32_planes", "average_pool_grad", plan,
            neon_free_padded_state);
