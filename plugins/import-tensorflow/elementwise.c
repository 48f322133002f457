/* Element-wise operators. */
#include "job.h"

void tf_apply(tf_job *j, const char *op, const imp_attrs *l) {
    int turned;
    const cnr_value x = tf_in_any(j, 0, &turned);
    tf_give_as(j, 0, tf_last(j, op, &x, 1, l), turned, j->in[0]->rank);
}

/* Operand k for operands of `rank` with channels on axis 1: a vector is placed along the
 * channels. */
static cnr_value beside_turned(tf_job *j, int32_t k, int32_t rank) {
    int64_t d[CNR_MAX_RANK];
    const int32_t own = tf_in_dims(j, k, d);
    if (own == rank) return tf_turned(j->net, j->in[k], rank);
    return own == 1 ? tf_unsqueeze(j, tf_in_plain(j, k), 1, rank - 2) : tf_in_plain(j, k);
}

void tf_broadcast(tf_job *j, const char *op, int32_t n, const imp_attrs *l) {
    int64_t d[CNR_MAX_RANK];
    int32_t rank = 0;
    for (int32_t i = 0; i < n; i++)
        if (j->in[i]->turned >= 0) rank = j->in[i]->rank;
    for (int32_t i = 0; i < n && rank; i++) {
        const int32_t own = tf_in_dims(j, i, d);
        if (own != rank && own != 0 && own != 1) rank = 0; /* also if unknown */
    }
    for (int32_t i = 0; i < n; i++)
        j->scratch[i] = rank ? beside_turned(j, i, rank) : tf_in_plain(j, i);
    tf_give_as(j, 0, tf_last(j, op, j->scratch, n, l), rank != 0, rank);
}

void tf_op_unary(tf_job *j) { tf_apply(j, j->ours, NULL); }
void tf_op_binary(tf_job *j) { tf_broadcast(j, j->ours, 2, NULL); }
void tf_op_add_n(tf_job *j) { tf_broadcast(j, j->ours, j->n_in, NULL); }

void tf_op_leaky_relu(tf_job *j) {
    imp_attrs l = {.n = 0};
    imp_float(&l, "alpha", tf_attr_float(j, "alpha", 0.2));
    tf_apply(j, "leaky_relu", &l);
}

/* One of our operators with an additional step before or after it. */
void tf_op_shifted(tf_job *j) {
    int turned;
    cnr_value x = tf_in_any(j, 0, &turned), y;
    if (strcmp(j->op, "Log1p") == 0) {
        x = tf_step(j, "add", (cnr_value[]){x, tf_scalar(j, 1)}, 2, NULL);
        y = tf_last(j, j->ours, &x, 1, NULL);
    } else {
        x = tf_step(j, j->ours, &x, 1, NULL);
        if (strcmp(j->op, "Rsqrt") == 0) y = tf_last(j, "reciprocal", &x, 1, NULL);
        else if (strcmp(j->op, "Expm1") == 0)
            y = tf_last(j, "sub", (cnr_value[]){x, tf_scalar(j, 1)}, 2, NULL);
        else y = tf_last(j, "sub", (cnr_value[]){tf_scalar(j, 1), x}, 2, NULL); /* Erfc */
    }
    tf_give_as(j, 0, y, turned, j->in[0]->rank);
}

void tf_op_squared(tf_job *j) {
    int turned;
    if (j->n_in < 2) {
        const cnr_value x = tf_in_any(j, 0, &turned);
        return tf_give_as(j, 0, tf_last(j, "mul", (cnr_value[]){x, x}, 2, NULL), turned,
                          j->in[0]->rank);
    }
    tf_broadcast(j, "sub", 2, NULL);
    tf_layouts *y = j->entry->out; /* the difference, with the node's name */
    const cnr_value d = y->turned >= 0 ? y->turned : y->plain;
    tf_give_as(j, 0, tf_step(j, "mul", (cnr_value[]){d, d}, 2, NULL), y->turned >= 0, y->rank);
}

static cnr_value given(const tf_layouts *y) { return y->turned >= 0 ? y->turned : y->plain; }

void tf_op_not_equal(tf_job *j) {
    tf_broadcast(j, "equal", 2, NULL);
    const tf_layouts y = j->entry->out[0];
    const cnr_value same = given(&y);
    tf_give_as(j, 0, tf_step(j, "not", &same, 1, NULL), y.turned >= 0, y.rank);
}

void tf_op_mod(tf_job *j) {
    const cnr_tensor *t = imp_type(&j->net->b, tf_in_plain(j, 0));
    const int real = !t || t->dtype == CNR_f32 || t->dtype == CNR_f64 || t->dtype == CNR_f16;
    imp_attrs l = {.n = 0};
    if (strcmp(j->op, "FloorMod") != 0) {
        imp_bool(&l, "fmod", 1);
        return tf_broadcast(j, "mod", 2, &l);
    }
    if (!real) return tf_broadcast(j, "mod", 2, NULL);
    /* a - floor(a / b) * b */
    const cnr_value a = tf_in_plain(j, 0), b = tf_in_plain(j, 1);
    cnr_value q = tf_step(j, "div", (cnr_value[]){a, b}, 2, NULL);
    q = tf_step(j, "floor", &q, 1, NULL);
    q = tf_step(j, "mul", (cnr_value[]){q, b}, 2, NULL);
    tf_give(j, 0, tf_last(j, "sub", (cnr_value[]){a, q}, 2, NULL));
}

/* Rounds down; integers are first reduced to a multiple of the divisor. */
void tf_op_floor_div(tf_job *j) {
    const cnr_value a = tf_in_plain(j, 0), b = tf_in_plain(j, 1);
    const cnr_tensor *t = imp_type(&j->net->b, a);
    const int real = !t || t->dtype == CNR_f32 || t->dtype == CNR_f64 || t->dtype == CNR_f16;
    if (real) {
        const cnr_value q = tf_step(j, "div", (cnr_value[]){a, b}, 2, NULL);
        return tf_give(j, 0, tf_last(j, "floor", &q, 1, NULL));
    }
    cnr_value rest = tf_step(j, "mod", (cnr_value[]){a, b}, 2, NULL);
    rest = tf_step(j, "sub", (cnr_value[]){a, rest}, 2, NULL);
    tf_give(j, 0, tf_last(j, "div", (cnr_value[]){rest, b}, 2, NULL));
}

void tf_op_pass(tf_job *j) { *j->entry->out = *j->in[0]; }
void tf_op_identity_n(tf_job *j) {
    for (int32_t i = 0; i < j->n_in; i++) j->entry->out[i] = *j->in[i];
}

void tf_op_cast(tf_job *j) {
    const int32_t to = tf_attr_dtype(j, "DstT");
    imp_attrs l = {.n = 0};
    if (!to) return tf_problem(j, "its data type is not supported");
    imp_dtype(&l, "to", to);
    tf_apply(j, "cast", &l);
}

/* Select, the old version: its condition may be a vector that selects whole rows. */
void tf_op_select(tf_job *j) {
    int64_t d[CNR_MAX_RANK];
    const int32_t rank = tf_in_dims(j, 1, d);
    if (strcmp(j->op, "Select") != 0 || tf_in_dims(j, 0, d) != 1 || rank < 2)
        return tf_broadcast(j, j->ours, 3, NULL);
    const cnr_value in[] = {tf_unsqueeze(j, tf_in_plain(j, 0), 1, rank - 1), tf_in_plain(j, 1),
                            tf_in_plain(j, 2)};
    tf_give(j, 0, tf_last(j, j->ours, in, 3, NULL));
}

void tf_op_softmax(tf_job *j) {
    imp_attrs l = {.n = 0};
    imp_int(&l, "axis", j->in[0]->turned >= 0 ? 1 : -1);
    tf_apply(j, j->ours, &l);
}
