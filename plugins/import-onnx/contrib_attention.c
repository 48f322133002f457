/* Converts attention and rotary positions of the domain com.microsoft, as ONNX Runtime's
 * ContribOperators.md describes them, by the parts of attention.c. */
#include "heads.h"

#include <math.h>

/* Whether a later input is given. */
static int is_given(const onnx_job *j, int32_t i) { return onnx_input(j, i) >= 0; }

/* Reads factor and limit of the scores; a factor of 0 is the default. */
static void factors(onnx_job *j, onnx_heads *h) {
    h->scale = onnx_float(j, "scale", 0);
    if (h->scale == 0) h->scale = 1 / sqrt((double)h->size);
    h->cap = onnx_float(j, "softcap", 0);
}

/* Adds a mask of whole numbers, 0: closed; or the lengths of the samples, if it has one axis. */
static void mask(onnx_job *j, onnx_heads *h, cnr_value given, int64_t batch) {
    const cnr_tensor *t = imp_type(&j->net->imp, given);
    const double closed = onnx_float(j, "mask_filter_value", -10000);
    if (!t || t->rank < 1 || t->rank > 3)
        return onnx_problem(j, "its mask has not one to three axes%s", "");
    if (t->rank == 1) {
        if (t->dim[0] >= 0 && batch >= 0 && t->dim[0] != batch)
            return onnx_problem(j, "a mask of starts or sums of lengths is not supported%s", "");
        const cnr_value lengths = onnx_reshaped(j, given, (int64_t[]){-1, 1, 1, 1}, 4);
        return onnx_padding(j, h, onnx_cast(j, lengths, CNR_i64), closed);
    }
    const int32_t rank = t->rank, dtype = t->dtype;
    const cnr_value some = onnx_step2(j, "greater", given, onnx_number(j, 0, dtype));
    const cnr_value rows = rank == 2 ? onnx_at_axis(j, some, 1) : some;
    onnx_open_where(j, h, onnx_at_axis(j, rows, 1), closed);
}

/* Adds the output and what earlier steps kept, with this one's. */
static void finish(onnx_job *j, onnx_heads *h) {
    if (j->failed) return;
    factors(j, h);
    j->out[1] = h->k, j->out[2] = h->v;
    j->out[0] = onnx_heads_output(j, h, 0, NULL);
    j->done = 1;
}

/* ---- Attention ---- */

/* Splits the product of input and weights into q, k and v. */
static int projected(onnx_job *j, onnx_heads *h) {
    const Onnx__AttributeProto *sizes = onnx_proto(j, "qkv_hidden_sizes");
    cnr_value all = onnx_step2(j, "matmul", j->in[0], j->in[1]), *list[] = {&h->q, &h->k, &h->v};
    const int64_t columns = onnx_size_of(j, j->in[1], 1);
    if (columns < 1 || (sizes && sizes->n_ints != 3))
        return onnx_problem(j, "the size of its weights is unknown%s", ""), 0;
    if (is_given(j, 2)) all = onnx_step2(j, "add", all, j->in[2]);
    for (int64_t i = 0, from = 0; i < 3; i++) {
        const int64_t n = sizes ? sizes->ints[i] : columns / 3;
        *list[i] = onnx_split_heads(j, onnx_part(j, all, 2, from, from + n, 1), h->own);
        from += n;
    }
    return 1;
}

void onnx_contrib_attention(onnx_job *j) {
    onnx_heads h = {.bias = -1, .packed = 1, .own = onnx_int(j, "num_heads", 0)};
    cnr_value before[] = {-1, -1};
    const cnr_tensor *x = imp_type(&j->net->imp, onnx_input(j, 0));
    if (j->n_in < 2 || !x || x->rank != 3 || h.own < 1)
        return onnx_problem(j, "wants an input of three axes, weights and num_heads%s", "");
    if (onnx_int(j, "do_rotary", 0) || onnx_int(j, "past_present_share_buffer", 0))
        return onnx_problem(j, "rotary positions or shared buffers are not supported%s", "");
    const int64_t batch = x->dim[0], first = 0;
    h.dtype = x->dtype;
    h.shared = h.own;
    if (!projected(j, &h)) return;
    for (int i = 0; i < 2 && is_given(j, 4); i++)
        before[i] =
            onnx_along(j, "gather",
                       (cnr_value[]){j->in[4], onnx_constant(j, CNR_i64, &(int64_t){i}, &first, 0)},
                       2, 0);
    if (!onnx_heads_sizes(j, &h, before[0], before[1])) return;
    if (is_given(j, 3)) mask(j, &h, j->in[3], batch);
    if (is_given(j, 5)) onnx_add_bias(j, &h, j->in[5]);
    if (onnx_int(j, "unidirectional", 0)) onnx_causal(j, &h, -1);
    finish(j, &h);
    if (j->failed || j->n_out < 2) return;
    const cnr_value both[] = {onnx_at_axis(j, h.k, 0), onnx_at_axis(j, h.v, 0)};
    j->out[1] = onnx_along(j, "concat", both, 2, 0);
}

/* ---- MultiHeadAttention ---- */

/* Adds part i of n that lie along axis 3 of x: [batch, rows, heads, n, columns]. */
static cnr_value unpacked(onnx_job *j, cnr_value x, int64_t i) {
    const cnr_value at = onnx_constant(j, CNR_i64, &i, NULL, 0);
    const cnr_value part = onnx_along(j, "gather", (cnr_value[]){x, at}, 2, 3);
    return onnx_swapped(j, part, (int64_t[]){0, 2, 1, 3}, 4);
}

/* Adds operand i (q, k, v) of one tensor each, with its part of the bias. */
static cnr_value operand(onnx_job *j, const onnx_heads *h, int32_t i) {
    const cnr_tensor *t = imp_type(&j->net->imp, j->in[i]);
    cnr_value x = j->in[i];
    if (t && t->rank == 4) return x;
    if (!t || t->rank != 3)
        return onnx_problem(j, "wants q, k and v of three or four axes%s", ""), -1;
    const int64_t n = t->dim[2], all = onnx_size_of(j, onnx_input(j, 3), 0);
    if (is_given(j, 3)) { /* q's part, k's, of the same size, and v's */
        if (n < 0 || all < 0) return onnx_problem(j, "its sizes must be known%s", ""), -1;
        const int64_t from = i < 2 ? i * n : all - n;
        x = onnx_step2(j, "add", x, onnx_part(j, j->in[3], 0, from, from + n, 1));
    }
    return onnx_split_heads(j, x, h->own);
}

/* Reads the operands in any of their forms. */
static void multi_operands(onnx_job *j, onnx_heads *h, int32_t rank) {
    const cnr_tensor *k = imp_type(&j->net->imp, onnx_input(j, 1));
    if ((rank == 5 || (k && k->rank == 5)) && is_given(j, 3))
        return onnx_problem(j, "a bias of packed operands is not supported%s", "");
    if (rank == 5) {
        h->q = unpacked(j, j->in[0], 0);
        h->k = unpacked(j, j->in[0], 1);
        h->v = unpacked(j, j->in[0], 2);
        return;
    }
    if (!k || (k->rank != 5 && !is_given(j, 2))) return onnx_problem(j, "wants k and v%s", "");
    const int packed = k->rank == 5;
    h->q = operand(j, h, 0);
    h->k = packed ? unpacked(j, j->in[1], 0) : operand(j, h, 1);
    h->v = packed ? unpacked(j, j->in[1], 1) : operand(j, h, 2);
}

void onnx_multi_head(onnx_job *j) {
    onnx_heads h = {.bias = -1, .packed = 1, .own = onnx_int(j, "num_heads", 0)};
    const cnr_tensor *q = imp_type(&j->net->imp, onnx_input(j, 0));
    if (!q || (q->rank != 3 && q->rank != 5) || h.own < 1)
        return onnx_problem(j, "wants an input of three or five axes, and num_heads%s", "");
    if (is_given(j, 8) || j->n_out > 3)
        return onnx_problem(j, "shared buffers and an output of scores are not supported%s", "");
    const int64_t batch = q->dim[0];
    h.dtype = q->dtype;
    h.shared = h.own;
    multi_operands(j, &h, q->rank);
    if (j->failed || !onnx_heads_sizes(j, &h, onnx_input(j, 6), onnx_input(j, 7))) return;
    if (is_given(j, 4)) mask(j, &h, j->in[4], batch);
    if (is_given(j, 5)) onnx_add_bias(j, &h, j->in[5]);
    if (onnx_int(j, "unidirectional", 0)) onnx_causal(j, &h, -1);
    finish(j, &h);
}

/* ---- rotary positions ---- */

/* Adds numbers of rows of x from `first` ([batch] or [1]) on: [batch or 1, rows]; rows: the axis of
 * x is ROWS. */
static cnr_value positions(onnx_job *j, cnr_value x, cnr_value first) {
    const cnr_value column = onnx_reshaped(j, onnx_cast(j, first, CNR_i64), (int64_t[]){-1, 1}, 2);
    return onnx_step2(j, "add", column, onnx_at_axis(j, onnx_counted(j, x), 0));
}

void onnx_contrib_rotary(onnx_job *j) {
    const cnr_tensor *x = imp_type(&j->net->imp, onnx_input(j, 0));
    const cnr_tensor *at = imp_type(&j->net->imp, onnx_input(j, 1));
    if (j->n_in != 4 || !x || !at || (x->rank != 3 && x->rank != 4))
        return onnx_problem(j, "wants an input of three or four axes, positions and tables%s", "");
    if (onnx_int(j, "is_packed_batching", 0) || onnx_float(j, "scale", 1) != 1)
        return onnx_problem(j, "packed samples and a scale are not supported%s", "");
    onnx_turn turn = {.cosine = j->in[2],
                      .sine = j->in[3],
                      .rows = j->in[1],
                      .size = onnx_int(j, "rotary_embedding_dim", 0),
                      .beside = onnx_int(j, "interleaved", 0) != 0};
    int64_t count = onnx_int(j, "num_heads", 0);
    const int64_t half = onnx_size_of(j, j->in[2], 1), packed = x->rank == 3;
    if (packed && count < 1 && half > 0) count = x->dim[2] / (2 * half);
    if (at->rank < 2) /* the first row's position; counted along ROWS */
        turn.rows = positions(j, packed ? onnx_at_axis(j, j->in[0], 0) : j->in[0], j->in[1]);
    j->out[0] = onnx_rotated(j, j->in[0], count, &turn);
    j->done = 1;
}

/* ---- GroupQueryAttention ---- */

/* Splits q, k and v, in one tensor or three. */
static int grouped_operands(onnx_job *j, onnx_heads *h) {
    cnr_value *list[] = {&h->q, &h->k, &h->v};
    const int packed = !is_given(j, 1);
    if (packed == is_given(j, 2)) return onnx_problem(j, "wants both k and v, or none%s", ""), 0;
    const int64_t columns = onnx_size_of(j, j->in[0], 2), heads = h->own + 2 * h->shared;
    if (packed && (columns < 1 || columns % heads))
        return onnx_problem(j, "the size of its heads must be known%s", ""), 0;
    for (int64_t i = 0, from = 0; i < 3; i++) {
        const int64_t n = i ? h->shared : h->own, to = from + columns / heads * n;
        *list[i] =
            onnx_split_heads(j, packed ? onnx_part(j, j->in[0], 2, from, to, 1) : j->in[i], n);
        from = to;
    }
    return 1;
}

/* Adds the number of rows that each sample has from earlier calls, [batch]: none in a first call,
 * whose rows are all that there are. */
static cnr_value earlier(onnx_job *j, const onnx_heads *h) {
    const cnr_value rows = onnx_row_count(j, h->q), one = onnx_number(j, 1, CNR_i64);
    const cnr_value lengths = onnx_reshaped(j, onnx_cast(j, j->in[5], CNR_i64), (int64_t[]){-1}, 1);
    const cnr_value first = onnx_step2(j, "equal", onnx_cast(j, j->in[6], CNR_i64), rows);
    const cnr_value rest = onnx_step2(j, "sub", onnx_step2(j, "add", lengths, one), rows);
    return onnx_step(j, "where", (cnr_value[]){first, onnx_number(j, 0, CNR_i64), rest}, 3, NULL);
}

/* Turns q and k by their positions: rows are counted from those of earlier calls on. */
static void rotate(onnx_job *j, onnx_heads *h, cnr_value first) {
    const onnx_turn turn = {.cosine = j->in[7],
                            .sine = j->in[8],
                            .rows = is_given(j, 9) ? j->in[9] : positions(j, h->q, first),
                            .size = 2 * onnx_size_of(j, j->in[7], 1),
                            .beside = onnx_int(j, "rotary_interleaved", 0) != 0};
    if (turn.size < 2) return onnx_problem(j, "the size of its tables must be known%s", "");
    h->q = onnx_rotated(j, h->q, 0, &turn);
    h->k = onnx_rotated(j, h->k, 0, &turn);
}

/* Closes columns of earlier calls that a sample has not, and columns after a row. Columns may stand
 * in any order. */
static void close_columns(onnx_job *j, onnx_heads *h, cnr_value first) {
    const cnr_value past = onnx_row_count(j, h->before), column = onnx_counted(j, h->k);
    const cnr_value length = onnx_reshaped(j, first, (int64_t[]){-1, 1, 1, 1}, 4);
    const cnr_value old = onnx_step2(j, "less", column, length);
    const cnr_value is_old = onnx_step2(j, "less", column, past);
    const cnr_value row = onnx_at_axis(j, onnx_counted(j, h->q), 1);
    const cnr_value own = onnx_step2(j, "less_or_equal", onnx_step2(j, "sub", column, past), row);
    onnx_open_where(j, h, onnx_step(j, "where", (cnr_value[]){is_old, old, own}, 3, NULL),
                    -INFINITY);
}

/* Refuses what is not converted. */
static int is_plain(onnx_job *j) {
    if (onnx_int(j, "local_window_size", -1) >= 0)
        return onnx_problem(j, "a window of keys is not supported%s", ""), 0;
    if (onnx_int(j, "smooth_softmax", 0) || is_given(j, 11))
        return onnx_problem(j, "a softmax with a sink is not supported%s", ""), 0;
    if (j->n_in > 12 || j->n_out > 3)
        return onnx_problem(j, "quantised keys and an output of scores are not supported%s", ""), 0;
    return 1;
}

void onnx_grouped_query(onnx_job *j) {
    onnx_heads h = {.bias = -1, .before = -1, .packed = 1};
    const cnr_tensor *q = imp_type(&j->net->imp, onnx_input(j, 0));
    h.own = onnx_int(j, "num_heads", 0);
    h.shared = onnx_int(j, "kv_num_heads", 0);
    if (!q || q->rank != 3 || j->n_in < 7 || h.own < 1 || h.shared < 1 || h.own % h.shared)
        return onnx_problem(j, "wants q with three axes, lengths, and numbers of heads%s", "");
    if (!is_plain(j)) return;
    h.dtype = q->dtype;
    if (!grouped_operands(j, &h)) return;
    const cnr_value first = earlier(j, &h);
    if (onnx_int(j, "do_rotary", 0)) {
        if (!is_given(j, 7) || !is_given(j, 8))
            return onnx_problem(j, "tables of rotary positions are missing%s", "");
        rotate(j, &h, first);
    }
    const int64_t past = onnx_size_of(j, onnx_input(j, 3), ROWS);
    const int has_past = is_given(j, 3) && past != 0;
    if (j->failed || !onnx_heads_sizes(j, &h, has_past ? j->in[3] : -1, has_past ? j->in[4] : -1))
        return;
    if (is_given(j, 10)) onnx_add_bias(j, &h, j->in[10]);
    if (has_past) close_columns(j, &h, first);
    else onnx_causal(j, &h, -1);
    finish(j, &h);
}
