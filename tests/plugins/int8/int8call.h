/* Runs the kernels of int8.so against the references, byte for byte, on each instruction set. */
#ifndef INT8CALL_H
#define INT8CALL_H

#include "plugins/cpu-neon/neoncall.h"

#if defined(__aarch64__) || defined(__arm__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

static const cnr_plugin *int8_plugin;
static const cnr_encoding *int8_encodings[4];
static int32_t int8_n_encodings;

/* 1: the operator was registered. */
static int int8_has(const cnr_op *op) {
    for (int32_t i = 0; i < op_state.n_ops; i++)
        if (op_state.ops[i] == op) return 1;
    return 0;
}

/* Keeps what the plugin registers. */
static cnr_status int8_add(struct cnr_registrar *r, int32_t kind, const void *descriptor) {
    if (kind == CNR_KIND_OPERATOR && !int8_has(descriptor)) op_add(r, kind, descriptor);
    if (kind == CNR_KIND_KERNEL) neon_state.kernels[neon_state.n_kernels++] = descriptor;
    if (kind == CNR_KIND_ENCODING && int8_n_encodings < 4)
        int8_encodings[int8_n_encodings++] = descriptor;
    return CNR_OK;
}

/* The device comes from cpu-neon, kernels only from `plugin`. */
OP_UNUSED void int8_open(const char *plugin) {
    const char *why;
    neon_open();
    neon_use_isa(0);
    int8_plugin = kernel_plugin(plugin, &why);
    if (int8_plugin) return;
    ok(0, "%s loads: %s", plugin, why);
    exit(done());
}

/* Whether this processor has the instruction set. The device's own microkernels follow it on x86;
 * on AArch64 there is one set of those. */
static int int8_has_isa(const char *isa) {
#if defined(__arm__)
    const int neon = strcmp(isa, "neon") == 0 && getauxval(AT_HWCAP) & HWCAP_NEON;
    return (neon || isa[0] == 'g') && neon_use_isa(0);
#elif defined(__aarch64__)
    const int dotprod = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    if (strcmp(isa, "dotprod") == 0 && !dotprod) return 0;
    if (strcmp(isa, "i8mm") == 0 && !(getauxval(AT_HWCAP2) & HWCAP2_I8MM)) return 0;
    return isa[0] != 'a' && neon_use_isa(0);
#else
    return strchr("ga", isa[0]) && neon_use_isa(isa[0] == 'g' ? 0 : strcmp(isa, "avx2") ? 2 : 1);
#endif
}

/* Starts the plugin with these microkernels; false when this processor lacks them. */
OP_UNUSED int int8_use(const char *isa) {
    static cnr_host host;
    cnr_error err = CNR_ERROR_INIT;
    if (!int8_has_isa(isa)) return 0;
    host = op_state.host;
    host.add = int8_add;
    neon_state.n_kernels = int8_n_encodings = 0;
    char *of_device = strdup(getenv("CNNRUN_CPU_ISA"));
    setenv("CNNRUN_CPU_ISA", isa, 1);
    if (int8_plugin->init(&host, NULL, &err) != CNR_OK) {
        ok(0, "the plugin starts");
        exit(done());
    }
    setenv("CNNRUN_CPU_ISA", of_device, 1);
    free(of_device);
    return 1;
}

static uint64_t int8_seed = 20240607;
OP_UNUSED int64_t int8_draw(int64_t low, int64_t high) { /* both limits included */
    uint64_t z = (int8_seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return low + (int64_t)((z ^ (z >> 31)) % (uint64_t)(high - low + 1));
}

/* Bytes over the whole range of the type. */
OP_UNUSED cnr_tensor *int8_bytes(int32_t dtype, int32_t rank, const int64_t *dim) {
    cnr_tensor *t = t_type(dtype, "");
    t->rank = rank;
    for (int32_t i = 0; i < rank; i++) t->dim[i] = dim[i];
    t_alloc(t);
    for (int64_t i = 0; i < cnr_count(t); i++) ((uint8_t *)t->data)[i] = (uint8_t)int8_draw(0, 255);
    return t;
}

OP_UNUSED cnr_tensor *int8_const(cnr_tensor *t) {
    t->flags |= CNR_TENSOR_CONST;
    return t;
}
OP_UNUSED cnr_tensor *int8_number(int32_t dtype, double v) {
    return int8_const(t_of(dtype, "scalar", &v));
}

/* One node by every kernel of its operator that takes it, 1 and 2 threads. Returns how many did;
 * *good 0 when one was wrong. */
OP_UNUSED int int8_run(const char *name, const char *attrs, int32_t n,
                       const cnr_tensor *const *inputs, int *good) {
    static cnri_case c;
    cnr_device devices[3];
    int taken = 0;
    *good = kernel_case(&c, NULL, name, attrs, "", n, inputs);
    if (!*good) note("%s (%s): %s", name, attrs, op_state.problem);
    neon_devices(devices, 2);
    for (int32_t i = 0; i < neon_state.n_kernels && *good; i++) {
        if (strcmp(neon_state.kernels[i]->op, name) != 0) continue;
        for (int32_t d = 0; d < 2; d++) {
            const int one = kernel_run(neon_state.kernels[i], &devices[d], &c);
            if (one == 0) *good = 0;
            taken += one >= 0 && d == 0;
        }
    }
    neon_devices_close(devices, 2);
    cnri_case_free(&c);
    return taken;
}

#endif
