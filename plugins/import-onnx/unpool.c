/* Converts MaxUnpool and CenterCropPad into simpler nodes. */
#include "onnx.h"

/* Adds a constant list of whole numbers (i64). */
static cnr_value list(onnx_job *j, const int64_t *values, int64_t n) {
    return onnx_constant(j, CNR_i64, values, &n, 1);
}
/* Adds x with a border of zeros; before and after: its sizes along the axes. */
static cnr_value padded(onnx_job *j, cnr_value x, cnr_value before, cnr_value after,
                        cnr_value axes) {
    imp_attrs first = {.n = 0};
    imp_int(&first, "axis", 0);
    const cnr_value pads = onnx_step(j, "concat", (cnr_value[]){before, after}, 2, &first);
    return onnx_step(j, "pad", (cnr_value[]){x, pads, -1, axes}, 4, NULL);
}

/* Element i of an attribute's list; `fallback`: there is none. */
static int64_t entry(const Onnx__AttributeProto *a, int64_t i, int64_t fallback) {
    return a && i < (int64_t)a->n_ints ? a->ints[i] : fallback;
}

/* dim: the shape that was pooled, each window once, without its padding, with 1. 0: unknown, which
 * is told. */
static int unpooled(onnx_job *j, const cnr_tensor *x, int64_t *dim) {
    const Onnx__AttributeProto *kernel = onnx_proto(j, "kernel_shape"),
                               *pads = onnx_proto(j, "pads"), *strides = onnx_proto(j, "strides");
    const int64_t axes = x->rank - 2;
    for (int32_t i = 0; i < x->rank; i++) {
        const int64_t a = i - 2;
        dim[i] = x->dim[i];
        if (dim[i] < 0 || (a >= 0 && (!kernel || a >= (int64_t)kernel->n_ints)))
            return onnx_problem(j, "wants known sizes and a kernel_shape%s", ""), 0;
        if (a >= 0)
            dim[i] = (dim[i] - 1) * entry(strides, a, 1) + kernel->ints[a] - entry(pads, a, 0) -
                     entry(pads, axes + a, 0);
    }
    return 1;
}

/* Puts each element where its index, into the whole pooled tensor, says. A larger shape that is
 * asked for has zeros behind. */
void onnx_max_unpool(onnx_job *j) {
    const cnr_tensor *x = imp_type(&j->net->imp, j->in[0]);
    int64_t dim[CNR_MAX_RANK], none[CNR_MAX_RANK] = {0}, axes[CNR_MAX_RANK];
    const int64_t flat = -1;
    if (j->n_in < 2 || !x || x->rank < 3)
        return onnx_problem(j, "wants three axes or more and their indices%s", "");
    const int32_t rank = x->rank, dtype = x->dtype;
    if (!unpooled(j, x, dim)) return;
    const int64_t count = imp_count(dim, rank);
    if (count < 1) return onnx_problem(j, "its sizes do not fit%s", "");
    const cnr_value shape = list(j, &count, 1);
    imp_attrs type = {.n = 0}, row = {.n = 0}, axis = {.n = 0}, whole = {.n = 0};
    imp_dtype(&type, "dtype", dtype);
    imp_ints(&row, "shape", &flat, 1);
    imp_int(&axis, "axis", 0);
    imp_ints(&whole, "shape", dim, rank);
    const cnr_value parts[] = {onnx_step(j, "constant_of_shape", &shape, 1, &type),
                               onnx_step(j, "reshape", &j->in[1], 1, &row),
                               onnx_step(j, "reshape", &j->in[0], 1, &row)};
    cnr_value y = onnx_step(j, "scatter_elements", parts, 3, &axis);
    y = onnx_step(j, "reshape", &y, 1, &whole);
    for (int32_t i = 0; i < rank; i++) axes[i] = i;
    if (j->n_in > 2)
        y = padded(j, y, list(j, none, rank), onnx_step2(j, "sub", j->in[2], list(j, dim, rank)),
                   list(j, axes, rank));
    j->out[0] = y;
    j->done = 1;
}

/* Crops each axis that is too long, and pads each that is too short, alike on both sides; the odd
 * element is at the end. */
void onnx_center(onnx_job *j) {
    const cnr_tensor *x = imp_type(&j->net->imp, j->in[0]);
    const Onnx__AttributeProto *given = onnx_proto(j, "axes");
    int64_t axis[CNR_MAX_RANK], dim[CNR_MAX_RANK];
    if (j->n_in != 2 || !x)
        return onnx_problem(j, "wants an input of known rank and a shape%s", "");
    const int64_t n = given ? (int64_t)given->n_ints : x->rank, zero = 0, half = 2;
    if (n > x->rank) return onnx_problem(j, "has more axes than its input%s", "");
    for (int64_t i = 0; i < n; i++) {
        axis[i] = entry(given, i, i);
        if (axis[i] < 0) axis[i] += x->rank;
        if (axis[i] < 0 || axis[i] >= x->rank || x->dim[axis[i]] < 0)
            return onnx_problem(j, "wants axes whose sizes are known%s", "");
        dim[i] = x->dim[axis[i]];
    }
    const cnr_value axes = list(j, axis, n), size = list(j, dim, n), none = list(j, &zero, 1),
                    by = list(j, &half, 1), wanted = j->in[1];
    const cnr_value less = onnx_step2(j, "max", onnx_step2(j, "sub", size, wanted), none);
    const cnr_value more = onnx_step2(j, "max", onnx_step2(j, "sub", wanted, size), none);
    const cnr_value from = onnx_step2(j, "div", less, by), before = onnx_step2(j, "div", more, by);
    const cnr_value to = onnx_step2(j, "add", from, onnx_step2(j, "min", size, wanted));
    const cnr_value y = onnx_step(j, "slice", (cnr_value[]){j->in[0], from, to, axes}, 4, NULL);
    j->out[0] = padded(j, y, before, onnx_step2(j, "sub", more, before), axes);
    j->done = 1;
}
