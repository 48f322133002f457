/* expand, tile: repeat a tensor along its axes. */
#include "move.h"
#include "shapes.h"

static const cnr_port expand_in[] = {{.name = "x", .help = "any shape"},
                                     {.name = "shape",
                                      .flags = CNR_PORT_OPTIONAL | CNR_PORT_CONST,
                                      .help = "instead of the attribute"}};
static const cnr_port tile_in[] = {{.name = "x", .help = "any shape"},
                                   {.name = "repeats",
                                    .flags = CNR_PORT_OPTIONAL | CNR_PORT_CONST,
                                    .help = "instead of the attribute"}};
static const cnr_port expand_out[] = {{.name = "y", .help = "x in the shape both broadcast to"}};
static const cnr_port tile_out[] = {{.name = "y", .help = "x repeated"}};
static const cnr_attr_spec expand_attrs[] = {
    {.name = "shape", .type = CNR_ATTR_INTS, .help = "the shape to broadcast with"}};
static const cnr_attr_spec tile_attrs[] = {
    {.name = "repeats", .type = CNR_ATTR_INTS, .help = "number of repetitions for each axis"}};

/* Method infer of expand: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status expand_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    cnr_tensor *y = outputs[0];
    kit_list shape;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 0, CNR_MAX_RANK, err));
    CNR_TRY(kit_ints(node, 1, "shape", &shape, err));
    if (shape.n < 0 || shape.n > CNR_MAX_RANK)
        return ops_fail(err, CNR_E_SHAPE, node, "the new rank must be known and at most %d",
                        CNR_MAX_RANK);
    y->dtype = x->dtype;
    y->rank = shape.n > x->rank ? (int32_t)shape.n : x->rank;
    for (int32_t a = 0; a < y->rank; a++) {
        const int32_t own = a - (y->rank - x->rank), given = a - (y->rank - (int32_t)shape.n);
        const int64_t dim = own >= 0 ? x->dim[own] : 1;
        int64_t to = given >= 0 ? shape.known ? shape.at[given] : CNR_DIM_UNKNOWN : 1;
        if (shape.known && (to < 0 || to > OPS_MAX_DIM))
            return ops_fail(err, CNR_E_SHAPE, node, "%lld is no dimension", (long long)to);
        if (to == 1) to = dim;
        else if (to < 0 && dim > 1) to = dim;
        else if (dim >= 0 && dim != 1 && dim != to)
            return ops_fail(err, CNR_E_SHAPE, node, "%lld does not expand to %lld", (long long)dim,
                            (long long)to);
        y->dim[a] = to;
    }
    return CNR_OK;
}

/* Method region of expand: *r receives the part of input `port` that [begin, end) of the
 * output's axis needs; axis -1: all. */
static void expand_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end,
                          int32_t port, cnr_input_range *r) {
    const cnr_tensor *x = node->inputs[0];
    const int32_t own = axis - (node->outputs[0]->rank - x->rank);
    const int whole = port > 0 || own < 0 || x->dim[own] == 1;
    *r = (cnr_input_range){whole ? -1 : own, begin, end};
}

/* Method reference of expand: x broadcast to a shape, in the run's range; returns CNR_OK. */
static cnr_status expand_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    int64_t from[CNR_MAX_RANK], to[CNR_MAX_RANK];
    move_map m = {.rank = 0};
    (void)err;
    shape_strides(x, y, from);
    kit_dense_strides(y, to);
    for (int32_t a = 0; a < y->rank; a++) move_axis(&m, y->dim[a], from[a], to[a]);
    move_run_range(&m, run);
    move_copy(ops_size(y->dtype), x->data, y->data, &m);
    return CNR_OK;
}

/* Method gradient of expand: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status expand_gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    (void)inputs, (void)outputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    grad_in[0] = kit_unbroadcast(&b, grad_out[0], node->outputs[0], node->inputs[0]);
    return kit_built(&b, node, err);
}

/* Method infer of tile: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status tile_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    kit_list repeats;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 0, CNR_MAX_RANK, err));
    CNR_TRY(kit_ints(node, 1, "repeats", &repeats, err));
    if (repeats.n >= 0 && repeats.n != x->rank)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld repeats for rank %d", (long long)repeats.n,
                        (int)x->rank);
    ops_like(outputs[0], x);
    for (int32_t a = 0; a < x->rank; a++) {
        const int64_t times = repeats.known ? repeats.at[a] : CNR_DIM_UNKNOWN;
        if (repeats.known && times < 0)
            return ops_fail(err, CNR_E_ARG, node, "%lld repeats", (long long)times);
        CNR_TRY(kit_mul(node, x->dim[a], times, &outputs[0]->dim[a], err));
    }
    return CNR_OK;
}

/* Method reference of tile: x repeated along its axes; returns CNR_OK. */
static cnr_status tile_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    int64_t from[CNR_MAX_RANK], to[CNR_MAX_RANK];
    move_map m = {.rank = 0};
    (void)err;
    if (cnr_count(y) == 0) return CNR_OK;
    kit_dense_strides(x, from);
    kit_dense_strides(y, to);
    for (int32_t a = 0; a < y->rank; a++) {
        move_axis(&m, y->dim[a] / x->dim[a], 0, x->dim[a] * to[a]);
        move_axis(&m, x->dim[a], from[a], to[a]);
    }
    move_copy(ops_size(y->dtype), x->data, y->data, &m);
    return CNR_OK;
}

const cnr_op ops_expand = {
    CNR_OP_SIZES,
    .name = "expand",
    .summary = "x broadcast to a shape.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(expand_attrs),
    CNR_OP_PORTS(expand_in, expand_out),
    .infer = expand_infer,
    .split_axes = ops_split_all,
    .input_range = expand_region,
    .gradient = expand_gradient,
    .reference = expand_reference,
};

const cnr_op ops_tile = {
    CNR_OP_SIZES,
    .name = "tile",
    .summary = "x repeated along its axes.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(tile_attrs),
    CNR_OP_PORTS(tile_in, tile_out),
    .infer = tile_infer,
    .reference = tile_reference,
};
