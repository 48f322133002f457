/* Kernels whose weights are stored as halves: those of whole floats, but for what prepare makes. Arithmetic
 * stays in f32 (vload_half needs no extension); a weight past 65504 would become infinite. */
#include "support.h"

#include <math.h>

cnr_status ocl_half_accepts(const cnr_kernel *full, const cnr_device *device, const cnr_node *node,
                            cnr_accept *out) {
    const cnr_status status = full->accepts(device, node, out);
    if (out->score > 0) out->score = (int32_t)cnr_min(1000, out->score + 5);
    return status;
}

/* Kernels read whole vectors of 16, and buffers end with whole floats. */
enum { BEHIND = 16 };

cnr_status ocl_half_size(const cnr_kernel *full, const cnr_device *device, const cnr_node *node,
                         cnr_space *out, cnr_error *err) {
    CNR_TRY(full->prepare_size(device, node, out, err));
    out->bytes /= 2;
    if (out->memory_class != OCL_IMAGE) out->bytes = (uint64_t)cnr_round_up((int64_t)out->bytes, 4) + 2 * BEHIND;
    return CNR_OK;
}

cnr_status ocl_half_pack(const cnr_kernel *full, const cnr_device *device, const cnr_node *node, void *blob,
                         cnr_error *err) {
    cnr_space whole = {.size = sizeof whole}, half = {.size = sizeof half};
    double some[256];
    CNR_TRY(full->prepare_size(device, node, &whole, err));
    CNR_TRY(ocl_half_size(full, device, node, &half, err));
    float *from = ocl_host->alloc((size_t)whole.bytes + 1);
    if (!from) return ocl_host->fail(err, CNR_E_MEMORY, node->name, "no memory to pack its weights");
    const cnr_status status = full->prepare(device, node, from, err);
    const int64_t n = (int64_t)(whole.bytes / sizeof *from);
    memset(blob, 0, (size_t)half.bytes);
    for (int64_t at = 0; status == CNR_OK && at < n; at += 256) {
        const int64_t many = cnr_min(256, n - at);
        for (int64_t i = 0; i < many; i++) some[i] = from[at + i];
        ocl_host->elements_write(CNR_f16, blob, at, many, CNR_f64, some);
    }
    ocl_host->free(from);
    return status;
}
