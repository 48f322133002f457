/* The gradient of conv's weight by Winograd's method: the transpose of the convolution's. With the
 * components V of the input's tiles and D of the output gradient's,
 *
 *     S[36][oc][ic] = sum over tiles of D[36][oc][tile] V[36][ic][tile],   dw = G^T S G
 *
 * The images are divided into parts, as their sizes say and not the threads; each part sums its
 * tiles in order, and parts are added in order. So results do not depend on the threads. */
#include "winograd_planes.h"

/* Channels of a block, at most: its sums stay in the L2 cache. */
#define MOST_CHANNELS 64
/* Parts, at most, and tiles of a part at least: adding a part costs as much as about 8 tiles. */
#define MOST_PARTS 16
#define PART_TILES 64
#define MOST_FLOATS ((int64_t)32 << 20) /* of all sums: 128 MiB */

/* Plan of the gradient. */
typedef struct grad_state {
    neon_wino_blocks b;
    int64_t group, cin, cout, in[2], out[2], pad[2];
    int64_t parts;
    int64_t block_in, block_out, blocks_in, blocks_out; /* channels of a block, and blocks */
    int64_t v_component, d_component, s_component;
    int64_t v_floats, d_floats, s_floats, room_floats;
    int64_t v_at, d_at, s_at, room_at, floats;
} grad_state;

/* Finds the window and the channels of a group; NULL, or why the node is not taken. */
static const char *shape_of(const cnr_node *node, cnr_window *w, grad_state *s) {
    const cnr_tensor *dy = cnr_own_input(node, 0), *x = cnr_own_input(node, 1);
    const cnr_tensor *weight = cnr_own_input(node, 2);
    if (!dy || !x || !weight || !neon_all_f32(node)) return NEON_WANTS_F32;
    const char *why = neon_conv_window(node, x, weight, w);
    if (!why) why = neon_wino_window(w);
    if (why) return why;
    s->group = cnr_max(1, cnr_attr_int(node, "group"));
    s->cin = weight->dim[1];
    s->cout = weight->dim[0] / s->group;
    for (int32_t i = 0; i < 2; i++) {
        if (w->pad_begin[i] >= w->kernel[i] || w->pad_end[i] >= w->kernel[i])
            return "the padding is too wide";
        s->in[i] = w->in[i];
        s->out[i] = w->out[i];
        s->pad[i] = w->pad_begin[i];
    }
    return x->dim[0] < 1 ? "there are no images" : NULL;
}

/* Divides images and channels. Parts depend on the sizes alone. */
static void divide(grad_state *s, int64_t kernel, int64_t images, int64_t threads) {
    const int64_t vl = neon_uk->vl, most = MOST_CHANNELS;
    const int64_t in = cnr_min(most, cnr_round_up(s->cin, vl));
    const int64_t out = cnr_min(most, cnr_round_up(s->cout, vl));
    s->b = neon_wino_blocks_of(kernel, s->out, images, cnr_max(16, 2800 / (in + out)));
    const int64_t tiles = s->b.high * s->b.wide * images;
    const int64_t blocks = s->group * cnr_div_up(s->cin, in) * cnr_div_up(s->cout, out);
    s->parts = cnr_min(cnr_div_up(MOST_PARTS, blocks), cnr_max(1, tiles / PART_TILES));
    s->parts = cnr_min(s->parts, s->b.n);
    s->block_in = in;
    s->block_out = out;
    if (s->parts * blocks < 2 * threads) {
        s->block_in = cnr_max(vl, cnr_round_up(in / 2, vl));
        s->block_out = cnr_max(vl, cnr_round_up(out / 2, vl));
    }
    s->blocks_in = cnr_div_up(s->cin, s->block_in);
    s->blocks_out = cnr_div_up(s->cout, s->block_out);
    s->s_component = s->block_in * s->block_out;
    s->s_floats = WINO_COMPONENTS * s->s_component;
}

/* Tasks that sum. */
static int64_t tasks_of(const grad_state *s) {
    return s->parts * s->group * s->blocks_in * s->blocks_out;
}

/* Cycles by this method and directly, for all tiles. */
static int pays(const grad_state *s) {
    const double vl = neon_uk->vl, side = (double)s->b.side, taps = side == 4 ? 9 : 25;
    const double in = (double)cnr_div_up(s->cin, neon_uk->vl);
    const double out = (double)cnr_div_up(s->cout, neon_uk->vl);
    const double each = neon_wino_transform_cycles(s->b.side);
    const double here = WINO_COMPONENTS * in * out * vl / 0.8 +
                        each * (in * (double)s->blocks_out + out * (double)s->blocks_in);
    const double rest = WINO_COMPONENTS * in * out * vl * (double)s->parts; /* adding parts */
    const double direct = side * side * taps * (double)(s->cin * s->cout) / (0.6 * vl);
    const double tiles = (double)(s->b.high * s->b.wide * s->b.images);
    return here * tiles + rest < direct * tiles;
}

/* Takes f32 gradients of the weight, behind the direct sum where the method does not pay. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    grad_state s = {0};
    if ((out->why = shape_of(node, &w, &s))) return CNR_OK;
    divide(&s, w.kernel[0], node->inputs[1]->dim[0], device->concurrency);
    if (tasks_of(&s) > MOST_FLOATS / s.s_floats) return cnr_refuse(out, "its sums are too large");
    return cnr_take(node, out, pays(&s) ? 520 : NEON_LAST);
}

/* Finds blocks and workspace. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    cnr_window w;
    const int64_t threads = device->concurrency;
    grad_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    const char *why = shape_of(node, &w, s);
    if (why) {
        neon_host->free(s);
        return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    }
    divide(s, w.kernel[0], node->inputs[1]->dim[0], threads);
    /* an extra cache line keeps components in different sets of the cache */
    s->v_component = s->b.tiles * s->block_in + 16;
    s->d_component = s->b.tiles * cnr_round_up(s->block_out, neon_uk->mr) + 16;
    s->v_floats = cnr_round_up(WINO_COMPONENTS * s->v_component, 16);
    s->d_floats = cnr_round_up(WINO_COMPONENTS * s->d_component, 16);
    s->room_floats = neon_wino_high(&s->b, s->b.rows, s->b.reach) *
                     neon_wino_wide(&s->b, s->b.reach) * neon_uk->vl;
    s->v_at = neon_reserve(&s->floats, s->v_floats * threads);
    s->d_at = neon_reserve(&s->floats, s->d_floats * threads);
    s->room_at = neon_reserve(&s->floats, s->room_floats * threads);
    s->s_at = neon_reserve(&s->floats, s->s_floats * tasks_of(s));
    workspace->bytes = (uint64_t)s->floats * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* ---- run ---- */

/* Arguments of the tasks of a run. */
typedef struct grad_job {
    const grad_state *s;
    const cnr_run *run;
    const float *dy, *x;
    float *dw, *scratch;
} grad_job;

/* What a task has: channels [in, in + n_in) and [out, out + n_out) of a group. */
typedef struct grad_task {
    int64_t part, group, in, n_in, out, n_out;
    float *v, *d, *room, *sums;
} grad_task;

static grad_task task_of(const grad_job *job, int64_t i, int32_t thread) {
    const grad_state *s = job->s;
    grad_task t = {.sums = job->scratch + s->s_at + i * s->s_floats,
                   .v = job->scratch + s->v_at + thread * s->v_floats,
                   .d = job->scratch + s->d_at + thread * s->d_floats,
                   .room = job->scratch + s->room_at + thread * s->room_floats};
    /* parts are slowest: a thread has images of its own, as elsewhere */
    const int64_t blocks = s->group * s->blocks_in * s->blocks_out;
    t.part = i / blocks;
    i %= blocks;
    t.in = i % s->blocks_in * s->block_in;
    i /= s->blocks_in;
    t.out = i % s->blocks_out * s->block_out;
    t.group = i / s->blocks_out;
    t.n_in = cnr_min(s->block_in, s->cin - t.in);
    t.n_out = cnr_min(s->block_out, s->cout - t.out);
    return t;
}

/* Transforms a band of the input into its place in t->v: [component][panel of nr channels][tile]
 * [channel]; t->room holds the padded pixels of vl channels meanwhile. */
static void take_input(const grad_job *job, const grad_task *t, const neon_wino_band *band) {
    const grad_state *s = job->s;
    const int64_t vl = neon_uk->vl, nr = neon_uk->nr, plane = s->in[0] * s->in[1];
    const int64_t wide = neon_wino_wide(&s->b, s->b.reach), all = cnr_round_up(t->n_in, vl);
    const int64_t first = (band->image * s->group + t->group) * s->cin + t->in;
    for (int64_t c = 0; c < t->n_in; c += vl) {
        const int64_t panel = c / nr * nr, width = cnr_min(nr, all - panel);
        const neon_wino_planes planes = {.x = job->x + (first + c) * plane,
                                         .plane = plane,
                                         .size = {s->in[0], s->in[1]},
                                         .channels = cnr_min(vl, t->n_in - c),
                                         .top = band->row * s->b.side - s->pad[0],
                                         .left = -s->pad[1]};
        const neon_wino_grid grid = {.side = s->b.side,
                                     .n = band->rows * s->b.wide,
                                     .wide = s->b.wide,
                                     .x = t->room,
                                     .row = wide * vl,
                                     .v = t->v + panel * s->b.tiles + band->at * width + c - panel,
                                     .component = s->v_component,
                                     .pitch = width};
        neon_wino_fill(&planes, neon_wino_high(&s->b, band->rows, s->b.reach), wide, t->room);
        neon_uk->wino_take(&grid);
    }
}

/* Components of a band of the output's gradient: panels of mr rows. */
static void spread_gradient(const grad_job *job, const grad_task *t, const neon_wino_band *band) {
    const grad_state *s = job->s;
    const int64_t vl = neon_uk->vl, mr = neon_uk->mr, plane = s->out[0] * s->out[1];
    const int64_t wide = neon_wino_wide(&s->b, 0);
    const int64_t first = (band->image * s->group + t->group) * s->cout + t->out;
    for (int64_t c = 0; c < t->n_out; c += vl) {
        const neon_wino_planes planes = {.x = job->dy + (first + c) * plane,
                                         .plane = plane,
                                         .size = {s->out[0], s->out[1]},
                                         .channels = cnr_min(vl, t->n_out - c),
                                         .top = band->row * s->b.side};
        const neon_wino_grid grid = {.side = s->b.side,
                                     .n = band->rows * s->b.wide,
                                     .wide = s->b.wide,
                                     .x = t->room,
                                     .row = wide * vl,
                                     .v = t->d + c / mr * mr * s->b.tiles + band->at * mr + c % mr,
                                     .component = s->d_component,
                                     .pitch = mr,
                                     .panel = mr * s->b.tiles};
        neon_wino_fill(&planes, neon_wino_high(&s->b, band->rows, 0), wide, t->room);
        neon_uk->wino_spread(&grid);
    }
}

/* Adds the products of a block's tiles to the task's sums. */
static void multiply(const grad_state *s, const grad_task *t, int64_t tiles, int add) {
    const int64_t mr = neon_uk->mr, nr = neon_uk->nr, in = cnr_round_up(t->n_in, neon_uk->vl);
    for (int64_t k = 0; k < WINO_COMPONENTS; k++)
        for (int64_t j = 0; j < in; j += nr)
            for (int64_t i = 0; i < t->n_out; i += mr)
                neon_uk->sgemm(tiles, t->d + k * s->d_component + i * s->b.tiles,
                               t->v + k * s->v_component + j * s->b.tiles,
                               t->sums + k * s->s_component + i * s->block_in + j, s->block_in,
                               cnr_min(mr, t->n_out - i), cnr_min(nr, in - j), NULL, add);
}

/* Task: sums a part of the tiles for some channels. */
static void sum_part(void *arg, int64_t i, int32_t thread) {
    const grad_job *job = arg;
    const grad_state *s = job->s;
    const grad_task t = task_of(job, i, thread);
    const int64_t first = t.part * s->b.n / s->parts, end = (t.part + 1) * s->b.n / s->parts;
    for (int64_t block = first; block < end; block++) {
        int64_t tiles = 0;
        if (cnr_cancelled(job->run->stream)) return;
        for (int64_t k = 0; k < neon_wino_bands(&s->b, block); k++) {
            const neon_wino_band band = neon_wino_band_of(&s->b, block, k);
            take_input(job, &t, &band);
            spread_gradient(job, &t, &band);
            tiles = band.at + band.rows * s->b.wide;
        }
        multiply(s, &t, tiles, block > first);
    }
}

/* Task: adds the parts of one output channel, and transforms them back. */
static void add_parts(void *arg, int64_t i, int32_t thread) {
    const grad_job *job = arg;
    const grad_state *s = job->s;
    const int64_t vl = neon_uk->vl, taps = s->b.side == 4 ? 9 : 25;
    const int64_t group = i / s->cout, out = i % s->cout, row = out % s->block_out;
    const int64_t blocks = s->group * s->blocks_in * s->blocks_out;
    float sums[WINO_COMPONENTS * 16];
    (void)thread;
    for (int64_t in = 0; in < s->cin; in += vl) {
        const int64_t block =
            (group * s->blocks_out + out / s->block_out) * s->blocks_in + in / s->block_in;
        const float *from =
            job->scratch + s->s_at + block * s->s_floats + row * s->block_in + in % s->block_in;
        for (int64_t k = 0; k < WINO_COMPONENTS; k++) {
            memcpy(sums + k * vl, from + k * s->s_component, (size_t)vl * sizeof *sums);
            for (int64_t p = 1; p < s->parts; p++)
                neon_uk->add(sums + k * vl, from + p * blocks * s->s_floats + k * s->s_component,
                             vl);
        }
        neon_uk->wino_slope(s->b.side, sums, vl, cnr_min(vl, s->cin - in),
                            job->dw + (i * s->cin + in) * taps, taps);
    }
}

/* Computes the gradient. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const grad_state *s = run->state;
    grad_job job = {.s = s,
                    .run = run,
                    .dy = neon_floats(run->node->inputs[0]),
                    .x = neon_floats(run->node->inputs[1]),
                    .dw = run->outputs[0]->data,
                    .scratch = run->workspace_data};
    (void)err;
    cnr_parallel(run->stream, tasks_of(s), sum_part, &job);
    cnr_parallel(run->stream, s->group * s->cout, add_parts, &job);
    return CNR_OK;
}

/* A NaN spreads to all taps of its channels. */
NEON_KERNEL_WITH(CNR_KERNEL_SPREADS_NAN, neon_conv_grad_weight_winograd,
                 "conv_grad_weight_f32_winograd", "conv_grad_weight", plan, neon_free_state);
