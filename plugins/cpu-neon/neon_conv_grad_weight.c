/* The gradient of conv's weight: products of the output's gradient with the input's columns, summed
 * over the positions of several images at a time. */
#include "gemm.h"
#include "support.h"

/* Plan of the gradient of a convolution's weight. */
typedef struct grad_weight_state {
    neon_padded *pad;
    int64_t batch, cin, cout, group;
    int64_t images, channels; /* of a round: images, and channels of each group */
    int64_t length;           /* positions of a round */
    int64_t pads_at, cols_at, dy_at, room, floats;
} grad_weight_state;

/* Floats of columns in a round: a part of the L2 cache of a few cores. */
#define ROUND_LIMIT ((int64_t)512 << 10)
/* Positions summed at a time: rows of both operands stay in the L1 cache. */
#define SUM_BLOCK 1024

/* Whether some window has no element of the input along axis i: beside it, or between two taps. */
static int misses(const cnr_window *w, int32_t i) {
    for (int64_t o = 0; o < w->out[i]; o++) {
        const int64_t start = o * w->stride[i] - w->pad_begin[i];
        const int64_t tap = start < 0 ? cnr_div_up(-start, w->dilation[i]) : 0;
        if (tap >= w->kernel[i] || start + tap * w->dilation[i] >= w->in[i]) return 1;
    }
    return 0;
}

/* Elements by which the last window reaches beyond the input along axis i. */
static int64_t reach_beyond(const cnr_window *w, int32_t i) {
    return (w->out[i] - 1) * w->stride[i] - w->pad_begin[i] + (w->kernel[i] - 1) * w->dilation[i] -
           (w->in[i] - 1);
}

/* Finds the window; NULL, or why the node is not taken. */
static const char *window_of(const cnr_node *node, cnr_window *w) {
    const cnr_tensor *dy = cnr_own_input(node, 0), *x = cnr_own_input(node, 1);
    const cnr_tensor *weight = cnr_own_input(node, 2);
    if (!dy || !x || !weight || !neon_all_f32(node)) return NEON_WANTS_F32;
    const char *why = neon_conv_window(node, x, weight, w);
    /* with padding, 0 times an infinite gradient would be NaN for one tap and not for its
     * neighbours */
    for (int32_t i = 0; i < w->spatial && !why; i++) {
        if (misses(w, i)) why = "a window lies in the padding alone";
        else if (cnr_max(w->pad_begin[i], reach_beyond(w, i)) >
                 CNR_SPREAD_POSITIONS * w->dilation[i])
            why = "the padding is too wide";
    }
    return why;
}

/* Takes f32 gradients of the weight. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    (void)device;
    if ((out->why = window_of(node, &w))) return CNR_OK;
    cnr_take(node, out, 500);
    out->ranges = 1 << 0;
    return CNR_OK;
}

/* Divides the work into rounds that fit the workspace. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    cnr_window w;
    const cnr_tensor *x = node->inputs[1], *weight = node->inputs[2];
    const char *why = window_of(node, &w);
    if (why) return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    grad_weight_state *s = neon_padded_state(node, &w, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    s->batch = x->dim[0];
    s->cin = x->dim[1];
    s->cout = weight->dim[0];
    s->group = cnr_max(1, cnr_attr_int(node, "group"));
    const int64_t cg = cnr_max(1, s->cin / s->group);
    const int64_t a_channel = cnr_max(1, s->group * s->pad->taps * s->pad->n);
    s->channels = cnr_max(1, cnr_min(cg, ROUND_LIMIT / a_channel));
    s->images = cnr_max(1, ROUND_LIMIT / (s->channels * a_channel));
    s->images = cnr_max(1, cnr_min(s->images, s->batch));
    s->length = s->images * s->pad->n;
    s->room = cnr_round_up(s->pad->plane + NEON_SLACK, 16);
    s->pads_at = neon_reserve(&s->floats, s->room * device->concurrency);
    s->cols_at = neon_reserve(&s->floats, s->group * s->channels * s->pad->taps * s->length);
    s->dy_at = neon_reserve(&s->floats, s->images > 1 ? s->cout * s->length : 0);
    workspace->bytes = (uint64_t)s->floats * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a round. */
typedef struct grad_weight_job {
    const grad_weight_state *s;
    const cnr_run *run;
    float *scratch;
    int64_t image, images;     /* of this round */
    int64_t channel, channels; /* of each group */
    int64_t m0, m1;            /* output channels to compute */
    int64_t tiles;             /* tiles of columns in each group */
} grad_weight_job;

/* Copies the columns of channel i of the round (ordered group, channel) for all its images. */
static void gather_channel(void *arg, int64_t i, int32_t thread) {
    const grad_weight_job *job = arg;
    const grad_weight_state *s = job->s;
    const neon_padded *g = s->pad;
    const int64_t wide = g->w.out[2], rows = g->w.out[0] * g->w.out[1];
    const int64_t group = i / job->channels;
    const int64_t channel = group * (s->cin / s->group) + job->channel + i % job->channels;
    const int64_t length = job->images * g->n;
    float *padded = job->scratch + s->pads_at + thread * s->room;
    float *cols = job->scratch + s->cols_at + i * g->taps * length;
    for (int64_t b = 0; b < job->images; b++) {
        neon_pad(g,
                 neon_floats(job->run->node->inputs[1]) +
                     ((job->image + b) * s->cin + channel) * g->in,
                 0.0f, padded);
        for (int64_t t = 0; t < g->taps; t++) {
            float *to = cols + t * length + b * g->n;
            for (int64_t row = 0; row < rows; row++, to += wide)
                memcpy(to, padded + neon_padded_row(g, row) + g->tap[t], (size_t)wide * sizeof *to);
        }
    }
}

/* Copies row i of the output's gradient of all the round's images side by side. */
static void gather_row(void *arg, int64_t i, int32_t thread) {
    const grad_weight_job *job = arg;
    const grad_weight_state *s = job->s;
    const int64_t n = s->pad->n, m = job->m0 + i;
    float *to = job->scratch + s->dy_at + m * job->images * n;
    (void)thread;
    for (int64_t b = 0; b < job->images; b++)
        memcpy(to + b * n,
               neon_floats(job->run->node->inputs[0]) + ((job->image + b) * s->cout + m) * n,
               (size_t)n * sizeof *to);
}

/* Multiplies one tile of a group's columns by all its output channels. */
static void sum_tile(void *arg, int64_t i, int32_t thread) {
    const grad_weight_job *job = arg;
    const grad_weight_state *s = job->s;
    const neon_ukernels *uk = neon_uk;
    const int64_t taps = s->pad->taps, length = job->images * s->pad->n;
    const int64_t group = i / job->tiles, j = i % job->tiles * uk->dot_n;
    const int64_t n = cnr_min(uk->dot_n, job->channels * taps - j), each = s->cout / s->group;
    const int64_t k = s->cin / s->group * taps; /* columns of dw */
    const int64_t m0 = cnr_max(job->m0, group * each), m1 = cnr_min(job->m1, (group + 1) * each);
    const float *cols = job->scratch + s->cols_at + (group * job->channels * taps + j) * length;
    const float *dy =
        s->images > 1 ? job->scratch + s->dy_at
                      : neon_floats(job->run->node->inputs[0]) + job->image * s->cout * s->pad->n;
    float *dw = (float *)job->run->outputs[0]->data + job->channel * taps + j;
    (void)thread;
    for (int64_t at = 0; at < length; at += SUM_BLOCK)
        for (int64_t m = m0; m < m1; m += uk->dot_m)
            uk->sdot[NEON_F32](cnr_min(SUM_BLOCK, length - at), dy + m * length + at, length,
                               cols + at, length, dw + m * k, k, cnr_min(uk->dot_m, m1 - m), n,
                               NULL, job->image > 0 || at > 0);
}

/* Computes all rounds. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const grad_weight_state *s = run->state;
    const neon_part part = neon_part_of(run);
    const int64_t cg = s->cin / s->group;
    grad_weight_job job = {.s = s,
                           .run = run,
                           .scratch = run->workspace_data,
                           .m0 = part.image0,
                           .m1 = part.image1};
    (void)err;
    if (s->batch == 0 || s->pad->n == 0) { /* an empty sum */
        const int64_t each = cnr_span(run->outputs[0], 1, run->outputs[0]->rank);
        memset((float *)run->outputs[0]->data + job.m0 * each, 0,
               (size_t)((job.m1 - job.m0) * each) * sizeof(float));
        return CNR_OK;
    }
    for (job.image = 0; job.image < s->batch; job.image += s->images) {
        job.images = cnr_min(s->images, s->batch - job.image);
        if (s->images > 1) cnr_parallel(run->stream, job.m1 - job.m0, gather_row, &job);
        for (job.channel = 0; job.channel < cg; job.channel += s->channels) {
            if (cnr_cancelled(run->stream)) return CNR_OK;
            job.channels = cnr_min(s->channels, cg - job.channel);
            job.tiles = cnr_div_up(job.channels * s->pad->taps, neon_uk->dot_n);
            cnr_parallel(run->stream, s->group * job.channels, gather_channel, &job);
            cnr_parallel(run->stream, s->group * job.tiles, sum_tile, &job);
        }
    }
    return CNR_OK;
}

/* The gradient is multiplied by the padding too: a NaN spreads to all taps of its channel. */
NEON_KERNEL_WITH(CNR_KERNEL_SPREADS_NAN, neon_conv_grad_weight, "conv_grad_weight_f32_dot",
                 "conv_grad_weight", plan, neon_free_padded_state);
