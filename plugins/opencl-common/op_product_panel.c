/* dense, gemm and matmul of many rows in panels of registers, on devices without local memory:
 * rows of a are laid out like weights, and conv_panel's kernel treats them as channels and
 * columns of b as pixels. A matrix b that is a weight is packed; any other must be stored by
 * rows. */
#include "op_conv.h"
#include "op_dense.h"

#include "conv_panel.cl.h"

#include <math.h>
/* How a product is cut: the panel, blocks of columns, and elements from row to row of the laid-out
 * A. */
typedef struct paneled {
    ocl_product p;
    const ocl_panel *panel;
    int64_t blocks, pitch; /* blocks of rows; elements of a row of b */
    int packed;
} paneled;

/* What plan keeps for run: the code that lays A out, the code that multiplies, and the cut. */
typedef struct product_state {
    const ocl_code *lay, *code;
    ocl_chain chain;
    paneled q;
    int32_t line;
} product_state;

/* Estimated work of the product cut into panels of k, with the columns rounded up to whole work-
 * items. */
static double work_of(const ocl_tune *tune, const ocl_panel *k, const ocl_product *p) {
    const double item = k->nv * k->vw;
    return ceil((double)p->n / item) * item * (double)cnr_round_up(p->m, k->mt) /
           ocl_panel_use(tune, k);
}

/* Chooses into *q how the product is cut into panels; returns why it cannot be, or NULL. */
static const char *cut(const cnr_device *device, const cnr_node *node, paneled *q) {
    const ocl_tune *tune = ocl_of(device)->tune;
    *q = (paneled){0};
    const cnr_tensor *b = cnr_own_input(node, 1);
    q->packed = b && b->flags & CNR_TENSOR_CONST && ocl_product_packs(node, &q->p);
    if (q->packed) q->p.batch = 1; /* its samples are rows of m */
    if (!q->packed && !ocl_product_of(node, &q->p)) return "it is no plain product of dense f32";
    if (!q->packed && q->p.b_column != 1) return "rows of b are wanted";
    for (int32_t i = 0; i < tune->n_panels; i++) {
        const ocl_panel *k = &tune->panels[i];
        if ((!q->packed && k->nv * k->vw > q->p.n) || k->vw < tune->wide) continue;
        if (!q->panel || work_of(tune, k, &q->p) < work_of(tune, q->panel, &q->p)) q->panel = k;
    }
    if (!q->panel) return "the device's table has no panel as narrow";
    q->blocks = cnr_div_up(q->p.m, q->panel->mt);
    q->pitch = q->packed ? cnr_max(q->panel->nv * q->panel->vw, cnr_round_up(q->p.n, q->panel->vw))
                         : q->p.n;
    return q->p.batch * q->blocks * q->panel->mt * q->p.k < INT32_MAX &&
                   q->p.k * q->pitch < INT32_MAX
               ? NULL
               : "it is larger than kernels count";
}

/* Takes products that can be cut into panels, with a score from the estimated work; for others
 * out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const ocl_tune *tune = ocl_of(device)->tune;
    paneled q;
    const char *why = cut(device, node, &q);
    if (why) return cnr_refuse(out, why);
    if (q.packed) out->prepared = 1 << 1;
    const double use = (double)(q.p.m * q.p.n) / work_of(tune, q.panel, &q.p);
    const int32_t score = 610 + (int32_t)(300 * use),
                  most = q.packed && q.p.m <= 16 ? 690 : 1000; /* gemv's */
    ocl_product_take(node, out,
                     tune->rows ? (int32_t)cnr_min(score, most) : 110); /* where it was measured */
    out->ranges = 0;
    return CNR_OK;
}

/* Method prepare_size: bytes of the packed weights; 0: none. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    paneled q;
    CNR_TRY(ocl_unless(node, cut(device, node, &q), err));
    out->bytes = q.packed ? (uint64_t)(q.p.k * q.pitch) * sizeof(float) : 0;
    return CNR_OK;
}

/* Method prepare: packs the node's weights into blob. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    paneled q;
    CNR_TRY(ocl_unless(node, cut(device, node, &q), err));
    const float *from = node->inputs[1]->data;
    float *to = blob;
    for (int64_t k = 0; k < q.p.k; k++)
        for (int64_t j = 0; j < q.pitch; j++)
            *to++ = j < q.p.n ? from[k * q.p.b_step + j * q.p.b_column] : 0.0f;
    return CNR_OK;
}

/* Method plan: finds the device code and keeps what run needs in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **out, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/conv_panel.cl", conv_panel_cl);
    const ocl_tune *tune = ocl_of(device)->tune;
    ocl_plan p;
    product_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    if (!ocl_plan_unless(&p, cut(device, node, &s->q))) return ocl_plan_end(&p, out);
    s->line = tune->rows ? 1 : tune->line;
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_options(&p, "-DPRODUCT ");
    ocl_plan_panel(&p, s->q.panel, NULL, 1);
    ocl_plan_code(&p, &source, "product_lay", &s->lay);
    ocl_plan_code(&p, &source, "conv_panel", &s->code);
    workspace->bytes =
        (uint64_t)(s->q.p.batch * s->q.blocks * s->q.panel->mt * s->q.p.k) * sizeof(float);
    return ocl_plan_end(&p, out);
}

/* Queues the code that lays A out in blocks of rows in the workspace. */
static cnr_status lay(const cnr_run *run, const product_state *s, cnr_error *err) {
    const ocl_product *p = &s->q.p;
    const int64_t steps[8] = {p->m, p->k, p->a_row, p->a_step, p->a_batch, s->q.blocks};
    const union {
        cl_float f;
        cl_int i;
    } alpha = {(cl_float)p->alpha};
    ocl_call call;
    ocl_begin(&call, run->stream, s->lay);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_longs(&call, steps, 8);
    ocl_arg_int(&call, alpha.i);
    return ocl_launch(&call, s->q.blocks, p->batch, 1, s->line, err);
}

/* Lays A out, then launches the product for the run's part. */
static cnr_status run_product(const cnr_run *run, cnr_error *err) {
    const product_state *s = run->state;
    const paneled *q = &s->q;
    const ocl_product *p = &q->p;
    const cnr_node *node = run->node;
    const int64_t shape[16] = {q->pitch, 0,    p->b_batch,   p->k,      p->n, 1,        p->n, 1,
                               p->m,     p->m, p->c != NULL, q->blocks, p->n, q->pitch, p->n};
    const int64_t range[8] = {0, p->m, 0, q->blocks * p->k * q->panel->mt, p->c_row, p->c_column};
    const union {
        cl_float f;
        cl_int i;
    } beta = {(cl_float)p->beta};
    ocl_call call;
    CNR_TRY(lay(run, s, err));
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, q->packed ? run->blob : &node->inputs[1]->mem);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_buffer(&call, p->c ? &node->inputs[2]->mem : run->workspace);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, shape, 16);
    ocl_arg_longs(&call, range, 8);
    ocl_arg_int(&call, beta.i);
    ocl_chain_args(&call, &s->chain, node);
    return ocl_launch(&call, cnr_div_up(p->n, q->panel->nv * q->panel->vw), q->blocks, p->batch,
                      q->panel->line, err);
}

/* Registers the panel kernel of operator op_name. */
#define ROW(op_name) \
    OCL_KERNEL(ocl_##op_name##_panel, #op_name "_f32_panel", #op_name, .accepts = accepts, \
               .prepare_size = prepare_size, .prepare = prepare, .plan = plan, \
               .run = run_product);
ROW(dense)
ROW(gemm)
ROW(matmul)
