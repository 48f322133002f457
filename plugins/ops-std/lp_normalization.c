/* lp_normalization: divides each lane along an axis by its norm. */
#include "ops_lane.h"

static const cnr_attr_spec attrs[] = {OPS_AXIS_ROW(-1, "the axis whose elements share a norm of 1"),
                                      {.name = "p",
                                       .type = CNR_ATTR_INT,
                                       .flags = CNR_ATTR_BOUNDED,
                                       .min = 1,
                                       .max = 2,
                                       .default_i = 2,
                                       .help = "the p of the norm"}};
static const cnr_port in[] = {{.name = "x", .help = "any tensor"}};
static const cnr_port out[] = {{.name = "y", .help = "the same shape"}};

/* Divides the elements of a lane by its norm of order p (1 or 2); a lane of zeros is unchanged. */
static void normalise(const cnr_run *run, const ops_lane *l, int32_t dtype) {
    const void *x = run->node->inputs[0]->data;
    const int square = cnr_attr_int(run->node, "p") == 2;
    double sum = 0;
    for (int64_t i = 0; i < l->n; i++) {
        const double v = ops_get(dtype, x, l->first + i * l->step);
        sum += square ? v * v : fabs(v);
    }
    if (square) sum = sqrt(sum);
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t at = l->first + i * l->step;
        ops_put(dtype, run->outputs[0]->data, at, sum == 0 ? 0 : ops_get(dtype, x, at) / sum);
    }
}

/* Method reference of lp_normalization: each lane along an axis divided by its norm. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    return ops_each_lane(run, normalise, err);
}

const cnr_op ops_lp_normalization = {
    CNR_OP_SIZES,
    .name = "lp_normalization",
    .summary = "Each lane along an axis divided by its norm.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = ops_lane_infer,
    .cost = ops_lane_cost,
    .buffer_aliases = ops_alias_inplace,
    .split_axes = ops_lane_split,
    .input_range = ops_lane_region,
    .reference = reference,
};
