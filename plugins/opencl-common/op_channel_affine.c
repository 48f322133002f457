/* Operators that scale and shift each channel, as their descriptor says: batch normalisation,
 * scales. */
#include "support.h"

#include "channel_affine.cl.h"

/* Plan of scale and shift by channel. */
typedef struct affine_state {
    const ocl_code *code;
    ocl_chain chain;
    int64_t channels, inner, count, each;
    int32_t line;
} affine_state;

static int64_t channels_of(const cnr_tensor *x) { return x->rank > 1 ? x->dim[1] : 1; }

/* Room for the hook's answer, which says whether it is affine only once it has filled it. */
static int is_affine(const cnr_node *node) {
    const int64_t channels = channels_of(node->inputs[0]);
    float *room = ocl_host->alloc((size_t)channels * 2 * sizeof *room);
    const int good = room && node->desc->channel_affine(node, channels, room, room + channels);
    ocl_host->free(room);
    return good;
}

/* Takes operators that are scale and shift by channel; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    const int32_t own = cnr_own_inputs(node);
    (void)device;
    if (!x || !ocl_plain(node)) return cnr_refuse(out, OCL_WANTS_F32);
    if (!CNR_HAS(node->desc, channel_affine) || x->rank < 2 ||
        !cnr_same_shape(x, node->outputs[0]) || !ocl_rest_is_constant(node) || !is_affine(node))
        return cnr_refuse(out, "a constant factor and shift a channel are wanted");
    cnr_take(node, out, 400);
    out->epilogue = ocl_chain_accepts(node, x->rank, x->dim);
    out->ranges = x->dim[0] == 1 ? 1 << 0 | 1 << 1 : 1 << 0;
    for (int32_t i = 1; i < own; i++)
        if (node->inputs[i]) out->prepared |= 1u << i;
    return CNR_OK;
}

/* Sets out->bytes to those of scale and shift of all channels. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    (void)device, (void)err;
    out->bytes = (uint64_t)channels_of(node->inputs[0]) * 2 * sizeof(float);
    return CNR_OK;
}

/* Fills blob with each channel's scale, then each shift, as the operator tells them; fails where it
 * does not. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    const int64_t channels = channels_of(node->inputs[0]);
    (void)device;
    if (node->desc->channel_affine(node, channels, blob, (float *)blob + channels)) return CNR_OK;
    return ocl_host->fail(err, CNR_E_STATE, node->name, "is no longer a factor and a shift");
}

/* Compiles the kernel, and keeps it with what run needs in *state; fails for want of memory, or
 * where the node is not taken. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/channel_affine.cl", channel_affine_cl);
    const cnr_tensor *x = node->inputs[0];
    ocl_plan p;
    (void)workspace;
    affine_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    s->channels = channels_of(x);
    s->inner = cnr_span(x, 2, x->rank);
    s->count = cnr_count(x);
    s->each = cnr_span(x, 1, x->rank);
    s->line = ocl_of(device)->tune->line;
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_code(&p, &source, "channel_affine", &s->code);
    return ocl_plan_end(&p, state);
}

/* Launches it for the run's channels. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const affine_state *s = run->state;
    const int64_t each = run->range_axis == 0 ? s->each : s->inner;
    const int64_t begin = run->range_axis < 0 ? 0 : run->range_begin * each;
    const int64_t end = run->range_axis < 0 ? s->count : run->range_end * each;
    ocl_call call;
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_int(&call, s->inner);
    ocl_arg_int(&call, s->channels);
    ocl_arg_int(&call, begin);
    ocl_arg_int(&call, end);
    ocl_chain_args(&call, &s->chain, run->node);
    return ocl_launch(&call, end - begin, 1, 1, s->line, err);
}

OCL_KERNEL(ocl_channel_affine, "channel_affine_f32", CNR_ANY_OP, .accepts = accepts,
           .prepare_size = prepare_size, .prepare = prepare, .plan = plan, .run = run);
