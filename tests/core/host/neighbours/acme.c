/* A plugin of another maker: an operator of its own, one whose name is taken with a kernel for it,
 * and a device that gives itself the highest score. TYPO: kernels that refer to what nobody has.
 * ACME_FAULT in the environment has its kernel crash, or its device hang; ACME_COST has a kernel of
 * a low score state that it takes so many nanoseconds. */
#include <cnnrun/kit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const cnr_host *host;

/* ---- operators: the input twice ---- */

/* Method infer: the output is like the input. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    (void)err;
    outputs[0]->dtype = node->inputs[0]->dtype;
    outputs[0]->rank = node->inputs[0]->rank;
    memcpy(outputs[0]->dim, node->inputs[0]->dim, sizeof outputs[0]->dim);
    return CNR_OK;
}

/* Method reference: the input times 2; returns CNR_OK. */
static cnr_status twice(const cnr_run *run, cnr_error *err) {
    const float *x = run->node->inputs[0]->data;
    float *y = run->outputs[0]->data;
    (void)err;
    for (uint64_t i = 0; i < run->outputs[0]->bytes / sizeof *y; i++) y[i] = 2 * x[i];
    return CNR_OK;
}

static const cnr_port port[] = {{"x", 0, 0, NULL}};
/* An operator of this name. */
#define OP(text) \
    { \
        CNR_OP_SIZES, CNR_OP_PORTS(port, port), .name = text, .summary = "The input twice.", \
                                                .infer = infer, .reference = twice \
    }
static const cnr_op own = OP("acme.twice"), taken = OP("relu");

/* ---- kernels ---- */

/* Method accepts: takes every node, with score 1000. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    (void)node;
    out->score = 1000;
    return CNR_OK;
}

/* 1: the environment names this fault. */
static int fault_is(const char *name) {
    const char *given = getenv("ACME_FAULT");
    return given && strcmp(given, name) == 0;
}

/* A task that crashes on other threads than the first. */
static void crash_there(void *arg, int64_t i, int32_t thread) {
    (void)arg;
    (void)i;
    if (thread > 0) raise(SIGSEGV);
    else usleep(1000); /* until another thread has taken some */
}

/* A fault of the processor, but for those that sanitisers or compilers take for theirs. */
static cnr_status crash(const cnr_run *run, cnr_error *err) {
    static volatile int *volatile nowhere;
    if (fault_is("SEGV")) *nowhere = 1;
    if (fault_is("BUS")) raise(SIGBUS);
    if (fault_is("FPE")) raise(SIGFPE);
    if (fault_is("ILL")) raise(SIGILL);
    if (fault_is("ABRT")) abort();
    if (fault_is("thread")) run->stream->parallel(run->stream, 100000, crash_there, NULL);
    return twice(run, err);
}

/* Method prepare_size: sets out->bytes; returns CNR_OK. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    (void)device;
    (void)node;
    (void)err;
    out->bytes = 4;
    return CNR_OK;
}

/* Method prepare; crashes, if that is the fault. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    (void)device;
    (void)node;
    (void)err;
    if (fault_is("prepare")) raise(SIGSEGV);
    memset(blob, 0, 4);
    return CNR_OK;
}

static const char *const encodings[] = {"", "sparse-crs", NULL};
/* A kernel of an operator on a device. */
#define KERNEL(text, of, on, ...) \
    { \
        .size = sizeof(cnr_kernel), .name = text, .op = of, .device = on, .accepts = accepts, \
        .run = twice, __VA_ARGS__ \
    }
/* Method accepts that states the cost which the environment gives. */
static cnr_status states(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const char *cost = getenv("ACME_COST");
    (void)device;
    (void)node;
    out->score = cost ? 10 : 0;
    out->cost_ns = cost ? atof(cost) : 0;
    return CNR_OK;
}

static const cnr_kernel stated_kernel = {.size = sizeof stated_kernel,
                                         .name = "acme_stated",
                                         .op = "acme.twice",
                                         .device = "cpu",
                                         .accepts = states,
                                         .run = twice};
static const cnr_kernel own_kernel = {.size = sizeof own_kernel,
                                      .name = "acme_twice",
                                      .op = "acme.twice",
                                      .device = "cpu",
                                      .accepts = accepts,
                                      .prepare_size = prepare_size,
                                      .prepare = prepare,
                                      .run = crash};
static const cnr_kernel taken_kernel = KERNEL("acme_relu", "relu", "cpu", .version = 1),
                        wrong_op = KERNEL("acme_typo", "convv", "cpu", .version = 1),
                        wrong_device = KERNEL("acme_lost", "softmax", "cpus", .version = 1),
                        wrong_encoding =
                            KERNEL("acme_code", "softmax", "cpu", .encodings = encodings),
                        alias = KERNEL("acme_alias", "conv2d", "cpu", .version = 1);

/* ---- a device in host memory ---- */

/* Method count; tells that the driver was woken. */
static int32_t count(cnr_error *err) {
    (void)err;
    if (getenv("ACME_WOKEN")) fprintf(stderr, "acme's driver wakes\n");
    return 1;
}

/* Method describe: score 100000 and a key; returns CNR_OK. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    (void)index;
    (void)err;
    out->score = 100000;
    snprintf(out->key, sizeof out->key, "acme");
    snprintf(out->name, sizeof out->name, "an accelerator");
    return CNR_OK;
}

static const cnr_memory_class memory[] = {
    {"heap", CNR_MEMORY_HOST | CNR_MEMORY_PARTS, 64, UINT64_MAX, 0, 0}};

/* Method open: one class of memory, one unit. */
static cnr_status open_it(cnr_device *device, const cnr_device_options *options, cnr_error *err) {
    (void)options;
    (void)err;
    device->memory = memory;
    device->n_memory = device->concurrency = 1;
    return CNR_OK;
}
static void close_it(cnr_device *device) { (void)device; }

/* Method alloc: host memory into out; fails when there is none. */
static cnr_status allocate(const cnr_device *device, cnr_mem *out, cnr_error *err) {
    out->offset = 0;
    out->handle = host->alloc(out->bytes ? out->bytes : 1);
    return out->handle ? CNR_OK : host->fail(err, CNR_E_MEMORY, device->name, "no memory");
}
/* Method free of memory: frees it at once. */
static void release(const cnr_device *device, cnr_mem *mem) {
    (void)device;
    host->free(mem->handle);
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
static void stream_close(cnr_stream *stream) { (void)stream; }
/* "hang": until it is cancelled, as a driver should; "stuck": for ever. */
static cnr_status sync_it(cnr_stream *stream, cnr_error *err) {
    const int hangs = fault_is("hang"), sticks = fault_is("stuck");
    if (hangs || sticks) fprintf(stderr, "acme waits\n");
    while (sticks || (hangs && !cnr_cancelled(stream))) usleep(1000);
    return hangs ? host->fail(err, CNR_E_CANCELLED, "acme", "given up") : CNR_OK;
}

static const cnr_device_class device = {.size = sizeof device,
                                        .flags = CNR_DEVICE_SINGLE,
                                        .name = "acme-npu",
                                        .family = "acme",
                                        .summary = "an accelerator, as its maker says",
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
                                        .sync = sync_it};

/* Registers what the environment names. */
static cnr_status init(const cnr_host *given, struct cnr_registrar *r, cnr_error *err) {
    static const cnr_item good[] = {{CNR_KIND_KERNEL, &taken_kernel},
                                    {CNR_KIND_OPERATOR, &taken},
                                    {CNR_KIND_OPERATOR, &own},
                                    {CNR_KIND_KERNEL, &own_kernel},
                                    {CNR_KIND_KERNEL, &stated_kernel},
                                    {CNR_KIND_DEVICE, &device}};
    static const cnr_item typo[] = {{CNR_KIND_KERNEL, &wrong_op},
                                    {CNR_KIND_KERNEL, &wrong_device},
                                    {CNR_KIND_KERNEL, &wrong_encoding},
                                    {CNR_KIND_KERNEL, &alias}};
    (void)err;
    host = given;
#ifdef TYPO
    (void)good;
    return cnr_add_all(given, r, typo, CNR_ROWS(typo));
#else
    (void)typo;
    return cnr_add_all(given, r, good, CNR_ROWS(good));
#endif
}

CNR_PLUGIN(NAME, "1", "a made-up vendor's", "MIT", init, CNR_TOUCHES_NOTHING)
