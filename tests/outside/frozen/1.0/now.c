/* A plugin by the headers of ABI 1.0 alone: an operator, a kernel with a blob, a device. Every
 * later host of this major must load and run it. */
#include <cnnrun/plugin.h>
#include <stdlib.h>

static const cnr_host *host;

/* ---- frozen_scale: y = factor * x, the factor an attribute ---- */

static const cnr_attr_spec attrs[] = {
    {.name = "factor", .type = CNR_ATTR_FLOAT, .default_f = 2, .help = "what to multiply by"}};
static const cnr_port ports[] = {{.name = "x", .help = "f32"}};

static cnr_status infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    if (x->dtype != CNR_f32) return host->fail(err, CNR_E_UNSUPPORTED, node->name, "f32 is wanted");
    out[0]->dtype = x->dtype;
    out[0]->rank = x->rank;
    memcpy(out[0]->dim, x->dim, sizeof x->dim);
    return CNR_OK;
}

static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const float factor = (float)cnr_attr_float(run->node, "factor");
    (void)err;
    for (int64_t i = 0; i < cnr_count(x); i++)
        ((float *)run->outputs[0]->data)[i] = factor * ((const float *)x->data)[i];
    return CNR_OK;
}

static const cnr_op op = {
    .size = sizeof op, .version = 1, .name = "frozen_scale", .summary = "multiplies",
    .flags = CNR_OP_ELEMENTWISE | CNR_OP_EPILOGUE | CNR_OP_PURE,
    .attr_spec_size = sizeof(cnr_attr_spec), .port_size = sizeof(cnr_port), .n_attrs = 1,
    .n_inputs = 1, .n_outputs = 1, .attrs = attrs, .inputs = ports, .outputs = ports,
    .infer = infer, .reference = reference};

/* ---- the kernel: the factor is its blob ---- */

static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    (void)node;
    out->score = 10;
    return CNR_OK;
}

static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    (void)device;
    (void)node;
    (void)err;
    out->bytes = sizeof(float);
    return CNR_OK;
}

static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    (void)device;
    (void)err;
    *(float *)blob = (float)cnr_attr_float(node, "factor");
    return CNR_OK;
}

static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const float factor = *(const float *)run->blob_data;
    (void)err;
    for (int64_t i = 0; i < cnr_count(x); i++)
        ((float *)run->outputs[0]->data)[i] = factor * ((const float *)x->data)[i];
    return CNR_OK;
}

static const cnr_kernel kernels[] = {
    {.size = sizeof(cnr_kernel), .version = 1, .name = "frozen_scale_f32", .op = "frozen_scale",
     .device = "frozen", .accepts = accepts, .prepare_size = prepare_size, .prepare = prepare,
     .run = run},
    {.size = sizeof(cnr_kernel), .version = 1, .name = "frozen_scale_cpu", .op = "frozen_scale",
     .device = "cpu", .accepts = accepts, .prepare_size = prepare_size, .prepare = prepare,
     .run = run}};

/* ---- the device: host memory, streams that finish at once ---- */

static const cnr_memory_class memory[] = {
    {.name = "buffer", .flags = CNR_MEMORY_HOST | CNR_MEMORY_PARTS, .alignment = 64,
     .max_bytes = (uint64_t)1 << 40}};

static int32_t count(cnr_error *err) {
    (void)err;
    return 1;
}
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    (void)index;
    (void)err;
    out->score = 1;
    memcpy(out->key, "frozen", sizeof "frozen");
    memcpy(out->name, "frozen", sizeof "frozen");
    return CNR_OK;
}
static cnr_status open_device(cnr_device *device, const cnr_device_options *options,
                              cnr_error *err) {
    (void)options;
    (void)err;
    device->memory = memory;
    device->n_memory = 1;
    device->concurrency = 1;
    return CNR_OK;
}
static void close_device(cnr_device *device) {
    (void)device;
}
static cnr_status alloc(const cnr_device *device, cnr_mem *out, cnr_error *err) {
    out->handle = host->alloc((size_t)out->bytes);
    out->offset = 0;
    return out->handle ? CNR_OK : host->fail(err, CNR_E_MEMORY, device->name, "out of memory");
}
static void release(const cnr_device *device, cnr_mem *mem) {
    (void)device;
    host->free(mem->handle);
}
static cnr_status put(cnr_stream *stream, const cnr_mem *to, uint64_t offset, const void *from,
                      uint64_t bytes, cnr_error *err) {
    (void)stream;
    (void)err;
    memcpy((char *)to->handle + to->offset + offset, from, (size_t)bytes);
    return CNR_OK;
}
static cnr_status get(cnr_stream *stream, const cnr_mem *from, uint64_t offset, void *to,
                      uint64_t bytes, cnr_error *err) {
    (void)stream;
    (void)err;
    memcpy(to, (const char *)from->handle + from->offset + offset, (size_t)bytes);
    return CNR_OK;
}
static void parallel(cnr_stream *stream, int64_t n, void (*fn)(void *, int64_t, int32_t),
                     void *arg) {
    (void)stream;
    for (int64_t i = 0; i < n; i++) fn(arg, i, 0);
}
static cnr_status stream_open(const cnr_device *device, cnr_stream *stream, cnr_error *err) {
    (void)device;
    (void)err;
    stream->parallel = parallel;
    return CNR_OK;
}
static void stream_close(cnr_stream *stream) {
    (void)stream;
}
static cnr_status sync_stream(cnr_stream *stream, cnr_error *err) {
    (void)stream;
    (void)err;
    return CNR_OK;
}

static const cnr_device_class device = {
    .size = sizeof device, .flags = CNR_DEVICE_ONLY, .name = "frozen-device", .family = "frozen",
    .summary = "host memory, one thread", .count = count, .describe = describe,
    .open = open_device, .close = close_device, .alloc = alloc, .free = release, .write = put,
    .read = get, .stream_open = stream_open, .stream_close = stream_close, .sync = sync_stream};

static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    host = h;
    (void)err;
    cnr_status status = host->add(registrar, CNR_KIND_OPERATOR, &op);
    if (!status) status = host->add(registrar, CNR_KIND_DEVICE, &device);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0] && !status; i++)
        status = host->add(registrar, CNR_KIND_KERNEL, &kernels[i]);
    return status;
}

static const cnr_plugin plugin = {
    .size = sizeof plugin, .magic = CNR_PLUGIN_MAGIC, .abi = CNR_ABI, .signature = CNR_SIGNATURE,
    .name = "frozen-now", .version = "1", .summary = "built with the headers of 1.0",
    .licence = "MIT", .init = init};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
