/* batch_statistics and its gradient. One thread sums a whole channel in order, so that results do
 * not depend on the number of threads. */
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
    int64_t images, channels, plane;
    double epsilon, keep;
} batch_job;

/* Index of the first element of a plane. */
static int64_t plane_at(const batch_job *job, int64_t image, int64_t channel) {
    return (image * job->channels + channel) * job->plane;
}

/* Address of channel c in an output with one number a channel. */
static float *channel_out(const batch_job *job, int32_t output, int64_t c) {
    return (float *)job->run->outputs[output]->data + c;
}

/* Task c: mean and variance of channel c, its normalised outputs, and the running statistics. */
static void normalise(void *arg, int64_t c, int32_t thread) {
    const batch_job *job = arg;
    const cnr_node *node = job->run->node;
    const float *x = neon_floats(node->inputs[0]);
    const double n = (double)job->images * (double)job->plane;
    double sum = 0, squares = 0;
    (void)thread;
    for (int64_t i = 0; i < job->images; i++)
        sum += neon_long_sum(x + plane_at(job, i, c), job->plane);
    const double mean = n > 0 ? sum / n : 0;
    for (int64_t i = 0; i < job->images; i++) {
        const float *p = x + plane_at(job, i, c);
        squares += neon_uk->centred(p, mean, p, mean, job->plane);
    }
    const double variance = n > 0 ? squares / n : 0;
    const double scale = (double)neon_floats(node->inputs[1])[c] / sqrt(variance + job->epsilon);
    const double bias = (double)neon_floats(node->inputs[2])[c];
    /* subtract the mean first: a large mean cancels digits */
    for (int64_t i = 0; i < job->images; i++) {
        const float *p = x + plane_at(job, i, c);
        neon_uk->blend(p, 0, p, mean, scale, bias, channel_out(job, 0, plane_at(job, i, c)),
                       job->plane);
    }
    const double found[] = {mean, variance};
    for (int32_t i = 0; i < 2; i++) {
        const double stored = (double)neon_floats(node->inputs[3 + i])[c];
        *channel_out(job, 1 + i, c) = (float)(job->keep * stored + (1 - job->keep) * found[i]);
        *channel_out(job, 3 + i, c) = (float)found[i];
    }
}

/* Task c: gradients of channel c of x, scale and shift. */
static void differentiate(void *arg, int64_t c, int32_t thread) {
    const batch_job *job = arg;
    const cnr_node *node = job->run->node;
    const float *dy = neon_floats(node->inputs[0]), *x = neon_floats(node->inputs[1]);
    const double mean = (double)neon_floats(node->inputs[3])[c];
    const double given = (double)neon_floats(node->inputs[4])[c], variance = given < 0 ? 0 : given;
    const double part = 1 / sqrt(variance + job->epsilon);
    const double n = (double)job->images * (double)job->plane;
    double sum = 0, product = 0;
    (void)thread;
    for (int64_t i = 0; i < job->images; i++) {
        const int64_t at = plane_at(job, i, c);
        sum += neon_long_sum(dy + at, job->plane);
        product += neon_uk->centred(x + at, mean, dy + at, 0, job->plane) * part;
    }
    const double a = (double)neon_floats(node->inputs[2])[c] * part;
    const double b = n > 0 ? -a * part * product / n : 0, less = n > 0 ? a * sum / n : 0;
    for (int64_t i = 0; i < job->images; i++) {
        const int64_t at = plane_at(job, i, c);
        neon_uk->blend(dy + at, a, x + at, mean, b, -less, channel_out(job, 0, at), job->plane);
    }
    *channel_out(job, 1, c) = (float)product;
    *channel_out(job, 2, c) = (float)sum;
}

/* Computes all channels on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = picture(node);
    batch_job job = {run,
                     x->dim[0],
                     x->dim[1],
                     cnr_span(x, 2, x->rank),
                     cnr_attr_float(node, "epsilon"),
                     cnr_attr_float(node, "momentum")};
    (void)err;
    cnr_parallel(run->stream, job.channels, is_grad(node) ? differentiate : normalise, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_batch_statistics, "batch_statistics_f32_planes", "batch_statistics", NULL, NULL);
NEON_KERNEL(neon_batch_statistics_grad, "batch_statistics_grad_f32_planes", "batch_statistics_grad",
            NULL, NULL);
