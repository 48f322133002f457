/* conv and the gradient of its input by Winograd's method (winograd.c says which), for weights that
 * change in each run: they are transformed at its start. Tensors are plain; a task turns the planes
 * of some tiles to blocks of channels, and its results back, in the cache.
 *
 * Sums are in the order of channels, whatever the blocks and threads. Windows of 5 x 5 use the
 * points of F(4x4, 3x3) for F(2x2, 5x5), 36 products for 100. */
#include "winograd_planes.h"

const char *neon_wino_window(const cnr_window *w) {
    if (w->spatial != 2 || w->kernel[0] != w->kernel[1] || (w->kernel[0] != 3 && w->kernel[0] != 5))
        return "windows of 3 x 3 or 5 x 5 are wanted";
    for (int32_t i = 0; i < 2; i++)
        if (w->stride[i] != 1 || w->dilation[i] != 1) return "stride and dilation 1 are wanted";
    return w->out[0] < 1 || w->out[1] < 1 ? "the output is empty" : NULL;
}

neon_wino_blocks neon_wino_blocks_of(int64_t kernel, const int64_t *out, int64_t images,
                                     int64_t tiles) {
    neon_wino_blocks b = {.side = kernel == 3 ? 4 : 2, .reach = kernel - 1, .images = images};
    b.high = cnr_div_up(out[0], b.side);
    b.wide = cnr_div_up(out[1], b.side);
    b.bands = cnr_div_up(b.high, cnr_min(b.high, cnr_max(1, tiles / b.wide)));
    b.rows = cnr_div_up(b.high, b.bands);
    b.bands = cnr_div_up(b.high, b.rows);
    b.together = b.bands > 1 ? 1 : cnr_min(images, cnr_max(1, tiles / (b.high * b.wide)));
    b.n = b.bands > 1 ? images * b.bands : cnr_div_up(images, b.together);
    b.tiles = b.rows * b.wide * b.together;
    return b;
}

int64_t neon_wino_bands(const neon_wino_blocks *b, int64_t i) {
    return b->bands > 1 ? 1 : cnr_min(b->together, b->images - i * b->together);
}

neon_wino_band neon_wino_band_of(const neon_wino_blocks *b, int64_t i, int64_t k) {
    if (b->bands == 1)
        return (neon_wino_band){i * b->together + k, 0, b->rows, k * b->rows * b->wide};
    const int64_t row = i % b->bands * b->rows;
    return (neon_wino_band){i / b->bands, row, cnr_min(b->rows, b->high - row), 0};
}

double neon_wino_transform_cycles(int64_t side) { return 250.0 + 10.0 * (double)(side * side); }

void neon_wino_fill(const neon_wino_planes *p, int64_t high, int64_t wide, float *room) {
    const int64_t vl = neon_uk->vl, from = cnr_max(0, p->left), before = cnr_max(0, -p->left);
    const int64_t n = cnr_min(wide - before, p->size[1] - from);
    for (int64_t i = 0; i < high; i++, room += wide * vl) {
        const int64_t y = p->top + i, behind = before + n;
        if (y < 0 || y >= p->size[0] || n <= 0) {
            memset(room, 0, (size_t)(wide * vl) * sizeof *room);
            continue;
        }
        if (p->channels < vl) memset(room, 0, (size_t)(wide * vl) * sizeof *room);
        memset(room, 0, (size_t)(before * vl) * sizeof *room);
        memset(room + behind * vl, 0, (size_t)((wide - behind) * vl) * sizeof *room);
        neon_uk->turn(p->x + y * p->size[1] + from, p->plane, room + before * vl, vl, p->channels,
                      n);
    }
}

/* ---- acceptance ---- */

/* Channels of a group, in and out; of the gradient, those of the output come in. */
static void channels_of(const cnr_node *node, int64_t *group, int64_t *cin, int64_t *cout) {
    const cnr_tensor *weight = node->inputs[1];
    *group = cnr_max(1, cnr_attr_int(node, "group"));
    const int64_t first = weight->dim[0] / *group;
    *cin = neon_is_gradient(node) ? first : weight->dim[1];
    *cout = neon_is_gradient(node) ? weight->dim[1] : first;
}

/* Cycles of a tile, with operands in vectors: by this method, and directly. */
static double tile_cycles(int64_t side, int64_t cin, int64_t cout) {
    const double in = (double)cnr_div_up(cin, neon_uk->vl);
    const double out = (double)cnr_div_up(cout, neon_uk->vl);
    return WINO_COMPONENTS * in * neon_uk->vl * out / 0.8 +
           (in + out) * neon_wino_transform_cycles(side);
}
static double direct_cycles(int64_t side, int64_t cin, int64_t cout) {
    const int64_t outputs = side * side, taps = side == 4 ? 9 : 25;
    return (double)(outputs * taps * cin * cout) / (0.7 * neon_uk->vl);
}

/* Takes f32 convolutions, or their input's gradients, where the method pays. */
static cnr_status accepts(const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    int64_t group, cin, cout;
    const cnr_tensor *x = cnr_own_input(node, 0), *weight = cnr_own_input(node, 1);
    if ((out->why = neon_turned_window(node, &w)) || (out->why = neon_wino_window(&w)))
        return CNR_OK;
    const int constant = cnr_is_constant(weight), gradient = neon_is_gradient(node);
    if (constant && !gradient) return cnr_refuse(out, "weights that change are wanted");
    channels_of(node, &group, &cin, &cout);
    const int64_t side = w.kernel[0] == 3 ? 4 : 2;
    const int pays = !constant && tile_cycles(side, cin, cout) <= direct_cycles(side, cin, cout);
    if (x->dim[0] < 1 || (!pays && !gradient))
        return cnr_refuse(out, "too few channels: the direct sum is faster");
    const int64_t dim[4] = {x->dim[0], group * cout, w.out[0], w.out[1]};
    cnr_take(node, out, pays ? 520 : NEON_LAST); /* a gradient states no cost: the score decides */
    out->epilogue = gradient ? 0 : neon_chain_accepts(node, x->rank, dim);
    const neon_wino_blocks b = neon_wino_blocks_of(w.kernel[0], w.out, x->dim[0], 1);
    const double tiles = (double)(b.high * b.wide * x->dim[0] * group);
    if (!gradient) /* as neon_conv_cost's unit, two vectors a cycle */
        out->cost_ns = neon_cost_ns(2.0 * tiles * neon_uk->vl * tile_cycles(side, cin, cout), 1.0);
    return CNR_OK;
}

/* Floating-point operations that the method needs. */
static double flops_of(const cnr_device *device, const cnr_node *node) {
    cnr_window w;
    int64_t group, cin, cout;
    (void)device;
    if (neon_turned_window(node, &w)) return 0; /* impossible: the node was accepted */
    channels_of(node, &group, &cin, &cout);
    const int64_t images = node->inputs[0]->dim[0];
    const neon_wino_blocks b = neon_wino_blocks_of(w.kernel[0], w.out, images, 1);
    const double tiles = (double)(b.high * b.wide * images * group);
    return tiles * (2.0 * WINO_COMPONENTS * (double)(cin * cout) + 400.0 * (double)(cin + cout));
}

/* ---- plan ---- */

/* Plan of a convolution on planes. */
typedef struct planes_state {
    neon_chain chain;
    neon_wino_blocks b;
    int64_t group, cin, cout, in[2], out[2], pad[2];
    int64_t lanes, vectors, units; /* blocks of input channels; vectors of output channels */
    int64_t u_component, v_component, m_component;
    int64_t u_floats, v_floats, room_floats; /* of a group; of a thread; of a thread */
    int64_t u_at, v_at, m_at, room_at, m_floats;
    int64_t run[];
} planes_state;

/* Tiles of a block: the components of its channels, and a unit's sums, stay in the L2 cache. */
static int64_t block_tiles(const planes_state *s, int64_t images, int64_t threads) {
    const int64_t vl = neon_uk->vl, side = s->b.side;
    const int64_t all =
        cnr_div_up(s->out[0], side) * cnr_div_up(s->out[1], side) * images * s->group;
    const int64_t width = (s->lanes + neon_uk->tile_vectors) * vl;
    const int64_t most = cnr_max(neon_uk->tile_columns, 4200 / width);
    return cnr_max(1, cnr_min(most, all / (2 * threads)));
}

/* Sizes and places in the workspace. */
static int64_t reserve(planes_state *s, int64_t threads) {
    const int64_t vl = neon_uk->vl, most = neon_uk->tile_vectors;
    int64_t floats = 0;
    /* an extra cache line keeps components in different sets of the cache */
    s->u_component = s->lanes * vl * s->vectors * vl + 16;
    s->v_component = s->lanes * s->b.tiles * vl + 16;
    s->m_component = most * s->b.tiles * vl + 16;
    s->u_floats = cnr_round_up(WINO_COMPONENTS * s->u_component, 16);
    s->v_floats = cnr_round_up(WINO_COMPONENTS * s->v_component, 16);
    s->m_floats = cnr_round_up(WINO_COMPONENTS * s->m_component, 16);
    s->room_floats =
        neon_wino_high(&s->b, s->b.rows, s->b.reach) * neon_wino_wide(&s->b, s->b.reach) * vl;
    s->u_at = neon_reserve(&floats, s->u_floats * s->group);
    s->v_at = neon_reserve(&floats, s->v_floats * threads);
    s->m_at = neon_reserve(&floats, s->m_floats * threads);
    s->room_at = neon_reserve(&floats, s->room_floats * threads);
    return floats;
}

static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    cnr_window w;
    int64_t group, cin, cout;
    const char *why = neon_turned_window(node, &w);
    if (why) return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    channels_of(node, &group, &cin, &cout);
    const int64_t lanes = cnr_div_up(cin, neon_uk->vl), images = node->inputs[0]->dim[0];
    planes_state *s = cnr_state(neon_host, node, sizeof *s + (size_t)lanes * sizeof *s->run, err);
    if (!s) return CNR_E_MEMORY;
    neon_chain_plan(node, &s->chain);
    s->group = group;
    s->cin = cin;
    s->cout = cout;
    s->lanes = lanes;
    s->vectors = cnr_div_up(cout, neon_uk->vl);
    s->units = cnr_div_up(s->vectors, neon_uk->tile_vectors);
    for (int32_t i = 0; i < 2; i++) {
        s->in[i] = w.in[i];
        s->out[i] = w.out[i];
        s->pad[i] = w.pad_begin[i];
    }
    s->b.side = w.kernel[0] == 3 ? 4 : 2;
    s->b = neon_wino_blocks_of(w.kernel[0], s->out, images,
                               block_tiles(s, images, device->concurrency));
    for (int64_t i = 0; i < lanes; i++) s->run[i] = i * s->b.tiles * neon_uk->vl;
    workspace->bytes = (uint64_t)reserve(s, device->concurrency) * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* ---- run ---- */

/* Arguments of the tasks of a run. */
typedef struct planes_job {
    const planes_state *s;
    const cnr_run *run;
    const float *x, *weight, *bias;
    float *y, *scratch;
    int turned;
} planes_job;

/* Task: transforms the weights of a vector of output channels. */
static void pack_vector(void *arg, int64_t i, int32_t thread) {
    const planes_job *job = arg;
    const planes_state *s = job->s;
    const int64_t vl = neon_uk->vl, most = neon_uk->tile_vectors, taps = s->b.side == 4 ? 9 : 25;
    const int64_t g = i / s->vectors, v = i % s->vectors, unit = v / most;
    const int64_t width = cnr_min(most, s->vectors - unit * most) * vl;
    const int64_t n = cnr_min(vl, s->cout - v * vl);
    float *to =
        job->scratch + s->u_at + g * s->u_floats + unit * most * vl * s->lanes * vl + v % most * vl;
    (void)thread;
    for (int64_t c = 0; c < s->lanes * vl; c++, to += width) {
        const int64_t from =
            job->turned ? (g * s->cin + c) * s->cout + v * vl : (g * s->cout + v * vl) * s->cin + c;
        if (c < s->cin)
            neon_uk->wino_filter(s->b.side, job->weight + from * taps,
                                 job->turned ? taps : s->cin * taps, n, job->turned, to,
                                 s->u_component);
        else
            for (int64_t k = 0; k < WINO_COMPONENTS; k++)
                memset(to + k * s->u_component, 0, (size_t)vl * sizeof *to);
    }
}

/* Transforms the input of a block of tiles of group g into v: [component][vector of vl channels]
 * [tile][vl]; `room` holds the padded pixels of one vector of a band meanwhile. */
static void transform_in(const planes_job *job, int64_t g, int64_t block, float *v, float *room) {
    const planes_state *s = job->s;
    const int64_t vl = neon_uk->vl, plane = s->in[0] * s->in[1];
    const int64_t wide = neon_wino_wide(&s->b, s->b.reach);
    for (int64_t k = 0; k < neon_wino_bands(&s->b, block); k++) {
        const neon_wino_band band = neon_wino_band_of(&s->b, block, k);
        for (int64_t c = 0; c < s->lanes; c++) {
            const neon_wino_planes planes = {
                .x = job->x + ((band.image * s->group + g) * s->cin + c * vl) * plane,
                .plane = plane,
                .size = {s->in[0], s->in[1]},
                .channels = cnr_min(vl, s->cin - c * vl),
                .top = band.row * s->b.side - s->pad[0],
                .left = -s->pad[1],
            };
            const neon_wino_grid grid = {.side = s->b.side,
                                         .n = band.rows * s->b.wide,
                                         .wide = s->b.wide,
                                         .x = room,
                                         .row = wide * vl,
                                         .v = v + s->run[c] + band.at * vl,
                                         .component = s->v_component,
                                         .pitch = vl};
            neon_wino_fill(&planes, neon_wino_high(&s->b, band.rows, s->b.reach), wide, room);
            neon_uk->wino_take(&grid);
        }
    }
}

/* Tiles at a time: as many as registers hold, in equal steps. */
static int64_t tile_step(int64_t tiles) {
    return cnr_div_up(tiles, cnr_div_up(tiles, neon_uk->tile_columns));
}

/* All products of a unit: m[component][step of tiles][vector][tile][vl]. */
static void multiply(const planes_state *s, const float *u, int64_t vectors, int64_t tiles,
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
                                         .runs = s->lanes,
                                         .count = vl,
                                         .weight = u + k * s->u_component,
                                         .bias = zeros,
                                         .y = m}; /* only for offsets */
            neon_uk->conv_sum(&tile, m + k * s->m_component + t * vectors * vl);
        }
}

/* Writes the channels of a vector of a band to their planes, and applies what follows. */
static void unload(const planes_job *job, const neon_wino_band *band, int64_t channel, int64_t n,
                   const float *room) {
    const planes_state *s = job->s;
    const int64_t vl = neon_uk->vl, plane = s->out[0] * s->out[1], wide = neon_wino_wide(&s->b, 0);
    const int64_t y0 = band->row * s->b.side;
    const int64_t rows = cnr_min(s->out[0] - y0, band->rows * s->b.side);
    const int64_t first = (band->image * s->group * s->cout + channel) * plane + y0 * s->out[1];
    if (wide == s->out[1]) neon_uk->turn(room, vl, job->y + first, plane, rows * wide, n);
    for (int64_t i = 0; i < rows && wide > s->out[1]; i++)
        neon_uk->turn(room + i * wide * vl, vl, job->y + first + i * s->out[1], plane, s->out[1],
                      n);
    for (int64_t c = 0; c < n; c++)
        neon_chain_run(&s->chain, job->run->node, job->y + first + c * plane, first + c * plane,
                       rows * s->out[1]);
}

/* Transforms the sums of one vector of output channels back, from the unit's vector v on. */
static void transform_out(const planes_job *job, int64_t block, int64_t tiles, int64_t channel,
                          int64_t n, int64_t vectors, const float *m, int64_t v, float *room) {
    const planes_state *s = job->s;
    const int64_t vl = neon_uk->vl, step = tile_step(tiles);
    float bias[64] = {0};
    if (job->bias) memcpy(bias, job->bias + channel, (size_t)n * sizeof *bias);
    for (int64_t k = 0; k < neon_wino_bands(&s->b, block); k++) {
        const neon_wino_band band = neon_wino_band_of(&s->b, block, k);
        const int64_t end = band.at + band.rows * s->b.wide;
        for (int64_t t = band.at, next; t < end; t = next) {
            const int64_t start = t / step * step, columns = cnr_min(step, tiles - start);
            next = cnr_min(end, start + columns);
            const neon_wino_grid grid = {.side = s->b.side,
                                         .first = t - band.at,
                                         .n = next - t,
                                         .wide = s->b.wide,
                                         .x = room,
                                         .row = neon_wino_wide(&s->b, 0) * vl,
                                         .v = (float *)m +
                                              (start * vectors + v * columns + t - start) * vl,
                                         .component = s->m_component,
                                         .pitch = vl,
                                         .bias = bias};
            neon_uk->wino_give(&grid);
        }
        unload(job, &band, channel, n, room);
    }
}

/* Task: computes a block of tiles of a group. */
static void one_block(void *arg, int64_t i, int32_t thread) {
    const planes_job *job = arg;
    const planes_state *s = job->s;
    const int64_t vl = neon_uk->vl, most = neon_uk->tile_vectors;
    const int64_t g = i % s->group, block = i / s->group;
    const neon_wino_band last = neon_wino_band_of(&s->b, block, neon_wino_bands(&s->b, block) - 1);
    const int64_t tiles = last.at + last.rows * s->b.wide;
    float *v = job->scratch + s->v_at + thread * s->v_floats;
    float *m = job->scratch + s->m_at + thread * s->m_floats;
    float *room = job->scratch + s->room_at + thread * s->room_floats;
    if (cnr_cancelled(job->run->stream)) return;
    transform_in(job, g, block, v, room);
    for (int64_t unit = 0; unit < s->units; unit++) {
        const int64_t vectors = cnr_min(most, s->vectors - unit * most);
        multiply(s, job->scratch + s->u_at + g * s->u_floats + unit * most * vl * s->lanes * vl,
                 vectors, tiles, v, m);
        for (int64_t k = 0; k < vectors; k++) {
            const int64_t c = (unit * most + k) * vl;
            transform_out(job, block, tiles, g * s->cout + c, cnr_min(vl, s->cout - c), vectors, m,
                          k, room);
        }
    }
}

/* Computes the convolution. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const planes_state *s = run->state;
    planes_job job = {
        .s = s,
        .run = run,
        .x = neon_floats(run->node->inputs[0]),
        .weight = neon_floats(run->node->inputs[1]),
        .bias = neon_is_gradient(run->node) ? NULL : neon_floats(cnr_own_input(run->node, 2)),
        .y = run->outputs[0]->data,
        .scratch = run->workspace_data,
        .turned = neon_is_gradient(run->node),
    };
    (void)err;
    cnr_parallel(run->stream, s->group * s->vectors, pack_vector, &job);
    cnr_parallel(run->stream, s->b.n * s->group, one_block, &job);
    return CNR_OK;
}

/* Takes convolutions. */
static cnr_status accept_conv(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    return accepts(node, out);
}

/* Defines a kernel of an operator. */
#define WINOGRAD_PLANES(symbol, kernel_name, op_name) \
    const cnr_kernel symbol = {.size = sizeof(cnr_kernel), \
                               .version = 1, \
                               .name = kernel_name, \
                               .op = op_name, \
                               .device = "cpu-neon", \
                               .accepts = accept_conv, \
                               .plan = plan, \
                               .plan_free = neon_free_state, \
                               .run = run, \
                               .flops = flops_of, \
                               .flags = CNR_KERNEL_SPREADS_NAN}
WINOGRAD_PLANES(neon_conv_winograd_planes, "conv_f32_winograd_planes", "conv");
WINOGRAD_PLANES(neon_conv_grad_input_winograd, "conv_grad_input_f32_winograd", "conv_grad_input");
