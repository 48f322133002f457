/* Darknet's detection heads: their activations, and metadata "heads" with what a box decoder
 * needs. */
#include "darknet.h"

#include <stdio.h>

enum { MAX_ANCHORS = 128, MAX_CLASSES = 20000 };

/* Makes y an output, and appends a line to the metadata: kind output=NAME classes= coords= width=
 * height= anchors=n,n,... Returns y; -1: failed. */
static cnr_value head(dn_layer *l, cnr_value y, const char *kind, const char *more,
                      const double *anchors, int32_t n) {
    imp_net *b = &l->net->b;
    char numbers[2 * MAX_ANCHORS * 20] = "";
    size_t at = 0;
    for (int32_t i = 0; i < n; i++) {
        if (i) numbers[at++] = ',';
        imp_host->print_number(numbers + at, 20, CNR_f32, anchors[i]);
        at += strlen(numbers + at);
    }
    const char *before = imp_host->graph_meta(b->graph, "heads");
    const size_t room = (before ? strlen(before) : 0) + at + 400;
    char *text = (char *)imp_host->alloc(room);
    if (!text) return b->status = CNR_E_MEMORY, -1;
    snprintf(text, room, "%s%s output=%s %s width=%lld height=%lld anchors=%s\n",
             before ? before : "", kind, l->name, more, (long long)l->net->width,
             (long long)l->net->height, numbers);
    imp_meta(b, "heads", text);
    imp_host->free(text);
    if (y >= 0 && imp_host->graph_output(b->graph, y, l->name) == CNR_E_MEMORY)
        b->status = CNR_E_MEMORY;
    return y;
}

/* The anchors selected by mask=, or the first num=. Returns how many pairs; 0 with a problem. As in
 * Darknet, missing anchors are 0.5 x 0.5. */
static int32_t anchors_of(dn_layer *l, double out[2 * MAX_ANCHORS]) {
    double all[2 * MAX_ANCHORS], mask[MAX_ANCHORS];
    const int64_t num = dn_key_int(l, "num", 1);
    int32_t n_all = dn_list(dn_key_text(l, "anchors", ""), all, 2 * MAX_ANCHORS) / 2;
    int32_t n = dn_list(dn_key_text(l, "mask", ""), mask, MAX_ANCHORS);
    for (; n_all < num && n_all < MAX_ANCHORS; n_all++) all[2 * n_all] = all[2 * n_all + 1] = 0.5;
    if (n == 0)
        for (; n < num && n < MAX_ANCHORS; n++) mask[n] = n;
    for (int32_t i = 0; i < n; i++) {
        if (!(mask[i] >= 0 && mask[i] < n_all))
            return dn_problem(l, "mask names an anchor that is not there"), 0;
        memcpy(out + 2 * i, all + 2 * (int32_t)mask[i], 2 * sizeof out[0]);
    }
    if (n == 0) dn_problem(l, "it has no anchors");
    return n;
}

/* Number of classes; -1: wrong, a problem is noted. */
static int64_t classes_of(dn_layer *l, int64_t usual) {
    const int64_t classes = dn_key_int(l, "classes", usual);
    if (classes >= 0 && classes <= MAX_CLASSES) return classes;
    dn_problem(l, "classes is wrong");
    return -1;
}

/* Adds the operator yolo, the activations of a YOLO head (v3 on) of n anchors. */
static cnr_value add_yolo(dn_layer *l, const char *suffix, cnr_value x, int64_t classes,
                          int32_t n) {
    imp_attrs a = {.n = 0};
    imp_int(&a, "classes", classes);
    imp_int(&a, "num", n);
    imp_float(&a, "scale_x_y", dn_key_float(l, "scale_x_y", 1));
    return dn_unary(l, "yolo", suffix, x, &a);
}

/* new_coords=1: the layer before applied the activations; only x and y are scaled. */
static cnr_value stretched(dn_layer *l, int64_t classes, int32_t n) {
    const int64_t each = 5 + classes, dim = n * each;
    const double scale = dn_key_float(l, "scale_x_y", 1);
    int64_t c;
    if (!dn_channels(l, &c)) return -1;
    if (c != dim) return dn_problem(l, "its input's channels do not fit mask and classes"), -1;
    float *values = (float *)imp_host->alloc(2 * (size_t)dim * sizeof(float));
    if (!values) return l->net->b.status = CNR_E_MEMORY, -1;
    for (int64_t i = 0; i < dim; i++) {
        values[i] = i % each < 2 ? (float)scale : 1;
        values[dim + i] = i % each < 2 ? (float)(-0.5 * (scale - 1)) : 0;
    }
    const cnr_value in[] = {l->x, imp_weight(&l->net->b, l->name, ".scale", values, &dim, 1),
                            imp_weight(&l->net->b, l->name, ".shift", values + dim, &dim, 1)};
    imp_host->free(values);
    return dn_node(l, "scale_bias", "", in, 3, NULL);
}

/* Converts [yolo]: activations of the head, and its metadata. */
cnr_value dn_yolo(dn_layer *l) {
    double anchors[2 * MAX_ANCHORS];
    const int32_t n = anchors_of(l, anchors);
    const int64_t classes = classes_of(l, 20);
    const int square = dn_key_int(l, "new_coords", 0) != 0;
    char more[64];
    if (n == 0 || classes < 0) return -1;
    const cnr_value y = square ? stretched(l, classes, n) : add_yolo(l, "", l->x, classes, n);
    snprintf(more, sizeof more, "classes=%d coords=4%s", (int)classes, square ? " square=1" : "");
    return head(l, y, "yolo", more, anchors, 2 * n);
}

/* Adds a 1x1 convolution with the same weights [out, in] on each anchor's channels, and `bias` for
 * all. */
static cnr_value mix(dn_layer *l, const char *suffix, cnr_value x, const float *weights,
                     int64_t out, int64_t in, int64_t anchors, double bias) {
    const int64_t n = anchors * out, each = out * in, dim[] = {n, in, 1, 1};
    float *all = (float *)imp_host->alloc((size_t)(anchors * each) * sizeof(float));
    char name[96];
    if (!all) return l->net->b.status = CNR_E_MEMORY, -1;
    for (int64_t i = 0; i < anchors * each; i++) all[i] = weights[i % each];
    snprintf(name, sizeof name, "%s%s", l->name, suffix);
    const cnr_value from[] = {x, imp_weight(&l->net->b, name, ".weight", all, dim, 4),
                              imp_filled(&l->net->b, name, ".bias", (float)bias, &n, 1)};
    imp_attrs a = {.n = 0};
    imp_host->free(all);
    imp_int(&a, "group", anchors);
    return dn_node(l, "conv", suffix, from, 3, &a);
}

/* Each coordinate of a box comes with its uncertainty: x, its uncertainty, y, ... objectness,
 * classes. The output has the form of an ordinary head: objectness times the mean certainty. */
cnr_value dn_gaussian_yolo(dn_layer *l) {
    double anchors[2 * MAX_ANCHORS];
    const int32_t n = anchors_of(l, anchors);
    const int64_t classes = classes_of(l, 20), in = 9 + classes, out = 5 + classes;
    int64_t c;
    char more[64];
    if (strcmp(dn_key_text(l, "yolo_point", "center"), "center") != 0)
        return dn_problem(l, "yolo_point other than center is not supported"), -1;
    if (n == 0 || classes < 0 || !dn_channels(l, &c)) return -1;
    if (c != n * in) return dn_problem(l, "its input's channels do not fit mask and classes"), -1;
    const size_t bytes = (size_t)(in * out) * sizeof(float);
    float *w = (float *)imp_host->alloc(bytes);
    if (!w) return l->net->b.status = CNR_E_MEMORY, -1;
    memset(w, 0, bytes);
    for (int64_t o = 0; o < out; o++) w[o * in + (o < 4 ? 2 * o : o + 4)] = 1;
    const cnr_value box = add_yolo(l, ".box", mix(l, ".sure", l->x, w, out, in, n, 0), classes, n);
    memset(w, 0, bytes);
    for (int64_t k = 0; k < 4; k++) w[4 * in + 2 * k + 1] = -0.25f;
    const cnr_value odds = dn_unary(l, "sigmoid", ".odds", l->x, NULL);
    const cnr_value y =
        dn_node(l, "mul", "", (cnr_value[]){box, mix(l, ".certain", odds, w, out, in, n, 1)}, 2,
                NULL);
    imp_host->free(w);
    snprintf(more, sizeof more, "classes=%d coords=4", (int)classes);
    return head(l, y, "yolo", more, anchors, 2 * n);
}

/* Converts [region] of YOLO v2: activations of the head, and its metadata. */
cnr_value dn_region(dn_layer *l) {
    static const char *const refused[] = {"tree", NULL};
    double anchors[2 * MAX_ANCHORS];
    const int32_t n = anchors_of(l, anchors);
    const int64_t classes = classes_of(l, 20), coords = dn_key_int(l, "coords", 4);
    char more[64];
    dn_refuse(l, refused);
    if (n == 0 || classes < 0) return -1;
    imp_attrs a = {.n = 0};
    imp_int(&a, "classes", classes);
    imp_int(&a, "num", n);
    imp_int(&a, "coords", coords);
    imp_bool(&a, "softmax", dn_key_int(l, "softmax", 0) != 0);
    imp_bool(&a, "background", dn_key_int(l, "background", 0) != 0);
    snprintf(more, sizeof more, "classes=%d coords=%d", (int)classes, (int)coords);
    return head(l, dn_unary(l, "region", "", l->x, &a), "region", more, anchors, 2 * n);
}

/* YOLO v1: [classes | num confidences | num boxes] for each cell of a side x side grid. Its
 * "anchors" are side, num and whether sizes are square roots. */
cnr_value dn_detection(dn_layer *l) {
    static const char *const refused[] = {"softmax", "reorg", NULL};
    const int64_t side = dn_key_int(l, "side", 7), num = dn_key_int(l, "num", 1);
    const int64_t classes = classes_of(l, 1);
    const double shape[] = {(double)side, (double)num, dn_key_int(l, "sqrt", 0) != 0};
    const cnr_value y = dn_unary(l, "flatten", "", l->x, NULL);
    const cnr_tensor *t = dn_type(l, y);
    char more[64];
    dn_refuse(l, refused);
    if (dn_key_int(l, "coords", 1) != 4) dn_problem(l, "coords other than 4 are not supported");
    if (classes < 0 || side < 1 || side > 1 << 12 || num < 1 || !t ||
        t->dim[1] != side * side * (classes + num * 5))
        return dn_problem(l, "its input is not side * side * (classes + num * 5) numbers"), -1;
    snprintf(more, sizeof more, "classes=%d coords=4", (int)classes);
    return head(l, y, "detection", more, shape, 3);
}
