/* Writes nodes as CNNdroid's layers. Whatever the format can't express is refused, so that
 * reading the file back gives the same numbers. */
#include "export.h"

#include <cnnrun/kit.h>

static const char few_windows[] =
    "CNNdroid rounds the number of windows up, and this layer has another number";

/* 1 if the square window has as many positions as CNNdroid finds with `pad` on all sides;
 * ceil_mode: the node rounds up. */
static int counts_fit(const cnr_window *w, int64_t pad, int ceil_mode) {
    for (int i = 0; i < 2; i++) {
        const int64_t s = w->stride[i];
        if (w->in[i] < 0) { /* any size: as the importer asks for it */
            if (!ceil_mode && w->pad_end[i] != pad + s - 1) return 0;
            continue;
        }
        const int64_t room = w->in[i] + 2 * pad - w->kernel[i];
        if (room < 0 || w->out[i] != room / s + 1 + (room % s != 0)) return 0;
    }
    return 1;
}

/* Why a window has no words in a NetFile; NULL: it has, with `*pad`. */
static const char *window_unfit(const cnr_node *node, const cnr_window *w, int64_t *pad) {
    const char *auto_pad = cnr_attr_string(node, "auto_pad");
    const int same = strncmp(auto_pad, "SAME", 4) == 0;
    if (w->spatial != 2) return "two spatial axes are wanted";
    if (w->dilation[0] != 1 || w->dilation[1] != 1) return "CNNdroid has no dilation";
    if (w->stride[0] != w->stride[1]) return "CNNdroid has one stride for both axes";
    if (same && (w->in[0] < 0 || w->in[1] < 0)) return "its padding follows a size that is open";
    if (w->pad_begin[0] != w->pad_begin[1] || w->pad_begin[0] < 0)
        return "CNNdroid has one padding for both axes";
    *pad = w->pad_begin[0];
    return NULL;
}

/* Writes a convolution as CNNdroid's layer, or refuses it. */
static void convolution(cd_writer *w, const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    cnr_window window;
    int64_t pad = 0;
    const char *why = weight->rank != 4
                          ? "two spatial axes are wanted"
                          : imp_host->window_resolve(node, x, weight->dim + 2, &window);
    if (!why) why = window_unfit(node, &window, &pad);
    if (!why && !counts_fit(&window, pad, 0)) why = few_windows;
    if (why) return cd_refuse(w, node, why);
    cd_begin(w, node, "Convolution");
    cd_parameters_of(w, node, weight, cnr_own_input(node, 2));
    cd_print(w, "  pad: %lld\n  stride: %lld\n  group: %lld\n}\n\n", (long long)pad,
             (long long)window.stride[0], (long long)cnr_attr_int(node, "group"));
    w->positive = 0;
}

/* Writes a dense layer, or refuses it. */
static void dense(cd_writer *w, const cnr_node *node) {
    const cnr_tensor *weight = node->inputs[1], *bias = cnr_own_input(node, 2);
    if (weight->rank != 2) return cd_refuse(w, node, "a matrix of weights is wanted");
    if (bias && cnr_count(bias) != weight->dim[0])
        return cd_refuse(w, node, "a bias for each output is wanted");
    cd_begin(w, node, "FullyConnected");
    cd_parameters_of(w, node, weight, bias);
    cd_print(w, "}\n\n");
    w->flat = 1;
    w->positive = w->made_flat = 0;
}

/* Writes gemm as a dense layer, or refuses it. */
static void gemm(cd_writer *w, const cnr_node *node) {
    if (cnr_attr_int(node, "transA") || !cnr_attr_int(node, "transB") ||
        cnr_attr_float(node, "alpha") != 1 || cnr_attr_float(node, "beta") != 1)
        return cd_refuse(w, node, "a product of rows by a transposed weight is wanted");
    dense(w, node);
}

/* Writes a pooling layer (max, else mean) with a square window. */
static void put_pool(cd_writer *w, const cnr_node *node, int max, int64_t kernel, int64_t pad,
                     int64_t stride) {
    cd_begin(w, node, "Pooling");
    cd_print(w, "  pool: \"%s\"\n  kernel_size: %lld\n  pad: %lld\n  stride: %lld\n}\n\n",
             max ? "max" : "ave", (long long)kernel, (long long)pad, (long long)stride);
}

/* Why a pooling's padding does not fit, as CNNdroid pads with zeros, which are in the mean and
 * (max) may be the largest; NULL: it fits. */
static const char *border_unfit(const cd_writer *w, const cnr_node *node, int max, int64_t pad) {
    if (pad == 0) return NULL;
    if (w->border) return "it has a padding of its own behind a layer that pads";
    if (max && !w->positive) return "CNNdroid pads with zeros, which could be the largest here";
    if (!max && !cnr_attr_int(node, "count_include_pad"))
        return "CNNdroid's means count the padding";
    return NULL;
}

/* Writes max or average pooling, or refuses it. */
static void pooling(cd_writer *w, const cnr_node *node) {
    const int max = strcmp(node->desc->name, "max_pool") == 0;
    cnr_window window;
    int64_t pad = 0;
    const char *why = node->n_outputs > 1 && node->outputs[1] ? "CNNdroid has no indices" : NULL;
    if (!why) why = imp_host->window_resolve(node, node->inputs[0], NULL, &window);
    if (!why) why = window_unfit(node, &window, &pad);
    if (!why && window.kernel[0] != window.kernel[1]) why = "CNNdroid's windows are square";
    if (!why) why = border_unfit(w, node, max, pad);
    if (!why && !counts_fit(&window, pad, cnr_attr_int(node, "ceil_mode") != 0)) why = few_windows;
    if (why) return cd_refuse(w, node, why);
    put_pool(w, node, max, window.kernel[0], pad + w->border, window.stride[0]);
    w->border = 0;
}

/* Writes global pooling as pooling over the whole square picture, or refuses it. */
static void global_pooling(cd_writer *w, const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0];
    if (x->rank != 4 || x->dim[2] < 1 || x->dim[2] != x->dim[3])
        return cd_refuse(w, node, "CNNdroid's windows are square, of a size that is known");
    put_pool(w, node, 0, x->dim[2], 0, 1);
}

/* A border of zeros, which the pooling behind it names. */
static void border(cd_writer *w, const cnr_node *node) {
    int64_t n = 0;
    const int64_t *pads = cnr_attr_ints(node, "pads", &n);
    const int64_t p = n == 8 ? pads[2] : 0;
    int fits = n == 8 && cnr_own_inputs(node) == 1 && p > 0 && cnr_attr_float(node, "value") == 0 &&
               strcmp(cnr_attr_string(node, "mode"), "constant") == 0;
    for (int i = 0; fits && i < 8; i++) fits = pads[i] == (i % 4 < 2 ? 0 : p);
    if (!fits || p > 1 << 20 || w->border)
        return cd_refuse(w, node, "CNNdroid pads with zeros, alike on all sides, before a pooling");
    w->border = (int32_t)p;
}

/* Writes lrn, or refuses it. */
static void lrn(cd_writer *w, const cnr_node *node) {
    char alpha[32], beta[32];
    if (cnr_attr_float(node, "bias") != 1)
        return cd_refuse(w, node, "CNNdroid adds 1, no other bias");
    if (cnr_attr_int(node, "size") % 2 == 0)
        return cd_refuse(w, node, "CNNdroid wants an odd number of channels");
    imp_host->print_number(alpha, sizeof alpha, CNR_f64, cnr_attr_float(node, "alpha"));
    imp_host->print_number(beta, sizeof beta, CNR_f64, cnr_attr_float(node, "beta"));
    cd_begin(w, node, "LRN");
    cd_print(w,
             "  local_size: %lld\n  alpha: %s\n  beta: %s\n"
             "  norm_region: \"across_channels\"\n}\n\n",
             (long long)cnr_attr_int(node, "size"), alpha, beta);
}

/* Writes softmax over axis 1 of a matrix, or refuses it. */
static void softmax(cd_writer *w, const cnr_node *node) {
    const int64_t axis = cnr_attr_int(node, "axis");
    if (node->inputs[0]->rank != 2 || (axis != 1 && axis != -1))
        return cd_refuse(w, node, "CNNdroid has one softmax, over all numbers of a sample");
    cd_begin(w, node, "Softmax");
    cd_print(w, "}\n\n");
    w->flat = w->positive = 1;
    w->made_flat = 0;
}

/* Writes relu, and notes that numbers are not negative from here on. */
static void relu(cd_writer *w, const cnr_node *node) {
    cd_begin(w, node, "ReLU");
    cd_print(w, "}\n\n");
    w->positive = 1;
}

/* Writes nothing for a flatten between pictures and vectors. */
static void flatten(cd_writer *w, const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0], *y = node->outputs[0];
    if (y->rank != 2 || x->rank < 2 || y->dim[0] != x->dim[0])
        return cd_refuse(w, node, "CNNdroid has no other shapes");
    w->made_flat |= !w->flat;
}

/* Writes nothing: the operator does nothing when a net runs. */
static void nothing(cd_writer *w, const cnr_node *node) {
    if (node->n_outputs > 1 && node->outputs[1]) cd_refuse(w, node, "CNNdroid has no masks");
}

void cd_layer_of(cd_writer *w, const cnr_node *node) {
    static const struct {
        const char *op;
        void (*write)(cd_writer *w, const cnr_node *node);
    } rows[] = {{"conv", convolution},
                {"dense", dense},
                {"gemm", gemm},
                {"max_pool", pooling},
                {"average_pool", pooling},
                {"global_average_pool", global_pooling},
                {"pad", border},
                {"lrn", lrn},
                {"softmax", softmax},
                {"relu", relu},
                {"flatten", flatten},
                {"reshape", flatten},
                {"dropout", nothing},
                {"identity", nothing}};
    const char *op = node->desc ? node->desc->name : "";
    for (int32_t i = 0; i < CNR_ROWS(rows); i++) {
        if (strcmp(op, rows[i].op) != 0) continue;
        if (w->border && rows[i].write != pooling)
            return cd_refuse(w, node, "CNNdroid pads before a pooling alone");
        return rows[i].write(w, node);
    }
    cd_refuse(w, node, "CNNdroid has no such layer");
}
