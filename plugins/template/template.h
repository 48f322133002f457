/* What the template's files share. */
#ifndef TEMPLATE_H
#define TEMPLATE_H

#include <cnnrun/kit.h>

extern const cnr_host *template_host;

extern const cnr_op template_soft_threshold, template_soft_threshold_grad;
extern const cnr_op template_channel_mix, template_channel_mix_grad_weight;
extern const cnr_import_row template_from_onnx, template_from_tensorflow, template_from_caffe;
extern const cnr_kernel template_channel_mix_f32;

#endif
