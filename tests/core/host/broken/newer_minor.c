/* Built against the next minor of the ABI. */
#include "broken.h"

/* Never called: the plugin wants a newer ABI. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)host, (void)registrar, (void)err;
    return CNR_OK;
}
static cnr_plugin plugin = {BROKEN_SOUND("newer_minor", init)};
CNR_PLUGIN_ENTRY {
    (void)host_abi;
    plugin.abi = CNR_ABI + 1;
    return &plugin;
}
