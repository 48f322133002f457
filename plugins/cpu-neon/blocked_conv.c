/* conv on channel blocks, vectorised along the output channels. Reads the input directly, or strips
 * of it copied with padding. Any input layout, plain too. */
#include "blocked.h"

/* Weights: [group][unit][k][vector][vl]. A unit is tile_vectors vectors of output channels, the
 * last one fewer. k: [input channels by WEIGHT_RUN][tap][channel of the run], in any input
 * layout. */
#define WEIGHT_RUN 8
/* Bound on k: weights of a unit that stay in the L1 cache. */
#define MOST_K (neon_uk->vl == 4 ? 512 : 256)
#define MOST_AHEAD 8 /* cache lines prefetched for each run; more would be evicted early */
/* Floats of weights that the L2 cache holds beside a strip; floats of a strip then, and if the
 * weights do not stay in the cache and so should be read rarely. */
#define WEIGHTS_LIMIT ((int64_t)192 << 10)
#define STRIP_LIMIT ((int64_t)96 << 10)
#define STRIP_MOST ((int64_t)384 << 10)
/* Below this share of a window's taps within the input, each tap is multiplied alone, where it
 * lies within; with fewer input channels the sums are stored too often. */
#define TAPS_SHARE 0.75
#define TAPS_LEAST 64
/* Less work than this does not justify a task. */
#define TASK_FLOPS 1e6

/* Plan of a convolution on blocked channels. */
typedef struct blocked_conv {
    neon_ending end;
    neon_stored as;
    /* 2: channels are multiplied as pairs in bf16, and a pair counts as one channel and one float
     * in all that follows but cin; else 1 */
    int64_t pair;
    cnr_window w; /* of 3 axes, the first of which is 1 */
    /* groups, channels of a group and of all, and pixels of a plane */
    int64_t group, icg, ocg, cin, cout, in_plane, out_plane;
    int64_t in_block, out_block;
    int32_t copied, flat; /* flat: rows follow each other without gaps */
    int32_t by_taps;      /* not copied: `run` holds the runs of one tap */
    int32_t gathered; /* copied: the elements of a window lie side by side; `run` is their source */
    int64_t rows, columns, tile;   /* of the output, computed at once; the tile's columns at most */
    int64_t row_step, column_step; /* input floats from one to the next */
    int64_t pitch, strip_plane;    /* positions of a padded strip */
    /* distance of taps in rows and columns in the strip: pixels between taps that no window reads
     * are left out */
    int64_t apart[2];
    int64_t vectors, units, unit_k; /* of a group; floats of a whole unit's weights */
    int64_t strip, strips, chunks;  /* rows of a strip, at most */
    /* in a thread's scratch: where weights are widened to; its size in floats */
    int64_t wide_at, room;
    int32_t ahead;                /* weights are not in the cache, so they are prefetched */
    int64_t k, runs, count, step; /* step: runs whose weights are used at a time */
    int64_t run[];
} blocked_conv;

/* ---- acceptance ---- */

static int two_axes(const cnr_window *w) { return w->spatial < 3; }

static int64_t groups_of(const cnr_node *node) { return cnr_max(1, cnr_attr_int(node, "group")); }

/* Sets the positions [first, end) of the output along an axis whose tap lies within the input. */
static void reached(const cnr_window *w, int32_t axis, int64_t tap, int64_t *first, int64_t *end) {
    const int64_t before = w->pad_begin[axis] - tap * w->dilation[axis], stride = w->stride[axis];
    *first = cnr_min(w->out[axis], before > 0 ? cnr_div_up(before, stride) : 0);
    *end = w->in[axis] + before > 0 ? cnr_div_up(w->in[axis] + before, stride) : 0;
    *end = cnr_max(*first, cnr_min(*end, w->out[axis]));
}

/* Returns the share (0 to 1) of a window's taps that lie within the input, over all positions. */
static double reached_share(const cnr_window *w) {
    double share = 1;
    for (int32_t axis = 1; axis < 3; axis++) {
        int64_t sum = 0;
        for (int64_t tap = 0, first, end; tap < w->kernel[axis]; tap++) {
            reached(w, axis, tap, &first, &end);
            sum += end - first;
        }
        share *= (double)sum / (double)cnr_max(1, w->kernel[axis] * w->out[axis]);
    }
    return share;
}

/* Returns the share of the multiplications that are computed: taps in the padding are skipped where
 * the channels lie in blocks of whole runs, which vectors of four lanes don't have. */
static double computed_share(neon_stored as, const cnr_window *w, int64_t icg, int64_t in_block) {
    if (as != NEON_F32 || in_block < WEIGHT_RUN || icg % WEIGHT_RUN || icg < TAPS_LEAST) return 1;
    const double share = reached_share(w);
    return share < TAPS_SHARE ? share : 1;
}

/* Takes f32 convolutions of one or two axes with constant weights, if a block of channels divides
 * the outputs; cost_ns is estimated. */
static cnr_status accepts(neon_stored as, const cnr_device *device, const cnr_node *node,
                          cnr_accept *out) {
    (void)device;
    cnr_window w;
    const cnr_tensor *x = cnr_own_input(node, 0), *weight = cnr_own_input(node, 1);
    if (!x || !weight || !neon_all_f32(node)) return cnr_refuse(out, NEON_WANTS_F32);
    if (!cnr_is_constant(weight)) return cnr_refuse(out, "constant weights are wanted");
    if ((out->why = neon_conv_window(node, x, weight, &w))) return CNR_OK;
    if (!two_axes(&w)) return cnr_refuse(out, "one or two spatial axes are wanted");
    const int64_t group = groups_of(node), ocg = weight->dim[0] / group, icg = weight->dim[1];
    int64_t dim[CNR_MAX_RANK] = {x->dim[0], weight->dim[0]};
    memcpy(dim + 2, w.out, (size_t)w.spatial * sizeof dim[0]);
    const int32_t to = neon_channel_block(weight->dim[0]);
    if (!to || (group > 1 && ocg % to)) return cnr_refuse(out, "no block divides the outputs");
    if (group > 1 && ocg < neon_uk->vl) return cnr_refuse(out, "groups fill no vector");
    int32_t from = out->in_block[0];
    if (from > 1 && (icg % from || from % 4)) from = 0;
    if (as == NEON_PAIRS && !neon_multiplies_bf16())
        return cnr_refuse(out, "this processor does not multiply bf16");
    if (as == NEON_PAIRS && (from < WEIGHT_RUN || group > 1))
        return cnr_refuse(out, "pairs of channels in one group are wanted");
    neon_blocked_take(node, out,
                      as == NEON_F32     ? 600
                      : as == NEON_PAIRS ? 620
                                         : 610,
                      from, neon_block_of(x->rank, dim));
    out->epilogue = neon_chain_accepts(node, x->rank, dim);
    out->prepared = 1 << 1;
    /* channels that are far apart are read one by one */
    out->cost_ns = from || icg < WEIGHT_RUN ? neon_conv_cost(node, &w, 0.85, 0.7)
                                            : neon_conv_cost(node, &w, 0.7, 0.5);
    if (as == NEON_PAIRS) out->cost_ns = neon_conv_cost(node, &w, 1.6, 1.2);
    const cnr_window planes = shape_window_three(&w);
    out->cost_ns *= computed_share(as, &planes, icg, from);
    return CNR_OK;
}

/* ---- weights ---- */

static int64_t vectors_of(int64_t ocg) { return cnr_div_up(ocg, neon_uk->vl); }

/* Floats of a group's packed weights; ocg: its output channels. */
static int64_t packed_group(const cnr_tensor *weight, int64_t ocg) {
    return vectors_of(ocg) * neon_uk->vl * cnr_span(weight, 1, weight->rank);
}

/* Bytes of the packed weights of all groups. */
static cnr_status prepare_size(neon_stored as, const cnr_device *device, const cnr_node *node,
                               cnr_space *out, cnr_error *err) {
    (void)device;
    (void)err;
    const cnr_tensor *weight = node->inputs[1];
    const int64_t group = groups_of(node);
    out->bytes = neon_stored_bytes(as, group * packed_group(weight, weight->dim[0] / group));
    return CNR_OK;
}

/* Packs the weights of output channels [first, first + n) as n columns, `width` wide, at element
 * `at` of out. */
static void pack_halves(neon_stored as, const float *w, int64_t icg, int64_t taps, int64_t n,
                        int64_t width, uint16_t *out, int64_t at) {
    float row[64];
    for (int64_t c0 = 0; c0 < icg; c0 += WEIGHT_RUN)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t c = c0; c < cnr_min(icg, c0 + WEIGHT_RUN); c++, at += width) {
                for (int64_t o = 0; o < width; o++)
                    row[o] = o < n ? w[(o * icg + c) * taps + t] : 0.0f;
                neon_uk->narrow[as](row, out + at, width);
            }
}

/* The row of the packed unit that holds element j of an output channel's weights. */
static int64_t packed_row(int64_t j, int64_t icg, int64_t taps) {
    const int64_t c = j / taps, c0 = c / WEIGHT_RUN * WEIGHT_RUN;
    return c0 * taps + j % taps * cnr_min(WEIGHT_RUN, icg - c0) + c - c0;
}

typedef float four __attribute__((vector_size(16)));

/* Four elements each of four output channels, `k` floats apart, as four rows. */
static void turn(const float *w, int64_t k, float *const *to, int64_t o) {
    four a, b, c, d;
    memcpy(&a, w, sizeof a);
    memcpy(&b, w + k, sizeof b);
    memcpy(&c, w + 2 * k, sizeof c);
    memcpy(&d, w + 3 * k, sizeof d);
    const four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const four ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const four cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const four row[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                         __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                         __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5),
                         __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++) memcpy(to[i] + o, &row[i], sizeof row[i]);
}

enum { LINE = 16 };

/* Packs elements [begin, end) of n output channels' weights as floats, in units of `width`
 * channels: a cache line of each output channel at a time, since lines of channels that are a power
 * of two apart displace each other. */
static void pack_floats(const float *w, int64_t icg, int64_t taps, int64_t n, int64_t width,
                        int64_t begin, int64_t end, float *out) {
    const int64_t k = icg * taps;
    float *to[LINE];
    for (int64_t j = begin; j < end; j += LINE) {
        const int64_t m = cnr_min(LINE, end - j), fours = m == LINE ? n / 4 * 4 : 0;
        for (int64_t i = 0; i < m; i++) to[i] = out + packed_row(j + i, icg, taps) * width;
        for (int64_t o = 0; o < fours; o += 4)
            for (int64_t i = 0; i < LINE; i += 4) turn(w + o * k + j + i, k, to + i, o);
        for (int64_t o = fours; o < n; o++)
            for (int64_t i = 0; i < m; i++) to[i][o] = w[o * k + j + i];
        for (int64_t i = 0; i < m && n < width; i++)
            memset(to[i] + n, 0, (size_t)(width - n) * sizeof *out);
    }
}

/* Packs the weights of n output channels as pairs of input channels in bf16, in units of `width`
 * channels. */
static void pack_pairs(const float *w, int64_t icg, int64_t taps, int64_t n, int64_t width,
                       uint16_t *out) {
    float row[2 * 64];
    for (int64_t c0 = 0; c0 < icg; c0 += WEIGHT_RUN)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t c = c0; c < cnr_min(icg, c0 + WEIGHT_RUN); c += 2, out += 2 * width) {
                for (int64_t o = 0; o < width; o++)
                    for (int64_t i = 0; i < 2; i++)
                        row[2 * o + i] = o < n ? w[(o * icg + c + i) * taps + t] : 0.0f;
                neon_uk->narrow[NEON_BF16](row, out, 2 * width);
            }
}

/* Arguments of the tasks that pack weights, unit by unit. */
typedef struct unit_packing {
    neon_stored as;
    const cnr_tensor *weight;
    int64_t ocg, units; /* output channels of a group, and its units */
    int64_t parts;      /* of a unit's elements, so that all threads have work */
    void *to;
} unit_packing;

/* Task i: packs one unit of output channels, or a part of it. */
static void one_unit(void *arg, int64_t i, int32_t thread) {
    const unit_packing *p = arg;
    const int64_t part = i % p->parts, at_unit = i / p->parts;
    const int64_t g = at_unit / p->units, unit = neon_uk->tile_vectors * neon_uk->vl;
    const int64_t o = at_unit % p->units * unit, icg = p->weight->dim[1];
    const int64_t k = cnr_span(p->weight, 1, p->weight->rank);
    (void)thread;
    const int64_t n = cnr_min(unit, p->ocg - o);
    const int64_t width = cnr_min(unit, cnr_round_up(p->ocg - o, neon_uk->vl));
    const int64_t at = g * packed_group(p->weight, p->ocg) + o * k, taps = k / cnr_max(1, icg);
    const float *w = neon_floats(p->weight) + (g * p->ocg + o) * k;
    if (p->as == NEON_PAIRS) pack_pairs(w, icg, taps, n, width, (uint16_t *)p->to + at);
    else if (p->as == NEON_F32)
        pack_floats(w, icg, taps, n, width, k * part / p->parts / LINE * LINE,
                    part + 1 < p->parts ? k * (part + 1) / p->parts / LINE * LINE : k,
                    (float *)p->to + at);
    else pack_halves(p->as, w, icg, taps, n, width, p->to, at);
}

/* Packs the weights on all threads. */
static cnr_status prepare(neon_stored as, const cnr_device *device, const cnr_node *node,
                          void *blob, cnr_error *err) {
    const cnr_tensor *weight = node->inputs[1];
    const int64_t group = groups_of(node), ocg = weight->dim[0] / group;
    unit_packing p = {as, weight, ocg, cnr_div_up(vectors_of(ocg), neon_uk->tile_vectors), 1, blob};
    (void)err;
    if (as == NEON_F32 && p.units * group < 8) p.parts = 4;
    neon_parallel(device, group * p.units * p.parts, one_unit, &p);
    return CNR_OK;
}

/* ---- plan ---- */

/* 1 if all windows lie within the input, so that no padding is read; else 0. */
static int inside(const cnr_window *w) {
    for (int i = 1; i < 3; i++)
        if (w->pad_begin[i] != 0 ||
            (w->out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] >= w->in[i])
            return 0;
    return 1;
}

/* Computes the offsets of the runs of input channels from an output position's first. */
static void plan_runs(blocked_conv *s) {
    const int64_t plane = s->copied ? s->strip_plane : s->in_plane, b = s->in_block;
    const int64_t pitch = s->copied ? s->pitch : s->w.in[2];
    const int64_t down = s->copied ? s->apart[0] : s->w.dilation[1];
    const int64_t right = s->copied ? s->apart[1] : s->w.dilation[2];
    const int64_t width = WEIGHT_RUN / s->pair;
    s->runs = 0;
    for (int64_t c = 0; s->by_taps && c < s->icg; c += s->count)
        s->run[s->runs++] = c / b * plane * b + c % b;
    if (s->by_taps) return;
    for (int64_t c0 = 0; c0 < s->icg; c0 += width)
        for (int64_t y = 0; y < s->w.kernel[1]; y++)
            for (int64_t x = 0; x < s->w.kernel[2]; x++)
                for (int64_t c = c0; c < cnr_min(s->icg, c0 + width); c += s->count)
                    s->run[s->runs++] = (c / b * plane + y * down * pitch + x * right) * b + c % b;
}

/* A few plain channels do not fill a vector. Where lane products are used, windows are copied, the
 * elements of each side by side. */
static void plan_gather(blocked_conv *s) {
    const cnr_window *w = &s->w;
    int64_t i = 0;
    for (int64_t y = 0; y < w->kernel[1]; y++)
        for (int64_t x = 0; x < w->kernel[2]; x++)
            for (int64_t c = 0; c < s->icg; c++)
                s->run[i++] = c * s->in_plane + y * w->dilation[1] * w->in[2] + x * w->dilation[2];
    s->runs = 1;
    s->count = s->k;
}

/* Chooses strips of rows that fit the caches, and chunks of units, so that all threads have
 * work. */
static void plan_tasks(blocked_conv *s, int64_t images, int32_t threads) {
    const cnr_window *w = &s->w;
    const int64_t reach = (w->kernel[1] - 1) * w->dilation[1];
    const int64_t row = s->gathered ? s->k * s->columns
                        : s->copied ? s->icg * (s->flat ? s->columns : s->pitch)
                                    : s->icg * s->columns * w->stride[2];
    int64_t most = (s->k * s->ocg > WEIGHTS_LIMIT ? STRIP_MOST : STRIP_LIMIT) / cnr_max(1, row);
    if (s->copied &&
        !s->gathered) /* all rows from the first tap's to the last one's, or each tap's */
        most = cnr_max(most - reach, cnr_min(most / w->kernel[1], w->dilation[1]));
    if (!s->gathered) most /= w->stride[1];
    most = cnr_max(1, most);
    s->ahead = s->k * s->ocg > WEIGHTS_LIMIT;
    const double flops =
        2.0 * (double)s->k * (double)s->out_plane * (double)s->cout * (double)images;
    const int64_t wanted =
        threads < 2 ? 1 : cnr_min(4 * threads, (int64_t)(flops / TASK_FLOPS) + threads);
    const int64_t others = cnr_max(1, images * s->group);
    /* Splits by rows if that justifies reading the weights twice: rows stay in the cache of the
     * thread that wrote them. */
    const int by_rows = s->k * s->ocg <= 2 * s->icg * s->in_plane;
    int64_t strips = cnr_max(1, cnr_div_up(s->rows, most));
    if (by_rows) strips = cnr_max(strips, cnr_div_up(wanted, others));
    s->strips = neon_even_parts(s->rows, strips, others, threads);
    s->chunks = neon_even_parts(s->units, cnr_div_up(wanted, others * s->strips),
                                others * s->strips, threads);
    if (others * s->strips * s->chunks < wanted)
        s->strips = neon_even_parts(s->rows, cnr_div_up(wanted, others * s->chunks),
                                    others * s->chunks, threads);
    s->strip = cnr_max(1, cnr_div_up(s->rows, s->strips)); /* at most */
}

/* Chooses how inputs are read: in place, copied with padding, or gathered. */
static void plan_geometry(blocked_conv *s) {
    const cnr_window *w = &s->w;
    s->gathered = neon_uk->vl == 4 && s->in_block == 1 && s->icg < WEIGHT_RUN && s->k > s->icg &&
                  s->k <= MOST_K && s->k * w->out[2] <= STRIP_MOST; /* at least a row */
    s->copied = s->gathered || s->pair == 2 || (!inside(w) && !s->by_taps);
    s->rows = w->out[1];
    s->columns = w->out[2];
    s->row_step = w->stride[1] * w->in[2] * s->in_block;
    s->column_step = w->stride[2] * s->in_block;
    s->flat = s->gathered || ((!s->copied || s->pair == 2) && neon_pointwise(w));
    if (s->gathered) s->column_step = s->k;
    else if (s->flat) { /* the plane is one row, cut into tiles */
        const int64_t n = s->out_plane, tiles = cnr_div_up(n, neon_uk->tile_columns);
        s->columns = cnr_max(1, cnr_div_up(n, cnr_max(1, tiles)));
        s->rows = cnr_div_up(n, s->columns);
        s->row_step = s->columns * s->in_block;
    }
    /* columns read by one tap */
    const int64_t seen = cnr_max(0, (w->out[2] - 1) * w->stride[2]) + 1;
    s->apart[1] = cnr_min(w->dilation[2], seen);
    s->pitch = (w->kernel[2] - 1) * s->apart[1] + seen;
    const int64_t tiles = cnr_max(1, cnr_div_up(s->columns, neon_uk->tile_columns));
    s->tile = cnr_max(1, cnr_div_up(s->columns, tiles));
}

/* Widens stored halves to floats in the part of the L1 cache that the weights would use
 * otherwise. */
static void plan_weights(blocked_conv *s) {
    const int64_t k = s->by_taps ? s->icg : s->k;
    s->step = cnr_max(1, cnr_div_up(s->runs, cnr_max(1, cnr_div_up(k, MOST_K))));
    s->wide_at = s->room;
    if (s->as == NEON_F32) return;
    const int64_t at_once =
        cnr_min(s->step, s->runs) * s->count * neon_uk->tile_vectors * neon_uk->vl;
    s->room += cnr_round_up(at_once, 16);
}

/* Finds geometry, tiles and the workspace; *state, for neon_free_state, keeps them. */
static cnr_status plan(neon_stored as, const cnr_device *device, const cnr_node *node,
                       cnr_space *workspace, void **state, cnr_error *err) {
    cnr_window w;
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const char *why = neon_conv_window(node, x, weight, &w);
    if (why) return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    const int64_t k = cnr_span(weight, 1, weight->rank);
    blocked_conv *s = cnr_state(neon_host, node, sizeof *s + (size_t)k * sizeof s->run[0], err);
    if (!s) return CNR_E_MEMORY;
    neon_ending_plan(node, &s->end);
    s->as = as == NEON_PAIRS ? NEON_F32 : as;
    s->pair = as == NEON_PAIRS ? 2 : 1;
    s->w = shape_window_three(&w);
    s->group = groups_of(node);
    s->cin = x->dim[1];
    s->cout = weight->dim[0];
    s->icg = weight->dim[1] / s->pair;
    s->ocg = s->cout / s->group;
    s->in_plane = s->w.in[1] * s->w.in[2];
    s->out_plane = s->w.out[1] * s->w.out[2];
    /* for planes of one pixel, every block size gives the same memory */
    s->in_block = x->block > 1                                           ? x->block / s->pair
                  : s->in_plane == 1 && weight->dim[1] % WEIGHT_RUN == 0 ? WEIGHT_RUN / s->pair
                                                                         : 1;
    s->out_block = neon_channel_block(s->cout);
    s->count = cnr_min(s->in_block, WEIGHT_RUN / s->pair);
    s->k = k / s->pair;
    s->vectors = vectors_of(s->ocg);
    s->units = cnr_div_up(s->vectors, neon_uk->tile_vectors);
    s->unit_k = s->k * neon_uk->tile_vectors * neon_uk->vl;
    s->by_taps = computed_share(as, &s->w, s->icg, s->in_block) < 1;
    plan_geometry(s);
    plan_tasks(s, x->dim[0], device->concurrency);
    if (s->gathered) {
        s->row_step = s->columns * s->k;
        s->room = cnr_round_up(16 + s->strip * s->row_step, 16);
    } else if (s->copied && s->flat) {
        s->strip_plane = s->strip * s->columns;
        s->room = cnr_round_up(16 + s->icg * s->strip_plane, 16);
    } else if (s->copied) {
        const int64_t seen = (s->strip - 1) * s->w.stride[1] + 1;
        s->apart[0] = cnr_min(s->w.dilation[1], seen);
        s->strip_plane = s->pitch * ((s->w.kernel[1] - 1) * s->apart[0] + seen);
        s->row_step = s->w.stride[1] * s->pitch * s->in_block;
        s->room = cnr_round_up(16 + s->icg * s->strip_plane, 16);
    }
    if (s->gathered) plan_gather(s);
    else plan_runs(s);
    plan_weights(s);
    workspace->bytes = (uint64_t)(s->room * device->concurrency) * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* ---- run ---- */

/* Arguments of the tasks of a run. */
typedef struct blocked_job {
    const blocked_conv *s;
    const cnr_run *run;
    const float *x, *bias, *operand;
    const void *weight;
    float *y;
} blocked_job;

/* Copies pixels [from, from + n) of a row of x to out, zeros outside it; returns the place
 * behind. */
static float *copy_row(const blocked_conv *s, const float *x, int64_t from, int64_t n, float *out) {
    const int64_t b = s->in_block, wide = s->w.in[2];
    const int64_t begin = cnr_min(n, cnr_max(0, -from));
    const int64_t end = cnr_max(begin, cnr_min(n, wide - from));
    const float *at = x + (from + begin) * b * s->pair;
    memset(out, 0, (size_t)(begin * b) * sizeof *out);
    if (s->pair == 2) neon_uk->to_pairs(at, (end - begin) * b * 2, out + begin * b);
    else memcpy(out + begin * b, at, (size_t)((end - begin) * b) * sizeof *out);
    memset(out + end * b, 0, (size_t)((n - end) * b) * sizeof *out);
    return out + n * b;
}

/* Copies the input rows that output rows [row, row + strip) read, with padding. */
static void copy_strip(const blocked_conv *s, const float *x, int64_t row, float *out) {
    const cnr_window *w = &s->w;
    const int64_t b = s->in_block, top = row * w->stride[1] - w->pad_begin[1];
    const int64_t high = s->strip_plane / s->pitch, last = w->kernel[1] - 1;
    const int64_t parts = s->apart[1] < w->dilation[2] ? w->kernel[2] : 1;
    for (int64_t q = 0; q < s->icg / b; q++, x += s->in_plane * b * s->pair)
        for (int64_t r = 0; r < high; r++) {
            const int64_t tap = cnr_min(r / s->apart[0], last);
            const int64_t y = top + tap * (w->dilation[1] - s->apart[0]) + r;
            if (y < 0 || y >= w->in[1]) {
                memset(out, 0, (size_t)(s->pitch * b) * sizeof *out);
                out += s->pitch * b;
                continue;
            }
            for (int64_t i = 0; i < parts; i++)
                out = copy_row(s, x + y * w->in[2] * b * s->pair,
                               i * w->dilation[2] - w->pad_begin[2], s->pitch / parts, out);
        }
}

/* Converts the positions of rows [row, end) to pairs, where a row is some adjacent positions. */
static void pair_strip(const blocked_conv *s, const float *x, int64_t row, int64_t end,
                       float *out) {
    const int64_t b = s->in_block, first = row * s->columns;
    const int64_t n = cnr_min(s->out_plane, end * s->columns) - first;
    for (int64_t q = 0; q < s->icg / b; q++, out += s->strip_plane * b)
        neon_uk->to_pairs(x + (q * s->in_plane + first) * b * 2, n * b * 2, out);
}

/* Copies the windows of output rows [row, end) to out, one after the other, zeros in the
 * padding. */
static void gather_strip(const blocked_conv *s, const float *x, int64_t row, int64_t end,
                         float *out) {
    const cnr_window *w = &s->w;
    for (; row < end; row++)
        for (int64_t c = 0; c < s->columns; c++) {
            const int64_t y0 = row * w->stride[1] - w->pad_begin[1], high = w->in[1];
            const int64_t x0 = c * w->stride[2] - w->pad_begin[2], wide = w->in[2];
            const float *from = x + y0 * wide + x0;
            if (y0 >= 0 && x0 >= 0 && y0 + (w->kernel[1] - 1) * w->dilation[1] < high &&
                x0 + (w->kernel[2] - 1) * w->dilation[2] < wide) {
                for (int64_t i = 0; i < s->k; i++) *out++ = from[s->run[i]];
                continue;
            }
            for (int64_t i = 0; i < s->k; i++) {
                const int64_t tap = i / s->icg;
                const int64_t iy = y0 + tap / w->kernel[2] * w->dilation[1];
                const int64_t ix = x0 + tap % w->kernel[2] * w->dilation[2];
                *out++ = iy < 0 || iy >= high || ix < 0 || ix >= wide ? 0.0f : from[s->run[i]];
            }
        }
}

/* Floats from a group's first element of y to its channel c; -1: there is none. */
static int64_t channel_at(const blocked_conv *s, int64_t c) {
    return c >= s->ocg ? -1 : c / s->out_block * s->out_plane * s->out_block + c % s->out_block;
}

/* Parts of a unit's tiles that are the same for all of them, for weights from k0 on. */
typedef struct unit {
    neon_conv_tile tile;
    _Alignas(64) float bias[64];
    int64_t low[4], high[4];
} unit;

/* Prepares a unit of output channels of a group. */
static void begin_unit(const blocked_job *job, int64_t group, int64_t u, unit *out) {
    const blocked_conv *s = job->s;
    const int64_t vl = neon_uk->vl, most = neon_uk->tile_vectors, first = u * most * vl;
    neon_conv_tile *t = &out->tile;
    *t = (neon_conv_tile){.vectors = cnr_min(most, s->vectors - u * most),
                          .count = s->count,
                          .x_column = s->column_step,
                          .y_column = s->out_block,
                          .bias = out->bias,
                          .low = out->low,
                          .high = out->high};
    for (int64_t v = 0; v < t->vectors; v++) {
        out->low[v] = channel_at(s, first + v * vl);
        out->high[v] = channel_at(s, first + v * vl + vl / 2);
    }
    t->straight = s->out_block == vl;
    for (int64_t v = 0; v < t->vectors; v++)
        if (out->high[v] != out->low[v] + vl / 2) t->straight = 0;
    for (int64_t i = 0; i < t->vectors * vl; i++)
        out->bias[i] =
            job->bias && first + i < s->ocg ? job->bias[group * s->ocg + first + i] : 0.0f;
}

/* Computes rows [row0, row1) of a unit and prefetches the next `next` bytes of weights
 * meanwhile. */
static void unit_rows(const blocked_job *job, neon_conv_tile *t, const float *x, int64_t y_at,
                      int64_t row0, int64_t row1, int64_t next) {
    const blocked_conv *s = job->s;
    const int64_t tiles = (row1 - row0) * cnr_div_up(s->columns, s->tile);
    t->ahead_lines =
        cnr_min(MOST_AHEAD, cnr_div_up(cnr_div_up(next, 64), cnr_max(1, tiles * t->runs)));
    const int64_t rows = s->flat ? row1 - row0 : 1; /* consecutive rows */
    for (int64_t row = row0; row < row1; row += rows) {
        const float *from = x + (row - row0) * s->row_step;
        const int64_t first = row * s->columns;
        const int64_t columns = cnr_min(rows * s->columns, s->out_plane - first);
        for (int64_t j = 0; j < columns; j += t->tiles * t->n) {
            const int64_t at = y_at + (first + j) * s->out_block;
            t->n = cnr_min(s->tile, columns - j);
            t->tiles = (columns - j) / t->n;
            t->x = from + j * s->column_step;
            t->y = job->y + at;
            if (t->operand) t->operand = job->operand + at;
            if (s->pair == 2) neon_uk->conv_pairs(t);
            else neon_uk->conv_tile(t);
            t->ahead += t->tiles * t->ahead_lines * t->runs * 16;
        }
    }
}

/* Applies the remaining links to the rows of each block of the unit. */
static void end_unit(const blocked_job *job, const unit *u, int64_t y_at, int64_t row0,
                     int64_t row1) {
    const blocked_conv *s = job->s;
    const int64_t b = s->out_block;
    const int64_t first = row0 * s->columns;
    if (s->end.rest.first >= s->end.rest.n) return;
    const int64_t n = (cnr_min(s->out_plane, row1 * s->columns) - first) * b;
    for (int64_t v = 0; v < 2 * u->tile.vectors; v++) {
        const int64_t at = v % 2 ? u->high[v / 2] : u->low[v / 2];
        if (at < 0 || at / (s->out_plane * b) * (s->out_plane * b) != at)
            continue; /* within a block */
        neon_chain_run(&s->end.rest, job->run->node, job->y + y_at + at + first * b,
                       y_at + at + first * b, n);
    }
}

/* Computes output rows [row0, row1) of one chunk of units, of one group and image. `wide`: room for
 * widened weights. */
static void rows_of_chunk(const blocked_job *job, const float *x, int64_t group, int64_t y_at,
                          int64_t chunk, int64_t row0, int64_t row1, float *wide) {
    const blocked_conv *s = job->s;
    const int64_t u1 = (chunk + 1) * s->units / s->chunks;
    const int64_t step = s->step, before = group * s->vectors * neon_uk->vl * s->k;
    static const int64_t one_run[1];
    for (int64_t r = 0; r < s->runs || r == 0; r += step)
        for (int64_t i = chunk * s->units / s->chunks; i < u1; i++) {
            unit u;
            begin_unit(job, group, i, &u);
            u.tile.run = s->gathered ? one_run : s->run + r;
            u.tile.runs = cnr_min(step, s->runs - r);
            u.tile.more = r > 0;
            const int last = r + step >= s->runs;
            u.tile.bound = last ? s->end.bound : (neon_bound){NEON_BOUND_NONE, 0, 0};
            if (last) u.tile.operand = job->operand;
            if (u.tile.bound.kind == NEON_BOUND_LEAKY) u.tile.straight = 0;
            const int64_t size = u.tile.runs * s->count * u.tile.vectors * neon_uk->vl;
            const int64_t at = before + i * s->unit_k + r * s->count * u.tile.vectors * neon_uk->vl;
            u.tile.weight = neon_widened(s->as, job->weight, at, size, wide);
            u.tile.ahead = neon_stored_at(s->as, job->weight, at + (i + 1 < u1 ? s->unit_k : size));
            const int64_t bytes = s->ahead ? (int64_t)neon_stored_bytes(s->as, size) : 0;
            const int64_t some = last && s->end.rest.first < s->end.rest.n
                                     ? cnr_max(1, NEON_STRETCH / (s->columns * s->out_block))
                                     : row1 - row0;
            for (int64_t row = row0; row < row1; row += some) {
                const int64_t end = cnr_min(row1, row + some);
                unit_rows(job, &u.tile, x + (s->copied ? row - row0 : row) * s->row_step, y_at, row,
                          end, bytes * (end - row) / (row1 - row0));
                if (last) end_unit(job, &u, y_at, row, end);
            }
        }
}

/* Adds runs [r, r + step) of a tap to rows [row0, row1) of a unit, where the tap lies within the
 * input. */
static void tap_rows(const blocked_job *job, neon_conv_tile *t, const float *x, int64_t y_at,
                     const int64_t *tap, int64_t row0, int64_t row1) {
    const blocked_conv *s = job->s;
    const cnr_window *w = &s->w;
    int64_t first[2], end[2], at[2];
    for (int32_t i = 0; i < 2; i++) {
        reached(w, 1 + i, tap[i], &first[i], &end[i]);
        at[i] = tap[i] * w->dilation[1 + i] - w->pad_begin[1 + i];
    }
    const int64_t columns = end[1] - first[1];
    const int64_t wide = cnr_div_up(columns, cnr_max(1, cnr_div_up(columns, s->tile)));
    for (int64_t row = cnr_max(row0, first[0]); row < cnr_min(row1, end[0]); row++)
        for (int64_t j = first[1]; j < end[1]; j += t->tiles * t->n) {
            t->n = cnr_min(wide, end[1] - j);
            t->tiles = (end[1] - j) / t->n;
            t->x = x + ((row * w->stride[1] + at[0]) * w->in[2] + j * w->stride[2] + at[1]) *
                           s->in_block;
            t->y = job->y + y_at + (row * s->columns + j) * s->out_block;
            neon_uk->conv_tile(t);
        }
}

/* Starts or ends the sums of rows [row0, row1) of a chunk: with the bias, or the epilogue. */
static void frame_rows(const blocked_job *job, int64_t group, int64_t y_at, int64_t chunk,
                       int64_t row0, int64_t row1, int ends) {
    const blocked_conv *s = job->s;
    const int64_t u1 = (chunk + 1) * s->units / s->chunks;
    const int links = s->end.operand >= 0 || s->end.bound.kind != NEON_BOUND_NONE;
    for (int64_t i = chunk * s->units / s->chunks; i < u1; i++) {
        unit u;
        begin_unit(job, group, i, &u);
        u.tile.more = ends;
        u.tile.weight = u.tile.ahead = job->weight;
        if (ends) u.tile.bound = s->end.bound, u.tile.operand = job->operand;
        if (u.tile.bound.kind == NEON_BOUND_LEAKY) u.tile.straight = 0;
        if (!ends || links) unit_rows(job, &u.tile, job->x, y_at, row0, row1, 0);
        if (ends) end_unit(job, &u, y_at, row0, row1);
    }
}

/* Computes rows [row0, row1) of a chunk tap by tap. */
static void taps_of_chunk(const blocked_job *job, const float *x, int64_t group, int64_t y_at,
                          int64_t chunk, int64_t row0, int64_t row1) {
    const blocked_conv *s = job->s;
    const int64_t u1 = (chunk + 1) * s->units / s->chunks, step = s->step, vl = neon_uk->vl;
    const int64_t taps = s->w.kernel[1] * s->w.kernel[2], before = group * s->vectors * vl * s->k;
    frame_rows(job, group, y_at, chunk, row0, row1, 0);
    for (int64_t k = 0; k < taps; k++)
        for (int64_t r = 0; r < s->runs; r += step)
            for (int64_t i = chunk * s->units / s->chunks; i < u1; i++) {
                const int64_t tap[2] = {k / s->w.kernel[2], k % s->w.kernel[2]};
                unit u;
                begin_unit(job, group, i, &u);
                const int64_t run = s->count * u.tile.vectors * vl;
                u.tile.run = s->run + r;
                u.tile.runs = cnr_min(step, s->runs - r);
                u.tile.more = 1;
                u.tile.weight =
                    (const float *)job->weight + before + i * s->unit_k + (r * taps + k) * run;
                u.tile.weight_gap = (taps - 1) * run;
                u.tile.ahead = u.tile.weight;
                tap_rows(job, &u.tile, x, y_at, tap, row0, row1);
            }
    frame_rows(job, group, y_at, chunk, row0, row1, 1);
}

/* Task i: computes one strip of output rows for one chunk of output channels of a group and
 * image. */
static void one_task(void *arg, int64_t i, int32_t thread) {
    const blocked_job *job = arg;
    const blocked_conv *s = job->s;
    const int64_t chunk = i % s->chunks, strip = i / s->chunks % s->strips;
    const int64_t group = i / s->chunks / s->strips % s->group;
    const int64_t image = i / s->chunks / s->strips / s->group;
    const int64_t row0 = strip * s->rows / s->strips;
    const int64_t row1 = (strip + 1) * s->rows / s->strips;
    const float *x = job->x + (image * s->cin + group * s->icg) * s->in_plane;
    if (cnr_cancelled(job->run->stream)) return;
    float *room = job->run->workspace_data;
    if (room) room += thread * s->room;
    if (s->copied) { /* the strip that this thread copied last may be the same */
        const int64_t which = i / s->chunks;
        int64_t have;
        memcpy(&have, room, sizeof have);
        if (have != which && s->gathered) gather_strip(s, x, row0, row1, room + 16);
        else if (have != which && s->flat) pair_strip(s, x, row0, row1, room + 16);
        else if (have != which) copy_strip(s, x, row0, room + 16);
        memcpy(room, &which, sizeof which);
        x = room + 16;
    }
    const int64_t y_at = (image * s->cout + group * s->ocg) * s->out_plane;
    if (s->by_taps) taps_of_chunk(job, x, group, y_at, chunk, row0, row1);
    else rows_of_chunk(job, x, group, y_at, chunk, row0, row1, room ? room + s->wide_at : NULL);
}

/* Computes all strips on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const blocked_conv *s = run->state;
    const int64_t none = -1, images = run->node->inputs[0]->dim[0];
    (void)err;
    if (s->out_plane < 1) return CNR_OK;
    const blocked_job job = {
        .s = s,
        .run = run,
        .x = neon_floats(run->node->inputs[0]),
        .weight = run->blob_data,
        .bias = neon_floats(cnr_own_input(run->node, 2)),
        .operand = s->end.operand < 0 ? NULL : neon_floats(run->node->inputs[s->end.operand]),
        .y = run->outputs[0]->data,
    };
    for (int32_t t = 0; s->copied && t < run->stream->device->concurrency; t++)
        memcpy((float *)run->workspace_data + t * s->room, &none, sizeof none);
    cnr_parallel(run->stream, images * s->group * s->strips * s->chunks, one_task, (void *)&job);
    return CNR_OK;
}

NEON_WEIGHT_KERNELS(neon_conv_blocked, "conv", "_blocked", "conv", neon_free_state)
NEON_WEIGHT_KERNEL(neon_conv_blocked_pairs, NEON_PAIRS, CNR_KERNEL_BF16_MATH, "conv_bf16_products",
                   "conv", neon_free_state)
