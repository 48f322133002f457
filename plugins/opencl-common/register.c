/* Registers the kernels for the device class of the plugin that links this library. */
#include "support.h"

#include <stdio.h>

static const cnr_kernel *const all[] = {
#define X(name) &name,
    OCL_KERNEL_LIST(X)
#undef X
};
enum { COUNT = sizeof all / sizeof all[0] };

/* The plugin's own rows, alike but for the class that runs them and a name that no other has. */
static cnr_kernel rows[COUNT];
static char names[COUNT][64];

cnr_status ocl_register(const cnr_host *host, struct cnr_registrar *registrar,
                        const cnr_device_class *cls) {
    const char *dash = strrchr(cls->name, '-'), *prefix = dash ? dash + 1 : cls->name;
    ocl_host = host;
    cnr_status status = host->add(registrar, CNR_KIND_DEVICE, cls);
    for (int32_t i = 0; status == CNR_OK && i < COUNT; i++) {
        rows[i] = *all[i];
        snprintf(names[i], sizeof names[i], "%s_%s", prefix, all[i]->name);
        rows[i].name = names[i];
        rows[i].device = cls->name;
        status = host->add(registrar, CNR_KIND_KERNEL, &rows[i]);
    }
    return status;
}
