/* The number of cores that this process may use: from its affinity and its control group's
 * quota. */
#define _GNU_SOURCE
#include "neon.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

/* The quota of a cgroup in whole cores, at least 1; 0: there is none, or it can't be read. */
static int32_t quota_in(const char *group) {
    char path[600];
    long long limit = 0, period = 0;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    const int n = fscanf(file, "%lld %lld", &limit, &period); /* "max 100000" has no number first */
    fclose(file);
    if (n != 2 || limit <= 0 || period <= 0) return 0;
    return (int32_t)cnr_min(INT32_MAX, cnr_max(1, limit / period));
}

/* The lowest quota of our control group (v2) and its parents, in whole cores; 0: none. */
static int32_t quota(void) {
    char line[512], group[512] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "0::", 3) == 0)
            snprintf(group, sizeof group, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    if (file) fclose(file);
    for (int32_t best = 0;;) {
        const int32_t here = quota_in(group);
        if (here && (!best || here < best)) best = here;
        char *slash = strrchr(group, '/');
        if (!slash) return best;
        *slash = 0;
    }
}

/* The number of cores that this process may use, by affinity and cgroup quota; at least 1. */
int32_t neon_cores(void) {
    cpu_set_t set;
    int32_t n = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
    else if (sysconf(_SC_NPROCESSORS_ONLN) > 0) n = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    const int32_t limit = quota();
    return limit && limit < n ? limit : n;
}
