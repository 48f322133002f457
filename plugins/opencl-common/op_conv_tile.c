/* conv by tiles in local memory: a kernel for each row of the device's table of tiles, all the same
 * but for the numbers; which row suits a node is estimated from what the device reports. */
#include "op_conv.h"

#include "tile.cl.h"

#include <math.h>
typedef struct tiling { /* how a row cuts a node */
    const ocl_tile *tile;
    ocl_shape shape;
    int64_t along, slices, tiles; /* slices of a tap and of all; tiles of channels in a group */
    int32_t few, splits;
    double ns;
} tiling;

/* Plan of a convolution by tiles. */
typedef struct tile_state {
    const ocl_code *code, *sum;
    ocl_chain chain;
    tiling t;
    int32_t line, has_bias;
} tile_state;

const ocl_source ocl_tile_source = OCL_SOURCE("common/tile.cl", tile_cl);

int32_t ocl_tile_items(const ocl_tile *t) { return t->bm / t->tm * (t->bn / t->tn); }

int ocl_tile_fits(const ocl_device *d, const ocl_tile *t, int32_t pad) {
    const size_t items = (size_t)ocl_tile_items(t);
    const cl_ulong local = (cl_ulong)(2 * t->bk * (t->bm + t->bn + pad)) * sizeof(float);
    return items <= d->most_items[0] && items <= d->most_group && local <= d->found->local_bytes;
}

void ocl_plan_tile(ocl_plan *p, const ocl_tile *t) {
    ocl_plan_options(p, "-DBM=%d -DBN=%d -DBK=%d -DTM=%d -DTN=%d ", t->bm, t->bn, t->bk, t->tm,
                     t->tn);
}

/* ---- what a launch costs: rough, but the same for all rows ---- */

enum { CYCLES_OF_A_SLICE = 800, CYCLES_OF_A_SUM = 7500, RESIDENT_ITEMS = 512 };

/* Estimated cycles on a unit with 128 multiply-adds a cycle, one for each work-item, that waits
 * for memory once a slice; work-groups that share a unit wait together. Fitted to measurements
 * on an H100, where small tiles of 4 x 4 won nearly all layers of batch 1, and a separate sum
 * costs about 5 us. */
static double cycles_of(const ocl_tile *k, const ocl_tile_work *w, double units, int32_t splits) {
    const double slices = (double)cnr_div_up(w->slices, splits);
    const double here = ceil(w->groups * splits / units),
                 beside = fmax(1, RESIDENT_ITEMS / ocl_tile_items(k));
    const double product = k->tm * k->tn, good = product / (product + 4);
    const double busy = fmin(128, fmin(here, beside) * ocl_tile_items(k));
    const double alone =
        product > 16 && here < 4 ? 1.3 : 1; /* few work-items wait for each other */
    const double compute = here * slices * k->bm * k->bn * k->bk / busy / good;
    const double wait = ceil(here / beside) * (slices + 3) * CYCLES_OF_A_SLICE;
    const double sum = splits > 1 ? CYCLES_OF_A_SUM + splits * w->outputs / units / 8 : 0;
    return alone * fmax(compute, wait) + sum;
}

double ocl_tile_ns(const ocl_device *d, const ocl_tile *t, const ocl_tile_work *w,
                   int32_t *splits) {
    static const int32_t ways[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
    const double units = d->found->units > 0 ? d->found->units : 1;
    double least = INFINITY;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (ways[i] > 1 && w->slices < 2 * ways[i]) break;
        /* a gain of less than the estimate is worth is none */
        const double cycles = cycles_of(t, w, units, ways[i]) * (ways[i] > 1 ? 1.05 : 1);
        if (cycles >= least) continue;
        least = cycles;
        *splits = ways[i];
    }
    return least / 1.5; /* at 1.5 GHz */
}

int32_t ocl_tile_score(double ns, int32_t least) {
    const double score = 990 - 40 * log2(fmax(1, ns / 1000)); /* a point is some 2 of 100 */
    return (int32_t)fmax(least, score);
}

static int64_t pixels_of(const ocl_shape *s) { return s->n * s->out[0] * s->out[1] * s->out[2]; }

/* ---- accepting ---- */

/* Fills *t with the sizes for a row of the tune; returns NULL, or why the node is not taken. */
static const char *tiling_of(const cnr_device *device, const cnr_node *node, int32_t row,
                             tiling *t) {
    const ocl_device *d = ocl_of(device);
    cnr_window w;
    if (row >= d->tune->n_tiles) return "the device's table has no such row";
    const char *why = ocl_conv_window(node, &w);
    if (why) return why;
    if (!ocl_weight(cnr_own_input(node, 1))) return "the weight changes";
    *t = (tiling){.tile = &d->tune->tiles[row]};
    const ocl_tile *k = t->tile;
    ocl_shape_of(&w, node->inputs[0], node->outputs[0], ocl_conv_group(node), 1, &t->shape);
    const ocl_shape *s = &t->shape;
    if (!ocl_tile_fits(d, k, 0)) return "the tile is too large for the device";
    const int64_t channels = s->c / s->group, taps = s->k[0] * s->k[1] * s->k[2];
    if (s->group > 1 && s->m / s->group < 8) return "too few channels in a group";
    t->along = cnr_div_up(channels, k->bk);
    t->few = taps > 1 && t->along * k->bk * 8 > channels * 9;
    t->slices = t->few ? cnr_div_up(channels * taps, k->bk) : t->along * taps;
    t->tiles = cnr_div_up(s->m / s->group, k->bm);
    const double pixels = (double)pixels_of(s);
    const ocl_tile_work work = {.slices = t->slices,
                                .groups = ceil(pixels / k->bn) * (double)(t->tiles * s->group),
                                .outputs = pixels * (double)s->m};
    t->ns = ocl_tile_ns(d, k, &work, &t->splits);
    return NULL;
}

/* Takes convolutions by that row; for others out->why says why. */
static cnr_status accepts_row(const cnr_device *device, const cnr_node *node, cnr_accept *out,
                              int32_t row) {
    tiling t;
    const char *why = tiling_of(device, node, row, &t);
    if (why) return cnr_refuse(out, why);
    out->prepared = 1 << 1;
    return ocl_conv_take(node, out, ocl_tile_score(t.ns, 450));
}

/* ---- weights: [group][term][channel out] ---- */

/* Sets out->bytes to the packed weights' size for a row of the table of tiles; fails where that row
 * does not fit. */
static cnr_status size_row(const cnr_device *device, const cnr_node *node, cnr_space *out,
                           cnr_error *err, int32_t row) {
    tiling t;
    CNR_TRY(ocl_unless(node, tiling_of(device, node, row, &t), err));
    out->bytes =
        (uint64_t)(t.shape.group * t.slices * t.tile->bk * t.tiles * t.tile->bm) * sizeof(float);
    out->memory_class = OCL_BUFFER;
    return CNR_OK;
}

/* Packs the weights into blob for the row's tile; fails where the row does not fit. */
static cnr_status pack_row(const cnr_device *device, const cnr_node *node, void *blob,
                           cnr_error *err, int32_t row) {
    tiling t;
    CNR_TRY(ocl_unless(node, tiling_of(device, node, row, &t), err));
    const int64_t taps = t.shape.k[0] * t.shape.k[1] * t.shape.k[2], terms = t.slices * t.tile->bk;
    const int64_t channels = t.shape.c / t.shape.group, each = t.shape.m / t.shape.group;
    const int64_t padded = t.tiles * t.tile->bm;
    const float *from = node->inputs[1]->data;
    float *to = blob;
    for (int64_t g = 0; g < t.shape.group; g++)
        for (int64_t k = 0; k < terms; k++) {
            const int64_t span = t.along * t.tile->bk;
            const int64_t c = t.few ? k / taps : k % span, tap = t.few ? k % taps : k / span;
            for (int64_t m = 0; m < padded; m++)
                *to++ = m < each && c < channels
                            ? from[((g * each + m) * channels + c) * taps + tap]
                            : 0.0f;
        }
    return CNR_OK;
}

/* ---- planning and running ---- */

/* Plans for a row: builds the code, sets the workspace, and puts the state into *out. */
static cnr_status plan_row(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                           void **out, cnr_error *err, int32_t row, int half) {
    ocl_plan p;
    tile_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    if (!ocl_plan_unless(&p, tiling_of(device, node, row, &s->t))) return ocl_plan_end(&p, out);
    s->line = ocl_of(device)->tune->line;
    s->has_bias = cnr_own_input(node, 2) != NULL;
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_tile(&p, s->t.tile);
    ocl_plan_window(&p, &s->t.shape);
    if (s->t.few) ocl_plan_options(&p, "-DFEW ");
    if (!ocl_is_flat(&s->t.shape)) ocl_plan_options(&p, "-DDEEP ");
    if (half) ocl_plan_options(&p, "-DHALF ");
    ocl_plan_code(&p, &ocl_tile_source, "conv_tile", &s->code);
    if (s->t.splits > 1) {
        ocl_plan_code(&p, &ocl_tile_source, "conv_sum", &s->sum);
        workspace->bytes =
            (uint64_t)s->t.splits * (uint64_t)cnr_count(node->outputs[0]) * sizeof(float);
    }
    return ocl_plan_end(&p, out);
}

/* Pixels of a box over all samples, channels left out. */
static int64_t pixels_in(const ocl_box *box) {
    int64_t n = box->end[0] - box->begin[0];
    for (int32_t i = 2; i < 5; i++) n *= box->end[i] - box->begin[i];
    return n;
}

/* Sets the numbers that describe the box. */
static void numbers(ocl_call *call, const tile_state *s, const ocl_box *box, int64_t first) {
    const ocl_shape *g = &s->t.shape;
    const int64_t rows = box->end[3] - box->begin[3], wide = box->end[4] - box->begin[4];
    const int64_t shape[16] = {g->c,
                               g->c / g->group,
                               g->in[1],
                               g->in[2],
                               g->out[1],
                               g->out[2],
                               g->m,
                               g->m / g->group,
                               g->begin[1],
                               g->begin[2],
                               s->has_bias,
                               s->t.slices,
                               cnr_div_up(s->t.slices, s->t.splits),
                               s->t.tiles,
                               s->t.splits};
    const int64_t range[16] = {box->begin[0],
                               box->begin[3],
                               box->begin[4],
                               rows,
                               wide,
                               pixels_in(box),
                               box->begin[1],
                               box->end[1],
                               first,
                               box->begin[2],
                               box->end[2] - box->begin[2],
                               g->in[0],
                               g->out[0],
                               g->begin[0]};
    ocl_arg_longs(call, shape, 16);
    ocl_arg_longs(call, range, 16);
}

/* Launches the product, and the kernel that sums its parts. */
static cnr_status run_tile(const cnr_run *run, cnr_error *err) {
    const tile_state *s = run->state;
    const tiling *t = &s->t;
    const cnr_mem *x = &run->node->inputs[0]->mem, *y = &run->outputs[0]->mem;
    const cnr_mem *bias = s->has_bias ? &run->node->inputs[2]->mem : x;
    const int64_t each = t->shape.m / t->shape.group;
    ocl_call call;
    ocl_box box;
    ocl_box_of(run, &t->shape, &box);
    const int64_t pixels = pixels_in(&box);
    if (box.begin[1] >= box.end[1] || pixels <= 0) return CNR_OK;
    const int64_t first = box.begin[1] / each * t->tiles + box.begin[1] % each / t->tile->bm;
    const int64_t last = (box.end[1] - 1) / each * t->tiles + (box.end[1] - 1) % each / t->tile->bm;
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, x);
    ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, bias);
    ocl_arg_buffer(&call, y);
    ocl_arg_buffer(&call, t->splits > 1 ? run->workspace : y);
    numbers(&call, s, &box, first);
    ocl_chain_args(&call, &s->chain, run->node);
    const int32_t items = ocl_tile_items(t->tile);
    const cnr_status status = ocl_launch(&call, cnr_div_up(pixels, t->tile->bn) * items,
                                         last - first + 1, t->splits, items, err);
    if (status != CNR_OK || t->splits == 1) return status;
    ocl_begin(&call, run->stream, s->sum);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_buffer(&call, bias);
    ocl_arg_buffer(&call, y);
    numbers(&call, s, &box, first);
    ocl_chain_args(&call, &s->chain, run->node);
    return ocl_launch(&call, pixels * (box.end[1] - box.begin[1]), 1, 1, s->line, err);
}

/* Defines the functions and kernels of row i of the table of tiles. */
#define ROW(i) \
    OCL_ROW(i) \
    OCL_PLAN(plan_##i, plan_row(device, node, workspace, state, err, i, 0)) \
    OCL_PLAN(plan_half_##i, plan_row(device, node, workspace, state, err, i, 1)) \
    OCL_KERNEL(ocl_conv_tile_##i, "conv_f32_tile" #i, "conv", OCL_ROW_HOOKS(i), .plan = plan_##i, \
               .run = run_tile); \
    OCL_HALF_KERNEL(ocl_conv_tile_##i##_half, ocl_conv_tile_##i, "conv_f16_tile" #i, "conv", \
                    plan_half_##i, run_tile)
ROW(0)
ROW(1)
ROW(2)
ROW(3)
ROW(4)
ROW(5)
ROW(6)
ROW(7)

const cnr_kernel *const ocl_tile_rows[2][OCL_MOST_TILES] =
    {{&ocl_conv_tile_0, &ocl_conv_tile_1, &ocl_conv_tile_2, &ocl_conv_tile_3, &ocl_conv_tile_4,
      &ocl_conv_tile_5, &ocl_conv_tile_6, &ocl_conv_tile_7},
     {&ocl_conv_tile_0_half, &ocl_conv_tile_1_half, &ocl_conv_tile_2_half, &ocl_conv_tile_3_half,
      &ocl_conv_tile_4_half, &ocl_conv_tile_5_half, &ocl_conv_tile_6_half, &ocl_conv_tile_7_half}};
