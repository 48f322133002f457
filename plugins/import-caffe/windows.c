/* Convolution, dense layers and pooling. */
#include "layer.h"

#include <stdio.h>

/* Fills out[rank] from a repeated field (one value for all axes, or one for each), or its h and w
 * where they are set (has_h, has_w); else `fallback`. */
static void spatial(const uint32_t *values, size_t n, int has_h, uint32_t h, int has_w, uint32_t w,
                    int64_t fallback, int32_t rank, int64_t *out) {
    for (int32_t i = 0; i < rank; i++)
        out[i] = n == 0 ? fallback : values[(size_t)i < n ? (size_t)i : n - 1];
    if (rank == 2 && has_h) out[0] = h;
    if (rank == 2 && has_w) out[1] = w;
}

void caffe_convolution(caffe_job *j) {
    static const Caffe__ConvolutionParameter none = CAFFE__CONVOLUTION_PARAMETER__INIT;
    const Caffe__ConvolutionParameter *p =
        j->layer->convolution_param ? j->layer->convolution_param : &none;
    const int turned = strcmp(j->layer->type, "Deconvolution") == 0;
    const int64_t channels = caffe_channels(j), out = p->num_output;
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    int64_t kernel[3], stride[3], dilation[3], pad[6];
    if (j->failed) return;
    const int32_t rank = x->rank - 2;
    int64_t group = p->group;
    if (strstr(j->layer->type, "epthwise") && !p->has_group) group = channels;
    if (p->axis != 1 || rank < 1 || rank > 3)
        return caffe_problem(j, "axis 1 of N C spatial is wanted");
    if (out < 1 || group < 1 || channels % group || out % group)
        return caffe_problem(j, "num_output and group do not fit the input's channels");
    spatial(p->kernel_size, p->n_kernel_size, p->has_kernel_h, p->kernel_h, p->has_kernel_w,
            p->kernel_w, 0, rank, kernel);
    spatial(p->stride, p->n_stride, p->has_stride_h, p->stride_h, p->has_stride_w, p->stride_w, 1,
            rank, stride);
    spatial(p->dilation, p->n_dilation, 0, 0, 0, 0, 1, rank, dilation);
    spatial(p->pad, p->n_pad, p->has_pad_h, p->pad_h, p->has_pad_w, p->pad_w, 0, rank, pad);
    memcpy(pad + rank, pad, (size_t)rank * sizeof pad[0]);
    int64_t dim[5] = {turned ? channels : out, (turned ? out : channels) / group};
    for (int32_t i = 0; i < rank; i++) {
        if (kernel[i] < 1) return caffe_problem(j, "kernel_size is missing");
        dim[2 + i] = kernel[i];
    }
    const cnr_value from[] = {j->in[0], caffe_blob(j, 0, ".weight", dim, rank + 2, 1),
                              p->bias_term ? caffe_blob(j, 1, ".bias", &out, 1, 1) : -1};
    if (j->failed) return;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "kernel_shape", kernel, rank);
    imp_ints(&l, "strides", stride, rank);
    imp_ints(&l, "dilations", dilation, rank);
    imp_ints(&l, "pads", pad, 2 * rank);
    imp_int(&l, "group", group);
    if (!p->bias_term) imp_bool(&l, "bias", 0);
    caffe_give(j, 0, caffe_node(j, turned ? "conv_transpose" : "conv", "", from, 3, &l));
}

void caffe_inner_product(caffe_job *j) {
    const Caffe__InnerProductParameter *p = j->layer->inner_product_param;
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    if (!p || p->num_output < 1) return caffe_problem(j, "num_output is missing");
    if (!x || x->rank < 1) {
        j->failed = 1;
        return;
    }
    const int64_t out = p->num_output, axis = caffe_axis(j, p->axis);
    int64_t k = 1;
    for (int32_t i = (int32_t)axis; i >= 0 && i < x->rank; i++)
        k = x->dim[i] < 0 ? -1 : k * x->dim[i];
    if (k < 0 && j->n_blobs) k = caffe_blob_count(j->blobs[0]) / out;
    if (k < 1) return caffe_problem(j, "the size of its input is not known");
    const int64_t plain[] = {out, k}, turned[] = {k, out};
    cnr_value weight = caffe_blob(j, 0, p->transpose ? ".weight_t" : ".weight",
                                  p->transpose ? turned : plain, 2, 1);
    const cnr_value bias = p->bias_term ? caffe_blob(j, 1, ".bias", &out, 1, 1) : -1;
    const int64_t swap[] = {1, 0};
    if (j->failed) return;
    if (axis == 1) {
        if (p->transpose) weight = imp_transpose(&j->net->b, j->name, ".weight", weight, swap, 2);
        imp_attrs l = {.n = 0};
        if (!p->bias_term) imp_bool(&l, "bias", 0);
        caffe_give(j, 0, caffe_node(j, "dense", "", (cnr_value[]){j->in[0], weight, bias}, 3, &l));
    } else if (axis == x->rank - 1) {
        if (!p->transpose) weight = imp_transpose(&j->net->b, j->name, ".weight", weight, swap, 2);
        cnr_value y = caffe_node(j, "matmul", bias < 0 ? "" : ".product",
                                 (cnr_value[]){j->in[0], weight}, 2, NULL);
        if (bias >= 0) y = caffe_node(j, "add", "", (cnr_value[]){y, bias}, 2, NULL);
        caffe_give(j, 0, y);
    } else {
        caffe_problem(j, "axis must be 1 or the last");
    }
}

void caffe_pooling(caffe_job *j) {
    static const Caffe__PoolingParameter none = CAFFE__POOLING_PARAMETER__INIT;
    const Caffe__PoolingParameter *p = j->layer->pooling_param ? j->layer->pooling_param : &none;
    const int max = p->pool == CAFFE__POOLING_PARAMETER__POOL_METHOD__MAX;
    if (p->pool == CAFFE__POOLING_PARAMETER__POOL_METHOD__STOCHASTIC)
        return caffe_problem(j, "stochastic pooling is for training only");
    if (j->layer->n_top > 1) return caffe_problem(j, "the mask output of pooling is not supported");
    if (p->global_pooling)
        return caffe_give(j, 0,
                          caffe_node(j, max ? "global_max_pool" : "global_average_pool", "", j->in,
                                     1, NULL));
    int64_t kernel[2], stride[2], pad[4];
    spatial(&p->kernel_size, p->has_kernel_size, p->has_kernel_h, p->kernel_h, p->has_kernel_w,
            p->kernel_w, 0, 2, kernel);
    spatial(&p->stride, p->has_stride, p->has_stride_h, p->stride_h, p->has_stride_w, p->stride_w,
            1, 2, stride);
    spatial(&p->pad, p->has_pad, p->has_pad_h, p->pad_h, p->has_pad_w, p->pad_w, 0, 2, pad);
    pad[2] = pad[0], pad[3] = pad[1];
    if (kernel[0] < 1 || kernel[1] < 1) return caffe_problem(j, "kernel_size is missing");
    imp_attrs l = {.n = 0};
    imp_ints(&l, "kernel_shape", kernel, 2);
    imp_ints(&l, "strides", stride, 2);
    imp_ints(&l, "pads", pad, 4);
    imp_bool(&l, "ceil_mode",
             p->round_mode == CAFFE__POOLING_PARAMETER__ROUND_MODE__CEIL && p->ceil_mode);
    if (!max) imp_bool(&l, "count_include_pad", 1); /* as Caffe's divisor does */
    caffe_give(j, 0, caffe_node(j, max ? "max_pool" : "average_pool", "", j->in, 1, &l));
}

void caffe_roi_pooling(caffe_job *j) {
    const Caffe__ROIPoolingParameter *p = j->layer->roi_pooling_param;
    if (!p || p->pooled_h < 1 || p->pooled_w < 1)
        return caffe_problem(j, "pooled_h and pooled_w are wanted");
    const int64_t shape[] = {p->pooled_h, p->pooled_w};
    imp_attrs l = {.n = 0};
    imp_ints(&l, "pooled_shape", shape, 2);
    imp_float(&l, "spatial_scale", (double)p->spatial_scale);
    caffe_give(j, 0, caffe_node(j, "max_roi_pool", "", j->in, 2, &l));
}
