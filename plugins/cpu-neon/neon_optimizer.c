/* sgd and adam: update weight and optimiser state by the gradient in one pass on all threads. */
#include "support.h"
#include <math.h>

enum { RATE, STEP, WEIGHT, GRADIENT, MEMORY, TASK = 16384 };

static int is_adam(const cnr_node *node) { return strcmp(node->desc->name, "adam") == 0; }

/* Takes f32 sgd and adam; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (!neon_all_f32(node)) return cnr_refuse(out, NEON_WANTS_F32);
    if (cnr_own_inputs(node) != MEMORY + node->n_outputs - 1)
        return cnr_refuse(out, "a memory for each output behind the weight is wanted");
    for (int32_t i = 0; i < MEMORY + node->n_outputs - 1; i++)
        if (!node->inputs[i]) return cnr_refuse(out, "an input is missing");
    return cnr_take(node, out, 500);
}

/* Arguments of the tasks of a step. */
typedef struct step_job {
    const cnr_run *run;
    int adam;
    neon_sgd sgd;
    neon_adam by;
    int64_t n;
} step_job;

/* Returns elements at .. at + n of an output, after copying the input's there unless both share
 * memory. */
static float *moved(const cnr_run *run, int32_t input, int32_t output, int64_t at, int64_t n) {
    float *to = (float *)run->outputs[output]->data + at;
    const float *from = neon_floats(run->node->inputs[input]) + at;
    if (to != from) memcpy(to, from, (size_t)n * sizeof *to);
    return to;
}

/* Task i of the step_job `arg`: updates some elements of a weight and its memories. */
static void one_task(void *arg, int64_t i, int32_t thread) {
    const step_job *job = arg;
    const int64_t at = i * TASK, n = cnr_min(TASK, job->n - at);
    const float *gradient = neon_floats(job->run->node->inputs[GRADIENT]) + at;
    float *x = moved(job->run, WEIGHT, 0, at, n), *m = moved(job->run, MEMORY, 1, at, n);
    (void)thread;
    if (job->adam)
        neon_uk->adam(x, m, moved(job->run, MEMORY + 1, 2, at, n), gradient, &job->by, n);
    else neon_uk->sgd(x, m, gradient, &job->sgd, n);
}

/* Takes one step of the optimiser on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const double rate = (double)neon_floats(node->inputs[RATE])[0];
    const double step = fmax((double)neon_floats(node->inputs[STEP])[0], 1);
    const float decay = (float)cnr_attr_float(node, "weight_decay");
    step_job job = {.run = run, .adam = is_adam(node), .n = cnr_count(run->outputs[0])};
    (void)err;
    if (job.adam) {
        const double b1 = cnr_attr_float(node, "beta1"), b2 = cnr_attr_float(node, "beta2");
        job.by = (neon_adam){(float)b1,
                             (float)(1 - b1),
                             (float)b2,
                             (float)(1 - b2),
                             decay,
                             (float)(rate / (1 - pow(b1, step))),
                             (float)(1 / (1 - pow(b2, step))),
                             (float)cnr_attr_float(node, "epsilon")};
    } else {
        const double momentum = cnr_attr_float(node, "momentum");
        const int ahead = cnr_attr_int(node, "nesterov") != 0;
        job.sgd = (neon_sgd){(float)momentum, decay, (float)(ahead ? rate * momentum : rate),
                             ahead ? (float)rate : 0.0f};
    }
    cnr_parallel(run->stream, cnr_div_up(job.n, TASK), one_task, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_sgd_step, "sgd_f32", "sgd", NULL, NULL);
NEON_KERNEL(neon_adam_step, "adam_f32", "adam", NULL, NULL);
