/* The table of TensorFlow's operators, and the road of each node through it. */
#include "job.h"

#include <stdlib.h>

/* In the order of their names. */
static const tf_row rows[] = {
    {"Abs", tf_op_unary, 1, "abs"},
    {"Acos", tf_op_unary, 1, "acos"},
    {"Acosh", tf_op_unary, 1, "acosh"},
    {"Add", tf_op_binary, 2, "add"},
    {"AddN", tf_op_add_n, 1, "sum"},
    {"AddV2", tf_op_binary, 2, "add"},
    {"All", tf_op_any_all, 2, "reduce_min"},
    {"Any", tf_op_any_all, 2, "reduce_max"},
    {"ArgMax", tf_op_arg_max, 2, "arg_max"},
    {"ArgMin", tf_op_arg_max, 2, "arg_min"},
    {"Asin", tf_op_unary, 1, "asin"},
    {"Asinh", tf_op_unary, 1, "asinh"},
    {"Atan", tf_op_unary, 1, "atan"},
    {"Atanh", tf_op_unary, 1, "atanh"},
    {"AvgPool", tf_op_pool, 1, "average_pool"},
    {"AvgPool3D", tf_op_pool, 1, "average_pool"},
    {"BatchMatMul", tf_op_batch_mat_mul, 2, "matmul"},
    {"BatchMatMulV2", tf_op_batch_mat_mul, 2, "matmul"},
    {"BatchMatMulV3", tf_op_batch_mat_mul, 2, "matmul"},
    {"BatchToSpaceND", tf_op_space_batch, 3, NULL},
    {"BiasAdd", tf_op_bias_add, 2, "add"},
    {"BroadcastTo", tf_op_expand, 2, NULL},
    {"Cast", tf_op_cast, 1, NULL},
    {"Ceil", tf_op_unary, 1, "ceil"},
    {"CheckNumerics", tf_op_pass, 1, NULL},
    {"Concat", tf_op_concat, 2, NULL},
    {"ConcatV2", tf_op_concat, 2, NULL},
    {"Const", tf_op_constant_node, 0, NULL},
    {"Conv2D", tf_op_conv, 2, NULL},
    {"Conv2DBackpropInput", tf_op_conv_input_grad, 3, NULL},
    {"Conv3D", tf_op_conv, 2, NULL},
    {"Conv3DBackpropInputV2", tf_op_conv_input_grad, 3, NULL},
    {"Cos", tf_op_unary, 1, "cos"},
    {"Cosh", tf_op_unary, 1, "cosh"},
    {"Cumsum", tf_op_cum_sum, 2, NULL},
    {"DepthToSpace", tf_op_depth_space, 1, "depth_to_space"},
    {"DepthwiseConv2dNative", tf_op_conv, 2, NULL},
    {"Dequantize", tf_op_dequantize, 3, NULL},
    {"Div", tf_op_binary, 2, "div"},
    {"Einsum", tf_op_einsum, 2, NULL},
    {"Elu", tf_op_unary, 1, "elu"},
    {"EnsureShape", tf_op_pass, 1, NULL},
    {"Equal", tf_op_binary, 2, "equal"},
    {"Erf", tf_op_unary, 1, "erf"},
    {"Erfc", tf_op_shifted, 1, "erf"},
    {"Exp", tf_op_unary, 1, "exp"},
    {"ExpandDims", tf_op_expand_dims, 2, NULL},
    {"Expm1", tf_op_shifted, 1, "exp"},
    {"FakeQuantWithMinMaxArgs", tf_op_fake_quantize, 1, NULL},
    {"FakeQuantWithMinMaxVars", tf_op_fake_quantize, 3, NULL},
    {"FakeQuantWithMinMaxVarsPerChannel", tf_op_fake_quantize, 3, NULL},
    {"Fill", tf_op_expand, 2, NULL},
    {"Floor", tf_op_unary, 1, "floor"},
    {"FloorDiv", tf_op_floor_div, 2, "floor_div"},
    {"FloorMod", tf_op_mod, 2, NULL},
    {"FusedBatchNorm", tf_op_batch_norm, 5, NULL},
    {"FusedBatchNormV2", tf_op_batch_norm, 5, NULL},
    {"FusedBatchNormV3", tf_op_batch_norm, 5, NULL},
    {"Gather", tf_op_gather, 2, "gather"},
    {"GatherNd", tf_op_gather, 2, "gather_nd"},
    {"GatherV2", tf_op_gather, 3, "gather"},
    {"Greater", tf_op_binary, 2, "greater"},
    {"GreaterEqual", tf_op_binary, 2, "greater_or_equal"},
    {"Identity", tf_op_pass, 1, NULL},
    {"IdentityN", tf_op_identity_n, 1, NULL},
    {"Inv", tf_op_unary, 1, "reciprocal"},
    {"LRN", tf_op_lrn, 1, NULL},
    {"LeakyRelu", tf_op_leaky_relu, 1, NULL},
    {"Less", tf_op_binary, 2, "less"},
    {"LessEqual", tf_op_binary, 2, "less_or_equal"},
    {"Log", tf_op_unary, 1, "log"},
    {"Log1p", tf_op_shifted, 1, "log"},
    {"LogSoftmax", tf_op_softmax, 1, "log_softmax"},
    {"LogicalAnd", tf_op_binary, 2, "and"},
    {"LogicalNot", tf_op_unary, 1, "not"},
    {"LogicalOr", tf_op_binary, 2, "or"},
    {"MatMul", tf_op_mat_mul, 2, NULL},
    {"Max", tf_op_reduce, 2, "reduce_max"},
    {"MaxPool", tf_op_pool, 1, "max_pool"},
    {"MaxPool3D", tf_op_pool, 1, "max_pool"},
    {"MaxPoolV2", tf_op_pool, 3, "max_pool"},
    {"Maximum", tf_op_binary, 2, "max"},
    {"Mean", tf_op_reduce, 2, "reduce_mean"},
    {"Merge", tf_op_merge, 1, NULL},
    {"Min", tf_op_reduce, 2, "reduce_min"},
    {"Minimum", tf_op_binary, 2, "min"},
    {"MirrorPad", tf_op_pad, 2, NULL},
    {"Mod", tf_op_mod, 2, NULL},
    {"Mul", tf_op_binary, 2, "mul"},
    {"Neg", tf_op_unary, 1, "neg"},
    {"NonMaxSuppression", tf_op_non_max_suppression, 3, NULL},
    {"NonMaxSuppressionV2", tf_op_non_max_suppression, 4, NULL},
    {"NonMaxSuppressionV3", tf_op_non_max_suppression, 5, NULL},
    {"NotEqual", tf_op_not_equal, 2, NULL},
    {"OneHot", tf_op_one_hot, 4, NULL},
    {"OnesLike", tf_op_filled_like, 1, NULL},
    {"Pack", tf_op_pack, 1, NULL},
    {"Pad", tf_op_pad, 2, NULL},
    {"PadV2", tf_op_pad, 3, NULL},
    {"Placeholder", tf_op_placeholder, 0, NULL},
    {"PlaceholderWithDefault", tf_op_with_default, 1, NULL},
    {"Pow", tf_op_binary, 2, "pow"},
    {"PreventGradient", tf_op_pass, 1, NULL},
    {"Print", tf_op_pass, 1, NULL},
    {"Prod", tf_op_reduce, 2, "reduce_prod"},
    {"RandomUniform", tf_op_random, 1, NULL},
    {"Range", tf_op_range, 3, NULL},
    {"Rank", tf_op_rank, 1, NULL},
    {"RealDiv", tf_op_binary, 2, "div"},
    {"Reciprocal", tf_op_unary, 1, "reciprocal"},
    {"Relu", tf_op_unary, 1, "relu"},
    {"Relu6", tf_op_unary, 1, "relu6"},
    {"Reshape", tf_op_reshape, 2, NULL},
    {"ResizeBicubic", tf_op_resize, 2, "cubic"},
    {"ResizeBilinear", tf_op_resize, 2, "linear"},
    {"ResizeNearestNeighbor", tf_op_resize, 2, "nearest"},
    {"ReverseV2", tf_op_reverse, 2, NULL},
    {"Rint", tf_op_unary, 1, "round"},
    {"Round", tf_op_unary, 1, "round"},
    {"Rsqrt", tf_op_shifted, 1, "sqrt"},
    {"Select", tf_op_select, 3, "where"},
    {"SelectV2", tf_op_select, 3, "where"},
    {"Selu", tf_op_unary, 1, "selu"},
    {"Shape", tf_op_shape, 1, "shape"},
    {"Sigmoid", tf_op_unary, 1, "sigmoid"},
    {"Sign", tf_op_unary, 1, "sign"},
    {"Sin", tf_op_unary, 1, "sin"},
    {"Sinh", tf_op_unary, 1, "sinh"},
    {"Size", tf_op_shape, 1, "size"},
    {"Slice", tf_op_slice, 3, NULL},
    {"Snapshot", tf_op_pass, 1, NULL},
    {"Softmax", tf_op_softmax, 1, "softmax"},
    {"Softplus", tf_op_unary, 1, "softplus"},
    {"Softsign", tf_op_unary, 1, "softsign"},
    {"SpaceToBatchND", tf_op_space_batch, 3, NULL},
    {"SpaceToDepth", tf_op_depth_space, 1, "space_to_depth"},
    {"Split", tf_op_split, 2, "num_split"},
    {"SplitV", tf_op_split, 3, "num_split"},
    {"Sqrt", tf_op_unary, 1, "sqrt"},
    {"Square", tf_op_squared, 1, NULL},
    {"SquaredDifference", tf_op_squared, 2, NULL},
    {"Squeeze", tf_op_squeeze, 1, NULL},
    {"StopGradient", tf_op_pass, 1, NULL},
    {"StridedSlice", tf_op_strided_slice, 4, NULL},
    {"Sub", tf_op_binary, 2, "sub"},
    {"Sum", tf_op_reduce, 2, "reduce_sum"},
    {"Switch", tf_op_switch, 2, NULL},
    {"Tan", tf_op_unary, 1, "tan"},
    {"Tanh", tf_op_unary, 1, "tanh"},
    {"Tile", tf_op_tile, 2, NULL},
    {"TopKV2", tf_op_top_k, 2, NULL},
    {"Transpose", tf_op_transpose, 2, NULL},
    {"TruncateDiv", tf_op_binary, 2, "div"},
    {"TruncateMod", tf_op_mod, 2, NULL},
    {"Unpack", tf_op_unpack, 1, "num"},
    {"ZerosLike", tf_op_filled_like, 1, NULL},
    {"_FusedConv2D", tf_op_conv, 2, NULL},
    {"_FusedDepthwiseConv2dNative", tf_op_conv, 2, NULL},
    {"_FusedMatMul", tf_op_mat_mul, 2, NULL},
};

static int by_name(const void *op, const void *row) {
    return strcmp((const char *)op, ((const tf_row *)row)->op);
}
const tf_row *tf_row_of(const char *op) {
    return (const tf_row *)bsearch(op, rows, sizeof rows / sizeof rows[0], sizeof rows[0], by_name);
}

/* ---- one node ---- */

/* Room for what it gives; most operators say nowhere how many that is. */
static int room_for_outputs(tf_job *j) {
    enum { MOST = 4096, USUAL = 6 };
    int64_t n = USUAL;
    if (j->entry->row->convert == tf_op_identity_n) n = (int64_t)j->entry->node->n_input;
    if (j->ours) n = tf_attr_int(j, j->ours, n); /* num_split, num */
    if (n < 1 || n > MOST) return tf_problem(j, "it has %lld outputs", (long long)n), 0;
    j->entry->out = (tf_layouts *)tf_block(j->net, (size_t)n * sizeof(tf_layouts));
    j->entry->n_out = j->entry->out ? (int32_t)n : 0;
    for (int32_t i = 0; i < j->entry->n_out; i++)
        j->entry->out[i] = (tf_layouts){.plain = -1, .turned = -1};
    return j->entry->n_out > 0;
}

/* What an input names; NULL: nothing (yet). */
static tf_layouts *layouts_of(tf_net *net, tf_entry *from, int32_t output) {
    if (!from || from->dead) return from ? &net->dead : NULL;
    return output < from->n_out ? &from->out[output] : NULL;
}

/* A node on a side that is not taken, as an input from there or a control input says. */
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

/* Collects the data inputs; 0: something is wrong with one. */
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
        else if (from->failed) j->entry->failed = 1; /* follows from a problem already told */
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
    if (!row) entry->failed = 1; /* told with the others of its kind */
    if (entry->failed) return;
    j.ours = row->ours;
    if (!room_for_outputs(&j) || !gather(&j) || tf_noise(&j)) return;
    row->convert(&j);
    if (entry->failed) return;
    tf_note_sizes(&j);
    const tf_layouts *y = entry->out;
    if (y->plain < 0 && y->turned < 0 && !y->noise && row->convert != tf_op_switch && !merges)
        entry->failed = 1; /* the graph has its problem */
}
