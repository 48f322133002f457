/* Adds nodes, weights, inputs and metadata to the graph that is being imported. */
#include "import_common.h"

#include <stdio.h>

/* ---- attributes ---- */

cnr_attr *imp_attr(imp_attrs *l, const char *name, int32_t type) {
    cnr_attr *a = &l->at[l->n];
    memset(a, 0, sizeof *a);
    a->name = name;
    a->type = type;
    a->set = 1;
    l->ptr[l->n++] = a;
    return a;
}
void imp_int(imp_attrs *l, const char *name, int64_t value) {
    imp_attr(l, name, CNR_ATTR_INT)->i = value;
}
/* Adds attribute `name`, true or false. */
void imp_bool(imp_attrs *l, const char *name, int value) {
    imp_attr(l, name, CNR_ATTR_BOOL)->i = value != 0;
}
void imp_float(imp_attrs *l, const char *name, double value) {
    imp_attr(l, name, CNR_ATTR_FLOAT)->f = value;
}
void imp_enum(imp_attrs *l, const char *name, const char *value) {
    imp_attr(l, name, CNR_ATTR_ENUM)->s = value;
}
void imp_dtype(imp_attrs *l, const char *name, int32_t value) {
    imp_attr(l, name, CNR_ATTR_DTYPE)->i = value;
}
void imp_ints(imp_attrs *l, const char *name, const int64_t *values, int64_t n) {
    cnr_attr *a = imp_attr(l, name, CNR_ATTR_INTS);
    a->ints = values;
    a->n = n;
}
void imp_floats(imp_attrs *l, const char *name, const double *values, int64_t n) {
    cnr_attr *a = imp_attr(l, name, CNR_ATTR_FLOATS);
    a->floats = values;
    a->n = n;
}

/* ---- nodes ---- */

cnr_value imp_node(imp_net *net, const char *op, const char *name, const char *suffix,
                   const cnr_value *in, int32_t n_in, const imp_attrs *attrs) {
    char full[512];
    cnr_value out = -1;
    snprintf(full, sizeof full, "%.450s%s", name, suffix);
    const cnr_status status =
        imp_host->graph_node(net->graph, op, full, net->path, in, n_in, attrs ? attrs->ptr : NULL,
                             attrs ? attrs->n : 0, &out, 1);
    if (status == CNR_E_MEMORY) net->status = status;
    return out;
}

/* The type of a weight. */
static cnr_tensor weight_type(const void *data, const int64_t *dim, int32_t rank) {
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = rank, .data = (void *)data};
    for (int32_t i = 0; i < rank; i++) t.dim[i] = dim[i];
    t.bytes = cnr_dense_bytes(&t);
    return t;
}

cnr_value imp_weight(imp_net *net, const char *name, const char *suffix, const float *data,
                     const int64_t *dim, int32_t rank) {
    cnr_tensor t = weight_type(data, dim, rank);
    char full[512];
    if (data) t.flags = CNR_TENSOR_CONST;
    snprintf(full, sizeof full, "%.450s%s", name, suffix);
    return imp_host->graph_constant(net->graph, full, &t);
}

cnr_value imp_weight_read(
    imp_net *net, const char *name, const char *suffix, const int64_t *dim, int32_t rank,
    cnr_status (*read)(void *state, uint64_t offset, void *out, uint64_t bytes), void *state) {
    const cnr_tensor t = weight_type(NULL, dim, rank);
    char full[512];
    snprintf(full, sizeof full, "%.450s%s", name, suffix);
    return imp_host->graph_constant_read(net->graph, full, &t, read, state);
}

cnr_value imp_filled(imp_net *net, const char *name, const char *suffix, float value,
                     const int64_t *dim, int32_t rank) {
    const int64_t n = imp_count(dim, rank);
    float *values = n < 0 ? NULL : (float *)imp_host->alloc((size_t)n * sizeof(float) + 1);
    if (!values) {
        net->status = CNR_E_MEMORY;
        return -1;
    }
    for (int64_t i = 0; i < n; i++) values[i] = value;
    const cnr_value v = imp_weight(net, name, suffix, values, dim, rank);
    imp_host->free(values);
    return v;
}

cnr_value imp_scalar(imp_net *net, const char *name, const char *suffix, double value) {
    const float f = (float)value;
    return imp_weight(net, name, suffix, &f, NULL, 0);
}

cnr_value imp_affine(imp_net *net, const char *name, cnr_value x, double factor, double shift) {
    if (factor != 1)
        x = imp_node(net, "mul", name, shift != 0 ? ".scaled" : "",
                     (cnr_value[]){x, imp_scalar(net, name, ".factor", factor)}, 2, NULL);
    if (shift != 0)
        x = imp_node(net, "add", name, "", (cnr_value[]){x, imp_scalar(net, name, ".shift", shift)},
                     2, NULL);
    return x;
}

cnr_value imp_reshape(imp_net *net, const char *name, const char *suffix, cnr_value x,
                      const int64_t *shape, int64_t n) {
    imp_attrs l = {.n = 0};
    imp_ints(&l, "shape", shape, n);
    return imp_node(net, "reshape", name, suffix, &x, 1, &l);
}

cnr_value imp_transpose(imp_net *net, const char *name, const char *suffix, cnr_value x,
                        const int64_t *perm, int64_t n) {
    imp_attrs l = {.n = 0};
    imp_ints(&l, "perm", perm, n);
    return imp_node(net, "transpose", name, suffix, &x, 1, &l);
}

cnr_value imp_slice(imp_net *net, const char *name, const char *suffix, cnr_value x, int64_t axis,
                    int64_t from, int64_t to) {
    imp_attrs l = {.n = 0};
    imp_ints(&l, "starts", &from, 1);
    imp_ints(&l, "ends", &to, 1);
    imp_ints(&l, "axes", &axis, 1);
    return imp_node(net, "slice", name, suffix, &x, 1, &l);
}

cnr_value imp_concat(imp_net *net, const char *name, const cnr_value *in, int32_t n, int64_t axis) {
    imp_attrs l = {.n = 0};
    imp_int(&l, "axis", axis);
    return imp_node(net, "concat", name, "", in, n, &l);
}

cnr_value imp_upscale(imp_net *net, const char *name, cnr_value x, int64_t scale, int bilinear) {
    const double scales[] = {1, 1, (double)scale, (double)scale};
    imp_attrs l = {.n = 0};
    imp_floats(&l, "scales", scales, 4);
    if (bilinear) imp_enum(&l, "mode", "linear");
    imp_enum(&l, "coordinate_transformation_mode", bilinear ? "align_corners" : "asymmetric");
    if (!bilinear) imp_enum(&l, "nearest_mode", "floor");
    return imp_node(net, "resize", name, "", &x, 1, &l);
}

/* A constant matrix n x out whose column i averages the pixels of output i: it holds 1 / their
 * count; turned: out x n, row i. -1: failed. */
static cnr_value mean_matrix(imp_net *net, const char *name, const char *suffix, int64_t n,
                             int64_t out, int turned) {
    const int64_t dim[] = {turned ? out : n, turned ? n : out};
    float *at = (float *)imp_host->alloc((size_t)(n * out) * sizeof(float));
    if (!at) {
        net->status = CNR_E_MEMORY;
        return -1;
    }
    memset(at, 0, (size_t)(n * out) * sizeof(float));
    for (int64_t i = 0; i < out; i++) {
        const int64_t begin = i * n / out, end = ((i + 1) * n + out - 1) / out;
        for (int64_t k = begin; k < end; k++)
            at[turned ? i * n + k : k * out + i] = 1.0f / (float)(end - begin);
    }
    const cnr_value v = imp_weight(net, name, suffix, at, dim, 2);
    imp_host->free(at);
    return v;
}

cnr_value imp_adaptive_average(imp_net *net, const char *name, cnr_value x, const int64_t size[2]) {
    const cnr_tensor *t = imp_type(net, x);
    if (size[0] == 1 && size[1] == 1)
        return imp_node(net, "global_average_pool", name, "", &x, 1, NULL);
    if (!t || t->rank != 4 || size[0] < 1 || size[1] < 1 || size[0] > 4096 || size[1] > 4096 ||
        t->dim[2] < 1 || t->dim[3] < 1 || t->dim[2] > 4096 || t->dim[3] > 4096) {
        imp_host->graph_problem(net->graph, net->path,
                                "layer %s: it wants a picture of known size, and one to make it",
                                name);
        return -1;
    }
    const cnr_value w = mean_matrix(net, name, ".columns", t->dim[3], size[1], 0);
    const cnr_value h = mean_matrix(net, name, ".rows", t->dim[2], size[0], 1);
    x = imp_node(net, "matmul", name, ".narrow", (cnr_value[]){x, w}, 2, NULL);
    return imp_node(net, "matmul", name, "", (cnr_value[]){h, x}, 2, NULL);
}

const cnr_tensor *imp_type(const imp_net *net, cnr_value v) {
    return v < 0 ? NULL : imp_host->graph_type(net->graph, v);
}

/* ---- inputs ---- */

void imp_meta(imp_net *net, const char *key, const char *text) {
    if (imp_host->graph_set_meta(net->graph, key, text)) net->status = CNR_E_MEMORY;
}

void imp_input_meta(imp_net *net, const char *input, const char *key, const char *text) {
    char name[300];
    snprintf(name, sizeof name, "input.%.200s.%s", input, key);
    imp_meta(net, name, text);
}

void imp_input_mean(imp_net *net, const char *input, const float *mean, int64_t n) {
    char *text = n > 0 && n < 1 << 24 ? (char *)imp_host->alloc((size_t)n * 20 + 1) : NULL;
    if (!text) {
        net->status = CNR_E_MEMORY;
        return;
    }
    size_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i) text[at++] = ',';
        at += (size_t)imp_host->print_number(text + at, 19, CNR_f32, (double)mean[i]);
    }
    imp_input_meta(net, input, "mean", text);
    imp_host->free(text);
}

/* Dimension of an open axis called `name`, as a symbol; usual > 0: its default, noted in the
 * metadata. CNR_DIM_UNKNOWN: no memory for it. */
static int64_t open_axis(imp_net *net, const char *name, int64_t usual) {
    char key[64], text[32];
    const int32_t symbol = imp_host->graph_symbol(net->graph, name);
    if (usual > 0) {
        snprintf(key, sizeof key, "symbol.%s.default", name);
        snprintf(text, sizeof text, "%lld", (long long)usual);
        imp_meta(net, key, text);
    }
    return symbol < 0 ? CNR_DIM_UNKNOWN : CNR_DIM_SYMBOL(symbol);
}

cnr_value imp_input(imp_net *net, const char *name, const int64_t *dim, int32_t rank,
                    int open_size) {
    cnr_tensor type = {.size = sizeof type, .dtype = CNR_f32, .rank = rank + 1};
    type.dim[0] = open_axis(net, "batch", 1);
    for (int32_t i = 0; i < rank; i++) type.dim[i + 1] = dim[i];
    if (open_size && rank == 3) {
        type.dim[2] = open_axis(net, "height", dim[1]);
        type.dim[3] = open_axis(net, "width", dim[2]);
    }
    return imp_host->graph_input(net->graph, name, &type);
}
