/* A plugin written on the first day of the ABI: an operator with a kernel, by those headers alone. */
#include <cnnrun/plugin.h>

static const cnr_host *host;

static cnr_status infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    if (x->dtype != CNR_f32) return host->fail(err, CNR_E_UNSUPPORTED, node->name, "f32 is wanted");
    out[0]->dtype = x->dtype;
    out[0]->rank = x->rank;
    memcpy(out[0]->dim, x->dim, sizeof x->dim);
    return CNR_OK;
}

static cnr_status twice(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    (void)err;
    for (int64_t i = 0; i < cnr_count(x); i++)
        ((float *)run->outputs[0]->data)[i] = 2 * ((const float *)x->data)[i];
    return CNR_OK;
}

static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    (void)node;
    out->score = 10;
    return CNR_OK;
}

static const cnr_port ports[] = {{.name = "x", .help = "anything"}};

static const cnr_op op = {
    .size = sizeof op, .version = 1, .name = "frozen_first_twice", .summary = "doubles",
    .flags = CNR_OP_ELEMENTWISE | CNR_OP_PURE, .port_size = sizeof(cnr_port), .n_inputs = 1,
    .n_outputs = 1, .inputs = ports, .outputs = ports, .infer = infer, .reference = twice};

static const cnr_kernel kernel = {
    .size = sizeof kernel, .version = 1, .name = "frozen_first_kernel", .op = "frozen_first_twice",
    .device = "cpu", .accepts = accepts, .run = twice};

static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    host = h;
    (void)err;
    const cnr_status status = host->add(registrar, CNR_KIND_OPERATOR, &op);
    return status ? status : host->add(registrar, CNR_KIND_KERNEL, &kernel);
}

static const cnr_plugin plugin = {
    .size = sizeof plugin, .magic = CNR_PLUGIN_MAGIC, .abi = CNR_ABI, .signature = CNR_SIGNATURE,
    .name = "frozen-first", .version = "1", .summary = "built on the first day", .licence = "MIT",
    .init = init};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
