/* Runs kernels of cpu-neon against the references of ops-std, on each instruction set.
 *
 *     neon_open();
 *     NEON_EACH_ISA {
 *         neon_check("conv", "pads=1", "", 3, x, w, b);             plain
 *         neon_check("conv", "pads=1", "relu; add", 3, x, w, b);    with an epilogue
 *     }
 *     return neon_done();
 *
 * Each check runs every kernel that accepts the node with 1 to 3 threads (kernelcall.h). */
#ifndef NEONCALL_H
#define NEONCALL_H

#include "plugins/kernelcall.h"

static struct {
    const cnr_plugin *plugin;
    const cnr_device_class *cls;
    const cnr_kernel *kernels[256];
    int32_t n_kernels, checks;
    const char *isa;
} neon_state;

/* Keeps what the plugin registers. */
static cnr_status neon_add(struct cnr_registrar *r, int32_t kind, const void *descriptor) {
    (void)r;
    if (kind == CNR_KIND_DEVICE) neon_state.cls = descriptor;
    if (kind == CNR_KIND_KERNEL) neon_state.kernels[neon_state.n_kernels++] = descriptor;
    return CNR_OK;
}

OP_UNUSED void neon_open(void) {
    const char *why;
    op_open();
    neon_state.plugin = kernel_plugin("cpu-neon", &why);
    if (neon_state.plugin) return;
    ok(0, "cpu-neon.so loads: %s", why);
    exit(done());
}

enum { NEON_ISAS = 4 };
/* Starts the plugin with the i-th set of microkernels; false when this processor lacks it, or when
 * CNNRUN_TEST_ISA names another one. */
OP_UNUSED int neon_use_isa(int i) {
    static const char *const names[NEON_ISAS] = {"generic", "avx2", "avx512", "neon"};
    static cnr_host host;
    const char *only = getenv("CNNRUN_TEST_ISA");
    cnr_device_info info = {.size = sizeof info};
    cnr_error err = CNR_ERROR_INIT;
    if (only && strcmp(only, names[i]) != 0) return 0;
    host = op_state.host;
    host.add = neon_add;
    neon_state.n_kernels = 0;
    neon_state.isa = names[i];
    setenv("CNNRUN_CPU_ISA", names[i], 1);
    if (neon_state.plugin->init(&host, NULL, &err) != CNR_OK) return 0;
    neon_state.cls->describe(0, &info, &err);
    const char *isa = strrchr(info.driver, ' '); /* the last word */
    if (isa && strcmp(isa + 1, names[i]) == 0) return 1;
    note("this processor has no %s", names[i]);
    return 0;
}
#define NEON_EACH_ISA \
    for (int isa_ = 0; isa_ < NEON_ISAS; isa_++) \
        if (neon_use_isa(isa_))

/* Devices of 1 to `most` (3) threads. */
OP_UNUSED void neon_devices(cnr_device devices[3], int32_t most) {
    for (int32_t i = 0; i < most; i++) {
        const cnr_device_options options = {.size = sizeof options, .threads = i + 1};
        cnr_error err = CNR_ERROR_INIT;
        devices[i] = (cnr_device){.size = sizeof devices[i], .cls = neon_state.cls, .name = "cpu"};
        neon_state.cls->open(&devices[i], &options, &err);
    }
}
OP_UNUSED void neon_devices_close(cnr_device devices[3], int32_t n) {
    for (int32_t i = 0; i < n; i++) neon_state.cls->close(&devices[i]);
}

OP_UNUSED void neon_check_list(const char *name, const char *attrs, const char *chain, int32_t n,
                               const cnr_tensor *const *inputs) {
    cnr_device devices[3];
    char head[32];
    static int64_t calls;
    const char *every = getenv("CNNRUN_TEST_EVERY"); /* under an emulator: run every Nth check */
    if (every && calls++ % atoll(every) != 0) return;
    const int32_t most = neon_state.checks++ % 8 ? 2 : 3; /* more threads than cores is slow */
    snprintf(head, sizeof head, "%s ", neon_state.isa);
    neon_devices(devices, most);
    if (!kernel_check(neon_state.kernels, neon_state.n_kernels, devices, most, head, name, attrs,
                      chain, n, inputs))
        ok(0, "%s%s %s %s: a kernel takes it", head, name, attrs, chain);
    neon_devices_close(devices, most);
}

/* Runs every kernel that takes the node and compares with the reference. */
#define neon_check(name, attrs, chain, n, ...) \
    neon_check_list(name, attrs, chain, n, (const cnr_tensor *[]){__VA_ARGS__})

#endif
