/* Shapes that several plugins work out alike: operands that broadcast along one run of axes, the
 * axes of reductions, and windows of three axes and of conv_transpose. */
#ifndef SHAPES_H
#define SHAPES_H

#include <cnnrun/kit.h>

/* True if t broadcasts to `dim` along one run of adjacent axes. Element i of a tensor of these dims
 * then uses element i / *each % *n of t. */
static inline int shape_stretch(const cnr_tensor *t, int32_t rank, const int64_t *dim,
                                int64_t *each, int64_t *n) {
    int32_t first = 0, last = t->rank;
    if (t->rank > rank) return 0;
    while (first < last && t->dim[first] == 1) first++;
    while (last > first && t->dim[last - 1] == 1) last--;
    const int32_t offset = rank - t->rank;
    *each = *n = 1;
    for (int32_t a = first; a < last; a++) {
        if (t->dim[a] != dim[offset + a]) return 0;
        *n *= t->dim[a];
    }
    for (int32_t a = first == last ? 0 : offset + last; a < rank; a++) *each *= dim[a];
    return *n > 0;
}

/* Converts `axis`, which may count from the end, to one below `rank`; -1: out of range. */
static inline int32_t shape_axis(int64_t axis, int32_t rank) {
    return axis < -rank || axis >= rank ? -1 : (int32_t)(axis < 0 ? axis + rank : axis);
}

/* Computes the distance in elements between neighbours of t along each axis of `shape`, 0 along
 * broadcast axes. Writes shape->rank entries. Returns 0 if t does not broadcast to that shape. */
static inline int shape_strides(const cnr_tensor *t, const cnr_tensor *shape, int64_t *stride) {
    int64_t step = 1;
    if (t->rank > shape->rank) return 0;
    for (int32_t i = shape->rank - 1; i >= 0; i--) {
        const int32_t own = i - (shape->rank - t->rank);
        if (own >= 0 && t->dim[own] != 1 && t->dim[own] != shape->dim[i]) return 0;
        stride[i] = own < 0 || t->dim[own] == 1 ? 0 : step;
        if (own >= 0) step *= t->dim[own];
    }
    return 1;
}

/* Returns the axes of x that a reduce_* node reduces, as bits; -1: unknown before the run. */
static inline int64_t shape_reduced_axes(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0], *list = cnr_own_input(node, 1);
    int64_t n = 0, set = 0;
    const int64_t *axes = cnr_attr_ints(node, "axes", &n);
    if (list) {
        if (!cnr_is_constant(list) || list->dtype != CNR_i64) return -1;
        axes = (const int64_t *)list->data;
        n = cnr_count(list);
    }
    if (n == 0) return cnr_attr_int(node, "noop_with_empty_axes") ? 0 : (1 << x->rank) - 1;
    for (int64_t i = 0; i < n; i++) {
        const int32_t axis = shape_axis(axes[i], x->rank);
        if (axis < 0) return -1;
        set |= (int64_t)1 << axis;
    }
    return set;
}

/* Views x as outer x n x inner, where n is reduced. Returns 0 if the reduced axes are not adjacent.
 * `set` is the result of shape_reduced_axes. */
static inline int shape_reduced_stretch(const cnr_tensor *x, int64_t set, int64_t *outer,
                                        int64_t *n, int64_t *inner) {
    int32_t first = -1, last = -1;
    for (int32_t a = 0; a < x->rank; a++) {
        if (!(set >> a & 1) || x->dim[a] == 1) continue;
        if (first < 0) first = a;
        last = a;
    }
    for (int32_t a = first; a <= last && a >= 0; a++)
        if (!(set >> a & 1) && x->dim[a] != 1) return 0;
    *outer = cnr_span(x, 0, first < 0 ? x->rank : first);
    *n = first < 0 ? 1 : cnr_span(x, first, last + 1);
    *inner = first < 0 ? 1 : cnr_span(x, last + 1, x->rank);
    return 1;
}

/* Fills `w` for a node conv_transpose, as a convolution from y to x: w->in is y's, w->out is
 * x's. */
static inline void shape_transposed_window(const cnr_node *node, const cnr_tensor *x,
                                           const cnr_tensor *y, const cnr_tensor *weight,
                                           cnr_window *w) {
    int64_t ns, nd, np, no, n_shape;
    const int64_t *strides = cnr_attr_ints(node, "strides", &ns);
    const int64_t *dilations = cnr_attr_ints(node, "dilations", &nd);
    const int64_t *pads = cnr_attr_ints(node, "pads", &np);
    const int64_t *more = cnr_attr_ints(node, "output_padding", &no);
    const char *auto_pad = cnr_attr_string(node, "auto_pad");
    const int upper = strcmp(auto_pad, "SAME_UPPER") == 0;
    const int same = upper || strcmp(auto_pad, "SAME_LOWER") == 0;
    cnr_attr_ints(node, "output_shape", &n_shape);
    memset(w, 0, sizeof *w);
    w->spatial = x->rank - 2;
    for (int32_t i = 0; i < w->spatial; i++) {
        w->in[i] = y->dim[2 + i];
        w->out[i] = x->dim[2 + i];
        w->kernel[i] = weight->dim[2 + i];
        w->stride[i] = i < ns ? strides[i] : 1;
        w->dilation[i] = i < nd ? dilations[i] : 1;
        const int64_t whole = w->stride[i] * (w->out[i] - 1) + (i < no ? more[i] : 0) +
                              (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t extra = whole > w->in[i] ? whole - w->in[i] : 0;
        if (n_shape || same) w->pad_begin[i] = upper ? extra / 2 : extra - extra / 2;
        else if (i < np && strcmp(auto_pad, "VALID") != 0) w->pad_begin[i] = pads[i];
        w->pad_end[i] = extra - w->pad_begin[i];
    }
}

/* Returns the same window with leading axes of extent 1, so that code for three spatial axes
 * handles all. */
static inline cnr_window shape_window_three(const cnr_window *own) {
    cnr_window w;
    w.spatial = 3;
    for (int32_t i = 0; i < 3; i++) {
        const int32_t j = i - (3 - own->spatial);
        w.in[i] = j < 0 ? 1 : own->in[j];
        w.out[i] = j < 0 ? 1 : own->out[j];
        w.kernel[i] = j < 0 ? 1 : own->kernel[j];
        w.stride[i] = j < 0 ? 1 : own->stride[j];
        w.dilation[i] = j < 0 ? 1 : own->dilation[j];
        w.pad_begin[i] = j < 0 ? 0 : own->pad_begin[j];
        w.pad_end[i] = j < 0 ? 0 : own->pad_end[j];
    }
    return w;
}

#endif
