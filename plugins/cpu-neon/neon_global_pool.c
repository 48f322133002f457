/* global_average_pool and global_max_pool: reduce each plane to one number. */
#include "support.h"

/* Takes f32 pooling of whole planes; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    (void)device;
    if (!x || node->n_outputs != 1 || !neon_all_f32(node)) return cnr_refuse(out, NEON_WANTS_F32);
    if (x->rank < 3 || cnr_span(x, 2, x->rank) < 1) return cnr_refuse(out, "planes are wanted");
    cnr_take(node, out, 500);
    out->ranges = 1 << 0 | 1 << 1;
    return CNR_OK;
}

#define PLANES_A_TASK 16

/* Arguments of the tasks of a run. */
typedef struct global_job {
    const cnr_run *run;
    neon_part part;
    int64_t plane;
    int max;
} global_job;

/* Task i of the global_job `arg`: pools some planes. */
static void some_planes(void *arg, int64_t i, int32_t thread) {
    const global_job *job = arg;
    const int64_t channels = job->part.channel1 - job->part.channel0;
    const int64_t all = (job->part.image1 - job->part.image0) * channels;
    (void)thread;
    for (int64_t p = i * PLANES_A_TASK; p < cnr_min(all, (i + 1) * PLANES_A_TASK); p++) {
        const int64_t at = (job->part.image0 + p / channels) * job->run->outputs[0]->dim[1] +
                           job->part.channel0 + p % channels;
        const float *x = neon_floats(job->run->node->inputs[0]) + at * job->plane;
        float *y = (float *)job->run->outputs[0]->data + at;
        *y = job->max ? neon_uk->max(x, job->plane)
                      : neon_uk->sum(x, job->plane) / (float)job->plane;
    }
}

/* Pools all planes on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    global_job job = {run, neon_part_of(run), cnr_span(x, 2, x->rank),
                      strcmp(run->node->desc->name, "global_max_pool") == 0};
    (void)err;
    cnr_parallel(run->stream,
                 cnr_div_up((job.part.image1 - job.part.image0) *
                                (job.part.channel1 - job.part.channel0),
                            PLANES_A_TASK),
                 some_planes, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_global_average_pool, "global_average_pool_f32", "global_average_pool", NULL, NULL);
NEON_KERNEL(neon_global_max_pool, "global_max_pool_f32", "global_max_pool", NULL, NULL);
