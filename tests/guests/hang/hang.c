/* A device with a memory of its own, whose N-th call hangs or crashes: CNNRUN_HANG_AT=N, or -N for
 * a crash. Its kernel computes any node by the node's reference. CNNRUN_HANG_COUNT: a file that
 * gets the number of calls. */
#include <cnnrun/kit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const cnr_host *host;
static int calls;

/* Called first by each hook of the device: the call with number CNNRUN_HANG_AT hangs; a negative
 * number crashes it. */
static void call(void) {
    const char *at = getenv("CNNRUN_HANG_AT");
    const int n = at ? atoi(at) : 0, now = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    while (n == now) pause();
    if (-n == now) raise(SIGSEGV);
}

static const cnr_memory_class memory = {.name = "own",
                                        .flags = CNR_MEMORY_PARTS,
                                        .alignment = 64,
                                        .max_bytes = 1ll << 40};

/* Method count: one device. */
static int32_t count(cnr_error *err) {
    (void)err;
    return 1;
}
/* Method describe: score 1 and a key; returns CNR_OK. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    (void)err;
    out->score = 1;
    snprintf(out->key, sizeof out->key, "%d", (int)index);
    snprintf(out->name, sizeof out->name, "hang");
    return CNR_OK;
}
/* Method open: one class of memory, one unit. */
static cnr_status open_device(cnr_device *d, const cnr_device_options *o, cnr_error *err) {
    (void)o;
    (void)err;
    d->memory = &memory;
    d->n_memory = d->concurrency = 1;
    return CNR_OK;
}
static void close_device(cnr_device *d) { (void)d; }
/* Method alloc: memory into out; may hang, if that is asked for. */
static cnr_status alloc(const cnr_device *d, cnr_mem *out, cnr_error *err) {
    call();
    out->offset = 0;
    out->handle = host->alloc((size_t)out->bytes + 1);
    return out->handle ? CNR_OK : host->fail(err, CNR_E_MEMORY, d->name, "out of memory");
}
/* Method free of memory: frees it at once. */
static void release(const cnr_device *d, cnr_mem *m) {
    (void)d;
    host->free(m->handle);
}
/* Address in memory. */
static char *at(const cnr_mem *m, uint64_t offset) {
    return (char *)m->handle + m->offset + offset;
}
/* Method write. */
static cnr_status put(cnr_stream *s, const cnr_mem *to, uint64_t offset, const void *from,
                      uint64_t n, cnr_error *err) {
    call();
    if (offset + n > to->bytes)
        return host->fail(err, CNR_E_DEVICE, s->device->name, "a write outside its memory");
    memcpy(at(to, offset), from, n);
    return CNR_OK;
}
/* Method read. */
static cnr_status get(cnr_stream *s, const cnr_mem *from, uint64_t offset, void *to, uint64_t n,
                      cnr_error *err) {
    call();
    if (offset + n > from->bytes)
        return host->fail(err, CNR_E_DEVICE, s->device->name, "a read outside its memory");
    memcpy(to, at(from, offset), n);
    return CNR_OK;
}
/* Method stream_open. */
static cnr_status stream_open(const cnr_device *d, cnr_stream *s, cnr_error *err) {
    (void)d;
    (void)s;
    (void)err;
    call();
    return CNR_OK;
}
/* Method stream_close: hangs if that is asked for. */
static void stream_close(cnr_stream *s) {
    (void)s;
    call();
}
/* Method sync. */
static cnr_status sync_stream(cnr_stream *s, cnr_error *err) {
    (void)s;
    (void)err;
    call();
    return CNR_OK;
}
/* Method record: *event is the stream; may hang, if that is asked for. */
static cnr_status event_record(cnr_stream *s, void **event, cnr_error *err) {
    (void)err;
    call();
    *event = s;
    return CNR_OK;
}
/* Method wait. */
static cnr_status event_wait(cnr_stream *s, void *event, cnr_error *err) {
    (void)s;
    (void)event;
    (void)err;
    call();
    return CNR_OK;
}
/* Method event_free. */
static void event_free(const cnr_device *d, void *event) {
    (void)d;
    (void)event;
}

/* Method elapsed: 1000 ns. */
static int64_t event_elapsed(const cnr_device *d, void *from, void *to) {
    (void)d;
    (void)from;
    (void)to;
    return 1000;
}
/* Method counters. */
static cnr_status counters(const cnr_device *d, void *from, void *to, cnr_property_fn tell,
                           void *arg, cnr_error *err) {
    (void)d;
    (void)from;
    (void)to;
    (void)err;
    tell(arg, "cycles", NULL, 1234);
    tell(arg, "clock", "low", 0);
    return CNR_OK;
}

static const cnr_device_class device = {.size = sizeof device,
                                        .flags = CNR_DEVICE_SINGLE,
                                        .name = "hang",
                                        .family = "hang",
                                        .summary = "hangs or crashes at its N-th call",
                                        .count = count,
                                        .describe = describe,
                                        .open = open_device,
                                        .close = close_device,
                                        .alloc = alloc,
                                        .free = release,
                                        .write = put,
                                        .read = get,
                                        .stream_open = stream_open,
                                        .stream_close = stream_close,
                                        .sync = sync_stream,
                                        .event_record = event_record,
                                        .event_wait = event_wait,
                                        .event_elapsed = event_elapsed,
                                        .counters = counters,
                                        .event_free = event_free};

/* Method accepts: any plain node. */
static cnr_status accepts(const cnr_device *d, const cnr_node *node, cnr_accept *out) {
    (void)d;
    if (!cnr_all_plain(node, 1u << CNR_f32) || CNR_HAS(node->desc, reference_workspace))
        return cnr_refuse(out, "f32 without a workspace is wanted");
    return cnr_take(node, out, 10);
}

enum { MOST = 16 };
/* Method run by the reference; hangs, if it is its turn. */
static cnr_status run(const cnr_run *r, cnr_error *err) {
    cnr_tensor in[MOST], out[MOST], *outputs[MOST];
    const cnr_tensor *inputs[MOST];
    cnr_node node = *r->node;
    cnr_run own = *r;
    call();
    if (node.n_inputs > MOST || node.n_outputs > MOST)
        return host->fail(err, CNR_E_LIMIT, node.name, "more than %d tensors", (int)MOST);
    for (int32_t i = 0; i < node.n_inputs; i++) {
        inputs[i] = node.inputs[i] ? &in[i] : NULL;
        if (node.inputs[i]) in[i] = *node.inputs[i];
        if (node.inputs[i]) in[i].data = at(&in[i].mem, 0);
    }
    for (int32_t i = 0; i < node.n_outputs; i++) {
        out[i] = *r->outputs[i];
        out[i].data = at(&out[i].mem, 0);
        outputs[i] = &out[i];
    }
    node.inputs = inputs;
    node.outputs = (const cnr_tensor *const *)outputs;
    own.node = &node;
    own.outputs = outputs;
    return node.desc->reference(&own, err);
}

static const cnr_kernel kernel = {.size = sizeof kernel,
                                  .version = 1,
                                  .name = "hang_any",
                                  .op = CNR_ANY_OP,
                                  .device = "hang",
                                  .accepts = accepts,
                                  .run = run};

/* Registers device and kernel. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    const cnr_item items[] = {{CNR_KIND_DEVICE, &device}, {CNR_KIND_KERNEL, &kernel}};
    (void)err;
    host = h;
    return cnr_add_all(h, registrar, items, CNR_ROWS(items));
}

/* Writes how many calls there were. */
static void fini(void) {
    const char *file = getenv("CNNRUN_HANG_COUNT");
    FILE *f = file ? fopen(file, "w") : NULL;
    if (!f) return;
    fprintf(f, "%d\n", calls);
    fclose(f);
}

CNR_PLUGIN_ENTRY {
    static const cnr_plugin plugin = {.size = sizeof plugin,
                                      .magic = CNR_PLUGIN_MAGIC,
                                      .abi = CNR_ABI_WANTED,
                                      .signature = CNR_SIGNATURE,
                                      .name = "hang",
                                      .version = "1",
                                      .summary = "a device that hangs or crashes",
                                      .licence = "MIT",
                                      .init = init,
                                      .fini = fini,
                                      .touches = CNR_TOUCHES_NOTHING};
    (void)host_abi;
    return &plugin;
}
