/* concat of bytes along channels on the CPU, on channel blocks: each input is a contiguous run of
 * the output's planes. */
#include "blocked.h"
#include "shapes.h"

/* Takes concat of bytes along channels; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *y = node->outputs[0];
    int32_t block = 0;
    (void)device;
    if (!cnr_all_plain(node, 1u << CNR_u8 | 1u << CNR_i8) || node->n_epilogue || y->rank < 3 ||
        shape_axis(cnr_attr_int(node, "axis"), y->rank) != 1)
        return cnr_refuse(out, "bytes, joined along the channels, are wanted");
    for (int32_t i = 0; i < node->n_inputs; i++) {
        const int32_t own = out->in_block[i];
        if (own > 1 && (!block || own < block)) block = own;
    }
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (!node->inputs[i] || !block || node->inputs[i]->dim[1] % block)
            return cnr_refuse(out, "channels in blocks are wanted, of which one divides all");
    cnr_take(node, out, 600);
    for (int32_t i = 0; i < node->n_inputs; i++) out->in_block[i] = block;
    out->out_block[0] = block;
    return CNR_OK;
}

/* Task index of the cnr_run `arg`: copies one input of one sample. */
static void join_one(void *arg, int64_t index, int32_t thread) {
    const cnr_run *run = arg;
    const cnr_tensor *y = run->outputs[0];
    const int64_t each = cnr_span(y, 1, y->rank), plane = cnr_span(y, 2, y->rank);
    const int32_t n = run->node->n_inputs, k = (int32_t)(index % n);
    const int64_t sample = index / n;
    int64_t before = 0;
    (void)thread;
    for (int32_t i = 0; i < k; i++) before += run->node->inputs[i]->dim[1];
    const cnr_tensor *x = run->node->inputs[k];
    const int64_t bytes = x->dim[1] * plane;
    uint8_t *to = (uint8_t *)y->data + sample * each + before * plane;
    const uint8_t *from = (const uint8_t *)x->data + sample * bytes;
    if (to != from) memcpy(to, from, (size_t)bytes);
}

/* Copies all inputs on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    (void)err;
    cnr_parallel(run->stream, run->outputs[0]->dim[0] * run->node->n_inputs, join_one, (void *)run);
    return CNR_OK;
}

const cnr_kernel int8_concat = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "concat_int8_blocked",
    .op = "concat",
    .device = "cpu",
    .accepts = accepts,
    .run = run,
};
