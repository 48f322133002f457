/* The entry of the plugin: registers the CPU device and its kernels. */
#include "neon.h"
#include "kernels.h"

const cnr_host *neon_host;
const neon_ukernels *neon_uk;

/* Registers device and kernels. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    neon_host = host;
    neon_uk = neon_widest_isa();
    cnr_status status = host->add(registrar, CNR_KIND_DEVICE, &neon_device_class);
    for (int32_t i = 0; status == CNR_OK && neon_kernels[i]; i++)
        status = host->add(registrar, CNR_KIND_KERNEL, neon_kernels[i]);
    return status;
}

CNR_PLUGIN("cpu-neon", "0.1.0", "The CPU: NEON, AVX2, AVX-512 or plain C, chosen when it loads",
           "MIT", init, CNR_TOUCHES_DEVICES)
