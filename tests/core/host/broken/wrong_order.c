/* Built for the other byte order. */
#include "broken.h"

/* Never called: the numbers have another byte order. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)host, (void)registrar, (void)err;
    return CNR_OK;
}
static cnr_plugin plugin = {BROKEN_SOUND("wrong_order", init)};
CNR_PLUGIN_ENTRY {
    (void)host_abi;
    plugin.signature ^= 3u << 24;
    return &plugin;
}
