/* A device that one process at a time can have, as long as it lives, like those of some drivers: a
 * lock on the file that $FAULTY_LONELY names stands for it. Without that there is none. */
#define _GNU_SOURCE
#include "faulty.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>

/* Method count: none while another process holds it. */
static int32_t count(cnr_error *err) {
    static int held = -1;
    const char *path = getenv("FAULTY_LONELY");
    (void)err;
    if (held >= 0) return 1;
    const int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1; /* a child inherits it */
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) return 0;
    held = fd;
    return 1;
}

/* Method describe. */
static cnr_status describe(int32_t index, cnr_device_info *info, cnr_error *err) {
    (void)index;
    (void)err;
    info->score = 1;
    snprintf(info->key, sizeof info->key, "lonely");
    snprintf(info->name, sizeof info->name, "lonely");
    return CNR_OK;
}

/* Method open. */
static cnr_status open_device(cnr_device *device, const cnr_device_options *options,
                              cnr_error *err) {
    static const cnr_memory_class memory = {.name = "host",
                                            .flags = CNR_MEMORY_HOST | CNR_MEMORY_PARTS,
                                            .alignment = 64,
                                            .max_bytes = 1 << 28};
    (void)options;
    (void)err;
    device->memory = &memory;
    device->n_memory = device->concurrency = 1;
    return CNR_OK;
}

static void close_device(cnr_device *device) { (void)device; }

/* Method alloc: host memory into mem; fails when there is none. */
static cnr_status allocate(const cnr_device *device, cnr_mem *mem, cnr_error *err) {
    (void)device;
    mem->handle = faulty_host->alloc(mem->bytes + 1);
    return mem->handle ? CNR_OK : faulty_host->fail(err, CNR_E_MEMORY, "lonely", "no memory");
}

/* Method free of memory: frees it at once. */
static void release(const cnr_device *device, cnr_mem *mem) {
    (void)device;
    faulty_host->free(mem->handle);
}

/* Method write: copies the bytes at once; returns CNR_OK. */
static cnr_status write_to(cnr_stream *stream, const cnr_mem *to, uint64_t offset, const void *from,
                           uint64_t bytes, cnr_error *err) {
    (void)stream;
    (void)err;
    memcpy((char *)to->handle + to->offset + offset, from, bytes);
    return CNR_OK;
}

/* Method read: copies the bytes at once; returns CNR_OK. */
static cnr_status read_from(cnr_stream *stream, const cnr_mem *from, uint64_t offset, void *to,
                            uint64_t bytes, cnr_error *err) {
    (void)stream;
    (void)err;
    memcpy(to, (const char *)from->handle + from->offset + offset, bytes);
    return CNR_OK;
}

/* Method stream_open. */
static cnr_status stream_open(const cnr_device *device, cnr_stream *stream, cnr_error *err) {
    (void)err;
    stream->device = device;
    return CNR_OK;
}

static void stream_close(cnr_stream *stream) { (void)stream; }

/* Method sync: does nothing and returns CNR_OK. */
static cnr_status sync(cnr_stream *stream, cnr_error *err) {
    (void)stream;
    (void)err;
    return CNR_OK;
}

/* Method accepts. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    out->score = node->inputs[0]->dtype == CNR_f32;
    out->in_block[0] = 0;
    return CNR_OK;
}

static cnr_status run(const cnr_run *r, cnr_error *err) { return r->node->desc->reference(r, err); }

/* Registers the device that one process at a time can use, and its kernel of tanh; the first
 * failure's status. */
cnr_status faulty_add_lonely(struct cnr_registrar *registrar) {
    static const cnr_device_class cls = {.size = sizeof cls,
                                         .flags = CNR_DEVICE_SINGLE,
                                         .name = "lonely",
                                         .family = "lonely",
                                         .summary = "one process at a time",
                                         .count = count,
                                         .describe = describe,
                                         .open = open_device,
                                         .close = close_device,
                                         .alloc = allocate,
                                         .free = release,
                                         .write = write_to,
                                         .read = read_from,
                                         .stream_open = stream_open,
                                         .stream_close = stream_close,
                                         .sync = sync};
    static const cnr_kernel kernel = {.size = sizeof kernel,
                                      .version = 1,
                                      .name = "lonely_tanh",
                                      .op = "tanh",
                                      .device = "lonely",
                                      .accepts = accepts,
                                      .run = run};
    const cnr_status status = faulty_host->add(registrar, CNR_KIND_DEVICE, &cls);
    return status ? status : faulty_host->add(registrar, CNR_KIND_KERNEL, &kernel);
}
