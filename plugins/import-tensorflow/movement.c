/* Operators that move elements, or compute shapes. */
#include "job.h"

enum { MOST = 2 * CNR_MAX_RANK };

/* Makes output 0 by one operator on input 0 in TensorFlow's layout. */
static void give_plain(tf_job *j, const char *op, const imp_attrs *l) {
    const cnr_value x = tf_in_plain(j, 0);
    tf_give(j, 0, tf_last(j, op, &x, 1, l));
}

/* Reshape. A single open size becomes -1; one that equals the input's axis at its index becomes
 * 0. */
void tf_op_reshape(tf_job *j) {
    tf_size sizes[CNR_MAX_RANK];
    int64_t shape[CNR_MAX_RANK], d[CNR_MAX_RANK];
    const int64_t n = tf_in_sizes(j, 1, sizes, CNR_MAX_RANK);
    const int32_t rank = tf_in_dims(j, 0, d);
    int open = 0, rest = 0, fits = n >= 0, zeros = 0;
    for (int64_t i = 0; i < n; i++) {
        open += !sizes[i].known;
        rest += sizes[i].known && sizes[i].value < 0;
        zeros += sizes[i].known && sizes[i].value == 0;
    }
    for (int64_t i = 0; i < n; i++) {
        const int copied = i < rank && sizes[i].value < CNR_DIM_UNKNOWN && sizes[i].value == d[i];
        shape[i] = sizes[i].known ? sizes[i].value : open == 1 && !rest ? -1 : 0;
        fits &= sizes[i].known || shape[i] == -1 || (copied && !zeros);
    }
    imp_attrs l = {.n = 0};
    imp_bool(&l, "allowzero", open < 2 && !(open && rest)); /* otherwise 0 copies */
    imp_ints(&l, "shape", shape, n);
    if (fits) return give_plain(j, "reshape", &l);
    const cnr_value in[] = {tf_in_plain(j, 0), tf_cast(j, tf_in_plain(j, 1), CNR_i64)};
    l.n = 0;
    imp_bool(&l, "allowzero", 1);
    tf_give(j, 0, tf_last(j, "reshape", in, 2, &l));
}

void tf_op_squeeze(tf_job *j) {
    int64_t n;
    const int64_t *axes = tf_attr_ints(j, "squeeze_dims", &n);
    imp_attrs l = {.n = 0};
    if (!n) axes = tf_attr_ints(j, "axis", &n);
    if (n) imp_ints(&l, "axes", axes, n);
    give_plain(j, "squeeze", &l);
}

void tf_op_expand_dims(tf_job *j) {
    int64_t axis[MOST];
    imp_attrs l = {.n = 0};
    if (tf_known_ints(j, 1, axis, 1) != 1) return;
    imp_ints(&l, "axes", axis, 1);
    give_plain(j, "unsqueeze", &l);
}

void tf_op_transpose(tf_job *j) {
    int64_t perm[MOST];
    const int64_t n = tf_known_ints(j, 1, perm, CNR_MAX_RANK);
    imp_attrs l = {.n = 0};
    if (n < 0) return;
    imp_ints(&l, "perm", perm, n);
    give_plain(j, "transpose", &l);
}

void tf_op_concat(tf_job *j) {
    /* Concat, the old version, has the axis first */
    const int first = strcmp(j->op, "Concat") == 0;
    const int32_t n = j->n_in - 1;
    int64_t axis[MOST], d[CNR_MAX_RANK];
    if (n < 1 || tf_known_ints(j, first ? 0 : n, axis, 1) != 1) return;
    const int32_t rank = tf_in_dims(j, first, d);
    int turned = rank > 0;
    for (int32_t i = 0; i < n; i++) turned &= j->in[i + first]->turned >= 0;
    for (int32_t i = 0; i < n; i++)
        j->scratch[i] = turned ? j->in[i + first]->turned : tf_in_plain(j, i + first);
    imp_attrs l = {.n = 0};
    imp_int(&l, "axis", tf_axis(axis[0], rank, turned));
    tf_give_as(j, 0, tf_last(j, "concat", j->scratch, n, &l), turned, rank);
}

void tf_op_pack(tf_job *j) {
    int64_t axis = tf_attr_int(j, "axis", 0);
    imp_attrs u = {.n = 0}, l = {.n = 0};
    imp_ints(&u, "axes", &axis, 1);
    imp_int(&l, "axis", axis);
    for (int32_t i = 0; i < j->n_in; i++) {
        const cnr_value v = tf_in_plain(j, i);
        j->scratch[i] = tf_step(j, "unsqueeze", &v, 1, &u);
    }
    tf_give(j, 0, tf_last(j, "concat", j->scratch, j->n_in, &l));
}

/* ---- borders ---- */

/* MirrorPad SYMMETRIC, which repeats the edge: gathers each axis by index. */
static void pad_symmetric(tf_job *j, const int64_t *p, int32_t rank) {
    int64_t d[CNR_MAX_RANK];
    int turned;
    cnr_value x = tf_in_any(j, 0, &turned);
    tf_in_dims(j, 0, d);
    for (int32_t i = 0; i < rank; i++) {
        const int64_t before = p[2 * i], after = p[2 * i + 1], n = before + d[i] + after;
        if (before == 0 && after == 0) continue;
        if (d[i] < 1 || d[i] > INT32_MAX || before < 0 || after < 0 || before > d[i] ||
            after > d[i])
            return tf_problem(j, "its border does not fit the sizes of its input, or they are not "
                                 "known");
        int64_t *at = (int64_t *)tf_block(j->net, (size_t)n * sizeof *at);
        if (!at) return;
        for (int64_t k = 0; k < n; k++) {
            const int64_t from = k - before;
            at[k] = from < 0 ? -1 - from : from < d[i] ? from : 2 * d[i] - 1 - from;
        }
        imp_attrs l = {.n = 0};
        imp_int(&l, "axis", tf_axis(i, rank, turned));
        x = tf_step(j, "gather", (cnr_value[]){x, tf_vector(j, at, n, CNR_i64)}, 2, &l);
    }
    tf_give_as(j, 0, x, turned, rank);
}

void tf_op_pad(tf_job *j) {
    int64_t p[MOST], pads[MOST], d[CNR_MAX_RANK];
    int turned;
    const int32_t rank = tf_in_dims(j, 0, d);
    const int64_t n = tf_known_ints(j, 1, p, MOST);
    if (n < 0) return;
    if (rank < 1 || n != 2 * rank) return tf_problem(j, "two paddings an axis are wanted");
    if (tf_attr_is(j, "mode", "SYMMETRIC")) return pad_symmetric(j, p, rank);
    const cnr_value x = tf_in_any(j, 0, &turned);
    for (int32_t i = 0; i < rank; i++) {
        const int64_t to = tf_axis(i, rank, turned);
        pads[to] = p[2 * i];
        pads[rank + to] = p[2 * i + 1];
    }
    imp_attrs l = {.n = 0};
    imp_ints(&l, "pads", pads, 2 * rank);
    if (tf_attr_is(j, "mode", "REFLECT")) imp_enum(&l, "mode", "reflect");
    const cnr_value in[] = {x, -1, j->n_in > 2 ? tf_in_plain(j, 2) : -1};
    tf_give_as(j, 0, tf_last(j, "pad", in, j->n_in > 2 ? 3 : 1, &l), turned, rank);
}

/* ---- shapes as values ---- */

/* Sets output 0, cast to the type of attribute out_type. */
static void give_integers(tf_job *j, cnr_value y) {
    const int32_t to = tf_attr_dtype(j, "out_type");
    tf_give(j, 0, tf_cast(j, y, to ? to : CNR_i32));
}

/* Converts Shape and Size. */
void tf_op_shape(tf_job *j) {
    const cnr_value x = tf_in_plain(j, 0);
    give_integers(j, tf_last(j, j->ours, &x, 1, NULL));
}

void tf_op_rank(tf_job *j) {
    int64_t d[CNR_MAX_RANK];
    const int32_t rank = tf_in_dims(j, 0, d);
    if (rank < 0) return tf_problem(j, "the rank of its input is not known");
    give_integers(j, tf_cast(j, tf_scalar(j, rank), CNR_i32));
}

void tf_op_range(tf_job *j) {
    const cnr_value in[] = {tf_in_plain(j, 0), tf_in_plain(j, 1), tf_in_plain(j, 2)};
    tf_give(j, 0, tf_last(j, "range", in, 3, NULL));
}

/* ---- repeats ---- */

/* Fill: inputs are shape, value. BroadcastTo: value, shape. */
void tf_op_expand(tf_job *j) {
    const int fill = strcmp(j->op, "Fill") == 0;
    const cnr_value in[] = {tf_in_plain(j, fill), tf_cast(j, tf_in_plain(j, !fill), CNR_i64)};
    tf_give(j, 0, tf_last(j, "expand", in, 2, NULL));
}

void tf_op_filled_like(tf_job *j) {
    const cnr_value x = tf_in_plain(j, 0), shape = tf_step(j, "shape", &x, 1, NULL);
    const cnr_tensor *t = imp_type(&j->net->b, x);
    const cnr_value one = tf_scalar(j, strcmp(j->op, "OnesLike") == 0);
    if (!t || !t->dtype) return tf_problem(j, "the type of its input is not known");
    const cnr_value in[] = {tf_cast(j, one, t->dtype), shape};
    tf_give(j, 0, tf_last(j, "expand", in, 2, NULL));
}

void tf_op_tile(tf_job *j) {
    int64_t repeats[MOST];
    const int64_t n = tf_known_ints(j, 1, repeats, CNR_MAX_RANK);
    imp_attrs l = {.n = 0};
    if (n < 0) return;
    imp_ints(&l, "repeats", repeats, n);
    give_plain(j, "tile", &l);
}

void tf_op_one_hot(tf_job *j) {
    imp_attrs l = {.n = 0}, c = {.n = 0};
    imp_int(&l, "axis", tf_attr_int(j, "axis", -1));
    imp_int(&c, "axis", 0);
    const cnr_value two[] = {tf_unsqueeze(j, tf_in_plain(j, 3), 0, 1),
                             tf_unsqueeze(j, tf_in_plain(j, 2), 0, 1)};
    const cnr_value in[] = {tf_in_plain(j, 0), tf_in_plain(j, 1), tf_step(j, "concat", two, 2, &c)};
    tf_give(j, 0, tf_last(j, "one_hot", in, 3, &l));
}
