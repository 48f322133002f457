/* The plugin: an object to draw on, by cairo. */
#include "draw.h"

const cnr_host *draw_host;

static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    draw_host = host;
    return host->add(registrar, CNR_KIND_OBJECT, &draw_canvas);
}

CNR_PLUGIN("draw-cairo", "0.2",
           "Shapes, labels and pictures drawn on a picture or in an SVG, by cairo.", "MIT", init)
