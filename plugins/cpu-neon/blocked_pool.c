/* Pooling on channel blocks, vectorised along the channels: of windows, and of whole planes. */
#include "blocked_planes.h"
#include "pool.h"

/* ---- windows ---- */

/* Takes f32 pooling by windows on blocked channels; for others out->why says why. */
static cnr_status window_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    const cnr_tensor *x = cnr_own_input(node, 0);
    (void)device;
    if (!x || node->n_outputs != 1 || !neon_all_f32(node)) return cnr_refuse(out, NEON_WANTS_F32);
    if ((out->why = neon_pool_window(node, x, &w))) return CNR_OK;
    const int32_t block = out->in_block[0];
    /* a block is one vector, or half of one on the widest vectors; other block sizes are not
     * handled */
    if (block != neon_uk->vl && !(block == 8 && neon_uk->vl == 16))
        return cnr_refuse(out, "channels in blocks of a vector are wanted");
    if (w.spatial > 2 || cnr_count(x) == 0) return cnr_refuse(out, "channels in blocks are wanted");
    int64_t dim[CNR_MAX_RANK] = {x->dim[0], x->dim[1]};
    memcpy(dim + 2, w.out, (size_t)w.spatial * sizeof dim[0]);
    neon_blocked_take(node, out, 600, block, neon_block_of(x->rank, dim) ? block : 0);
    out->epilogue = neon_chain_accepts(node, x->rank, dim);
    return CNR_OK;
}

/* Finds window and tasks. */
static cnr_status window_plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                              void **state, cnr_error *err) {
    cnr_window w;
    (void)workspace;
    const char *why = neon_pool_window(node, node->inputs[0], &w);
    if (why) return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    const int max = strcmp(node->desc->name, "max_pool") == 0;
    return neon_planes_plan(device, node, &w, max ? NEON_WINDOW_MAX : NEON_WINDOW_SUM, state, err);
}

/* Computes all planes; returns CNR_OK. */
static cnr_status window_run(const cnr_run *run, cnr_error *err) {
    (void)err;
    neon_planes_run(run, NULL, NULL);
    return CNR_OK;
}

/* ---- planes ---- */

/* Takes f32 pooling of whole planes on blocked channels; for others out->why says why. */
static cnr_status global_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    (void)device;
    if (!x || node->n_outputs != 1 || !neon_all_f32(node)) return cnr_refuse(out, NEON_WANTS_F32);
    const int32_t block = out->in_block[0];
    if (block < cnr_min(8, neon_uk->vl) || block > 16 || x->rank < 3 || cnr_span(x, 2, x->rank) < 1)
        return cnr_refuse(out, "channels in blocks are wanted");
    neon_blocked_take(node, out, 600, block, 0);
    return CNR_OK;
}

#define TASK_FLOATS ((int64_t)1 << 15)

/* Number of planes that make a task of about TASK_FLOATS; at least 1. */
static int64_t planes_a_task(const cnr_tensor *x) {
    return cnr_max(1, TASK_FLOATS / cnr_max(1, cnr_span(x, 2, x->rank) * x->block));
}

/* Task i: pools its planes, by the largest or the mean; arg is the run. */
static void some_planes(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const cnr_tensor *x = run->node->inputs[0];
    const int64_t planes = x->dim[0] * (x->dim[1] / x->block), step = planes_a_task(x);
    const int64_t n = cnr_span(x, 2, x->rank), b = x->block;
    const int max = strcmp(run->node->desc->name, "global_max_pool") == 0;
    (void)thread;
    for (int64_t p = i * step; p < cnr_min(planes, (i + 1) * step); p++)
        neon_uk->whole_plane(max ? NEON_WINDOW_MAX : NEON_WINDOW_SUM, neon_floats(x) + p * n * b, b,
                             n, max ? 1.0f : 1.0f / (float)n,
                             (float *)run->outputs[0]->data + p * b);
}

/* Pools all planes on the stream's threads; returns CNR_OK. */
static cnr_status global_run(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    (void)err;
    cnr_parallel(run->stream, cnr_div_up(x->dim[0] * (x->dim[1] / x->block), planes_a_task(x)),
                 some_planes, (void *)run);
    return CNR_OK;
}

/* A pooling kernel. */
#define POOL(variable, kernel_name, op_name, which, plan_fn, unplan_fn) \
    const cnr_kernel variable = {.size = sizeof(cnr_kernel), \
                                 .version = 1, \
                                 .name = kernel_name, \
                                 .op = op_name, \
                                 .device = "cpu-neon", \
                                 .accepts = which##_accepts, \
                                 .plan = plan_fn, \
                                 .plan_free = unplan_fn, \
                                 .run = which##_run}

POOL(neon_max_pool_blocked, "max_pool_f32_blocked", "max_pool", window, window_plan,
     neon_free_state);
POOL(neon_average_pool_blocked, "average_pool_f32_blocked", "average_pool", window, window_plan,
     neon_free_state);
POOL(neon_global_average_pool_blocked, "global_average_pool_f32_blocked", "global_average_pool",
     global, NULL, NULL);
POOL(neon_global_max_pool_blocked, "global_max_pool_f32_blocked", "global_max_pool", global, NULL,
     NULL);
