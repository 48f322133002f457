/* Checks and shape arithmetic shared by the operators. */
#include "ops.h"
#include <stdio.h>

const char *const ops_auto_pads[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", NULL};

/* Name of input `port`, for messages. */
static const char *port_name(const cnr_node *node, int32_t port) {
    const int32_t last = node->desc->n_inputs - 1;
    return node->desc->inputs[port < last ? port : last].name;
}

/* Writes the types of a set of bits to `text`, such as "u8 or i8". */
static void list_types(uint32_t dtypes, char *text, size_t room) {
    size_t n = 0;
    text[0] = 0;
    for (int32_t i = 1; i < 32 && n < room; i++)
        if (dtypes >> i & 1u && cnr_dtype_bits(i))
            n += (size_t)snprintf(text + n, room - n, "%s%s", n ? " or " : "", cnr_dtype_name(i));
}

cnr_status ops_want(const cnr_node *node, int32_t port, uint32_t dtypes, int32_t min_rank,
                    int32_t max_rank, cnr_error *err) {
    const cnr_tensor *t = cnr_own_input(node, port);
    const char *name = port_name(node, port);
    if (!t) return ops_fail(err, CNR_E_ARG, node, "input %s is missing", name);
    if (t->dtype < 1 || t->dtype > 31 || !(dtypes >> t->dtype & 1u)) {
        char wanted[128];
        list_types(dtypes, wanted, sizeof wanted);
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "input %s: %s is not supported here, want %s",
                        name, cnr_dtype_name(t->dtype), wanted);
    }
    if (t->rank < min_rank || t->rank > max_rank)
        return ops_fail(err, CNR_E_SHAPE, node, "input %s: want rank %d to %d, got %d", name,
                        min_rank, max_rank, t->rank);
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dim[i] > OPS_MAX_DIM)
            return ops_fail(err, CNR_E_LIMIT, node, "input %s: dimension %d is too large (%lld)",
                            name, i, (long long)t->dim[i]);
    return CNR_OK;
}

cnr_status ops_want_shape(const cnr_node *node, int32_t port, int32_t dtype, int32_t rank,
                          const int64_t *dim, cnr_error *err) {
    const cnr_tensor *t = cnr_own_input(node, port);
    if (!t) return CNR_OK;
    const char *name = port_name(node, port);
    if (t->dtype != dtype)
        return ops_fail(err, CNR_E_SHAPE, node, "input %s: want %s, got %s", name,
                        cnr_dtype_name(dtype), cnr_dtype_name(t->dtype));
    if (t->rank != rank)
        return ops_fail(err, CNR_E_SHAPE, node, "input %s: want rank %d, got %d", name, rank,
                        t->rank);
    for (int32_t i = 0; i < rank; i++)
        if (!ops_dims_agree(t->dim[i], dim[i]))
            return ops_fail(err, CNR_E_SHAPE, node, "input %s: want %lld along axis %d, got %lld",
                            name, (long long)dim[i], i, (long long)t->dim[i]);
    return CNR_OK;
}

cnr_status ops_axis(const cnr_node *node, const char *name, int32_t rank, int past_end,
                    int32_t *axis, cnr_error *err) {
    const int64_t given = cnr_attr_int(node, name), last = past_end ? rank : rank - 1;
    if (given < -rank || given > last)
        return ops_fail(err, CNR_E_ARG, node, "%s: want %d to %lld, got %lld", name, -rank,
                        (long long)last, (long long)given);
    *axis = (int32_t)(given < 0 ? given + rank : given);
    return CNR_OK;
}

/* Gives the output the type and shape of input 0; fails for other types. */
static cnr_status infer_like(const cnr_node *node, cnr_tensor *const *outputs, uint32_t dtypes,
                             cnr_error *err) {
    const cnr_status status = ops_want(node, 0, dtypes, 0, CNR_MAX_RANK, err);
    if (status == CNR_OK) ops_like(outputs[0], node->inputs[0]);
    return status;
}

cnr_status ops_infer_same(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    return infer_like(node, outputs, OPS_WHOLE, err);
}

/* Method infer: one float input; the output has its type and shape. */
cnr_status ops_infer_float(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    return infer_like(node, outputs, OPS_FLOATS, err);
}

int64_t ops_span(const cnr_tensor *t, int32_t from, int32_t to) {
    int64_t n = 1;
    int zero = 0;
    for (int32_t i = from; i < to; i++) {
        if (t->dim[i] < 0) return CNR_DIM_UNKNOWN;
        if (t->dim[i] == 0) zero = 1;
        else if (n > (OPS_MAX_DIM << 20) / t->dim[i]) return CNR_DIM_UNKNOWN;
        else n *= t->dim[i];
    }
    return zero ? 0 : n;
}

/* axes receives the axes 0 to rank - 1, at most max; returns how many. */
static int32_t split_below(int32_t rank, cnr_split_axis *axes, int32_t max) {
    int32_t n = 0;
    for (; n < rank && n < max; n++) axes[n] = (cnr_split_axis){.axis = n, .alignment = 1};
    return n;
}

int32_t ops_split_all(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    return split_below(node->outputs[0]->rank, axes, max);
}

/* Method split_axes: the first two axes. */
int32_t ops_split_two(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    return split_below(node->outputs[0]->rank < 2 ? node->outputs[0]->rank : 2, axes, max);
}

/* Method split_axes: the first axis. */
int32_t ops_split_first(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    return split_below(node->outputs[0]->rank < 1 ? 0 : 1, axes, max);
}

void ops_region_every(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                      cnr_input_range *r) {
    *r = (cnr_input_range){cnr_own_input(node, port) ? axis : -1, begin, end};
}

/* Method region: input 0 needs the same part, and the others are needed whole. */
void ops_region_first(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                      cnr_input_range *r) {
    ops_region_every(node, axis, begin, end, port, r);
    if (port > 0) r->axis = -1;
}

cnr_status ops_reference_copy(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    (void)err;
    if (x->data != y->data && cnr_count(x) > 0)
        memcpy(y->data, x->data, (size_t)cnr_dense_bytes(x));
    return CNR_OK;
}
