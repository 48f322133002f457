/* Facts about the processor: instruction set, caches, and peak speeds. */
#define _GNU_SOURCE
#include "clusters.h"
#include "neon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    TIMES = 7,
    CHUNKS = 8
}; /* repetitions, of which the fastest counts; pieces a thread, so that none waits long */

/* Seconds of the monotonic clock. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- caches ---- */

/* Bytes of the core's data or unified cache of that level; 0: unknown. */
static double cache_bytes(const char *root, int32_t core, int level) {
    for (int index = 0; index < 8; index++) {
        char text[64];
        const int is = neon_cpu_text(root, core, "cache/index%d/level", index, text, sizeof text)
                           ? atoi(text)
                           : 0;
        if (is != level ||
            !neon_cpu_text(root, core, "cache/index%d/type", index, text, sizeof text) ||
            text[0] == 'I')
            continue;
        if (!neon_cpu_text(root, core, "cache/index%d/size", index, text, sizeof text)) continue;
        char *end;
        const double n = strtod(text, &end);
        return n * (*end == 'K' ? 1024 : *end == 'M' ? 1048576 : 1);
    }
    return 0;
}

/* Tells the sizes of a core's caches; returns the largest in bytes. */
static double tell_caches(const char *root, int32_t core, cnr_property_fn tell, void *arg) {
    static const char *const names[] = {"caches.l1d", "caches.l2", "caches.l3", "caches.l4"};
    double most = 0;
    for (int level = 1; level <= 4; level++) {
        const double bytes = cache_bytes(root, core, level);
        if (bytes <= 0) continue;
        tell(arg, names[level - 1], NULL, bytes);
        most = bytes;
    }
    return most;
}

/* ---- speed ---- */

/* Arguments of the measuring tasks. */
typedef struct job {
    const float *data;
    int64_t each; /* floats, or rounds, of each piece */
    float sink[NEON_MOST_CORES];
} job;

/* Task i of the job `arg`: multiplies and adds in registers. */
static void multiply(void *arg, int64_t i, int32_t thread) {
    job *j = arg;
    (void)i;
    j->sink[thread % NEON_MOST_CORES] += neon_uk->peak(j->each, 0.999f);
}

/* Task i of the job `arg`: reads a piece of memory. */
static void read_piece(void *arg, int64_t i, int32_t thread) {
    job *j = arg;
    j->sink[thread % NEON_MOST_CORES] += neon_uk->read(j->data + i * j->each, j->each);
}

/* Returns the seconds of the fastest of TIMES repetitions of n tasks on the stream's threads. */
static double least(cnr_stream *stream, int64_t n, void (*fn)(void *, int64_t, int32_t), job *j) {
    double best = 1e9;
    for (int i = 0; i < TIMES; i++) {
        const double begin = now();
        stream->parallel(stream, n, fn, j);
        best = fmin(best, now() - begin);
    }
    return best;
}

/* Measures and returns GFLOPS of multiply-adds on all threads. */
static double fma_gflops(cnr_stream *stream, job *j) {
    const int64_t n = stream->device->concurrency * CHUNKS;
    j->each = 200000;
    const double flops = 2.0 * NEON_PEAK * neon_uk->vl * (double)j->each * (double)n;
    return flops / least(stream, n, multiply, j) * 1e-9;
}

/* *out: read bandwidth from memory in GB/s, of far more bytes than the caches hold, in pages as
 * weights use. Fails without memory. */
static cnr_status read_gbs(cnr_stream *stream, job *j, double caches, double *out, cnr_error *err) {
    const int64_t n = stream->device->concurrency * CHUNKS, unit = 16 * neon_uk->vl;
    const double bytes = fmax(fmin(4 * caches, 1 << 30), 256 << 20);
    j->each = (int64_t)(bytes / sizeof(float)) / n / unit * unit;
    cnr_mem mem = {.bytes = (uint64_t)(j->each * n) * sizeof(float)};
    const cnr_status status = neon_device_class.alloc(stream->device, &mem, err);
    if (status) return status;
    memset((char *)mem.handle + mem.offset, 0, (size_t)mem.bytes);
    j->data = (const float *)(const void *)((char *)mem.handle + mem.offset);
    *out = (double)mem.bytes / least(stream, n, read_piece, j) * 1e-9;
    neon_device_class.free(stream->device, &mem);
    return CNR_OK;
}

cnr_status neon_facts(int32_t index, cnr_stream *stream, cnr_property_fn tell, void *arg,
                      cnr_error *err) {
    neon_cluster list[NEON_MOST_CLUSTERS];
    const char *given = secure_getenv("CNNRUN_SYSFS_ROOT"); /* a test's tree */
    const char *root = given && strcmp(given, "/") != 0 ? given : "";
    const int32_t core =
        index > 0 && index <= neon_clusters(root, list) ? list[index - 1].cpus[0] : 0;
    tell(arg, "isa", neon_isa_name(), 0);
    const double caches = tell_caches(root, core, tell, arg);
    if (!stream) return CNR_OK;
    double gbs;
    job *j = calloc(1, sizeof *j);
    if (!j) return neon_host->fail(err, CNR_E_MEMORY, "cpu", "no memory to measure with");
    tell(arg, "fma_gflops", NULL, fma_gflops(stream, j));
    const cnr_status status = read_gbs(stream, j, caches, &gbs, err);
    if (!status) tell(arg, "read_gbs", NULL, gbs);
    free(j);
    return status;
}
