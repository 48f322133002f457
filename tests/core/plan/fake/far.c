/* "far:0" and "far:1": memory of their own, and queues whose work runs as late as possible. */
#include "fake.h"

/* Memory of the device. */
typedef struct block {
    uint64_t magic, bytes;
    unsigned char *data;
} block;
#define MAGIC UINT64_C(0x6661722066617220)

/* A command of a queue. */
typedef struct command {
    fake_fn fn;
    void *arg;
} command;

/* A queue, whose commands run when somebody waits. */
typedef struct queue {
    command *at;
    int64_t n, room, done;
    int32_t timed;
    int64_t
        before; /* commands of earlier turns, which are gone: marks count from the first of all */
} queue;

/* A place in a queue. */
typedef struct mark {
    queue *queue;
    int64_t upto;
    int32_t timed;
} mark;

/* Method count: two devices. */
static int32_t count(cnr_error *err) {
    (void)err;
    return 2;
}

/* Method describe: score 5 and a key; returns CNR_OK. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    (void)err;
    out->score = 5;
    strcpy(out->key, index ? "far-b" : "far-a");
    strcpy(out->name, "far");
    return CNR_OK;
}

static const cnr_memory_class memory[] = {{"buffer", CNR_MEMORY_PARTS, 128, 1 << 22, 0, 0},
                                          {"image", CNR_MEMORY_IMAGE, 16, 1 << 20, 4096, 4096}};

/* Method open: two classes of memory, one unit. */
static cnr_status open_it(cnr_device *device, const cnr_device_options *options, cnr_error *err) {
    (void)options;
    (void)err;
    device->memory = memory;
    device->n_memory = 2;
    device->concurrency = 1;
    return CNR_OK;
}

static void close_it(cnr_device *device) { (void)device; }

/* Method alloc: a block behind a handle, in out; fails when there is no memory. */
static cnr_status allocate(const cnr_device *device, cnr_mem *out, cnr_error *err) {
    (void)device;
    block *b = fake_host->alloc(sizeof *b);
    unsigned char *data = b ? fake_host->alloc(out->bytes ? out->bytes : 1) : NULL;
    if (!data) {
        fake_host->free(b);
        return fake_host->fail(err, CNR_E_MEMORY, "far", "out of memory");
    }
    memset(data, 0xff, out->bytes);
    *b = (block){MAGIC, out->bytes, data};
    out->handle = b;
    out->offset = 0;
    return CNR_OK;
}

/* Method free: frees the block, and clears the handle. */
static void release(const cnr_device *device, cnr_mem *mem) {
    (void)device;
    block *b = mem->handle;
    fake_host->free(b->data);
    fake_host->free(b);
    mem->handle = NULL;
}

/* Method host_alloc: memory of the host, poisoned; NULL: there is none. */
static void *host_allocate(const cnr_device *device, uint64_t bytes) {
    (void)device;
    void *at = fake_host->alloc((size_t)bytes + 64);
    if (!at) return NULL;
    memset(at, 0xff, (size_t)bytes + 64);
    strcpy(at, "of far");
    return (char *)at + 64;
}

/* Method free of host memory; NULL: nothing. */
static void host_release(const cnr_device *device, void *memory) {
    (void)device;
    if (memory) fake_host->free((char *)memory - 64);
}

/* Method view: makes *out a part of `whole`; views are counted by allocating one, so that a lost
 * one shows as a leak. */
static cnr_status view(const cnr_device *device, const cnr_mem *whole, uint64_t offset,
                       uint64_t bytes, cnr_mem *out, cnr_error *err) {
    (void)device;
    block *w = whole->handle, *b = fake_host->alloc(sizeof *b);
    if (!b) return fake_host->fail(err, CNR_E_MEMORY, "far", "out of memory");
    if (offset + bytes > w->bytes || offset % 128) {
        fake_host->free(b);
        return fake_host->fail(err, CNR_E_ARG, "far", "a view beyond its owner or unaligned");
    }
    *b = (block){MAGIC, bytes, w->data + offset};
    *out = *whole;
    out->handle = b;
    out->bytes = bytes;
    return CNR_OK;
}

/* Method unview: frees a part. */
static void unview(const cnr_device *device, cnr_mem *part) {
    (void)device;
    fake_host->free(part->handle);
    part->handle = NULL;
}

/* The bytes behind far memory, NULL: it is not far memory; only for work that runs on the
 * device. */
void *fake_bytes(const cnr_mem *mem) {
    const block *b = mem->handle;
    return b->magic == MAGIC ? b->data + mem->offset : NULL;
}

/* ---- queues ---- */

/* Runs the queue's commands up to a number. */
static void run_until(queue *q, int64_t upto) {
    while (q->done < upto) {
        const command c = q->at[q->done++];
        c.fn(c.arg);
        fake_host->free(c.arg);
    }
}

/* Queues fn with a copy of `bytes` of arg. */
cnr_status fake_queue(cnr_stream *stream, fake_fn fn, const void *arg, size_t bytes,
                      cnr_error *err) {
    queue *q = stream->state;
    if (q->n == q->room) {
        command *grown = fake_host->resize(q->at, (size_t)(q->room + 64) * sizeof *grown);
        if (!grown) return fake_host->fail(err, CNR_E_MEMORY, "far", "out of memory");
        q->at = grown;
        q->room += 64;
    }
    void *copy = fake_host->alloc(bytes);
    if (!copy) return fake_host->fail(err, CNR_E_MEMORY, "far", "out of memory");
    memcpy(copy, arg, bytes);
    q->at[q->n++] = (command){fn, copy};
    return CNR_OK;
}

/* A copy of bytes. */
typedef struct move {
    void *to;
    const void *from;
    uint64_t bytes;
} move;

/* Does the copy. */
static void do_move(void *arg) {
    const move *m = arg;
    memcpy(m->to, m->from, m->bytes);
}

/* Method write: queues a copy; CNR_E_ARG: past the end. */
static cnr_status put(cnr_stream *stream, const cnr_mem *to, uint64_t offset, const void *from,
                      uint64_t bytes, cnr_error *err) {
    const block *b = to->handle;
    if (to->offset + offset + bytes > b->bytes)
        return fake_host->fail(err, CNR_E_ARG, "far", "a write beyond the memory");
    const move m = {(char *)fake_bytes(to) + offset, from, bytes};
    return fake_queue(stream, do_move, &m, sizeof m, err);
}

/* Method read: queues a copy; CNR_E_ARG: past the end. */
static cnr_status get(cnr_stream *stream, const cnr_mem *from, uint64_t offset, void *to,
                      uint64_t bytes, cnr_error *err) {
    const block *b = from->handle;
    if (from->offset + offset + bytes > b->bytes)
        return fake_host->fail(err, CNR_E_ARG, "far", "a read beyond the memory");
    const move m = {to, (const char *)fake_bytes(from) + offset, bytes};
    return fake_queue(stream, do_move, &m, sizeof m, err);
}

/* Method stream_open: an empty queue, timed if the stream asks for it; CNR_E_MEMORY. */
static cnr_status stream_open(const cnr_device *device, cnr_stream *stream, cnr_error *err) {
    (void)device;
    queue *q = fake_host->alloc(sizeof *q);
    if (!q) return fake_host->fail(err, CNR_E_MEMORY, "far", "out of memory");
    memset(q, 0, sizeof *q);
    q->timed = (stream->flags & CNR_STREAM_TIMED) != 0;
    stream->state = q;
    return CNR_OK;
}

/* Method sync: runs the whole queue. */
static cnr_status sync(cnr_stream *stream, cnr_error *err) {
    queue *q = stream->state;
    (void)err;
    run_until(q, q->n);
    q->before += q->n;
    q->n = q->done = 0;
    return CNR_OK;
}

/* Method stream_close: frees the queue, with the work that was not done. */
static void stream_close(cnr_stream *stream) {
    queue *q = stream->state;
    for (int64_t i = q->done; i < q->n; i++) fake_host->free(q->at[i].arg);
    fake_host->free(q->at);
    fake_host->free(q);
}

/* Method record: *event receives the present end of the queue. */
static cnr_status record(cnr_stream *stream, void **event, cnr_error *err) {
    mark *m = fake_host->alloc(sizeof *m);
    if (!m) return fake_host->fail(err, CNR_E_MEMORY, "far", "out of memory");
    queue *q = stream->state;
    *m = (mark){q, q->before + q->n, q->timed};
    *event = m;
    return CNR_OK;
}

/* Runs another queue up to a mark. */
static void do_wait(void *arg) {
    const mark *m = arg;
    run_until(m->queue, m->upto - m->queue->before);
}

/* Method wait: queues a wait for the mark. */
static cnr_status wait(cnr_stream *stream, void *event, cnr_error *err) {
    return fake_queue(stream, do_wait, event, sizeof(mark), err);
}

/* Method await: runs the queue up to the mark. */
static cnr_status await(const cnr_device *device, void *event, cnr_error *err) {
    (void)device;
    (void)err;
    do_wait(event);
    return CNR_OK;
}

/* Method event_free: frees it at once. */
static void event_free(const cnr_device *device, void *event) {
    (void)device;
    fake_host->free(event);
}

/* Nanoseconds between two marks, 7 a command; -1: one isn't timed. */
static int64_t elapsed(const cnr_device *device, void *from, void *to) {
    const mark *a = from, *b = to;
    (void)device;
    return a->timed && b->timed ? (b->upto - a->upto) * 7 : -1;
}

const cnr_device_class fake_far = {.size = sizeof(cnr_device_class),
                                   .name = "far-fake",
                                   .family = "far",
                                   .summary = "memory of its own",
                                   .count = count,
                                   .describe = describe,
                                   .open = open_it,
                                   .close = close_it,
                                   .alloc = allocate,
                                   .free = release,
                                   .view = view,
                                   .unview = unview,
                                   .write = put,
                                   .read = get,
                                   .stream_open = stream_open,
                                   .stream_close = stream_close,
                                   .sync = sync,
                                   .event_record = record,
                                   .event_wait = wait,
                                   .event_sync = await,
                                   .event_free = event_free,
                                   .event_elapsed = elapsed,
                                   .host_alloc = host_allocate,
                                   .host_free = host_release};
