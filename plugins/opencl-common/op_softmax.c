/* softmax along any axis. */
#include "support.h"

#include "softmax.cl.h"
#include "shapes.h"

enum { SOFTMAX_LINE = 128 };

/* What plan keeps for run: code, and lanes, elements along the axis, their step, and elements
 * behind it. */
typedef struct softmax_state {
    const ocl_code *code;
    int64_t lanes, n, step, each; /* each: lanes of one index of axis 0 */
    int32_t line, group;          /* group: work-items a lane; 0: lanes are work-items */
} softmax_state;

/* The axis over which the node's softmax is taken, from 0. */
static int32_t axis_of(const cnr_node *node) {
    return shape_axis(cnr_attr_int(node, "axis"), node->inputs[0]->rank);
}

/* Takes f32 softmax with input 0 given; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (!cnr_own_input(node, 0) || !ocl_plain(node)) return cnr_refuse(out, OCL_WANTS_F32);
    const int32_t axis = axis_of(node);
    if (axis < 0) return cnr_refuse(out, "the axis is none of x");
    cnr_take(node, out, 500);
    if (axis > 0) out->ranges = 1 << 0;
    return CNR_OK;
}

/* Method plan: finds the device code and keeps what run needs in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/softmax.cl", softmax_cl);
    const cnr_tensor *x = node->inputs[0];
    const int32_t axis = axis_of(node);
    ocl_plan p;
    (void)workspace;
    softmax_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    s->n = x->dim[axis];
    s->step = cnr_span(x, axis + 1, x->rank);
    s->lanes = cnr_span(x, 0, axis) * s->step;
    s->each = x->dim[0] > 0 ? s->lanes / x->dim[0] : 0;
    s->line = ocl_of(device)->tune->line;
    s->group = ocl_of(device)->tune->gemv_line > 1 && s->n >= 64 ? SOFTMAX_LINE : 0;
    if (s->group) ocl_plan_options(&p, "-DLINE=%d ", SOFTMAX_LINE);
    ocl_plan_code(&p, &source, s->group ? "softmax_group" : "softmax", &s->code);
    return ocl_plan_end(&p, state);
}

/* Method run: queues the code over the run's range on its stream. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const softmax_state *s = run->state;
    const int64_t begin = run->range_axis < 0 ? 0 : run->range_begin * s->each;
    const int64_t end = run->range_axis < 0 ? s->lanes : run->range_end * s->each;
    ocl_call call;
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_int(&call, s->n);
    ocl_arg_int(&call, s->step);
    ocl_arg_int(&call, begin);
    ocl_arg_int(&call, end);
    if (s->group) return ocl_launch(&call, (end - begin) * s->group, 1, 1, s->group, err);
    return ocl_launch(&call, end - begin, 1, 1, s->line, err);
}

OCL_KERNEL(ocl_softmax, "softmax_f32", "softmax", .accepts = accepts, .plan = plan, .run = run);
