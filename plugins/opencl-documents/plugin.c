/* Registers the documents' kernels for OpenCL. */
#include "documents.h"

const char *documents_device_unfit(const cnr_device *device) {
    const char *name = device->cls->name, *why;
    if (strcmp(name, "opencl-mali") != 0 && strcmp(name, "opencl-adreno") != 0 &&
        strcmp(name, "opencl-desktop") != 0)
        return "a device of opencl-mali, opencl-adreno or opencl-desktop is wanted";
    if (ocl_of(device)->layout != OCL_LAYOUT) return "the device's plugin is of another release";
    return ocl_api_open(&why) ? NULL : why;
}

cnr_status documents_answer(const cnr_device *device, const cnr_node *node, const char *why,
                            cnr_accept *out) {
    if (!why) why = documents_device_unfit(device);
    return why ? cnr_refuse(out, why) : cnr_take(node, out, 1);
}

/* Registers the kernels. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    static const cnr_kernel *const kernels[] = {
        &documents_w18_gemm_scalar, &documents_w18_gemm_dot,    &documents_w18_dense_scalar,
        &documents_w18_dense_dot,   &documents_w18_im2col,      &documents_w18_max_pool,
        &documents_w18_relu,        &documents_w18_conv_scalar, &documents_w18_conv_dot,
        &documents_w18_spmv,        &documents_s16_naive,       &documents_s16_padded,
        &documents_s16_rows,        &documents_s16_tiles,       &documents_s16_local,
        &documents_s16_float4,      &documents_s16_unrolled,
    };
    cnr_status status = CNR_OK;
    (void)err;
    ocl_host = host;
    for (int32_t i = 0; i < CNR_ROWS(kernels) && !status; i++)
        status = host->add(registrar, CNR_KIND_KERNEL, kernels[i]);
    return status;
}

CNR_PLUGIN("opencl-documents", "0.1.0", "the documents' OpenCL kernels, run only by name", "MIT",
           init, CNR_TOUCHES_DEVICES)
