/* Reductions, and index of maximum or minimum. */
#include "job.h"

/* Reads the known axes of input 1 into `axes`, and adds those of the layout used to l; 0: failed. A
 * picture with channels on axis 1 stays so (*turned) if the axes are kept, or if no channels or no
 * pixels remain, since then the order is the same. */
static int axes_of(tf_job *j, int64_t axes[CNR_MAX_RANK], int keep, imp_attrs *l, int *turned) {
    int64_t d[CNR_MAX_RANK];
    const int64_t n = tf_known_ints(j, 1, axes, CNR_MAX_RANK);
    const int32_t rank = tf_in_dims(j, 0, d);
    int64_t pixels = 0, channels = 0;
    if (n < 0) return 0;
    if (rank < 0) return tf_problem(j, "the rank of its input is not known"), 0;
    for (int64_t i = 0; i < n; i++) {
        axes[i] = tf_axis(axes[i], rank, 0);
        channels += axes[i] == rank - 1;
        pixels += axes[i] > 0 && axes[i] < rank - 1;
    }
    *turned = j->in[0]->turned >= 0 && (keep || channels || pixels == rank - 2);
    for (int64_t i = 0; i < n; i++) axes[i] = tf_axis(axes[i], rank, *turned);
    imp_ints(l, "axes", axes, n);
    imp_bool(l, "keepdims", keep);
    return n > 0 ? 1 : (tf_op_pass(j), 0);
}

/* 1 if reduced axes stay with size 1. */
static int keeps(const tf_job *j) {
    return tf_attr_bool(j, "keep_dims") || tf_attr_bool(j, "keepdims");
}

void tf_op_reduce(tf_job *j) {
    int64_t axes[2 * CNR_MAX_RANK];
    imp_attrs l = {.n = 0};
    int turned;
    const int keep = keeps(j);
    if (!axes_of(j, axes, keep, &l, &turned)) return;
    const cnr_value x = turned ? j->in[0]->turned : tf_in_plain(j, 0);
    tf_give_as(j, 0, tf_last(j, j->ours, &x, 1, &l), turned && keep, j->in[0]->rank);
}

/* Any and All as the maximum and the minimum of 0 and 1. */
void tf_op_any_all(tf_job *j) {
    int64_t axes[2 * CNR_MAX_RANK];
    imp_attrs l = {.n = 0};
    int turned;
    const int keep = keeps(j);
    if (!axes_of(j, axes, keep, &l, &turned)) return;
    const cnr_value x = tf_cast(j, turned ? j->in[0]->turned : tf_in_plain(j, 0), CNR_i32);
    const cnr_value y = tf_last(j, j->ours, &x, 1, &l);
    tf_give_as(j, 0, tf_cast(j, y, CNR_bool), turned && keep, j->in[0]->rank);
}

void tf_op_arg_max(tf_job *j) {
    int64_t axis[2 * CNR_MAX_RANK];
    imp_attrs l = {.n = 0};
    if (tf_known_ints(j, 1, axis, 1) != 1) return;
    imp_int(&l, "axis", axis[0]);
    imp_bool(&l, "keepdims", 0);
    const cnr_value x = tf_in_plain(j, 0), y = tf_last(j, j->ours, &x, 1, &l);
    const int32_t to = tf_attr_dtype(j, "output_type");
    tf_give(j, 0, to ? tf_cast(j, y, to) : y);
}

void tf_op_cum_sum(tf_job *j) {
    int64_t axis[2 * CNR_MAX_RANK];
    imp_attrs l = {.n = 0};
    if (tf_known_ints(j, 1, axis, 1) != 1) return;
    imp_int(&l, "axis", axis[0]);
    imp_bool(&l, "exclusive", tf_attr_bool(j, "exclusive"));
    imp_bool(&l, "reverse", tf_attr_bool(j, "reverse"));
    const cnr_value x = tf_in_plain(j, 0);
    tf_give(j, 0, tf_last(j, "cum_sum", &x, 1, &l));
}

void tf_op_top_k(tf_job *j) {
    cnr_value out[2] = {-1, -1};
    const cnr_value k = tf_cast(j, tf_in_plain(j, 1), CNR_i64);
    const cnr_value in[] = {tf_in_plain(j, 0), tf_unsqueeze(j, k, 0, 1)};
    imp_host->graph_node(j->net->b.graph, "top_k", j->name, j->net->b.path, in, 2, NULL, 0, out, 2);
    tf_give(j, 0, out[0]);
    tf_give(j, 1, tf_cast(j, out[1], CNR_i32));
}
