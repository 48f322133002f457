#include "host/internal.h"

enum { WINDOW_LIMIT = 1 << 20 }; /* sizes above this are mistakes; sums of them fit an int64_t */

/* Positions of a window of extent `reach` over an axis of `in` elements and its padding. ceil_mode
 * as in Caffe and ONNX: the last window must start inside the input or its begin padding. */
static int64_t position_count(const cnr_window *w, int32_t i, int64_t reach, int ceil_mode) {
    const int64_t in = w->in[i], stride = w->stride[i], begin = w->pad_begin[i];
    const int64_t room = in + begin + w->pad_end[i] - reach;
    if (room < 0)
        return ceil_mode && -room < stride && in + begin > 0; /* a part of one window, rounded up */
    const int64_t n = room / stride + 1;
    if (!ceil_mode || room % stride == 0) return n;
    return n * stride >= in + begin ? n : n + 1;
}

/* NULL, or what is wrong with the sizes of axis `i`. */
static const char *axis_fault(const cnr_window *w, int32_t i) {
    const int64_t most = WINDOW_LIMIT, extent = w->kernel[i], stride = w->stride[i];
    const int64_t dilation = w->dilation[i], begin = w->pad_begin[i], end = w->pad_end[i];
    if (stride < 1 || dilation < 1 || extent < 1)
        return "kernel, stride and dilation must be 1 or more";
    if (extent > most || dilation > most || stride > most)
        return "kernel, stride and dilation must be 1048576 or less";
    if (begin > most || end > most || begin < -most || end < -most)
        return "pads must be 1048576 or less";
    return NULL;
}

/* Sets output and padding of axis `i` by auto_pad SAME: as many positions as strides. lower: the
 * odd element of padding is at the begin. */
static void pad_to_same(cnr_window *w, int32_t i, int64_t reach, int lower) {
    w->out[i] = (w->in[i] + w->stride[i] - 1) / w->stride[i];
    const int64_t pad = cnr_max((w->out[i] - 1) * w->stride[i] + reach - w->in[i], 0);
    w->pad_begin[i] = lower ? pad - pad / 2 : pad / 2;
    w->pad_end[i] = pad - w->pad_begin[i];
}

/* Resolves axis `i`, of which all but `out` is set; returns NULL, or what does not fit. */
static const char *resolve_axis(const cnr_node *node, cnr_window *w, int32_t i) {
    const int lower = cnr_attr_is(node, "auto_pad", "SAME_LOWER");
    const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    if (w->in[i] < 0) w->out[i] = CNR_DIM_UNKNOWN;
    else if (lower || cnr_attr_is(node, "auto_pad", "SAME_UPPER")) pad_to_same(w, i, reach, lower);
    else {
        w->out[i] = position_count(w, i, reach, cnr_attr_int(node, "ceil_mode") != 0);
        if (w->out[i] < 1 && w->in[i] > 0) return "the window is larger than the padded input";
    }
    return NULL;
}

const char *cnri_window_resolve(const cnr_node *node, const cnr_tensor *x, const int64_t *kernel,
                                cnr_window *w) {
    const int valid = cnr_attr_is(node, "auto_pad", "VALID");
    int64_t nk = x->rank - 2, ns, nd, np;
    const int64_t *strides = cnr_attr_ints(node, "strides", &ns);
    const int64_t *dilations = cnr_attr_ints(node, "dilations", &nd);
    const int64_t *pads = cnr_attr_ints(node, "pads", &np);
    memset(w, 0, sizeof *w);
    if (!kernel) kernel = cnr_attr_ints(node, "kernel_shape", &nk);
    if (nk != x->rank - 2) return "kernel_shape and the rank of x differ";
    if (nk < 1 || nk > CNR_MAX_SPATIAL) return "rank 3, 4 or 5 wanted (N C spatial)";
    w->spatial = (int32_t)nk;
    for (int32_t i = 0; i < w->spatial; i++) {
        w->in[i] = x->dim[2 + i];
        w->kernel[i] = kernel[i];
        w->stride[i] = i < ns ? strides[i] : 1;
        w->dilation[i] = i < nd ? dilations[i] : 1;
        w->pad_begin[i] = valid || i >= np ? 0 : pads[i];
        w->pad_end[i] = valid || i + nk >= np ? 0 : pads[i + nk];
        const char *why = axis_fault(w, i);
        if (!why) why = resolve_axis(node, w, i);
        if (why) return why;
    }
    return NULL;
}
