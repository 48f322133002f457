/* Runs kernels of cpu-neon against the references of ops-std, without graph or plan.
 *
 *     neon_open();
 *     NEON_EACH_ISA {
 *         neon_check("conv", "pads=1", "", 1e-6, 3, x, w, b);       plain
 *         neon_check("conv", "pads=1", "relu; add", 1e-6, ...);     with an epilogue
 *     }
 *     return neon_done();
 *
 * Each check runs every kernel that accepts the node with 1 to 3 threads, whole and in ranges, in
 * memory of the exact size, poisoned first. Results must not depend on threads or ranges at all.
 * The bound: `tolerance` times what the reference gives for the operands' absolute values. */
#ifndef NEONCALL_H
#define NEONCALL_H

#include "plugins/ops-std/opcall.h"

static struct {
    const cnr_plugin *plugin;
    const cnr_device_class *cls;
    const cnr_kernel *kernels[256];
    int32_t n_kernels, checks;
    int linear; /* the bound is from absolute values; else from max(1, |want|) */
    const char *isa;
} neon_state;

static cnr_status neon_add(struct cnr_registrar *r, int32_t kind, const void *descriptor) {
    (void)r;
    if (kind == CNR_KIND_DEVICE) neon_state.cls = descriptor;
    if (kind == CNR_KIND_KERNEL) neon_state.kernels[neon_state.n_kernels++] = descriptor;
    return CNR_OK;
}

OP_UNUSED void neon_open(void) {
    op_open();
    void *library = dlopen(CNRT_BUILD_DIR "/plugins/cpu-neon.so", RTLD_NOW | RTLD_LOCAL);
    cnr_plugin_query_fn query = NULL;
    if (library) *(void **)&query = dlsym(library, "cnr_plugin_query");
    if (!query) {
        ok(0, "cpu-neon.so loads");
        note("%s", library ? "no cnr_plugin_query" : dlerror());
        exit(done());
    }
    neon_state.plugin = query(CNR_ABI);
}

/* Starts the plugin with the i-th set of microkernels; false when this processor lacks it. */
OP_UNUSED int neon_use_isa(int i) {
    static const char *const names[] = {"generic", "avx2", "avx512"};
    static cnr_host host;
    cnr_device_info info = {.size = sizeof info};
    cnr_error err = CNR_ERROR_INIT;
    host = op_state.host;
    host.add = neon_add;
    neon_state.n_kernels = 0;
    neon_state.isa = names[i];
    setenv("CNNRUN_CPU_ISA", names[i], 1);
    if (neon_state.plugin->init(&host, NULL, &err) != CNR_OK) return 0;
    neon_state.cls->describe(0, &info, &err);
    if (strstr(info.driver, names[i])) return 1;
    note("this processor has no %s", names[i]);
    return 0;
}
#define NEON_EACH_ISA \
    for (int isa_ = 0; isa_ < 3; isa_++) if (neon_use_isa(isa_))

/* Exactly this many bytes, 64-byte aligned, so that a sanitiser sees the first one past them. */
static void *neon_memory(uint64_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes ? bytes : 1)) exit(1);
    memset(p, 0xff, bytes);
    return op_keep(p);
}

/* The node with its chain, and what the reference says. */
typedef struct neon_case {
    cnr_node *node;
    cnr_node full;
    cnr_epilogue links[8];
    const cnr_epilogue *epilogue[8];
    const cnr_tensor *inputs[16];
    cnr_tensor *want;
} neon_case;

OP_UNUSED void neon_case_free(const neon_case *c) {
    op_node_free(c->node);
    for (int32_t i = 0; i < c->full.n_epilogue; i++)
        op_node_free((cnr_node *)(uintptr_t)c->links[i].node);
}

/* Applies "relu; leaky_relu alpha=0.1; add" behind the node; add's operand is drawn. */
static void neon_chain(neon_case *c, const char *chain) {
    char *copy = op_keep(strdup(chain)), *state = NULL;
    cnr_tensor *value = c->want;
    for (char *part = strtok_r(copy, ";", &state); part; part = strtok_r(NULL, ";", &state)) {
        char *attrs;
        cnr_attr room[8];
        const cnr_attr *given[8];
        while (*part == ' ') part++;
        if ((attrs = strchr(part, ' '))) *attrs++ = 0;
        const cnr_op *op = op_find(part);
        const int32_t i = c->full.n_epilogue++, n = op_parse(op, attrs, room, 8);
        for (int32_t a = 0; a < n; a++) given[a] = &room[a];
        const cnr_tensor *in[2] = {value, NULL};
        int32_t n_in = 1;
        c->links[i] = (cnr_epilogue){.operand = -1};
        if (op->n_inputs > 1 && !(op->inputs[1].flags & CNR_PORT_OPTIONAL)) {
            cnr_tensor *operand = t_copy(value);
            for (int64_t e = 0; e < cnr_count(operand); e++)
                ((float *)operand->data)[e] = (float)(e % 17) * 0.25f - 2.0f;
            in[n_in++] = operand;
            c->links[i].operand = c->full.n_inputs;
            c->inputs[c->full.n_inputs++] = operand;
        }
        cnr_node *node = op_node(op, given, n, in, n_in, 1);
        t_alloc((cnr_tensor *)(uintptr_t)node->outputs[0]);
        op_reference(node, -1, 0, 0);
        value = (cnr_tensor *)(uintptr_t)node->outputs[0];
        c->links[i].node = node;
        c->epilogue[i] = &c->links[i];
    }
    c->want = value;
}

/* What the reference gives for absolute operands: the size of the sums' terms. */
static const cnr_tensor *neon_size(const neon_case *c, const cnr_op *op) {
    const cnr_tensor *in[16];
    cnr_node *node = op_keep(malloc(sizeof *node));
    cnr_tensor *out = t_copy(c->node->outputs[0]);
    for (int32_t i = 0; i < c->node->n_inputs; i++) {
        in[i] = c->node->inputs[i];
        if (!in[i] || in[i]->dtype != CNR_f32) continue;
        cnr_tensor *t = t_copy(in[i]);
        for (int64_t e = 0; e < cnr_count(t); e++) t_set(t, e, fabs(t_get(t, e)));
        in[i] = t;
    }
    *node = *c->node;
    node->inputs = in;
    const cnr_tensor *outs[1] = {out};
    node->outputs = outs;
    (void)op;
    op_reference(node, -1, 0, 0);
    return out;
}

static int neon_same(const cnr_tensor *want, const cnr_tensor *size, const float *got,
                     double tolerance) {
    const int64_t n = cnr_count(want);
    for (int64_t i = 0; i < n; i++) {
        const double w = t_get(want, i), g = got[i], s = size ? fabs(t_get(size, i)) : fabs(w);
        if (g == w || (isnan(g) && isnan(w))) continue;
        if (!(fabs(g - w) <= tolerance * fmax(s, 1.0))) {
            note("element %lld of %lld: got %.9g, want %.9g (terms %.3g)", (long long)i,
                 (long long)n, g, w, s);
            return 0;
        }
    }
    return 1;
}

/* Runs it; NULL when the kernel does not take the node. *ranges: axes that may be split. */
static float *neon_run(const cnr_kernel *k, const neon_case *c, const cnr_device *device,
                       int32_t axis, uint32_t *ranges) {
    cnr_error err = CNR_ERROR_INIT;
    int32_t layout[4][16] = {{0}};
    cnr_accept a = {.size = sizeof a, .in_block = layout[0], .out_block = layout[1],
                    .in_class = layout[2], .out_class = layout[3]};
    cnr_space blob = {.size = sizeof blob}, space = {.size = sizeof space};
    cnr_tensor out = *c->want;
    cnr_tensor *outs[1] = {&out};
    void *state = NULL;
    cnr_stream stream = {.size = sizeof stream};
    if (k->accepts(device, &c->full, &a) != CNR_OK || a.score <= 0) return NULL;
    if (a.epilogue < c->full.n_epilogue) return NULL;
    *ranges = a.ranges;
    out.data = neon_memory(cnr_dense_bytes(&out));
    cnr_run run = {.size = sizeof run, .range_axis = -1, .node = &c->full, .outputs = outs,
                   .stream = &stream};
    device->cls->stream_open(device, &stream, &err);
    if (k->prepare_size) k->prepare_size(device, &c->full, &blob, &err);
    if (blob.bytes) {
        run.blob_data = neon_memory(blob.bytes);
        k->prepare(device, &c->full, run.blob_data, &err);
    }
    if (k->plan && k->plan(device, &c->full, &space, &state, &err) != CNR_OK) {
        note("%s: %s", err.where, err.text);
        return NULL;
    }
    run.state = state;
    if (space.bytes) run.workspace_data = neon_memory(space.bytes);
    const int64_t extent = axis >= 0 ? out.dim[axis] : 1;
    cnr_status status = CNR_OK;
    for (int64_t at = 0; at < extent && status == CNR_OK;) { /* ranges of 1, 2, 3 ... */
        run.range_axis = axis;
        run.range_begin = at;
        run.range_end = at = at + at + 1 < extent ? at + at + 1 : extent;
        status = k->run(&run, &err);
    }
    if (status != CNR_OK) note("%s: %s", err.where, err.text);
    if (k->unplan) k->unplan(device, state);
    device->cls->stream_close(&stream);
    return status == CNR_OK ? out.data : NULL;
}

/* All kernels of the operator; returns how many took the node. */
static int neon_kernels(const neon_case *c, const char *op, const char *what, double tolerance) {
    const cnr_tensor *size = neon_state.linear ? neon_size(c, c->node->desc) : NULL;
    int taken = 0;
    for (int32_t i = 0; i < neon_state.n_kernels; i++) {
        const cnr_kernel *k = neon_state.kernels[i];
        float *first = NULL;
        int good = 1, ran = 0;
        if (strcmp(k->op, op) != 0 && strcmp(k->op, "*") != 0) continue;
        const int32_t most = neon_state.checks++ % 8 ? 2 : 3; /* more threads than cores is slow */
        for (int32_t threads = 1; threads <= most && good; threads++) {
            cnr_device device = {.size = sizeof device, .cls = neon_state.cls, .name = "cpu"};
            cnr_device_options options = {.size = sizeof options, .threads = threads};
            cnr_error err = CNR_ERROR_INIT;
            uint32_t ranges = 0;
            neon_state.cls->open(&device, &options, &err);
            float *got = neon_run(k, c, &device, -1, &ranges);
            if (got && !first) {
                good = neon_same(c->want, size, first = got, tolerance);
                ran = 1;
            } else if (got) good = memcmp(got, first, cnr_dense_bytes(c->want)) == 0;
            for (int32_t axis = 0; got && good && threads == 1 && axis < c->want->rank; axis++) {
                if (!(ranges >> axis & 1)) continue;
                uint32_t unused;
                float *part = neon_run(k, c, &device, axis, &unused);
                good = part && memcmp(part, first, cnr_dense_bytes(c->want)) == 0;
                if (!good) note("axis %d in ranges differs", axis);
            }
            if (!good) note("%d threads", threads);
            neon_state.cls->close(&device);
        }
        if (ran) ok(good, "%s %s %s %s", neon_state.isa, k->name, op, what);
        taken += ran;
    }
    return taken;
}

OP_UNUSED void neon_check_list(const char *name, const char *attrs, const char *chain,
                               double tolerance, int32_t n, const cnr_tensor *const *inputs) {
    const cnr_op *op = op_find(name);
    cnr_attr room[32];
    const cnr_attr *given[32];
    neon_case c = {0};
    char what[512];
    int32_t at = snprintf(what, sizeof what, "%s", attrs);
    for (int32_t i = 0; i < n && inputs[i]; i++)
        for (int32_t d = 0; d < inputs[i]->rank && at < 400; d++)
            at += snprintf(what + at, sizeof what - (size_t)at, "%s%lld", d ? "x" : " ",
                           (long long)inputs[i]->dim[d]);
    snprintf(what + at, sizeof what - (size_t)at, "%s%s", *chain ? " + " : "", chain);
    if (!op) {
        skip(what, name);
        return;
    }
    const int32_t n_attrs = op_parse(op, attrs, room, 32);
    for (int32_t i = 0; i < n_attrs; i++) given[i] = &room[i];
    c.node = op_node(op, given, n_attrs, inputs, n, 1);
    if (!c.node) {
        ok(0, "%s", what);
        note("%s", op_state.problem);
        return;
    }
    c.want = (cnr_tensor *)(uintptr_t)c.node->outputs[0];
    t_alloc(c.want);
    op_reference(c.node, -1, 0, 0);
    c.full = *c.node;
    for (int32_t i = 0; i < n; i++) c.inputs[i] = inputs[i];
    c.full.inputs = c.inputs;
    c.full.epilogue = c.epilogue;
    neon_chain(&c, chain);
    const cnr_tensor *outs[1] = {c.want};
    c.full.outputs = outs;
    if (!neon_kernels(&c, name, what, tolerance)) ok(0, "%s %s: a kernel takes it", name, what);
    neon_case_free(&c);
}

#define neon_check(name, attrs, chain, tolerance, n, ...)                            \
    neon_check_list(name, attrs, chain, tolerance, n, (const cnr_tensor *[]){__VA_ARGS__})

#endif
