/* The CPU as a device: host memory, synchronous streams, one pool of threads for all streams. */
#define _GNU_SOURCE
#include "clusters.h"
#include "neon.h"
#include "threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cnr_memory_class memory_classes[] = {
    {.name = "buffer",
     .flags = CNR_MEMORY_HOST | CNR_MEMORY_PARTS,
     .alignment = 64,
     .max_bytes = (uint64_t)SIZE_MAX / 2},
};

/* ---- the device ---- */

/* Root of /proc and /sys: "", or CNNRUN_SYSFS_ROOT, a test's tree. */
static const char *root(void) {
    const char *given = secure_getenv("CNNRUN_SYSFS_ROOT");
    return given && strcmp(given, "/") != 0 ? given : "";
}

/* Returns the number of devices: device 0 is the whole processor; clusters, if any, follow and are
 * used on request only. */
static int32_t count(cnr_error *err) {
    neon_cluster list[NEON_MOST_CLUSTERS];
    (void)err;
    return 1 + neon_clusters(root(), list);
}

/* Describes the whole CPU (index 0) or one cluster of its cores. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    neon_cluster list[NEON_MOST_CLUSTERS];
    const neon_cluster *c = NULL;
    if (index > 0) {
        if (index > neon_clusters(root(), list) || out->size < sizeof *out)
            return neon_host->fail(err, CNR_E_NOT_FOUND, "cpu", "no cluster %d", (int)index);
        c = &list[index - 1];
        snprintf(out->part, sizeof out->part, "%s", c->name);
    }
    out->score = c ? 1 : 100; /* a cluster is never the default device */
    snprintf(out->key, sizeof out->key, "cpu%s%s", c ? ":" : "", c ? c->name : "");
    neon_cpu_name(root(), c ? c->cpus : NULL, c ? c->n : 0, out->name, sizeof out->name);
    snprintf(out->driver, sizeof out->driver, "cpu-neon 0.1.0 %s", neon_isa_name());
    out->concurrency = c ? c->n : neon_cores();
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    out->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    return CNR_OK;
}

/* Starts the threads of a device, on the cluster's cores. */
static cnr_status device_open(cnr_device *device, const cnr_device_options *options,
                              cnr_error *err) {
    neon_cluster list[NEON_MOST_CLUSTERS];
    const neon_cluster *c = NULL;
    int32_t wanted = options ? options->threads : 0;
    if (device->index > 0 && device->index <= neon_clusters(root(), list))
        c = &list[device->index - 1];
    if (wanted <= 0 || (c && wanted > c->n)) wanted = c ? c->n : neon_cores();
    CNR_TRY(neon_wanted_isa(err));
    device->state = neon_threads_open((int32_t)cnr_min(wanted, 1024), c ? c->cpus : NULL,
                                      c ? c->n : 0, &device->concurrency);
    if (!device->state) {
        neon_isa_unused();
        return neon_host->fail(err, CNR_E_MEMORY, "cpu", "no memory for the threads");
    }
    if (device->concurrency < wanted)
        neon_host->log(CNR_LOG_WARN, "cpu-neon", "%d threads instead of %d", device->concurrency,
                       wanted);
    device->memory = memory_classes;
    device->n_memory = 1;
    return CNR_OK;
}

/* Ends the device's threads, and counts it off the users of the instruction set. */
static void device_close(cnr_device *device) {
    neon_threads_close(device->state);
    device->state = NULL;
    neon_isa_unused();
}

/* ---- memory ---- */

/* Allocates out->bytes of host memory, at least 1, into out->handle. CNR_E_MEMORY: too much, or
 * none left. */
static cnr_status mem_alloc(const cnr_device *device, cnr_mem *out, cnr_error *err) {
    (void)device;
    out->offset = 0;
    out->handle = out->bytes <= memory_classes[0].max_bytes
                      ? neon_host->alloc((size_t)(out->bytes ? out->bytes : 1))
                      : NULL;
    if (!out->handle)
        return neon_host->fail(err, CNR_E_MEMORY, "cpu", "no memory for %llu bytes",
                               (unsigned long long)out->bytes);
    return CNR_OK;
}

/* Frees memory, and clears the handle. */
static void mem_free(const cnr_device *device, cnr_mem *mem) {
    (void)device;
    neon_host->free(mem->handle);
    mem->handle = NULL;
}

/* Makes *out a part of a memory; nothing is copied. CNR_E_ARG: it lies beyond the end. */
static cnr_status mem_view(const cnr_device *device, const cnr_mem *whole, uint64_t offset,
                           uint64_t bytes, cnr_mem *out, cnr_error *err) {
    (void)device;
    if (offset > whole->bytes || bytes > whole->bytes - offset)
        return neon_host->fail(err, CNR_E_ARG, "cpu", "a view must lie within its memory");
    *out = *whole;
    out->offset += offset;
    out->bytes = bytes;
    return CNR_OK;
}

/* Ends a view: clears its handle, as there is nothing to free. */
static void mem_unview(const cnr_device *device, cnr_mem *part) {
    (void)device;
    part->handle = NULL;
}

static char *address(const cnr_mem *mem) { return (char *)mem->handle + mem->offset; }

/* Returns the address of a memory, which is host memory already; nothing is copied. */
static void *map(cnr_stream *stream, const cnr_mem *mem, int32_t write, cnr_error *err) {
    (void)stream;
    (void)write;
    (void)err;
    return address(mem);
}

/* Ends a mapping; there is nothing to do. */
static void unmap(cnr_stream *stream, const cnr_mem *mem, void *at) {
    (void)stream;
    (void)mem;
    (void)at;
}

/* 1 if the range lies within the memory. */
static int inside(const cnr_mem *mem, uint64_t offset, uint64_t bytes) {
    return offset <= mem->bytes && bytes <= mem->bytes - offset;
}

/* Copies from the host to a memory. */
static cnr_status write_mem(cnr_stream *stream, const cnr_mem *to, uint64_t offset,
                            const void *from, uint64_t bytes, cnr_error *err) {
    (void)stream;
    if (!inside(to, offset, bytes))
        return neon_host->fail(err, CNR_E_ARG, "cpu", "write past the end of a buffer");
    if (bytes) memcpy(address(to) + offset, from, (size_t)bytes);
    return CNR_OK;
}

/* Copies from a memory to the host. */
static cnr_status read_mem(cnr_stream *stream, const cnr_mem *from, uint64_t offset, void *to,
                           uint64_t bytes, cnr_error *err) {
    (void)stream;
    if (!inside(from, offset, bytes))
        return neon_host->fail(err, CNR_E_ARG, "cpu", "read past the end of a buffer");
    if (bytes) memcpy(to, address(from) + offset, (size_t)bytes);
    return CNR_OK;
}

/* Copies between two memories. */
static cnr_status copy_mem(cnr_stream *stream, const cnr_mem *from, const cnr_mem *to,
                           uint64_t bytes, cnr_error *err) {
    (void)stream;
    if (!inside(from, 0, bytes) || !inside(to, 0, bytes))
        return neon_host->fail(err, CNR_E_ARG, "cpu", "copy past the end of a buffer");
    if (bytes) memmove(address(to), address(from), (size_t)bytes);
    return CNR_OK;
}

/* ---- streams ---- */

void neon_parallel(const cnr_device *device, int64_t n, void (*fn)(void *, int64_t, int32_t),
                   void *arg) {
    neon_threads_run(device->state, n, fn, arg);
}

/* Runs n tasks on the device's threads. */
static void parallel(cnr_stream *stream, int64_t n, void (*fn)(void *, int64_t, int32_t),
                     void *arg) {
    neon_threads_run(stream->device->state, n, fn, arg);
}

/* Opens a stream, whose work is done at once. */
static cnr_status stream_open(const cnr_device *device, cnr_stream *stream, cnr_error *err) {
    (void)err;
    stream->device = device;
    stream->state = NULL;
    stream->parallel = parallel;
    return CNR_OK;
}

static void stream_close(cnr_stream *stream) { stream->parallel = NULL; }

/* Nothing to wait for: work is done at once. */
static cnr_status stream_sync(cnr_stream *stream, cnr_error *err) {
    (void)stream;
    (void)err;
    return CNR_OK;
}

const cnr_device_class neon_device_class = {
    .size = sizeof(cnr_device_class),
    .flags = CNR_DEVICE_SINGLE | CNR_DEVICE_HOST,
    .name = "cpu-neon",
    .family = "cpu",
    .summary = "The processor's own cores and memory",
    .count = count,
    .describe = describe,
    .open = device_open,
    .close = device_close,
    .alloc = mem_alloc,
    .free = mem_free,
    .view = mem_view,
    .unview = mem_unview,
    .map = map,
    .unmap = unmap,
    .write = write_mem,
    .read = read_mem,
    .copy = copy_mem,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .sync = stream_sync,
    .properties = neon_facts,
};
