/* What kernels ask of nodes: which tensors are plain f32, shapes, scratch. */
#include "support.h"

int32_t neon_own_inputs(const cnr_node *node) {
    int32_t n = node->n_inputs;
    for (int32_t i = 0; i < node->n_epilogue; i++) {
        const int32_t operand = node->epilogue[i]->operand;
        if (operand >= 0 && operand < n) n = operand;
    }
    return n;
}

const cnr_tensor *neon_input(const cnr_node *node, int32_t i) {
    return i < neon_own_inputs(node) ? node->inputs[i] : NULL;
}

static int dense_f32(const cnr_tensor *t) {
    return t->dtype == CNR_f32 && !t->encoding && !(t->flags & CNR_TENSOR_DYNAMIC);
}

int neon_all_f32(const cnr_node *node) {
    const int32_t n = neon_own_inputs(node);
    for (int32_t i = 0; i < n; i++)
        if (node->inputs[i] && !dense_f32(node->inputs[i])) return 0;
    for (int32_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && !dense_f32(node->outputs[i])) return 0;
    return 1;
}

void neon_accept(const cnr_node *node, cnr_accept *out, int32_t score) {
    out->score = score;
    for (int32_t i = 0; i < node->n_inputs; i++) out->in_block[i] = 0;
    for (int32_t i = 0; i < node->n_outputs; i++) out->out_block[i] = 0;
}

int neon_constant(const cnr_tensor *t) {
    return (t->flags & CNR_TENSOR_CONST) && !(t->flags & CNR_TENSOR_VARIABLE) && t->data;
}

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
    const char *why = cnr_window_resolve(node, x, weight->dim + 2, w);
    if (why) return why;
    for (int32_t i = 0; i < w->spatial; i++)
        if (w->out[i] < 0) return "unknown size";
    return neon_padded_fits(w, x->dim[1]) ? NULL : "too large once padded";
}

neon_part neon_part_of(const cnr_run *run, const cnr_tensor *y) {
    neon_part p = {0, y->dim[0], 0, y->dim[1], 0, y->rank > 2 ? y->dim[2] : 1};
    if (run->range_axis == 0) p.image0 = run->range_begin, p.image1 = run->range_end;
    if (run->range_axis == 1) p.channel0 = run->range_begin, p.channel1 = run->range_end;
    if (run->range_axis == 2) p.row0 = run->range_begin, p.row1 = run->range_end;
    return p;
}

void neon_free_state(const cnr_device *device, void *state) {
    (void)device;
    neon_host->free(state);
}

void *neon_padded_state(const cnr_node *node, const cnr_window *w, size_t bytes, cnr_error *err) {
    neon_padded *pad = neon_padded_new(w);
    neon_padded **state = pad ? neon_host->alloc(bytes) : NULL;
    if (!state) {
        neon_host->free(pad);
        neon_host->fail(err, CNR_E_MEMORY, node->name, "no memory for a plan");
        return NULL;
    }
    memset(state, 0, bytes);
    *state = pad;
    return state;
}

void neon_free_padded_state(const cnr_device *device, void *state) {
    (void)device;
    if (state) neon_host->free(*(neon_padded **)state);
    neon_host->free(state);
}
