/* Facts about the object "dot" that are known before Graphviz is loaded. */
#ifndef DOT_ABOUT_H
#define DOT_ABOUT_H

#include <cnnrun/kit.h>

#define DOT_NAME "dot"
#define DOT_SUMMARY "Graphs in the language DOT, laid out and drawn: dot {}."
static const char *const dot_methods[] = {"render(graph, format) -> text"};

#endif
