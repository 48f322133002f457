/* GPUs of desktops by OpenCL: those with local memory of their own that no phone has. */
#include "tune.h"

static int32_t most(void) { return OCL_SCORE_SUITS; }

/* *out receives what is told of device `index`; fails where there is none. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    const ocl_found *f = ocl_describe(index, out);
    if (!f)
        return ocl_host->fail(err, CNR_E_NOT_FOUND, "opencl-desktop", "no device %d", (int)index);
    ocl_score(f, "opencl-desktop", NULL, OCL_LOCAL_OWN, out);
    return CNR_OK;
}

/* Opens the device with the measured sizes of desktop GPUs. */
static cnr_status device_open(cnr_device *device, const cnr_device_options *options,
                              cnr_error *err) {
    (void)options;
    return ocl_device_open(device, ocl_desktop_tunes, ocl_n_desktop_tunes, err);
}

static const cnr_device_class device_class = {
    .name = "opencl-desktop",
    .summary = "GPUs with local memory of their own",
    .describe = describe,
    .open = device_open,
    OCL_CLASS_HOOKS,
    .max_score = most,
};

OCL_PLUGIN(device_class, "opencl-desktop", ocl_desktop_tunes, ocl_n_desktop_tunes,
           "GPUs with local memory of their own by OpenCL")
