/* Inputs and outputs in an application's own memory: kernels see its addresses, on the host and in
 * buffers of OpenCL; what would need a copy is refused. */
#include "guests.h"
#include <cnnrun/kit.h>
#include <dlfcn.h>
#include <math.h>

enum { ROWS = 4, COLUMNS = 32, N = ROWS * COLUMNS };

/* ---- an operator that tells what memory it was given ---- */

static const void *seen_in, *seen_out;

/* Method infer: the output is like the input. */
static cnr_status probe_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    (void)err;
    out[0]->dtype = node->inputs[0]->dtype;
    out[0]->rank = node->inputs[0]->rank;
    memcpy(out[0]->dim, node->inputs[0]->dim, sizeof out[0]->dim);
    return CNR_OK;
}

/* Method reference: doubles, and keeps where the input lay. */
static cnr_status probe_run(const cnr_run *run, cnr_error *err) {
    const float *x = seen_in = run->node->inputs[0]->data;
    float *y = run->outputs[0]->data;
    (void)err;
    seen_out = y;
    for (int64_t i = 0; i < cnr_count(run->outputs[0]); i++) y[i] = 2 * x[i];
    return CNR_OK;
}

/* Registers the operator. */
static cnr_status probe_init(const cnr_host *host, struct cnr_registrar *registrar,
                             cnr_error *err) {
    static const cnr_port in[] = {{.name = "x"}}, out[] = {{.name = "y"}};
    static const cnr_op op = {CNR_OP_SIZES,          .name = "test.probe", .summary = "doubles",
                              CNR_OP_PORTS(in, out), .infer = probe_infer, .reference = probe_run};
    (void)err;
    return host->add(registrar, CNR_KIND_OPERATOR, &op);
}

/* The plugin of the operator. */
static const cnr_plugin *probe_query(uint32_t host_abi) {
    static const cnr_plugin plugin = {.size = sizeof plugin,
                                      .magic = CNR_PLUGIN_MAGIC,
                                      .abi = CNR_ABI,
                                      .signature = CNR_SIGNATURE,
                                      .name = "probe",
                                      .version = "1",
                                      .summary = "for tests",
                                      .licence = "MIT",
                                      .init = probe_init};
    (void)host_abi;
    return &plugin;
}

/* ---- nets ---- */

/* Opens a session of a net with this body on a device; NULL: failed, see err. */
static cnr_session *open_on(const char *body, const char *device, cnr_error *err) {
    char path[] = "/tmp/cnnrun-bind-XXXXXX.lua";
    const int file = mkstemps(path, 4);
    FILE *to = file < 0 ? NULL : fdopen(file, "w");
    const cnr_load_options o = {.size = sizeof o, .device = device, .weights = "random:1"};
    cnr_model *m;
    cnr_plan *plan;
    cnr_session *s = NULL;
    if (!to) return NULL;
    fprintf(to,
            "local c = require 'cnnrun'\nreturn c.net { name = 'bind', "
            "input = { 'x', shape = { %d, %d } }, %s }\n",
            ROWS, COLUMNS, body);
    fclose(to);
    cnr_status status = cnr_load(guests_rt, path, &o, &m, err);
    if (!status) status = cnr_plan_for(m, NULL, 0, &plan, err);
    if (!status) {
        status = cnr_session_open(plan, &s, err);
        cnr_plan_release(plan);
    }
    if (status) note("%s: %s", err->where, err->text);
    remove(path);
    return status ? NULL : s;
}

/* A tensor over data. */
static cnr_tensor rows_of(void *data) {
    return (cnr_tensor){.size = sizeof(cnr_tensor),
                        .dtype = CNR_f32,
                        .rank = 2,
                        .dim = {ROWS, COLUMNS},
                        .data = data,
                        .bytes = N * sizeof(float)};
}

/* 1: y is twice x. */
static int doubled(const float *x, const float *y) {
    for (int i = 0; i < N; i++)
        if (y[i] != 2 * x[i]) return 0;
    return 1;
}

/* ---- the host's memory ---- */

/* Tests: memory of the host. */
static void on_the_host(void) {
    _Alignas(64) static float x[N], y[N];
    cnr_error err = CNR_ERROR_INIT;
    cnr_session *s = open_on("c['test.probe'] {}", "cpu", &err);
    const cnr_tensor in = rows_of(x), out = rows_of(y), odd = rows_of(x + 1), *got;
    if (!ok(s != NULL, "a session")) return;
    for (int i = 0; i < N; i++) x[i] = (float)i - 3;
    ok(!cnr_session_bind_input(s, 0, &in, &err) && !cnr_session_bind_output(s, 0, &out, &err),
       "memory of the caller's is bound");
    ok(!cnr_session_run(s, &err) && doubled(x, y), "the output is there without being asked for");
    ok(seen_in == x && seen_out == y, "the kernel had the caller's addresses: nothing was copied");
    for (int i = 0; i < N; i++) x[i] = 7 - (float)i;
    ok(!cnr_session_run(s, &err) && doubled(x, y), "a run reads what is there by then");
    ok(!cnr_session_output(s, 0, &got, &err) && got->data == y, "cnr_session_output tells it");
    is_int(cnr_session_set_input(s, 0, &in, &err), CNR_E_STATE,
           "an input that is bound is not set");
    is_int(cnr_session_bind_input(s, 0, &odd, &err), CNR_E_ARG, "memory that is not aligned");
    is_int(cnr_session_bind_input(s, 1, &in, &err), CNR_E_ARG, "an input that is not there");
    ok(!cnr_session_bind_input(s, 0, NULL, &err) && !cnr_session_bind_output(s, 0, NULL, &err),
       "back to memory of its own");
    is_int(cnr_session_run(s, &err), CNR_E_STATE, "the input is to be set then");
    ok(!cnr_session_set_input(s, 0, &in, &err) && !cnr_session_run(s, &err) && seen_in != x &&
           seen_out != y,
       "... and is copied");
    ok(!cnr_session_output(s, 0, &got, &err) && got->data != y && doubled(x, got->data),
       "... with the same answer");
    cnr_session_close(s);
}

/* Values that share memory with what is bound follow it. */
static void shared(void) {
    _Alignas(64) static float x[N], y[N];
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor in = rows_of(x), out = rows_of(y);
    cnr_session *s = open_on("c.reshape { shape = { 8, 16 } }, c['test.probe'] {}, c.relu {}, "
                             "c.reshape { shape = { 4, 32 } }",
                             "cpu", &err);
    if (!ok(s != NULL, "a net with views")) return;
    for (int i = 0; i < N; i++) x[i] = (float)i;
    ok(!cnr_session_bind_input(s, 0, &in, &err) && !cnr_session_bind_output(s, 0, &out, &err),
       "views of an input, and what is computed in place of an output");
    ok(!cnr_session_run(s, &err) && doubled(x, y) && seen_in == x && seen_out == y,
       "... lie in the caller's memory too");
    cnr_session_close(s);
    s = open_on("c.relu {}, c.relu {}, c['test.probe'] {}", "cpu", &err);
    const cnr_status status = cnr_session_bind_input(s, 0, &in, &err);
    ok(status == CNR_OK || (status == CNR_E_UNSUPPORTED && strstr(err.text, "in place")),
       "an input that a layer overwrites is refused, with the reason");
    for (int i = 0; i < N; i++) x[i] = (float)i;
    if (!status) cnr_session_run(s, &err);
    ok(x[5] == 5 && x[N - 1] == N - 1, "... and is never written to");
    cnr_session_close(s);
}

/* ---- buffers of OpenCL ---- */

/* How many numbers differ; 0: none. */
static int near(const float *want, const float *got) {
    int other = 0;
    for (int i = 0; i < N; i++) {
        if (!(fabsf(want[i] - got[i]) <= 1e-4f)) return 0;
        other += want[i] != want[0];
    }
    return other > 0; /* not all alike: it computes */
}

/* Functions of OpenCL that the test calls. */
typedef struct opencl {
    void *(*create_buffer)(void *context, uint64_t flags, size_t bytes, void *host, int32_t *code);
    void *(*create_queue)(void *context, void *device, uint64_t flags, int32_t *code);
    int32_t (*write)(void *queue, void *mem, uint32_t blocks, size_t at, size_t n, const void *from,
                     uint32_t events, const void *list, void *event);
    int32_t (*read)(void *queue, void *mem, uint32_t blocks, size_t at, size_t n, void *to,
                    uint32_t events, const void *list, void *event);
    int32_t (*release_buffer)(void *mem);
    int32_t (*release_queue)(void *queue);
} opencl;

/* Finds a function of a library; 0: it has none. */
static int find(void *library, const char *name, void *to) {
    void *at = dlsym(library, name);
    memcpy(to, &at, sizeof at);
    return at != NULL;
}

/* Loads OpenCL; 0: there is none. */
static int load(opencl *cl) {
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    return library && find(library, "clCreateBuffer", &cl->create_buffer) &&
           find(library, "clCreateCommandQueue", &cl->create_queue) &&
           find(library, "clEnqueueWriteBuffer", &cl->write) &&
           find(library, "clEnqueueReadBuffer", &cl->read) &&
           find(library, "clReleaseMemObject", &cl->release_buffer) &&
           find(library, "clReleaseCommandQueue", &cl->release_queue);
}

/* Tests: buffers of OpenCL. */
static void in_buffers(void) {
    static float x[N], y[N];
    cnr_error err = CNR_ERROR_INIT;
    void *context = NULL, *device = NULL;
    static const char layer[] = "c.dense { 'd', out = 32 }, c.relu {}";
    const cnr_tensor *want;
    opencl cl;
    int32_t code;
    if (cnr_device_native(guests_rt, "opencl:0", "context", &context, &err) || !load(&cl)) {
        skip("OpenCL", err.text[0] ? err.text : "no libOpenCL.so.1");
        return;
    }
    ok(!cnr_device_native(guests_rt, "opencl:0", "device", &device, &err) && device,
       "the device's own objects");
    is_int(cnr_device_native(guests_rt, "opencl:0", "colour", &device, &err), CNR_E_NOT_FOUND,
           "an object that it does not have");
    cnr_device_native(guests_rt, "opencl:0", "device", &device, &err);
    cnr_session *s = open_on(layer, "opencl:0", &err), *cpu = open_on(layer, "cpu", &err);
    if (!ok(s && cpu, "a session on the device")) return;
    void *queue = cl.create_queue(context, device, 0, &code);
    void *from = cl.create_buffer(context, 1, sizeof x, NULL, &code);
    void *to = cl.create_buffer(context, 1, sizeof y, NULL, &code);
    cnr_tensor in = rows_of(NULL), out = rows_of(NULL), host = rows_of(x);
    in.mem = (cnr_mem){.handle = from, .bytes = sizeof x};
    out.mem = (cnr_mem){.handle = to, .bytes = sizeof y};
    is_int(cnr_session_bind_input(s, 0, &host, &err), CNR_E_UNSUPPORTED,
           "host memory can't stand for a device's");
    if (!ok(!cnr_session_bind_input(s, 0, &in, &err) && !cnr_session_bind_output(s, 0, &out, &err),
            "buffers of the caller's are bound"))
        note("%s: %s", err.where, err.text);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) x[i] = (float)((i + round) % 7);
        cnr_session_set_input(cpu, 0, &host, &err);
        cnr_session_run(cpu, &err);
        cnr_session_output(cpu, 0, &want, &err);
        cl.write(queue, from, 1, 0, sizeof x, x, 0, NULL, NULL);
        if (!ok(!cnr_session_run(s, &err), "a run")) note("%s: %s", err.where, err.text);
        memset(y, 0, sizeof y);
        cl.read(queue, to, 1, 0, sizeof y, y, 0, NULL, NULL);
        ok(near(want->data, y), "the caller's buffer has the answer of what its other one held");
    }
    cnr_session_close(s);
    cnr_session_close(cpu);
    cl.release_buffer(from);
    cl.release_buffer(to);
    cl.release_queue(queue);
}

int main(void) {
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const struct cnr_plugin *(*const linked[])(uint32_t) = {probe_query, NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .no_default_dirs = 1,
                                      .log_level = CNR_LOG_ERROR,
                                      .linked_plugins = linked};
    cnr_error err = CNR_ERROR_INIT;
    if (cnr_open(&guests_rt, &options, &err)) {
        note("%s: %s", err.where, err.text);
        return done();
    }
    on_the_host();
    shared();
    in_buffers();
    cnr_close(guests_rt);
    return done();
}
