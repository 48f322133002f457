/* Gradients of max_pool and average_pool: each output's goes back to the inputs of its window. */
#include "pool.h"

typedef struct pool_grad_state {
    neon_padded *pad;
    int64_t channels;
    int32_t max, include;
} pool_grad_state;

static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    (void)device;
    if (!neon_input(node, 0) || !neon_input(node, 1) || !neon_all_f32(node)) return CNR_OK;
    if ((out->why = neon_pool_window(node, node->inputs[1], &w))) return CNR_OK;
    neon_accept(node, out, 500);
    out->ranges = 1 << 0 | 1 << 1;
    return CNR_OK;
}

static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    cnr_window w;
    (void)device;
    (void)workspace;
    const char *why = neon_pool_window(node, node->inputs[1], &w);
    if (why) return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    pool_grad_state *s = neon_host->alloc(sizeof *s);
    if (s && !(s->pad = neon_padded_new(&w))) {
        neon_host->free(s);
        s = NULL;
    }
    if (!s) return neon_host->fail(err, CNR_E_MEMORY, node->name, "no memory for a plan");
    s->channels = node->inputs[1]->dim[1];
    s->max = strcmp(node->desc->name, "max_pool_grad") == 0;
    s->include = cnr_attr_int(node, "count_include_pad") != 0;
    *state = s;
    return CNR_OK;
}

static void unplan(const cnr_device *device, void *state) {
    (void)device;
    if (state) neon_host->free(((pool_grad_state *)state)->pad);
    neon_host->free(state);
}

/* Taps of an axis that lie in the input at an output position. */
typedef struct inside {
    int64_t start, first, last; /* of tap 0; taps [first, last) */
} inside;

static inline inside taps_inside(const cnr_window *w, int i, int64_t o) {
    const int64_t start = o * w->stride[i] - w->pad_begin[i], d = w->dilation[i];
    inside t = {start, 0, w->kernel[i]};
    if (start < 0) t.first = neon_div_up(-start, d);
    if (start + (w->kernel[i] - 1) * d >= w->in[i])
        t.last = start >= w->in[i] ? 0 : neon_div_up(w->in[i] - start, d);
    return t;
}

/* The window of these taps: `dy` goes to the first of its largest, or `share` to all. */
static inline void one_window(const pool_grad_state *s, inside d, inside h, inside v,
                              const float *x, float dy, float share, float *dx) {
    const cnr_window *w = &s->pad->w;
    int64_t best = -1;
    float top = 0.0f;
    for (int64_t z = d.first; z < d.last; z++)
        for (int64_t y = h.first; y < h.last; y++) {
            const int64_t row = (d.start + z * w->dilation[0]) * w->in[1] + h.start +
                                y * w->dilation[1];
            for (int64_t k = v.first; k < v.last; k++) {
                const int64_t at = row * w->in[2] + v.start + k * w->dilation[2];
                if (!s->max) dx[at] += share;
                else if (best < 0 || (!(x[at] <= top) && top == top)) top = x[best = at];
            }
        }
    if (best >= 0) dx[best] += dy;
}

typedef struct pool_grad_job {
    const pool_grad_state *s;
    const cnr_run *run;
    neon_part part;
} pool_grad_job;

static void one_plane(void *arg, int64_t i, int32_t thread) {
    const pool_grad_job *job = arg;
    const pool_grad_state *s = job->s;
    const neon_padded *g = s->pad;
    const int64_t channels = job->part.channel1 - job->part.channel0;
    const int64_t plane = (job->part.image0 + i / channels) * s->channels + job->part.channel0 +
                          i % channels;
    const float *dy = neon_floats(job->run->node->inputs[0]) + plane * g->n;
    const float *x = neon_floats(job->run->node->inputs[1]) + plane * g->in;
    float *dx = (float *)job->run->outputs[0]->data + plane * g->in;
    int64_t o[3], at = 0;
    (void)thread;
    if (neon_cancelled(job->run->stream)) return;
    memset(dx, 0, (size_t)g->in * sizeof *dx);
    for (o[0] = 0; o[0] < g->w.out[0]; o[0]++)
        for (o[1] = 0; o[1] < g->w.out[1]; o[1]++) {
            const inside d = taps_inside(&g->w, 0, o[0]), h = taps_inside(&g->w, 1, o[1]);
            for (o[2] = 0; o[2] < g->w.out[2]; o[2]++, at++) {
                const int64_t n = s->max ? 1 : neon_pool_divisor(&g->w, s->include, o);
                one_window(s, d, h, taps_inside(&g->w, 2, o[2]), x, dy[at], dy[at] / (float)n, dx);
            }
        }
}

static cnr_status run(const cnr_run *run, cnr_error *err) {
    pool_grad_job job = {run->state, run, neon_part_of(run, run->outputs[0])};
    (void)err;
    neon_parallel(run->stream, (job.part.image1 - job.part.image0) *
                                   (job.part.channel1 - job.part.channel0), one_plane, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_max_pool_grad, "max_pool_grad_f32_planes", "max_pool_grad", plan, unplan);
NEON_KERNEL(neon_average_pool_grad, "average_pool_grad_f32_planes", "average_pool_grad", plan, unplan);
