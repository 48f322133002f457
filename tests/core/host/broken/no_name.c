/* Has no name. */
#include "broken.h"

/* Never called: the plugin has no name. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)host, (void)registrar, (void)err;
    return CNR_OK;
}
static cnr_plugin plugin = {BROKEN_SOUND("no_name", init)};
CNR_PLUGIN_ENTRY {
    (void)host_abi;
    plugin.name = NULL;
    return &plugin;
}
