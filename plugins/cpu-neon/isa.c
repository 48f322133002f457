/* Selects the build of the microkernels for this processor. */
#include "neon.h"

#include <stdatomic.h>
#include <stdio.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__arm__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

enum { MOST = 3 };

static atomic_int users; /* number of open devices: the build in use can't change */

#if defined(__x86_64__)
/* 1 if the processor has F16C, whose name __builtin_cpu_supports does not know in every
 * compiler. */
static int has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

int neon_multiplies_bf16(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d)) return 0;
    return neon_uk->conv_pairs && a & 1u << 5; /* AVX512_BF16 */
#else
    return 0;
#endif
}

/* list receives the functions that this processor can run, the widest first; returns how many. */
static int32_t usable(const neon_ukernels *list[MOST]) {
    int32_t n = 0;
#if defined(NEON_GENERIC_ALONE)
#elif defined(__x86_64__)
    __builtin_cpu_init(); /* also checks by XGETBV that the system saves the wide registers */
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        list[n++] = &neon_ukernels_avx512;
    if (avx2) list[n++] = &neon_ukernels_avx2;
#elif defined(__arm__) && defined(__linux__)
    const unsigned long needs = HWCAP_NEON | HWCAP_VFPv4; /* the latter includes fp16 conversion */
    if ((getauxval(AT_HWCAP) & needs) == needs) list[n++] = &neon_ukernels_neon;
#endif
    list[n++] = &neon_ukernels_generic;
    return n;
}

const neon_ukernels *neon_widest_isa(void) {
    const neon_ukernels *list[MOST];
    usable(list);
    return list[0];
}

/* Fills err: the wished instruction set is not there; lists those that are. */
static cnr_status refuse(const neon_ukernels *const *list, int32_t n, const char *wish,
                         cnr_error *err) {
    char names[64] = "";
    for (int32_t i = 0; i < n; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 list[i]->name);
    return neon_host->fail(err, CNR_E_ARG, "cpu", "no instruction set \"%s\" here: there are %s",
                           wish, names);
}

/* The kernels for the instruction set that the user wishes, or the widest that this CPU has. */
static cnr_status wanted(const neon_ukernels **out, cnr_error *err) {
    const neon_ukernels *list[MOST];
    const int32_t n = usable(list);
    const char *wish = neon_host->cpu_isa();
    int32_t i = 0;
    while (wish && i < n && strcmp(list[i]->name, wish) != 0) i++;
    if (i == n) return refuse(list, n, wish, err);
    *out = wish ? list[i] : neon_uk;
    return CNR_OK;
}

const char *neon_isa_name(void) {
    const neon_ukernels *found = neon_uk;
    if (atomic_load(&users) == 0) wanted(&found, NULL);
    return found->name;
}

cnr_status neon_wanted_isa(cnr_error *err) {
    const neon_ukernels *found = neon_uk;
    CNR_TRY(wanted(&found, err));
    if (found != neon_uk && atomic_load(&users) > 0)
        return neon_host->fail(err, CNR_E_STATE, "cpu",
                               "instruction set %s is in use by this process", neon_uk->name);
    atomic_fetch_add(&users, 1);
    neon_uk = found;
    return CNR_OK;
}

/* Counts a device off that was closed. */
void neon_isa_unused(void) { atomic_fetch_sub(&users, 1); }
