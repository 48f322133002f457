/* einsum: sums of products of elements, given by an equation of axis labels. */
#include "einsum.h"

static const cnr_port in[] = {
    {.name = "x", .flags = CNR_PORT_VARIADIC, .min = 1, .help = "operands, of one type"}};
static const cnr_port out[] = {{.name = "y", .help = "an axis for each label after the arrow"}};
static const char *const equations[] = {"ij,jk->ik",    "bij,bjk->bik", "ij->ji",      "ij,ij",
                                        "ii->i",        "...i,i->...",  "abc,cd->abd", "i,j->ij",
                                        "bij,bkj->bik", "ijk->",        NULL};
static const cnr_attr_spec attrs[] = {
    {.name = "equation",
     .type = CNR_ATTR_STRING,
     .flags = CNR_ATTR_REQUIRED,
     .choices = equations,
     .help =
         "one letter per axis, commas between operands: bij,bjk->bik; ... stands for any axes"}};

#define DTYPES (OPS_FLOATS | 1u << CNR_i32 | 1u << CNR_i64)

/* ---- the equation ---- */

/* Number of a label: 0 to 51; -1: no letter. */
static int label_of(char c) {
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

/* One term as written: its letters, and the index of the letter after "..." (-1: no dots). */
typedef struct written {
    int32_t n, dots;
    int8_t label[CNR_MAX_RANK];
} written;

/* Reads one term of the equation at *at, up to a comma or the arrow. */
static cnr_status read_term(const cnr_node *node, const char **at, written *t, cnr_error *err) {
    *t = (written){.dots = -1};
    for (; **at && **at != ',' && **at != '-'; (*at)++) {
        if (**at == ' ') continue;
        const int label = label_of(**at);
        if (label < 0 && (strncmp(*at, "...", 3) != 0 || t->dots >= 0))
            return ops_fail(err, CNR_E_ARG, node,
                            "the equation has \"%.8s\" where a letter or "
                            "one ... a term is wanted",
                            *at);
        if (label >= 0 && t->n == CNR_MAX_RANK)
            return ops_fail(err, CNR_E_LIMIT, node, "a term has more than %d axes", CNR_MAX_RANK);
        if (label >= 0) t->label[t->n++] = (int8_t)label;
        else t->dots = t->n, *at += 2;
    }
    return CNR_OK;
}

/* Assigns labels to term `k`, whose dots stand for `open` axes: the last of the result's `most`. */
static cnr_status lay(const cnr_node *node, einsum *e, int32_t k, const written *t, int32_t open,
                      int32_t most, cnr_error *err) {
    if (t->n + open > CNR_MAX_RANK)
        return ops_fail(err, CNR_E_LIMIT, node, "a term has more than %d axes", CNR_MAX_RANK);
    for (int32_t i = 0; i <= t->n; i++) {
        for (int32_t d = 0; i == t->dots && d < open; d++)
            e->term[k][e->rank[k]++] = (int8_t)(52 + most - open + d);
        if (i < t->n) e->term[k][e->rank[k]++] = t->label[i];
    }
    for (int32_t i = 0; i < e->rank[k]; i++) e->used[k] |= UINT64_C(1) << e->term[k][i];
    return CNR_OK;
}

/* The result of an equation without an arrow: the dots, then the letters that occur once, in
 * alphabetical order. */
static cnr_status implied(const cnr_node *node, const einsum *e, written *t, cnr_error *err) {
    int count[EINSUM_LABELS] = {0};
    *t = (written){.dots = 0};
    for (int32_t k = 0; k < e->n_terms; k++)
        for (int32_t i = 0; i < e->rank[k]; i++) count[e->term[k][i]]++;
    for (int32_t c = 'A'; c <= 'z'; c++) { /* capital letters first, as in ASCII */
        const int label = label_of((char)c);
        if (label < 0 || count[label] != 1) continue;
        if (t->n == CNR_MAX_RANK)
            return ops_fail(err, CNR_E_LIMIT, node, "the result has more than %d axes",
                            CNR_MAX_RANK);
        t->label[t->n++] = (int8_t)label;
    }
    return CNR_OK;
}

/* Finds the dimension of each label from the inputs; fails where two differ. */
static cnr_status read_dims(const cnr_node *node, einsum *e, cnr_error *err) {
    for (int32_t k = 0; k < e->n_terms; k++)
        for (int32_t i = 0; i < e->rank[k]; i++) {
            const int label = e->term[k][i];
            const int64_t dim = node->inputs[k]->dim[i];
            int64_t *all = &e->dim[label];
            int seen = 0; /* labels at earlier axes */
            for (int32_t a = 0; a < i; a++) seen |= e->term[k][a] == label;
            for (int32_t b = 0; b < k; b++) seen |= (int)(e->used[b] >> label & 1);
            if (!seen || *all == 1) *all = dim;
            else if (dim < 0 && *all < 0) *all = CNR_DIM_UNKNOWN;
            else if (dim >= 0 && *all >= 0 && dim != *all && dim != 1)
                return ops_fail(err, CNR_E_SHAPE, node,
                                "axis %d of operand %d is %lld, its label "
                                "is %lld elsewhere",
                                (int)i, (int)k, (long long)dim, (long long)*all);
            else if (*all < 0 && dim != 1) *all = dim;
        }
    return CNR_OK;
}

/* Reads the node's equation into *e, with the dots written out as labels. */
cnr_status einsum_read(const cnr_node *node, einsum *e, cnr_error *err) {
    const char *at = cnr_attr_string(node, "equation");
    written terms[EINSUM_TERMS], result;
    int32_t open[EINSUM_TERMS], most = 0;
    memset(e, 0, sizeof *e);
    e->n_terms = node->n_inputs;
    if (e->n_terms > EINSUM_TERMS)
        return ops_fail(err, CNR_E_LIMIT, node, "more than %d operands", EINSUM_TERMS);
    for (int32_t k = 0; k < e->n_terms; k++) {
        CNR_TRY(read_term(node, &at, &terms[k], err));
        open[k] = node->inputs[k]->rank - terms[k].n;
        if (open[k] < 0 || (open[k] > 0 && terms[k].dots < 0))
            return ops_fail(err, CNR_E_SHAPE, node, "operand %d of rank %d has %d labels", (int)k,
                            (int)node->inputs[k]->rank, (int)terms[k].n);
        if (open[k] > most) most = open[k];
        if (*at != ',' && k + 1 < e->n_terms)
            return ops_fail(err, CNR_E_ARG, node, "the equation has fewer terms than operands");
        if (*at == ',') at++;
    }
    for (int32_t k = 0; k < e->n_terms; k++)
        CNR_TRY(lay(node, e, k, &terms[k], open[k], most, err));
    if (strncmp(at, "->", 2) == 0) {
        at += 2;
        CNR_TRY(read_term(node, &at, &result, err));
    } else CNR_TRY(implied(node, e, &result, err));
    if (*at) return ops_fail(err, CNR_E_ARG, node, "the equation goes on with \"%.8s\"", at);
    CNR_TRY(lay(node, e, e->n_terms, &result, result.dots < 0 ? 0 : most, most, err));
    uint64_t operands = 0;
    for (int32_t k = 0; k < e->n_terms; k++) operands |= e->used[k];
    if (e->used[e->n_terms] & ~operands)
        return ops_fail(err, CNR_E_ARG, node, "the result has a label that no operand has");
    if (__builtin_popcountll(e->used[e->n_terms]) != e->rank[e->n_terms])
        return ops_fail(err, CNR_E_ARG, node, "the result has a label twice");
    return read_dims(node, e, err);
}

/* ---- the operator ---- */

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    einsum e;
    cnr_tensor *y = outputs[0];
    for (int32_t k = 0; k < node->n_inputs; k++) {
        CNR_TRY(ops_want(node, k, DTYPES, 0, CNR_MAX_RANK, err));
        if (node->inputs[k]->dtype != node->inputs[0]->dtype)
            return ops_fail(err, CNR_E_SHAPE, node, "the operands must have one type");
    }
    CNR_TRY(einsum_read(node, &e, err));
    y->dtype = node->inputs[0]->dtype;
    y->rank = e.rank[e.n_terms];
    for (int32_t i = 0; i < y->rank; i++) y->dim[i] = e.dim[e.term[e.n_terms][i]];
    return CNR_OK;
}

/* Method cost: counts the arithmetic operations of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    einsum e;
    cnr_error err = CNR_ERROR_INIT;
    if (einsum_read(node, &e, &err)) return;
    uint64_t n = node->n_inputs > 1 ? (uint64_t)(node->n_inputs - 1) : 1;
    for (int i = 0; i < EINSUM_LABELS; i++)
        for (int32_t k = 0; k < e.n_terms; k++)
            if (e.used[k] >> i & 1) {
                n = ops_mul(n, e.dim[i] < 0 ? 0 : (uint64_t)e.dim[i]);
                break;
            }
    c->macs = n;
}

/* Method region: for an operand that has the result's label once, the same range of that axis; else
 * all of it (axis -1). */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    einsum e;
    cnr_error err = CNR_ERROR_INIT;
    int32_t found = -1, times = 0;
    *r = (cnr_input_range){.axis = -1};
    if (einsum_read(node, &e, &err) || port >= e.n_terms) return;
    for (int32_t i = 0; i < e.rank[port]; i++)
        if (e.term[port][i] == e.term[e.n_terms][axis]) found = i, times++;
    if (times == 1 && node->inputs[port]->dim[found] != 1)
        *r = (cnr_input_range){found, begin, end};
}

/* Iterates over a set of labels, with an offset into every operand. */
typedef struct walk {
    int32_t n;
    int64_t lo[EINSUM_LABELS], hi[EINSUM_LABELS], index[EINSUM_LABELS];
    int64_t step[EINSUM_TERMS][EINSUM_LABELS];
    int64_t at[EINSUM_TERMS];
} walk;

/* Adds a label's range [lo, hi) to the walk, with its step in each term. */
static void walk_label(const cnr_node *node, const einsum *e, walk *w, int8_t label, int64_t lo,
                       int64_t hi) {
    const int32_t n = w->n++;
    w->lo[n] = w->index[n] = lo;
    w->hi[n] = hi;
    for (int32_t k = 0; k < e->n_terms; k++) {
        int64_t strides[CNR_MAX_RANK];
        kit_dense_strides(node->inputs[k], strides);
        w->step[k][n] = 0;
        for (int32_t i = 0; i < e->rank[k]; i++) /* a repeated label means the diagonal */
            if (e->term[k][i] == label && node->inputs[k]->dim[i] != 1) w->step[k][n] += strides[i];
        w->at[k] += lo * w->step[k][n];
    }
}

/* Steps to the next place of the walk; 0: it is over. */
static int walk_next(walk *w, int32_t n_terms) {
    for (int32_t i = w->n - 1; i >= 0; i--) {
        const int more = ++w->index[i] < w->hi[i];
        const int64_t by = more ? 1 : w->lo[i] + 1 - w->hi[i];
        for (int32_t k = 0; k < n_terms; k++) w->at[k] += by * w->step[k][i];
        if (more) return 1;
        w->index[i] = w->lo[i];
    }
    return 0;
}

OPS_INLINE void sum_up(const cnr_run *run, int32_t dtype, int32_t n_terms, const int64_t *at,
                       walk *inner, int64_t to) {
    const int exact = !ops_is_float(dtype);
    double sum = 0;
    uint64_t whole = 0; /* integers wrap */
    do {
        double product = 1;
        uint64_t exactly = 1;
        for (int32_t k = 0; k < n_terms; k++) {
            const void *x = run->node->inputs[k]->data;
            const int64_t from = at[k] + inner->at[k];
            if (exact) exactly *= (uint64_t)ops_get_int(dtype, x, from);
            else product *= ops_get(dtype, x, from);
        }
        sum += product;
        whole += exactly;
    } while (walk_next(inner, n_terms));
    if (exact) ops_put_int(dtype, run->outputs[0]->data, to, (int64_t)whole);
    else ops_put(dtype, run->outputs[0]->data, to, sum);
}

/* Method reference of einsum: sums of products of elements by an equation of axis labels (Einstein
 * summation), in the run's range. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *y = run->outputs[0];
    walk outer = {.n = 0}, inner = {.n = 0};
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK], strides[CNR_MAX_RANK];
    einsum e;
    CNR_TRY(einsum_read(node, &e, err));
    cnr_range_of(run, lo, hi);
    kit_dense_strides(y, strides);
    int nothing = 0;
    for (int32_t i = 0; i < y->rank; i++) {
        if (lo[i] >= hi[i]) return CNR_OK;
        walk_label(node, &e, &outer, e.term[e.n_terms][i], lo[i], hi[i]);
    }
    for (int8_t i = 0; i < EINSUM_LABELS; i++) {
        uint64_t used = 0;
        for (int32_t k = 0; k < e.n_terms; k++) used |= e.used[k] >> i & 1;
        if (!used || e.used[e.n_terms] >> i & 1) continue;
        nothing |= e.dim[i] == 0;
        walk_label(node, &e, &inner, i, 0, e.dim[i]);
    }
    do {
        int64_t to = 0;
        for (int32_t i = 0; i < y->rank; i++) to += outer.index[i] * strides[i];
        if (nothing)
            memset((char *)y->data + (size_t)to * ops_size(y->dtype), 0, ops_size(y->dtype));
        else OPS_SPECIALISE(y->dtype, sum_up(run, dtype, e.n_terms, outer.at, &inner, to));
        if (ops_cancelled(run)) return CNR_OK;
    } while (walk_next(&outer, e.n_terms));
    return CNR_OK;
}

const cnr_op ops_einsum = {
    CNR_OP_SIZES,
    .name = "einsum",
    .summary = "Sums of products of elements by an equation of axis labels (Einstein summation).",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .split_axes = ops_split_all,
    .input_range = region,
    .reference = reference,
};
