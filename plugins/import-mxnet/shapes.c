/* Operators that move, slice, join or reduce elements. */
#include "mxnet.h"

#include <stdio.h>

static void flatten(mx_job *j) { mx_give(j, mx_op(j, "flatten", "", &j->x, 1, NULL)); }

/* A shape that is being put together. */
typedef struct shaping {
    int64_t dim[CNR_MAX_RANK]; /* sizes of the result */
    int kept[CNR_MAX_RANK];    /* the input axis that it copies, or -1 */
    int32_t n;
} shaping;

/* Adds a dimension; kept: the input's axis that it copies, -1: none. */
static void shape_put(shaping *s, int64_t dim, int kept) {
    if (s->n < CNR_MAX_RANK) s->dim[s->n] = dim, s->kept[s->n] = kept;
    s->n++;
}

/* Applies MXNet's reshape codes: 0 copies an axis, -1 is inferred, -2 copies all remaining axes, -3
 * merges two, -4 splits one into the next two sizes. Returns 0 if they are wrong. */
static int follow_codes(const int64_t *code, int32_t n, const int64_t *dim, int32_t rank,
                        shaping *s) {
    int32_t from = 0;
    for (int32_t i = 0; i < n; i++) {
        const int64_t left = from < rank ? dim[from] : 0;
        if (code[i] == -2) {
            for (; from < rank; from++) shape_put(s, dim[from], from);
        } else if (code[i] == -3) {
            const int64_t next = from + 1 < rank ? dim[from + 1] : 0;
            shape_put(s, left < 0 || next < 0 ? -1 : left * next, -1);
            from += 2;
        } else if (code[i] == -4 && i + 2 < n) {
            int64_t a = code[++i], b = code[++i];
            if (a == -1 && b > 0) a = left > 0 ? left / b : -1;
            else if (b == -1 && a > 0) b = left > 0 ? left / a : -1;
            shape_put(s, a, -1);
            shape_put(s, b, -1);
            from++;
        } else if (code[i] == 0) {
            shape_put(s, left, from++);
        } else if (code[i] >= -1) {
            shape_put(s, code[i], -1);
            from++;
        } else {
            return 0;
        }
    }
    return s->n <= CNR_MAX_RANK;
}

/* Reverses a list of n numbers in place. */
static void turn(int64_t *list, int32_t n) {
    for (int32_t i = 0; i < n / 2; i++) {
        const int64_t keep = list[i];
        list[i] = list[n - 1 - i];
        list[n - 1 - i] = keep;
    }
}

/* Converts reshape and Reshape with MXNet's codes 0, -1 .. -4; what does not fit is noted as a
 * problem and sets j->failed. */
static void reshape(mx_job *j) {
    int64_t code[32], dim[CNR_MAX_RANK], shape[CNR_MAX_RANK];
    const cnr_tensor *x = mx_type(j, j->x);
    int32_t n = mx_ints(j->n, "shape", code, 32, 0);
    shaping s = {.n = 0};
    if (n == 0) n = mx_ints(j->n, "target_shape", code, 32, 0);
    if (n < 1 || !x) return mx_problem(j, "shape is missing or wrong");
    const int turned = mx_bool(j->n, "reverse", 0); /* counted from the end */
    memcpy(dim, x->dim, sizeof dim);
    if (turned) turn(code, n), turn(dim, x->rank);
    if (!follow_codes(code, n, dim, x->rank, &s)) return mx_problem(j, "shape is wrong");
    for (int32_t i = 0; i < s.n; i++) {
        const int32_t k = turned ? s.n - 1 - i : i;
        const int kept = turned && s.kept[i] >= 0 ? x->rank - 1 - s.kept[i] : s.kept[i];
        shape[k] = kept == k ? 0 : s.dim[i] < 0 ? -1 : s.dim[i];
    }
    /* a leading -1 is the batch if the sample's size does not change */
    const int64_t sample = imp_count(x->dim + 1, x->rank - 1);
    if (x->rank > 0 && s.n > 0 && shape[0] == -1 && sample > 0 &&
        imp_count(shape + 1, s.n - 1) == sample)
        shape[0] = 0;
    mx_give(j, imp_reshape(&j->net->b, j->n->name, "", j->x, shape, s.n));
}

/* Converts reshape_like of whole shapes; what does not fit is noted as a problem and sets
 * j->failed. */
static void reshape_like(mx_job *j) {
    static const char *const parts[] = {"lhs_begin", "lhs_end", "rhs_begin", "rhs_end"};
    const cnr_value like = mx_data(j, 1);
    if (j->failed) return;
    for (int i = 0; i < 4; i++)
        if (mx_text(j->n, parts[i])) return mx_problem(j, "%s is not supported", parts[i]);
    mx_give(j, mx_op(j, "reshape_like", "", (cnr_value[]){j->x, like}, 2, NULL));
}

/* Converts Concat along dim (1). */
static void concat(mx_job *j) {
    cnr_value in[MX_MAX_INPUTS];
    for (int32_t i = 0; i < j->n_in && !j->failed; i++) in[i] = mx_data(j, i);
    if (j->failed || j->n_in < 1) return;
    const int64_t axis = mx_axis(j, mx_int(j->n, "dim", 1));
    if (!j->failed) mx_give(j, imp_concat(&j->net->b, j->n->name, in, j->n_in, axis));
}

/* Converts stack along a new axis. */
static void stack(mx_job *j) {
    cnr_value in[MX_MAX_INPUTS];
    const cnr_tensor *x = mx_type(j, j->x);
    int64_t axis = mx_int(j->n, "axis", 0);
    imp_attrs l = {.n = 0};
    if (x && axis < 0) axis += x->rank + 1;
    imp_ints(&l, "axes", &axis, 1);
    for (int32_t i = 0; i < j->n_in && !j->failed; i++) {
        char suffix[32];
        const cnr_value v = mx_data(j, i);
        snprintf(suffix, sizeof suffix, ".input%d", (int)i);
        in[i] = mx_op(j, "unsqueeze", suffix, &v, 1, &l);
    }
    if (!j->failed) mx_give(j, imp_concat(&j->net->b, j->n->name, in, j->n_in, axis));
}

/* Converts SliceChannel and split, with one output a part; what does not fit is noted as a problem
 * and sets j->failed. */
static void split(mx_job *j) {
    const int64_t axis = mx_axis(j, mx_int(j->n, "axis", 1)), n = mx_int(j->n, "num_outputs", 1);
    const cnr_tensor *x = mx_type(j, j->x);
    if (j->failed) return;
    if (n < 1 || n > MX_MAX_OUTPUTS || x->dim[axis] < n || x->dim[axis] % n)
        return mx_problem(j, "num_outputs does not divide its input");
    const int64_t part = x->dim[axis] / n;
    const int squeeze = mx_bool(j->n, "squeeze_axis", 0);
    if (squeeze && part != 1) return mx_problem(j, "squeeze_axis wants parts of 1");
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", &axis, 1);
    for (int64_t i = 0; i < n; i++) {
        char suffix[32];
        snprintf(suffix, sizeof suffix, ".%lld", (long long)i);
        cnr_value v =
            imp_slice(&j->net->b, j->n->name, suffix, j->x, axis, i * part, (i + 1) * part);
        snprintf(suffix, sizeof suffix, ".%lld.squeezed", (long long)i);
        if (squeeze) v = mx_op(j, "squeeze", suffix, &v, 1, &l);
        j->out[j->n_out++] = v;
    }
}

/* Converts transpose; without axes their order is reversed. */
static void transpose(mx_job *j) {
    int64_t perm[CNR_MAX_RANK];
    const cnr_tensor *x = mx_type(j, j->x);
    const int32_t n = mx_ints(j->n, "axes", perm, CNR_MAX_RANK, 0);
    if (!x || n < 0 || (n && n != x->rank)) return mx_problem(j, "axes are wrong");
    for (int32_t i = 0; n == 0 && i < x->rank; i++) perm[i] = x->rank - 1 - i;
    mx_give(j, imp_transpose(&j->net->b, j->n->name, "", j->x, perm, x->rank));
}

/* Converts SwapAxis: exchanges two axes. */
static void swap_axis(mx_job *j) {
    const int64_t a = mx_axis(j, mx_int(j->n, "dim1", 0)), b = mx_axis(j, mx_int(j->n, "dim2", 0));
    if (!j->failed) mx_give(j, mx_swapped(j, "", j->x, a, b));
}

/* Converts slice_axis: begin to end along one axis. */
static void slice_axis(mx_job *j) {
    const int64_t axis = mx_axis(j, mx_int(j->n, "axis", 0));
    if (j->failed) return;
    mx_give(j, imp_slice(&j->net->b, j->n->name, "", j->x, axis, mx_int(j->n, "begin", 0),
                         mx_int(j->n, "end", INT32_MAX)));
}

/* Values for None in begin and end: beyond the axis, in the direction of the step. */
enum { BEFORE = -(1 << 30), BEHIND = 1 << 30, NONE = 1 << 29 };

/* Converts slice with begins, ends and steps; what does not fit is noted as a problem and sets
 * j->failed. */
static void slice(mx_job *j) {
    int64_t begin[CNR_MAX_RANK], end[CNR_MAX_RANK], step[CNR_MAX_RANK], axes[CNR_MAX_RANK];
    const int32_t n = mx_ints(j->n, "begin", begin, CNR_MAX_RANK, NONE);
    const int32_t m = mx_ints(j->n, "end", end, CNR_MAX_RANK, NONE);
    const int32_t s = mx_ints(j->n, "step", step, CNR_MAX_RANK, 1);
    if (n < 1 || m != n || (s && s != n)) return mx_problem(j, "begin, end or step is wrong");
    for (int32_t i = 0; i < n; i++) {
        const int back = s && step[i] < 0;
        axes[i] = i;
        if (s && step[i] == 0) step[i] = 1;
        if (begin[i] == NONE) begin[i] = back ? BEHIND : 0;
        if (end[i] == NONE) end[i] = back ? BEFORE : BEHIND;
    }
    imp_attrs l = {.n = 0};
    imp_ints(&l, "starts", begin, n);
    imp_ints(&l, "ends", end, n);
    imp_ints(&l, "axes", axes, n);
    if (s) imp_ints(&l, "steps", step, n);
    mx_give(j, mx_op(j, "slice", "", &j->x, 1, &l));
}

/* Converts reverse along axes, as a slice with steps -1; what does not fit is noted as a problem
 * and sets j->failed. */
static void reverse(mx_job *j) {
    int64_t axes[CNR_MAX_RANK], begin[CNR_MAX_RANK], end[CNR_MAX_RANK], step[CNR_MAX_RANK];
    const int32_t n = mx_ints(j->n, "axis", axes, CNR_MAX_RANK, 0);
    if (n < 1) return mx_problem(j, "axis is missing");
    for (int32_t i = 0; i < n; i++) begin[i] = BEHIND, end[i] = BEFORE, step[i] = -1;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "starts", begin, n);
    imp_ints(&l, "ends", end, n);
    imp_ints(&l, "axes", axes, n);
    imp_ints(&l, "steps", step, n);
    mx_give(j, mx_op(j, "slice", "", &j->x, 1, &l));
}

/* Slices x to the size of a second tensor along some axes, or all. */
static void slice_like(mx_job *j) {
    int64_t axes[CNR_MAX_RANK], begin[CNR_MAX_RANK] = {0}, end[CNR_MAX_RANK];
    const cnr_value other = mx_data(j, 1);
    const cnr_tensor *x = mx_type(j, j->x), *like = mx_type(j, other);
    int32_t n = mx_ints(j->n, "axes", axes, CNR_MAX_RANK, 0), m = 0;
    if (j->failed || !x || !like) return;
    if (n < 0) return mx_problem(j, "axes are wrong");
    for (int32_t i = 0; n == 0 && i < x->rank; i++) axes[i] = i;
    if (n == 0) n = x->rank;
    for (int32_t i = 0; i < n; i++) {
        const int64_t axis = mx_axis(j, axes[i]);
        if (j->failed) return;
        if (axis >= like->rank) return mx_problem(j, "axes are wrong");
        if (like->dim[axis] == x->dim[axis] && x->dim[axis] != CNR_DIM_UNKNOWN) continue;
        if (like->dim[axis] < 1) return mx_problem(j, "its second input's size is not known");
        axes[m] = axis;
        end[m++] = like->dim[axis];
    }
    imp_attrs l = {.n = 0};
    imp_ints(&l, "starts", begin, m);
    imp_ints(&l, "ends", end, m);
    imp_ints(&l, "axes", axes, m);
    mx_give(j, m ? mx_op(j, "slice", "", &j->x, 1, &l) : j->x);
}

/* Converts Crop: to given sizes, or those of a second input; what does not fit is noted as a
 * problem and sets j->failed. */
static void crop(mx_job *j) {
    int64_t offset[2] = {0, 0}, size[2] = {0, 0};
    const cnr_tensor *x = mx_type(j, j->x), *like = NULL;
    const int middle = mx_bool(j->n, "center_crop", 0);
    if (!x || x->rank != 4) return mx_problem(j, "its input is no picture");
    if (mx_ints(j->n, "offset", offset, 2, 0) < 0 || mx_ints(j->n, "h_w", size, 2, 0) < 0)
        return mx_problem(j, "offset or h_w is wrong");
    cnr_value other = -1;
    if (j->n_in > 1) {
        other = mx_data(j, 1);
        if (j->failed || !(like = mx_type(j, other))) return;
        if (like->rank != 4) return mx_problem(j, "its second input is no picture");
        size[0] = like->dim[2], size[1] = like->dim[3];
    }
    for (int i = 0; middle && i < 2; i++) {
        if (x->dim[2 + i] < 0 || size[i] < 0 || size[i] > x->dim[2 + i])
            return mx_problem(j, "center_crop wants known sizes: give --option shape=C,H,W");
        offset[i] = (x->dim[2 + i] - size[i]) / 2;
    }
    imp_attrs l = {.n = 0};
    if (like) {
        imp_int(&l, "axis", 2);
        imp_ints(&l, "offset", offset, 2);
        return mx_give(j, mx_op(j, "crop", "", (cnr_value[]){j->x, other}, 2, &l));
    }
    const int64_t axes[] = {2, 3}, end[] = {offset[0] + size[0], offset[1] + size[1]};
    if (size[0] < 1 || size[1] < 1) return mx_problem(j, "h_w is missing");
    imp_ints(&l, "starts", offset, 2);
    imp_ints(&l, "ends", end, 2);
    imp_ints(&l, "axes", axes, 2);
    mx_give(j, mx_op(j, "slice", "", &j->x, 1, &l));
}

/* Converts Pad; pad_width has sizes before and after, axis by axis. */
static void pad(mx_job *j) {
    int64_t width[2 * CNR_MAX_RANK], pads[2 * CNR_MAX_RANK];
    const int32_t n = mx_ints(j->n, "pad_width", width, 2 * CNR_MAX_RANK, 0);
    const char *mode = mx_text(j->n, "mode");
    const cnr_tensor *x = mx_type(j, j->x);
    if (!x || n != 2 * x->rank) return mx_problem(j, "pad_width is wrong");
    for (int32_t i = 0; i < x->rank; i++) {
        pads[i] = width[2 * i];
        pads[x->rank + i] = width[2 * i + 1];
    }
    imp_attrs l = {.n = 0};
    imp_ints(&l, "pads", pads, n);
    if (mode && (strcmp(mode, "edge") == 0 || strcmp(mode, "reflect") == 0))
        imp_enum(&l, "mode", mode);
    imp_float(&l, "value", mx_float(j->n, "constant_value", 0));
    mx_give(j, mx_op(j, "pad", "", &j->x, 1, &l));
}

/* Converts mean, sum, max, min and prod along axes; what does not fit is noted as a problem and
 * sets j->failed. */
static void reduction(mx_job *j) {
    static const char *const ops[][2] = {{"mean", "reduce_mean"},    {"sum", "reduce_sum"},
                                         {"sum_axis", "reduce_sum"}, {"max", "reduce_max"},
                                         {"max_axis", "reduce_max"}, {"min", "reduce_min"},
                                         {"min_axis", "reduce_min"}, {"prod", "reduce_prod"}};
    int64_t axes[CNR_MAX_RANK], rest[CNR_MAX_RANK];
    const cnr_tensor *x = mx_type(j, j->x);
    int32_t n = mx_ints(j->n, "axis", axes, CNR_MAX_RANK, 0), m = 0;
    if (!x || n < 0) return mx_problem(j, "axis is wrong");
    for (int32_t i = 0; i < n; i++)
        if ((axes[i] = mx_axis(j, axes[i])) < 0) return;
    for (int32_t a = 0; a < x->rank; a++) {
        int in = n == 0;
        for (int32_t i = 0; i < n; i++) in |= axes[i] == a;
        if (in != (mx_bool(j->n, "exclude", 0) && n)) rest[m++] = a;
    }
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", rest, m);
    imp_bool(&l, "keepdims", mx_bool(j->n, "keepdims", 0));
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i][0], j->n->op) == 0)
            return mx_give(j, mx_op(j, ops[i][1], "", &j->x, 1, &l));
}

/* Converts norm of order 1 or 2 along axes; what does not fit is noted as a problem and sets
 * j->failed. */
static void norm(mx_job *j) {
    int64_t axes[CNR_MAX_RANK];
    const int32_t n = mx_ints(j->n, "axis", axes, CNR_MAX_RANK, 0);
    const int64_t order = mx_int(j->n, "ord", 2);
    if (n < 1 || order < 1 || order > 2) return mx_problem(j, "ord or axis is not supported");
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", axes, n);
    imp_bool(&l, "keepdims", mx_bool(j->n, "keepdims", 0));
    mx_give(j, mx_op(j, order == 2 ? "reduce_l2" : "reduce_l1", "", &j->x, 1, &l));
}

/* Converts argmax and argmin, whose positions MXNet gives as float32; what does not fit is noted as
 * a problem and sets j->failed. */
static void arg(mx_job *j) {
    const int channel = strcmp(j->n->op, "argmax_channel") == 0;
    if (!channel && !mx_text(j->n, "axis")) return mx_problem(j, "axis is missing");
    imp_attrs l = {.n = 0}, as = {.n = 0};
    imp_int(&l, "axis", channel ? 1 : mx_axis(j, mx_int(j->n, "axis", 0)));
    imp_bool(&l, "keepdims", mx_bool(j->n, "keepdims", 0));
    imp_dtype(&as, "to", CNR_f32);
    if (j->failed) return;
    const char *op = strcmp(j->n->op, "argmin") == 0 ? "arg_min" : "arg_max";
    const cnr_value at = mx_op(j, op, ".whole", &j->x, 1, &l);
    mx_give(j, mx_op(j, "cast", "", &at, 1, &as));
}

/* ---- repeating elements ---- */

/* Converts tile: repeats along axes; what does not fit is noted as a problem and sets j->failed. */
static void tile(mx_job *j) {
    int64_t reps[CNR_MAX_RANK], all[CNR_MAX_RANK];
    const cnr_tensor *x = mx_type(j, j->x);
    const int32_t n = mx_ints(j->n, "reps", reps, CNR_MAX_RANK, 1);
    if (!x || n < 1) return mx_problem(j, "reps are wrong");
    const int32_t rank = n > x->rank ? n : x->rank;
    const int64_t front[CNR_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    imp_attrs l = {.n = 0}, more = {.n = 0};
    /* adds leading axes of size 1 if there are more reps than axes */
    imp_ints(&more, "axes", front, rank - x->rank);
    const cnr_value v = n > x->rank ? mx_op(j, "unsqueeze", ".wide", &j->x, 1, &more) : j->x;
    for (int32_t i = 0; i < rank; i++) all[i] = i < rank - n ? 1 : reps[i - rank + n];
    imp_ints(&l, "repeats", all, rank);
    mx_give(j, mx_op(j, "tile", "", &v, 1, &l));
}

/* Converts repeat along one axis: each element several times in a row; what does not fit is noted
 * as a problem and sets j->failed. */
static void repeat(mx_job *j) {
    double scales[CNR_MAX_RANK];
    const cnr_tensor *x = mx_type(j, j->x);
    if (!mx_text(j->n, "axis")) return mx_problem(j, "axis is missing");
    const int64_t axis = mx_axis(j, mx_int(j->n, "axis", 0)), times = mx_int(j->n, "repeats", 0);
    if (j->failed) return;
    if (times < 1 || axis < 1) return mx_problem(j, "repeats or axis is not supported");
    for (int32_t i = 0; i < x->rank; i++) scales[i] = i == axis ? (double)times : 1;
    imp_attrs l = {.n = 0};
    imp_floats(&l, "scales", scales, x->rank);
    imp_enum(&l, "coordinate_transformation_mode", "asymmetric");
    imp_enum(&l, "nearest_mode", "floor");
    mx_give(j, mx_op(j, "resize", "", &j->x, 1, &l));
}

/* broadcast_to, broadcast_axis and broadcast_like: repeats axes of size 1. */
static void broadcast(mx_job *j) {
    int64_t shape[CNR_MAX_RANK], axes[CNR_MAX_RANK], size[CNR_MAX_RANK];
    const cnr_tensor *x = mx_type(j, j->x), *like = NULL;
    if (!x) return;
    for (int32_t i = 0; i < x->rank; i++) shape[i] = 1; /* 1 keeps the size */
    if (strcmp(j->n->op, "broadcast_to") == 0) {
        if (mx_ints(j->n, "shape", size, CNR_MAX_RANK, 0) != x->rank)
            return mx_problem(j, "shape is wrong");
        for (int32_t i = 0; i < x->rank; i++) shape[i] = size[i] > 0 ? size[i] : 1;
    } else if (strcmp(j->n->op, "broadcast_like") == 0) {
        if (mx_text(j->n, "lhs_axes")) return mx_problem(j, "lhs_axes are not supported");
        if (!(like = mx_type(j, mx_data(j, 1)))) return;
        if (like->rank != x->rank) return mx_problem(j, "its inputs differ in rank");
        for (int32_t i = 0; i < x->rank; i++) {
            if (like->dim[i] == x->dim[i] && x->dim[i] != CNR_DIM_UNKNOWN) continue;
            if (like->dim[i] < 0) return mx_problem(j, "its second input's size is not known");
            shape[i] = like->dim[i];
        }
    } else {
        const int32_t n = mx_ints(j->n, "axis", axes, CNR_MAX_RANK, 0);
        if (n < 1 || mx_ints(j->n, "size", size, CNR_MAX_RANK, 1) != n)
            return mx_problem(j, "axis or size is wrong");
        for (int32_t i = 0; i < n; i++) {
            const int64_t axis = mx_axis(j, axes[i]);
            if (j->failed) return;
            shape[axis] = size[i];
        }
    }
    imp_attrs l = {.n = 0};
    imp_ints(&l, "shape", shape, x->rank);
    mx_give(j, mx_op(j, "expand", "", &j->x, 1, &l));
}

/* ---- constants defined by attributes: _zeros, _ones, _full, _arange ---- */

/* Converts operators that make constants: zeros, ones, arange; what does not fit is noted as a
 * problem and sets j->failed. */
static void constant(mx_job *j) {
    int64_t shape[CNR_MAX_RANK];
    const int range = strcmp(j->n->op, "_arange") == 0;
    int32_t rank = mx_ints(j->n, "shape", shape, CNR_MAX_RANK, 0);
    const double start = mx_float(j->n, "start", 0), stop = mx_float(j->n, "stop", 0);
    const double step = mx_float(j->n, "step", 1), repeat = mx_float(j->n, "repeat", 1);
    if (range) {
        const double from = mx_text(j->n, "stop") ? start : 0;
        const double to = mx_text(j->n, "stop") ? stop : start;
        const double n = step != 0 && repeat == 1 ? (to - from) / step : -1;
        shape[0] = n > 0 && n < 1 << 24 ? (int64_t)n + (n > (double)(int64_t)n) : 0;
        rank = 1;
    }
    const int64_t n = rank < 1 ? -1 : imp_count(shape, rank);
    if (n < 1 || n > 1 << 24) return mx_problem(j, "its size is not known, or too large");
    float *values = (float *)imp_host->alloc((size_t)n * sizeof(float));
    if (!values) {
        j->net->b.status = CNR_E_MEMORY;
        j->failed = 1;
        return;
    }
    const double all = strcmp(j->n->op, "_ones") == 0 ? 1 : mx_float(j->n, "value", 0);
    const double first = mx_text(j->n, "stop") ? start : 0;
    for (int64_t i = 0; i < n; i++) values[i] = (float)(range ? first + step * (double)i : all);
    mx_give(j, imp_weight(&j->net->b, j->n->name, "", values, shape, rank));
    imp_host->free(values);
}

/* Converts expand_dims: adds an axis of size 1. */
static void expand_dims(mx_job *j) {
    const int64_t axis = mx_int(j->n, "axis", 0);
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", &axis, 1);
    mx_give(j, mx_op(j, "unsqueeze", "", &j->x, 1, &l));
}

/* Converts squeeze: removes axes of size 1; what does not fit is noted as a problem and sets
 * j->failed. */
static void squeeze(mx_job *j) {
    int64_t axes[CNR_MAX_RANK];
    const cnr_tensor *x = mx_type(j, j->x);
    int32_t n = mx_ints(j->n, "axis", axes, CNR_MAX_RANK, 0);
    for (int32_t i = 1; n == 0 && x && i < x->rank; i++) /* keeps the batch axis, even of size 1 */
        if (x->dim[i] < 0) return mx_problem(j, "the sizes of its input are not known");
    if (!mx_text(j->n, "axis"))
        for (int32_t i = 1; x && i < x->rank; i++)
            if (x->dim[i] == 1) axes[n++] = i;
    if (n < 1) return n < 0 ? mx_problem(j, "axis is wrong") : mx_give(j, j->x);
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", axes, n);
    mx_give(j, mx_op(j, "squeeze", "", &j->x, 1, &l));
}

/* Converts depth_to_space and space_to_depth. */
static void blocks(mx_job *j) {
    imp_attrs l = {.n = 0};
    imp_int(&l, "blocksize", mx_int(j->n, "block_size", 1));
    mx_give(j, mx_op(j, j->n->op, "", &j->x, 1, &l));
}

/* Converter of an operator that changes shapes, and its *flags; NULL: it is none. */
mx_convert mx_shape_row(const mx_node *n, int *flags) {
    static const mx_row rows[] = {
        IMP_LAYER("Concat", concat, .flags = MX_OPEN),
        IMP_LAYER("Crop", crop, .flags = MX_OPEN),
        IMP_LAYER("Flatten", flatten),
        IMP_LAYER("Pad", pad, .flags = MX_OPEN),
        IMP_LAYER("Reshape", reshape),
        IMP_LAYER("SliceChannel", split, .flags = MX_OPEN),
        IMP_LAYER("SwapAxis", swap_axis),
        IMP_LAYER("_arange", constant, .flags = MX_OPEN | MX_OWN_INPUT),
        IMP_LAYER("_full", constant, .flags = MX_OPEN | MX_OWN_INPUT),
        IMP_LAYER("_ones", constant, .flags = MX_OPEN | MX_OWN_INPUT),
        IMP_LAYER("_zeros", constant, .flags = MX_OPEN | MX_OWN_INPUT),
        IMP_LAYER("argmax", arg, .flags = MX_OPEN),
        IMP_LAYER("argmax_channel", arg, .flags = MX_OPEN),
        IMP_LAYER("argmin", arg, .flags = MX_OPEN),
        IMP_LAYER("broadcast_axes", broadcast),
        IMP_LAYER("broadcast_axis", broadcast),
        IMP_LAYER("broadcast_like", broadcast),
        IMP_LAYER("broadcast_to", broadcast),
        IMP_LAYER("concat", concat, .flags = MX_OPEN),
        IMP_LAYER("depth_to_space", blocks, .flags = MX_OPEN),
        IMP_LAYER("expand_dims", expand_dims),
        IMP_LAYER("flatten", flatten),
        IMP_LAYER("flip", reverse, .flags = MX_OPEN),
        IMP_LAYER("max", reduction, .flags = MX_OPEN),
        IMP_LAYER("max_axis", reduction, .flags = MX_OPEN),
        IMP_LAYER("mean", reduction, .flags = MX_OPEN),
        IMP_LAYER("min", reduction, .flags = MX_OPEN),
        IMP_LAYER("min_axis", reduction, .flags = MX_OPEN),
        IMP_LAYER("norm", norm, .flags = MX_OPEN),
        IMP_LAYER("pad", pad, .flags = MX_OPEN),
        IMP_LAYER("prod", reduction, .flags = MX_OPEN),
        IMP_LAYER("repeat", repeat, .flags = MX_OPEN),
        IMP_LAYER("reshape", reshape),
        IMP_LAYER("reshape_like", reshape_like),
        IMP_LAYER("reverse", reverse, .flags = MX_OPEN),
        IMP_LAYER("slice", slice, .flags = MX_OPEN),
        IMP_LAYER("slice_axis", slice_axis, .flags = MX_OPEN),
        IMP_LAYER("slice_like", slice_like),
        IMP_LAYER("space_to_depth", blocks, .flags = MX_OPEN),
        IMP_LAYER("split", split, .flags = MX_OPEN),
        IMP_LAYER("squeeze", squeeze),
        IMP_LAYER("stack", stack, .flags = MX_OPEN),
        IMP_LAYER("sum", reduction, .flags = MX_OPEN),
        IMP_LAYER("sum_axis", reduction, .flags = MX_OPEN),
        IMP_LAYER("swapaxes", swap_axis),
        IMP_LAYER("tile", tile, .flags = MX_OPEN),
        IMP_LAYER("transpose", transpose),
    };
    const mx_row *row = IMP_ROW_OF(rows, n->op);
    if (!row) return NULL;
    *flags = row->flags;
    if (row->convert == crop && mx_bool(n, "center_crop", 0)) *flags = 0;
    if (row->convert == split && mx_int(n, "axis", 1) != 1) *flags = 0;
    return row->convert;
}
