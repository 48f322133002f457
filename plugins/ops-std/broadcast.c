/* Iterates over broadcast operands; operators that fold their operands pairwise (broadcast.h). */
#include "broadcast.h"
#include "shapes.h"

/* Whether axes a and a + 1 can be merged: in every operand, the stride of a is that of a whole axis
 * a + 1. */
static int mergeable(const broadcast_walk *w, int32_t a) {
    for (int32_t k = 0; k <= w->n; k++)
        if (w->stride[k][a] != w->stride[k][a + 1] * w->dim[a + 1]) return 0;
    return 1;
}

/* Drops axes of size 1 and joins axes that all operands walk alike. */
static void merge(broadcast_walk *w) {
    int32_t to = 0;
    for (int32_t a = 0; a < w->rank; a++) { /* drops axes of size 1 */
        if (w->dim[a] == 1) continue;
        w->dim[to] = w->dim[a];
        for (int32_t k = 0; k <= w->n; k++) w->stride[k][to] = w->stride[k][a];
        to++;
    }
    w->rank = to;
    for (int32_t a = w->rank - 2; a >= 0; a--) {
        if (!mergeable(w, a)) continue;
        w->dim[a] *= w->dim[a + 1];
        for (int32_t k = 0; k <= w->n; k++) w->stride[k][a] = w->stride[k][a + 1];
        for (int32_t b = a + 1; b < w->rank - 1; b++) {
            w->dim[b] = w->dim[b + 1];
            for (int32_t k = 0; k <= w->n; k++) w->stride[k][b] = w->stride[k][b + 1];
        }
        w->rank--;
    }
    if (w->rank == 0 || w->stride[w->n][w->rank - 1] != 1) { /* runs need stride 1 in the output */
        w->dim[w->rank] = 1;
        for (int32_t k = 0; k <= w->n; k++) w->stride[k][w->rank] = k == w->n;
        w->rank++;
    }
}

/* Sets how many elements the next step takes along the last axis. */
static void measure(broadcast_walk *w) {
    const int32_t last = w->rank - 1;
    const int64_t rest = w->dim[last] - w->index[last];
    w->run = rest < ELEM_RUN ? rest : ELEM_RUN;
}

int broadcast_begin(broadcast_walk *w, const cnr_run *run, const cnr_tensor *const *operands,
                    int32_t n) {
    const cnr_tensor *y = run->outputs[0];
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    w->n = n;
    w->rank = y->rank;
    w->left = 1;
    cnr_range_of(run, lo, hi);
    for (int32_t a = 0; a < y->rank; a++) {
        w->dim[a] = hi[a] - lo[a];
        w->left *= w->dim[a];
    }
    for (int32_t k = 0; k <= n; k++) {
        const cnr_tensor *t = k < n ? operands[k] : y;
        memset(w->stride[k], 0, sizeof w->stride[k]);
        if (t) shape_strides(t, y, w->stride[k]);
        w->at[k] = 0;
        for (int32_t a = 0; a < y->rank; a++) w->at[k] += lo[a] * w->stride[k][a];
    }
    if (w->left <= 0) return 0;
    merge(w);
    memset(w->index, 0, sizeof w->index);
    for (int32_t k = 0; k <= n; k++) w->inner[k] = w->stride[k][w->rank - 1];
    w->out = w->at[n];
    measure(w);
    return 1;
}

/* Steps to the next run of elements; 0: all are done. */
int broadcast_next(broadcast_walk *w) {
    int32_t a = w->rank - 1;
    w->left -= w->run;
    if (w->left <= 0) return 0;
    w->index[a] += w->run;
    for (int32_t k = 0; k <= w->n; k++) w->at[k] += w->run * w->inner[k];
    while (a > 0 && w->index[a] == w->dim[a]) {
        for (int32_t k = 0; k <= w->n; k++)
            w->at[k] += w->stride[k][a - 1] - w->dim[a] * w->stride[k][a];
        w->index[a] = 0;
        w->index[--a]++;
    }
    w->out = w->at[w->n];
    measure(w);
    return 1;
}

/* Checks the operands' types and gives the output the broadcast shape. */
cnr_status fold_infer(const cnr_node *node, const fold_row *row, cnr_tensor *const *out,
                      cnr_error *err) {
    if (node->n_inputs > BROADCAST_MAX)
        return ops_fail(err, CNR_E_LIMIT, node, "more than %d operands", BROADCAST_MAX);
    for (int32_t i = 0; i < node->n_inputs; i++) {
        CNR_TRY(ops_want(node, i, row->dtypes, 0, CNR_MAX_RANK, err));
        if (node->inputs[i]->dtype != node->inputs[0]->dtype)
            return ops_fail(err, CNR_E_SHAPE, node, "operands are %s and %s, want one type",
                            cnr_dtype_name(node->inputs[0]->dtype),
                            cnr_dtype_name(node->inputs[i]->dtype));
    }
    out[0]->dtype = row->to_bool ? CNR_bool : node->inputs[0]->dtype;
    return kit_broadcast(node, 0, node->n_inputs, out[0], err);
}

/* Computes n elements in `domain` with the row's loop. */
static void fold_run(const fold_row *row, elem_domain domain, int64_t n, const elem_run *x,
                     const elem_run *y, elem_run *out) {
    if (domain == ELEM_F) row->f64(x->f, y->f, out->f, n);
    else if (domain == ELEM_I) row->i64(x->i, y->i, out->i, n);
    else row->u64(x->u, y->u, out->u, n);
}

/* Method reference: folds the operands from the left by the row's formula. Comparisons compute in
 * the operands' domain and store 0 or 1. */
cnr_status fold_reference(const cnr_run *run, const fold_row *row, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *y = run->outputs[0];
    const elem_domain domain = elem_domain_of(node->inputs[0]->dtype);
    const int32_t n = node->n_inputs;
    broadcast_walk w;
    (void)err;
    if (!broadcast_begin(&w, run, node->inputs, n)) return CNR_OK;
    do {
        elem_run sum, operand;
        broadcast_load(&w, 0, node->inputs[0], domain, &sum);
        for (int32_t k = 1; k < n; k++) {
            broadcast_load(&w, k, node->inputs[k], domain, &operand);
            fold_run(row, domain, w.run, &sum, &operand, &sum);
        }
        if (row->mean)
            for (int64_t i = 0; i < w.run; i++) sum.f[i] /= n;
        elem_store(y->dtype, y->data, w.out, w.run, domain, &sum);
    } while (broadcast_next(&w));
    return CNR_OK;
}

/* Writes the row's OpenCL formula into text; its length, or -1: none or too long. */
int32_t fold_expression(const fold_row *row, char *text, size_t bytes) {
    const size_t length = row->opencl ? strlen(row->opencl) : bytes;
    if (length + 1 > bytes) return -1;
    memcpy(text, row->opencl, length + 1);
    return (int32_t)length;
}

/* Counts one operation an output element for each operand after the first. */
void fold_cost(const cnr_node *node, cnr_cost *out) {
    const int32_t n = node->n_inputs > 1 ? node->n_inputs - 1 : 1;
    out->flops = ops_mul(ops_elements(node->outputs[0]), (uint64_t)n);
}
