/* Darknet's activations by name: one operator if there is one, else several. */
#include "darknet.h"

#include <stdio.h>

static const struct {
    const char *name, *op;
    struct {
        const char *name;
        double value;
    } attr[2];
} rows[] = {
    {"relu", "relu", {{0}}},
    {"relu6", "relu6", {{0}}},
    {"logistic", "sigmoid", {{0}}},
    {"tanh", "tanh", {{0}}},
    {"mish", "mish", {{0}}},
    {"swish", "swish", {{0}}},
    {"elu", "elu", {{0}}},
    {"selu", "selu", {{"alpha", 1.6732}, {"gamma", 1.0507}}},
    {"leaky", "leaky_relu", {{"alpha", 0.1}, {0}}},
    {"revleaky", "leaky_relu", {{"alpha", 0.1}, {0}}},
    {"relie", "leaky_relu", {{"alpha", 0.01}, {0}}},
    {"hardtan", "clip", {{"min", -1}, {"max", 1}}},
};

/* Adds clip(x, min, max). */
static cnr_value clip(dn_layer *l, const char *suffix, cnr_value x, double min, double max) {
    imp_attrs a = {.n = 0};
    imp_float(&a, "min", min);
    imp_float(&a, "max", max);
    return dn_unary(l, "clip", suffix, x, &a);
}

/* Adds a node of two inputs, named after the layer with a suffix. */
static cnr_value both(dn_layer *l, const char *op, const char *suffix, cnr_value a, cnr_value b) {
    return dn_node(l, op, suffix, (cnr_value[]){a, b}, 2, NULL);
}

/* Adds x * factor + shift; the node's name ends in `what`. */
static cnr_value affine(dn_layer *l, const char *what, cnr_value x, double factor, double shift) {
    char name[96];
    snprintf(name, sizeof name, "%s%s", l->name, what);
    return imp_affine(&l->net->b, name, x, factor, shift);
}

/* Adds slope * x + factor * clip(x, min, max) + shift: piecewise linear. */
static cnr_value bent(dn_layer *l, cnr_value x, double slope, double factor, double min, double max,
                      double shift) {
    const cnr_value middle = affine(l, ".middle", clip(l, ".clip", x, min, max), factor, shift);
    return both(l, "add", ".act", affine(l, ".ends", x, slope, 0), middle);
}

/* floor(x / 2), plus the fraction of x where floor(x) is odd */
static cnr_value stair(dn_layer *l, cnr_value x) {
    const cnr_value step = dn_unary(l, "floor", ".step", affine(l, ".half", x, 0.5, 0), NULL);
    const cnr_value over = both(l, "sub", ".over", x, affine(l, ".even", step, 2, 1));
    return both(l, "add", ".act", step, clip(l, ".rise", over, 0, 1));
}

/* Adds each channel divided by the sum over the channels. */
static cnr_value share(dn_layer *l, cnr_value x) {
    const int64_t axis = 1;
    imp_attrs a = {.n = 0};
    imp_ints(&a, "axes", &axis, 1);
    const cnr_value sum = dn_unary(l, "reduce_sum", ".sum", x, &a);
    return both(l, "div", ".act", x, affine(l, ".above0", sum, 1, 1e-4));
}

/* Adds exp(x) divided by its sum over the channels; use_max: less the maximum first. */
static cnr_value soft_share(dn_layer *l, cnr_value x, int use_max) {
    const int64_t axis = 1;
    imp_attrs a = {.n = 0};
    imp_ints(&a, "axes", &axis, 1);
    if (use_max) x = both(l, "sub", ".below", x, dn_unary(l, "reduce_max", ".max", x, &a));
    return share(l, dn_unary(l, "exp", ".exp", x, NULL));
}

cnr_value dn_activate(dn_layer *l, cnr_value x, const char *fallback) {
    const char *kind = dn_key_text(l, "activation", fallback);
    imp_attrs a = {.n = 0};
    if (strcmp(kind, "linear") == 0) return x;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, kind) != 0) continue;
        for (int k = 0; k < 2 && rows[i].attr[k].name; k++)
            imp_float(&a, rows[i].attr[k].name, rows[i].attr[k].value);
        return dn_unary(l, rows[i].op, ".act", x, &a);
    }
    if (strcmp(kind, "gelu") == 0) {
        imp_enum(&a, "approximate", "tanh");
        return dn_unary(l, "gelu", ".act", x, &a);
    }
    if (strcmp(kind, "hard_mish") == 0) { /* x times a ramp from -2 to 0 */
        imp_float(&a, "alpha", 0.5);
        imp_float(&a, "beta", 1);
        return both(l, "mul", ".act", x, dn_unary(l, "hard_sigmoid", ".ramp", x, &a));
    }
    if (strcmp(kind, "ramp") == 0)
        return both(l, "add", ".act", dn_unary(l, "relu", ".relu", x, NULL),
                    affine(l, ".tenth", x, 0.1, 0));
    if (strcmp(kind, "loggy") == 0)
        return affine(l, ".act", dn_unary(l, "sigmoid", ".sigmoid", x, NULL), 2, -1);
    if (strcmp(kind, "lhtan") == 0) return bent(l, x, 0.001, 0.999, 0, 1, 0);
    if (strcmp(kind, "plse") == 0) return bent(l, x, 0.01, 0.115, -4, 4, 0.5);
    if (strcmp(kind, "stair") == 0) return stair(l, x);
    if (strcmp(kind, "normalize_channels") == 0)
        return share(l, dn_unary(l, "relu", ".relu", x, NULL));
    if (strcmp(kind, "normalize_channels_softmax") == 0) return soft_share(l, x, 0);
    if (strcmp(kind, "normalize_channels_softmax_maxval") == 0) return soft_share(l, x, 1);
    char text[128];
    snprintf(text, sizeof text, "activation \"%.80s\" is not supported", kind);
    dn_problem(l, text);
    return x;
}
