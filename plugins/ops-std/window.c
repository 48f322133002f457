/* Geometry of sliding windows, extended to three spatial axes. */
#include "ops_window.h"

void ops_geometry_of(const cnr_window *w, const cnr_tensor *x, const cnr_run *run,
                     ops_geometry *g) {
    const int32_t absent = 3 - w->spatial;
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    g->n = x->dim[0];
    g->c = x->dim[1];
    for (int32_t i = 0; i < 3; i++) {
        const int32_t j = i - absent;
        g->in[i] = j < 0 ? 1 : w->in[j];
        g->out[i] = j < 0 ? 1 : w->out[j];
        g->k[i] = j < 0 ? 1 : w->kernel[j];
        g->s[i] = j < 0 ? 1 : w->stride[j];
        g->d[i] = j < 0 ? 1 : w->dilation[j];
        g->p[i] = j < 0 ? 0 : w->pad_begin[j];
        g->e[i] = j < 0 ? 0 : w->pad_end[j];
    }
    cnr_range_of(run, lo, hi);
    for (int32_t i = 0; i < 5; i++) {
        const int32_t j = i < 2 ? i : i - absent;
        g->lo[i] = i >= 2 && j < 2 ? 0 : lo[j];
        g->hi[i] = i >= 2 && j < 2 ? 1 : hi[j];
    }
}

cnr_input_range ops_window_region(const cnr_window *w, int32_t i, int64_t begin, int64_t end) {
    const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    cnr_input_range r = {.axis = 2 + i,
                         .begin = begin * w->stride[i] - w->pad_begin[i],
                         .end = (end - 1) * w->stride[i] - w->pad_begin[i] + reach};
    if (r.begin < 0) r.begin = 0;
    if (r.begin > w->in[i]) r.begin = w->in[i];
    if (r.end > w->in[i]) r.end = w->in[i];
    if (r.end < r.begin) r.end = r.begin;
    return r;
}
