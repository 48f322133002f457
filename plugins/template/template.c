/* The plugin: says who it is and registers what it brings. */
#include "template.h"

const cnr_host *template_host;

static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    static const struct {
        int32_t kind;
        const void *descriptor;
    } items[] = {
        {CNR_KIND_OPERATOR, &template_soft_threshold},
        {CNR_KIND_OPERATOR, &template_soft_threshold_grad},
        {CNR_KIND_OPERATOR, &template_channel_mix},
        {CNR_KIND_OPERATOR, &template_channel_mix_grad_weight},
        {CNR_KIND_KERNEL, &template_channel_mix_f32},
    };
    template_host = host;
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++) {
        const cnr_status status = host->add(registrar, items[i].kind, items[i].descriptor);
        if (status) return host->fail(err, status, "template", "item %zu was refused", i);
    }
    return CNR_OK;
}

static const cnr_plugin plugin = {
    .size = sizeof plugin,
    .magic = CNR_PLUGIN_MAGIC,
    .abi = CNR_ABI,
    .signature = CNR_SIGNATURE,
    .name = "template",
    .version = "1.0",
    .summary = "two made-up operators and a kernel: a start for your own plugin",
    .licence = "MIT",
    .init = init,
};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
