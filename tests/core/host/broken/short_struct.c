/* A description that ends before init. */
#include "broken.h"

/* Never called: the table is too short. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)host, (void)registrar, (void)err;
    return CNR_OK;
}
static cnr_plugin plugin = {BROKEN_SOUND("short_struct", init)};
CNR_PLUGIN_ENTRY {
    (void)host_abi;
    plugin.size = (uint32_t)offsetof(cnr_plugin, init);
    return &plugin;
}
