/* Scaled dot-product attention: sizes, and offsets and strides of the operands.
 *
 *     y[m][d] = sum over n of softmax over n (scale * sum over e of q[m][e] k[n][e]
 *                                             + bias[m][n] + mask[m][n]) * v[n][d]
 *
 * for each element of three batch axes. An operand may be a strided view of its tensor, so that
 * transposes and slices before it need no step of their own. */
#ifndef ATTENTION_H
#define ATTENTION_H

#include <cnnrun/kit.h>

/* Ports: ATTENTION_INPUTS is their number. */
enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_BIAS, ATTENTION_MASK, ATTENTION_INPUTS };
enum { ATTENTION_BATCH = 3, ATTENTION_RANK = ATTENTION_BATCH + 2 };

/* Sizes and strides of an attention node. */
typedef struct attention {
    int64_t batch[ATTENTION_BATCH];
    int64_t m, n, e, d; /* m: rows of q; n: of k and v; e: columns of q and k; d: of v */
    /* at: offset of each input's first element. step: its strides over batch axes, rows and
     * columns. to: those of y. All in elements; zeros for an omitted input. */
    int64_t at[ATTENTION_INPUTS], step[ATTENTION_INPUTS][ATTENTION_RANK], to[ATTENTION_RANK];
    int32_t given[ATTENTION_INPUTS]; /* 1: the input is present */
    float scale;
    int32_t zero_rows; /* 1: rows whose softmax is NaN have weights 0 */
} attention;

/* Number of batches: the product of the batch axes. */
static inline int64_t attention_batches(const attention *a) {
    return a->batch[0] * a->batch[1] * a->batch[2];
}

/* Writes the sizes of input `port` along its rank to `size`: batch axes, rows, columns. */
static inline void attention_sizes(const attention *a, int32_t port, int64_t *size) {
    const int64_t rows[ATTENTION_INPUTS] = {a->m, a->n, a->n, a->m, a->m},
                  columns[ATTENTION_INPUTS] = {a->e, a->e, a->d, a->n, a->n};
    for (int32_t i = 0; i < ATTENTION_BATCH; i++) size[i] = a->batch[i];
    size[ATTENTION_BATCH] = rows[port];
    size[ATTENTION_BATCH + 1] = columns[port];
}

/* Returns the offset, in elements, of batch b (0 to attention_batches - 1) in an input or output
 * with the strides `step` of its three leading axes. */
static inline int64_t attention_first(const attention *a, const int64_t *step, int64_t b) {
    const int64_t last = a->batch[2], middle = a->batch[1];
    return b / (last * middle) * step[0] + b / last % middle * step[1] + b % last * step[2];
}

/* Sets the strides of input `port`, a dense tensor that broadcasts to its sizes. Returns NULL, or
 * why it does not fit. */
static inline const char *attention_dense(attention *a, int32_t port, const cnr_tensor *t) {
    int64_t size[ATTENTION_RANK], stride = 1;
    attention_sizes(a, port, size);
    if (t->rank > ATTENTION_RANK) return "an input has more than 5 axes";
    for (int32_t i = ATTENTION_RANK - 1; i >= 0; i--) {
        const int32_t own = i - (ATTENTION_RANK - t->rank);
        const int64_t dim = own < 0 ? 1 : t->dim[own];
        if (dim != 1 && dim != size[i]) return "the inputs' sizes do not fit each other";
        a->step[port][i] = dim == 1 ? 0 : stride;
        stride *= dim;
    }
    return NULL;
}

/* Sets offset and strides of input `port` from `view`, its 6 numbers of attribute `views`. Returns
 * NULL, or why they do not fit. */
static inline const char *attention_view(attention *a, int32_t port, const cnr_tensor *t,
                                         const int64_t *view) {
    int64_t size[ATTENTION_RANK], left = cnr_count(t) - 1;
    attention_sizes(a, port, size);
    a->at[port] = view[0];
    if (view[0] < 0 || view[0] > left) return "a view begins outside its tensor";
    left -= view[0];
    for (int32_t i = 0; i < ATTENTION_RANK; i++) {
        const int64_t step = view[1 + i];
        a->step[port][i] = step;
        if (step < 0 || (size[i] > 1 && step > 0 && step > left / (size[i] - 1)))
            return "a view reaches beyond its tensor";
        left -= (size[i] - 1) * step;
    }
    return NULL;
}

/* Sets the batch axes from dense inputs, which broadcast. Returns NULL, or why they do not fit. */
static inline const char *attention_broadcast(attention *a, const cnr_node *node) {
    for (int32_t port = 0; port < ATTENTION_INPUTS; port++) {
        const cnr_tensor *t = cnr_own_input(node, port);
        for (int32_t i = 0; t && i < t->rank - 2; i++) {
            const int32_t axis = ATTENTION_BATCH - (t->rank - 2) + i;
            if (axis < 0) return "an input has more than 5 axes";
            if (a->batch[axis] == 1) a->batch[axis] = t->dim[i];
        }
    }
    return NULL;
}

/* Sets the sizes from attribute `sizes` or from dense inputs. Returns NULL, or why they do
 * not fit. */
static inline const char *attention_shape(const cnr_node *node, attention *a) {
    const cnr_tensor *q = cnr_own_input(node, ATTENTION_Q), *k = cnr_own_input(node, ATTENTION_K),
                     *v = cnr_own_input(node, ATTENTION_V);
    const cnr_attr *sizes = cnr_attr_find(node, "sizes");
    for (int32_t i = 0; i < ATTENTION_BATCH; i++) a->batch[i] = 1;
    if (sizes && sizes->n > 0) {
        if (sizes->n != ATTENTION_BATCH + 4) return "sizes: 7 numbers are wanted";
        for (int32_t i = 0; i < sizes->n; i++)
            if (sizes->ints[i] < 1 || sizes->ints[i] > INT32_MAX) return "sizes: from 1 on";
        memcpy(a->batch, sizes->ints, sizeof a->batch);
        a->m = sizes->ints[3], a->n = sizes->ints[4];
        a->e = sizes->ints[5], a->d = sizes->ints[6];
        return NULL;
    }
    if (q->rank < 2 || k->rank < 2 || v->rank < 2) return "q, k and v want two axes at least";
    a->m = q->dim[q->rank - 2], a->e = q->dim[q->rank - 1];
    a->n = k->dim[k->rank - 2], a->d = v->dim[v->rank - 1];
    return attention_broadcast(a, node);
}

/* Sets the strides of y, which is dense with its axes in the order of attribute `perm`. Returns
 * NULL, or why they do not fit. */
static inline const char *attention_output(const cnr_node *node, attention *a) {
    const cnr_attr *perm = cnr_attr_find(node, "perm");
    int64_t size[ATTENTION_RANK], stride = 1;
    int32_t seen = 0;
    attention_sizes(a, ATTENTION_Q, size);
    size[ATTENTION_RANK - 1] = a->d;
    if (perm && perm->n > 0 && perm->n != ATTENTION_RANK) return "perm: 5 axes are wanted";
    for (int32_t i = ATTENTION_RANK - 1; i >= 0; i--) {
        const int64_t axis = perm && perm->n > 0 ? perm->ints[i] : i;
        if (axis < 0 || axis >= ATTENTION_RANK || seen & 1 << axis)
            return "perm: each axis is wanted once";
        seen |= 1 << axis;
        a->to[axis] = stride;
        stride *= size[axis];
    }
    return NULL;
}

/* Reads a node whose inputs' dims are known. Returns NULL, or why the node is invalid. */
static inline const char *attention_of(const cnr_node *node, attention *a) {
    const cnr_attr *views = cnr_attr_find(node, "views");
    memset(a, 0, sizeof *a);
    a->scale = (float)cnr_attr_float(node, "scale");
    a->zero_rows = cnr_attr_int(node, "zero_rows") != 0;
    const char *wrong = attention_shape(node, a);
    for (int32_t port = 0; port < ATTENTION_INPUTS && !wrong; port++) {
        const cnr_tensor *t = cnr_own_input(node, port);
        if (!t) continue;
        a->given[port] = 1;
        if (!wrong && views && views->n > 0 && views->n < 6 * (port + 1))
            return "views: 6 numbers for each input are wanted";
        wrong = views && views->n > 0 ? attention_view(a, port, t, views->ints + 6 * port)
                                      : attention_dense(a, port, t);
    }
    return wrong ? wrong : attention_output(node, a);
}

#endif
