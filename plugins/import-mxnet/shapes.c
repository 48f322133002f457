/* Operators that move, cut, join or reduce elements. */
#include "mxnet.h"

#include <stdio.h>

static void flatten(mx_job *j) {
    mx_give(j, mx_op(j, "flatten", "", &j->x, 1, NULL));
}

/* MXNet's codes: 0 keeps, -1 is told by the rest, -2 keeps all that are left, -3 merges two,
 * -4 splits one into the two that follow. */
static void reshape(mx_job *j) {
    int64_t code[32], shape[CNR_MAX_RANK];
    const cnr_tensor *x = mx_type(j, j->x);
    int32_t n = mx_ints(j->n, "shape", code, 32, 0), from = 0, k = 0;
    if (n == 0) n = mx_ints(j->n, "target_shape", code, 32, 0);
    if (n < 1 || !x) return mx_problem(j, "shape is missing or wrong");
    if (mx_bool(j->n, "reverse", 0)) return mx_problem(j, "reverse is not supported");
    for (int32_t i = 0; i < n; i++) {
        const int64_t left = from < x->rank ? x->dim[from] : 0;
        const int64_t next = from + 1 < x->rank ? x->dim[from + 1] : 0;
        if (code[i] == -2) {
            for (; from < x->rank && k < CNR_MAX_RANK; from++, k++)
                shape[k] = from == k ? 0 : x->dim[from] < 0 ? -1 : x->dim[from];
            continue;
        }
        if (k + 2 > CNR_MAX_RANK) return mx_problem(j, "shape has too many axes");
        if (code[i] == -3) {
            shape[k++] = left < 0 || next < 0 ? -1 : left * next;
            from += 2;
        } else if (code[i] == -4 && i + 2 < n) {
            int64_t a = code[i + 1], b = code[i + 2];
            if (a == -1 && b > 0) a = left > 0 ? left / b : -1;
            if (b == -1 && a > 0) b = left > 0 ? left / a : -1;
            shape[k++] = a;
            shape[k++] = b;
            from++;
            i += 2;
        } else if (code[i] == 0) {
            shape[k] = from == k ? 0 : left < 0 ? -1 : left;
            k++;
            from++;
        } else if (code[i] >= -1) {
            shape[k++] = code[i];
            from++;
        } else {
            return mx_problem(j, "shape is wrong");
        }
    }
    /* a leading -1 is the batch when a sample keeps its size */
    const int64_t sample = imp_count(x->dim + 1, x->rank - 1);
    if (x->rank > 0 && k > 0 && shape[0] == -1 && sample > 0 &&
        imp_count(shape + 1, k - 1) == sample)
        shape[0] = 0;
    mx_give(j, imp_reshape(&j->net->b, j->n->name, "", j->x, shape, k));
}

static void concat(mx_job *j) {
    cnr_value in[MX_MAX_INPUTS];
    for (int32_t i = 0; i < j->n_in && !j->failed; i++) in[i] = mx_data(j, i);
    if (j->failed || j->n_in < 1) return;
    const int64_t axis = mx_axis(j, mx_int(j->n, "dim", 1));
    if (!j->failed) mx_give(j, imp_concat(&j->net->b, j->n->name, in, j->n_in, axis));
}

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
        cnr_value v = imp_slice(&j->net->b, j->n->name, suffix, j->x, axis, i * part,
                                (i + 1) * part);
        snprintf(suffix, sizeof suffix, ".%lld.squeezed", (long long)i);
        if (squeeze) v = mx_op(j, "squeeze", suffix, &v, 1, &l);
        j->out[j->n_out++] = v;
    }
}

static void transpose(mx_job *j) {
    int64_t perm[CNR_MAX_RANK];
    const cnr_tensor *x = mx_type(j, j->x);
    const int32_t n = mx_ints(j->n, "axes", perm, CNR_MAX_RANK, 0);
    if (!x || n < 0 || (n && n != x->rank)) return mx_problem(j, "axes are wrong");
    for (int32_t i = 0; n == 0 && i < x->rank; i++) perm[i] = x->rank - 1 - i;
    mx_give(j, imp_transpose(&j->net->b, j->n->name, "", j->x, perm, x->rank));
}

static void swap_axis(mx_job *j) {
    const int64_t a = mx_axis(j, mx_int(j->n, "dim1", 0)), b = mx_axis(j, mx_int(j->n, "dim2", 0));
    const cnr_tensor *x = mx_type(j, j->x);
    int64_t perm[CNR_MAX_RANK];
    if (j->failed) return;
    for (int32_t i = 0; i < x->rank; i++) perm[i] = i == a ? b : i == b ? a : i;
    mx_give(j, imp_transpose(&j->net->b, j->n->name, "", j->x, perm, x->rank));
}

static void slice_axis(mx_job *j) {
    const int64_t axis = mx_axis(j, mx_int(j->n, "axis", 0));
    if (j->failed) return;
    mx_give(j, imp_slice(&j->net->b, j->n->name, "", j->x, axis, mx_int(j->n, "begin", 0),
                         mx_int(j->n, "end", INT32_MAX)));
}

static void slice(mx_job *j) {
    int64_t begin[CNR_MAX_RANK], end[CNR_MAX_RANK], step[CNR_MAX_RANK], axes[CNR_MAX_RANK];
    const int32_t n = mx_ints(j->n, "begin", begin, CNR_MAX_RANK, 0);
    const int32_t m = mx_ints(j->n, "end", end, CNR_MAX_RANK, INT32_MAX);
    const int32_t s = mx_ints(j->n, "step", step, CNR_MAX_RANK, 1);
    if (n < 1 || m != n || (s && s != n)) return mx_problem(j, "begin, end or step is wrong");
    for (int32_t i = 0; i < n; i++) {
        axes[i] = i;
        if (s && step[i] < 1) return mx_problem(j, "steps below 1 are not supported");
    }
    imp_attrs l = {.n = 0};
    imp_ints(&l, "starts", begin, n);
    imp_ints(&l, "ends", end, n);
    imp_ints(&l, "axes", axes, n);
    if (s) imp_ints(&l, "steps", step, n);
    mx_give(j, mx_op(j, "slice", "", &j->x, 1, &l));
}

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

static void pad(mx_job *j) { /* before and after, axis by axis */
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

static void reduction(mx_job *j) {
    static const char *const ops[][2] = {{"mean", "reduce_mean"}, {"sum", "reduce_sum"},
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

static void expand_dims(mx_job *j) {
    const int64_t axis = mx_int(j->n, "axis", 0);
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", &axis, 1);
    mx_give(j, mx_op(j, "unsqueeze", "", &j->x, 1, &l));
}

static void squeeze(mx_job *j) {
    int64_t axes[CNR_MAX_RANK];
    const int32_t n = mx_ints(j->n, "axis", axes, CNR_MAX_RANK, 0);
    if (n < 1) return mx_problem(j, "axis is missing: the batch would go too where it is 1");
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", axes, n);
    mx_give(j, mx_op(j, "squeeze", "", &j->x, 1, &l));
}

static void blocks(mx_job *j) {
    imp_attrs l = {.n = 0};
    imp_int(&l, "blocksize", mx_int(j->n, "block_size", 1));
    mx_give(j, mx_op(j, j->n->op, "", &j->x, 1, &l));
}

mx_convert mx_shape_row(const char *op, int *open) {
    static const struct {
        const char *op;
        mx_convert convert;
        int open;
    } rows[] = {
        {"Concat", concat, 1}, {"Crop", crop, 1}, {"Flatten", flatten, 0}, {"Pad", pad, 1},
        {"Reshape", reshape, 0}, {"SliceChannel", split, 1}, {"SwapAxis", swap_axis, 0},
        {"concat", concat, 1}, {"depth_to_space", blocks, 1}, {"expand_dims", expand_dims, 0},
        {"flatten", flatten, 0}, {"max", reduction, 1}, {"max_axis", reduction, 1},
        {"mean", reduction, 1}, {"min", reduction, 1}, {"min_axis", reduction, 1},
        {"pad", pad, 1}, {"prod", reduction, 1}, {"reshape", reshape, 0}, {"slice", slice, 1},
        {"slice_axis", slice_axis, 1}, {"space_to_depth", blocks, 1}, {"split", split, 1},
        {"squeeze", squeeze, 0}, {"sum", reduction, 1}, {"sum_axis", reduction, 1},
        {"swapaxes", swap_axis, 0}, {"transpose", transpose, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op, op) == 0) {
            *open = rows[i].open;
            return rows[i].convert;
        }
    return NULL;
}
