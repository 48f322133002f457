/* conv in panels of registers, for devices without fast local memory: a kernel for each row of
 * the device's table. The input is laid out first, so that panels read whole vectors: padded and
 * divided into phases of the strides; as columns if pictures are small; not at all for windows
 * of one element. */
#include "op_conv.h"

#include "conv_panel.cl.h"

#include <math.h>
/* How the input is laid out. */
typedef enum layout { AS_IS, PADDED, COLUMNS } layout;

typedef struct panelling { /* how a row cuts a node */
    const ocl_panel *panel;
    ocl_shape shape;
    layout how;
    int64_t terms, blocks;         /* planes a group reads; blocks of channels in a group */
    int64_t phases[2], wide, high; /* extents of the laid-out input */
    int64_t plane, pixels, least,
        bytes; /* elements a term; to compute, to read at least; the layout's */
} panelling;

/* Plan of a convolution by panels. */
typedef struct panel_state {
    const ocl_code *code, *lay;
    ocl_chain chain;
    panelling p;
    int32_t line, has_bias;
} panel_state;

/* ---- the layout ---- */

/* 1 for windows of one pixel without stride or padding, in height and width. */
static int pointwise(const ocl_shape *s) {
    for (int32_t i = 1; i < 3; i++)
        if (s->k[i] != 1 || s->stride[i] != 1 || s->begin[i] || s->end[i]) return 0;
    return 1;
}

/* Lays the input out with padding, by phases of the stride. */
static void as_padded(panelling *p) {
    const ocl_shape *s = &p->shape;
    int64_t reach[2];
    p->how = PADDED;
    for (int32_t i = 0; i < 2; i++) {
        const int64_t taps = s->k[i + 1], step = s->stride[i + 1], wide = s->dilation[i + 1];
        p->phases[i] = wide == 1 && taps < step ? taps : step;
        reach[i] = (taps - 1) * wide / step;
    }
    p->high = s->out[1] + reach[0];
    p->wide = s->out[2] + reach[1];
    p->plane = p->phases[0] * p->phases[1] * s->n * p->high * p->wide;
    p->pixels = ((s->n - 1) * p->high + s->out[1] - 1) * p->wide + s->out[2];
    p->terms = s->c / s->group;
    /* the last vectors of the last channel reach past its plane */
    p->bytes = (s->c * p->plane + reach[0] * p->wide + reach[1] + p->panel->nv * p->panel->vw) * 4;
    p->least = INT32_MAX;
}

/* Lays the input out in columns: sets p's form and sizes for a copy with a row for each term of a
 * window. */
static void as_columns(panelling *p) {
    const ocl_shape *s = &p->shape;
    const int64_t item = p->panel->nv * p->panel->vw, pixels = s->out[1] * s->out[2];
    p->how = COLUMNS;
    p->high = 1;
    p->wide = pixels;
    p->pixels = s->n * pixels;
    p->plane = p->least = cnr_max(cnr_round_up(p->pixels, p->panel->vw), item);
    p->terms = s->c / s->group * s->k[1] * s->k[2];
    p->bytes = s->group * p->terms * p->plane * 4;
}

/* Reads the input in place: sets p's form and sizes for that. */
static void as_is(panelling *p) {
    const ocl_shape *s = &p->shape;
    p->how = AS_IS;
    p->high = 1;
    p->plane = p->wide = p->pixels = p->least = s->in[1] * s->in[2];
    p->terms = s->c / s->group;
}

/* Columns cost a copy of each tap, padding some pixels that are not stored. */
static void lay_out(panelling *p) {
    const ocl_shape *s = &p->shape;
    const int64_t item = p->panel->nv * p->panel->vw, pixels = s->out[1] * s->out[2];
    const int64_t image = s->in[1] * s->in[2];
    p->phases[0] = p->phases[1] = 1;
    if (pointwise(s) && image >= item && (s->n == 1 || image >= 4 * item)) as_is(p);
    else if (pixels <= 256 || (s->k[1] == 1 && s->k[2] == 1)) as_columns(p);
    else as_padded(p);
}

/* ---- accepting ---- */

double ocl_panel_use(const ocl_tune *tune, const ocl_panel *k) {
    const double products = k->mt * k->nv;
    /* a processor multiplies by a weight as it reads it, and reads pixels from its second-level
     * cache */
    const double loads = tune->rows ? 0.25 * k->mt + 1.5 * k->nv : 0.5 * k->mt + k->nv;
    return products / (products + loads);
}

/* Useful multiply-adds as a part of those computed, less for panels that load more a product. */
static double efficiency(const cnr_device *device, const panelling *p) {
    const ocl_tune *tune = ocl_of(device)->tune;
    const ocl_panel *k = p->panel;
    const ocl_shape *s = &p->shape;
    const double item = k->nv * k->vw, images = p->how == AS_IS ? (double)s->n : 1;
    const double pixels = (double)(s->n * s->out[1] * s->out[2]), useful = (double)s->m * pixels;
    const double done =
        images * ceil((double)p->pixels / item) * item * (double)(p->blocks * s->group * k->mt);
    const double narrow = k->vw < tune->wide ? 0.6 : 1;
    const double weights = tune->rows ? OCL_OF_A_WEIGHT / pixels : 0; /* are read for few pixels */
    return narrow / (done / useful / ocl_panel_use(tune, k) + weights);
}

/* Chooses layout and sizes for a row of the tune; NULL, or why not. */
static const char *panelling_of(const cnr_device *device, const cnr_node *node, int32_t row,
                                panelling *p) {
    const ocl_device *d = ocl_of(device);
    cnr_window w;
    if (row >= d->tune->n_panels) return "the device's table has no such row";
    const char *why = ocl_conv_window(node, &w);
    if (why) return why;
    if (!ocl_weight(cnr_own_input(node, 1))) return "the weight changes";
    *p = (panelling){.panel = &d->tune->panels[row]};
    ocl_shape_of(&w, node->inputs[0], node->outputs[0], ocl_conv_group(node), 0, &p->shape);
    const ocl_shape *s = &p->shape;
    if (!ocl_is_flat(s)) return "two spatial axes at most";
    if (s->group > 1 && s->m / s->group < 4) return "too few channels in a group";
    p->blocks = cnr_div_up(s->m / s->group, p->panel->mt);
    lay_out(p);
    return p->bytes / 4 < INT32_MAX ? NULL : "its layout is larger than kernels count";
}

/* Takes convolutions by that row; for others out->why says why. */
static cnr_status accepts_row(const cnr_device *device, const cnr_node *node, cnr_accept *out,
                              int32_t row) {
    panelling p;
    const char *why = panelling_of(device, node, row, &p);
    if (why) return cnr_refuse(out, why);
    out->prepared = 1 << 1;
    ocl_conv_take(node, out, 610 + (int32_t)(300 * efficiency(device, &p)));
    out->ranges = 1 << 1;
    return CNR_OK;
}

/* ---- weights: [block][term][MT] ---- */

/* Sets out->bytes to the packed weights' size for a row of the table of panels; fails where that
 * row does not fit. */
static cnr_status size_row(const cnr_device *device, const cnr_node *node, cnr_space *out,
                           cnr_error *err, int32_t row) {
    panelling p;
    CNR_TRY(ocl_unless(node, panelling_of(device, node, row, &p), err));
    out->bytes =
        (uint64_t)(p.shape.group * p.blocks * p.panel->mt * ocl_conv_terms(node)) * sizeof(float);
    return CNR_OK;
}

/* Packs the weights into blob in the row's panels; fails where the row does not fit. */
static cnr_status pack_row(const cnr_device *device, const cnr_node *node, void *blob,
                           cnr_error *err, int32_t row) {
    panelling p;
    CNR_TRY(ocl_unless(node, panelling_of(device, node, row, &p), err));
    const int64_t each = p.shape.m / p.shape.group, k = ocl_conv_terms(node), mt = p.panel->mt;
    const float *from = node->inputs[1]->data;
    float *to = blob;
    for (int64_t g = 0; g < p.shape.group; g++)
        for (int64_t b = 0; b < p.blocks; b++)
            for (int64_t i = 0; i < k; i++)
                for (int64_t q = 0; q < mt; q++)
                    *to++ = mt * b + q < each ? from[(g * each + mt * b + q) * k + i] : 0.0f;
    return CNR_OK;
}

/* ---- planning and running ---- */

void ocl_plan_panel(ocl_plan *p, const ocl_panel *k, const ocl_shape *s, int64_t phases) {
    ocl_plan_options(p, "-DMT=%d -DNV=%d -DVW=%d -DPW=%d ", k->mt, k->nv, k->vw, (int)phases);
    for (int32_t i = 1; i < 3; i++)
        ocl_plan_options(p, "-DK%c=%d -DS%c=%d -DD%c=%d ", "DHW"[i], s ? (int)s->k[i] : 1, "DHW"[i],
                         s ? (int)s->stride[i] : 1, "DHW"[i], s ? (int)s->dilation[i] : 1);
}

/* Plans for a row: builds the code, sets the workspace of the laid-out input, and puts the state
 * into *out. */
static cnr_status plan_row(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                           void **out, cnr_error *err, int32_t row, int how) {
    static const ocl_source source = OCL_SOURCE("common/conv_panel.cl", conv_panel_cl);
    ocl_plan p;
    panel_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    if (!ocl_plan_unless(&p, panelling_of(device, node, row, &s->p))) return ocl_plan_end(&p, out);
    const layout laid = s->p.how;
    s->line = s->p.panel->line;
    s->has_bias = cnr_own_input(node, 2) != NULL;
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_panel(&p, s->p.panel, laid == PADDED ? &s->p.shape : NULL, s->p.phases[1]);
    ocl_plan_terms(&p, how);
    ocl_plan_code(&p, &source, "conv_panel", &s->code);
    if (laid != AS_IS)
        ocl_plan_code(&p, &source, laid == PADDED ? "conv_stage" : "conv_columns", &s->lay);
    workspace->bytes = (uint64_t)s->p.bytes;
    return ocl_plan_end(&p, out);
}

/* Launches the kernel that lays the input out. */
static cnr_status lay(const cnr_run *run, const panel_state *s, cnr_error *err) {
    const panelling *p = &s->p;
    const ocl_shape *g = &p->shape;
    const int64_t taps = g->k[1] * g->k[2];
    const int64_t shape[16] =
        {g->c,      g->in[1],     g->in[2],     g->n,        p->how == PADDED ? p->wide : p->plane,
         p->high,   g->stride[1], g->stride[2], g->begin[1], g->begin[2],
         g->out[2], g->out[1],    g->k[1],      g->k[2]};
    const int64_t padded[4] = {p->phases[0], p->phases[1]};
    const int64_t columns[4] = {g->dilation[1], g->dilation[2]};
    const int64_t count =
        p->how == PADDED ? g->c * p->phases[0] * p->phases[1] * g->n * p->high : g->c * taps * g->n;
    ocl_call call;
    ocl_begin(&call, run->stream, s->lay);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_longs(&call, shape, 16);
    ocl_arg_longs(&call, p->how == PADDED ? padded : columns, 4);
    ocl_arg_int(&call, count);
    return ocl_launch(&call, count, 1, 1, s->line, err);
}

/* Lays out, then launches the product. */
static cnr_status run_panel(const cnr_run *run, cnr_error *err) {
    const panel_state *s = run->state;
    const panelling *p = &s->p;
    const ocl_shape *g = &p->shape;
    const cnr_mem *x = &run->node->inputs[0]->mem;
    const int64_t each = g->m / g->group, spatial = g->out[1] * g->out[2], mt = p->panel->mt;
    int64_t c0 = 0, c1 = g->m;
    ocl_call call;
    if (run->range_axis == 1) {
        c0 = run->range_begin;
        c1 = run->range_end;
    }
    if (c0 >= c1) return CNR_OK;
    if (p->how != AS_IS) CNR_TRY(lay(run, s, err));
    const int64_t first = c0 / each * p->blocks + c0 % each / mt;
    const int64_t last = (c1 - 1) / each * p->blocks + (c1 - 1) % each / mt;
    const int64_t shape[16] = {p->plane,
                               p->terms * p->plane,
                               p->how == AS_IS ? g->c * p->plane : 0,
                               p->terms,
                               p->wide,
                               p->high,
                               p->how == PADDED ? g->out[2] : spatial,
                               p->how == PADDED ? g->out[1] : 1,
                               g->m,
                               each,
                               s->has_bias,
                               p->blocks,
                               p->pixels,
                               p->least,
                               g->n * p->high * p->wide};
    const int64_t range[8] = {c0, c1, first};
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, p->how == AS_IS ? x : run->workspace);
    ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, s->has_bias ? &run->node->inputs[2]->mem : x);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, shape, 16);
    ocl_arg_longs(&call, range, 8);
    ocl_chain_args(&call, &s->chain, run->node);
    return ocl_launch(&call, cnr_div_up(p->pixels, p->panel->nv * p->panel->vw), last - first + 1,
                      p->how == AS_IS ? g->n : 1, s->line, err);
}

/* Defines the functions and kernels of row i of the table of panels. */
#define ROW(i) \
    OCL_ROW(i) \
    OCL_PLAN(plan_##i, plan_row(device, node, workspace, state, err, i, OCL_F32)) \
    OCL_PLAN(plan_half_##i, plan_row(device, node, workspace, state, err, i, OCL_F16)) \
    OCL_PLAN(plan_math_##i, plan_row(device, node, workspace, state, err, i, OCL_F16_MATH)) \
    OCL_KERNEL(ocl_conv_panel_##i, "conv_f32_panel" #i, "conv", OCL_ROW_HOOKS(i), \
               .plan = plan_##i, .run = run_panel); \
    OCL_HALF_KERNEL(ocl_conv_panel_##i##_half, ocl_conv_panel_##i, "conv_f16_panel" #i, "conv", \
                    plan_half_##i, run_panel) \
    OCL_MATH_KERNEL(ocl_conv_panel_##i##_math, ocl_conv_panel_##i##_half, ocl_conv_panel_##i, \
                    "conv_half_panel" #i, "conv", plan_math_##i, run_panel)
ROW(0)
ROW(1)
ROW(2)
ROW(3)
ROW(4)
ROW(5)

const cnr_kernel *const ocl_panel_rows[3][OCL_MOST_PANELS] =
    {{&ocl_conv_panel_0, &ocl_conv_panel_1, &ocl_conv_panel_2, &ocl_conv_panel_3, &ocl_conv_panel_4,
      &ocl_conv_panel_5},
     {&ocl_conv_panel_0_half, &ocl_conv_panel_1_half, &ocl_conv_panel_2_half,
      &ocl_conv_panel_3_half, &ocl_conv_panel_4_half, &ocl_conv_panel_5_half},
     {&ocl_conv_panel_0_math, &ocl_conv_panel_1_math, &ocl_conv_panel_2_math,
      &ocl_conv_panel_3_math, &ocl_conv_panel_4_math, &ocl_conv_panel_5_math}};
