/* Operators that ONNX has too: which of their attributes become attributes and which become
 * inputs. */
#include "export.h"

#include <stdio.h>

static const struct row {
    const char *op, *onnx;
    /* names of attributes that are the same in ONNX, each surrounded by blanks */
    const char *attrs;
    const char *inputs; /* attributes that become inputs: " name:port " */
} rows[] = {
    {"conv", "Conv", " strides pads dilations group auto_pad ", ""},
    {"conv_transpose", "ConvTranspose",
     " strides pads dilations group auto_pad output_padding output_shape ", ""},
    {"max_pool", "MaxPool",
     " kernel_shape strides pads dilations ceil_mode auto_pad storage_order ", ""},
    {"average_pool", "AveragePool",
     " kernel_shape strides pads dilations ceil_mode auto_pad count_include_pad ", ""},
    {"lp_pool", "LpPool", " kernel_shape strides pads dilations ceil_mode auto_pad p ", ""},
    {"global_average_pool", "GlobalAveragePool", "", ""},
    {"global_max_pool", "GlobalMaxPool", "", ""},
    {"global_lp_pool", "GlobalLpPool", " p ", ""},
    {"gemm", "Gemm", " alpha beta transA transB ", ""},
    {"matmul", "MatMul", "", ""},
    {"batch_normalization", "BatchNormalization", " epsilon ", ""},
    {"instance_normalization", "InstanceNormalization", " epsilon ", ""},
    {"layer_normalization", "LayerNormalization", " axis epsilon ", ""},
    {"mean_variance_normalization", "MeanVarianceNormalization", " axes ", ""},
    {"lp_normalization", "LpNormalization", " axis p ", ""},
    {"lrn", "LRN", " size alpha beta bias ", ""},
    {"softmax", "Softmax", " axis ", ""},
    {"log_softmax", "LogSoftmax", " axis ", ""},
    {"hardmax", "Hardmax", " axis ", ""},
    {"flatten", "Flatten", " axis ", ""},
    {"identity", "Identity", "", ""},
    {"relu", "Relu", "", ""},
    {"leaky_relu", "LeakyRelu", " alpha ", ""},
    {"prelu", "PRelu", "", ""},
    {"thresholded_relu", "ThresholdedRelu", " alpha ", ""},
    {"clip", "Clip", "", " min:1 max:2 "},
    {"elu", "Elu", " alpha ", ""},
    {"selu", "Selu", " alpha gamma ", ""},
    {"celu", "Celu", " alpha ", ""},
    {"hard_sigmoid", "HardSigmoid", " alpha beta ", ""},
    {"hard_swish", "HardSwish", "", ""},
    {"sigmoid", "Sigmoid", "", ""},
    {"mish", "Mish", "", ""},
    {"gelu", "Gelu", " approximate ", ""},
    {"softplus", "Softplus", "", ""},
    {"softsign", "Softsign", "", ""},
    {"tanh", "Tanh", "", ""},
    {"erf", "Erf", "", ""},
    {"shrink", "Shrink", " bias lambd ", ""},
    {"exp", "Exp", "", ""},
    {"log", "Log", "", ""},
    {"sqrt", "Sqrt", "", ""},
    {"reciprocal", "Reciprocal", "", ""},
    {"abs", "Abs", "", ""},
    {"neg", "Neg", "", ""},
    {"sign", "Sign", "", ""},
    {"floor", "Floor", "", ""},
    {"ceil", "Ceil", "", ""},
    {"round", "Round", "", ""},
    {"sin", "Sin", "", ""},
    {"cos", "Cos", "", ""},
    {"tan", "Tan", "", ""},
    {"asin", "Asin", "", ""},
    {"acos", "Acos", "", ""},
    {"atan", "Atan", "", ""},
    {"sinh", "Sinh", "", ""},
    {"cosh", "Cosh", "", ""},
    {"asinh", "Asinh", "", ""},
    {"acosh", "Acosh", "", ""},
    {"atanh", "Atanh", "", ""},
    {"not", "Not", "", ""},
    {"is_nan", "IsNaN", "", ""},
    {"is_inf", "IsInf", " detect_negative detect_positive ", ""},
    {"add", "Add", "", ""},
    {"sub", "Sub", "", ""},
    {"mul", "Mul", "", ""},
    {"div", "Div", "", ""},
    {"pow", "Pow", "", ""},
    {"mod", "Mod", " fmod ", ""},
    {"max", "Max", "", ""},
    {"min", "Min", "", ""},
    {"sum", "Sum", "", ""},
    {"mean", "Mean", "", ""},
    {"equal", "Equal", "", ""},
    {"less", "Less", "", ""},
    {"greater", "Greater", "", ""},
    {"less_or_equal", "LessOrEqual", "", ""},
    {"greater_or_equal", "GreaterOrEqual", "", ""},
    {"and", "And", "", ""},
    {"or", "Or", "", ""},
    {"xor", "Xor", "", ""},
    {"where", "Where", "", ""},
    {"reduce_sum", "ReduceSum", " keepdims noop_with_empty_axes ", " axes:1 "},
    {"reduce_mean", "ReduceMean", " keepdims noop_with_empty_axes ", " axes:1 "},
    {"reduce_max", "ReduceMax", " keepdims noop_with_empty_axes ", " axes:1 "},
    {"reduce_min", "ReduceMin", " keepdims noop_with_empty_axes ", " axes:1 "},
    {"reduce_prod", "ReduceProd", " keepdims noop_with_empty_axes ", " axes:1 "},
    {"reduce_l1", "ReduceL1", " keepdims noop_with_empty_axes ", " axes:1 "},
    {"reduce_l2", "ReduceL2", " keepdims noop_with_empty_axes ", " axes:1 "},
    {"reduce_log_sum", "ReduceLogSum", " keepdims noop_with_empty_axes ", " axes:1 "},
    {"reduce_log_sum_exp", "ReduceLogSumExp", " keepdims noop_with_empty_axes ", " axes:1 "},
    {"reduce_sum_square", "ReduceSumSquare", " keepdims noop_with_empty_axes ", " axes:1 "},
    {"arg_max", "ArgMax", " axis keepdims select_last_index ", ""},
    {"arg_min", "ArgMin", " axis keepdims select_last_index ", ""},
    {"top_k", "TopK", " axis largest sorted ", " k:1 "},
    {"cum_sum", "CumSum", " exclusive reverse ", " axis:1 "},
    {"concat", "Concat", " axis ", ""},
    {"split", "Split", " axis num_outputs ", " split:1 "},
    {"slice", "Slice", "", " starts:1 ends:2 axes:3 steps:4 "},
    {"transpose", "Transpose", " perm ", ""},
    {"reshape", "Reshape", " allowzero ", " shape:1 "},
    {"squeeze", "Squeeze", "", " axes:1 "},
    {"unsqueeze", "Unsqueeze", "", " axes:1 "},
    {"expand", "Expand", "", " shape:1 "},
    {"tile", "Tile", "", " repeats:1 "},
    {"pad", "Pad", " mode ", " pads:1 value:2 axes:3 "},
    {"gather", "Gather", " axis ", ""},
    {"gather_elements", "GatherElements", " axis ", ""},
    {"shape", "Shape", " start end ", ""},
    {"size", "Size", "", ""},
    {"cast", "Cast", " to ", ""},
    {"depth_to_space", "DepthToSpace", " blocksize mode ", ""},
    {"space_to_depth", "SpaceToDepth", " blocksize ", ""},
    {"resize", "Resize",
     " mode coordinate_transformation_mode nearest_mode cubic_coeff_a exclude_outside "
     "extrapolation_value antialias axes keep_aspect_ratio_policy ",
     " scales:2 sizes:3 "},
    {"grid_sample", "GridSample", " mode padding_mode align_corners ", ""},
    {"quantize_linear", "QuantizeLinear", " axis ", ""},
    {"dequantize_linear", "DequantizeLinear", " axis ", ""},
    {"qlinear_conv", "QLinearConv", " kernel_shape strides pads dilations group auto_pad ", ""},
    {"qlinear_matmul", "QLinearMatMul", "", ""},
    {"conv_integer", "ConvInteger", " kernel_shape strides pads dilations group auto_pad ", ""},
    {"matmul_integer", "MatMulInteger", "", ""},
    {"dynamic_quantize_linear", "DynamicQuantizeLinear", "", ""},
    {"non_max_suppression", "NonMaxSuppression", " center_point_box ", ""},
    {"rnn", "RNN", " direction hidden_size ", ""},
    {"gru", "GRU", " direction hidden_size linear_before_reset ", ""},
    {"lstm", "LSTM", " direction hidden_size ", ""},
    {"einsum", "Einsum", " equation ", ""},
    {"trilu", "Trilu", " upper ", ""},
    {"col2im", "Col2Im", " strides pads dilations ", ""},
    {"affine_grid", "AffineGrid", " align_corners ", ""},
    {"group_normalization", "GroupNormalization", " num_groups epsilon ", ""},
    {"deform_conv", "DeformConv", " kernel_shape strides pads dilations group offset_group ", ""},
    {"gather_nd", "GatherND", " batch_dims ", ""},
    {"scatter_elements", "ScatterElements", " axis reduction ", ""},
    {"scatter_nd", "ScatterND", " reduction ", ""},
    {"one_hot", "OneHot", " axis ", ""},
    {"non_zero", "NonZero", "", ""},
    {"range", "Range", "", ""},
    {"eye_like", "EyeLike", " k ", ""},
    {"cast_like", "CastLike", "", ""},
    {"roi_align", "RoiAlign",
     " mode output_height output_width sampling_ratio spatial_scale "
     "coordinate_transformation_mode ",
     ""},
    {"max_roi_pool", "MaxRoiPool", " pooled_shape spatial_scale ", ""},
    {"reverse_sequence", "ReverseSequence", " batch_axis time_axis ", ""},
    {"bit_shift", "BitShift", " direction ", ""},
    {"bitwise_and", "BitwiseAnd", "", ""},
    {"bitwise_or", "BitwiseOr", "", ""},
    {"bitwise_xor", "BitwiseXor", "", ""},
    {"bitwise_not", "BitwiseNot", "", ""},
};

/* 1 if a list of words with spaces has the name. */
static int lists(const char *list, const char *name) {
    char word[80];
    snprintf(word, sizeof word, " %.70s ", name);
    return strstr(list, word) != NULL;
}

/* The port that attribute `name` becomes, from the list " NAME:PORT "; -1: none. */
static int port_of(const char *list, const char *name) {
    char word[80];
    snprintf(word, sizeof word, " %.70s:", name);
    const char *at = strstr(list, word);
    return at ? at[strlen(word)] - '0' : -1;
}

/* 1 for dilations that are all 1, the default. Pools that average have no such attribute before
 * opset 19. */
static int is_default_dilation(const cnr_attr *a) {
    if (strcmp(a->name, "dilations") != 0) return 0;
    for (int64_t i = 0; i < a->n; i++)
        if (a->ints[i] != 1) return 0;
    return 1;
}

/* Adds the attributes that the row names. */
static void put_attrs(out_job *j, Onnx__NodeProto *n, const struct row *row) {
    out_writer *w = j->w;
    for (int32_t i = 0; n && i < j->node->n_attrs; i++) {
        const cnr_attr *a = j->node->attrs[i];
        if (!lists(row->attrs, a->name) || is_default_dilation(a)) continue;
        if (strcmp(a->name, "auto_pad") == 0 && cnr_attr_is(j->node, "auto_pad", "NOTSET"))
            continue;
        const int same = strncmp(cnr_attr_string(j->node, "auto_pad"), "NOTSET", 6) != 0 &&
                         *cnr_attr_string(j->node, "auto_pad");
        if (same && strcmp(a->name, "pads") == 0) continue;
        /* ONNX writes these only if they are set */
        if (!a->set && (lists(" num_outputs end axes output_shape perm ", a->name))) continue;
        out_put_attr(w, n, a);
    }
}

/* Writes a node as one ONNX operator by its row. */
static void plain(out_job *j, const struct row *row) {
    out_writer *w = j->w;
    const cnr_attr *centred = cnr_attr_find(j->node, "centred");
    if (centred && !centred->i)
        return out_unsupported(w, j->node,
                               "operator set 21 has no RMS normalisation: write it as "
                               "operators of its own");
    for (int32_t i = 0; i < j->node->n_attrs; i++) {
        const cnr_attr *a = j->node->attrs[i];
        const int port = port_of(row->inputs, a->name);
        if (port < 0 || !a->set || (port < j->n_in && *j->in[port])) continue;
        while (j->n_in <= port) j->in[j->n_in++] = "";
        if (a->type == CNR_ATTR_INTS) j->in[port] = out_ints(w, a->ints, a->n);
        else if (a->type == CNR_ATTR_FLOAT) j->in[port] = out_scalar(w, a->f);
        else if (a->type == CNR_ATTR_FLOATS) j->in[port] = out_floats(w, a->floats, a->n);
        else j->in[port] = out_ints(w, &a->i, 1);
    }
    while (j->n_in > 0 && !*j->in[j->n_in - 1]) j->n_in--;
    Onnx__NodeProto *n = out_node(w, row->onnx, j->in, j->n_in, j->out, j->n_out);
    put_attrs(j, n, row);
}

/* The row of our operator; NULL: ONNX has no operator like it. */
static const struct row *row_of(const char *op) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op, op) == 0) return &rows[i];
    return NULL;
}

int out_is_onnx(const char *op) { return row_of(op) != NULL; }

int out_row(out_job *j) {
    const struct row *row = row_of(j->node->desc->name);
    if (row) plain(j, row);
    return row != NULL;
}

void out_attrs_of(out_job *j, Onnx__NodeProto *n, const char *op) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op, op) == 0) put_attrs(j, n, &rows[i]);
}
