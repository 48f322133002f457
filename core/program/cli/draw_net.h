/* Draws a plan as a picture. */
#ifndef CNRI_DRAW_NET_H
#define CNRI_DRAW_NET_H

#include "cli/cli.h"

/* Writes DOT text: layers, shapes on edges, colours for device and kernel; with `timing`, times
 * as line widths. */
void cnri_plan_dot(const cnr_plan *plan, const cnr_timing *timing, cnri_text *out);
/* Writes the text beside `path` with the extension .dot, and has the application "graph" draw
 * it. */
cnr_status cnri_draw_net(const cnri_call *call, const cnri_text *dot, const char *path,
                         cnr_error *err);

/* graph_json.c: prints the net of call->model, its environment and the digests of its weights as
 * one JSON object in the form of X19, section 4.2. The devices are those of the plan. */
cnr_status cnri_graph_json(const cnri_call *call, const cnr_plan *plan, cnr_error *err);

#endif
