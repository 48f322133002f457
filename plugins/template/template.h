/* Declarations shared by the template's files. */
#ifndef TEMPLATE_H
#define TEMPLATE_H

#include <cnnrun/kit.h>

extern const cnr_host *template_host;

extern const cnr_op template_soft_threshold, template_soft_threshold_grad;
extern const cnr_op template_channel_mix, template_channel_mix_grad_weight;
extern const cnr_import_row template_from_onnx, template_from_tensorflow, template_from_caffe;
extern const cnr_kernel template_channel_mix_f32;

typedef void (*template_apply_fn)(const cnr_node *node, const float *x, const float *y, float *out,
                                  int64_t n);

/* Applies `fn` to what the run asks for (CNR_OP_RANGES), all or a range on one axis. */
static inline void template_apply(const cnr_run *run, template_apply_fn fn) {
    const cnr_tensor *x = run->node->inputs[0], *y = cnr_own_input(run->node, 1);
    const cnr_pieces pieces = cnr_pieces_of(run);
    for (int64_t i = 0; i < pieces.n; i++) {
        const int64_t at = pieces.first + i * pieces.pitch;
        fn(run->node, (const float *)x->data + at, y ? (const float *)y->data + at : NULL,
           (float *)run->outputs[0]->data + at, pieces.length);
    }
}

#endif
