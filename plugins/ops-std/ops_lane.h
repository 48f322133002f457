/* Operators along one axis (softmax and others). A lane is the elements along that axis. */
#ifndef OPS_LANE_H
#define OPS_LANE_H

#include "ops_kit.h"

/* Element i of the lane is at first + i * step. */
typedef struct ops_lane {
    int64_t first, step, n;
} ops_lane;

typedef void (*ops_lane_fn)(const cnr_run *run, const ops_lane *lane, int32_t dtype);

/* Calls fn for every lane of output 0 along attribute "axis"; at rank 0, for one lane of one
 * element. */
cnr_status ops_each_lane(const cnr_run *run, ops_lane_fn fn, cnr_error *err);
/* Output like input 0, of floats; checks attribute "axis". */
cnr_status ops_lane_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err);
/* As ops_lane_infer, and input 1 must have input 0's shape: for gradients. */
cnr_status ops_lane_grad_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err);
/* Method split_axes: all axes but that of the line; returns how many it wrote, at most max. */
int32_t ops_lane_split(const cnr_node *node, cnr_split_axis *axes, int32_t max);
/* Method region of operators along a line: every input needs the output's range of that axis. */
void ops_lane_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                     cnr_input_range *r);
/* Method cost of operators along a line: five operations an element. */
void ops_lane_cost(const cnr_node *node, cnr_cost *c);

#endif
