/* Splits nodes that ONNX Runtime's optimiser fused into the standard ones, which the planner fuses
 * by its own rules. Forms are those of ONNX Runtime's ContribOperators.md. */
#include "heads.h"

#include <stdio.h>

/* Makes the node itself `op` of n inputs that stand in j->in, as the last step. */
static void last(onnx_job *j, const char *op, int32_t n) {
    snprintf(j->op, sizeof j->op, "%s", op);
    j->n_in = n;
    j->attrs.n = 0;
}

/* ---- normalisation ---- */

/* Whether the node gives only its first output, or also number `more`. */
static int outputs_fit(onnx_job *j, int32_t more) {
    for (int32_t i = 1; i < j->n_out; i++)
        if (i != more && j->node->output[i][0])
            return onnx_problem(j, "outputs for training are not supported%s", ""), 0;
    return 1;
}

/* Normalises the last axis of x by a scale and a shift (-1: none); `centred`: by its mean, too. */
static void normalise(onnx_job *j, cnr_value x, cnr_value scale, cnr_value shift, int centred) {
    j->in[0] = x, j->in[1] = scale, j->in[2] = shift;
    last(j, "layer_normalization", shift < 0 ? 2 : 3);
    if (!centred) return onnx_rms_norm(j);
    imp_float(&j->attrs, "epsilon", onnx_float(j, "epsilon", 1e-12));
    imp_int(&j->attrs, "axis", -1);
}

/* Keeps the outputs that are set already when the node's own is added. */
static void one_output(onnx_job *j) { j->n_out = (int32_t)j->node->n_output; }

void onnx_fused_norm(onnx_job *j) {
    const int centred = strcmp(j->node->op_type, "SkipLayerNormalization") == 0;
    const cnr_value scale = onnx_input(j, 2), shift = centred ? onnx_input(j, 3) : -1;
    const cnr_value bias = onnx_input(j, centred ? 4 : 3);
    if (j->n_in < 3 || scale < 0) return onnx_problem(j, "its scale is missing%s", "");
    if (!outputs_fit(j, 3)) return;
    cnr_value sum = onnx_step2(j, "add", j->in[0], j->in[1]);
    if (bias >= 0) sum = onnx_step2(j, "add", sum, bias);
    if (j->n_out > 3) {
        j->out[3] = sum;
        j->after = one_output;
    }
    j->n_out = 1;
    normalise(j, sum, scale, shift, centred);
}

/* Adds the rows of a table whose numbers `rows` gives. */
static cnr_value rows_of(onnx_job *j, cnr_value table, cnr_value rows) {
    return onnx_along(j, "gather", (cnr_value[]){table, rows}, 2, 0);
}

/* Adds the number of ones in each sample's mask, or zeros if there is none. */
static cnr_value mask_lengths(onnx_job *j, cnr_value mask) {
    const int64_t axis = 1;
    imp_attrs attrs = {.n = 0};
    imp_ints(&attrs, "axes", &axis, 1);
    imp_bool(&attrs, "keepdims", 0);
    if (mask < 0) mask = onnx_step2(j, "sub", j->in[0], j->in[0]);
    return onnx_step(j, "reduce_sum", &mask, 1, &attrs);
}

void onnx_fused_embed(onnx_job *j) {
    enum { WORDS, SEGMENTS, WORD_TABLE, POSITION_TABLE, SEGMENT_TABLE, SCALE, SHIFT, MASK, AT };
    const cnr_value scale = onnx_input(j, SCALE), shift = onnx_input(j, SHIFT);
    const cnr_value positions = onnx_input(j, POSITION_TABLE);
    if (j->n_in <= SHIFT) return onnx_problem(j, "inputs are missing%s", "");
    cnr_value at = onnx_input(j, AT);
    if (at < 0) /* counted along the second axis */
        at = onnx_at_axis(j, onnx_counted(j, onnx_at_axis(j, j->in[WORDS], 0)), 0);
    cnr_value sum = onnx_step2(j, "add", rows_of(j, j->in[WORD_TABLE], j->in[WORDS]),
                               rows_of(j, positions, at));
    if (onnx_input(j, SEGMENTS) >= 0 && onnx_input(j, SEGMENT_TABLE) >= 0)
        sum = onnx_step2(j, "add", sum, rows_of(j, j->in[SEGMENT_TABLE], j->in[SEGMENTS]));
    if (j->n_out > 1) j->out[1] = mask_lengths(j, onnx_input(j, MASK));
    j->out[2] = sum;
    j->after = one_output;
    j->n_out = 1;
    normalise(j, sum, scale, shift, 1);
}

/* ---- activations ---- */

void onnx_fused_gelu(onnx_job *j) {
    const int fast = strcmp(j->node->op_type, "FastGelu") == 0;
    if (onnx_input(j, 1) >= 0) j->in[0] = onnx_step2(j, "add", j->in[0], j->in[1]);
    last(j, "gelu", 1);
    if (fast) imp_enum(&j->attrs, "approximate", "tanh");
}

/* Makes the node itself the activation that the attribute `activation` names, of x, with the
 * parameters given; 0: there is no such activation, which is told. */
static int activation(onnx_job *j, cnr_value x, const double *values, int32_t n) {
    static const struct {
        const char *onnx, *op, *parameter[2];
    } rows[] = {{"Relu", "relu", {NULL}},
                {"Sigmoid", "sigmoid", {NULL}},
                {"Tanh", "tanh", {NULL}},
                {"Softplus", "softplus", {NULL}},
                {"Softsign", "softsign", {NULL}},
                {"HardSwish", "hard_swish", {NULL}},
                {"LeakyRelu", "leaky_relu", {"alpha"}},
                {"Elu", "elu", {"alpha"}},
                {"ThresholdedRelu", "thresholded_relu", {"alpha"}},
                {"Clip", "clip", {"min", "max"}},
                {"HardSigmoid", "hard_sigmoid", {"alpha", "beta"}}};
    const Onnx__AttributeProto *kind = onnx_proto(j, "activation");
    const char *name = kind ? onnx_text(j, kind->s) : "";
    for (size_t i = 0; name && i < CNR_ROWS(rows); i++) {
        if (strcmp(rows[i].onnx, name) != 0) continue;
        j->in[0] = x;
        last(j, rows[i].op, 1);
        for (int32_t k = 0; k < 2 && k < n; k++)
            if (rows[i].parameter[k]) imp_float(&j->attrs, rows[i].parameter[k], values[k]);
        return 1;
    }
    return onnx_problem(j, "activation %s is not supported", name ? name : ""), 0;
}

/* ---- products ---- */

/* Adds x with its last two axes exchanged (`rows`), after its first one was moved behind the other
 * ones but the last (`batch`). */
static cnr_value turned(onnx_job *j, cnr_value x, int batch, int rows) {
    const cnr_tensor *t = imp_type(&j->net->imp, x);
    int64_t turn[CNR_MAX_RANK];
    if (!batch && !rows) return x;
    if (!t || t->rank < 2) {
        if (!t) onnx_problem(j, "its operands have no known axes%s", "");
        return x; /* a vector has nothing to exchange */
    }
    const int32_t n = t->rank;
    for (int32_t i = 0; i < n; i++) turn[i] = batch && i < n - 1 ? (i + 1) % (n - 1) : i;
    if (rows) {
        const int64_t kept = turn[n - 1];
        turn[n - 1] = turn[n - 2];
        turn[n - 2] = kept;
    }
    return onnx_swapped(j, x, turn, n);
}

void onnx_fused_matmul(onnx_job *j) {
    const double factor = onnx_float(j, "alpha", 1);
    if (j->n_in != 2) return onnx_problem(j, "wants two operands%s", "");
    j->in[0] =
        turned(j, j->in[0], onnx_int(j, "transBatchA", 0) != 0, onnx_int(j, "transA", 0) != 0);
    j->in[1] =
        turned(j, j->in[1], onnx_int(j, "transBatchB", 0) != 0, onnx_int(j, "transB", 0) != 0);
    if (factor == 1) return last(j, "matmul", 2);
    j->in[0] = onnx_step2(j, "matmul", j->in[0], j->in[1]);
    j->in[1] = onnx_number_like(j, factor, j->in[0]);
    last(j, "mul", 2);
}

void onnx_fused_gemm(onnx_job *j) {
    const double values[] = {onnx_float(j, "activation_alpha", 0),
                             onnx_float(j, "activation_beta", 0)};
    const int32_t n = onnx_proto(j, "activation_beta") ? 2 : onnx_proto(j, "activation_alpha") != 0;
    if (!onnx_proto(j, "activation")) return;
    activation(j, onnx_step(j, "gemm", j->in, j->n_in, &j->attrs), values, n);
}

/* Adds the convolution of the inputs, its sum with input 3, and makes the node itself its
 * activation (or the identity). */
static void convolve(onnx_job *j) {
    const Onnx__AttributeProto *list = onnx_proto(j, "activation_params");
    double values[2] = {0};
    int32_t n = 0;
    for (; list && n < 2 && (size_t)n < list->n_floats; n++) values[n] = (double)list->floats[n];
    const cnr_value more = onnx_input(j, 3);
    const int32_t n_in = onnx_input(j, 2) >= 0 ? 3 : 2;
    imp_bool(&j->attrs, "bias", n_in > 2);
    j->in[0] = onnx_step(j, "conv", j->in, n_in, &j->attrs);
    if (more >= 0) j->in[0] = onnx_step2(j, "add", j->in[0], more);
    if (onnx_proto(j, "activation")) activation(j, j->in[0], values, n);
    else last(j, "identity", 1);
}

void onnx_fused_conv(onnx_job *j) {
    if (onnx_proto(j, "activation") || onnx_input(j, 3) >= 0) convolve(j);
}

/* Gives the output with the channels last. */
static void channels_last(onnx_job *j) {
    j->out[0] = onnx_swapped(j, j->out[0], (int64_t[]){0, 2, 3, 1}, 4);
}

void onnx_fused_nhwc(onnx_job *j) {
    static const int64_t first[] = {0, 3, 1, 2};
    const cnr_tensor *x = imp_type(&j->net->imp, onnx_input(j, 0));
    if (!x || x->rank != 4) return onnx_problem(j, "wants an input with four axes%s", "");
    j->in[0] = onnx_swapped(j, j->in[0], first, 4);
    if (onnx_input(j, 3) >= 0) j->in[3] = onnx_swapped(j, j->in[3], first, 4);
    convolve(j);
    j->after = channels_last;
}
