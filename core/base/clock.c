/* The clock, and how many processors this process may use. */
#define _GNU_SOURCE
#include "core/base/base.h"
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t cnri_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Processors that a control group's quota amounts to, rounded up; 0: no quota here. */
static int64_t quota_in(const char *directory) {
    char path[600], line[128], quota[64], period[64];
    int64_t q, p;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", directory);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    const bool good = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    if (!good || sscanf(line, "%63s %63s", quota, period) != 2) return 0;
    if (!cnri_parse_int(quota, &q) || !cnri_parse_int(period, &p) || p <= 0 || q <= 0) return 0;
    return q / p + (q % p != 0);
}

/* The tightest quota of our control group (v2) and of those above it; 0: none. */
static int64_t cgroup_quota(void) {
    char line[512], group[512] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "0::", 3) == 0) snprintf(group, sizeof group, "%.*s",
                                                   (int)strcspn(line + 3, "\n"), line + 3);
    fclose(file);
    int64_t best = 0;
    for (;;) {
        const int64_t here = quota_in(group);
        if (here && (!best || here < best)) best = here;
        char *slash = strrchr(group, '/');
        if (!slash) return best;
        *slash = 0;
    }
}

int32_t cnri_cores(void) {
    cpu_set_t set;
    int64_t n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    if (n < 1) n = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than a cpu_set_t holds */
    const int64_t quota = cgroup_quota();
    if (quota && quota < n) n = quota;
    return n < 1 ? 1 : (int32_t)n;
}
