/* Exports quantised operators as the float operator between DequantizeLinear and QuantizeLinear,
 * which runtimes fuse to integer operators again. A function of a byte becomes a Gather from a
 * table of its 256 results. */
#include "export.h"

/* Inputs: each operand and the result have a value, a scale and a zero point. */
enum { Q_X = 0, Q_W = 3, Q_LAYER_Y = 6, Q_BIAS = 8, Q_SLOPE };

/* 1 if a tensor is a constant of that type with data. */
static int is_known(const cnr_tensor *t, int32_t dtype) {
    return t && t->dtype == dtype && !t->encoding && t->flags & CNR_TENSOR_CONST && t->data;
}

/* Whether the scale (float32) and zero point from `port` on are constants. */
static int has_scale(const out_job *j, int32_t port) {
    if (port + 1 >= j->n_in) return 0;
    const cnr_tensor *scale = j->node->inputs[port], *zero = j->node->inputs[port + 1];
    return is_known(scale, CNR_f32) && zero && is_known(zero, zero->dtype) &&
           cnr_dtype_bits(zero->dtype) == 8 && (cnr_count(zero) == 1 || scale->rank == zero->rank);
}

/* Name of the zero point at `port`, reshaped to the shape of its scale, as ONNX requires. */
static const char *zero_like_scale(out_job *j, int32_t port) {
    const cnr_tensor *scale = j->node->inputs[port - 1], *zero = j->node->inputs[port];
    if (scale->rank == zero->rank && cnr_count(scale) == cnr_count(zero)) return j->in[port];
    const int64_t n = cnr_count(scale);
    void *all = out_make(j->w, (size_t)cnr_max(1, n));
    if (!all) return "";
    memset(all, *(const uint8_t *)zero->data, (size_t)n);
    return out_constant(j->w, zero->dtype, scale->dim, scale->rank, all, (uint64_t)n);
}

/* Writes DequantizeLinear; returns the name of its output. */
static const char *dequantized(out_job *j, const char *x, int32_t scale, int64_t axis) {
    const char *out = out_between(j->w);
    const char *in[] = {x, j->in[scale], zero_like_scale(j, scale + 1)};
    Onnx__NodeProto *n = out_node(j->w, "DequantizeLinear", in, 3, &out, 1);
    if (cnr_count(j->node->inputs[scale]) != 1) out_put_int(j->w, n, "axis", axis);
    return out;
}

/* Writes QuantizeLinear to output 0. */
static void quantized(out_job *j, const char *y, int32_t scale) {
    const char *in[] = {y, j->in[scale], zero_like_scale(j, scale + 1)};
    out_node(j->w, "QuantizeLinear", in, 3, j->out, 1);
}

/* Name of the dequantised bias, a constant with the scale of x times that of w. */
static const char *bias(out_job *j) {
    const cnr_tensor *w = j->node->inputs[Q_W + 1], *x = j->node->inputs[Q_X + 1];
    const int64_t n = cnr_count(w);
    float *scale = (float *)out_make(j->w, (size_t)cnr_max(1, n) * sizeof *scale);
    if (!scale) return "";
    for (int64_t i = 0; i < n; i++)
        scale[i] = *(const float *)x->data * ((const float *)w->data)[i];
    const char *out = out_between(j->w);
    const char *in[] = {j->in[Q_BIAS], out_constant(j->w, CNR_f32, w->dim, w->rank, scale,
                                                    (uint64_t)n * sizeof *scale)};
    Onnx__NodeProto *node = out_node(j->w, "DequantizeLinear", in, 2, &out, 1);
    if (n != 1) out_put_int(j->w, node, "axis", 0);
    return out;
}

/* Writes the function by a layer's slopes, LeakyRelu or PRelu, from y; returns the name of its
 * output. */
static const char *sloped(out_job *j, const char *y) {
    const cnr_tensor *slope = j->node->inputs[Q_SLOPE];
    const char *out = out_between(j->w);
    if (cnr_count(slope) == 1) {
        const cnr_attr alpha = {.name = "alpha",
                                .type = CNR_ATTR_FLOAT,
                                .set = 1,
                                .f = (double)*(const float *)slope->data};
        out_put_attr(j->w, out_node(j->w, "LeakyRelu", &y, 1, &out, 1), &alpha);
        return out;
    }
    const int64_t n = cnr_count(slope), dim[CNR_MAX_RANK] = {n, 1, 1, 1, 1, 1, 1, 1};
    float *own = (float *)out_make(j->w, (size_t)n * sizeof *own);
    if (!own) return "";
    memcpy(own, slope->data, (size_t)n * sizeof *own);
    const int32_t rank = j->node->outputs[0]->rank - 1;
    const char *in[] = {y, out_constant(j->w, CNR_f32, dim, rank, own, (uint64_t)n * sizeof *own)};
    out_node(j->w, "PRelu", in, 2, &out, 1);
    return out;
}

/* Writes a quantised convolution or dense layer. 0: it can't. */
static int layer(out_job *j) {
    const int conv = strcmp(j->node->desc->name, "qlinear_conv") == 0;
    const int biased = j->n_in > Q_BIAS && *j->in[Q_BIAS];
    const char *x = j->in[Q_X], *y = out_between(j->w);
    const int has_slope = j->n_in > Q_SLOPE && *j->in[Q_SLOPE];
    if (!has_scale(j, Q_X + 1) || !has_scale(j, Q_W + 1) || !has_scale(j, Q_LAYER_Y)) return 0;
    if (has_slope && !is_known(j->node->inputs[Q_SLOPE], CNR_f32)) return 0;
    if (!conv && j->node->inputs[Q_X]->rank != 2) {
        const char *flat = out_between(j->w);
        out_put_int(j->w, out_node(j->w, "Flatten", &x, 1, &flat, 1), "axis", 1);
        x = flat;
    }
    const char *in[] = {dequantized(j, x, Q_X + 1, 0), dequantized(j, j->in[Q_W], Q_W + 1, 0),
                        biased ? bias(j) : ""};
    Onnx__NodeProto *n = out_node(j->w, conv ? "Conv" : "Gemm", in, biased ? 3 : 2, &y, 1);
    if (conv) out_attrs_of(j, n, "conv");
    else out_put_int(j->w, n, "transB", 1);
    quantized(j, has_slope ? sloped(j, y) : y, Q_LAYER_Y);
    return 1;
}

/* Writes a quantised operator of two operands. 0: it can't. */
static int pair(out_job *j) {
    const char *y = out_between(j->w);
    if (!has_scale(j, Q_X + 1) || !has_scale(j, Q_W + 1) || !has_scale(j, Q_LAYER_Y)) return 0;
    const char *in[] = {dequantized(j, j->in[Q_X], Q_X + 1, 0),
                        dequantized(j, j->in[Q_W], Q_W + 1, 0)};
    out_node(j->w, strcmp(j->node->desc->name, "qlinear_add") == 0 ? "Add" : "Mul", in, 2, &y, 1);
    quantized(j, y, Q_LAYER_Y);
    return 1;
}

/* Writes quantised global average pooling; 0: it can't be written so. */
static int mean(out_job *j) {
    const char *y = out_between(j->w);
    if (!has_scale(j, Q_X + 1) || !has_scale(j, 3)) return 0;
    const char *x = dequantized(j, j->in[Q_X], Q_X + 1, 0);
    out_node(j->w, "GlobalAveragePool", &x, 1, &y, 1);
    quantized(j, y, 3);
    return 1;
}

/* Writes qlinear_table as a Gather, and returns what that does: negative indices count from the
 * table's end, where the results of negative bytes are. */
static int table(out_job *j) {
    const char *index = out_between(j->w), *in[] = {j->in[1], index};
    out_put_int(j->w, out_node(j->w, "Cast", j->in, 1, &index, 1), "to", out_data_type(CNR_i32));
    out_put_int(j->w, out_node(j->w, "Gather", in, 2, j->out, 1), "axis", 0);
    return 1;
}

int out_quantized(out_job *j) {
    static const struct {
        const char *op;
        int (*write)(out_job *);
    } rows[] = {{"qlinear_conv", layer},
                {"qlinear_dense", layer},
                {"qlinear_add", pair},
                {"qlinear_mul", pair},
                {"qlinear_global_average_pool", mean},
                {"qlinear_table", table}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op, j->node->desc->name) == 0) return rows[i].write(j);
    return 0;
}
