/* Declarations shared by the files of convolution. */
#ifndef OCL_OP_CONV_H
#define OCL_OP_CONV_H

#include "support.h"

/* The window, if this library's kernels compute the node at all: NULL, or why not. */
const char *ocl_conv_window(const cnr_node *node, cnr_window *w);
/* The convolution's attribute `group`, at least 1. */
static inline int64_t ocl_conv_group(const cnr_node *node) {
    return cnr_max(1, cnr_attr_int(node, "group"));
}
/* Channels of a group times taps. */
static inline int64_t ocl_conv_terms(const cnr_node *node) {
    return cnr_span(node->inputs[1], 1, node->inputs[1]->rank);
}
/* The node, with what follows it and in parts along samples, channels and its first spatial axis.
 */
cnr_status ocl_conv_take(const cnr_node *node, cnr_accept *out, int32_t score);
/* Adds the options of conv_panel.cl for a window over `phases` phases along a row; NULL: for a
 * window of one element. */
void ocl_plan_panel(ocl_plan *p, const ocl_panel *k, const ocl_shape *s, int64_t phases);
/* The part of its time, of 1, in which a panel multiplies, reckoned from what it loads. */
double ocl_panel_use(const ocl_tune *tune, const ocl_panel *panel);
/* Multiply-adds in the time that a processor reads a weight from memory: measured on two cores. */
enum { OCL_OF_A_WEIGHT = 20 };

#endif
