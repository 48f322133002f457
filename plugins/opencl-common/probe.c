/* Asks drivers in a child process first: a driver that crashes or hangs ends only the child.
 * Such a driver is left out from then on; one that passed is not probed again until a driver
 * changes. */
#define _GNU_SOURCE
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 20, MOST_DRIVERS = 32, MOST_NAME = 64, MOST_RECORD = 8192 };
static const char record_name[] = "opencl.drivers";

typedef struct drivers { /* the loader's list: files that name a library each */
    char folder[512];
    char name[MOST_DRIVERS][MOST_NAME];
    int bad[MOST_DRIVERS];
    int32_t n;
} drivers;

/* Folder of the list of OpenCL drivers. */
static const char *folder_of_loader(void) {
    const char *set = secure_getenv("OCL_ICD_VENDORS");
    return set && *set ? set : "/etc/OpenCL/vendors";
}

/* Lists the drivers of that folder in d, in order of their names. */
static void list(drivers *d) {
    snprintf(d->folder, sizeof d->folder, "%s", folder_of_loader());
    DIR *dir = opendir(d->folder);
    d->n = 0;
    for (struct dirent *e; dir && d->n < MOST_DRIVERS && (e = readdir(dir));) {
        const size_t n = strlen(e->d_name);
        if (n < 5 || n >= MOST_NAME || strcmp(e->d_name + n - 4, ".icd") != 0) continue;
        d->bad[d->n] = 0;
        memcpy(d->name[d->n++], e->d_name, n + 1);
    }
    if (dir) closedir(dir);
}

/* A digest of the loader's list, its libraries' files and the variables that choose them: all that
 * must be unchanged for a stored result to hold. */
static ocl_key key_of(const drivers *d) {
    char text[MOST_RECORD];
    uint8_t digest[32];
    ocl_key key;
    const char *library = secure_getenv("CNNRUN_OPENCL");
    size_t n = (size_t)snprintf(text, sizeof text, "%s\n%s\n", library ? library : "", d->folder);
    for (int32_t i = 0; i < d->n && n < sizeof text; i++) {
        char path[sizeof d->folder + MOST_NAME + 1];
        struct stat s = {0};
        snprintf(path, sizeof path, "%s/%s", d->folder, d->name[i]);
        if (stat(path, &s) != 0) continue;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s %lld %lld\n", d->name[i],
                              (long long)s.st_size, (long long)s.st_mtime);
    }
    ocl_host->sha256(text, n < sizeof text ? n : sizeof text, digest);
    for (size_t i = 0; i < 32; i++) snprintf(key.hex + 2 * i, 3, "%02x", digest[i]);
    return key;
}

/* ---- the child ---- */

/* Asks each platform for its devices and their names: a bad driver ends the process here. */
static void ask_all(void) {
    cl_platform_id platforms[32];
    cl_uint n = 0;
    if (ocl_cl.clGetPlatformIDs(32, platforms, &n) != CL_SUCCESS) return;
    for (cl_uint i = 0; i < n && i < 32; i++) {
        cl_device_id ids[64];
        char text[1024];
        cl_uint m = 0;
        if (ocl_cl.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 64, ids, &m) != CL_SUCCESS)
            continue;
        for (cl_uint k = 0; k < m && k < 64; k++)
            ocl_cl.clGetDeviceInfo(ids[k], CL_DEVICE_NAME, sizeof text, text, NULL);
    }
}

/* NULL: a child came through; else how it ended (static). `only`: of the loader's list that file.
 */
static const char *ends(const char *only) {
    int status = 0;
    pid_t child;
    fflush(NULL);
    if ((child = fork()) < 0) return NULL; /* then it is asked as ever */
    if (child == 0) {
        static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGALRM};
        for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++) signal(deadly[i], SIG_DFL);
        if (only) setenv("OCL_ICD_VENDORS", only, 1);
        alarm(SECONDS);
        ask_all();
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? "does not answer" : "crashes when it is asked";
    return status == 0 ? NULL : "ends the process that asks it";
}

/* ---- the record ---- */

/* 1: the cache has a result for this key; then `bad` of d is filled. */
static int load(drivers *d, const ocl_key *key) {
    void *text = NULL;
    uint64_t bytes = 0;
    if (ocl_host->cache_load(NULL, record_name, MOST_RECORD, &text, &bytes, NULL) != CNR_OK)
        return 0;
    const int holds = bytes >= 64 && memcmp(text, key->hex, 64) == 0;
    for (int32_t i = 0; holds && i < d->n; i++) { /* one byte a driver behind the key */
        d->bad[i] = bytes > 64 + (uint64_t)i && ((const char *)text)[64 + i] == 'x';
    }
    ocl_host->free(text);
    return holds;
}

/* Saves in the cache which drivers are bad, under `key`. */
static void save(const drivers *d, const ocl_key *key) {
    char text[64 + MOST_DRIVERS];
    memcpy(text, key->hex, 64);
    for (int32_t i = 0; i < d->n; i++) text[64 + i] = d->bad[i] ? 'x' : '.';
    ocl_host->cache_save(NULL, record_name, text, 64 + (uint64_t)d->n, NULL); /* else asked again */
}

/* ---- leaving some out ---- */

static const char place[] = "/tmp/cnnrun-opencl-XXXXXX";

/* Links the drivers that are not bad into `folder`; 0: a link failed. */
static int link_good(const drivers *d, const char *folder) {
    char from[sizeof d->folder + MOST_NAME + 1], to[sizeof place + MOST_NAME + 1];
    for (int32_t i = 0; i < d->n; i++) {
        if (d->bad[i]) continue;
        snprintf(from, sizeof from, "%s/%s", d->folder, d->name[i]);
        snprintf(to, sizeof to, "%s/%s", folder, d->name[i]);
        if (symlink(from, to) != 0) return 0;
    }
    return 1;
}

/* Removes the links to d's drivers from `folder`, and the folder. */
static void remove_links(const drivers *d, const char *folder) {
    char path[sizeof place + MOST_NAME + 1];
    for (int32_t i = 0; i < d->n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, d->name[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* Makes the loader, which reads its list at its first call, use a folder of links to the good
 * drivers. 1: OpenCL may be asked; 0: no driver is left. */
static int choose(const drivers *d) {
    char folder[sizeof place];
    const int usual = secure_getenv("OCL_ICD_VENDORS") == NULL;
    cl_uint n = 0;
    int32_t left = 0;
    for (int32_t i = 0; i < d->n; i++) left += !d->bad[i];
    if (left == d->n) return 1;
    memcpy(folder, place, sizeof place);
    if (left == 0 || !mkdtemp(folder)) return 0;
    const int good = link_good(d, folder) && setenv("OCL_ICD_VENDORS", folder, 1) == 0;
    if (good) ocl_cl.clGetPlatformIDs(0, NULL, &n);
    if (usual) unsetenv("OCL_ICD_VENDORS");
    else setenv("OCL_ICD_VENDORS", d->folder, 1);
    remove_links(d, folder);
    return good;
}

/* Tries each driver in a process of its own and marks the bad ones; returns how many. */
static int find_bad(drivers *d) {
    int32_t n = 0;
    for (int32_t i = 0; i < d->n; i++) {
        char path[sizeof d->folder + MOST_NAME + 1];
        snprintf(path, sizeof path, "%s/%s", d->folder, d->name[i]);
        const char *how = ends(path);
        d->bad[i] = how != NULL;
        n += d->bad[i];
        if (how) ocl_host->log(CNR_LOG_WARN, "opencl", "%s: its driver %s: left out", path, how);
    }
    return n;
}

int ocl_probe(void) {
    drivers d;
    list(&d);
    const ocl_key key = key_of(&d);
    if (load(&d, &key)) return choose(&d);
    const char *how = ends(NULL);
    if (how && find_bad(&d) == 0) {
        ocl_host->log(CNR_LOG_WARN, "opencl", "the OpenCL library %s: left out", how);
        return 0;
    }
    save(&d, &key);
    return choose(&d);
}
