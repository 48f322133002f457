/* What only moves values, on channels in blocks: joined and cut along the channels, enlarged. Where
 * pieces can lie in each other, the planner leaves the step out. */
#include "blocked.h"

static int has_block(int32_t block) { return block >= cnr_min(8, neon_uk->vl) && block <= 16; }

/* ---- concat ---- */

static cnr_status concat_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *y = node->outputs[0];
    int32_t block = 0;
    (void)device;
    if (!cnr_all_plain(node, 1u << CNR_f32)) return cnr_refuse(out, NEON_WANTS_F32);
    if (y->rank < 3 || cnr_axis(cnr_attr_int(node, "axis"), y->rank) != 1)
        return cnr_refuse(out, "channels are joined otherwise");
    for (int32_t i = 0; i < node->n_inputs; i++) {
        const int32_t b = out->in_block[i];
        if (b > 1 && (!block || b < block)) block = b;
    }
    if (block < 2) return cnr_refuse(out, "channels in blocks are wanted");
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (!node->inputs[i] || node->inputs[i]->dim[1] % block)
            return cnr_refuse(out, "no block divides all inputs");
    cnr_take(node, out, 600);
    for (int32_t i = 0; i < node->n_inputs; i++) out->in_block[i] = block;
    out->out_block[0] = block;
    return CNR_OK;
}

static void one_piece(void *arg, int64_t piece, int32_t thread) {
    const cnr_run *run = arg;
    const cnr_tensor *y = run->outputs[0];
    const int64_t image = piece / run->node->n_inputs, i = piece % run->node->n_inputs;
    const int64_t plane = cnr_span(y, 2, y->rank);
    int64_t at = image * y->dim[1];
    (void)thread;
    for (int64_t k = 0; k < i; k++) at += run->node->inputs[k]->dim[1];
    const cnr_tensor *x = run->node->inputs[i];
    const int64_t n = x->dim[1] * plane;
    const float *from = neon_floats(x) + image * n;
    float *to = (float *)y->data + at * plane;
    if (from != to) memcpy(to, from, (size_t)n * sizeof *to);
}

static cnr_status concat_run(const cnr_run *run, cnr_error *err) {
    (void)err;
    cnr_parallel(run->stream, run->outputs[0]->dim[0] * run->node->n_inputs, one_piece, (void *)run);
    return CNR_OK;
}

/* ---- any operator whose outputs are channels of its input ---- */

enum { MOST_VIEWS = 16 };

/* Output `o` is whole blocks of input 0 from float *at on, of one image. */
static int is_slice(const cnr_node *node, const cnr_alias *views, int32_t n, int32_t o, int64_t block,
                    int64_t *at) {
    const cnr_tensor *x = node->inputs[0], *y = node->outputs[o];
    for (int32_t i = 0; i < n; i++) {
        if (views[i].kind != CNR_ALIAS_VIEW || views[i].output != o || views[i].input != 0) continue;
        if (x->rank != y->rank || x->dim[0] != 1 || y->dim[1] % block) return 0;
        for (int32_t a = 0; a < x->rank; a++)
            if (a != 1 && x->dim[a] != y->dim[a]) return 0;
        *at = (int64_t)views[i].offset;
        return *at % (block * cnr_span(x, 2, x->rank)) == 0;
    }
    return 0;
}

static int32_t views_of(const cnr_node *node, cnr_alias *views) {
    const int32_t n = CNR_HAS(node->desc, aliases_of)
                          ? node->desc->aliases_of(node, views, MOST_VIEWS) : 0;
    return (int32_t)cnr_min(n, MOST_VIEWS);
}

static cnr_status slice_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_alias views[MOST_VIEWS];
    const cnr_tensor *x = cnr_own_input(node, 0);
    const int32_t block = x ? out->in_block[0] : 0;
    int64_t at;
    (void)device;
    if (!has_block(block) || x->rank < 3 || x->dtype != CNR_f32 || x->flags & CNR_TENSOR_DYNAMIC)
        return cnr_refuse(out, "f32 channels in blocks are wanted");
    const int32_t n = views_of(node, views);
    for (int32_t o = 0; o < node->n_outputs; o++)
        if (!node->outputs[o] || !cnr_is_plain(node->outputs[o], 1u << CNR_f32) ||
            !is_slice(node, views, n, o, block, &at))
            return cnr_refuse(out, "whole blocks of one image are wanted");
    cnr_take(node, out, 600);
    out->in_block[0] = block;
    for (int32_t o = 0; o < node->n_outputs; o++) out->out_block[o] = block;
    return CNR_OK;
}

static cnr_status slice_run(const cnr_run *run, cnr_error *err) {
    cnr_alias views[MOST_VIEWS];
    const int32_t n = views_of(run->node, views);
    (void)err;
    for (int32_t o = 0; o < run->node->n_outputs; o++) {
        const cnr_tensor *y = run->outputs[o];
        int64_t at = 0;
        is_slice(run->node, views, n, o, cnr_max(1, y->block), &at);
        memcpy(y->data, neon_floats(run->node->inputs[0]) + at, (size_t)cnr_count(y) * sizeof(float));
    }
    return CNR_OK;
}

/* ---- resize, where each pixel becomes some by some ---- */

/* All that is given as a factor is a whole number. */
static int whole_factors(const cnr_node *node) {
    int64_t n;
    const double *given = cnr_attr_floats(node, "scales", &n);
    const cnr_tensor *scales = cnr_own_input(node, 2);
    for (int64_t i = 0; i < n; i++)
        if (given[i] != (double)(int64_t)given[i]) return 0;
    if (!scales) return 1;
    if (!cnr_is_constant(scales) || scales->dtype != CNR_f32) return 0;
    for (int64_t i = 0; i < cnr_count(scales); i++)
        if (neon_floats(scales)[i] != (float)(int64_t)neon_floats(scales)[i]) return 0;
    return 1;
}

static int repeats(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0], *y = node->outputs[0];
    const int centred = cnr_attr_is(node, "coordinate_transformation_mode", "half_pixel") &&
                        cnr_attr_is(node, "nearest_mode", "round_prefer_floor");
    const int from_left = cnr_attr_is(node, "coordinate_transformation_mode", "asymmetric") &&
                          cnr_attr_is(node, "nearest_mode", "floor");
    if (!cnr_attr_is(node, "mode", "nearest") || !(centred || from_left)) return 0;
    if (x->rank != 4 || x->dim[0] != y->dim[0] || x->dim[1] != y->dim[1]) return 0;
    for (int32_t a = 2; a < 4; a++)
        if (x->dim[a] < 1 || y->dim[a] < x->dim[a] || y->dim[a] % x->dim[a]) return 0;
    return whole_factors(node);
}

static cnr_status resize_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    const int32_t block = x ? out->in_block[0] : 0;
    (void)device;
    if (!has_block(block) || !cnr_is_plain(x, 1u << CNR_f32) ||
        !cnr_is_plain(node->outputs[0], 1u << CNR_f32) || node->n_epilogue)
        return cnr_refuse(out, "f32 channels in blocks are wanted");
    if (!repeats(node)) return cnr_refuse(out, "whole factors of the nearest pixel are wanted");
    cnr_take(node, out, 600);
    out->in_block[0] = out->out_block[0] = block;
    return CNR_OK;
}

/* Output row i of all planes. */
static void one_row(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int64_t b = cnr_max(1, y->block), high = y->dim[2], wide = y->dim[3];
    const int64_t times = wide / x->dim[3], row = i % high / (high / x->dim[2]);
    const float *from = neon_floats(x) + (i / high * x->dim[2] + row) * x->dim[3] * b;
    float *to = (float *)y->data + i * wide * b;
    (void)thread;
    for (int64_t c = 0; c < x->dim[3]; c++, from += b)
        for (int64_t k = 0; k < times; k++, to += b) memcpy(to, from, (size_t)b * sizeof *to);
}

static cnr_status resize_run(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *y = run->outputs[0];
    (void)err;
    cnr_parallel(run->stream, y->dim[0] * (y->dim[1] / cnr_max(1, y->block)) * y->dim[2], one_row,
                 (void *)run);
    return CNR_OK;
}

#define MOVE(variable, kernel_name, op_name, which)                                              \
    const cnr_kernel variable = {                                                                \
        .size = sizeof(cnr_kernel), .version = 1, .name = kernel_name, .op = op_name,            \
        .device = "cpu-neon", .accepts = which##_accepts, .run = which##_run}

MOVE(neon_concat_blocked, "concat_f32_blocked", "concat", concat);
MOVE(neon_resize_blocked, "resize_f32_blocked", "resize", resize);
MOVE(neon_slice_blocked, "slice_f32_blocked", CNR_ANY_OP, slice);
