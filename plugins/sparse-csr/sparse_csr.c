/* The plugin: sparse weights and the kernels that read them, their time estimates, and the
 * selection of microkernels. */
#include "sparse.h"

#include <stdlib.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__arm__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

const cnr_host *csr_host;
const csr_ukernels *csr_uk;

#if defined(__x86_64__)
/* 1: the processor converts halves (F16C), for which clang 14 has no name. */
static int has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

const csr_ukernels *csr_choose_isa(void) {
    const char *wish = getenv("CNNRUN_CPU_ISA");
    const csr_ukernels *list[3];
    int32_t n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init(); /* also checks by XGETBV that the system saves the wide registers */
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        list[n++] = &csr_ukernels_avx512;
    if (avx2) list[n++] = &csr_ukernels_avx2;
#elif defined(__arm__) && defined(__linux__)
    const unsigned long needs = HWCAP_NEON | HWCAP_VFPv4;
    if ((getauxval(AT_HWCAP) & needs) == needs) list[n++] = &csr_ukernels_neon;
#endif
    list[n++] = &csr_ukernels_generic;
    for (int32_t i = 0; wish && i < n; i++)
        if (strcmp(list[i]->name, wish) == 0) return list[i];
    return list[0];
}

/* Measured on one core of a 2023 server with AVX-512 and scaled by the vector length; for one
 * thread, like other kernels' estimates. */
static double scaled(double ns) { return ns * 16 / csr_uk->vl; }

/* Estimated nanoseconds of a product by one vector. */
double csr_vector_ns(const csr_header *h) {
    const double rows = (double)csr_blocks(h);
    return 200 + 2 * rows + scaled((double)h->entries * (h->block > 1 ? 0.6 : 0.28));
}

/* Estimated nanoseconds of a product by `columns` columns. */
double csr_tiles_ns(const csr_header *h, int64_t columns) {
    const double vectors = (double)cnr_div_up(columns, csr_uk->vl) * csr_uk->vl / 16;
    const double rows =
        (double)csr_blocks(h) * (h->block > 1 ? 12 : 5); /* start and end of a tile's */
    return 500 + scaled(vectors * ((double)h->entries * (h->block > 1 ? 1.15 : 0.55) + rows));
}

double csr_dense_ns(double macs, double bytes) {
    const double rate = bytes > 2e6 ? 15 : 50; /* from memory, or from a cache */
    const double read = bytes / rate, multiplied = scaled(macs * 0.012);
    return 500 + (read > multiplied ? read : multiplied);
}

/* Registers the encoding and its kernels. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    static const cnr_item items[] = {{CNR_KIND_ENCODING, &csr_encoding},
                                     {CNR_KIND_KERNEL, &csr_dense},
                                     {CNR_KIND_KERNEL, &csr_gemm},
                                     {CNR_KIND_KERNEL, &csr_conv}};
    (void)err;
    csr_host = host;
    csr_uk = csr_choose_isa();
    return cnr_add_all(host, registrar, items, CNR_ROWS(items));
}

CNR_PLUGIN("sparse-csr", "1.1", "pruned weights as compressed sparse rows", "MIT", init,
           CNR_TOUCHES_NOTHING)
