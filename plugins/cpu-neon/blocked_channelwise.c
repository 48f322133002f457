/* add and mul of a blocked value by one number for each channel (squeeze-and-excite); prelu,
 * blocked or plain. */
#include "blocked.h"

/* Plan of an add, mul or prelu with one value a channel. */
typedef struct channelwise_state {
    neon_chain chain;
    neon_link_kind kind;
    int32_t prelu; /* else add or mul */
    int32_t each; /* port of the operand of the output's shape; the other has one value a channel */
    /* floats from one image to the next in the other operand; 0: the same for all images */
    int64_t step;
    int64_t block, plane, channels;
} channelwise_state;

/* Whether t has one value for each channel, for each image or for all. */
static int by_channel(const cnr_tensor *t, const cnr_tensor *y) {
    const int32_t lead = y->rank - t->rank;
    if (lead < 0 || lead > 1 || cnr_count(t) == 1 || cnr_span(t, 2 - lead, t->rank) != 1) return 0;
    return t->dim[1 - lead] == y->dim[1] && (lead || t->dim[0] == 1 || t->dim[0] == y->dim[0]);
}

/* Takes add and mul of a blocked tensor and one value a channel; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *y = node->outputs[0];
    const neon_link_kind kind = neon_link_of(node).kind;
    (void)device;
    if (kind != NEON_LINK_ADD && kind != NEON_LINK_MUL)
        return cnr_refuse(out, "add or mul is wanted");
    if (node->n_outputs != 1 || cnr_own_inputs(node) != 2 || !node->inputs[0] || !node->inputs[1] ||
        !neon_all_f32(node))
        return cnr_refuse(out, NEON_WANTS_F32);
    for (int32_t each = 0; each < 2; each++) {
        const int32_t block = out->in_block[each];
        if (block < cnr_min(8, neon_uk->vl) || block > 16 || y->rank < 3) continue;
        if (!cnr_same_shape(node->inputs[each], y) || !by_channel(node->inputs[!each], y)) continue;
        neon_blocked_take(node, out, 600, 0, block);
        out->in_block[each] = block;
        out->epilogue = neon_chain_accepts(node, y->rank, y->dim);
        return CNR_OK;
    }
    return cnr_refuse(out, "channels in blocks are wanted, and a number for each");
}

static int is_prelu(const cnr_node *node) { return strcmp(node->desc->name, "prelu") == 0; }

/* Takes prelu of a blocked tensor with a slope a channel; for others out->why says why. */
static cnr_status accepts_prelu(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *y = node->outputs[0];
    const int32_t block = out->in_block[0];
    (void)device;
    if (node->n_outputs != 1 || !node->inputs[0] || !cnr_own_input(node, 1) || !neon_all_f32(node))
        return cnr_refuse(out, NEON_WANTS_F32);
    if (y->rank < 2 || !cnr_same_shape(node->inputs[0], y) || !by_channel(node->inputs[1], y))
        return cnr_refuse(out, "a slope for each channel is wanted");
    if (block > 1 && block <= 16 && y->dim[1] % block == 0) {
        neon_blocked_take(node, out, 600, 0, block);
        out->in_block[0] = block;
    } else cnr_take(node, out, 500);
    out->epilogue = neon_chain_accepts(node, y->rank, y->dim);
    return CNR_OK;
}

/* Finds which operand has one value a channel in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    const cnr_tensor *y = node->outputs[0];
    (void)device;
    (void)workspace;
    channelwise_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    neon_chain_plan(node, &s->chain);
    s->kind = neon_link_of(node).kind;
    s->prelu = is_prelu(node);
    s->each = !s->prelu && !cnr_same_shape(node->inputs[0], y);
    const cnr_tensor *other = node->inputs[!s->each];
    s->step = other->rank == y->rank && other->dim[0] > 1 ? y->dim[1] : 0;
    s->block = cnr_max(1, y->block);
    s->channels = y->dim[1];
    s->plane = cnr_span(y, 2, y->rank);
    *state = s;
    return CNR_OK;
}

/* Floats of each task. */
#define TASK ((int64_t)1 << 15)

/* Computes plane i: one block of channels of one image. */
static void one_plane(const cnr_run *run, int64_t i) {
    const channelwise_state *s = run->state;
    const int64_t blocks = s->channels / s->block, n = s->plane * s->block, first = i * n;
    const float *by =
        neon_floats(run->node->inputs[!s->each]) + i / blocks * s->step + i % blocks * s->block;
    float *y = (float *)run->outputs[0]->data + first;
    const int mul = s->kind == NEON_LINK_MUL;
    const float *x = neon_floats(run->node->inputs[s->each]) + first;
    if (s->prelu) neon_uk->prelu_block(x, by, s->block, s->plane, y);
    else neon_uk->affine_block(x, mul ? by : NULL, mul ? NULL : by, s->block, s->plane, y);
    neon_chain_run(&s->chain, run->node, y, first, n);
}

/* Number of planes that make a task of about TASK floats; at least 1. */
static int64_t planes_a_task(const channelwise_state *s) {
    return cnr_max(1, TASK / cnr_max(1, s->plane * s->block));
}

/* Number of planes: images times blocks of channels. */
static int64_t all_planes(const cnr_run *run, const channelwise_state *s) {
    return run->outputs[0]->dim[0] * (s->channels / s->block);
}

/* Task i: computes its planes; arg is the run. */
static void some_planes(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const int64_t step = planes_a_task(run->state);
    (void)thread;
    for (int64_t p = i * step; p < cnr_min(all_planes(run, run->state), (i + 1) * step); p++)
        one_plane(run, p);
}

/* Computes all planes on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const channelwise_state *s = run->state;
    (void)err;
    cnr_parallel(run->stream, cnr_div_up(all_planes(run, s), planes_a_task(s)), some_planes,
                 (void *)run);
    return CNR_OK;
}

NEON_KERNEL(neon_channelwise_blocked, "channelwise_f32_blocked", CNR_ANY_OP, plan, neon_free_state);

const cnr_kernel neon_prelu = {.size = sizeof(cnr_kernel),
                               .version = 1,
                               .name = "prelu_f32",
                               .op = "prelu",
                               .device = "cpu-neon",
                               .accepts = accepts_prelu,
                               .plan = plan,
                               .plan_free = neon_free_state,
                               .run = run};
