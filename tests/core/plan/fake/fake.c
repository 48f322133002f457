/* The plugin's entry. */
#include "fake.h"

const cnr_host *fake_host;

/* Registers devices, operators and kernels. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *r, cnr_error *err) {
    (void)err;
    fake_host = host;
    cnr_status status = host->add(r, CNR_KIND_DEVICE, &fake_near);
    if (!status) status = host->add(r, CNR_KIND_DEVICE, &fake_far);
    if (!status) status = host->add(r, CNR_KIND_ENCODING, &fake_halves);
    for (int32_t i = 0; i < fake_n_ops && !status; i++)
        status = host->add(r, CNR_KIND_OPERATOR, &fake_ops[i]);
    for (int32_t i = 0; i < fake_n_kernels && !status; i++)
        status = host->add(r, CNR_KIND_KERNEL, &fake_kernels[i]);
    return status;
}

static const cnr_plugin plugin = {.size = sizeof(cnr_plugin),
                                  .magic = CNR_PLUGIN_MAGIC,
                                  .abi = CNR_ABI,
                                  .signature = CNR_SIGNATURE,
                                  .name = "fake",
                                  .version = "1",
                                  .summary = "for tests of planning",
                                  .licence = "MIT",
                                  .init = init};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
