/* Windows over planes of channel blocks, shared by depthwise convolution and poolings. */
#include "blocked_planes.h"
#include "pool.h"

/* Number of multiply-adds that justifies a task. */
#define TASK_STEPS ((int64_t)1 << 16)
/* Less work does not justify a second thread; strips of fewer rows would read too many rows
 * twice. */
#define LEAST_STEPS ((int64_t)1 << 16)
#define LEAST_ROWS 3

/* Plan of depthwise convolution or pooling on blocked channels. */
typedef struct planes_state {
    neon_plane plane;
    neon_ending end;
    neon_window_kind kind;
    int64_t channels, block, in, out, taps; /* in, out: pixels of a plane */
    int64_t strips, parts; /* number of strips of rows, number of groups of blocks */
    float scale[];
} planes_state;

/* Divides images, channels and rows into tasks, enough for the threads but not too small; sets them
 * in s. */
static void plan_tasks(planes_state *s, int64_t images, int32_t threads) {
    const int64_t blocks = s->channels / s->block, rows = s->plane.row1;
    const int64_t steps = images * blocks * s->out * s->block * s->taps;
    const int64_t wanted = threads < 2 || steps < LEAST_STEPS
                               ? 1
                               : cnr_min(4 * threads, cnr_max(threads, steps / TASK_STEPS));
    /* Splits rows first: threads have them in their caches from the layer before. */
    images = cnr_max(1, images);
    s->strips =
        neon_even_parts(cnr_max(1, rows / LEAST_ROWS), cnr_div_up(wanted, images), images, threads);
    s->parts = neon_even_parts(blocks, cnr_div_up(wanted, images * s->strips), images * s->strips,
                               threads);
}

/* The average's factors, as in the plain kernel. */
static cnr_status plan_scale(const cnr_node *node, const cnr_window *w, float *scale,
                             cnr_error *err) {
    neon_padded *pad = neon_padded_new(w);
    if (!pad) return neon_host->fail(err, CNR_E_MEMORY, node->name, "no memory for a plan");
    neon_pool_scale(pad, cnr_attr_int(node, "count_include_pad") != 0, scale);
    neon_host->free(pad);
    return CNR_OK;
}

cnr_status neon_planes_plan(const cnr_device *device, const cnr_node *node, const cnr_window *w,
                            neon_window_kind kind, void **state, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    const int64_t out = neon_outputs(w), scales = kind == NEON_WINDOW_SUM ? out : 0;
    planes_state *s =
        cnr_state(neon_host, node, sizeof *s + (size_t)scales * sizeof s->scale[0], err);
    if (!s) return CNR_E_MEMORY;
    const cnr_status status = scales ? plan_scale(node, w, s->scale, err) : CNR_OK;
    if (status) {
        neon_host->free(s);
        return status;
    }
    s->kind = kind;
    s->channels = x->dim[1];
    s->block = neon_channel_block(s->channels);
    if (x->block > 1) s->block = x->block;
    neon_plane_of(w, s->block, &s->plane);
    neon_bound_plan(node, &s->end);
    s->plane.bound = s->end.bound;
    s->in = s->plane.in[0] * s->plane.in[1];
    s->out = out;
    s->taps = s->plane.kernel[0] * s->plane.kernel[1];
    plan_tasks(s, x->dim[0], device->concurrency);
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct planes_job {
    const planes_state *s;
    const cnr_run *run;
    const float *x, *weight, *bias;
    float *y;
} planes_job;

/* Computes rows row0 to row1 of plane i. */
static void one_plane(const planes_job *job, int64_t i, int64_t row0, int64_t row1) {
    static const float zero[16];
    const planes_state *s = job->s;
    const int64_t q = i % (s->channels / s->block), first = i * s->out * s->block;
    neon_plane p = s->plane;
    p.x = job->x + i * s->in * s->block;
    p.y = job->y + first;
    p.row0 = row0;
    p.row1 = row1;
    p.scale = s->scale;
    p.weight = job->weight ? job->weight + q * s->taps * s->block : NULL;
    p.start = job->bias ? job->bias + q * s->block : zero;
    if (s->end.rest.first >= s->end.rest.n) {
        neon_uk->plane(s->kind, &p);
        return;
    }
    /* applies the remaining links to rows that are in the L1 cache */
    const int64_t row = p.out_wide * s->block, step = cnr_max(1, NEON_STRETCH / row);
    for (int64_t r = row0; r < row1; r += step) {
        p.row0 = r;
        p.row1 = cnr_min(row1, r + step);
        neon_uk->plane(s->kind, &p);
        neon_chain_run(&s->end.rest, job->run->node, p.y + r * row, first + r * row,
                       (p.row1 - r) * row);
    }
}

/* Task i of the planes_job `arg`: a strip of rows of some planes. */
static void one_task(void *arg, int64_t i, int32_t thread) {
    const planes_job *job = arg;
    const planes_state *s = job->s;
    const int64_t blocks = s->channels / s->block, image = i / s->parts / s->strips;
    const int64_t strip = i / s->parts % s->strips, part = i % s->parts, rows = s->plane.row1;
    (void)thread;
    if (cnr_cancelled(job->run->stream)) return;
    for (int64_t q = part * blocks / s->parts; q < (part + 1) * blocks / s->parts; q++)
        one_plane(job, image * blocks + q, strip * rows / s->strips,
                  (strip + 1) * rows / s->strips);
}

void neon_planes_run(const cnr_run *run, const float *weight, const float *bias) {
    const planes_state *s = run->state;
    planes_job job = {s,      run,  neon_floats(run->node->inputs[0]),
                      weight, bias, run->outputs[0]->data};
    cnr_parallel(run->stream, run->node->inputs[0]->dim[0] * s->strips * s->parts, one_task, &job);
}
