/* Converts attention, rotary positions and recurrent layers into simpler nodes. The planner joins
 * the nodes of an attention again. */
#include "onnx.h"

#include <math.h>
#include <strings.h>

enum { HEADS = 1, ROWS = 2, COLUMNS = 3 }; /* axes of [batch, heads, rows, columns] */

static cnr_value input(const onnx_job *j, int32_t i) { return i < j->n_in ? j->in[i] : -1; }
/* Adds a node with one input and one attribute, a list of n numbers. */
static cnr_value with(onnx_job *j, const char *op, cnr_value x, const char *name,
                      const int64_t *values, int64_t n) {
    imp_attrs attrs = {.n = 0};
    imp_ints(&attrs, name, values, n);
    return onnx_step(j, op, &x, 1, &attrs);
}
/* Adds a reshape of x to n sizes. */
static cnr_value reshaped(onnx_job *j, cnr_value x, const int64_t *shape, int64_t n) {
    return with(j, "reshape", x, "shape", shape, n);
}
/* Adds a transpose of x. */
static cnr_value swapped(onnx_job *j, cnr_value x, const int64_t *perm, int64_t n) {
    return with(j, "transpose", x, "perm", perm, n);
}
/* Adds an axis of size 1 to x. */
static cnr_value at_axis(onnx_job *j, cnr_value x, int64_t axis) {
    return with(j, "unsqueeze", x, "axes", &axis, 1);
}
/* Adds a cast of x; returns x if it has the type. */
static cnr_value cast(onnx_job *j, cnr_value x, int32_t dtype) {
    imp_attrs attrs = {.n = 0};
    const cnr_tensor *t = imp_type(&j->net->imp, x);
    if (t && t->dtype == dtype) return x;
    imp_dtype(&attrs, "to", dtype);
    return onnx_step(j, "cast", &x, 1, &attrs);
}
/* Adds a constant number of that type. */
static cnr_value number(onnx_job *j, double value, int32_t dtype) {
    const float f = (float)value;
    return cast(j, onnx_constant(j, CNR_f32, &f, NULL, 0), dtype);
}
/* Adds a node of n inputs with an axis. */
static cnr_value along(onnx_job *j, const char *op, const cnr_value *in, int32_t n, int64_t axis) {
    imp_attrs attrs = {.n = 0};
    imp_int(&attrs, "axis", axis);
    return onnx_step(j, op, in, n, &attrs);
}

/* ---- attention ---- */

/* One attention: the operands as [batch, heads, rows, columns], and their sizes. */
typedef struct heads {
    cnr_value q, k, v, bias;  /* bias: added to the scores; -1: none */
    int64_t own, shared;      /* heads of q; of k and v, each for own / shared heads of q */
    int64_t rows, cols, size; /* of the scores; of a head */
    int64_t past;             /* rows of k that come from an earlier call */
    int32_t dtype, packed;    /* packed: the operands had three axes */
} heads;

/* Adds the split into heads: [batch, rows, heads * columns] to [batch, heads, rows, columns]. */
static cnr_value split(onnx_job *j, cnr_value x, int64_t count) {
    const cnr_value four = reshaped(j, x, (int64_t[]){0, 0, count, -1}, 4);
    return swapped(j, four, (int64_t[]){0, 2, 1, 3}, 4);
}

/* Size of an axis of x; negative: not known. */
static int64_t size_of(const onnx_job *j, cnr_value x, int32_t axis) {
    const cnr_tensor *t = imp_type(&j->net->imp, x);
    return t && axis < t->rank ? t->dim[axis] : -1;
}

/* Reads the operands; 0: they cannot be converted, which is told. */
static int operands(onnx_job *j, heads *h) {
    const cnr_tensor *q = imp_type(&j->net->imp, j->in[0]);
    cnr_value *const list[] = {&h->q, &h->k, &h->v};
    if (j->n_in < 3 || !q || (q->rank != 3 && q->rank != 4))
        return onnx_problem(j, "wants q, k and v with three or four axes%s", ""), 0;
    h->packed = q->rank == 3;
    h->dtype = q->dtype;
    h->own = h->packed ? onnx_int(j, "q_num_heads", 0) : q->dim[HEADS];
    h->shared = h->packed ? onnx_int(j, "kv_num_heads", 0) : size_of(j, j->in[1], HEADS);
    if (h->own < 1 || h->shared < 1 || h->own % h->shared)
        return onnx_problem(j, "its numbers of heads are unknown or do not fit%s", ""), 0;
    for (int i = 0; i < 3; i++)
        *list[i] = h->packed ? split(j, j->in[i], i ? h->shared : h->own) : j->in[i];
    h->rows = size_of(j, h->q, ROWS);
    h->size = size_of(j, h->q, COLUMNS);
    for (int i = 1; i < 3; i++) { /* earlier rows come first */
        const cnr_value before = input(j, 3 + i);
        if (before < 0) continue;
        h->past = size_of(j, before, ROWS);
        *list[i] = along(j, "concat", (cnr_value[]){before, *list[i]}, 2, ROWS);
    }
    h->cols = size_of(j, h->k, ROWS);
    if (h->rows < 0 || h->cols < 0 || h->size < 1)
        return onnx_problem(j, "the lengths of its sequences must be known%s", ""), 0;
    return 1;
}

/* Adds a bias of scores: 0 where the condition holds, minus infinity elsewhere. */
static cnr_value open_where(onnx_job *j, const heads *h, cnr_value condition) {
    const cnr_value parts[] = {condition, number(j, 0, h->dtype), number(j, -INFINITY, h->dtype)};
    return onnx_step(j, "where", parts, 3, NULL);
}

/* Adds `more` to the bias of the scores, h->bias. */
static void add_bias(onnx_job *j, heads *h, cnr_value more) {
    h->bias = h->bias < 0 ? more : onnx_step2(j, "add", h->bias, more);
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
static void mask(onnx_job *j, heads *h, cnr_value given) {
    const cnr_tensor *t = imp_type(&j->net->imp, given);
    if (!t || t->rank < 1) return onnx_problem(j, "its mask has no known axes%s", "");
    const int32_t rank = t->rank;
    const int64_t missing = h->cols - t->dim[rank - 1];
    cnr_value bias = t->dtype == CNR_bool ? open_where(j, h, given) : given;
    if (missing > 0 && t->dim[rank - 1] >= 0) {
        int64_t pads[2 * CNR_MAX_RANK] = {0};
        imp_attrs attrs = {.n = 0};
        pads[2 * rank - 1] = missing;
        imp_ints(&attrs, "pads", pads, 2 * rank);
        const cnr_value in[] = {bias, -1, number(j, -INFINITY, h->dtype)};
        bias = onnx_step(j, "pad", in, 3, &attrs);
    }
    add_bias(j, h, bias);
}

/* Closes the columns after row i + past; lengths: the number of valid columns of each sample, the
 * last of which belongs to the last row. */
static void causal(onnx_job *j, heads *h, cnr_value lengths) {
    const int64_t dim[] = {h->rows, h->cols};
    int64_t *ahead = (int64_t *)onnx_own(j, (size_t)(h->rows * h->cols) * sizeof *ahead);
    for (int64_t i = 0; ahead && i < h->rows * h->cols; i++)
        ahead[i] = i % h->cols - i / h->cols + (lengths < 0 ? -h->past : h->rows);
    if (!ahead) return;
    const cnr_value table = onnx_constant(j, CNR_i64, ahead, dim, 2);
    const int64_t zero = 0;
    const cnr_value most = lengths < 0 ? onnx_constant(j, CNR_i64, &zero, NULL, 0) : lengths;
    add_bias(j, h, open_where(j, h, onnx_step2(j, "less_or_equal", table, most)));
}

/* Closes the columns from each sample's length on. */
static void padding(onnx_job *j, heads *h, cnr_value lengths) {
    int64_t *column = (int64_t *)onnx_own(j, (size_t)h->cols * sizeof *column);
    for (int64_t i = 0; column && i < h->cols; i++) column[i] = i;
    if (!column) return;
    const cnr_value table = onnx_constant(j, CNR_i64, column, &h->cols, 1);
    add_bias(j, h, open_where(j, h, onnx_step2(j, "less", table, lengths)));
}

/* Sums all that closes columns. Returns 1 if a row may have none left. */
static int biases(onnx_job *j, heads *h) {
    const cnr_value given = input(j, 3);
    const cnr_tensor *t = imp_type(&j->net->imp, given);
    cnr_value lengths = input(j, 6);
    h->bias = -1;
    if (given >= 0) mask(j, h, given);
    if (lengths >= 0) lengths = reshaped(j, lengths, (int64_t[]){-1, 1, 1, 1}, 4);
    if (onnx_int(j, "is_causal", 0)) causal(j, h, lengths);
    else if (lengths >= 0) padding(j, h, lengths);
    return lengths >= 0 ||
           (given >= 0 && (!t || onnx_int(j, "is_causal", 0) || !leaves_columns(t)));
}

/* Gives the operands a fifth axis, so that each head of k and v meets all of q's that share it. */
static void share(onnx_job *j, heads *h) {
    const int64_t each = h->own / h->shared;
    const cnr_tensor *t = imp_type(&j->net->imp, h->bias);
    h->q = reshaped(j, h->q, (int64_t[]){0, h->shared, each, -1, h->size}, 5);
    h->k = at_axis(j, h->k, 2);
    h->v = at_axis(j, h->v, 2);
    if (!t || t->rank < 3) return;
    if (t->dim[t->rank - 3] == 1) h->bias = at_axis(j, h->bias, t->rank - 2);
    else if (t->rank == 3)
        h->bias = reshaped(j, h->bias, (int64_t[]){h->shared, each, -1, h->cols}, 4);
    else h->bias = reshaped(j, h->bias, (int64_t[]){0, h->shared, each, -1, h->cols}, 5);
}

/* Float of an attribute; `fallback`: there is none. */
static double float_of(const onnx_job *j, const char *name, double fallback) {
    const Onnx__AttributeProto *a = onnx_proto(j, name);
    return a && a->has_f ? (double)a->f : fallback;
}

/* Adds the softmax of the scores in the wanted precision, and returns it. stage[i]: the scores
 * after step i, see `qk_matmul_output_mode`. */
static cnr_value weights(onnx_job *j, const heads *h, int32_t last, cnr_value *stage) {
    const double cap = float_of(j, "softcap", 0);
    const int64_t wanted = onnx_int(j, "softmax_precision", 0);
    int64_t turn[] = {0, 1, 2, 3, 4};
    turn[last] = last - 1, turn[last - 1] = last;
    stage[0] = onnx_step2(j, "matmul", h->q, swapped(j, h->k, turn, last + 1));
    stage[0] = onnx_step2(j, "mul", stage[0],
                          number(j, float_of(j, "scale", 1 / sqrt((double)h->size)), h->dtype));
    stage[1] = stage[0];
    if (cap > 0) {
        const cnr_value by = number(j, cap, h->dtype);
        const cnr_value part = onnx_step2(j, "div", stage[0], by);
        stage[1] = onnx_step2(j, "mul", onnx_step(j, "tanh", &part, 1, NULL), by);
    }
    stage[2] = h->bias < 0 ? stage[1] : onnx_step2(j, "add", stage[1], h->bias);
    const int32_t exact = wanted ? onnx_dtype((int32_t)wanted) : h->dtype;
    const cnr_value scores = cast(j, stage[2], exact);
    return stage[3] = cast(j, along(j, "softmax", &scores, 1, last), h->dtype);
}

/* Adds x, with zeros in the rows that the bias leaves no column to. */
static cnr_value closed_rows(onnx_job *j, const heads *h, cnr_value x) {
    const int64_t last = -1;
    const cnr_value most = with(j, "reduce_max", h->bias, "axes", &last, 1);
    const cnr_value some = onnx_step2(j, "greater", most, number(j, -INFINITY, h->dtype));
    return onnx_step(j, "where", (cnr_value[]){some, x, number(j, 0, h->dtype)}, 3, NULL);
}

/* Attention of operator sets 23 and 24. Scores are scaled once, where ONNX scales q and k by the
 * root of the factor. */
void onnx_attention(onnx_job *j) {
    heads h = {.bias = -1};
    cnr_value stage[4];
    const int64_t mode = onnx_int(j, "qk_matmul_output_mode", 0);
    if (!operands(j, &h)) return;
    j->out[1] = h.k, j->out[2] = h.v;
    const int empty = biases(j, &h), shared = h.own != h.shared;
    if (j->failed) return;
    if (shared) share(j, &h);
    cnr_value y = weights(j, &h, shared ? 4 : 3, stage);
    y = onnx_step2(j, "matmul", y, h.v);
    if (empty) y = closed_rows(j, &h, y);
    if (j->n_out > 3) {
        if (mode < 0 || mode > 3)
            return onnx_problem(j, "qk_matmul_output_mode is not 0 to 3%s", "");
        j->out[3] = mode == 3 && empty ? closed_rows(j, &h, stage[3]) : stage[mode];
        if (shared) j->out[3] = reshaped(j, j->out[3], (int64_t[]){0, h.own, -1, h.cols}, 4);
    }
    if (shared) y = reshaped(j, y, (int64_t[]){0, h.own, h.rows, -1}, 4);
    if (h.packed) {
        y = swapped(j, y, (int64_t[]){0, 2, 1, 3}, 4);
        y = reshaped(j, y, (int64_t[]){0, 0, -1}, 3);
    }
    j->out[0] = y;
    j->done = 1;
}

/* ---- rotary positions ---- */

/* Adds every `step`-th column of x from `from` to `to`. */
static cnr_value columns(onnx_job *j, cnr_value x, int64_t from, int64_t to, int64_t step) {
    const int64_t axis = COLUMNS;
    imp_attrs attrs = {.n = 0};
    imp_ints(&attrs, "starts", &from, 1);
    imp_ints(&attrs, "ends", &to, 1);
    imp_ints(&attrs, "axes", &axis, 1);
    imp_ints(&attrs, "steps", &step, 1);
    return onnx_step(j, "slice", &x, 1, &attrs);
}

/* Adds the cosines or sines (input i) of each position, with an axis for the heads. */
static cnr_value angles(onnx_job *j, int32_t i, int64_t axis) {
    const cnr_value rows = input(j, 3);
    const cnr_value table =
        rows < 0 ? j->in[i] : along(j, "gather", (cnr_value[]){j->in[i], rows}, 2, 0);
    return at_axis(j, table, axis);
}

/* Adds x with pairs of columns turned by the angles; the pairs are neighbours, or lie half a row
 * apart. */
static cnr_value turned(onnx_job *j, cnr_value x, int64_t size, int64_t axis) {
    const int beside = onnx_int(j, "interleaved", 0) != 0;
    const cnr_value a = beside ? columns(j, x, 0, size, 2) : columns(j, x, 0, size / 2, 1);
    const cnr_value b = beside ? columns(j, x, 1, size, 2) : columns(j, x, size / 2, size, 1);
    const cnr_value cosine = angles(j, 1, axis), sine = angles(j, 2, axis);
    cnr_value both[] = {onnx_step2(j, "sub", onnx_step2(j, "mul", a, cosine),
                                   onnx_step2(j, "mul", b, sine)),
                        onnx_step2(j, "add", onnx_step2(j, "mul", a, sine),
                                   onnx_step2(j, "mul", b, cosine))};
    if (!beside) return along(j, "concat", both, 2, COLUMNS);
    for (int i = 0; i < 2; i++) both[i] = at_axis(j, both[i], COLUMNS + 1);
    return reshaped(j, along(j, "concat", both, 2, COLUMNS + 1), (int64_t[]){0, 0, 0, size}, 4);
}

/* RotaryEmbedding of operator set 23: its algorithm is given in ONNX's text of the operator. */
void onnx_rotary(onnx_job *j) {
    const cnr_tensor *t = imp_type(&j->net->imp, j->in[0]);
    const int64_t count = onnx_int(j, "num_heads", 0);
    if (j->n_in < 3 || !t || (t->rank != 3 && t->rank != 4) || (t->rank == 3 && count < 1))
        return onnx_problem(j, "wants four axes, or three and num_heads%s", "");
    const int packed = t->rank == 3;
    const int64_t whole = packed ? t->dim[2] / count : t->dim[3];
    const int64_t given = onnx_int(j, "rotary_embedding_dim", 0), size = given ? given : whole;
    if (whole < 1 || size > whole || size < 2 || size % 2)
        return onnx_problem(j, "the size of a head is unknown, odd or too small%s", "");
    cnr_value x = j->in[0];
    if (packed) x = reshaped(j, x, (int64_t[]){0, 0, count, whole}, 4);
    cnr_value y = turned(j, size < whole ? columns(j, x, 0, size, 1) : x, size, packed ? 2 : 1);
    if (size < whole)
        y = along(j, "concat", (cnr_value[]){y, columns(j, x, size, whole, 1)}, 2, COLUMNS);
    if (packed) y = reshaped(j, y, (int64_t[]){0, 0, -1}, 3);
    j->out[0] = y;
    j->done = 1;
}

/* ---- recurrent layers ---- */

/* Gives the outputs back with the batch first. */
static void batch_first(onnx_job *j) {
    static const int64_t all[] = {2, 0, 1, 3}, last[] = {1, 0, 2};
    for (int32_t i = 0; i < j->n_out; i++)
        if (j->out[i] >= 0 && j->node->output[i][0])
            j->out[i] = i ? swapped(j, j->out[i], last, 3) : swapped(j, j->out[i], all, 4);
}

/* Accepts the default activations only, also if they are written out. */
void onnx_recurrent(onnx_job *j) {
    static const char *const usual[] = {"sigmoid", "tanh", "tanh"};
    static const int64_t turn[] = {1, 0, 2};
    const Onnx__AttributeProto *list = onnx_proto(j, "activations");
    const size_t from = strcmp(j->op, "rnn") == 0, n = strcmp(j->op, "lstm") == 0 ? 3 : 2 - from;
    for (size_t i = 0; list && i < list->n_strings; i++) {
        const char *name = onnx_text(j, list->strings[i]);
        if (name && strcasecmp(name, usual[from + i % n]) != 0)
            onnx_problem(j, "activation %s is not supported", name);
    }
    if (!onnx_int(j, "layout", 0)) return;
    const int32_t turns[] = {0, 5, 6}; /* x and the first states */
    for (int i = 0; i < 3; i++)
        if (input(j, turns[i]) >= 0) j->in[turns[i]] = swapped(j, j->in[turns[i]], turn, 3);
    j->after = batch_first;
}
