/* Kernels of dense layers that copy the bias beside themselves, each with one planted fault. */
#include "faulty.h"

/* Method accepts: dense layers with a constant weight. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1], *b = cnr_own_input(node, 2);
    (void)device;
    if (!cnr_all_plain(node, 1u << CNR_f32) || !cnr_is_constant(w) || !cnr_is_constant(b) ||
        cnr_span(x, 1, x->rank) != w->dim[1])
        return cnr_refuse(out, "dense f32 with constants is wanted");
    cnr_take(node, out, 1);
    out->prepared = 1u << 2;
    return CNR_OK;
}

/* The blob: the bias, and one more. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    (void)device, (void)err;
    out->bytes = (uint64_t)(node->inputs[2]->dim[0] + 1) * sizeof(float);
    return CNR_OK;
}
/* Method prepare, without a fault: the bias and a 0. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    const int64_t n = node->inputs[2]->dim[0];
    (void)device, (void)err;
    memset(blob, 0, (size_t)(n + 1) * sizeof(float));
    memcpy(blob, node->inputs[2]->data, (size_t)n * sizeof(float));
    return CNR_OK;
}
/* Fault: writes past the blob's end. */
static cnr_status prepare_over(const cnr_device *device, const cnr_node *node, void *blob,
                               cnr_error *err) {
    const int64_t n = node->inputs[2]->dim[0];
    (void)device, (void)err;
    for (int64_t i = 0; i <= n; i++) /* what is read too much is never used */
        ((float *)blob)[i] = ((const volatile float *)node->inputs[2]->data)[i];
    return CNR_OK;
}

/* A row of results. */
static cnr_status plan_row(const cnr_node *node, cnr_space *workspace, int64_t less) {
    workspace->bytes = (uint64_t)(node->outputs[0]->dim[1] - less) * sizeof(float);
    return CNR_OK;
}
/* Method plan, without a fault: a workspace of one row of results. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device, (void)state, (void)err;
    return plan_row(node, workspace, 0);
}
/* Fault: asks for less scratch than it uses. */
static cnr_status plan_less(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                            void **state, cnr_error *err) {
    (void)device, (void)state, (void)err;
    return plan_row(node, workspace, node->outputs[0]->dim[1] > 1);
}

/* Method run. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int64_t n = y->dim[1], k = cnr_span(x, 1, x->rank);
    const float *w = (const float *)run->node->inputs[1]->data, *bias = run->blob_data;
    float *row = run->workspace_data;
    (void)err;
    for (int64_t r = 0; r < x->dim[0]; r++) {
        for (int64_t o = 0; o < n; o++) {
            double sum = (double)bias[o];
            for (int64_t i = 0; i < k; i++)
                sum += (double)w[o * k + i] * (double)((const float *)x->data)[r * k + i];
            row[o] = (float)sum;
        }
        memcpy((float *)y->data + r * n, row, (size_t)n * sizeof *row);
    }
    return CNR_OK;
}

/* Fault: every thread sums up in one place. */
static float shared;
/* One result of a layer, by the fault above. */
static void compute_shared(void *arg, int64_t at, int32_t thread) {
    const cnr_run *run = arg;
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int64_t n = y->dim[1], k = cnr_span(x, 1, x->rank);
    const float *w = (const float *)run->node->inputs[1]->data + at % n * k;
    const float *from = (const float *)x->data + at / n * k;
    (void)thread;
    shared = ((const float *)run->blob_data)[at % n];
    for (int64_t i = 0; i < k; i++) *(volatile float *)&shared += w[i] * from[i];
    ((float *)y->data)[at] = shared;
}
static cnr_status run_shared(const cnr_run *run, cnr_error *err) {
    (void)err;
    cnr_parallel(run->stream, cnr_count(run->outputs[0]), compute_shared, (void *)run);
    return CNR_OK;
}

/* Fault: keeps the results of inputs by their address, as if nobody wrote there again. */
static cnr_status run_stale(const cnr_run *r, cnr_error *err) {
    enum { MOST = 4096 };
    static const void *last;
    static float kept[MOST];
    const cnr_tensor *y = r->outputs[0];
    const int64_t n = cnr_count(y);
    const int same = last == r->node->inputs[0]->data;
    if (n > MOST) return run(r, err);
    if (!same) CNR_TRY(run(r, err));
    if (same) memcpy(y->data, kept, (size_t)n * sizeof *kept);
    else memcpy(kept, y->data, (size_t)n * sizeof *kept);
    last = r->node->inputs[0]->data;
    return CNR_OK;
}

/* A kernel with these hooks. */
#define KERNEL(word, pack, room, runs) \
    { \
        .size = sizeof(cnr_kernel), .version = 1, .name = word, .op = "dense", .device = "cpu", \
        .accepts = accepts, .prepare_size = prepare_size, .prepare = pack, .plan = room, \
        .run = runs \
    }
static const cnr_kernel kernels[] = {KERNEL("dense_sound", prepare, plan, run),
                                     KERNEL("dense_over_read", prepare_over, plan, run),
                                     KERNEL("dense_small_workspace", prepare, plan_less, run),
                                     KERNEL("dense_shared", prepare, plan, run_shared),
                                     KERNEL("dense_stale", prepare, plan, run_stale)};

cnr_status faulty_add_kernels(struct cnr_registrar *r) {
    for (int32_t i = FAULTY_FIRST; i < FAULTY_PAST(kernels); i++)
        CNR_TRY(faulty_host->add(r, CNR_KIND_KERNEL, &kernels[i]));
    return CNR_OK;
}
