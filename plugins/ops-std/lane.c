/* Iterates over lanes along an axis; hooks shared by operators that do. */
#include "ops_lane.h"

/* *axis receives the node's axis, from 0; a scalar counts as one element. */
static cnr_status axis_of(const cnr_node *node, int32_t rank, int32_t *axis, cnr_error *err) {
    const int64_t given = cnr_attr_int(node, "axis");
    if (rank == 0 && given >= -1 && given <= 1) {
        *axis = 0;
        return CNR_OK;
    }
    return ops_axis(node, "axis", rank, 0, axis, err);
}

cnr_status ops_each_lane(const cnr_run *run, ops_lane_fn fn, cnr_error *err) {
    const cnr_tensor *y = run->outputs[0];
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK], at[CNR_MAX_RANK];
    int32_t axis;
    CNR_TRY(axis_of(run->node, y->rank, &axis, err));
    ops_lane lane = {.n = 1, .step = 1};
    if (y->rank > 0) {
        lane.n = y->dim[axis];
        lane.step = cnr_span(y, axis + 1, y->rank);
    }
    cnr_range_of(run, lo, hi);
    for (int32_t i = 0; i < y->rank; i++) {
        if (lo[i] >= hi[i]) return CNR_OK;
        if (i == axis) hi[i] = 1;
        at[i] = i == axis ? 0 : lo[i];
    }
    for (;;) {
        int32_t i = y->rank - 1;
        lane.first = 0;
        for (int32_t j = 0; j < y->rank; j++) lane.first = lane.first * y->dim[j] + at[j];
        if (ops_cancelled(run)) return CNR_OK;
        fn(run, &lane, y->dtype);
        for (; i >= 0 && ++at[i] == hi[i]; i--) at[i] = i == axis ? 0 : lo[i];
        if (i < 0) return CNR_OK;
    }
}

cnr_status ops_lane_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    int32_t axis;
    CNR_TRY(ops_infer_float(node, outputs, err));
    return axis_of(node, node->inputs[0]->rank, &axis, err);
}

cnr_status ops_lane_grad_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *dy = node->inputs[0];
    CNR_TRY(ops_lane_infer(node, outputs, err));
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 0, CNR_MAX_RANK, err));
    return ops_want_shape(node, 1, dy->dtype, dy->rank, dy->dim, err);
}

int32_t ops_lane_split(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    int32_t axis, n = 0;
    const int32_t rank = node->outputs[0]->rank;
    if (axis_of(node, rank, &axis, NULL) != CNR_OK) return 0;
    for (int32_t i = 0; i < rank && n < max; i++)
        if (i != axis) axes[n++] = (cnr_split_axis){.axis = i, .alignment = 1};
    return n;
}

/* Method region of operators along a line: every input needs the output's range of that axis. */
void ops_lane_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                     cnr_input_range *r) {
    (void)node, (void)port;
    *r = (cnr_input_range){axis, begin, end};
}

/* Method cost of operators along a line: five operations an element. */
void ops_lane_cost(const cnr_node *node, cnr_cost *c) {
    c->flops = ops_mul(ops_elements(node->outputs[0]), 5);
}
