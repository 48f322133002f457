/* Converts MXNet operators, with one function for each type. */
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

const cnr_tensor *mx_type(mx_job *j, cnr_value v) { return imp_type(&j->net->b, v); }

/* ---- inputs: values of other nodes, parameters, the net's inputs ---- */

cnr_value mx_constant(mx_job *j, mx_array *a, const int64_t *dim, int32_t rank) {
    char name[256];
    const int64_t n = mx_array_count(a);
    if (rank < 0) dim = a->dim, rank = a->rank;
    const cnr_tensor *have = imp_type(&j->net->b, a->value);
    if (have && have->rank == rank && memcmp(have->dim, dim, (size_t)rank * sizeof *dim) == 0)
        return a->value; /* several nodes share it */
    snprintf(name, sizeof name, "%.*s", (int)(a->n_name < 250 ? a->n_name : 250), a->name);
    if (n < 1 || n != imp_count(dim, rank)) {
        mx_problem(j, "%s holds %lld numbers, %lld are wanted", name, (long long)n,
                   (long long)imp_count(dim, rank));
        return -1;
    }
    if (n > j->net->budget) return mx_problem(j, "parameters are read far too often"), -1;
    j->net->budget -= n;
    return a->value = mx_array_weight(&j->net->b, a, name, have ? ".again" : "", dim, rank);
}

/* Node that computes input i; NULL: missing, a problem is noted. */
static mx_node *source(mx_job *j, int32_t i, int64_t *output) {
    int64_t from;
    if (!mx_input(j->n, i, &from, output)) {
        mx_problem(j, "input %d is missing", (int)i);
        return NULL;
    }
    /* nodes are in topological order, so there is no cycle */
    const int64_t own = j->n - j->net->nodes;
    if (from < 0 || from >= own || *output < 0 || *output >= j->net->nodes[from].n_out) {
        mx_problem(j, "input %d is no output of a node before it", (int)i);
        return NULL;
    }
    return &j->net->nodes[from];
}

/* Data input i as a value, whose variable may declare nothing; `channels` and `rank`: what the
 * reader needs, 0: anything. -1: failed. */
cnr_value mx_data_for(mx_job *j, int32_t i, int64_t channels, int32_t rank) {
    int64_t output = 0;
    mx_node *n = source(j, i, &output);
    if (!n) return -1;
    cnr_value *v = &j->net->values[n->first + output];
    if (*v == -2) { /* a variable that no other node has read yet */
        mx_array *a = mx_params_find(j->net->params, n->name);
        *v = a ? mx_constant(j, a, NULL, -1) : mx_add_input(j->net, n, channels, rank);
    }
    if (*v < 0) j->failed = 1; /* reported where that node failed */
    return *v;
}

cnr_value mx_data(mx_job *j, int32_t i) { return mx_data_for(j, i, 0, 4); }

cnr_value mx_weight(mx_job *j, int32_t i, const int64_t *dim, int32_t rank) {
    int64_t output = 0;
    if (j->failed) return -1;
    mx_node *n = source(j, i, &output);
    if (!n) return -1;
    cnr_value *v = &j->net->values[n->first + output];
    if (*v != -2) { /* computed, or read already */
        const cnr_tensor *t = mx_type(j, *v);
        if (strcmp(n->op, "null") != 0 || (t && t->rank == rank)) return *v;
    }
    mx_array *a = mx_params_find(j->net->params, n->name);
    if (a) return mx_constant(j, a, dim, rank);
    if (j->net->params) return mx_problem(j, "%s is not in the parameters", n->name), -1;
    return *v = imp_weight(&j->net->b, n->name, "", NULL, dim, rank);
}

mx_array *mx_peek(mx_job *j, int32_t i) {
    int64_t from, output;
    if (!mx_input(j->n, i, &from, &output) || from < 0 || from >= j->net->n_nodes) return NULL;
    return mx_params_find(j->net->params, j->net->nodes[from].name);
}

int64_t mx_channels(mx_job *j) {
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

cnr_value mx_swapped(mx_job *j, const char *suffix, cnr_value v, int64_t a, int64_t b) {
    const cnr_tensor *t = mx_type(j, v);
    int64_t perm[CNR_MAX_RANK];
    if (a == b || !t) return v;
    for (int32_t i = 0; i < t->rank; i++) perm[i] = i == a ? b : i == b ? a : i;
    return imp_transpose(&j->net->b, j->n->name, suffix, v, perm, t->rank);
}

/* ---- convolution, dense, products ---- */

/* Fills out with an entry for each spatial axis, `fallback` where the list is not set; 0 with a
 * problem. */
int mx_spatial(mx_job *j, const char *key, int32_t rank, int64_t fallback, int64_t *out) {
    const int32_t n = mx_ints(j->n, key, out, 3, fallback);
    for (int32_t i = n; n == 0 && i < rank; i++) out[i] = fallback;
    if (n == 0 || n == rank) return 1;
    mx_problem(j, "%s is wrong", key);
    return 0;
}

int mx_is_channels_first(mx_job *j) {
    const char *layout = mx_text(j->n, "layout");
    if (!layout || strncmp(layout, "NC", 2) == 0) return 1;
    mx_problem(j, "layout %.20s is not supported", layout);
    return 0;
}

/* Converts Convolution and Deconvolution; what does not fit is noted as a problem and sets
 * j->failed. */
static void convolution(mx_job *j) {
    const int turned = strcmp(j->n->op, "Deconvolution") == 0;
    int64_t kernel[3], stride[3], dilation[3], pad[6], adjust[3], target[3];
    const int32_t rank = mx_ints(j->n, "kernel", kernel, 3, 1);
    const int64_t out = mx_int(j->n, "num_filter", 0), group = mx_int(j->n, "num_group", 1);
    const int with_bias = !mx_bool(j->n, "no_bias", turned);
    mx_array *w = mx_peek(j, 1);
    if (rank < 1) return mx_problem(j, "kernel is wrong");
    const int64_t told = !w || w->rank < 2 ? 0 : turned ? w->dim[0] : w->dim[1] * group;
    j->x = mx_data_for(j, 0, told, rank + 2);
    const int64_t channels = mx_channels(j);
    if (j->failed || !mx_is_channels_first(j)) return;
    if (out < 1 || group < 1 || channels % group || out % group)
        return mx_problem(j, "num_filter or num_group does not fit its input's channels");
    if (!mx_spatial(j, "stride", rank, 1, stride) || !mx_spatial(j, "dilate", rank, 1, dilation) ||
        !mx_spatial(j, "pad", rank, 0, pad) || !mx_spatial(j, "adj", rank, 0, adjust))
        return;
    memcpy(pad + rank, pad, (size_t)rank * sizeof pad[0]);
    int64_t dim[5] = {turned ? channels : out, (turned ? out : channels) / group};
    for (int32_t i = 0; i < rank; i++) {
        if (kernel[i] < 1) return mx_problem(j, "kernel is wrong");
        dim[2 + i] = kernel[i];
    }
    const cnr_value from[] = {j->x, mx_weight(j, 1, dim, rank + 2),
                              with_bias ? mx_weight(j, 2, &out, 1) : -1};
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

/* Converts FullyConnected; what does not fit is noted as a problem and sets j->failed. */
static void fully_connected(mx_job *j) {
    const int64_t out = mx_int(j->n, "num_hidden", 0);
    const int with_bias = !mx_bool(j->n, "no_bias", 0), flat = mx_bool(j->n, "flatten", 1);
    mx_array *w = mx_peek(j, 1);
    j->x = mx_data_for(j, 0, w && w->rank == 2 ? w->dim[1] : 0, 2);
    const cnr_tensor *x = mx_type(j, j->x);
    if (j->failed || !x) return;
    if (out < 1) return mx_problem(j, "num_hidden is missing");
    int64_t k = 1;
    for (int32_t i = flat || x->rank < 2 ? 1 : x->rank - 1; i < x->rank; i++)
        k = x->dim[i] < 0 || k < 0 ? -1 : k * x->dim[i];
    if (k < 0 && w && w->rank == 2) k = w->dim[1];
    if (k < 1) return mx_problem(j, "the size of its input is not known");
    if (w && w->rank == 2 && w->dim[1] != k)
        return mx_problem(j,
                          "it wants %lld inputs and gets %lld: say how large the net's input is "
                          "with --option shape=C,H,W",
                          (long long)w->dim[1], (long long)k);
    const int64_t dim[] = {out, k}, perm[] = {1, 0};
    cnr_value matrix = mx_weight(j, 1, dim, 2);
    const cnr_value bias = with_bias ? mx_weight(j, 2, &out, 1) : -1;
    if (j->failed) return;
    imp_attrs l = {.n = 0};
    imp_bool(&l, "bias", with_bias);
    if (flat || x->rank == 2)
        return mx_give(j, mx_op(j, "dense", "", (cnr_value[]){j->x, matrix, bias}, 3, &l));
    matrix = imp_transpose(&j->net->b, j->n->name, ".weight", matrix, perm, 2);
    cnr_value y =
        mx_op(j, "matmul", with_bias ? ".product" : "", (cnr_value[]){j->x, matrix}, 2, NULL);
    if (with_bias) y = mx_op(j, "add", "", (cnr_value[]){y, bias}, 2, NULL);
    mx_give(j, y);
}

/* dot and batch_dot of matrices or of stacks of matrices. */
static void dot(mx_job *j) {
    cnr_value in[2] = {j->x, mx_data(j, 1)};
    static const char *const keys[] = {"transpose_a", "transpose_b"};
    static const char *const suffixes[] = {".a", ".b"};
    for (int i = 0; i < 2 && !j->failed; i++) {
        const cnr_tensor *t = mx_type(j, in[i]);
        if (!mx_bool(j->n, keys[i], 0) || !t) continue;
        if (t->rank < 2) return mx_problem(j, "a vector is to be transposed");
        in[i] = mx_swapped(j, suffixes[i], in[i], t->rank - 2, t->rank - 1);
    }
    if (j->failed) return;
    const double alpha = mx_float(j->n, "alpha", 1); /* an attribute of linalg_gemm2 */
    const cnr_value y = mx_op(j, "matmul", alpha == 1 ? "" : ".product", in, 2, NULL);
    mx_give(j, imp_affine(&j->net->b, j->n->name, y, alpha, 0));
}

/* ---- the table ---- */

static const mx_row rows[] = {
    IMP_LAYER("Convolution", convolution, .flags = MX_OPEN | MX_OWN_INPUT),
    IMP_LAYER("Convolution_v1", convolution, .flags = MX_OPEN | MX_OWN_INPUT),
    IMP_LAYER("Deconvolution", convolution, .flags = MX_OPEN | MX_OWN_INPUT),
    IMP_LAYER("FullyConnected", fully_connected, .flags = MX_OWN_INPUT),
    IMP_LAYER("_linalg_gemm2", dot),
    IMP_LAYER("batch_dot", dot),
    IMP_LAYER("dot", dot),
    IMP_LAYER("linalg_gemm2", dot),
};

/* The function that converts the operator, and its flags; NULL: not supported. */
static mx_convert convert_of(const mx_node *n, int *flags) {
    const mx_row *row = IMP_ROW_OF(rows, n->op);
    mx_convert convert = row ? row->convert : NULL;
    *flags = row ? row->flags : 0;
    if (!convert) convert = mx_pointwise_row(n, flags);
    if (!convert) convert = mx_pooling_row(n, flags);
    if (!convert) convert = mx_shape_row(n, flags);
    return convert ? convert : mx_box_row(n, flags);
}

int mx_is_open(const mx_node *n) {
    int flags;
    return !convert_of(n, &flags) || flags & MX_OPEN;
}

/* Number of outputs that a node has by its operator and attributes, at least 1. */
int mx_op_outputs(const mx_node *n) {
    const char *kind = mx_text(n, "act_type");
    int64_t out = 1;
    if (strcmp(n->op, "SliceChannel") == 0 || strcmp(n->op, "split") == 0)
        out = mx_int(n, "num_outputs", 1);
    else if (strstr(n->op, "BatchNorm") || strstr(n->op, "LayerNorm") || strstr(n->op, "GroupNorm"))
        out = 3;
    else if (kind && strcmp(kind, "rrelu") == 0) out = 2;
    return out < 1 || out > MX_MAX_OUTPUTS ? 1 : (int)out;
}

void mx_layer(mx_net *net, mx_node *n) {
    int flags;
    const mx_convert convert = convert_of(n, &flags);
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
    if (!convert) mx_problem(j, "this operator is not supported");
    else if (n_in > MX_MAX_INPUTS) mx_problem(j, "it has too many inputs");
    else if (!(flags & MX_OWN_INPUT)) j->x = mx_data(j, 0);
    if (!j->failed) convert(j);
    for (int32_t i = 0; i < n->n_out; i++)
        net->values[n->first + i] = !j->failed && i < j->n_out ? j->out[i] : -1;
    imp_host->free(j);
}
