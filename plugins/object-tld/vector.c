/* Selects the build of the vector code for this processor. */
#include "vector.h"
#include <stdlib.h>
#include <string.h>

const tld_vectors *tld_v = &tld_vectors_generic;

void tld_vectors_choose(void) {
    const char *wish = getenv("CNNRUN_CPU_ISA");
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq");
    const tld_vectors *const list[] = {avx512 ? &tld_vectors_avx512 : NULL,
                                       avx2 ? &tld_vectors_avx2 : NULL, &tld_vectors_generic};
#else
    const tld_vectors *const list[] = {&tld_vectors_generic};
#endif
    const int n = (int)(sizeof list / sizeof list[0]);
    tld_v = NULL;
    for (int i = 0; i < n && !tld_v; i++)
        if (list[i] && (!wish || strcmp(list[i]->name, wish) == 0)) tld_v = list[i];
    for (int i = 0; i < n && !tld_v; i++) tld_v = list[i];
}
