/* The plugin: the object "dot"; dot.so is loaded when one is created. */
#include "about.h"
#include "late.h"

LATE_OBJECT(object, "draw-graphviz/dot", DOT_NAME, DOT_SUMMARY, dot_methods, NULL)

CNR_PLUGIN("draw-graphviz", CNNRUN_VERSION, "graphs laid out and drawn as SVG or PNG, by Graphviz",
           "MIT", late_init, CNR_TOUCHES_NOTHING)
