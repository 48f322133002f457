/* Gradients of max_pool and average_pool: distribute each output's gradient to the inputs of its
 * window. */
#include "pool.h"

/* Plan of the gradient of pooling. */
typedef struct pool_grad_state {
    neon_padded *pad;
    int64_t channels;
    int32_t max;
    int64_t pitch;                        /* length of scratch rows: whole vectors */
    int64_t room, top_at, rest_at, dx_at; /* offsets in a thread's scratch */
    float scale[];                        /* average: a factor for each output position */
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
    s->dx_at = neon_reserve(&s->room, pad->plane + NEON_SLACK);
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

/* Adds the gradients of a plane's outputs, in `rest`, to the padded plane dx. x: padded input;
 * NULL: of the average. Of several maxima the first tap's takes the gradient. */
static void all_taps(const pool_grad_state *s, const float *x, float *room) {
    const neon_padded *g = s->pad;
    const int64_t rows = g->w.out[1];
    for (int64_t t = 0; t < g->taps; t++)
        for (int64_t z = 0; z < g->w.out[0]; z++) {
            const int64_t at = neon_padded_row(g, z * rows) + g->tap[t];
            const neon_pool_tap tap = {.x = x ? x + at : NULL,
                                       .top = room + s->top_at + z * rows * s->pitch,
                                       .rest = room + s->rest_at + z * rows * s->pitch,
                                       .dx = room + s->dx_at + at,
                                       .row = g->w.stride[1] * g->pitch,
                                       .pitch = s->pitch,
                                       .rows = rows};
            neon_uk->pool_tap(&tap);
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
    const int64_t rows = g->w.out[0] * g->w.out[1];
    const float *dy = neon_floats(job->run->node->inputs[0]) + plane * g->n;
    memset(rest, 0, (size_t)(rows * s->pitch) * sizeof *rest);
    for (int64_t row = 0; row < rows; row++) {
        memcpy(rest + row * s->pitch, dy + row * wide, (size_t)wide * sizeof *rest);
        if (!s->max) neon_uk->mul(rest + row * s->pitch, s->scale + row * wide, wide);
    }
    if (s->max) {
        neon_pad(g, neon_floats(job->run->node->inputs[1]) + plane * g->in, -__builtin_inff(),
                 room);
        neon_window_plane(g, NEON_WINDOW_MAX, room, 0, rows, room + s->top_at, s->pitch);
    }
    memset(room + s->dx_at, 0, (size_t)(g->plane + NEON_SLACK) * sizeof *room);
    all_taps(s, s->max ? room : NULL, room);
    neon_unpad(g, room + s->dx_at, dx);
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
