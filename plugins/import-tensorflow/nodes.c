/* TensorFlow's operators into ours. */
#include "tensorflow.h"

#include <stdio.h>

enum { MAX_IN = 256, MAX_ATTRS = 12 };

typedef struct job {
    tf_net *net;
    tf_entry *entry;
    const char *op, *name;
    tf_twins *in[MAX_IN]; /* data inputs only */
    int32_t n_in;
} job;

static void problem(job *j, const char *text) {
    tf_host->graph_problem(j->net->graph, j->net->path, "node %s (%s): %s", j->name, j->op, text);
    j->entry->failed = 1;
}

/* ---- attributes of theirs ---- */

static const Tf__AttrValue *attr(const job *j, const char *key) {
    const Tf__NodeDef *n = j->entry->node;
    for (size_t i = 0; i < n->n_attr; i++)
        if (n->attr[i]->key && strcmp(n->attr[i]->key, key) == 0) return n->attr[i]->value;
    return NULL;
}
static int attr_is(const job *j, const char *key, const char *value) {
    const Tf__AttrValue *a = attr(j, key);
    return a && a->has_s && a->s.len == strlen(value) && memcmp(a->s.data, value, a->s.len) == 0;
}
static int64_t attr_int(const job *j, const char *key, int64_t fallback) {
    const Tf__AttrValue *a = attr(j, key);
    return a && a->has_i ? a->i : fallback;
}
static int attr_bool(const job *j, const char *key) {
    const Tf__AttrValue *a = attr(j, key);
    return a && a->has_b && a->b;
}
static double attr_float(const job *j, const char *key, double fallback) {
    const Tf__AttrValue *a = attr(j, key);
    return a && a->has_f ? (double)a->f : fallback;
}

/* ---- attributes of ours ---- */

typedef struct list {
    cnr_attr at[MAX_ATTRS];
    const cnr_attr *ptr[MAX_ATTRS];
    int32_t n;
} list;

static cnr_attr *add(list *l, const char *name, int32_t type) {
    cnr_attr *a = &l->at[l->n];
    memset(a, 0, sizeof *a);
    a->name = name;
    a->type = type;
    l->ptr[l->n++] = a;
    return a;
}
static void put_int(list *l, const char *name, int64_t v) { add(l, name, CNR_ATTR_INT)->i = v; }
static void put_bool(list *l, const char *name, int v) { add(l, name, CNR_ATTR_BOOL)->i = v != 0; }
static void put_float(list *l, const char *name, double v) { add(l, name, CNR_ATTR_FLOAT)->f = v; }
static void put_enum(list *l, const char *name, const char *v) { add(l, name, CNR_ATTR_ENUM)->s = v; }
static void put_ints(list *l, const char *name, const int64_t *v, int64_t n) {
    cnr_attr *a = add(l, name, CNR_ATTR_INTS);
    a->ints = v;
    a->n = n;
}

/* ---- values ---- */

static void give(job *j, int32_t k, cnr_value plain, cnr_value turned) {
    if (k < j->entry->n_out) j->entry->out[k] = (tf_twins){plain, turned};
}
static cnr_value plain(job *j, int32_t k) {
    return k < j->n_in ? tf_plain(j->net, j->in[k]) : -1;
}
static cnr_value turned(job *j, int32_t k) {
    return k < j->n_in ? tf_turned(j->net, j->in[k]) : -1;
}
static int32_t dims(const job *j, int32_t k, int64_t *dim) {
    return k < j->n_in ? tf_dims(j->net, j->in[k], dim) : -1;
}
static cnr_value step(job *j, const char *op, const char *name, const cnr_value *in, int32_t n,
                      const list *l) {
    return tf_node(j->net, op, name, in, n, l ? l->ptr : NULL, l ? l->n : 0);
}

static cnr_value constant(job *j, const cnr_tensor *t) {
    char name[64];
    snprintf(name, sizeof name, "step%d.value", (int)++j->net->n_made);
    return tf_host->graph_constant(j->net->graph, name, t);
}
static cnr_value constant_f32(job *j, const float *v, int64_t n, int32_t rank) {
    const cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = rank, .dim = {n},
                          .flags = CNR_TENSOR_CONST, .data = (void *)v, .bytes = (uint64_t)n * 4};
    return constant(j, &t);
}

/* The integers of input k when they are known now; -1 with a problem otherwise. */
static int64_t known_ints(job *j, int32_t k, int64_t *out, int64_t max) {
    const cnr_value v = plain(j, k);
    const cnr_tensor *t = v < 0 ? NULL : tf_host->graph_type(j->net->graph, v);
    const int64_t n = t ? cnr_count(t) : -1;
    if (!t || !(t->flags & CNR_TENSOR_CONST) || !t->data || n < 0 || n > max ||
        (t->dtype != CNR_i32 && t->dtype != CNR_i64)) {
        if (!j->entry->failed) problem(j, "an input that shapes depend on is not a known constant");
        return -1;
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = t->dtype == CNR_i32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
    return n;
}

/* An axis of theirs as one of the twin that is used: turned ones have C at 1. */
static int64_t turn_axis(int64_t axis) {
    static const int64_t to[] = {0, 2, 3, 1};
    return axis >= 0 && axis < 4 ? to[axis] : axis;
}

static int is_nchw(const job *j) {
    return attr_is(j, "data_format", "NCHW");
}

/* A picture input as N C H W, whatever data_format says of it. */
static cnr_value picture(job *j, int32_t k) {
    return is_nchw(j) ? plain(j, k) : turned(j, k);
}
static void give_picture(job *j, cnr_value v) {
    if (is_nchw(j)) give(j, 0, v, -1);
    else give(j, 0, -1, v);
}

/* ---- convolution and pooling ---- */

/* strides, ksize, dilations: four numbers in the data format's order */
static void window(const job *j, const char *key, int64_t out[2]) {
    const Tf__AttrValue *a = attr(j, key);
    const int at = is_nchw(j) ? 2 : 1;
    out[0] = out[1] = 1;
    if (!a || !a->list || a->list->n_i < 4) return;
    out[0] = a->list->i[at];
    out[1] = a->list->i[at + 1];
}

/* Explicit pads, if any, begin then end of H and W. */
static void padding(job *j, list *l, int64_t pads[4]) {
    if (attr_is(j, "padding", "SAME")) put_enum(l, "auto_pad", "SAME_UPPER");
    else if (attr_is(j, "padding", "EXPLICIT")) {
        const Tf__AttrValue *a = attr(j, "explicit_paddings");
        const int at = is_nchw(j) ? 4 : 2;
        if (!a || !a->list || a->list->n_i < 8) return problem(j, "explicit_paddings are missing");
        pads[0] = a->list->i[at], pads[1] = a->list->i[at + 2];
        pads[2] = a->list->i[at + 1], pads[3] = a->list->i[at + 3];
        put_ints(l, "pads", pads, 4);
    }
}

/* H W I O -> O I H W (depthwise: H W C M -> C*M 1 H W) */
static cnr_value filter(job *j, int depthwise, int64_t *group) {
    int64_t d[CNR_MAX_RANK];
    static const int64_t plain_perm[] = {3, 2, 0, 1}, deep_perm[] = {2, 3, 0, 1};
    if (dims(j, 1, d) != 4) return problem(j, "its filter is not of rank 4"), -1;
    list l = {.n = 0};
    put_ints(&l, "perm", depthwise ? deep_perm : plain_perm, 4);
    const cnr_value from = plain(j, 1);
    cnr_value w = step(j, "transpose", NULL, &from, 1, &l);
    *group = 1;
    if (depthwise) {
        const int64_t shape[] = {d[2] * d[3], 1, d[0], d[1]};
        list r = {.n = 0};
        put_ints(&r, "shape", shape, 4);
        w = step(j, "reshape", NULL, &w, 1, &r);
        *group = d[2];
    }
    return w;
}

static void conv(job *j) {
    const int depthwise = strcmp(j->op, "DepthwiseConv2dNative") == 0;
    int64_t strides[2], dilations[2], pads[4], group, dx[CNR_MAX_RANK], dw[CNR_MAX_RANK];
    const cnr_value w = filter(j, depthwise, &group);
    if (j->entry->failed) return;
    if (!depthwise && dims(j, 0, dx) == 4 && dims(j, 1, dw) == 4) {
        const int64_t c = is_nchw(j) ? dx[1] : dx[3];
        if (c > 0 && dw[2] > 0 && c % dw[2] == 0) group = c / dw[2]; /* grouped by its shapes */
    }
    window(j, "strides", strides);
    window(j, "dilations", dilations);
    list l = {.n = 0};
    put_ints(&l, "strides", strides, 2);
    put_ints(&l, "dilations", dilations, 2);
    put_int(&l, "group", group);
    put_bool(&l, "bias", 0);
    padding(j, &l, pads);
    if (!j->entry->failed)
        give_picture(j, step(j, "conv", j->name, (cnr_value[]){picture(j, 0), w}, 2, &l));
}

static void pool(job *j) {
    const int max = strcmp(j->op, "MaxPool") == 0;
    int64_t kernel[2], strides[2], pads[4];
    window(j, "ksize", kernel);
    window(j, "strides", strides);
    list l = {.n = 0};
    put_ints(&l, "kernel_shape", kernel, 2);
    put_ints(&l, "strides", strides, 2);
    padding(j, &l, pads);
    if (j->entry->failed) return;
    const cnr_value x = picture(j, 0);
    give_picture(j, step(j, max ? "max_pool" : "average_pool", j->name, &x, 1, &l));
}

/* The transposed convolution: sizes, filter H W O I, x. */
static void conv_input_grad(job *j) {
    int64_t size[4], strides[2], d[CNR_MAX_RANK];
    static const int64_t perm[] = {3, 2, 0, 1};
    if (known_ints(j, 0, size, 4) != 4 || dims(j, 1, d) != 4) return;
    list t = {.n = 0}, l = {.n = 0};
    put_ints(&t, "perm", perm, 4);
    const cnr_value f = plain(j, 1);
    const cnr_value w = step(j, "transpose", NULL, &f, 1, &t);
    window(j, "strides", strides);
    const int at = is_nchw(j) ? 2 : 1;
    const int64_t shape[] = {size[at], size[at + 1]};
    put_ints(&l, "strides", strides, 2);
    put_ints(&l, "output_shape", shape, 2);
    put_bool(&l, "bias", 0);
    if (attr_is(j, "padding", "SAME")) put_enum(&l, "auto_pad", "SAME_UPPER");
    give_picture(j, step(j, "conv_transpose", j->name, (cnr_value[]){picture(j, 2), w}, 2, &l));
}

static void bias_add(job *j) {
    const int32_t rank = dims(j, 0, (int64_t[CNR_MAX_RANK]){0});
    int64_t c[CNR_MAX_RANK];
    if (rank != 4 || (is_nchw(j) ? 0 : j->in[0]->turned < 0)) {
        if (rank == 4 && is_nchw(j)) goto channels;
        return give(j, 0, step(j, "add", j->name, (cnr_value[]){plain(j, 0), plain(j, 1)}, 2, NULL), -1);
    }
channels:
    if (dims(j, 1, c) != 1) return problem(j, "its bias is not of rank 1");
    const int64_t axes[] = {1, 2};
    list l = {.n = 0};
    put_ints(&l, "axes", axes, 2);
    const cnr_value b = plain(j, 1);
    const cnr_value bias = step(j, "unsqueeze", NULL, &b, 1, &l);
    give_picture(j, step(j, "add", j->name, (cnr_value[]){picture(j, 0), bias}, 2, NULL));
}

static void batch_norm(job *j) {
    if (attr(j, "is_training") && attr_bool(j, "is_training"))
        return problem(j, "is_training is not supported");
    list l = {.n = 0};
    put_float(&l, "epsilon", attr_float(j, "epsilon", 1e-4));
    const cnr_value from[] = {picture(j, 0), plain(j, 1), plain(j, 2), plain(j, 3), plain(j, 4)};
    give_picture(j, step(j, "batch_normalization", j->name, from, 5, &l));
}

/* ---- element-wise ---- */

static const struct {
    const char *theirs, *ours;
} unary_names[] = {
    {"Relu", "relu"}, {"Relu6", "relu6"}, {"Elu", "elu"}, {"Selu", "selu"}, {"Sigmoid", "sigmoid"},
    {"Tanh", "tanh"}, {"Softplus", "softplus"}, {"Softsign", "softsign"}, {"Exp", "exp"},
    {"Log", "log"}, {"Neg", "neg"}, {"Abs", "abs"}, {"Sqrt", "sqrt"}, {"Reciprocal", "reciprocal"},
    {"Inv", "reciprocal"}, {"Floor", "floor"}, {"Ceil", "ceil"}, {"Round", "round"},
    {"Sign", "sign"}, {"Erf", "erf"}, {"Sin", "sin"}, {"Cos", "cos"}, {"LogicalNot", "not"},
}, binary_names[] = {
    {"Add", "add"}, {"AddV2", "add"}, {"Sub", "sub"}, {"Mul", "mul"}, {"RealDiv", "div"},
    {"Div", "div"}, {"Maximum", "max"}, {"Minimum", "min"}, {"Pow", "pow"}, {"Greater", "greater"},
    {"GreaterEqual", "greater_or_equal"}, {"Less", "less"}, {"LessEqual", "less_or_equal"},
    {"Equal", "equal"}, {"LogicalAnd", "and"}, {"LogicalOr", "or"},
};

/* One operand: it stays in the layout it has. */
static void apply(job *j, const char *op, const list *l) {
    if (j->in[0]->turned >= 0)
        give(j, 0, -1, step(j, op, j->name, &j->in[0]->turned, 1, l));
    else {
        const cnr_value x = plain(j, 0);
        give(j, 0, step(j, op, j->name, &x, 1, l), -1);
    }
}

static void unary(job *j) {
    for (size_t i = 0; i < sizeof unary_names / sizeof unary_names[0]; i++)
        if (strcmp(unary_names[i].theirs, j->op) == 0) return apply(j, unary_names[i].ours, NULL);
}

static void leaky_relu(job *j) {
    list l = {.n = 0};
    put_float(&l, "alpha", attr_float(j, "alpha", 0.2));
    apply(j, "leaky_relu", &l);
}

static void rsqrt(job *j) {
    const cnr_value x = plain(j, 0);
    const cnr_value root = step(j, "sqrt", NULL, &x, 1, NULL);
    give(j, 0, step(j, "reciprocal", j->name, &root, 1, NULL), -1);
}

/* Operand k laid out for a turned partner: rank 4 turned, rank 1 along the channels, scalars as
 * they are; -1 when it can't be. */
static cnr_value beside_turned(job *j, int32_t k) {
    int64_t d[CNR_MAX_RANK];
    const int32_t rank = dims(j, k, d);
    if (rank == 4) return turned(j, k);
    if (rank == 0) return plain(j, k);
    if (rank != 1) return -1;
    const int64_t axes[] = {1, 2};
    list l = {.n = 0};
    put_ints(&l, "axes", axes, 2);
    const cnr_value v = plain(j, k);
    return d[0] == 1 ? v : step(j, "unsqueeze", NULL, &v, 1, &l);
}

static void binary_op(job *j, const char *op) {
    if (j->n_in != 2) return problem(j, "two inputs are wanted");
    if (j->in[0]->turned >= 0 || j->in[1]->turned >= 0) {
        int64_t a[CNR_MAX_RANK], b[CNR_MAX_RANK];
        const int32_t ra = dims(j, 0, a), rb = dims(j, 1, b);
        const int fits = (ra == 4 || ra <= 1) && (rb == 4 || rb <= 1) && ra >= 0 && rb >= 0;
        if (fits) {
            const cnr_value in[] = {beside_turned(j, 0), beside_turned(j, 1)};
            return give(j, 0, -1, step(j, op, j->name, in, 2, NULL));
        }
    }
    give(j, 0, step(j, op, j->name, (cnr_value[]){plain(j, 0), plain(j, 1)}, 2, NULL), -1);
}

static void binary(job *j) {
    for (size_t i = 0; i < sizeof binary_names / sizeof binary_names[0]; i++)
        if (strcmp(binary_names[i].theirs, j->op) == 0) return binary_op(j, binary_names[i].ours);
}

static void squared(job *j) {
    const int t = j->in[0]->turned >= 0;
    const cnr_value x = t ? j->in[0]->turned : plain(j, 0);
    cnr_value y;
    if (strcmp(j->op, "Square") == 0)
        y = step(j, "mul", j->name, (cnr_value[]){x, x}, 2, NULL);
    else { /* SquaredDifference */
        const cnr_value d = step(j, "sub", NULL, (cnr_value[]){plain(j, 0), plain(j, 1)}, 2, NULL);
        return give(j, 0, step(j, "mul", j->name, (cnr_value[]){d, d}, 2, NULL), -1);
    }
    give(j, 0, t ? -1 : y, t ? y : -1);
}

static void add_n(job *j) {
    cnr_value in[MAX_IN];
    for (int32_t i = 0; i < j->n_in; i++) in[i] = plain(j, i);
    give(j, 0, step(j, "sum", j->name, in, j->n_in, NULL), -1);
}

static void pass(job *j) {
    *j->entry->out = *j->in[0];
}

static void cast(job *j) {
    const Tf__AttrValue *a = attr(j, "DstT");
    list l = {.n = 0};
    add(&l, "to", CNR_ATTR_DTYPE)->i = a ? tf_dtype(a->type) : 0;
    if (!l.at[0].i) return problem(j, "its data type is not supported");
    apply(j, "cast", &l);
}

static void select_op(job *j) {
    give(j, 0, step(j, "where", j->name, (cnr_value[]){plain(j, 0), plain(j, 1), plain(j, 2)}, 3, NULL),
         -1);
}

/* value = min + (max - min) / 255 * stored: the 8-bit range over [min, max] */
static void dequantize(job *j) {
    if (attr(j, "mode") && !attr_is(j, "mode", "MIN_COMBINED") && !attr_is(j, "mode", "MIN_FIRST"))
        return problem(j, "only the modes MIN_COMBINED and MIN_FIRST are supported");
    const cnr_value q = plain(j, 0), lo = plain(j, 1), hi = plain(j, 2);
    const cnr_tensor *t = q < 0 ? NULL : tf_host->graph_type(j->net->graph, q);
    if (!t || (t->dtype != CNR_u8 && t->dtype != CNR_i8)) return problem(j, "8 bits are wanted");
    const float steps = 255, half = 128;
    list f = {.n = 0};
    add(&f, "to", CNR_ATTR_DTYPE)->i = CNR_f32;
    cnr_value x = step(j, "cast", NULL, &q, 1, &f);
    if (t->dtype == CNR_i8)
        x = step(j, "add", NULL, (cnr_value[]){x, constant_f32(j, &half, 1, 0)}, 2, NULL);
    cnr_value range = step(j, "sub", NULL, (cnr_value[]){hi, lo}, 2, NULL);
    range = step(j, "div", NULL, (cnr_value[]){range, constant_f32(j, &steps, 1, 0)}, 2, NULL);
    x = step(j, "mul", NULL, (cnr_value[]){x, range}, 2, NULL);
    give(j, 0, step(j, "add", j->name, (cnr_value[]){x, lo}, 2, NULL), -1);
}

/* ---- matrices, softmax ---- */

static void mat_mul(job *j) {
    list l = {.n = 0};
    put_bool(&l, "transA", attr_bool(j, "transpose_a"));
    put_bool(&l, "transB", attr_bool(j, "transpose_b"));
    give(j, 0, step(j, "gemm", j->name, (cnr_value[]){plain(j, 0), plain(j, 1)}, 2, &l), -1);
}

static void batch_mat_mul(job *j) {
    if (attr_bool(j, "adj_x") || attr_bool(j, "adj_y")) return problem(j, "adj_x and adj_y are not supported");
    give(j, 0, step(j, "matmul", j->name, (cnr_value[]){plain(j, 0), plain(j, 1)}, 2, NULL), -1);
}

static void softmax(job *j) {
    list l = {.n = 0};
    const int t = j->in[0]->turned >= 0;
    put_int(&l, "axis", t ? 1 : -1);
    apply(j, strcmp(j->op, "LogSoftmax") == 0 ? "log_softmax" : "softmax", &l);
}

static void lrn(job *j) {
    const int64_t radius = attr_int(j, "depth_radius", 5), size = 2 * radius + 1;
    list l = {.n = 0};
    put_int(&l, "size", size);
    put_float(&l, "alpha", attr_float(j, "alpha", 1) * (double)size); /* ours divides by the size */
    put_float(&l, "beta", attr_float(j, "beta", 0.5));
    put_float(&l, "bias", attr_float(j, "bias", 1));
    const cnr_value x = turned(j, 0);
    give(j, 0, -1, step(j, "lrn", j->name, &x, 1, &l));
}

/* ---- movement ---- */

static void reshape(job *j) {
    list l = {.n = 0};
    put_bool(&l, "allowzero", 1); /* TensorFlow has no "copy this dimension" */
    list i64 = {.n = 0};
    add(&i64, "to", CNR_ATTR_DTYPE)->i = CNR_i64;
    const cnr_value s = plain(j, 1);
    const cnr_value shape = step(j, "cast", NULL, &s, 1, &i64);
    give(j, 0, step(j, "reshape", j->name, (cnr_value[]){plain(j, 0), shape}, 2, &l), -1);
}

static void squeeze(job *j) {
    const Tf__AttrValue *a = attr(j, "squeeze_dims");
    if (!a || !a->list || !a->list->n_i) a = attr(j, "axis");
    list l = {.n = 0};
    if (a && a->list && a->list->n_i) put_ints(&l, "axes", a->list->i, (int64_t)a->list->n_i);
    const cnr_value x = plain(j, 0);
    give(j, 0, step(j, "squeeze", j->name, &x, 1, &l), -1);
}

static void expand_dims(job *j) {
    int64_t axis;
    if (known_ints(j, 1, &axis, 1) != 1) return;
    list l = {.n = 0};
    put_ints(&l, "axes", &axis, 1);
    const cnr_value x = plain(j, 0);
    give(j, 0, step(j, "unsqueeze", j->name, &x, 1, &l), -1);
}

static void transpose(job *j) {
    int64_t perm[CNR_MAX_RANK];
    const int64_t n = known_ints(j, 1, perm, CNR_MAX_RANK);
    if (n < 0) return;
    list l = {.n = 0};
    put_ints(&l, "perm", perm, n);
    const cnr_value x = plain(j, 0);
    give(j, 0, step(j, "transpose", j->name, &x, 1, &l), -1);
}

static void concat(job *j) {
    const int first = strcmp(j->op, "Concat") == 0; /* the old one has the axis first */
    const int32_t n = j->n_in - 1;
    int64_t axis, d[CNR_MAX_RANK];
    cnr_value in[MAX_IN];
    if (n < 1 || known_ints(j, first ? 0 : n, &axis, 1) != 1) return;
    const int32_t rank = dims(j, first, d);
    if (axis < 0) axis += rank;
    int all = rank == 4;
    for (int32_t i = 0; i < n; i++) all &= j->in[i + first]->turned >= 0;
    list l = {.n = 0};
    put_int(&l, "axis", all ? turn_axis(axis) : axis);
    for (int32_t i = 0; i < n; i++) in[i] = all ? turned(j, i + first) : plain(j, i + first);
    const cnr_value y = step(j, "concat", j->name, in, n, &l);
    give(j, 0, all ? -1 : y, all ? y : -1);
}

static void split(job *j) {
    const int sized = strcmp(j->op, "SplitV") == 0;
    int64_t axis, sizes[TF_MAX_OUTPUTS], n = attr_int(j, "num_split", 1);
    cnr_value out[TF_MAX_OUTPUTS];
    if (n < 1 || n > TF_MAX_OUTPUTS || known_ints(j, sized ? 2 : 0, &axis, 1) != 1) {
        if (!j->entry->failed) problem(j, "num_split is out of range");
        return;
    }
    if (sized && known_ints(j, 1, sizes, TF_MAX_OUTPUTS) != n) return;
    list l = {.n = 0};
    put_int(&l, "axis", axis);
    if (sized) put_ints(&l, "split", sizes, n);
    else put_int(&l, "num_outputs", n);
    const cnr_value x = plain(j, sized ? 0 : 1);
    for (int64_t i = 0; i < n; i++) out[i] = -1;
    tf_host->graph_node(j->net->graph, "split", j->name, j->net->path, &x, 1, l.ptr, l.n, out,
                        (int32_t)n);
    for (int32_t i = 0; i < n; i++) give(j, i, out[i], -1);
}

static void pad(job *j) {
    int64_t p[2 * CNR_MAX_RANK], pads[2 * CNR_MAX_RANK], d[CNR_MAX_RANK];
    const int32_t rank = dims(j, 0, d);
    if (rank < 1 || known_ints(j, 1, p, 2 * CNR_MAX_RANK) != 2 * rank) {
        if (!j->entry->failed) problem(j, "two paddings an axis are wanted");
        return;
    }
    const int t = rank == 4 && j->in[0]->turned >= 0;
    for (int32_t i = 0; i < rank; i++) {
        const int64_t to = t ? turn_axis(i) : i;
        pads[to] = p[2 * i];
        pads[rank + to] = p[2 * i + 1];
    }
    list l = {.n = 0};
    put_ints(&l, "pads", pads, 2 * rank);
    if (attr_is(j, "mode", "REFLECT")) put_enum(&l, "mode", "reflect");
    else if (attr(j, "mode") && attr(j, "mode")->has_s) return problem(j, "this mode is not supported");
    cnr_value in[3] = {t ? turned(j, 0) : plain(j, 0), -1, -1};
    int32_t n = 1;
    if (strcmp(j->op, "PadV2") == 0) in[2] = plain(j, 2), n = 3;
    const cnr_value y = step(j, "pad", j->name, in, n, &l);
    give(j, 0, t ? -1 : y, t ? y : -1);
}

static void slice(job *j) {
    int64_t begin[CNR_MAX_RANK], size[CNR_MAX_RANK], axes[CNR_MAX_RANK];
    const int64_t n = known_ints(j, 1, begin, CNR_MAX_RANK);
    if (n < 0 || known_ints(j, 2, size, CNR_MAX_RANK) != n) return;
    for (int64_t i = 0; i < n; i++) {
        axes[i] = i;
        size[i] = size[i] < 0 ? INT64_MAX : begin[i] + size[i];
    }
    list l = {.n = 0};
    put_ints(&l, "starts", begin, n);
    put_ints(&l, "ends", size, n);
    put_ints(&l, "axes", axes, n);
    const cnr_value x = plain(j, 0);
    give(j, 0, step(j, "slice", j->name, &x, 1, &l), -1);
}

static void strided_slice(job *j) {
    int64_t b[CNR_MAX_RANK], e[CNR_MAX_RANK], s[CNR_MAX_RANK], d[CNR_MAX_RANK];
    int64_t axes[CNR_MAX_RANK], starts[CNR_MAX_RANK], ends[CNR_MAX_RANK], steps[CNR_MAX_RANK];
    int64_t gone[CNR_MAX_RANK], n_gone = 0, k = 0;
    const int64_t n = known_ints(j, 1, b, CNR_MAX_RANK);
    if (n < 0 || known_ints(j, 2, e, CNR_MAX_RANK) != n || known_ints(j, 3, s, CNR_MAX_RANK) != n) return;
    const int64_t no_begin = attr_int(j, "begin_mask", 0), no_end = attr_int(j, "end_mask", 0);
    const int64_t shrink = attr_int(j, "shrink_axis_mask", 0);
    const int32_t rank = dims(j, 0, d);
    if (attr_int(j, "ellipsis_mask", 0) || attr_int(j, "new_axis_mask", 0))
        return problem(j, "ellipsis_mask and new_axis_mask are not supported");
    for (int64_t i = 0; i < n; i++, k++) {
        const int back = s[i] < 0;
        axes[k] = i;
        steps[k] = s[i];
        starts[k] = no_begin >> i & 1 ? (back ? INT64_MAX : 0) : b[i];
        ends[k] = no_end >> i & 1 ? (back ? INT64_MIN + 1 : INT64_MAX) : e[i];
        if (shrink >> i & 1) {
            starts[k] = b[i];
            ends[k] = b[i] == -1 ? INT64_MAX : b[i] + 1;
            steps[k] = 1;
            gone[n_gone++] = i;
        }
    }
    (void)rank;
    list l = {.n = 0}, q = {.n = 0};
    put_ints(&l, "starts", starts, k);
    put_ints(&l, "ends", ends, k);
    put_ints(&l, "axes", axes, k);
    put_ints(&l, "steps", steps, k);
    put_ints(&q, "axes", gone, n_gone);
    const cnr_value x = plain(j, 0);
    cnr_value y = step(j, "slice", n_gone ? NULL : j->name, &x, 1, &l);
    if (n_gone) y = step(j, "squeeze", j->name, &y, 1, &q);
    give(j, 0, y, -1);
}

static void pack(job *j) {
    int64_t axis = attr_int(j, "axis", 0);
    cnr_value in[MAX_IN];
    list u = {.n = 0}, l = {.n = 0};
    put_ints(&u, "axes", &axis, 1);
    put_int(&l, "axis", axis);
    for (int32_t i = 0; i < j->n_in; i++) {
        const cnr_value v = plain(j, i);
        in[i] = step(j, "unsqueeze", NULL, &v, 1, &u);
    }
    give(j, 0, step(j, "concat", j->name, in, j->n_in, &l), -1);
}

static void shape(job *j) {
    const cnr_value x = plain(j, 0);
    const Tf__AttrValue *a = attr(j, "out_type");
    const int wide = a && a->type == 9;
    cnr_value y = step(j, "shape", wide ? j->name : NULL, &x, 1, NULL);
    list l = {.n = 0};
    add(&l, "to", CNR_ATTR_DTYPE)->i = CNR_i32;
    if (!wide) y = step(j, "cast", j->name, &y, 1, &l);
    give(j, 0, y, -1);
}

static void gather(job *j) {
    int64_t axis = 0;
    if (j->n_in > 2 && known_ints(j, 2, &axis, 1) != 1) return;
    list l = {.n = 0};
    put_int(&l, "axis", axis);
    give(j, 0, step(j, "gather", j->name, (cnr_value[]){plain(j, 0), plain(j, 1)}, 2, &l), -1);
}

static void fill(job *j) {
    list l = {.n = 0};
    add(&l, "to", CNR_ATTR_DTYPE)->i = CNR_i64;
    const cnr_value s = plain(j, 0);
    const cnr_value size = step(j, "cast", NULL, &s, 1, &l);
    give(j, 0, step(j, "expand", j->name, (cnr_value[]){plain(j, 1), size}, 2, NULL), -1);
}

static void tile(job *j) {
    int64_t repeats[CNR_MAX_RANK];
    const int64_t n = known_ints(j, 1, repeats, CNR_MAX_RANK);
    if (n < 0) return;
    list l = {.n = 0};
    put_ints(&l, "repeats", repeats, n);
    const cnr_value x = plain(j, 0);
    give(j, 0, step(j, "tile", j->name, &x, 1, &l), -1);
}

static void resize(job *j) {
    int64_t size[2];
    const int aligned = attr_bool(j, "align_corners"), half = attr_bool(j, "half_pixel_centers");
    const int linear = strcmp(j->op, "ResizeBilinear") == 0;
    if (known_ints(j, 1, size, 2) != 2) return;
    const int64_t axes[] = {2, 3};
    list l = {.n = 0};
    put_ints(&l, "axes", axes, 2);
    put_ints(&l, "sizes", size, 2);
    put_enum(&l, "mode", linear ? "linear" : "nearest");
    put_enum(&l, "coordinate_transformation_mode",
             aligned ? "align_corners" : half ? "half_pixel" : "asymmetric");
    put_enum(&l, "nearest_mode", aligned ? "round_prefer_ceil" : "floor");
    const cnr_value x = turned(j, 0);
    give(j, 0, -1, step(j, "resize", j->name, &x, 1, &l));
}

static const struct {
    const char *theirs, *ours;
} reductions[] = {{"Mean", "reduce_mean"}, {"Sum", "reduce_sum"}, {"Max", "reduce_max"},
                  {"Min", "reduce_min"}, {"Prod", "reduce_prod"}};

static void reduce(job *j) {
    int64_t axes[CNR_MAX_RANK], d[CNR_MAX_RANK];
    const int64_t n = known_ints(j, 1, axes, CNR_MAX_RANK);
    const int32_t rank = dims(j, 0, d);
    const int keep = attr_bool(j, "keep_dims") || attr_bool(j, "keepdims");
    if (n < 0 || rank < 0) return;
    /* Turned pictures may stay so while the axes are kept, or when only the channels are left. */
    int spatial = n == 2 && rank == 4;
    for (int64_t i = 0; i < n; i++) {
        if (axes[i] < 0) axes[i] += rank;
        spatial &= axes[i] == 1 || axes[i] == 2;
    }
    const int t = j->in[0]->turned >= 0 && (keep || spatial);
    for (int64_t i = 0; i < n && t; i++) axes[i] = turn_axis(axes[i]);
    list l = {.n = 0};
    put_ints(&l, "axes", axes, n);
    put_bool(&l, "keepdims", keep);
    const cnr_value x = t ? turned(j, 0) : plain(j, 0);
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++)
        if (strcmp(reductions[i].theirs, j->op) == 0) {
            const cnr_value y = step(j, reductions[i].ours, j->name, &x, 1, &l);
            give(j, 0, t && keep ? -1 : y, t && keep ? y : -1);
        }
}

static void arg_max(job *j) {
    int64_t axis;
    if (known_ints(j, 1, &axis, 1) != 1) return;
    list l = {.n = 0};
    put_int(&l, "axis", axis);
    put_bool(&l, "keepdims", 0);
    const cnr_value x = plain(j, 0);
    give(j, 0, step(j, strcmp(j->op, "ArgMax") == 0 ? "arg_max" : "arg_min", j->name, &x, 1, &l), -1);
}

/* Dilation by way of the batch: both take rank 4 with two spatial blocks. */
static void space_batch(job *j) {
    const int to_batch = strcmp(j->op, "SpaceToBatchND") == 0;
    int64_t block[2], edge[4], d[CNR_MAX_RANK];
    if (known_ints(j, 1, block, 2) != 2 || known_ints(j, 2, edge, 4) != 4) {
        if (!j->entry->failed) problem(j, "two spatial blocks are wanted");
        return;
    }
    const cnr_value in = turned(j, 0);
    const cnr_tensor *x = in < 0 ? NULL : tf_host->graph_type(j->net->graph, in);
    if (!x || x->rank != 4) return problem(j, "its input is not of rank 4");
    memcpy(d, x->dim, sizeof x->dim);
    if (d[1] < 0 || d[2] < 0 || d[3] < 0 || block[0] < 1 || block[1] < 1)
        return problem(j, "the sizes of its input are not known: give --option shape=HEIGHT,WIDTH,CHANNELS");
    list p = {.n = 0}, r1 = {.n = 0}, tr = {.n = 0}, r2 = {.n = 0};
    cnr_value y;
    if (to_batch) {
        const int64_t pads[] = {0, 0, edge[0], edge[2], 0, 0, edge[1], edge[3]};
        const int64_t h = (d[2] + edge[0] + edge[1]) / block[0], w = (d[3] + edge[2] + edge[3]) / block[1];
        const int64_t cut[] = {-1, d[1], h, block[0], w, block[1]}, perm[] = {3, 5, 0, 1, 2, 4};
        const int64_t join[] = {-1, d[1], h, w};
        put_ints(&p, "pads", pads, 8);
        put_ints(&r1, "shape", cut, 6);
        put_ints(&tr, "perm", perm, 6);
        put_ints(&r2, "shape", join, 4);
        y = step(j, "pad", NULL, &in, 1, &p);
        y = step(j, "reshape", NULL, &y, 1, &r1);
        y = step(j, "transpose", NULL, &y, 1, &tr);
        y = step(j, "reshape", j->name, &y, 1, &r2);
    } else {
        const int64_t cut[] = {block[0], block[1], -1, d[1], d[2], d[3]};
        const int64_t perm[] = {2, 3, 4, 0, 5, 1};
        const int64_t join[] = {-1, d[1], d[2] * block[0], d[3] * block[1]};
        const int64_t axes[] = {2, 3}, from[] = {edge[0], edge[2]};
        const int64_t to[] = {join[2] - edge[1], join[3] - edge[3]};
        put_ints(&r1, "shape", cut, 6);
        put_ints(&tr, "perm", perm, 6);
        put_ints(&r2, "shape", join, 4);
        put_ints(&p, "starts", from, 2);
        put_ints(&p, "ends", to, 2);
        put_ints(&p, "axes", axes, 2);
        y = step(j, "reshape", NULL, &in, 1, &r1);
        y = step(j, "transpose", NULL, &y, 1, &tr);
        y = step(j, "reshape", NULL, &y, 1, &r2);
        y = step(j, "slice", j->name, &y, 1, &p);
    }
    give(j, 0, -1, y);
}

static void depth_space(job *j) {
    list l = {.n = 0};
    put_int(&l, "blocksize", attr_int(j, "block_size", 2));
    const cnr_value x = turned(j, 0);
    give(j, 0, -1, step(j, strcmp(j->op, "DepthToSpace") == 0 ? "depth_to_space" : "space_to_depth",
                        j->name, &x, 1, &l));
}

static void constant_node(job *j) {
    const Tf__AttrValue *value = attr(j, "value");
    cnr_tensor t;
    if (!value || !value->tensor) return problem(j, "it has no value");
    const char *wrong = tf_tensor(value->tensor, &t);
    if (wrong && value->tensor->dtype == 7) { /* strings: for assertions and messages only */
        return problem(j, "string constants are not supported");
    }
    if (wrong) return problem(j, wrong);
    give(j, 0, tf_host->graph_constant(j->net->graph, j->name, &t), -1);
    tf_host->free(t.data);
}

/* The rank that the readers of a placeholder without one imply, with its channels or width when
 * their weights tell: a convolution's filter, a matrix, a bias. */
static int32_t implied(job *j, int64_t dim[CNR_MAX_RANK]) {
    const tf_net *net = j->net;
    for (int32_t i = 0; i < net->n; i++) {
        const Tf__NodeDef *n = net->entries[i].node;
        int32_t output;
        if (!n->op || n->n_input < 1 || tf_input(net, n->input[0], &output) != j->entry) continue;
        const int conv = strcmp(n->op, "Conv2D") == 0 || strcmp(n->op, "DepthwiseConv2dNative") == 0;
        const int matrix = strcmp(n->op, "MatMul") == 0;
        tf_entry *w = n->n_input > 1 ? tf_input(net, n->input[1], &output) : NULL;
        for (int hops = 0; w && hops < 4 && w->node->op && strcmp(w->node->op, "Identity") == 0 &&
                           w->node->n_input; hops++)
            w = tf_input(net, w->node->input[0], &output);
        const Tf__Shape *s = NULL;
        for (size_t k = 0; w && k < w->node->n_attr; k++)
            if (w->node->attr[k]->key && strcmp(w->node->attr[k]->key, "value") == 0 &&
                w->node->attr[k]->value && w->node->attr[k]->value->tensor)
                s = w->node->attr[k]->value->tensor->tensor_shape;
        if (conv || strncmp(n->op, "FusedBatchNorm", 14) == 0) {
            dim[0] = dim[1] = dim[2] = dim[3] = -1;
            if (conv && s && s->n_dim == 4) dim[3] = s->dim[2]->size;
            if (!conv && s && s->n_dim == 1) dim[3] = s->dim[0]->size;
            return 4;
        }
        if (matrix) {
            dim[0] = dim[1] = -1;
            if (s && s->n_dim == 2) dim[1] = s->dim[0]->size;
            return 2;
        }
    }
    return -1;
}

static void placeholder(job *j) {
    const Tf__AttrValue *type = attr(j, "dtype"), *shape = attr(j, "shape");
    cnr_tensor t = {.size = sizeof t, .dtype = type ? tf_dtype(type->type) : CNR_f32};
    const Tf__Shape *s = shape ? shape->shape : NULL;
    if (!t.dtype) return problem(j, "its data type is not supported");
    /* Old files write an unknown shape as no dimensions at all. */
    const int open = !s || (s->has_unknown_rank && s->unknown_rank) || s->n_dim == 0;
    t.rank = open ? tf_shape_option(j->net, t.dim) : (int32_t)s->n_dim;
    if (open && t.rank < 0) t.rank = implied(j, t.dim);
    if (t.rank < 0 && s && !(s->has_unknown_rank && s->unknown_rank)) t.rank = 0; /* a true scalar */
    if (t.rank < 0 || t.rank > CNR_MAX_RANK)
        return problem(j, "its shape is not known: give --option shape=HEIGHT,WIDTH,CHANNELS");
    for (int32_t i = 0; i < t.rank; i++) {
        if (!open) t.dim[i] = s->dim[i]->size;
        if (t.dim[i] < 0) {
            char name[300];
            snprintf(name, sizeof name, i == 0 ? "batch" : "%.250s_dim%d", j->name, (int)i);
            const int32_t k = tf_host->graph_symbol(j->net->graph, name);
            t.dim[i] = k < 0 ? CNR_DIM_UNKNOWN : CNR_DIM_SYMBOL(k);
        }
    }
    give(j, 0, tf_host->graph_input(j->net->graph, j->name, &t), -1);
}

static const struct row {
    const char *op;
    void (*convert)(job *);
    int32_t min_in;
} rows[] = {
    {"Const", constant_node, 0}, {"Placeholder", placeholder, 0}, {"Identity", pass, 1},
    {"StopGradient", pass, 1}, {"CheckNumerics", pass, 1}, {"Snapshot", pass, 1},
    {"PlaceholderWithDefault", pass, 1}, {"Conv2D", conv, 2}, {"DepthwiseConv2dNative", conv, 2},
    {"Conv2DBackpropInput", conv_input_grad, 3}, {"MaxPool", pool, 1}, {"AvgPool", pool, 1},
    {"BiasAdd", bias_add, 2}, {"FusedBatchNorm", batch_norm, 5}, {"FusedBatchNormV2", batch_norm, 5},
    {"FusedBatchNormV3", batch_norm, 5}, {"LeakyRelu", leaky_relu, 1}, {"Rsqrt", rsqrt, 1},
    {"Square", squared, 1}, {"SquaredDifference", squared, 2}, {"AddN", add_n, 1}, {"Cast", cast, 1},
    {"Select", select_op, 3}, {"Dequantize", dequantize, 3}, {"MatMul", mat_mul, 2},
    {"BatchMatMul", batch_mat_mul, 2}, {"BatchMatMulV2", batch_mat_mul, 2}, {"Softmax", softmax, 1},
    {"LogSoftmax", softmax, 1}, {"LRN", lrn, 1}, {"Reshape", reshape, 2}, {"Squeeze", squeeze, 1},
    {"ExpandDims", expand_dims, 2}, {"Transpose", transpose, 2}, {"ConcatV2", concat, 2},
    {"Concat", concat, 2}, {"Split", split, 2}, {"SplitV", split, 3}, {"Pad", pad, 2},
    {"PadV2", pad, 3}, {"MirrorPad", pad, 2}, {"Slice", slice, 3}, {"StridedSlice", strided_slice, 4},
    {"Pack", pack, 1}, {"Shape", shape, 1}, {"Gather", gather, 2}, {"GatherV2", gather, 3},
    {"Fill", fill, 2}, {"Tile", tile, 2}, {"ResizeBilinear", resize, 2},
    {"ResizeNearestNeighbor", resize, 2}, {"Mean", reduce, 2}, {"Sum", reduce, 2}, {"Max", reduce, 2},
    {"Min", reduce, 2}, {"Prod", reduce, 2}, {"ArgMax", arg_max, 2}, {"ArgMin", arg_max, 2},
    {"SpaceToBatchND", space_batch, 3}, {"BatchToSpaceND", space_batch, 3},
    {"DepthToSpace", depth_space, 1}, {"SpaceToDepth", depth_space, 1},
};

static void (*converter(const char *op, int32_t *min_in))(job *) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op, op) == 0) return *min_in = rows[i].min_in, rows[i].convert;
    *min_in = 1;
    for (size_t i = 0; i < sizeof unary_names / sizeof unary_names[0]; i++)
        if (strcmp(unary_names[i].theirs, op) == 0) return unary;
    *min_in = 2;
    for (size_t i = 0; i < sizeof binary_names / sizeof binary_names[0]; i++)
        if (strcmp(binary_names[i].theirs, op) == 0) return binary;
    return NULL;
}

void tf_convert(tf_net *net, tf_entry *entry) {
    job *j = (job *)tf_host->alloc(sizeof *j);
    if (!j) {
        net->status = CNR_E_MEMORY;
        return;
    }
    memset(j, 0, sizeof *j);
    j->net = net;
    j->entry = entry;
    j->op = entry->node->op ? entry->node->op : "";
    j->name = entry->node->name ? entry->node->name : "";
    entry->n_out = strncmp(j->op, "Split", 5) == 0 ? TF_MAX_OUTPUTS : 8;
    entry->out = (tf_twins *)tf_host->alloc((size_t)entry->n_out * sizeof(tf_twins));
    if (!entry->out) {
        entry->n_out = 0;
        net->status = CNR_E_MEMORY;
        tf_host->free(j);
        return;
    }
    for (int32_t i = 0; i < entry->n_out; i++) entry->out[i] = (tf_twins){-1, -1};
    int32_t min_in = 0;
    void (*convert)(job *) = converter(j->op, &min_in);
    for (size_t i = 0; i < entry->node->n_input; i++) {
        int32_t output;
        if (entry->node->input[i][0] == '^') continue;
        tf_entry *from = tf_input(net, entry->node->input[i], &output);
        if (j->n_in >= MAX_IN) problem(j, "too many inputs");
        else if (!from) {
            char text[200];
            snprintf(text, sizeof text, "it reads \"%.120s\", which is not there",
                     entry->node->input[i]);
            problem(j, text);
        } else if (from->failed || output >= from->n_out) {
            entry->failed = 1; /* follows from a problem already told */
        } else {
            j->in[j->n_in++] = &from->out[output];
        }
        if (entry->failed && convert) break;
    }
    if (!convert) problem(j, "this operator is not supported");
    else if (!entry->failed && j->n_in < min_in) problem(j, "inputs are missing");
    else if (!entry->failed) convert(j);
    if (!entry->failed && entry->n_out && entry->out[0].plain < 0 && entry->out[0].turned < 0)
        entry->failed = 1;
    tf_host->free(j);
}
