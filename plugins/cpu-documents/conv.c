/* conv by the loop of its definition: what CNNdroid calls sequential, and the CPU of its tables. */
#include "documents.h"

/* Takes dense f32 convolutions with windows that the documents' loops know; for others out->why
 * says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window own;
    documents_window w;
    (void)device;
    if (!cnr_all_plain(node, 1u << CNR_f32)) return cnr_refuse(out, "dense f32 is wanted");
    if (!documents_conv_window(node, &own) || !documents_window_of(&own, &w))
        return cnr_refuse(out, "two spatial axes without dilation are wanted");
    return cnr_take(node, out, 1);
}

/* Returns one output of a convolution: `channels` planes of x times as many windows of the weight,
 * summed, without bias. */
static float one(const documents_window *w, const float *x, const float *weight, int64_t channels,
                 int64_t row, int64_t column) {
    const int64_t top = row * w->stride[0] - w->pad[0], left = column * w->stride[1] - w->pad[1];
    float sum = 0.0f;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t k = 0; k < w->kernel[0]; k++)
            for (int64_t l = 0; l < w->kernel[1]; l++) {
                const int64_t i = top + k, j = left + l;
                if (i < 0 || i >= w->in[0] || j < 0 || j >= w->in[1]) continue;
                sum += x[(c * w->in[0] + i) * w->in[1] + j] *
                       weight[(c * w->kernel[0] + k) * w->kernel[1] + l];
            }
    return sum;
}

/* Computes the convolution with the documents' loops, on one thread. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1], *y = run->outputs[0];
    const cnr_tensor *bias = cnr_own_input(node, 2);
    const int64_t channels = weight->dim[1], each = weight->dim[0] / cnr_attr_int(node, "group");
    cnr_window own;
    documents_window w;
    if (!documents_conv_window(node, &own) || !documents_window_of(&own, &w))
        return documents_host->fail(err, CNR_E_STATE, node->name, "its window is not planar");
    const int64_t plane = w.in[0] * w.in[1], taps = channels * w.kernel[0] * w.kernel[1];
    float *to = (float *)y->data;
    for (int64_t n = 0; n < y->dim[0]; n++)
        for (int64_t m = 0; m < y->dim[1]; m++) {
            const float *from =
                (const float *)x->data + (n * x->dim[1] + m / each * channels) * plane;
            const float *own_weight = (const float *)weight->data + m * taps;
            const float add = bias ? ((const float *)bias->data)[m] : 0.0f;
            for (int64_t r = 0; r < w.out[0]; r++)
                for (int64_t c = 0; c < w.out[1]; c++)
                    *to++ = one(&w, from, own_weight, channels, r, c) + add;
            if (cnr_cancelled(run->stream)) return CNR_OK;
        }
    return CNR_OK;
}

DOCUMENTS_KERNEL(documents_conv, "conv_f32_naive", "conv", .accepts = accepts, .run = run);
