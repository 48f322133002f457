/* The two layouts of a value, and adding our nodes. */
#include "tensorflow.h"

#include <stdio.h>

cnr_value tf_node(tf_net *net, const char *op, const char *name, const cnr_value *in, int32_t n_in,
                  const imp_attrs *attrs) {
    char own[80];
    if (name) return imp_node(&net->b, op, name, "", in, n_in, attrs);
    /* a name that differs from those in the file */
    snprintf(own, sizeof own, "step%d.%.40s", (int)++net->n_made, op);
    return imp_node(&net->b, op, own, "", in, n_in, attrs);
}

/* Adds a transpose that moves channels to axis 1, or with to_front 0 to the end. */
static cnr_value transpose(tf_net *net, cnr_value v, int32_t rank, int to_front) {
    int64_t perm[CNR_MAX_RANK];
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i == 0 ? 0 : to_front ? (i == 1 ? rank - 1 : i - 1) : i == rank - 1 ? 1 : i + 1;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "perm", perm, rank);
    return tf_node(net, "transpose", NULL, &v, 1, &l);
}

cnr_value tf_plain(tf_net *net, tf_layouts *t) {
    if (t->plain < 0 && t->turned >= 0) t->plain = transpose(net, t->turned, t->rank, 0);
    return t->plain;
}

cnr_value tf_turned(tf_net *net, tf_layouts *t, int32_t rank) {
    const cnr_tensor *type = imp_type(&net->b, t->plain);
    if (type && type->dtype) rank = type->rank;
    if (t->turned < 0 && t->plain >= 0 && rank > 1) {
        t->turned = transpose(net, t->plain, rank, 1);
        t->rank = rank;
    }
    return t->turned;
}

int32_t tf_dims(const tf_net *net, const tf_layouts *t, int64_t dim[CNR_MAX_RANK]) {
    const cnr_tensor *type = imp_type(&net->b, t->plain >= 0 ? t->plain : t->turned);
    for (int32_t i = 0; i < CNR_MAX_RANK; i++) dim[i] = CNR_DIM_UNKNOWN;
    if (!type || !type->dtype) return t->turned >= 0 ? t->rank : -1;
    for (int32_t i = 0; i < type->rank; i++)
        dim[t->plain >= 0 || i == 0 ? i : i == 1 ? type->rank - 1 : i - 1] = type->dim[i];
    return type->rank;
}

const cnr_tensor *tf_known(const tf_net *net, const tf_layouts *t) {
    const cnr_tensor *type = imp_type(&net->b, t->plain);
    return type && type->dtype && type->flags & CNR_TENSOR_CONST && type->data ? type : NULL;
}
