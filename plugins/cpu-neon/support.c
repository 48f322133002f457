/* Checks of nodes and tensors, shapes, scratch. */
#include "support.h"
#include <math.h>

int neon_padded_fits(const cnr_window *w, int64_t channels) {
    double floats = (double)channels;
    for (int32_t i = 0; i < w->spatial; i++)
        floats *= (double)w->out[i] * (double)w->stride[i] +
                  (double)w->kernel[i] * (double)w->dilation[i];
    return floats < 1e10;
}

const char *neon_conv_window(const cnr_node *node, const cnr_tensor *x, const cnr_tensor *weight,
                             cnr_window *w) {
    if (x->rank < 3 || weight->rank != x->rank) return "ranks differ";
    const char *why = neon_host->window_resolve(node, x, weight->dim + 2, w);
    if (why) return why;
    for (int32_t i = 0; i < w->spatial; i++)
        if (w->out[i] < 0) return "unknown size";
    return neon_padded_fits(w, x->dim[1]) ? NULL : "too large once padded";
}

int neon_is_gradient(const cnr_node *node) {
    return strcmp(node->desc->name, "conv_grad_input") == 0;
}

/* Turns the window of a convolution at stride 1 into that of its input's gradient, in place;
 * returns NULL, or why not. */
static const char *turn_window(cnr_window *w) {
    int64_t in = 1;
    for (int32_t i = 0; i < w->spatial; i++) {
        const int64_t size = w->in[i];
        if (w->stride[i] != 1) return "stride 1 is wanted";
        w->in[i] = w->out[i];
        w->out[i] = size;
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i];
        w->pad_begin[i] = reach - w->pad_begin[i];
        const int64_t pad_end = w->out[i] + reach - w->in[i] - w->pad_begin[i];
        if (cnr_max(w->pad_begin[i], pad_end) > CNR_SPREAD_POSITIONS)
            return "the padding is too wide";
        if (w->pad_begin[i] >= w->out[i] || pad_end >= w->out[i])
            return "a tap lies in the padding alone";
        in *= w->in[i];
    }
    /* a window without padding is turned into one with much of it, which is multiplied too */
    return 2 * neon_outputs(w) > 3 * in ? "too much padding" : NULL;
}

const char *neon_turned_window(const cnr_node *node, cnr_window *w) {
    const int gradient = neon_is_gradient(node);
    const cnr_tensor *x = cnr_own_input(node, gradient ? 2 : 0), *weight = cnr_own_input(node, 1);
    if (!x || !weight || !neon_all_f32(node)) return NEON_WANTS_F32;
    const char *why = neon_conv_window(node, x, weight, w);
    if (why || !gradient) return why;
    why = turn_window(w);
    return why || neon_padded_fits(w, weight->dim[0]) ? why : "too large once padded";
}

double neon_cost_ns(double flops, double share) {
    /* two vectors of multiply-adds in each cycle, at about 3.2 GHz */
    return flops / (share * 12.8 * neon_uk->vl);
}

double neon_conv_cost(const cnr_node *node, const cnr_window *w, double large, double small) {
    const double plane = (double)neon_outputs(w);
    const cnr_tensor *weight = node->inputs[1];
    const double flops = 2.0 * (double)node->inputs[0]->dim[0] * plane * (double)cnr_count(weight);
    return neon_cost_ns(flops, plane >= 100 ? large : small);
}

/* 1 if one of n floats, given by their bits, is finite but becomes infinite in fp16 (from 65520
 * on). Compares integers, which compilers vectorise. */
static int is_past_f16(const uint32_t *bits, int64_t n) {
    uint32_t past = 0;
    for (int64_t i = 0; i < n; i++)
        past |= (uint32_t)((bits[i] & 0x7fffffff) - 0x477ff000u < 0x7f800000u - 0x477ff000u);
    return past != 0;
}

cnr_status neon_f16_holds(const cnr_node *node, cnr_error *err) {
    enum { BLOCK = 4096 };
    const cnr_tensor *weight = node->inputs[1];
    const int64_t n = cnr_count(weight);
    const uint32_t *bits = weight->data;
    for (int64_t at = 0; at < n; at += BLOCK) {
        if (!is_past_f16(bits + at, cnr_min(BLOCK, n - at))) continue;
        while (!is_past_f16(bits + at, 1)) at++;
        return neon_host->fail(err, CNR_E_UNSUPPORTED, node->name,
                               "its weight %g is none in fp16: "
                               "without --weights-type fp16 it is",
                               (double)neon_floats(weight)[at]);
    }
    return CNR_OK;
}

double neon_long_sum(const float *x, int64_t n) {
    enum { STRETCH = 1024 };
    double sum = 0;
    for (int64_t i = 0; i < n; i += STRETCH)
        sum += (double)neon_uk->sum(x + i, cnr_min(STRETCH, n - i));
    if (isfinite(sum)) return sum;
    sum = 0; /* a stretch overflowed floats, or an element is not finite */
    for (int64_t i = 0; i < n; i++) sum += (double)x[i];
    return sum;
}

neon_part neon_part_of(const cnr_run *run) {
    int64_t lo[CNR_MAX_RANK] = {0}, hi[CNR_MAX_RANK] = {1, 1, 1};
    cnr_range_of(run, lo, hi);
    return (neon_part){lo[0], hi[0], lo[1], hi[1], lo[2], hi[2]};
}

void neon_free_state(const cnr_device *device, void *state) {
    (void)device;
    neon_host->free(state);
}

void *neon_padded_state(const cnr_node *node, const cnr_window *w, size_t bytes, cnr_error *err) {
    neon_padded *pad = neon_padded_new(w);
    neon_padded **state = cnr_state(neon_host, node, bytes, err);
    if (pad && state) {
        *state = pad;
        return state;
    }
    if (state) neon_host->fail(err, CNR_E_MEMORY, node->name, "no memory for a plan");
    neon_host->free(pad);
    neon_host->free(state);
    return NULL;
}

void neon_free_padded_state(const cnr_device *device, void *state) {
    (void)device;
    if (state) neon_host->free(*(neon_padded **)state);
    neon_host->free(state);
}
