/* Matrix products, local response normalisation, non-maximum suppression. */
#include "job.h"

/* Adds a transpose of input k that exchanges its last two axes; -1: its rank is unknown. */
static cnr_value exchanged(tf_job *j, int32_t k) {
    int64_t d[CNR_MAX_RANK], perm[CNR_MAX_RANK];
    const int32_t rank = tf_in_dims(j, k, d);
    const cnr_value x = tf_in_plain(j, k);
    imp_attrs l = {.n = 0};
    if (rank < 2) return tf_problem(j, "the rank of its inputs is not known, or below 2"), -1;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2;
    imp_ints(&l, "perm", perm, rank);
    return tf_step(j, "transpose", &x, 1, &l);
}

void tf_op_batch_mat_mul(tf_job *j) {
    const cnr_value a = tf_attr_bool(j, "adj_x") ? exchanged(j, 0) : tf_in_plain(j, 0);
    const cnr_value b = tf_attr_bool(j, "adj_y") ? exchanged(j, 1) : tf_in_plain(j, 1);
    tf_give(j, 0, tf_last(j, j->ours, (cnr_value[]){a, b}, 2, NULL));
}

void tf_op_lrn(tf_job *j) {
    const int64_t size = 2 * tf_attr_int(j, "depth_radius", 5) + 1;
    imp_attrs l = {.n = 0};
    imp_int(&l, "size", size);
    imp_float(&l, "alpha",
              tf_attr_float(j, "alpha", 1) * (double)size); /* our operator divides by the size */
    imp_float(&l, "beta", tf_attr_float(j, "beta", 0.5));
    imp_float(&l, "bias", tf_attr_float(j, "bias", 1));
    const cnr_value x = tf_turned(j->net, j->in[0], 4);
    tf_give_turned(j, 0, tf_last(j, "lrn", &x, 1, &l), 4);
}

/* boxes N x 4, scores N, maximum number, overlap, minimum score -> indices of the boxes kept */
void tf_op_non_max_suppression(tf_job *j) {
    const int64_t last = 2;
    imp_attrs l = {.n = 0};
    cnr_value in[5] = {tf_unsqueeze(j, tf_in_plain(j, 0), 0, 1),
                       tf_unsqueeze(j, tf_in_plain(j, 1), 0, 2),
                       tf_cast(j, tf_in_plain(j, 2), CNR_i64), -1, -1};
    if (j->n_in > 3) in[3] = tf_in_plain(j, 3);
    else in[3] = tf_scalar(j, tf_attr_float(j, "iou_threshold", 0.5));
    if (j->n_in > 4) in[4] = tf_in_plain(j, 4);
    const cnr_value rows = tf_step(j, "non_max_suppression", in, 5, NULL);
    /* rows of (picture, class, box) */
    const cnr_value pick[] = {rows, tf_vector(j, &last, 1, CNR_i64)};
    imp_int(&l, "axis", 1);
    cnr_value y = tf_step(j, "gather", pick, 2, &l);
    l.n = 0;
    const int64_t one = 1;
    imp_ints(&l, "axes", &one, 1);
    y = tf_step(j, "squeeze", &y, 1, &l);
    tf_give(j, 0, tf_cast(j, y, CNR_i32));
}
