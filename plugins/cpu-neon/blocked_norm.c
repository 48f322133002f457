/* batch_normalization with stored statistics, of values whose channels lie in blocks. */
#include "blocked.h"

#include <math.h>

enum {
    SCALE = 1,
    SHIFT,
    MEAN,
    VARIANCE,
    PIECE = 256
}; /* ports; positions that stay in the cache */

/* Plan of batch normalisation on blocked channels. */
typedef struct norm_state {
    neon_chain chain;
    int64_t block, plane, channels;
} norm_state;

/* Takes f32 batch normalisation of a blocked tensor with constant statistics; for others out->why
 * says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = cnr_own_input(node, 0), *y = node->outputs[0];
    const int32_t block = out->in_block[0];
    (void)device;
    if (!x || node->n_outputs != 1 || !neon_all_f32(node)) return cnr_refuse(out, NEON_WANTS_F32);
    if (block < cnr_min(8, neon_uk->vl) || block > 16 || y->rank < 3 || y->dim[1] % block)
        return cnr_refuse(out, "channels in blocks are wanted");
    for (int32_t i = 1; i < 5; i++) {
        const cnr_tensor *t = cnr_own_input(node, i);
        if (!t || !cnr_is_constant(t) || cnr_count(t) != y->dim[1])
            return cnr_refuse(out, "one constant number a channel is wanted");
        out->prepared |= 1u << i;
    }
    neon_blocked_take(node, out, 600, block, block);
    out->epilogue = neon_chain_accepts(node, y->rank, y->dim);
    return CNR_OK;
}

/* Bytes of scale, shift and mean of each channel. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    (void)device, (void)err;
    out->bytes = (uint64_t)node->outputs[0]->dim[1] * 3 * sizeof(float);
    return CNR_OK;
}

/* Prepares for each channel what is added first, the scale and the shift. The mean is subtracted
 * first, because a shift that contains it would lose digits. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    const int64_t channels = node->outputs[0]->dim[1];
    const double epsilon = cnr_attr_float(node, "epsilon");
    float *to = blob;
    (void)device, (void)err;
    for (int64_t c = 0; c < channels; c++, to++) {
        to[0] = -neon_floats(node->inputs[MEAN])[c];
        to[channels] = (float)(neon_floats(node->inputs[SCALE])[c] /
                               sqrt(neon_floats(node->inputs[VARIANCE])[c] + epsilon));
        to[2 * channels] = neon_floats(node->inputs[SHIFT])[c];
    }
    return CNR_OK;
}

/* Notes block, plane and the operators behind in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    const cnr_tensor *y = node->outputs[0];
    norm_state *s = cnr_state(neon_host, node, sizeof *s, err);
    (void)device, (void)workspace;
    if (!s) return CNR_E_MEMORY;
    neon_chain_plan(node, &s->chain);
    s->block = cnr_max(1, y->block);
    s->channels = y->dim[1];
    s->plane = cnr_span(y, 2, y->rank);
    *state = s;
    return CNR_OK;
}

/* Task i: normalises one block of channels of one image, with the operators behind. */
static void one_block(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const norm_state *s = run->state;
    const int64_t first = i * s->plane * s->block;
    const float *by = (const float *)run->blob_data + i % (s->channels / s->block) * s->block;
    const float *x = neon_floats(run->node->inputs[0]) + first;
    float *y = (float *)run->outputs[0]->data + first;
    (void)thread;
    for (int64_t p = 0; p < s->plane; p += PIECE) {
        const int64_t n = cnr_min(PIECE, s->plane - p), at = p * s->block;
        neon_uk->affine_block(x + at, NULL, by, s->block, n, y + at);
        neon_uk->affine_block(y + at, by + s->channels, by + 2 * s->channels, s->block, n, y + at);
        neon_chain_run(&s->chain, run->node, y + at, first + at, n * s->block);
    }
}

/* Normalises all blocks on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const norm_state *s = run->state;
    (void)err;
    cnr_parallel(run->stream, run->outputs[0]->dim[0] * (s->channels / s->block), one_block,
                 (void *)run);
    return CNR_OK;
}

const cnr_kernel neon_norm_blocked = {.size = sizeof(cnr_kernel),
                                      .version = 1,
                                      .name = "batch_normalization_f32_blocked",
                                      .op = "batch_normalization",
                                      .device = "cpu-neon",
                                      .accepts = accepts,
                                      .prepare_size = prepare_size,
                                      .prepare = prepare,
                                      .plan = plan,
                                      .plan_free = neon_free_state,
                                      .run = run};
