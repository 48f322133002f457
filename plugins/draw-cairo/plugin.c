/* The plugin: the object "canvas"; canvas.so is loaded when one is created. */
#include "about.h"
#include "late.h"

LATE_OBJECT(object, "draw-cairo/canvas", DRAW_NAME, DRAW_SUMMARY, draw_methods, NULL)

CNR_PLUGIN("draw-cairo", "0.2",
           "Shapes, labels and pictures drawn on a picture or in an SVG, by cairo.", "MIT",
           late_init, CNR_TOUCHES_NOTHING)
