/* shape, size, constant_of_shape, range, eye_like, one_hot, non_zero: create tensors from shapes,
 * numbers and positions. */
#include "ops_kit.h"

/* ---- shape ---- */

static const cnr_port shape_in[] = {{.name = "x", .help = "its data is not read"}};
static const cnr_port shape_out[] = {{.name = "y", .help = "i64, one number per dimension"}};
static const cnr_attr_spec shape_attrs[] = {{.name = "start",
                                             .type = CNR_ATTR_INT,
                                             .help = "first axis; negative: from the end"},
                                            {.name = "end",
                                             .type = CNR_ATTR_INT,
                                             .default_i = INT64_MAX,
                                             .help = "first axis that is left out"}};

/* A place between axes, limited to [0, rank]; negative ones count from the end. */
static int32_t shape_bound(int64_t axis, int32_t rank) {
    if (axis < 0) axis = axis < -rank ? 0 : axis + rank;
    return (int32_t)(axis > rank ? rank : axis);
}

/* Method infer of shape: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status shape_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    const int32_t from = shape_bound(cnr_attr_int(node, "start"), x->rank);
    const int32_t to = shape_bound(cnr_attr_int(node, "end"), x->rank);
    cnr_tensor *y = outputs[0];
    y->dtype = CNR_i64;
    y->rank = 1;
    y->dim[0] = to > from ? to - from : 0;
    for (int32_t a = from; a < to; a++)
        if (x->dim[a] < 0) return CNR_OK;
    return kit_set_data(node, y, x->dim + from, y->dim[0], err);
}

/* Method reference of shape: the dimensions of x; returns CNR_OK. */
static cnr_status shape_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int32_t from = shape_bound(cnr_attr_int(run->node, "start"), x->rank);
    (void)err;
    memcpy(y->data, x->dim + from, (size_t)y->dim[0] * sizeof x->dim[0]);
    return CNR_OK;
}

const cnr_op ops_shape = {
    CNR_OP_SIZES,
    .name = "shape",
    .summary = "The dimensions of x.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(shape_attrs),
    CNR_OP_PORTS(shape_in, shape_out),
    .infer = shape_infer,
    .reference = shape_reference,
};

/* ---- size ---- */

static const cnr_port size_out[] = {{.name = "y", .help = "i64, one number"}};

/* Method infer of size: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status size_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const int64_t n = cnr_count(node->inputs[0]);
    outputs[0]->dtype = CNR_i64;
    return n < 0 ? CNR_OK : kit_set_data(node, outputs[0], &n, 1, err);
}

/* Method reference of size: the number of elements of x; returns CNR_OK. */
static cnr_status size_reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    elem_set_i64(run->outputs[0], 0, cnr_count(run->node->inputs[0]));
    return CNR_OK;
}

const cnr_op ops_size_op = {
    CNR_OP_SIZES,
    .name = "size",
    .summary = "The number of elements of x.",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(shape_in, size_out),
    .infer = size_infer,
    .reference = size_reference,
};

/* ---- constant_of_shape ---- */

static const cnr_port fill_in[] = {{.name = "shape",
                                    .flags = CNR_PORT_OPTIONAL | CNR_PORT_CONST,
                                    .help = "instead of the attribute"}};
static const cnr_port fill_out[] = {{.name = "y", .help = "value everywhere"}};
static const cnr_attr_spec fill_attrs[] =
    {{.name = "shape", .type = CNR_ATTR_INTS, .help = "dimensions"},
     {.name = "value", .type = CNR_ATTR_FLOAT, .help = "value of each element"},
     {.name = "dtype", .type = CNR_ATTR_DTYPE, .default_i = CNR_f32, .help = "of the output"}};

/* Method infer of fill: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status fill_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    cnr_tensor *y = outputs[0];
    kit_list shape;
    CNR_TRY(kit_ints(node, 0, "shape", &shape, err));
    if (shape.n < 0 || shape.n > CNR_MAX_RANK)
        return ops_fail(err, CNR_E_SHAPE, node, "the rank must be known and at most %d",
                        CNR_MAX_RANK);
    y->dtype = (int32_t)cnr_attr_int(node, "dtype");
    if (!elem_in(y->dtype, OPS_WHOLE))
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "dtype %s", cnr_dtype_name(y->dtype));
    y->rank = (int32_t)shape.n;
    for (int32_t a = 0; a < y->rank; a++) {
        y->dim[a] = shape.known ? shape.at[a] : CNR_DIM_UNKNOWN;
        if (shape.known && (y->dim[a] < 0 || y->dim[a] > OPS_MAX_DIM))
            return ops_fail(err, CNR_E_SHAPE, node, "%lld is no dimension", (long long)shape.at[a]);
    }
    return CNR_OK;
}

/* Method reference of constant_of_shape: a tensor with one value everywhere; returns CNR_OK. */
static cnr_status fill_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *y = run->outputs[0];
    const double value = cnr_attr_float(run->node, "value");
    const int64_t count = cnr_count(y);
    elem_run values;
    (void)err;
    elem_load(CNR_f64, &value, 0, 0, ELEM_RUN, ELEM_F, &values);
    for (int64_t at = 0; at < count; at += ELEM_RUN)
        elem_store(y->dtype, y->data, at, count - at < ELEM_RUN ? count - at : ELEM_RUN, ELEM_F,
                   &values);
    return CNR_OK;
}

const cnr_op ops_constant_of_shape = {
    CNR_OP_SIZES,
    .name = "constant_of_shape",
    .summary = "A tensor with one value everywhere.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(fill_attrs),
    CNR_OP_PORTS(fill_in, fill_out),
    .infer = fill_infer,
    .reference = fill_reference,
};

/* ---- range ---- */

static const cnr_port range_in[] =
    {{.name = "start", .flags = CNR_PORT_CONST, .help = "first number"},
     {.name = "limit", .flags = CNR_PORT_CONST, .help = "limit, which is left out"},
     {.name = "delta", .flags = CNR_PORT_CONST, .help = "step"}};
static const cnr_port range_out[] = {{.name = "y", .help = "the numbers"}};

/* Method infer of range: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status range_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const uint32_t types = OPS_FLOATS | 1u << CNR_i16 | 1u << CNR_i32 | 1u << CNR_i64;
    int known[3];
    double v[3];
    CNR_TRY(ops_want(node, 0, types, 0, 1, err));
    for (int32_t i = 0; i < 3; i++) {
        CNR_TRY(ops_want(node, i, 1u << node->inputs[0]->dtype, 0, 1, err));
        v[i] = kit_scalar(node, i, NULL, &known[i]);
    }
    outputs[0]->dtype = node->inputs[0]->dtype;
    outputs[0]->rank = 1;
    outputs[0]->dim[0] = CNR_DIM_UNKNOWN;
    if (!known[0] || !known[1] || !known[2]) return CNR_OK;
    const double n = ceil((v[1] - v[0]) / v[2]);
    if (v[2] == 0 || !(fabs(v[0]) < INFINITY) || !(n <= (double)OPS_MAX_DIM))
        return ops_fail(err, CNR_E_ARG, node, "no range from %g to %g by %g", v[0], v[1], v[2]);
    outputs[0]->dim[0] = n > 0 ? (int64_t)n : 0;
    return CNR_OK;
}

/* Method reference of range: numbers from start to limit in steps; returns CNR_OK. */
static cnr_status range_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *const *ins = run->node->inputs, *y = run->outputs[0];
    const double start = elem_f64(ins[0], 0), delta = elem_f64(ins[2], 0);
    const uint64_t first = (uint64_t)elem_i64(ins[0], 0), step = (uint64_t)elem_i64(ins[2], 0);
    (void)err;
    for (int64_t i = 0; i < y->dim[0]; i++) {
        if (ops_is_float(y->dtype)) elem_set_f64(y, i, start + (double)i * delta);
        else elem_set_i64(y, i, (int64_t)(first + (uint64_t)i * step));
    }
    return CNR_OK;
}

const cnr_op ops_range_op = {
    CNR_OP_SIZES,
    .name = "range",
    .summary = "Numbers from start to limit in steps.",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(range_in, range_out),
    .infer = range_infer,
    .reference = range_reference,
};

/* ---- eye_like ---- */

static const cnr_port eye_in[] = {{.name = "x", .help = "rank 2; its data is not read"}};
static const cnr_port eye_out[] = {{.name = "y", .help = "1 on the diagonal, else 0"}};
static const cnr_attr_spec eye_attrs[] =
    {{.name = "k", .type = CNR_ATTR_INT, .help = "diagonal: 0 main, above it positive"},
     {.name = "dtype", .type = CNR_ATTR_DTYPE, .help = "of the output; none: that of x"}};

/* Method infer of eye: x has rank 2; y has its shape, and its type or the one that `dtype` names.
 */
static cnr_status eye_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const int32_t dtype = (int32_t)cnr_attr_int(node, "dtype");
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 2, 2, err));
    ops_like(outputs[0], node->inputs[0]);
    if (dtype) outputs[0]->dtype = dtype;
    if (!elem_in(outputs[0]->dtype, OPS_WHOLE))
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "dtype %s", cnr_dtype_name(dtype));
    return CNR_OK;
}

/* Method reference of eye_like: the identity matrix in the shape of x; returns CNR_OK. */
static cnr_status eye_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *y = run->outputs[0];
    const int64_t k = cnr_attr_int(run->node, "k"), rows = y->dim[0], columns = y->dim[1];
    (void)err;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) elem_set_i64(y, i * columns + j, j - i == k);
    return CNR_OK;
}

const cnr_op ops_eye_like = {
    CNR_OP_SIZES,
    .name = "eye_like",
    .summary = "The identity matrix in the shape of x.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(eye_attrs),
    CNR_OP_PORTS(eye_in, eye_out),
    .infer = eye_infer,
    .reference = eye_reference,
};

/* ---- one_hot ---- */

static const cnr_port hot_in[] =
    {{.name = "indices", .help = "indices; negative: from the end, out of range: nowhere"},
     {.name = "depth", .flags = CNR_PORT_CONST, .help = "length of the new axis"},
     {.name = "values", .help = "two numbers: the value elsewhere, the value at the index"}};
static const cnr_port hot_out[] = {{.name = "y", .help = "shape of indices with the new axis"}};
static const cnr_attr_spec hot_attrs[] = {OPS_AXIS_ROW(-1, "position of the new axis")};

/* Method infer of hot: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status hot_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    int32_t axis;
    int known;
    CNR_TRY(ops_want(node, 0, OPS_NUMBERS, 0, CNR_MAX_RANK - 1, err));
    CNR_TRY(ops_want(node, 1, OPS_NUMBERS, 0, 1, err));
    CNR_TRY(ops_want(node, 2, OPS_WHOLE, 1, 1, err));
    if (!ops_dims_agree(node->inputs[2]->dim[0], 2))
        return ops_fail(err, CNR_E_SHAPE, node, "two values are wanted");
    const cnr_tensor *x = node->inputs[0];
    CNR_TRY(kit_axis(node, cnr_attr_int(node, "axis"), x->rank + 1, &axis, err));
    const double depth = kit_scalar(node, 1, NULL, &known);
    if (known && !(depth >= 0 && depth <= (double)OPS_MAX_DIM))
        return ops_fail(err, CNR_E_ARG, node, "a depth of %g", depth);
    outputs[0]->dtype = node->inputs[2]->dtype;
    outputs[0]->rank = x->rank + 1;
    for (int32_t a = 0; a <= x->rank; a++)
        outputs[0]->dim[a] =
            a == axis ? (known ? (int64_t)depth : CNR_DIM_UNKNOWN) : x->dim[a - (a > axis)];
    return CNR_OK;
}

/* Method reference of one_hot: adds an axis with one value at the index and another value
 * elsewhere. */
static cnr_status hot_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *values = run->node->inputs[2];
    const cnr_tensor *y = run->outputs[0];
    const size_t size = ops_size(y->dtype);
    int32_t axis;
    CNR_TRY(kit_axis(run->node, cnr_attr_int(run->node, "axis"), y->rank, &axis, err));
    const int64_t outer = cnr_span(y, 0, axis), depth = y->dim[axis];
    const int64_t inner = cnr_span(y, axis + 1, y->rank);
    uint8_t *to = y->data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t d = 0; d < depth; d++)
            for (int64_t i = 0; i < inner; i++, to += size) {
                const int64_t at = elem_i64(x, o * inner + i);
                const int there = at == d || (at < 0 && at + depth == d);
                memcpy(to, (const uint8_t *)values->data + (size_t)there * size, size);
            }
    return CNR_OK;
}

const cnr_op ops_one_hot = {
    CNR_OP_SIZES,
    .name = "one_hot",
    .summary = "Adds an axis with one value at the index and another value elsewhere.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(hot_attrs),
    CNR_OP_PORTS(hot_in, hot_out),
    .infer = hot_infer,
    .reference = hot_reference,
};

/* ---- non_zero ---- */

static const cnr_port where_in[] = {{.name = "x", .help = "any shape"}};
static const cnr_port where_out[] = {
    {.name = "y", .help = "i64, [rank, found]: one column per element"}};

/* Method infer of where: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status where_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const int64_t n = cnr_count(node->inputs[0]);
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 0, CNR_MAX_RANK, err));
    outputs[0]->dtype = CNR_i64;
    outputs[0]->rank = 2;
    outputs[0]->dim[0] = node->inputs[0]->rank;
    outputs[0]->dim[1] = n < 0 ? CNR_DIM_UNKNOWN : n;
    outputs[0]->flags |= CNR_TENSOR_DYNAMIC;
    return CNR_OK;
}

/* Method reference of non_zero: the positions of the elements that are not 0; returns CNR_OK. */
static cnr_status where_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    cnr_tensor *y = run->outputs[0];
    const int64_t count = cnr_count(x);
    int64_t found = 0, at = 0;
    (void)err;
    for (int64_t i = 0; i < count; i++) found += elem_f64(x, i) != 0;
    for (int64_t i = 0; i < count; i++) {
        if (elem_f64(x, i) == 0) continue;
        int64_t rest = i;
        for (int32_t a = x->rank - 1; a >= 0; rest /= x->dim[a--])
            ((int64_t *)y->data)[a * found + at] = rest % x->dim[a];
        at++;
    }
    y->dim[1] = found;
    return CNR_OK;
}

const cnr_op ops_non_zero = {
    CNR_OP_SIZES,
    .name = "non_zero",
    .summary = "The positions of the elements that are not 0.",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(where_in, where_out),
    .infer = where_infer,
    .reference = where_reference,
};
