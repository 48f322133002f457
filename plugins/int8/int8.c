/* The plugin: quantised layers on the CPU, the rewrites that make them, 8 and 4 bit weights. */
#include "int8.h"

#include <stdlib.h>

const cnr_host *int8_host;
const int8_ukernels *int8_uk;

const int8_ukernels *int8_choose_isa(void) {
    const char *wish = getenv("CNNRUN_CPU_ISA");
    const int8_ukernels *list[3];
    int32_t n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init(); /* asks XGETBV too: the system must save the wide registers */
    const int avx2 = __builtin_cpu_supports("avx2");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vnni"))
        list[n++] = &int8_ukernels_avx512vnni;
    if (avx2) list[n++] = &int8_ukernels_avx2;
#endif
    list[n++] = &int8_ukernels_generic;
    /* "avx512" names the same processors here as it does for other plugins. */
    for (int32_t i = 0; wish && i < n; i++)
        if (strncmp(list[i]->name, wish, strlen(wish)) == 0) return list[i];
    return list[0];
}

static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    const struct { int32_t kind; const void *descriptor; } brought[] = {
        {CNR_KIND_OPERATOR, &int8_qlinear_dense},
        {CNR_KIND_KERNEL, &int8_conv},
        {CNR_KIND_KERNEL, &int8_dense},
        {CNR_KIND_KERNEL, &int8_quantize},
        {CNR_KIND_KERNEL, &int8_dequantize},
        {CNR_KIND_KERNEL, &int8_max_pool},
        {CNR_KIND_REWRITE, &int8_quantize_layers},
        {CNR_KIND_REWRITE, &int8_pass_through},
        {CNR_KIND_ENCODING, &int8_encoding},
    };
    (void)err;
    int8_host = host;
    int8_uk = int8_choose_isa();
    for (size_t i = 0; i < sizeof brought / sizeof brought[0]; i++)
        INT8_TRY(host->add(registrar, brought[i].kind, brought[i].descriptor));
    return CNR_OK;
}

static const cnr_plugin plugin = {
    .size = sizeof plugin,
    .magic = CNR_PLUGIN_MAGIC,
    .abi = CNR_ABI,
    .signature = CNR_SIGNATURE,
    .name = "int8",
    .version = "1.0",
    .summary = "quantised layers: calibrated rewriting, exact kernels, compressed weights",
    .licence = "MIT",
    .init = init,
};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
