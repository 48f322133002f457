/* Built with pointers of half the width. */
#include "broken.h"

/* Never called: the sizes of the ABI's structs differ. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)host, (void)registrar, (void)err;
    return CNR_OK;
}
static cnr_plugin plugin = {BROKEN_SOUND("wrong_signature", init)};
CNR_PLUGIN_ENTRY {
    (void)host_abi;
    plugin.signature ^= (uint32_t)(sizeof(void *) ^ sizeof(void *) / 2);
    return &plugin;
}
