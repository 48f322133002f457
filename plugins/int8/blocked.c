/* The channel-blocked layout of bytes: block sizes of values, and padded copies of x for
 * windows. */
#include "blocked.h"

int32_t int8_channel_block(int64_t channels) {
    return channels < 1 ? 0 : channels % 16 == 0 ? 16 : channels % 8 == 0 ? 8 : 0;
}

int32_t int8_block_of(int32_t rank, const int64_t *dim) {
    int64_t plane = 1;
    for (int32_t i = 2; i < rank; i++) plane *= dim[i];
    return rank < 3 || plane <= 1 ? 0 : int8_channel_block(dim[1]);
}

cnr_status int8_blocked_take(const cnr_node *node, cnr_accept *out, int32_t score, int32_t in_block,
                             int32_t out_block) {
    cnr_take(node, out, score);
    out->in_block[0] = in_block;
    out->out_block[0] = out_block;
    return CNR_OK;
}

const char *int8_conv_window(const cnr_node *node, cnr_window *out, int64_t *dim) {
    const cnr_tensor *x = node->inputs[INT8_X], *w = node->inputs[INT8_W];
    cnr_window own;
    if (x->rank < 3 || w->rank != x->rank) return "ranks differ";
    const char *why = int8_host->window_resolve(node, x, w->dim + 2, &own);
    if (why) return why;
    *out = shape_window_three(&own);
    double bytes = (double)(x->dim[1] + 16);
    for (int32_t i = 0; i < 3; i++) {
        if (out->out[i] < 0) return "unknown size";
        bytes *= (double)(out->out[i] + 1) * (double)out->stride[i] +
                 (double)out->kernel[i] * (double)out->dilation[i];
    }
    dim[0] = x->dim[0];
    dim[1] = w->dim[0];
    memcpy(dim + 2, own.out, (size_t)own.spatial * sizeof dim[0]);
    return bytes < 1e9 ? NULL : "too large once padded";
}

int int8_planes_flat(const cnr_window *w, int64_t pixel) {
    for (int i = 0; i < 3; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->pad_begin[i] || w->in[i] != w->out[i])
            return 0;
    return pixel > 4;
}

int int8_planes_lie(const cnr_node *node, const cnr_window *w, int64_t pixel) {
    const int32_t dtype = INT8_BLOCKED_MIDDLE ? CNR_i8 : CNR_u8;
    return node->inputs[INT8_X]->dtype == dtype && int8_planes_flat(w, pixel);
}

void int8_planes_of(const cnr_node *node, const cnr_window *w, int64_t pixel, int8_planes *out) {
    *out = (int8_planes){.w = *w, .pixel = pixel, .phases = w->stride[2]};
    out->n = cnr_div_up(node->inputs[INT8_X]->dim[1], pixel);
    for (int i = 0; i < 2; i++)
        out->rows[i] =
            cnr_max(0, w->out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
    const int64_t reach =
        cnr_max(0, w->out[2] - 1) * w->stride[2] + (w->kernel[2] - 1) * w->dilation[2] + 1;
    out->columns = cnr_div_up(reach, w->stride[2]);
    /* leave out phases that no tap reads, if the window is narrower than its stride */
    if (w->dilation[2] == 1) out->phases = cnr_min(out->phases, w->kernel[2]);
    out->row = out->phases * out->columns * pixel;
    out->plane = out->rows[0] * out->rows[1] * out->row;
    out->points = w->out[0] * w->out[1] * w->out[2];
}

int64_t int8_planes_tap(const int8_planes *p, int64_t z, int64_t y, int64_t x) {
    const int64_t column = x * p->w.dilation[2];
    return (z * p->w.dilation[0] * p->rows[1] + y * p->w.dilation[1]) * p->row +
           (column % p->w.stride[2] * p->columns + column / p->w.stride[2]) * p->pixel;
}

int64_t int8_planes_row(const int8_planes *p, int64_t row) {
    const int64_t z = row / p->w.out[1], y = row % p->w.out[1];
    return (z * p->w.stride[0] * p->rows[1] + y * p->w.stride[1]) * p->row;
}

/* ---- copying ---- */

/* Copies n bytes, a multiple of 8, and XORs each with `flip`. */
static void copy_flipped(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip) {
    typedef uint64_t pair __attribute__((vector_size(16)));
    const uint64_t flips = flip * 0x0101010101010101u;
    int64_t i = 0;
    if (!flip) {
        memcpy(to, from, (size_t)n);
        return;
    }
    for (; i + 16 <= n; i += 16) {
        pair v;
        memcpy(&v, from + i, sizeof v);
        v ^= flips;
        memcpy(to + i, &v, sizeof v);
    }
    if (i == n) return;
    uint64_t v;
    memcpy(&v, from + i, sizeof v);
    v ^= flips;
    memcpy(to + i, &v, sizeof v);
}

/* The columns [begin, end) of a phase that lie inside x's row; the others are padding. */
static void inside(const int8_planes *p, int64_t phase, int64_t *begin, int64_t *end) {
    const int64_t stride = p->w.stride[2], shift = phase - p->w.pad_begin[2];
    *begin = shift >= 0 ? 0 : cnr_min(p->columns, cnr_div_up(-shift, stride));
    const int64_t room = p->w.in[2] - shift;
    *end = cnr_max(*begin, room <= 0 ? 0 : cnr_min(p->columns, cnr_div_up(room, stride)));
}

/* Copies a row of pixels of 16 or 8 channels. */
static void copy_row(const int8_planes *p, const uint8_t *from, uint8_t flip, uint8_t fill,
                     uint8_t *to) {
    const int64_t pixel = p->pixel, stride = p->w.stride[2];
    for (int64_t phase = 0; phase < p->phases; phase++, to += p->columns * pixel) {
        int64_t begin, end;
        inside(p, phase, &begin, &end);
        memset(to, fill, (size_t)(begin * pixel));
        memset(to + end * pixel, fill, (size_t)((p->columns - end) * pixel));
        const uint8_t *at = from + (begin * stride + phase - p->w.pad_begin[2]) * pixel;
        uint8_t *place = to + begin * pixel;
        if (stride == 1) copy_flipped(place, at, (end - begin) * pixel, flip);
        else if (pixel == 16)
            for (int64_t i = begin; i < end; i++, place += 16, at += stride * 16)
                copy_flipped(place, at, 16, flip);
        else
            for (int64_t i = begin; i < end; i++, place += pixel, at += stride * pixel)
                copy_flipped(place, at, pixel, flip);
    }
}

/* Interleaves up to INT8_NR columns of four rows, from column `at` on; a NULL row and columns
 * beyond n give zeros. */
static void four_rows(const uint8_t *const rows[4], int64_t at, int64_t n, uint8_t *out) {
    uint8_t room[4][INT8_NR];
    const uint8_t *ready[4];
    for (int i = 0; i < 4; i++) {
        ready[i] = rows[i] ? rows[i] + at : room[i];
        if (rows[i] && n >= INT8_NR) continue;
        memset(room[i], 0, INT8_NR);
        if (rows[i]) memcpy(room[i], rows[i] + at, (size_t)n);
        ready[i] = room[i];
    }
    int8_uk->interleave(ready, out);
}

/* Interleaves a row of four channels that are separate planes (NULL: no channel; its weights are
 * 0). */
static void join_row(const int8_planes *p, const uint8_t *const rows[4], uint8_t flip, uint8_t fill,
                     uint8_t *to) {
    uint32_t joined[INT8_NR];
    const int64_t stride = p->w.stride[2], pad = p->w.pad_begin[2];
    const uint32_t flips = flip * 0x01010101u;
    memset(to, fill, (size_t)p->row);
    for (int64_t at = cnr_max(0, -pad); at < p->w.in[2]; at += INT8_NR) {
        const int64_t n = cnr_min(INT8_NR, p->w.in[2] - at);
        int64_t column = (at + pad) / stride, phase = (at + pad) % stride;
        four_rows(rows, at, n, (uint8_t *)joined);
        for (int64_t i = 0; i < n; i++) {
            const uint32_t four = joined[i] ^ flips;
            if (phase < p->phases && column < p->columns)
                memcpy(to + (phase * p->columns + column) * 4, &four, 4);
            if (++phase < stride) continue;
            phase = 0;
            column++;
        }
    }
}

void int8_planes_copy(const int8_planes *p, const cnr_tensor *x, int64_t sample, int64_t index,
                      uint8_t flip, uint8_t fill, uint8_t *to) {
    const cnr_window *w = &p->w;
    const int64_t plane = w->in[0] * w->in[1] * w->in[2], channels = x->dim[1];
    const uint8_t *from = (const uint8_t *)x->data + (sample * channels + index * p->pixel) * plane;
    if (int8_planes_flat(w, p->pixel)) {
        copy_flipped(to, from, plane * p->pixel, flip);
        return;
    }
    for (int64_t z = 0; z < p->rows[0]; z++)
        for (int64_t y = 0; y < p->rows[1]; y++, to += p->row) {
            const int64_t iz = z - w->pad_begin[0], iy = y - w->pad_begin[1];
            if (w->kernel[1] == 1 && y % w->stride[1]) continue; /* no tap reads this row */
            if (iz < 0 || iz >= w->in[0] || iy < 0 || iy >= w->in[1]) {
                memset(to, fill, (size_t)p->row);
                continue;
            }
            const int64_t line = (iz * w->in[1] + iy) * w->in[2];
            if (p->pixel > 4) {
                copy_row(p, from + line * p->pixel, flip, fill, to);
                continue;
            }
            const uint8_t *rows[4];
            for (int i = 0; i < 4; i++)
                rows[i] = index * 4 + i < channels ? from + i * plane + line : NULL;
            join_row(p, rows, flip, fill, to);
        }
}
