/* trilu: sets the elements of matrices on one side of a diagonal to zero. */
#include "ops_kit.h"

static const cnr_port in[] =
    {{.name = "x", .help = "matrices in the last two axes"},
     {.name = "k",
      .flags = CNR_PORT_OPTIONAL,
      .help = "one whole number: the diagonal, counted from the main one to the right; none: 0"}};
static const cnr_port out[] = {{.name = "y", .help = "the shape of x"}};
static const cnr_attr_spec attrs[] = {
    {.name = "upper",
     .type = CNR_ATTR_BOOL,
     .default_i = 1,
     .help = "keep the diagonal and the part right of it; else the part left of it"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *k = cnr_own_input(node, 1);
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 2, CNR_MAX_RANK, err));
    CNR_TRY(kit_want(node, 1, OPS_INTS, 0, 1, err));
    if (k && k->rank == 1 && !ops_dims_agree(k->dim[0], 1))
        return ops_fail(err, CNR_E_SHAPE, node, "k must be one number");
    ops_like(outputs[0], node->inputs[0]);
    return CNR_OK;
}

/* Method split_axes: axes receives at most max output axes that a run may be cut along; returns
 * how many. */
static int32_t split_axes(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    int32_t n = 0;
    for (; n < node->outputs[0]->rank - 2 && n < max; n++) axes[n] = (cnr_split_axis){n, 1};
    return n;
}

/* Method reference of trilu: matrices with zeros on one side of a diagonal: their triangular part,
 * in the run's range; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const cnr_tensor *k = cnr_own_input(run->node, 1);
    const int upper = cnr_attr_int(run->node, "upper") != 0;
    const int64_t rows = x->dim[x->rank - 2], columns = x->dim[x->rank - 1];
    const size_t size = ops_size(x->dtype);
    const cnr_pieces runs = cnr_pieces_of(run); /* whole matrices */
    int64_t diagonal = k ? elem_i64(k, 0) : 0;
    (void)err;
    if (diagonal > columns) diagonal = columns;
    if (diagonal < -rows) diagonal = -rows;
    for (int64_t i = 0; i < runs.n; i++)
        for (int64_t at = 0; at < runs.length; at += columns) {
            const int64_t row = columns ? at / columns % rows : 0;
            int64_t cut = row + diagonal + !upper; /* the first column of the right part */
            cut = cut < 0 ? 0 : cut > columns ? columns : cut;
            const size_t from = (size_t)(runs.first + i * runs.pitch + at) * size;
            char *to = (char *)y->data + from;
            const size_t left = (size_t)cut * size, right = (size_t)(columns - cut) * size;
            memcpy(to, (const char *)x->data + from, left + right);
            if (upper) memset(to, 0, left);
            else memset(to + left, 0, right);
        }
    return CNR_OK;
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    const cnr_value in_grad[] = {grad_out[0], node->n_inputs > 1 ? inputs[1] : -1};
    const cnr_attr upper = kit_attr_int("upper", cnr_attr_int(node, "upper"));
    (void)outputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    grad_in[0] = kit_node(&b, "trilu", in_grad, node->n_inputs, &upper, 1);
    return kit_built(&b, node, err);
}

const cnr_op ops_trilu = {
    CNR_OP_SIZES,
    .name = "trilu",
    .summary = "Matrices with zeros on one side of a diagonal: their triangular part.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .split_axes = split_axes,
    .input_range = ops_region_first,
    .gradient = gradient,
    .reference = reference,
};
