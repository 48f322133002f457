/* The current layer: its keys, problems and nodes, and the choice of its converter. */
#include "darknet.h"

#include <stdio.h>

int64_t dn_key_int(const dn_layer *l, const char *key, int64_t fallback) {
    return dn_int(l->net->config, l->section, key, fallback);
}
double dn_key_float(const dn_layer *l, const char *key, double fallback) {
    return dn_float(l->net->config, l->section, key, fallback);
}
const char *dn_key_text(const dn_layer *l, const char *key, const char *fallback) {
    return dn_text(l->net->config, l->section, key, fallback);
}

void dn_problem(dn_layer *l, const char *text) {
    imp_host->graph_problem(l->net->b.graph, l->net->b.path, "layer %d [%.40s]: %s", (int)l->index,
                            l->section->name, text);
}

void dn_refuse(dn_layer *l, const char *const *keys) {
    char text[100];
    for (; *keys; keys++) {
        const char *value = dn_key_text(l, *keys, "0");
        if (strcmp(value, "0") == 0) continue;
        snprintf(text, sizeof text, "%s=%.40s is not supported", *keys, value);
        dn_problem(l, text);
    }
}

cnr_value dn_node(dn_layer *l, const char *op, const char *suffix, const cnr_value *in,
                  int32_t n_in, const imp_attrs *attrs) {
    return imp_node(&l->net->b, op, l->name, suffix, in, n_in, attrs);
}

cnr_value dn_unary(dn_layer *l, const char *op, const char *suffix, cnr_value x,
                   const imp_attrs *attrs) {
    return dn_node(l, op, suffix, &x, 1, attrs);
}

const cnr_tensor *dn_type(const dn_layer *l, cnr_value v) { return imp_type(&l->net->b, v); }

/* *c: number of channels of the layer's input, with 1; 0: unknown, the layer fails. */
int dn_channels(dn_layer *l, int64_t *c) {
    const cnr_tensor *x = dn_type(l, l->x);
    if (!x || x->rank < 2 || x->dim[1] < 1) return l->failed = 1, 0;
    *c = x->dim[1];
    return 1;
}

/* *c, *h and *w: channels, height and width of the layer's input (1 if it has none), with 1; 0:
 * unknown, the layer fails. */
int dn_sizes(dn_layer *l, int64_t *c, int64_t *h, int64_t *w) {
    const cnr_tensor *x = dn_type(l, l->x);
    if (!dn_channels(l, c)) return 0;
    *h = x->rank == 4 ? x->dim[2] : 1;
    *w = x->rank == 4 ? x->dim[3] : 1;
    if (*h < 1 || *w < 1) return l->failed = 1, 0;
    return 1;
}

cnr_value dn_other(dn_layer *l, double number) {
    const double at = number < 0 ? l->index + number : number;
    if (!(at > -1 && at < l->index)) {
        dn_problem(l, "it names a layer that is not before it");
        return l->failed = 1, -1;
    }
    const cnr_value value = l->net->done[(int32_t)at].value;
    if (value < 0) l->failed = 1; /* reported where that layer failed */
    return value;
}

/* ---- windows ---- */

void dn_window_set(dn_window *w, int64_t size, const int64_t strides[2], int64_t before,
                   int64_t after) {
    w->attrs.n = 0;
    w->kernel[0] = w->kernel[1] = size;
    w->strides[0] = strides[0], w->strides[1] = strides[1];
    w->pads[0] = w->pads[1] = before;
    w->pads[2] = w->pads[3] = after;
    imp_ints(&w->attrs, "kernel_shape", w->kernel, 2);
    imp_ints(&w->attrs, "strides", w->strides, 2);
    imp_ints(&w->attrs, "pads", w->pads, 4);
}

int dn_strides(dn_layer *l, int64_t strides[2]) {
    const int64_t both = dn_key_int(l, "stride", 1);
    strides[0] = dn_key_int(l, "stride_y", both);
    strides[1] = dn_key_int(l, "stride_x", both);
    if (strides[0] > 0 && strides[1] > 0) return 1;
    dn_problem(l, "stride must be above 0");
    return 0;
}

cnr_value dn_blur(dn_layer *l, cnr_value x, const int64_t strides[2]) {
    static const float wide[] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
    const int64_t kind = dn_key_int(l, "antialiasing", 0), size = kind == 2 ? 2 : 3;
    const cnr_tensor *t = dn_type(l, x);
    if (kind == 0 || !t || t->rank != 4 || t->dim[1] < 1) return x;
    const int64_t c = t->dim[1], dim[] = {c, 1, size, size}, each = size * size;
    float *blur = (float *)imp_host->alloc((size_t)(c * each) * sizeof(float));
    if (!blur) {
        l->net->b.status = CNR_E_MEMORY;
        return -1;
    }
    for (int64_t i = 0; i < c * each; i++) blur[i] = size == 2 ? 0.25f : wide[i % 9] / 16;
    const cnr_value weight = imp_weight(&l->net->b, l->name, ".blur", blur, dim, 4);
    dn_window w;
    imp_host->free(blur);
    dn_window_set(&w, size, strides, size == 3, size == 3);
    imp_int(&w.attrs, "group", c);
    imp_bool(&w.attrs, "bias", 0);
    return dn_node(l, "conv", ".blurred", (cnr_value[]){x, weight, -1}, 3, &w.attrs);
}

/* Tracks the distance between a layer's pixels in input pixels, since sizes may be open. */
static void set_step(dn_layer *l, double step[2]) {
    static const char *const smaller[] = {"conv",      "convolutional", "max",   "maxpool",
                                          "local_avg", "local_avgpool", "reorg", "reorg3d"};
    static const char *const larger[] = {"upsample", "deconv", "deconvolutional"};
    static const char *const others[] = {"route", "scale_channels", "sam"};
    const char *kind = l->section->name;
    const int64_t up = strcmp(kind, "upsample") == 0 ? 2 : 1, both = dn_key_int(l, "stride", up);
    const double stride[] = {(double)dn_key_int(l, "stride_y", both),
                             (double)dn_key_int(l, "stride_x", both)};
    const int reverse = dn_key_int(l, "reverse", 0) != 0;
    double from = -1;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(kind, others[i]) == 0)
            dn_list(dn_key_text(l, i ? "from" : "layers", ""), &from, 1);
    const double at = from < 0 ? l->index + from : from;
    for (int k = 0; k < 2; k++) {
        step[k] = at >= 0 && at < l->index ? l->net->done[(int32_t)at].step[k] : 1;
        for (size_t i = 0; i < sizeof smaller / sizeof smaller[0]; i++)
            if (strcmp(kind, smaller[i]) == 0)
                step[k] = reverse ? step[k] / stride[k] : step[k] * stride[k];
        for (size_t i = 0; i < sizeof larger / sizeof larger[0]; i++)
            if (strcmp(kind, larger[i]) == 0) step[k] /= stride[k];
    }
}

/* ---- choice of the converter ---- */

typedef cnr_value (*dn_converter)(dn_layer *);
typedef IMP_ROW(dn_converter) dn_row;

static const dn_row rows[] = {
/* Row of one type of section and its converter. */
#define X(NAME) IMP_LAYER(#NAME, dn_##NAME),
    DN_CONVERTERS(X)
#undef X
        IMP_LAYER("conv", dn_convolutional),
    IMP_LAYER("deconv", dn_deconvolutional),
    IMP_LAYER("conn", dn_connected),
    IMP_LAYER("max", dn_maxpool),
    IMP_LAYER("local_avg", dn_local_avgpool),
    IMP_LAYER("avg", dn_avgpool),
    IMP_LAYER("sam", dn_scale_channels),
    IMP_LAYER("soft", dn_softmax),
    IMP_LAYER("contrastive", dn_cost),
    IMP_LAYER("Gaussian_yolo", dn_gaussian_yolo),
    IMP_LAYER("empty", dn_cost),
    IMP_LAYER("silence", dn_cost),
};

void dn_convert(dn_net *net, int32_t index, cnr_value x) {
    static const char *const recurrent[] = {"rnn", "crnn", "gru", "lstm", "conv_lstm", "history"};
    dn_layer l = {.net = net, .section = &net->config->sections[index], .index = index - 1, .x = x};
    const char *kind = l.section->name;
    char where[300];
    snprintf(where, sizeof where, "%.250s:%d", net->path, (int)l.section->line);
    snprintf(l.name, sizeof l.name, "%d_%.40s", (int)l.index, kind);
    net->b.path = where;
    net->done[l.index] = (struct dn_done){.value = -1, .taken = net->taken};
    set_step(&l, net->done[l.index].step);
    const dn_row *row = IMP_ROW_OF(rows, kind);
    if (imp_is_one_of(kind, recurrent, CNR_ROWS(recurrent)))
        dn_problem(&l, "recurrent layers are not supported");
    else if (!row) dn_problem(&l, "this kind of layer is not supported");
    else if (x >= 0 || row->convert == dn_route) net->done[l.index].value = row->convert(&l);
    net->b.path = net->path;
}
