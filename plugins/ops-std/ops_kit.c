/* Shared by most operators: checks, dimensions, broadcasting, constant lists, gradient nodes. */
#include "ops_kit.h"
#include "shapes.h"

cnr_status kit_want(const cnr_node *node, int32_t port, uint32_t dtypes, int32_t min_rank,
                    int32_t max_rank, cnr_error *err) {
    if (!cnr_own_input(node, port)) return CNR_OK;
    return ops_want(node, port, dtypes, min_rank, max_rank, err);
}

cnr_status kit_dtype(const cnr_node *node, int32_t port, uint32_t dtypes, cnr_error *err) {
    return kit_want(node, port, dtypes, 0, CNR_MAX_RANK, err);
}

/* *out: an axis that may be negative as 0 .. rank - 1; fails if it is outside. */
cnr_status kit_axis(const cnr_node *node, int64_t axis, int32_t rank, int32_t *out,
                    cnr_error *err) {
    *out = shape_axis(axis, rank);
    if (*out >= 0) return CNR_OK;
    return ops_fail(err, CNR_E_SHAPE, node, "%s: axis %lld is outside rank %d", node->desc->name,
                    (long long)axis, (int)rank);
}

cnr_status kit_mul(const cnr_node *node, int64_t a, int64_t b, int64_t *out, cnr_error *err) {
    *out = CNR_DIM_UNKNOWN;
    if (a == 1) *out = b;
    else if (b == 1) *out = a;
    else if (a >= 0 && b >= 0 && __builtin_mul_overflow(a, b, out))
        return ops_fail(err, CNR_E_LIMIT, node, "%s: a dimension is too large", node->desc->name);
    return CNR_OK;
}

/* *out receives a + b; unknown where one is unknown, and a failure where the sum is too large. */
cnr_status kit_add(const cnr_node *node, int64_t a, int64_t b, int64_t *out, cnr_error *err) {
    *out = CNR_DIM_UNKNOWN;
    if (a == 0) *out = b;
    else if (b == 0) *out = a;
    else if (a >= 0 && b >= 0 && __builtin_add_overflow(a, b, out))
        return ops_fail(err, CNR_E_LIMIT, node, "%s: a dimension is too large", node->desc->name);
    return CNR_OK;
}

/* *out: the dimension that both must have; an unknown one agrees with any. Fails if they differ. */
cnr_status kit_same(const cnr_node *node, int64_t a, int64_t b, int64_t *out, cnr_error *err) {
    if (a >= 0 && b >= 0 && a != b)
        return ops_fail(err, CNR_E_SHAPE, node, "%s: dimensions %lld and %lld must be equal",
                        node->desc->name, (long long)a, (long long)b);
    *out = a >= 0 ? a : b >= 0 ? b : a == b ? a : CNR_DIM_UNKNOWN;
    return CNR_OK;
}

int kit_known(const cnr_tensor *t) {
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dim[i] < 0) return 0;
    return 1;
}

/* Gives *out the broadcast shape of inputs [first, first + n); omitted ones are skipped. Fails if
 * they don't broadcast. */
cnr_status kit_broadcast(const cnr_node *node, int32_t first, int32_t n, cnr_tensor *out,
                         cnr_error *err) {
    int32_t rank = 0;
    for (int32_t i = first; i < first + n; i++)
        if (cnr_own_input(node, i) && node->inputs[i]->rank > rank) rank = node->inputs[i]->rank;
    out->rank = rank;
    for (int32_t axis = 0; axis < rank; axis++) {
        int64_t dim = 1;
        for (int32_t i = first; i < first + n; i++) {
            const cnr_tensor *t = cnr_own_input(node, i);
            const int32_t own = t ? axis - (rank - t->rank) : -1;
            if (own < 0 || t->dim[own] == 1 || t->dim[own] == dim) continue;
            if (dim == 1) dim = t->dim[own];
            else if (dim < 0 && t->dim[own] < 0) dim = CNR_DIM_UNKNOWN;
            else if (dim < 0) dim = t->dim[own]; /* the unknown dim must be this size, or 1 */
            else if (t->dim[own] >= 0)
                return ops_fail(err, CNR_E_SHAPE, node, "%s: %lld and %lld do not broadcast",
                                node->desc->name, (long long)dim, (long long)t->dim[own]);
        }
        out->dim[axis] = dim;
    }
    return CNR_OK;
}

void kit_dense_strides(const cnr_tensor *t, int64_t *strides) {
    int64_t step = 1;
    for (int32_t axis = t->rank - 1; axis >= 0; axis--) {
        strides[axis] = step;
        step *= t->dim[axis];
    }
}

/* Fails with CNR_E_LIMIT: the list `what` has more entries than 2 * CNR_MAX_RANK. */
static cnr_status too_long(const cnr_node *node, const char *what, cnr_error *err) {
    return ops_fail(err, CNR_E_LIMIT, node, "%s: %s has more than %d entries", node->desc->name,
                    what, 2 * CNR_MAX_RANK);
}

cnr_status kit_ints(const cnr_node *node, int32_t port, const char *attr, kit_list *out,
                    cnr_error *err) {
    const cnr_tensor *t = port >= 0 ? cnr_own_input(node, port) : NULL;
    memset(out, 0, sizeof *out);
    out->known = 1;
    if (t) {
        CNR_TRY(kit_want(node, port, OPS_INTS, 0, 1, err));
        out->given = 1;
        out->n = t->rank == 0 ? 1 : t->dim[0] < 0 ? -1 : t->dim[0];
        if (out->n > 2 * CNR_MAX_RANK) return too_long(node, node->desc->inputs[port].name, err);
        out->known = t->data != NULL && out->n >= 0;
        for (int64_t i = 0; out->known && i < out->n; i++) out->at[i] = elem_i64(t, i);
        return CNR_OK;
    }
    const cnr_attr *a = attr ? cnr_attr_find(node, attr) : NULL;
    if (!a) return CNR_OK;
    if (a->n > 2 * CNR_MAX_RANK) return too_long(node, attr, err);
    out->given = a->set;
    out->n = a->n;
    if (a->n > 0) memcpy(out->at, a->ints, (size_t)a->n * sizeof out->at[0]);
    return CNR_OK;
}

/* *out: the axes as a set of bits; refuses repeated ones. */
cnr_status kit_axis_set(const cnr_node *node, const kit_list *axes, int32_t rank, uint32_t *out,
                        cnr_error *err) {
    *out = 0;
    for (int64_t i = 0; i < axes->n; i++) {
        int32_t axis = 0;
        CNR_TRY(kit_axis(node, axes->at[i], rank, &axis, err));
        if (*out >> axis & 1u)
            return ops_fail(err, CNR_E_SHAPE, node, "%s: axis %d is given twice", node->desc->name,
                            (int)axis);
        *out |= 1u << axis;
    }
    return CNR_OK;
}

double kit_scalar(const cnr_node *node, int32_t port, const char *attr, int *known) {
    const cnr_tensor *t = port >= 0 ? cnr_own_input(node, port) : NULL;
    const cnr_attr *a = attr ? cnr_attr_find(node, attr) : NULL;
    *known = t ? t->data != NULL && cnr_count(t) > 0 : 1;
    if (t) return *known ? elem_f64(t, 0) : 0;
    return a ? (a->type == CNR_ATTR_FLOAT ? a->f : (double)a->i) : 0;
}

cnr_status kit_set_data(const cnr_node *node, cnr_tensor *out, const int64_t *values, int64_t n,
                        cnr_error *err) {
    const uint64_t bytes = (uint64_t)n * cnr_dtype_bits(out->dtype) / 8;
    out->data = ops_host->alloc(bytes ? bytes : 1);
    if (!out->data) return ops_fail(err, CNR_E_MEMORY, node, "%s: out of memory", node->desc->name);
    out->bytes = bytes;
    for (int64_t i = 0; i < n; i++) elem_set_i64(out, i, values[i]);
    return CNR_OK;
}

void kit_cost_flops(const cnr_node *node, cnr_cost *out) {
    const int64_t n = cnr_count(node->outputs[0]);
    out->flops = n > 0 ? (uint64_t)n : 0;
}

/* ---- adding nodes ---- */

/* Adds a node `op` with one output and returns its value; -1 where this or an earlier step
 * failed. */
cnr_value kit_node(kit_build *b, const char *op, const cnr_value *inputs, int32_t n_inputs,
                   const cnr_attr *attrs, int32_t n_attrs) {
    const cnr_attr *rows[8] = {NULL};
    cnr_value out = -1;
    if (b->status != CNR_OK || n_attrs > CNR_ROWS(rows)) return -1;
    for (int32_t i = 0; i < n_attrs; i++) rows[i] = &attrs[i];
    b->status =
        b->host->graph_node(b->graph, op, NULL, NULL, inputs, n_inputs, rows, n_attrs, &out, 1);
    return b->status == CNR_OK ? out : -1;
}

/* Adds a node of one input, without attributes; returns its output, or -1, with b->status set. */
cnr_value kit_node1(kit_build *b, const char *op, cnr_value x) {
    return kit_node(b, op, &x, 1, NULL, 0);
}

/* Adds a node of two inputs, without attributes; returns its output, or -1, with b->status set. */
cnr_value kit_node2(kit_build *b, const char *op, cnr_value x, cnr_value y) {
    const cnr_value in[] = {x, y};
    return kit_node(b, op, in, 2, NULL, 0);
}

int kit_is_output(const struct cnr_graph *graph, cnr_value value) {
    for (int32_t i = 0; i < ops_host->graph_output_count(graph); i++)
        if (ops_host->graph_output_at(graph, i) == value) return 1;
    return 0;
}

/* Adds a node of three inputs, without attributes; returns its output, or -1, with b->status
 * set. */
cnr_value kit_node3(kit_build *b, const char *op, cnr_value x, cnr_value y, cnr_value z) {
    const cnr_value in[] = {x, y, z};
    return kit_node(b, op, in, 3, NULL, 0);
}

cnr_value kit_filled(kit_build *b, const cnr_tensor *like, double value) {
    const cnr_value x = kit_constant(b, like->dtype, value);
    const cnr_attr shape = kit_attr_ints("shape", like->dim, like->rank);
    return kit_node(b, "expand", &x, 1, &shape, 1);
}

cnr_status kit_built(const kit_build *b, const cnr_node *node, cnr_error *err) {
    if (b->status == CNR_OK) return CNR_OK;
    return ops_fail(err, b->status, node, "the gradient of %s could not be built",
                    node->desc->name);
}

/* Adds a reshape of x to the dims of `shape`; returns its output, or -1. */
cnr_value kit_reshape(kit_build *b, cnr_value x, const cnr_tensor *shape) {
    const cnr_attr attrs[] = {kit_attr_ints("shape", shape->dim, shape->rank),
                              kit_attr_int("allowzero", 1)};
    return kit_node(b, "reshape", &x, 1, attrs, 2);
}

cnr_value kit_unbroadcast(kit_build *b, cnr_value g, const cnr_tensor *shape,
                          const cnr_tensor *operand) {
    int64_t axes[CNR_MAX_RANK];
    int64_t n = 0;
    for (int32_t axis = 0; axis < shape->rank; axis++) {
        const int32_t own = axis - (shape->rank - operand->rank);
        if (own < 0 || (operand->dim[own] == 1 && shape->dim[axis] != 1)) axes[n++] = axis;
    }
    if (n > 0) {
        const cnr_attr attrs[] = {kit_attr_ints("axes", axes, n), kit_attr_int("keepdims", 1)};
        g = kit_node(b, "reduce_sum", &g, 1, attrs, 2);
    }
    return operand->rank == shape->rank ? g : kit_reshape(b, g, operand);
}

cnr_value kit_constant(kit_build *b, int32_t dtype, double value) {
    uint8_t room[16] = {0};
    cnr_tensor t = {.size = sizeof t, .dtype = dtype, .data = room};
    if (b->status != CNR_OK) return -1;
    t.bytes = cnr_dense_bytes(&t);
    t.flags = CNR_TENSOR_CONST;
    elem_set_f64(&t, 0, value);
    const cnr_value v = b->host->graph_constant(b->graph, NULL, &t);
    if (v < 0) b->status = CNR_E_MEMORY;
    return v;
}

int kit_is(const cnr_node *node, const char *op) {
    return node && strcmp(node->desc->name, op) == 0;
}

const cnr_node *kit_maker(const struct cnr_graph *graph, cnr_value value, const cnr_value **in) {
    const int32_t producer = value < 0 ? -1 : ops_host->graph_producer(graph, value);
    return producer < 0 ? NULL : ops_host->graph_node_at(graph, producer, in, NULL);
}

const cnr_node *kit_sole_maker(const struct cnr_graph *graph, cnr_value value,
                               const cnr_value **in) {
    const int sole = value >= 0 && ops_host->graph_use_count(graph, value) == 1;
    return sole && !kit_is_output(graph, value) ? kit_maker(graph, value, in) : NULL;
}

/* 1, and *out, if the value is one constant number, of any type of floats; else 0. */
int kit_number(const struct cnr_graph *graph, cnr_value value, double *out) {
    const cnr_tensor *t = value < 0 ? NULL : ops_host->graph_type(graph, value);
    if (!cnr_is_constant(t) || cnr_count(t) != 1 || !cnr_is_plain(t, OPS_FLOATS) || !t->data)
        return 0;
    *out = elem_f64(t, 0);
    return 1;
}

int32_t kit_replace_nodes(struct cnr_graph *graph, const cnr_rewrite *rewrite,
                          kit_replacement replacement, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < ops_host->graph_node_count(graph); i++) {
        const cnr_value *in, *out;
        const cnr_node *node = ops_host->graph_node_at(graph, i, &in, &out);
        kit_build b = {ops_host, graph, CNR_OK};
        if (ops_host->graph_use_count(graph, out[0]) == 0) continue;
        const cnr_value old = out[0];
        const int32_t before = ops_host->graph_node_count(graph);
        ops_host->graph_insert_before(graph, i);
        const cnr_value y = replacement(&b, node, in);
        if (y < 0 && !b.status) continue;
        i += ops_host->graph_node_count(graph) - before;
        if (!b.status) b.status = ops_host->graph_replace(graph, old, y);
        if (!b.status) b.status = ops_host->graph_remove(graph, i--);
        if (b.status) return ops_host->fail(err, b.status, rewrite->name, "could not be applied");
        changes++;
    }
    return changes;
}
