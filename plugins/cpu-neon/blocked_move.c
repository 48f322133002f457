/* Operators that only move values, plain or blocked: concat, split and slice along channels,
 * shuffle, nearest upscaling. Where outputs can alias inputs, the planner omits the step. */
#include "blocked.h"
#include "shapes.h"

/* Floats of each task. */
#define TASK ((int64_t)1 << 13)

static int has_block(int32_t block) { return block >= cnr_min(8, neon_uk->vl) && block <= 16; }

/* Number of tasks into which the channels of an image are cut, in whole blocks. */
static int64_t parts_of(const cnr_tensor *y) {
    const int64_t units = y->dim[1] / cnr_max(1, y->block);
    const int64_t floats = cnr_span(y, 1, y->rank);
    return cnr_max(1, cnr_min(units, floats / TASK));
}

/* Task i computes channels [*c0, *c1) of image *n. */
static void part_of(const cnr_tensor *y, int64_t i, int64_t *n, int64_t *c0, int64_t *c1) {
    const int64_t b = cnr_max(1, y->block), units = y->dim[1] / b, parts = parts_of(y),
                  k = i % parts;
    *n = i / parts;
    *c0 = k * units / parts * b;
    *c1 = (k + 1) * units / parts * b;
}

/* ---- concat ---- */

/* Takes concat along channels if all parts are whole blocks; for others out->why says why. */
static cnr_status concat_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *y = node->outputs[0];
    int32_t block = 0;
    (void)device;
    if (!cnr_all_plain(node, 1u << CNR_f32) || node->n_epilogue)
        return cnr_refuse(out, NEON_WANTS_F32);
    if (y->rank < 3 || shape_axis(cnr_attr_int(node, "axis"), y->rank) != 1)
        return cnr_refuse(out, "channels are joined otherwise");
    for (int32_t i = 0; i < node->n_inputs; i++) {
        const int32_t b = out->in_block[i];
        if (b > 1 && (!block || b < block)) block = b;
    }
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (!node->inputs[i] || (block && node->inputs[i]->dim[1] % block))
            return cnr_refuse(out, "no block divides all inputs");
    cnr_take(node, out, 600);
    for (int32_t i = 0; i < node->n_inputs; i++) out->in_block[i] = block;
    out->out_block[0] = block;
    return CNR_OK;
}

/* Task i of the cnr_run `arg`: copies a part of an input to its place. */
static void join_part(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const cnr_tensor *y = run->outputs[0];
    const int64_t plane = cnr_span(y, 2, y->rank);
    int64_t n, c0, c1, at = 0; /* at: the input's first channel in the output */
    (void)thread;
    part_of(y, i, &n, &c0, &c1);
    for (int32_t k = 0; k < run->node->n_inputs; k++) {
        const cnr_tensor *x = run->node->inputs[k];
        const int64_t from = cnr_max(c0, at), to = cnr_min(c1, at + x->dim[1]);
        const float *source = neon_floats(x) + (n * x->dim[1] + from - at) * plane;
        float *target = (float *)y->data + (n * y->dim[1] + from) * plane;
        if (from < to && source != target)
            memcpy(target, source, (size_t)((to - from) * plane) * sizeof *target);
        at += x->dim[1];
    }
}

/* Copies all inputs on the stream's threads; returns CNR_OK. */
static cnr_status concat_run(const cnr_run *run, cnr_error *err) {
    (void)err;
    cnr_parallel(run->stream, run->outputs[0]->dim[0] * parts_of(run->outputs[0]), join_part,
                 (void *)run);
    return CNR_OK;
}

/* ---- channel_shuffle ---- */

/* Takes channel_shuffle of a blocked tensor; for others out->why says why. */
static cnr_status shuffle_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    const int32_t block = out->in_block[0];
    (void)device;
    if (!x || x->rank < 3 || node->n_epilogue || !neon_all_f32(node))
        return cnr_refuse(out, NEON_WANTS_F32);
    cnr_take(node, out, 600);
    out->in_block[0] = out->out_block[0] = has_block(block) ? block : 0;
    return CNR_OK;
}

/* Task i of the cnr_run `arg`: copies its part of the shuffled channels. */
static void shuffle_part(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int64_t plane = cnr_span(y, 2, y->rank), b = cnr_max(1, y->block), channels = y->dim[1];
    const int64_t group = cnr_max(1, cnr_attr_int(run->node, "group")), each = channels / group;
    int64_t n, c0, c1;
    (void)thread;
    part_of(y, i, &n, &c0, &c1);
    for (int64_t c = c0; c < c1; c++) {
        const int64_t k = c % group * each + c / group, image = n * channels * plane;
        const float *from = neon_floats(x) + image + k / b * plane * b + k % b;
        float *to = (float *)y->data + image + c / b * plane * b + c % b;
        if (b == 1) memcpy(to, from, (size_t)plane * sizeof *to);
        else
            for (int64_t p = 0; p < plane * b; p += b) to[p] = from[p];
    }
}

/* Shuffles all channels on the stream's threads; returns CNR_OK. */
static cnr_status shuffle_run(const cnr_run *run, cnr_error *err) {
    (void)err;
    cnr_parallel(run->stream, run->outputs[0]->dim[0] * parts_of(run->outputs[0]), shuffle_part,
                 (void *)run);
    return CNR_OK;
}

/* ---- operators whose outputs are channels of their input ---- */

enum { MOST_VIEWS = 16 };

/* Whether output `o` is whole blocks of input 0, from float *at on, of one image. */
static int is_slice(const cnr_node *node, const cnr_alias *views, int32_t n, int32_t o,
                    int64_t block, int64_t *at) {
    const cnr_tensor *x = node->inputs[0], *y = node->outputs[o];
    for (int32_t i = 0; i < n; i++) {
        if (views[i].kind != CNR_ALIAS_VIEW || views[i].output != o || views[i].input != 0)
            continue;
        if (x->rank != y->rank || x->dim[0] != 1 || y->dim[1] % block) return 0;
        for (int32_t a = 0; a < x->rank; a++)
            if (a != 1 && x->dim[a] != y->dim[a]) return 0;
        *at = (int64_t)views[i].offset;
        const int64_t plane = cnr_span(x, 2, x->rank); /* 0: a size is 0 */
        return plane > 0 && *at % (block * plane) == 0;
    }
    return 0;
}

/* The operator's views of its inputs; returns how many. */
static int32_t views_of(const cnr_node *node, cnr_alias *views) {
    const int32_t n = CNR_HAS(node->desc, buffer_aliases)
                          ? node->desc->buffer_aliases(node, views, MOST_VIEWS)
                          : 0;
    return (int32_t)cnr_min(n, MOST_VIEWS);
}

/* Takes slices and splits along channels at whole blocks; for others out->why says why. */
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

/* Copies each output's channels; returns CNR_OK. */
static cnr_status slice_run(const cnr_run *run, cnr_error *err) {
    cnr_alias views[MOST_VIEWS];
    const int32_t n = views_of(run->node, views);
    (void)err;
    for (int32_t o = 0; o < run->node->n_outputs; o++) {
        const cnr_tensor *y = run->outputs[o];
        int64_t at = 0;
        is_slice(run->node, views, n, o, cnr_max(1, y->block), &at);
        memcpy(y->data, neon_floats(run->node->inputs[0]) + at,
               (size_t)cnr_count(y) * sizeof(float));
    }
    return CNR_OK;
}

/* ---- resize by integer factors ---- */

/* 1 if all given scale factors are known integers, else 0. */
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

/* 1 if nearest-neighbour resizing repeats each pixel a whole number of times. */
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

/* Takes resizing of a blocked tensor by whole factors that repeats pixels; for others out->why says
 * why. */
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

/* Task i of the cnr_run `arg`: computes output row i of all planes. */
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

/* Repeats pixels, a row of the output at a time on the stream's threads; returns CNR_OK. */
static cnr_status resize_run(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *y = run->outputs[0];
    (void)err;
    cnr_parallel(run->stream, y->dim[0] * (y->dim[1] / cnr_max(1, y->block)) * y->dim[2], one_row,
                 (void *)run);
    return CNR_OK;
}

/* A kernel that moves blocks. */
#define MOVE(variable, kernel_name, op_name, which) \
    const cnr_kernel variable = {.size = sizeof(cnr_kernel), \
                                 .version = 1, \
                                 .name = kernel_name, \
                                 .op = op_name, \
                                 .device = "cpu-neon", \
                                 .accepts = which##_accepts, \
                                 .run = which##_run}

MOVE(neon_concat, "concat_f32", "concat", concat);
MOVE(neon_channel_shuffle, "channel_shuffle_f32", "channel_shuffle", shuffle);
MOVE(neon_resize_blocked, "resize_f32_blocked", "resize", resize);
MOVE(neon_slice_blocked, "slice_f32_blocked", CNR_ANY_OP, slice);
