/* The plugin: quantised layers on the CPU, rewrites that create them, weights of 2 to 8 bits. */
#include "int8.h"

#include <stdlib.h>
#if (defined(__aarch64__) || defined(__arm__)) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

const cnr_host *int8_host;
const int8_ukernels *int8_uk;

enum { MOST_ISAS = 4 };

/* Lists the microkernels that this processor supports, the widest first; returns their number. */
static int32_t usable(const int8_ukernels *list[MOST_ISAS]) {
    int32_t n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init(); /* also checks that the system saves the wide registers (XGETBV) */
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vnni"))
        list[n++] = &int8_ukernels_avx512vnni;
    if (avx2) list[n++] = &int8_ukernels_avx2;
#elif defined(__aarch64__)
#if defined(__linux__)
    const int dotprod = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    if (dotprod && getauxval(AT_HWCAP2) & HWCAP2_I8MM) list[n++] = &int8_ukernels_i8mm;
    if (dotprod) list[n++] = &int8_ukernels_dotprod;
#endif
    list[n++] = &int8_ukernels_neon;
#elif defined(__arm__) && defined(__linux__)
    const unsigned long needs = HWCAP_NEON | HWCAP_VFPv4;
    if ((getauxval(AT_HWCAP) & needs) == needs) list[n++] = &int8_ukernels_neon;
#endif
    list[n++] = &int8_ukernels_generic;
    return n;
}

const int8_ukernels *int8_choose_isa(void) {
    const char *wish = getenv("CNNRUN_CPU_ISA");
    const int8_ukernels *list[MOST_ISAS];
    const int32_t n = usable(list);
    /* A prefix is enough: "avx512", as for other plugins, selects avx512vnni. */
    for (int32_t i = 0; wish && i < n; i++)
        if (strncmp(list[i]->name, wish, strlen(wish)) == 0) return list[i];
    return list[0];
}

/* Registers operators, rewrites, kernels and the encoding. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    static const cnr_item items[] = {
        {CNR_KIND_OPERATOR, &int8_qlinear_dense},
        {CNR_KIND_OPERATOR, &int8_qlinear_add},
        {CNR_KIND_OPERATOR, &int8_qlinear_mul},
        {CNR_KIND_OPERATOR, &int8_qlinear_table},
        {CNR_KIND_OPERATOR, &int8_qlinear_global_average_pool},
        {CNR_KIND_KERNEL, &int8_conv_blocked},
        {CNR_KIND_KERNEL, &int8_conv_depthwise},
        {CNR_KIND_KERNEL, &int8_conv},
        {CNR_KIND_KERNEL, &int8_dense},
        {CNR_KIND_KERNEL, &int8_dense_gemm},
        {CNR_KIND_KERNEL, &int8_conv_integer},
        {CNR_KIND_KERNEL, &int8_matmul_integer},
        {CNR_KIND_KERNEL, &int8_dynamic_quantize},
        {CNR_KIND_KERNEL, &int8_cast},
        {CNR_KIND_KERNEL, &int8_add},
        {CNR_KIND_KERNEL, &int8_mul},
        {CNR_KIND_KERNEL, &int8_table},
        {CNR_KIND_KERNEL, &int8_mean},
        {CNR_KIND_KERNEL, &int8_quantize},
        {CNR_KIND_KERNEL, &int8_dequantize},
        {CNR_KIND_KERNEL, &int8_max_pool},
        {CNR_KIND_KERNEL, &int8_concat},
        {CNR_KIND_KERNEL, &int8_packed_dense},
        {CNR_KIND_KERNEL, &int8_packed_gemm},
        {CNR_KIND_REWRITE, &int8_fold},
        {CNR_KIND_REWRITE, &int8_quantize_layers},
        {CNR_KIND_REWRITE, &int8_pass_through},
        {CNR_KIND_REWRITE, &int8_equalize},
        {CNR_KIND_ENCODING, &int8_encoding},
    };
    (void)err;
    int8_host = host;
    int8_uk = int8_choose_isa();
    return cnr_add_all(host, registrar, items, CNR_ROWS(items));
}

CNR_PLUGIN("int8", "1.0",
           "quantised layers: calibrated rewriting, exact kernels, compressed weights", "MIT", init,
           CNR_TOUCHES_NOTHING)
