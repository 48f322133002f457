/* The table of TensorFlow's operators, and the road of each node through it. */
#include "job.h"

#include <stdio.h>

static const struct row {
    const char *op;
    void (*convert)(tf_job *);
    int32_t min_in;
} rows[] = {
    {"Const", tf_op_constant_node, 0},
    {"Placeholder", tf_op_placeholder, 0},
    {"Identity", tf_op_pass, 1},
    {"StopGradient", tf_op_pass, 1},
    {"CheckNumerics", tf_op_pass, 1},
    {"Snapshot", tf_op_pass, 1},
    {"PlaceholderWithDefault", tf_op_pass, 1},
    {"Conv2D", tf_op_conv, 2},
    {"DepthwiseConv2dNative", tf_op_conv, 2},
    {"Conv2DBackpropInput", tf_op_conv_input_grad, 3},
    {"MaxPool", tf_op_pool, 1},
    {"AvgPool", tf_op_pool, 1},
    {"BiasAdd", tf_op_bias_add, 2},
    {"FusedBatchNorm", tf_op_batch_norm, 5},
    {"FusedBatchNormV2", tf_op_batch_norm, 5},
    {"FusedBatchNormV3", tf_op_batch_norm, 5},
    {"LeakyRelu", tf_op_leaky_relu, 1},
    {"Rsqrt", tf_op_rsqrt, 1},
    {"Square", tf_op_squared, 1},
    {"SquaredDifference", tf_op_squared, 2},
    {"AddN", tf_op_add_n, 1},
    {"Cast", tf_op_cast, 1},
    {"Select", tf_op_select_op, 3},
    {"Dequantize", tf_op_dequantize, 3},
    {"MatMul", tf_op_mat_mul, 2},
    {"BatchMatMul", tf_op_batch_mat_mul, 2},
    {"BatchMatMulV2", tf_op_batch_mat_mul, 2},
    {"Softmax", tf_op_softmax, 1},
    {"LogSoftmax", tf_op_softmax, 1},
    {"LRN", tf_op_lrn, 1},
    {"Reshape", tf_op_reshape, 2},
    {"Squeeze", tf_op_squeeze, 1},
    {"ExpandDims", tf_op_expand_dims, 2},
    {"Transpose", tf_op_transpose, 2},
    {"ConcatV2", tf_op_concat, 2},
    {"Concat", tf_op_concat, 2},
    {"Split", tf_op_split, 2},
    {"SplitV", tf_op_split, 3},
    {"Pad", tf_op_pad, 2},
    {"PadV2", tf_op_pad, 3},
    {"MirrorPad", tf_op_pad, 2},
    {"Slice", tf_op_slice, 3},
    {"StridedSlice", tf_op_strided_slice, 4},
    {"Pack", tf_op_pack, 1},
    {"Shape", tf_op_shape, 1},
    {"Gather", tf_op_gather, 2},
    {"GatherV2", tf_op_gather, 3},
    {"Fill", tf_op_fill, 2},
    {"Tile", tf_op_tile, 2},
    {"ResizeBilinear", tf_op_resize, 2},
    {"ResizeNearestNeighbor", tf_op_resize, 2},
    {"Mean", tf_op_reduce, 2},
    {"Sum", tf_op_reduce, 2},
    {"Max", tf_op_reduce, 2},
    {"Min", tf_op_reduce, 2},
    {"Prod", tf_op_reduce, 2},
    {"ArgMax", tf_op_arg_max, 2},
    {"ArgMin", tf_op_arg_max, 2},
    {"SpaceToBatchND", tf_op_space_batch, 3},
    {"BatchToSpaceND", tf_op_space_batch, 3},
    {"DepthToSpace", tf_op_depth_space, 1},
    {"SpaceToDepth", tf_op_depth_space, 1},
};

static void (*converter(const char *op, int32_t *min_in))(tf_job *) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op, op) == 0) return *min_in = rows[i].min_in, rows[i].convert;
    return tf_elementwise(op, min_in);
}

void tf_convert(tf_net *net, tf_entry *entry) {
    tf_job *j = (tf_job *)tf_host->alloc(sizeof *j);
    if (!j) {
        net->status = CNR_E_MEMORY;
        return;
    }
    memset(j, 0, sizeof *j);
    j->net = net;
    j->entry = entry;
    j->op = entry->node->op ? entry->node->op : "";
    j->name = entry->node->name ? entry->node->name : "";
    entry->n_out = strncmp(j->op, "Split", 5) == 0 ? TF_MAX_OUTPUTS : 8;
    entry->out = (tf_twins *)tf_host->alloc((size_t)entry->n_out * sizeof(tf_twins));
    if (!entry->out) {
        entry->n_out = 0;
        net->status = CNR_E_MEMORY;
        tf_host->free(j);
        return;
    }
    for (int32_t i = 0; i < entry->n_out; i++) entry->out[i] = (tf_twins){-1, -1};
    int32_t min_in = 0;
    void (*convert)(tf_job *) = converter(j->op, &min_in);
    for (size_t i = 0; i < entry->node->n_input; i++) {
        int32_t output;
        if (entry->node->input[i][0] == '^') continue;
        tf_entry *from = tf_input(net, entry->node->input[i], &output);
        if (j->n_in >= TF_MAX_IN)
            tf_problem(j, "too many inputs");
        else if (!from) {
            char text[200];
            snprintf(text, sizeof text, "it reads \"%.120s\", which is not there",
                     entry->node->input[i]);
            tf_problem(j, text);
        } else if (from->failed || output >= from->n_out) {
            entry->failed = 1; /* follows from a problem already told */
        } else {
            j->in[j->n_in++] = &from->out[output];
        }
        if (entry->failed && convert) break;
    }
    if (!convert)
        tf_problem(j, "this operator is not supported");
    else if (!entry->failed && j->n_in < min_in)
        tf_problem(j, "inputs are missing");
    else if (!entry->failed)
        convert(j);
    if (!entry->failed && entry->n_out && entry->out[0].plain < 0 && entry->out[0].turned < 0)
        entry->failed = 1;
    tf_host->free(j);
}
