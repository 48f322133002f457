/* A plugin of each usual kind: an operator, a kernel with a blob, a device, an importer that looks at
 * the net, a meter and a knob. skew.t builds it by the headers of several days. */
#include <cnnrun/plugin.h>
#include <stdio.h>
#include <stdlib.h>

static const cnr_host *host;

/* ---- frozen_shift: y = x + amount, the amount an attribute ---- */

static const cnr_attr_spec attrs[] = {
    {.name = "amount", .type = CNR_ATTR_FLOAT, .default_f = 2, .help = "what to add"}};
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
    const float amount = (float)cnr_attr_float(run->node, "amount");
    (void)err;
    for (int64_t i = 0; i < cnr_count(x); i++)
        ((float *)run->outputs[0]->data)[i] = amount + ((const float *)x->data)[i];
    return CNR_OK;
}

static const cnr_op op = {
    .size = sizeof op, .version = 1, .name = "frozen_shift", .summary = "adds",
    .flags = CNR_OP_ELEMENTWISE | CNR_OP_EPILOGUE | CNR_OP_PURE,
    .attr_spec_size = sizeof(cnr_attr_spec), .port_size = sizeof(cnr_port), .n_attrs = 1,
    .n_inputs = 1, .n_outputs = 1, .attrs = attrs, .inputs = ports, .outputs = ports,
    .infer = infer, .reference = reference};

/* ---- the kernel: the amount is its blob. On the CPU the reference runs. ---- */

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
    *(float *)blob = (float)cnr_attr_float(node, "amount");
    return CNR_OK;
}

static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const float amount = *(const float *)run->blob_data;
    (void)err;
    for (int64_t i = 0; i < cnr_count(x); i++)
        ((float *)run->outputs[0]->data)[i] = amount + ((const float *)x->data)[i];
    return CNR_OK;
}

static const cnr_kernel kernels[] = {
    {.size = sizeof(cnr_kernel), .version = 1, .name = "frozen_shift_f32", .op = "frozen_shift",
     .device = "frozen", .accepts = accepts, .prepare_size = prepare_size, .prepare = prepare,
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
static int32_t max_score(void) {
    return 1;
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
    .size = sizeof device, .flags = CNR_DEVICE_SINGLE, .name = "frozen-device", .family = "frozen",
    .summary = "host memory, one thread", .count = count, .describe = describe,
    .open = open_device, .close = close_device, .alloc = alloc, .free = release, .write = put,
    .read = get, .stream_open = stream_open, .stream_close = stream_close, .sync = sync_stream,
    .max_score = max_score};

/* ---- an importer of "frozen-net ROWS COLUMNS": a shift of one input; or, for a net that wants
 * weights, ones for each of them ---- */

static int32_t accepts_file(const char *path, const uint8_t *head, size_t head_bytes) {
    (void)path;
    return head_bytes > 11 && memcmp(head, "frozen-net ", 11) == 0 ? 100 : 0;
}

static void ones_for(const struct cnr_graph *net, struct cnr_graph *graph) {
    for (int32_t i = 0; i < host->graph_node_count(net); i++) {
        const cnr_value *in;
        const cnr_node *node = host->graph_node_at(net, i, &in, NULL);
        for (int32_t k = 0; k < node->n_inputs && k < node->desc->n_inputs; k++) {
            if (!node->inputs[k] || !(node->desc->inputs[k].flags & CNR_PORT_PARAMETER)) continue;
            cnr_tensor type = *node->inputs[k];
            const int64_t n = cnr_count(&type);
            float *data = n < 0 ? NULL : host->alloc((size_t)n * sizeof *data + 1);
            for (int64_t j = 0; data && j < n; j++) data[j] = 1;
            type.data = data;
            type.bytes = (uint64_t)n * sizeof *data;
            if (data) host->graph_constant(graph, host->graph_value_name(net, in[k]), &type);
            host->free(data);
        }
    }
}

static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    cnr_tensor x = {.size = sizeof x, .dtype = CNR_f32, .rank = 2};
    char text[64] = "";
    FILE *f = fopen(args->paths[0], "rb");
    if (!f) return host->fail(err, CNR_E_IO, args->paths[0], "can't be opened");
    const size_t got = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    if (args->size > offsetof(cnr_import_args, net) && args->net) {
        ones_for(args->net, graph);
        return CNR_OK;
    }
    char *end = text + (got < 11 ? got : 11);
    for (int i = 0; i < 2; i++) x.dim[i] = strtoll(end, &end, 10);
    const cnr_value in = host->graph_input(graph, "x", &x);
    cnr_value out = -1;
    host->graph_node(graph, "frozen_shift", "shift", args->paths[0], &in, 1, NULL, 0, &out, 1);
    return host->graph_output(graph, out, "y");
}

static const cnr_importer importer = {
    .size = sizeof importer, .name = "frozen-net", .summary = "one line of text",
    .accepts = accepts_file, .import = import};

/* ---- a meter and a knob, of one value each ---- */

static cnr_status open_state(const cnr_gauge_options *options, void **state, int32_t *n, cnr_error *err) {
    static int none;
    (void)options;
    (void)err;
    *state = &none;
    *n = 1;
    return CNR_OK;
}
static void close_state(void *state) {
    (void)state;
}
static cnr_status describe_meter(void *state, int32_t domain, cnr_meter_domain *out,
                                 cnr_error *err) {
    (void)state;
    (void)domain;
    (void)err;
    memcpy(out->name, "board", sizeof "board");
    out->quantity = CNR_QUANTITY_POWER;
    out->period_ms = 10;
    return CNR_OK;
}
static cnr_status read_meter(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    (void)state;
    (void)domain;
    (void)err;
    out->value = 1000000;
    return CNR_OK;
}
static const cnr_meter meter = {
    .size = sizeof meter, .name = "frozen-meter", .summary = "one watt", .open = open_state,
    .describe = describe_meter, .read = read_meter, .close = close_state};

static cnr_status describe_knob(void *state, int32_t domain, cnr_knob_domain *out, cnr_error *err) {
    (void)state;
    (void)domain;
    (void)err;
    memcpy(out->name, "clock", sizeof "clock");
    out->n_steps = 1;
    out->min_hz = out->max_hz = 1000;
    return CNR_OK;
}
static cnr_status step(void *state, int32_t domain, int32_t index, uint64_t *hz, cnr_error *err) {
    (void)state;
    (void)domain;
    (void)index;
    (void)err;
    *hz = 1000;
    return CNR_OK;
}
static cnr_status read_knob(void *state, int32_t domain, cnr_knob_state *out, cnr_error *err) {
    out->load_percent = -1;
    return step(state, domain, 0, &out->hz, err);
}
static cnr_status set_knob(void *state, int32_t domain, uint64_t hz, int32_t cores,
                           cnr_error *err) {
    (void)cores;
    return step(state, domain, 0, &hz, err);
}
static cnr_status restore_knob(void *state, cnr_error *err) {
    (void)state;
    (void)err;
    return CNR_OK;
}
static const cnr_knob knob = {
    .size = sizeof knob, .name = "frozen-knob", .summary = "one step", .open = open_state,
    .describe = describe_knob, .step = step, .read = read_knob, .set = set_knob,
    .restore = restore_knob, .close = close_state};

static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    host = h;
    (void)err;
    cnr_status status = host->add(registrar, CNR_KIND_OPERATOR, &op);
    if (!status) status = host->add(registrar, CNR_KIND_DEVICE, &device);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0] && !status; i++)
        status = host->add(registrar, CNR_KIND_KERNEL, &kernels[i]);
    if (!status) status = host->add(registrar, CNR_KIND_IMPORTER, &importer);
    if (!status) status = host->add(registrar, CNR_KIND_METER, &meter);
    if (!status) status = host->add(registrar, CNR_KIND_KNOB, &knob);
    return status;
}

static const cnr_plugin plugin = {
    .size = sizeof plugin, .magic = CNR_PLUGIN_MAGIC, .abi = CNR_ABI_WANTED, .signature = CNR_SIGNATURE,
    .name = "frozen-now", .version = "1", .summary = "built with headers of some day",
    .licence = "MIT", .init = init};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
