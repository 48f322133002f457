/* Padded planes: a channel's input copied with its padding, so that kernels check no borders. */
#include "padded.h"

int neon_pointwise(const cnr_window *w) {
    for (int32_t i = 0; i < w->spatial; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->pad_begin[i] || w->in[i] != w->out[i])
            return 0;
    return 1;
}

int neon_unpadded(const neon_padded *g) {
    for (int32_t i = 0; i < 3; i++)
        if (g->w.stride[i] != 1 || g->w.pad_begin[i]) return 0;
    return g->deep == g->w.in[0] && g->high == g->w.in[1] && g->pitch == g->w.in[2];
}

neon_padded *neon_padded_new(const cnr_window *window) {
    const cnr_window w = shape_window_three(window);
    int64_t extent[3];
    const int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
    neon_padded *g = neon_host->alloc(sizeof *g + (size_t)taps * sizeof g->tap[0]);
    if (!g) return NULL;
    for (int i = 0; i < 3; i++)
        extent[i] =
            cnr_max(0, (w.out[i] - 1) * w.stride[i]) + (w.kernel[i] - 1) * w.dilation[i] + 1;
    g->w = w;
    g->taps = taps;
    g->n = w.out[0] * w.out[1] * w.out[2];
    g->in = w.in[0] * w.in[1] * w.in[2];
    g->phase = cnr_div_up(extent[2], w.stride[2]);
    g->pitch = g->phase * w.stride[2];
    g->high = extent[1];
    g->deep = extent[0];
    g->slice = g->pitch * extent[1];
    g->plane = g->slice * extent[0];
    int64_t t = 0;
    for (int64_t z = 0; z < w.kernel[0]; z++)
        for (int64_t y = 0; y < w.kernel[1]; y++)
            for (int64_t x = 0; x < w.kernel[2]; x++) {
                const int64_t ix = x * w.dilation[2];
                g->tap[t++] = z * w.dilation[0] * g->slice + y * w.dilation[1] * g->pitch +
                              ix % w.stride[2] * g->phase + ix / w.stride[2];
            }
    return g;
}

int64_t neon_padded_row(const neon_padded *g, int64_t row) {
    return row / g->w.out[1] * g->w.stride[0] * g->slice +
           row % g->w.out[1] * g->w.stride[1] * g->pitch;
}

/* Sets n floats to one number. */
static void fill_run(float *out, float fill, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = fill;
}

/* Copies one phase of one row: out[i] = x[i * stride + first], `fill` outside the input. */
static void pad_phase(float *out, int64_t n, const float *x, int64_t in, int64_t stride,
                      int64_t first, float fill) {
    const int64_t before = first < 0 ? cnr_min(n, cnr_div_up(-first, stride)) : 0;
    const int64_t upto = first < in ? cnr_min(n, cnr_div_up(in - first, stride)) : 0;
    fill_run(out, fill, before);
    if (stride == 1 && upto > before)
        memcpy(out + before, x + before + first, (size_t)(upto - before) * sizeof *x);
    else if (upto > before)
        neon_uk->strided(x + before * stride + first, stride, out + before, upto - before);
    if (upto > before) fill_run(out + upto, fill, n - upto);
    else fill_run(out + before, fill, n - before);
}

void neon_pad(const neon_padded *g, const float *x, float fill, float *out) {
    const cnr_window *w = &g->w;
    for (int64_t z = 0; z < g->deep; z++) {
        const int64_t iz = z - w->pad_begin[0];
        for (int64_t y = 0; y < g->high; y++, out += g->pitch) {
            const int64_t iy = y - w->pad_begin[1];
            if (iz < 0 || iz >= w->in[0] || iy < 0 || iy >= w->in[1]) {
                fill_run(out, fill, g->pitch);
                continue;
            }
            const float *row = x + (iz * w->in[1] + iy) * w->in[2];
            for (int64_t s = 0; s < w->stride[2]; s++)
                pad_phase(out + s * g->phase, g->phase, row, w->in[2], w->stride[2],
                          s - w->pad_begin[2], fill);
        }
    }
}

/* Copies one row of a padded plane back: x[i * stride + first] = from[i] of each phase. */
static void unpad_row(const neon_padded *g, const float *from, float *x) {
    const int64_t stride = g->w.stride[2], in = g->w.in[2], pad = g->w.pad_begin[2];
    if (g->pitch - pad < in) memset(x, 0, (size_t)in * sizeof *x);
    if (stride == 1) {
        memcpy(x, from + pad, (size_t)cnr_max(0, cnr_min(in, g->pitch - pad)) * sizeof *x);
        return;
    }
    for (int64_t s = 0; s < stride; s++, from += g->phase) {
        const int64_t first = s - pad, begin = first < 0 ? cnr_div_up(-first, stride) : 0;
        const int64_t end = first < in ? cnr_min(g->phase, cnr_div_up(in - first, stride)) : 0;
        for (int64_t i = begin; i < end; i++) x[i * stride + first] = from[i];
    }
}

void neon_unpad(const neon_padded *g, const float *padded, float *x) {
    const cnr_window *w = &g->w;
    for (int64_t z = 0; z < w->in[0]; z++)
        for (int64_t y = 0; y < w->in[1]; y++, x += w->in[2]) {
            const int64_t pz = z + w->pad_begin[0], py = y + w->pad_begin[1];
            if (pz < g->deep && py < g->high)
                unpad_row(g, padded + pz * g->slice + py * g->pitch, x);
            else memset(x, 0, (size_t)w->in[2] * sizeof *x);
        }
}

int64_t neon_segments(const neon_padded *g, int64_t col, int64_t n, neon_segment *out) {
    const int64_t wide = g->w.out[2];
    int64_t count = 0;
    while (n > 0) {
        const int64_t row = col / wide, x = col % wide, run = cnr_min(n, wide - x);
        out[count].from = neon_padded_row(g, row) + x;
        out[count++].n = run;
        col += run;
        n -= run;
    }
    return count;
}

/* Adds a tap's row of values to a row of inputs. */
static void add_row(const cnr_window *w, int64_t kx, const float *from, float *to) {
    const int64_t stride = w->stride[2], first = kx * w->dilation[2] - w->pad_begin[2];
    const int64_t begin = first < 0 ? cnr_div_up(-first, stride) : 0;
    const int64_t end =
        first < w->in[2] ? cnr_min(w->out[2], cnr_div_up(w->in[2] - first, stride)) : 0;
    if (stride == 1 && end > begin) neon_uk->add(to + begin + first, from + begin, end - begin);
    else
        for (int64_t i = begin; i < end; i++) to[i * stride + first] += from[i];
}

void neon_col2im_tap(const neon_padded *g, int64_t tap, const float *from, int64_t pitch,
                     float *x) {
    const cnr_window *w = &g->w;
    const int64_t kx = tap % w->kernel[2], ky = tap / w->kernel[2] % w->kernel[1];
    const int64_t kz = tap / w->kernel[2] / w->kernel[1];
    for (int64_t row = 0; row < w->out[0] * w->out[1]; row++) {
        const int64_t iz = row / w->out[1] * w->stride[0] + kz * w->dilation[0] - w->pad_begin[0];
        const int64_t iy = row % w->out[1] * w->stride[1] + ky * w->dilation[1] - w->pad_begin[1];
        if (iz < 0 || iz >= w->in[0] || iy < 0 || iy >= w->in[1]) continue;
        add_row(w, kx, from + row * pitch, x + (iz * w->in[1] + iy) * w->in[2]);
    }
}
