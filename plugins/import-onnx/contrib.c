/* Converts operators of ONNX Runtime's domain com.microsoft, which its quantiser and optimiser
 * write. Quantised ones are dequantised, computed and quantised; fused ones are split again. */
#include "heads.h"

#include <stdio.h>

/* Adds dequantize_linear of in[0] by scale in[1] and zero point in[2] (-1: none) */
static cnr_value dequantized(onnx_job *j, const cnr_value *in, int64_t axis) {
    const cnr_tensor *scale = imp_type(&j->net->imp, in[1]);
    imp_attrs attrs = {.n = 0};
    if (scale && scale->rank == 1) imp_int(&attrs, "axis", axis);
    return onnx_step(j, "dequantize_linear", in, in[2] < 0 ? 2 : 3, &attrs);
}

/* Makes the node itself quantize_linear of x, as the last step (zero below 0: no zero point); its
 * attributes are dropped. */
static void quantize(onnx_job *j, cnr_value x, cnr_value scale, cnr_value zero) {
    snprintf(j->op, sizeof j->op, "quantize_linear");
    j->in[0] = x;
    j->in[1] = scale;
    j->in[2] = zero;
    j->n_in = zero < 0 ? 2 : 3;
    j->attrs.n = 0;
}

/* Dequantises operands, which have three inputs each (x, scale, zero point). The result's scale and
 * zero point follow, or come first (`result`) if the number of operands varies. */
static void operands(onnx_job *j, int32_t first, int32_t n, int32_t result) {
    cnr_value *x = (cnr_value *)onnx_own(j, (size_t)n * sizeof *x);
    if (!x) return;
    if (onnx_int(j, "channels_last", 0))
        return onnx_problem(j, "channels_last is not supported%s", "");
    for (int32_t i = 0; i < n; i++) x[i] = dequantized(j, &j->in[first + 3 * i], 1);
    quantize(j, onnx_step(j, j->op, x, n, &j->attrs), j->in[result], j->in[result + 1]);
}

/* Marks missing inputs at the end as left out. */
static void fill_up(onnx_job *j, int32_t n) {
    while (j->n_in < n) j->in[j->n_in++] = -1;
}
/* Makes a quantised operator of one operand from a float one. */
static void one(onnx_job *j) {
    fill_up(j, 5);
    operands(j, 0, 1, 3);
}
/* Makes a quantised operator of two operands from a float one. */
static void two(onnx_job *j) {
    fill_up(j, 8);
    operands(j, 0, 2, 6);
}
/* Makes a quantised operator of any number of operands from a float one. */
static void any(onnx_job *j) {
    if (j->n_in > ONNX_PORTS - 3) return onnx_problem(j, "too many inputs%s", "");
    fill_up(j, 5);
    while ((j->n_in - 2) % 3) fill_up(j, j->n_in + 1);
    operands(j, 2, (j->n_in - 2) / 3, 0);
}

/* a, b with scales and zero points, an int32 bias with scale a times b, the result's scale and zero
 * point (none: the result is float). */
static void gemm(onnx_job *j) {
    fill_up(j, 9);
    const int32_t n = j->in[6] < 0 ? 2 : 3;
    cnr_value in[] = {dequantized(j, &j->in[0], 0),
                      dequantized(j, &j->in[3], onnx_int(j, "transB", 0) ? 0 : 1), -1};
    if (n == 3) {
        const cnr_value scale = onnx_step(j, "mul", (cnr_value[]){j->in[1], j->in[4]}, 2, NULL);
        in[2] = dequantized(j, (cnr_value[]){j->in[6], scale, -1}, 0);
    }
    const cnr_value y = onnx_step(j, "gemm", in, n, &j->attrs);
    if (j->in[7] >= 0) return quantize(j, y, j->in[7], j->in[8]);
    j->out[0] = y;
    j->done = 1;
}

/* Converts QuickGelu, x * sigmoid(alpha * x), alpha 1.702 by default. */
static void quick_gelu(onnx_job *j) {
    const Onnx__AttributeProto *alpha = onnx_proto(j, "alpha");
    const double factor = alpha && alpha->has_f ? (double)alpha->f : 1.702;
    if (factor == 1) return;
    cnr_value gate = onnx_step2(j, "mul", j->in[0], onnx_number_like(j, factor, j->in[0]));
    gate = onnx_step(j, "sigmoid", &gate, 1, NULL);
    snprintf(j->op, sizeof j->op, "mul");
    j->in[1] = gate;
    j->n_in = 2;
}

static void as_it_is(onnx_job *j) { (void)j; }

const onnx_form *onnx_contrib_form(const char *name) {
    static const onnx_form rows[] = {
        IMP_LAYER("QLinearAdd", two, .op = "add"),
        IMP_LAYER("QLinearMul", two, .op = "mul"),
        IMP_LAYER("QLinearConcat", any, .op = "concat"),
        IMP_LAYER("QLinearSigmoid", one, .op = "sigmoid"),
        IMP_LAYER("QLinearLeakyRelu", one, .op = "leaky_relu"),
        IMP_LAYER("QLinearSoftmax", one, .op = "softmax", .takes = " opset "),
        IMP_LAYER("QLinearAveragePool", one, .op = "average_pool", .takes = " channels_last "),
        IMP_LAYER("QLinearGlobalAveragePool", one, .op = "global_average_pool",
                  .takes = " channels_last "),
        IMP_LAYER("QLinearReduceMean", one, .op = "reduce_mean"),
        IMP_LAYER("QGemm", gemm, .op = "gemm"),
        IMP_LAYER("FusedConv", onnx_fused_conv, .op = "conv",
                  .takes = " activation activation_params "),
        IMP_LAYER("NhwcConv", onnx_fused_nhwc, .op = "conv"),
        IMP_LAYER("NhwcFusedConv", onnx_fused_nhwc, .op = "conv",
                  .takes = " activation activation_params "),
        IMP_LAYER("FusedGemm", onnx_fused_gemm, .op = "gemm",
                  .takes = " activation activation_alpha activation_beta activation_gamma "),
        IMP_LAYER("FusedMatMul", onnx_fused_matmul, .op = "matmul",
                  .takes = " alpha transA transB transBatchA transBatchB "),
        IMP_LAYER("TransposeMatMul", onnx_fused_matmul, .op = "matmul",
                  .takes = " alpha transA transB "),
        IMP_LAYER("SkipLayerNormalization", onnx_fused_norm, .op = "layer_normalization",
                  .takes = " epsilon "),
        IMP_LAYER("SkipSimplifiedLayerNormalization", onnx_fused_norm, .op = "layer_normalization",
                  .takes = " epsilon "),
        IMP_LAYER("SimplifiedLayerNormalization", onnx_rms_norm, .op = "layer_normalization",
                  .takes = " axis epsilon stash_type "),
        IMP_LAYER("EmbedLayerNormalization", onnx_fused_embed, .op = "layer_normalization",
                  .takes = " epsilon mask_index_type "),
        IMP_LAYER("BiasGelu", onnx_fused_gelu, .op = "gelu"),
        IMP_LAYER("FastGelu", onnx_fused_gelu, .op = "gelu"),
        IMP_LAYER("Attention", onnx_contrib_attention, .op = "softmax",
                  .takes = " num_heads unidirectional qkv_hidden_sizes scale mask_filter_value "
                           "do_rotary past_present_share_buffer rotary_embedding_dim "),
        IMP_LAYER("MultiHeadAttention", onnx_multi_head, .op = "softmax",
                  .takes = " num_heads unidirectional scale mask_filter_value "),
        IMP_LAYER("GroupQueryAttention", onnx_grouped_query, .op = "softmax",
                  .takes = " num_heads kv_num_heads scale softcap do_rotary rotary_interleaved "
                           "local_window_size smooth_softmax qk_output k_quant_type v_quant_type "
                           "kv_cache_bit_width "),
        IMP_LAYER("RotaryEmbedding", onnx_contrib_rotary, .op = "concat",
                  .takes = " interleaved num_heads rotary_embedding_dim scale "
                           "is_packed_batching "),
        IMP_LAYER("QuickGelu", quick_gelu, .op = "swish", .takes = " alpha "),
        IMP_LAYER("Gelu", as_it_is, .op = "gelu"),
        IMP_LAYER("QuantizeLinear", as_it_is, .op = "quantize_linear"),
        IMP_LAYER("DequantizeLinear", as_it_is, .op = "dequantize_linear"),
    };
    return IMP_ROW_OF(rows, name);
}
