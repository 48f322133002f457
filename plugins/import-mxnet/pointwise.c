/* Operators that keep the shape: normalisation, activations, arithmetic. */
#include "mxnet.h"

#include <stdio.h>

/* Makes the output by one operator on input 0. */
static void give_op(mx_job *j, const char *op, const imp_attrs *attrs) {
    mx_give(j, mx_op(j, op, "", &j->x, 1, attrs));
}

/* Adds a node of one input, named after the node with a suffix; returns its output. */
static cnr_value step(mx_job *j, const char *op, const char *suffix, cnr_value x) {
    return mx_op(j, op, suffix, &x, 1, NULL);
}

/* Adds x * factor + shift; the node's name ends in `suffix`. */
static cnr_value affine(mx_job *j, const char *suffix, cnr_value x, double factor, double shift) {
    char name[300];
    snprintf(name, sizeof name, "%.250s%s", j->n->name, suffix);
    return imp_affine(&j->net->b, name, x, factor, shift);
}

/* ---- normalisation ---- */

/* Running statistic i of a normalisation as a weight of c numbers. Old symbols do not list them;
 * their names follow from the node's. */
static cnr_value statistic(mx_job *j, int32_t i, const char *tail, int64_t c) {
    char name[300];
    if (json_array_size(j->n->inputs) > (size_t)i) return mx_weight(j, i, &c, 1);
    snprintf(name, sizeof name, "%.250s%s", j->n->name, tail);
    mx_array *a = mx_params_find(j->net->params, name);
    if (a) return mx_constant(j, a, &c, 1);
    if (j->net->params) return mx_problem(j, "%s is not in the parameters", name), -1;
    return imp_weight(&j->net->b, name, "", NULL, &c, 1);
}

/* Converts BatchNorm with its running statistics; what does not fit is noted as a problem and sets
 * j->failed. */
static void batch_norm(mx_job *j) {
    const mx_array *gamma = mx_peek(j, 1);
    j->x = mx_data_for(j, 0, gamma ? mx_array_count(gamma) : 0, 4);
    const cnr_tensor *x = mx_type(j, j->x);
    const int64_t axis = x && x->rank > 1 ? mx_axis(j, mx_int(j->n, "axis", 1)) : -1;
    if (j->failed) return;
    if (axis < 1 || x->dim[axis] < 1)
        return mx_problem(j, "the channels of its input are not known");
    const int64_t c = x->dim[axis];
    imp_attrs l = {.n = 0};
    imp_float(&l, "epsilon", mx_float(j->n, "eps", 1e-3));
    const int fixed = mx_bool(j->n, "fix_gamma", 1); /* gamma counts as 1, whatever its data */
    const cnr_value from[] = {mx_swapped(j, ".turned", j->x, axis, 1),
                              fixed ? imp_filled(&j->net->b, j->n->name, ".ones", 1, &c, 1)
                                    : mx_weight(j, 1, &c, 1),
                              mx_weight(j, 2, &c, 1), statistic(j, 3, "_moving_mean", c),
                              statistic(j, 4, "_moving_var", c)};
    if (j->failed) return;
    const cnr_value y = mx_op(j, "batch_normalization", axis == 1 ? "" : ".normal", from, 5, &l);
    mx_give(j, mx_swapped(j, "", y, axis, 1));
}

/* Converts InstanceNorm. */
static void instance_norm(mx_job *j) {
    const int64_t c = mx_channels(j);
    if (j->failed) return;
    imp_attrs l = {.n = 0};
    imp_float(&l, "epsilon", mx_float(j->n, "eps", 1e-3));
    const cnr_value from[] = {j->x, mx_weight(j, 1, &c, 1), mx_weight(j, 2, &c, 1)};
    if (!j->failed) mx_give(j, mx_op(j, "instance_normalization", "", from, 3, &l));
}

/* Converts GroupNorm. */
static void group_norm(mx_job *j) {
    const mx_array *gamma = mx_peek(j, 1);
    const int64_t groups = mx_int(j->n, "num_groups", 1);
    const int64_t c = gamma ? mx_array_count(gamma) : mx_channels(j);
    imp_attrs l = {.n = 0};
    imp_float(&l, "epsilon", mx_float(j->n, "eps", 1e-5));
    imp_int(&l, "num_groups", groups);
    const cnr_value from[] = {j->x, mx_weight(j, 1, &c, 1), mx_weight(j, 2, &c, 1)};
    if (!j->failed) mx_give(j, mx_op(j, "group_normalization", "", from, 3, &l));
}

/* Converts LayerNorm along one axis; what does not fit is noted as a problem and sets j->failed. */
static void layer_norm(mx_job *j) {
    const int64_t axis = mx_axis(j, mx_int(j->n, "axis", -1));
    const cnr_tensor *x = mx_type(j, j->x);
    if (j->failed) return;
    const int64_t last = x->rank - 1, c = x->dim[axis];
    if (c < 1) return mx_problem(j, "the size of its axis is not known");
    imp_attrs l = {.n = 0};
    imp_int(&l, "axis", last);
    imp_float(&l, "epsilon", mx_float(j->n, "eps", 1e-5));
    const cnr_value from[] = {mx_swapped(j, ".turned", j->x, axis, last), mx_weight(j, 1, &c, 1),
                              mx_weight(j, 2, &c, 1)};
    if (j->failed) return;
    const cnr_value y = mx_op(j, "layer_normalization", axis == last ? "" : ".normal", from, 3, &l);
    mx_give(j, mx_swapped(j, "", y, axis, last));
}

/* Converts L2Normalization, by channel, spatial or instance mode; what does not fit is noted as a
 * problem and sets j->failed. */
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
    norm = step(j, "sqrt", ".norm", norm);
    mx_give(j, mx_op(j, "div", "", (cnr_value[]){j->x, norm}, 2, NULL));
}

/* Converts LRN. */
static void lrn(mx_job *j) {
    imp_attrs l = {.n = 0};
    imp_int(&l, "size", mx_int(j->n, "nsize", 5));
    imp_float(&l, "alpha", mx_float(j->n, "alpha", 1e-4));
    imp_float(&l, "beta", mx_float(j->n, "beta", 0.75));
    imp_float(&l, "bias", mx_float(j->n, "knorm", 2));
    give_op(j, "lrn", &l);
}

/* ---- activations and outputs ---- */

/* Converts Activation by its act_type; unknown ones are a problem. */
static void activation(mx_job *j) {
    static const char *const kinds[][2] = {{"relu", "relu"},
                                           {"sigmoid", "sigmoid"},
                                           {"tanh", "tanh"},
                                           {"softrelu", "softplus"},
                                           {"softsign", "softsign"}};
    const char *kind = mx_text(j->n, "act_type");
    for (size_t i = 0; kind && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i][0], kind) == 0) return give_op(j, kinds[i][1], NULL);
    mx_problem(j, "act_type %.30s is not supported", kind ? kind : "(none)");
}

/* Converts a PReLU, with one slope or one a channel. */
static void prelu(mx_job *j) {
    const mx_array *a = mx_peek(j, 1);
    const int64_t c = a && mx_array_count(a) == 1 ? 1 : mx_channels(j);
    const cnr_tensor *x = mx_type(j, j->x);
    const int64_t dim[CNR_MAX_RANK] = {c, 1, 1, 1, 1, 1, 1};
    if (j->failed || !x) return;
    /* for each channel, or for all */
    const cnr_value slope = mx_weight(j, 1, dim, c == 1 ? 1 : x->rank - 1);
    if (!j->failed) mx_give(j, mx_op(j, "prelu", "", (cnr_value[]){j->x, slope}, 2, NULL));
}

/* Converts LeakyReLU by its act_type: leaky, elu, prelu and so on; what does not fit is noted as a
 * problem and sets j->failed. */
static void leaky_relu(mx_job *j) {
    const char *kind = mx_text(j->n, "act_type");
    double slope = mx_float(j->n, "slope", 0.25);
    imp_attrs l = {.n = 0};
    if (!kind) kind = "leaky";
    if (strcmp(kind, "prelu") == 0) return prelu(j);
    if (strcmp(kind, "selu") == 0 || strcmp(kind, "gelu") == 0) return give_op(j, kind, NULL);
    if (strcmp(kind, "rrelu") == 0) /* at inference: the mean of its slopes */
        slope = (mx_float(j->n, "lower_bound", 0.125) + mx_float(j->n, "upper_bound", 0.334)) / 2;
    else if (strcmp(kind, "leaky") != 0 && strcmp(kind, "elu") != 0)
        return mx_problem(j, "act_type %.30s is not supported", kind);
    imp_float(&l, "alpha", slope);
    give_op(j, strcmp(kind, "elu") == 0 ? "elu" : "leaky_relu", &l);
}

/* SoftmaxOutput and similar: the labels, which only training has, are not read. */
static void softmax(mx_job *j) {
    const char *mode = mx_text(j->n, "mode"), *op = j->n->op;
    const cnr_tensor *x = mx_type(j, j->x);
    const int own =
        strcmp(op, "softmax") == 0 || strcmp(op, "log_softmax") == 0 || strcmp(op, "softmin") == 0;
    const double heat = mx_float(j->n, "temperature", 1) * (strcmp(op, "softmin") == 0 ? -1 : 1);
    int64_t axis = own ? mx_int(j->n, "axis", -1) : 1;
    int whole = 0; /* over all axes of a sample */
    if (!x) return;
    if (heat == 0) return mx_problem(j, "a temperature of 0");
    if (own && mx_bool(j->n, "use_length", 0)) return mx_problem(j, "lengths are not supported");
    if (!own && x->rank != 2 && !mx_bool(j->n, "multi_output", 0) &&
        !(mode && strcmp(mode, "channel") == 0)) {
        whole = strcmp(op, "SoftmaxActivation") != 0 && !mx_bool(j->n, "preserve_shape", 0);
        if (!whole) axis = -1;
    }
    imp_attrs l = {.n = 0};
    imp_int(&l, "axis", axis);
    cnr_value v = affine(j, ".cooled", j->x, 1 / heat, 0);
    if (whole) v = step(j, "flatten", ".flat", v);
    v = mx_op(j, strcmp(op, "log_softmax") == 0 ? op : "softmax", whole ? ".parts" : "", &v, 1, &l);
    if (whole) v = mx_op(j, "reshape_like", "", (cnr_value[]){v, j->x}, 2, NULL);
    mx_give(j, v);
}

static void pass(mx_job *j) { mx_give(j, j->x); }

/* Converts clip, without bounds where none are given. */
static void clip(mx_job *j) {
    imp_attrs l = {.n = 0};
    imp_float(&l, "min", mx_float(j->n, "a_min", -__builtin_inf()));
    imp_float(&l, "max", mx_float(j->n, "a_max", __builtin_inf()));
    give_op(j, "clip", &l);
}

/* Converts hard_sigmoid. */
static void hard_sigmoid(mx_job *j) {
    imp_attrs l = {.n = 0};
    imp_float(&l, "alpha", mx_float(j->n, "alpha", 0.2));
    imp_float(&l, "beta", mx_float(j->n, "beta", 0.5));
    give_op(j, "hard_sigmoid", &l);
}

/* Converts square, as x * x. */
static void square(mx_job *j) {
    mx_give(j, mx_op(j, "mul", "", (cnr_value[]){j->x, j->x}, 2, NULL));
}

/* ---- arithmetic ---- */

/* Casts to another type. */
static cnr_value cast(mx_job *j, const char *suffix, cnr_value v, int32_t dtype) {
    imp_attrs l = {.n = 0};
    imp_dtype(&l, "to", dtype);
    return mx_op(j, "cast", suffix, &v, 1, &l);
}

/* Values stay float32; casts to integer types only truncate. */
static void cast_to(mx_job *j) {
    const char *type = mx_text(j->n, "dtype");
    static const struct {
        const char *name;
        int32_t dtype;
    } whole[] = {{"int32", CNR_i32},
                 {"int64", CNR_i64},
                 {"uint8", CNR_u8},
                 {"int8", CNR_i8},
                 {"bool", CNR_bool}};
    for (size_t i = 0; type && i < sizeof whole / sizeof whole[0]; i++)
        if (strcmp(whole[i].name, type) == 0)
            return mx_give(j, cast(j, "", cast(j, ".whole", j->x, whole[i].dtype), CNR_f32));
    mx_give(j, j->x);
}

/* y = after * op(before * x + plus) + and_on */
static const struct unary {
    const char *name, *op;
    double before, plus, after, and_on;
} unaries[] = {
    {"Dropout", "dropout", 1, 0, 1, 0},
    {"LogisticRegressionOutput", "sigmoid", 1, 0, 1, 0},
    {"abs", "abs", 1, 0, 1, 0},
    {"arccos", "acos", 1, 0, 1, 0},
    {"arccosh", "acosh", 1, 0, 1, 0},
    {"arcsin", "asin", 1, 0, 1, 0},
    {"arcsinh", "asinh", 1, 0, 1, 0},
    {"arctan", "atan", 1, 0, 1, 0},
    {"arctanh", "atanh", 1, 0, 1, 0},
    {"ceil", "ceil", 1, 0, 1, 0},
    {"cos", "cos", 1, 0, 1, 0},
    {"cosh", "cosh", 1, 0, 1, 0},
    {"degrees", "identity", 57.295779513082320877, 0, 1, 0},
    {"erf", "erf", 1, 0, 1, 0},
    {"exp", "exp", 1, 0, 1, 0},
    {"expm1", "exp", 1, 0, 1, -1},
    {"floor", "floor", 1, 0, 1, 0},
    {"log", "log", 1, 0, 1, 0},
    {"log10", "log", 1, 0, 0.43429448190325182765, 0},
    {"log1p", "log", 1, 1, 1, 0},
    {"log2", "log", 1, 0, 1.4426950408889634074, 0},
    {"negative", "neg", 1, 0, 1, 0},
    {"ones_like", "identity", 0, 1, 1, 0},
    {"radians", "identity", 0.017453292519943295769, 0, 1, 0},
    {"reciprocal", "reciprocal", 1, 0, 1, 0},
    {"relu", "relu", 1, 0, 1, 0},
    {"rint", "ceil", 1, -0.5, 1, 0},
    {"sigmoid", "sigmoid", 1, 0, 1, 0},
    {"sign", "sign", 1, 0, 1, 0},
    {"sin", "sin", 1, 0, 1, 0},
    {"sinh", "sinh", 1, 0, 1, 0},
    {"softsign", "softsign", 1, 0, 1, 0},
    {"sqrt", "sqrt", 1, 0, 1, 0},
    {"tan", "tan", 1, 0, 1, 0},
    {"tanh", "tanh", 1, 0, 1, 0},
    {"zeros_like", "identity", 0, 0, 1, 0},
};

/* Converts an operator on one value by its row: before * x + plus, the operator, then the same
 * behind it. */
static void unary(mx_job *j) {
    const struct unary *u = IMP_ROW_OF(unaries, j->n->op);
    const int more = u->after != 1 || u->and_on != 0;
    const cnr_value x = affine(j, ".before", j->x, u->before, u->plus);
    const cnr_value y = step(j, u->op, more ? ".step" : "", x);
    mx_give(j, affine(j, "", y, u->after, u->and_on));
}

/* Converts rsqrt, as 1 / sqrt(x). */
static void rsqrt(mx_job *j) {
    mx_give(j, step(j, "reciprocal", "", step(j, "sqrt", ".root", j->x)));
}

/* round: halves away from zero; fix and trunc: towards zero */
static void round_off(mx_job *j) {
    const double half = strcmp(j->n->op, "round") == 0 ? 0.5 : 0;
    const cnr_value size = affine(j, ".half", step(j, "abs", ".size", j->x), 1, half);
    mx_give(j,
            mx_op(j, "mul", "",
                  (cnr_value[]){step(j, "floor", ".whole", size), step(j, "sign", ".sign", j->x)},
                  2, NULL));
}

enum { NUMBER, TRUTH, LOGIC }; /* type of the result; LOGIC also needs truth values as operands */
static const struct binary {
    const char *name, *op;
    int kind;
} binaries[] = {
    {"add", "add", NUMBER},        {"plus", "add", NUMBER},
    {"gradadd", "add", NUMBER},    {"sub", "sub", NUMBER},
    {"minus", "sub", NUMBER},      {"mul", "mul", NUMBER},
    {"div", "div", NUMBER},        {"mod", "mod", NUMBER},
    {"power", "pow", NUMBER},      {"maximum", "max", NUMBER},
    {"minimum", "min", NUMBER},    {"equal", "equal", TRUTH},
    {"greater", "greater", TRUTH}, {"greaterequal", "greater_or_equal", TRUTH},
    {"lesser", "less", TRUTH},     {"lesserequal", "less_or_equal", TRUTH},
    {"logicaland", "and", LOGIC},  {"logicalor", "or", LOGIC},
    {"logicalxor", "xor", LOGIC},
};

/* The row of an operator of two operands under the names of all versions, as "broadcast_add",
 * "_Plus", "_rminus_scalar", "_RMinusScalar"; NULL: none. *scalar: the second operand is an
 * attribute; *turned: the operands are exchanged. */
static const struct binary *binary_of(const char *op, int *scalar, int *turned) {
    static const char *const fronts[] = {"broadcast_", "elemwise_", "_"};
    char name[32];
    size_t front = 0, n = 0;
    for (size_t i = 0; i < 3 && !front; i++)
        if (strncmp(op, fronts[i], strlen(fronts[i])) == 0) front = strlen(fronts[i]);
    if (!front || strlen(op) >= sizeof name) return NULL;
    for (op += front; *op; op++)
        if (*op != '_') name[n++] = (char)(*op >= 'A' && *op <= 'Z' ? *op + 32 : *op);
    name[n] = 0;
    *scalar = n > 6 && strcmp(name + n - 6, "scalar") == 0;
    if (*scalar) name[n - 6] = 0;
    for (*turned = 0; *turned <= (*scalar && name[0] == 'r'); ++*turned)
        for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++)
            if (strcmp(binaries[i].name, name + *turned) == 0) return &binaries[i];
    return NULL;
}

/* Converts an operator of two operands, or of one and a number; comparisons give floats. */
static void binary(mx_job *j) {
    int scalar, turned;
    const struct binary *row = binary_of(j->n->op, &scalar, &turned);
    cnr_value b = scalar
                      ? imp_scalar(&j->net->b, j->n->name, ".scalar", mx_float(j->n, "scalar", 0))
                      : mx_data(j, 1);
    cnr_value a = j->x;
    if (j->failed) return;
    if (row->kind == LOGIC) {
        a = cast(j, ".first", a, CNR_bool);
        b = cast(j, ".second", b, CNR_bool);
    }
    const cnr_value y = mx_op(j, row->op, row->kind == NUMBER ? "" : ".truth",
                              turned ? (cnr_value[]){b, a} : (cnr_value[]){a, b}, 2, NULL);
    mx_give(j, row->kind == NUMBER ? y : cast(j, "", y, CNR_f32));
}

/* Converts add_n and ElementWiseSum: the sum of all inputs. */
static void sum_of(mx_job *j) {
    cnr_value y = j->x;
    for (int32_t i = 1; i < j->n_in; i++) {
        const cnr_value other = mx_data(j, i);
        char suffix[32] = "";
        if (j->failed) return;
        if (i + 1 < j->n_in) snprintf(suffix, sizeof suffix, ".part%d", (int)i);
        y = mx_op(j, "add", suffix, (cnr_value[]){y, other}, 2, NULL);
    }
    mx_give(j, y);
}

/* Converts where: the second input where the first is not 0, else the third. */
static void where(mx_job *j) {
    const cnr_value yes = mx_data(j, 1), no = mx_data(j, 2);
    if (j->failed) return;
    const cnr_value truth = cast(j, ".truth", j->x, CNR_bool);
    mx_give(j, mx_op(j, "where", "", (cnr_value[]){truth, yes, no}, 3, NULL));
}

mx_convert mx_pointwise_row(const mx_node *n, int *flags) {
    static const mx_row rows[] = {
        IMP_LAYER("Activation", activation),
        IMP_LAYER("BatchNorm", batch_norm),
        IMP_LAYER("BatchNorm_v1", batch_norm),
        IMP_LAYER("BlockGrad", pass),
        IMP_LAYER("Cast", cast_to),
        IMP_LAYER("CuDNNBatchNorm", batch_norm),
        IMP_LAYER("ElementWiseSum", sum_of),
        IMP_LAYER("GroupNorm", group_norm),
        IMP_LAYER("IdentityAttachKLSparseReg", pass),
        IMP_LAYER("InstanceNorm", instance_norm),
        IMP_LAYER("L2Normalization", l2_normalization),
        IMP_LAYER("LRN", lrn),
        IMP_LAYER("LayerNorm", layer_norm),
        IMP_LAYER("LeakyReLU", leaky_relu),
        IMP_LAYER("LinearRegressionOutput", pass),
        IMP_LAYER("MAERegressionOutput", pass),
        IMP_LAYER("MakeLoss", pass),
        IMP_LAYER("SVMOutput", pass),
        IMP_LAYER("Softmax", softmax),
        IMP_LAYER("SoftmaxActivation", softmax),
        IMP_LAYER("SoftmaxOutput", softmax),
        IMP_LAYER("_contrib_SyncBatchNorm", batch_norm),
        IMP_LAYER("_copy", pass),
        IMP_LAYER("add_n", sum_of),
        IMP_LAYER("amp_cast", cast_to),
        IMP_LAYER("cast", cast_to),
        IMP_LAYER("clip", clip),
        IMP_LAYER("fix", round_off),
        IMP_LAYER("hard_sigmoid", hard_sigmoid),
        IMP_LAYER("identity", pass),
        IMP_LAYER("log_softmax", softmax),
        IMP_LAYER("make_loss", pass),
        IMP_LAYER("round", round_off),
        IMP_LAYER("rsqrt", rsqrt),
        IMP_LAYER("softmax", softmax),
        IMP_LAYER("softmin", softmax),
        IMP_LAYER("square", square),
        IMP_LAYER("stop_gradient", pass),
        IMP_LAYER("trunc", round_off),
        IMP_LAYER("where", where),
    };
    int scalar, turned;
    const mx_row *row = IMP_ROW_OF(rows, n->op);
    if (row) {
        const int fallback = row->convert == layer_norm ? -1 : 1;
        *flags = (mx_int(n, "axis", fallback) == 1 || row->convert == softmax ? MX_OPEN : 0) |
                 (row->convert == batch_norm ? MX_OWN_INPUT : 0);
        return row->convert;
    }
    *flags = MX_OPEN;
    if (IMP_ROW_OF(unaries, n->op)) return unary;
    return binary_of(n->op, &scalar, &turned) ? binary : NULL;
}
