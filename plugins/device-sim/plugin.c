/* The entry of the plugin: a machine that a board file describes, as devices, meters and knobs. */
#include "sim.h"

const cnr_host *sim_host;

/* Registers device, kernel, meter, knob, clock and object. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    if (host->size < offsetof(cnr_host, board_text) + sizeof host->board_text)
        return host->fail(err, CNR_E_VERSION, "device-sim", "this host knows no boards");
    sim_host = host;
    cnr_status status = host->add(registrar, CNR_KIND_CLOCK, &sim_time);
    if (!status) status = host->add(registrar, CNR_KIND_DEVICE, &sim_devices);
    if (!status) status = host->add(registrar, CNR_KIND_KERNEL, &sim_kernel);
    if (!status) status = host->add(registrar, CNR_KIND_METER, &sim_meter);
    if (!status) status = host->add(registrar, CNR_KIND_KNOB, &sim_knob);
    if (!status) status = host->add(registrar, CNR_KIND_OBJECT, &sim_object);
    return status;
}

static const cnr_plugin plugin = {
    .size = sizeof(cnr_plugin),
    .magic = CNR_PLUGIN_MAGIC,
    .abi = CNR_ABI,
    .signature = CNR_SIGNATURE,
    .name = "device-sim",
    .version = "0.1.0",
    .summary = "Simulated machines: devices, meters and clocks that a board file describes",
    .licence = "MIT",
    .init = init,
    .fini = sim_machines_free,
    .touches = CNR_TOUCHES_NOTHING,
};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
