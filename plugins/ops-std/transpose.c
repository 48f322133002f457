/* transpose: permutes axes. */
#include "move.h"

static const cnr_port in[] = {{.name = "x", .help = "any shape"}};
static const cnr_port out[] = {{.name = "y", .help = "axis i is axis perm[i] of x"}};
static const cnr_attr_spec attrs[] = {{.name = "perm",
                                       .type = CNR_ATTR_INTS,
                                       .help = "axis of x for each axis of y; none: reversed"}};

void move_perm(const cnr_node *node, int32_t rank, int32_t *perm) {
    int64_t n;
    const int64_t *given = cnr_attr_ints(node, "perm", &n);
    for (int32_t i = 0; i < rank; i++) {
        const int64_t axis = n > 0 ? given[i] : rank - 1 - i;
        perm[i] = (int32_t)(axis < 0 ? axis + rank : axis);
    }
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    int32_t perm[CNR_MAX_RANK];
    kit_list list;
    uint32_t set;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 0, CNR_MAX_RANK, err));
    CNR_TRY(kit_ints(node, -1, "perm", &list, err));
    if (list.n != 0 && list.n != x->rank)
        return ops_fail(err, CNR_E_ARG, node, "perm has %lld entries, x has rank %d",
                        (long long)list.n, (int)x->rank);
    CNR_TRY(kit_axis_set(node, &list, x->rank, &set, err));
    move_perm(node, x->rank, perm);
    outputs[0]->dtype = x->dtype;
    outputs[0]->rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) outputs[0]->dim[i] = x->dim[perm[i]];
    return CNR_OK;
}

/* Permuting axes of size 1 moves no element. */
static int32_t aliases_of(const cnr_node *node, cnr_alias *alias, int32_t max) {
    int32_t perm[CNR_MAX_RANK], last = -1;
    const cnr_tensor *x = node->inputs[0];
    move_perm(node, x->rank, perm);
    for (int32_t i = 0; i < x->rank; i++) {
        if (x->dim[perm[i]] == 1) continue;
        if (perm[i] < last) return 0;
        last = perm[i];
    }
    return ops_alias_view(node, alias, max);
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    int32_t perm[CNR_MAX_RANK];
    (void)port;
    move_perm(node, node->inputs[0]->rank, perm);
    *r = (cnr_input_range){perm[axis], begin, end};
}

/* Method reference of transpose: the axes in another order, in the run's range; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    int64_t from[CNR_MAX_RANK], to[CNR_MAX_RANK];
    int32_t perm[CNR_MAX_RANK];
    move_map m = {.rank = 0};
    (void)err;
    if (x->data == y->data) return CNR_OK;
    move_perm(run->node, x->rank, perm);
    kit_dense_strides(x, from);
    kit_dense_strides(y, to);
    for (int32_t i = 0; i < y->rank; i++) move_axis(&m, y->dim[i], from[perm[i]], to[i]);
    move_run_range(&m, run);
    move_copy(ops_size(y->dtype), x->data, y->data, &m);
    return CNR_OK;
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    const int32_t rank = node->inputs[0]->rank;
    int32_t perm[CNR_MAX_RANK];
    int64_t back[CNR_MAX_RANK];
    (void)inputs, (void)outputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    move_perm(node, rank, perm);
    for (int32_t i = 0; i < rank; i++) back[perm[i]] = i;
    const cnr_attr list = kit_attr_ints("perm", back, rank);
    grad_in[0] = kit_node(&b, "transpose", &grad_out[0], 1, &list, 1);
    return kit_built(&b, node, err);
}

static const char *const aliases[] = {"permute", NULL};

const cnr_op ops_transpose = {
    CNR_OP_SIZES,
    .name = "transpose",
    .summary = "The axes in another order.",
    .aliases = aliases,
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .buffer_aliases = aliases_of,
    .split_axes = ops_split_all,
    .input_range = region,
    .gradient = gradient,
    .reference = reference,
};
