/* conv of volumes by Winograd's method (winograd.c says which) along rows and columns: the windows'
 * planes are summed as further channels. Tensors are plain, weights constant.
 *
 *     V[36][channel][slice][tile] = B^T x B
 *     M[36][oc][slice][tile] = sum over plane d of U[36][oc][d][channel] * V[..][slice + d][..]
 *
 * A slice is transformed once for all windows of its block that have it. Sums are in the order of
 * the windows' planes and channels, whatever the blocks and threads. */
#include "winograd_planes.h"

/* Floats of the transformed input of a block: together with a unit's sums, they stay in the L2
 * cache. */
#define V_LIMIT ((int64_t)112 << 10)

/* Plan of a convolution of volumes. A block has some rows of tiles of some slices. */
typedef struct volume_state {
    neon_chain chain;
    int64_t group, cin, cout, in[3], out[3], pad[3];
    int64_t side, taps, planes,
        spread; /* of a window's planes: number, slices from one to the next */
    int64_t lanes, count, vectors, units; /* blocks of input channels and channels of each */
    int64_t high, wide, rows, bands;      /* tiles of a slice, of a block; blocks along the rows */
    int64_t deep, chunks, slices,
        tiles; /* outputs of a block; blocks along the slices; most that are read */
    int64_t u_component, u_floats;                                     /* of a group */
    int64_t v_component, m_component, v_floats, m_floats, room_floats; /* of a thread */
    int64_t m_at, room_at;
    int64_t run[];
} volume_state;

/* ---- acceptance ---- */

/* Why a window is not computed so; NULL: it is. */
static const char *unfit(const cnr_window *w) {
    if (w->spatial != 3 || w->kernel[1] != w->kernel[2] ||
        (w->kernel[1] != 3 && w->kernel[1] != 5) || w->kernel[0] < 2)
        return "windows of several planes of 3 x 3 or 5 x 5 are wanted";
    for (int32_t i = 0; i < 3; i++)
        if (w->stride[i] != 1 || (i && w->dilation[i] != 1))
            return "stride and dilation 1 are wanted";
    return w->out[0] < 1 || w->out[1] < 1 || w->out[2] < 1 ? "the output is empty" : NULL;
}

static int64_t side_of(const cnr_window *w) { return w->kernel[1] == 3 ? 4 : 2; }

/* Channels of a group that are multiplied: those of a single vector are not padded. */
static int64_t full_channels(int64_t cin) {
    return cin < neon_uk->vl ? cin : cnr_round_up(cin, neon_uk->vl);
}

/* Cycles of a tile with its part of the transforms, half of which slices that blocks share repeat.
 */
static double tile_cycles(const cnr_window *w, int64_t cin, int64_t cout) {
    const double out = (double)cnr_div_up(cout, neon_uk->vl);
    const double in = (double)cnr_div_up(cin, neon_uk->vl);
    return WINO_COMPONENTS * (double)(full_channels(cin) * w->kernel[0]) * out / 0.75 +
           (1.5 * in + out) * neon_wino_transform_cycles(side_of(w));
}
/* Cycles of the same outputs, directly. */
static double direct_cycles(const cnr_window *w, int64_t cin, int64_t cout) {
    const int64_t side = side_of(w), taps = w->kernel[0] * w->kernel[1] * w->kernel[2];
    return (double)(side * side * taps * cin * cout) / (0.65 * neon_uk->vl);
}

/* Tiles of all groups and images. */
static double all_tiles(const cnr_node *node, const cnr_window *w) {
    const int64_t side = side_of(w), group = cnr_max(1, cnr_attr_int(node, "group"));
    return (double)(cnr_div_up(w->out[1], side) * cnr_div_up(w->out[2], side) * w->out[0]) *
           (double)(node->inputs[0]->dim[0] * group);
}

/* Takes f32 convolutions of volumes with constant weights where the method pays. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    const cnr_tensor *x = cnr_own_input(node, 0), *weight = cnr_own_input(node, 1);
    (void)device;
    if ((out->why = neon_turned_window(node, &w)) || (out->why = unfit(&w))) return CNR_OK;
    if (!cnr_is_constant(weight)) return cnr_refuse(out, "constant weights are wanted");
    const int64_t group = cnr_max(1, cnr_attr_int(node, "group"));
    const int64_t cin = weight->dim[1], cout = weight->dim[0] / group;
    const double used =
        (double)(w.out[1] * w.out[2]) /
        (double)(cnr_round_up(w.out[1], side_of(&w)) * cnr_round_up(w.out[2], side_of(&w)));
    const double cycles = tile_cycles(&w, cin, cout);
    if (x->dim[0] < 1 || cycles > used * direct_cycles(&w, cin, cout))
        return cnr_refuse(out, "too few channels: the direct sum is faster");
    const int64_t dim[5] = {x->dim[0], weight->dim[0], w.out[0], w.out[1], w.out[2]};
    cnr_take(node, out, 520);
    out->epilogue = neon_chain_accepts(node, x->rank, dim);
    out->prepared = 1 << 1;
    out->cost_ns = neon_cost_ns(2.0 * all_tiles(node, &w) * neon_uk->vl * cycles, 1.0);
    return CNR_OK;
}

/* Floating-point operations that the method needs. */
static double flops_of(const cnr_device *device, const cnr_node *node) {
    cnr_window w;
    const cnr_tensor *weight = node->inputs[1];
    (void)device;
    if (neon_turned_window(node, &w)) return 0; /* impossible: the node was accepted */
    const int64_t cin = weight->dim[1];
    const int64_t cout = weight->dim[0] / cnr_max(1, cnr_attr_int(node, "group"));
    return all_tiles(node, &w) * (2.0 * WINO_COMPONENTS * (double)(cin * cout * w.kernel[0]) +
                                  400.0 * (double)(cin + cout));
}

/* ---- plan ---- */

/* Divides the outputs into blocks whose transformed input has about V_LIMIT floats, at least two
 * for each thread if there are so many. */
static void divide(volume_state *s, int64_t images, int64_t threads) {
    const int64_t reach = s->slices; /* slices that a block reads beyond its outputs */
    const int64_t most =
        cnr_max(2 * neon_uk->tile_columns, V_LIMIT / (WINO_COMPONENTS * s->lanes * neon_uk->vl));
    for (s->bands = 1;; s->bands++) {
        s->rows = cnr_div_up(s->high, s->bands);
        s->deep = cnr_min(s->out[0], most / (s->rows * s->wide) - reach);
        if (s->deep >= cnr_min(s->out[0], 3 * reach) || s->rows == 1) break;
    }
    s->deep = cnr_max(1, s->deep);
    s->bands = cnr_div_up(s->high, s->rows);
    s->chunks = cnr_div_up(s->out[0], s->deep);
    const int64_t others = s->bands * images * s->group;
    if (threads > 1 && others * s->chunks < 2 * threads)
        s->chunks = cnr_min(s->out[0], cnr_div_up(2 * threads, others));
    s->deep = cnr_div_up(s->out[0], s->chunks);
    s->chunks = cnr_div_up(s->out[0], s->deep);
    s->slices = s->deep + reach;
    s->tiles = s->rows * s->wide;
}

/* Sizes and places in the workspace; its floats. An extra cache line keeps components in different
 * sets of the cache. */
static int64_t reserve(volume_state *s, int64_t threads) {
    const int64_t vl = neon_uk->vl;
    int64_t floats = 0;
    s->v_component = s->lanes * s->slices * s->tiles * vl + 16;
    s->m_component = neon_uk->tile_vectors * s->deep * s->tiles * vl + 16;
    s->v_floats = cnr_round_up(WINO_COMPONENTS * s->v_component, 16);
    s->m_floats = cnr_round_up(WINO_COMPONENTS * s->m_component, 16);
    s->room_floats = (s->rows * s->side + s->taps - 1) * (s->wide * s->side + s->taps - 1) * vl;
    neon_reserve(&floats, s->v_floats * threads);
    s->m_at = neon_reserve(&floats, s->m_floats * threads);
    s->room_at = neon_reserve(&floats, s->room_floats * threads);
    return floats;
}

/* Sizes of the weights: [component][unit][window's plane][channel][the unit's vectors][vl]. */
static void weight_sizes(const cnr_node *node, volume_state *s) {
    const cnr_tensor *weight = node->inputs[1];
    s->group = cnr_max(1, cnr_attr_int(node, "group"));
    s->cin = weight->dim[1];
    s->cout = weight->dim[0] / s->group;
    s->planes = weight->dim[2];
    s->taps = weight->dim[3];
    s->side = s->taps == 3 ? 4 : 2;
    s->lanes = cnr_div_up(s->cin, neon_uk->vl);
    s->count = full_channels(s->cin) / s->lanes;
    s->vectors = cnr_div_up(s->cout, neon_uk->vl);
    s->units = cnr_div_up(s->vectors, neon_uk->tile_vectors);
    s->u_component = s->planes * s->lanes * s->count * s->vectors * neon_uk->vl + 16;
    s->u_floats = cnr_round_up(WINO_COMPONENTS * s->u_component, 16);
}

static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    cnr_window w;
    const char *why = neon_turned_window(node, &w);
    if (why) return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    const int64_t runs = w.kernel[0] * cnr_div_up(node->inputs[1]->dim[1], neon_uk->vl);
    volume_state *s = cnr_state(neon_host, node, sizeof *s + (size_t)runs * sizeof *s->run, err);
    if (!s) return CNR_E_MEMORY;
    neon_chain_plan(node, &s->chain);
    weight_sizes(node, s);
    for (int32_t i = 0; i < 3; i++) {
        s->in[i] = w.in[i];
        s->out[i] = w.out[i];
        s->pad[i] = w.pad_begin[i];
    }
    s->spread = w.dilation[0];
    s->high = cnr_div_up(s->out[1], s->side);
    s->wide = cnr_div_up(s->out[2], s->side);
    s->slices = (s->planes - 1) * s->spread;
    divide(s, node->inputs[0]->dim[0], device->concurrency);
    for (int64_t i = 0; i < runs; i++) {
        const int64_t plane = i / s->lanes, lane = i % s->lanes;
        s->run[i] = (lane * s->slices + plane * s->spread) * s->tiles * neon_uk->vl;
    }
    workspace->bytes = (uint64_t)reserve(s, device->concurrency) * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* ---- weights ---- */

/* Sets out->bytes to those of the transformed weights of all groups. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    volume_state s = {0};
    (void)device;
    (void)err;
    weight_sizes(node, &s);
    out->bytes = (uint64_t)(s.group * s.u_floats) * sizeof(float);
    return CNR_OK;
}

/* Arguments of the tasks that transform weights. */
typedef struct volume_packing {
    const volume_state *s;
    const float *weight;
    float *to;
} volume_packing;

/* Task: transforms the weights of a vector of output channels of a group. */
static void pack_vector(void *arg, int64_t i, int32_t thread) {
    const volume_packing *p = arg;
    const volume_state *s = p->s;
    const int64_t vl = neon_uk->vl, most = neon_uk->tile_vectors, taps = s->taps * s->taps;
    const int64_t g = i / s->vectors, v = i % s->vectors, unit = v / most;
    const int64_t width = cnr_min(most, s->vectors - unit * most) * vl;
    const int64_t n = cnr_min(vl, s->cout - v * vl), all = s->lanes * s->count;
    float *to = p->to + g * s->u_floats + unit * most * vl * s->planes * all + v % most * vl;
    (void)thread;
    for (int64_t d = 0; d < s->planes; d++)
        for (int64_t c = 0; c < all; c++, to += width) {
            const int64_t from = ((g * s->cout + v * vl) * s->cin + c) * s->planes + d;
            if (c < s->cin)
                neon_uk->wino_filter(s->side, p->weight + from * taps, s->cin * s->planes * taps, n,
                                     0, to, s->u_component);
            for (int64_t k = 0; k < WINO_COMPONENTS && c >= s->cin; k++)
                memset(to + k * s->u_component, 0, (size_t)vl * sizeof *to);
        }
}

/* Transforms the weights on all threads. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    volume_state s = {0};
    volume_packing p = {.s = &s, .weight = neon_floats(node->inputs[1]), .to = blob};
    (void)err;
    weight_sizes(node, &s);
    neon_parallel(device, s.group * s.vectors, pack_vector, &p);
    return CNR_OK;
}

/* ---- run ---- */

/* Arguments of the tasks of a run. */
typedef struct volume_job {
    const volume_state *s;
    const cnr_run *run;
    const float *x, *u, *bias;
    float *y, *scratch;
} volume_job;

/* A block: group of an image, first output slice and row of tiles, and their numbers. */
typedef struct volume_block {
    int64_t image, slice, slices, row, rows;
} volume_block;

/* Transforms slice i of a block, for one vector of channels; zeros beyond the volume. */
static void transform_slice(const volume_job *job, const volume_block *b, int64_t lane, int64_t i,
                            float *v, float *room) {
    const volume_state *s = job->s;
    const int64_t vl = neon_uk->vl, slice = b->slice + i - s->pad[0], n = b->rows * s->wide;
    const int64_t volume = s->in[0] * s->in[1] * s->in[2];
    const int64_t wide = s->wide * s->side + s->taps - 1;
    v += (lane * s->slices + i) * s->tiles * vl;
    if (slice < 0 || slice >= s->in[0]) {
        for (int64_t k = 0; k < WINO_COMPONENTS; k++)
            memset(v + k * s->v_component, 0, (size_t)(n * vl) * sizeof *v);
        return;
    }
    const neon_wino_planes planes = {
        .x = job->x + (b->image * s->cin + lane * vl) * volume + slice * s->in[1] * s->in[2],
        .plane = volume,
        .size = {s->in[1], s->in[2]},
        .channels = cnr_min(vl, s->cin - lane * vl),
        .top = b->row * s->side - s->pad[1],
        .left = -s->pad[2],
    };
    const neon_wino_grid grid = {.side = s->side,
                                 .n = n,
                                 .wide = s->wide,
                                 .x = room,
                                 .row = wide * vl,
                                 .v = v,
                                 .component = s->v_component,
                                 .pitch = vl};
    neon_wino_fill(&planes, b->rows * s->side + s->taps - 1, wide, room);
    neon_uk->wino_take(&grid);
}

/* Tiles at a time: as many as registers hold, in equal steps. */
static int64_t tile_step(int64_t tiles) {
    return cnr_div_up(tiles, cnr_div_up(tiles, neon_uk->tile_columns));
}

/* All products of a unit: m[component][step of tiles][vector][tile][vl]. */
static void multiply(const volume_state *s, const float *u, int64_t vectors, int64_t tiles,
                     const float *v, float *m) {
    static const float zeros[64];
    const int64_t vl = neon_uk->vl, step = tile_step(tiles);
    for (int64_t k = 0; k < WINO_COMPONENTS; k++)
        for (int64_t t = 0; t < tiles; t += step) {
            const neon_conv_tile tile = {.n = cnr_min(step, tiles - t),
                                         .tiles = 1,
                                         .vectors = vectors,
                                         .x = v + k * s->v_component + t * vl,
                                         .x_column = vl,
                                         .run = s->run,
                                         .runs = s->planes * s->lanes,
                                         .count = s->count,
                                         .weight = u + k * s->u_component,
                                         .bias = zeros,
                                         .y = m}; /* only for offsets */
            neon_uk->conv_sum(&tile, m + k * s->m_component + t * vectors * vl);
        }
}

/* Writes n channels of a slice's rows to their planes, and applies what follows. */
static void unload(const volume_job *job, const volume_block *b, int64_t slice, int64_t channel,
                   int64_t n, const float *room) {
    const volume_state *s = job->s;
    const int64_t vl = neon_uk->vl, plane = s->out[1] * s->out[2], volume = s->out[0] * plane;
    const int64_t wide = s->wide * s->side, y0 = b->row * s->side;
    const int64_t rows = cnr_min(s->out[1] - y0, b->rows * s->side);
    const int64_t first = channel * volume + slice * plane + y0 * s->out[2];
    if (wide == s->out[2]) neon_uk->turn(room, vl, job->y + first, volume, rows * wide, n);
    for (int64_t i = 0; i < rows && wide > s->out[2]; i++)
        neon_uk->turn(room + i * wide * vl, vl, job->y + first + i * s->out[2], volume, s->out[2],
                      n);
    for (int64_t c = 0; c < n; c++)
        neon_chain_run(&s->chain, job->run->node, job->y + first + c * volume, first + c * volume,
                       rows * s->out[2]);
}

/* Transforms the sums of output slice i of a block back, for vector k of a unit's `vectors`. */
static void transform_out(const volume_job *job, const volume_block *b, int64_t i, int64_t vectors,
                          const float *m, int64_t k, const float *bias, float *room) {
    const volume_state *s = job->s;
    const int64_t vl = neon_uk->vl, of_slice = b->rows * s->wide, tiles = b->slices * s->tiles;
    const int64_t step = tile_step(tiles), begin = i * s->tiles, end = begin + of_slice;
    for (int64_t t = begin, next; t < end; t = next) {
        const int64_t start = t / step * step, columns = cnr_min(step, tiles - start);
        next = cnr_min(end, start + columns);
        const neon_wino_grid grid = {.side = s->side,
                                     .first = t - begin,
                                     .n = next - t,
                                     .wide = s->wide,
                                     .x = room,
                                     .row = s->wide * s->side * vl,
                                     .v = (float *)m +
                                          (start * vectors + k * columns + t - start) * vl,
                                     .component = s->m_component,
                                     .pitch = vl,
                                     .bias = bias};
        neon_uk->wino_give(&grid);
    }
}

/* Computes one unit of output channels of a block. */
static void one_unit(const volume_job *job, const volume_block *b, int64_t unit, const float *v,
                     float *m, float *room) {
    const volume_state *s = job->s;
    const int64_t vl = neon_uk->vl, most = neon_uk->tile_vectors, g = b->image % s->group;
    const int64_t vectors = cnr_min(most, s->vectors - unit * most);
    const int64_t all = s->planes * s->lanes * s->count;
    multiply(s, job->u + g * s->u_floats + unit * most * vl * all, vectors, b->slices * s->tiles, v,
             m);
    for (int64_t k = 0; k < vectors; k++) {
        const int64_t c = (unit * most + k) * vl, n = cnr_min(vl, s->cout - c);
        float bias[64] = {0};
        if (job->bias) memcpy(bias, job->bias + g * s->cout + c, (size_t)n * sizeof *bias);
        for (int64_t i = 0; i < b->slices; i++) {
            transform_out(job, b, i, vectors, m, k, bias, room);
            unload(job, b, b->slice + i, b->image * s->cout + c, n, room);
        }
    }
}

/* Task: computes a block of a group of an image; nothing once the run is cancelled. */
static void one_block(void *arg, int64_t i, int32_t thread) {
    const volume_job *job = arg;
    const volume_state *s = job->s;
    const int64_t band = i % s->bands, chunk = i / s->bands % s->chunks;
    const volume_block b = {.image = i / s->bands / s->chunks,
                            .slice = chunk * s->deep,
                            .slices = cnr_min(s->deep, s->out[0] - chunk * s->deep),
                            .row = band * s->rows,
                            .rows = cnr_min(s->rows, s->high - band * s->rows)};
    float *v = job->scratch + thread * s->v_floats;
    float *m = job->scratch + s->m_at + thread * s->m_floats;
    float *room = job->scratch + s->room_at + thread * s->room_floats;
    if (cnr_cancelled(job->run->stream)) return;
    for (int64_t lane = 0; lane < s->lanes; lane++)
        for (int64_t k = 0; k < b.slices + s->slices - s->deep; k++)
            transform_slice(job, &b, lane, k, v, room);
    for (int64_t unit = 0; unit < s->units; unit++) one_unit(job, &b, unit, v, m, room);
}

/* Computes the convolution. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const volume_state *s = run->state;
    volume_job job = {
        .s = s,
        .run = run,
        .x = neon_floats(run->node->inputs[0]),
        .u = run->blob_data,
        .bias = neon_floats(cnr_own_input(run->node, 2)),
        .y = run->outputs[0]->data,
        .scratch = run->workspace_data,
    };
    const int64_t images = run->node->inputs[0]->dim[0] * s->group;
    (void)err;
    cnr_parallel(run->stream, images * s->chunks * s->bands, one_block, &job);
    return CNR_OK;
}

const cnr_kernel neon_conv_winograd_volume = {.size = sizeof(cnr_kernel),
                                              .version = 1,
                                              .name = "conv_f32_winograd_volume",
                                              .op = "conv",
                                              .device = "cpu-neon",
                                              .accepts = accepts,
                                              .prepare_size = prepare_size,
                                              .prepare = prepare,
                                              .plan = plan,
                                              .plan_free = neon_free_state,
                                              .run = run,
                                              .flops = flops_of,
                                              .flags = CNR_KERNEL_SPREADS_NAN};
