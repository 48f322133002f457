/* Operators that work element by element. */
#include "job.h"

#include <stdio.h>

static const struct {
    const char *theirs, *ours;
} unary_names[] =
    {
        {"Relu", "relu"},         {"Relu6", "relu6"},
        {"Elu", "elu"},           {"Selu", "selu"},
        {"Sigmoid", "sigmoid"},   {"Tanh", "tanh"},
        {"Softplus", "softplus"}, {"Softsign", "softsign"},
        {"Exp", "exp"},           {"Log", "log"},
        {"Neg", "neg"},           {"Abs", "abs"},
        {"Sqrt", "sqrt"},         {"Reciprocal", "reciprocal"},
        {"Inv", "reciprocal"},    {"Floor", "floor"},
        {"Ceil", "ceil"},         {"Round", "round"},
        {"Sign", "sign"},         {"Erf", "erf"},
        {"Sin", "sin"},           {"Cos", "cos"},
        {"LogicalNot", "not"},
},
  binary_names[] = {
      {"Add", "add"},
      {"AddV2", "add"},
      {"Sub", "sub"},
      {"Mul", "mul"},
      {"RealDiv", "div"},
      {"Div", "div"},
      {"Maximum", "max"},
      {"Minimum", "min"},
      {"Pow", "pow"},
      {"Greater", "greater"},
      {"GreaterEqual", "greater_or_equal"},
      {"Less", "less"},
      {"LessEqual", "less_or_equal"},
      {"Equal", "equal"},
      {"LogicalAnd", "and"},
      {"LogicalOr", "or"},
};

/* One operand: it stays in the layout it has. */
void tf_apply(tf_job *j, const char *op, const tf_attrs *l) {
    if (j->in[0]->turned >= 0)
        tf_give(j, 0, -1, tf_step(j, op, j->name, &j->in[0]->turned, 1, l));
    else {
        const cnr_value x = tf_in_plain(j, 0);
        tf_give(j, 0, tf_step(j, op, j->name, &x, 1, l), -1);
    }
}

void tf_op_unary(tf_job *j) {
    for (size_t i = 0; i < sizeof unary_names / sizeof unary_names[0]; i++)
        if (strcmp(unary_names[i].theirs, j->op) == 0) return tf_apply(j, unary_names[i].ours, NULL);
}

void tf_op_leaky_relu(tf_job *j) {
    tf_attrs l = {.n = 0};
    tf_put_float(&l, "alpha", tf_attr_float(j, "alpha", 0.2));
    tf_apply(j, "leaky_relu", &l);
}

void tf_op_rsqrt(tf_job *j) {
    const cnr_value x = tf_in_plain(j, 0);
    const cnr_value root = tf_step(j, "sqrt", NULL, &x, 1, NULL);
    tf_give(j, 0, tf_step(j, "reciprocal", j->name, &root, 1, NULL), -1);
}

/* Operand k laid out for a turned partner: rank 4 turned, rank 1 along the channels, scalars as
 * they are; -1 when it can't be. */
static cnr_value beside_turned(tf_job *j, int32_t k) {
    int64_t d[CNR_MAX_RANK];
    const int32_t rank = tf_in_dims(j, k, d);
    if (rank == 4) return tf_in_turned(j, k);
    if (rank == 0) return tf_in_plain(j, k);
    if (rank != 1) return -1;
    const int64_t axes[] = {1, 2};
    tf_attrs l = {.n = 0};
    tf_put_ints(&l, "axes", axes, 2);
    const cnr_value v = tf_in_plain(j, k);
    return d[0] == 1 ? v : tf_step(j, "unsqueeze", NULL, &v, 1, &l);
}

static void binary_op(tf_job *j, const char *op) {
    if (j->n_in != 2) return tf_problem(j, "two inputs are wanted");
    if (j->in[0]->turned >= 0 || j->in[1]->turned >= 0) {
        int64_t a[CNR_MAX_RANK], b[CNR_MAX_RANK];
        const int32_t ra = tf_in_dims(j, 0, a), rb = tf_in_dims(j, 1, b);
        const int fits = (ra == 4 || ra <= 1) && (rb == 4 || rb <= 1) && ra >= 0 && rb >= 0;
        if (fits) {
            const cnr_value in[] = {beside_turned(j, 0), beside_turned(j, 1)};
            return tf_give(j, 0, -1, tf_step(j, op, j->name, in, 2, NULL));
        }
    }
    tf_give(j, 0,
            tf_step(j, op, j->name, (cnr_value[]){tf_in_plain(j, 0), tf_in_plain(j, 1)}, 2, NULL),
            -1);
}

void tf_op_binary(tf_job *j) {
    for (size_t i = 0; i < sizeof binary_names / sizeof binary_names[0]; i++)
        if (strcmp(binary_names[i].theirs, j->op) == 0) return binary_op(j, binary_names[i].ours);
}

void tf_op_squared(tf_job *j) {
    const int t = j->in[0]->turned >= 0;
    const cnr_value x = t ? j->in[0]->turned : tf_in_plain(j, 0);
    cnr_value y;
    if (strcmp(j->op, "Square") == 0)
        y = tf_step(j, "mul", j->name, (cnr_value[]){x, x}, 2, NULL);
    else { /* SquaredDifference */
        const cnr_value d =
            tf_step(j, "sub", NULL, (cnr_value[]){tf_in_plain(j, 0), tf_in_plain(j, 1)}, 2, NULL);
        return tf_give(j, 0, tf_step(j, "mul", j->name, (cnr_value[]){d, d}, 2, NULL), -1);
    }
    tf_give(j, 0, t ? -1 : y, t ? y : -1);
}

void tf_op_add_n(tf_job *j) {
    cnr_value in[TF_MAX_IN];
    for (int32_t i = 0; i < j->n_in; i++) in[i] = tf_in_plain(j, i);
    tf_give(j, 0, tf_step(j, "sum", j->name, in, j->n_in, NULL), -1);
}

void tf_op_pass(tf_job *j) {
    *j->entry->out = *j->in[0];
}

void tf_op_cast(tf_job *j) {
    const Tf__AttrValue *a = tf_attr(j, "DstT");
    tf_attrs l = {.n = 0};
    tf_put(&l, "to", CNR_ATTR_DTYPE)->i = a ? tf_dtype(a->type) : 0;
    if (!l.at[0].i) return tf_problem(j, "its data type is not supported");
    tf_apply(j, "cast", &l);
}

void tf_op_select_op(tf_job *j) {
    tf_give(j, 0,
            tf_step(j, "where", j->name,
                    (cnr_value[]){tf_in_plain(j, 0), tf_in_plain(j, 1), tf_in_plain(j, 2)}, 3,
                    NULL),
            -1);
}

/* value = min + (max - min) / 255 * stored: the 8-bit range over [min, max] */
void tf_op_dequantize(tf_job *j) {
    if (tf_attr(j, "mode") && !tf_attr_is(j, "mode", "MIN_COMBINED") &&
        !tf_attr_is(j, "mode", "MIN_FIRST"))
        return tf_problem(j, "only the modes MIN_COMBINED and MIN_FIRST are supported");
    const cnr_value q = tf_in_plain(j, 0), lo = tf_in_plain(j, 1), hi = tf_in_plain(j, 2);
    const cnr_tensor *t = q < 0 ? NULL : tf_host->graph_type(j->net->graph, q);
    if (!t || (t->dtype != CNR_u8 && t->dtype != CNR_i8)) return tf_problem(j, "8 bits are wanted");
    const float steps = 255, half = 128;
    tf_attrs f = {.n = 0};
    tf_put(&f, "to", CNR_ATTR_DTYPE)->i = CNR_f32;
    cnr_value x = tf_step(j, "cast", NULL, &q, 1, &f);
    if (t->dtype == CNR_i8)
        x = tf_step(j, "add", NULL, (cnr_value[]){x, tf_constant_f32(j, &half, 1, 0)}, 2, NULL);
    cnr_value range = tf_step(j, "sub", NULL, (cnr_value[]){hi, lo}, 2, NULL);
    range =
        tf_step(j, "div", NULL, (cnr_value[]){range, tf_constant_f32(j, &steps, 1, 0)}, 2, NULL);
    x = tf_step(j, "mul", NULL, (cnr_value[]){x, range}, 2, NULL);
    tf_give(j, 0, tf_step(j, "add", j->name, (cnr_value[]){x, lo}, 2, NULL), -1);
}

void (*tf_elementwise(const char *op, int32_t *min_in))(tf_job *) {
    *min_in = 1;
    for (size_t i = 0; i < sizeof unary_names / sizeof unary_names[0]; i++)
        if (strcmp(unary_names[i].theirs, op) == 0) return tf_op_unary;
    *min_in = 2;
    for (size_t i = 0; i < sizeof binary_names / sizeof binary_names[0]; i++)
        if (strcmp(binary_names[i].theirs, op) == 0) return tf_op_binary;
    return NULL;
}
