/* One function a kind of Darknet section: its keys and its share of the weights into operators. */
#include "darknet.h"

#include <stdio.h>

enum { MAX_ROUTE = 64, MAX_ATTRS = 12 };

typedef struct job {
    darknet_net *net;
    const darknet_section *section;
    int32_t index; /* of the layer, from 0 */
    char name[64];
    cnr_value x;
    int failed;
} job;

static int64_t key_int(const job *j, const char *key, int64_t fallback) {
    return darknet_int(j->net->config, j->section, key, fallback);
}
static const char *key_text(const job *j, const char *key, const char *fallback) {
    return darknet_text(j->net->config, j->section, key, fallback);
}

static void problem(job *j, const char *text) {
    char where[300];
    snprintf(where, sizeof where, "%.250s:%d", j->net->path, (int)j->section->line);
    darknet_host->graph_problem(j->net->graph, where, "layer %d [%s]: %s", (int)j->index,
                                j->section->name, text);
    j->failed = 1;
}

/* ---- attributes and nodes ---- */

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
static void put_int(list *l, const char *name, int64_t value) {
    add(l, name, CNR_ATTR_INT)->i = value;
}
static void put_bool(list *l, const char *name, int value) {
    add(l, name, CNR_ATTR_BOOL)->i = value != 0;
}
static void put_float(list *l, const char *name, double value) {
    add(l, name, CNR_ATTR_FLOAT)->f = value;
}
static void put_ints(list *l, const char *name, const int64_t *values, int64_t n) {
    cnr_attr *a = add(l, name, CNR_ATTR_INTS);
    a->ints = values;
    a->n = n;
}

static cnr_value node(job *j, const char *op, const char *suffix, const cnr_value *in, int32_t n_in,
                      const list *attrs) {
    char name[96];
    cnr_value out = -1;
    snprintf(name, sizeof name, "%s%s", j->name, suffix);
    darknet_host->graph_node(j->net->graph, op, name, j->net->path, in, n_in,
                             attrs ? attrs->ptr : NULL, attrs ? attrs->n : 0, &out, 1);
    return out;
}

static const cnr_tensor *type_of(const job *j, cnr_value v) {
    return v < 0 ? NULL : darknet_host->graph_type(j->net->graph, v);
}

/* The input's channels, known; 0 with the layer failed otherwise. */
static int channels_of(job *j, int64_t *c) {
    const cnr_tensor *x = type_of(j, j->x);
    if (!x || x->rank < 2 || x->dim[1] < 1) return j->failed = 1, 0;
    *c = x->dim[1];
    return 1;
}

/* The same with its sizes. */
static int sizes_of(job *j, int64_t *c, int64_t *h, int64_t *w) {
    const cnr_tensor *x = type_of(j, j->x);
    if (!channels_of(j, c)) return 0;
    *h = x->rank == 4 ? x->dim[2] : 1;
    *w = x->rank == 4 ? x->dim[3] : 1;
    if (*h < 1 || *w < 1) return j->failed = 1, 0;
    return 1;
}

/* ---- weights ---- */

/* The next n floats of the file; NULL without a file, or with a problem when it ends. */
static const float *take(job *j, int64_t n) {
    darknet_net *net = j->net;
    if (!net->weights || j->failed) return NULL;
    if (n < 0 || (uint64_t)n > net->n_weights - net->taken) {
        char text[200];
        snprintf(text, sizeof text, "the weights file ends: %lld values are wanted, %llu are left",
                 (long long)n, (unsigned long long)(net->n_weights - net->taken));
        problem(j, text);
        return NULL;
    }
    const float *at = (const float *)(net->weights + net->taken * 4);
    net->taken += (uint64_t)n;
    return at;
}

static cnr_value weight(job *j, const char *suffix, const float *data, const int64_t *dim,
                        int32_t rank) {
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = rank, .data = (void *)data};
    char name[96];
    memcpy(t.dim, dim, (size_t)rank * sizeof dim[0]);
    t.bytes = cnr_dense_bytes(&t);
    if (data) t.flags = CNR_TENSOR_CONST;
    snprintf(name, sizeof name, "%s.%s", j->name, suffix);
    return darknet_host->graph_constant(j->net->graph, name, &t);
}

/* Darknet divides by sqrt(variance) + 1e-6: the variance that gives the same with epsilon 0. */
static cnr_value variance(job *j, const float *data, int64_t n) {
    float *own = data ? (float *)darknet_host->alloc((size_t)n * sizeof(float)) : NULL;
    if (data && !own) {
        j->net->status = CNR_E_MEMORY;
        return -1;
    }
    for (int64_t i = 0; own && i < n; i++) {
        double root = 0, v = data[i] > 0 ? (double)data[i] : 0;
        if (v > 0) { /* Newton's method: no libm needed for one square root */
            root = v > 1 ? v : 1;
            for (int k = 0; k < 60; k++) root = 0.5 * (root + v / root);
        }
        own[i] = (float)((root + 1e-6) * (root + 1e-6));
    }
    const cnr_value out = weight(j, "var", own, &n, 1);
    darknet_host->free(own);
    return out;
}

typedef struct norm {
    const float *bias, *scale, *mean, *var;
} norm;

static cnr_value batch_norm(job *j, cnr_value x, const norm *p, int64_t n) {
    const cnr_value from[] = {x, weight(j, "scale", p->scale, &n, 1),
                              weight(j, "shift", p->bias, &n, 1), weight(j, "mean", p->mean, &n, 1),
                              variance(j, p->var, n)};
    list l = {.n = 0};
    put_float(&l, "epsilon", 0);
    return node(j, "batch_normalization", ".norm", from, 5, &l);
}

static cnr_value activate(job *j, cnr_value x, const char *fallback) {
    const char *kind = key_text(j, "activation", fallback);
    static const char *const plain[][2] = {
        {"relu", "relu"}, {"logistic", "sigmoid"}, {"tanh", "tanh"}, {"mish", "mish"},
        {"swish", "swish"}, {"relu6", "relu6"}, {"selu", "selu"}, {"hard_mish", ""},
    };
    list l = {.n = 0};
    if (strcmp(kind, "linear") == 0) return x;
    if (strcmp(kind, "leaky") == 0) put_float(&l, "alpha", 0.1);
    if (l.n) return node(j, "leaky_relu", ".act", &x, 1, &l);
    if (strcmp(kind, "elu") == 0) return node(j, "elu", ".act", &x, 1, NULL);
    if (strcmp(kind, "hardtan") == 0) {
        put_float(&l, "min", -1);
        put_float(&l, "max", 1);
        return node(j, "clip", ".act", &x, 1, &l);
    }
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strcmp(plain[i][0], kind) == 0 && plain[i][1][0])
            return node(j, plain[i][1], ".act", &x, 1, NULL);
    char text[128];
    snprintf(text, sizeof text, "activation \"%.80s\" is not supported", kind);
    problem(j, text);
    return -1;
}

/* ---- layers with weights ---- */

static cnr_value convolutional(job *j) {
    int64_t c;
    if (!channels_of(j, &c)) return -1;
    const int64_t n = key_int(j, "filters", 1), size = key_int(j, "size", 1);
    const int64_t stride = key_int(j, "stride", 1), group = key_int(j, "groups", 1);
    const int64_t stride_x = key_int(j, "stride_x", stride), dilation = key_int(j, "dilation", 1);
    const int64_t pad = key_int(j, "pad", 0) ? size / 2 * dilation : key_int(j, "padding", 0);
    const int normal = key_int(j, "batch_normalize", 0) != 0;
    if (n < 1 || size < 1 || size > 1024 || group < 1 || c % group || n % group || n > 1 << 24)
        return problem(j, "filters, size or groups do not fit its input"), -1;
    norm p = {0};
    p.bias = take(j, n);
    if (normal) p.scale = take(j, n), p.mean = take(j, n), p.var = take(j, n);
    const int64_t dim[] = {n, c / group, size, size};
    const float *weights = take(j, n * (c / group) * size * size);
    if (j->failed) return -1;
    const int64_t kernel[] = {size, size}, strides[] = {key_int(j, "stride_y", stride), stride_x};
    const int64_t pads[] = {pad, pad, pad, pad}, dilations[] = {dilation, dilation};
    const cnr_value from[] = {j->x, weight(j, "weight", weights, dim, 4),
                              normal ? -1 : weight(j, "bias", p.bias, &n, 1)};
    list l = {.n = 0};
    put_ints(&l, "kernel_shape", kernel, 2);
    put_ints(&l, "strides", strides, 2);
    put_ints(&l, "pads", pads, 4);
    put_ints(&l, "dilations", dilations, 2);
    put_int(&l, "group", group);
    put_bool(&l, "bias", !normal);
    cnr_value y = node(j, "conv", "", from, 3, &l);
    if (normal) y = batch_norm(j, y, &p, n);
    return activate(j, y, "logistic");
}

static cnr_value connected(job *j) {
    int64_t c, h, w;
    if (!sizes_of(j, &c, &h, &w)) return -1;
    const int64_t out = key_int(j, "output", 1), in = c * h * w;
    const int normal = key_int(j, "batch_normalize", 0) != 0;
    if (out < 1 || out > 1 << 24) return problem(j, "output is wrong"), -1;
    norm p = {0};
    p.bias = take(j, out);
    const int64_t dim[] = {out, in}, turned[] = {in, out}, perm[] = {1, 0};
    const float *weights = take(j, out * in);
    if (normal) p.scale = take(j, out), p.mean = take(j, out), p.var = take(j, out);
    if (j->failed) return -1;
    cnr_value m = weight(j, j->net->transposed ? "weight_t" : "weight", weights,
                         j->net->transposed ? turned : dim, 2);
    list t = {.n = 0};
    put_ints(&t, "perm", perm, 2);
    if (j->net->transposed) m = node(j, "transpose", ".weight", &m, 1, &t);
    list l = {.n = 0};
    put_bool(&l, "bias", !normal);
    cnr_value y = node(j, "dense", "", (cnr_value[]){j->x, m, normal ? -1 : weight(j, "bias", p.bias, &out, 1)},
                       3, &l);
    if (normal) y = batch_norm(j, y, &p, out);
    return activate(j, y, "logistic");
}

/* Weights of a local layer are a convolution's, one set a place: a patch matrix and a product. */
static cnr_value local(job *j) {
    int64_t c, h, w;
    if (!sizes_of(j, &c, &h, &w)) return -1;
    const int64_t n = key_int(j, "filters", 1), size = key_int(j, "size", 1);
    const int64_t stride = key_int(j, "stride", 1), pad = key_int(j, "pad", 0) ? size / 2 : 0;
    if (n < 1 || size < 1 || stride < 1 || size > h + 2 * pad || size > w + 2 * pad)
        return problem(j, "filters, size or stride do not fit its input"), -1;
    const int64_t oh = (h + 2 * pad - size) / stride + 1, ow = (w + 2 * pad - size) / stride + 1;
    const int64_t places = oh * ow, patch = c * size * size;
    if (places > 1 << 20 || patch > 1 << 20 || n > 1 << 20) return problem(j, "it is too large"), -1;
    const float *bias = take(j, n * places), *weights = take(j, places * n * patch);
    if (j->failed) return -1;
    /* patches: a convolution whose kernels pick one tap each, [N, patch, oh, ow] */
    float *pick = (float *)darknet_host->alloc((size_t)(patch * patch) * sizeof(float));
    if (!pick) {
        j->net->status = CNR_E_MEMORY;
        return -1;
    }
    memset(pick, 0, (size_t)(patch * patch) * sizeof(float));
    for (int64_t i = 0; i < patch; i++) pick[i * patch + i] = 1;
    const int64_t pick_dim[] = {patch, c, size, size}, kernel[] = {size, size};
    const int64_t strides[] = {stride, stride}, pads[] = {pad, pad, pad, pad};
    list l = {.n = 0};
    put_ints(&l, "kernel_shape", kernel, 2);
    put_ints(&l, "strides", strides, 2);
    put_ints(&l, "pads", pads, 4);
    put_bool(&l, "bias", 0);
    cnr_value y = node(j, "conv", ".patches",
                       (cnr_value[]){j->x, weight(j, "pick", pick, pick_dim, 4), -1}, 3, &l);
    darknet_host->free(pick);
    /* [N, patch, P] -> [N, P, patch, 1]; weights [P, n, patch]; product [N, P, n, 1] */
    const int64_t flat[] = {0, patch, places}, turn[] = {0, 2, 1}, column[] = {0, places, patch, 1};
    const int64_t w_dim[] = {places, n, patch}, rows[] = {0, places, n}, out[] = {0, n, oh, ow};
    const int64_t b_dim[] = {n, oh, ow};
    list a1 = {.n = 0}, a2 = {.n = 0}, a3 = {.n = 0}, a4 = {.n = 0}, a5 = {.n = 0};
    put_ints(&a1, "shape", flat, 3);
    put_ints(&a2, "perm", turn, 3);
    put_ints(&a3, "shape", column, 4);
    put_ints(&a4, "shape", rows, 3);
    put_ints(&a5, "shape", out, 4);
    y = node(j, "reshape", ".flat", &y, 1, &a1);
    y = node(j, "transpose", ".places", &y, 1, &a2);
    y = node(j, "reshape", ".columns", &y, 1, &a3);
    y = node(j, "matmul", ".product", (cnr_value[]){weight(j, "weight", weights, w_dim, 3), y}, 2, NULL);
    y = node(j, "reshape", ".rows", &y, 1, &a4);
    y = node(j, "transpose", ".channels", &y, 1, &a2);
    y = node(j, "reshape", ".plane", &y, 1, &a5);
    y = node(j, "add", "", (cnr_value[]){y, weight(j, "bias", bias, b_dim, 3)}, 2, NULL);
    return activate(j, y, "logistic");
}

static cnr_value batchnorm(job *j) {
    int64_t c;
    if (!channels_of(j, &c)) return -1;
    norm p = {0};
    p.bias = take(j, c), p.scale = take(j, c), p.mean = take(j, c), p.var = take(j, c);
    return j->failed ? -1 : batch_norm(j, j->x, &p, c);
}

/* ---- layers without ---- */

static cnr_value maxpool(job *j) {
    const int64_t stride = key_int(j, "stride", 1), size = key_int(j, "size", stride);
    const int64_t total = key_int(j, "padding", size - 1);
    if (size < 1 || stride < 1 || total < 0) return problem(j, "size or stride is wrong"), -1;
    const int64_t kernel[] = {size, size}, strides[] = {stride, stride};
    const int64_t pads[] = {total / 2, total / 2, total - total / 2, total - total / 2};
    list l = {.n = 0};
    put_ints(&l, "kernel_shape", kernel, 2);
    put_ints(&l, "strides", strides, 2);
    put_ints(&l, "pads", pads, 4);
    return node(j, "max_pool", "", &j->x, 1, &l);
}

static cnr_value avgpool(job *j) {
    const cnr_value y = node(j, "global_average_pool", "", &j->x, 1, NULL);
    return y;
}

/* A layer named by its number, or by how far back it is; -1 with a problem. */
static cnr_value layer_value(job *j, double number) {
    const int64_t at = number < 0 ? j->index + (int64_t)number : (int64_t)number;
    if (at < 0 || at >= j->index) return problem(j, "it names a layer that is not before it"), -1;
    if (j->net->values[at] < 0) j->failed = 1; /* told where that layer failed */
    return j->net->values[at];
}

static cnr_value route(job *j) {
    double layers[MAX_ROUTE];
    cnr_value in[MAX_ROUTE];
    const int32_t n = darknet_list(key_text(j, "layers", ""), layers, MAX_ROUTE);
    const int64_t groups = key_int(j, "groups", 1), id = key_int(j, "group_id", 0);
    if (n < 1) return problem(j, "layers is missing"), -1;
    if (groups < 1 || id < 0 || id >= groups) return problem(j, "group_id is out of range"), -1;
    for (int32_t i = 0; i < n; i++) {
        in[i] = layer_value(j, layers[i]);
        if (j->failed) return -1;
        if (groups > 1) { /* one part of its channels */
            const cnr_tensor *x = type_of(j, in[i]);
            if (!x || x->rank < 2 || x->dim[1] < 1 || x->dim[1] % groups)
                return problem(j, "groups does not divide the channels"), -1;
            const int64_t part = x->dim[1] / groups, axis = 1, from = part * id, to = from + part;
            char suffix[32];
            snprintf(suffix, sizeof suffix, ".part%d", (int)i);
            list l = {.n = 0};
            put_ints(&l, "starts", &from, 1);
            put_ints(&l, "ends", &to, 1);
            put_ints(&l, "axes", &axis, 1);
            in[i] = node(j, "slice", suffix, &in[i], 1, &l);
        }
    }
    if (n == 1) return in[0];
    list l = {.n = 0};
    put_int(&l, "axis", 1);
    return node(j, "concat", "", in, n, &l);
}

static cnr_value shortcut(job *j) {
    double from[MAX_ROUTE];
    const int32_t n = darknet_list(key_text(j, "from", ""), from, MAX_ROUTE);
    cnr_value y = j->x;
    if (n < 1) return problem(j, "from is missing"), -1;
    for (int32_t i = 0; i < n; i++) {
        cnr_value other = layer_value(j, from[i]);
        if (j->failed) return -1;
        const cnr_tensor *a = type_of(j, y), *b = type_of(j, other);
        if (!a || !b || !cnr_same_shape(a, b))
            return problem(j, "layers of different shapes are not supported"), -1;
        char suffix[32] = "";
        if (i + 1 < n) snprintf(suffix, sizeof suffix, ".part%d", (int)i);
        y = node(j, "add", suffix, (cnr_value[]){y, other}, 2, NULL);
    }
    return activate(j, y, "linear");
}

static cnr_value scale_channels(job *j) {
    const cnr_value other = layer_value(j, (double)key_int(j, "from", 0));
    if (j->failed) return -1;
    return activate(j, node(j, "mul", "", (cnr_value[]){other, j->x}, 2, NULL), "linear");
}

static cnr_value upsample(job *j) {
    const int64_t stride = key_int(j, "stride", 2);
    const double scale = darknet_float(j->net->config, j->section, "scale", 1);
    if (stride < 1) return problem(j, "stride below 1 is not supported"), -1;
    const double scales[] = {1, 1, (double)stride, (double)stride};
    list l = {.n = 0};
    cnr_attr *a = add(&l, "scales", CNR_ATTR_FLOATS);
    a->floats = scales;
    a->n = 4;
    add(&l, "coordinate_transformation_mode", CNR_ATTR_ENUM)->s = "asymmetric";
    add(&l, "nearest_mode", CNR_ATTR_ENUM)->s = "floor";
    cnr_value y = node(j, "resize", "", &j->x, 1, &l);
    if (scale != 1) {
        const float f = (float)scale;
        y = node(j, "mul", ".scaled", (cnr_value[]){y, weight(j, "factor", &f, NULL, 0)}, 2, NULL);
    }
    return y;
}

static cnr_value reorg(job *j) {
    list l = {.n = 0};
    put_int(&l, "stride", key_int(j, "stride", 1));
    put_bool(&l, "reverse", (int)key_int(j, "reverse", 0));
    return node(j, "reorg", "", &j->x, 1, &l);
}

static cnr_value dropout(job *j) {
    return node(j, "dropout", "", &j->x, 1, NULL);
}

static cnr_value softmax(job *j) {
    int64_t c;
    if (!channels_of(j, &c)) return -1;
    const int64_t groups = key_int(j, "groups", 1);
    if (key_text(j, "tree", NULL)) return problem(j, "a tree of classes is not supported"), -1;
    if (groups != 1) return problem(j, "groups other than 1 are not supported"), -1;
    list l = {.n = 0};
    put_int(&l, "axis", 1);
    return node(j, "softmax", "", (cnr_value[]){node(j, "flatten", ".flat", &j->x, 1, NULL)}, 1, &l);
}

static cnr_value crop(job *j) { /* at inference: the middle */
    int64_t c, h, w;
    if (!sizes_of(j, &c, &h, &w)) return -1;
    const int64_t ch = key_int(j, "crop_height", 1), cw = key_int(j, "crop_width", 1);
    if (ch < 1 || cw < 1 || ch > h || cw > w) return problem(j, "it is larger than its input"), -1;
    const int64_t axes[] = {2, 3}, from[] = {(h - ch) / 2, (w - cw) / 2};
    const int64_t to[] = {from[0] + ch, from[1] + cw};
    list l = {.n = 0};
    put_ints(&l, "starts", from, 2);
    put_ints(&l, "ends", to, 2);
    put_ints(&l, "axes", axes, 2);
    return node(j, "slice", "", &j->x, 1, &l);
}

static cnr_value activation(job *j) {
    return activate(j, j->x, "linear");
}

/* ---- detection heads ---- */

/* A line of the metadata "heads": what a decoder of boxes needs to know of this output. */
static void describe(job *j, const char *text) {
    darknet_net *net = j->net;
    const size_t n = strlen(text);
    if (net->n_heads + n + 2 > net->heads_room) {
        const size_t room = (net->n_heads + n + 2) * 2;
        char *grown = (char *)darknet_host->resize(net->heads, room);
        if (!grown) {
            net->status = CNR_E_MEMORY;
            return;
        }
        net->heads = grown;
        net->heads_room = room;
    }
    memcpy(net->heads + net->n_heads, text, n + 1);
    net->n_heads += n;
}

/* Numbers as text that every locale reads alike: thousandths are enough for anchors. */
static size_t print_list(char *out, size_t room, const double *v, int32_t n) {
    size_t at = 0;
    for (int32_t i = 0; i < n && at + 32 < room; i++) {
        const long long whole = (long long)(v[i] * 1e6 + (v[i] < 0 ? -0.5 : 0.5));
        at += (size_t)snprintf(out + at, room - at, "%s%s%lld.%06lld", i ? "," : "",
                               whole < 0 ? "-" : "", (whole < 0 ? -whole : whole) / 1000000,
                               (whole < 0 ? -whole : whole) % 1000000);
    }
    return at;
}

static cnr_value head(job *j, cnr_value y, const char *kind, const double *anchors, int32_t n,
                      int64_t classes, int64_t coords) {
    char text[2048], numbers[1400] = "";
    print_list(numbers, sizeof numbers, anchors, n);
    snprintf(text, sizeof text, "%s output=%s classes=%lld coords=%lld width=%lld height=%lld "
                                "anchors=%s\n",
             kind, j->name, (long long)classes, (long long)coords, (long long)j->net->width,
             (long long)j->net->height, numbers);
    describe(j, text);
    if (y >= 0) j->net->status = darknet_host->graph_output(j->net->graph, y, j->name);
    return y;
}

static cnr_value yolo(job *j) {
    double all[256], mask[128], anchors[256];
    const int32_t n_all = darknet_list(key_text(j, "anchors", ""), all, 256);
    int32_t n = darknet_list(key_text(j, "mask", ""), mask, 128);
    const int64_t classes = key_int(j, "classes", 20), num = key_int(j, "num", 1);
    if (n == 0)
        for (; n < num && n < 128; n++) mask[n] = n;
    for (int32_t i = 0; i < n; i++) {
        const int32_t at = (int32_t)mask[i];
        if (at < 0 || 2 * at + 1 >= n_all) return problem(j, "mask names an anchor not there"), -1;
        anchors[2 * i] = all[2 * at];
        anchors[2 * i + 1] = all[2 * at + 1];
    }
    list l = {.n = 0};
    put_int(&l, "classes", classes);
    put_int(&l, "num", n);
    put_float(&l, "scale_x_y", darknet_float(j->net->config, j->section, "scale_x_y", 1));
    const cnr_value y = node(j, "yolo", "", &j->x, 1, &l);
    return head(j, y, "yolo", anchors, 2 * n, classes, 4);
}

static cnr_value region(job *j) {
    double anchors[256];
    const int64_t classes = key_int(j, "classes", 20), num = key_int(j, "num", 1);
    const int32_t n = darknet_list(key_text(j, "anchors", ""), anchors, 256);
    if (n != 2 * num) return problem(j, "two anchors for each of num are wanted"), -1;
    if (key_text(j, "tree", NULL)) return problem(j, "a tree of classes is not supported"), -1;
    list l = {.n = 0};
    put_int(&l, "classes", classes);
    put_int(&l, "num", num);
    put_int(&l, "coords", key_int(j, "coords", 4));
    put_bool(&l, "softmax", (int)key_int(j, "softmax", 0));
    put_bool(&l, "background", (int)key_int(j, "background", 0));
    const cnr_value y = node(j, "region", "", &j->x, 1, &l);
    return head(j, y, "region", anchors, n, classes, key_int(j, "coords", 4));
}

/* YOLO v1: [classes | num confidences | num boxes] for each cell of a side x side grid. */
static cnr_value detection(job *j) {
    const int64_t side = key_int(j, "side", 7), num = key_int(j, "num", 1);
    const int64_t classes = key_int(j, "classes", 1);
    const double shape[] = {(double)side, (double)num, (double)key_int(j, "sqrt", 0)};
    const cnr_tensor *x = type_of(j, j->x);
    if (!x || x->rank != 2 || x->dim[1] != side * side * (classes + num * 5))
        return problem(j, "its input is not side * side * (classes + num * 5) numbers"), -1;
    const cnr_value y = node(j, "identity", "", &j->x, 1, NULL);
    return head(j, y, "detection", shape, 3, classes, 4);
}

static cnr_value nothing(job *j) {
    return j->x;
}

static const struct {
    const char *section;
    cnr_value (*convert)(job *);
} rows[] = {
    {"convolutional", convolutional}, {"conv", convolutional}, {"connected", connected},
    {"conn", connected}, {"local", local}, {"batchnorm", batchnorm}, {"maxpool", maxpool},
    {"max", maxpool}, {"avgpool", avgpool}, {"avg", avgpool}, {"route", route},
    {"shortcut", shortcut}, {"scale_channels", scale_channels}, {"upsample", upsample},
    {"reorg", reorg}, {"dropout", dropout}, {"softmax", softmax}, {"soft", softmax},
    {"crop", crop}, {"activation", activation}, {"yolo", yolo}, {"region", region},
    {"detection", detection}, {"cost", nothing},
};

void darknet_layer(darknet_net *net, int32_t index, cnr_value x) {
    job j = {.net = net, .section = &net->config->sections[index], .index = index - 1, .x = x};
    snprintf(j.name, sizeof j.name, "%d_%.40s", (int)j.index, j.section->name);
    net->values[j.index] = -1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].section, j.section->name) == 0) {
            if (x >= 0 || rows[i].convert == route) net->values[j.index] = rows[i].convert(&j);
            return;
        }
    problem(&j, "this kind of layer is not supported");
}
