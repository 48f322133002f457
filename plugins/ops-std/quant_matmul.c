/* matmul_integer, qlinear_matmul: matrix products of quantised numbers, exact in integers. */
#include "quant.h"

static const cnr_port integer_in[] = {{.name = "a", .help = "matrices, u8 or i8"},
                                      {.name = "b", .help = "matrices, u8 or i8"},
                                      QUANT_OPTION("a_zero_point", "one, or one per row"),
                                      QUANT_OPTION("b_zero_point", "one, or one per column")};
static const cnr_port integer_out[] = {{.name = "y", .help = "i32"}};
static const cnr_port qlinear_in[] = {{.name = "a", .help = "matrices, u8 or i8"},
                                      {.name = "a_scale", .help = "one, or one per row"},
                                      {.name = "a_zero_point", .help = "one, or one per row"},
                                      {.name = "b", .help = "matrices, u8 or i8"},
                                      {.name = "b_scale", .help = "one, or one per column"},
                                      {.name = "b_zero_point", .help = "one, or one per column"},
                                      {.name = "y_scale", .help = "one, or one per row"},
                                      {.name = "y_zero_point",
                                       .help = "one, or one per row; gives the type of y"}};
static const cnr_port qlinear_out[] = {{.name = "y", .help = "of the type of y_zero_point"}};

/* Ports of the inputs; -1: the operator has none. */
typedef struct matmul_ports {
    int32_t a, b, a_scale, a_zero, b_scale, b_zero, y_scale, y_zero;
} matmul_ports;
static const matmul_ports integer_ports = {0, 1, -1, 2, -1, 3, -1, -1};
static const matmul_ports qlinear_ports = {0, 3, 1, 2, 4, 5, 6, 7};

/* *m, *k and *n: rows, depth and columns; a vector is one row of a or one column of b. */
static void sides(const cnr_tensor *a, const cnr_tensor *b, int64_t *m, int64_t *k, int64_t *n) {
    *m = a->rank > 1 ? a->dim[a->rank - 2] : 1;
    *k = a->dim[a->rank - 1];
    *n = b->rank > 1 ? b->dim[b->rank - 1] : 1;
}

/* A parameter is a scalar, or has one element a line, or one a line of each matrix. */
static cnr_status check_each(const cnr_node *node, int32_t port, uint32_t dtypes, int64_t lines,
                             int64_t matrices, cnr_error *err) {
    const cnr_tensor *t = quant_in(node, port);
    if (!t) return CNR_OK;
    CNR_TRY(ops_want(node, port, dtypes, 0, CNR_MAX_RANK, err));
    const int64_t count = cnr_count(t);
    if (count < 0 || count == 1 || lines < 0 || count == lines || matrices < 0) return CNR_OK;
    if (lines > 0 && count % lines == 0 && count / lines == matrices) return CNR_OK;
    return ops_fail(err, CNR_E_SHAPE, node, "input %s has %lld numbers, wanted 1 or %lld",
                    node->desc->inputs[port].name, (long long)count, (long long)lines);
}

/* Number of matrices that t holds: the product of all but its last two dims. */
static int64_t matrices_of(const cnr_tensor *t) {
    return t->rank > 2 ? ops_span(t, 0, t->rank - 2) : 1;
}

/* Gives y its shape; fails where types or scales do not fit. */
static cnr_status infer_with(const cnr_node *node, const matmul_ports *p, cnr_tensor *y,
                             cnr_error *err) {
    const cnr_tensor *a = node->inputs[p->a], *b = node->inputs[p->b];
    cnr_tensor ta, tb;
    int64_t m, k, n, inner;
    CNR_TRY(ops_want(node, p->a, QUANT_BYTES, 1, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, p->b, QUANT_BYTES, 1, CNR_MAX_RANK, err));
    sides(a, b, &m, &k, &n);
    CNR_TRY(kit_same(node, k, b->dim[b->rank > 1 ? b->rank - 2 : 0], &inner, err));
    ta = *a;
    tb = *b;
    ta.rank = a->rank > 2 ? a->rank - 2 : 0;
    tb.rank = b->rank > 2 ? b->rank - 2 : 0;
    const cnr_tensor *heads[] = {&ta, &tb};
    cnr_node outer = *node;
    outer.inputs = heads;
    outer.n_inputs = 2;
    CNR_TRY(kit_broadcast(&outer, 0, 2, y, err));
    if (a->rank > 1) y->dim[y->rank++] = m;
    if (b->rank > 1) y->dim[y->rank++] = n;
    CNR_TRY(check_each(node, p->a_zero, 1u << a->dtype, m, matrices_of(a), err));
    CNR_TRY(check_each(node, p->b_zero, 1u << b->dtype, n, matrices_of(b), err));
    CNR_TRY(check_each(node, p->a_scale, OPS_FLOATS, m, matrices_of(a), err));
    CNR_TRY(check_each(node, p->b_scale, OPS_FLOATS, n, matrices_of(b), err));
    CNR_TRY(check_each(node, p->y_scale, OPS_FLOATS, m, 1, err));
    CNR_TRY(check_each(node, p->y_zero, QUANT_BYTES, m, 1, err));
    y->dtype = p->y_zero < 0 ? CNR_i32 : node->inputs[p->y_zero]->dtype;
    return CNR_OK;
}

/* Index of the parameter of line `i` in matrix `which`. */
static int64_t place(const cnr_tensor *t, int64_t lines, int64_t which, int64_t i) {
    const int64_t count = cnr_count(t);
    return count == 1 ? 0 : count == lines ? i : (which * lines + i) % count;
}
/* The whole number of line i of matrix `which`; t NULL: 0. */
static int64_t whole_at(const cnr_tensor *t, int64_t lines, int64_t which, int64_t i) {
    return t ? ops_get_int(t->dtype, t->data, place(t, lines, which, i)) : 0;
}
/* The number of line i of matrix `which`; t NULL: 1. */
static double real_at(const cnr_tensor *t, int64_t lines, int64_t which, int64_t i) {
    return t ? ops_get(t->dtype, t->data, place(t, lines, which, i)) : 1;
}

/* Index of the matrix of `t` for output matrix `index` (over the leading axes of y). */
static int64_t matrix_of(const cnr_tensor *t, const cnr_tensor *y, int32_t outer, int64_t index) {
    const int32_t own_rank = t->rank > 2 ? t->rank - 2 : 0;
    int64_t at = 0, step = 1;
    for (int32_t axis = outer - 1; axis >= 0; axis--) {
        const int32_t own = axis - (outer - own_rank);
        const int64_t i = index % y->dim[axis];
        index /= y->dim[axis];
        if (own < 0) continue;
        if (t->dim[own] != 1) at += i * step;
        step *= t->dim[own];
    }
    return at;
}

/* Computes the run's part with inputs at the ports p. */
static cnr_status reference_with(const cnr_run *run, const matmul_ports *p, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *a = node->inputs[p->a], *b = node->inputs[p->b], *y = run->outputs[0];
    const int32_t outer = y->rank - (a->rank > 1) - (b->rank > 1);
    int64_t m, k, n, to = 0;
    (void)err;
    sides(a, b, &m, &k, &n);
    /* else a huge number of empty matrices would be visited */
    if (cnr_count(y) == 0) return CNR_OK;
    for (int64_t w = 0; w < cnr_span(y, 0, outer); w++) {
        const int64_t ma = matrix_of(a, y, outer, w), mb = matrix_of(b, y, outer, w);
        for (int64_t line = 0; line < m * n; line++, to++) {
            const int64_t i = line / n, j = line % n;
            const int64_t za = whole_at(quant_in(node, p->a_zero), m, ma, i);
            const int64_t zb = whole_at(quant_in(node, p->b_zero), n, mb, j);
            int64_t sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (ops_get_int(a->dtype, a->data, (ma * m + i) * k + l) - za) *
                       (ops_get_int(b->dtype, b->data, (mb * k + l) * n + j) - zb);
            if (p->y_zero < 0) {
                ops_put_int(y->dtype, y->data, to, sum);
                continue;
            }
            const double v = quant_steps(sum, real_at(quant_in(node, p->a_scale), m, ma, i),
                                         real_at(quant_in(node, p->b_scale), n, mb, j),
                                         real_at(quant_in(node, p->y_scale), m, 0, i)) +
                             (double)whole_at(quant_in(node, p->y_zero), m, 0, i);
            elem_set_f64(y, to, quant_clamp(y->dtype, v));
        }
    }
    return CNR_OK;
}

/* Sets out->macs to the multiply-adds of the product with these ports. */
static void cost_with(const cnr_node *node, const matmul_ports *p, cnr_cost *out) {
    const cnr_tensor *a = node->inputs[p->a];
    const int64_t k = a->rank > 0 ? a->dim[a->rank - 1] : 0;
    out->macs = ops_mul(ops_elements(node->outputs[0]), k > 0 ? (uint64_t)k : 0);
}

QUANT_OP(matmul_integer, integer, "Matrix product of 8-bit numbers with a 32-bit result.", );
QUANT_OP(qlinear_matmul, qlinear, "Matrix product of quantised numbers with a quantised result.", );
