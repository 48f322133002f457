/* Adreno GPUs by OpenCL, and any other OpenCL device with local memory of its own. */
#include "adreno.h"

static int32_t most(void) {
    static const char *const files[] = {"/dev/kgsl-3d0", "/sys/module/msm", NULL};
    return ocl_most(files, OCL_SCORE_OWN, OCL_SCORE_SUITS);
}

static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    const ocl_found *f = ocl_describe(index, out);
    if (!f)
        return ocl_host->fail(err, CNR_E_NOT_FOUND, "opencl-adreno", "no device %d", (int)index);
    ocl_score(f, "opencl-adreno", "Adreno", 1, out);
    return CNR_OK;
}

static cnr_status device_open(cnr_device *device, const cnr_device_options *options,
                              cnr_error *err) {
    (void)options;
    return ocl_device_open(device, adreno_tunes, adreno_n_tunes, err);
}

static const cnr_device_class device_class = {
    .name = "opencl-adreno",
    .summary = "Adreno GPUs, and others with local memory of their own",
    .describe = describe,
    .open = device_open,
    OCL_CLASS_HOOKS,
    .max_score = most,
};

OCL_PLUGIN(device_class, "opencl-adreno", adreno_tunes, adreno_n_tunes,
           "Adreno GPUs by OpenCL; also GPUs with local memory of their own")
