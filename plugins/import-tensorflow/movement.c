/* Operators that move or reduce elements. */
#include "job.h"

#include <stdio.h>

void tf_op_reshape(tf_job *j) {
    tf_attrs l = {.n = 0};
    tf_put_bool(&l, "allowzero", 1); /* TensorFlow has no "copy this dimension" */
    tf_attrs i64 = {.n = 0};
    tf_put(&i64, "to", CNR_ATTR_DTYPE)->i = CNR_i64;
    const cnr_value s = tf_in_plain(j, 1);
    const cnr_value shape = tf_step(j, "cast", NULL, &s, 1, &i64);
    tf_give(j, 0, tf_step(j, "reshape", j->name, (cnr_value[]){tf_in_plain(j, 0), shape}, 2, &l),
            -1);
}

void tf_op_squeeze(tf_job *j) {
    const Tf__AttrValue *a = tf_attr(j, "squeeze_dims");
    if (!a || !a->list || !a->list->n_i) a = tf_attr(j, "axis");
    tf_attrs l = {.n = 0};
    if (a && a->list && a->list->n_i) tf_put_ints(&l, "axes", a->list->i, (int64_t)a->list->n_i);
    const cnr_value x = tf_in_plain(j, 0);
    tf_give(j, 0, tf_step(j, "squeeze", j->name, &x, 1, &l), -1);
}

void tf_op_expand_dims(tf_job *j) {
    int64_t axis;
    if (tf_known_ints(j, 1, &axis, 1) != 1) return;
    tf_attrs l = {.n = 0};
    tf_put_ints(&l, "axes", &axis, 1);
    const cnr_value x = tf_in_plain(j, 0);
    tf_give(j, 0, tf_step(j, "unsqueeze", j->name, &x, 1, &l), -1);
}

void tf_op_transpose(tf_job *j) {
    int64_t perm[CNR_MAX_RANK];
    const int64_t n = tf_known_ints(j, 1, perm, CNR_MAX_RANK);
    if (n < 0) return;
    tf_attrs l = {.n = 0};
    tf_put_ints(&l, "perm", perm, n);
    const cnr_value x = tf_in_plain(j, 0);
    tf_give(j, 0, tf_step(j, "transpose", j->name, &x, 1, &l), -1);
}

void tf_op_concat(tf_job *j) {
    const int first = strcmp(j->op, "Concat") == 0; /* the old one has the axis first */
    const int32_t n = j->n_in - 1;
    int64_t axis, d[CNR_MAX_RANK];
    cnr_value in[TF_MAX_IN];
    if (n < 1 || tf_known_ints(j, first ? 0 : n, &axis, 1) != 1) return;
    const int32_t rank = tf_in_dims(j, first, d);
    if (axis < 0) axis += rank;
    int all = rank == 4;
    for (int32_t i = 0; i < n; i++) all &= j->in[i + first]->turned >= 0;
    tf_attrs l = {.n = 0};
    tf_put_int(&l, "axis", all ? tf_turn_axis(axis) : axis);
    for (int32_t i = 0; i < n; i++)
        in[i] = all ? tf_in_turned(j, i + first) : tf_in_plain(j, i + first);
    const cnr_value y = tf_step(j, "concat", j->name, in, n, &l);
    tf_give(j, 0, all ? -1 : y, all ? y : -1);
}

void tf_op_split(tf_job *j) {
    const int sized = strcmp(j->op, "SplitV") == 0;
    int64_t axis, sizes[TF_MAX_OUTPUTS], n = tf_attr_int(j, "num_split", 1);
    cnr_value out[TF_MAX_OUTPUTS];
    if (n < 1 || n > TF_MAX_OUTPUTS || tf_known_ints(j, sized ? 2 : 0, &axis, 1) != 1) {
        if (!j->entry->failed) tf_problem(j, "num_split is out of range");
        return;
    }
    if (sized && tf_known_ints(j, 1, sizes, TF_MAX_OUTPUTS) != n) return;
    tf_attrs l = {.n = 0};
    tf_put_int(&l, "axis", axis);
    if (sized)
        tf_put_ints(&l, "split", sizes, n);
    else
        tf_put_int(&l, "num_outputs", n);
    const cnr_value x = tf_in_plain(j, sized ? 0 : 1);
    for (int64_t i = 0; i < n; i++) out[i] = -1;
    tf_host->graph_node(j->net->graph, "split", j->name, j->net->path, &x, 1, l.ptr, l.n, out,
                        (int32_t)n);
    for (int32_t i = 0; i < n; i++) tf_give(j, i, out[i], -1);
}

void tf_op_pad(tf_job *j) {
    int64_t p[2 * CNR_MAX_RANK], pads[2 * CNR_MAX_RANK], d[CNR_MAX_RANK];
    const int32_t rank = tf_in_dims(j, 0, d);
    if (rank < 1 || tf_known_ints(j, 1, p, 2 * CNR_MAX_RANK) != 2 * rank) {
        if (!j->entry->failed) tf_problem(j, "two paddings an axis are wanted");
        return;
    }
    const int t = rank == 4 && j->in[0]->turned >= 0;
    for (int32_t i = 0; i < rank; i++) {
        const int64_t to = t ? tf_turn_axis(i) : i;
        pads[to] = p[2 * i];
        pads[rank + to] = p[2 * i + 1];
    }
    tf_attrs l = {.n = 0};
    tf_put_ints(&l, "pads", pads, 2 * rank);
    if (tf_attr_is(j, "mode", "REFLECT"))
        tf_put_enum(&l, "mode", "reflect");
    else if (tf_attr(j, "mode") && tf_attr(j, "mode")->has_s)
        return tf_problem(j, "this mode is not supported");
    cnr_value in[3] = {t ? tf_in_turned(j, 0) : tf_in_plain(j, 0), -1, -1};
    int32_t n = 1;
    if (strcmp(j->op, "PadV2") == 0) in[2] = tf_in_plain(j, 2), n = 3;
    const cnr_value y = tf_step(j, "pad", j->name, in, n, &l);
    tf_give(j, 0, t ? -1 : y, t ? y : -1);
}

void tf_op_slice(tf_job *j) {
    int64_t begin[CNR_MAX_RANK], size[CNR_MAX_RANK], axes[CNR_MAX_RANK];
    const int64_t n = tf_known_ints(j, 1, begin, CNR_MAX_RANK);
    if (n < 0 || tf_known_ints(j, 2, size, CNR_MAX_RANK) != n) return;
    for (int64_t i = 0; i < n; i++) {
        axes[i] = i;
        size[i] = size[i] < 0 ? INT64_MAX : begin[i] + size[i];
    }
    tf_attrs l = {.n = 0};
    tf_put_ints(&l, "starts", begin, n);
    tf_put_ints(&l, "ends", size, n);
    tf_put_ints(&l, "axes", axes, n);
    const cnr_value x = tf_in_plain(j, 0);
    tf_give(j, 0, tf_step(j, "slice", j->name, &x, 1, &l), -1);
}

void tf_op_strided_slice(tf_job *j) {
    int64_t b[CNR_MAX_RANK], e[CNR_MAX_RANK], s[CNR_MAX_RANK], d[CNR_MAX_RANK];
    int64_t axes[CNR_MAX_RANK], starts[CNR_MAX_RANK], ends[CNR_MAX_RANK], steps[CNR_MAX_RANK];
    int64_t gone[CNR_MAX_RANK], n_gone = 0, k = 0;
    const int64_t n = tf_known_ints(j, 1, b, CNR_MAX_RANK);
    if (n < 0 || tf_known_ints(j, 2, e, CNR_MAX_RANK) != n ||
        tf_known_ints(j, 3, s, CNR_MAX_RANK) != n)
        return;
    const int64_t no_begin = tf_attr_int(j, "begin_mask", 0),
                  no_end = tf_attr_int(j, "end_mask", 0);
    const int64_t shrink = tf_attr_int(j, "shrink_axis_mask", 0);
    const int32_t rank = tf_in_dims(j, 0, d);
    if (tf_attr_int(j, "ellipsis_mask", 0) || tf_attr_int(j, "new_axis_mask", 0))
        return tf_problem(j, "ellipsis_mask and new_axis_mask are not supported");
    for (int64_t i = 0; i < n; i++, k++) {
        const int back = s[i] < 0;
        axes[k] = i;
        steps[k] = s[i];
        starts[k] = no_begin >> i & 1 ? (back ? INT64_MAX : 0) : b[i];
        ends[k] = no_end >> i & 1 ? (back ? INT64_MIN + 1 : INT64_MAX) : e[i];
        if (shrink >> i & 1) {
            starts[k] = b[i];
            ends[k] = b[i] == -1 ? INT64_MAX : b[i] + 1;
            steps[k] = 1;
            gone[n_gone++] = i;
        }
    }
    (void)rank;
    tf_attrs l = {.n = 0}, q = {.n = 0};
    tf_put_ints(&l, "starts", starts, k);
    tf_put_ints(&l, "ends", ends, k);
    tf_put_ints(&l, "axes", axes, k);
    tf_put_ints(&l, "steps", steps, k);
    tf_put_ints(&q, "axes", gone, n_gone);
    const cnr_value x = tf_in_plain(j, 0);
    cnr_value y = tf_step(j, "slice", n_gone ? NULL : j->name, &x, 1, &l);
    if (n_gone) y = tf_step(j, "squeeze", j->name, &y, 1, &q);
    tf_give(j, 0, y, -1);
}

void tf_op_pack(tf_job *j) {
    int64_t axis = tf_attr_int(j, "axis", 0);
    cnr_value in[TF_MAX_IN];
    tf_attrs u = {.n = 0}, l = {.n = 0};
    tf_put_ints(&u, "axes", &axis, 1);
    tf_put_int(&l, "axis", axis);
    for (int32_t i = 0; i < j->n_in; i++) {
        const cnr_value v = tf_in_plain(j, i);
        in[i] = tf_step(j, "unsqueeze", NULL, &v, 1, &u);
    }
    tf_give(j, 0, tf_step(j, "concat", j->name, in, j->n_in, &l), -1);
}

void tf_op_shape(tf_job *j) {
    const cnr_value x = tf_in_plain(j, 0);
    const Tf__AttrValue *a = tf_attr(j, "out_type");
    const int wide = a && a->type == 9;
    cnr_value y = tf_step(j, "shape", wide ? j->name : NULL, &x, 1, NULL);
    tf_attrs l = {.n = 0};
    tf_put(&l, "to", CNR_ATTR_DTYPE)->i = CNR_i32;
    if (!wide) y = tf_step(j, "cast", j->name, &y, 1, &l);
    tf_give(j, 0, y, -1);
}

void tf_op_gather(tf_job *j) {
    int64_t axis = 0;
    if (j->n_in > 2 && tf_known_ints(j, 2, &axis, 1) != 1) return;
    tf_attrs l = {.n = 0};
    tf_put_int(&l, "axis", axis);
    tf_give(
        j, 0,
        tf_step(j, "gather", j->name, (cnr_value[]){tf_in_plain(j, 0), tf_in_plain(j, 1)}, 2, &l),
        -1);
}

void tf_op_fill(tf_job *j) {
    tf_attrs l = {.n = 0};
    tf_put(&l, "to", CNR_ATTR_DTYPE)->i = CNR_i64;
    const cnr_value s = tf_in_plain(j, 0);
    const cnr_value size = tf_step(j, "cast", NULL, &s, 1, &l);
    tf_give(j, 0, tf_step(j, "expand", j->name, (cnr_value[]){tf_in_plain(j, 1), size}, 2, NULL),
            -1);
}

void tf_op_tile(tf_job *j) {
    int64_t repeats[CNR_MAX_RANK];
    const int64_t n = tf_known_ints(j, 1, repeats, CNR_MAX_RANK);
    if (n < 0) return;
    tf_attrs l = {.n = 0};
    tf_put_ints(&l, "repeats", repeats, n);
    const cnr_value x = tf_in_plain(j, 0);
    tf_give(j, 0, tf_step(j, "tile", j->name, &x, 1, &l), -1);
}

void tf_op_resize(tf_job *j) {
    int64_t size[2];
    const int aligned = tf_attr_bool(j, "align_corners"),
              half = tf_attr_bool(j, "half_pixel_centers");
    const int linear = strcmp(j->op, "ResizeBilinear") == 0;
    if (tf_known_ints(j, 1, size, 2) != 2) return;
    const int64_t axes[] = {2, 3};
    tf_attrs l = {.n = 0};
    tf_put_ints(&l, "axes", axes, 2);
    tf_put_ints(&l, "sizes", size, 2);
    tf_put_enum(&l, "mode", linear ? "linear" : "nearest");
    tf_put_enum(&l, "coordinate_transformation_mode",
                aligned ? "align_corners"
                : half  ? "half_pixel"
                        : "asymmetric");
    tf_put_enum(&l, "nearest_mode", aligned ? "round_prefer_ceil" : "floor");
    const cnr_value x = tf_in_turned(j, 0);
    tf_give(j, 0, -1, tf_step(j, "resize", j->name, &x, 1, &l));
}

static const struct {
    const char *theirs, *ours;
} reductions[] = {{"Mean", "reduce_mean"},
                  {"Sum", "reduce_sum"},
                  {"Max", "reduce_max"},
                  {"Min", "reduce_min"},
                  {"Prod", "reduce_prod"}};

void tf_op_reduce(tf_job *j) {
    int64_t axes[CNR_MAX_RANK], d[CNR_MAX_RANK];
    const int64_t n = tf_known_ints(j, 1, axes, CNR_MAX_RANK);
    const int32_t rank = tf_in_dims(j, 0, d);
    const int keep = tf_attr_bool(j, "keep_dims") || tf_attr_bool(j, "keepdims");
    if (n < 0 || rank < 0) return;
    /* Turned pictures may stay so while the axes are kept, or when only the channels are left. */
    int spatial = n == 2 && rank == 4;
    for (int64_t i = 0; i < n; i++) {
        if (axes[i] < 0) axes[i] += rank;
        spatial &= axes[i] == 1 || axes[i] == 2;
    }
    const int t = j->in[0]->turned >= 0 && (keep || spatial);
    for (int64_t i = 0; i < n && t; i++) axes[i] = tf_turn_axis(axes[i]);
    tf_attrs l = {.n = 0};
    tf_put_ints(&l, "axes", axes, n);
    tf_put_bool(&l, "keepdims", keep);
    const cnr_value x = t ? tf_in_turned(j, 0) : tf_in_plain(j, 0);
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++)
        if (strcmp(reductions[i].theirs, j->op) == 0) {
            const cnr_value y = tf_step(j, reductions[i].ours, j->name, &x, 1, &l);
            tf_give(j, 0, t && keep ? -1 : y, t && keep ? y : -1);
        }
}

void tf_op_arg_max(tf_job *j) {
    int64_t axis;
    if (tf_known_ints(j, 1, &axis, 1) != 1) return;
    tf_attrs l = {.n = 0};
    tf_put_int(&l, "axis", axis);
    tf_put_bool(&l, "keepdims", 0);
    const cnr_value x = tf_in_plain(j, 0);
    tf_give(j, 0,
            tf_step(j, strcmp(j->op, "ArgMax") == 0 ? "arg_max" : "arg_min", j->name, &x, 1, &l),
            -1);
}

/* Dilation by way of the batch: both take rank 4 with two spatial blocks. */
void tf_op_space_batch(tf_job *j) {
    const int to_batch = strcmp(j->op, "SpaceToBatchND") == 0;
    int64_t block[2], edge[4], d[CNR_MAX_RANK];
    if (tf_known_ints(j, 1, block, 2) != 2 || tf_known_ints(j, 2, edge, 4) != 4) {
        if (!j->entry->failed) tf_problem(j, "two spatial blocks are wanted");
        return;
    }
    const cnr_value in = tf_in_turned(j, 0);
    const cnr_tensor *x = in < 0 ? NULL : tf_host->graph_type(j->net->graph, in);
    if (!x || x->rank != 4) return tf_problem(j, "its input is not of rank 4");
    memcpy(d, x->dim, sizeof x->dim);
    if (d[1] < 0 || d[2] < 0 || d[3] < 0 || block[0] < 1 || block[1] < 1)
        return tf_problem(
            j, "the sizes of its input are not known: give --option shape=HEIGHT,WIDTH,CHANNELS");
    tf_attrs p = {.n = 0}, r1 = {.n = 0}, tr = {.n = 0}, r2 = {.n = 0};
    cnr_value y;
    if (to_batch) {
        const int64_t pads[] = {0, 0, edge[0], edge[2], 0, 0, edge[1], edge[3]};
        const int64_t h = (d[2] + edge[0] + edge[1]) / block[0],
                      w = (d[3] + edge[2] + edge[3]) / block[1];
        const int64_t cut[] = {-1, d[1], h, block[0], w, block[1]}, perm[] = {3, 5, 0, 1, 2, 4};
        const int64_t join[] = {-1, d[1], h, w};
        tf_put_ints(&p, "pads", pads, 8);
        tf_put_ints(&r1, "shape", cut, 6);
        tf_put_ints(&tr, "perm", perm, 6);
        tf_put_ints(&r2, "shape", join, 4);
        y = tf_step(j, "pad", NULL, &in, 1, &p);
        y = tf_step(j, "reshape", NULL, &y, 1, &r1);
        y = tf_step(j, "transpose", NULL, &y, 1, &tr);
        y = tf_step(j, "reshape", j->name, &y, 1, &r2);
    } else {
        const int64_t cut[] = {block[0], block[1], -1, d[1], d[2], d[3]};
        const int64_t perm[] = {2, 3, 4, 0, 5, 1};
        const int64_t join[] = {-1, d[1], d[2] * block[0], d[3] * block[1]};
        const int64_t axes[] = {2, 3}, from[] = {edge[0], edge[2]};
        const int64_t to[] = {join[2] - edge[1], join[3] - edge[3]};
        tf_put_ints(&r1, "shape", cut, 6);
        tf_put_ints(&tr, "perm", perm, 6);
        tf_put_ints(&r2, "shape", join, 4);
        tf_put_ints(&p, "starts", from, 2);
        tf_put_ints(&p, "ends", to, 2);
        tf_put_ints(&p, "axes", axes, 2);
        y = tf_step(j, "reshape", NULL, &in, 1, &r1);
        y = tf_step(j, "transpose", NULL, &y, 1, &tr);
        y = tf_step(j, "reshape", NULL, &y, 1, &r2);
        y = tf_step(j, "slice", j->name, &y, 1, &p);
    }
    tf_give(j, 0, -1, y);
}

void tf_op_depth_space(tf_job *j) {
    tf_attrs l = {.n = 0};
    tf_put_int(&l, "blocksize", tf_attr_int(j, "block_size", 2));
    const cnr_value x = tf_in_turned(j, 0);
    tf_give(j, 0, -1,
            tf_step(j, strcmp(j->op, "DepthToSpace") == 0 ? "depth_to_space" : "space_to_depth",
                    j->name, &x, 1, &l));
}
