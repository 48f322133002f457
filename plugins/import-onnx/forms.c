/* Adapts nodes whose form differs from ours: constants as nodes, and older operator sets. */
#include "heads.h"

#include <stdio.h>

cnr_value onnx_constant(onnx_job *j, int32_t dtype, const void *data, const int64_t *dim,
                        int32_t rank) {
    cnr_tensor t = {.size = sizeof t,
                    .dtype = dtype,
                    .rank = rank,
                    .flags = CNR_TENSOR_CONST,
                    .data = (void *)data};
    char name[ONNX_TEXT + 24];
    for (int32_t i = 0; i < rank; i++) t.dim[i] = dim[i];
    t.bytes = cnr_dense_bytes(&t);
    snprintf(name, sizeof name, "%s.value%d", j->name, (int)++j->n_made);
    return imp_host->graph_constant(j->net->imp.graph, name, &t);
}

/* Type of a value; NULL: not known. */
static const cnr_tensor *type_of(const onnx_job *j, cnr_value v) {
    return imp_type(&j->net->imp, v);
}

/* Adds an unsqueeze of x: n axes of size 1. */
static cnr_value over(onnx_job *j, cnr_value x, const int64_t *axes, int64_t n) {
    imp_attrs attrs = {.n = 0};
    imp_ints(&attrs, "axes", axes, n);
    return onnx_step(j, "unsqueeze", &x, 1, &attrs);
}

/* ---- older operator sets ---- */

/* Before operator set 7, the second operand was broadcast along the first from `axis` on. */
static void old_broadcast(onnx_job *j) {
    const cnr_tensor *x = type_of(j, j->in[0]), *y = type_of(j, j->n_in > 1 ? j->in[1] : -1);
    if (j->net->opset >= 7 || !onnx_proto(j, "axis") || !x || !y) return;
    int64_t axis = onnx_int(j, "axis", 0), axes[CNR_MAX_RANK], n = 0;
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis + y->rank > x->rank) return onnx_problem(j, "axis does not fit%s", "");
    for (int64_t i = axis + y->rank; i < x->rank; i++) axes[n] = y->rank + n, n++;
    if (n == 0) return;
    j->in[1] = over(j, j->in[1], axes, n);
}

/* Before operator set 13, all axes from `axis` on were normalised together. */
static void softmax(onnx_job *j) {
    const cnr_tensor *x = type_of(j, j->in[0]);
    imp_attrs from = {.n = 0}, rows = {.n = 0};
    int64_t axis = onnx_int(j, "axis", j->net->opset >= 13 ? -1 : 1);
    if (axis < 0 && x) axis += x->rank;
    if (j->net->opset >= 13 || !x || x->rank == 0 || axis == x->rank - 1) {
        imp_int(&j->attrs, "axis", x && x->rank ? axis : -1);
        return;
    }
    imp_int(&from, "axis", axis);
    imp_int(&rows, "axis", 1);
    j->in[1] = j->in[0];
    j->in[0] = onnx_step(j, "flatten", j->in, 1, &from);
    j->in[0] = onnx_step(j, j->op, j->in, 1, &rows);
    j->n_in = 2;
    snprintf(j->op, sizeof j->op, "reshape_like");
}

/* Before operator set 7, a one-dimensional slope had one value for each channel. */
static void prelu(onnx_job *j) {
    const cnr_tensor *x = type_of(j, j->in[0]), *slope = type_of(j, j->n_in > 1 ? j->in[1] : -1);
    int64_t axes[CNR_MAX_RANK], n = 0;
    if (j->net->opset >= 7 || !x || !slope || slope->rank != 1 || x->rank < 3) return;
    for (int32_t i = 2; i < x->rank; i++) axes[n] = 1 + n, n++;
    j->in[1] = over(j, j->in[1], axes, n);
}

/* Adds the mean over batch and space; keep: axes stay with size 1. */
static cnr_value mean_of(onnx_job *j, cnr_value x, int32_t rank, int keep) {
    int64_t axes[CNR_MAX_RANK] = {0};
    imp_attrs attrs = {.n = 0};
    for (int32_t i = 2; i < rank; i++) axes[i - 1] = i;
    imp_ints(&attrs, "axes", axes, rank - 1);
    imp_bool(&attrs, "keepdims", keep);
    return onnx_step(j, "reduce_mean", &x, 1, &attrs);
}

/* x divided by the root of its mean square from `axis` on, times a scale, whose type the result
 * has. Squares of 16-bit numbers are taken in f32, as the default of stash_type has it. */
void onnx_rms_norm(onnx_job *j) {
    const double fallback = strncmp(j->node->op_type, "Skip", 4) == 0 ? 1e-12 : 1e-5;
    const cnr_tensor *x = type_of(j, j->in[0]);
    const Onnx__AttributeProto *given = onnx_proto(j, "epsilon");
    int64_t axis = onnx_int(j, "axis", -1), axes[CNR_MAX_RANK];
    imp_attrs attrs = {.n = 0};
    if (!x || j->n_in != 2)
        return onnx_problem(j, "an input of known rank and a scale are wanted%s", "");
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank) return onnx_problem(j, "axis does not fit%s", "");
    for (int64_t i = axis; i < x->rank; i++) axes[i - axis] = i;
    imp_ints(&attrs, "axes", axes, x->rank - axis);
    imp_bool(&attrs, "keepdims", 1);
    const cnr_value exact = x->dtype == CNR_f64 ? j->in[0] : onnx_cast(j, j->in[0], CNR_f32);
    const double epsilon = given && given->has_f ? (double)given->f : fallback;
    cnr_value root = onnx_step2(j, "mul", exact, exact);
    root = onnx_step(j, "reduce_mean", &root, 1, &attrs);
    root = onnx_step2(j, "add", root, onnx_number_like(j, epsilon, exact));
    root = onnx_step(j, "sqrt", &root, 1, NULL);
    const cnr_tensor *scale = type_of(j, j->in[1]);
    j->in[0] = onnx_step2(j, "div", exact, root);
    if (scale) j->in[0] = onnx_cast(j, j->in[0], scale->dtype);
    snprintf(j->op, sizeof j->op, "mul");
}

/* Adds statistics of earlier batches, moved towards those of this one by the node's momentum. */
static cnr_value moved(onnx_job *j, cnr_value old, cnr_value now) {
    const Onnx__AttributeProto *given = onnx_proto(j, "momentum");
    const double kept = given && given->has_f ? (double)given->f : 0.9;
    cnr_value part[2] = {old, now};
    for (int i = 0; i < 2; i++) {
        const float by = (float)(i ? 1 - kept : kept);
        const cnr_value in[] = {part[i], onnx_constant(j, CNR_f32, &by, NULL, 0)};
        part[i] = onnx_step(j, "mul", in, 2, NULL);
    }
    return onnx_step(j, "add", part, 2, NULL);
}

static void give_statistics(onnx_job *j) { j->n_out = (int32_t)j->node->n_output; }

/* Adapts BatchNormalization. In training mode, the statistics are those of x. Some nets normalise
 * their weights with it; these are constants, so all of it is folded. */
static void batch_norm(onnx_job *j) {
    const cnr_tensor *x = type_of(j, j->in[0]);
    int training = onnx_int(j, "training_mode", 0) != 0;
    /* older sets marked training mode by additional outputs */
    if (j->net->opset < 14 && !onnx_int(j, "is_test", 0))
        for (size_t i = 1; i < j->node->n_output; i++) training |= j->node->output[i][0] != 0;
    j->n_out = 1;
    if (onnx_int(j, "spatial", 1) == 0) onnx_problem(j, "spatial = 0 is not supported%s", "");
    if (!training) return;
    if (!x || x->rank < 2 || j->n_in != 5)
        return onnx_problem(j, "training mode needs an input of known rank%s", "");
    const cnr_value old[] = {j->in[3], j->in[4]};
    const cnr_value parts[] = {j->in[0], mean_of(j, j->in[0], x->rank, 1)};
    const cnr_value rest = onnx_step(j, "sub", parts, 2, NULL);
    const cnr_value square = onnx_step(j, "mul", (cnr_value[]){rest, rest}, 2, NULL);
    j->in[3] = mean_of(j, j->in[0], x->rank, 0);
    j->in[4] = mean_of(j, square, x->rank, 0);
    if (j->net->opset >= 14 && j->node->n_output > 1) {
        for (int i = 1; i < 3; i++) j->out[i] = moved(j, old[i - 1], j->in[2 + i]);
        j->after = give_statistics;
    }
}

/* Early operator sets allowed batch and channels in output_shape, too. */
static void conv_transpose(onnx_job *j) {
    const Onnx__AttributeProto *shape = onnx_proto(j, "output_shape");
    const cnr_tensor *x = type_of(j, j->in[0]);
    if (!shape) return;
    const int64_t n = (int64_t)shape->n_ints, more = x && n == x->rank ? 2 : 0;
    imp_ints(&j->attrs, "output_shape", shape->ints + more, n - more);
}

/* Adapts Pad: takes "paddings" of operator set 1 as pads. */
static void pad(onnx_job *j) {
    const Onnx__AttributeProto *old = onnx_proto(j, "paddings");
    if (old) imp_ints(&j->attrs, "pads", old->ints, (int64_t)old->n_ints);
}

/* Operator set 10 had the scales as second input, and one fixed coordinate rule. */
static void fixed_resize(onnx_job *j) {
    imp_enum(&j->attrs, "coordinate_transformation_mode", "asymmetric");
    imp_enum(&j->attrs, "nearest_mode", "floor");
    if (j->n_in != 2) return;
    j->in[2] = j->in[1];
    j->in[1] = -1;
    j->n_in = 3;
}

/* Converts Resize of versions before 11. */
static void resize(onnx_job *j) {
    if (j->net->opset < 11) fixed_resize(j);
}

/* Needs no change. */
static void as_it_is(onnx_job *j) { (void)j; }

/* Adapts Upsample: scales are an attribute, or an input in later versions. */
static void upsample(onnx_job *j) {
    const Onnx__AttributeProto *scales = onnx_proto(j, "scales"), *mode = onnx_proto(j, "mode");
    const char *text = mode ? onnx_text(j, mode->s) : NULL;
    const int64_t n = scales ? (int64_t)scales->n_floats : 0;
    snprintf(j->op, sizeof j->op, "resize");
    imp_enum(&j->attrs, "mode", !text ? "nearest" : strstr(text, "linear") ? "linear" : text);
    if (n > 0) {
        j->in[1] = imp_weight(&j->net->imp, j->name, ".scales", scales->floats, &n, 1);
        j->n_in = 2;
    }
    if (j->n_in != 2) return onnx_problem(j, "scales are missing%s", "");
    fixed_resize(j);
}

/* Before operator set 16, coordinates were not shifted by half a pixel. */
static void roi_align(onnx_job *j) {
    if (j->net->opset < 16)
        imp_enum(&j->attrs, "coordinate_transformation_mode", "output_half_pixel");
}

static void top_k(onnx_job *j) { /* before operator set 10, k was an attribute */
    const Onnx__AttributeProto *k = onnx_proto(j, "k");
    if (!k || j->n_in != 1) return;
    j->in[1] = onnx_constant(j, CNR_i64, &k->i, (int64_t[]){1}, 1);
    j->n_in = 2;
}

/* up to operator set 20, scale and bias had one value for each group */
static void group_norm(onnx_job *j) {
    const int64_t groups = onnx_int(j, "num_groups", 1);
    const cnr_tensor *x = type_of(j, j->in[0]);
    if (j->net->opset >= 21 || !x || x->rank < 2 || x->dim[1] < 1 || j->n_in < 3) return;
    if (groups < 1 || x->dim[1] % groups) return onnx_problem(j, "num_groups does not fit%s", "");
    const int64_t turn[] = {-1, 1}, many[] = {1, x->dim[1] / groups};
    imp_attrs column = {.n = 0}, flat = {.n = 0}, repeat = {.n = 0};
    imp_ints(&column, "shape", turn, 2);
    imp_ints(&flat, "shape", turn, 1);
    imp_ints(&repeat, "repeats", many, 2);
    for (int i = 1; i < 3; i++) { /* repeats each group's value for all its channels */
        cnr_value v = onnx_step(j, "reshape", &j->in[i], 1, &column);
        v = onnx_step(j, "tile", &v, 1, &repeat);
        j->in[i] = onnx_step(j, "reshape", &v, 1, &flat);
    }
}

/* ---- constants ---- */

/* Converts Constant, in any of its forms, to a value of the net; what does not fit is noted as a
 * problem and sets j->failed. */
static void constant(onnx_job *j) {
    const Onnx__AttributeProto *value = onnx_proto(j, "value"), *a;
    cnr_tensor t = {.size = sizeof t, .flags = CNR_TENSOR_CONST};
    cnr_error err = CNR_ERROR_INIT;
    j->done = 1;
    if (value && value->t) {
        if (onnx_tensor_constant(value->t, j->net->imp.graph, j->net->imp.path, j->node->output[0],
                                 &j->out[0], &err))
            onnx_problem(j, "%s", err.text);
        return;
    }
    if ((a = onnx_proto(j, "value_float"))) {
        t.dtype = CNR_f32, t.data = (void *)&a->f, t.bytes = 4;
    } else if ((a = onnx_proto(j, "value_int"))) {
        t.dtype = CNR_i64, t.data = (void *)&a->i, t.bytes = 8;
    } else if ((a = onnx_proto(j, "value_floats"))) {
        t.dtype = CNR_f32, t.rank = 1, t.dim[0] = (int64_t)a->n_floats;
        t.data = a->floats, t.bytes = a->n_floats * 4;
    } else if ((a = onnx_proto(j, "value_ints"))) {
        t.dtype = CNR_i64, t.rank = 1, t.dim[0] = (int64_t)a->n_ints;
        t.data = a->ints, t.bytes = a->n_ints * 8;
    } else {
        return onnx_problem(j, "a constant of this form (sparse, string) is not supported%s", "");
    }
    /* An empty list has no address; NULL would mean "filled later". */
    if (!t.data) t.data = (void *)"";
    j->out[0] = imp_host->graph_constant(j->net->imp.graph, j->node->output[0], &t);
}

/* Reads the single element of `value` as a number and a type. */
static void constant_of_shape(onnx_job *j) {
    const Onnx__AttributeProto *value = onnx_proto(j, "value");
    if (!value || !value->t) return;
    cnr_tensor t;
    cnr_error err = CNR_ERROR_INIT;
    void *made;
    if (onnx_tensor(value->t, j->net->imp.path, j->name, &t, &made, &err))
        onnx_problem(j, "%s", err.text);
    else if (cnr_count(&t) != 1) onnx_problem(j, "value must hold one element%s", "");
    else {
        double d = 0;
        imp_host->elements_read(t.dtype, t.data, 0, 1, 1, CNR_f64, &d);
        imp_float(&j->attrs, "value", d);
        imp_dtype(&j->attrs, "dtype", t.dtype);
    }
    imp_host->free(made);
}

const onnx_form *onnx_form_of(const char *op) {
    static const onnx_form forms[] = {
        IMP_LAYER("add", old_broadcast, .takes = " axis "),
        IMP_LAYER("sub", old_broadcast, .takes = " axis "),
        IMP_LAYER("mul", old_broadcast, .takes = " axis "),
        IMP_LAYER("div", old_broadcast, .takes = " axis "),
        IMP_LAYER("pow", old_broadcast, .takes = " axis "),
        IMP_LAYER("and", old_broadcast, .takes = " axis "),
        IMP_LAYER("or", old_broadcast, .takes = " axis "),
        IMP_LAYER("xor", old_broadcast, .takes = " axis "),
        IMP_LAYER("equal", old_broadcast, .takes = " axis "),
        IMP_LAYER("less", old_broadcast, .takes = " axis "),
        IMP_LAYER("greater", old_broadcast, .takes = " axis "),
        IMP_LAYER("prelu", prelu),
        IMP_LAYER("softmax", softmax, .takes = " axis "),
        IMP_LAYER("log_softmax", softmax, .takes = " axis "),
        IMP_LAYER("hardmax", softmax, .takes = " axis "),
        IMP_LAYER("batch_normalization", batch_norm, .takes = " training_mode "),
        IMP_LAYER("rms_normalization", onnx_rms_norm, .takes = " axis epsilon stash_type "),
        IMP_LAYER("simplified_layer_normalization", onnx_rms_norm,
                  .takes = " axis epsilon stash_type "),
        IMP_LAYER("conv_transpose", conv_transpose, .takes = " output_shape "),
        IMP_LAYER("resize", resize),
        IMP_LAYER("constant", constant,
                  .takes = " value value_float value_int value_floats value_ints sparse_value "
                           "value_string value_strings "),
        IMP_LAYER("constant_of_shape", constant_of_shape, .takes = " value "),
        IMP_LAYER("pad", pad, .takes = " paddings "),
        IMP_LAYER("roi_align", roi_align),
        IMP_LAYER("upsample", upsample, .takes = " scales mode width_scale height_scale "),
        IMP_LAYER("top_k", top_k, .takes = " k "),
        IMP_LAYER("group_normalization", group_norm),
        IMP_LAYER("rnn", onnx_recurrent, .takes = " activations layout "),
        IMP_LAYER("gru", onnx_recurrent, .takes = " activations layout "),
        IMP_LAYER("lstm", onnx_recurrent, .takes = " activations layout "),
        IMP_LAYER("attention", onnx_attention,
                  .takes = " is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale "
                           "softcap softmax_precision "),
        IMP_LAYER("rotary_embedding", onnx_rotary,
                  .takes = " interleaved num_heads rotary_embedding_dim "),
        IMP_LAYER("max_unpool", onnx_max_unpool, .takes = " kernel_shape pads strides "),
        IMP_LAYER("center_crop_pad", onnx_center, .takes = " axes "),
        IMP_LAYER("dropout", as_it_is), /* these two are not exported under ONNX's names */
        IMP_LAYER("swish", as_it_is),
        IMP_LAYER("if", onnx_if, .takes = " then_branch else_branch "),
        IMP_LAYER("loop", onnx_loop, .takes = " body "),
        IMP_LAYER("scan", onnx_loop, .takes = " body num_scan_inputs "),
    };
    return IMP_ROW_OF(forms, op);
}
