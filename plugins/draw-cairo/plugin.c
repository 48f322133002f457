/* The plugin: an object to draw on, by cairo. */
#include "draw.h"

const cnr_host *draw_host;

static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    draw_host = host;
    return host->add(registrar, CNR_KIND_OBJECT, &draw_canvas);
}

CNR_PLUGIN_ENTRY {
    static const cnr_plugin plugin = {
        .size = sizeof plugin, .magic = CNR_PLUGIN_MAGIC, .abi = CNR_ABI,
        .signature = CNR_SIGNATURE, .name = "draw-cairo", .version = "0.2",
        .summary = "Shapes, labels and pictures drawn on a picture or in an SVG, by cairo.", .licence = "MIT",
        .init = init};
    (void)host_abi;
    return &plugin;
}
