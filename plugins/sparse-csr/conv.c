/* conv with a sparse weight: each stored number is multiplied by a run of pixels, without an im2col
 * matrix.
 *
 * The input is copied into padded planes, one for each phase of the strides, so that the pixels
 * that a weight reads for all outputs are adjacent, in rows `pitch` apart; pixels between the rows
 * are computed and dropped. A 1x1 window reads the input in place if planes begin on cache
 * lines. */
#include "sparse.h"

#include <cnnrun/kit.h>

/* Window and layout of the node. */
typedef struct geometry {
    cnr_window w;                          /* of the convolution, with 2 spatial axes */
    int64_t groups, channels, rows;        /* channels and rows of a group */
    int64_t phases[2], pitch, high, plane; /* width of a phase's row, its rows, and floats of all */
    int64_t columns; /* products for each row of the matrix: (rows - 1) * pitch + width */
    int direct;
} geometry;

/* The window with a leading axis of extent 1, if it has one axis. */
static cnr_window two_axes(const cnr_window *own) {
    cnr_window w = *own;
    if (own->spatial == 2) return w;
    w = (cnr_window){.spatial = 2,
                     .in = {1, own->in[0]},
                     .out = {1, own->out[0]},
                     .kernel = {1, own->kernel[0]},
                     .stride = {1, own->stride[0]},
                     .dilation = {1, own->dilation[0]},
                     .pad_begin = {0, own->pad_begin[0]},
                     .pad_end = {0, own->pad_end[0]}};
    return w;
}

/* *g receives the node's sizes; returns why it cannot be done, or NULL. */
static const char *resolve(const cnr_node *node, geometry *g) {
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1];
    cnr_window own;
    int64_t kernel[CNR_MAX_SPATIAL], reach[2];
    if (x->rank > 4 || w->rank != x->rank) return "one or two spatial axes are wanted";
    for (int32_t i = 0; i < w->rank - 2; i++) kernel[i] = w->dim[2 + i];
    const char *why = csr_host->window_resolve(node, x, kernel, &own);
    if (why) return why;
    *g = (geometry){.w = two_axes(&own),
                    .groups = cnr_attr_int(node, "group"),
                    .channels = w->dim[1]};
    if (g->groups < 1 || g->channels < 1 || w->dim[0] < 1 || w->dim[0] % g->groups)
        return "there is nothing to multiply";
    g->rows = w->dim[0] / g->groups;
    for (int32_t i = 0; i < 2; i++) {
        if (g->w.out[i] < 1 || g->w.in[i] < 1 || g->w.pad_begin[i] < 0)
            return "a window within its padded input is wanted";
        reach[i] = (g->w.kernel[i] - 1) * g->w.dilation[i];
        g->phases[i] = cnr_min(g->w.stride[i], reach[i] + 1);
    }
    g->pitch = g->w.out[1] + reach[1] / g->w.stride[1];
    g->high = g->w.out[0] + reach[0] / g->w.stride[0];
    if (g->pitch > INT32_MAX || g->high > INT32_MAX / g->pitch) return "its planes are too large";
    /* Loads across two cache lines took 1.5 times as long: planes begin on cache lines. */
    g->plane = cnr_round_up(g->pitch * g->high, 16);
    g->columns = (g->w.out[0] - 1) * g->pitch + g->w.out[1];
    const int64_t a_channel = g->phases[0] * g->phases[1] * g->plane;
    if (g->phases[0] * g->phases[1] > 64 || a_channel > INT32_MAX ||
        g->channels * g->groups > INT32_MAX / a_channel)
        return "its planes are too large";
    g->direct = a_channel == g->w.in[0] * g->w.in[1] && reach[0] + reach[1] == 0 &&
                g->w.stride[0] * g->w.stride[1] == 1 &&
                g->w.pad_begin[0] + g->w.pad_begin[1] == 0 &&
                g->columns >= csr_tiles_reads(g->columns, 1) &&
                g->columns >= csr_tiles_reads(g->columns, CSR_BLOCK);
    return NULL;
}

static int64_t channel_floats(const geometry *g) { return g->phases[0] * g->phases[1] * g->plane; }

/* Takes convolutions by a weight in compressed sparse rows; else out tells why not. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1], *y = node->outputs[0];
    const cnr_tensor *b = cnr_own_input(node, 2);
    const uint32_t f32 = 1u << CNR_f32;
    geometry g;
    int sparse = 0;
    if (!cnr_is_plain(x, f32) || !cnr_is_plain(y, f32) || (b && !cnr_is_plain(b, f32)) ||
        !w->encoding || !(w->flags & CNR_TENSOR_CONST))
        return cnr_refuse(out, "f32 with a constant weight in this encoding is wanted");
    const char *why = resolve(node, &g);
    if (why) return cnr_refuse(out, why);
    if (w->data) {
        const csr_header h = csr_header_of(w->data);
        if (g.rows % h.block) return cnr_refuse(out, "blocks of rows lie across two groups");
        const int64_t pixels = g.w.out[0] * g.w.out[1];
        const double copied = g.direct ? 0 : (double)(g.channels * g.groups * channel_floats(&g));
        out->cost_ns = (double)y->dim[0] * (csr_tiles_ns(&h, g.columns) + 0.25 * copied);
        sparse =
            out->cost_ns < csr_dense_ns((double)(y->dim[0] * pixels) * (double)cnr_count(w), 0);
    }
    out->prepared = 1u << 1;
    out->ranges = 1u << 1;
    out->epilogue = csr_host->chain_length(node, y->rank, y->dim, CSR_LINKS);
    return cnr_take(node, out, sparse ? 900 : 50); /* other kernels read it decoded */
}

/* Method prepare_size: bytes of the packed weights; 0: none. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    const csr_header h = csr_header_of(node->inputs[1]->data);
    (void)device;
    (void)err;
    out->alignment = 64;
    out->bytes = csr_rows_size(&h);
    return CNR_OK;
}

/* For each column of the matrix, the offset of the input for the first output pixel. */
static void offsets(const geometry *g, uint32_t *offset) {
    const cnr_window *w = &g->w;
    for (int64_t c = 0; c < g->channels; c++)
        for (int64_t ky = 0; ky < w->kernel[0]; ky++)
            for (int64_t kx = 0; kx < w->kernel[1]; kx++) {
                const int64_t y = ky * w->dilation[0], x = kx * w->dilation[1];
                const int64_t phase = y % w->stride[0] * g->phases[1] + x % w->stride[1];
                *offset++ = (uint32_t)(c * channel_floats(g) + phase * g->plane +
                                       y / w->stride[0] * g->pitch + x / w->stride[1]);
            }
}

/* Method prepare: packs the node's weights into blob. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    csr_matrix m;
    geometry g;
    void *own;
    (void)device;
    if (resolve(node, &g)) return csr_host->fail(err, CNR_E_STATE, node->name, "was not accepted");
    CNR_TRY(csr_open(node->inputs[1], CSR_USE_ALL, &m, &own, err));
    uint32_t *offset = (uint32_t *)csr_host->alloc((m.head.columns + 1) * sizeof *offset);
    cnr_status status = CNR_OK;
    if (offset) {
        offsets(&g, offset);
        status = csr_rows_make(&m, offset, blob, err);
    } else status = csr_host->fail(err, CNR_E_MEMORY, node->name, "out of memory");
    csr_host->free(offset);
    csr_host->free(own);
    return status;
}

/* Floats that tiles of the last plane's last row may read beyond it. */
static int64_t slack(const geometry *g) {
    return cnr_max(csr_tiles_reads(g->columns, 1), csr_tiles_reads(g->columns, CSR_BLOCK));
}

/* Method plan: finds the device code and keeps what run needs in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    geometry *g = (geometry *)cnr_state(csr_host, node, sizeof *g, err);
    if (!g) return CNR_E_MEMORY;
    if (resolve(node, g)) {
        csr_host->free(g);
        return csr_host->fail(err, CNR_E_STATE, node->name, "was not accepted");
    }
    if (!g->direct)
        workspace->bytes =
            (uint64_t)(g->channels * g->groups * channel_floats(g) + slack(g)) * sizeof(float);
    *state = g;
    return CNR_OK;
}

/* Method plan_free: frees what plan kept. */
static void plan_free(const cnr_device *device, void *state) {
    (void)device;
    csr_host->free(state);
}

/* ---- running ---- */

/* Arguments of the tasks that copy the input. */
typedef struct copying {
    const geometry *g;
    const float *x;
    float *to;
} copying;

/* Copies a row of a phase: every stride-th pixel of the padded input, from `phase` on. */
static void copy_row(const geometry *g, const float *x, int64_t phase, float *to) {
    const int64_t stride = g->w.stride[1], in = g->w.in[1];
    int64_t q = 0, from = phase - g->w.pad_begin[1];
    for (; q < g->pitch && from < 0; q++, from += stride) to[q] = 0;
    const int64_t n = from < in ? cnr_min(g->pitch - q, cnr_div_up(in - from, stride)) : 0;
    if (stride == 1 && n > 0) memcpy(to + q, x + from, (size_t)n * sizeof *to);
    for (int64_t i = 0; i < n && stride > 1; i++) to[q + i] = x[from + i * stride];
    for (q += n; q < g->pitch; q++) to[q] = 0;
}

/* Task: copies channel c into its phases. */
static void copy_channel(void *arg, int64_t c, int32_t thread) {
    const copying *k = (const copying *)arg;
    const geometry *g = k->g;
    const float *x = k->x + c * g->w.in[0] * g->w.in[1];
    float *to = k->to + c * channel_floats(g);
    (void)thread;
    for (int64_t a = 0; a < g->phases[0]; a++)
        for (int64_t b = 0; b < g->phases[1]; b++, to += g->plane - g->high * g->pitch)
            for (int64_t r = 0; r < g->high; r++, to += g->pitch) {
                const int64_t row = r * g->w.stride[0] + a - g->w.pad_begin[0];
                if (row >= 0 && row < g->w.in[0]) copy_row(g, x + row * g->w.in[1], b, to);
                else memset(to, 0, (size_t)g->pitch * sizeof *to);
            }
}

/* Method run: queues the code over the run's range on its stream on the stream's threads; returns
 * CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const geometry *g = (const geometry *)run->state;
    const cnr_node *node = run->node;
    const cnr_tensor *b = cnr_own_input(node, 2);
    const int64_t channels = g->channels * g->groups, outputs = g->rows * g->groups;
    const int64_t pixels = g->w.out[0] * g->w.out[1];
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    (void)err;
    cnr_range_of(run, lo, hi);
    csr_tiles_job j = {.run = run,
                       .blob = (const csr_rows *)run->blob_data,
                       .bias = b ? (const float *)b->data : NULL,
                       .first = lo[1],
                       .end = hi[1],
                       .group_rows = g->rows,
                       .group_floats = g->channels * channel_floats(g),
                       .lines = g->w.out[0],
                       .width = g->w.out[1],
                       .pitch = g->pitch,
                       .row_floats = pixels,
                       .column_floats = 1,
                       .chained = 1,
                       .readable = g->direct ? pixels : INT64_MAX};
    csr_chain_of(node, &j.chain);
    if (!g->direct)
        memset((float *)run->workspace_data + channels * channel_floats(g), 0,
               (size_t)slack(g) * sizeof(float));
    for (int64_t n = 0; n < run->outputs[0]->dim[0]; n++) {
        const copying k = {g,
                           (const float *)node->inputs[0]->data +
                               n * channels * g->w.in[0] * g->w.in[1],
                           (float *)run->workspace_data};
        if (!g->direct) cnr_parallel(run->stream, channels, copy_channel, (void *)(uintptr_t)&k);
        j.x = g->direct ? k.x : k.to;
        j.at = n * outputs * pixels;
        j.y = (float *)run->outputs[0]->data + j.at;
        csr_tiles_run(&j);
    }
    return CNR_OK;
}

static const char *const encodings[] = {"", "sparse-csr", "", NULL};

const cnr_kernel csr_conv = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "conv_f32_csr",
    .op = "conv",
    .device = "cpu",
    .encodings = encodings,
    .accepts = accepts,
    .prepare_size = prepare_size,
    .prepare = prepare,
    .plan = plan,
    .plan_free = plan_free,
    .run = run,
    .flags = CNR_KERNEL_SKIPS_ZEROS,
};
