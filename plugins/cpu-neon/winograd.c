/* conv of 3x3 windows as Winograd's F(4x4, 3x3), a quarter of the multiplications for four times
 * the weights, and F(2x2, 3x3), 4/9 of them for 16/9, on tiles that are transformed on the way in
 * and out.
 *
 *     V[36][ic][tile] = B^T x B,   M[36][oc][tile] = U[36][oc][ic] * V,   y = A^T M A     (or 16)
 *
 * A block of tiles is worked on at a time, so that what is between stays in the second-level cache
 * while U passes by. Products are summed in the order of channels, whatever the blocks and threads.
 *
 * Error: F(2x2)'s is that of a direct sum. The points of F(4x4) are 0, +-1/sqrt(2), +-sqrt(2) and
 * infinity. Of 64000 outputs from numbers within +-1 the largest error is 2.2 times the direct
 * sum's with 8 channels, 1.7 with 64, 2.0 with 512 (root mean square: 3.2, 2.0, 1.8), within what
 * kernelcheck allows a sum of that length; the usual points 0, +-1, +-2 would make it four times as
 * large again.
 *
 * Weights that are stored as halves are so before their transform, nine to a filter, so that they
 * are rounded once; a unit's are transformed for each block of tiles, some channels at a time. */
#include "blocked.h"

/* Tiles of a block: enough to justify reading the weights once for each block; V has a similar size
 * in both cases. */
static int64_t most_tiles(int64_t side) { return side == 2 ? 112 : 56; }
/* Floats of a chunk's products: a part of the L2 cache. */
#define M_LIMIT ((int64_t)256 << 10)
/* Channels whose halves are transformed at a time: more would exceed that cache, fewer would read
 * and write M more often. The extra cache line keeps components in different sets. */
#define SLAB 64
static int64_t slab_component(void) { return SLAB * neon_uk->tile_vectors * neon_uk->vl + 16; }

/* Plan of a convolution by Winograd's method. */
typedef struct wino_state {
    neon_ending end;
    neon_stored as;
    cnr_window w;             /* of 3 axes, the first of which is 1 */
    int64_t side, components; /* outputs of a tile along each axis; (side + 2)^2 */
    int64_t group, cin, cout; /* cin, cout: of a group, which is treated as an image of its own */
    int64_t in_plane, out_plane, in_block, out_block;
    int64_t lanes, groups;  /* input channels that are transformed at a time */
    int64_t vectors, units; /* of output channels; a unit has tile_vectors */
    int64_t wide, tiles, block, blocks;
    int64_t chunk, chunks; /* units of a chunk, and number of chunks */
    /* 1: there are few blocks, so all threads work on the same V, one block after the other */
    int32_t shared;
    int64_t v_component, v_floats, m_component, m_floats, m_at, wide_floats, wide_at;
    int64_t run[];
} wino_state;

/* ---- acceptance ---- */

/* 1 for windows of 3 x 3, stride 1. */
static int is_small(const cnr_window *w) {
    for (int32_t i = 0; i < w->spatial; i++)
        if (w->kernel[i] != 3 || w->stride[i] != 1 || w->dilation[i] != 1) return 0;
    return w->spatial == 2;
}

static int64_t group_of(const cnr_node *node) { return cnr_max(1, cnr_attr_int(node, "group")); }

/* Units of output channels that a tile computes together. */
static int64_t units_of(int64_t cout) {
    return cnr_div_up(cnr_div_up(cout, neon_uk->vl), neon_uk->tile_vectors);
}

static int64_t width_of(int64_t cout) { return cnr_round_up(cout, neon_uk->vl); }

static int64_t components_of(int64_t side) { return (side + 2) * (side + 2); }

/* Transforms take about 400 (or 100) operations for each channel and tile. Weights are read once
 * for each block of tiles, at 20 bytes a ns; halves are smaller but are transformed then. cin,
 * cout: of a group. */
static double flops_of(int64_t side, double tiles, int64_t cin, int64_t cout) {
    const double products =
        2.0 * (double)components_of(side) * (double)cin * (double)width_of(cout);
    return tiles * (products + (side == 2 ? 100.0 : 400.0) * (double)(cin + cout));
}

/* Returns the estimated ns of the method with tiles of `side`, from sizes alone. */
static double cost_of(neon_stored as, const cnr_window *w, int64_t side, int64_t images,
                      int64_t group, int64_t cin, int64_t cout) {
    const double tiles =
        (double)(cnr_div_up(w->out[0], side) * cnr_div_up(w->out[1], side) * images);
    const double weights = (double)components_of(side) * (double)cin * (double)width_of(cout);
    const double flops = flops_of(side, tiles, cin, cout);
    const double blocks = cnr_max(1.0, tiles / (double)most_tiles(side));
    if (as == NEON_F32)
        return (double)group * (neon_cost_ns(flops, 0.8) + 4.0 * weights * blocks / 20.0);
    const double filters = (double)cin * (double)width_of(cout) * blocks;
    return (double)group * (neon_cost_ns(flops + filters * (side == 2 ? 140.0 : 360.0), 0.8) +
                            18.0 * filters / 20.0);
}

/* Takes f32 convolutions of 3 x 3, with constant weights stored as `as`; for others out->why says
 * why. */
static cnr_status accepts(neon_stored as, const cnr_node *node, int64_t side, cnr_accept *out) {
    cnr_window w;
    const cnr_tensor *x = cnr_own_input(node, 0), *weight = cnr_own_input(node, 1);
    if (!x || !weight || !neon_all_f32(node)) return cnr_refuse(out, NEON_WANTS_F32);
    if (!cnr_is_constant(weight)) return cnr_refuse(out, "constant weights are wanted");
    if ((out->why = neon_conv_window(node, x, weight, &w))) return CNR_OK;
    if (!is_small(&w)) return cnr_refuse(out, "3x3 windows with stride and dilation 1 are wanted");
    const int64_t group = group_of(node), cin = weight->dim[1], cout = weight->dim[0] / group;
    const int64_t dim[4] = {x->dim[0], weight->dim[0], w.out[0], w.out[1]};
    const int32_t to = neon_block_of(4, dim);
    const int32_t from = out->in_block[0] > 1 ? out->in_block[0] : neon_block_of(4, x->dim);
    if (!to || from < cnr_min(8, neon_uk->vl) || cin % from || cout % to)
        return cnr_refuse(out, "no block divides the channels");
    const double cost = cost_of(as, &w, side, x->dim[0], group, cin, cout);
    const double direct = neon_cost_ns(18.0 * (double)(x->dim[0] * group * cin * cout) *
                                           (double)(w.out[0] * w.out[1]),
                                       0.75);
    neon_blocked_take(node, out, cost < direct ? 620 : 580, from, to);
    out->epilogue = neon_chain_accepts(node, x->rank, dim);
    out->prepared = 1 << 1;
    out->cost_ns = cost;
    return CNR_OK;
}

/* Returns the floating-point operations that the method needs, padding of tiles included. */
static double flops(const cnr_node *node, int64_t side) {
    cnr_window w;
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    if (neon_conv_window(node, x, weight, &w)) return 0; /* impossible: the node was accepted */
    const int64_t group = group_of(node);
    const double tiles =
        (double)(cnr_div_up(w.out[0], side) * cnr_div_up(w.out[1], side) * x->dim[0]);
    return (double)group * flops_of(side, tiles, weight->dim[1], weight->dim[0] / group);
}

/* ---- weights: [group][component][unit][ic][the unit's vectors][vl]; halves:
 * [group][unit][ic][9][the unit's vectors][vl] ---- */

/* Returns how many floats the packed weights of one group take. */
static int64_t stored_weights(neon_stored as, int64_t side, int64_t cin, int64_t cout) {
    return (as == NEON_F32 ? components_of(side) : 9) * cin * width_of(cout);
}

/* Sets out->bytes to those of the transformed weights of all groups. */
static cnr_status prepare_size(neon_stored as, const cnr_node *node, int64_t side, cnr_space *out) {
    const cnr_tensor *weight = node->inputs[1];
    const int64_t group = group_of(node);
    const int64_t each = stored_weights(as, side, weight->dim[1], weight->dim[0] / group);
    out->bytes = neon_stored_bytes(as, group * each);
    return CNR_OK;
}

/* Arguments of the tasks that transform weights. */
typedef struct wino_packing {
    neon_stored as;
    const float *weight;
    int64_t side, cin, cout;
    void *to;
} wino_packing;

/* Task i: transforms and packs one vector of output channels of a group. */
static void pack_vector(void *arg, int64_t i, int32_t thread) {
    const wino_packing *p = arg;
    const int64_t vl = neon_uk->vl, most = neon_uk->tile_vectors, vectors = cnr_div_up(p->cout, vl);
    const int64_t group = i / vectors;
    i %= vectors;
    const int64_t unit = i / most, first = i * vl, n = cnr_min(vl, p->cout - first);
    const int64_t width = cnr_min(most * vl, width_of(p->cout) - unit * most * vl);
    const int64_t component = p->cin * width_of(p->cout);
    const float *from = p->weight + (group * p->cout + first) * p->cin * 9;
    const int64_t at = group * stored_weights(p->as, p->side, p->cin, p->cout);
    (void)thread;
    if (p->as == NEON_F32) {
        float *to = (float *)p->to + at + unit * most * vl * p->cin + i % most * vl;
        for (int64_t c = 0; c < p->cin; c++, to += width)
            neon_uk->wino_weights(p->side, from + c * 9, p->cin * 9, n, to, component);
        return;
    }
    uint16_t *to = (uint16_t *)p->to + at + unit * most * vl * p->cin * 9 + i % most * vl;
    for (int64_t c = 0; c < p->cin * 9; c++, to += width) {
        float row[16] = {0};
        for (int64_t o = 0; o < n; o++) row[o] = from[o * p->cin * 9 + c];
        neon_uk->narrow[p->as](row, to, vl);
    }
}

/* Transforms the weights on all threads. */
static cnr_status prepare(neon_stored as, const cnr_device *device, const cnr_node *node,
                          int64_t side, void *blob) {
    const cnr_tensor *weight = node->inputs[1];
    const int64_t group = group_of(node);
    wino_packing p = {as, neon_floats(weight), side, weight->dim[1], weight->dim[0] / group, blob};
    neon_parallel(device, group * cnr_div_up(p.cout, neon_uk->vl), pack_vector, &p);
    return CNR_OK;
}

/* ---- plan ---- */

/* Chooses blocks of tiles that give threads equal work; if there are too few, each is shared. */
static void plan_blocks(wino_state *s, int64_t images, int32_t threads) {
    const int64_t most =
        cnr_max(1, most_tiles(s->side) / neon_uk->tile_columns) * neon_uk->tile_columns;
    s->blocks = cnr_max(1, cnr_div_up(s->tiles, most));
    s->shared = threads > 1 && s->blocks * images < 2 * threads;
    if (!s->shared && images == 1) s->blocks = cnr_round_up(s->blocks, threads);
    s->block = cnr_max(1, cnr_div_up(s->tiles, s->blocks));
    s->blocks = cnr_max(1, cnr_div_up(s->tiles, s->block));
    const int64_t unit = s->components * s->block * neon_uk->tile_vectors * neon_uk->vl;
    s->chunk = cnr_max(1, cnr_min(s->units, M_LIMIT / unit));
    s->chunks = cnr_div_up(s->units, s->chunk);
    if (s->shared) s->chunks = cnr_min(s->units, cnr_round_up(s->chunks, threads));
    s->chunk = cnr_div_up(s->units, s->chunks);
    s->chunks = cnr_div_up(s->units, s->chunk);
}

/* Finds tiles, blocks and workspace in *state; fails with CNR_E_MEMORY or CNR_E_SHAPE. */
static cnr_status plan(neon_stored as, const cnr_device *device, const cnr_node *node, int64_t side,
                       cnr_space *workspace, void **state, cnr_error *err) {
    cnr_window w;
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const char *why = neon_conv_window(node, x, weight, &w);
    if (why) return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    const int64_t lanes = cnr_min(neon_uk->vl, x->block), groups = weight->dim[1] / lanes;
    wino_state *s = cnr_state(neon_host, node, sizeof *s + (size_t)groups * sizeof s->run[0], err);
    if (!s) return CNR_E_MEMORY;
    neon_ending_plan(node, &s->end);
    s->as = as;
    s->w = shape_window_three(&w);
    s->side = side;
    s->components = components_of(side);
    s->group = group_of(node);
    s->cin = weight->dim[1];
    s->cout = weight->dim[0] / s->group;
    s->in_plane = s->w.in[1] * s->w.in[2];
    s->out_plane = s->w.out[1] * s->w.out[2];
    s->in_block = x->block;
    s->out_block = node->outputs[0]->block;
    s->lanes = lanes;
    s->groups = groups;
    s->vectors = cnr_div_up(s->cout, neon_uk->vl);
    s->units = units_of(s->cout);
    s->wide = cnr_div_up(s->w.out[2], side);
    s->tiles = s->wide * cnr_div_up(s->w.out[1], side);
    plan_blocks(s, x->dim[0] * s->group, device->concurrency);
    /* an extra cache line, so that components are in different sets of the cache */
    s->v_component = s->cin * s->block + 16;
    s->m_component = s->chunk * neon_uk->tile_vectors * neon_uk->vl * s->block + 16;
    s->v_floats = cnr_round_up(s->components * s->v_component, 16);
    s->m_floats = cnr_round_up(s->components * s->m_component, 16);
    for (int64_t g = 0; g < groups; g++) s->run[g] = g * s->block * lanes;
    int64_t floats = 0;
    neon_reserve(&floats, s->v_floats * (s->shared ? s->blocks : device->concurrency));
    s->m_at = neon_reserve(&floats, s->m_floats * device->concurrency);
    s->wide_floats = as == NEON_F32 ? 0 : s->components * slab_component();
    s->wide_at = neon_reserve(&floats, s->wide_floats * device->concurrency);
    workspace->bytes = (uint64_t)floats * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* ---- run ---- */

/* Arguments of the tasks of a run. */
typedef struct wino_job {
    const wino_state *s;
    const cnr_run *run;
    const float *x, *bias, *operand;
    const void *u;
    float *y, *room;
    int64_t image; /* image of the shared V; here as elsewhere, a group of an image */
} wino_job;

/* Tiles in a block; the last one may have fewer. */
static int64_t tiles_of(const wino_state *s, int64_t block) {
    return cnr_min(s->block, s->tiles - block * s->block);
}

/* Transforms the input tiles of a block for one group of channels. */
static void transform_in(const wino_job *job, int64_t image, int64_t block, int64_t group,
                         float *v) {
    const wino_state *s = job->s;
    const int64_t c = group * s->lanes, b = s->in_block;
    const neon_wino_input in = {
        .x = job->x + (image * s->cin + c / b * b) * s->in_plane + c % b,
        .out_side = s->side,
        .lanes = s->lanes,
        .step = b,
        .in = {s->w.in[1], s->w.in[2]},
        .pad = {s->w.pad_begin[1], s->w.pad_begin[2]},
        .tiles_wide = s->wide,
        .first = block * s->block,
        .n = tiles_of(s, block),
        .v = v + s->run[group],
        .v_component = s->v_component,
    };
    neon_uk->wino_input(&in);
}

/* Returns how many tiles are computed at a time: as many as registers hold, in equal steps. */
static int64_t tile_step(int64_t tiles) {
    return cnr_div_up(tiles, cnr_max(1, cnr_div_up(tiles, neon_uk->tile_columns)));
}

/* Multiplies a component of a unit by `groups` groups of channels from `first` on; adds to M. */
static void multiply_unit(const wino_state *s, int64_t tiles, int64_t vectors, int64_t first,
                          int64_t groups, const float *weight, const float *v, float *m) {
    static const float zeros[64];
    const int64_t step = tile_step(tiles);
    for (int64_t t = 0; t < tiles; t += step) {
        const neon_conv_tile tile = {
            .n = cnr_min(step, tiles - t),
            .tiles = 1,
            .vectors = vectors,
            .x = v + t * s->lanes,
            .x_column = s->lanes,
            .run = s->run + first,
            .runs = groups,
            .count = s->lanes,
            .weight = weight,
            .bias = zeros,
            .more = first > 0,
            .y = m, /* only for offsets */
        };
        neon_uk->conv_sum(&tile, m + t * vectors * neon_uk->vl);
    }
}

/* For a unit stored as halves: transforms some channels' weights at a time and multiplies them. */
static void multiply_halves(const wino_state *s, int64_t tiles, int64_t vectors,
                            const uint16_t *weight, const float *v, float *m, float *wide) {
    const int64_t component = slab_component(), width = vectors * neon_uk->vl;
    for (int64_t c = 0; c < s->cin; c += SLAB) {
        const int64_t n = cnr_min(SLAB, s->cin - c);
        neon_uk->wino_halves(s->side, s->as, weight + c * 9 * width, n, vectors, wide, component);
        for (int64_t k = 0; k < s->components; k++)
            multiply_unit(s, tiles, vectors, c / s->lanes, n / s->lanes, wide + k * component,
                          v + k * s->v_component, m + k * s->m_component);
    }
}

/* All products of a chunk's units: m[component][unit][step of tiles][vector][tile][vl]. */
static void multiply(const wino_job *job, int64_t image, int64_t block, int64_t chunk,
                     const float *v, float *m, int32_t thread) {
    const wino_state *s = job->s;
    const int64_t vl = neon_uk->vl, most = neon_uk->tile_vectors, tiles = tiles_of(s, block);
    const int64_t u0 = chunk * s->chunk, u1 = cnr_min(s->units, u0 + s->chunk);
    const void *weight =
        neon_stored_at(s->as, job->u,
                       image % s->group * stored_weights(s->as, s->side, s->cin, s->cout));
    for (int64_t u = u0; u < u1 && s->as != NEON_F32; u++)
        multiply_halves(s, tiles, cnr_min(most, s->vectors - u * most),
                        (const uint16_t *)weight + u * most * vl * s->cin * 9, v,
                        m + (u - u0) * most * vl * s->block,
                        job->room + s->wide_at + thread * s->wide_floats);
    for (int64_t k = 0; k < s->components && s->as == NEON_F32; k++)
        for (int64_t u = u0; u < u1; u++)
            multiply_unit(s, tiles, cnr_min(most, s->vectors - u * most), 0, s->groups,
                          (const float *)weight + (k * s->vectors + u * most) * vl * s->cin,
                          v + k * s->v_component,
                          m + k * s->m_component + (u - u0) * most * vl * s->block);
}

/* Applies the remaining links to the rows of tiles of one channel block. */
static void end_tiles(const wino_job *job, int64_t first, int64_t n, int64_t at) {
    const wino_state *s = job->s;
    const int64_t b = s->out_block;
    for (int64_t t = first; t < first + n; t++) {
        const int64_t y = t / s->wide * s->side, x = t % s->wide * s->side;
        const int64_t columns = cnr_min(s->side, s->w.out[2] - x);
        for (int64_t i = y; i < cnr_min(s->w.out[1], y + s->side); i++) {
            const int64_t from = at + (i * s->w.out[2] + x) * b;
            neon_chain_run(&s->end.rest, job->run->node, job->y + from, from, columns * b);
        }
    }
}

/* Transforms channels [c, c + lanes) of n tiles. */
static void transform_out(const wino_job *job, int64_t image, int64_t c, int64_t lanes,
                          int64_t first, int64_t n, const float *m) {
    static const float zeros[64];
    const wino_state *s = job->s;
    const int64_t b = s->out_block;
    const int64_t at = (image * s->cout + c / b * b) * s->out_plane + c % b;
    const neon_wino_output out = {
        .m = m,
        .m_component = s->m_component,
        .bias = job->bias ? job->bias + image % s->group * s->cout + c : zeros,
        .operand = job->operand ? job->operand + at : NULL,
        .out_side = s->side,
        .lanes = lanes,
        .step = b,
        .out = {s->w.out[1], s->w.out[2]},
        .tiles_wide = s->wide,
        .first = first,
        .n = n,
        .y = job->y + at,
        .bound = s->end.bound,
    };
    neon_uk->wino_output(&out);
    if (s->end.rest.first < s->end.rest.n && (c + lanes) % b == 0)
        end_tiles(job, first, n, at - c % b);
}

/* Transforms the products of a block back and writes them. */
static void finish(const wino_job *job, int64_t image, int64_t block, int64_t chunk,
                   const float *m) {
    const wino_state *s = job->s;
    const int64_t vl = neon_uk->vl, most = neon_uk->tile_vectors, tiles = tiles_of(s, block);
    const int64_t u0 = chunk * s->chunk, u1 = cnr_min(s->units, u0 + s->chunk);
    const int64_t step = tile_step(tiles), lanes = cnr_min(vl, s->out_block);
    for (int64_t u = u0; u < u1; u++) {
        const int64_t vectors = cnr_min(most, s->vectors - u * most);
        for (int64_t t = 0; t < tiles; t += step) {
            const int64_t n = cnr_min(step, tiles - t);
            const float *from = m + (u - u0) * most * vl * s->block + t * vectors * vl;
            for (int64_t i = 0; i < vectors * vl; i += lanes) {
                const int64_t c = u * most * vl + i;
                if (c < s->cout)
                    transform_out(job, image, c, lanes, block * s->block + t, n,
                                  from + i / vl * n * vl + i % vl);
            }
        }
    }
}

/* Task i: computes a whole block of tiles of an image; nothing once the run is cancelled. */
static void whole_block(void *arg, int64_t i, int32_t thread) {
    const wino_job *job = arg;
    const wino_state *s = job->s;
    const int64_t image = i / s->blocks, block = i % s->blocks;
    float *v = job->room + thread * s->v_floats, *m = job->room + s->m_at + thread * s->m_floats;
    if (cnr_cancelled(job->run->stream)) return;
    for (int64_t g = 0; g < s->groups; g++) transform_in(job, image, block, g, v);
    for (int64_t c = 0; c < s->chunks; c++) {
        multiply(job, image, block, c, v, m, thread);
        finish(job, image, block, c, m);
    }
}

/* Task i of the wino_job `arg`: transforms the input of a block that several tasks share. */
static void shared_in(void *arg, int64_t i, int32_t thread) {
    const wino_job *job = arg;
    const wino_state *s = job->s;
    const int64_t block = i / s->groups;
    (void)thread;
    transform_in(job, job->image, block, i % s->groups, job->room + block * s->v_floats);
}

/* Task i of the wino_job `arg`: computes a chunk of output channels of a block. */
static void shared_chunk(void *arg, int64_t i, int32_t thread) {
    const wino_job *job = arg;
    const wino_state *s = job->s;
    const int64_t block = i / s->chunks, chunk = i % s->chunks;
    float *m = job->room + s->m_at + thread * s->m_floats;
    if (cnr_cancelled(job->run->stream)) return;
    multiply(job, job->image, block, chunk, job->room + block * s->v_floats, m, thread);
    finish(job, job->image, block, chunk, m);
}

/* Computes the convolution, by blocks or by chunks on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const wino_state *s = run->state;
    const int64_t images = run->node->inputs[0]->dim[0] * s->group;
    (void)err;
    wino_job job = {
        .s = s,
        .run = run,
        .x = neon_floats(run->node->inputs[0]),
        .u = run->blob_data,
        .bias = neon_floats(cnr_own_input(run->node, 2)),
        .operand = s->end.operand < 0 ? NULL : neon_floats(run->node->inputs[s->end.operand]),
        .y = run->outputs[0]->data,
        .room = run->workspace_data,
    };
    if (s->tiles < 1) return CNR_OK;
    if (!s->shared) {
        cnr_parallel(run->stream, images * s->blocks, whole_block, &job);
        return CNR_OK;
    }
    for (; job.image < images; job.image++) {
        cnr_parallel(run->stream, s->blocks * s->groups, shared_in, &job);
        cnr_parallel(run->stream, s->blocks * s->chunks, shared_chunk, &job);
    }
    return CNR_OK;
}

/* Defines a kernel for tiles of a side, with weights stored as `as`. */
#define WINOGRAD(symbol, kernel_name, side, as, as_flags) \
    static cnr_status symbol##_accepts(const cnr_device *device, const cnr_node *node, \
                                       cnr_accept *out) { \
        (void)device; \
        return accepts(as, node, side, out); \
    } \
    static cnr_status symbol##_prepare_size(const cnr_device *device, const cnr_node *node, \
                                            cnr_space *out, cnr_error *err) { \
        (void)device, (void)err; \
        return prepare_size(as, node, side, out); \
    } \
    static cnr_status symbol##_prepare(const cnr_device *device, const cnr_node *node, void *blob, \
                                       cnr_error *err) { \
        CNR_TRY(prepare(as, device, node, side, blob)); \
        return as == NEON_F16 ? neon_f16_holds(node, err) : CNR_OK; \
    } \
    static cnr_status symbol##_plan(const cnr_device *device, const cnr_node *node, \
                                    cnr_space *workspace, void **state, cnr_error *err) { \
        return plan(as, device, node, side, workspace, state, err); \
    } \
    static double symbol##_flops(const cnr_device *device, const cnr_node *node) { \
        (void)device; \
        return flops(node, side); \
    } \
    const cnr_kernel symbol = { \
        .size = sizeof(cnr_kernel), \
        .version = 1, \
        .name = kernel_name, \
        .op = "conv", \
        .device = "cpu-neon", \
        .accepts = symbol##_accepts, \
        .prepare_size = symbol##_prepare_size, \
        .prepare = symbol##_prepare, \
        .plan = symbol##_plan, \
        .plan_free = neon_free_state, \
        .run = run, \
        .flops = symbol##_flops, \
        .flags = CNR_KERNEL_SPREADS_NAN | (as_flags), \
    }
WINOGRAD(neon_conv_winograd, "conv_f32_winograd", 4, NEON_F32, 0);
WINOGRAD(neon_conv_winograd_2, "conv_f32_winograd_2x2", 2, NEON_F32, 0);
WINOGRAD(neon_conv_winograd_f16, "conv_f16_winograd", 4, NEON_F16, CNR_KERNEL_F16);
WINOGRAD(neon_conv_winograd_2_f16, "conv_f16_winograd_2x2", 2, NEON_F16, CNR_KERNEL_F16);
WINOGRAD(neon_conv_winograd_bf16, "conv_bf16_winograd", 4, NEON_BF16, CNR_KERNEL_BF16);
WINOGRAD(neon_conv_winograd_2_bf16, "conv_bf16_winograd_2x2", 2, NEON_BF16, CNR_KERNEL_BF16);
