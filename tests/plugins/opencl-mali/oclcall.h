/* Runs kernels of the OpenCL plugins against the references of ops-std, without graph or plan, on
 * every OpenCL device there is.
 *
 *     ocl_open("opencl-mali");                 skips everything without plugin or device
 *     OCL_EACH_DEVICE {
 *         ocl_check("conv", "pads=1", "relu; add", 1e-6, 3, x, w, b);
 *     }
 *     return ocl_done();
 *
 * Each check runs every kernel that accepts the node, whole and in ranges. Tensors lie inside
 * larger memory, which is poisoned; behind the run nothing round them may have changed. The bound:
 * `tolerance` times what the reference gives for the operands' absolute values (`linear`), or times
 * max(1, |want|). Built programs stay in the build folder, so that only the first run of all waits
 * for compilers. */
#ifndef OCLCALL_H
#define OCLCALL_H

#include "plugins/ops-std/opcall.h"

static struct {
    const cnr_plugin *plugin;
    const cnr_device_class *cls;
    const cnr_kernel *kernels[64];
    int32_t n_kernels, n_devices, linear;
    cnr_device device; /* the open one */
    cnr_stream stream;
} ocl_state;

static cnr_status ocl_add(struct cnr_registrar *r, int32_t kind, const void *descriptor) {
    (void)r;
    if (kind == CNR_KIND_DEVICE) ocl_state.cls = descriptor;
    if (kind == CNR_KIND_KERNEL) ocl_state.kernels[ocl_state.n_kernels++] = descriptor;
    return CNR_OK;
}

OP_UNUSED int ocl_done(void) {
    if (ocl_state.plugin && ocl_state.plugin->fini) ocl_state.plugin->fini();
    return op_done();
}

OP_UNUSED void ocl_skip(const char *missing) {
    skip("OpenCL", missing);
    exit(ocl_done());
}

OP_UNUSED void ocl_open(const char *name) {
    static cnr_host host;
    char path[1024];
    cnr_plugin_query_fn query = NULL;
    cnr_error err = CNR_ERROR_INIT;
    setenv("CNNRUN_CACHE", CNRT_BUILD_DIR "/opencl-cache", 0);
    setenv("POCL_CACHE_DIR", CNRT_BUILD_DIR "/opencl-cache/pocl", 0);
    op_open();
    snprintf(path, sizeof path, CNRT_BUILD_DIR "/plugins/%s.so", name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) ocl_skip("the plugin was not built (opencl-headers)");
    *(void **)&query = dlsym(library, "cnr_plugin_query");
    host = op_state.host;
    host.add = ocl_add;
    ocl_state.plugin = query(CNR_ABI);
    if (ocl_state.plugin->init(&host, NULL, &err) != CNR_OK) {
        ok(0, "%s starts: %s", name, err.text);
        exit(ocl_done());
    }
    ocl_state.n_devices = ocl_state.cls->count(&err);
    if (ocl_state.n_devices <= 0) ocl_skip("no OpenCL device");
}

/* Opens the i-th device; 0 when it can't be driven. */
OP_UNUSED int ocl_use_device(int32_t i) {
    cnr_device_info info = {.size = sizeof info};
    cnr_error err = CNR_ERROR_INIT;
    if (ocl_state.cls->describe(i, &info, &err) != CNR_OK || info.score <= 0) {
        note("device %d: %s", (int)i, info.why);
        return 0;
    }
    note("%s (%s)", info.name, info.driver);
    ocl_state.device = (cnr_device){.size = sizeof(cnr_device), .index = i, .cls = ocl_state.cls,
                                    .name = "opencl:0"};
    if (ocl_state.cls->open(&ocl_state.device, NULL, &err) != CNR_OK) {
        ok(0, "%s opens: %s", info.name, err.text);
        return 0;
    }
    ocl_state.stream = (cnr_stream){.size = sizeof(cnr_stream)};
    if (ocl_state.cls->stream_open(&ocl_state.device, &ocl_state.stream, &err) == CNR_OK) return 1;
    ok(0, "a stream opens: %s", err.text);
    return 0;
}

OP_UNUSED int ocl_leave_device(void) {
    ocl_state.cls->stream_close(&ocl_state.stream);
    ocl_state.cls->close(&ocl_state.device);
    return 0;
}

#define OCL_EACH_DEVICE                                          \
    for (int32_t device_ = 0; device_ < ocl_state.n_devices; device_++) \
        for (int used_ = ocl_use_device(device_); used_; used_ = ocl_leave_device())

/* ---- memory with a guard on either side ---- */

enum { GUARD = 192, POISON = 0xcd };

static cnr_mem ocl_memory(uint64_t bytes, const void *data) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_device_class *cls = ocl_state.cls;
    cnr_mem whole = {.bytes = bytes + 2 * GUARD};
    char *fill = malloc(whole.bytes);
    memset(fill, POISON, whole.bytes);
    if (data) memcpy(fill + GUARD, data, bytes);
    if (cls->alloc(&ocl_state.device, &whole, &err) != CNR_OK ||
        cls->write(&ocl_state.stream, &whole, 0, fill, whole.bytes, &err) != CNR_OK ||
        cls->sync(&ocl_state.stream, &err) != CNR_OK) {
        ok(0, "memory: %s", err.text);
        exit(1);
    }
    free(fill);
    whole.offset = GUARD;
    whole.bytes = bytes;
    return whole;
}

/* Reads the memory back; 0 when a guard was written to. */
static int ocl_fetch(const cnr_mem *mem, void *to) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_mem whole = *mem;
    int good = 1;
    whole.offset = 0;
    whole.bytes += 2 * GUARD;
    unsigned char *all = malloc(whole.bytes);
    if (ocl_state.cls->read(&ocl_state.stream, &whole, 0, all, whole.bytes, &err) != CNR_OK ||
        ocl_state.cls->sync(&ocl_state.stream, &err) != CNR_OK) {
        note("%s", err.text);
        good = 0;
    }
    for (uint64_t i = 0; i < GUARD && good; i++)
        good = all[i] == POISON && all[GUARD + mem->bytes + i] == POISON;
    if (!good) note("memory round an output was written to");
    memcpy(to, all + GUARD, mem->bytes);
    free(all);
    return good;
}

/* ---- a node with its chain, and what the reference says ---- */

typedef struct ocl_case {
    cnr_node *node;
    cnr_node full;
    cnr_epilogue links[8];
    const cnr_epilogue *epilogue[8];
    const cnr_tensor *inputs[32];
    cnr_tensor *want;
} ocl_case;

/* Applies "relu; leaky_relu alpha=0.1; add" behind the node; operands are drawn. A "~" before the
 * name makes the chain the second operand. */
static void ocl_chain(ocl_case *c, const char *chain) {
    char *copy = op_keep(strdup(chain)), *state = NULL;
    cnr_tensor *value = c->want;
    for (char *part = strtok_r(copy, ";", &state); part; part = strtok_r(NULL, ";", &state)) {
        char *attrs;
        cnr_attr room[8];
        const cnr_attr *given[8];
        while (*part == ' ') part++;
        if ((attrs = strchr(part, ' '))) *attrs++ = 0;
        const int second = *part == '~';
        const cnr_op *op = op_find(part + second);
        const int32_t i = c->full.n_epilogue++, n = op_parse(op, attrs, room, 8);
        for (int32_t a = 0; a < n; a++) given[a] = &room[a];
        const cnr_tensor *in[2] = {value, NULL};
        int32_t n_in = 1;
        c->links[i] = (cnr_epilogue){.operand = -1, .chain_port = second};
        if (op->n_inputs > 1 && !(op->inputs[1].flags & CNR_PORT_OPTIONAL)) {
            cnr_tensor *operand = t_copy(value);
            for (int64_t e = 0; e < cnr_count(operand); e++)
                ((float *)operand->data)[e] = (float)(e % 17) * 0.25f - 2.0f;
            in[!second] = operand;
            in[second] = value;
            n_in = 2;
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
static const cnr_tensor *ocl_size(const ocl_case *c) {
    const cnr_tensor *in[32];
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
    op_reference(node, -1, 0, 0);
    return out;
}

static int ocl_same(const cnr_tensor *want, const cnr_tensor *size, const float *got,
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

/* ---- one kernel ---- */

typedef struct ocl_trial {
    cnr_node view;
    cnr_tensor tensors[32], out;
    const cnr_tensor *inputs[32], *outs[1];
    cnr_tensor *outputs[1];
    cnr_mem blob;
    void *state;
} ocl_trial;

static cnr_status ocl_prepare(const cnr_kernel *k, ocl_trial *t, const ocl_case *c,
                              cnr_error *err) {
    cnr_space space = {.size = sizeof space};
    const cnr_device_class *cls = ocl_state.cls;
    if (!k->prepare_size) return CNR_OK;
    cnr_status status = k->prepare_size(&ocl_state.device, &c->full, &space, err);
    if (status != CNR_OK || space.bytes == 0) return status;
    t->blob = (cnr_mem){.bytes = space.bytes, .width = space.width, .height = space.height,
                        .memory_class = space.memory_class};
    void *data = malloc(space.bytes);
    status = k->prepare(&ocl_state.device, &c->full, data, err);
    if (status == CNR_OK) status = cls->alloc(&ocl_state.device, &t->blob, err);
    if (status == CNR_OK)
        status = cls->write(&ocl_state.stream, &t->blob, 0, data, space.bytes, err);
    if (status == CNR_OK) status = cls->sync(&ocl_state.stream, err);
    free(data);
    return status;
}

/* Operands that prepare took have no memory: a kernel that reads them anyway fails. */
static void ocl_put_inputs(ocl_trial *t, const ocl_case *c, uint32_t prepared) {
    for (int32_t i = 0; i < c->full.n_inputs; i++) {
        t->inputs[i] = NULL;
        if (!c->inputs[i]) continue;
        t->tensors[i] = *c->inputs[i];
        t->tensors[i].data = NULL;
        if (!(prepared >> i & 1))
            t->tensors[i].mem = ocl_memory(cnr_dense_bytes(c->inputs[i]), c->inputs[i]->data);
        t->inputs[i] = &t->tensors[i];
    }
    t->view = c->full;
    t->view.inputs = t->inputs;
    t->out = *c->want;
    t->out.data = NULL;
    t->outs[0] = t->outputs[0] = &t->out;
    t->view.outputs = t->outs;
}

/* Runs it along `axis` in ranges of 1, 2, 4 ...; -1: whole. */
static int ocl_once(const cnr_kernel *k, ocl_trial *t, const ocl_case *c, int32_t axis,
                    const cnr_tensor *size, double tolerance, float *got) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_run run = {.size = sizeof run, .range_axis = -1, .node = &t->view, .outputs = t->outputs,
                   .blob = t->blob.handle ? &t->blob : NULL, .state = t->state,
                   .stream = &ocl_state.stream};
    const int64_t extent = axis >= 0 ? t->out.dim[axis] : 1;
    cnr_status status = CNR_OK;
    t->out.mem = ocl_memory(cnr_dense_bytes(&t->out), NULL);
    for (int64_t at = 0; at < extent && status == CNR_OK;) {
        run.range_axis = axis;
        run.range_begin = at;
        run.range_end = at = at + at + 1 < extent ? at + at + 1 : extent;
        status = k->run(&run, &err);
    }
    if (status != CNR_OK) note("%s: %s", err.where, err.text);
    const int fetched = ocl_fetch(&t->out.mem, got);
    ocl_state.cls->free(&ocl_state.device, &t->out.mem);
    return status == CNR_OK && fetched && ocl_same(c->want, size, got, tolerance);
}

/* A split layer's channels come in multiples of a group's. */
static int ocl_axis_divides(const ocl_case *c, int32_t axis) {
    cnr_split_axis axes[CNR_MAX_RANK];
    int32_t n = 0;
    const cnr_op *op = c->node->desc;
    if (op->flags & CNR_OP_ELEMENTWISE) return 1;
    if (op->split_axes) n = op->split_axes(c->node, axes, CNR_MAX_RANK);
    for (int32_t i = 0; i < n; i++)
        if (axes[i].axis == axis) return axes[i].alignment == 1;
    return 0;
}

/* -1: does not take the node. */
static int ocl_try(const cnr_kernel *k, const ocl_case *c, const cnr_tensor *size,
                   double tolerance) {
    static ocl_trial t;
    cnr_error err = CNR_ERROR_INIT;
    int32_t layout[4][32] = {{0}};
    cnr_accept a = {.size = sizeof a, .in_block = layout[0], .out_block = layout[1],
                    .in_class = layout[2], .out_class = layout[3]};
    cnr_space workspace = {.size = sizeof workspace};
    memset(&t, 0, sizeof t);
    if (k->accepts(&ocl_state.device, &c->full, &a) != CNR_OK || a.score <= 0) return -1;
    if (a.epilogue < c->full.n_epilogue) return -1;
    int good = ocl_prepare(k, &t, c, &err) == CNR_OK;
    if (good && k->plan)
        good = k->plan(&ocl_state.device, &c->full, &workspace, &t.state, &err) == CNR_OK;
    if (!good) note("%s: %s", err.where, err.text);
    if (good) {
        ocl_put_inputs(&t, c, a.prepared);
        float *got = op_keep(malloc(cnr_dense_bytes(c->want) + 4));
        good = ocl_once(k, &t, c, -1, size, tolerance, got);
        for (int32_t axis = 0; good && axis < c->want->rank; axis++) {
            if (!(a.ranges >> axis & 1) || !ocl_axis_divides(c, axis)) continue;
            good = ocl_once(k, &t, c, axis, size, tolerance, got);
            if (!good) note("along axis %d", (int)axis);
        }
    }
    for (int32_t i = 0; i < c->full.n_inputs; i++)
        ocl_state.cls->free(&ocl_state.device, &t.tensors[i].mem);
    ocl_state.cls->free(&ocl_state.device, &t.blob);
    if (k->unplan && t.state) k->unplan(&ocl_state.device, t.state);
    return good;
}

OP_UNUSED void ocl_check_list(const char *name, const char *attrs, const char *chain,
                              double tolerance, int32_t n, const cnr_tensor *const *inputs) {
    const cnr_op *op = op_find(name);
    cnr_attr room[32];
    const cnr_attr *given[32];
    ocl_case c = {0};
    char what[512];
    int taken = 0;
    int32_t at = snprintf(what, sizeof what, "%s", attrs);
    for (int32_t i = 0; i < n && inputs[i]; i++)
        for (int32_t d = 0; d < inputs[i]->rank && at < 400; d++)
            at += snprintf(what + at, sizeof what - (size_t)at, "%s%lld", d ? "x" : " ",
                           (long long)inputs[i]->dim[d]);
    snprintf(what + at, sizeof what - (size_t)at, "%s%s", *chain ? " + " : "", chain);
    if (!op) {
        ok(0, "%s is there", name);
        return;
    }
    const int32_t n_attrs = op_parse(op, attrs, room, 32);
    for (int32_t i = 0; i < n_attrs; i++) given[i] = &room[i];
    c.node = op_node(op, given, n_attrs, inputs, n, 1);
    if (!c.node) {
        ok(0, "%s %s: %s", name, what, op_state.problem);
        return;
    }
    c.want = (cnr_tensor *)(uintptr_t)c.node->outputs[0];
    t_alloc(c.want);
    op_reference(c.node, -1, 0, 0);
    c.full = *c.node;
    for (int32_t i = 0; i < n; i++) c.inputs[i] = inputs[i];
    c.full.inputs = c.inputs;
    c.full.epilogue = c.epilogue;
    ocl_chain(&c, chain);
    const cnr_tensor *outs[1] = {c.want};
    c.full.outputs = outs;
    const cnr_tensor *size = ocl_state.linear ? ocl_size(&c) : NULL;
    for (int32_t i = 0; i < ocl_state.n_kernels; i++) {
        const cnr_kernel *k = ocl_state.kernels[i];
        if (strcmp(k->op, name) != 0 && strcmp(k->op, "*") != 0) continue;
        const int good = ocl_try(k, &c, size, tolerance);
        if (good >= 0) ok(good, "%s %s %s", k->name, name, what);
        taken += good >= 0;
    }
    if (!taken) ok(0, "%s %s: a kernel takes it", name, what);
    op_node_free(c.node);
    for (int32_t i = 0; i < c.full.n_epilogue; i++)
        op_node_free((cnr_node *)(uintptr_t)c.links[i].node);
}

#define ocl_check(name, attrs, chain, tolerance, n, ...)                            \
    ocl_check_list(name, attrs, chain, tolerance, n, (const cnr_tensor *[]){__VA_ARGS__})

#endif
