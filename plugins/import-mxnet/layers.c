/* One function a kind of MXNet operator: its attributes and weights into operators of ours. */
#include "mxnet.h"

#include <stdarg.h>
#include <stdio.h>

void mx_problem(mx_job *j, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    imp_host->graph_problem(j->net->b.graph, j->net->b.path, "layer %s (%s): %s", j->n->name,
                            j->n->op, text);
    j->failed = 1;
}

void mx_give(mx_job *j, cnr_value v) {
    j->out[0] = v;
    j->n_out = 1;
}

cnr_value mx_op(mx_job *j, const char *op, const char *suffix, const cnr_value *in, int32_t n_in,
                const imp_attrs *attrs) {
    return imp_node(&j->net->b, op, j->n->name, suffix, in, n_in, attrs);
}

static void give_op(mx_job *j, const char *op, const imp_attrs *attrs) {
    mx_give(j, mx_op(j, op, "", &j->x, 1, attrs));
}

const cnr_tensor *mx_type(mx_job *j, cnr_value v) {
    return imp_type(&j->net->b, v);
}

/* ---- inputs: values of other nodes, parameters, the net's inputs ---- */

/* A parameter as a constant of those dims (rank < 0: its own). */
static cnr_value constant(mx_job *j, mx_array *a, const int64_t *dim, int32_t rank) {
    char name[256];
    const int64_t n = mx_array_count(a);
    if (rank < 0) dim = a->dim, rank = a->rank;
    const cnr_tensor *have = imp_type(&j->net->b, a->value);
    if (have && have->rank == rank && memcmp(have->dim, dim, (size_t)rank * sizeof *dim) == 0)
        return a->value; /* shared by several nodes */
    snprintf(name, sizeof name, "%.*s", (int)(a->n_name < 250 ? a->n_name : 250), a->name);
    if (n < 1 || n != imp_count(dim, rank)) {
        mx_problem(j, "%s holds %lld numbers, %lld are wanted", name, (long long)n,
                   (long long)imp_count(dim, rank));
        return -1;
    }
    if (n > j->net->budget) return mx_problem(j, "parameters are read far too often"), -1;
    j->net->budget -= n;
    float *values = (float *)imp_host->alloc((size_t)n * sizeof(float));
    if (!values) {
        j->net->b.status = CNR_E_MEMORY;
        j->failed = 1;
        return -1;
    }
    mx_array_floats(a, values);
    const cnr_value v = imp_weight(&j->net->b, name, have ? ".again" : "", values, dim, rank);
    imp_host->free(values);
    return a->value = v;
}

static mx_node *source(mx_job *j, int32_t i, int64_t *output) {
    int64_t from;
    if (!mx_input(j->n, i, &from, output)) {
        mx_problem(j, "input %d is missing", (int)i);
        return NULL;
    }
    const int64_t own = j->n - j->net->nodes; /* nodes are in order, so there is no cycle */
    if (from < 0 || from >= own || *output < 0 || *output >= j->net->nodes[from].n_out) {
        mx_problem(j, "input %d is no output of a node before it", (int)i);
        return NULL;
    }
    return &j->net->nodes[from];
}

/* `channels`, `rank`: what the reader wants of an input of the net that says nothing itself. */
static cnr_value data_for(mx_job *j, int32_t i, int64_t channels, int32_t rank) {
    int64_t output = 0;
    mx_node *n = source(j, i, &output);
    if (!n) return -1;
    cnr_value *v = &j->net->values[n->first + output];
    if (*v == -2) { /* a variable that nobody has read yet */
        mx_array *a = mx_params_find(j->net->params, n->name);
        *v = a ? constant(j, a, NULL, -1) : mx_add_input(j->net, n, channels, rank);
    }
    if (*v < 0) j->failed = 1; /* told where that failed */
    return *v;
}

cnr_value mx_data(mx_job *j, int32_t i) {
    return data_for(j, i, 0, 4);
}

/* The variable at input i as a weight of those dims. */
static cnr_value weight(mx_job *j, int32_t i, const int64_t *dim, int32_t rank) {
    int64_t output = 0;
    if (j->failed) return -1;
    mx_node *n = source(j, i, &output);
    if (!n) return -1;
    cnr_value *v = &j->net->values[n->first + output];
    if (*v != -2) { /* computed, or read before */
        const cnr_tensor *t = mx_type(j, *v);
        if (strcmp(n->op, "null") != 0 || (t && t->rank == rank)) return *v;
    }
    mx_array *a = mx_params_find(j->net->params, n->name);
    if (a) return constant(j, a, dim, rank);
    if (j->net->params) return mx_problem(j, "%s is not in the parameters", n->name), -1;
    return *v = imp_weight(&j->net->b, n->name, "", NULL, dim, rank);
}

/* The parameter that an input names, before its dims are known; NULL: none such. */
static mx_array *peek(mx_job *j, int32_t i) {
    int64_t from, output;
    if (!mx_input(j->n, i, &from, &output) || from < 0 || from >= j->net->n_nodes) return NULL;
    return mx_params_find(j->net->params, j->net->nodes[from].name);
}

static int64_t channels_of(mx_job *j) {
    const cnr_tensor *x = mx_type(j, j->x);
    if (x && x->rank >= 2 && x->dim[1] > 0) return x->dim[1];
    if (!j->failed) mx_problem(j, "the channels of its input are not known");
    return 0;
}

int64_t mx_axis(mx_job *j, int64_t axis) {
    const cnr_tensor *x = mx_type(j, j->x);
    if (!x) return j->failed = 1, -1;
    if (axis < 0) axis += x->rank;
    if (axis >= 0 && axis < x->rank) return axis;
    mx_problem(j, "axis is out of range");
    return -1;
}

/* ---- convolution, dense, pooling ---- */

/* A list with one entry a spatial axis; 0 with a problem. */
static int spatial(mx_job *j, const char *key, int32_t rank, int64_t fallback, int64_t *out) {
    const int32_t n = mx_ints(j->n, key, out, 3, fallback);
    for (int32_t i = n; n == 0 && i < rank; i++) out[i] = fallback;
    if (n == 0 || n == rank) return 1;
    mx_problem(j, "%s is wrong", key);
    return 0;
}

static int is_channels_first(mx_job *j) {
    const char *layout = mx_text(j->n, "layout");
    if (!layout || strncmp(layout, "NC", 2) == 0) return 1;
    mx_problem(j, "layout %.20s is not supported", layout);
    return 0;
}

static void convolution(mx_job *j) {
    const int turned = strcmp(j->n->op, "Deconvolution") == 0;
    int64_t kernel[3], stride[3], dilation[3], pad[6], adjust[3], target[3];
    const int32_t rank = mx_ints(j->n, "kernel", kernel, 3, 1);
    const int64_t out = mx_int(j->n, "num_filter", 0), group = mx_int(j->n, "num_group", 1);
    const int with_bias = !mx_bool(j->n, "no_bias", turned);
    mx_array *w = peek(j, 1);
    if (rank < 1) return mx_problem(j, "kernel is wrong");
    j->x = data_for(j, 0, !w || w->rank < 2 ? 0 : turned ? w->dim[0] : w->dim[1] * group, rank + 2);
    const int64_t channels = channels_of(j);
    if (j->failed || !is_channels_first(j)) return;
    if (out < 1 || group < 1 || channels % group || out % group)
        return mx_problem(j, "num_filter or num_group does not fit its input's channels");
    if (!spatial(j, "stride", rank, 1, stride) || !spatial(j, "dilate", rank, 1, dilation) ||
        !spatial(j, "pad", rank, 0, pad) || !spatial(j, "adj", rank, 0, adjust))
        return;
    memcpy(pad + rank, pad, (size_t)rank * sizeof pad[0]);
    int64_t dim[5] = {turned ? channels : out, (turned ? out : channels) / group};
    for (int32_t i = 0; i < rank; i++) {
        if (kernel[i] < 1) return mx_problem(j, "kernel is wrong");
        dim[2 + i] = kernel[i];
    }
    const cnr_value from[] = {j->x, weight(j, 1, dim, rank + 2),
                              with_bias ? weight(j, 2, &out, 1) : -1};
    if (j->failed) return;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "kernel_shape", kernel, rank);
    imp_ints(&l, "strides", stride, rank);
    imp_ints(&l, "dilations", dilation, rank);
    imp_int(&l, "group", group);
    imp_bool(&l, "bias", with_bias);
    if (turned && mx_ints(j->n, "target_shape", target, 3, 0) == rank && target[0] > 0) {
        imp_ints(&l, "output_shape", target, rank);
    } else {
        imp_ints(&l, "pads", pad, 2 * rank);
        if (turned) imp_ints(&l, "output_padding", adjust, rank);
    }
    mx_give(j, mx_op(j, turned ? "conv_transpose" : "conv", "", from, 3, &l));
}

static void fully_connected(mx_job *j) {
    const int64_t out = mx_int(j->n, "num_hidden", 0);
    const int with_bias = !mx_bool(j->n, "no_bias", 0), flat = mx_bool(j->n, "flatten", 1);
    mx_array *w = peek(j, 1);
    j->x = data_for(j, 0, w && w->rank == 2 ? w->dim[1] : 0, 2);
    const cnr_tensor *x = mx_type(j, j->x);
    if (j->failed || !x) return;
    if (out < 1) return mx_problem(j, "num_hidden is missing");
    int64_t k = 1;
    for (int32_t i = flat || x->rank < 2 ? 1 : x->rank - 1; i < x->rank; i++)
        k = x->dim[i] < 0 || k < 0 ? -1 : k * x->dim[i];
    if (k < 0 && w && w->rank == 2) k = w->dim[1];
    if (k < 1) return mx_problem(j, "the size of its input is not known");
    if (w && w->rank == 2 && w->dim[1] != k)
        return mx_problem(j, "it wants %lld inputs and gets %lld: say how large the net's input is "
                             "with --option shape=C,H,W", (long long)w->dim[1], (long long)k);
    const int64_t dim[] = {out, k}, perm[] = {1, 0};
    cnr_value matrix = weight(j, 1, dim, 2);
    const cnr_value bias = with_bias ? weight(j, 2, &out, 1) : -1;
    if (j->failed) return;
    imp_attrs l = {.n = 0};
    imp_bool(&l, "bias", with_bias);
    if (flat || x->rank == 2)
        return mx_give(j, mx_op(j, "dense", "", (cnr_value[]){j->x, matrix, bias}, 3, &l));
    matrix = imp_transpose(&j->net->b, j->n->name, ".weight", matrix, perm, 2);
    cnr_value y = mx_op(j, "matmul", with_bias ? ".product" : "", (cnr_value[]){j->x, matrix}, 2,
                        NULL);
    if (with_bias) y = mx_op(j, "add", "", (cnr_value[]){y, bias}, 2, NULL);
    mx_give(j, y);
}

/* Where "full" gives a window that only sees padding, which Caffe and ONNX leave out. */
static int hangs_over(const cnr_tensor *x, const int64_t *k, const int64_t *s, const int64_t *p,
                      int32_t rank) {
    for (int32_t i = 0; x && i < rank; i++) {
        const int64_t n = x->dim[2 + i];
        if (n < 0) continue;
        const int64_t steps = (n + 2 * p[i] - k[i] + s[i] - 1) / s[i];
        if (steps * s[i] >= n + p[i]) return 1;
    }
    return 0;
}

static void pooling(mx_job *j) {
    const char *type = mx_text(j->n, "pool_type"), *rule = mx_text(j->n, "pooling_convention");
    int64_t kernel[3], stride[3], pad[6];
    const int max = !type || strcmp(type, "max") == 0, sum = type && strcmp(type, "sum") == 0;
    const cnr_tensor *x = mx_type(j, j->x);
    if (!x || !is_channels_first(j)) return;
    if (!max && !sum && strcmp(type, "avg") != 0)
        return mx_problem(j, "pool_type %.20s is not supported", type);
    if (mx_bool(j->n, "global_pool", 0)) {
        if (sum) return mx_problem(j, "global sums are not supported");
        return give_op(j, max ? "global_max_pool" : "global_average_pool", NULL);
    }
    const int32_t rank = mx_ints(j->n, "kernel", kernel, 3, 1);
    if (rank < 1 || rank != x->rank - 2) return mx_problem(j, "kernel is wrong");
    if (!spatial(j, "stride", rank, 1, stride) || !spatial(j, "pad", rank, 0, pad)) return;
    memcpy(pad + rank, pad, (size_t)rank * sizeof pad[0]);
    for (int32_t i = 0; i < rank; i++)
        if (kernel[i] < 1 || stride[i] < 1) return mx_problem(j, "kernel or stride is wrong");
    const int full = rule && strcmp(rule, "full") == 0, same = rule && strcmp(rule, "same") == 0;
    if (full && hangs_over(x, kernel, stride, pad, rank))
        return mx_problem(j, "its last window lies in the padding");
    for (int32_t i = 0; same && i < rank; i++) { /* ceil(size / stride) windows */
        const int64_t n = x->dim[2 + i] + 2 * pad[i];
        if (!max || x->dim[2 + i] < 1) return mx_problem(j, "\"same\" wants max and known sizes");
        const int64_t end = ((n + stride[i] - 1) / stride[i] - 1) * stride[i] + kernel[i] - n;
        pad[rank + i] += end;
        if (pad[rank + i] < 0) return mx_problem(j, "\"same\" with a stride above the kernel");
    }
    double count = 1;
    for (int32_t i = 0; i < rank; i++) count *= (double)kernel[i];
    if (sum && (full || pad[0])) return mx_problem(j, "sums over a border are not supported");
    imp_attrs l = {.n = 0};
    imp_ints(&l, "kernel_shape", kernel, rank);
    imp_ints(&l, "strides", stride, rank);
    imp_ints(&l, "pads", pad, 2 * rank);
    imp_bool(&l, "ceil_mode", full);
    if (!max) imp_bool(&l, "count_include_pad", mx_bool(j->n, "count_include_pad", 1));
    cnr_value y = mx_op(j, max ? "max_pool" : "average_pool", sum ? ".mean" : "", &j->x, 1, &l);
    if (sum) y = imp_affine(&j->net->b, j->n->name, y, count, 0);
    mx_give(j, y);
}

static void upsampling(mx_job *j) {
    const char *type = mx_text(j->n, "sample_type");
    const int64_t scale = mx_int(j->n, "scale", 0), c = channels_of(j);
    if (j->failed) return;
    if (scale < 1 || scale > 1024) return mx_problem(j, "scale is wrong");
    if (mx_int(j->n, "num_args", 1) > (type && strcmp(type, "bilinear") == 0 ? 2 : 1))
        return mx_problem(j, "several inputs are not supported");
    if (!type || strcmp(type, "nearest") == 0)
        return mx_give(j, imp_upscale(&j->net->b, j->n->name, j->x, scale, 0));
    /* bilinear: a transposed convolution a channel, whose weights are the tent */
    const int64_t k = 2 * scale - scale % 2, pad = scale / 2, dim[] = {c, 1, k, k};
    const int64_t kernel[] = {k, k}, stride[] = {scale, scale}, pads[] = {pad, pad, pad, pad};
    const cnr_value w = weight(j, 1, dim, 4);
    if (j->failed) return;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "kernel_shape", kernel, 2);
    imp_ints(&l, "strides", stride, 2);
    imp_ints(&l, "pads", pads, 4);
    imp_int(&l, "group", c);
    imp_bool(&l, "bias", 0);
    mx_give(j, mx_op(j, "conv_transpose", "", (cnr_value[]){j->x, w, -1}, 3, &l));
}

/* ---- normalisation ---- */

/* Symbols of old do not list the running statistics: they are named after the node. */
static cnr_value statistic(mx_job *j, int32_t i, const char *tail, int64_t c) {
    char name[300];
    if (json_array_size(j->n->inputs) > (size_t)i) return weight(j, i, &c, 1);
    snprintf(name, sizeof name, "%.250s%s", j->n->name, tail);
    mx_array *a = mx_params_find(j->net->params, name);
    if (a) return constant(j, a, &c, 1);
    if (j->net->params) return mx_problem(j, "%s is not in the parameters", name), -1;
    return imp_weight(&j->net->b, name, "", NULL, &c, 1);
}

static void batch_norm(mx_job *j) {
    const int64_t c = channels_of(j);
    if (j->failed) return;
    if (mx_int(j->n, "axis", 1) != 1) return mx_problem(j, "an axis other than 1");
    imp_attrs l = {.n = 0};
    imp_float(&l, "epsilon", mx_float(j->n, "eps", 1e-3));
    const int fixed = mx_bool(j->n, "fix_gamma", 1); /* gamma counts as 1, whatever it holds */
    const cnr_value from[] = {
        j->x, fixed ? imp_filled(&j->net->b, j->n->name, ".ones", 1, &c, 1) : weight(j, 1, &c, 1),
        weight(j, 2, &c, 1), statistic(j, 3, "_moving_mean", c), statistic(j, 4, "_moving_var", c)};
    if (j->failed) return;
    mx_give(j, mx_op(j, "batch_normalization", "", from, 5, &l));
}

static void instance_norm(mx_job *j) {
    const int64_t c = channels_of(j);
    if (j->failed) return;
    imp_attrs l = {.n = 0};
    imp_float(&l, "epsilon", mx_float(j->n, "eps", 1e-3));
    const cnr_value from[] = {j->x, weight(j, 1, &c, 1), weight(j, 2, &c, 1)};
    if (!j->failed) mx_give(j, mx_op(j, "instance_normalization", "", from, 3, &l));
}

static void l2_normalization(mx_job *j) {
    const char *mode = mx_text(j->n, "mode");
    const cnr_tensor *x = mx_type(j, j->x);
    int64_t axes[CNR_MAX_RANK], n = 0;
    if (!x) return;
    const int channel = mode && strcmp(mode, "channel") == 0;
    for (int32_t i = mode && strcmp(mode, "spatial") == 0 ? 2 : 1; i < (channel ? 2 : x->rank); i++)
        axes[n++] = i;
    if (n == 0) return mx_problem(j, "its input has no such axes");
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", axes, n);
    imp_bool(&l, "keepdims", 1);
    cnr_value norm = mx_op(j, "reduce_sum_square", ".squares", &j->x, 1, &l);
    const cnr_value eps = imp_scalar(&j->net->b, j->n->name, ".eps", mx_float(j->n, "eps", 1e-10));
    norm = mx_op(j, "add", ".sum", (cnr_value[]){norm, eps}, 2, NULL);
    norm = mx_op(j, "sqrt", ".norm", &norm, 1, NULL);
    mx_give(j, mx_op(j, "div", "", (cnr_value[]){j->x, norm}, 2, NULL));
}

static void lrn(mx_job *j) {
    imp_attrs l = {.n = 0};
    imp_int(&l, "size", mx_int(j->n, "nsize", 5));
    imp_float(&l, "alpha", mx_float(j->n, "alpha", 1e-4));
    imp_float(&l, "beta", mx_float(j->n, "beta", 0.75));
    imp_float(&l, "bias", mx_float(j->n, "knorm", 2));
    give_op(j, "lrn", &l);
}

/* ---- activations and outputs ---- */

static void activation(mx_job *j) {
    static const char *const kinds[][2] = {{"relu", "relu"}, {"sigmoid", "sigmoid"},
                                           {"tanh", "tanh"}, {"softrelu", "softplus"},
                                           {"softsign", "softsign"}};
    const char *kind = mx_text(j->n, "act_type");
    for (size_t i = 0; kind && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i][0], kind) == 0) return give_op(j, kinds[i][1], NULL);
    mx_problem(j, "act_type %.30s is not supported", kind ? kind : "(none)");
}

static void prelu(mx_job *j) {
    const mx_array *a = peek(j, 1);
    const int64_t c = a && mx_array_count(a) == 1 ? 1 : channels_of(j);
    const cnr_tensor *x = mx_type(j, j->x);
    const int64_t dim[CNR_MAX_RANK] = {c, 1, 1, 1, 1, 1, 1};
    if (j->failed || !x) return;
    const cnr_value slope = weight(j, 1, dim, c == 1 ? 1 : x->rank - 1); /* from the channels on */
    if (!j->failed) mx_give(j, mx_op(j, "prelu", "", (cnr_value[]){j->x, slope}, 2, NULL));
}

static void leaky_relu(mx_job *j) {
    const char *kind = mx_text(j->n, "act_type");
    double slope = mx_float(j->n, "slope", 0.25);
    imp_attrs l = {.n = 0};
    if (!kind) kind = "leaky";
    if (strcmp(kind, "prelu") == 0) return prelu(j);
    if (strcmp(kind, "selu") == 0 || strcmp(kind, "gelu") == 0) return give_op(j, kind, NULL);
    if (strcmp(kind, "rrelu") == 0) /* at inference: the middle of its slopes */
        slope = (mx_float(j->n, "lower_bound", 0.125) + mx_float(j->n, "upper_bound", 0.334)) / 2;
    else if (strcmp(kind, "leaky") != 0 && strcmp(kind, "elu") != 0)
        return mx_problem(j, "act_type %.30s is not supported", kind);
    imp_float(&l, "alpha", slope);
    give_op(j, strcmp(kind, "elu") == 0 ? "elu" : "leaky_relu", &l);
}

/* SoftmaxOutput and its kin: labels, which only training has, are not read. */
static void softmax(mx_job *j) {
    const char *mode = mx_text(j->n, "mode");
    const cnr_tensor *x = mx_type(j, j->x);
    const int own = strcmp(j->n->op, "softmax") == 0 || strcmp(j->n->op, "log_softmax") == 0;
    int64_t axis = own ? mx_int(j->n, "axis", -1) : 1;
    if (!x) return;
    if (!own && x->rank != 2 && !mx_bool(j->n, "multi_output", 0) &&
        !(mode && strcmp(mode, "channel") == 0)) {
        if (!mx_bool(j->n, "preserve_shape", 0))
            return mx_problem(j, "over all of a sample is not supported");
        axis = -1;
    }
    if (mx_float(j->n, "temperature", 1) != 1) return mx_problem(j, "a temperature");
    imp_attrs l = {.n = 0};
    imp_int(&l, "axis", axis);
    give_op(j, strcmp(j->n->op, "log_softmax") == 0 ? "log_softmax" : "softmax", &l);
}

static void pass(mx_job *j) {
    mx_give(j, j->x);
}

static void clip(mx_job *j) {
    imp_attrs l = {.n = 0};
    imp_float(&l, "min", mx_float(j->n, "a_min", -__builtin_inf()));
    imp_float(&l, "max", mx_float(j->n, "a_max", __builtin_inf()));
    give_op(j, "clip", &l);
}

static void square(mx_job *j) {
    mx_give(j, mx_op(j, "mul", "", (cnr_value[]){j->x, j->x}, 2, NULL));
}

static const char *const unaries[][2] = {
    {"relu", "relu"}, {"sigmoid", "sigmoid"}, {"tanh", "tanh"}, {"exp", "exp"}, {"log", "log"},
    {"sqrt", "sqrt"}, {"abs", "abs"}, {"negative", "neg"}, {"floor", "floor"}, {"ceil", "ceil"},
    {"erf", "erf"}, {"sign", "sign"}, {"reciprocal", "reciprocal"}, {"softsign", "softsign"},
    {"Dropout", "dropout"}, {"LogisticRegressionOutput", "sigmoid"},
};

static void unary(mx_job *j) {
    for (size_t i = 0; i < sizeof unaries / sizeof unaries[0]; i++)
        if (strcmp(unaries[i][0], j->n->op) == 0) return give_op(j, unaries[i][1], NULL);
}

static const char *const binaries[][2] = {
    {"elemwise_add", "add"}, {"_Plus", "add"}, {"_plus", "add"}, {"_add", "add"},
    {"_grad_add", "add"},
    {"broadcast_add", "add"}, {"broadcast_plus", "add"}, {"ElementWiseSum", "add"},
    {"add_n", "add"}, {"elemwise_sub", "sub"}, {"_Minus", "sub"}, {"_minus", "sub"},
    {"_sub", "sub"}, {"broadcast_sub", "sub"}, {"broadcast_minus", "sub"}, {"elemwise_mul", "mul"},
    {"_Mul", "mul"}, {"_mul", "mul"}, {"broadcast_mul", "mul"}, {"elemwise_div", "div"},
    {"_Div", "div"}, {"_div", "div"}, {"broadcast_div", "div"}, {"_maximum", "max"},
    {"_Maximum", "max"}, {"broadcast_maximum", "max"}, {"_minimum", "min"}, {"_Minimum", "min"},
    {"broadcast_minimum", "min"}, {"_power", "pow"}, {"_Power", "pow"}, {"broadcast_power", "pow"},
};

static void binary(mx_job *j) {
    const char *op = "";
    for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++)
        if (strcmp(binaries[i][0], j->n->op) == 0) op = binaries[i][1];
    cnr_value y = j->x;
    if (j->n_in < 1) return mx_problem(j, "its inputs are missing");
    for (int32_t i = 1; i < j->n_in; i++) {
        const cnr_value other = mx_data(j, i);
        char suffix[32] = "";
        if (j->failed) return;
        if (i + 1 < j->n_in) snprintf(suffix, sizeof suffix, ".part%d", (int)i);
        y = mx_op(j, op, suffix, (cnr_value[]){y, other}, 2, NULL);
    }
    mx_give(j, y);
}

/* _rminus_scalar and _RMinusScalar: a leading r turns the operands round. */
static void with_scalar(mx_job *j) {
    static const char *const kinds[][2] = {
        {"plus", "add"}, {"minus", "sub"}, {"mul", "mul"}, {"div", "div"}, {"power", "pow"},
        {"maximum", "max"}, {"minimum", "min"}};
    const char *kind = j->n->op + 1;
    const int turned = *kind == 'r' || *kind == 'R';
    char name[32];
    snprintf(name, sizeof name, "%s", kind + turned);
    name[strlen(name) - strlen("Scalar")] = 0;
    name[strcspn(name, "_")] = 0;
    for (char *c = name; *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c + 32);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i][0], name) != 0) continue;
        const cnr_value s = imp_scalar(&j->net->b, j->n->name, ".scalar",
                                       mx_float(j->n, "scalar", 0));
        return mx_give(j, mx_op(j, kinds[i][1], "", turned ? (cnr_value[]){s, j->x}
                                                           : (cnr_value[]){j->x, s}, 2, NULL));
    }
    mx_problem(j, "this operator is not supported");
}

static void dot(mx_job *j) {
    const cnr_value other = mx_data(j, 1);
    if (j->failed) return;
    if (mx_bool(j->n, "transpose_a", 0) || mx_bool(j->n, "transpose_b", 0))
        return mx_problem(j, "transposed operands are not supported");
    mx_give(j, mx_op(j, "matmul", "", (cnr_value[]){j->x, other}, 2, NULL));
}

/* ---- the table ---- */

enum { OPEN = 1, OWN_INPUT = 2 }; /* any height and width; says itself what its input 0 is like */

static const struct row {
    const char *op;
    mx_convert convert;
    int flags;
} rows[] = {
    {"Activation", activation, OPEN}, {"BatchNorm", batch_norm, OPEN},
    {"BatchNorm_v1", batch_norm, OPEN}, {"BlockGrad", pass, OPEN}, {"Cast", pass, OPEN},
    {"Convolution", convolution, OPEN | OWN_INPUT},
    {"Convolution_v1", convolution, OPEN | OWN_INPUT}, {"CuDNNBatchNorm", batch_norm, OPEN},
    {"Deconvolution", convolution, OPEN | OWN_INPUT},
    {"FullyConnected", fully_connected, OWN_INPUT}, {"InstanceNorm", instance_norm, OPEN},
    {"L2Normalization", l2_normalization, OPEN}, {"LRN", lrn, OPEN},
    {"LeakyReLU", leaky_relu, OPEN}, {"LinearRegressionOutput", pass, OPEN},
    {"MAERegressionOutput", pass, OPEN}, {"MakeLoss", pass, OPEN}, {"Pooling", pooling, OPEN},
    {"Pooling_v1", pooling, OPEN}, {"Softmax", softmax, OPEN}, {"SoftmaxActivation", softmax, OPEN},
    {"SoftmaxOutput", softmax, OPEN}, {"UpSampling", upsampling, OPEN}, {"_copy", pass, OPEN},
    {"clip", clip, OPEN}, {"dot", dot, 0}, {"batch_dot", dot, 0}, {"identity", pass, OPEN},
    {"log_softmax", softmax, OPEN}, {"softmax", softmax, OPEN}, {"square", square, OPEN},
    {"stop_gradient", pass, OPEN},
};

static struct row row_of(const char *op) {
    struct row found = {op, NULL, 0};
    const size_t n = strlen(op);
    int open = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op, op) == 0) return rows[i];
    found.flags = OPEN;
    for (size_t i = 0; i < sizeof unaries / sizeof unaries[0]; i++)
        if (strcmp(unaries[i][0], op) == 0) found.convert = unary;
    for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++)
        if (strcmp(binaries[i][0], op) == 0) found.convert = binary;
    if (n > 9 && n < 30 && op[0] == '_' && strcmp(op + n - 5, "calar") == 0)
        found.convert = with_scalar;
    if (found.convert) return found;
    found.convert = mx_shape_row(op, &open);
    found.flags = open ? OPEN : 0;
    return found;
}

int mx_op_is_open(const char *op) {
    const struct row row = row_of(op);
    return !row.convert || row.flags & OPEN;
}

int mx_op_outputs(const mx_node *n) {
    const int split = strcmp(n->op, "SliceChannel") == 0 || strcmp(n->op, "split") == 0;
    const int64_t out = split ? mx_int(n, "num_outputs", 1) : strstr(n->op, "BatchNorm") ? 3 : 1;
    return out < 1 || out > MX_MAX_OUTPUTS ? 1 : (int)out;
}

void mx_layer(mx_net *net, mx_node *n) {
    const struct row row = row_of(n->op);
    mx_job *j = (mx_job *)imp_host->alloc(sizeof *j);
    if (!j) {
        net->b.status = CNR_E_MEMORY;
        return;
    }
    memset(j, 0, sizeof *j);
    j->net = net;
    j->n = n;
    j->x = -1;
    const size_t n_in = json_array_size(n->inputs);
    j->n_in = n_in > MX_MAX_INPUTS ? MX_MAX_INPUTS : (int32_t)n_in;
    if (!row.convert) mx_problem(j, "this operator is not supported");
    else if (n_in > MX_MAX_INPUTS) mx_problem(j, "it has too many inputs");
    else if (!(row.flags & OWN_INPUT)) j->x = mx_data(j, 0);
    if (!j->failed) row.convert(j);
    for (int32_t i = 0; i < n->n_out; i++)
        net->values[n->first + i] = !j->failed && i < j->n_out ? j->out[i] : -1;
    imp_host->free(j);
}
