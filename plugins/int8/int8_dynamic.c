/* Operators around integer products on the CPU: dynamic_quantize_linear, and cast from i32 to
 * f32. */
#include "int8.h"

#include <float.h>
#include <math.h>

enum { CHUNK = 16384, LANES = 16 };

/* ---- dynamic_quantize_linear ---- */

static int64_t chunks_of(const cnr_tensor *t) { return cnr_div_up(cnr_count(t), CHUNK); }

/* Takes dynamic_quantize_linear of f32; for others out->why says why. */
static cnr_status dynamic_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (!cnr_is_plain(node->inputs[0], 1u << CNR_f32) || node->n_outputs != 3)
        return cnr_refuse(out, "f32 is wanted");
    return cnr_take(node, out, 300);
}

/* Sets the workspace to room for the smallest and largest number of each chunk. */
static cnr_status dynamic_plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                               void **state, cnr_error *err) {
    (void)device;
    (void)state;
    (void)err;
    workspace->alignment = 64;
    workspace->bytes = (uint64_t)(2 * cnr_max(1, chunks_of(node->inputs[0]))) * sizeof(float);
    return CNR_OK;
}

/* Task index of the cnr_run `arg`: minimum and maximum of a chunk and 0; NaN is ignored. */
static void limits_of_chunk(void *arg, int64_t index, int32_t thread) {
    const cnr_run *run = arg;
    const float *x = (const float *)run->node->inputs[0]->data + index * CHUNK;
    const int64_t n = cnr_min(CHUNK, cnr_count(run->node->inputs[0]) - index * CHUNK);
    float low[LANES] = {0}, high[LANES] = {0}, *to = (float *)run->workspace_data + 2 * index;
    int64_t i = 0;
    (void)thread;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            low[k] = x[i + k] < low[k] ? x[i + k] : low[k];
            high[k] = x[i + k] > high[k] ? x[i + k] : high[k];
        }
    for (; i < n; i++) {
        low[0] = x[i] < low[0] ? x[i] : low[0];
        high[0] = x[i] > high[0] ? x[i] : high[0];
    }
    to[0] = low[0];
    to[1] = high[0];
    for (int k = 1; k < LANES; k++) {
        to[0] = low[k] < to[0] ? low[k] : to[0];
        to[1] = high[k] > to[1] ? high[k] : to[1];
    }
}

/* Arguments of the tasks that quantise. */
typedef struct dynamic_job {
    const cnr_run *run;
    float scale, zero;
} dynamic_job;

static uint8_t stored(float v) { return (uint8_t)(v > 255 ? 255 : v >= 0 ? v : 0); }

/* Task index of the dynamic_job `arg`: quantises one chunk. */
static void quantize_chunk(void *arg, int64_t index, int32_t thread) {
    const dynamic_job *j = arg;
    const cnr_tensor *t = j->run->node->inputs[0];
    const float *x = (const float *)t->data + index * CHUNK;
    const int64_t n = cnr_min(CHUNK, cnr_count(t) - index * CHUNK);
    uint8_t *y = (uint8_t *)j->run->outputs[0]->data + index * CHUNK;
    (void)thread;
    if (j->scale >= 2 * FLT_MIN && j->scale <= FLT_MAX)
        int8_uk->quantize(x, n, j->scale, -j->zero, 255 - j->zero, (int32_t)j->zero, y);
    else
        for (int64_t i = 0; i < n; i++) y[i] = stored(rintf(x[i] / j->scale) + j->zero);
}

/* Finds the limits of x by chunks, derives scale and zero point (outputs 1 and 2), then quantises x
 * into output 0. */
static cnr_status dynamic_run(const cnr_run *run, cnr_error *err) {
    const int64_t chunks = chunks_of(run->node->inputs[0]);
    const float *limit = run->workspace_data;
    float low = 0, high = 0;
    (void)err;
    cnr_parallel(run->stream, chunks, limits_of_chunk, (void *)run);
    for (int64_t i = 0; i < chunks; i++) {
        low = limit[2 * i] < low ? limit[2 * i] : low;
        high = limit[2 * i + 1] > high ? limit[2 * i + 1] : high;
    }
    dynamic_job j = {.run = run, .scale = high == low ? 1 : (high - low) / 255};
    j.zero = (float)stored(rintf(-low / j.scale));
    cnr_parallel(run->stream, chunks, quantize_chunk, &j);
    *(float *)run->outputs[1]->data = j.scale;
    *(uint8_t *)run->outputs[2]->data = (uint8_t)j.zero;
    return CNR_OK;
}

/* ---- cast ---- */

/* Takes casts from i32 to f32; for others out->why says why. */
static cnr_status cast_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (!cnr_is_plain(node->inputs[0], 1u << CNR_i32) ||
        !cnr_is_plain(node->outputs[0], 1u << CNR_f32))
        return cnr_refuse(out, "i32 to f32 is wanted");
    return cnr_take(node, out, 300);
}

/* Task index of the cnr_run `arg`: casts one chunk. */
static void cast_chunk(void *arg, int64_t index, int32_t thread) {
    const cnr_run *run = arg;
    const int64_t at = index * CHUNK, n = cnr_min(CHUNK, cnr_count(run->outputs[0]) - at);
    const int32_t *x = (const int32_t *)run->node->inputs[0]->data + at;
    float *y = (float *)run->outputs[0]->data + at;
    int64_t i = 0;
    (void)thread;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) y[i + k] = (float)x[i + k];
    for (; i < n; i++) y[i] = (float)x[i];
}

/* Casts everything on the stream's threads; returns CNR_OK. */
static cnr_status cast_run(const cnr_run *run, cnr_error *err) {
    (void)err;
    cnr_parallel(run->stream, chunks_of(run->outputs[0]), cast_chunk, (void *)run);
    return CNR_OK;
}

const cnr_kernel int8_dynamic_quantize = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "dynamic_quantize_linear_int8",
    .op = "dynamic_quantize_linear",
    .device = "cpu",
    .accepts = dynamic_accepts,
    .plan = dynamic_plan,
    .run = dynamic_run,
};
const cnr_kernel int8_cast = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "cast_i32_f32",
    .op = "cast",
    .device = "cpu",
    .accepts = cast_accepts,
    .run = cast_run,
};
