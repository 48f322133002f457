/* Resizing, and moving pixels to channels or to the batch. */
#include "job.h"

enum { MOST = 2 * CNR_MAX_RANK };

void tf_op_resize(tf_job *j) {
    tf_size sizes[2] = {{.known = 0}, {.known = 0}};
    const int64_t axes[] = {2, 3};
    const int aligned = tf_attr_bool(j, "align_corners"),
              half = tf_attr_bool(j, "half_pixel_centers");
    const int cubic = strcmp(j->ours, "cubic") == 0, nearest = strcmp(j->ours, "nearest") == 0;
    const int64_t n = tf_in_sizes(j, 1, sizes, 2);
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", axes, 2);
    imp_enum(&l, "mode", j->ours);
    imp_enum(&l, "coordinate_transformation_mode",
             aligned           ? "align_corners"
             : half && nearest ? "tf_half_pixel_for_nn"
             : half            ? "half_pixel"
                               : "asymmetric");
    imp_enum(&l, "nearest_mode", aligned ? "round_prefer_ceil" : "floor");
    if (cubic && half) { /* the newer kernel is Keys's and ignores pixels outside */
        imp_float(&l, "cubic_coeff_a", -0.5);
        imp_bool(&l, "exclude_outside", 1);
    }
    cnr_value in[] = {tf_turned(j->net, j->in[0], 4), -1, -1, -1};
    const int64_t known[] = {sizes[0].value, sizes[1].value};
    const int open = n != 2 || !sizes[0].known || !sizes[1].known;
    if (open) in[3] = tf_cast(j, tf_in_plain(j, 1), CNR_i64);
    else imp_ints(&l, "sizes", known, 2);
    /* TensorFlow returns float for any input type */
    if (!nearest) in[0] = tf_cast(j, in[0], CNR_f32);
    tf_give_turned(j, 0, tf_last(j, "resize", in, open ? 4 : 1, &l), 4);
}

void tf_op_depth_space(tf_job *j) {
    imp_attrs l = {.n = 0};
    imp_int(&l, "blocksize", tf_attr_int(j, "block_size", 2));
    const cnr_value x = tf_picture(j, 0, 4);
    tf_give_picture(j, tf_last(j, j->ours, &x, 1, &l), 4);
}

/* ---- space and batch: how older graphs write dilation ---- */

/* Sizes of blocks and what is cut off or added at each axis. */
typedef struct blocks {
    /* for each axis, from 1 on */
    int64_t block[CNR_MAX_RANK], low[CNR_MAX_RANK], high[CNR_MAX_RANK];
    int64_t d[CNR_MAX_RANK];
    int32_t n, rank;
} blocks;

/* Reads block sizes and edges of the node into b; 0: not known, with a problem. */
static int read_blocks(tf_job *j, blocks *b) {
    int64_t block[MOST], edge[MOST];
    const int64_t n = tf_known_ints(j, 1, block, CNR_MAX_RANK);
    if (n < 0 || tf_known_ints(j, 2, edge, MOST) != 2 * n) return 0;
    b->n = (int32_t)n;
    b->rank = tf_in_dims(j, 0, b->d);
    if (b->rank < n + 1 || b->rank + n > CNR_MAX_RANK)
        return tf_problem(j, "its rank is not known, or too large"), 0;
    for (int32_t i = 0; i < n; i++) {
        b->block[i] = block[i];
        b->low[i] = edge[2 * i];
        b->high[i] = edge[2 * i + 1];
        const int64_t most = INT32_MAX;
        if (b->block[i] < 1 || b->block[i] > most || b->low[i] < 0 || b->low[i] > most ||
            b->high[i] < 0 || b->high[i] > most)
            return tf_problem(j, "its blocks or edges are out of range"), 0;
    }
    for (int32_t i = 1; i < b->rank; i++)
        if (b->d[i] < 0 || b->d[i] > INT32_MAX)
            return tf_problem(j, "the sizes of its input are not known: give --option "
                                 "shape=HEIGHT,WIDTH,CHANNELS"),
                   0;
    return 1;
}

/* Adds a node with one list of numbers. */
static cnr_value shaped(tf_job *j, cnr_value x, const char *op, const char *key, const int64_t *v,
                        int32_t n) {
    imp_attrs l = {.n = 0};
    imp_ints(&l, key, v, n);
    return tf_step(j, op, &x, 1, &l);
}

/* N, S.. rest -> N, S/b, b .. rest -> b.. N, S/b .. rest -> N*b.., S/b .. rest */
static void to_batch(tf_job *j, const blocks *b) {
    int64_t pads[MOST] = {0}, cut[CNR_MAX_RANK], perm[CNR_MAX_RANK], join[CNR_MAX_RANK];
    int32_t at = 1, to = 0;
    cut[0] = join[0] = -1;
    for (int32_t i = 1; i < b->rank; i++) {
        const int32_t k = i - 1;
        join[i] = b->d[i];
        if (k < b->n) {
            pads[i] = b->low[k];
            pads[b->rank + i] = b->high[k];
            join[i] = (b->d[i] + b->low[k] + b->high[k]) / b->block[k];
            cut[at + 1] = b->block[k];
        }
        cut[at] = join[i];
        at += k < b->n ? 2 : 1;
    }
    for (int32_t k = 0; k < b->n; k++) perm[to++] = 2 + 2 * k;
    perm[to++] = 0;
    for (int32_t k = 0; k < b->n; k++) perm[to++] = 1 + 2 * k;
    for (int32_t i = 2 * b->n + 1; to < at; i++) perm[to++] = i;
    cnr_value y = tf_in_plain(j, 0);
    y = shaped(j, y, "pad", "pads", pads, 2 * b->rank);
    y = shaped(j, y, "reshape", "shape", cut, at);
    y = shaped(j, y, "transpose", "perm", perm, at);
    tf_give(j, 0, shaped(j, y, "reshape", "shape", join, b->rank));
}

/* N*b.., S.. rest -> b.. N, S.. rest -> N, S, b .. rest -> N, S*b .. rest, then crops */
static void to_space(tf_job *j, const blocks *b) {
    int64_t cut[CNR_MAX_RANK], perm[CNR_MAX_RANK], join[CNR_MAX_RANK];
    int64_t axes[CNR_MAX_RANK], from[CNR_MAX_RANK], to[CNR_MAX_RANK];
    const int32_t all = b->rank + b->n;
    int32_t at = 0;
    join[0] = cut[b->n] = -1;
    perm[at++] = b->n;
    for (int32_t k = 0; k < b->n; k++) {
        cut[k] = b->block[k];
        join[k + 1] = b->d[k + 1] * b->block[k];
        axes[k] = k + 1;
        from[k] = b->low[k];
        to[k] = join[k + 1] - b->high[k];
        perm[at++] = b->n + 1 + k;
        perm[at++] = k;
    }
    for (int32_t i = 1; i < b->rank; i++) {
        cut[b->n + i] = b->d[i];
        if (i > b->n) join[i] = b->d[i], perm[at++] = b->n + i;
    }
    cnr_value y = tf_in_plain(j, 0);
    y = shaped(j, y, "reshape", "shape", cut, all);
    y = shaped(j, y, "transpose", "perm", perm, all);
    y = shaped(j, y, "reshape", "shape", join, b->rank);
    imp_attrs l = {.n = 0};
    imp_ints(&l, "starts", from, b->n);
    imp_ints(&l, "ends", to, b->n);
    imp_ints(&l, "axes", axes, b->n);
    tf_give(j, 0, tf_last(j, "slice", &y, 1, &l));
}

void tf_op_space_batch(tf_job *j) {
    blocks b;
    if (!read_blocks(j, &b)) return;
    if (strcmp(j->op, "SpaceToBatchND") == 0) to_batch(j, &b);
    else to_space(j, &b);
}
