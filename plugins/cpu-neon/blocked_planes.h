/* Windows over planes of channel blocks, shared by depthwise convolution and poolings. */
#ifndef NEON_BLOCKED_PLANES_H
#define NEON_BLOCKED_PLANES_H

#include "blocked.h"

/* Creates the state for neon_planes_run; neon_free_state frees it. */
cnr_status neon_planes_plan(const cnr_device *device, const cnr_node *node, const cnr_window *w,
                            neon_window_kind kind, void **state, cnr_error *err);
/* Computes the windows of a run. Only depthwise convolution (the kind FMA) has a weight, packed as
 * [block][tap][channel], and a bias or NULL. */
void neon_planes_run(const cnr_run *run, const float *weight, const float *bias);

#endif
