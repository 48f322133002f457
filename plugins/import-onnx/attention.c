/* Converts Attention into simpler nodes, which the planner joins again. ONNX Runtime's own
 * attentions share its parts (contrib_attention.c). */
#include "heads.h"

#include <math.h>

/* Adds a node with one input and one attribute, a list of n numbers. */
static cnr_value with(onnx_job *j, const char *op, cnr_value x, const char *name,
                      const int64_t *values, int64_t n) {
    imp_attrs attrs = {.n = 0};
    imp_ints(&attrs, name, values, n);
    return onnx_step(j, op, &x, 1, &attrs);
}
cnr_value onnx_reshaped(onnx_job *j, cnr_value x, const int64_t *shape, int64_t n) {
    return with(j, "reshape", x, "shape", shape, n);
}
cnr_value onnx_swapped(onnx_job *j, cnr_value x, const int64_t *perm, int64_t n) {
    return with(j, "transpose", x, "perm", perm, n);
}
cnr_value onnx_at_axis(onnx_job *j, cnr_value x, int64_t axis) {
    return with(j, "unsqueeze", x, "axes", &axis, 1);
}
cnr_value onnx_cast(onnx_job *j, cnr_value x, int32_t dtype) {
    imp_attrs attrs = {.n = 0};
    const cnr_tensor *t = imp_type(&j->net->imp, x);
    if (t && t->dtype == dtype) return x;
    imp_dtype(&attrs, "to", dtype);
    return onnx_step(j, "cast", &x, 1, &attrs);
}
cnr_value onnx_number(onnx_job *j, double value, int32_t dtype) {
    const float f = (float)value;
    return onnx_cast(j, onnx_constant(j, CNR_f32, &f, NULL, 0), dtype);
}
cnr_value onnx_number_like(onnx_job *j, double value, cnr_value x) {
    const cnr_tensor *t = imp_type(&j->net->imp, x);
    return onnx_number(j, value, t ? t->dtype : CNR_f32);
}
cnr_value onnx_along(onnx_job *j, const char *op, const cnr_value *in, int32_t n, int64_t axis) {
    imp_attrs attrs = {.n = 0};
    imp_int(&attrs, "axis", axis);
    return onnx_step(j, op, in, n, &attrs);
}
cnr_value onnx_part(onnx_job *j, cnr_value x, int64_t axis, int64_t from, int64_t to,
                    int64_t step) {
    imp_attrs attrs = {.n = 0};
    imp_ints(&attrs, "starts", &from, 1);
    imp_ints(&attrs, "ends", &to, 1);
    imp_ints(&attrs, "axes", &axis, 1);
    imp_ints(&attrs, "steps", &step, 1);
    return onnx_step(j, "slice", &x, 1, &attrs);
}
int64_t onnx_size_of(const onnx_job *j, cnr_value x, int32_t axis) {
    const cnr_tensor *t = imp_type(&j->net->imp, x);
    return t && axis < t->rank ? t->dim[axis] : -1;
}
double onnx_float(const onnx_job *j, const char *name, double fallback) {
    const Onnx__AttributeProto *a = onnx_proto(j, name);
    return a && a->has_f ? (double)a->f : fallback;
}

/* ---- operands ---- */

cnr_value onnx_split_heads(onnx_job *j, cnr_value x, int64_t count) {
    const cnr_value four = onnx_reshaped(j, x, (int64_t[]){0, 0, count, -1}, 4);
    return onnx_swapped(j, four, (int64_t[]){0, 2, 1, 3}, 4);
}

int onnx_heads_sizes(onnx_job *j, onnx_heads *h, cnr_value keys, cnr_value values) {
    if (keys >= 0) h->k = onnx_along(j, "concat", (cnr_value[]){keys, h->k}, 2, ROWS);
    if (values >= 0) h->v = onnx_along(j, "concat", (cnr_value[]){values, h->v}, 2, ROWS);
    h->before = keys;
    h->rows = onnx_size_of(j, h->q, ROWS);
    h->size = onnx_size_of(j, h->q, COLUMNS);
    h->cols = onnx_size_of(j, h->k, ROWS);
    if (h->size < 1) return onnx_problem(j, "the size of its heads must be known%s", ""), 0;
    return 1;
}

/* Reads the operands; 0: they cannot be converted, which is told. */
static int operands(onnx_job *j, onnx_heads *h) {
    const cnr_tensor *q = imp_type(&j->net->imp, j->in[0]);
    cnr_value *const list[] = {&h->q, &h->k, &h->v};
    if (j->n_in < 3 || !q || (q->rank != 3 && q->rank != 4))
        return onnx_problem(j, "wants q, k and v with three or four axes%s", ""), 0;
    h->packed = q->rank == 3;
    h->dtype = q->dtype;
    h->own = h->packed ? onnx_int(j, "q_num_heads", 0) : q->dim[HEADS];
    h->shared = h->packed ? onnx_int(j, "kv_num_heads", 0) : onnx_size_of(j, j->in[1], HEADS);
    if (h->own < 1 || h->shared < 1 || h->own % h->shared)
        return onnx_problem(j, "its numbers of heads are unknown or do not fit%s", ""), 0;
    for (int i = 0; i < 3; i++)
        *list[i] = h->packed ? onnx_split_heads(j, j->in[i], i ? h->shared : h->own) : j->in[i];
    return onnx_heads_sizes(j, h, onnx_input(j, 4), onnx_input(j, 5));
}

/* ---- what closes columns ---- */

cnr_value onnx_row_count(onnx_job *j, cnr_value x) {
    imp_attrs attrs = {.n = 0};
    imp_int(&attrs, "start", ROWS);
    imp_int(&attrs, "end", ROWS + 1);
    return onnx_step(j, "shape", &x, 1, &attrs);
}

/* Adds a constant of one whole number. */
static cnr_value whole(onnx_job *j, int64_t value) {
    return onnx_constant(j, CNR_i64, &value, NULL, 0);
}

cnr_value onnx_counted(onnx_job *j, cnr_value x) {
    const int64_t n = onnx_size_of(j, x, ROWS);
    if (n < 0) { /* counted once the size is known */
        const int64_t first = 0;
        const cnr_value end = with(j, "squeeze", onnx_row_count(j, x), "axes", &first, 1);
        return onnx_step(j, "range", (cnr_value[]){whole(j, 0), end, whole(j, 1)}, 3, NULL);
    }
    int64_t *list = (int64_t *)onnx_own(j, (size_t)n * sizeof *list);
    for (int64_t i = 0; list && i < n; i++) list[i] = i;
    return list ? onnx_constant(j, CNR_i64, list, &n, 1) : -1;
}

void onnx_add_bias(onnx_job *j, onnx_heads *h, cnr_value more) {
    h->bias = h->bias < 0 ? more : onnx_step2(j, "add", h->bias, more);
}

/* Adds 0 where the condition holds, `closed` elsewhere. */
static cnr_value open_where(onnx_job *j, const onnx_heads *h, cnr_value condition, double closed) {
    const cnr_value parts[] = {condition, onnx_number(j, 0, h->dtype),
                               onnx_number(j, closed, h->dtype)};
    return onnx_step(j, "where", parts, 3, NULL);
}
void onnx_open_where(onnx_job *j, onnx_heads *h, cnr_value condition, double closed) {
    onnx_add_bias(j, h, open_where(j, h, condition, closed));
}

/* Whether each row of a mask that is known now leaves a column open. */
static int leaves_columns(const cnr_tensor *t) {
    const int64_t n = t->rank ? t->dim[t->rank - 1] : 0, count = cnr_count(t);
    if (!t->data || n < 1 || count < 1) return 0;
    for (int64_t row = 0; row < count; row += n) {
        int open = 0;
        for (int64_t i = row; i < row + n && !open; i++) {
            double v = 0;
            imp_host->elements_read(t->dtype, t->data, i, 1, 1, CNR_f64, &v);
            open = t->dtype == CNR_bool ? v != 0 : v > -INFINITY;
        }
        if (!open) return 0;
    }
    return 1;
}

/* A mask of truth values, or of numbers to add. Columns that a shorter one lacks are closed. */
static void mask(onnx_job *j, onnx_heads *h, cnr_value given) {
    const cnr_tensor *t = imp_type(&j->net->imp, given);
    if (!t || t->rank < 1) return onnx_problem(j, "its mask has no known axes%s", "");
    const int32_t rank = t->rank;
    const int64_t own = t->dim[rank - 1], missing = own < 0 || h->cols < 0 ? 0 : h->cols - own;
    cnr_value bias = t->dtype == CNR_bool ? open_where(j, h, given, -INFINITY) : given;
    if (missing > 0) {
        int64_t pads[2 * CNR_MAX_RANK] = {0};
        imp_attrs attrs = {.n = 0};
        pads[2 * rank - 1] = missing;
        imp_ints(&attrs, "pads", pads, 2 * rank);
        const cnr_value in[] = {bias, -1, onnx_number(j, -INFINITY, h->dtype)};
        bias = onnx_step(j, "pad", in, 3, &attrs);
    }
    onnx_add_bias(j, h, bias);
}

/* Adds the number of each column less that of each row, [rows, columns]. */
static cnr_value ahead(onnx_job *j, const onnx_heads *h) {
    const cnr_value row = onnx_at_axis(j, onnx_counted(j, h->q), 1);
    if (h->rows < 0 || h->cols < 0) return onnx_step2(j, "sub", onnx_counted(j, h->k), row);
    const int64_t dim[] = {h->rows, h->cols}, n = h->rows * h->cols;
    int64_t *list = (int64_t *)onnx_own(j, (size_t)n * sizeof *list);
    for (int64_t i = 0; list && i < n; i++) list[i] = i % h->cols - i / h->cols;
    return list ? onnx_constant(j, CNR_i64, list, dim, 2) : -1;
}

void onnx_causal(onnx_job *j, onnx_heads *h, cnr_value lengths) {
    const int64_t past = h->before < 0 ? 0 : onnx_size_of(j, h->before, ROWS);
    cnr_value most = past < 0 ? onnx_row_count(j, h->before) : whole(j, past);
    if (lengths >= 0) {
        const cnr_value rows = h->rows < 0 ? onnx_row_count(j, h->q) : whole(j, h->rows);
        most = onnx_step2(j, "sub", lengths, rows);
    }
    onnx_open_where(j, h, onnx_step2(j, "less_or_equal", ahead(j, h), most), -INFINITY);
}

void onnx_padding(onnx_job *j, onnx_heads *h, cnr_value lengths, double closed) {
    onnx_open_where(j, h, onnx_step2(j, "less", onnx_counted(j, h->k), lengths), closed);
}

/* Sums all that closes columns. Returns 1 if a row may have none left. */
static int biases(onnx_job *j, onnx_heads *h) {
    const cnr_value given = onnx_input(j, 3);
    const cnr_tensor *t = imp_type(&j->net->imp, given);
    cnr_value lengths = onnx_input(j, 6);
    h->bias = -1;
    if (given >= 0) mask(j, h, given);
    if (lengths >= 0) lengths = onnx_reshaped(j, lengths, (int64_t[]){-1, 1, 1, 1}, 4);
    if (onnx_int(j, "is_causal", 0)) onnx_causal(j, h, lengths);
    else if (lengths >= 0) onnx_padding(j, h, lengths, -INFINITY);
    return lengths >= 0 ||
           (given >= 0 && (!t || onnx_int(j, "is_causal", 0) || !leaves_columns(t)));
}

/* ---- from the scores to the output ---- */

/* Gives the operands a fifth axis, so that each head of k and v meets all of q's that share it. */
static void share(onnx_job *j, onnx_heads *h) {
    const int64_t each = h->own / h->shared;
    const cnr_tensor *t = imp_type(&j->net->imp, h->bias);
    h->q = onnx_reshaped(j, h->q, (int64_t[]){0, h->shared, each, -1, h->size}, 5);
    h->k = onnx_at_axis(j, h->k, 2);
    h->v = onnx_at_axis(j, h->v, 2);
    if (!t || t->rank < 3) return;
    if (t->dim[t->rank - 3] == 1) {
        h->bias = onnx_at_axis(j, h->bias, t->rank - 2);
        return;
    }
    if (h->cols < 0)
        return onnx_problem(j, "a bias of each head wants a known number of keys%s", "");
    if (t->rank == 3)
        h->bias = onnx_reshaped(j, h->bias, (int64_t[]){h->shared, each, -1, h->cols}, 4);
    else h->bias = onnx_reshaped(j, h->bias, (int64_t[]){0, h->shared, each, -1, h->cols}, 5);
}

/* Adds the softmax of the scores in the wanted precision, and returns it. stage[i]: the scores
 * after step i, see `qk_matmul_output_mode`. */
static cnr_value weights(onnx_job *j, const onnx_heads *h, int32_t last, cnr_value *stage) {
    const int64_t wanted = onnx_int(j, "softmax_precision", 0);
    int64_t turn[] = {0, 1, 2, 3, 4};
    turn[last] = last - 1, turn[last - 1] = last;
    stage[0] = onnx_step2(j, "matmul", h->q, onnx_swapped(j, h->k, turn, last + 1));
    stage[0] = onnx_step2(j, "mul", stage[0], onnx_number(j, h->scale, h->dtype));
    stage[1] = stage[0];
    if (h->cap > 0) {
        const cnr_value by = onnx_number(j, h->cap, h->dtype);
        const cnr_value part = onnx_step2(j, "div", stage[0], by);
        stage[1] = onnx_step2(j, "mul", onnx_step(j, "tanh", &part, 1, NULL), by);
    }
    stage[2] = h->bias < 0 ? stage[1] : onnx_step2(j, "add", stage[1], h->bias);
    const int32_t exact = wanted ? onnx_dtype((int32_t)wanted) : h->dtype;
    const cnr_value scores = onnx_cast(j, stage[2], exact);
    return stage[3] = onnx_cast(j, onnx_along(j, "softmax", &scores, 1, last), h->dtype);
}

/* Adds x, with zeros in the rows that the bias leaves no column to. */
static cnr_value closed_rows(onnx_job *j, const onnx_heads *h, cnr_value x) {
    const int64_t last = -1;
    const cnr_value most = with(j, "reduce_max", h->bias, "axes", &last, 1);
    const cnr_value some = onnx_step2(j, "greater", most, onnx_number(j, -INFINITY, h->dtype));
    return onnx_step(j, "where", (cnr_value[]){some, x, onnx_number(j, 0, h->dtype)}, 3, NULL);
}

cnr_value onnx_heads_output(onnx_job *j, onnx_heads *h, int empty, cnr_value *stage) {
    cnr_value own[4], *const all = stage ? stage : own;
    const int shared = h->own != h->shared;
    if (shared) share(j, h);
    cnr_value y = onnx_step2(j, "matmul", weights(j, h, shared ? 4 : 3, all), h->v);
    if (empty) y = closed_rows(j, h, y);
    if (empty && stage) stage[3] = closed_rows(j, h, stage[3]);
    if (shared)
        y = onnx_reshaped(j, y, (int64_t[]){0, h->own, -1, onnx_size_of(j, h->v, COLUMNS + 1)}, 4);
    if (!h->packed) return y;
    const int64_t columns = onnx_size_of(j, y, COLUMNS);
    y = onnx_swapped(j, y, (int64_t[]){0, 2, 1, 3}, 4);
    return onnx_reshaped(j, y, (int64_t[]){0, 0, columns < 0 ? -1 : h->own * columns}, 3);
}

/* Attention of operator sets 23 and 24. Scores are scaled once, where ONNX scales q and k by the
 * root of the factor. */
void onnx_attention(onnx_job *j) {
    onnx_heads h = {.bias = -1, .before = -1};
    cnr_value stage[4];
    const int64_t mode = onnx_int(j, "qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3) return onnx_problem(j, "qk_matmul_output_mode is not 0 to 3%s", "");
    if (!operands(j, &h)) return;
    h.scale = onnx_float(j, "scale", 1 / sqrt((double)h.size));
    h.cap = onnx_float(j, "softcap", 0);
    j->out[1] = h.k, j->out[2] = h.v;
    const int empty = biases(j, &h);
    if (j->failed) return;
    j->out[0] = onnx_heads_output(j, &h, empty, stage);
    if (j->n_out > 3) {
        j->out[3] = stage[mode];
        if (h.own != h.shared)
            j->out[3] = onnx_reshaped(j, j->out[3], (int64_t[]){0, h.own, -1, h.cols}, 4);
    }
    j->done = 1;
}
