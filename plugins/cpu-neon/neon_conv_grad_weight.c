/* The gradient of conv's weight: products of the output's gradient with the input's columns, summed
 * over the positions of several images at a time.
 *
 * A task has a few columns of dw, gathers theirs of a block of positions, and multiplies them by
 * all output channels. Where a group has few of these, gathering would cost more than the product:
 * then dy is spread to the rows of the padded input, with zeros between them, and a tap's column is
 * the padded input itself from the tap's offset on. */
#include "gemm.h"
#include "support.h"

/* Plan of the gradient of a convolution's weight. */
typedef struct grad_weight_state {
    neon_padded *pad;
    int64_t batch, cin, cout, group;
    int64_t images;         /* of a block: 1, or several small ones */
    int64_t columns, tasks; /* of a task, at most; tasks of a group */
    int64_t planes;         /* channels that a task's columns come from, at most */
    int64_t width;          /* floats of a gathered column */
    int64_t room;           /* floats of a padded channel, or of those of all images of a block */
    /* bare: x is read in place; whole: and is the columns; spread: dy is */
    int32_t bare, whole, spread;
    int64_t planes_at, cols_at, dy_at, floats;
} grad_weight_state;

/* Positions summed at a time: rows of both operands stay in the L1 cache. */
#define SUM_BLOCK 1024
/* Columns of a task, in tiles. */
#define TILES 3

/* Whether some window has no element of the input along axis i: beside it, or between two taps. */
static int misses(const cnr_window *w, int32_t i) {
    for (int64_t o = 0; o < w->out[i]; o++) {
        const int64_t start = o * w->stride[i] - w->pad_begin[i];
        const int64_t tap = start < 0 ? cnr_div_up(-start, w->dilation[i]) : 0;
        if (tap >= w->kernel[i] || start + tap * w->dilation[i] >= w->in[i]) return 1;
    }
    return 0;
}

/* Returns by how many elements the last window reaches beyond the input along axis i; 0 or less:
 * not. */
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

/* Takes f32 gradients of the weight; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    (void)device;
    if ((out->why = window_of(node, &w))) return CNR_OK;
    cnr_take(node, out, 500);
    out->ranges = 1 << 0;
    return CNR_OK;
}

static int64_t of_group(int64_t all, int64_t group) { return cnr_max(1, all / group); }

/* Returns the number of columns of a task: fewer if threads would lack tasks. */
static int64_t task_columns(const grad_weight_state *s, int64_t columns, int32_t threads) {
    const int64_t tile = neon_uk->dot_n, wide = TILES
    *tile;
    const int64_t tasks = s->group * cnr_div_up(columns, wide);
    return tasks < 2 * threads ? tile : wide;
}

/* Reserves the scratch of all threads: sets offsets and s->floats. */
static void reserve(grad_weight_state *s, int64_t threads) {
    const neon_padded *g = s->pad;
    const int64_t each = of_group(s->cout, s->group), length = s->images * g->n;
    if (s->spread) {
        s->room = cnr_round_up(s->images * g->plane + NEON_SLACK, 16);
        s->planes_at = neon_reserve(&s->floats, s->room * threads);
        s->dy_at = neon_reserve(&s->floats, s->room * each * threads);
        return;
    }
    s->room = cnr_round_up(s->planes * g->plane + NEON_SLACK, 16);
    s->width = cnr_round_up(s->images > 1 ? length : cnr_min(g->n, SUM_BLOCK), 16) + 16;
    s->planes_at = neon_reserve(&s->floats, s->bare ? 0 : s->room * threads);
    s->cols_at = neon_reserve(&s->floats, s->whole ? 0 : s->columns * s->width * threads);
    s->dy_at = neon_reserve(&s->floats, s->images > 1 ? s->cout * s->batch * g->n : 0);
}

/* Finds geometry, columns of a task and workspace; *state keeps them. */
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
    const int64_t cg = of_group(s->cin, s->group), taps = cnr_max(1, s->pad->taps);
    const int32_t threads = device->concurrency;
    s->images = cnr_max(1, cnr_min(SUM_BLOCK / cnr_max(1, s->pad->n), s->batch));
    s->bare = neon_unpadded(s->pad);
    s->whole = neon_pointwise(&w) && s->images == 1;
    s->spread = w.stride[0] == 1 && w.stride[w.spatial - 1] == 1 && w.stride[w.spatial / 2] == 1 &&
                s->cout / s->group < neon_uk->dot_m;
    /* zeros stand between the rows of dy: 0 times an infinity spreads as far as the window */
    for (int32_t i = 0; i < w.spatial; i++) s->spread &= w.kernel[i] <= CNR_SPREAD_POSITIONS + 1;
    s->columns = task_columns(s, cg * taps, threads);
    s->tasks = s->spread ? cg : cnr_div_up(cg * taps, s->columns);
    s->planes = cnr_min(cg, cnr_div_up(s->columns, taps) + 1);
    reserve(s, threads);
    workspace->bytes = (uint64_t)s->floats * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a round. */
typedef struct grad_weight_job {
    const grad_weight_state *s;
    const cnr_run *run;
    const float *dy, *x;
    float *dw, *scratch;
    int64_t m0, m1; /* output channels to compute */
} grad_weight_job;

/* Task i of the grad_weight_job `arg`: copies row i of the output's gradient of all images side by
 * side. */
static void gather_row(void *arg, int64_t i, int32_t thread) {
    const grad_weight_job *job = arg;
    const grad_weight_state *s = job->s;
    const int64_t n = s->pad->n, m = job->m0 + i;
    float *to = job->scratch + s->dy_at + m * s->batch * n;
    (void)thread;
    for (int64_t b = 0; b < s->batch; b++)
        memcpy(to + b * n, job->dy + (b * s->cout + m) * n, (size_t)n * sizeof *to);
}

/* ---- gathered columns ---- */

typedef struct columns {
    int64_t group, first, n;   /* columns [first, first + n) of the group's */
    int64_t channel, channels; /* of the group, that they come from */
    float *planes, *cols;      /* the thread's */
    const float *base;         /* channel `channel` of the image that is read */
} columns;

/* Copies the columns' channels of an image with padding into the thread's planes; none needed:
 * points at the input. */
static void pad_channels(const grad_weight_job *job, columns *c, int64_t image) {
    const grad_weight_state *s = job->s;
    const int64_t first = (image * s->group + c->group) * (s->cin / s->group) + c->channel;
    c->base = job->x + first * s->pad->in;
    if (s->bare) return;
    for (int64_t i = 0; i < c->channels; i++)
        neon_pad(s->pad, c->base + i * s->pad->in, 0.0f, c->planes + i * s->pad->plane);
    c->base = c->planes;
}

/* Gathers positions [at, at + n) of the columns; `to` is the first one's place. */
static void gather(const grad_weight_job *job, const columns *c, int64_t at, int64_t n, float *to) {
    const grad_weight_state *s = job->s;
    neon_segment segment[SUM_BLOCK];
    const int64_t segments = neon_segments(s->pad, at, n, segment);
    const int64_t skip = c->first - c->channel * s->pad->taps;
    const float *end = c->base + c->channels * s->pad->plane + (s->bare ? 0 : NEON_SLACK);
    neon_uk->pack_taps(to, s->width, skip, skip + c->n, c->base, end, s->pad->plane, s->pad->tap,
                       s->pad->taps, segment, segments);
}

/* Multiplies `length` positions of the columns by dy's rows, which are `pitch` floats apart; add:
 * to what dw has. */
static void multiply(const grad_weight_job *job, const columns *c, const float *dy, int64_t pitch,
                     const float *cols, int64_t width, int64_t length, int add) {
    const grad_weight_state *s = job->s;
    const neon_ukernels *uk = neon_uk;
    const int64_t each = s->cout / s->group, k = s->cin / s->group * s->pad->taps;
    const int64_t m0 = cnr_max(job->m0, c->group * each);
    const int64_t m1 = cnr_min(job->m1, (c->group + 1) * each);
    for (int64_t j = 0; j < c->n; j += uk->dot_n)
        for (int64_t m = m0; m < m1; m += uk->dot_m)
            uk->sdot[NEON_F32](length, dy + m * pitch, pitch, cols + j * width, width,
                               job->dw + m * k + c->first + j, k, cnr_min(uk->dot_m, m1 - m),
                               cnr_min(uk->dot_n, c->n - j), NULL, add);
}

/* Adds the gradients of one image to the task's columns, block by block of positions. */
static void large_image(const grad_weight_job *job, columns *c, int64_t image) {
    const grad_weight_state *s = job->s;
    const int64_t n = s->pad->n;
    pad_channels(job, c, image);
    for (int64_t at = 0; at < n; at += SUM_BLOCK) {
        const int64_t length = cnr_min(SUM_BLOCK, n - at);
        const float *dy = job->dy + image * s->cout * n + at;
        if (!s->whole) gather(job, c, at, length, c->cols);
        multiply(job, c, dy, n, s->whole ? c->base + at : c->cols, s->whole ? n : s->width, length,
                 image > 0 || at > 0);
    }
}

/* Images [image, image + count) as one block. */
static void small_images(const grad_weight_job *job, columns *c, int64_t image, int64_t count) {
    const grad_weight_state *s = job->s;
    const int64_t n = s->pad->n;
    for (int64_t b = 0; b < count; b++) {
        pad_channels(job, c, image + b);
        gather(job, c, 0, n, c->cols + b * n);
    }
    multiply(job, c, job->scratch + s->dy_at + image * n, s->batch * n, c->cols, s->width,
             count * n, image > 0);
}

/* Task i: computes the gradients of some columns of a group, over all images of the part. */
static void some_columns(void *arg, int64_t i, int32_t thread) {
    const grad_weight_job *job = arg;
    const grad_weight_state *s = job->s;
    const int64_t taps = s->pad->taps, k = s->cin / s->group * taps;
    columns c = {.group = i / s->tasks, .first = i % s->tasks * s->columns};
    c.n = cnr_min(s->columns, k - c.first);
    c.channel = c.first / taps;
    c.channels = (c.first + c.n - 1) / taps + 1 - c.channel;
    c.planes = job->scratch + s->planes_at + thread * s->room;
    c.cols = job->scratch + s->cols_at + thread * s->columns * s->width;
    for (int64_t image = 0; image < s->batch; image += s->images) {
        if (cnr_cancelled(job->run->stream)) return;
        if (s->images == 1) large_image(job, &c, image);
        else small_images(job, &c, image, cnr_min(s->images, s->batch - image));
    }
}

/* ---- dy spread to the rows of the input ---- */

/* Copies n channels of dy, and channel `channel` of x, of image `image` to their places. */
static void spread_image(const grad_weight_job *job, int64_t image, int64_t place, int64_t m,
                         int64_t n, int64_t channel, float *dy, float *x) {
    const grad_weight_state *s = job->s;
    const neon_padded *g = s->pad;
    const int64_t wide = g->w.out[2], rows = g->w.out[0] * g->w.out[1];
    neon_pad(g, job->x + (image * s->cin + channel) * g->in, 0.0f, x + place * g->plane);
    for (int64_t i = 0; i < n; i++) {
        const float *from = job->dy + (image * s->cout + m + i) * g->n;
        float *to = dy + i * s->room + place * g->plane;
        for (int64_t row = 0; row < rows; row++, from += wide)
            memcpy(to + neon_padded_row(g, row), from, (size_t)wide * sizeof *to);
    }
}

/* Sums the products of `length` floats of dy and x for each row of taps, into dw; add: to what dw
 * has. */
static void sum_taps(const grad_weight_job *job, const float *dy, const float *x, int64_t length,
                     int64_t m, int64_t n, float *dw, int add) {
    const grad_weight_state *s = job->s;
    const neon_padded *g = s->pad;
    const neon_ukernels *uk = neon_uk;
    const int64_t k = s->cin / s->group * g->taps, wide = g->w.kernel[2];
    for (int64_t at = 0; at < length; at += SUM_BLOCK)
        for (int64_t t = 0; t < g->taps; t += wide)
            for (int64_t j = 0; j < wide; j += uk->dot_n)
                uk->sdot[NEON_F32](cnr_min(SUM_BLOCK, length - at), dy + at, s->room,
                                   x + g->tap[t + j] + at, g->w.dilation[2], dw + m * k + t + j, k,
                                   n, cnr_min(uk->dot_n, wide - j), NULL, add || at > 0);
}

/* Task i of the grad_weight_job `arg`: all taps of one channel of the input. */
static void one_channel(void *arg, int64_t i, int32_t thread) {
    const grad_weight_job *job = arg;
    const grad_weight_state *s = job->s;
    const neon_padded *g = s->pad;
    const int64_t each = s->cout / s->group, group = i / s->tasks, c = i % s->tasks;
    const int64_t m0 = cnr_max(job->m0, group * each), m1 = cnr_min(job->m1, (group + 1) * each);
    const int64_t reach = neon_padded_row(g, g->w.out[0] * g->w.out[1] - 1) + g->w.out[2];
    float *x = job->scratch + s->planes_at + thread * s->room;
    float *dy = job->scratch + s->dy_at + thread * s->room * each;
    memset(dy, 0, (size_t)(s->room * each) * sizeof *dy);
    for (int64_t image = 0; image < s->batch && m0 < m1; image += s->images) {
        const int64_t count = cnr_min(s->images, s->batch - image);
        if (cnr_cancelled(job->run->stream)) return;
        for (int64_t b = 0; b < count; b++) spread_image(job, image + b, b, m0, m1 - m0, i, dy, x);
        sum_taps(job, dy, x, (count - 1) * g->plane + reach, m0, m1 - m0, job->dw + c * g->taps,
                 image > 0);
    }
}

/* Computes all rounds on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const grad_weight_state *s = run->state;
    const neon_part part = neon_part_of(run);
    grad_weight_job job = {.s = s,
                           .run = run,
                           .dy = neon_floats(run->node->inputs[0]),
                           .x = neon_floats(run->node->inputs[1]),
                           .dw = run->outputs[0]->data,
                           .scratch = run->workspace_data,
                           .m0 = part.image0,
                           .m1 = part.image1};
    (void)err;
    if (s->batch == 0 || s->pad->n == 0) { /* an empty sum */
        const int64_t each = cnr_span(run->outputs[0], 1, run->outputs[0]->rank);
        memset(job.dw + job.m0 * each, 0, (size_t)((job.m1 - job.m0) * each) * sizeof(float));
        return CNR_OK;
    }
    if (s->images > 1 && !s->spread) cnr_parallel(run->stream, job.m1 - job.m0, gather_row, &job);
    cnr_parallel(run->stream, s->group * s->tasks, s->spread ? one_channel : some_columns, &job);
    return CNR_OK;
}

/* The gradient is multiplied by the padding too: a NaN spreads to all taps of its channel. */
NEON_KERNEL_WITH(CNR_KERNEL_SPREADS_NAN, neon_conv_grad_weight, "conv_grad_weight_f32_dot",
                 "conv_grad_weight", plan, neon_free_padded_state);
