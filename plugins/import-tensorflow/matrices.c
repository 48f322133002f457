/* Products of matrices, softmax, local response. */
#include "job.h"

#include <stdio.h>

void tf_op_mat_mul(tf_job *j) {
    tf_attrs l = {.n = 0};
    tf_put_bool(&l, "transA", tf_attr_bool(j, "transpose_a"));
    tf_put_bool(&l, "transB", tf_attr_bool(j, "transpose_b"));
    tf_give(j, 0,
            tf_step(j, "gemm", j->name, (cnr_value[]){tf_in_plain(j, 0), tf_in_plain(j, 1)}, 2, &l),
            -1);
}

void tf_op_batch_mat_mul(tf_job *j) {
    if (tf_attr_bool(j, "adj_x") || tf_attr_bool(j, "adj_y"))
        return tf_problem(j, "adj_x and adj_y are not supported");
    tf_give(
        j, 0,
        tf_step(j, "matmul", j->name, (cnr_value[]){tf_in_plain(j, 0), tf_in_plain(j, 1)}, 2, NULL),
        -1);
}

void tf_op_softmax(tf_job *j) {
    tf_attrs l = {.n = 0};
    const int t = j->in[0]->turned >= 0;
    tf_put_int(&l, "axis", t ? 1 : -1);
    tf_apply(j, strcmp(j->op, "LogSoftmax") == 0 ? "log_softmax" : "softmax", &l);
}

void tf_op_lrn(tf_job *j) {
    const int64_t radius = tf_attr_int(j, "depth_radius", 5), size = 2 * radius + 1;
    tf_attrs l = {.n = 0};
    tf_put_int(&l, "size", size);
    tf_put_float(&l, "alpha",
                 tf_attr_float(j, "alpha", 1) * (double)size); /* ours divides by the size */
    tf_put_float(&l, "beta", tf_attr_float(j, "beta", 0.5));
    tf_put_float(&l, "bias", tf_attr_float(j, "bias", 1));
    const cnr_value x = tf_in_turned(j, 0);
    tf_give(j, 0, -1, tf_step(j, "lrn", j->name, &x, 1, &l));
}
