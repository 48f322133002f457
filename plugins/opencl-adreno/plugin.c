/* Adreno GPUs by OpenCL. */
#include "tune.h"

/* The highest score that a device here may get, from files of the kernel's driver, before OpenCL is
 * asked. */
static int32_t most(void) {
    static const char *const files[] = {"/dev/kgsl-3d0", "/sys/module/msm", NULL};
    return ocl_most(files, OCL_SCORE_OWN, OCL_SCORE_DRIVES);
}

/* Fills *out with the device of this index; CNR_E_NOT_FOUND: there is none. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    const ocl_found *f = ocl_describe(index, out);
    if (!f)
        return ocl_host->fail(err, CNR_E_NOT_FOUND, "opencl-adreno", "no device %d", (int)index);
    ocl_score(f, "opencl-adreno", "Adreno", OCL_NO_OTHERS, out);
    return CNR_OK;
}

/* Opens a device with this plugin's tunes; options are ignored. */
static cnr_status device_open(cnr_device *device, const cnr_device_options *options,
                              cnr_error *err) {
    (void)options;
    return ocl_device_open(device, ocl_adreno_tunes, ocl_n_adreno_tunes, err);
}

static const cnr_device_class device_class = {
    .name = "opencl-adreno",
    .summary = "Adreno GPUs",
    .describe = describe,
    .open = device_open,
    OCL_CLASS_HOOKS,
    .max_score = most,
};

OCL_PLUGIN(device_class, "opencl-adreno", ocl_adreno_tunes, ocl_n_adreno_tunes,
           "Adreno GPUs by OpenCL")
