/* Graphs into ONNX files of operator set 21. Most operators are ONNX's own; a table says which of
 * their attributes ONNX takes as attributes and which as inputs; the rest are made of several. */
#include "onnx.h"

#include <stdio.h>
#include <unistd.h>

enum { OPSET = 21, IR_VERSION = 10, MAX_IN = 1024, MAX_ATTRS = 16 };
enum { T_FLOAT = 1, T_INT = 2, T_STRING = 3, T_FLOATS = 6, T_INTS = 7 }; /* AttributeProto.type */

typedef struct block {
    struct block *next;
} block;

/* The model under construction; everything in it is released at once. */
typedef struct writer {
    const struct cnr_graph *graph;
    block *blocks;
    Onnx__NodeProto **nodes;
    size_t n_nodes, nodes_room;
    Onnx__TensorProto **tensors;
    size_t n_tensors, tensors_room;
    int32_t n_made, problems;
    int no_memory;
} writer;

static void *make(writer *w, size_t bytes) {
    block *b = (block *)onnx_host->alloc(sizeof(block) + 56 + bytes); /* keeps 64-byte alignment */
    if (!b) {
        w->no_memory = 1;
        return NULL;
    }
    b->next = w->blocks;
    w->blocks = b;
    memset(b + 1, 0, 56 + bytes);
    return (char *)b + 64;
}

static char *text(writer *w, const char *s) {
    const size_t n = strlen(s) + 1;
    char *out = (char *)make(w, n);
    if (out) memcpy(out, s, n);
    return out;
}

static void unsupported(writer *w, const cnr_node *node, const char *why) {
    onnx_host->log(CNR_LOG_ERROR, "export", "node %s (%s): %s", node->name,
                   node->desc ? node->desc->name : "", why);
    w->problems++;
}

/* Room for one more pointer in a list kept in blocks. */
static int grow(writer *w, void ***list, size_t n, size_t *room) {
    if (n < *room) return 1;
    const size_t more = *room ? *room * 2 : 128;
    void **grown = (void **)make(w, more * sizeof(void *));
    if (!grown) return 0;
    if (n) memcpy(grown, *list, n * sizeof(void *));
    *list = grown;
    *room = more;
    return 1;
}

/* ---- tensors ---- */

static int32_t data_type(int32_t dtype) {
    for (int32_t t = 1; t < 23; t++)
        if (onnx_dtype(t) == dtype) return t;
    return 0;
}

static void tensor(writer *w, const char *name, int32_t dtype, const int64_t *dim, int32_t rank,
                   const void *data, uint64_t bytes) {
    Onnx__TensorProto *t = (Onnx__TensorProto *)make(w, sizeof *t);
    if (!t || !grow(w, (void ***)&w->tensors, w->n_tensors, &w->tensors_room)) return;
    onnx__tensor_proto__init(t);
    t->name = text(w, name);
    t->has_data_type = 1;
    t->data_type = data_type(dtype);
    t->n_dims = (size_t)rank;
    t->dims = (int64_t *)make(w, (size_t)rank * sizeof(int64_t));
    if (t->dims) memcpy(t->dims, dim, (size_t)rank * sizeof(int64_t));
    t->has_raw_data = 1;
    t->raw_data.data = (uint8_t *)data; /* the graph's own memory: it outlives the writing */
    t->raw_data.len = (size_t)bytes;
    w->tensors[w->n_tensors++] = t;
}

/* A constant of ours, copied; returns its name. */
static const char *constant(writer *w, int32_t dtype, const int64_t *dim, int32_t rank,
                            const void *data, uint64_t bytes) {
    char name[64];
    void *copy = make(w, (size_t)bytes);
    snprintf(name, sizeof name, "export.value%d", (int)++w->n_made);
    if (!copy) return "";
    memcpy(copy, data, (size_t)bytes);
    tensor(w, name, dtype, dim, rank, copy, bytes);
    return w->n_tensors ? w->tensors[w->n_tensors - 1]->name : "";
}
static const char *ints(writer *w, const int64_t *values, int64_t n) {
    return constant(w, CNR_i64, &n, 1, values, (uint64_t)n * 8);
}
static const char *floats(writer *w, const double *values, int64_t n) {
    float *own = (float *)make(w, (size_t)(n + 1) * sizeof(float));
    for (int64_t i = 0; own && i < n; i++) own[i] = (float)values[i];
    return own ? constant(w, CNR_f32, &n, 1, own, (uint64_t)n * 4) : "";
}
static const char *scalar(writer *w, double value) {
    const float f = (float)value;
    return constant(w, CNR_f32, NULL, 0, &f, 4);
}

/* ---- nodes ---- */

static Onnx__NodeProto *node(writer *w, const char *op, const char *const *in, int32_t n_in,
                             const char *const *out, int32_t n_out) {
    Onnx__NodeProto *n = (Onnx__NodeProto *)make(w, sizeof *n);
    if (!n || !grow(w, (void ***)&w->nodes, w->n_nodes, &w->nodes_room)) return NULL;
    onnx__node_proto__init(n);
    n->op_type = text(w, op);
    n->name = text(w, out[0]);
    n->input = (char **)make(w, (size_t)(n_in + 1) * sizeof(char *));
    n->output = (char **)make(w, (size_t)n_out * sizeof(char *));
    n->attribute = (Onnx__AttributeProto **)make(w, MAX_ATTRS * sizeof(void *));
    if (!n->input || !n->output || !n->attribute) return NULL;
    for (int32_t i = 0; i < n_in; i++) n->input[i] = text(w, in[i]);
    for (int32_t i = 0; i < n_out; i++) n->output[i] = text(w, out[i]);
    n->n_input = (size_t)n_in;
    n->n_output = (size_t)n_out;
    w->nodes[w->n_nodes++] = n;
    return w->no_memory ? NULL : n;
}

static Onnx__AttributeProto *attribute(writer *w, Onnx__NodeProto *n, const char *name, int type) {
    Onnx__AttributeProto *a = (Onnx__AttributeProto *)make(w, sizeof *a);
    if (!a || !n || n->n_attribute >= MAX_ATTRS) return NULL;
    onnx__attribute_proto__init(a);
    a->name = text(w, name);
    a->has_type = 1;
    a->type = type;
    n->attribute[n->n_attribute++] = a;
    return a;
}
static void put_int(writer *w, Onnx__NodeProto *n, const char *name, int64_t value) {
    Onnx__AttributeProto *a = attribute(w, n, name, T_INT);
    if (a) a->has_i = 1, a->i = value;
}
static void put_ints(writer *w, Onnx__NodeProto *n, const char *name, const int64_t *v, int64_t k) {
    Onnx__AttributeProto *a = attribute(w, n, name, T_INTS);
    if (!a) return;
    a->ints = (int64_t *)make(w, (size_t)k * sizeof(int64_t));
    if (a->ints && k) memcpy(a->ints, v, (size_t)k * sizeof(int64_t));
    a->n_ints = a->ints ? (size_t)k : 0;
}

static void put_attr(writer *w, Onnx__NodeProto *n, const cnr_attr *from) {
    Onnx__AttributeProto *a;
    switch (from->type) {
    case CNR_ATTR_INT: case CNR_ATTR_BOOL: put_int(w, n, from->name, from->i); break;
    case CNR_ATTR_DTYPE: put_int(w, n, from->name, data_type((int32_t)from->i)); break;
    case CNR_ATTR_FLOAT:
        if ((a = attribute(w, n, from->name, T_FLOAT))) a->has_f = 1, a->f = (float)from->f;
        break;
    case CNR_ATTR_ENUM: case CNR_ATTR_STRING:
        if ((a = attribute(w, n, from->name, T_STRING))) {
            a->has_s = 1;
            a->s.data = (uint8_t *)text(w, from->s ? from->s : "");
            a->s.len = a->s.data ? strlen((char *)a->s.data) : 0;
        }
        break;
    case CNR_ATTR_INTS:
        if (from->n) put_ints(w, n, from->name, from->ints, from->n);
        break;
    default:
        if (from->n && (a = attribute(w, n, from->name, T_FLOATS))) {
            a->floats = (float *)make(w, (size_t)from->n * sizeof(float));
            for (int64_t i = 0; a->floats && i < from->n; i++) a->floats[i] = (float)from->floats[i];
            a->n_floats = a->floats ? (size_t)from->n : 0;
        }
    }
}

/* A fresh name for a value between nodes of ours. */
static const char *between(writer *w) {
    char name[64];
    snprintf(name, sizeof name, "export.step%d", (int)++w->n_made);
    const char *t = text(w, name);
    return t ? t : "";
}

/* ---- operators that are ONNX's own ---- */

static const struct row {
    const char *op, *onnx;
    const char *attrs;  /* those that stay attributes, each in blanks */
    const char *inputs; /* those that become inputs: " name:port " */
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
    {"exp", "Exp", "", ""}, {"log", "Log", "", ""}, {"sqrt", "Sqrt", "", ""},
    {"reciprocal", "Reciprocal", "", ""}, {"abs", "Abs", "", ""}, {"neg", "Neg", "", ""},
    {"sign", "Sign", "", ""}, {"floor", "Floor", "", ""}, {"ceil", "Ceil", "", ""},
    {"round", "Round", "", ""}, {"sin", "Sin", "", ""}, {"cos", "Cos", "", ""},
    {"tan", "Tan", "", ""}, {"asin", "Asin", "", ""}, {"acos", "Acos", "", ""},
    {"atan", "Atan", "", ""}, {"sinh", "Sinh", "", ""}, {"cosh", "Cosh", "", ""},
    {"asinh", "Asinh", "", ""}, {"acosh", "Acosh", "", ""}, {"atanh", "Atanh", "", ""},
    {"not", "Not", "", ""}, {"is_nan", "IsNaN", "", ""},
    {"is_inf", "IsInf", " detect_negative detect_positive ", ""},
    {"add", "Add", "", ""}, {"sub", "Sub", "", ""}, {"mul", "Mul", "", ""}, {"div", "Div", "", ""},
    {"pow", "Pow", "", ""}, {"mod", "Mod", " fmod ", ""}, {"max", "Max", "", ""},
    {"min", "Min", "", ""}, {"sum", "Sum", "", ""}, {"mean", "Mean", "", ""},
    {"equal", "Equal", "", ""}, {"less", "Less", "", ""}, {"greater", "Greater", "", ""},
    {"less_or_equal", "LessOrEqual", "", ""}, {"greater_or_equal", "GreaterOrEqual", "", ""},
    {"and", "And", "", ""}, {"or", "Or", "", ""}, {"xor", "Xor", "", ""}, {"where", "Where", "", ""},
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
     "extrapolation_value antialias axes keep_aspect_ratio_policy ", " scales:2 sizes:3 "},
    {"grid_sample", "GridSample", " mode padding_mode align_corners ", ""},
    {"quantize_linear", "QuantizeLinear", " axis ", ""},
    {"dequantize_linear", "DequantizeLinear", " axis ", ""},
    {"qlinear_conv", "QLinearConv", " kernel_shape strides pads dilations group auto_pad ", ""},
    {"qlinear_matmul", "QLinearMatMul", "", ""},
    {"conv_integer", "ConvInteger", " kernel_shape strides pads dilations group auto_pad ", ""},
    {"matmul_integer", "MatMulInteger", "", ""},
    {"dynamic_quantize_linear", "DynamicQuantizeLinear", "", ""},
    {"non_max_suppression", "NonMaxSuppression", " center_point_box ", ""},
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
     "coordinate_transformation_mode ", ""},
    {"max_roi_pool", "MaxRoiPool", " pooled_shape spatial_scale ", ""},
    {"reverse_sequence", "ReverseSequence", " batch_axis time_axis ", ""},
    {"bit_shift", "BitShift", " direction ", ""},
    {"bitwise_and", "BitwiseAnd", "", ""}, {"bitwise_or", "BitwiseOr", "", ""},
    {"bitwise_xor", "BitwiseXor", "", ""}, {"bitwise_not", "BitwiseNot", "", ""},
};

static int lists(const char *list, const char *name) {
    char word[80];
    snprintf(word, sizeof word, " %.70s ", name);
    return strstr(list, word) != NULL;
}

/* Port that attribute `name` becomes, or -1. */
static int port_of(const char *list, const char *name) {
    char word[80];
    snprintf(word, sizeof word, " %.70s:", name);
    const char *at = strstr(list, word);
    return at ? at[strlen(word)] - '0' : -1;
}

typedef struct job {
    writer *w;
    const cnr_node *node;
    const char *in[MAX_IN], *out[MAX_IN];
    int32_t n_in, n_out;
} job;

static void plain(job *j, const struct row *row) {
    writer *w = j->w;
    for (int32_t i = 0; i < j->node->n_attrs; i++) {
        const cnr_attr *a = j->node->attrs[i];
        const int port = port_of(row->inputs, a->name);
        if (port < 0 || !a->set || (port < j->n_in && *j->in[port])) continue;
        while (j->n_in <= port) j->in[j->n_in++] = "";
        if (a->type == CNR_ATTR_INTS) j->in[port] = ints(w, a->ints, a->n);
        else if (a->type == CNR_ATTR_FLOAT) j->in[port] = scalar(w, a->f);
        else if (a->type == CNR_ATTR_FLOATS) j->in[port] = floats(w, a->floats, a->n);
        else j->in[port] = ints(w, &a->i, 1);
    }
    while (j->n_in > 0 && !*j->in[j->n_in - 1]) j->n_in--;
    Onnx__NodeProto *n = node(w, row->onnx, j->in, j->n_in, j->out, j->n_out);
    for (int32_t i = 0; n && i < j->node->n_attrs; i++) {
        const cnr_attr *a = j->node->attrs[i];
        if (!lists(row->attrs, a->name)) continue;
        if (strcmp(a->name, "auto_pad") == 0 && cnr_attr_is(j->node, "auto_pad", "NOTSET")) continue;
        const int same = strncmp(cnr_attr_string(j->node, "auto_pad"), "NOTSET", 6) != 0 &&
                         *cnr_attr_string(j->node, "auto_pad");
        if (same && strcmp(a->name, "pads") == 0) continue;
        /* ONNX has these only when they are meant */
        if (!a->set && (lists(" num_outputs end axes output_shape perm ", a->name))) continue;
        put_attr(w, n, a);
    }
}

/* ---- operators of our own ---- */

static void dense(job *j, const struct row *row) {
    (void)row;
    const char *x = j->in[0];
    if (j->node->inputs[0]->rank != 2) {
        const char *flat = between(j->w);
        put_int(j->w, node(j->w, "Flatten", &x, 1, &flat, 1), "axis", 1);
        x = flat;
    }
    const char *in[] = {x, j->in[1], j->n_in > 2 ? j->in[2] : ""};
    put_int(j->w, node(j->w, "Gemm", in, *in[2] ? 3 : 2, j->out, 1), "transB", 1);
}

static void relu6(job *j, const struct row *row) {
    (void)row;
    const char *in[] = {j->in[0], scalar(j->w, 0), scalar(j->w, 6)};
    node(j->w, "Clip", in, 3, j->out, 1);
}

static void swish(job *j, const struct row *row) {
    (void)row;
    const char *gate = between(j->w), *in[] = {j->in[0], gate};
    node(j->w, "Sigmoid", j->in, 1, &gate, 1);
    node(j->w, "Mul", in, 2, j->out, 1);
}

/* A per-channel constant laid along axis 1 of an input of `rank`. */
static const char *along_channels(job *j, int32_t port) {
    const cnr_tensor *t = j->node->inputs[port];
    const int32_t rank = j->node->inputs[0]->rank;
    int64_t dim[CNR_MAX_RANK] = {cnr_count(t), 1, 1, 1, 1, 1, 1, 1};
    if (!(t->flags & CNR_TENSOR_CONST) || !t->data || rank < 2) {
        unsupported(j->w, j->node, "a computed factor is not supported");
        return "";
    }
    return constant(j->w, t->dtype, dim, rank - 1, t->data, cnr_dense_bytes(t));
}

static void scale_bias(job *j, const struct row *row) {
    (void)row;
    const int shifted = j->n_in > 2 && *j->in[2];
    const char *scaled = shifted ? between(j->w) : j->out[0];
    if (cnr_attr_find(j->node, "axis") && cnr_attr_int(j->node, "axis") != 1)
        return unsupported(j->w, j->node, "an axis other than 1 is not supported");
    const char *in[] = {j->in[0], along_channels(j, 1)};
    node(j->w, "Mul", in, 2, &scaled, 1);
    const char *more[] = {scaled, shifted ? along_channels(j, 2) : ""};
    if (shifted) node(j->w, "Add", more, 2, j->out, 1);
}

/* x / (bias + alpha * mean of squares around it) ^ beta */
static void lrn_within(job *j, const struct row *row) {
    (void)row;
    writer *w = j->w;
    const int64_t size = cnr_attr_int(j->node, "size");
    const int64_t kernel[] = {size, size}, half = (size - 1) / 2, pads[] = {half, half, half, half};
    const char *square[] = {j->in[0], j->in[0]}, *s = between(w), *mean = between(w);
    const char *scaled = between(w), *base = between(w), *norm = between(w);
    node(w, "Mul", square, 2, &s, 1);
    Onnx__NodeProto *pool = node(w, "AveragePool", &s, 1, &mean, 1);
    put_ints(w, pool, "kernel_shape", kernel, 2);
    put_ints(w, pool, "pads", pads, 4);
    put_int(w, pool, "count_include_pad", 1);
    const char *a[] = {mean, scalar(w, cnr_attr_float(j->node, "alpha"))};
    node(w, "Mul", a, 2, &scaled, 1);
    const char *b[] = {scaled, scalar(w, cnr_attr_float(j->node, "bias"))};
    node(w, "Add", b, 2, &base, 1);
    const char *p[] = {base, scalar(w, cnr_attr_float(j->node, "beta"))};
    node(w, "Pow", p, 2, &norm, 1);
    const char *d[] = {j->in[0], norm};
    node(w, "Div", d, 2, j->out, 1);
}

static void weighted_sum(job *j, const struct row *row) {
    (void)row;
    int64_t n;
    const double *c = cnr_attr_floats(j->node, "coeffs", &n);
    for (int32_t i = 0; i < j->n_in; i++)
        if (i < n && c[i] != 1) {
            const char *scaled = between(j->w), *in[] = {j->in[i], scalar(j->w, c[i])};
            node(j->w, "Mul", in, 2, &scaled, 1);
            j->in[i] = scaled;
        }
    node(j->w, "Sum", j->in, j->n_in, j->out, 1);
}

static void reshape_like(job *j, const struct row *row) {
    (void)row;
    const char *shape = between(j->w), *in[] = {j->in[0], shape};
    node(j->w, "Shape", &j->in[1], 1, &shape, 1);
    node(j->w, "Reshape", in, 2, j->out, 1);
}

static void channel_shuffle(job *j, const struct row *row) {
    (void)row;
    writer *w = j->w;
    const int64_t group = cnr_attr_int(j->node, "group"), c = j->node->inputs[0]->dim[1];
    if (c < 1 || group < 1) return unsupported(w, j->node, "unknown channels are not supported");
    const int64_t parts[] = {0, group, c / group, -1}, perm[] = {0, 2, 1, 3};
    const char *split = between(w), *turned = between(w), *shape = between(w);
    const char *a[] = {j->in[0], ints(w, parts, 4)}, *b[] = {turned, shape};
    node(w, "Reshape", a, 2, &split, 1);
    put_ints(w, node(w, "Transpose", &split, 1, &turned, 1), "perm", perm, 4);
    node(w, "Shape", j->in, 1, &shape, 1);
    node(w, "Reshape", b, 2, j->out, 1);
}

static void dropout(job *j, const struct row *row) {
    (void)row;
    node(j->w, "Identity", j->in, 1, j->out, 1);
}

static void crop(job *j, const struct row *row) {
    (void)row;
    const cnr_tensor *x = j->node->inputs[0], *y = j->node->outputs[0];
    int64_t axis = cnr_attr_int(j->node, "axis"), n;
    const int64_t *offset = cnr_attr_ints(j->node, "offset", &n);
    int64_t from[CNR_MAX_RANK], to[CNR_MAX_RANK], axes[CNR_MAX_RANK], k = 0;
    if (axis < 0) axis += x->rank;
    for (int64_t i = axis; i < x->rank; i++, k++) {
        if (y->dim[i] < 0) return unsupported(j->w, j->node, "unknown sizes are not supported");
        from[k] = n == 0 ? 0 : offset[n == 1 ? 0 : k < n ? k : n - 1];
        to[k] = from[k] + y->dim[i];
        axes[k] = i;
    }
    const char *in[] = {j->in[0], ints(j->w, from, k), ints(j->w, to, k), ints(j->w, axes, k)};
    node(j->w, "Slice", in, 4, j->out, 1);
}

/* Channels [from, to) of a value, through `op` when there is one. */
static const char *channels(job *j, const char *x, int64_t from, int64_t to, const char *op) {
    const int64_t axis = 1;
    const char *part = between(j->w), *out = op ? between(j->w) : part;
    const char *in[] = {x, ints(j->w, &from, 1), ints(j->w, &to, 1), ints(j->w, &axis, 1)};
    node(j->w, "Slice", in, 4, &part, 1);
    if (op) {
        Onnx__NodeProto *n = node(j->w, op, &part, 1, &out, 1);
        if (strcmp(op, "Softmax") == 0) put_int(j->w, n, "axis", 1);
    }
    return out;
}

/* Darknet's heads: activations by ranges of channels, anchor by anchor, joined again. */
static void head(job *j, const struct row *row) {
    (void)row;
    const int yolo = strcmp(j->node->desc->name, "yolo") == 0;
    const int64_t classes = cnr_attr_int(j->node, "classes"), num = cnr_attr_int(j->node, "num");
    const int64_t coords = yolo ? 4 : cnr_attr_int(j->node, "coords"), each = coords + 1 + classes;
    const double scale = yolo ? cnr_attr_float(j->node, "scale_x_y") : 1;
    const int background = !yolo && cnr_attr_int(j->node, "background") != 0;
    const char *scores = yolo ? "Sigmoid" : cnr_attr_int(j->node, "softmax") ? "Softmax" : NULL;
    int32_t n = 0;
    if (num * 4 > MAX_IN || background) return unsupported(j->w, j->node, "this form of head");
    for (int64_t a = 0; a < num; a++) {
        const int64_t at = a * each;
        const char *xy = channels(j, j->in[0], at, at + 2, "Sigmoid");
        if (scale != 1) {
            const char *wide = between(j->w), *moved = between(j->w);
            node(j->w, "Mul", (const char *[]){xy, scalar(j->w, scale)}, 2, &wide, 1);
            node(j->w, "Add", (const char *[]){wide, scalar(j->w, -0.5 * (scale - 1))}, 2, &moved, 1);
            xy = moved;
        }
        j->out[MAX_IN - 1 - n++] = xy;
        j->out[MAX_IN - 1 - n++] = channels(j, j->in[0], at + 2, at + coords, NULL);
        j->out[MAX_IN - 1 - n++] = channels(j, j->in[0], at + coords, at + coords + 1, "Sigmoid");
        if (classes)
            j->out[MAX_IN - 1 - n++] = channels(j, j->in[0], at + coords + 1, at + each, scores);
    }
    const char **parts = (const char **)make(j->w, (size_t)(n + 1) * sizeof(char *));
    if (!parts) return;
    for (int32_t i = 0; i < n; i++) parts[i] = j->out[MAX_IN - 1 - i];
    put_int(j->w, node(j->w, "Concat", parts, n, j->out, 1), "axis", 1);
}

/* What depends on sizes alone is worked out now, by the operator's own reference. */
static void known(job *j, const struct row *row) {
    (void)row;
    const cnr_tensor *y = j->node->outputs[0];
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor made = *y;
    cnr_tensor *outputs[] = {&made};
    cnr_run run = {.size = sizeof run, .range_axis = -1, .node = j->node, .outputs = outputs};
    if (cnr_count(y) < 0) return unsupported(j->w, j->node, "unknown sizes are not supported");
    made.bytes = cnr_dense_bytes(y);
    made.data = make(j->w, (size_t)made.bytes);
    if (!made.data) return;
    if (j->node->desc->reference(&run, &err)) return unsupported(j->w, j->node, err.text);
    tensor(j->w, j->out[0], y->dtype, y->dim, y->rank, made.data, made.bytes);
}

/* Blocks of stride x stride places become channels, Darknet's way round. */
static void reorg(job *j, const struct row *row) {
    (void)row;
    writer *w = j->w;
    const int64_t s = cnr_attr_int(j->node, "stride"), *d = j->node->inputs[0]->dim;
    if (cnr_attr_int(j->node, "reverse") || d[1] < 1 || d[2] < 1 || d[3] < 1 || d[1] % (s * s))
        return unsupported(w, j->node, "this form is not supported");
    /* The memory of x read as N, C/(s*s), H, s, W, s and turned, then named C*s*s, H/s, W/s. */
    const int64_t cut[] = {-1, d[1] / (s * s), d[2], s, d[3], s}, perm[] = {0, 3, 5, 1, 2, 4};
    const int64_t out[] = {-1, d[1] * s * s, d[2] / s, d[3] / s};
    const char *a = between(w), *b = between(w);
    node(w, "Reshape", (const char *[]){j->in[0], ints(w, cut, 6)}, 2, &a, 1);
    put_ints(w, node(w, "Transpose", &a, 1, &b, 1), "perm", perm, 6);
    node(w, "Reshape", (const char *[]){b, ints(w, out, 4)}, 2, j->out, 1);
}

/* A constant's value is a tensor attribute in ONNX. */
static void constant_of_shape(job *j, const struct row *row) {
    (void)row;
    const int32_t dtype = (int32_t)cnr_attr_int(j->node, "dtype");
    const char *plain = j->out[0], *shape = j->in[0];
    int64_t n;
    const int64_t *dims = cnr_attr_ints(j->node, "shape", &n);
    if (j->n_in < 1 || !*shape) shape = ints(j->w, dims, n);
    const char *filled = between(j->w);
    const char *value = scalar(j->w, cnr_attr_float(j->node, "value"));
    node(j->w, "Expand", (const char *[]){value, shape}, 2, &filled, 1);
    put_int(j->w, node(j->w, "Cast", &filled, 1, &plain, 1), "to", data_type(dtype));
}

/* x over the root of its squares' sum, times a factor: Caffe's Normalize. */
static void normalize(job *j, const struct row *row) {
    (void)row;
    writer *w = j->w;
    int64_t axes[CNR_MAX_RANK], n = 0;
    const int spatial = cnr_attr_int(j->node, "across_spatial") != 0;
    for (int32_t i = 1; i < j->node->inputs[0]->rank; i++)
        if (i == 1 || spatial) axes[n++] = i;
    const char *sum = between(w), *more = between(w), *root = between(w);
    const char *out = j->n_in > 1 ? between(w) : j->out[0];
    put_int(w, node(w, "ReduceSumSquare", (const char *[]){j->in[0], ints(w, axes, n)}, 2, &sum, 1),
            "keepdims", 1);
    node(w, "Add", (const char *[]){sum, scalar(w, cnr_attr_float(j->node, "epsilon"))}, 2, &more, 1);
    node(w, "Sqrt", &more, 1, &root, 1);
    node(w, "Div", (const char *[]){j->in[0], root}, 2, &out, 1);
    if (j->n_in < 2) return;
    const char *factor = cnr_count(j->node->inputs[1]) == 1 ? j->in[1] : along_channels(j, 1);
    node(w, "Mul", (const char *[]){out, factor}, 2, j->out, 1);
}

static const struct {
    const char *op;
    void (*write)(job *, const struct row *);
} own[] = {
    {"yolo", head}, {"region", head}, {"prior_box", known}, {"reorg", reorg},
    {"constant_of_shape", constant_of_shape}, {"normalize", normalize},
    {"dense", dense}, {"relu6", relu6}, {"swish", swish}, {"scale_bias", scale_bias},
    {"lrn_within", lrn_within}, {"weighted_sum", weighted_sum}, {"reshape_like", reshape_like},
    {"channel_shuffle", channel_shuffle}, {"dropout", dropout}, {"crop", crop},
};

/* ---- the whole ---- */

static void write_node(writer *w, int32_t index) {
    const cnr_value *in, *out;
    const cnr_node *n = onnx_host->graph_node_at(w->graph, index, &in, &out);
    job *j = (job *)make(w, sizeof *j);
    if (!j) return;
    j->w = w;
    j->node = n;
    if (n->n_inputs > MAX_IN || n->n_outputs > MAX_IN) return unsupported(w, n, "too many inputs");
    for (j->n_in = 0; j->n_in < n->n_inputs; j->n_in++)
        j->in[j->n_in] = in[j->n_in] < 0 ? "" : onnx_host->graph_value_name(w->graph, in[j->n_in]);
    for (j->n_out = 0; j->n_out < n->n_outputs; j->n_out++)
        j->out[j->n_out] = onnx_host->graph_value_name(w->graph, out[j->n_out]);
    const char *op = n->desc->name;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(own[i].op, op) == 0) return own[i].write(j, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op, op) == 0) return plain(j, &rows[i]);
    unsupported(w, n, "ONNX has no operator for it that this exporter knows");
}

/* Constants that nodes read, each once. */
static void write_constants(writer *w) {
    const int32_t n_nodes = onnx_host->graph_node_count(w->graph);
    onnx_names seen = {0};
    for (int32_t i = 0; i < n_nodes; i++) {
        const cnr_value *in, *out;
        const cnr_node *n = onnx_host->graph_node_at(w->graph, i, &in, &out);
        for (int32_t k = 0; k < n->n_inputs; k++) {
            cnr_value other;
            if (in[k] < 0 || onnx_host->graph_producer(w->graph, in[k]) >= 0) continue;
            const cnr_tensor *t = onnx_host->graph_type(w->graph, in[k]);
            const char *name = onnx_host->graph_value_name(w->graph, in[k]);
            if (!(t->flags & (CNR_TENSOR_CONST | CNR_TENSOR_VARIABLE)) ||
                onnx_names_get(&seen, name, &other))
                continue;
            if (onnx_names_set(&seen, name, in[k])) w->no_memory = 1;
            if (t->encoding) unsupported(w, n, "its weight is encoded: convert the net to dense first");
            else if (!t->data && cnr_count(t) != 0) unsupported(w, n, "its weight has no data");
            else if (!data_type(t->dtype)) unsupported(w, n, "its data type is not ONNX's");
            else tensor(w, name, t->dtype, t->dim, t->rank, t->data, cnr_dense_bytes(t));
        }
    }
    onnx_names_free(&seen);
}

static Onnx__ValueInfoProto *value_info(writer *w, cnr_value v) {
    const cnr_tensor *t = onnx_host->graph_type(w->graph, v);
    Onnx__ValueInfoProto *info = (Onnx__ValueInfoProto *)make(w, sizeof *info);
    Onnx__TypeProto *type = (Onnx__TypeProto *)make(w, sizeof *type);
    Onnx__TensorType *tt = (Onnx__TensorType *)make(w, sizeof *tt);
    Onnx__TensorShapeProto *shape = (Onnx__TensorShapeProto *)make(w, sizeof *shape);
    if (!info || !type || !tt || !shape) return NULL;
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__tensor_type__init(tt);
    onnx__tensor_shape_proto__init(shape);
    info->name = text(w, onnx_host->graph_value_name(w->graph, v));
    info->type = type;
    type->tensor_type = tt;
    tt->has_elem_type = 1;
    tt->elem_type = data_type(t->dtype);
    tt->shape = shape;
    shape->dim = (Onnx__Dimension **)make(w, (size_t)(t->rank + 1) * sizeof(void *));
    for (int32_t i = 0; shape->dim && i < t->rank; i++) {
        Onnx__Dimension *d = (Onnx__Dimension *)make(w, sizeof *d);
        if (!d) return NULL;
        onnx__dimension__init(d);
        if (t->dim[i] >= 0) d->has_dim_value = 1, d->dim_value = t->dim[i];
        else if (t->dim[i] < CNR_DIM_UNKNOWN)
            d->dim_param = text(
                w, onnx_host->graph_symbol_name(w->graph, CNR_SYMBOL_OF_DIM(t->dim[i])));
        shape->dim[shape->n_dim++] = d;
    }
    return info;
}

typedef struct file_buffer {
    ProtobufCBuffer base;
    FILE *file;
    int failed;
} file_buffer;

static void append(ProtobufCBuffer *buffer, size_t n, const uint8_t *data) {
    file_buffer *b = (file_buffer *)buffer;
    if (n && fwrite(data, 1, n, b->file) != n) b->failed = 1;
}

static cnr_status save(const Onnx__ModelProto *model, const char *path, cnr_error *err) {
    char temporary[4096];
    snprintf(temporary, sizeof temporary, "%.4000s.part%ld", path, (long)getpid());
    file_buffer b = {{append}, fopen(temporary, "wb"), 0};
    if (!b.file) return onnx_host->fail(err, CNR_E_IO, path, "cannot be written");
    onnx__model_proto__pack_to_buffer(model, &b.base);
    if (fflush(b.file) != 0 || fsync(fileno(b.file)) != 0) b.failed = 1;
    if (fclose(b.file) != 0) b.failed = 1;
    if (!b.failed && rename(temporary, path) == 0) return CNR_OK;
    remove(temporary);
    return onnx_host->fail(err, CNR_E_IO, path, "could not be written whole");
}

static cnr_status write_graph(writer *w, const char *path, cnr_error *err) {
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    Onnx__OperatorSetIdProto *sets[] = {&opset};
    const int32_t n_in = onnx_host->graph_input_count(w->graph);
    const int32_t n_out = onnx_host->graph_output_count(w->graph);
    graph.name = (char *)"cnnrun";
    graph.input = (Onnx__ValueInfoProto **)make(w, (size_t)(n_in + 1) * sizeof(void *));
    graph.output = (Onnx__ValueInfoProto **)make(w, (size_t)(n_out + 1) * sizeof(void *));
    write_constants(w);
    for (int32_t i = 0; i < onnx_host->graph_node_count(w->graph); i++) write_node(w, i);
    for (int32_t i = 0; graph.input && i < n_in; i++)
        graph.input[graph.n_input++] = value_info(w, onnx_host->graph_input_at(w->graph, i));
    for (int32_t i = 0; graph.output && i < n_out; i++)
        graph.output[graph.n_output++] = value_info(w, onnx_host->graph_output_at(w->graph, i));
    if (w->no_memory) return onnx_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    if (w->problems)
        return onnx_host->fail(err, CNR_E_UNSUPPORTED, path,
                               "%d nodes or weights cannot be exported (listed above)", w->problems);
    graph.n_node = w->n_nodes;
    graph.node = w->nodes;
    graph.n_initializer = w->n_tensors;
    graph.initializer = w->tensors;
    opset.has_version = 1;
    opset.version = OPSET;
    opset.domain = (char *)"";
    model.has_ir_version = 1;
    model.ir_version = IR_VERSION;
    model.producer_name = (char *)"cnnrun";
    model.n_opset_import = 1;
    model.opset_import = sets;
    model.graph = &graph;
    return save(&model, path, err);
}

static cnr_status export_graph(const struct cnr_graph *graph, const char *path, cnr_error *err) {
    writer w = {.graph = graph};
    const cnr_status status = write_graph(&w, path, err);
    while (w.blocks) {
        block *next = w.blocks->next;
        onnx_host->free(w.blocks);
        w.blocks = next;
    }
    return status;
}

static int32_t accepts(const char *path) {
    const size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".onnx") == 0 ? 100 : 0;
}

const cnr_exporter onnx_exporter = {
    .size = sizeof(cnr_exporter),
    .name = "onnx",
    .summary = "ONNX, operator set 21",
    .accepts = accepts,
    .write = export_graph,
};
