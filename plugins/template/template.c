/* The plugin: says who it is and registers what it brings. */
#include "template.h"

const cnr_host *template_host;

/* Registers operators and kernels. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    static const cnr_item items[] = {
        {CNR_KIND_OPERATOR, &template_soft_threshold},
        {CNR_KIND_OPERATOR, &template_soft_threshold_grad},
        {CNR_KIND_OPERATOR, &template_channel_mix},
        {CNR_KIND_OPERATOR, &template_channel_mix_grad_weight},
        {CNR_KIND_KERNEL, &template_channel_mix_f32},
        {CNR_KIND_IMPORT_ROW, &template_from_onnx},
        {CNR_KIND_IMPORT_ROW, &template_from_tensorflow},
        {CNR_KIND_IMPORT_ROW, &template_from_caffe},
    };
    (void)err;
    template_host = host;
    return cnr_add_all(host, registrar, items, CNR_ROWS(items));
}

CNR_PLUGIN("template", "1.0",
           "two made-up operators, a kernel, import rows: a start for your own plugin", "MIT", init,
           CNR_TOUCHES_NOTHING)
