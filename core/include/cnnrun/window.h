/* Arithmetic of sliding windows (convolution, pooling), shared by operators and kernels: evaluates
 * ONNX's kernel_shape, strides, pads, dilations, auto_pad and ceil_mode for a node. */
#ifndef CNNRUN_WINDOW_H
#define CNNRUN_WINDOW_H

#include <cnnrun/op.h>

CNR_BEGIN_C

#define CNR_MAX_SPATIAL 3

/* A sliding window: sizes of input, output and kernel, stride, dilation and padding by axis. */
typedef struct cnr_window {
    int32_t spatial; /* number of spatial axes, 1 to 3 */
    int64_t in[CNR_MAX_SPATIAL], out[CNR_MAX_SPATIAL];
    int64_t kernel[CNR_MAX_SPATIAL], stride[CNR_MAX_SPATIAL], dilation[CNR_MAX_SPATIAL];
    int64_t pad_begin[CNR_MAX_SPATIAL], pad_end[CNR_MAX_SPATIAL];
} cnr_window;

/* Returns the number of positions of a window of extent `reach` over the padded input. ceil_mode as
 * in Caffe and ONNX: the last window must start inside the input or its begin padding. */
static inline int64_t cnr_window_count(int64_t in, int64_t reach, int64_t stride, int64_t begin,
                                       int64_t end, int ceil_mode) {
    const int64_t room = in + begin + end - reach;
    if (room < 0)
        return ceil_mode && -room < stride && in + begin > 0; /* a part of one window, rounded up */
    int64_t n = room / stride + 1;
    if (ceil_mode && room % stride != 0) {
        n++;
        if ((n - 1) * stride >= in + begin) n--;
    }
    return n;
}

/* Fills `w` for input x and window extents `kernel` (kernel[i] >= 1). For unknown spatial dims, out
 * is CNR_DIM_UNKNOWN. Returns NULL, or a static text that says what does not fit. */
static inline const char *cnr_window_resolve(const cnr_node *node, const cnr_tensor *x,
                                             const int64_t *kernel, cnr_window *w) {
    int64_t ns, nd, np;
    const int64_t *strides = cnr_attr_ints(node, "strides", &ns);
    const int64_t *dilations = cnr_attr_ints(node, "dilations", &nd);
    const int64_t *pads = cnr_attr_ints(node, "pads", &np);
    const char *auto_pad = cnr_attr_string(node, "auto_pad");
    const int ceil_mode = cnr_attr_int(node, "ceil_mode") != 0;
    memset(w, 0, sizeof *w);
    if (x->rank < 3 || x->rank > 2 + CNR_MAX_SPATIAL) return "rank 3, 4 or 5 wanted (N C spatial)";
    w->spatial = x->rank - 2;
    for (int32_t i = 0; i < w->spatial; i++) {
        const int64_t in = x->dim[2 + i];
        const int64_t stride = i < ns ? strides[i] : 1, dilation = i < nd ? dilations[i] : 1;
        if (stride < 1 || dilation < 1 || kernel[i] < 1)
            return "kernel, stride and dilation must be 1 or more";
        if (kernel[i] > (1 << 20) || dilation > (1 << 20) || stride > (1 << 20))
            return "kernel, stride and dilation must be 1048576 or less";
        const int64_t reach = (kernel[i] - 1) * dilation + 1;
        int64_t begin = i < np ? pads[i] : 0;
        int64_t end = i + w->spatial < np ? pads[i + w->spatial] : 0;
        if (begin > (1 << 20) || end > (1 << 20) || begin < -(1 << 20) || end < -(1 << 20))
            return "pads must be 1048576 or less";
        w->in[i] = in;
        w->kernel[i] = kernel[i];
        w->stride[i] = stride;
        w->dilation[i] = dilation;
        const int same = strcmp(auto_pad, "SAME_UPPER") == 0 || strcmp(auto_pad, "SAME_LOWER") == 0;
        if (strcmp(auto_pad, "VALID") == 0) begin = end = 0;
        if (in < 0) {
            w->pad_begin[i] = begin;
            w->pad_end[i] = end;
            w->out[i] = CNR_DIM_UNKNOWN;
            continue;
        }
        if (same) {
            const int64_t out = (in + stride - 1) / stride;
            int64_t total = (out - 1) * stride + reach - in;
            if (total < 0) total = 0;
            const int64_t less = total / 2, more = total - less;
            begin = strcmp(auto_pad, "SAME_UPPER") == 0 ? less : more;
            end = total - begin;
            w->out[i] = out;
        } else {
            w->out[i] = cnr_window_count(in, reach, stride, begin, end, ceil_mode);
            if (w->out[i] < 1 && in > 0) return "the window is larger than the padded input";
        }
        w->pad_begin[i] = begin;
        w->pad_end[i] = end;
    }
    return NULL;
}

/* Does the same for the attribute "kernel_shape", which pooling operators have. */
static inline const char *cnr_window_pool(const cnr_node *node, const cnr_tensor *x,
                                          cnr_window *w) {
    int64_t n;
    const int64_t *kernel = cnr_attr_ints(node, "kernel_shape", &n);
    if (n != x->rank - 2) return "kernel_shape and the rank of x differ";
    return cnr_window_resolve(node, x, kernel, w);
}

CNR_END_C
#endif
