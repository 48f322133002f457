/* max_pool by W18's algorithm 3.5, relu by its algorithm 3.6. */
#include "documents.h"

#include <math.h>

/* Takes dense f32 pooling without indices; for others out->why says why. */
static cnr_status accepts_pool(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window own;
    documents_window w;
    (void)device;
    if (node->n_outputs > 1 && node->outputs[1]) return cnr_refuse(out, "it is asked for indices");
    if (!cnr_all_plain(node, 1u << CNR_f32)) return cnr_refuse(out, "dense f32 is wanted");
    if (documents_host->window_resolve(node, node->inputs[0], NULL, &own) ||
        !documents_window_of(&own, &w))
        return cnr_refuse(out, "two spatial axes without dilation are wanted");
    return cnr_take(node, out, 1);
}

/* Returns the largest number in a window that is clipped to the picture; NaN wins, which the thesis
 * leaves open. */
static float largest(const documents_window *w, const float *x, int64_t row, int64_t column) {
    const int64_t top = row * w->stride[0] - w->pad[0], left = column * w->stride[1] - w->pad[1];
    const int64_t row_end = cnr_min(top + w->kernel[0], w->in[0]);
    const int64_t column_end = cnr_min(left + w->kernel[1], w->in[1]);
    float most = -INFINITY;
    for (int64_t i = cnr_max(top, 0); i < row_end; i++)
        for (int64_t j = cnr_max(left, 0); j < column_end; j++) {
            const float value = x[i * w->in[1] + j];
            if (value > most || value != value) most = value;
        }
    return most;
}

/* Computes pooling with the documents' loops. */
static cnr_status run_pool(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const float *channel = (const float *)x->data;
    float *to = (float *)run->outputs[0]->data;
    cnr_window own;
    documents_window w;
    const char *why = documents_host->window_resolve(run->node, x, NULL, &own);
    if (why || !documents_window_of(&own, &w))
        return documents_host->fail(err, CNR_E_STATE, run->node->name, "its window is not planar");
    for (int64_t i = 0; i < x->dim[0] * x->dim[1]; i++, channel += w.in[0] * w.in[1])
        for (int64_t r = 0; r < w.out[0]; r++)
            for (int64_t c = 0; c < w.out[1]; c++) *to++ = largest(&w, channel, r, c);
    return CNR_OK;
}

/* Takes dense f32 nodes. */
static cnr_status accepts_relu(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    return documents_accept_plain(node, out);
}

/* Computes max(x, 0), one element after another; returns CNR_OK. */
static cnr_status run_relu(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const float *from = (const float *)x->data;
    float *to = (float *)run->outputs[0]->data;
    const int64_t n = cnr_count(x);
    (void)err;
    for (int64_t i = 0; i < n; i++) to[i] = from[i] < 0 ? 0.0f : from[i];
    return CNR_OK;
}

DOCUMENTS_KERNEL(documents_max_pool, "max_pool_f32_w18", "max_pool", .accepts = accepts_pool,
                 .run = run_pool);
DOCUMENTS_KERNEL(documents_relu, "relu_f32_w18", "relu", .accepts = accepts_relu, .run = run_relu);
