/* A device in host memory that claims whatever CNNRUN_CLAIMS says, and computes a region by the
 * references of its nodes.
 *     random:SEED   drawn regions, connected or not, of any number of inputs and outputs
 *     all           all that it is shown, as one
 *     0,1;2,3       those nodes
 * Regions cost nothing, so that each that the host does not refuse is taken. */
#include <cnnrun/kit.h>
#include <stdio.h>
#include <stdlib.h>

static const cnr_host *host;

/* ---- the device ---- */

static const cnr_memory_class memory = {.name = "buffer",
                                        .flags = CNR_MEMORY_HOST | CNR_MEMORY_PARTS,
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
    snprintf(out->name, sizeof out->name, "claims");
    snprintf(out->driver, sizeof out->driver, "1");
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
/* Method alloc: host memory into out; fails when there is none. */
static cnr_status alloc(const cnr_device *d, cnr_mem *out, cnr_error *err) {
    (void)d;
    out->offset = 0;
    out->handle = host->alloc((size_t)out->bytes + 1);
    return out->handle ? CNR_OK : host->fail(err, CNR_E_MEMORY, "claims", "out of memory");
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
/* Method write: copies the bytes at once; returns CNR_OK. */
static cnr_status put(cnr_stream *s, const cnr_mem *to, uint64_t offset, const void *from,
                      uint64_t n, cnr_error *err) {
    (void)s;
    (void)err;
    memcpy(at(to, offset), from, n);
    return CNR_OK;
}
/* Method read: copies the bytes at once; returns CNR_OK. */
static cnr_status get(cnr_stream *s, const cnr_mem *from, uint64_t offset, void *to, uint64_t n,
                      cnr_error *err) {
    (void)s;
    (void)err;
    memcpy(to, at(from, offset), n);
    return CNR_OK;
}
/* Method parallel: one task after the other. */
static void loop(cnr_stream *s, int64_t n, void (*fn)(void *arg, int64_t i, int32_t thread),
                 void *arg) {
    (void)s;
    for (int64_t i = 0; i < n; i++) fn(arg, i, 0);
}
/* Method stream_open. */
static cnr_status stream_open(const cnr_device *d, cnr_stream *s, cnr_error *err) {
    (void)d;
    (void)err;
    s->parallel = loop;
    return CNR_OK;
}
static void stream_close(cnr_stream *s) { (void)s; }
/* Method sync: does nothing and returns CNR_OK. */
static cnr_status sync_stream(cnr_stream *s, cnr_error *err) {
    (void)s;
    (void)err;
    return CNR_OK;
}

/* ---- what is claimed ---- */

/* Claims these nodes. */
static void tell(cnr_claim_fn claim, void *arg, const int32_t *nodes, int32_t n) {
    const cnr_claim c = {.size = sizeof c,
                         .n_nodes = n,
                         .nodes = nodes,
                         .kernel = "claims_all",
                         .cost_ns = 1e-3};
    claim(arg, &c);
}

/* A number below n, at random. */
static uint64_t draw(uint64_t *state, uint64_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

/* Draws some nodes from a first one on, most of which follow each other. */
static int32_t draw_nodes(uint64_t *state, int32_t *nodes, int32_t most) {
    int32_t n = 0;
    for (int32_t i = (int32_t)draw(state, (uint64_t)most); i < most && n < 12; i++) {
        if (n == 0 || draw(state, 5)) nodes[n++] = i;
        if (draw(state, 6) == 0) break;
    }
    return n;
}

/* Method claim: what CNNRUN_CLAIMS says: "all" nodes, "random:SEED", or lists such as "0,1 2"
 * (numbers with commas are one region). CNR_E_MEMORY. */
static cnr_status claim_as_told(const cnr_device *d, const cnr_subgraph *g, cnr_claim_fn claim,
                                void *arg, cnr_error *err) {
    const char *how = getenv("CNNRUN_CLAIMS");
    int32_t *nodes = malloc(((size_t)g->n_nodes + 1) * sizeof *nodes), n = 0;
    (void)d;
    if (!nodes) return host->fail(err, CNR_E_MEMORY, "claims", "out of memory");
    if (how && strncmp(how, "random:", 7) == 0) {
        uint64_t state = strtoull(how + 7, NULL, 10) + 1;
        for (int32_t i = 0; i < g->n_nodes; i++) {
            n = draw_nodes(&state, nodes, g->n_nodes);
            tell(claim, arg, nodes, n);
        }
    } else if (how && strcmp(how, "all") == 0) {
        for (; n < g->n_nodes; n++) nodes[n] = n;
        tell(claim, arg, nodes, n);
    } else
        for (char *end; how && *how; how = *end ? end + 1 : end) {
            const int32_t node = (int32_t)strtol(how, &end, 10);
            if (n < g->n_nodes) nodes[n++] = node;
            if (*end == ',') continue;
            tell(claim, arg, nodes, n);
            n = 0;
        }
    free(nodes);
    return CNR_OK;
}

/* ---- the kernel: node by node ---- */

/* Method accepts: all of a region's nodes are plain. */
static cnr_status accepts(const cnr_device *d, const cnr_node *node, cnr_accept *out) {
    const cnr_subgraph *g = node->subgraph;
    (void)d;
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!CNR_HAS(g->nodes[i].node->desc, reference))
            return cnr_refuse(out, "a node has no reference");
    return cnr_take(node, out, 500);
}

/* Runs one node of a region by its reference. */
static cnr_status run_member(const cnr_run *run, const cnr_subnode *m, cnr_tensor *values,
                             cnr_error *err) {
    const cnr_tensor *in[64];
    cnr_tensor *out[64];
    cnr_node node = *m->node;
    const cnr_op *op = node.desc;
    if (node.n_inputs > 64 || node.n_outputs > 64)
        return host->fail(err, CNR_E_LIMIT, node.name, "too many ports");
    for (int32_t k = 0; k < node.n_inputs; k++)
        in[k] = m->inputs[k] < 0 ? NULL : &values[m->inputs[k]];
    for (int32_t k = 0; k < node.n_outputs; k++)
        out[k] = m->outputs[k] < 0 ? NULL : &values[m->outputs[k]];
    node.inputs = in;
    node.outputs = (const cnr_tensor *const *)out;
    const uint64_t bytes = CNR_HAS(op, reference_workspace) ? op->reference_workspace(&node) : 0;
    void *work = malloc((size_t)bytes + 1);
    cnr_mem space = {.handle = work, .bytes = bytes};
    cnr_run one = {.size = sizeof one,
                   .range_axis = -1,
                   .node = &node,
                   .outputs = out,
                   .workspace = &space,
                   .workspace_data = work,
                   .stream = run->stream};
    const cnr_status status =
        work ? op->reference(&one, err) : host->fail(err, CNR_E_MEMORY, node.name, "out of memory");
    free(work);
    return status;
}

/* Method run: all nodes in order. */
static cnr_status run_all(const cnr_run *run, cnr_error *err) {
    const cnr_subgraph *g = run->node->subgraph;
    cnr_tensor *values = calloc((size_t)g->n_values + 1, sizeof *values);
    cnr_status status = values ? CNR_OK : host->fail(err, CNR_E_MEMORY, "claims", "out of memory");
    for (int32_t i = 0; i < g->n_values && !status; i++) {
        values[i] = i < g->n_inputs ? *run->node->inputs[i] : *g->values[i];
        if (i < g->n_inputs) continue;
        values[i].mem = (cnr_mem){0};
        values[i].data = malloc((size_t)cnr_dense_bytes(&values[i]) + 1);
        if (!values[i].data) status = host->fail(err, CNR_E_MEMORY, "claims", "out of memory");
    }
    for (int32_t i = 0; i < g->n_nodes && !status; i++)
        status = run_member(run, &g->nodes[i], values, err);
    for (int32_t i = 0; i < g->n_outputs && !status; i++)
        memcpy(run->outputs[i]->data, values[g->outputs[i]].data,
               (size_t)cnr_dense_bytes(run->outputs[i]));
    for (int32_t i = g->n_inputs; values && i < g->n_values; i++) free(values[i].data);
    free(values);
    return status;
}

/* ---- the plugin ---- */

static const cnr_device_class device = {.size = sizeof device,
                                        .name = "claims",
                                        .family = "claims",
                                        .flags = CNR_DEVICE_SINGLE,
                                        .summary = "claims what it is told",
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
                                        .claim = claim_as_told};
static const cnr_kernel kernel = {.size = sizeof kernel,
                                  .version = 1,
                                  .name = "claims_all",
                                  .op = CNR_REGION,
                                  .device = "claims",
                                  .accepts = accepts,
                                  .run = run_all};
static const cnr_item items[] = {{CNR_KIND_DEVICE, &device}, {CNR_KIND_KERNEL, &kernel}};

/* Registers device and kernel. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = h;
    return cnr_add_all(host, registrar, items, CNR_ROWS(items));
}

CNR_PLUGIN("claims", "1.0", "claims regions for tests", "MIT", init, CNR_TOUCHES_NOTHING)
