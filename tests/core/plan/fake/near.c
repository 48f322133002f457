/* "near": a device in host memory, one thread, finished when a call returns. */
#include "fake.h"

/* Method count: one device. */
static int32_t count(cnr_error *err) {
    (void)err;
    return 1;
}

/* Method describe: score 10 and a key; returns CNR_OK. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    (void)index;
    (void)err;
    out->score = 10;
    strcpy(out->key, "near");
    strcpy(out->name, "near");
    return CNR_OK;
}

static const cnr_memory_class memory[] = {
    {"heap", CNR_MEMORY_HOST | CNR_MEMORY_PARTS, 64, 0, 0, 0}};

/* Method open: one class of memory, one unit. */
static cnr_status open_it(cnr_device *device, const cnr_device_options *options, cnr_error *err) {
    (void)options;
    (void)err;
    device->memory = memory;
    device->n_memory = 1;
    device->concurrency = 1;
    return CNR_OK;
}

static void close_it(cnr_device *device) { (void)device; }

/* Method alloc: host memory into out; fails when there is none. */
static cnr_status allocate(const cnr_device *device, cnr_mem *out, cnr_error *err) {
    (void)device;
    out->offset = 0;
    out->handle = fake_host->alloc(out->bytes ? out->bytes : 1);
    if (!out->handle) return fake_host->fail(err, CNR_E_MEMORY, "near", "out of memory");
    memset(out->handle, 0xff, out->bytes); /* what nobody wrote is NaN */
    return CNR_OK;
}

/* Method free: frees memory, and clears the handle. */
static void release(const cnr_device *device, cnr_mem *mem) {
    (void)device;
    fake_host->free(mem->handle);
    mem->handle = NULL;
}

/* Method write: copies the bytes at once; returns CNR_OK. */
static cnr_status put(cnr_stream *stream, const cnr_mem *to, uint64_t offset, const void *from,
                      uint64_t bytes, cnr_error *err) {
    (void)stream;
    (void)err;
    memcpy((char *)to->handle + to->offset + offset, from, bytes);
    return CNR_OK;
}

/* Method read: copies the bytes at once; returns CNR_OK. */
static cnr_status get(cnr_stream *stream, const cnr_mem *from, uint64_t offset, void *to,
                      uint64_t bytes, cnr_error *err) {
    (void)stream;
    (void)err;
    memcpy(to, (const char *)from->handle + from->offset + offset, bytes);
    return CNR_OK;
}

/* Method parallel: one task after the other. */
static void parallel(cnr_stream *stream, int64_t n, void (*fn)(void *, int64_t, int32_t),
                     void *arg) {
    (void)stream;
    for (int64_t i = 0; i < n; i++) fn(arg, i, 0);
}

/* Method stream_open: the stream has one thread, by `parallel`; returns CNR_OK. */
static cnr_status stream_open(const cnr_device *device, cnr_stream *stream, cnr_error *err) {
    (void)device;
    (void)err;
    stream->parallel = parallel;
    return CNR_OK;
}

/* Streams that were closed: what a session that moves does last. */
__attribute__((visibility("default"))) extern int fake_closed;
int fake_closed;

/* Method stream_close: counts in fake_closed. */
static void stream_close(cnr_stream *stream) {
    (void)stream;
    __atomic_fetch_add(&fake_closed, 1, __ATOMIC_SEQ_CST);
}

/* Method sync: all is done already. */
static cnr_status sync(cnr_stream *stream, cnr_error *err) {
    (void)stream;
    (void)err;
    return CNR_OK;
}

const cnr_device_class fake_near = {.size = sizeof(cnr_device_class),
                                    .flags = CNR_DEVICE_SINGLE,
                                    .name = "near-fake",
                                    .family = "near",
                                    .summary = "host memory",
                                    .count = count,
                                    .describe = describe,
                                    .open = open_it,
                                    .close = close_it,
                                    .alloc = allocate,
                                    .free = release,
                                    .write = put,
                                    .read = get,
                                    .stream_open = stream_open,
                                    .stream_close = stream_close,
                                    .sync = sync};
