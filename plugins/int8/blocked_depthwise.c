/* Depthwise qlinear_conv on the CPU, on channel blocks: a task copies one block's plane with
 * padding into the thread's scratch and computes its rows.
 *
 * Weights minus a zero point that is not the middle of the type need nine bits. They are split into
 * two bytes, and each row of the window occurs twice. */
#include "blocked.h"

enum { SLACK = 64 };

/* Plan of a depthwise convolution of bytes on blocked channels. */
typedef struct depthwise_state {
    int8_planes p;
    /* rows of the window, groups of four columns, bytes of scratch for a thread */
    int64_t lines, quads, room;
    int32_t row[]; /* offsets of the window's rows from its first */
} depthwise_state;

/* Rows of the window: the product of its sizes along all spatial axes but the last. */
static int64_t window_rows(const cnr_node *node) {
    const cnr_tensor *w = node->inputs[INT8_W];
    return cnr_span(w, 2, w->rank - 1);
}
static int64_t parts_of(const cnr_node *node) { return int8_is_middle(node) ? 1 : 2; }

/* Splits weight i of channel c, less its zero point, into part[0], from -128 to 127, and the rest,
 * part[1]. */
static void split(const cnr_node *node, int64_t c, int64_t i, int32_t *part) {
    const int64_t each = cnr_span(node->inputs[INT8_W], 1, node->inputs[INT8_W]->rank);
    const int32_t v = int8_byte_at(node->inputs[INT8_W], c * each + i) -
                      int8_byte_at(node->inputs[INT8_W_ZERO], c);
    part[0] = (int32_t)cnr_max(-128, cnr_min(127, v));
    part[1] = v - part[0];
}

/* Whether two bytes can hold each weight minus its zero point. */
static int can_split(const cnr_node *node) {
    const cnr_tensor *w = node->inputs[INT8_W];
    const int64_t each = cnr_span(w, 1, w->rank);
    for (int64_t i = 0; i < cnr_count(w); i++) {
        int32_t part[2];
        split(node, i / each, i % each, part);
        if (part[1] > 127) return 0;
    }
    return 1;
}

/* Columns of the window: its size along the last axis. */
static int64_t columns_of(const cnr_node *node) {
    const cnr_tensor *w = node->inputs[INT8_W];
    return w->dim[w->rank - 1];
}

/* Takes quantised depthwise convolutions; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    int64_t dim[CNR_MAX_RANK];
    (void)device;
    const char *why = int8_layer_fits(node, 1);
    const cnr_tensor *x = node->inputs[INT8_X];
    if (!why && (cnr_attr_int(node, "group") != x->dim[1] || node->inputs[INT8_W]->dim[1] != 1 ||
                 node->inputs[INT8_W]->dim[0] != x->dim[1]))
        why = "a group for each channel is wanted";
    if (!why) why = int8_conv_window(node, &w, dim);
    if (!why && !int8_channel_block(x->dim[1])) why = "no block divides the channels";
    if (!why && !int8_is_middle(node) && !can_split(node)) why = "a weight is 255";
    if (why) return cnr_refuse(out, why);
    int8_blocked_take(node, out, 550, int8_block_of(x->rank, x->dim), int8_block_of(x->rank, dim));
    out->prepared = int8_layer_prepared(node);
    return CNR_OK;
}

/* ---- weights of a block in three forms: quads, shifted, words (ukernel.h) ---- */

/* Bytes of the quads of a block. lines: rows of the window, times the number of parts. */
static int64_t quad_bytes(const cnr_node *node, int64_t lines, int64_t block) {
    return lines * cnr_div_up(columns_of(node), 4) * block * 4;
}
/* Bytes of the packed weights of a block of channels. */
static int64_t block_bytes(const cnr_node *node, int64_t lines, int64_t block) {
    return 2 * quad_bytes(node, lines, block) +
           cnr_round_up(lines * columns_of(node) * block * 2, 64);
}

/* Sets out to the bytes of head and packed weights. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    const int64_t channels = node->inputs[INT8_W]->dim[0], block = int8_channel_block(channels);
    (void)device;
    (void)err;
    out->alignment = 64;
    const int64_t lines = parts_of(node) * window_rows(node);
    out->bytes =
        (uint64_t)(int8_blob_head(channels) + channels / block * block_bytes(node, lines, block));
    return CNR_OK;
}

/* Packs the weights of each block of channels into data, behind the head of `int8_blob`. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *data,
                          cnr_error *err) {
    const cnr_tensor *w = node->inputs[INT8_W];
    const int64_t channels = w->dim[0], b = int8_channel_block(channels);
    const int64_t own = window_rows(node), lines = parts_of(node) * own, columns = columns_of(node);
    const int64_t quads = cnr_div_up(columns, 4), each = quad_bytes(node, lines, b);
    int8_blob *blob = data;
    (void)device;
    (void)err;
    int8_blob_fill(node, channels, blob);
    uint32_t *offset = (uint32_t *)(blob + 1);
    uint8_t *to = (uint8_t *)data + blob->weight_at;
    memset(to, 0, (size_t)(channels / b * block_bytes(node, lines, b)));
    for (int64_t c = 0; c < channels; c++) {
        uint8_t *quad = to + c / b * block_bytes(node, lines, b);
        int16_t *word = (int16_t *)(void *)(quad + 2 * each);
        for (int64_t r = 0; r < lines; r++)
            for (int64_t x = 0; x < columns; x++) {
                const int64_t after = x + 1;
                int32_t part[2];
                split(node, c, r % own * columns + x, part);
                const uint8_t v = (uint8_t)part[r / own];
                quad[((r * quads + x / 4) * b + c % b) * 4 + x % 4] = v;
                if (after / 4 < quads)
                    quad[each + ((r * quads + after / 4) * b + c % b) * 4 + after % 4] = v;
                word[(r * columns + x) * b + c % b] = (int8_t)v;
                offset[c] += (uint32_t)((int8_t)v * INT8_BLOCKED_MIDDLE);
            }
    }
    return CNR_OK;
}

/* ---- plan and run ---- */

/* Finds the rows of the window and workspace in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    const int64_t own = window_rows(node), lines = parts_of(node) * own;
    const int32_t block = int8_channel_block(node->inputs[INT8_X]->dim[1]);
    int64_t dim[CNR_MAX_RANK];
    cnr_window w;
    depthwise_state *s =
        cnr_state(int8_host, node, sizeof *s + (size_t)lines * sizeof s->row[0], err);
    if (!s) return CNR_E_MEMORY;
    int8_conv_window(node, &w, dim);
    /* keep the order of columns: those of a quad must be adjacent */
    const int64_t stride = w.stride[2];
    const int64_t reach = cnr_max(0, w.out[2] - 1) * stride + (w.kernel[2] - 1) * w.dilation[2] + 1;
    w.stride[2] = 1;
    w.out[2] = reach - (w.kernel[2] - 1) * w.dilation[2];
    int8_planes_of(node, &w, block, &s->p);
    s->p.points = w.out[0] * w.out[1] * dim[node->inputs[INT8_X]->rank - 1];
    s->lines = lines;
    s->quads = cnr_div_up(columns_of(node), 4);
    for (int64_t i = 0; i < lines; i++)
        s->row[i] = (int32_t)int8_planes_tap(&s->p, i % own / w.kernel[1], i % w.kernel[1], 0);
    s->room = cnr_round_up(s->p.plane + SLACK, 64);
    workspace->alignment = 64;
    workspace->bytes = (uint64_t)(cnr_max(1, device->concurrency) * s->room);
    *state = s;
    return CNR_OK;
}

/* Task index of the cnr_run `arg`: computes one plane. */
static void one_plane(void *arg, int64_t index, int32_t thread) {
    const cnr_run *run = arg;
    const depthwise_state *s = run->state;
    const cnr_node *node = run->node;
    const int8_planes *p = &s->p;
    const int8_blob *blob = run->blob_data;
    const int64_t b = p->pixel, plane = index % p->n, rows = p->w.out[0] * p->w.out[1];
    const cnr_tensor *y = run->outputs[0];
    const int8_t *w = int8_weights(blob) + plane * block_bytes(node, s->lines, b);
    uint8_t *x = (uint8_t *)run->workspace_data + thread * s->room;
    int64_t n;
    const int64_t *strides = cnr_attr_ints(node, "strides", &n);
    int8_window t = {.row = s->row,
                     .rows = s->lines,
                     .columns = columns_of(node),
                     .quads = s->quads,
                     .step = (n > 0 ? strides[n - 1] : 1) * b,
                     .dilation = p->w.dilation[2] * b,
                     .quad = w,
                     .shifted = w + quad_bytes(node, s->lines, b),
                     .word = (const int16_t *)(const void *)(w + 2 * quad_bytes(node, s->lines, b)),
                     .pixels = rows ? p->points / rows : 0,
                     .block = b,
                     .finish = {.offset = int8_offsets(blob) + plane * b,
                                .scale = int8_scales(blob) + plane * b,
                                .slope = blob->layer.sloped ? int8_slopes(blob) + plane * b : NULL,
                                .low = blob->layer.low,
                                .high = blob->layer.high,
                                .zero = blob->layer.y_zero}};
    if (cnr_cancelled(run->stream)) return;
    int8_planes_copy(p, node->inputs[INT8_X], index / p->n, plane,
                     blob->layer.x_flip ^ INT8_BLOCKED_MIDDLE,
                     (uint8_t)(blob->layer.x_zero ^ INT8_BLOCKED_MIDDLE), x);
    t.y = (uint8_t *)y->data + index * b * p->points;
    for (int64_t row = 0; row < rows; row++, t.y += t.pixels * b) {
        t.x = (const int8_blocked_byte *)x + int8_planes_row(p, row);
        int8_uk->window(&t);
    }
}

/* Computes all planes on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const depthwise_state *s = run->state;
    (void)err;
    cnr_parallel(run->stream, run->outputs[0]->dim[0] * s->p.n, one_plane, (void *)run);
    return CNR_OK;
}

const cnr_kernel int8_conv_depthwise = {
    .size = sizeof(cnr_kernel),
    .version = 5,
    .name = "qlinear_conv_int8_depthwise",
    .op = "qlinear_conv",
    .device = "cpu",
    .accepts = accepts,
    .prepare_size = prepare_size,
    .prepare = prepare,
    .plan = plan,
    .plan_free = int8_free_state,
    .run = run,
};
