/* max_pool of bytes on the CPU, plain or on channel blocks: first over the rows of a window, then
 * along the row. */
#include "blocked.h"

/* Plan of max pooling of bytes. */
typedef struct pool_state {
    cnr_window w; /* of the pooling, with always 3 spatial axes */
    /* in, out: positions of a plane; room: bytes of a padded row; pad: bytes of the left padding */
    int64_t in, out, room, pad;
} pool_state;

/* Finds the window; NULL, or why it does not fit. */
static const char *window_of(const cnr_node *node, cnr_window *out) {
    const cnr_tensor *x = node->inputs[0];
    cnr_window own;
    const char *why = int8_host->window_resolve(node, x, NULL, &own);
    if (why) return why;
    for (int32_t i = 0; i < own.spatial; i++)
        if (own.out[i] != node->outputs[0]->dim[2 + i]) return "shapes differ";
    *out = shape_window_three(&own);
    return NULL;
}

/* Whether no window lies in the padding alone; otherwise the reference computes it. */
static int all_inside(const cnr_window *w) {
    for (int i = 0; i < 3; i++) {
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t last = (w->out[i] - 1) * w->stride[i] - w->pad_begin[i];
        if (w->pad_begin[i] < 0 || w->pad_begin[i] >= reach || last >= w->in[i]) return 0;
        if (w->dilation[i] > 1 && (w->pad_begin[i] > 0 || last + reach > w->in[i])) return 0;
    }
    return 1;
}

/* Takes max_pool of bytes without indices; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = node->inputs[0];
    cnr_window w;
    (void)device;
    if (!int8_is_byte(x) || x->encoding || node->n_outputs != 1)
        return cnr_refuse(out, "bytes, and no indices, are wanted");
    const char *why = window_of(node, &w);
    if (!why && !all_inside(&w)) why = "a window lies in the padding alone";
    if (why) return cnr_refuse(out, why);
    const cnr_tensor *y = node->outputs[0];
    const int32_t block = out->in_block[0] == 8 || out->in_block[0] == 16 ? out->in_block[0] : 0;
    return int8_blocked_take(node, out, 300, block, int8_block_of(y->rank, y->dim) ? block : 0);
}

/* Allocates the state with the window, and sets the workspace's bytes. Fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    pool_state *s = cnr_state(int8_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    window_of(node, &s->w);
    s->in = s->w.in[0] * s->w.in[1] * s->w.in[2];
    s->out = s->w.out[0] * s->w.out[1] * s->w.out[2];
    const int64_t reach =
        (s->w.out[2] - 1) * s->w.stride[2] + (s->w.kernel[2] - 1) * s->w.dilation[2] + 1;
    const int64_t block = cnr_max(1, node->inputs[0]->block);
    s->pad = s->w.pad_begin[2] * block;
    s->room = cnr_round_up(cnr_max(s->w.in[2] + s->w.pad_begin[2], reach) * block, 64);
    workspace->bytes = (uint64_t)(cnr_max(1, device->concurrency) * s->room);
    *state = s;
    return CNR_OK;
}

/* The maximum of each column over the rows of the windows at (z, y). */
static void rows_of(const pool_state *s, const uint8_t *x, int64_t z, int64_t y, uint8_t flip,
                    int64_t block, uint8_t *best) {
    const cnr_window *w = &s->w;
    const int64_t bytes = w->in[2] * block;
    int first = 1;
    for (int64_t a = 0; a < w->kernel[0]; a++)
        for (int64_t b = 0; b < w->kernel[1]; b++) {
            const int64_t iz = z * w->stride[0] - w->pad_begin[0] + a * w->dilation[0];
            const int64_t iy = y * w->stride[1] - w->pad_begin[1] + b * w->dilation[1];
            if (iz < 0 || iz >= w->in[0] || iy < 0 || iy >= w->in[1]) continue;
            const uint8_t *row = x + (iz * w->in[1] + iy) * bytes;
            if (first) memcpy(best, row, (size_t)bytes);
            else int8_uk->max(best, row, bytes, flip);
            first = 0;
        }
}

/* Task index of the cnr_run `arg`: pools one plane. */
static void one_plane(void *arg, int64_t index, int32_t thread) {
    const cnr_run *run = arg;
    const pool_state *s = run->state;
    const cnr_window *w = &s->w;
    const cnr_tensor *t = run->node->inputs[0];
    const int64_t block = cnr_max(1, t->block);
    const uint8_t *x = (const uint8_t *)t->data + index * s->in * block;
    const uint8_t flip = t->dtype == CNR_i8 ? 0x80 : 0;
    uint8_t *y = (uint8_t *)run->outputs[0]->data + index * s->out * block;
    uint8_t *best = (uint8_t *)run->workspace_data + thread * s->room;
    if (cnr_cancelled(run->stream)) return;
    /* padding left and right of each row is the smallest byte */
    memset(best, flip, (size_t)s->room);
    for (int64_t row = 0; row < w->out[0] * w->out[1]; row++, y += w->out[2] * block) {
        rows_of(s, x, row / w->out[1], row % w->out[1], flip, block, best + s->pad);
        if (block == 1)
            int8_uk->max_along(best, w->out[2], w->kernel[2], w->stride[2], w->dilation[2], flip,
                               y);
        else
            int8_uk->max_blocks(best, w->out[2], w->kernel[2], w->stride[2] * block,
                                w->dilation[2] * block, block, flip, y);
    }
}

/* Pools all planes on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    (void)err;
    cnr_parallel(run->stream, x->dim[0] * (x->dim[1] / cnr_max(1, x->block)), one_plane,
                 (void *)run);
    return CNR_OK;
}

const cnr_kernel int8_max_pool = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "max_pool_int8",
    .op = "max_pool",
    .device = "cpu",
    .accepts = accepts,
    .plan = plan,
    .plan_free = int8_free_state,
    .run = run,
};
