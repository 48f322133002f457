/* A plugin by the headers of ABI 1.1: hosts of later majors refuse it, with both versions. */
#include <cnnrun/plugin.h>

static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)registrar;
    return host->fail(err, CNR_E_STATE, "old", "is never initialised");
}

static const cnr_plugin plugin = {
    .size = sizeof plugin, .magic = CNR_PLUGIN_MAGIC, .abi = CNR_ABI, .signature = CNR_SIGNATURE,
    .name = "frozen-old", .version = "1", .summary = "built with the headers of 1.1",
    .licence = "MIT", .init = init};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
