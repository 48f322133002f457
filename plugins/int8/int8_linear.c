/* quantize_linear and dequantize_linear with one scale on the CPU, in chunks. */
#include "int8.h"
#include <float.h>
#include <math.h>

enum { CHUNK = 16384, REAL = 1u << CNR_f32, BYTES = 1u << CNR_u8 | 1u << CNR_i8 };

/* Plan: scale, zero point and limits. */
typedef struct linear_state {
    float scale, low, high;
    int32_t zero, is_signed, quantizes;
} linear_state;

/* Whether flushing denormals, in the scale or in x, makes no difference: x / scale of a denormal x
 * is below one half. Other scales are left to the reference. */
static int is_plain_scale(const cnr_tensor *scale) {
    return fabsf(*(const float *)scale->data) >= 2 * FLT_MIN;
}

/* 1 if `real` is f32, `small` is u8 or i8, and scale and zero point have forms that the kernels
 * take. */
static int fits(const cnr_node *node, const cnr_tensor *real, const cnr_tensor *small) {
    const cnr_tensor *zero = cnr_own_input(node, 2);
    return real->dtype == CNR_f32 && int8_is_byte(small) && !node->inputs[0]->encoding &&
           int8_is_scalar(node->inputs[1], REAL) && is_plain_scale(node->inputs[1]) &&
           cnr_attr_int(node, "block_size") == 0 &&
           (!zero || (int8_is_scalar(zero, BYTES) && zero->dtype == small->dtype));
}

/* Takes nodes between f32 and bytes with one constant scale; for others out->why says why. */
static cnr_status answer(const cnr_node *node, const cnr_tensor *real, const cnr_tensor *small,
                         cnr_accept *out) {
    if (!fits(node, real, small))
        return cnr_refuse(out, "f32, bytes and one scale that is no denormal are wanted");
    const int32_t block = out->in_block[0]; /* with one scale, any layout of the elements will do */
    cnr_take(node, out, 300);
    out->in_block[0] = out->out_block[0] = block > 1 ? block : 0;
    out->prepared = 1u << 1 | (cnr_own_input(node, 2) ? 1u << 2 : 0);
    return CNR_OK;
}

/* Takes quantize_linear. */
static cnr_status quantize_accepts(const cnr_device *device, const cnr_node *node,
                                   cnr_accept *out) {
    (void)device;
    return answer(node, node->inputs[0], node->outputs[0], out);
}

/* Takes dequantize_linear. */
static cnr_status dequantize_accepts(const cnr_device *device, const cnr_node *node,
                                     cnr_accept *out) {
    (void)device;
    return answer(node, node->outputs[0], node->inputs[0], out);
}

/* Allocates a state with scale, zero point and limits of the bytes. Fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    const cnr_tensor *zero = cnr_own_input(node, 2);
    const int quantizes = node->outputs[0]->dtype != CNR_f32;
    const int32_t small = (quantizes ? node->outputs : node->inputs)[0]->dtype;
    (void)device;
    (void)workspace;
    linear_state *s = cnr_state(int8_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    *s = (linear_state){.scale = *(const float *)node->inputs[1]->data,
                        .zero = zero ? int8_byte_at(zero, 0) : 0,
                        .is_signed = small == CNR_i8,
                        .quantizes = quantizes};
    int8_bounds(small, s->zero, &s->low, &s->high);
    *state = s;
    return CNR_OK;
}

/* Task i of the cnr_run `arg`: converts CHUNK elements, or the rest, from index i * CHUNK on. */
static void one_chunk(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const linear_state *s = run->state;
    const int64_t at = i * CHUNK, n = cnr_min(CHUNK, cnr_count(run->outputs[0]) - at);
    const void *x = run->node->inputs[0]->data;
    void *y = run->outputs[0]->data;
    (void)thread;
    if (s->quantizes)
        int8_uk->quantize((const float *)x + at, n, s->scale, s->low, s->high, s->zero,
                          (uint8_t *)y + at);
    else
        int8_uk->dequantize((const uint8_t *)x + at, n, s->is_signed, s->zero, s->scale,
                            (float *)y + at);
}

/* Converts everything on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    (void)err;
    cnr_parallel(run->stream, cnr_div_up(cnr_count(run->outputs[0]), CHUNK), one_chunk,
                 (void *)run);
    return CNR_OK;
}

/* Defines the kernel int8_WAY, named `kernel`, of the operator WAY_linear. */
#define LINEAR(way, kernel) \
    const cnr_kernel int8_##way = {.size = sizeof(cnr_kernel), \
                                   .version = 1, \
                                   .name = kernel, \
                                   .op = #way "_linear", \
                                   .device = "cpu", \
                                   .accepts = way##_accepts, \
                                   .plan = plan, \
                                   .plan_free = int8_free_state, \
                                   .run = run}
LINEAR(quantize, "quantize_linear_f32_int8");
LINEAR(dequantize, "dequantize_linear_int8_f32");
