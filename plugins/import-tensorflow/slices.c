/* Slices and splits. */
#include "job.h"

enum { MOST = 2 * CNR_MAX_RANK };

/* Slice of one axis. */
typedef struct cut {
    int64_t axis;
    tf_size from, to;
    int64_t step;
} cut;

/* A slice of several axes. */
typedef struct cuts {
    cut at[CNR_MAX_RANK];
    int32_t n;
    int64_t gone[CNR_MAX_RANK], fresh[CNR_MAX_RANK]; /* axes of size 1 to remove, then to insert */
    int32_t n_gone, n_fresh;
} cuts;

/* Returns a size; one that equals a whole open dimension means no end, and becomes the largest
 * number. */
static tf_size to_the_end(tf_size size, int64_t dim) {
    const tf_size end = {.value = INT64_MAX, .known = 1};
    return !size.known && size.value < CNR_DIM_UNKNOWN && size.value == dim ? end : size;
}

/* Adds the slice and removes or inserts axes. */
static void give_slice(tf_job *j, const cuts *c, int32_t rank) {
    int64_t axes[CNR_MAX_RANK], from[CNR_MAX_RANK], to[CNR_MAX_RANK], steps[CNR_MAX_RANK];
    int turned, moved = c->n_gone || c->n_fresh || rank < 0;
    cnr_value x = moved ? tf_in_plain(j, 0) : tf_in_any(j, 0, &turned);
    if (moved) turned = 0;
    for (int32_t i = 0; i < c->n; i++) {
        axes[i] = tf_axis(c->at[i].axis, rank, turned);
        from[i] = c->at[i].from.value;
        to[i] = c->at[i].to.value;
        steps[i] = c->at[i].step;
        if (!c->at[i].from.known || !c->at[i].to.known)
            return tf_problem(j, "where it begins or ends is not known: give --option "
                                 "shape=HEIGHT,WIDTH,CHANNELS if sizes of the input are open");
    }
    imp_attrs l = {.n = 0}, q = {.n = 0};
    imp_ints(&l, "starts", from, c->n);
    imp_ints(&l, "ends", to, c->n);
    imp_ints(&l, "axes", axes, c->n);
    imp_ints(&l, "steps", steps, c->n);
    if (c->n) x = tf_last(j, "slice", &x, 1, &l);
    imp_ints(&q, "axes", c->gone, c->n_gone);
    if (c->n_gone) x = tf_step(j, "squeeze", &x, 1, &q);
    for (int32_t i = 0; i < c->n_fresh; i++) x = tf_unsqueeze(j, x, c->fresh[i], 1);
    tf_give_as(j, 0, x, turned, j->in[0]->rank);
}

void tf_op_slice(tf_job *j) {
    tf_size begin[CNR_MAX_RANK], size[CNR_MAX_RANK];
    int64_t d[CNR_MAX_RANK];
    cuts c = {.n = 0};
    const int32_t rank = tf_in_dims(j, 0, d);
    const int64_t n = tf_in_sizes(j, 1, begin, CNR_MAX_RANK);
    if (n < 0 || tf_in_sizes(j, 2, size, CNR_MAX_RANK) != n)
        return tf_problem(j, "where it begins and how much it takes is not known");
    for (int32_t i = 0; i < n; i++) {
        cut *one = &c.at[c.n++];
        *one = (cut){.axis = i, .from = begin[i], .to = to_the_end(size[i], d[i]), .step = 1};
        if (!size[i].known || !begin[i].known) continue;
        one->to.value = size[i].value < 0 || begin[i].value > INT64_MAX - size[i].value
                            ? INT64_MAX
                            : begin[i].value + size[i].value;
    }
    give_slice(j, &c, rank);
}

/* Returns the number of axes that an ellipsis stands for: those that the other n entries leave. */
static int32_t elided(const tf_job *j, int64_t n, int32_t rank) {
    const int64_t fresh = tf_attr_int(j, "new_axis_mask", 0),
                  all = tf_attr_int(j, "ellipsis_mask", 0);
    int64_t used = 0;
    for (int32_t i = 0; i < n; i++) used += !(all >> i & 1) && !(fresh >> i & 1);
    return used < rank ? rank - (int32_t)used : 0;
}

void tf_op_strided_slice(tf_job *j) {
    tf_size b[MOST], e[MOST], s[MOST];
    int64_t d[CNR_MAX_RANK], at = 0, out = 0;
    cuts c = {.n = 0};
    const int64_t n = tf_in_sizes(j, 1, b, MOST);
    if (n < 0 || tf_in_sizes(j, 2, e, MOST) != n || tf_in_sizes(j, 3, s, MOST) != n)
        return tf_problem(j, "where it begins and ends is not known");
    const int64_t no_begin = tf_attr_int(j, "begin_mask", 0),
                  no_end = tf_attr_int(j, "end_mask", 0),
                  shrink = tf_attr_int(j, "shrink_axis_mask", 0),
                  fresh = tf_attr_int(j, "new_axis_mask", 0),
                  all = tf_attr_int(j, "ellipsis_mask", 0);
    const int32_t rank = tf_in_dims(j, 0, d);
    if (all && rank < 0) return tf_problem(j, "the rank of its input is not known");
    for (int32_t i = 0; i < n; i++) {
        if (all >> i & 1) {
            out += elided(j, n, rank);
            at += elided(j, n, rank);
            continue;
        }
        if ((fresh >> i & 1 ? c.n_fresh : at) >= CNR_MAX_RANK)
            return tf_problem(j, "it has too many axes");
        if (fresh >> i & 1) {
            c.fresh[c.n_fresh++] = out++;
            continue;
        }
        const int gone = shrink >> i & 1, back = !gone && s[i].value < 0;
        cut one = {.axis = at,
                   .from = b[i],
                   .to = to_the_end(e[i], d[at]),
                   .step = gone ? 1 : s[i].value};
        if (!s[i].known) return tf_problem(j, "its steps are not known");
        if (!gone && no_begin >> i & 1)
            one.from = (tf_size){.value = back ? INT64_MAX : 0, .known = 1};
        if (!gone && no_end >> i & 1)
            one.to = (tf_size){.value = back ? INT64_MIN + 1 : INT64_MAX, .known = 1};
        if (gone)
            one.to =
                (tf_size){.value = b[i].value == -1 || b[i].value == INT64_MAX ? INT64_MAX
                                                                               : b[i].value + 1,
                          .known = b[i].known};
        if (gone) c.gone[c.n_gone++] = at;
        else out++;
        if (one.from.value != 0 || one.to.value != INT64_MAX || one.step != 1 || !one.from.known)
            c.at[c.n++] = one;
        at++;
    }
    give_slice(j, &c, rank);
}

void tf_op_split(tf_job *j) {
    const int sized = strcmp(j->op, "SplitV") == 0;
    int64_t axis[MOST], d[CNR_MAX_RANK], total = 0, open = -1;
    const int32_t n = j->entry->n_out, rank = tf_in_dims(j, sized ? 0 : 1, d);
    int turned;
    if (tf_known_ints(j, sized ? 2 : 0, axis, 1) != 1) return;
    imp_attrs l = {.n = 0};
    int64_t *lengths =
        (int64_t *)tf_block(j->net, (size_t)n * (sizeof *lengths + sizeof(cnr_value)));
    tf_size *sizes = (tf_size *)tf_block(j->net, (size_t)n * sizeof *sizes);
    if (!lengths || !sizes) return;
    cnr_value *out = (cnr_value *)(lengths + n);
    if (sized && tf_in_sizes(j, 1, sizes, n) != n)
        return tf_problem(j, "the sizes of its parts are not known");
    for (int32_t i = 0; i < n && sized; i++) {
        lengths[i] = sizes[i].value;
        if (!sizes[i].known || lengths[i] > INT32_MAX)
            return tf_problem(j, "the sizes of its parts are not known");
        if (lengths[i] < 0) open = i;
        else total += lengths[i];
    }
    const int64_t at = tf_axis(axis[0], rank, 0);
    if (open >= 0) { /* -1: the remaining elements */
        if (rank < 0 || at < 0 || at >= rank || d[at] < total)
            return tf_problem(j, "the sizes of its parts are not known");
        lengths[open] = d[at] - total;
    }
    const cnr_value x = tf_in_any(j, sized ? 0 : 1, &turned);
    imp_int(&l, "axis", tf_axis(axis[0], rank, turned));
    if (sized) imp_ints(&l, "split", lengths, n);
    else imp_int(&l, "num_outputs", n);
    for (int32_t i = 0; i < n; i++) out[i] = -1;
    imp_host->graph_node(j->net->b.graph, "split", j->name, j->net->b.path, &x, 1, l.ptr, l.n, out,
                         n);
    for (int32_t i = 0; i < n; i++) tf_give_as(j, i, out[i], turned, rank);
}

void tf_op_unpack(tf_job *j) {
    const int64_t axis = tf_attr_int(j, "axis", 0);
    const int32_t n = j->entry->n_out;
    const cnr_value x = tf_in_plain(j, 0);
    for (int32_t i = 0; i < n; i++) {
        const int64_t from = i, to = i + 1;
        imp_attrs l = {.n = 0}, q = {.n = 0};
        imp_ints(&l, "starts", &from, 1);
        imp_ints(&l, "ends", &to, 1);
        imp_ints(&l, "axes", &axis, 1);
        imp_ints(&q, "axes", &axis, 1);
        const cnr_value part = tf_step(j, "slice", &x, 1, &l);
        tf_give(j, i, tf_step(j, "squeeze", &part, 1, &q));
    }
}

void tf_op_reverse(tf_job *j) {
    int64_t axes[MOST], from[CNR_MAX_RANK], to[CNR_MAX_RANK], steps[CNR_MAX_RANK];
    const int64_t n = tf_known_ints(j, 1, axes, CNR_MAX_RANK);
    const cnr_value x = tf_in_plain(j, 0);
    imp_attrs l = {.n = 0};
    if (n < 0) return;
    for (int64_t i = 0; i < n; i++) {
        from[i] = INT64_MAX;
        to[i] = INT64_MIN + 1;
        steps[i] = -1;
    }
    imp_ints(&l, "starts", from, n);
    imp_ints(&l, "ends", to, n);
    imp_ints(&l, "axes", axes, n);
    imp_ints(&l, "steps", steps, n);
    tf_give(j, 0, tf_last(j, "slice", &x, 1, &l));
}

void tf_op_gather(tf_job *j) {
    int64_t axis[MOST] = {0};
    imp_attrs l = {.n = 0};
    if (j->n_in > 2 && tf_known_ints(j, 2, axis, 1) != 1) return;
    if (tf_attr_int(j, "batch_dims", 0)) return tf_problem(j, "batch_dims are not supported");
    if (strcmp(j->ours, "gather") == 0) imp_int(&l, "axis", axis[0]);
    const cnr_value at = tf_in_plain(j, 1);
    const cnr_value in[] = {tf_in_plain(j, 0),
                            strcmp(j->ours, "gather") == 0 ? at : tf_cast(j, at, CNR_i64)};
    tf_give(j, 0, tf_last(j, j->ours, in, 2, &l));
}
