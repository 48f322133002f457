/* Converts nn modules, with one function for each type. */
#include "torch7.h"

#include <stdarg.h>
#include <stdio.h>

/* Adds a problem of the layer to those of the graph; an importer reports all of them together. */
void t7_problem(t7_job *j, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    imp_host->graph_problem(j->net->b.graph, j->net->b.path, "layer %s: %s", j->name, text);
    j->failed = 1;
}

void t7_give(t7_job *j, cnr_value v) {
    j->out->at[0] = v;
    j->out->n = 1;
    j->out->is_table = 0;
}

cnr_value t7_op(t7_job *j, const char *op, const char *suffix, const cnr_value *in, int32_t n_in,
                const imp_attrs *attrs) {
    return imp_node(&j->net->b, op, j->name, suffix, in, n_in, attrs);
}

void t7_give_op(t7_job *j, const char *op, const imp_attrs *attrs) {
    t7_give(j, t7_op(j, op, "", &j->x, 1, attrs));
}

/* Field `field` of the module as a weight with those dims; the number of elements must agree. -1:
 * the job failed. */
static cnr_value weight(t7_job *j, const char *field, const char *suffix, const int64_t *dim,
                        int32_t rank) {
    const t7_value *t = t7_field(j->m, field);
    const int64_t n = t7_count(t), want = imp_count(dim, rank);
    if (j->failed) return -1;
    if (n != want || n < 1)
        return t7_problem(j, "%s is no tensor of %lld numbers", field, (long long)want), -1;
    if (n > j->net->budget)
        return t7_problem(j, "the file refers to its weights far too often"), -1;
    j->net->budget -= n;
    float *values = (float *)imp_host->alloc((size_t)n * sizeof(float));
    if (!values) {
        j->net->b.status = CNR_E_MEMORY;
        j->failed = 1;
        return -1;
    }
    t7_floats(t, values);
    const cnr_value v = imp_weight(&j->net->b, j->name, suffix, values, dim, rank);
    imp_host->free(values);
    return v;
}

int64_t t7_channels(t7_job *j) {
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    if (x && x->rank >= 2 && x->dim[1] > 0) return x->dim[1];
    t7_problem(j, "the channels of its input are not known");
    return 0;
}

int t7_window(t7_job *j, imp_attrs *l, int64_t kernel[2], int64_t stride[2], int64_t pad[4]) {
    kernel[0] = t7_int(j->m, "kH", 0), kernel[1] = t7_int(j->m, "kW", 0);
    stride[0] = t7_int(j->m, "dH", 1), stride[1] = t7_int(j->m, "dW", 1);
    pad[0] = pad[2] = t7_int(j->m, "padH", t7_int(j->m, "padding", 0));
    pad[1] = pad[3] = t7_int(j->m, "padW", t7_int(j->m, "padding", 0));
    if (kernel[0] < 1 || kernel[1] < 1 || stride[0] < 1 || stride[1] < 1 || pad[0] < 0 ||
        pad[1] < 0 || kernel[0] > 1 << 16 || kernel[1] > 1 << 16)
        return t7_problem(j, "kW, kH, dW, dH, padW or padH is wrong"), 0;
    imp_ints(l, "kernel_shape", kernel, 2);
    imp_ints(l, "strides", stride, 2);
    imp_ints(l, "pads", pad, 4);
    return 1;
}

/* ---- layers with weights ---- */

/* Converts SpatialConvolution and SpatialFullConvolution; what does not fit is noted as a problem
 * and sets j->failed. */
static void convolution(t7_job *j) {
    const int turned = strcmp(j->kind, "SpatialFullConvolution") == 0;
    int64_t kernel[2], stride[2], pad[4], adjust[2], dilation[2];
    const int64_t in = t7_int(j->m, "nInputPlane", 0), out = t7_int(j->m, "nOutputPlane", 0);
    const int64_t group = t7_int(j->m, "groups", 1);
    imp_attrs l = {.n = 0};
    if (!t7_window(j, &l, kernel, stride, pad)) return;
    if (in < 1 || out < 1 || group < 1 || in % group || out % group || in > 1 << 24 ||
        out > 1 << 24)
        return t7_problem(j, "nInputPlane, nOutputPlane or groups is wrong");
    const int64_t dim[] = {turned ? in : out, (turned ? out : in) / group, kernel[0], kernel[1]};
    const int with_bias = t7_field(j->m, "bias") != NULL;
    const cnr_value from[] = {j->x, weight(j, "weight", ".weight", dim, 4),
                              with_bias ? weight(j, "bias", ".bias", &out, 1) : -1};
    if (j->failed) return;
    dilation[0] = t7_int(j->m, "dilationH", 1), dilation[1] = t7_int(j->m, "dilationW", 1);
    imp_ints(&l, "dilations", dilation, 2);
    imp_int(&l, "group", group);
    imp_bool(&l, "bias", with_bias);
    adjust[0] = t7_int(j->m, "adjH", 0), adjust[1] = t7_int(j->m, "adjW", 0);
    if (turned) imp_ints(&l, "output_padding", adjust, 2);
    t7_give(j, t7_op(j, turned ? "conv_transpose" : "conv", "", from, 3, &l));
}

/* Converts Linear, for vectors or flattened pictures; what does not fit is noted as a problem and
 * sets j->failed. */
static void linear(t7_job *j) {
    const t7_value *w = t7_field(j->m, "weight");
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    if (!w || w->kind != T7_TENSOR || w->rank != 2) return t7_problem(j, "weight is no matrix");
    if (x && x->rank != 2) return t7_problem(j, "its input is no list of numbers a sample");
    const int64_t out = w->dim[0];
    const int with_bias = t7_field(j->m, "bias") != NULL;
    const cnr_value from[] = {j->x, weight(j, "weight", ".weight", w->dim, 2),
                              with_bias ? weight(j, "bias", ".bias", &out, 1) : -1};
    if (j->failed) return;
    imp_attrs l = {.n = 0};
    imp_bool(&l, "bias", with_bias);
    t7_give(j, t7_op(j, "dense", "", from, 3, &l));
}

/* The running variance of c numbers; files before 2015 store 1 / sqrt(var + eps) as running_std.
 * -1: failed. */
static cnr_value variance(t7_job *j, int64_t c, double eps) {
    if (t7_field(j->m, "running_var")) return weight(j, "running_var", ".var", &c, 1);
    const t7_value *t = t7_field(j->m, "running_std");
    if (t7_count(t) != c) return t7_problem(j, "running_var is missing"), -1;
    float *values = (float *)imp_host->alloc((size_t)c * sizeof(float));
    if (!values) {
        j->net->b.status = CNR_E_MEMORY;
        return -1;
    }
    t7_floats(t, values);
    for (int64_t i = 0; i < c; i++)
        values[i] = (float)(1.0 / ((double)values[i] * (double)values[i]) - eps);
    const cnr_value v = imp_weight(&j->net->b, j->name, ".var", values, &c, 1);
    imp_host->free(values);
    return v;
}

/* Converts BatchNormalization, with or without a scale. */
static void batch_norm(t7_job *j) {
    const int64_t c = t7_channels(j);
    const double eps = t7_number(j->m, "eps", 1e-5);
    const int affine = t7_field(j->m, "weight") != NULL;
    if (j->failed) return;
    imp_net *b = &j->net->b;
    const cnr_value mean = weight(j, "running_mean", ".mean", &c, 1), var = variance(j, c, eps);
    if (j->failed) return;
    const cnr_value scale =
        affine ? weight(j, "weight", ".scale", &c, 1) : imp_filled(b, j->name, ".scale", 1, &c, 1);
    const cnr_value shift =
        affine ? weight(j, "bias", ".shift", &c, 1) : imp_filled(b, j->name, ".shift", 0, &c, 1);
    const cnr_value from[] = {j->x, scale, shift, mean, var};
    if (j->failed) return;
    imp_attrs l = {.n = 0};
    imp_float(&l, "epsilon", eps);
    t7_give(j, t7_op(j, "batch_normalization", "", from, 5, &l));
}

/* Converts InstanceNormalization, from nets for fast neural style transfer. */
static void instance_norm(t7_job *j) {
    const int64_t c = t7_channels(j);
    imp_attrs l = {.n = 0};
    imp_float(&l, "epsilon", t7_number(j->m, "eps", 1e-5));
    if (j->failed) return;
    const cnr_value from[] = {j->x, weight(j, "weight", ".scale", &c, 1),
                              weight(j, "bias", ".shift", &c, 1)};
    if (!j->failed) t7_give(j, t7_op(j, "instance_normalization", "", from, 3, &l));
}

/* Converts PReLU, with one slope or one a channel; what does not fit is noted as a problem and sets
 * j->failed. */
static void prelu(t7_job *j) {
    const int64_t n = t7_int(j->m, "nOutputPlane", 0), c = n ? t7_channels(j) : 1;
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    if (j->failed) return;
    if (n && n != c) return t7_problem(j, "nOutputPlane is not the channels of its input");
    const int64_t dim[CNR_MAX_RANK] = {c, 1, 1, 1, 1, 1, 1};
    const int32_t rank = x && n ? x->rank - 1 : 1; /* number of axes from the channels on */
    const cnr_value slope = weight(j, "weight", ".slope", dim, rank);
    if (j->failed) return;
    t7_give(j, t7_op(j, "prelu", "", (cnr_value[]){j->x, slope}, 2, NULL));
}

/* CMul, CAdd: a weight with a shape of its own, with or without the batch axis (1). */
static void per_element(t7_job *j) {
    const int add = strcmp(j->kind, "CAdd") == 0;
    const char *field = add ? "bias" : "weight";
    const t7_value *t = t7_field(j->m, field);
    if (!t || t->kind != T7_TENSOR || t->rank < 1 || t->rank > CNR_MAX_RANK)
        return t7_problem(j, "%s is no tensor", field);
    const cnr_value w = weight(j, field, add ? ".shift" : ".factor", t->dim, t->rank);
    if (j->failed) return;
    t7_give(j, t7_op(j, add ? "add" : "mul", "", (cnr_value[]){j->x, w}, 2, NULL));
}

/* Converts nn.Mul and nn.Add with a single number. */
static void one_factor(t7_job *j) {
    const int add = strcmp(j->kind, "Add") == 0;
    const t7_value *t = t7_field(j->m, add ? "bias" : "weight");
    const int64_t n = t7_count(t);
    const cnr_value w = weight(j, add ? "bias" : "weight", add ? ".shift" : ".factor", &n, 1);
    if (j->failed) return;
    t7_give(j, t7_op(j, add ? "add" : "mul", "", (cnr_value[]){j->x, w}, 2, NULL));
}

/* ---- element by element ---- */

/* Converts LeakyReLU. */
static void leaky(t7_job *j) {
    const double slope = t7_number(j->m, "negval", 1.0 / 100);
    imp_attrs l = {.n = 0};
    imp_float(&l, "alpha", slope);
    t7_give_op(j, "leaky_relu", &l);
}

/* Converts RReLU as at inference: with the mean of its slopes. */
static void rrelu(t7_job *j) {
    const double low = t7_number(j->m, "lower", 1.0 / 8), high = t7_number(j->m, "upper", 1.0 / 3);
    imp_attrs l = {.n = 0};
    imp_float(&l, "alpha", (low + high) / 2);
    t7_give_op(j, "leaky_relu", &l);
}

/* Converts ELU. */
static void elu(t7_job *j) {
    imp_attrs l = {.n = 0};
    imp_float(&l, "alpha", t7_number(j->m, "alpha", 1));
    t7_give_op(j, "elu", &l);
}

/* Converts Threshold: x where it exceeds the threshold, else val. */
static void threshold(t7_job *j) {
    const double at = t7_number(j->m, "threshold", 1e-6), value = t7_number(j->m, "val", 0);
    imp_net *b = &j->net->b;
    imp_attrs l = {.n = 0};
    if (at == 0 && value == 0) return t7_give_op(j, "relu", NULL);
    if (value == 0 || value == at) {
        imp_float(&l, value == at ? "min" : "alpha", at);
        return t7_give_op(j, value == at ? "clip" : "thresholded_relu", &l);
    }
    const cnr_value limit = imp_scalar(b, j->name, ".threshold", at);
    const cnr_value above = t7_op(j, "greater", ".above", (cnr_value[]){j->x, limit}, 2, NULL);
    const cnr_value other = imp_scalar(b, j->name, ".val", value);
    t7_give(j, t7_op(j, "where", "", (cnr_value[]){above, j->x, other}, 3, NULL));
}

/* Converts Clamp, HardTanh and ClippedReLU, as clip. */
static void clamp(t7_job *j) {
    const int relu = strcmp(j->kind, "ClippedReLU") == 0;
    imp_attrs l = {.n = 0};
    imp_float(&l, "min", relu ? 0 : t7_number(j->m, "min_val", -1));
    imp_float(&l, "max", t7_number(j->m, relu ? "ceiling" : "max_val", 1));
    t7_give_op(j, "clip", &l);
}

/* Adds x * factor + shift; the node's name ends in `suffix`. */
static cnr_value affine(t7_job *j, const char *suffix, cnr_value x, double factor, double shift) {
    char name[300];
    snprintf(name, sizeof name, "%.250s%s", j->name, suffix);
    return imp_affine(&j->net->b, name, x, factor, shift);
}

/* Converts SoftPlus: log(1 + exp(beta x)) / beta; what does not fit is noted as a problem and sets
 * j->failed. */
static void soft_plus(t7_job *j) {
    const double beta = t7_number(j->m, "beta", 1);
    if (!(beta > 0)) return t7_problem(j, "beta is wrong");
    const cnr_value x = affine(j, ".beta", j->x, beta, 0);
    t7_give(j, affine(j, "", t7_op(j, "softplus", beta == 1 ? "" : ".steep", &x, 1, NULL), 1 / beta,
                      0));
}

/* Converts SoftShrink and HardShrink. */
static void shrink(t7_job *j) {
    const double lambda = t7_number(j->m, "lambda", 0.5);
    imp_attrs l = {.n = 0};
    imp_float(&l, "lambd", lambda);
    if (strcmp(j->kind, "SoftShrink") == 0) imp_float(&l, "bias", lambda);
    t7_give_op(j, "shrink", &l);
}

/* Converts TanhShrink: x - tanh(x). */
static void tanh_shrink(t7_job *j) {
    const cnr_value t = t7_op(j, "tanh", ".tanh", &j->x, 1, NULL);
    t7_give(j, t7_op(j, "sub", "", (cnr_value[]){j->x, t}, 2, NULL));
}

/* Converts Power: x to a number. */
static void power(t7_job *j) {
    const cnr_value p = imp_scalar(&j->net->b, j->name, ".power", t7_number(j->m, "pow", 1));
    t7_give(j, t7_op(j, "pow", "", (cnr_value[]){j->x, p}, 2, NULL));
}

/* Converts Square, as x * x. */
static void square(t7_job *j) {
    t7_give(j, t7_op(j, "mul", "", (cnr_value[]){j->x, j->x}, 2, NULL));
}

/* Converts MulConstant and AddConstant with a number; what does not fit is noted as a problem and
 * sets j->failed. */
static void constant_scalar(t7_job *j) {
    const double value = t7_number(j->m, "constant_scalar", 0);
    const int add = strcmp(j->kind, "AddConstant") == 0;
    if (!t7_field(j->m, "constant_scalar")) return t7_problem(j, "its constant is no number");
    t7_give(j, imp_affine(&j->net->b, j->name, j->x, add ? 1 : value, add ? value : 0));
}

/* Dropout before v2, and SpatialDropout, scale at inference instead of in training. */
static void dropout(t7_job *j) {
    const int spatial = strcmp(j->kind, "Dropout") != 0;
    const double p = t7_number(j->m, "p", 0.5);
    if (!spatial && t7_bool(j->m, "v2", 0)) return t7_give(j, j->x);
    t7_give(j, imp_affine(&j->net->b, j->name, j->x, 1 - p, 0));
}

static void plain(t7_job *j) { t7_give_op(j, j->op, NULL); }

/* Converts SoftMax, LogSoftMax and SoftMin, over axis 1. */
static void softmax(t7_job *j) {
    imp_attrs l = {.n = 0};
    imp_int(&l, "axis", 1);
    const cnr_value x = affine(j, ".turned", j->x, strcmp(j->kind, "SoftMin") == 0 ? -1 : 1, 0);
    t7_give(j, t7_op(j, strstr(j->kind, "LogSoftMax") ? "log_softmax" : "softmax", "", &x, 1, &l));
}

/* Converts LogSigmoid. */
static void log_sigmoid(t7_job *j) {
    const cnr_value s = t7_op(j, "sigmoid", ".sigmoid", &j->x, 1, NULL);
    t7_give(j, t7_op(j, "log", "", &s, 1, NULL));
}

/* Converts SpatialCrossMapLRN. */
static void lrn(t7_job *j) {
    imp_attrs l = {.n = 0};
    imp_int(&l, "size", t7_int(j->m, "size", 5));
    imp_float(&l, "alpha", t7_number(j->m, "alpha", 1e-4));
    imp_float(&l, "beta", t7_number(j->m, "beta", 0.75));
    imp_float(&l, "bias", t7_number(j->m, "k", 1));
    t7_give_op(j, "lrn", &l);
}

/* Converts Normalize by the first or second norm; what does not fit is noted as a problem and sets
 * j->failed. */
static void normalize(t7_job *j) {
    const double p = t7_number(j->m, "p", 2);
    if (p != 2 && p != 1) return t7_problem(j, "norms other than the first and the second");
    imp_attrs l = {.n = 0};
    imp_int(&l, "p", (int64_t)p);
    imp_int(&l, "axis", 1);
    t7_give_op(j, "lp_normalization", &l);
}

static void nothing(t7_job *j) { *j->out = *j->in; }

/* ---- the table ---- */

static const t7_row rows[] = {
    IMP_LAYER("Abs", plain, .op = "abs"),
    IMP_LAYER("Add", one_factor),
    IMP_LAYER("AddConstant", constant_scalar),
    IMP_LAYER("BatchNormalization", batch_norm),
    IMP_LAYER("CAdd", per_element),
    IMP_LAYER("CMul", per_element),
    IMP_LAYER("Clamp", clamp),
    IMP_LAYER("ClippedReLU", clamp),
    IMP_LAYER("Contiguous", nothing),
    IMP_LAYER("Copy", nothing),
    IMP_LAYER("Dropout", dropout),
    IMP_LAYER("ELU", elu),
    IMP_LAYER("Exp", plain, .op = "exp"),
    IMP_LAYER("GradientReversal", nothing),
    IMP_LAYER("HardShrink", shrink),
    IMP_LAYER("HardTanh", clamp),
    IMP_LAYER("Identity", nothing),
    IMP_LAYER("InstanceNormalization", instance_norm),
    IMP_LAYER("LeakyReLU", leaky),
    IMP_LAYER("Linear", linear),
    IMP_LAYER("Log", plain, .op = "log"),
    IMP_LAYER("LogSigmoid", log_sigmoid),
    IMP_LAYER("LogSoftMax", softmax),
    IMP_LAYER("Mul", one_factor),
    IMP_LAYER("MulConstant", constant_scalar),
    IMP_LAYER("Normalize", normalize),
    IMP_LAYER("PReLU", prelu),
    IMP_LAYER("Power", power),
    IMP_LAYER("RReLU", rrelu),
    IMP_LAYER("ReLU", plain, .op = "relu"),
    IMP_LAYER("ReLU6", plain, .op = "relu6"),
    IMP_LAYER("Sigmoid", plain, .op = "sigmoid"),
    IMP_LAYER("SoftMax", softmax),
    IMP_LAYER("SoftMin", softmax),
    IMP_LAYER("SoftPlus", soft_plus),
    IMP_LAYER("SoftShrink", shrink),
    IMP_LAYER("SoftSign", plain, .op = "softsign"),
    IMP_LAYER("SpatialBatchNormalization", batch_norm),
    IMP_LAYER("SpatialConvolution", convolution),
    IMP_LAYER("SpatialConvolutionMM", convolution),
    IMP_LAYER("SpatialCrossMapLRN", lrn),
    IMP_LAYER("SpatialDilatedConvolution", convolution),
    IMP_LAYER("SpatialDropout", dropout),
    IMP_LAYER("SpatialFullConvolution", convolution),
    IMP_LAYER("SpatialLogSoftMax", softmax),
    IMP_LAYER("SpatialSoftMax", softmax),
    IMP_LAYER("Sqrt", plain, .op = "sqrt"),
    IMP_LAYER("Square", square),
    IMP_LAYER("Tanh", plain, .op = "tanh"),
    IMP_LAYER("TanhShrink", tanh_shrink),
    IMP_LAYER("Threshold", threshold),
    IMP_LAYER("TotalVariation", nothing),
};

/* Converts a module, and all modules in it. */
static void convert(t7_net *net, const t7_value *m, const char *path, const t7_flow *in,
                    t7_flow *out) {
    char kind[64] = "", name[256];
    const int module = t7_class(m, kind, sizeof kind);
    const t7_row *table = t7_table_row(kind);
    snprintf(name, sizeof name, "%.160s%s%.64s", path, *path ? "." : "", kind);
    t7_job j = {.net = net, .m = m, .kind = kind, .name = name, .in = in, .out = out, .x = -1};
    if (net->n_layers++ >= T7_MAX_LAYERS) {
        if (net->n_layers == T7_MAX_LAYERS + 1) t7_problem(&j, "there are too many layers");
        return;
    }
    if (!module)
        return t7_problem(&j, "\"%.*s\" is no module of nn",
                          (int)(m && m->text && m->n_text < 80 ? m->n_text : 0),
                          m && m->text ? m->text : "");
    if (table) return table->convert(&j);
    const t7_row *layer = IMP_ROW_OF(rows, kind);
    if (!layer) layer = t7_window_row(kind);
    if (!layer) layer = t7_shape_row(kind);
    if (!layer) return t7_problem(&j, "nn.%s is not supported", kind);
    const int idle = layer->convert == nothing;
    if (in->is_table && !idle) return t7_problem(&j, "its input is a table");
    j.x = in->is_table ? -1 : in->at[0];
    j.op = layer->op;
    if (j.x >= 0 || idle) layer->convert(&j);
}

void t7_module(t7_net *net, const t7_value *m, const char *path, const t7_flow *in, t7_flow *out) {
    out->n = 1; /* output of a failed module; its readers report nothing */
    out->is_table = 0;
    out->at[0] = -1;
    if (net->b.status) return;
    if (net->depth >= T7_MAX_NESTED) {
        imp_host->graph_problem(net->b.graph, net->b.path,
                                "layer %s: modules are nested too deeply", path);
        return;
    }
    net->depth++;
    convert(net, m, path, in, out);
    net->depth--;
}
