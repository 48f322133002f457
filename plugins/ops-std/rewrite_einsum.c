/* einsum-to-matmul: replaces Einstein sums that are matrix products by matmul and transposes, so
 * that matmul's kernels run them. */
#include "einsum.h"

extern const cnr_rewrite ops_einsum_to_matmul;

/* Labels of two operands by where they occur: in both and in the result; in the first and the
 * result; in the second and the result; in both but summed. */
enum { BATCH, ROWS, COLUMNS, SUMMED, KINDS };

/* Labels of each kind, in the order of the matrices. */
typedef struct plan {
    int8_t label[KINDS][CNR_MAX_RANK];
    int32_t n[KINDS];
    int64_t size[KINDS]; /* the product of the dimensions */
} plan;

/* Kind of a label; -1: it stands in one input only and is summed. */
static int kind_of(const einsum *e, int8_t label) {
    const int a = (int)(e->used[0] >> label & 1), b = (int)(e->used[1] >> label & 1);
    if (e->used[2] >> label & 1) return a && b ? BATCH : a ? ROWS : COLUMNS;
    return a && b ? SUMMED : -1;
}

/* 1: it is a matrix product, without repeated, broadcast or unknown axes. */
static int make_plan(const cnr_node *node, const einsum *e, plan *p) {
    *p = (plan){.size = {1, 1, 1, 1}};
    if (e->n_terms != 2) return 0;
    for (int32_t k = 0; k < 2; k++) {
        if (__builtin_popcountll(e->used[k]) != e->rank[k]) return 0;
        for (int32_t i = 0; i < e->rank[k]; i++) {
            const int8_t label = e->term[k][i];
            const int kind = kind_of(e, label);
            const int64_t dim = node->inputs[k]->dim[i];
            if (kind < 0 || dim < 1 || dim != e->dim[label]) return 0;
            if (k == 1 && kind != COLUMNS) continue; /* counted with the first operand */
            if (p->size[kind] > OPS_MAX_DIM / dim) return 0;
            p->label[kind][p->n[kind]++] = label;
            p->size[kind] *= dim;
        }
    }
    return p->n[BATCH] + 2 <= CNR_MAX_RANK;
}

/* Adds a transpose, unless perm moves nothing. */
static cnr_value transposed(kit_build *b, cnr_value x, const int64_t *perm, int32_t rank) {
    const cnr_attr attr = kit_attr_ints("perm", perm, rank);
    int moves = 0;
    for (int32_t i = 0; i < rank; i++) moves |= perm[i] != i;
    return moves ? kit_node(b, "transpose", &x, 1, &attr, 1) : x;
}

/* Adds a reshape. */
static cnr_value reshaped(kit_build *b, cnr_value x, const int64_t *shape, int32_t rank) {
    const cnr_attr attr = kit_attr_ints("shape", shape, rank);
    return kit_node(b, "reshape", &x, 1, &attr, 1);
}

/* Reshapes operand k: batch axes, then the axes of the kinds `first` and `second` as one axis each.
 * -1: failed. */
static cnr_value as_matrix(kit_build *b, const einsum *e, const plan *p, int32_t k, cnr_value x,
                           int first, int second) {
    int64_t perm[CNR_MAX_RANK], shape[CNR_MAX_RANK];
    const int kinds[] = {BATCH, first, second};
    int32_t n = 0;
    for (int part = 0; part < 3; part++)
        for (int32_t i = 0; i < p->n[kinds[part]]; i++, n++)
            for (int32_t a = 0; a < e->rank[k]; a++)
                if (e->term[k][a] == p->label[kinds[part]][i]) perm[n] = a;
    x = transposed(b, x, perm, n);
    if (p->n[first] == 1 && p->n[second] == 1) return x;
    for (n = 0; n < p->n[BATCH]; n++) shape[n] = e->dim[p->label[BATCH][n]];
    shape[n++] = p->size[first];
    shape[n++] = p->size[second];
    return reshaped(b, x, shape, n);
}

/* Reshapes the product and transposes it to the result's order. */
static cnr_value as_result(kit_build *b, const einsum *e, const plan *p, cnr_value x) {
    int64_t perm[CNR_MAX_RANK], shape[CNR_MAX_RANK];
    int32_t n = 0;
    for (int kind = BATCH; kind <= COLUMNS; kind++)
        for (int32_t i = 0; i < p->n[kind]; i++, n++) {
            shape[n] = e->dim[p->label[kind][i]];
            for (int32_t a = 0; a < e->rank[2]; a++)
                if (e->term[2][a] == p->label[kind][i]) perm[a] = n;
        }
    if (p->n[ROWS] != 1 || p->n[COLUMNS] != 1) x = reshaped(b, x, shape, n);
    return transposed(b, x, perm, n);
}

/* The product that gives an Einstein sum; -1: none does. */
static cnr_value product(kit_build *b, const cnr_node *node, const cnr_value *in) {
    cnr_error unread = CNR_ERROR_INIT;
    einsum e;
    plan p;
    if (!kit_is(node, ops_einsum.name) || einsum_read(node, &e, &unread) ||
        !make_plan(node, &e, &p))
        return -1;
    const cnr_value left = in[0], right = in[1];
    const cnr_value rows = as_matrix(b, &e, &p, 0, left, ROWS, SUMMED);
    const cnr_value columns = as_matrix(b, &e, &p, 1, right, SUMMED, COLUMNS);
    return as_result(b, &e, &p, kit_node2(b, "matmul", rows, columns));
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    return kit_replace_nodes(g, &ops_einsum_to_matmul, product, err);
}

const cnr_rewrite ops_einsum_to_matmul = {
    .size = sizeof(cnr_rewrite),
    .order = 30,
    .name = "einsum-to-matmul",
    .summary = "makes products of matrices of the Einstein sums that are such",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE,
    .example = ops_example_einsum,
};
