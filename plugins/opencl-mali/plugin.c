/* Mali GPUs by OpenCL, and any other OpenCL device when no plugin knows it better. */
#include "tune.h"

/* The score of Mali GPUs on this machine: OCL_SCORE_OWN where a Mali driver is loaded, else
 * OCL_SCORE_SUITS. */
static int32_t most(void) {
    static const char *const files[] = {"/dev/mali0", "/sys/module/panthor", "/sys/module/panfrost",
                                        NULL};
    return ocl_most(files, OCL_SCORE_OWN, OCL_SCORE_SUITS);
}

/* *out receives what is told of device `index`; fails where there is none. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    const ocl_found *f = ocl_describe(index, out);
    if (!f) return ocl_host->fail(err, CNR_E_NOT_FOUND, "opencl-mali", "no device %d", (int)index);
    ocl_score(f, "opencl-mali", "Mali", OCL_LOCAL_SHARED, out);
    return CNR_OK;
}

/* Opens the device with the measured sizes of Mali GPUs. */
static cnr_status device_open(cnr_device *device, const cnr_device_options *options,
                              cnr_error *err) {
    (void)options;
    return ocl_device_open(device, ocl_mali_tunes, ocl_n_mali_tunes, err);
}

static const cnr_device_class device_class = {
    .name = "opencl-mali",
    .summary = "Mali GPUs, and OpenCL devices of any other kind",
    .describe = describe,
    .open = device_open,
    OCL_CLASS_HOOKS,
    .max_score = most,
};

OCL_PLUGIN(device_class, "opencl-mali", ocl_mali_tunes, ocl_n_mali_tunes,
           "Mali GPUs by OpenCL; also other OpenCL devices")
