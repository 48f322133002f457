/* fuse-attention: replaces the two products of attention with the softmax between them by one node,
 * which reads its operands through the transposes and slices before it and writes its result in
 * the order of the transpose behind it. */
#include "attention.h"

#include "move.h"
#include "shapes.h"

extern const cnr_rewrite ops_fuse_attention;

enum { DEPTH = 12 }; /* nodes that a view is followed through */
/* Numbers from here down swallow any score. */
#define LOW (-1e9)

/* A strided view of a value. */
typedef struct view {
    cnr_value base;
    int32_t rank;
    int64_t at, dim[CNR_MAX_RANK], step[CNR_MAX_RANK];
} view;

/* ---- views ---- */

/* 1: *v is the view of a whole value of known shape. */
static int whole(const struct cnr_graph *g, cnr_value value, view *v) {
    const cnr_tensor *t = ops_host->graph_type(g, value);
    if (!kit_known(t) || cnr_count(t) < 1) return 0;
    *v = (view){.base = value, .rank = t->rank};
    memcpy(v->dim, t->dim, sizeof v->dim);
    kit_dense_strides(t, v->step);
    return 1;
}

/* Permutes the view's axes in place: axis i becomes the former perm[i]. */
static void permuted(view *v, const int32_t *perm) {
    const view from = *v;
    for (int32_t i = 0; i < v->rank; i++) {
        v->dim[i] = from.dim[perm[i]];
        v->step[i] = from.step[perm[i]];
    }
}

/* Gives the view `rank` dims over the same elements, in place; 0: some axes can't be merged. Axes
 * of size 1 are of no account; of the others, groups of equal size are matched from the last on. */
static int reshaped(view *v, int32_t rank, const int64_t *dim) {
    view to = {.base = v->base, .rank = rank, .at = v->at};
    int32_t own = v->rank - 1;
    int64_t left = 0, step = 0; /* of the axis of v, or of the merged ones, that is divided */
    for (int32_t i = rank - 1; i >= 0; i--) {
        to.dim[i] = dim[i];
        to.step[i] = 0;
        if (dim[i] == 1) continue;
        for (; left <= 1 && own >= 0; own--)
            if (v->dim[own] > 1) left = v->dim[own], step = v->step[own];
        int64_t need = dim[i];
        to.step[i] = step;
        while (left < need && own >= 0) { /* merges the axis before */
            if (v->dim[own] > 1 && v->step[own] != step * left) return 0;
            left *= v->dim[own--];
        }
        if (left % need) return 0;
        left /= need;
        step *= need;
    }
    *v = to;
    return 1;
}

/* 1: the node is a slice, and v is cut as it cuts. */
static int cut(const cnr_node *node, view *v) {
    int64_t start[CNR_MAX_RANK], step[CNR_MAX_RANK];
    const cnr_tensor *y = node->outputs[0];
    if (!move_slice(node, start, step)) return 0;
    for (int32_t i = 0; i < v->rank; i++) {
        if (step[i] < 1) return 0;
        v->at += start[i] * v->step[i];
        v->step[i] *= step[i];
        v->dim[i] = y->dim[i];
    }
    return 1;
}

/* Fills v with what `value` is a view of, through nodes that only move elements. 0: the value's
 * shape is unknown. */
static int view_of(const struct cnr_graph *g, cnr_value value, int depth, view *v) {
    const cnr_value *in;
    const cnr_node *node = kit_maker(g, value, &in);
    const int moves = kit_is(node, "transpose") || kit_is(node, "reshape") ||
                      kit_is(node, "squeeze") || kit_is(node, "unsqueeze") ||
                      kit_is(node, "flatten") || kit_is(node, "slice");
    if (!moves || depth == 0) return whole(g, value, v);
    int ok = view_of(g, in[0], depth - 1, v);
    if (ok && kit_is(node, "transpose")) {
        int32_t perm[CNR_MAX_RANK];
        move_perm(node, v->rank, perm);
        permuted(v, perm);
    } else if (ok && kit_is(node, "slice")) {
        ok = cut(node, v);
    } else if (ok) {
        ok = kit_known(node->outputs[0]) &&
             reshaped(v, node->outputs[0]->rank, node->outputs[0]->dim);
    }
    return ok || whole(g, value, v);
}

/* ---- the pattern ---- */

/* What was found from a product's result up to queries, keys and values. */
typedef struct pattern {
    cnr_value input[ATTENTION_INPUTS];
    cnr_value factor; /* of whole heads: constant along rows and columns of the scores; -1: none */
    cnr_value more;   /* is added to bias `more_of`, whose shape it has; -1: none */
    int32_t n_biases, more_of;
    /* A bias that is a condition: 1 where scores are kept, -1 where they are masked; 0: a bias. */
    int32_t condition[2];
    double masks[2];  /* what takes the place of masked scores */
    cnr_tensor at[2]; /* the scores' shape where each bias is added */
    cnr_tensor inner; /* and where they leave the first product */
    cnr_tensor outer; /* and enter the second one */
    double scale;
    int zero_rows; /* rows whose softmax is NaN become 0 */
} pattern;

/* 1 if exactly one node reads the value and it is no output. */
static int is_inner(const struct cnr_graph *g, cnr_value value) {
    return ops_host->graph_use_count(g, value) == 1 && !kit_is_output(g, value);
}

static int scores(const struct cnr_graph *g, cnr_value value, int depth, pattern *p);

/* Finds a product of one number for each head and of scores to which nothing was added yet, into p;
 * 0: it is none. */
static int scaled_by_head(const struct cnr_graph *g, const cnr_node *node, const cnr_value *in,
                          int depth, pattern *p) {
    const cnr_value pair[2] = {in[0], in[1]};
    const cnr_tensor product = *node->outputs[0];
    const pattern before = *p;
    for (int k = 0; k < 2 && kit_is(node, "mul") && before.factor < 0; k++) {
        const cnr_tensor *t = ops_host->graph_type(g, pair[1 - k]);
        if (t->rank < 2 || t->dim[t->rank - 1] != 1 || t->dim[t->rank - 2] != 1) continue;
        p->factor = pair[1 - k];
        if (scores(g, pair[k], depth - 1, p) && p->n_biases == before.n_biases &&
            cnr_same_shape(&p->inner, &product))
            return 1;
        *p = before;
    }
    return 0;
}

/* 1: the node multiplies or divides by a constant, which p takes over. */
static int scaled(const struct cnr_graph *g, const cnr_node *node, const cnr_value *in, int depth,
                  pattern *p) {
    double number;
    const cnr_value a = in[0], b = in[1];
    const int divides = kit_is(node, "div"), first = !divides && kit_number(g, a, &number);
    if (!first && !kit_number(g, b, &number)) return scaled_by_head(g, node, in, depth, p);
    p->scale *= divides ? 1 / number : number;
    return scores(g, first ? b : a, depth - 1, p);
}

/* Whether `bias` can be added to the last bias, which has its shape. */
static int joins_last(const struct cnr_graph *g, cnr_value bias, const cnr_tensor *sum,
                      const pattern *p) {
    const int32_t last = p->n_biases - 1;
    return last >= 0 && p->more < 0 && !p->condition[last] && cnr_same_shape(&p->at[last], sum) &&
           cnr_same_shape(ops_host->graph_type(g, p->input[ATTENTION_BIAS + last]),
                          ops_host->graph_type(g, bias));
}

/* One more bias; a second one of the shape of the last is added to that. */
static int add_bias(const struct cnr_graph *g, cnr_value bias, const cnr_tensor *sum, pattern *p) {
    if (joins_last(g, bias, sum, p)) {
        p->more = bias;
        p->more_of = p->n_biases - 1;
        return 1;
    }
    if (p->n_biases == 2) return 0;
    p->condition[p->n_biases] = 0;
    p->input[ATTENTION_BIAS + p->n_biases] = bias;
    p->at[p->n_biases++] = *sum;
    return 1;
}

/* Follows a sum of scores and of what broadcasts to them, into p; 0: it is none. A scale nearer to
 * the softmax is of both, which attention can't say. */
static int biased(const struct cnr_graph *g, const cnr_node *node, const cnr_value *in, int depth,
                  pattern *p) {
    const cnr_value pair[2] = {in[0], in[1]};
    const cnr_tensor sum = *node->outputs[0];
    const pattern before = *p;
    for (int k = 0; k < 2 && p->scale == 1; k++) {
        const cnr_tensor *t = ops_host->graph_type(g, pair[k]);
        const cnr_tensor *other = ops_host->graph_type(g, pair[1 - k]);
        if (!cnr_same_shape(t, &sum) || !kit_known(other)) continue;
        if (!add_bias(g, pair[1 - k], &sum, p)) return 0;
        if (scores(g, pair[k], depth - 1, p)) return 1;
        *p = before;
    }
    return 0;
}

/* Scores of which some are replaced by a very low number, by a condition that broadcasts to them.
 * The condition stands for a bias of 0 and of a number so low that it swallows any score. No bias
 * is added before or after: a row that is masked whole, or masked twice, would differ. Scores that
 * are masked must be finite, since a bias does not replace them. */
static int masked(const struct cnr_graph *g, const cnr_node *node, const cnr_value *in, int depth,
                  pattern *p) {
    const cnr_value condition = in[0], pair[2] = {in[1], in[2]};
    const cnr_tensor whole_shape = *node->outputs[0];
    for (int k = 0; k < 2 && p->scale == 1 && p->n_biases == 0; k++) {
        double number;
        if (!kit_number(g, pair[1 - k], &number) || !(number <= LOW) ||
            !cnr_same_shape(ops_host->graph_type(g, pair[k]), &whole_shape) ||
            !kit_known(ops_host->graph_type(g, condition)))
            continue;
        p->input[ATTENTION_BIAS + p->n_biases] = condition;
        p->condition[p->n_biases] = k ? -1 : 1;
        p->masks[p->n_biases] = isinf(number) ? number : -1e38;
        p->at[p->n_biases++] = whole_shape;
        return scores(g, pair[k], depth - 1, p) && p->n_biases == 1 && p->more < 0;
    }
    return 0;
}

/* Whether `value` is a scaled product with biases, which nothing else reads. */
static int scores(const struct cnr_graph *g, cnr_value value, int depth, pattern *p) {
    const cnr_value *in;
    const cnr_node *node = kit_maker(g, value, &in);
    if (!node || depth == 0 || !is_inner(g, value)) return 0;
    if (kit_is(node, "mul") || kit_is(node, "div")) return scaled(g, node, in, depth, p);
    if (kit_is(node, "add")) return biased(g, node, in, depth, p);
    if (kit_is(node, "where")) return masked(g, node, in, depth, p);
    if (kit_is(node, "reshape") || kit_is(node, "squeeze") || kit_is(node, "unsqueeze"))
        return scores(g, in[0], depth - 1, p);
    if (!kit_is(node, "matmul") || node->inputs[0]->rank < 2 || node->inputs[1]->rank < 2) return 0;
    p->input[ATTENTION_Q] = in[0];
    p->input[ATTENTION_K] = in[1];
    p->inner = *node->outputs[0];
    return 1;
}

/* Whether node `index` is read by more than a transpose that nobody reads, as an earlier change
 * leaves it. */
static int is_read(const struct cnr_graph *g, int32_t index) {
    const cnr_value *in, *y, *out;
    ops_host->graph_node_at(g, index, NULL, &y);
    const cnr_value value = y[0];
    if (ops_host->graph_use_count(g, value) != 1) return ops_host->graph_use_count(g, value) > 0;
    for (int32_t i = index + 1; i < ops_host->graph_node_count(g); i++) {
        const cnr_node *node = ops_host->graph_node_at(g, i, &in, &out);
        if (kit_is(node, "transpose") && in[0] == value)
            return ops_host->graph_use_count(g, out[0]) > 0;
    }
    return 1;
}

/* The softmax that gives `value`, or whose result does so once a node has replaced what is no
 * number by 0, as exporters write attention with a mask; its inputs are *in. NULL: there is none
 * that nothing else reads. */
static const cnr_node *softmax_of(const struct cnr_graph *g, cnr_value value, const cnr_value **in,
                                  int *zero_rows) {
    const cnr_value *condition;
    double number;
    const cnr_node *node = is_inner(g, value) ? kit_maker(g, value, in) : NULL;
    *zero_rows = kit_is(node, "where");
    if (*zero_rows) {
        const cnr_value inner = (*in)[2];
        if (!kit_is(kit_maker(g, (*in)[0], &condition), "is_nan") || condition[0] != inner ||
            !is_inner(g, (*in)[0]) || !kit_number(g, (*in)[1], &number) || number != 0 ||
            ops_host->graph_use_count(g, inner) != 2 || kit_is_output(g, inner) ||
            !cnr_same_shape(ops_host->graph_type(g, value), ops_host->graph_type(g, inner)))
            return NULL;
        node = kit_maker(g, inner, in);
    }
    return kit_is(node, "softmax") ? node : NULL;
}

/* Whether node `index` is the second product of an attention, all of f32 and of known sizes. */
static int matches(const struct cnr_graph *g, int32_t index, pattern *p) {
    const cnr_value *in, *inner;
    const cnr_node *node = ops_host->graph_node_at(g, index, &in, NULL);
    *p = (pattern){.scale = 1, .factor = -1, .more = -1};
    if (!kit_is(node, "matmul") || node->inputs[0]->dtype != CNR_f32) return 0;
    const cnr_tensor p_type = *node->inputs[0];
    p->input[ATTENTION_V] = in[1];
    p->outer = p_type;
    if (node->inputs[1]->rank < 2 || !kit_known(node->outputs[0])) return 0;
    const cnr_node *softmax = softmax_of(g, in[0], &inner, &p->zero_rows);
    if (!softmax || p_type.rank < 2 ||
        shape_axis(cnr_attr_int(softmax, "axis"), p_type.rank) != p_type.rank - 1)
        return 0;
    return is_read(g, index) && scores(g, inner[0], DEPTH, p) && kit_known(&p->inner);
}

/* ---- the node ---- */

/* The sizes of all, and lists of attributes. */
typedef struct fused {
    int64_t sizes[ATTENTION_BATCH + 4], views[6 * ATTENTION_INPUTS], perm[ATTENTION_RANK];
    int32_t n_inputs;
    cnr_value input[ATTENTION_INPUTS];
} fused;

/* Fills f's batch axes from whichever shape of the scores divides them most, leaving out axes of
 * size 1. 0: there are too many. */
static int batch_of(const pattern *p, fused *f) {
    const cnr_tensor *shapes[4] = {&p->inner, &p->outer, &p->at[0], &p->at[1]}, *best = NULL;
    int32_t most = -1, at = ATTENTION_BATCH;
    for (int32_t i = 0; i < 2 + p->n_biases; i++) {
        int32_t axes = 0;
        for (int32_t k = 0; k < shapes[i]->rank - 2; k++) axes += shapes[i]->dim[k] > 1;
        if (axes > most) most = axes, best = shapes[i];
    }
    for (int32_t i = 0; i < ATTENTION_BATCH; i++) f->sizes[i] = 1;
    for (int32_t k = best->rank - 3; k >= 0; k--) {
        if (best->dim[k] == 1) continue;
        if (at == 0) return 0;
        f->sizes[--at] = best->dim[k];
    }
    return 1;
}

/* Broadcasts the view in place to `shape`, whose last two axes are rows x columns, the view's own.
 * 0: it can't be. */
static int stretched(view *v, const cnr_tensor *shape, int64_t rows, int64_t columns) {
    view to = {.base = v->base, .rank = shape->rank, .at = v->at};
    for (int32_t i = 0; i < shape->rank; i++) {
        const int32_t own = i - (shape->rank - v->rank);
        to.dim[i] = i == shape->rank - 2 ? rows : i == shape->rank - 1 ? columns : shape->dim[i];
        if (own < 0 || v->dim[own] == 1) continue;
        if (v->dim[own] != to.dim[i]) return 0;
        to.step[i] = v->step[own];
    }
    *v = to;
    return v->rank >= 2;
}

/* Writes the view of input `port` into the node's lists, broadcast to `shape`, with the batch axes
 * of f. 0: it can't be. */
static int take(const struct cnr_graph *g, const pattern *p, int32_t port, const cnr_tensor *shape,
                int64_t rows, int64_t columns, int turned, fused *f) {
    const cnr_value value = p->input[port];
    int64_t dim[ATTENTION_RANK], *list = f->views + 6 * f->n_inputs;
    for (int whole_tensor = 0; whole_tensor < 2; whole_tensor++) {
        view v;
        if (!(whole_tensor ? whole(g, value, &v) : view_of(g, value, DEPTH, &v))) return 0;
        if (!stretched(&v, shape, turned ? columns : rows, turned ? rows : columns)) continue;
        memcpy(dim, f->sizes, ATTENTION_BATCH * sizeof *dim);
        dim[ATTENTION_BATCH] = v.dim[v.rank - 2];
        dim[ATTENTION_BATCH + 1] = v.dim[v.rank - 1];
        if (!reshaped(&v, ATTENTION_RANK, dim)) continue;
        list[0] = v.at;
        memcpy(list + 1, v.step, ATTENTION_RANK * sizeof *list);
        if (turned) list[4] = v.step[4], list[5] = v.step[3];
        f->input[f->n_inputs++] = v.base;
        return 1;
    }
    return 0;
}

/* Plans the fused node of the pattern into *f; 0: an input's layout does not fit. */
static int plan_of(const struct cnr_graph *g, int32_t index, const pattern *p, fused *f) {
    const cnr_node *node = ops_host->graph_node_at(g, index, NULL, NULL);
    const cnr_tensor *y = node->outputs[0];
    const cnr_tensor *q = ops_host->graph_type(g, p->input[ATTENTION_Q]);
    const int64_t m = p->inner.dim[p->inner.rank - 2], n = p->inner.dim[p->inner.rank - 1];
    const int64_t e = q->dim[q->rank - 1], d = y->dim[y->rank - 1];
    const int64_t rest[] = {m, n, e, d};
    if (m < 1 || n < 1 || e < 1 || d < 1 || !batch_of(p, f)) return 0;
    if (p->outer.dim[p->outer.rank - 1] != n || cnr_count(y) / d != cnr_count(&p->outer) / n)
        return 0;
    memcpy(f->sizes + ATTENTION_BATCH, rest, sizeof rest);
    for (int32_t i = 0; i < ATTENTION_RANK; i++) f->perm[i] = i;
    if (!take(g, p, ATTENTION_Q, &p->inner, m, e, 0, f) ||
        !take(g, p, ATTENTION_K, &p->inner, n, e, 1, f) ||
        !take(g, p, ATTENTION_V, &p->outer, n, d, 0, f))
        return 0;
    for (int32_t i = 0; i < p->n_biases; i++)
        if (!take(g, p, ATTENTION_BIAS + i, &p->at[i], m, n, 0, f)) return 0;
    return 1;
}

/* The transpose that alone reads value `y`, if its axes, those of size 1 apart, are the five of
 * the node; NULL: none. Writes the order of the axes. */
static const cnr_node *turned_by(const struct cnr_graph *g, cnr_value y, fused *f, cnr_value *out) {
    const cnr_tensor *t = ops_host->graph_type(g, y);
    int32_t perm[CNR_MAX_RANK], own[CNR_MAX_RANK], used = 0, n = 0;
    const int64_t size[] = {f->sizes[0], f->sizes[1], f->sizes[2], f->sizes[3], f->sizes[6]};
    int32_t at = ATTENTION_RANK - 1;
    if (!is_inner(g, y)) return NULL;
    for (int32_t i = t->rank - 1; i >= 0; i--) { /* the node's axis for each of y's; -1: size 1 */
        own[i] = -1;
        if (t->dim[i] == 1) continue;
        while (at >= 0 && size[at] == 1) at--;
        if (at < 0 || size[at] != t->dim[i]) return NULL;
        used |= 1 << at;
        own[i] = at--;
    }
    const cnr_node *node = NULL;
    for (int32_t i = 0; i < ops_host->graph_node_count(g) && !node; i++) {
        const cnr_value *in, *outputs;
        const cnr_node *reader = ops_host->graph_node_at(g, i, &in, &outputs);
        if (kit_is(reader, "transpose") && in[0] == y) node = reader, *out = outputs[0];
    }
    if (!node) return NULL;
    move_perm(node, t->rank, perm);
    for (int32_t i = 0; i < ATTENTION_RANK; i++)
        if (!(used >> i & 1)) f->perm[n++] = i;
    for (int32_t i = 0; i < t->rank; i++)
        if (own[perm[i]] >= 0) f->perm[n++] = own[perm[i]];
    return node;
}

/* Replaces the pattern that ends at node `index` by the fused node. */
static cnr_status fuse(struct cnr_graph *g, int32_t index, const pattern *p, fused *f) {
    const cnr_value *outputs;
    ops_host->graph_node_at(g, index, NULL, &outputs);
    cnr_value old = outputs[0], made = -1;
    turned_by(g, old, f, &old);
    const cnr_tensor type = *ops_host->graph_type(g, old);
    const cnr_attr scale = kit_attr_float("scale", p->scale),
                   sizes = kit_attr_ints("sizes", f->sizes, CNR_ROWS(f->sizes)),
                   views = kit_attr_ints("views", f->views, 6 * f->n_inputs),
                   perm = kit_attr_ints("perm", f->perm, ATTENTION_RANK),
                   zero_rows = {.name = "zero_rows",
                                .type = CNR_ATTR_BOOL,
                                .set = 1,
                                .i = p->zero_rows};
    const cnr_attr *const attrs[] = {&scale, &sizes, &views, &perm, &zero_rows};
    kit_build b = {ops_host, g, CNR_OK};
    ops_host->graph_insert_before(g, index);
    CNR_TRY(ops_host->graph_node(g, "attention", NULL, NULL, f->input, f->n_inputs, attrs, 5, &made,
                                 1));
    const cnr_value y = kit_reshape(&b, made, &type);
    return b.status ? b.status : ops_host->graph_replace(g, old, y);
}

/* Nodes for what the operator does not have: biases of conditions, factors of q, sums of biases.
 * Returns how many. */
static int32_t prepare(kit_build *b, int32_t index, pattern *p) {
    int32_t n = 0;
    ops_host->graph_insert_before(b->graph, index);
    for (int32_t i = 0; i < p->n_biases; i++) {
        if (!p->condition[i]) continue;
        cnr_value *bias = &p->input[ATTENTION_BIAS + i];
        const cnr_value zero = kit_constant(b, CNR_f32, 0);
        const cnr_value low = kit_constant(b, CNR_f32, p->masks[i]);
        *bias = p->condition[i] > 0 ? kit_node3(b, "where", *bias, zero, low)
                                    : kit_node3(b, "where", *bias, low, zero);
        n++;
    }
    if (p->factor >= 0) {
        p->input[ATTENTION_Q] = kit_node2(b, "mul", p->input[ATTENTION_Q], p->factor);
        n++;
    }
    if (p->more >= 0) {
        cnr_value *bias = &p->input[ATTENTION_BIAS + p->more_of];
        *bias = kit_node2(b, "add", *bias, p->more);
        n++;
    }
    return n;
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < ops_host->graph_node_count(g); i++) {
        pattern p;
        fused f = {.n_inputs = 0}, tried = f;
        kit_build b = {ops_host, g, CNR_OK};
        if (!matches(g, i, &p) || !plan_of(g, i, &p, &tried)) continue;
        i += prepare(&b, i, &p);
        if (!b.status && !plan_of(g, i, &p, &f)) continue;
        if (!b.status) b.status = fuse(g, i, &p, &f);
        if (b.status)
            return ops_host->fail(err, b.status, ops_fuse_attention.name, "could not be applied");
        i += 2; /* the nodes that were put before this one, which may still be read by dead ones */
        changes++;
    }
    return changes;
}

const cnr_rewrite ops_fuse_attention = {
    .size = sizeof(cnr_rewrite),
    .order = 60,
    .name = "fuse-attention",
    .summary = "makes one node of the products and the softmax of attention",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE | CNR_REWRITE_PLAN,
    .example = ops_example_attention,
};
