/* concat along the channels, in blocks: pieces of memory one after another. Where each input was
 * produced in its place, the planner leaves the step out. */
#include "blocked.h"

static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
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

static cnr_status run(const cnr_run *run, cnr_error *err) {
    (void)err;
    cnr_parallel(run->stream, run->outputs[0]->dim[0] * run->node->n_inputs, one_piece, (void *)run);
    return CNR_OK;
}

NEON_KERNEL(neon_concat_blocked, "concat_f32_blocked", "concat", NULL, NULL);
