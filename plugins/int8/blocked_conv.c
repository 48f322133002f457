/* qlinear_conv of one group on the CPU, on channel blocks: the weights of a panel of 16 outputs are
 * multiplied by the bytes of one position, so activations need no packing. Sums are requantised in
 * registers.
 *
 * A tile is up to 14 adjacent positions of a row of y by one or two panels. A task is some tiles of
 * a sample by some pairs of panels, which stay in the cache for all its tiles. */
#include "blocked.h"

enum { SLACK = 64, CHUNK_BYTES = 8 << 20, TASK_BYTES = 128 << 10 };

/* Plan of a convolution of bytes on blocked channels. */
typedef struct conv_state {
    int8_planes p;
    int64_t k4, rows;          /* steps of four channels; outputs */
    int64_t wide, row_tiles;   /* wide: positions of a row of y; row_tiles: its tiles */
    int64_t tiles, per_task;   /* tiles of a sample; tiles of a task */
    int64_t pairs, pairs_task; /* pairs of panels; pairs of a task */
    int64_t chunk;             /* samples padded at a time; 0: read in place */
    int32_t tap[];             /* byte offset for each step of four channels */
} conv_state;

/* Channels (bytes) that are stored for a pixel of x: the block of 16 or 8, or 4 for a plain x. */
static int64_t pixel_of(const cnr_node *node) {
    const int32_t block = int8_channel_block(node->inputs[INT8_X]->dim[1]);
    return block ? block : 4;
}

static int64_t taps_of(const cnr_tensor *w) { return cnr_span(w, 2, w->rank); }

/* Steps of four channels in all taps, with channels rounded up to whole pixels. */
static int64_t k4_of(const cnr_node *node) {
    const cnr_tensor *w = node->inputs[INT8_W];
    return cnr_round_up(w->dim[1], pixel_of(node)) / 4 * taps_of(w);
}

/* Number of panels of INT8_PANEL output channels, the last perhaps partly filled. */
static int64_t panels_of(const cnr_node *node) {
    return cnr_div_up(node->inputs[INT8_W]->dim[0], INT8_PANEL);
}

/* Takes quantised convolutions of one group; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    int64_t dim[CNR_MAX_RANK];
    (void)device;
    const char *why = int8_layer_fits(node, 0);
    if (!why && cnr_attr_int(node, "group") != 1) why = "one group is wanted";
    if (!why) why = int8_conv_window(node, &w, dim);
    if (why) return cnr_refuse(out, why);
    const cnr_tensor *x = node->inputs[INT8_X];
    int8_blocked_take(node, out, 500, int8_block_of(x->rank, x->dim), int8_block_of(x->rank, dim));
    out->prepared = int8_layer_prepared(node);
    return CNR_OK;
}

/* ---- weights: panels of [k / 4][INT8_PANEL][4]; k is plane of x, tap, channel of the plane
 * ---- */

/* Sets out to the bytes of head and packed weights, aligned to 64. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    const int64_t panels = panels_of(node);
    (void)device;
    (void)err;
    out->alignment = 64;
    out->bytes =
        (uint64_t)(int8_blob_head(panels * INT8_PANEL) + panels * k4_of(node) * 4 * INT8_PANEL);
    return CNR_OK;
}

/* Packs the weights into data: the head of `int8_blob`, then a panel of output channels after the
 * other. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *data,
                          cnr_error *err) {
    const cnr_tensor *w = node->inputs[INT8_W];
    const int64_t pixel = pixel_of(node), taps = taps_of(w), k4 = k4_of(node);
    const int64_t panels = panels_of(node), depth = cnr_span(w, 1, w->rank);
    int8_blob *blob = data;
    (void)device;
    (void)err;
    int8_blob_fill(node, panels * INT8_PANEL, blob);
    uint32_t *offset = (uint32_t *)(blob + 1);
    blob->layer.narrow = 1;
    uint8_t *to = (uint8_t *)data + blob->weight_at;
    memset(to, 0, (size_t)(panels * k4 * 4 * INT8_PANEL));
    for (int64_t r = 0; r < w->dim[0]; r++) {
        const uint8_t *from = (const uint8_t *)w->data + r * depth;
        uint8_t *panel = to + r / INT8_PANEL * k4 * 4 * INT8_PANEL + r % INT8_PANEL * 4;
        for (int64_t c = 0; c < w->dim[1]; c++)
            for (int64_t t = 0; t < taps; t++, from++) {
                const int64_t k = (c / pixel * taps + t) * pixel + c % pixel;
                const int8_t v = (int8_t)(*from ^ blob->layer.w_flip);
                panel[k / 4 * 4 * INT8_PANEL + k % 4] = (uint8_t)v;
                offset[r] += (uint32_t)(v * INT8_BLOCKED_MIDDLE);
                if (v == INT8_MIN) blob->layer.narrow = 0;
            }
    }
    return CNR_OK;
}

/* ---- plan ---- */

/* Fills s->tap with the byte offset of each tap, for all steps of four channels. */
static void fill_taps(conv_state *s) {
    const int8_planes *p = &s->p;
    int32_t *to = s->tap;
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t z = 0; z < p->w.kernel[0]; z++)
            for (int64_t y = 0; y < p->w.kernel[1]; y++)
                for (int64_t x = 0; x < p->w.kernel[2]; x++)
                    for (int64_t b = 0; b < p->pixel; b += 4)
                        *to++ = (int32_t)(i * p->plane + int8_planes_tap(p, z, y, x) + b);
}

/* Divides the work into enough tasks for all threads, each with as much reuse as possible. */
static void share_out(conv_state *s, int64_t samples, int64_t threads) {
    const int64_t tile_bytes = INT8_MOST_PIXELS * s->p.n * s->p.pixel;
    const int64_t fit = cnr_max(1, TASK_BYTES / tile_bytes);
    const int64_t wanted = threads > 1 ? cnr_max(1, s->tiles * samples / (4 * threads)) : s->tiles;
    s->per_task = cnr_max(1, cnr_min(cnr_min(fit, wanted), s->tiles));
    const int64_t tasks = cnr_max(1, cnr_div_up(s->tiles, s->per_task) * samples);
    const int64_t parts =
        threads > 1 && tasks < 2 * threads ? cnr_min(s->pairs, cnr_div_up(2 * threads, tasks)) : 1;
    s->pairs_task = cnr_div_up(s->pairs, parts);
}

/* Allocates the state with planes, tiles and taps, for the node's plan_free, and sets the workspace
 * that padded planes need. Fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    const cnr_tensor *x = node->inputs[INT8_X];
    const int64_t k4 = k4_of(node), pixel = pixel_of(node);
    int64_t dim[CNR_MAX_RANK];
    cnr_window w;
    conv_state *s = cnr_state(int8_host, node, sizeof *s + (size_t)k4 * sizeof s->tap[0], err);
    if (!s) return CNR_E_MEMORY;
    int8_conv_window(node, &w, dim);
    int8_planes_of(node, &w, pixel, &s->p);
    s->k4 = k4;
    s->rows = node->inputs[INT8_W]->dim[0];
    s->wide = w.out[2];
    if (int8_planes_flat(&w, pixel)) s->wide = s->p.points;
    if (!int8_planes_lie(node, &w, pixel)) {
        const int64_t sample = cnr_max(1, s->p.n * s->p.plane);
        s->chunk = cnr_max(1, cnr_min(x->dim[0], CHUNK_BYTES / sample));
        workspace->bytes = (uint64_t)(s->chunk * sample + SLACK);
        workspace->alignment = 64;
    }
    fill_taps(s);
    s->row_tiles = cnr_div_up(s->wide, INT8_MOST_PIXELS);
    s->tiles = s->wide ? s->p.points / s->wide * s->row_tiles : 0;
    s->pairs = cnr_div_up(panels_of(node), INT8_MOST_PANELS);
    share_out(s, s->chunk ? s->chunk : x->dim[0], cnr_max(1, device->concurrency));
    *state = s;
    return CNR_OK;
}

/* ---- running ---- */

/* Arguments of the tasks of a run. */
typedef struct conv_job {
    const cnr_run *run;
    const conv_state *s;
    const int8_blob *blob;
    const uint8_t *x; /* padded planes of this chunk, or x itself */
    int64_t first;    /* the chunk's first sample */
} conv_job;

/* Task index of the conv_job `arg`: copies one plane with its padding. */
static void pad_plane(void *arg, int64_t index, int32_t thread) {
    const conv_job *j = arg;
    const int8_planes *p = &j->s->p;
    (void)thread;
    int8_planes_copy(p, j->run->node->inputs[INT8_X], j->first + index / p->n, index % p->n,
                     j->blob->layer.x_flip ^ INT8_BLOCKED_MIDDLE,
                     (uint8_t)(j->blob->layer.x_zero ^ INT8_BLOCKED_MIDDLE),
                     (uint8_t *)j->run->workspace_data + index * p->plane);
}

/* Copies n positions of INT8_PANEL bytes, of outputs from `row` on, into y, which is plain or in
 * blocks of 8. */
static void spread(const conv_state *s, const cnr_tensor *y, int64_t sample, int64_t row,
                   int64_t at, int64_t n, const uint8_t *from) {
    const int64_t end = cnr_min(INT8_PANEL, s->rows - row);
    uint8_t *to = (uint8_t *)y->data + (sample * s->rows + row) * s->p.points;
    if (y->block == 8)
        for (int64_t c = 0; c < end; c += 8, to += 8 * s->p.points)
            for (int64_t i = 0; i < n; i++) memcpy(to + (at + i) * 8, from + i * INT8_PANEL + c, 8);
    else
        for (int64_t c = 0; c < end; c++, to += s->p.points)
            for (int64_t i = 0; i < n; i++) to[at + i] = from[i * INT8_PANEL + c];
}

/* Computes one tile of positions for a pair of panels. */
static void one_tile(const conv_job *j, int8_tile *t, int64_t sample, int64_t pair, int64_t index) {
    const conv_state *s = j->s;
    const cnr_tensor *y = j->run->outputs[0];
    const int64_t line = index / s->row_tiles, part = index % s->row_tiles;
    const int64_t begin = part * s->wide / s->row_tiles;
    const int64_t at = line * s->wide + begin, row = pair * INT8_MOST_PANELS * INT8_PANEL;
    uint8_t room[INT8_MOST_PANELS * INT8_MOST_PIXELS * INT8_PANEL];
    t->pixels = (part + 1) * s->wide / s->row_tiles - begin;
    t->x = (const int8_blocked_byte *)j->x + sample * s->p.n * s->p.plane + begin * s->p.pixel;
    if (s->chunk) t->x += int8_planes_row(&s->p, line);
    if (y->block == 16) {
        t->y = (uint8_t *)y->data + ((j->first + sample) * s->rows + row) * s->p.points +
               at * INT8_PANEL;
        t->y_panel = s->p.points * INT8_PANEL;
        int8_uk->tile(t);
        return;
    }
    t->y = room;
    t->y_panel = INT8_MOST_PIXELS * INT8_PANEL;
    int8_uk->tile(t);
    for (int64_t v = 0; v < t->panels; v++)
        spread(s, y, j->first + sample, row + v * INT8_PANEL, at, t->pixels, room + v * t->y_panel);
}

/* Task index of the conv_job `arg`: a share of the tiles for a share of the pairs of panels, of one
 * sample of the chunk. Nothing if the run is cancelled. */
static void one_task(void *arg, int64_t index, int32_t thread) {
    const conv_job *j = arg;
    const conv_state *s = j->s;
    const int64_t parts = cnr_div_up(s->pairs, s->pairs_task);
    const int64_t blocks = cnr_div_up(s->tiles, s->per_task);
    const int64_t part = index % parts, block = index / parts % blocks;
    const int64_t first = part * s->pairs_task, panels = cnr_div_up(s->rows, INT8_PANEL);
    const int64_t end = cnr_min(s->tiles, (block + 1) * s->per_task);
    const int8_layer *layer = &j->blob->layer;
    int8_tile t = {.tap = s->tap,
                   .k4 = s->k4,
                   .pixel = s->p.pixel,
                   .panel_bytes = s->k4 * 4 * INT8_PANEL,
                   .narrow = layer->narrow,
                   .finish = {.low = layer->low, .high = layer->high, .zero = layer->y_zero}};
    (void)thread;
    if (cnr_cancelled(j->run->stream)) return;
    for (int64_t pair = first; pair < cnr_min(s->pairs, first + s->pairs_task); pair++) {
        const int64_t panel = pair * INT8_MOST_PANELS;
        t.panels = cnr_min(INT8_MOST_PANELS, panels - panel);
        t.w = int8_weights(j->blob) + panel * t.panel_bytes;
        t.finish.offset = int8_offsets(j->blob) + panel * INT8_PANEL;
        t.finish.scale = int8_scales(j->blob) + panel * INT8_PANEL;
        if (layer->sloped) t.finish.slope = int8_slopes(j->blob) + panel * INT8_PANEL;
        for (int64_t i = block * s->per_task; i < end; i++)
            one_tile(j, &t, index / parts / blocks, pair, i);
    }
}

/* Computes the convolution, some samples at a time on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const conv_state *s = run->state;
    const cnr_tensor *x = run->node->inputs[INT8_X];
    const int64_t chunk = s->chunk ? s->chunk : x->dim[0];
    const int64_t tasks =
        s->tiles ? cnr_div_up(s->tiles, s->per_task) * cnr_div_up(s->pairs, s->pairs_task) : 0;
    conv_job j = {.run = run, .s = s, .blob = run->blob_data, .x = x->data};
    (void)err;
    if (s->chunk) j.x = run->workspace_data;
    for (; j.first < x->dim[0]; j.first += chunk) {
        const int64_t n = cnr_min(chunk, x->dim[0] - j.first);
        if (s->chunk) cnr_parallel(run->stream, n * s->p.n, pad_plane, &j);
        cnr_parallel(run->stream, n * tasks, one_task, &j);
    }
    return CNR_OK;
}

const cnr_kernel int8_conv_blocked = {
    .size = sizeof(cnr_kernel),
    .version = 4,
    .name = "qlinear_conv_int8_blocked",
    .op = "qlinear_conv",
    .device = "cpu",
    .accepts = accepts,
    .prepare_size = prepare_size,
    .prepare = prepare,
    .plan = plan,
    .plan_free = int8_free_state,
    .run = run,
};
