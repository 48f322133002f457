/* Converts sections without weights. */
#include "darknet.h"

#include <stdio.h>

enum { MAX_LAYERS = 64 };

/* ---- pooling ---- */

/* Reads size, stride and padding into w; 0: failed. Darknet's padding is the sum of both sides; the
 * smaller half comes first. */
static int pooling(dn_layer *l, dn_window *w, int64_t strides[2]) {
    const int64_t one[] = {1, 1}, stride = dn_key_int(l, "stride", 1);
    const int64_t size = dn_key_int(l, "size", stride);
    const int64_t total = dn_key_int(l, "padding", size - 1);
    if (!dn_strides(l, strides)) return 0;
    if (size < 1 || total < 0) return dn_problem(l, "size or padding is wrong"), 0;
    dn_window_set(w, size, dn_key_int(l, "antialiasing", 0) ? one : strides, total / 2,
                  total - total / 2);
    return 1;
}

/* maxpool_depth=1: output channel g is the maximum of channels g, g + out_channels ... */
static cnr_value deep_maxpool(dn_layer *l) {
    const int64_t n = dn_key_int(l, "out_channels", 1), axis = 1;
    int64_t c;
    if (!dn_channels(l, &c)) return -1;
    if (n == 1) {
        imp_attrs a = {.n = 0};
        imp_ints(&a, "axes", &axis, 1);
        return dn_unary(l, "reduce_max", "", l->x, &a);
    }
    if (n < 1 || c % n || c / n > MAX_LAYERS)
        return dn_problem(l, "out_channels does not fit its input"), -1;
    cnr_value part[MAX_LAYERS];
    for (int64_t i = 0; i < c / n; i++) {
        char suffix[32];
        snprintf(suffix, sizeof suffix, ".part%d", (int)i);
        part[i] = imp_slice(&l->net->b, l->name, suffix, l->x, 1, i * n, (i + 1) * n);
    }
    return dn_node(l, "max", "", part, (int32_t)(c / n), NULL);
}

/* Converts [maxpool], over pixels or channels. */
cnr_value dn_maxpool(dn_layer *l) {
    dn_window w;
    int64_t strides[2];
    if (dn_key_int(l, "maxpool_depth", 0)) return deep_maxpool(l);
    if (!pooling(l, &w, strides)) return -1;
    return dn_blur(l, dn_unary(l, "max_pool", "", l->x, &w.attrs), strides);
}

/* Converts [local_avgpool]: average pooling of windows. */
cnr_value dn_local_avgpool(dn_layer *l) {
    dn_window w;
    int64_t strides[2];
    return pooling(l, &w, strides) ? dn_unary(l, "average_pool", "", l->x, &w.attrs) : -1;
}

/* Converts [avgpool]: the mean of each channel. */
cnr_value dn_avgpool(dn_layer *l) { return dn_unary(l, "global_average_pool", "", l->x, NULL); }

/* ---- inputs from other layers ---- */

/* Converts [route]: joins the outputs of earlier layers, or takes a group of their channels. */
cnr_value dn_route(dn_layer *l) {
    double layers[MAX_LAYERS];
    cnr_value in[MAX_LAYERS];
    const int32_t n = dn_list(dn_key_text(l, "layers", ""), layers, MAX_LAYERS);
    const int64_t groups = dn_key_int(l, "groups", 1), id = dn_key_int(l, "group_id", 0);
    if (n < 1) return dn_problem(l, "layers is missing"), -1;
    if (groups < 1 || id < 0 || id >= groups) return dn_problem(l, "group_id is out of range"), -1;
    for (int32_t i = 0; i < n; i++) {
        in[i] = dn_other(l, layers[i]);
        if (l->failed) return -1;
        if (groups == 1) continue;
        const cnr_tensor *x = dn_type(l, in[i]); /* a group of its channels */
        if (!x || x->rank < 2 || x->dim[1] < 1 || x->dim[1] % groups)
            return dn_problem(l, "groups does not divide the channels"), -1;
        const int64_t part = x->dim[1] / groups;
        char suffix[32];
        snprintf(suffix, sizeof suffix, ".part%d", (int)i);
        in[i] = imp_slice(&l->net->b, l->name, suffix, in[i], 1, part * id, part * (id + 1));
    }
    return n == 1 ? in[0] : imp_concat(&l->net->b, l->name, in, n, 1);
}

/* [scale_channels]: scales each channel (or each pixel); [sam]: scales each element. */
cnr_value dn_scale_channels(dn_layer *l) {
    double from;
    if (dn_list(dn_key_text(l, "from", ""), &from, 1) < 1)
        return dn_problem(l, "from is missing"), -1;
    const cnr_value in[] = {dn_other(l, from), l->x};
    return l->failed ? -1 : dn_activate(l, dn_node(l, "mul", "", in, 2, NULL), "linear");
}

/* ---- rearranging pixels ---- */

/* Converts [upsample]: repeats each pixel, times a scale. */
cnr_value dn_upsample(dn_layer *l) {
    const int64_t stride = dn_key_int(l, "stride", 2);
    char name[80];
    if (stride < 1) return dn_problem(l, "stride must be above 0"), -1;
    snprintf(name, sizeof name, "%s.nearest", l->name);
    return imp_affine(&l->net->b, l->name, imp_upscale(&l->net->b, name, l->x, stride, 0),
                      dn_key_float(l, "scale", 1), 0);
}

/* Converts [reorg], Darknet's own order of space to depth. */
cnr_value dn_reorg(dn_layer *l) {
    static const char *const refused[] = {"flatten", "extra", NULL};
    imp_attrs a = {.n = 0};
    dn_refuse(l, refused);
    imp_int(&a, "stride", dn_key_int(l, "stride", 1));
    imp_bool(&a, "reverse", dn_key_int(l, "reverse", 0) != 0);
    return dn_unary(l, "reorg", "", l->x, &a);
}

/* Converts [reorg3d], as space_to_depth. */
cnr_value dn_reorg3d(dn_layer *l) {
    static const char *const refused[] = {"reverse", NULL};
    imp_attrs a = {.n = 0};
    dn_refuse(l, refused);
    imp_int(&a, "blocksize", dn_key_int(l, "stride", 1));
    return dn_unary(l, "space_to_depth", "", l->x, &a);
}

/* At inference the centre is cropped; [0, 1] is mapped to [-1, 1]. */
cnr_value dn_crop(dn_layer *l) {
    int64_t c, h, w;
    if (!dn_sizes(l, &c, &h, &w)) return -1;
    const int64_t ch = dn_key_int(l, "crop_height", 1), cw = dn_key_int(l, "crop_width", 1);
    const int plain = dn_key_int(l, "noadjust", 0) != 0;
    if (ch < 1 || cw < 1 || ch > h || cw > w)
        return dn_problem(l, "it is larger than its input"), -1;
    const int64_t axes[] = {2, 3}, from[] = {(h - ch) / 2, (w - cw) / 2};
    const int64_t to[] = {from[0] + ch, from[1] + cw};
    imp_attrs a = {.n = 0};
    imp_ints(&a, "starts", from, 2);
    imp_ints(&a, "ends", to, 2);
    imp_ints(&a, "axes", axes, 2);
    const cnr_value y = dn_unary(l, "slice", ".cut", l->x, &a);
    return imp_affine(&l->net->b, l->name, y, plain ? 1 : 2, plain ? 0 : -1);
}

/* ---- others ---- */

/* Converts [softmax] with temperature, in groups of numbers. */
cnr_value dn_softmax(dn_layer *l) {
    static const char *const refused[] = {"tree", NULL};
    const int64_t groups = dn_key_int(l, "groups", 1), parts[] = {0, groups, -1}, flat[] = {0, -1};
    const double temperature = dn_key_float(l, "temperature", 1);
    const int spatial = dn_key_int(l, "spatial", 0) != 0; /* over the channels of each pixel */
    imp_net *b = &l->net->b;
    imp_attrs a = {.n = 0};
    dn_refuse(l, refused);
    if (groups < 1 || !(temperature > 0))
        return dn_problem(l, "groups and temperature must be above 0"), -1;
    imp_int(&a, "axis", spatial || groups == 1 ? 1 : 2);
    cnr_value x =
        temperature == 1
            ? l->x
            : dn_node(l, "div", ".cooled",
                      (cnr_value[]){l->x, imp_scalar(b, l->name, ".temperature", temperature)}, 2,
                      NULL);
    if (spatial) return dn_unary(l, "softmax", "", x, &a);
    if (groups == 1)
        return dn_unary(l, "softmax", "", dn_unary(l, "flatten", ".flat", x, NULL), &a);
    x = dn_unary(l, "softmax", ".parts", imp_reshape(b, l->name, ".groups", x, parts, 3), &a);
    return imp_reshape(b, l->name, "", x, flat, 2);
}

/* Converts [l2norm]: each pixel's channels divided by their L2 norm. */
cnr_value dn_l2norm(dn_layer *l) {
    imp_attrs a = {.n = 0};
    imp_int(&a, "axis", 1);
    return dn_unary(l, "lp_normalization", "", l->x, &a);
}

/* Converts [logistic], as sigmoid. */
cnr_value dn_logistic(dn_layer *l) { return dn_unary(l, "sigmoid", "", l->x, NULL); }

/* Converts [dropout], which changes nothing. */
cnr_value dn_dropout(dn_layer *l) { return dn_unary(l, "dropout", "", l->x, NULL); }

/* Converts [activation]: applies the activation alone. */
cnr_value dn_activation(dn_layer *l) { return dn_activate(l, l->x, "linear"); }

/* Converts [cost], which only training reads: the input as it is. */
cnr_value dn_cost(dn_layer *l) { return l->x; }
