/* Adreno GPUs by OpenCL. */
#include "adreno.h"

enum { SCORE = 300, SCORE_OF_OTHERS = 20 };

static int32_t most(void) {
    static const char *const files[] = {"/dev/kgsl-3d0", "/sys/module/msm", NULL};
    return ocl_most(files, SCORE, SCORE_OF_OTHERS);
}

static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    const ocl_found *f = ocl_describe(index, out);
    if (!f)
        return ocl_host->fail(err, CNR_E_NOT_FOUND, "opencl-adreno", "no device %d", (int)index);
    const int adreno = ocl_contains(f->name, "Adreno") || ocl_contains(f->version, "Adreno");
    if (!f->refused) out->score = adreno ? SCORE : SCORE_OF_OTHERS;
    return CNR_OK;
}

static cnr_status device_open(cnr_device *device, const cnr_device_options *options,
                              cnr_error *err) {
    (void)options;
    return ocl_device_open(device, adreno_tunes, adreno_n_tunes, err);
}

static const cnr_device_class device_class = {
    .name = "opencl-adreno",
    .summary = "Adreno GPUs",
    .describe = describe,
    .open = device_open,
    OCL_CLASS_HOOKS,
    .most = most,
};

OCL_PLUGIN(device_class, "opencl-adreno", "Adreno GPUs by OpenCL")
