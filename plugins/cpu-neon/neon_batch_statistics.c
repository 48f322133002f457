/* batch_statistics and its gradient. Each plane is summed by itself, then the sums of a channel in
 * the order of the images, so that results do not depend on the number of threads. Threads have
 * images of their own, as in convolutions: what a core wrote it reads again. */
#include "support.h"
#include <math.h>

static int is_grad(const cnr_node *node) { return node->n_outputs == 3; }
static const cnr_tensor *picture(const cnr_node *node) { return node->inputs[is_grad(node)]; }

/* Takes f32 batch statistics and their gradient; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (cnr_own_inputs(node) != 5 || (node->n_outputs != 3 && node->n_outputs != 5))
        return cnr_refuse(out, "five inputs and three or five outputs are wanted");
    for (int32_t i = 0; i < 5; i++)
        if (!node->inputs[i]) return cnr_refuse(out, "an input is missing");
    if (!neon_all_f32(node)) return cnr_refuse(out, NEON_WANTS_F32);
    /* without variance, the result would depend on the order of the sum */
    if (cnr_attr_float(node, "epsilon") <= 0)
        return cnr_refuse(out, "an epsilon above 0 is wanted");
    if (picture(node)->rank < 3 || cnr_count(picture(node)) < 1)
        return cnr_refuse(out, "planes are wanted: rank 3 or more");
    return cnr_take(node, out, 500);
}

/* Arguments of the tasks of a run. */
typedef struct batch_job {
    const cnr_run *run;
    int64_t images, channels, plane, step; /* step: planes of a task */
    double epsilon, keep;
    double *sums;    /* two numbers a plane */
    double *factors; /* a, mean, b, c of each channel, as `blend` wants them */
} batch_job;

/* Floats of a task, about. */
#define TASK_FLOATS 16384

static int64_t plane_floats(const cnr_node *node) {
    return cnr_span(picture(node), 2, picture(node)->rank);
}

/* Reserves two numbers a plane and four a channel. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    const cnr_tensor *x = picture(node);
    (void)device, (void)err;
    workspace->bytes = (uint64_t)(2 * x->dim[0] * x->dim[1] + 4 * x->dim[1]) * sizeof(double);
    *state = NULL;
    return CNR_OK;
}

/* Address of channel c in an output with one number a channel. */
static float *channel_out(const batch_job *job, int32_t output, int64_t c) {
    return (float *)job->run->outputs[output]->data + c;
}

/* The planes of task i end here. */
static int64_t end_of(const batch_job *job, int64_t i) {
    return cnr_min(job->images * job->channels, (i + 1) * job->step);
}

/* Task: mean of each plane, and squares of the distances from it. */
static void measure(void *arg, int64_t i, int32_t thread) {
    const batch_job *job = arg;
    const float *x = neon_floats(job->run->node->inputs[0]);
    (void)thread;
    for (int64_t p = i * job->step; p < end_of(job, i); p++) {
        const float *at = x + p * job->plane;
        const double mean = neon_long_sum(at, job->plane) / (double)job->plane;
        job->sums[2 * p] = mean;
        job->sums[2 * p + 1] = neon_uk->centred(at, mean, at, mean, job->plane);
    }
}

/* Task: mean and variance of channel c, from those of its planes (Chan, Golub and LeVeque 1983). */
static void combine(void *arg, int64_t c, int32_t thread) {
    const batch_job *job = arg;
    const cnr_node *node = job->run->node;
    const double n = (double)job->images * (double)job->plane;
    double mean = 0, squares = 0;
    (void)thread;
    for (int64_t i = 0; i < job->images; i++) mean += job->sums[2 * (i * job->channels + c)];
    mean /= (double)job->images;
    for (int64_t i = 0; i < job->images; i++) {
        const double *sums = job->sums + 2 * (i * job->channels + c), off = sums[0] - mean;
        squares += sums[1] + off * off * (double)job->plane;
    }
    const double variance = squares / n;
    /* subtract the mean first: a large mean cancels digits */
    double *f = job->factors + 4 * c;
    f[0] = 0;
    f[1] = mean;
    f[2] = (double)neon_floats(node->inputs[1])[c] / sqrt(variance + job->epsilon);
    f[3] = (double)neon_floats(node->inputs[2])[c];
    const double found[] = {mean, variance};
    for (int32_t i = 0; i < 2; i++) {
        const double stored = (double)neon_floats(node->inputs[3 + i])[c];
        *channel_out(job, 1 + i, c) = (float)(job->keep * stored + (1 - job->keep) * found[i]);
        *channel_out(job, 3 + i, c) = (float)found[i];
    }
}

/* Task: sums of the output's gradient, and of its products with the input, of each plane. */
static void measure_gradient(void *arg, int64_t i, int32_t thread) {
    const batch_job *job = arg;
    const cnr_node *node = job->run->node;
    const float *dy = neon_floats(node->inputs[0]), *x = neon_floats(node->inputs[1]);
    (void)thread;
    for (int64_t p = i * job->step; p < end_of(job, i); p++) {
        const double mean = (double)neon_floats(node->inputs[3])[p % job->channels];
        const int64_t at = p * job->plane;
        job->sums[2 * p] = neon_long_sum(dy + at, job->plane);
        job->sums[2 * p + 1] = neon_uk->centred(x + at, mean, dy + at, 0, job->plane);
    }
}

/* Task: the parameters' gradients of channel c. */
static void combine_gradient(void *arg, int64_t c, int32_t thread) {
    const batch_job *job = arg;
    const cnr_node *node = job->run->node;
    const double given = (double)neon_floats(node->inputs[4])[c], variance = given < 0 ? 0 : given;
    const double part = 1 / sqrt(variance + job->epsilon);
    const double n = (double)job->images * (double)job->plane;
    double sum = 0, product = 0;
    (void)thread;
    for (int64_t i = 0; i < job->images; i++) {
        sum += job->sums[2 * (i * job->channels + c)];
        product += job->sums[2 * (i * job->channels + c) + 1] * part;
    }
    double *f = job->factors + 4 * c;
    f[0] = (double)neon_floats(node->inputs[2])[c] * part;
    f[1] = (double)neon_floats(node->inputs[3])[c];
    f[2] = -f[0] * part * product / n;
    f[3] = -f[0] * sum / n;
    *channel_out(job, 1, c) = (float)product;
    *channel_out(job, 2, c) = (float)sum;
}

/* Task: output 0 of some planes. */
static void apply(void *arg, int64_t i, int32_t thread) {
    const batch_job *job = arg;
    const cnr_node *node = job->run->node;
    const float *first = neon_floats(node->inputs[0]), *x = neon_floats(picture(node));
    (void)thread;
    for (int64_t p = i * job->step; p < end_of(job, i); p++) {
        const double *f = job->factors + 4 * (p % job->channels);
        const int64_t at = p * job->plane;
        neon_uk->blend(first + at, f[0], x + at, f[1], f[2], f[3], channel_out(job, 0, at),
                       job->plane);
    }
}

/* Computes all planes: sums, then factors, then the output. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = picture(node);
    batch_job job = {.run = run,
                     .images = x->dim[0],
                     .channels = x->dim[1],
                     .plane = plane_floats(node),
                     .epsilon = cnr_attr_float(node, "epsilon"),
                     .keep = cnr_attr_float(node, "momentum"),
                     .sums = run->workspace_data};
    const int64_t planes = job.images * job.channels;
    (void)err;
    job.factors = job.sums + 2 * planes;
    job.step = cnr_max(1, TASK_FLOATS / job.plane);
    const int64_t tasks = cnr_div_up(planes, job.step);
    cnr_parallel(run->stream, tasks, is_grad(node) ? measure_gradient : measure, &job);
    cnr_parallel(run->stream, job.channels, is_grad(node) ? combine_gradient : combine, &job);
    cnr_parallel(run->stream, tasks, apply, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_batch_statistics, "batch_statistics_f32_planes", "batch_statistics", plan, NULL);
NEON_KERNEL(neon_batch_statistics_grad, "batch_statistics_grad_f32_planes", "batch_statistics_grad",
            plan, NULL);
