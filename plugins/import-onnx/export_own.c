/* Exports operators that ONNX does not have as several of its operators. */
#include "export.h"

/* Writes dense as Flatten and Gemm. */
static void dense(out_job *j) {
    const char *x = j->in[0];
    if (j->node->inputs[0]->rank != 2) {
        const char *flat = out_between(j->w);
        out_put_int(j->w, out_node(j->w, "Flatten", &x, 1, &flat, 1), "axis", 1);
        x = flat;
    }
    const char *in[] = {x, j->in[1], j->n_in > 2 ? j->in[2] : ""};
    out_put_int(j->w, out_node(j->w, "Gemm", in, *in[2] ? 3 : 2, j->out, 1), "transB", 1);
}

/* Writes relu6 as Clip. */
static void relu6(out_job *j) {
    const char *in[] = {j->in[0], out_scalar(j->w, 0), out_scalar(j->w, 6)};
    out_node(j->w, "Clip", in, 3, j->out, 1);
}

/* Writes swish as Sigmoid and Mul. */
static void swish(out_job *j) {
    const char *gate = out_between(j->w), *in[] = {j->in[0], gate};
    out_node(j->w, "Sigmoid", j->in, 1, &gate, 1);
    out_node(j->w, "Mul", in, 2, j->out, 1);
}

/* Name of the constant at `port`, one number a channel, reshaped to broadcast along axis 1 of input
 * 0. */
static const char *along_channels(out_job *j, int32_t port) {
    const cnr_tensor *t = j->node->inputs[port];
    const int32_t rank = j->node->inputs[0]->rank;
    int64_t dim[CNR_MAX_RANK] = {cnr_count(t), 1, 1, 1, 1, 1, 1, 1};
    if (!(t->flags & CNR_TENSOR_CONST) || !t->data || rank < 2) {
        out_unsupported(j->w, j->node, "a computed factor is not supported");
        return "";
    }
    return out_constant(j->w, t->dtype, dim, rank - 1, t->data, cnr_dense_bytes(t));
}

/* Writes scale_bias as Mul and Add. */
static void scale_bias(out_job *j) {
    const int shifted = j->n_in > 2 && *j->in[2];
    const char *scaled = shifted ? out_between(j->w) : j->out[0];
    if (cnr_attr_find(j->node, "axis") && cnr_attr_int(j->node, "axis") != 1)
        return out_unsupported(j->w, j->node, "an axis other than 1 is not supported");
    const char *in[] = {j->in[0], along_channels(j, 1)};
    out_node(j->w, "Mul", in, 2, &scaled, 1);
    const char *more[] = {scaled, shifted ? along_channels(j, 2) : ""};
    if (shifted) out_node(j->w, "Add", more, 2, j->out, 1);
}

/* x / (bias + alpha * mean of the squares in its window) ^ beta */
static void lrn_within(out_job *j) {
    out_writer *w = j->w;
    const int64_t size = cnr_attr_int(j->node, "size");
    const int64_t kernel[] = {size, size}, half = (size - 1) / 2, pads[] = {half, half, half, half};
    const char *square[] = {j->in[0], j->in[0]}, *s = out_between(w), *mean = out_between(w);
    const char *scaled = out_between(w), *base = out_between(w), *norm = out_between(w);
    out_node(w, "Mul", square, 2, &s, 1);
    Onnx__NodeProto *pool = out_node(w, "AveragePool", &s, 1, &mean, 1);
    out_put_ints(w, pool, "kernel_shape", kernel, 2);
    out_put_ints(w, pool, "pads", pads, 4);
    out_put_int(w, pool, "count_include_pad", 1);
    const char *a[] = {mean, out_scalar(w, cnr_attr_float(j->node, "alpha"))};
    out_node(w, "Mul", a, 2, &scaled, 1);
    const char *b[] = {scaled, out_scalar(w, cnr_attr_float(j->node, "bias"))};
    out_node(w, "Add", b, 2, &base, 1);
    const char *p[] = {base, out_scalar(w, cnr_attr_float(j->node, "beta"))};
    out_node(w, "Pow", p, 2, &norm, 1);
    const char *d[] = {j->in[0], norm};
    out_node(w, "Div", d, 2, j->out, 1);
}

/* Mul for each input whose coefficient is not 1, then one Sum. */
static void weighted_sum(out_job *j) {
    int64_t n;
    const double *c = cnr_attr_floats(j->node, "coeffs", &n);
    for (int32_t i = 0; i < j->n_in; i++)
        if (i < n && c[i] != 1) {
            const char *scaled = out_between(j->w), *in[] = {j->in[i], out_scalar(j->w, c[i])};
            out_node(j->w, "Mul", in, 2, &scaled, 1);
            j->in[i] = scaled;
        }
    out_node(j->w, "Sum", j->in, j->n_in, j->out, 1);
}

/* Writes reshape_like as Shape and Reshape. */
static void reshape_like(out_job *j) {
    const char *shape = out_between(j->w), *in[] = {j->in[0], shape};
    out_node(j->w, "Shape", &j->in[1], 1, &shape, 1);
    out_node(j->w, "Reshape", in, 2, j->out, 1);
}

/* Writes channel_shuffle as Reshape, Transpose, Reshape. */
static void channel_shuffle(out_job *j) {
    out_writer *w = j->w;
    const int64_t group = cnr_attr_int(j->node, "group"), c = j->node->inputs[0]->dim[1];
    if (c < 1 || group < 1)
        return out_unsupported(w, j->node, "unknown channels are not supported");
    const int64_t parts[] = {0, group, c / group, -1}, perm[] = {0, 2, 1, 3};
    const char *split = out_between(w), *turned = out_between(w), *shape = out_between(w);
    const char *a[] = {j->in[0], out_ints(w, parts, 4)}, *b[] = {turned, shape};
    out_node(w, "Reshape", a, 2, &split, 1);
    out_put_ints(w, out_node(w, "Transpose", &split, 1, &turned, 1), "perm", perm, 4);
    out_node(w, "Shape", j->in, 1, &shape, 1);
    out_node(w, "Reshape", b, 2, j->out, 1);
}

static void dropout(out_job *j) { out_node(j->w, "Identity", j->in, 1, j->out, 1); }

/* Writes crop as Slice. */
static void crop(out_job *j) {
    const cnr_tensor *x = j->node->inputs[0], *y = j->node->outputs[0];
    int64_t axis = cnr_attr_int(j->node, "axis"), n;
    const int64_t *offset = cnr_attr_ints(j->node, "offset", &n);
    int64_t from[CNR_MAX_RANK], to[CNR_MAX_RANK], axes[CNR_MAX_RANK], k = 0;
    if (axis < 0) axis += x->rank;
    for (int64_t i = axis; i < x->rank; i++, k++) {
        if (y->dim[i] < 0) return out_unsupported(j->w, j->node, "unknown sizes are not supported");
        from[k] = n == 0 ? 0 : offset[n == 1 ? 0 : k < n ? k : n - 1];
        to[k] = from[k] + y->dim[i];
        axes[k] = i;
    }
    const char *in[] = {j->in[0], out_ints(j->w, from, k), out_ints(j->w, to, k),
                        out_ints(j->w, axes, k)};
    out_node(j->w, "Slice", in, 4, j->out, 1);
}

/* Channels [from, to) of a value, through operator `op` if not NULL. */
static const char *channels(out_job *j, const char *x, int64_t from, int64_t to, const char *op) {
    const int64_t axis = 1;
    const char *part = out_between(j->w), *out = op ? out_between(j->w) : part;
    const char *in[] = {x, out_ints(j->w, &from, 1), out_ints(j->w, &to, 1),
                        out_ints(j->w, &axis, 1)};
    out_node(j->w, "Slice", in, 4, &part, 1);
    if (op) {
        Onnx__NodeProto *n = out_node(j->w, op, &part, 1, &out, 1);
        if (strcmp(op, "Softmax") == 0) out_put_int(j->w, n, "axis", 1);
    }
    return out;
}

/* Darknet's heads: activates ranges of channels of each anchor and joins them again. */
static void head(out_job *j) {
    const int yolo = strcmp(j->node->desc->name, "yolo") == 0;
    const int64_t classes = cnr_attr_int(j->node, "classes"), num = cnr_attr_int(j->node, "num");
    const int64_t coords = yolo ? 4 : cnr_attr_int(j->node, "coords"), each = coords + 1 + classes;
    const double scale = yolo ? cnr_attr_float(j->node, "scale_x_y") : 1;
    const int background = !yolo && cnr_attr_int(j->node, "background") != 0;
    const char *scores = yolo ? "Sigmoid" : cnr_attr_int(j->node, "softmax") ? "Softmax" : NULL;
    int32_t n = 0;
    if (num * 4 > OUT_MAX_PORTS || background)
        return out_unsupported(j->w, j->node, "this form of head is not supported");
    const char **parts = (const char **)out_make(j->w, (size_t)num * 4 * sizeof(char *));
    if (!parts) return;
    for (int64_t a = 0; a < num; a++) {
        const int64_t at = a * each;
        const char *xy = channels(j, j->in[0], at, at + 2, "Sigmoid");
        if (scale != 1) {
            const char *wide = out_between(j->w), *moved = out_between(j->w);
            out_node(j->w, "Mul", (const char *[]){xy, out_scalar(j->w, scale)}, 2, &wide, 1);
            out_node(j->w, "Add", (const char *[]){wide, out_scalar(j->w, -0.5 * (scale - 1))}, 2,
                     &moved, 1);
            xy = moved;
        }
        parts[n++] = xy;
        parts[n++] = channels(j, j->in[0], at + 2, at + coords, NULL);
        parts[n++] = channels(j, j->in[0], at + coords, at + coords + 1, "Sigmoid");
        if (classes) parts[n++] = channels(j, j->in[0], at + coords + 1, at + each, scores);
    }
    out_put_int(j->w, out_node(j->w, "Concat", parts, n, j->out, 1), "axis", 1);
}

/* Computes operators that depend on sizes alone by their reference, and writes the result. */
static void known(out_job *j) {
    const cnr_tensor *y = j->node->outputs[0];
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor made = *y;
    cnr_tensor *outputs[] = {&made};
    cnr_run run = {.size = sizeof run, .range_axis = -1, .node = j->node, .outputs = outputs};
    if (cnr_count(y) < 0) return out_unsupported(j->w, j->node, "unknown sizes are not supported");
    made.bytes = cnr_dense_bytes(y);
    made.data = out_make(j->w, (size_t)made.bytes);
    if (!made.data) return;
    if (j->node->desc->reference(&run, &err)) return out_unsupported(j->w, j->node, err.text);
    out_tensor(j->w, j->out[0], y->dtype, y->dim, y->rank, made.data, made.bytes);
}

/* Moves blocks of stride x stride pixels to channels, in Darknet's order. */
static void reorg(out_job *j) {
    out_writer *w = j->w;
    const int64_t s = cnr_attr_int(j->node, "stride"), *d = j->node->inputs[0]->dim;
    if (cnr_attr_int(j->node, "reverse") || d[1] < 1 || d[2] < 1 || d[3] < 1 || d[1] % (s * s))
        return out_unsupported(w, j->node, "this form is not supported");
    /* reinterprets the memory of x as N, C/(s*s), H, s, W, s; transposes; then reads it as C*s*s,
     * H/s, W/s */
    const int64_t cut[] = {-1, d[1] / (s * s), d[2], s, d[3], s}, perm[] = {0, 3, 5, 1, 2, 4};
    const int64_t out[] = {-1, d[1] * s * s, d[2] / s, d[3] / s};
    const char *a = out_between(w), *b = out_between(w);
    out_node(w, "Reshape", (const char *[]){j->in[0], out_ints(w, cut, 6)}, 2, &a, 1);
    out_put_ints(w, out_node(w, "Transpose", &a, 1, &b, 1), "perm", perm, 6);
    out_node(w, "Reshape", (const char *[]){b, out_ints(w, out, 4)}, 2, j->out, 1);
}

/* In ONNX the value is an attribute, a tensor. */
static void constant_of_shape(out_job *j) {
    const int32_t dtype = (int32_t)cnr_attr_int(j->node, "dtype");
    const char *plain = j->out[0], *shape = j->in[0];
    int64_t n;
    const int64_t *dims = cnr_attr_ints(j->node, "shape", &n);
    if (j->n_in < 1 || !*shape) shape = out_ints(j->w, dims, n);
    const char *filled = out_between(j->w);
    const char *value = out_scalar(j->w, cnr_attr_float(j->node, "value"));
    out_node(j->w, "Expand", (const char *[]){value, shape}, 2, &filled, 1);
    out_put_int(j->w, out_node(j->w, "Cast", &filled, 1, &plain, 1), "to", out_data_type(dtype));
}

/* Caffe's Normalize: x divided by the root of its sum of squares, times a factor. */
static void normalize(out_job *j) {
    out_writer *w = j->w;
    int64_t axes[CNR_MAX_RANK], n = 0;
    const int spatial = cnr_attr_int(j->node, "across_spatial") != 0;
    for (int32_t i = 1; i < j->node->inputs[0]->rank; i++)
        if (i == 1 || spatial) axes[n++] = i;
    const char *sum = out_between(w), *more = out_between(w), *root = out_between(w);
    const char *out = j->n_in > 1 ? out_between(w) : j->out[0];
    out_put_int(w,
                out_node(w, "ReduceSumSquare", (const char *[]){j->in[0], out_ints(w, axes, n)}, 2,
                         &sum, 1),
                "keepdims", 1);
    out_node(w, "Add", (const char *[]){sum, out_scalar(w, cnr_attr_float(j->node, "epsilon"))}, 2,
             &more, 1);
    out_node(w, "Sqrt", &more, 1, &root, 1);
    out_node(w, "Div", (const char *[]){j->in[0], root}, 2, &out, 1);
    if (j->n_in < 2) return;
    const char *factor = cnr_count(j->node->inputs[1]) == 1 ? j->in[1] : along_channels(j, 1);
    out_node(w, "Mul", (const char *[]){out, factor}, 2, j->out, 1);
}

int out_own(out_job *j) {
    static const struct {
        const char *op;
        void (*write)(out_job *);
    } own[] = {
        {"yolo", head},
        {"region", head},
        {"prior_box", known},
        {"reorg", reorg},
        {"constant_of_shape", constant_of_shape},
        {"normalize", normalize},
        {"dense", dense},
        {"relu6", relu6},
        {"swish", swish},
        {"scale_bias", scale_bias},
        {"lrn_within", lrn_within},
        {"weighted_sum", weighted_sum},
        {"reshape_like", reshape_like},
        {"channel_shuffle", channel_shuffle},
        {"dropout", dropout},
        {"crop", crop},
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(own[i].op, j->node->desc->name) == 0) {
            own[i].write(j);
            return 1;
        }
    return 0;
}
