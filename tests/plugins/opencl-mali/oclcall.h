/* Runs kernels of the OpenCL plugins against the references of ops-std, without graph or plan, on
 * every OpenCL device there is.
 *
 *     ocl_open("opencl-mali");                 skips everything without plugin or device
 *     OCL_EACH_DEVICE {
 *         ocl_check("conv", "pads=1", "relu; add", 3, x, w, b);
 *     }
 *     return ocl_done();
 *
 * Each check runs every kernel that accepts the node (kernelcall.h). Built programs stay in the
 * build folder, so that only the first run of all waits for compilers. */
#ifndef OCLCALL_H
#define OCLCALL_H

#include "plugins/kernelcall.h"

static struct {
    const cnr_plugin *plugin;
    const cnr_device_class *cls;
    const cnr_kernel *kernels[128];
    int32_t n_kernels, n_devices;
    cnr_device device; /* the open one */
    cnr_stream stream;
} ocl_state;

/* Keeps what the plugin registers. */
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
    const char *why;
    cnr_error err = CNR_ERROR_INIT;
    const int quick = !getenv("POCL_EXTRA_BUILD_FLAGS"); /* as tests/Programs.pm does */
    if (quick) setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 1);
    const char *cache = getenv("CNNRUN_CACHE"); /* empty: tap.h set it */
    setenv("CNNRUN_CACHE",
           quick ? CNRT_BUILD_DIR "/opencl-cache-quick" : CNRT_BUILD_DIR "/opencl-cache",
           !cache || !*cache);
    setenv("POCL_CACHE_DIR",
           quick ? CNRT_BUILD_DIR "/opencl-cache-quick/pocl" : CNRT_BUILD_DIR "/opencl-cache/pocl",
           0);
    op_open();
    ocl_state.plugin = kernel_plugin(name, &why);
    if (!ocl_state.plugin) ocl_skip("the plugin was not built (opencl-headers)");
    host = op_state.host;
    host.add = ocl_add;
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
    ocl_state.device = (cnr_device){.size = sizeof(cnr_device),
                                    .index = i,
                                    .cls = ocl_state.cls,
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

#define OCL_EACH_DEVICE \
    for (int32_t device_ = 0; device_ < ocl_state.n_devices; device_++) \
        for (int used_ = ocl_use_device(device_); used_; used_ = ocl_leave_device())

OP_UNUSED void ocl_check_list(const char *name, const char *attrs, const char *chain, int32_t n,
                              const cnr_tensor *const *inputs) {
    if (!kernel_check(ocl_state.kernels, ocl_state.n_kernels, &ocl_state.device, 1, "", name, attrs,
                      chain, n, inputs))
        ok(0, "%s %s %s: a kernel takes it", name, attrs, chain);
}

/* Runs every kernel that takes the node and compares with the reference. */
#define ocl_check(name, attrs, chain, n, ...) \
    ocl_check_list(name, attrs, chain, n, (const cnr_tensor *[]){__VA_ARGS__})

#endif
