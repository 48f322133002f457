/* lrn and lrn_within: local response normalisation across channels, and around each pixel of a
 * channel. */
#include "support.h"

#include "lrn.cl.h"

/* What plan keeps for run: code, epilogue, factors alpha, beta and bias, and work-items of a
 * work-group. */
typedef struct lrn_state {
    const ocl_code *code;
    ocl_chain chain;
    double factors[3]; /* scale of the sum of squares, beta, bias */
    int32_t line;
} lrn_state;

/* Takes f32 nodes whose input 0 is given, cut along `ranges`; else out tells why not. */
static cnr_status accepts(const cnr_node *node, cnr_accept *out, uint32_t ranges) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    if (!x || !ocl_plain(node)) return cnr_refuse(out, OCL_WANTS_F32);
    cnr_take(node, out, 500);
    out->epilogue = ocl_chain_accepts(node, x->rank, x->dim);
    out->ranges = ranges;
    return CNR_OK;
}

/* Takes lrn across channels: the input has at least two axes; for others out->why says why. */
static cnr_status across_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (node->inputs[0]->rank < 2) return cnr_refuse(out, "channels are wanted");
    return accepts(node, out, 1 << 0 | 1 << 1);
}

/* Takes lrn within a channel: the input has four axes; for others out->why says why. */
static cnr_status within_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (node->inputs[0]->rank != 4) return cnr_refuse(out, "two spatial axes are wanted");
    return accepts(node, out, 1 << 0);
}

/* Finds the device code `kernel` with the node's epilogue, for `count` squares a sum; *state
 * keeps both and the factors. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, const char *kernel,
                       int64_t count, void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/lrn.cl", lrn_cl);
    ocl_plan p;
    lrn_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    s->factors[0] = cnr_attr_float(node, "alpha") / (double)count;
    s->factors[1] = cnr_attr_float(node, "beta");
    s->factors[2] = cnr_attr_float(node, "bias");
    s->line = ocl_of(device)->tune->line;
    ocl_plan_chain(&p, &s->chain);
    if (s->factors[1] == 0.75) ocl_plan_options(&p, "-DTHREE_QUARTERS ");
    ocl_plan_code(&p, &source, kernel, &s->code);
    return ocl_plan_end(&p, state);
}

OCL_PLAN(across_plan,
         ((void)workspace, plan(device, node, "lrn", cnr_attr_int(node, "size"), state, err)))

/* Method plan of within: finds the device code and keeps what run needs in *state. */
static cnr_status within_plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                              void **state, cnr_error *err) {
    const int64_t size = cnr_attr_int(node, "size");
    (void)workspace;
    return plan(device, node, "lrn_within", size * size, state, err);
}

/* Begins a call of the planned code: its tensors, shape and factors. */
static void begin(ocl_call *call, const cnr_run *run, const int64_t shape[8]) {
    const lrn_state *s = run->state;
    const union {
        cl_float f[4];
        cl_int i[4];
    } factors = {{(cl_float)s->factors[0], (cl_float)s->factors[1], (cl_float)s->factors[2], 0}};
    ocl_begin(call, run->stream, s->code);
    ocl_arg_buffer(call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(call, &run->outputs[0]->mem);
    ocl_arg_longs(call, shape, 8);
    ocl_arg_ints(call, factors.i, 4);
    ocl_chain_args(call, &s->chain, run->node);
}

/* Method run of across: queues the code over the run's range on its stream. */
static cnr_status across_run(const cnr_run *run, cnr_error *err) {
    const lrn_state *s = run->state;
    const cnr_tensor *x = run->node->inputs[0];
    const int64_t size = cnr_attr_int(run->node, "size"), inner = cnr_span(x, 2, x->rank);
    int64_t from[2] = {0, 0}, to[2] = {x->dim[0], x->dim[1]};
    ocl_call call;
    if (run->range_axis >= 0) {
        from[run->range_axis] = run->range_begin;
        to[run->range_axis] = run->range_end;
    }
    begin(&call, run,
          (int64_t[8]){inner, x->dim[1], (size - 1) / 2, size / 2, from[1], from[0], 0, 0});
    return ocl_launch(&call, inner, to[1] - from[1], to[0] - from[0], s->line, err);
}

/* Method run of within: queues the code over the run's range on its stream. */
static cnr_status within_run(const cnr_run *run, cnr_error *err) {
    const lrn_state *s = run->state;
    const cnr_tensor *x = run->node->inputs[0];
    const int64_t each = cnr_span(x, 1, x->rank);
    const int64_t from = run->range_axis < 0 ? 0 : run->range_begin * each;
    const int64_t to = run->range_axis < 0 ? cnr_count(x) : run->range_end * each;
    ocl_call call;
    begin(&call, run,
          (int64_t[8]){x->dim[2], x->dim[3], cnr_attr_int(run->node, "size") / 2, from, to});
    return ocl_launch(&call, to - from, 1, 1, s->line, err);
}

/* Registers one kernel of `operator`, with the hooks of `way`: across or within. */
#define LRN(id, kernel, operator, way) \
    OCL_KERNEL(id, kernel, operator, .accepts = way##_accepts, .plan = way##_plan, .run = way##_run)
LRN(ocl_lrn, "lrn_f32", "lrn", across);
LRN(ocl_lrn_within, "lrn_within_f32", "lrn_within", within);
