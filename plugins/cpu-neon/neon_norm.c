/* batch_normalization with stored statistics, and lrn across channels. */
#include "support.h"

/* Elements of a plane processed at a time. */
#define CHUNK 1024

/* Plan of batch normalisation or lrn. */
typedef struct norm_state {
    neon_chain chain;
    int64_t images, channels, plane;
    int32_t lrn;
    int64_t below, above;
    float scale, bias, beta;
    double epsilon;
} norm_state;

static int is_lrn(const cnr_node *node) { return strcmp(node->desc->name, "lrn") == 0; }

/* Takes f32 batch_normalization and lrn; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    (void)device;
    if (!x || node->n_outputs != 1 || !neon_all_f32(node)) return cnr_refuse(out, NEON_WANTS_F32);
    if (x->rank < 2) return cnr_refuse(out, "channels are wanted");
    for (int32_t i = 1; !is_lrn(node) && i < 5; i++) {
        const cnr_tensor *t = cnr_own_input(node, i);
        if (!t || cnr_count(t) != x->dim[1])
            return cnr_refuse(out, "one number a channel is wanted");
    }
    cnr_take(node, out, 500);
    out->epilogue = neon_chain_accepts(node, x->rank, x->dim);
    out->ranges = 1 << 0 | 1 << 1;
    return CNR_OK;
}

/* Notes sizes and constants in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    (void)device;
    (void)workspace;
    norm_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    neon_chain_plan(node, &s->chain);
    s->images = x->dim[0];
    s->channels = x->dim[1];
    s->plane = cnr_span(x, 2, x->rank);
    s->lrn = is_lrn(node);
    s->epsilon = cnr_attr_float(node, "epsilon");
    if (s->lrn) {
        const int64_t size = cnr_max(1, cnr_attr_int(node, "size"));
        s->below = (size - 1) / 2;
        s->above = size / 2;
        s->scale = (float)(cnr_attr_float(node, "alpha") / (double)size);
        s->bias = (float)cnr_attr_float(node, "bias");
        s->beta = (float)cnr_attr_float(node, "beta");
    }
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct norm_job {
    const norm_state *s;
    const cnr_run *run;
    neon_part part;
} norm_job;

/* Normalises columns [col, col + n) of a channel. x and y may be the same memory, except for
 * lrn. */
static void normalise(const norm_job *job, int64_t image, int64_t channel, int64_t col, int64_t n) {
    const norm_state *s = job->s;
    const cnr_node *node = job->run->node;
    const int64_t first = (image * s->channels + channel) * s->plane + col;
    const float *x = neon_floats(node->inputs[0]) + first;
    float *y = (float *)job->run->outputs[0]->data + first;
    if (s->lrn) {
        float squares[CHUNK] = {0};
        const int64_t low = cnr_max(0, channel - s->below);
        const int64_t high = cnr_min(s->channels - 1, channel + s->above);
        for (int64_t c = low; c <= high; c++)
            neon_uk->add_squares(x + (c - channel) * s->plane, squares, n);
        neon_uk->lrn(x, squares, s->scale, s->bias, s->beta, y, n);
    } else {
        /* subtract the mean first, or values near it would lose digits */
        neon_normal by = {.mean = neon_floats(node->inputs[3])[channel],
                          .start = neon_floats(node->inputs[2])[channel]};
        const double variance = (double)neon_floats(node->inputs[4])[channel];
        by.factor = (float)((double)neon_floats(node->inputs[1])[channel] /
                            __builtin_sqrt(variance + s->epsilon));
        if (__builtin_isfinite(by.factor)) neon_uk->normalise(&by, x, y, n);
        else neon_uk->affine(x, by.factor, by.start - by.mean * by.factor, y, n);
    }
    neon_chain_run(&s->chain, node, y, first, n);
}

/* Task i of the norm_job `arg`: lrn of all channels of some pixels. */
static void one_chunk(void *arg, int64_t i, int32_t thread) {
    const norm_job *job = arg;
    const norm_state *s = job->s;
    const int64_t chunks = cnr_div_up(s->plane, CHUNK), col = i % chunks * CHUNK;
    (void)thread;
    /* all channels of a chunk: lrn finds the neighbours' elements in the cache */
    for (int64_t c = job->part.channel0; c < job->part.channel1; c++)
        normalise(job, job->part.image0 + i / chunks, c, col, cnr_min(CHUNK, s->plane - col));
}

/* Task i of the norm_job `arg`: normalises one plane. */
static void one_plane(void *arg, int64_t i, int32_t thread) {
    const norm_job *job = arg;
    const norm_state *s = job->s;
    const int64_t channels = job->part.channel1 - job->part.channel0;
    (void)thread;
    for (int64_t col = 0; col < s->plane; col += CHUNK)
        normalise(job, job->part.image0 + i / channels, job->part.channel0 + i % channels, col,
                  cnr_min(CHUNK, s->plane - col));
}

/* Normalises everything on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    norm_job job = {run->state, run, neon_part_of(run)};
    const int64_t images = job.part.image1 - job.part.image0;
    const int64_t channels = job.part.channel1 - job.part.channel0;
    const int64_t chunks = cnr_div_up(job.s->plane, CHUNK);
    (void)err;
    if (job.s->lrn && chunks * images >= 2 * run->stream->device->concurrency)
        cnr_parallel(run->stream, images * chunks, one_chunk, &job);
    else cnr_parallel(run->stream, images * channels, one_plane, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_batch_normalization, "batch_normalization_f32", "batch_normalization", plan,
            neon_free_state);
NEON_KERNEL(neon_lrn, "lrn_f32", "lrn", plan, neon_free_state);
