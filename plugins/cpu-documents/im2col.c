/* im2col: a picture's windows as the columns of a matrix, which turn a convolution into a product.
 * W18, algorithm 3.4. */
#include "documents.h"

static const cnr_port in[] = {{.name = "x", .help = "N C H W"}};
static const cnr_port out[] = {{.name = "y", .help = "N, C times a window's elements, windows"}};
static const cnr_attr_spec attrs[] =
    {{.name = "kernel_shape",
      .type = CNR_ATTR_INTS,
      .flags = CNR_ATTR_REQUIRED | CNR_ATTR_SPATIAL | CNR_ATTR_BOUNDED,
      .alias = "kernel",
      .min = 1,
      .max = 1 << 20,
      .help = "extent of the window along each spatial axis"},
     {.name = "strides",
      .type = CNR_ATTR_INTS,
      .flags = CNR_ATTR_SPATIAL | CNR_ATTR_BOUNDED,
      .alias = "stride",
      .min = 1,
      .max = 1 << 20,
      .fill = 1,
      .help = "step of the window along each spatial axis"},
     {.name = "pads",
      .type = CNR_ATTR_INTS,
      .flags = CNR_ATTR_SPATIAL_PAIRS | CNR_ATTR_BOUNDED,
      .alias = "pad",
      .max = 1 << 20,
      .help = "zeros at the begin and the end of each spatial axis, all begins first"}};

/* Reads a node's window into w; returns NULL, or why it has none. */
static const char *window_of(const cnr_node *node, cnr_window *w) {
    const cnr_tensor *x = node->inputs[0];
    int64_t n;
    const int64_t *kernel = cnr_attr_ints(node, "kernel_shape", &n);
    if (x->rank != 4 || n != 2) return "rank 4 (N C H W) and a window of two axes are wanted";
    int64_t ns, np;
    const int64_t *strides = cnr_attr_ints(node, "strides", &ns);
    const int64_t *pads = cnr_attr_ints(node, "pads", &np);
    *w = (cnr_window){.spatial = 2};
    for (int i = 0; i < 2; i++) {
        w->in[i] = x->dim[2 + i];
        w->kernel[i] = kernel[i];
        w->dilation[i] = 1;
        w->stride[i] = i < ns ? strides[i] : 1;
        w->pad_begin[i] = i < np ? pads[i] : 0;
        w->pad_end[i] = i + 2 < np ? pads[i + 2] : 0;
        w->out[i] = CNR_DIM_UNKNOWN;
        if (w->in[i] < 0) continue;
        const int64_t room = w->in[i] + w->pad_begin[i] + w->pad_end[i] - kernel[i];
        if (room < 0) return "the window is larger than the padded input";
        w->out[i] = room / w->stride[i] + 1;
    }
    return NULL;
}

/* Shape of im2col's output: a row for each tap, a column for each position. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    cnr_tensor *y = outputs[0];
    cnr_window w;
    if (x->dtype != CNR_f32)
        return documents_host->fail(err, CNR_E_UNSUPPORTED, node->name, "x is %s, f32 is wanted",
                                    cnr_dtype_name(x->dtype));
    const char *why = window_of(node, &w);
    if (why) return documents_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    const int64_t taps = w.kernel[0] * w.kernel[1];
    const int known = w.out[0] >= 0 && w.out[1] >= 0;
    if (x->dim[1] > INT64_MAX / taps || (known && w.out[0] > INT64_MAX / w.out[1]))
        return documents_host->fail(err, CNR_E_SHAPE, node->name, "the matrix is too large");
    y->dtype = x->dtype;
    y->rank = 3;
    y->dim[0] = x->dim[0];
    y->dim[1] = x->dim[1] < 0 ? CNR_DIM_UNKNOWN : x->dim[1] * taps;
    y->dim[2] = known ? w.out[0] * w.out[1] : CNR_DIM_UNKNOWN;
    return CNR_OK;
}

/* Writes one row of the matrix, element (kernel_row, kernel_column) of every window of a channel,
 * zeros in the padding; returns the place behind it. */
static float *put_row(const documents_window *w, const float *channel, int64_t kernel_row,
                      int64_t kernel_column, float *to) {
    int64_t row = kernel_row - w->pad[0];
    for (int64_t r = 0; r < w->out[0]; r++, row += w->stride[0]) {
        if (row < 0 || row >= w->in[0]) {
            for (int64_t c = 0; c < w->out[1]; c++) *to++ = 0.0f;
            continue;
        }
        int64_t column = kernel_column - w->pad[1];
        for (int64_t c = 0; c < w->out[1]; c++, column += w->stride[1])
            *to++ = column >= 0 && column < w->in[1] ? channel[row * w->in[1] + column] : 0.0f;
    }
    return to;
}

/* Copies the windows of x into columns. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const float *channel = (const float *)x->data;
    float *to = (float *)run->outputs[0]->data;
    cnr_window own;
    documents_window w;
    const char *why = window_of(run->node, &own);
    if (why || !documents_window_of(&own, &w))
        return documents_host->fail(err, CNR_E_SHAPE, run->node->name, "%s", why);
    for (int64_t i = 0; i < x->dim[0] * x->dim[1]; i++, channel += w.in[0] * w.in[1])
        for (int64_t k = 0; k < w.kernel[0]; k++)
            for (int64_t l = 0; l < w.kernel[1]; l++) to = put_row(&w, channel, k, l, to);
    return CNR_OK;
}

const cnr_op documents_im2col = {
    CNR_OP_SIZES,
    .name = "im2col",
    .summary = "A picture's windows as the columns of a matrix.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .reference = run,
};

/* Takes dense f32 nodes. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *accept) {
    (void)device;
    return documents_accept_plain(node, accept);
}

DOCUMENTS_KERNEL(documents_im2col_kernel, "im2col_f32_w18", "im2col", .accepts = accepts,
                 .run = run);
