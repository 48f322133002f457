/* grid_sample of planes, linear. */
#include "support.h"

#include "grid_sample.cl.h"

/* What plan keeps for run: the code, and work-items of a work-group. */
typedef struct grid_state {
    const ocl_code *code;
    int32_t line;
} grid_state;

/* Why a node is not taken; NULL: it is. */
static const char *unfit(const cnr_node *node) {
    const cnr_tensor *x = cnr_own_input(node, 0), *grid = cnr_own_input(node, 1);
    if (!x || !grid || x->rank != 4 || !ocl_plain(node)) return "dense f32 planes are wanted";
    if (!cnr_attr_is(node, "mode", "linear") && !cnr_attr_is(node, "mode", "bilinear"))
        return "only linear sampling"; /* a rounding decides which element is nearest */
    return cnr_attr_is(node, "padding_mode", "reflection") ? "no reflections" : NULL;
}

/* Takes f32 grid_sample. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const char *why = unfit(node);
    (void)device;
    return why ? cnr_refuse(out, why) : cnr_take(node, out, 500);
}

/* Compiles the kernel for the modes, and keeps it with what run needs in *state; fails for want of
 * memory, or where the node is not taken. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/grid_sample.cl", grid_sample_cl);
    ocl_plan p;
    (void)workspace;
    grid_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_plan_unless(&p, unfit(node));
    s->line = ocl_of(device)->tune->line;
    if (!cnr_attr_is(node, "padding_mode", "border")) ocl_plan_options(&p, "-DZEROS ");
    if (cnr_attr_int(node, "align_corners") != 0) ocl_plan_options(&p, "-DALIGN ");
    ocl_plan_code(&p, &source, "grid_sample", &s->code);
    return ocl_plan_end(&p, state);
}

/* Launches the kernel that plan compiled on the run's stream; fails if it can't be queued. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const grid_state *s = run->state;
    const cnr_tensor *x = run->node->inputs[0], *grid = run->node->inputs[1];
    const int64_t points = cnr_span(grid, 1, 3);
    const int64_t in[4] = {x->dim[2], x->dim[3], x->dim[1], points};
    ocl_call call;
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &x->mem);
    ocl_arg_buffer(&call, &grid->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, in, 4);
    return ocl_launch(&call, points, x->dim[1], x->dim[0], s->line, err);
}

OCL_KERNEL(ocl_grid_sample, "grid_sample_f32", "grid_sample", .accepts = accepts, .plan = plan,
           .run = run);
