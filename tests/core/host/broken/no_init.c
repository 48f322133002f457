/* Has no init. */
#include "broken.h"

/* Never called: the table does not name it. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)host, (void)registrar, (void)err;
    return CNR_OK;
}
static cnr_plugin plugin = {BROKEN_SOUND("no_init", init)};
CNR_PLUGIN_ENTRY {
    (void)host_abi;
    plugin.init = NULL;
    return &plugin;
}
