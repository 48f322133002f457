/* The bound of control groups: the least of a group and those around it, in both versions. */
#include "base/base.h"
#include "tests/tap.h"
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/cnnrun-budget-XXXXXX";

/* Writes a file into the test's folder; returns its path. */
static const char *put(const char *name, const char *text) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (f) fputs(text, f);
    if (f) fclose(f);
    return path;
}

/* Makes a folder in the test's folder. */
static void make(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    mkdir(path, 0700);
}

/* A test: the bound that the group's files give. */
static void is_bound(const char *list, uint64_t want, const char *what) {
    const uint64_t got = cnri_memory_of_groups(put("list", list), folder);
    if (!ok(got == want, "%s", what)) note("%llu", (unsigned long long)got);
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    make("a"), make("a/b"), make("memory"), make("memory/c");
    put("a/memory.max", "5000\n");
    put("a/b/memory.max", "max\n");
    put("memory/c/memory.limit_in_bytes", "700\n");
    is_bound("0::/a/b\n", 5000, "the group around it bounds it");
    is_bound("12:cpu:/a\n4:memory:/c\n", 700, "version 1");
    is_bound("0::/none\n", UINT64_MAX, "no group, no bound");
    put("memory.max", "60\n");
    is_bound("0::/none\n", 60, "a container's own, at the mount");
    is_bound("0::/\n", 60, "and where the path is the root");
    is_bound("junk\n:\n::\n0::\n", 60, "lines that say little");
    ok(cnri_memory_of_groups("/nonexistent/list", folder) == UINT64_MAX, "no list, no bound");
    ok(cnri_memory_share() > 1 << 20 && cnri_memory_share() < UINT64_MAX / 2, "a share there is");
    cnr_error err = CNR_ERROR_INIT;
    ok(!cnri_memory_fits(60, 60, "here", "it", &err), "all of the limit");
    ok(cnri_memory_fits(61, 60, "here", "it", &err) == CNR_E_LIMIT &&
           strstr(err.text, "61 bytes") && strstr(err.text, "limit is 60"),
       "more: both figures are named");
    const char *files[] = {"list", "a/memory.max", "a/b/memory.max",
                           "memory/c/memory.limit_in_bytes", "memory.max"};
    char path[256];
    for (size_t i = 0; i < CNRI_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    const char *folders[] = {"/a/b", "/a", "/memory/c", "/memory", ""};
    for (size_t i = 0; i < CNRI_COUNT(folders); i++) {
        snprintf(path, sizeof path, "%s%s", folder, folders[i]);
        rmdir(path);
    }
    return done();
}
