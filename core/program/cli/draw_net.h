/* A plan as a picture. */
#ifndef CNRI_DRAW_NET_H
#define CNRI_DRAW_NET_H

#include "cli/cli.h"

/* Layers, shapes on the edges, device and kernel by colour; with `timing` the time as width. */
void cnri_plan_dot(const cnr_plan *plan, const cnr_timing *timing, cnri_text *out);
/* Writes the text beside `path`, as .dot, and has the application "graph" draw it. */
cnr_status cnri_draw_net(const cnri_call *call, const cnri_text *dot, const char *path,
                         cnr_error *err);

/* graph_json.c: prints the net of call->model with its environment and the digests of its weights
 * as one object of JSON, in the form of X19's section 4.2. The plan tells the devices. */
cnr_status cnri_graph_json(const cnri_call *call, const cnr_plan *plan, cnr_error *err);

#endif
