/* concat: joins inputs along an axis. */
#include "move.h"

static const cnr_port in[] = {{.name = "x",
                               .flags = CNR_PORT_VARIADIC,
                               .min = 1,
                               .help = "equal in all dimensions but `axis`"}};
static const cnr_port out[] = {{.name = "y", .help = "the concatenated inputs"}};
static const cnr_attr_spec attrs[] = {OPS_AXIS_ROW(1, "along which the inputs are joined")};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    cnr_tensor *y = outputs[0];
    int32_t axis;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 1, CNR_MAX_RANK, err));
    ops_like(y, node->inputs[0]);
    CNR_TRY(ops_axis(node, "axis", y->rank, 0, &axis, err));
    for (int32_t i = 1; i < node->n_inputs; i++) {
        CNR_TRY(ops_want(node, i, 1u << y->dtype, y->rank, y->rank, err));
        for (int32_t a = 0; a < y->rank; a++) {
            const int64_t dim = node->inputs[i]->dim[a];
            if (a == axis) CNR_TRY(kit_add(node, y->dim[a], dim, &y->dim[a], err));
            else CNR_TRY(kit_same(node, y->dim[a], dim, &y->dim[a], err));
        }
    }
    return CNR_OK;
}

/* Method aliases: if all axes before the joined one are 1, each input is a contiguous part of the
 * output. Returns how many rows it wrote; 0: none. */
static int32_t aliases_of(const cnr_node *node, cnr_alias *alias, int32_t max) {
    const int32_t axis = ops_axis_of(node, node->outputs[0]);
    uint64_t offset = 0;
    int32_t n = 0;
    for (int32_t a = 0; a < axis; a++)
        if (node->outputs[0]->dim[a] != 1) return 0;
    for (int32_t i = 0; i < node->n_inputs && n < max; i++) {
        alias[n++] = (cnr_alias){CNR_ALIAS_JOIN, i, 0, offset};
        offset += ops_elements(node->inputs[i]);
    }
    return n;
}

/* Method split_axes: axes receives at most max output axes that a run may be cut along; returns
 * how many. */
static int32_t split_axes(const cnr_node *node, cnr_split_axis *split, int32_t max) {
    int32_t n = 0;
    for (int32_t a = 0; a < node->outputs[0]->rank && n < max; a++)
        if (a != ops_axis_of(node, node->outputs[0])) split[n++] = (cnr_split_axis){a, 1};
    return n;
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    (void)node, (void)port;
    *r = (cnr_input_range){axis, begin, end};
}

/* Method reference of concat: the inputs one after another along an axis, in the run's range;
 * returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *y = run->outputs[0];
    const int32_t axis = ops_axis_of(run->node, run->node->outputs[0]);
    const size_t size = ops_size(y->dtype);
    int64_t to[CNR_MAX_RANK], from[CNR_MAX_RANK], at = 0;
    (void)err;
    kit_dense_strides(y, to);
    for (int32_t i = 0; i < run->node->n_inputs; i++) {
        const cnr_tensor *x = run->node->inputs[i];
        move_map m = {.out_at = at * to[axis]};
        kit_dense_strides(x, from);
        for (int32_t a = 0; a < x->rank; a++) move_axis(&m, x->dim[a], from[a], to[a]);
        /* an input that was produced in place needs no copy */
        if ((const uint8_t *)x->data != (const uint8_t *)y->data + (size_t)m.out_at * size) {
            move_run_range(&m, run);
            move_copy(size, x->data, y->data, &m);
        }
        at += x->dim[axis];
    }
    return CNR_OK;
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    const int64_t axis = ops_axis_of(node, node->outputs[0]);
    int64_t from = 0;
    (void)inputs, (void)outputs;
    for (int32_t i = 0; grad_out[0] >= 0 && i < node->n_inputs; i++) {
        const int64_t to = from + node->inputs[i]->dim[axis];
        const cnr_attr list[] = {kit_attr_ints("starts", &from, 1), kit_attr_ints("ends", &to, 1),
                                 kit_attr_ints("axes", &axis, 1)};
        if (want[i]) grad_in[i] = kit_node(&b, "slice", &grad_out[0], 1, list, 3);
        from = to;
    }
    return kit_built(&b, node, err);
}

static const char *const aliases[] = {"concatenate", NULL};

const cnr_op ops_concat = {
    CNR_OP_SIZES,
    .name = "concat",
    .summary = "The inputs one after another along an axis.",
    .aliases = aliases,
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .buffer_aliases = aliases_of,
    .split_axes = split_axes,
    .input_range = region,
    .gradient = gradient,
    .reference = reference,
};
