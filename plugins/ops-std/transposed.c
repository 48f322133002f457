/* Transposed convolution: conv_transpose, and the gradient of conv's input. */
#include "ops_window.h"

/* The input position j of tap k for output position i: j * s = i + p - k * d, 0 <= j < out; -1:
 * none. */
static inline int64_t source(const ops_geometry *g, int axis, int64_t i, int64_t k) {
    const int64_t t = i + g->p[axis] - k * g->d[axis];
    if (t < 0 || t % g->s[axis] != 0) return -1;
    return t / g->s[axis] < g->out[axis] ? t / g->s[axis] : -1;
}

/* x starts at the group's first channel, w at [first channel of the group][o][0]. */
OPS_INLINE double element(const ops_geometry *g, int32_t dtype, const void *x, const void *w,
                          int64_t channels, int64_t w_step, const int64_t *at) {
    double sum = 0;
    for (int64_t i = 0; i < g->k[0]; i++) {
        const int64_t d = source(g, 0, at[0], i);
        for (int64_t j = 0; d >= 0 && j < g->k[1]; j++) {
            const int64_t h = source(g, 1, at[1], j);
            for (int64_t k = 0; h >= 0 && k < g->k[2]; k++) {
                const int64_t v = source(g, 2, at[2], k);
                if (v < 0) continue;
                const int64_t from = (d * g->out[1] + h) * g->out[2] + v;
                const int64_t tap = (i * g->k[1] + j) * g->k[2] + k;
                for (int64_t c = 0; c < channels; c++)
                    sum += ops_get(dtype, x, c * ops_volume(g->out) + from) *
                           ops_get(dtype, w, c * w_step + tap);
            }
        }
    }
    return sum;
}

OPS_INLINE void body(const cnr_run *run, const ops_geometry *g, int64_t group, const cnr_tensor *x,
                     const cnr_tensor *weight, const cnr_tensor *bias, int32_t dtype) {
    const cnr_tensor *y = run->outputs[0];
    const int64_t channels = weight->dim[0] / group, each = weight->dim[1];
    const int64_t window = ops_volume(g->k), size = (int64_t)ops_size(dtype);
    int64_t at[3];
    for (int64_t n = g->lo[0]; n < g->hi[0]; n++)
        for (int64_t o = g->lo[1]; o < g->hi[1]; o++) {
            const int64_t first = o / each * channels;
            const char *from =
                (const char *)x->data + (n * x->dim[1] + first) * ops_volume(g->out) * size;
            const char *w = (const char *)weight->data + (first * each + o % each) * window * size;
            const double shift = bias ? ops_get(dtype, bias->data, o) : 0;
            const int64_t base = (n * y->dim[1] + o) * ops_volume(g->in);
            if (ops_cancelled(run)) return;
            for (at[0] = g->lo[2]; at[0] < g->hi[2]; at[0]++)
                for (at[1] = g->lo[3]; at[1] < g->hi[3]; at[1]++)
                    for (at[2] = g->lo[4]; at[2] < g->hi[4]; at[2]++)
                        ops_put(dtype, y->data,
                                base + (at[0] * g->in[1] + at[1]) * g->in[2] + at[2],
                                shift + element(g, dtype, from, w, channels, each * window, at));
        }
}

void ops_transposed(const cnr_run *run, const ops_geometry *g, int64_t group, const cnr_tensor *x,
                    const cnr_tensor *weight, const cnr_tensor *bias) {
    OPS_SPECIALISE(run->outputs[0]->dtype, body(run, g, group, x, weight, bias, dtype));
}
