/* The plugin's entry: registers every operator listed in ops.inc. */
#include "ops.h"

const cnr_host *ops_host;
extern const cnr_rewrite ops_merge_transposes; /* rewrite_transpose.c */
extern const cnr_rewrite ops_einsum_to_matmul; /* rewrite_einsum.c */

static const cnr_op *const all[] = {
#define OP(name) &ops_##name,
#include "ops.inc"
#undef OP
};

static cnr_status start(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    ops_host = host;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const cnr_status status = host->add(registrar, CNR_KIND_OPERATOR, all[i]);
        if (status != CNR_OK) return status;
    }
    const cnr_status status = host->add(registrar, CNR_KIND_REWRITE, &ops_einsum_to_matmul);
    return status ? status : host->add(registrar, CNR_KIND_REWRITE, &ops_merge_transposes);
}

static const cnr_plugin plugin = {
    .size = sizeof plugin,
    .magic = CNR_PLUGIN_MAGIC,
    .abi = CNR_ABI,
    .signature = CNR_SIGNATURE,
    .name = "ops-std",
    .version = CNNRUN_VERSION,
    .summary = "the standard operators: contracts, gradients and plain C references",
    .licence = "MIT",
    .init = start,
};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
