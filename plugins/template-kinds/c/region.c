/* A device that computes regions: chains of element-wise operators, each in one step. It has the
 * host's memory and no queue, as device.c, which says what its first half is; ../template-npu is
 * one with both. A region needs no reference: its nodes are that. */
#include <cnnrun/kit.h>

#include <stdio.h>

static const cnr_host *host;

/* ---- the device ---- */

/* Method count: one device. */
static int32_t count(cnr_error *err) {
    (void)err;
    return 1;
}

/* Method describe: name, key and score of the only device. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    (void)index, (void)err;
    out->score = 1;
    out->concurrency = 1;
    snprintf(out->key, sizeof out->key, "0");
    snprintf(out->name, sizeof out->name, "chains");
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

/* Address of n bytes of memory; NULL: they lie outside it. */
static char *place(const cnr_mem *m, uint64_t offset, uint64_t n, cnr_error *err) {
    if (offset <= m->bytes && n <= m->bytes - offset) return (char *)m->handle + m->offset + offset;
    host->fail(err, CNR_E_ARG, "chains", "bytes outside the memory");
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

/* ---- the compiler: which nodes it would take ---- */

enum { LONGEST = 64 };

/* 1: an element-wise operator of one input, or of two that are the same value. */
static int32_t takes(const cnr_subnode *at) {
    const cnr_node *n = at->node;
    if (!(n->desc->flags & CNR_OP_ELEMENTWISE) || !CNR_HAS(n->desc, apply_f32)) return 0;
    if (n->n_inputs < 1 || n->n_inputs > 2 || n->n_outputs != 1) return 0;
    for (int32_t i = 0; i < n->n_inputs; i++)
        if (at->inputs[i] != at->inputs[0] || !cnr_is_plain(n->inputs[i], 1u << CNR_f32) ||
            !cnr_same_shape(n->inputs[i], n->outputs[0]))
            return 0;
    return n->outputs[0]->dtype == CNR_f32;
}

/* The only node that reads the value, which nobody else does; -1: there is none. */
static int32_t reader_of(const cnr_subgraph *g, int32_t value) {
    int32_t reader = -1;
    for (int32_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == value) return -1;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t k = 0; k < g->nodes[i].node->n_inputs; k++) {
            if (g->nodes[i].inputs[k] != value || reader == i) continue;
            if (reader >= 0) return -1;
            reader = i;
        }
    return reader;
}

/* Method claim: each chain of nodes that takes() knows. */
static cnr_status claim(const cnr_device *dev, const cnr_subgraph *g, cnr_claim_fn tell, void *arg,
                        cnr_error *err) {
    (void)dev, (void)err;
    for (int32_t first = 0; first < g->n_nodes; first++) {
        int32_t nodes[LONGEST], n = 0;
        for (int32_t at = first; at >= 0 && n < LONGEST && takes(&g->nodes[at]);
             at = reader_of(g, g->nodes[at].outputs[0]))
            nodes[n++] = at;
        const double elements = (double)cnr_count(g->nodes[first].node->outputs[0]);
        const cnr_claim c = {.size = sizeof c,
                             .n_nodes = n,
                             .nodes = nodes,
                             .kernel = "chain",
                             .cost_ns = 100 + elements * n}; /* of a run, which you measure */
        if (n) tell(arg, &c); /* claims may overlap: a node goes to one of them */
    }
    return CNR_OK;
}

/* ---- the kernel: its node holds the region that was claimed ---- */

/* Method accepts: a region whose nodes takes() knows. */
static cnr_status accepts(const cnr_device *dev, const cnr_node *node, cnr_accept *out) {
    (void)dev;
    for (int32_t i = 0; i < node->subgraph->n_nodes; i++)
        if (!takes(&node->subgraph->nodes[i])) return cnr_refuse(out, "it is no chain");
    return cnr_take(node, out, 400);
}

/* Method run: computes the chain, each node in place in the output; returns CNR_OK. */
static cnr_status run_chain(const cnr_run *run, cnr_error *err) {
    const cnr_subgraph *g = run->node->subgraph;
    const float *x = run->node->inputs[0]->data;
    float *y = run->outputs[0]->data;
    (void)err;
    for (int32_t i = 0; i < g->n_nodes; i++, x = y)
        g->nodes[i].node->desc->apply_f32(g->nodes[i].node, x,
                                          g->nodes[i].node->n_inputs > 1 ? x : NULL, y,
                                          cnr_count(run->outputs[0]));
    return CNR_OK;
}

static const cnr_kernel chain = {.size = sizeof(cnr_kernel),
                                 .version = 1,
                                 .name = "chain",
                                 .op = CNR_REGION,
                                 .device = "chains",
                                 .accepts = accepts,
                                 .run = run_chain};

static const cnr_device_class device = {
    .size = sizeof(cnr_device_class),
    .flags = CNR_DEVICE_SINGLE,
    .name = "chains",
    .family = "chains",
    .summary = "computes chains of element-wise operators",
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
    .claim = claim,
};

/* Registers device and kernel. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = h;
    const cnr_item items[] = {{CNR_KIND_DEVICE, &device}, {CNR_KIND_KERNEL, &chain}};
    return cnr_add_all(h, registrar, items, CNR_ROWS(items));
}

CNR_PLUGIN("c-region", "1.0", "a device that computes regions", "MIT", init, CNR_TOUCHES_NOTHING)
