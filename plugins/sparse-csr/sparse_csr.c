/* The plugin: sparse weights and the kernels that read them. */
#include "csr.h"

const cnr_host *csr_host;

static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    csr_host = host;
    cnr_status status = host->add(registrar, CNR_KIND_ENCODING, &csr_encoding);
    if (!status) status = host->add(registrar, CNR_KIND_KERNEL, &csr_dense_f32);
    return status;
}

static const cnr_plugin plugin = {
    .size = sizeof plugin,
    .magic = CNR_PLUGIN_MAGIC,
    .abi = CNR_ABI,
    .signature = CNR_SIGNATURE,
    .name = "sparse-csr",
    .version = "1.0",
    .summary = "pruned weights as compressed sparse rows",
    .licence = "MIT",
    .init = init,
};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
