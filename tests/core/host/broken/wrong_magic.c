/* A description that is not one of ours. */
#include "broken.h"

/* Never called: the table's first number is wrong. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)host, (void)registrar, (void)err;
    return CNR_OK;
}
static cnr_plugin plugin = {BROKEN_SOUND("wrong_magic", init)};
CNR_PLUGIN_ENTRY {
    (void)host_abi;
    plugin.magic = 0xdeadbeef;
    return &plugin;
}
