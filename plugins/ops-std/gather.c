/* gather, gather_elements, gather_nd: select elements by index. */
#include "ops_kit.h"

static const cnr_port in[] = {{.name = "x", .help = "the tensor to select from"},
                              {.name = "indices", .help = "i32 or i64; negative: from the end"}};
static const cnr_port out[] = {{.name = "y", .help = "the selected elements"}};
static const cnr_attr_spec axis_attrs[] = {OPS_AXIS_ROW(0, "the axis of the indices")};
static const cnr_attr_spec nd_attrs[] = {
    {.name = "batch_dims",
     .type = CNR_ATTR_INT,
     .flags = CNR_ATTR_BOUNDED,
     .min = 0,
     .max = CNR_MAX_RANK,
     .help = "number of leading axes that x and indices share"}};

#define INDEX_TYPES (1u << CNR_i32 | 1u << CNR_i64)

/* Checks that the indices are whole and the input has min_rank axes. */
static cnr_status check(const cnr_node *node, int32_t min_rank, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, min_rank, CNR_MAX_RANK, err));
    return ops_want(node, 1, INDEX_TYPES, 0, CNR_MAX_RANK, err);
}

/* *at: element i of `indices`, which may be negative, as 0 .. dim - 1; fails if it is outside. */
static cnr_status index_at(const cnr_node *node, const cnr_tensor *indices, int64_t i, int64_t dim,
                           int64_t *at, cnr_error *err) {
    const int64_t given = ops_get_int(indices->dtype, indices->data, i);
    *at = given < 0 ? given + dim : given;
    if (*at >= 0 && *at < dim) return CNR_OK;
    return ops_fail(err, CNR_E_ARG, node, "index %lld is outside 0 .. %lld", (long long)given,
                    (long long)dim - 1);
}

/* Method infer of gather: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status gather_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *indices = node->inputs[1];
    cnr_tensor *y = outputs[0];
    int32_t axis;
    CNR_TRY(check(node, 1, err));
    CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    if (x->rank - 1 + indices->rank > CNR_MAX_RANK)
        return ops_fail(err, CNR_E_LIMIT, node, "the result's rank is above %d", CNR_MAX_RANK);
    y->dtype = x->dtype;
    for (int32_t a = 0; a < axis; a++) y->dim[y->rank++] = x->dim[a];
    for (int32_t a = 0; a < indices->rank; a++) y->dim[y->rank++] = indices->dim[a];
    for (int32_t a = axis + 1; a < x->rank; a++) y->dim[y->rank++] = x->dim[a];
    return CNR_OK;
}

/* Adds to *out the matrix with a 1 where row d is the element that column i selects; fails for an
 * index outside. */
static cnr_status selection(kit_build *b, const cnr_node *node, int64_t dim, cnr_value *out,
                            cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *indices = node->inputs[1];
    const int64_t n = cnr_count(indices);
    cnr_tensor t = {.size = sizeof t, .dtype = x->dtype, .rank = 2, .flags = CNR_TENSOR_CONST};
    t.dim[0] = dim;
    t.dim[1] = n;
    t.bytes = cnr_dense_bytes(&t);
    if ((t.data = b->host->alloc(t.bytes + 1)) == NULL)
        return ops_fail(err, CNR_E_MEMORY, node, "cannot add its gradient");
    memset(t.data, 0, t.bytes);
    cnr_status status = CNR_OK;
    for (int64_t i = 0, at; i < n && !status; i++) {
        status = index_at(node, indices, i, dim, &at, err);
        if (!status) ops_put(x->dtype, t.data, at * n + i, 1);
    }
    *out = status ? -1 : b->host->graph_constant(b->graph, NULL, &t);
    b->host->free(t.data);
    return status;
}

enum { MAX_SELECTION = 1 << 24 };

/* Each element of x gets the sum of what its copies got: a product with the selection. */
static cnr_status gather_gradient(OPS_GRADIENT_ARGS) {
    const cnr_tensor *x = node->inputs[0], *indices = node->inputs[1];
    kit_build b = {.host = host, .graph = graph};
    cnr_value select = -1;
    (void)inputs, (void)outputs;
    if (grad_out[0] < 0 || !want[0] || cnr_count(x) < 1 || cnr_count(indices) < 1) return CNR_OK;
    const int32_t axis = ops_axis_of(node, x);
    const int64_t dim = x->dim[axis], n = cnr_count(indices);
    if (!indices->data || n > MAX_SELECTION / dim)
        return ops_fail(err, CNR_E_UNSUPPORTED, node,
                        "has a gradient only for a few indices that are constant");
    cnr_tensor rows = {.size = sizeof rows, .dtype = x->dtype, .rank = 3};
    rows.dim[0] = cnr_span(x, 0, axis);
    rows.dim[1] = n;
    rows.dim[2] = cnr_span(x, axis + 1, x->rank);
    CNR_TRY(selection(&b, node, dim, &select, err));
    const cnr_value dy = kit_reshape(&b, grad_out[0], &rows);
    grad_in[0] = kit_reshape(&b, kit_node2(&b, "matmul", select, dy), x);
    return kit_built(&b, node, err);
}

/* Method reference of gather: slices of x selected by indices along an axis. */
static cnr_status gather_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *indices = run->node->inputs[1];
    const int32_t axis = ops_axis_of(run->node, run->node->inputs[0]);
    const int64_t outer = cnr_span(x, 0, axis), inner = cnr_span(x, axis + 1, x->rank);
    const int64_t n = cnr_count(indices), dim = x->dim[axis];
    const size_t line = (size_t)inner * ops_size(x->dtype);
    uint8_t *to = run->outputs[0]->data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++, to += line) {
            int64_t at;
            CNR_TRY(index_at(run->node, indices, i, dim, &at, err));
            if (line) memcpy(to, (const uint8_t *)x->data + (size_t)(o * dim + at) * line, line);
        }
    return CNR_OK;
}

/* Method infer of gather_elements: checks the inputs' types and shapes, and gives each output
 * its own. */
static cnr_status gather_elements_infer(const cnr_node *node, cnr_tensor *const *outputs,
                                        cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *indices = node->inputs[1];
    int32_t axis;
    CNR_TRY(check(node, 1, err));
    CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    if (indices->rank != x->rank)
        return ops_fail(err, CNR_E_SHAPE, node, "indices have rank %d, x %d", (int)indices->rank,
                        (int)x->rank);
    for (int32_t a = 0; a < x->rank; a++)
        if (a != axis && x->dim[a] >= 0 && indices->dim[a] > x->dim[a])
            return ops_fail(err, CNR_E_SHAPE, node, "indices are larger than x along axis %d", a);
    ops_like(outputs[0], indices);
    outputs[0]->dtype = x->dtype;
    return CNR_OK;
}

/* Method reference of gather_elements: elements of x, each selected by an index along an axis. */
static cnr_status gather_elements_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *indices = run->node->inputs[1];
    const int32_t axis = ops_axis_of(run->node, run->node->inputs[0]);
    const size_t size = ops_size(x->dtype);
    const int64_t n = cnr_count(indices);
    int64_t strides[CNR_MAX_RANK], index[CNR_MAX_RANK] = {0};
    uint8_t *to = run->outputs[0]->data;
    kit_dense_strides(x, strides);
    for (int64_t i = 0; i < n; i++) {
        int64_t from = 0, at;
        CNR_TRY(index_at(run->node, indices, i, x->dim[axis], &at, err));
        for (int32_t a = 0; a < x->rank; a++) from += (a == axis ? at : index[a]) * strides[a];
        memcpy(to + (size_t)i * size, (const uint8_t *)x->data + (size_t)from * size, size);
        for (int32_t a = x->rank - 1; a >= 0 && ++index[a] == indices->dim[a]; a--) index[a] = 0;
    }
    return CNR_OK;
}

/* Method infer of gather_nd: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status gather_nd_infer(const cnr_node *node, cnr_tensor *const *outputs,
                                  cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *indices = node->inputs[1];
    const int32_t batch = (int32_t)cnr_attr_int(node, "batch_dims");
    cnr_tensor *y = outputs[0];
    CNR_TRY(check(node, 1, err));
    CNR_TRY(ops_want(node, 1, INDEX_TYPES, 1, CNR_MAX_RANK, err));
    const int64_t depth = indices->dim[indices->rank - 1];
    if (depth < 1 || batch >= indices->rank || batch + depth > x->rank)
        return ops_fail(err, CNR_E_SHAPE, node,
                        "the last axis of indices must be known and 1 to the rank of x less batch");
    if (indices->rank - 1 + x->rank - batch - depth > CNR_MAX_RANK)
        return ops_fail(err, CNR_E_LIMIT, node, "the result's rank is above %d", CNR_MAX_RANK);
    y->dtype = x->dtype;
    for (int32_t a = 0; a < indices->rank - 1; a++) {
        int64_t dim = indices->dim[a];
        if (a < batch) CNR_TRY(kit_same(node, dim, x->dim[a], &dim, err));
        y->dim[y->rank++] = dim;
    }
    for (int32_t a = batch + (int32_t)depth; a < x->rank; a++) y->dim[y->rank++] = x->dim[a];
    return CNR_OK;
}

/* Method reference of gather_nd: slices of x, each selected by an index of several numbers. */
static cnr_status gather_nd_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *indices = run->node->inputs[1];
    const int32_t batch = (int32_t)cnr_attr_int(run->node, "batch_dims");
    const int32_t depth = (int32_t)indices->dim[indices->rank - 1];
    const size_t line = (size_t)cnr_span(x, batch + depth, x->rank) * ops_size(x->dtype);
    const int64_t batches = cnr_span(x, 0, batch);
    const int64_t each = cnr_span(indices, batch, indices->rank - 1);
    const int64_t block = cnr_span(x, batch, batch + depth);
    uint8_t *to = run->outputs[0]->data;
    for (int64_t b = 0; b < batches; b++)
        for (int64_t i = 0; i < each; i++, to += line) {
            int64_t from = 0;
            for (int32_t d = 0; d < depth; d++) {
                const int64_t dim = x->dim[batch + d];
                int64_t at;
                CNR_TRY(index_at(run->node, indices, (b * each + i) * depth + d, dim, &at, err));
                from = from * dim + at;
            }
            if (line)
                memcpy(to, (const uint8_t *)x->data + (size_t)(b * block + from) * line, line);
        }
    return CNR_OK;
}

/* The descriptor of operator NAME, with hooks NAME_infer and so on. */
#define GATHER_OP(NAME, SUMMARY, ATTRS, GRADIENT) \
    const cnr_op ops_##NAME = \
        {CNR_OP_SIZES,          .name = #NAME,        .summary = SUMMARY, \
         .flags = CNR_OP_PURE,  CNR_OP_ATTRS(ATTRS),  CNR_OP_PORTS(in, out), \
         .infer = NAME##_infer, .gradient = GRADIENT, .reference = NAME##_reference}

GATHER_OP(gather, "Slices of x selected by indices along an axis.", axis_attrs, gather_gradient);
GATHER_OP(gather_elements, "Elements of x, each selected by an index along an axis.", axis_attrs,
          NULL);
GATHER_OP(gather_nd, "Slices of x, each selected by an index of several numbers.", nd_attrs, NULL);
