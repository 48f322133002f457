/* scatter_elements, scatter_nd: copy a tensor and replace some elements. */
#include "ops_kit.h"

static const cnr_port in[] = {{.name = "x", .help = "the tensor that is copied first"},
                              {.name = "indices", .help = "i32 or i64; negative: from the end"},
                              {.name = "updates", .help = "the new elements"}};
static const cnr_port out[] = {{.name = "y", .help = "the shape of x"}};
static const char *const reductions[] = {"none", "add", "mul", "max", "min", NULL};
#define REDUCTION_ROW \
    { \
        .name = "reduction", .type = CNR_ATTR_ENUM, .default_s = "none", .choices = reductions, \
        .help = "how old and new elements are combined; none: the new one replaces the old" \
    }
static const cnr_attr_spec elements_attrs[] = {OPS_AXIS_ROW(0, "the axis of the indices"),
                                               REDUCTION_ROW};
static const cnr_attr_spec nd_attrs[] = {REDUCTION_ROW};
static const char *const elements_aliases[] = {"scatter", NULL};

/* Checks the inputs and gives y the shape of input 0. */
static cnr_status check(const cnr_node *node, cnr_tensor *y, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 1, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, 1u << CNR_i32 | 1u << CNR_i64, 1, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 2, 1u << node->inputs[0]->dtype, 0, CNR_MAX_RANK, err));
    ops_like(y, node->inputs[0]);
    return CNR_OK;
}

/* *at receives index i, counted from 0; fails where it is outside dim. */
static cnr_status index_at(const cnr_node *node, int64_t i, int64_t dim, int64_t *at,
                           cnr_error *err) {
    const cnr_tensor *indices = node->inputs[1];
    const int64_t given = ops_get_int(indices->dtype, indices->data, i);
    *at = given < 0 ? given + dim : given;
    if (*at >= 0 && *at < dim) return CNR_OK;
    return ops_fail(err, CNR_E_ARG, node, "index %lld is outside 0 .. %lld", (long long)given,
                    (long long)dim - 1);
}

/* Combines y[to] and updates[from], n elements each, by the reduction. */
static void join(const cnr_tensor *y, int64_t to, const cnr_tensor *updates, int64_t from,
                 int64_t count, int how) {
    const elem_domain domain = elem_domain_of(y->dtype);
    for (int64_t k = 0; k < count; k += ELEM_RUN) {
        const int64_t n = count - k < ELEM_RUN ? count - k : ELEM_RUN;
        elem_run a, b;
        elem_load(updates->dtype, updates->data, from + k, 1, n, domain, &b);
        if (how) elem_load(y->dtype, y->data, to + k, 1, n, domain, &a);
/* Joins n elements of b to a by the wanted reduction. */
#define JOIN(v, T) \
    for (int64_t i = 0; how && i < n; i++) \
    b.v[i] = how == 1   ? (T)(a.v[i] + b.v[i]) \
             : how == 2 ? (T)(a.v[i] * b.v[i]) \
             : how == 3 ? (a.v[i] > b.v[i] ? a.v[i] : b.v[i]) \
                        : (a.v[i] < b.v[i] ? a.v[i] : b.v[i])
        if (domain == ELEM_F) {
            JOIN(f, double);
        } else if (domain == ELEM_I && how > 2) {
            JOIN(i, int64_t);
        } else {
            JOIN(u, uint64_t);
        } /* signed and unsigned sums and products have the same bits */
#undef JOIN
        elem_store(y->dtype, y->data, to + k, n, domain, &b);
    }
}

/* Method infer of elements: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status elements_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *indices = node->inputs[1], *updates = node->inputs[2];
    int32_t axis;
    int64_t dim;
    CNR_TRY(check(node, outputs[0], err));
    CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    if (indices->rank != x->rank || updates->rank != x->rank)
        return ops_fail(err, CNR_E_SHAPE, node, "indices and updates must have rank %d",
                        (int)x->rank);
    for (int32_t a = 0; a < x->rank; a++) {
        CNR_TRY(kit_same(node, indices->dim[a], updates->dim[a], &dim, err));
        if (a != axis && x->dim[a] >= 0 && dim > x->dim[a])
            return ops_fail(err, CNR_E_SHAPE, node, "indices are larger than x along axis %d", a);
    }
    return CNR_OK;
}

/* Method reference of scatter_elements: x with elements replaced, each at an index along an
 * axis. */
static cnr_status elements_reference(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[0], *indices = node->inputs[1], *y = run->outputs[0];
    const int64_t given = cnr_attr_int(node, "axis"), n = cnr_count(indices);
    const int32_t axis = (int32_t)(given < 0 ? given + x->rank : given);
    const int how = (int)cnr_attr_find(node, "reduction")->i;
    int64_t strides[CNR_MAX_RANK], index[CNR_MAX_RANK] = {0};
    CNR_TRY(ops_reference_copy(run, err));
    kit_dense_strides(x, strides);
    for (int64_t i = 0; i < n; i++) {
        int64_t to = 0, at;
        CNR_TRY(index_at(node, i, x->dim[axis], &at, err));
        for (int32_t a = 0; a < x->rank; a++) to += (a == axis ? at : index[a]) * strides[a];
        join(y, to, node->inputs[2], i, 1, how);
        for (int32_t a = x->rank - 1; a >= 0 && ++index[a] == indices->dim[a]; a--) index[a] = 0;
    }
    return CNR_OK;
}

/* Method infer of nd: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status nd_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *indices = node->inputs[1], *updates = node->inputs[2];
    int64_t dim;
    CNR_TRY(check(node, outputs[0], err));
    const int64_t depth = indices->dim[indices->rank - 1];
    if (depth < 0 || depth > x->rank)
        return ops_fail(err, CNR_E_SHAPE, node,
                        "the last axis of indices must be known and at most %d", (int)x->rank);
    if (updates->rank != indices->rank - 1 + x->rank - depth)
        return ops_fail(err, CNR_E_SHAPE, node, "updates have rank %d, wanted %d",
                        (int)updates->rank, (int)(indices->rank - 1 + x->rank - depth));
    for (int32_t a = 0; a < updates->rank; a++) {
        const int32_t own = a - (indices->rank - 1) + (int32_t)depth;
        const int64_t wanted = a < indices->rank - 1 ? indices->dim[a] : x->dim[own];
        CNR_TRY(kit_same(node, updates->dim[a], wanted, &dim, err));
    }
    return CNR_OK;
}

/* Method reference of scatter_nd: x with slices replaced, each at an index of several numbers. */
static cnr_status nd_reference(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[0], *indices = node->inputs[1];
    const int32_t depth = (int32_t)indices->dim[indices->rank - 1];
    const int64_t n = cnr_span(indices, 0, indices->rank - 1), line = cnr_span(x, depth, x->rank);
    const int how = (int)cnr_attr_find(node, "reduction")->i;
    CNR_TRY(ops_reference_copy(run, err));
    for (int64_t i = 0; i < n; i++) {
        int64_t to = 0;
        for (int32_t d = 0; d < depth; d++) {
            int64_t at;
            CNR_TRY(index_at(node, i * depth + d, x->dim[d], &at, err));
            to = to * x->dim[d] + at;
        }
        join(run->outputs[0], to * line, node->inputs[2], i * line, line, how);
    }
    return CNR_OK;
}

const cnr_op ops_scatter_elements = {
    CNR_OP_SIZES,
    .name = "scatter_elements",
    .summary = "x with elements replaced, each at an index along an axis.",
    .aliases = elements_aliases,
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(elements_attrs),
    CNR_OP_PORTS(in, out),
    .infer = elements_infer,
    .buffer_aliases = ops_alias_inplace,
    .reference = elements_reference,
};

const cnr_op ops_scatter_nd = {
    CNR_OP_SIZES,
    .name = "scatter_nd",
    .summary = "x with slices replaced, each at an index of several numbers.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(nd_attrs),
    CNR_OP_PORTS(in, out),
    .infer = nd_infer,
    .buffer_aliases = ops_alias_inplace,
    .reference = nd_reference,
};
