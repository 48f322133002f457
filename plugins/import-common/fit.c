/* Converts arrays from the layouts of other frameworks to ours. */
#include "weights.h"

#include <stdio.h>

/* ---- options ---- */

/* Reads an option with two values; 1: it is `yes`, 0: `no`, `fallback`: it is not given; a third
 * value is a problem. */
static int read_choice(const cnr_import_args *args, imp_net *net, const char *option,
                       const char *no, const char *yes, int fallback) {
    const char *text = imp_option(args, option);
    if (!text) return fallback;
    if (strcmp(text, yes) == 0) return 1;
    if (strcmp(text, no) != 0)
        imp_host->graph_problem(net->graph, net->path, "%s=%s: want %s or %s", option, text, no,
                                yes);
    return 0;
}

void imp_layout_read(const cnr_import_args *args, imp_net *net, imp_layout *out) {
    static const char *const known[] = {"flip", "layout", "transpose", "flatten", "batch_norm"};
    for (int32_t i = 0; i < args->n_options; i++) {
        const char *text = args->options[i];
        const size_t n = strcspn(text, "=");
        int found = 0;
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            found |= strlen(known[k]) == n && memcmp(known[k], text, n) == 0;
        if (!found)
            imp_host->graph_problem(net->graph, net->path,
                                    "no setting '%.*s': there are flip, "
                                    "layout, transpose, flatten and batch_norm",
                                    (int)n, text);
    }
    out->flip = read_choice(args, net, "flip", "false", "true", 0);
    out->hwio = read_choice(args, net, "layout", "oihw", "hwio", 0);
    out->transpose = read_choice(args, net, "transpose", "false", "true", out->hwio);
    out->hwc = read_choice(args, net, "flatten", "chw", "hwc", out->hwio);
    out->batch_norm = imp_option(args, "batch_norm");
}

/* ---- views ---- */

/* 1 if a view has the shape of a tensor. */
static int has_shape(const imp_view *v, const cnr_tensor *type) {
    return v->rank == type->rank &&
           memcmp(v->dim, type->dim, (size_t)v->rank * sizeof v->dim[0]) == 0;
}

/* Returns a view of the same data with its axes in another order. */
static imp_view permuted(const imp_view *v, const int32_t *axes) {
    imp_view out = *v;
    for (int32_t i = 0; i < v->rank; i++) {
        out.dim[i] = v->dim[axes[i]];
        out.stride[i] = v->stride[axes[i]];
    }
    return out;
}

/* 1 if the node's operator has that name. */
static int is_op(const cnr_node *node, const char *name) {
    return strcmp(node->desc->name, name) == 0;
}

/* 1 if it is the weight of a convolution, whose spatial axes may need to be flipped or moved. */
static int is_kernel(const imp_parameter *p) {
    return p->type->rank > 2 && (is_op(p->node, "conv") || is_op(p->node, "conv_transpose"));
}

/* Fits a kernel of another layout to a weight. 0: it does not fit. */
static int fit_kernel(const imp_parameter *p, const imp_layout *layout, imp_view *v) {
    const cnr_tensor *type = p->type;
    const int32_t r = v->rank;
    if (r != type->rank) return 0;
    if (layout->hwio) {
        int32_t axes[CNR_MAX_RANK] = {r - 1, r - 2};
        for (int32_t i = 2; i < r; i++) axes[i] = i - 2;
        imp_view turned = permuted(v, axes);
        if (!has_shape(&turned, type)) { /* one filter a channel: in, multiplier */
            axes[0] = r - 2;
            axes[1] = r - 1;
            turned = permuted(v, axes);
            for (int32_t i = 2; i < r; i++)
                if (turned.dim[i] != type->dim[i]) return 0;
            if (type->dim[1] != 1 || turned.dim[0] < 1 || type->dim[0] % turned.dim[0] ||
                type->dim[0] / turned.dim[0] != turned.dim[1])
                return 0;
        }
        *v = turned;
    } else if (!has_shape(v, type)) {
        return 0;
    }
    for (int32_t i = 2; layout->flip && i < r; i++) {
        v->offset += v->stride[i] * (v->dim[i] - 1);
        v->stride[i] = -v->stride[i];
    }
    return 1;
}

/* The value with channels and sizes that a matrix at node `at` reads flattened: the node's input,
 * or what it is a mere rearrangement of. NULL: there is none. */
static const cnr_tensor *pictures_of(const struct cnr_graph *net, int32_t at, int64_t inputs) {
    for (;;) {
        const cnr_value *in;
        const cnr_node *node = imp_host->graph_node_at(net, at, &in, NULL);
        const cnr_tensor *x = node->n_inputs > 0 ? node->inputs[0] : NULL;
        if (!x || x->rank < 2) return NULL;
        int64_t count = 1;
        for (int32_t i = 1; i < x->rank; i++)
            if (x->dim[i] < 1 || __builtin_mul_overflow(count, x->dim[i], &count)) return NULL;
        if (count != inputs) return NULL;
        if (x->rank > 2) return x;
        at = imp_host->graph_producer(net, in[0]);
        if (at < 0) return NULL;
        node = imp_host->graph_node_at(net, at, NULL, NULL);
        if (!(node->desc->flags & (CNR_OP_ELEMENTWISE | CNR_OP_PASS)) && !is_op(node, "flatten") &&
            !is_op(node, "reshape"))
            return NULL;
    }
}

/* Fits a matrix, transposed if need be, to a weight. 0: it does not fit. */
static int fit_matrix(const struct cnr_graph *net, const imp_parameter *p, const imp_layout *layout,
                      imp_view *v) {
    const cnr_tensor *type = p->type;
    static const int32_t turn[] = {1, 0};
    if (v->rank != 2) return 0;
    const imp_view turned = permuted(v, turn);
    if (has_shape(&turned, type) && (layout->transpose || !has_shape(v, type))) *v = turned;
    if (!has_shape(v, type)) return 0;
    const cnr_tensor *x = layout->hwc ? pictures_of(net, p->at, type->dim[1]) : NULL;
    if (!x) return 1;
    int64_t step = v->stride[1];
    v->rank = x->rank;
    v->dim[1] = x->dim[1];
    v->stride[1] = step;
    step *= x->dim[1];
    for (int32_t i = x->rank - 1; i > 1; i--) {
        v->dim[i] = x->dim[i];
        v->stride[i] = step;
        step *= x->dim[i];
    }
    return 1;
}

/* Fits slopes and similar vectors, where frameworks add or drop axes of size 1: changes *v; 0: it
 * doesn't fit. */
static int fit_rest(const imp_parameter *p, const imp_layout *layout, imp_view *v) {
    int32_t i = 0, k = 0, axes[CNR_MAX_RANK] = {v->rank - 1};
    for (int32_t a = 1; a < v->rank; a++) axes[a] = a - 1;
    if (layout->hwc && is_op(p->node, "prelu")) *v = permuted(v, axes);
    for (;; i++, k++) {
        while (i < v->rank && v->dim[i] == 1) i++;
        while (k < p->type->rank && p->type->dim[k] == 1) k++;
        if (i == v->rank || k == p->type->rank) return i == v->rank && k == p->type->rank;
        if (v->dim[i] != p->type->dim[k]) return 0;
    }
}

int imp_fit(const struct cnr_graph *net, const imp_parameter *p, const imp_array *a,
            const imp_layout *layout, imp_view *out) {
    out->rank = a->rank;
    out->offset = 0;
    memcpy(out->dim, a->dim, sizeof out->dim);
    memcpy(out->stride, a->stride, sizeof out->stride);
    if (is_kernel(p)) return fit_kernel(p, layout, out);
    if (is_op(p->node, "dense") && p->type->rank == 2) return fit_matrix(net, p, layout, out);
    return fit_rest(p, layout, out);
}

const char *imp_shape_text(const int64_t *dim, int32_t rank, char text[160]) {
    size_t n = 0;
    if (rank == 0) return "a single number";
    for (int32_t i = 0; i < rank; i++)
        n += (size_t)snprintf(text + n, 160 - n, "%s%lld", i ? "x" : "", (long long)dim[i]);
    return rank == 1 ? strcat(text, " numbers") : text;
}

/* ---- elements ---- */

/* Writes all elements of a view. 0: their type is none that is known. */
static int write_all(const imp_parameter *p, const imp_arrays *arrays, const void *data,
                     const imp_view *v, void *out) {
    const double epsilon = p->inverse ? cnr_attr_float(p->node, "epsilon") : 0;
    const int64_t n = imp_count(v->dim, v->rank);
    const uint32_t floats = 1u << CNR_f32 | 1u << CNR_f64 | 1u << CNR_f16 | 1u << CNR_bf16;
    int64_t at[CNR_MAX_RANK] = {0}, from = v->offset;
    if (!(floats >> p->type->dtype & 1u)) return 0;
    for (int64_t i = 0; i < n; i++) {
        double value = arrays->get(arrays->owner, p->array, data, from);
        if (p->inverse) value = 1 / (value * value) - epsilon;
        imp_host->elements_write(p->type->dtype, out, i, 1, CNR_f64, &value);
        for (int32_t k = v->rank - 1; k >= 0; k--) {
            from += v->stride[k];
            if (++at[k] < v->dim[k]) break;
            from -= v->stride[k] * v->dim[k];
            at[k] = 0;
        }
    }
    return 1;
}

cnr_status imp_write(imp_net *net, const imp_parameter *p, const imp_arrays *arrays,
                     const imp_view *view, cnr_error *err) {
    cnr_tensor t = *p->type;
    void *data = NULL;
    t.flags = CNR_TENSOR_CONST;
    t.bytes = cnr_dense_bytes(&t);
    cnr_status status = arrays->load(arrays->owner, p->array, &data, err);
    if (!status && !(t.data = imp_host->alloc((size_t)t.bytes + 1)))
        status = imp_host->fail(err, CNR_E_MEMORY, p->name, "out of memory");
    const int written = !status && write_all(p, arrays, data, view, t.data);
    imp_host->free(data); /* freed now, so a large array is held twice at most */
    if (written) imp_host->graph_constant(net->graph, p->name, &t);
    else if (!status)
        imp_host->graph_problem(net->graph, arrays->at[p->array].file,
                                "%s is of type %s, which "
                                "arrays are not made into",
                                p->name, cnr_dtype_name(t.dtype));
    imp_host->free(t.data);
    return status;
}
