/* Built against another major of the ABI. */
#include "broken.h"

/* Never called: the plugin is for another ABI. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)host, (void)registrar, (void)err;
    return CNR_OK;
}
static cnr_plugin plugin = {BROKEN_SOUND("other_major", init)};
CNR_PLUGIN_ENTRY {
    (void)host_abi;
    plugin.abi = CNR_ABI + (1u << 16);
    return &plugin;
}
