/* The least of a device: memory that the host can use, and streams that have finished when a call
 * returns, so that there are no marks to wait for. A device with a queue
 * of its own is cpp/device.cpp. */
#include <cnnrun/kit.h>

#include <stdio.h>

static const cnr_host *host;

static int32_t count(cnr_error *err) { /* may wake a driver; describe and open come later */
    (void)err;
    return 1;
}

/* Method describe: name, key and score of the only device. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    (void)index, (void)err;
    out->score = 1;
    out->concurrency = 1;
    snprintf(out->key, sizeof out->key, "0");
    snprintf(out->name, sizeof out->name, "host memory");
    snprintf(out->driver, sizeof out->driver, "1.0");
    return CNR_OK;
}

/* Method open: one kind of memory, in the host. */
static cnr_status open_device(cnr_device *device, const cnr_device_options *o, cnr_error *err) {
    static const cnr_memory_class memory = {.name = "host",
                                            .flags = CNR_MEMORY_HOST | CNR_MEMORY_PARTS,
                                            .alignment = 64,
                                            .max_bytes = (uint64_t)1 << 40};
    (void)o, (void)err;
    device->memory = &memory;
    device->n_memory = device->concurrency = 1;
    return CNR_OK;
}
static void close_device(cnr_device *device) { (void)device; }

/* Method alloc: host memory for release; fails when there is none. */
static cnr_status alloc(const cnr_device *device, cnr_mem *out, cnr_error *err) {
    out->offset = 0;
    out->handle = host->alloc((size_t)out->bytes + 1);
    return out->handle ? CNR_OK : host->fail(err, CNR_E_MEMORY, device->name, "out of memory");
}
/* Method free: frees memory from alloc. */
static void release(const cnr_device *device, cnr_mem *mem) {
    (void)device;
    host->free(mem->handle);
}

/* Bytes outside the memory are an error, of this call or of the next sync. */
static char *place(const cnr_mem *m, uint64_t offset, uint64_t n, cnr_error *err) {
    if (offset <= m->bytes && n <= m->bytes - offset) return (char *)m->handle + m->offset + offset;
    host->fail(err, CNR_E_ARG, "acme", "bytes outside the memory");
    return NULL;
}

/* Method map: the address of all of mem. */
static void *map(cnr_stream *stream, const cnr_mem *mem, int32_t write, cnr_error *err) {
    (void)stream, (void)write;
    return place(mem, 0, mem->bytes, err);
}
/* Method unmap: nothing is left to do. */
static void unmap(cnr_stream *stream, const cnr_mem *mem, void *address) {
    (void)stream, (void)mem, (void)address;
}

/* Method write: done when it returns. */
static cnr_status write_memory(cnr_stream *stream, const cnr_mem *to, uint64_t offset,
                               const void *from, uint64_t n, cnr_error *err) {
    char *at = place(to, offset, n, err);
    (void)stream;
    if (at) memcpy(at, from, (size_t)n);
    return at ? CNR_OK : CNR_E_ARG;
}
/* Method read: done when it returns. */
static cnr_status read_memory(cnr_stream *stream, const cnr_mem *from, uint64_t offset, void *to,
                              uint64_t n, cnr_error *err) {
    const char *at = place(from, offset, n, err);
    (void)stream;
    if (at) memcpy(to, at, (size_t)n);
    return at ? CNR_OK : CNR_E_ARG;
}

/* Method stream_open: a stream has no state. */
static cnr_status stream_open(const cnr_device *device, cnr_stream *stream, cnr_error *err) {
    (void)device, (void)stream, (void)err;
    return CNR_OK;
}
static void stream_close(cnr_stream *stream) { (void)stream; }
/* Method sync: all is done already. */
static cnr_status sync(cnr_stream *stream, cnr_error *err) {
    (void)stream, (void)err;
    return CNR_OK;
}

static const cnr_device_class device = {
    .size = sizeof(cnr_device_class),
    .flags = CNR_DEVICE_SINGLE,
    .name = "acme-host",
    .family = "acme",
    .summary = "an example",
    .count = count,
    .describe = describe,
    .open = open_device,
    .close = close_device,
    .alloc = alloc,
    .free = release,
    .map = map,
    .unmap = unmap,
    .write = write_memory,
    .read = read_memory,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .sync = sync,
};

/* Registers the device. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = h;
    return h->add(registrar, CNR_KIND_DEVICE, &device);
}

CNR_PLUGIN("c-device", "1.0", "an example device", "MIT", init, CNR_TOUCHES_NOTHING)
