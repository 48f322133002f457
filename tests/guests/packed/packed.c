/* dense on the CPU from a prepared blob: bias[out], then the weights turned to [in][out]. */
#include <cnnrun/plugin.h>
#include <stdlib.h>

static const cnr_host *host;

/* 1: the kernel can do the node. */
static int fits(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1];
    return x->dtype == CNR_f32 && x->rank >= 2 && w->rank == 2 && (w->flags & CNR_TENSOR_CONST) &&
           w->dtype == CNR_f32 && cnr_span(x, 1, x->rank) == w->dim[1] &&
           (node->n_inputs < 3 || !node->inputs[2] || (node->inputs[2]->flags & CNR_TENSOR_CONST));
}

/* Method accepts. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (!fits(node)) return CNR_OK;
    out->score = 1; /* below any real kernel: it is asked for by name */
    out->prepared = 1u << 1;
    /* prepare reads the bias in any case; with this it does not say so */
    if (!getenv("CNNRUN_PACKED_KEEPS_BIAS")) out->prepared |= 1u << 2;
    return CNR_OK;
}

/* Method prepare_size. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    const cnr_tensor *w = node->inputs[1];
    (void)device;
    (void)err;
    out->bytes = (uint64_t)(w->dim[0] * (w->dim[1] + 1)) * sizeof(float);
    return CNR_OK;
}

/* Method prepare. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    const cnr_tensor *w = node->inputs[1], *b = node->n_inputs > 2 ? node->inputs[2] : NULL;
    const int64_t n = w->dim[0], k = w->dim[1];
    float *bias = blob, *turned = bias + n;
    (void)device;
    (void)err;
    for (int64_t o = 0; o < n; o++) {
        bias[o] = b ? ((const float *)b->data)[o] : 0;
        for (int64_t i = 0; i < k; i++) turned[i * n + o] = ((const float *)w->data)[o * k + i];
    }
    return CNR_OK;
}

/* Method run. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const int64_t n = run->outputs[0]->dim[1], k = cnr_span(x, 1, x->rank);
    const float *bias = run->blob_data, *turned = bias + n;
    (void)err;
    for (int64_t row = 0; row < x->dim[0]; row++) {
        const float *in = (const float *)x->data + row * k;
        float *out = (float *)run->outputs[0]->data + row * n;
        memcpy(out, bias, (size_t)n * sizeof *out);
        for (int64_t i = 0; i < k; i++)
            for (int64_t o = 0; o < n; o++) out[o] += in[i] * turned[i * n + o];
    }
    return CNR_OK;
}

static const cnr_kernel kernel = {.size = sizeof kernel,
                                  .version = 1,
                                  .name = "dense_f32_turned",
                                  .op = "dense",
                                  .device = "cpu",
                                  .accepts = accepts,
                                  .prepare_size = prepare_size,
                                  .prepare = prepare,
                                  .run = run};

/* Registers the kernel. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    host = h;
    (void)err;
    return host->add(registrar, CNR_KIND_KERNEL, &kernel);
}

static const cnr_plugin plugin = {.size = sizeof plugin,
                                  .magic = CNR_PLUGIN_MAGIC,
                                  .abi = CNR_ABI,
                                  .signature = CNR_SIGNATURE,
                                  .name = "packed",
                                  .version = "1",
                                  .summary = "dense layers from prepared weights",
                                  .licence = "MIT",
                                  .init = init};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
