/* Questions of the host sides of kernels about nodes: types, constants, windows, ranges. */
#include "support.h"

/* 1: t is a dense f32 tensor of 1 to INT32_MAX - 1 elements. */
static int plain_tensor(const cnr_tensor *t) {
    const int64_t n = cnr_count(t);
    return cnr_is_plain(t, 1u << CNR_f32) && n > 0 && n < INT32_MAX;
}

int ocl_plain(const cnr_node *node) {
    const int32_t n = cnr_own_inputs(node);
    for (int32_t i = 0; i < n; i++)
        if (node->inputs[i] && !plain_tensor(node->inputs[i])) return 0;
    return node->n_outputs == 1 && node->outputs[0] && plain_tensor(node->outputs[0]);
}

int ocl_rest_is_constant(const cnr_node *node) {
    const int32_t own = cnr_own_inputs(node);
    for (int32_t i = 1; i < own; i++)
        if (node->inputs[i] && !cnr_is_constant(node->inputs[i])) return 0;
    return own < 32;
}

/* Method plan_free: frees what plan kept. */
void ocl_free_state(const cnr_device *device, void *state) {
    (void)device;
    ocl_host->free(state);
}

/* ---- windows ---- */

/* 1: the window is 1 wide, without stride and padding. */
static int pointwise(const cnr_window *w) {
    for (int32_t i = 0; i < w->spatial; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->pad_begin[i] || w->pad_end[i]) return 0;
    return 1;
}

void ocl_shape_of(const cnr_window *w, const cnr_tensor *x, const cnr_tensor *y, int64_t group,
                  int flat, ocl_shape *s) {
    *s = (ocl_shape){.n = x->dim[0],
                     .c = x->dim[1],
                     .m = y->dim[1],
                     .group = group,
                     .spatial = w->spatial};
    const cnr_window all = shape_window_three(w);
    for (int32_t i = 0; i < 3; i++) {
        s->in[i] = all.in[i];
        s->out[i] = all.out[i];
        s->k[i] = all.kernel[i];
        s->stride[i] = all.stride[i];
        s->dilation[i] = all.dilation[i];
        s->begin[i] = all.pad_begin[i];
        s->end[i] = all.pad_end[i];
    }
    if (!flat || !pointwise(w)) return;
    s->in[2] = s->out[2] = s->in[0] * s->in[1] * s->in[2];
    s->in[0] = s->in[1] = s->out[0] = s->out[1] = 1;
}

int ocl_is_flat(const ocl_shape *s) {
    return s->in[0] == 1 && s->k[0] == 1 && s->out[0] == 1 && s->begin[0] == 0;
}

/* *box receives the part of the output that the run asks for. */
void ocl_box_of(const cnr_run *run, const ocl_shape *s, ocl_box *box) {
    const int64_t whole[5] = {s->n, s->m, s->out[0], s->out[1], s->out[2]};
    for (int32_t i = 0; i < 5; i++) {
        box->begin[i] = 0;
        box->end[i] = whole[i];
    }
    if (run->range_axis < 0) return;
    int32_t at = run->range_axis < 2 ? run->range_axis : 5 - s->spatial + run->range_axis - 2;
    int64_t each = 1;
    if (run->range_axis >= 2) { /* of a picture seen as one row, a range is many pixels */
        const cnr_tensor *y = run->outputs[0];
        if (s->out[at - 2] != y->dim[run->range_axis]) {
            each = cnr_span(y, run->range_axis + 1, y->rank);
            at = 4;
        }
    }
    box->begin[at] = run->range_begin * each;
    box->end[at] = run->range_end * each;
}

void ocl_shape_args(ocl_call *call, const ocl_shape *s, const ocl_box *box, int64_t blocks,
                    int64_t first_block, int64_t wide, int has_bias) {
    const int64_t shape[16] = {s->c,        s->c / s->group, s->in[0],  s->in[1],
                               s->in[2],    s->out[0],       s->out[1], s->out[2],
                               s->m,        s->m / s->group, blocks,    s->begin[0],
                               s->begin[1], s->begin[2],     has_bias,  0};
    const int64_t range[16] = {box->begin[2],
                               box->begin[3],
                               box->begin[4],
                               box->end[2] - box->begin[2],
                               box->end[3] - box->begin[3],
                               cnr_div_up(box->end[4] - box->begin[4], wide),
                               box->end[4],
                               box->begin[1],
                               box->end[1],
                               box->begin[0],
                               first_block};
    ocl_arg_longs(call, shape, 16);
    ocl_arg_longs(call, range, 16);
}

/* Adds the window's sizes to the call's arguments. */
void ocl_window_args(ocl_call *call, const ocl_shape *s) {
    int64_t window[16] = {0};
    memcpy(window, s->k, sizeof s->k);
    memcpy(window + 3, s->stride, sizeof s->stride);
    memcpy(window + 6, s->dilation, sizeof s->dilation);
    ocl_arg_longs(call, window, 16);
}
