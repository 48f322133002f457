/* Operators that work along one axis (softmax and kin): a lane is the elements along it. */
#ifndef OPS_LANE_H
#define OPS_LANE_H

#include "ops_kit.h"

/* Element i of a lane that begins at `first` is first + i * step. */
typedef struct ops_lane {
    int64_t first, step, n;
} ops_lane;

typedef void (*ops_lane_fn)(const cnr_run *run, const ops_lane *lane, int32_t dtype);

/* Calls fn for every lane of output 0 along attribute "axis" (rank 0: one lane of one). */
cnr_status ops_each_lane(const cnr_run *run, ops_lane_fn fn, cnr_error *err);
/* Floats, shape of input 0, "axis" in range. */
cnr_status ops_lane_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err);
/* The same with input 1 of input 0's shape: gradients. */
cnr_status ops_lane_grad_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err);
/* All axes but that one. */
int32_t ops_lane_split(const cnr_node *node, cnr_split_axis *axes, int32_t max);
void ops_lane_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                     cnr_input_range *r);
void ops_lane_cost(const cnr_node *node, cnr_cost *c);

#endif
