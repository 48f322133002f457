/* conv of 3x3 windows as Winograd's F(2x2, 3x3) and F(4x4, 3x3): tiles are transformed before
 * and after, with a matrix product for each component between, in panels of registers. Tiles are
 * processed in passes whose intermediate data fits the cache. */
#include "op_conv.h"

#include "conv_panel.cl.h"
#include "conv_winograd.cl.h"

#include <math.h>
/* How a node is cut: tiles of `edge` outputs, passes of `pass` tiles, and sizes of the transformed
 * planes. */
typedef struct wino {
    ocl_shape shape;
    const ocl_panel *panel;
    /* Edge of a tile's outputs; tiles of all samples. */
    int64_t edge, components, high, wide, tiles;
    int64_t pass, pitch, blocks; /* tiles at a time; as stored; panels of channels */
    int32_t lanes;
    double share; /* the multiply-adds of a direct convolution that can be done in this time */
} wino;

/* Plan of a convolution by Winograd's method. */
typedef struct wino_state {
    const ocl_code *in, *product, *out;
    ocl_chain chain;
    wino w;
    int32_t line, has_bias;
} wino_state;

enum { BLOCK = 64 }; /* tiles a work-item on processors */

/* ---- cutting ---- */

/* Multiply-adds of a component's product of `tiles`, with what the panel loads and computes in
 * vain. */
static double work_of(const ocl_tune *tune, const wino *w, const ocl_panel *k, int64_t tiles) {
    const double item = k->nv * k->vw,
                 channels = (double)(cnr_round_up(w->shape.m, k->mt) * w->shape.c);
    return ceil((double)tiles / item) * item * channels / ocl_panel_use(tune, k);
}

/* Sets w->panel to the panel with the least work. */
static void choose_panel(const ocl_tune *tune, wino *w) {
    double least = INFINITY;
    for (int32_t i = 0; i < tune->n_panels; i++) {
        const ocl_panel *k = &tune->panels[i];
        const double work = k->vw < tune->wide ? INFINITY : work_of(tune, w, k, w->pass);
        if (w->panel && work >= least) continue;
        w->panel = k;
        least = work;
    }
}

/* Chooses the tiles of a pass: as many as fit the cache, if reading the weights again for each
 * pass costs less than moving intermediate data through memory. */
static void choose_pass(const ocl_tune *tune, wino *w) {
    const ocl_shape *s = &w->shape;
    const double tile = (double)(w->components * (s->c + s->m)) * sizeof(float);
    const double weights = (double)(w->components * s->c * s->m) * sizeof(float);
    const int64_t fits = cnr_max(1, (int64_t)(tune->cache / tile) / 48) * 48;
    w->pass = w->tiles;
    if (tune->cache <= 0 || fits >= w->tiles) return;
    const int64_t passes = cnr_div_up(w->tiles, fits);
    if ((double)(passes - 1) * weights < 2 * tile * (double)w->tiles)
        w->pass = cnr_min(w->tiles, cnr_round_up(cnr_div_up(w->tiles, passes), 48));
}

/* Costs in multiply-adds: of transforming one component of a tile. Measured on two cores. */
enum { OF_A_TRANSFORM = 90 };

/* Estimated gain: the direct convolution's multiply-adds over those of Winograd's products,
 * transforms and weights; above 1 is faster. */
static double gain_of(const ocl_tune *tune, const wino *w) {
    const ocl_shape *s = &w->shape;
    const double direct = 9.0 * (double)(s->n * s->out[1] * s->out[2] * s->c * s->m);
    const double passes = (double)cnr_div_up(w->tiles, w->pass);
    const double product = passes * (double)w->components * work_of(tune, w, w->panel, w->pass);
    const double weights = (double)(w->components * s->c * s->m) * OCL_OF_A_WEIGHT;
    const double transforms = (double)(w->components * w->tiles * (s->c + s->m)) * OF_A_TRANSFORM;
    return direct / (product + transforms + weights);
}

/* Fills *w: the output cut into tiles of an edge; returns NULL, or why the node is not taken. */
static const char *cut(const cnr_device *device, const cnr_node *node, int64_t edge, wino *w) {
    const ocl_tune *tune = ocl_of(device)->tune;
    cnr_window window;
    const char *why = ocl_conv_window(node, &window);
    if (why) return why;
    if (tune->n_panels == 0 || tune->winograd == 0) return "this device is better without";
    if (!ocl_weight(cnr_own_input(node, 1))) return "the weight changes";
    *w = (wino){.edge = edge, .components = (edge + 2) * (edge + 2), .lanes = tune->winograd};
    ocl_shape *s = &w->shape;
    ocl_shape_of(&window, node->inputs[0], node->outputs[0], ocl_conv_group(node), 0, s);
    if (s->spatial != 2 || s->group != 1) return "pictures, and one group, are wanted";
    for (int32_t i = 1; i < 3; i++)
        if (s->k[i] != 3 || s->stride[i] != 1 || s->dilation[i] != 1)
            return "3x3 windows with stride and dilation 1 are wanted";
    w->high = cnr_div_up(s->out[1], edge);
    w->wide = cnr_div_up(s->out[2], edge);
    w->tiles = s->n * w->high * w->wide;
    choose_pass(tune, w);
    choose_panel(tune, w);
    w->blocks = cnr_div_up(s->m, w->panel->mt);
    const int64_t item = w->panel->nv * w->panel->vw;
    w->pitch = cnr_max(item, cnr_round_up(w->pass, cnr_max(w->lanes, w->panel->vw)));
    w->share = gain_of(tune, w);
    return w->components * (s->c + s->m) * w->pitch < INT32_MAX
               ? NULL
               : "what is between is more than kernels count";
}

/* Takes convolutions of 3 x 3 by tiles of that edge; for others out->why says why. */
static cnr_status accepts_row(const cnr_device *device, const cnr_node *node, cnr_accept *out,
                              int32_t edge) {
    wino w;
    const char *why = cut(device, node, edge, &w);
    if (why) return cnr_refuse(out, why);
    out->prepared = 1 << 1;
    /* beside the panels' score, which is made of the same share; only where it was measured */
    ocl_conv_take(node, out,
                  ocl_of(device)->tune->cache > 0 ? (int32_t)fmin(990, 610 + 300 * w.share) : 300);
    out->ranges = 0;
    return CNR_OK;
}

/* Floating-point operations of products and transforms, counted like plugins/cpu-neon/winograd.c;
 * 0: the node cannot be cut. */
static double flops_edge(const cnr_device *device, const cnr_node *node, int32_t edge) {
    wino w;
    if (cut(device, node, edge, &w)) return 0;
    const double products = 2.0 * (double)w.components * (double)(w.shape.c * w.shape.m);
    return (double)w.tiles *
           (products + (edge == 2 ? 100.0 : 400.0) * (double)(w.shape.c + w.shape.m));
}

/* ---- weights: [component][block][channel in][MT] ---- */

/* Sets out->bytes to the transformed weights' size; fails where the node cannot be cut. */
static cnr_status size_row(const cnr_device *device, const cnr_node *node, cnr_space *out,
                           cnr_error *err, int32_t edge) {
    wino w;
    CNR_TRY(ocl_unless(node, cut(device, node, edge, &w), err));
    out->bytes = (uint64_t)(w.components * w.blocks * w.panel->mt * w.shape.c) * sizeof(float);
    return CNR_OK;
}

/* out[0 .. edge + 1] = matrix G times three values of x that are `step` apart. */
static void weight_row(const double *x, int32_t step, int64_t edge, double *out) {
    const double a = x[0], b = x[step], c = x[2 * step], near = sqrt(0.5), far = sqrt(2);
    if (edge == 4) {
        const double rows[6] = {a,
                                -2.0 / 3 * (a + near * b + c / 2),
                                -2.0 / 3 * (a - near * b + c / 2),
                                (a + far * b + 2 * c) / 6,
                                (a - far * b + 2 * c) / 6,
                                c};
        memcpy(out, rows, sizeof rows);
    } else {
        const double rows[4] = {a, (a + b + c) / 2, (a - b + c) / 2, c};
        memcpy(out, rows, sizeof rows);
    }
}

/* out receives G g G^T of the window `from`, for tiles of edge x edge outputs. */
static void weight_of(const float *from, int64_t edge, double *out) {
    const int32_t a = (int32_t)edge + 2;
    double window[9], half_way[3 * 6], row[6];
    for (int32_t i = 0; i < 9; i++) window[i] = from[i];
    for (int32_t j = 0; j < 3; j++) {
        weight_row(window + j, 3, edge, row);
        for (int32_t i = 0; i < a; i++) half_way[i * 3 + j] = row[i];
    }
    for (int32_t i = 0; i < a; i++) weight_row(half_way + i * 3, 1, edge, out + i * a);
}

/* Transforms the weights into blob, in panels; fails where the node cannot be cut. */
static cnr_status pack_row(const cnr_device *device, const cnr_node *node, void *blob,
                           cnr_error *err, int32_t edge) {
    wino w;
    CNR_TRY(ocl_unless(node, cut(device, node, edge, &w), err));
    const int64_t mt = w.panel->mt, c = w.shape.c, apart = w.blocks * c * mt;
    const float *from = node->inputs[1]->data;
    float *to = blob;
    memset(blob, 0, (size_t)(w.components * apart) * sizeof(float));
    for (int64_t m = 0; m < w.shape.m; m++)
        for (int64_t k = 0; k < c; k++) {
            double one[36];
            weight_of(from + (m * c + k) * 9, edge, one);
            for (int64_t i = 0; i < w.components; i++)
                to[i * apart + (m / mt * c + k) * mt + m % mt] = (float)one[i];
        }
    return CNR_OK;
}

/* ---- planning and running ---- */

/* The transform of the outputs has what follows the node. */
static void codes_of(ocl_plan *p, wino_state *s) {
    static const ocl_source transforms = OCL_SOURCE("common/conv_winograd.cl", conv_winograd_cl);
    static const ocl_source panel = OCL_SOURCE("common/conv_panel.cl", conv_panel_cl);
    const cnr_node *node = p->node;
    ocl_chain empty;
    cnr_node bare = *node;
    bare.n_epilogue = 0;
    ocl_plan_chain(p, &s->chain);
    ocl_plan_options(p, "-DEDGE=%d -DVW=%d -DBLOCK=%d ", (int)s->w.edge, (int)s->w.lanes,
                     s->w.lanes > 1 ? BLOCK : 1);
    ocl_plan_code(p, &transforms, "winograd_out", &s->out);
    p->node = &bare;
    ocl_plan_chain(p, &empty);
    ocl_plan_code(p, &transforms, "winograd_in", &s->in);
    p->options[0] = 0;
    ocl_plan_panel(p, s->w.panel, NULL, 1);
    ocl_plan_code(p, &panel, "conv_panel", &s->product);
    p->node = node;
}

/* Plans tiles of `edge`: builds the code, sets the workspace, and puts the state into *out. */
static cnr_status plan_row(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                           void **out, cnr_error *err, int32_t edge) {
    ocl_plan p;
    wino_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    if (ocl_plan_unless(&p, cut(device, node, edge, &s->w))) codes_of(&p, s);
    s->line = ocl_of(device)->tune->line;
    s->has_bias = cnr_own_input(node, 2) != NULL;
    workspace->bytes =
        (uint64_t)(s->w.components * (s->w.shape.c + s->w.shape.m) * s->w.pitch) * sizeof(float);
    return ocl_plan_end(&p, out);
}

/* The part of the workspace behind the transformed input, where products go; not to be freed. */
static cnr_mem sums_of(const cnr_run *run, const wino *w) {
    cnr_mem m = *run->workspace;
    m.offset += (uint64_t)(w->components * w->shape.c * w->pitch) * sizeof(float);
    return m;
}

/* Launches the products of all components of one pass. */
static cnr_status product(const cnr_run *run, const wino_state *s, cnr_error *err) {
    const wino *w = &s->w;
    const int64_t m = w->shape.m, p = w->pitch;
    const int64_t shape[16] = {p, w->shape.c * p, 0, w->shape.c, p, 1, p, 1, w->components * m, m,
                               0, w->blocks,      p, p,          p};
    const int64_t range[8] = {0, w->components * m, 0};
    const cnr_mem sums = sums_of(run, w);
    ocl_call call;
    ocl_begin(&call, run->stream, s->product);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, run->workspace); /* no bias */
    ocl_arg_buffer(&call, &sums);
    ocl_arg_longs(&call, shape, 16);
    ocl_arg_longs(&call, range, 8);
    return ocl_launch(&call, cnr_div_up(p, w->panel->nv * w->panel->vw), w->components * w->blocks,
                      1, w->panel->line, err);
}

/* Computes some tiles: transform, products, transform back. */
static cnr_status pass(const cnr_run *run, const wino_state *s, int64_t first, cnr_error *err) {
    const wino *w = &s->w;
    const ocl_shape *g = &w->shape;
    const int64_t shape[16] = {g->c,    g->in[1], g->in[2],    g->m,        g->out[1],   g->out[2],
                               w->high, w->wide,  g->begin[1], g->begin[2], s->has_bias, w->pitch};
    const int64_t range[2] = {first, cnr_min(w->pass, w->tiles - first)};
    const int64_t block = w->lanes > 1 ? BLOCK : 1, line = w->lanes > 1 ? 1 : s->line;
    const cnr_mem *x = &run->node->inputs[0]->mem, sums = sums_of(run, w);
    ocl_call call;
    ocl_begin(&call, run->stream, s->in);
    ocl_arg_buffer(&call, x);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_longs(&call, shape, 16);
    ocl_arg_longs(&call, range, 2);
    CNR_TRY(ocl_launch(&call, cnr_div_up(w->pitch, block), g->c, 1, (int32_t)line, err));
    CNR_TRY(product(run, s, err));
    ocl_begin(&call, run->stream, s->out);
    ocl_arg_buffer(&call, &sums);
    ocl_arg_buffer(&call, s->has_bias ? &run->node->inputs[2]->mem : x);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, shape, 16);
    ocl_arg_longs(&call, range, 2);
    ocl_chain_args(&call, &s->chain, run->node);
    return ocl_launch(&call, cnr_div_up(range[1], block), g->m, 1, (int32_t)line, err);
}

/* Computes all tiles. */
static cnr_status run_wino(const cnr_run *run, cnr_error *err) {
    const wino_state *s = run->state;
    for (int64_t first = 0; first < s->w.tiles; first += s->w.pass)
        CNR_TRY(pass(run, s, first, err));
    return CNR_OK;
}

/* Defines the functions and kernel of tiles of `edge` outputs. */
#define ROW(edge) \
    OCL_ROW(edge) \
    OCL_PLAN(plan_##edge, plan_row(device, node, workspace, state, err, edge)) \
    static double flops_##edge(const cnr_device *device, const cnr_node *node) { \
        return flops_edge(device, node, edge); \
    } \
    OCL_KERNEL(ocl_conv_winograd_##edge, "conv_f32_winograd" #edge, "conv", OCL_ROW_HOOKS(edge), \
               .plan = plan_##edge, .run = run_wino, .flops = flops_##edge, \
               .flags = CNR_KERNEL_SPREADS_NAN);
ROW(2)
ROW(4)
