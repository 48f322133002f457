/* Runs the reference of any operator that supports ranges, with a range of the output on each
 * thread. */
#include "support.h"

/* Plan of an operator's reference, divided among threads. */
typedef struct reference_state {
    int32_t axis, parts;
    int64_t step;  /* indices of the split axis in each part */
    uint64_t room; /* bytes of workspace for each thread */
} reference_state;

/* Below this, an operator takes less time than waking other threads. */
#define LEAST_ELEMENTS 16384

/* 1 if all inputs and outputs are dense and on the host. */
static int dense_on_host(const cnr_node *node) {
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] &&
            (node->inputs[i]->encoding || (node->inputs[i]->flags & CNR_TENSOR_DYNAMIC)))
            return 0;
    for (int32_t i = 0; i < node->n_outputs; i++)
        if (!node->outputs[i] || (node->outputs[i]->flags & CNR_TENSOR_DYNAMIC)) return 0;
    /* smaller types: two ranges could share a byte */
    return cnr_dtype_bits(node->outputs[0]->dtype) >= 8;
}

/* The largest number of elements of the node's tensors. */
static int64_t elements_of(const cnr_node *node) {
    int64_t most = cnr_count(node->outputs[0]);
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i]) most = cnr_max(most, cnr_count(node->inputs[i]));
    return most;
}

/* Chooses the axis to split into s: the first that gives every thread a part, else the longest;
 * returns 0: none can be split. */
static int choose(const cnr_node *node, int32_t threads, reference_state *s) {
    cnr_split_axis axes[CNR_MAX_RANK];
    const cnr_tensor *y = node->outputs[0];
    const cnr_op *op = node->desc;
    int32_t n = 0;
    int64_t best = 1;
    if (CNR_HAS(op, split_axes)) n = op->split_axes(node, axes, CNR_MAX_RANK);
    else if (op->flags & CNR_OP_ELEMENTWISE)
        for (; n < y->rank; n++) axes[n] = (cnr_split_axis){n, 1};
    for (int32_t i = 0; i < n && best < threads; i++) {
        if (axes[i].axis < 0 || axes[i].axis >= y->rank || axes[i].alignment < 1) continue;
        const int64_t parts = y->dim[axes[i].axis] / axes[i].alignment;
        if (parts <= best) continue;
        best = parts;
        s->axis = axes[i].axis;
        /* several parts for each thread, so that a late thread delays little */
        s->step = cnr_div_up(parts, cnr_min(parts, 4 * threads)) * axes[i].alignment;
        s->parts = (int32_t)cnr_div_up(y->dim[s->axis], s->step);
    }
    return best > 1;
}

/* Takes any operator whose reference can compute ranges; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    reference_state s;
    if (device->concurrency < 2) return cnr_refuse(out, "there is one thread");
    if (!(node->desc->flags & CNR_OP_RANGES) || !CNR_HAS(node->desc, reference))
        return cnr_refuse(out, "the reference keeps to no ranges");
    if (node->n_outputs != 1 || !dense_on_host(node))
        return cnr_refuse(out, "dense tensors and one output are wanted");
    if (elements_of(node) < LEAST_ELEMENTS || !choose(node, device->concurrency, &s))
        return cnr_refuse(out, "too small to share out");
    return cnr_take(node, out, 1);
}

/* Chooses the axis and number of parts. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    reference_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    choose(node, device->concurrency, s);
    if (CNR_HAS(node->desc, reference_workspace)) {
        s->room = (node->desc->reference_workspace(node) + 63) / 64 * 64;
        workspace->bytes = s->room * (uint64_t)device->concurrency;
    }
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct reference_job {
    const cnr_run *run;
    volatile int32_t failed;
    cnr_error err;
} reference_job;

/* Task i of the reference_job `arg`: computes one range by the reference. */
static void one_part(void *arg, int64_t i, int32_t thread) {
    reference_job *job = arg;
    const reference_state *s = job->run->state;
    cnr_run part = *job->run;
    cnr_error err = CNR_ERROR_INIT;
    part.state = NULL;
    part.range_axis = s->axis;
    part.range_begin = i * s->step;
    part.range_end = cnr_min(part.range_begin + s->step, part.outputs[0]->dim[s->axis]);
    if (s->room) part.workspace_data = (char *)part.workspace_data + (uint64_t)thread * s->room;
    const cnr_status status = part.node->desc->reference(&part, &err);
    if (status != CNR_OK && !__atomic_exchange_n(&job->failed, status, __ATOMIC_ACQ_REL))
        job->err = err;
}

/* Computes all ranges; the error is that of the first that failed. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const reference_state *s = run->state;
    reference_job job = {.run = run, .err = CNR_ERROR_INIT};
    cnr_parallel(run->stream, s->parts, one_part, &job);
    if (!job.failed) return CNR_OK;
    return neon_host->fail(err, job.failed, job.err.where, "%s", job.err.text);
}

NEON_KERNEL(neon_reference, "reference_parallel", CNR_ANY_OP, plan, neon_free_state);
