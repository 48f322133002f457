/* batch_statistics, its gradient, and the sums of both for a batch that processes share. Each plane
 * is summed by itself, then the sums of a channel in the order of the images, so that results do
 * not depend on the number of threads. Threads have images of their own, as in convolutions: what a
 * core wrote it reads again. */
#include "support.h"
#include <math.h>

/* True for the gradient, and for its sums. */
static int is_grad(const cnr_node *node) { return strstr(node->desc->name, "statistics_") != NULL; }
/* True for the operators that only sum. */
static int is_sums(const cnr_node *node) { return node->outputs[0]->dtype == CNR_f64; }
static const cnr_tensor *picture(const cnr_node *node) { return node->inputs[is_grad(node)]; }
/* Sums of the whole batch, which other processes share; NULL: this node sums its own. */
static const double *given_sums(const cnr_node *node) {
    const cnr_tensor *sums = is_sums(node) ? NULL : cnr_own_input(node, 5);
    return sums ? sums->data : NULL;
}

/* Number of inputs, without an optional last one that is left out. */
static int32_t inputs_of(const cnr_node *node) {
    const int32_t n = cnr_own_inputs(node);
    return n == 6 && !node->inputs[5] ? 5 : n;
}

/* True if the node has the inputs and outputs that its kernel wants. */
static int has_ports(const cnr_node *node) {
    const int32_t in = inputs_of(node), out = node->n_outputs;
    if (is_sums(node)) return is_grad(node) ? in == 4 && out == 3 : in == 1 && out == 1;
    if (is_grad(node)) return (in == 5 && out == 3) || (in == 6 && out == 1);
    return (in == 5 || in == 6) && out == 5;
}

/* True if all inputs and outputs are f32, but for sums. */
static int has_floats(const cnr_node *node) {
    for (int32_t i = 0; i < inputs_of(node); i++)
        if (!cnr_is_plain(node->inputs[i], 1u << (i == 5 ? CNR_f64 : CNR_f32))) return 0;
    for (int32_t i = is_sums(node); i < node->n_outputs; i++)
        if (!cnr_is_plain(node->outputs[i], 1u << CNR_f32)) return 0;
    return 1;
}

/* Takes f32 batch statistics and their gradient; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (!has_ports(node)) return cnr_refuse(out, "all inputs and outputs are wanted");
    for (int32_t i = 0; i < inputs_of(node); i++)
        if (!node->inputs[i]) return cnr_refuse(out, "an input is missing");
    if (!has_floats(node)) return cnr_refuse(out, NEON_WANTS_F32);
    /* without variance, the result would depend on the order of the sum */
    if ((is_grad(node) || !is_sums(node)) && cnr_attr_float(node, "epsilon") <= 0)
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
    double *totals;  /* two numbers a channel */
    double *factors; /* a, mean, b, c of each channel, as `blend` wants them */
} batch_job;

/* Floats of a task, about. */
#define TASK_FLOATS 16384

static int64_t plane_floats(const cnr_node *node) {
    return cnr_span(picture(node), 2, picture(node)->rank);
}

/* Reserves two numbers a plane and six a channel. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    const cnr_tensor *x = picture(node);
    (void)device, (void)err;
    workspace->bytes = (uint64_t)(2 * x->dim[0] * x->dim[1] + 6 * x->dim[1]) * sizeof(double);
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

/* Mean and variance of channel c, from those of its planes (Chan, Golub and LeVeque 1983). */
static void moments_of(const batch_job *job, int64_t c, double *mean, double *variance) {
    double all = 0, squares = 0;
    for (int64_t i = 0; i < job->images; i++) all += job->sums[2 * (i * job->channels + c)];
    all /= (double)job->images;
    for (int64_t i = 0; i < job->images; i++) {
        const double *sums = job->sums + 2 * (i * job->channels + c), off = sums[0] - all;
        squares += sums[1] + off * off * (double)job->plane;
    }
    *mean = all;
    *variance = squares / ((double)job->images * (double)job->plane);
}

/* The same from sums over all processes, as batch_moments gives them. */
static void shared_moments(const batch_job *job, const double *sums, int64_t c, double *mean,
                           double *variance) {
    const double n = sums[2 * job->channels];
    *mean = n > 0 ? sums[c] / n : 0;
    *variance = n > 0 ? sums[job->channels + c] / n - *mean * *mean : 0;
    if (*variance < 0) *variance = 0;
}

/* Task: sums of channel c and of its squares; of channel 0 also the number of elements. */
static void sum_moments(void *arg, int64_t c, int32_t thread) {
    const batch_job *job = arg;
    const double n = (double)job->images * (double)job->plane;
    double *to = job->run->outputs[0]->data, mean, variance;
    (void)thread;
    moments_of(job, c, &mean, &variance);
    to[c] = mean * n;
    to[job->channels + c] = (variance + mean * mean) * n;
    if (c == 0) to[2 * job->channels] = n;
}

/* Task: factors and statistics of channel c. */
static void combine(void *arg, int64_t c, int32_t thread) {
    const batch_job *job = arg;
    const cnr_node *node = job->run->node;
    const double *given = given_sums(node);
    double mean, variance;
    (void)thread;
    if (given) shared_moments(job, given, c, &mean, &variance);
    else moments_of(job, c, &mean, &variance);
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

/* The mean of the batch, an input of the gradient and of its sums; the variance follows it. */
static const cnr_tensor *mean_of(const cnr_node *node) {
    return node->inputs[is_sums(node) ? 2 : 3];
}
static const cnr_tensor *variance_of(const cnr_node *node) {
    return node->inputs[is_sums(node) ? 3 : 4];
}

/* Task: sums of the output's gradient, and of its products with the input, of each plane. */
static void measure_gradient(void *arg, int64_t i, int32_t thread) {
    const batch_job *job = arg;
    const cnr_node *node = job->run->node;
    const float *dy = neon_floats(node->inputs[0]), *x = neon_floats(node->inputs[1]);
    (void)thread;
    for (int64_t p = i * job->step; p < end_of(job, i); p++) {
        const double mean = (double)neon_floats(mean_of(node))[p % job->channels];
        const int64_t at = p * job->plane;
        job->sums[2 * p] = neon_long_sum(dy + at, job->plane);
        job->sums[2 * p + 1] = neon_uk->centred(x + at, mean, dy + at, 0, job->plane);
    }
}

/* 1 / deviation of channel c. */
static double part_of(const batch_job *job, int64_t c) {
    const double given = (double)neon_floats(variance_of(job->run->node))[c];
    return 1 / sqrt((given < 0 ? 0 : given) + job->epsilon);
}

/* Task: the parameters' gradients of channel c, outputs 1 and 2; for sums also output 0. */
static void sum_gradient(void *arg, int64_t c, int32_t thread) {
    const batch_job *job = arg;
    const double part = part_of(job, c);
    double sum = 0, product = 0, *to = job->run->outputs[0]->data;
    (void)thread;
    for (int64_t i = 0; i < job->images; i++) {
        sum += job->sums[2 * (i * job->channels + c)];
        product += job->sums[2 * (i * job->channels + c) + 1] * part;
    }
    *channel_out(job, 1, c) = (float)product;
    *channel_out(job, 2, c) = (float)sum;
    if (!is_sums(job->run->node)) to = job->totals;
    to[c] = sum;
    to[job->channels + c] = product;
}

/* Task: factors of channel c for the gradient of x, from the sums of its own or of all. */
static void combine_gradient(void *arg, int64_t c, int32_t thread) {
    const batch_job *job = arg;
    const cnr_node *node = job->run->node;
    const double *given = given_sums(node), *sums = given ? given : job->totals;
    const double n = (double)job->images * (double)job->plane, part = part_of(job, c);
    double *f = job->factors + 4 * c;
    (void)thread;
    f[0] = (double)neon_floats(node->inputs[2])[c] * part;
    f[1] = (double)neon_floats(node->inputs[3])[c];
    f[2] = -f[0] * part * sums[job->channels + c] / n;
    f[3] = -f[0] * sums[c] / n;
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

/* Sums all planes, then channels, unless both come from other processes too; then factors, then the
 * output. */
static void compute(batch_job *job, const cnr_node *node, cnr_stream *stream) {
    const int64_t tasks = cnr_div_up(job->images * job->channels, job->step);
    const int grad = is_grad(node);
    if (!given_sums(node)) {
        cnr_parallel(stream, tasks, grad ? measure_gradient : measure, job);
        if (grad) cnr_parallel(stream, job->channels, sum_gradient, job);
        else if (is_sums(node)) cnr_parallel(stream, job->channels, sum_moments, job);
    }
    if (is_sums(node)) return;
    cnr_parallel(stream, job->channels, grad ? combine_gradient : combine, job);
    cnr_parallel(stream, tasks, apply, job);
}

/* Method run of all four operators. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = picture(node);
    const int has_epsilon = is_grad(node) || !is_sums(node);
    batch_job job = {.run = run,
                     .images = x->dim[0],
                     .channels = x->dim[1],
                     .plane = plane_floats(node),
                     .epsilon = has_epsilon ? cnr_attr_float(node, "epsilon") : 0,
                     .sums = run->workspace_data};
    (void)err;
    if (node->n_outputs == 5) job.keep = cnr_attr_float(node, "momentum");
    job.totals = job.sums + 2 * job.images * job.channels;
    job.factors = job.totals + 2 * job.channels;
    job.step = cnr_max(1, TASK_FLOATS / job.plane);
    compute(&job, node, run->stream);
    return CNR_OK;
}

NEON_KERNEL_WITH(CNR_KERNEL_SPREADS_NAN, neon_batch_statistics, "batch_statistics_f32_planes",
                 "batch_statistics", plan, NULL);
NEON_KERNEL_WITH(CNR_KERNEL_SPREADS_NAN, neon_batch_statistics_grad,
                 "batch_statistics_grad_f32_planes", "batch_statistics_grad", plan, NULL);
NEON_KERNEL(neon_batch_moments, "batch_moments_f32_planes", "batch_moments", plan, NULL);
NEON_KERNEL(neon_batch_statistics_sums, "batch_statistics_sums_f32_planes", "batch_statistics_sums",
            plan, NULL);
