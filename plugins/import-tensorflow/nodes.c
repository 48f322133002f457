/* The table of TensorFlow's operators, and the conversion of a node. */
#include "job.h"

/* A row of the table of operators. */
#define ROW(TYPE, CONVERT, OP, MIN_IN) IMP_LAYER(TYPE, CONVERT, .op = OP, .min_in = MIN_IN)
static const tf_row rows[] = {
    ROW("Abs", tf_op_unary, "abs", 1),
    ROW("Acos", tf_op_unary, "acos", 1),
    ROW("Acosh", tf_op_unary, "acosh", 1),
    ROW("Add", tf_op_binary, "add", 2),
    ROW("AddN", tf_op_add_n, "sum", 1),
    ROW("AddV2", tf_op_binary, "add", 2),
    ROW("All", tf_op_any_all, "reduce_min", 2),
    ROW("Any", tf_op_any_all, "reduce_max", 2),
    ROW("ArgMax", tf_op_arg_max, "arg_max", 2),
    ROW("ArgMin", tf_op_arg_max, "arg_min", 2),
    ROW("Asin", tf_op_unary, "asin", 1),
    ROW("Asinh", tf_op_unary, "asinh", 1),
    ROW("Atan", tf_op_unary, "atan", 1),
    ROW("Atanh", tf_op_unary, "atanh", 1),
    ROW("AvgPool", tf_op_pool, "average_pool", 1),
    ROW("AvgPool3D", tf_op_pool, "average_pool", 1),
    ROW("BatchMatMul", tf_op_batch_mat_mul, "matmul", 2),
    ROW("BatchMatMulV2", tf_op_batch_mat_mul, "matmul", 2),
    ROW("BatchMatMulV3", tf_op_batch_mat_mul, "matmul", 2),
    ROW("BatchToSpaceND", tf_op_space_batch, NULL, 3),
    ROW("BiasAdd", tf_op_bias_add, "add", 2),
    ROW("BroadcastTo", tf_op_expand, NULL, 2),
    ROW("Cast", tf_op_cast, NULL, 1),
    ROW("Ceil", tf_op_unary, "ceil", 1),
    ROW("CheckNumerics", tf_op_pass, NULL, 1),
    ROW("Concat", tf_op_concat, NULL, 2),
    ROW("ConcatV2", tf_op_concat, NULL, 2),
    ROW("Const", tf_op_constant_node, NULL, 0),
    ROW("Conv2D", tf_op_conv, NULL, 2),
    ROW("Conv2DBackpropInput", tf_op_conv_input_grad, NULL, 3),
    ROW("Conv3D", tf_op_conv, NULL, 2),
    ROW("Conv3DBackpropInputV2", tf_op_conv_input_grad, NULL, 3),
    ROW("Cos", tf_op_unary, "cos", 1),
    ROW("Cosh", tf_op_unary, "cosh", 1),
    ROW("Cumsum", tf_op_cum_sum, NULL, 2),
    ROW("DepthToSpace", tf_op_depth_space, "depth_to_space", 1),
    ROW("DepthwiseConv2dNative", tf_op_conv, NULL, 2),
    ROW("Dequantize", tf_op_dequantize, NULL, 3),
    ROW("Div", tf_op_binary, "div", 2),
    ROW("Einsum", tf_op_einsum, NULL, 2),
    ROW("Elu", tf_op_unary, "elu", 1),
    ROW("EnsureShape", tf_op_pass, NULL, 1),
    ROW("Equal", tf_op_binary, "equal", 2),
    ROW("Erf", tf_op_unary, "erf", 1),
    ROW("Erfc", tf_op_shifted, "erf", 1),
    ROW("Exp", tf_op_unary, "exp", 1),
    ROW("ExpandDims", tf_op_expand_dims, NULL, 2),
    ROW("Expm1", tf_op_shifted, "exp", 1),
    ROW("FakeQuantWithMinMaxArgs", tf_op_fake_quantize, NULL, 1),
    ROW("FakeQuantWithMinMaxVars", tf_op_fake_quantize, NULL, 3),
    ROW("FakeQuantWithMinMaxVarsPerChannel", tf_op_fake_quantize, NULL, 3),
    ROW("Fill", tf_op_expand, NULL, 2),
    ROW("Floor", tf_op_unary, "floor", 1),
    ROW("FloorDiv", tf_op_floor_div, "floor_div", 2),
    ROW("FloorMod", tf_op_mod, NULL, 2),
    ROW("FusedBatchNorm", tf_op_batch_norm, NULL, 5),
    ROW("FusedBatchNormV2", tf_op_batch_norm, NULL, 5),
    ROW("FusedBatchNormV3", tf_op_batch_norm, NULL, 5),
    ROW("Gather", tf_op_gather, "gather", 2),
    ROW("GatherNd", tf_op_gather, "gather_nd", 2),
    ROW("GatherV2", tf_op_gather, "gather", 3),
    ROW("Greater", tf_op_binary, "greater", 2),
    ROW("GreaterEqual", tf_op_binary, "greater_or_equal", 2),
    ROW("Identity", tf_op_pass, NULL, 1),
    ROW("IdentityN", tf_op_identity_n, NULL, 1),
    ROW("Inv", tf_op_unary, "reciprocal", 1),
    ROW("LRN", tf_op_lrn, NULL, 1),
    ROW("LeakyRelu", tf_op_leaky_relu, NULL, 1),
    ROW("Less", tf_op_binary, "less", 2),
    ROW("LessEqual", tf_op_binary, "less_or_equal", 2),
    ROW("Log", tf_op_unary, "log", 1),
    ROW("Log1p", tf_op_shifted, "log", 1),
    ROW("LogSoftmax", tf_op_softmax, "log_softmax", 1),
    ROW("LogicalAnd", tf_op_binary, "and", 2),
    ROW("LogicalNot", tf_op_unary, "not", 1),
    ROW("LogicalOr", tf_op_binary, "or", 2),
    ROW("MatMul", tf_op_mat_mul, NULL, 2),
    ROW("Max", tf_op_reduce, "reduce_max", 2),
    ROW("MaxPool", tf_op_pool, "max_pool", 1),
    ROW("MaxPool3D", tf_op_pool, "max_pool", 1),
    ROW("MaxPoolV2", tf_op_pool, "max_pool", 3),
    ROW("Maximum", tf_op_binary, "max", 2),
    ROW("Mean", tf_op_reduce, "reduce_mean", 2),
    ROW("Merge", tf_op_merge, NULL, 1),
    ROW("Min", tf_op_reduce, "reduce_min", 2),
    ROW("Minimum", tf_op_binary, "min", 2),
    ROW("MirrorPad", tf_op_pad, NULL, 2),
    ROW("Mod", tf_op_mod, NULL, 2),
    ROW("Mul", tf_op_binary, "mul", 2),
    ROW("Neg", tf_op_unary, "neg", 1),
    ROW("NonMaxSuppression", tf_op_non_max_suppression, NULL, 3),
    ROW("NonMaxSuppressionV2", tf_op_non_max_suppression, NULL, 4),
    ROW("NonMaxSuppressionV3", tf_op_non_max_suppression, NULL, 5),
    ROW("NotEqual", tf_op_not_equal, NULL, 2),
    ROW("OneHot", tf_op_one_hot, NULL, 4),
    ROW("OnesLike", tf_op_filled_like, NULL, 1),
    ROW("Pack", tf_op_pack, NULL, 1),
    ROW("Pad", tf_op_pad, NULL, 2),
    ROW("PadV2", tf_op_pad, NULL, 3),
    ROW("Placeholder", tf_op_placeholder, NULL, 0),
    ROW("PlaceholderWithDefault", tf_op_with_default, NULL, 1),
    ROW("Pow", tf_op_binary, "pow", 2),
    ROW("PreventGradient", tf_op_pass, NULL, 1),
    ROW("Print", tf_op_pass, NULL, 1),
    ROW("Prod", tf_op_reduce, "reduce_prod", 2),
    ROW("RandomUniform", tf_op_random, NULL, 1),
    ROW("Range", tf_op_range, NULL, 3),
    ROW("Rank", tf_op_rank, NULL, 1),
    ROW("RealDiv", tf_op_binary, "div", 2),
    ROW("Reciprocal", tf_op_unary, "reciprocal", 1),
    ROW("Relu", tf_op_unary, "relu", 1),
    ROW("Relu6", tf_op_unary, "relu6", 1),
    ROW("Reshape", tf_op_reshape, NULL, 2),
    ROW("ResizeBicubic", tf_op_resize, "cubic", 2),
    ROW("ResizeBilinear", tf_op_resize, "linear", 2),
    ROW("ResizeNearestNeighbor", tf_op_resize, "nearest", 2),
    ROW("ReverseV2", tf_op_reverse, NULL, 2),
    ROW("Rint", tf_op_unary, "round", 1),
    ROW("Round", tf_op_unary, "round", 1),
    ROW("Rsqrt", tf_op_shifted, "sqrt", 1),
    ROW("Select", tf_op_select, "where", 3),
    ROW("SelectV2", tf_op_select, "where", 3),
    ROW("Selu", tf_op_unary, "selu", 1),
    ROW("Shape", tf_op_shape, "shape", 1),
    ROW("Sigmoid", tf_op_unary, "sigmoid", 1),
    ROW("Sign", tf_op_unary, "sign", 1),
    ROW("Sin", tf_op_unary, "sin", 1),
    ROW("Sinh", tf_op_unary, "sinh", 1),
    ROW("Size", tf_op_shape, "size", 1),
    ROW("Slice", tf_op_slice, NULL, 3),
    ROW("Snapshot", tf_op_pass, NULL, 1),
    ROW("Softmax", tf_op_softmax, "softmax", 1),
    ROW("Softplus", tf_op_unary, "softplus", 1),
    ROW("Softsign", tf_op_unary, "softsign", 1),
    ROW("SpaceToBatchND", tf_op_space_batch, NULL, 3),
    ROW("SpaceToDepth", tf_op_depth_space, "space_to_depth", 1),
    ROW("Split", tf_op_split, "num_split", 2),
    ROW("SplitV", tf_op_split, "num_split", 3),
    ROW("Sqrt", tf_op_unary, "sqrt", 1),
    ROW("Square", tf_op_squared, NULL, 1),
    ROW("SquaredDifference", tf_op_squared, NULL, 2),
    ROW("Squeeze", tf_op_squeeze, NULL, 1),
    ROW("StopGradient", tf_op_pass, NULL, 1),
    ROW("StridedSlice", tf_op_strided_slice, NULL, 4),
    ROW("Sub", tf_op_binary, "sub", 2),
    ROW("Sum", tf_op_reduce, "reduce_sum", 2),
    ROW("Switch", tf_op_switch, NULL, 2),
    ROW("Tan", tf_op_unary, "tan", 1),
    ROW("Tanh", tf_op_unary, "tanh", 1),
    ROW("Tile", tf_op_tile, NULL, 2),
    ROW("TopKV2", tf_op_top_k, NULL, 2),
    ROW("Transpose", tf_op_transpose, NULL, 2),
    ROW("TruncateDiv", tf_op_binary, "div", 2),
    ROW("TruncateMod", tf_op_mod, NULL, 2),
    ROW("Unpack", tf_op_unpack, "num", 1),
    ROW("ZerosLike", tf_op_filled_like, NULL, 1),
    ROW("_FusedConv2D", tf_op_conv, NULL, 2),
    ROW("_FusedDepthwiseConv2dNative", tf_op_conv, NULL, 2),
    ROW("_FusedMatMul", tf_op_mat_mul, NULL, 2),
};

const tf_row *tf_row_of(const char *op) {
    static const tf_row theirs = {.type = "", .convert = tf_op_theirs, .max_in = INT32_MAX};
    const tf_row *row = IMP_ROW_OF(rows, op);
    return row || !imp_host->find_import_row("tensorflow", NULL, op, 0) ? row : &theirs;
}

/* ---- conversion of a node ---- */

/* Allocates the outputs, as most operators do not declare how many they have; 0: no memory. */
static int room_for_outputs(tf_job *j) {
    enum { MOST = 4096, USUAL = 6 };
    int64_t n = USUAL;
    if (j->entry->row->convert == tf_op_identity_n) n = (int64_t)j->entry->node->n_input;
    if (j->ours) n = tf_attr_int(j, j->ours, n); /* an attribute: num_split, num */
    if (n < 1 || n > MOST) return tf_problem(j, "it has %lld outputs", (long long)n), 0;
    j->entry->out = (tf_layouts *)tf_block(j->net, (size_t)n * sizeof(tf_layouts));
    j->entry->n_out = j->entry->out ? (int32_t)n : 0;
    for (int32_t i = 0; i < j->entry->n_out; i++)
        j->entry->out[i] = (tf_layouts){.plain = -1, .turned = -1};
    return j->entry->n_out > 0;
}

/* The value that an input names; NULL: none (yet). */
static tf_layouts *layouts_of(tf_net *net, tf_entry *from, int32_t output) {
    if (!from || from->dead) return from ? &net->dead : NULL;
    return output < from->n_out ? &from->out[output] : NULL;
}

/* Whether the node is on a branch that is not taken, according to its inputs and control inputs. */
static int is_dead(tf_net *net, const tf_entry *entry) {
    const Tf__NodeDef *node = entry->node;
    for (size_t i = 0; i < node->n_input; i++) {
        const char *text = node->input[i];
        int32_t output;
        tf_entry *from = tf_input(net, text, &output);
        if (*text == '^') from = tf_find(net, text + 1, strlen(text + 1));
        const tf_layouts *x = layouts_of(net, from, output);
        if (x && x->dead) return 1;
    }
    return 0;
}

/* Collects the data inputs; 0: one of them is unusable. */
static int gather(tf_job *j) {
    const Tf__NodeDef *node = j->entry->node;
    j->in = (tf_layouts **)tf_block(j->net, (node->n_input + 1) * sizeof *j->in);
    j->scratch = (cnr_value *)tf_block(j->net, (node->n_input + 1) * sizeof *j->scratch);
    if (!j->in || !j->scratch) return 0;
    for (size_t i = 0; i < node->n_input && !j->entry->failed; i++) {
        int32_t output;
        if (*node->input[i] == '^') continue;
        tf_entry *from = tf_input(j->net, node->input[i], &output);
        tf_layouts *x = layouts_of(j->net, from, output);
        if (!from) tf_problem(j, "it reads \"%.120s\", which is not there", node->input[i]);
        else if (from->failed) j->entry->failed = 1; /* its problem was reported already */
        else if (!x || (x->plain < 0 && x->turned < 0 && !x->dead && !x->noise))
            tf_problem(j, "it reads \"%.120s\", which is not supported", node->input[i]);
        else j->in[j->n_in++] = x;
    }
    if (!j->entry->failed && j->n_in < j->entry->row->min_in) tf_problem(j, "inputs are missing");
    return !j->entry->failed;
}

void tf_convert(tf_net *net, tf_entry *entry) {
    const tf_row *row = entry->row;
    tf_job j = {.net = net, .entry = entry, .op = entry->node->op, .name = entry->node->name};
    const int merges = row && row->convert == tf_op_merge;
    entry->dead = !merges && is_dead(net, entry);
    if (entry->dead) return;
    if (!row) entry->failed = 1; /* reported together with others of its type */
    if (entry->failed) return;
    j.ours = row->op;
    if (!room_for_outputs(&j) || !gather(&j) || tf_noise(&j)) return;
    row->convert(&j);
    if (entry->failed) return;
    tf_note_sizes(&j);
    const tf_layouts *y = entry->out;
    if (y->plain < 0 && y->turned < 0 && !y->noise && row->convert != tf_op_switch && !merges)
        entry->failed = 1; /* the graph has its problem */
}
