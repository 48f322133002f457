/* Modules that move, slice or reduce elements. */
#include "torch7.h"

/* Converts View and Reshape: the sizes are those of a sample, unless the first is -1, the batch;
 * what does not fit is noted as a problem and sets j->failed. */
static void view(t7_job *j) {
    int64_t size[CNR_MAX_RANK + 1], shape[CNR_MAX_RANK + 1];
    const int32_t n = t7_ints(t7_field(j->m, "size"), size, CNR_MAX_RANK - 1);
    int32_t from = 0, holes = 0;
    if (n < 1) return t7_problem(j, "size is missing or has too many axes");
    const int64_t inner = t7_int(j->m, "numInputDims", 0);
    if (n > 1 && size[0] == -1 && inner == 0) from = 1;
    /* Reshape(n, ..., false): the sizes include the batch */
    if (n > 1 && strcmp(j->kind, "Reshape") == 0 && t7_field(j->m, "batchMode") &&
        !t7_bool(j->m, "batchMode", 1))
        from = 1;
    shape[0] = 0;
    for (int32_t i = from; i < n; i++) {
        if (size[i] < -1 || size[i] == 0 || (size[i] == -1 && holes++))
            return t7_problem(j, "its sizes are wrong");
        shape[1 + i - from] = size[i];
    }
    t7_give(j, imp_reshape(&j->net->b, j->name, "", j->x, shape, 1 + n - from));
}

int64_t t7_axis(t7_job *j, int64_t dimension, int64_t inner) {
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    if (!x) return -1;
    int64_t axis = dimension < 0 ? dimension + x->rank : dimension - 1;
    if (inner > 0 && dimension > 0) axis += x->rank - inner;
    if (axis < 1 || axis >= x->rank) {
        t7_problem(j, "dimension %lld of %d is the batch's or none", (long long)dimension,
                   (int)x->rank);
        return -1;
    }
    return axis;
}

/* Converts Squeeze: removes axes of size 1, but the batch. */
static void squeeze(t7_job *j) {
    const int64_t dimension = t7_int(j->m, "dim", 0), inner = t7_int(j->m, "numInputDims", 0);
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    int64_t axes[CNR_MAX_RANK], n = 0;
    if (dimension) axes[n++] = t7_axis(j, dimension, inner);
    else
        for (int32_t i = 1; x && i < x->rank; i++)
            if (x->dim[i] == 1) axes[n++] = i;
    if (j->failed) return;
    if (n == 0) return t7_give(j, j->x);
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", axes, n);
    t7_give_op(j, "squeeze", &l);
}

/* Converts Transpose: exchanges pairs of axes, one after the other; what does not fit is noted as a
 * problem and sets j->failed. */
static void transpose(t7_job *j) {
    const t7_value *pairs = t7_field(j->m, "permutations");
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    const int64_t inner = t7_int(j->m, "numInputDims", 0);
    int64_t perm[CNR_MAX_RANK], pair[2];
    for (int32_t i = 0; x && i < x->rank; i++) perm[i] = i;
    for (int64_t i = 1; pairs && x && t7_item(pairs, i); i++) {
        if (t7_ints(t7_item(pairs, i), pair, 2) != 2 || i > 64)
            return t7_problem(j, "permutations are wrong");
        const int64_t a = t7_axis(j, pair[0], inner), b = t7_axis(j, pair[1], inner);
        if (j->failed) return;
        const int64_t keep = perm[a];
        perm[a] = perm[b];
        perm[b] = keep;
    }
    if (!x) return;
    t7_give(j, imp_transpose(&j->net->b, j->name, "", j->x, perm, x->rank));
}

/* Converts Narrow: a stretch of one axis, counted from 1; what does not fit is noted as a problem
 * and sets j->failed. */
static void narrow(t7_job *j) {
    const int64_t axis = t7_axis(j, t7_int(j->m, "dimension", 0), 0);
    const int64_t index = t7_int(j->m, "index", 1), length = t7_int(j->m, "length", 1);
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    if (j->failed || axis < 0) return;
    const int64_t n = x->dim[axis], from = index < 0 ? n + index : index - 1;
    const int64_t to = length < 0 ? n + 1 + length : from + length; /* -1: to the end */
    if ((n < 0 && (index < 0 || length < 0)) || from < 0 || to <= from || (n >= 0 && to > n))
        return t7_problem(j, "index or length does not fit its input");
    t7_give(j, imp_slice(&j->net->b, j->name, "", j->x, axis, from, to));
}

/* Converts Select: one index of an axis, without the axis; what does not fit is noted as a problem
 * and sets j->failed. */
static void select_one(t7_job *j) {
    const int64_t axis = t7_axis(j, t7_int(j->m, "dimension", 0), 0);
    const int64_t index = t7_int(j->m, "index", 1);
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    if (j->failed || axis < 0) return;
    const int64_t at = index < 0 ? x->dim[axis] + index : index - 1;
    if (x->dim[axis] < 0 || at < 0 || at >= x->dim[axis])
        return t7_problem(j, "index does not fit its input");
    const cnr_value one = imp_slice(&j->net->b, j->name, ".slice", j->x, axis, at, at + 1);
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", &axis, 1);
    t7_give(j, t7_op(j, "squeeze", "", &one, 1, &l));
}

/* Converts Unsqueeze: adds an axis of size 1; what does not fit is noted as a problem and sets
 * j->failed. */
static void unsqueeze(t7_job *j) {
    const int64_t pos = t7_int(j->m, "pos", 0), inner = t7_int(j->m, "numInputDims", 0);
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    const int64_t axis = x && inner > 0 ? pos - 1 + x->rank - inner : pos - 1;
    imp_attrs l = {.n = 0};
    if (!x || axis < 1 || axis > x->rank) return t7_problem(j, "pos is the batch's or none");
    imp_ints(&l, "axes", &axis, 1);
    t7_give_op(j, "unsqueeze", &l);
}

/* Converts Mean, Sum, Max and Min along one axis. */
static void reduction(t7_job *j) {
    static const char *const ops[][2] = {{"Mean", "reduce_mean"},
                                         {"Sum", "reduce_sum"},
                                         {"Max", "reduce_max"},
                                         {"Min", "reduce_min"}};
    const int64_t axis = t7_axis(j, t7_int(j->m, "dimension", 1), t7_int(j->m, "nInputDims", 0));
    if (j->failed) return;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", &axis, 1);
    imp_bool(&l, "keepdims", 0);
    const char *op = t7_bool(j->m, "sizeAverage", 0) ? "reduce_mean" : NULL;
    for (size_t i = 0; i < 4 && !op; i++)
        if (strcmp(ops[i][0], j->kind) == 0) op = ops[i][1];
    t7_give_op(j, op, &l);
}

const t7_row *t7_shape_row(const char *kind) {
    static const t7_row rows[] = {
        IMP_LAYER("Max", reduction),       IMP_LAYER("Mean", reduction),
        IMP_LAYER("Min", reduction),       IMP_LAYER("Narrow", narrow),
        IMP_LAYER("Reshape", view),        IMP_LAYER("Select", select_one),
        IMP_LAYER("Squeeze", squeeze),     IMP_LAYER("Sum", reduction),
        IMP_LAYER("Transpose", transpose), IMP_LAYER("Unsqueeze", unsqueeze),
        IMP_LAYER("View", view),
    };
    return IMP_ROW_OF(rows, kind);
}
