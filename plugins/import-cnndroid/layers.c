/* The layers of a NetFile: their weights, input sizes and operators. */
#include "cnndroid.h"

#include <stdio.h>

/* Notes a problem of a layer, with its line. */
static void problem(cd_net *net, int32_t layer, const char *text) {
    char where[300];
    snprintf(where, sizeof where, "%.250s:%d", net->b.path, (int)net->file->layers[layer].line);
    imp_host->graph_problem(net->b.graph, where, "layer %s: %s",
                            cd_text(net->file, layer, "name", "(no name)"), text);
}

char *cd_beside(cd_net *net, const char *name, int must) {
    cnr_error why = CNR_ERROR_INIT;
    char *path;
    const cnr_status status = imp_host->file_beside(net->b.path, name, &path, &why);
    if (status == CNR_E_MEMORY) net->b.status = CNR_E_MEMORY;
    else if (status && (must || status != CNR_E_NOT_FOUND))
        imp_host->graph_problem(net->b.graph, net->b.path, "%s %s", why.where, why.text);
    return path;
}

/* ---- weights ---- */

/* 1 if a layer is of that type. */
static int is_kind(const cd_net *net, int32_t layer, const char *kind) {
    return cd_is(cd_text(net->file, layer, "type", ""), kind);
}

void cd_read_weights(cd_net *net) {
    for (int32_t i = 1; i < net->file->n_layers && !net->b.status; i++) {
        const int conv = is_kind(net, i, "Convolution");
        const char *name = cd_text(net->file, i, "parameters_file", NULL);
        char *path;
        int32_t n = 0;
        cnr_error why = CNR_ERROR_INIT;
        if (!conv && !is_kind(net, i, "FullyConnected")) continue;
        if (!name) {
            problem(net, i, "parameters_file is missing");
            continue;
        }
        if (!(path = cd_beside(net, name, 1))) continue;
        cd_array *a = net->weights[i];
        if (cd_message_read(path, a, 2, &n, &why)) {
            if (why.code == CNR_E_MEMORY) net->b.status = CNR_E_MEMORY;
            else imp_host->graph_problem(net->b.graph, path, "%s", why.text);
        } else if (n != 2 || a[1].rank != 1 || (conv ? a[0].rank != 4 : a[0].rank > 2) ||
                   (conv || a[0].rank == 2 ? a[0].dim[0] != a[1].n : a[0].n % a[1].n != 0)) {
            imp_host->graph_problem(net->b.graph, path, "%s",
                                    conv ? "wants weights [out][in][height][width] and out biases"
                                         : "wants weights, then biases that divide them");
            cd_message_free(a, 2);
        }
        imp_host->free(path);
    }
}

/* ---- the input's size ---- */

/* Number of window positions along n pixels, rounded up as CNNdroid does, which clears *exact; 0:
 * the window does not fit. */
static int64_t windows(const cd_net *net, int32_t layer, int64_t kernel, int64_t n, int *exact) {
    const int64_t stride = cd_int(net->file, layer, "stride", 1);
    const int64_t room = n + 2 * cd_int(net->file, layer, "pad", 0) - kernel;
    if (room < 0 || stride < 1) return 0;
    if (room % stride) *exact = 0;
    return room / stride + 1 + (room % stride != 0);
}

/* Whether a square of side `s` gives the first dense layer as many numbers as it reads. -1: there
 * is no dense layer. */
static int fits(const cd_net *net, int64_t c, int64_t s, int *exact) {
    *exact = 1;
    for (int32_t i = 1; i < net->file->n_layers && s > 0; i++) {
        const cd_array *a = net->weights[i];
        if (is_kind(net, i, "FullyConnected")) return a[1].n && a[0].n / a[1].n == c * s * s;
        if (is_kind(net, i, "Convolution")) {
            s = windows(net, i, a[0].dim[2], s, exact);
            c = a[0].dim[0];
        } else if (is_kind(net, i, "Pooling")) {
            s = windows(net, i, cd_int(net->file, i, "kernel_size", 1), s, exact);
        }
    }
    return s > 0 ? -1 : 0;
}

/* dim: the input's size as the layers imply it; returns its rank, 0: unknown. *open: other sizes
 * fit, too. */
int32_t cd_find_size(const cd_net *net, int64_t dim[3], int *open) {
    imp_fits sizes = {.low = 0};
    int64_t c = 0;
    *open = 0;
    for (int32_t i = net->file->n_layers - 1; i > 0; i--) {
        const cd_array *a = net->weights[i];
        if (!a[0].n) continue;
        if (is_kind(net, i, "Convolution")) c = a[0].dim[1] * cd_int(net->file, i, "group", 1);
        else c = -(a[0].n / a[1].n);
    }
    dim[0] = c < 0 ? -c : c;
    dim[1] = dim[2] = 0;
    if (c <= 0) return c < 0; /* starts with dense layers: a vector */
    for (int64_t s = 1; s <= 1024; s++) {
        int exact;
        const int good = fits(net, c, s, &exact);
        if (good < 0) {
            *open = 1;
            return 3;
        }
        if (good) imp_fits_add(&sizes, s, exact);
    }
    dim[1] = dim[2] = imp_fits_best(&sizes);
    if (dim[1] && sizes.low != sizes.high)
        imp_host->log(CNR_LOG_INFO, "import-cnndroid",
                      "%s: squares from %lld to %lld fit: --option shape=C,H,W", net->b.path,
                      (long long)sizes.low, (long long)sizes.high);
    return dim[1] ? 3 : 0;
}

/* ---- operators ---- */

/* Converts a convolution that reads x; -1: see the problems. */
static cnr_value convolution(cd_net *net, int32_t i, const char *name, cnr_value x) {
    const cd_array *a = net->weights[i];
    const int64_t stride = cd_int(net->file, i, "stride", 1), pad = cd_int(net->file, i, "pad", 0);
    if (!a[0].n) return -1; /* reported when its file was read */
    if (stride < 1 || pad < 0) return problem(net, i, "stride or pad is wrong"), -1;
    const int64_t kernel[] = {a[0].dim[2], a[0].dim[3]}, strides[] = {stride, stride};
    int64_t pads[] = {pad, pad, pad, pad};
    for (int k = 0; k < 2; k++) { /* outputs are rounded up: the zeros needed at the end */
        const cnr_tensor *t = imp_type(&net->b, x);
        const int64_t n = t && t->rank == 4 ? t->dim[2 + k] : -1;
        if (n < 0 || (n + 2 * pad - kernel[k]) % stride != 0) pads[2 + k] += stride - 1;
    }
    const cnr_value from[] = {x, imp_weight(&net->b, name, ".weight", a[0].data, a[0].dim, 4),
                              imp_weight(&net->b, name, ".bias", a[1].data, a[1].dim, 1)};
    imp_attrs l = {.n = 0};
    imp_ints(&l, "kernel_shape", kernel, 2);
    imp_ints(&l, "strides", strides, 2);
    imp_ints(&l, "pads", pads, 4);
    imp_int(&l, "group", cd_int(net->file, i, "group", 1));
    return imp_node(&net->b, "conv", name, "", from, 3, &l);
}

/* Converts a dense layer that reads x; -1: see the problems. */
static cnr_value fully_connected(cd_net *net, int32_t i, const char *name, cnr_value x) {
    const cd_array *a = net->weights[i];
    if (!a[0].n) return -1;
    const int64_t dim[] = {a[1].n, a[0].n / a[1].n};
    const cnr_value from[] = {x, imp_weight(&net->b, name, ".weight", a[0].data, dim, 2),
                              imp_weight(&net->b, name, ".bias", a[1].data, a[1].dim, 1)};
    return imp_node(&net->b, "dense", name, "", from, 3, NULL);
}

/* Converts pooling, which pads with zeros, for maxima too; -1: see the problems. */
static cnr_value pooling(cd_net *net, int32_t i, const char *name, cnr_value x) {
    const char *kind = cd_text(net->file, i, "pool", "max");
    const int64_t k = cd_int(net->file, i, "kernel_size", 0);
    const int64_t stride = cd_int(net->file, i, "stride", 1), pad = cd_int(net->file, i, "pad", 0);
    const int64_t kernel[] = {k, k}, strides[] = {stride, stride};
    const int64_t pads[] = {0, 0, pad, pad, 0, 0, pad, pad};
    const int max = cd_is(kind, "max");
    if (!max && !cd_is(kind, "ave") && !cd_is(kind, "avg") && !cd_is(kind, "mean"))
        return problem(net, i, "pool is neither max nor ave"), -1;
    if (k < 1 || stride < 1 || pad < 0)
        return problem(net, i, "kernel_size, stride or pad is wrong"), -1;
    imp_attrs l = {.n = 0}, border = {.n = 0};
    imp_ints(&border, "pads", pads, 8);
    if (pad) x = imp_node(&net->b, "pad", name, ".border", &x, 1, &border);
    imp_ints(&l, "kernel_shape", kernel, 2);
    imp_ints(&l, "strides", strides, 2);
    imp_bool(&l, "ceil_mode", 1);
    return imp_node(&net->b, max ? "max_pool" : "average_pool", name, "", &x, 1, &l);
}

/* Converts lrn that reads x, across or within channels; -1: see the problems. */
static cnr_value lrn(cd_net *net, int32_t i, const char *name, cnr_value x) {
    const char *region = cd_text(net->file, i, "norm_region", "across_channels");
    const int within = cd_is(region, "within_channel");
    if (!within && !cd_is(region, "across_channels"))
        return problem(net, i, "norm_region is not known"), -1;
    imp_attrs l = {.n = 0};
    imp_int(&l, "size", cd_int(net->file, i, "local_size", 5));
    imp_float(&l, "alpha", cd_number(net->file, i, "alpha", 1));
    imp_float(&l, "beta", cd_number(net->file, i, "beta", 0.75));
    imp_float(&l, "bias", 1);
    return imp_node(&net->b, within ? "lrn_within" : "lrn", name, "", &x, 1, &l);
}

/* Converts softmax over all numbers of a sample; -1: see the problems. */
static cnr_value softmax(cd_net *net, int32_t i, const char *name, cnr_value x) {
    const cnr_tensor *t = imp_type(&net->b, x);
    imp_attrs l = {.n = 0};
    (void)i;
    imp_int(&l, "axis", 1);
    if (t && t->rank > 2) x = imp_node(&net->b, "flatten", name, ".flat", &x, 1, NULL);
    return imp_node(&net->b, "softmax", name, "", &x, 1, &l);
}

cnr_value cd_add_layer(cd_net *net, int32_t layer, cnr_value x) {
    typedef cnr_value (*converter)(cd_net *, int32_t, const char *, cnr_value);
    static const IMP_ROW(converter) rows[] = {
        IMP_LAYER("Convolution", convolution),
        IMP_LAYER("FullyConnected", fully_connected),
        IMP_LAYER("Pooling", pooling),
        IMP_LAYER("LRN", lrn),
        IMP_LAYER("Softmax", softmax),
        IMP_LAYER("ReLU", NULL, .op = "relu"),
        IMP_LAYER("Tanh", NULL, .op = "tanh"),
        IMP_LAYER("Sigmoid", NULL, .op = "sigmoid"),
        IMP_LAYER("Dropout", NULL),
        IMP_LAYER("Accuracy", NULL), /* does nothing at inference */
    };
    const char *type = cd_text(net->file, layer, "type", "(none)");
    char own[32], text[128];
    snprintf(own, sizeof own, "layer%d", (int)layer);
    const char *name = cd_text(net->file, layer, "name", own);
    for (int32_t i = 0; i < CNR_ROWS(rows); i++) {
        if (!cd_is(type, rows[i].type)) continue;
        if (x >= 0 && rows[i].op) return imp_node(&net->b, rows[i].op, name, "", &x, 1, NULL);
        return x < 0 || !rows[i].convert ? x : rows[i].convert(net, layer, name, x);
    }
    snprintf(text, sizeof text, "type \"%.80s\" is not supported", type);
    problem(net, layer, text);
    return -1;
}
