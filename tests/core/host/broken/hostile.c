/* Plugins that are hostile or hopeless, one for each HOSTILE: what one does, its case says. */
#include "broken.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A sound operator of this name. */
#define OP(text) cnr_op op = BROKEN_OP(text)
static const cnr_host *host;
static struct cnr_registrar *to;
static char long_name[70000];

/* Registers a copy of a descriptor. */
static cnr_status add(int32_t kind, const void *descriptor, size_t bytes) {
    static void *all[100001];
    static int n;
    void *kept = all[n++] = malloc(bytes); /* for as long as the process lives */
    memcpy(kept, descriptor, bytes);
    return host->add(to, kind, kept);
}
static cnr_status add_op(const cnr_op *op) { return add(CNR_KIND_OPERATOR, op, sizeof *op); }

/* ---- pieces for devices, kernels and the rest that are wrong in one place ---- */

/* Method count: one device. */
static int32_t count_one(cnr_error *err) {
    (void)err;
    return 1;
}
/* Method describe, sound: score 1000 and a key; returns CNR_OK. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    (void)index, (void)err;
    out->score = 1000;
    memcpy(out->key, "hostile", sizeof "hostile");
    return CNR_OK;
}
static const cnr_memory_class memory[] = {{.name = "buffer",
                                           .flags = CNR_MEMORY_HOST | CNR_MEMORY_PARTS,
                                           .alignment = 64,
                                           .max_bytes = (uint64_t)1 << 40}};
/* Method open, sound: one class of memory. */
static cnr_status open_it(cnr_device *d, const cnr_device_options *o, cnr_error *err) {
    (void)o, (void)err;
    d->memory = memory;
    d->n_memory = 1;
    return CNR_OK;
}
static void close_it(cnr_device *d) { (void)d; }
/* Method alloc, sound: out's memory by malloc. */
static cnr_status alloc_it(const cnr_device *d, cnr_mem *out, cnr_error *err) {
    (void)d, (void)err;
    out->handle = malloc(out->bytes);
    return CNR_OK;
}
static void free_it(const cnr_device *d, cnr_mem *m) { (void)d, free(m->handle); }
/* Method write, sound: copies the bytes at once; returns CNR_OK. */
static cnr_status put(cnr_stream *s, const cnr_mem *m, uint64_t at, const void *from, uint64_t n,
                      cnr_error *err) {
    (void)s, (void)err;
    memcpy((char *)m->handle + m->offset + at, from, n);
    return CNR_OK;
}
/* Method read, sound: copies the bytes at once; returns CNR_OK. */
static cnr_status get(cnr_stream *s, const cnr_mem *m, uint64_t at, void *out, uint64_t n,
                      cnr_error *err) {
    (void)s, (void)err;
    memcpy(out, (char *)m->handle + m->offset + at, n);
    return CNR_OK;
}
/* Method stream_open, sound: does nothing and returns CNR_OK. */
static cnr_status stream_open(const cnr_device *d, cnr_stream *s, cnr_error *err) {
    (void)d, (void)s, (void)err;
    return CNR_OK;
}
static void stream_close(cnr_stream *s) { (void)s; }
/* Method sync, sound: does nothing and returns CNR_OK. */
static cnr_status sync_it(cnr_stream *s, cnr_error *err) {
    (void)s, (void)err;
    return CNR_OK;
}
/* Method record, sound: *e is NULL. */
static cnr_status record(cnr_stream *s, void **e, cnr_error *err) {
    (void)s, (void)err;
    *e = NULL;
    return CNR_OK;
}
/* Method elapsed, sound: 0 ns. */
static int64_t elapsed(const cnr_device *d, void *a, void *b) {
    (void)d, (void)a, (void)b;
    return 0;
}
#define DEVICE \
    cnr_device_class device = {.size = sizeof device, \
                               .name = "hostile", \
                               .family = "hostile", \
                               .count = count_one, \
                               .describe = describe, \
                               .open = open_it, \
                               .close = close_it, \
                               .alloc = alloc_it, \
                               .free = free_it, \
                               .write = put, \
                               .read = get, \
                               .stream_open = stream_open, \
                               .stream_close = stream_close, \
                               .sync = sync_it}

/* Method accepts, sound: takes every node, with score 1000. */
static cnr_status accepts(const cnr_device *d, const cnr_node *n, cnr_accept *out) {
    (void)d, (void)n;
    out->score = 1000;
    return CNR_OK;
}
static cnr_status run_it(const cnr_run *run, cnr_error *err) { return broken_reference(run, err); }
/* Method prepare, sound: does nothing and returns CNR_OK. */
static cnr_status prepare_it(const cnr_device *d, const cnr_node *n, void *blob, cnr_error *err) {
    (void)d, (void)n, (void)blob, (void)err;
    return CNR_OK;
}
#define KERNEL \
    cnr_kernel kernel = {.size = sizeof kernel, \
                         .name = "hostile_kernel", \
                         .op = "hostile", \
                         .device = "cpu", \
                         .accepts = accepts, \
                         .run = run_it}

/* Waits forever. */
static void endless(void) {
    for (;;) pause();
}
__attribute__((noinline)) static int deep(volatile int n) {
    volatile char room[4096];
    room[n & 4095] = 1;
    return n < 0 ? 0 : deep(n + 1) + room[0];
}

/* ---- hooks that lie once a net runs ---- */

/* Wrong: an output of too many dimensions. */
static cnr_status infer_rank(const cnr_node *n, cnr_tensor *const *out, cnr_error *err) {
    broken_infer(n, out, err);
    out[0]->rank = 77;
    return CNR_OK;
}
/* Wrong: a negative dimension. */
static cnr_status infer_negative(const cnr_node *n, cnr_tensor *const *out, cnr_error *err) {
    broken_infer(n, out, err);
    out[0]->dim[1] = INT64_MIN;
    return CNR_OK;
}
/* Wrong: dimensions whose product overflows. */
static cnr_status infer_huge(const cnr_node *n, cnr_tensor *const *out, cnr_error *err) {
    broken_infer(n, out, err);
    for (int i = 0; i < 4; i++) out[0]->dim[i] = (int64_t)1 << 40;
    return CNR_OK;
}
/* Wrong: a type that there is none of. */
static cnr_status infer_dtype(const cnr_node *n, cnr_tensor *const *out, cnr_error *err) {
    broken_infer(n, out, err);
    out[0]->dtype = -5;
    return CNR_OK;
}
/* Wrong: fails without a message. */
static cnr_status infer_fails(const cnr_node *n, cnr_tensor *const *out, cnr_error *err) {
    (void)n, (void)out, (void)err;
    return CNR_E_SHAPE; /* without a word */
}
/* Wrong: a status that there is none of. */
static cnr_status infer_strange(const cnr_node *n, cnr_tensor *const *out, cnr_error *err) {
    (void)n, (void)out, (void)err;
    return (cnr_status)-4711;
}
/* Wrong: fails without a message. */
static cnr_status reference_fails(const cnr_run *run, cnr_error *err) {
    (void)run, (void)err;
    return CNR_E_DEVICE;
}
/* Wrong: scratch of almost all memory. */
static uint64_t workspace_huge(const cnr_node *n) {
    (void)n;
    return UINT64_MAX - 8;
}
/* Wrong: more aliases than there is room for. */
static int32_t aliases_many(const cnr_node *n, cnr_alias *out, int32_t max) {
    (void)n, (void)out, (void)max;
    return 1 << 20;
}
/* Wrong: an alias of outputs and inputs that there are none of. */
static int32_t aliases_wrong(const cnr_node *n, cnr_alias *out, int32_t max) {
    (void)n, (void)max;
    out[0] = (cnr_alias){CNR_ALIAS_VIEW, 99, -7, UINT64_MAX};
    return 1;
}
/* Wrong: more axes than there is room for. */
static int32_t splits_many(const cnr_node *n, cnr_split_axis *out, int32_t max) {
    (void)n, (void)out, (void)max;
    return 1 << 20;
}
/* Wrong: ports that there are none of. */
static int32_t linear_wrong(const cnr_node *n, cnr_linear *out) {
    (void)n;
    *out = (cnr_linear){900, -900, 12345};
    return 1;
}
/* Wrong: packed weights of almost all memory. */
static cnr_status prepare_size_huge(const cnr_device *d, const cnr_node *n, cnr_space *out,
                                    cnr_error *err) {
    (void)d, (void)n, (void)err;
    out->bytes = UINT64_MAX - 100;
    return CNR_OK;
}
/* Wrong: an answer out of all bounds. */
static cnr_status accepts_wrong(const cnr_device *d, const cnr_node *n, cnr_accept *out) {
    accepts(d, n, out);
    out->out_class[0] = 1 << 20;
    out->in_block[0] = -5;
    out->epilogue = 1 << 30;
    return CNR_OK;
}
/* Wrong: fails without a message. */
static cnr_status plan_fails(const cnr_device *d, const cnr_node *n, cnr_space *w, void **s,
                             cnr_error *err) {
    (void)d, (void)n, (void)w, (void)s, (void)err;
    return CNR_E_UNSUPPORTED;
}
/* Wrong: a device without memory. */
static cnr_status open_nothing(cnr_device *d, const cnr_device_options *o, cnr_error *err) {
    (void)d, (void)o, (void)err;
    return CNR_OK;
}
/* Wrong: more kinds of memory than there may be. */
static cnr_status open_many(cnr_device *d, const cnr_device_options *o, cnr_error *err) {
    (void)o, (void)err;
    static const cnr_memory_class odd[] = {{.name = "odd",
                                            .flags = CNR_MEMORY_HOST | CNR_MEMORY_PARTS,
                                            .alignment = 3,
                                            .max_bytes = 1}};
    d->memory = odd;
    d->n_memory = 1;
    return CNR_OK;
}
/* Method alloc, wrong: succeeds with no memory. */
static cnr_status alloc_null(const cnr_device *d, cnr_mem *out, cnr_error *err) {
    (void)d, (void)err;
    out->handle = NULL;
    return CNR_OK;
}
/* Wrong: more devices than there may be. */
static int32_t count_many(cnr_error *err) {
    (void)err;
    return INT_MAX;
}
/* Wrong: a failure in place of a count. */
static int32_t count_failed(cnr_error *err) {
    (void)err;
    return CNR_E_DEVICE;
}
/* Wrong: texts without an end. */
static cnr_status describe_unended(int32_t index, cnr_device_info *out, cnr_error *err) {
    (void)err;
    if (index > 0) return CNR_E_NOT_FOUND;
    memset((char *)out + sizeof out->size, 'x', sizeof *out - sizeof out->size);
    out->score = 1000;
    return CNR_OK;
}
/* Wrong: always claims a change. */
static int32_t rewrite_endless(struct cnr_graph *g, cnr_error *err) {
    (void)g, (void)err;
    return 1;
}
/* Wrong: a negative count. */
static int32_t rewrite_fails(struct cnr_graph *g, cnr_error *err) {
    (void)g, (void)err;
    return -4711;
}

static const cnr_port two_variadic[] = {{"x", CNR_PORT_VARIADIC, 1, ""}, {"y", 0, 0, ""}};
static const cnr_port many_least[] = {{"x", CNR_PORT_VARIADIC, INT_MAX, ""}};
static const cnr_port nameless[] = {{NULL, 0, 0, ""}};
static const cnr_attr_spec attr[] = {{.name = "a", .type = CNR_ATTR_INT}};
static const cnr_attr_spec attr_nameless[] = {{.type = CNR_ATTR_INT}};
static const cnr_attr_spec attr_long[] = {{.name = long_name, .type = CNR_ATTR_INT}};
static const char *filled[6000];
static const cnr_attr_spec attr_choices[] = {
    {.name = "a", .type = CNR_ATTR_ENUM, .choices = filled}};

/* Registers the one wrong thing that the environment names. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    host = h;
    to = registrar;
    (void)err;
    memset(long_name, 'n', sizeof long_name - 1);
    for (size_t i = 0; i < sizeof filled / sizeof filled[0] - 1; i++) filled[i] = "same";
    OP("hostile");
    KERNEL;
    DEVICE;
    (void)op, (void)kernel, (void)device;
#define LATER (void)add_op(&op)
#if HOSTILE == 1
    exit(0);
#elif HOSTILE == 2
    exit(3);
#elif HOSTILE == 3
    abort(); /* what a C++ exception without a catch comes to */
#elif HOSTILE == 4
    return ((cnr_status(*)(void))NULL)();
#elif HOSTILE == 5
    return (cnr_status)deep(0);
#elif HOSTILE == 6
    endless();
#elif HOSTILE == 7
    _exit(0);
#elif HOSTILE == 8
    static char names[100000][12];
    for (int i = 0; i < 100000; i++) { /* too many to look through each time */
        snprintf(names[i], sizeof names[i], "op%d", i);
        op.name = names[i];
        const cnr_status status = add_op(&op);
        if (status) return status;
    }
#elif HOSTILE == 9
    static char names[100000][12];
    for (int i = 0; i < 100000; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        kernel.name = kernel.op = names[i];
        const cnr_status status = add(CNR_KIND_KERNEL, &kernel, sizeof kernel);
        if (status) return status;
    }
#elif HOSTILE == 10
    static char names[1000][12];
    kernel.op = CNR_ANY_OP;
    for (int i = 0; i < 1000; i++) {
        snprintf(names[i], sizeof names[i], "any%d", i);
        kernel.name = names[i];
        const cnr_status status = add(CNR_KIND_KERNEL, &kernel, sizeof kernel);
        if (status) return status;
    }
#elif HOSTILE == 11
    op.n_attrs = INT_MAX, op.attrs = attr, op.attr_spec_size = sizeof attr[0];
    return add_op(&op);
#elif HOSTILE == 12
    op.n_attrs = 1, op.attrs = attr, op.attr_spec_size = UINT32_MAX;
    return add_op(&op);
#elif HOSTILE == 13
    op.n_attrs = 1, op.attrs = attr, op.attr_spec_size = sizeof attr[0] + 1;
    return add_op(&op);
#elif HOSTILE == 14
    op.n_attrs = 1, op.attrs = attr_nameless, op.attr_spec_size = sizeof attr[0];
    return add_op(&op);
#elif HOSTILE == 15
    op.n_attrs = 1, op.attrs = attr_long, op.attr_spec_size = sizeof attr[0];
    return add_op(&op);
#elif HOSTILE == 16
    op.n_attrs = 1, op.attrs = attr_choices, op.attr_spec_size = sizeof attr[0];
    return add_op(&op);
#elif HOSTILE == 17
    op.n_inputs = INT_MAX;
    return add_op(&op);
#elif HOSTILE == 18
    op.n_outputs = INT_MAX;
    return add_op(&op);
#elif HOSTILE == 19
    op.port_size = 1 << 30;
    return add_op(&op);
#elif HOSTILE == 20
    op.port_size = sizeof(cnr_port) + 2;
    return add_op(&op);
#elif HOSTILE == 21
    op.n_inputs = 2, op.inputs = two_variadic;
    return add_op(&op);
#elif HOSTILE == 22
    op.inputs = many_least;
    return add_op(&op);
#elif HOSTILE == 23
    op.inputs = nameless;
    return add_op(&op);
#elif HOSTILE == 24
    op.name = long_name;
    return add_op(&op);
#elif HOSTILE == 25
    op.size = UINT32_MAX;
    return add_op(&op);
#elif HOSTILE == 26
    op.aliases = filled;
    return add_op(&op);
#elif HOSTILE == 27
    op.input_range = (void (*)(const cnr_node *, int32_t, int64_t, int64_t, int32_t,
                               cnr_input_range *))(void (*)(void))endless;
    return add_op(&op);
#elif HOSTILE == 28
    return host->add(to, CNR_KIND_OPERATOR, NULL);
#elif HOSTILE == 29
    return host->add(to, -3, &op);
#elif HOSTILE == 30
    return host->add(NULL, CNR_KIND_OPERATOR, &op);
#elif HOSTILE == 31
    kernel.prepare = prepare_it;
    return add(CNR_KIND_KERNEL, &kernel, sizeof kernel);
#elif HOSTILE == 32
    kernel.encodings = filled;
    return add(CNR_KIND_KERNEL, &kernel, sizeof kernel);
#elif HOSTILE == 33
    device.event_record = record;
    return add(CNR_KIND_DEVICE, &device, sizeof device);
#elif HOSTILE == 34
    device.event_elapsed = elapsed;
    return add(CNR_KIND_DEVICE, &device, sizeof device);
#elif HOSTILE == 35
    device.sync = NULL;
    return add(CNR_KIND_DEVICE, &device, sizeof device);
#elif HOSTILE == 36
    cnr_object object = {.size = sizeof object,
                         .name = "hostile",
                         .n_methods = INT_MAX,
                         .methods = filled};
    return add(CNR_KIND_OBJECT, &object, sizeof object);
#elif HOSTILE == 37
    cnr_object object = {.size = sizeof object, .name = "hostile", .n_methods = -1};
    return add(CNR_KIND_OBJECT, &object, sizeof object);
#elif HOSTILE == 38
    cnr_encoding encoding = {.size = sizeof encoding, .name = "hostile", .n_attrs = 1 << 30};
    return add(CNR_KIND_ENCODING, &encoding, sizeof encoding);
#elif HOSTILE == 39
    cnr_source source = {.size = sizeof source, .name = "hostile"};
    return add(CNR_KIND_SOURCE, &source, sizeof source);
#elif HOSTILE == 40
    return CNR_E_FORMAT; /* without a word */
#elif HOSTILE == 41
    return (cnr_status)4711;
#elif HOSTILE == 42
    op.infer = infer_rank, LATER;
#elif HOSTILE == 43
    op.infer = infer_negative, LATER;
#elif HOSTILE == 44
    op.infer = infer_huge, LATER;
#elif HOSTILE == 45
    op.infer = infer_dtype, LATER;
#elif HOSTILE == 46
    op.infer = infer_fails, LATER;
#elif HOSTILE == 47
    op.infer = infer_strange, LATER;
#elif HOSTILE == 48
    op.reference = reference_fails, LATER;
#elif HOSTILE == 49
    op.reference_workspace = workspace_huge, LATER;
#elif HOSTILE == 50
    op.buffer_aliases = aliases_many, LATER;
#elif HOSTILE == 51
    op.buffer_aliases = aliases_wrong, LATER;
#elif HOSTILE == 52
    op.split_axes = splits_many, LATER;
#elif HOSTILE == 53
    op.linear = linear_wrong, LATER;
#elif HOSTILE == 54
    kernel.prepare_size = prepare_size_huge, kernel.prepare = prepare_it, LATER;
    return add(CNR_KIND_KERNEL, &kernel, sizeof kernel);
#elif HOSTILE == 55
    kernel.accepts = accepts_wrong, LATER;
    return add(CNR_KIND_KERNEL, &kernel, sizeof kernel);
#elif HOSTILE == 56
    kernel.plan = plan_fails, LATER;
    return add(CNR_KIND_KERNEL, &kernel, sizeof kernel);
#elif HOSTILE == 57
    device.open = open_nothing, LATER;
    return add(CNR_KIND_DEVICE, &device, sizeof device);
#elif HOSTILE == 58
    device.open = open_many, LATER;
    return add(CNR_KIND_DEVICE, &device, sizeof device);
#elif HOSTILE == 59
    device.alloc = alloc_null, LATER;
    return add(CNR_KIND_DEVICE, &device, sizeof device);
#elif HOSTILE == 60
    device.count = count_many, LATER;
    return add(CNR_KIND_DEVICE, &device, sizeof device);
#elif HOSTILE == 61
    device.count = count_failed, LATER;
    return add(CNR_KIND_DEVICE, &device, sizeof device);
#elif HOSTILE == 62
    device.describe = describe_unended, LATER;
    return add(CNR_KIND_DEVICE, &device, sizeof device);
#elif HOSTILE == 63
    cnr_rewrite rewrite = {.size = sizeof rewrite, .name = "hostile", .apply = rewrite_endless};
    LATER;
    return add(CNR_KIND_REWRITE, &rewrite, sizeof rewrite);
#elif HOSTILE == 64
    cnr_rewrite rewrite = {.size = sizeof rewrite, .name = "hostile", .apply = rewrite_fails};
    LATER;
    return add(CNR_KIND_REWRITE, &rewrite, sizeof rewrite);
#endif
    return CNR_OK;
}

static const cnr_plugin plugin = {BROKEN_SOUND("hostile", init)};
BROKEN_ENTRY(&plugin)
