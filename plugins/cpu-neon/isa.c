/* Which build of the microkernels this processor can run. */
#include "neon.h"

#include <stdlib.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

typedef struct candidate {
    const neon_ukernels *kernels;
    int usable;
} candidate;

#if defined(__x86_64__)
/* Not every compiler's __builtin_cpu_supports knows the name. */
static int has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

const neon_ukernels *neon_choose_isa(void) {
    const char *wish = getenv("CNNRUN_CPU_ISA");
#if defined(__x86_64__)
    __builtin_cpu_init(); /* asks XGETBV too: the system must save the wide registers */
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    const int avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq");
    const candidate list[] = {{&neon_ukernels_avx512, avx512},
                              {&neon_ukernels_avx2, avx2},
                              {&neon_ukernels_generic, 1}};
#else
    const candidate list[] = {{&neon_ukernels_generic, 1}};
#endif
    const size_t n = sizeof list / sizeof list[0];
    for (size_t i = 0; wish && i < n; i++)
        if (list[i].usable && strcmp(list[i].kernels->name, wish) == 0) return list[i].kernels;
    for (size_t i = 0; i < n; i++)
        if (list[i].usable) return list[i].kernels;
    return &neon_ukernels_generic;
}
