/* global_average_pool. */
#include "support.h"

#include "global_average_pool.cl.h"

enum { POOL_LINE = 32 };

/* What plan keeps for run: code, epilogue, number of planes and elements of one. */
typedef struct mean_state {
    const ocl_code *code;
    ocl_chain chain;
    int64_t planes, plane, channels;
    int32_t line, group; /* group: work-items a channel; 0: channels are work-items */
} mean_state;

/* Takes f32 global average pooling; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (!cnr_own_input(node, 0) || !ocl_plain(node)) return cnr_refuse(out, OCL_WANTS_F32);
    if (node->inputs[0]->rank < 2) return cnr_refuse(out, "channels are wanted");
    cnr_take(node, out, 500);
    out->epilogue = ocl_chain_accepts(node, node->inputs[0]->rank, node->outputs[0]->dim);
    out->ranges = node->inputs[0]->dim[0] == 1 ? 1 << 0 | 1 << 1 : 1 << 0;
    return CNR_OK;
}

/* Compiles the kernel, and keeps it with what run needs in *state; fails for want of memory, or
 * where the node is not taken. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source =
        OCL_SOURCE("common/global_average_pool.cl", global_average_pool_cl);
    const cnr_tensor *x = node->inputs[0];
    ocl_plan p;
    (void)workspace;
    mean_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    s->channels = x->dim[1];
    s->planes = x->dim[0] * x->dim[1];
    s->plane = cnr_span(x, 2, x->rank);
    s->line = ocl_of(device)->tune->line;
    s->group = ocl_of(device)->tune->gemv_line > 1 && s->plane >= 16 ? POOL_LINE : 0;
    ocl_plan_chain(&p, &s->chain);
    if (s->group) ocl_plan_options(&p, "-DLINE=%d ", POOL_LINE);
    ocl_plan_code(&p, &source, s->group ? "global_average_pool_group" : "global_average_pool",
                  &s->code);
    return ocl_plan_end(&p, state);
}

/* Launches the kernel that plan compiled on the run's stream; fails if it can't be queued. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const mean_state *s = run->state;
    const int64_t each = run->range_axis == 0 ? s->channels : 1;
    const int64_t begin = run->range_axis < 0 ? 0 : run->range_begin * each;
    const int64_t end = run->range_axis < 0 ? s->planes : run->range_end * each;
    ocl_call call;
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_int(&call, s->plane);
    ocl_arg_int(&call, begin);
    ocl_arg_int(&call, end);
    ocl_chain_args(&call, &s->chain, run->node);
    if (s->group) return ocl_launch(&call, (end - begin) * s->group, 1, 1, s->group, err);
    return ocl_launch(&call, end - begin, 1, 1, s->line, err);
}

OCL_KERNEL(ocl_global_average_pool, "global_average_pool_f32", "global_average_pool",
           .accepts = accepts, .plan = plan, .run = run);
