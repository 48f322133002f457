/* Computes how much memory work may take: a share of what this process can have. */
#include "base/base.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LINE = 4096 };

static uint64_t lesser(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The number that a file holds. UINT64_MAX if it is "max" or there is no such file. */
static uint64_t number_in(const char *path) {
    char text[64];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (n <= 0 || text[0] < '0' || text[0] > '9') return UINT64_MAX;
    text[n] = 0;
    return strtoull(text, NULL, 10);
}

/* The least limit in bytes of a control group and those around it; UINT64_MAX: none. `group` starts
 * with '/' and is cut. */
static uint64_t group_bound(const char *mount, char *group, const char *name) {
    char path[2 * LINE];
    uint64_t minimum = UINT64_MAX;
    for (;;) {
        const int n = snprintf(path, sizeof path, "%s%s/%s", mount, group, name);
        if (n > 0 && (size_t)n < sizeof path) minimum = lesser(minimum, number_in(path));
        char *slash = strrchr(group, '/');
        if (!slash) return minimum;
        *slash = 0;
    }
}

/* The memory limit of the control groups that `list` (as /proc/self/cgroup) names, below the folder
 * `mount`. Lines are "0::/group" in version 2 and "4:memory:/group" in version 1. A container may
 * see only its own groups, at the mount point itself, so that is read last whatever the path is. */
uint64_t cnri_memory_of_groups(const char *list, const char *mount) {
    char line[LINE], first[LINE];
    uint64_t minimum = UINT64_MAX;
    FILE *file = fopen(list, "re");
    if (!file) return minimum;
    snprintf(first, sizeof first, "%s/memory", mount);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        if (!names[1]) minimum = lesser(minimum, group_bound(mount, group, "memory.max"));
        else if (strcmp(names + 1, "memory") == 0)
            minimum = lesser(minimum, group_bound(first, group, "memory.limit_in_bytes"));
    }
    fclose(file);
    return minimum;
}

uint64_t cnri_memory_share(void) {
    struct rlimit space;
    uint64_t there = cnri_memory_of_groups("/proc/self/cgroup", "/sys/fs/cgroup");
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && bytes > 0) there = lesser(there, (uint64_t)pages * (uint64_t)bytes);
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        there = lesser(there, space.rlim_cur);
    return there / 4 * 3;
}

cnr_status cnri_memory_fits(uint64_t bytes, uint64_t limit, const char *where, const char *what,
                            cnr_error *err) {
    const uint64_t maximum = limit ? limit : cnri_memory_share();
    if (bytes <= maximum) return CNR_OK;
    return cnri_fail(err, CNR_E_LIMIT, where,
                     "%s: %llu bytes (%.1f MB) of memory are needed, and the limit is %llu%s", what,
                     (unsigned long long)bytes, (double)bytes / 1e6, (unsigned long long)maximum,
                     limit ? ""
                           : ", three quarters of what there is: --memory-limit and "
                             "memory_limit set another");
}
