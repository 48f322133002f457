/* matmul: matrix product with broadcast leading axes; vectors as in NumPy. */
#include "ops_kit.h"
#include "shapes.h"

static const cnr_port in[] = {{.name = "a", .help = "... M K, or K"},
                              {.name = "b", .help = "... K N, or K"}};
static const cnr_port out[] = {{.name = "y", .help = "... M N, without M or N for vectors"}};

#define DTYPES (OPS_FLOATS | 1u << CNR_i32 | 1u << CNR_u32 | 1u << CNR_i64 | 1u << CNR_u64)

/* *a and *b: the operands as matrices; a vector gets an axis of size 1. */
static void as_matrices(const cnr_node *node, cnr_tensor *a, cnr_tensor *b) {
    *a = *node->inputs[0];
    *b = *node->inputs[1];
    if (a->rank == 1) {
        a->rank = 2;
        a->dim[1] = a->dim[0];
        a->dim[0] = 1;
    }
    if (b->rank == 1) {
        b->rank = 2;
        b->dim[1] = 1;
    }
}

/* Gives y type and shape of the matrix product of a and b, whose leading axes are broadcast; fails
 * where these differ. */
static cnr_status product_shape(const cnr_node *node, const cnr_tensor *a, const cnr_tensor *b,
                                cnr_tensor *y, cnr_error *err) {
    y->rank = a->rank > b->rank ? a->rank : b->rank;
    y->dtype = a->dtype;
    for (int32_t i = 0; i < y->rank - 2; i++) {
        const int32_t ia = i - (y->rank - a->rank), ib = i - (y->rank - b->rank);
        const int64_t da = ia < 0 ? 1 : a->dim[ia], db = ib < 0 ? 1 : b->dim[ib];
        if (da == 1) y->dim[i] = db;
        else if (db == 1 || da == db) y->dim[i] = da;
        else if (da >= 0 && db >= 0)
            return ops_fail(err, CNR_E_SHAPE, node, "%lld and %lld do not broadcast", (long long)da,
                            (long long)db);
        else y->dim[i] = da >= 0 ? da : db >= 0 ? db : CNR_DIM_UNKNOWN;
    }
    const int64_t ka = a->dim[a->rank - 1], kb = b->dim[b->rank - 2];
    if (!ops_dims_agree(ka, kb))
        return ops_fail(err, CNR_E_SHAPE, node, "rows of %lld by columns of %lld", (long long)ka,
                        (long long)kb);
    y->dim[y->rank - 2] = a->dim[a->rank - 2];
    y->dim[y->rank - 1] = b->dim[b->rank - 1];
    return CNR_OK;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    cnr_tensor a, b, *y = outputs[0];
    CNR_TRY(ops_want(node, 0, DTYPES, 1, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, DTYPES, 1, CNR_MAX_RANK, err));
    if (node->inputs[0]->dtype != node->inputs[1]->dtype)
        return ops_fail(err, CNR_E_SHAPE, node, "a and b must have one type");
    as_matrices(node, &a, &b);
    CNR_TRY(product_shape(node, &a, &b, y, err));
    if (node->inputs[0]->rank == 1) {
        y->dim[y->rank - 2] = y->dim[y->rank - 1];
        y->rank--;
    }
    if (node->inputs[1]->rank == 1) y->rank--;
    return CNR_OK;
}

/* Method cost: counts the multiply-adds of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    const cnr_tensor *a = node->inputs[0];
    const int64_t k = a->dim[a->rank - 1];
    c->macs = ops_mul(ops_elements(node->outputs[0]), k < 0 ? 0 : (uint64_t)k);
}

/* Method split_axes: axes receives at most max output axes that a run may be cut along; returns
 * how many. */
static int32_t split_axes(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    int32_t n = 0;
    if (node->inputs[0]->rank < 2 || node->inputs[1]->rank < 2) return 0;
    for (; n < node->outputs[0]->rank && n < max; n++)
        axes[n] = (cnr_split_axis){.axis = n, .alignment = 1};
    return n;
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    const int32_t rank = node->outputs[0]->rank;
    *r = (cnr_input_range){.axis = -1};
    if (port > 1 || axis == (port == 0 ? rank - 1 : rank - 2)) return;
    const cnr_tensor *t = node->inputs[port];
    const int32_t own = axis - (rank - t->rank);
    if (own >= 0 && (axis >= rank - 2 || t->dim[own] != 1)) *r = (cnr_input_range){own, begin, end};
}

/* Adds a transpose of the last two axes of x; returns its output, or -1. */
static cnr_value transposed(kit_build *b, cnr_value x, int32_t rank) {
    int64_t perm[CNR_MAX_RANK];
    for (int32_t i = 0; i < rank; i++) perm[i] = i;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    const cnr_attr attr = kit_attr_ints("perm", perm, rank);
    return kit_node(b, "transpose", &x, 1, &attr, 1);
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    const cnr_tensor *a = node->inputs[0], *b = node->inputs[1], *y = node->outputs[0];
    kit_build build = {.host = host, .graph = graph};
    (void)outputs;
    if (grad_out[0] < 0) return CNR_OK;
    if (a->rank < 2 || b->rank < 2)
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "no gradient for vectors; reshape them");
    if (want[0]) {
        cnr_tensor shape = *y;
        shape.dim[y->rank - 1] = a->dim[a->rank - 1];
        const cnr_value g =
            kit_node2(&build, "matmul", grad_out[0], transposed(&build, inputs[1], b->rank));
        grad_in[0] = kit_unbroadcast(&build, g, &shape, a);
    }
    if (want[1]) {
        cnr_tensor shape = *y;
        shape.dim[y->rank - 2] = b->dim[b->rank - 2];
        const cnr_value g =
            kit_node2(&build, "matmul", transposed(&build, inputs[0], a->rank), grad_out[0]);
        grad_in[1] = kit_unbroadcast(&build, g, &shape, b);
    }
    return build.status == CNR_OK ? CNR_OK
                                  : ops_fail(err, build.status, node, "cannot add its gradient");
}

/* One matrix of the product. */
OPS_INLINE void matrix(const cnr_run *run, int32_t dtype, int64_t at, int64_t bt, int64_t yt,
                       const int64_t *lo, const int64_t *hi, int64_t kk, int64_t nn) {
    const void *a = run->node->inputs[0]->data, *b = run->node->inputs[1]->data;
    const int exact = !ops_is_float(dtype);
    for (int64_t i = lo[0]; i < hi[0]; i++)
        for (int64_t j = lo[1]; j < hi[1]; j++) {
            double sum = 0;
            uint64_t whole = 0; /* integers wrap */
            for (int64_t k = 0; k < kk; k++) {
                const int64_t p = at + i * kk + k, q = bt + k * nn + j;
                if (exact)
                    whole +=
                        (uint64_t)ops_get_int(dtype, a, p) * (uint64_t)ops_get_int(dtype, b, q);
                else sum += ops_get(dtype, a, p) * ops_get(dtype, b, q);
            }
            const int64_t to = yt + i * nn + j;
            if (exact) ops_put_int(dtype, run->outputs[0]->data, to, (int64_t)whole);
            else ops_put(dtype, run->outputs[0]->data, to, sum);
        }
}

/* Method reference of matmul: products of matrices; leading axes broadcast, vectors as in NumPy, in
 * the run's range. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    cnr_tensor a, b, y = {0};
    int64_t sa[CNR_MAX_RANK], sb[CNR_MAX_RANK], sy[CNR_MAX_RANK], lo[CNR_MAX_RANK],
        hi[CNR_MAX_RANK], at[CNR_MAX_RANK];
    as_matrices(run->node, &a, &b);
    CNR_TRY(product_shape(run->node, &a, &b, &y, err));
    const int32_t outer = y.rank - 2;
    cnr_tensor shape_a = y, shape_b = y; /* the shape to which each operand is broadcast */
    shape_a.dim[outer + 1] = a.dim[a.rank - 1];
    shape_b.dim[outer] = b.dim[b.rank - 2];
    shape_strides(&a, &shape_a, sa);
    shape_strides(&b, &shape_b, sb);
    kit_dense_strides(&y, sy);
    for (int32_t i = 0; i < y.rank; i++) {
        const int ranged = i == run->range_axis; /* split_axes offers none for vectors */
        at[i] = lo[i] = ranged ? run->range_begin : 0;
        hi[i] = ranged ? run->range_end : y.dim[i];
        if (lo[i] >= hi[i]) return CNR_OK;
    }
    for (;;) {
        int64_t pa = 0, pb = 0, py = 0;
        for (int32_t i = 0; i < outer; i++) {
            pa += at[i] * sa[i];
            pb += at[i] * sb[i];
            py += at[i] * sy[i];
        }
        if (ops_cancelled(run)) return CNR_OK;
        OPS_SPECIALISE(y.dtype, matrix(run, dtype, pa, pb, py, lo + outer, hi + outer,
                                       a.dim[a.rank - 1], y.dim[outer + 1]));
        int32_t i = outer - 1;
        for (; i >= 0 && ++at[i] == hi[i]; i--) at[i] = lo[i];
        if (i < 0) return CNR_OK;
    }
}

const cnr_op ops_matmul = {
    CNR_OP_SIZES,
    .name = "matmul",
    .summary = "Products of matrices; leading axes broadcast, vectors as in NumPy.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .split_axes = split_axes,
    .input_range = region,
    .gradient = gradient,
    .reference = reference,
};
