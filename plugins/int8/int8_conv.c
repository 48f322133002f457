/* qlinear_conv and conv_integer on the CPU: pads planes, packs panels of columns as needed,
 * multiplies exactly and, for qlinear_conv, requantises before storing.
 *
 * A task is some panels (INT8_NR output positions each) of one picture and group by some rows of
 * weights. Pictures pass through the workspace in chunks that fit the cache. */
#include "int8.h"

enum { SLACK = 64, PANEL_BYTES = 256 << 10, CHUNK_BYTES = 8 << 20, MOST_PANELS = 8 };

/* Plan of a convolution of bytes. */
typedef struct conv_state {
    cnr_window w;                              /* of the convolution, with always 3 spatial axes */
    int64_t groups, channels, rows, depth, k4; /* channels, rows, depth: for each group */
    int64_t in, points;                        /* elements of a plane of x and of y */
    int64_t extent[3], plane;                  /* sizes and elements of a padded plane */
    int64_t chunk;                             /* pictures padded at a time; 0: read in place */
    int64_t panels, per_task, row_parts, row_step; /* panels: of a picture; per_task: of a task */
    int64_t room;                                  /* bytes of packed columns for a thread */
    int64_t tap[]; /* for each k: offset from an output position to the element that it reads */
} conv_state;

/* 1 for conv_integer. */
static int is_integer(const cnr_node *node) {
    return strcmp(node->desc->name, "conv_integer") == 0;
}
/* The tensor of weights, whose port depends on the operator. */
static const cnr_tensor *weights_of(const cnr_node *node) {
    return node->inputs[is_integer(node) ? INT8_INTEGER_W : INT8_W];
}
static int64_t group_of(const cnr_node *node) { return cnr_attr_int(node, "group"); }

/* Finds the window; NULL, or why it does not fit. */
static const char *window_of(const cnr_node *node, cnr_window *out) {
    const cnr_tensor *x = node->inputs[INT8_X], *w = weights_of(node);
    cnr_window own;
    if (x->rank < 3 || w->rank != x->rank) return "ranks differ";
    const char *why = int8_host->window_resolve(node, x, w->dim + 2, &own);
    if (why) return why;
    *out = shape_window_three(&own);
    double bytes = (double)x->dim[1];
    for (int32_t i = 0; i < 3; i++) {
        if (out->out[i] < 0) return "unknown size";
        bytes *= (double)out->out[i] * (double)out->stride[i] +
                 (double)out->kernel[i] * (double)out->dilation[i];
    }
    return bytes < 1e10 ? NULL : "too large once padded";
}

/* Takes quantised convolutions; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    (void)device;
    const char *why = int8_layer_fits(node, 1);
    if (!why) why = window_of(node, &w);
    if (why) return cnr_refuse(out, why);
    cnr_take(node, out, 300);
    out->prepared = int8_layer_prepared(node);
    return CNR_OK;
}

/* Takes conv_integer; for others out->why says why. */
static cnr_status integer_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    (void)device;
    const char *why = int8_integer_fits(node);
    if (!why && weights_of(node)->rank < 3) why = "ranks differ";
    if (!why) why = int8_integer_sums_fit(node, weights_of(node)->dim[0]);
    if (!why) why = window_of(node, &w);
    if (why) return cnr_refuse(out, why);
    cnr_take(node, out, 300);
    out->prepared = 1u << INT8_INTEGER_W;
    if (cnr_own_input(node, INT8_INTEGER_W_ZERO)) out->prepared |= 1u << INT8_INTEGER_W_ZERO;
    return CNR_OK;
}

/* ---- weights: each group's rows in panels of INT8_MR, [k / 4][INT8_MR][4]; then a panel whose row
 * 0 is ones, since its product is the sum of x ---- */

/* Rows (outputs) of a group, rounded up to INT8_MR. */
static int64_t panel_rows(const cnr_node *node) {
    return cnr_round_up(weights_of(node)->dim[0] / group_of(node), INT8_MR);
}
/* Steps of four weights of a row, the last perhaps partly filled. */
static int64_t k4_of(const cnr_node *node) {
    const cnr_tensor *w = weights_of(node);
    return cnr_div_up(cnr_span(w, 1, w->rank), 4);
}

/* Sets out to the bytes of head and packed weights, aligned to 64. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    (void)device;
    (void)err;
    out->alignment = 64;
    out->bytes = (uint64_t)(int8_blob_head(weights_of(node)->dim[0]) +
                            (group_of(node) * panel_rows(node) + INT8_MR) * k4_of(node) * 4);
    return CNR_OK;
}

/* Packs the weights into data, group by group, behind the head of `int8_blob`. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *data,
                          cnr_error *err) {
    const cnr_tensor *w = weights_of(node);
    const int64_t groups = group_of(node), rows = w->dim[0] / groups, k4 = k4_of(node);
    const int64_t padded = panel_rows(node), depth = cnr_span(w, 1, w->rank);
    int8_blob *blob = data;
    (void)device;
    (void)err;
    if (is_integer(node)) int8_integer_fill(node, w->dim[0], w->dim[0], depth, 1, blob);
    else int8_blob_fill(node, w->dim[0], blob);
    uint8_t *to = (uint8_t *)data + blob->weight_at;
    memset(to, 0, (size_t)((groups * padded + INT8_MR) * k4 * 4));
    for (int64_t k = 0; k < k4; k++) memset(to + (groups * padded * k4 + k * INT8_MR) * 4, 1, 4);
    for (int64_t g = 0; g < groups; g++)
        for (int64_t r = 0; r < rows; r++) {
            const uint8_t *from = (const uint8_t *)w->data + (g * rows + r) * depth;
            uint8_t *panel = to + (g * padded + r / INT8_MR * INT8_MR) * k4 * 4;
            for (int64_t k = 0; k < depth; k++)
                panel[(k / 4 * INT8_MR + r % INT8_MR) * 4 + k % 4] = from[k] ^ blob->layer.w_flip;
        }
    return CNR_OK;
}

/* ---- geometry ---- */

/* Whether x can be read in place: its positions are consecutive. */
static int in_place(const cnr_node *node, const cnr_window *w) {
    if (node->inputs[INT8_X]->dtype != CNR_u8) return 0;
    for (int i = 0; i < 3; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->pad_begin[i] || w->in[i] != w->out[i])
            return 0;
    return 1;
}

/* Fills s->tap with the element offset of each tap of each channel. */
static void fill_taps(conv_state *s) {
    const cnr_window *w = &s->w;
    int64_t *to = s->tap;
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t z = 0; z < w->kernel[0]; z++)
            for (int64_t y = 0; y < w->kernel[1]; y++)
                for (int64_t x = 0; x < w->kernel[2]; x++)
                    *to++ = c * s->plane + x * w->dilation[2] +
                            (z * w->dilation[0] * s->extent[1] + y * w->dilation[1]) * s->extent[2];
}

/* Divides the work into enough tasks for all threads, each with as much reuse of weights as
 * possible. */
static void share_out(conv_state *s, int64_t pictures, int64_t threads) {
    const int64_t all = cnr_max(1, s->panels * cnr_max(1, pictures) * s->groups);
    const int64_t fit = PANEL_BYTES / (s->k4 * 4 * INT8_NR);
    s->per_task = cnr_max(1, cnr_min(cnr_min(fit, MOST_PANELS), all / (4 * threads)));
    const int64_t row_panels = cnr_div_up(s->rows, INT8_MR);
    s->row_parts =
        threads > 1 && all < 2 * threads ? cnr_min(cnr_div_up(2 * threads, all), row_panels) : 1;
    s->row_step = cnr_div_up(row_panels, s->row_parts) * INT8_MR;
    s->row_parts = cnr_div_up(s->rows, s->row_step);
    s->room = cnr_round_up(s->per_task * s->k4 * 4 * INT8_NR, 64);
}

/* Allocates the state with geometry, taps and tasks, for plan_free, and sets the workspace's bytes.
 * Fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    const cnr_tensor *x = node->inputs[INT8_X], *w = weights_of(node);
    const int64_t depth = cnr_span(w, 1, w->rank), threads = cnr_max(1, device->concurrency);
    conv_state *s = cnr_state(int8_host, node, sizeof *s + (size_t)depth * sizeof s->tap[0], err);
    if (!s) return CNR_E_MEMORY;
    window_of(node, &s->w);
    s->groups = group_of(node);
    s->channels = w->dim[1];
    s->rows = w->dim[0] / s->groups;
    s->depth = depth;
    s->k4 = k4_of(node);
    s->in = s->w.in[0] * s->w.in[1] * s->w.in[2];
    s->points = s->w.out[0] * s->w.out[1] * s->w.out[2];
    s->plane = 1;
    for (int i = 0; i < 3; i++) {
        s->extent[i] = cnr_max(0, (s->w.out[i] - 1) * s->w.stride[i]) +
                       (s->w.kernel[i] - 1) * s->w.dilation[i] + 1;
        s->plane *= s->extent[i];
    }
    s->panels = cnr_div_up(s->points, INT8_NR);
    fill_taps(s);
    int64_t bytes = 0;
    if (!in_place(node, &s->w)) {
        const int64_t picture = x->dim[1] * s->plane;
        s->chunk = cnr_max(1, cnr_min(x->dim[0], CHUNK_BYTES / cnr_max(1, picture)));
        bytes = cnr_round_up(s->chunk * picture + SLACK, 64);
    }
    share_out(s, s->chunk ? s->chunk : x->dim[0], threads);
    workspace->alignment = 64;
    workspace->bytes = (uint64_t)(bytes + threads * s->room);
    *state = s;
    return CNR_OK;
}

/* ---- running ---- */

/* Arguments of the tasks of a run. */
typedef struct conv_job {
    const cnr_run *run;
    const conv_state *s;
    const int8_blob *blob;
    int32_t x_zero; /* zero point of x after the flip */
    const int8_t *ones;
    const uint8_t *x; /* padded planes of this chunk, or x itself */
    uint8_t *packed;  /* room for each thread */
    int64_t picture;  /* first picture of the chunk */
} conv_job;

/* Task index of the conv_job `arg`: copies one channel of one picture with its padding, which has
 * value 0. */
static void pad_plane(void *arg, int64_t index, int32_t thread) {
    const conv_job *j = arg;
    const conv_state *s = j->s;
    const cnr_window *w = &s->w;
    const int64_t channels = s->channels * s->groups;
    const uint8_t flip = j->blob->layer.x_flip, fill = (uint8_t)j->x_zero;
    const uint8_t *from = (const uint8_t *)j->run->node->inputs[INT8_X]->data +
                          (j->picture * channels + index) * s->in;
    uint8_t *to = (uint8_t *)j->run->workspace_data + index * s->plane;
    const int64_t begin = cnr_min(s->extent[2], cnr_max(0, w->pad_begin[2]));
    const int64_t skip = cnr_max(0, -w->pad_begin[2]);
    const int64_t n = cnr_max(0, cnr_min(s->extent[2] - begin, w->in[2] - skip));
    (void)thread;
    for (int64_t z = 0; z < s->extent[0]; z++)
        for (int64_t y = 0; y < s->extent[1]; y++, to += s->extent[2]) {
            const int64_t iz = z - w->pad_begin[0], iy = y - w->pad_begin[1];
            if (iz < 0 || iz >= w->in[0] || iy < 0 || iy >= w->in[1]) {
                memset(to, fill, (size_t)s->extent[2]);
                continue;
            }
            const uint8_t *row = from + (iz * w->in[1] + iy) * w->in[2] + skip;
            memset(to, fill, (size_t)begin);
            for (int64_t i = 0; i < n; i++) to[begin + i] = row[i] ^ flip;
            memset(to + begin + n, fill, (size_t)(s->extent[2] - begin - n));
        }
}

/* The output positions of a panel as offsets in a plane, and their consecutive runs. */
typedef struct columns {
    int64_t n, runs, at[INT8_NR], run_at[INT8_NR], run_to[INT8_NR + 1];
} columns;

/* Finds the input runs of INT8_NR positions from `first` on. */
static void find_columns(const conv_state *s, int64_t first, columns *c) {
    const cnr_window *w = &s->w;
    int64_t x = first % w->out[2], y = first / w->out[2] % w->out[1];
    int64_t z = first / w->out[2] / w->out[1];
    c->n = cnr_min(INT8_NR, s->points - first);
    c->runs = 0;
    for (int64_t i = 0; i < c->n; i++) {
        c->at[i] =
            (z * w->stride[0] * s->extent[1] + y * w->stride[1]) * s->extent[2] + x * w->stride[2];
        if (i == 0 || c->at[i] != c->at[i - 1] + 1) {
            c->run_at[c->runs] = c->at[i];
            c->run_to[c->runs++] = i;
        }
        if (++x < w->out[2]) continue;
        x = 0;
        if (++y < w->out[1]) continue;
        y = 0;
        z++;
    }
    c->run_to[c->runs] = c->n;
}

/* Gathers one row of the im2col matrix. In padded planes, 16 bytes may be read from any
 * position. */
static void gather(const columns *c, const uint8_t *from, int padded, uint8_t *to) {
    if (c->runs > INT8_NR / 4) {
        for (int64_t i = 0; i < c->n; i++) to[i] = from[c->at[i]];
        return;
    }
    for (int64_t r = 0; r < c->runs; r++) {
        const uint8_t *source = from + c->run_at[r];
        const int64_t n = c->run_to[r + 1] - c->run_to[r];
        uint8_t *place = to + c->run_to[r];
        if (!padded) memcpy(place, source, (size_t)n);
        else
            for (int64_t i = 0; i < n; i += 16) memcpy(place + i, source + i, 16);
    }
}

/* Packs into `out` the inputs of INT8_NR output positions from `first` on, four taps at a time,
 * from the plane group at `base`. */
static void pack(const conv_state *s, const uint8_t *base, int64_t first, uint8_t *out) {
    uint8_t rows[4][INT8_NR + 16];
    const uint8_t *ready[4];
    columns c;
    find_columns(s, first, &c);
    const int whole = c.runs == 1 && c.n == INT8_NR;
    memset(rows, 0, sizeof rows);
    for (int64_t k = 0; k < s->k4 * 4; k++) {
        uint8_t *row = rows[k % 4];
        if (k >= s->depth) memset(row, 0, INT8_NR);
        else if (!whole) gather(&c, base + s->tap[k], s->chunk > 0, row);
        ready[k % 4] = whole && k < s->depth ? base + s->tap[k] + c.at[0] : row;
        if (k % 4 == 3) {
            int8_uk->interleave(ready, out);
            out += 4 * INT8_NR;
        }
    }
}

/* Stores a row of INT8_NR sums from element `at` of y on. total: sum of x in each column, used if
 * the zero points of weights are not 0. */
static void store(const conv_job *j, const int32_t *sums, const int32_t *total, int64_t row,
                  int64_t n, int64_t at) {
    const int8_layer *l = &j->blob->layer;
    const int8_requant how = int8_requant_of(j->blob, row);
    int32_t moved[INT8_NR];
    if (l->shifts) {
        const uint32_t zero = (uint32_t)int8_w_zeros(j->blob)[row];
        for (int64_t i = 0; i < n; i++)
            moved[i] = (int32_t)((uint32_t)sums[i] - zero * (uint32_t)total[i]);
        sums = moved;
    }
    void *y = j->run->outputs[0]->data;
    if (!is_integer(j->run->node)) {
        int8_uk->requantize(sums, n, &how, (uint8_t *)y + at);
        return;
    }
    const uint32_t shift = (uint32_t)how.offset * (uint32_t)j->x_zero;
    for (int64_t i = 0; i < n; i++) ((int32_t *)y)[at + i] = (int32_t)((uint32_t)sums[i] + shift);
}

/* Task index of the conv_job `arg`: some rows of some panels. */
static void one_task(void *arg, int64_t index, int32_t thread) {
    const conv_job *j = arg;
    const conv_state *s = j->s;
    const int64_t blocks = cnr_div_up(s->panels, s->per_task);
    const int64_t part = index % s->row_parts, block = index / s->row_parts % blocks;
    const int64_t group = index / s->row_parts / blocks % s->groups;
    const int64_t picture = index / s->row_parts / blocks / s->groups;
    const int64_t p0 = block * s->per_task, p1 = cnr_min(s->panels, p0 + s->per_task);
    const int64_t panel = s->k4 * 4 * INT8_NR, r1 = cnr_min(s->rows, (part + 1) * s->row_step);
    const int8_t *weights =
        int8_weights(j->blob) + group * cnr_round_up(s->rows, INT8_MR) * s->k4 * 4;
    const uint8_t *base = j->x + (picture * s->groups + group) * s->channels * s->plane;
    uint8_t *packed = j->packed + thread * s->room;
    int32_t sums[INT8_MR * INT8_NR], total[MOST_PANELS][INT8_NR] = {{0}};
    if (cnr_cancelled(j->run->stream)) return;
    for (int64_t p = p0; p < p1; p++) {
        pack(s, base, p * INT8_NR, packed + (p - p0) * panel);
        if (!j->blob->layer.shifts) continue;
        int8_uk->gemm(s->k4, j->ones, packed + (p - p0) * panel, sums);
        memcpy(total[p - p0], sums, sizeof total[0]);
    }
    for (int64_t r = part * s->row_step; r < r1; r += INT8_MR)
        for (int64_t p = p0; p < p1; p++) {
            int8_uk->gemm(s->k4, weights + r * s->k4 * 4, packed + (p - p0) * panel, sums);
            for (int64_t i = 0; i < INT8_MR && r + i < r1; i++) {
                const int64_t row = group * s->rows + r + i;
                store(j, sums + i * INT8_NR, total[p - p0], row,
                      cnr_min(INT8_NR, s->points - p * INT8_NR),
                      p * INT8_NR +
                          ((j->picture + picture) * s->groups * s->rows + row) * s->points);
            }
        }
}

/* Computes the convolution, some pictures at a time on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const conv_state *s = run->state;
    const cnr_tensor *x = run->node->inputs[INT8_X];
    const int64_t pictures = x->dim[0], channels = s->channels * s->groups;
    const int64_t chunk = s->chunk ? s->chunk : pictures;
    const int64_t blocks = cnr_div_up(s->panels, s->per_task);
    conv_job j = {.run = run,
                  .s = s,
                  .blob = run->blob_data,
                  .ones = int8_weights(run->blob_data) +
                          s->groups * cnr_round_up(s->rows, INT8_MR) * s->k4 * 4,
                  .x = x->data,
                  .packed = run->workspace_data};
    (void)err;
    j.x_zero = is_integer(run->node) ? int8_integer_x_zero(run->node) : j.blob->layer.x_zero;
    if (s->chunk) {
        j.x = run->workspace_data;
        j.packed += cnr_round_up(s->chunk * channels * s->plane + SLACK, 64);
    }
    for (; j.picture < pictures; j.picture += chunk) {
        const int64_t n = cnr_min(chunk, pictures - j.picture);
        if (s->chunk) cnr_parallel(run->stream, n * channels, pad_plane, &j);
        cnr_parallel(run->stream, n * s->groups * blocks * s->row_parts, one_task, &j);
    }
    return CNR_OK;
}

INT8_KERNEL(int8_conv, 4, "qlinear_conv_int8_gemm", "qlinear_conv", accepts);
INT8_KERNEL(int8_conv_integer, 4, "conv_integer_int8_gemm", "conv_integer", integer_accepts);
