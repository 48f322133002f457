/* Converts sections with weights; Darknet writes them layer after layer, as float32. */
#include "darknet.h"

#include <math.h>
#include <stdio.h>

/* The next values of the file, as many as the product of the dims. NULL: no file, or a problem. */
static const float *take(dn_layer *l, const int64_t *dim, int32_t rank) {
    dn_net *net = l->net;
    const int64_t n = imp_count(dim, rank);
    if (n < 0) {
        dn_problem(l, "it is too large");
        l->failed = 1;
    }
    if (!net->weights || l->failed) return NULL;
    if ((uint64_t)n > net->n_weights - net->taken) {
        char text[200];
        snprintf(text, sizeof text, "the weights file ends: %lld values are wanted, %llu are left",
                 (long long)n, (unsigned long long)(net->n_weights - net->taken));
        dn_problem(l, text);
        l->failed = 1;
        return NULL;
    }
    const float *at = (const float *)(net->weights + net->taken * sizeof(float));
    net->taken += (uint64_t)n;
    return at;
}

/* Adds a constant named after the layer with a suffix; negative: it failed. */
static cnr_value weight(dn_layer *l, const char *suffix, const float *data, const int64_t *dim,
                        int32_t rank) {
    return imp_weight(&l->net->b, l->name, suffix, data, dim, rank);
}

/* A layer's weights that have one value for each of its n channels. */
typedef struct channel {
    const float *bias, *scale, *mean, *var;
    int normal; /* 1: the layer has batch_normalize */
    int64_t n;
} channel;

/* Takes scale, mean and variance, in this order, from the weights file if the layer has batch
 * normalisation; else does nothing. */
static void take_norm(dn_layer *l, channel *c) {
    if (!c->normal) return;
    c->scale = take(l, &c->n, 1);
    c->mean = take(l, &c->n, 1);
    c->var = take(l, &c->n, 1);
}

/* The layer's bias as a value; -1: batch normalisation takes it. */
static cnr_value bias_of(dn_layer *l, const channel *c) {
    return c->normal ? -1 : weight(l, ".bias", c->bias, &c->n, 1);
}

/* Adds batch normalisation with these parameters, if the layer has it; else returns x. */
static cnr_value normalise(dn_layer *l, cnr_value x, const channel *c) {
    if (!c->normal) return x;
    const cnr_value in[] = {x, weight(l, ".scale", c->scale, &c->n, 1),
                            weight(l, ".shift", c->bias, &c->n, 1),
                            weight(l, ".mean", c->mean, &c->n, 1),
                            weight(l, ".var", c->var, &c->n, 1)};
    imp_attrs a = {.n = 0};
    imp_float(&a, "epsilon", 1e-5);
    return dn_node(l, "batch_normalization", ".norm", in, 5, &a);
}

/* Returns what the layer has for each of n channels; parameters are not read yet. */
static channel channels_given(dn_layer *l, int64_t n) {
    return (channel){.n = n,
                     .normal =
                         dn_key_int(l, "batch_normalize", 0) != 0 || dn_key_int(l, "cbn", 0) != 0};
}

/* ---- convolutions ---- */

/* Handles share_index=: moves the place in the weights back to those of an earlier layer, which are
 * read once more; 0: failed. */
static int share(dn_layer *l) {
    const int64_t index = dn_key_int(l, "share_index", 0);
    const int64_t at = index < 0 ? l->index + index : index;
    if (at < 0 || at >= l->index) return dn_problem(l, "share_index is no layer before it"), 0;
    l->net->taken = l->net->done[at].taken;
    return 1;
}

/* Converts a convolution with its weights, normalisation and activation. transposed: a
 * [deconvolutional], whose weights are ordered input channel, output channel. */
static cnr_value convolve(dn_layer *l, int transposed) {
    static const char *const refused[] = {"xnor",     "binary",         "sway",      "rotate",
                                          "stretch",  "stretch_sway",   "coordconv", "flipped",
                                          "dontload", "dontloadscales", NULL};
    const int64_t one[] = {1, 1}, n = dn_key_int(l, "filters", 1), size = dn_key_int(l, "size", 1);
    const int64_t group = transposed ? 1 : dn_key_int(l, "groups", 1);
    const int64_t dilation = size == 1 || transposed ? 1 : dn_key_int(l, "dilation", 1);
    const int64_t padding = dn_key_int(l, "pad", 0) ? size / 2 : dn_key_int(l, "padding", 0);
    const uint64_t before = l->net->taken;
    const int shared = dn_key_text(l, "share_index", NULL) != NULL;
    int64_t c, strides[2];
    dn_refuse(l, refused);
    if (!dn_channels(l, &c) || !dn_strides(l, strides)) return -1;
    if (n < 1 || size < 1 || size > 1024 || group < 1 || c % group || n % group)
        return dn_problem(l, "filters, size or groups do not fit its input"), -1;
    if (shared && !share(l)) return -1;
    channel per = channels_given(l, n);
    const int64_t dim[] = {transposed ? c : n, transposed ? n : c / group, size, size};
    per.bias = take(l, &n, 1);
    take_norm(l, &per);
    const float *weights = take(l, dim, 4);
    if (l->failed) return -1;
    if (shared) l->net->taken = before;
    dn_window w;
    dn_window_set(&w, size, dn_key_int(l, "antialiasing", 0) ? one : strides, padding * dilation,
                  padding * dilation);
    w.dilations[0] = w.dilations[1] = dilation;
    imp_ints(&w.attrs, "dilations", w.dilations, 2);
    imp_int(&w.attrs, "group", group);
    imp_bool(&w.attrs, "bias", !per.normal);
    const cnr_value in[] = {l->x, weight(l, ".weight", weights, dim, 4), bias_of(l, &per)};
    cnr_value y = dn_node(l, transposed ? "conv_transpose" : "conv", "", in, 3, &w.attrs);
    y = dn_activate(l, normalise(l, y, &per), "logistic");
    return dn_blur(l, y, strides);
}

/* Converts [convolutional] with weights, normalisation and activation. */
cnr_value dn_convolutional(dn_layer *l) { return convolve(l, 0); }
/* Converts [deconvolutional], as a transposed convolution. */
cnr_value dn_deconvolutional(dn_layer *l) { return convolve(l, 1); }

/* ---- matrix products ---- */

/* Converts [connected]: a dense layer with normalisation and activation. */
cnr_value dn_connected(dn_layer *l) {
    int64_t c, h, w;
    if (!dn_sizes(l, &c, &h, &w)) return -1;
    const int64_t out = dn_key_int(l, "output", 1), in = imp_count((int64_t[]){c, h, w}, 3);
    const int64_t dim[] = {out, in}, turned[] = {in, out}, perm[] = {1, 0};
    const int turn = l->net->transposed;
    if (out < 1 || in < 1) return dn_problem(l, "output does not fit its input"), -1;
    channel per = channels_given(l, out);
    per.bias = take(l, &out, 1);
    const float *weights = take(l, dim, 2);
    take_norm(l, &per);
    if (l->failed) return -1;
    cnr_value m = weight(l, turn ? ".turned" : ".weight", weights, turn ? turned : dim, 2);
    if (turn) m = imp_transpose(&l->net->b, l->name, ".weight", m, perm, 2);
    imp_attrs a = {.n = 0};
    imp_bool(&a, "bias", !per.normal);
    const cnr_value from[] = {l->x, m, bias_of(l, &per)};
    return dn_activate(l, normalise(l, dn_node(l, "dense", "", from, 3, &a), &per), "logistic");
}

/* Adds the windows of x, [N, C, H, W] to [N, places, C size size, 1], by a convolution whose
 * filters copy one element each. */
static cnr_value patches(dn_layer *l, int64_t c, int64_t size, const int64_t strides[2],
                         int64_t pad, int64_t places) {
    const int64_t taps = size * size, patch = c * taps, dim[] = {patch, 1, size, size};
    const int64_t flat[] = {0, patch, places}, perm[] = {0, 2, 1}, column[] = {0, places, patch, 1};
    float *pick = (float *)imp_host->alloc((size_t)(patch * taps) * sizeof(float));
    if (!pick) {
        l->net->b.status = CNR_E_MEMORY;
        return -1;
    }
    for (int64_t i = 0; i < patch * taps; i++) pick[i] = i / taps % taps == i % taps;
    const cnr_value in[] = {l->x, weight(l, ".pick", pick, dim, 4), -1};
    dn_window w;
    imp_host->free(pick);
    dn_window_set(&w, size, strides, pad, pad);
    imp_int(&w.attrs, "group", c);
    imp_bool(&w.attrs, "bias", 0);
    cnr_value y = dn_node(l, "conv", ".patches", in, 3, &w.attrs);
    y = imp_reshape(&l->net->b, l->name, ".flat", y, flat, 3);
    y = imp_transpose(&l->net->b, l->name, ".places", y, perm, 3);
    return imp_reshape(&l->net->b, l->name, ".columns", y, column, 4);
}

/* Converts [local]: a convolution with different weights at each position, one matrix product for
 * each. */
cnr_value dn_local(dn_layer *l) {
    int64_t c, h, w, strides[2];
    if (!dn_sizes(l, &c, &h, &w) || !dn_strides(l, strides)) return -1;
    const int64_t n = dn_key_int(l, "filters", 1), size = dn_key_int(l, "size", 1);
    const int64_t pad = dn_key_int(l, "pad", 0), stride = strides[0];
    if (n < 1 || size < 1 || size > 64 || size > h + 2 * pad || size > w + 2 * pad ||
        stride != strides[1] || pad < 0 || pad > 1 || (pad && size != 3) || c > 1 << 16)
        return dn_problem(l, "filters, size, stride or pad do not fit its input"), -1;
    const int64_t oh = (h + 2 * pad - size) / stride + 1, ow = (w + 2 * pad - size) / stride + 1;
    const int64_t places = oh * ow, patch = c * size * size;
    const int64_t dim[] = {places, n, patch}, bias_dim[] = {n, oh, ow};
    const int64_t perm[] = {0, 2, 1}, rows[] = {0, places, n}, out[] = {0, n, oh, ow};
    const float *bias = take(l, bias_dim, 3), *weights = take(l, dim, 3);
    if (l->failed) return -1;
    imp_net *b = &l->net->b;
    const cnr_value in[] = {weight(l, ".weight", weights, dim, 3),
                            patches(l, c, size, strides, pad, places)};
    cnr_value y = dn_node(l, "matmul", ".product", in, 2, NULL);
    y = imp_reshape(b, l->name, ".rows", y, rows, 3);
    y = imp_transpose(b, l->name, ".channels", y, perm, 3);
    y = imp_reshape(b, l->name, ".plane", y, out, 4);
    y = dn_node(l, "add", "", (cnr_value[]){y, weight(l, ".bias", bias, bias_dim, 3)}, 2, NULL);
    return dn_activate(l, y, "logistic");
}

/* Converts [batchnorm], with its own parameters. */
cnr_value dn_batchnorm(dn_layer *l) {
    channel per = {.normal = 1};
    if (!dn_channels(l, &per.n)) return -1;
    per.bias = take(l, &per.n, 1);
    take_norm(l, &per);
    return l->failed ? -1 : normalise(l, l->x, &per);
}

/* ---- shortcut ---- */

enum { MAX_TERMS = 64 };

/* Another layer's output, adapted to the shape of x: rows and columns are skipped; channels are
 * cut, or zeros appended. -1: failed. */
static cnr_value fitted(dn_layer *l, double number, const char *suffix) {
    cnr_value v = dn_other(l, number);
    const cnr_tensor *x = dn_type(l, l->x), *o = dn_type(l, v);
    imp_net *b = &l->net->b;
    char name[32];
    if (v < 0) return -1;
    if (!x || !o || x->rank != o->rank || x->rank < 2 || x->dim[1] < 1 || o->dim[1] < 1)
        return dn_problem(l, "layers of different ranks are not supported"), -1;
    const int64_t c = x->dim[1], more = c - o->dim[1];
    const struct dn_done *own = &l->net->done[l->index];
    const struct dn_done *other = &l->net->done[(int32_t)(number < 0 ? l->index + number : number)];
    const double ratio[] = {own->step[0] / other->step[0], own->step[1] / other->step[1]};
    if (x->rank == 4 && ratio[0] >= 1 && ratio[1] >= 1 && ratio[0] * ratio[1] > 1 &&
        ratio[0] < 1 << 20 && ratio[1] < 1 << 20) {
        const int64_t zero[] = {0, 0}, axes[] = {2, 3}, ends[] = {INT32_MAX, INT32_MAX};
        const int64_t steps[] = {(int64_t)ratio[0], (int64_t)ratio[1]};
        imp_attrs a = {.n = 0};
        imp_ints(&a, "starts", zero, 2);
        imp_ints(&a, "ends", ends, 2);
        imp_ints(&a, "axes", axes, 2);
        imp_ints(&a, "steps", steps, 2);
        snprintf(name, sizeof name, ".thinned%s", suffix);
        v = dn_unary(l, "slice", name, v, &a);
    }
    snprintf(name, sizeof name, ".fitted%s", suffix);
    if (more < 0) return imp_slice(b, l->name, name, v, 1, 0, c);
    if (more == 0) return v;
    int64_t pads[2 * CNR_MAX_RANK] = {0};
    pads[x->rank + 1] = more;
    imp_attrs a = {.n = 0};
    imp_ints(&a, "pads", pads, 2 * x->rank);
    return dn_unary(l, "pad", name, v, &a);
}

/* weights_type=: the factors of `terms`, one for each term or for each of its channels, after
 * weights_normalization=. NULL with a problem, or if out of memory. */
static float *term_weights(dn_layer *l, int32_t terms, int64_t each) {
    const char *normal = dn_key_text(l, "weights_normalization", "none");
    const int soft = strcmp(normal, "softmax") == 0;
    const int positive = strcmp(normal, "relu") == 0 || strcmp(normal, "avg_relu") == 0;
    if (!soft && !positive && strcmp(normal, "none") != 0) {
        dn_problem(l, "weights_normalization is relu, softmax or none");
        l->failed = 1;
    }
    const float *from = take(l, (int64_t[]){terms, each}, 2);
    if (l->failed) return NULL;
    float *w = (float *)imp_host->alloc((size_t)(terms * each) * sizeof(float));
    if (!w) return l->net->b.status = CNR_E_MEMORY, NULL;
    /* 1: the value before training */
    for (int64_t i = 0; i < terms * each; i++) w[i] = from ? from[i] : 1;
    for (int64_t k = 0; k < each && (soft || positive); k++) {
        float most = w[k], sum = 1e-4f;
        for (int32_t t = 0; t < terms; t++) most = w[t * each + k] > most ? w[t * each + k] : most;
        for (int32_t t = 0; t < terms; t++) {
            float *v = &w[t * each + k];
            *v = soft ? expf(*v - most) : *v > 0 ? *v : 0;
            sum += *v;
        }
        for (int32_t t = 0; t < terms; t++) w[t * each + k] /= sum;
    }
    return w;
}

/* Converts [shortcut]: adds outputs of earlier layers, weighted if asked for, then the
 * activation. */
cnr_value dn_shortcut(dn_layer *l) {
    double from[MAX_TERMS];
    cnr_value term[MAX_TERMS + 1] = {l->x};
    const int32_t n = dn_list(dn_key_text(l, "from", ""), from, MAX_TERMS);
    const char *type = dn_key_text(l, "weights_type", "none");
    const int weighted = strcmp(type, "none") != 0, per_channel = strcmp(type, "per_channel") == 0;
    const double factor[] = {dn_key_float(l, "alpha", 1), dn_key_float(l, "beta", 1)};
    char name[96], suffix[16];
    int64_t c;
    imp_net *b = &l->net->b;
    if (!dn_channels(l, &c)) return -1;
    if (n < 1) return dn_problem(l, "from is missing"), -1;
    float *weights = weighted ? term_weights(l, n + 1, per_channel ? c : 1) : NULL;
    if (weighted && !weights) return -1;
    for (int32_t i = 0; i <= n; i++) {
        snprintf(suffix, sizeof suffix, "%d", (int)i);
        snprintf(name, sizeof name, "%s.term%s", l->name, suffix);
        if (i > 0) term[i] = fitted(l, from[i - 1], suffix);
        const int64_t dim[] = {per_channel ? c : 1, 1, 1};
        if (weighted)
            term[i] = imp_node(b, "mul", name, "",
                               (cnr_value[]){term[i], imp_weight(b, name, ".weight",
                                                                 weights + i * dim[0], dim, 3)},
                               2, NULL);
        else term[i] = imp_affine(b, name, term[i], factor[i > 0], 0);
    }
    imp_host->free(weights);
    if (l->failed) return -1;
    return dn_activate(l, dn_node(l, n == 1 ? "add" : "sum", "", term, n + 1, NULL), "linear");
}
