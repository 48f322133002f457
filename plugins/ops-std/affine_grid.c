/* affine_grid: the position of each pixel under an affine map, as input of grid_sample. */
#include "ops_kit.h"

static const cnr_port in[] = {{.name = "theta", .help = "N 2 3, or N 3 4: a map for each picture"},
                              {.name = "size",
                               .flags = CNR_PORT_CONST,
                               .help = "N C H W, or N C D H W"}};
static const cnr_port out[] = {{.name = "grid", .help = "N, spatial axes, one number per axis"}};
static const cnr_attr_spec attrs[] = {
    {.name = "align_corners",
     .type = CNR_ATTR_BOOL,
     .help = "-1 and 1 are the centres of the outermost pixels, not their outer edges"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *theta = node->inputs[0];
    cnr_tensor *y = outputs[0];
    kit_list size;
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 3, 3, err));
    CNR_TRY(kit_ints(node, 1, NULL, &size, err));
    if (size.n != 4 && size.n != 5)
        return ops_fail(err, CNR_E_SHAPE, node, "size must be N C H W or N C D H W");
    const int64_t axes = size.n - 2;
    if (!ops_dims_agree(theta->dim[1], axes) || !ops_dims_agree(theta->dim[2], axes + 1))
        return ops_fail(err, CNR_E_SHAPE, node, "theta must be N %lld %lld", (long long)axes,
                        (long long)axes + 1);
    y->dtype = theta->dtype;
    y->rank = (int32_t)axes + 2;
    y->dim[0] = theta->dim[0];
    y->dim[y->rank - 1] = axes;
    for (int64_t i = 0; i < axes; i++) {
        y->dim[1 + i] = size.known ? size.at[2 + i] : CNR_DIM_UNKNOWN;
        if (size.known && (size.at[2 + i] < 0 || size.at[2 + i] > OPS_MAX_DIM))
            return ops_fail(err, CNR_E_SHAPE, node, "%lld is no size", (long long)size.at[2 + i]);
    }
    return size.known ? kit_same(node, size.at[0], theta->dim[0], &y->dim[0], err) : CNR_OK;
}

/* Coordinate in [-1, 1] of place i of n; align: the first and last places are the corners. */
static double position(int64_t i, int64_t n, int align) {
    if (align) return n == 1 ? 0 : 2 * (double)i / (double)(n - 1) - 1;
    return (2 * (double)i + 1) / (double)n - 1;
}

OPS_INLINE void fill(const cnr_run *run, int32_t dtype, int32_t axes) {
    const cnr_tensor *y = run->outputs[0];
    const void *theta = run->node->inputs[0]->data;
    const int align = cnr_attr_int(run->node, "align_corners") != 0;
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK], to;
    cnr_range_of(run, lo, hi);
    const int64_t pixels = cnr_span(y, 1, y->rank - 1);
    for (int64_t n = lo[0]; n < hi[0]; n++)
        for (int64_t i = 0; i < pixels; i++) {
            double at[4]; /* last axis first, as in grids */
            int64_t rest = i;
            for (int32_t a = 0; a < axes; a++) {
                const int64_t dim = y->dim[axes - a];
                at[a] = position(rest % dim, dim, align);
                rest /= dim;
            }
            at[axes] = 1;
            to = (n * pixels + i) * axes;
            for (int32_t row = 0; row < axes; row++) {
                double sum = 0;
                for (int32_t k = 0; k <= axes; k++)
                    sum += at[k] * ops_get(dtype, theta, (n * axes + row) * (axes + 1) + k);
                ops_put(dtype, y->data, to + row, sum);
            }
        }
}

/* Method reference of affine_grid: the grid of positions of an affine map, for grid_sample; returns
 * CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    OPS_SPECIALISE(run->outputs[0]->dtype, fill(run, dtype, run->outputs[0]->rank - 2));
    return CNR_OK;
}

const cnr_op ops_affine_grid = {
    CNR_OP_SIZES,
    .name = "affine_grid",
    .summary = "The grid of positions of an affine map, for grid_sample.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = kit_cost_flops,
    .split_axes = ops_split_first,
    .input_range = ops_region_first,
    .reference = reference,
};
