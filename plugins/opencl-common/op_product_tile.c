/* dense, gemm and matmul by tiles in local memory, operands as they are stored, on devices whose table has
 * tiles: the row that is through first. */
#include "op_dense.h"

#include "matrix_tile.cl.h"

#include <math.h>
#include <stdio.h>

typedef struct tile_state {
    const ocl_code *code;
    ocl_chain chain;
    ocl_product p;
    const ocl_tile *tile;
} tile_state;

enum { LEAST = 16, SOME = 300, MANY = 700 };

static int32_t items_of(const ocl_tile *t) { return t->bm / t->tm * (t->bn / t->tn); }

static double groups_of(const ocl_tile *t, const ocl_product *p) {
    return (double)(cnr_div_up(p->m, t->bm) * cnr_div_up(p->n, t->bn) * p->batch);
}

/* As long as its fullest unit takes; small tiles load more for each product. */
static double work_of(const ocl_tile *t, const ocl_product *p, double units) {
    const double each = t->tm * t->tn, beside = fmax(1, 256.0 / items_of(t));
    return ceil(groups_of(t, p) / (units * beside)) * beside * t->bm * t->bn * (each + 4) / each;
}

static const char *cut(const cnr_device *device, const cnr_node *node, ocl_product *p, const ocl_tile **tile) {
    const ocl_device *d = ocl_of(device);
    const double units = d->found->units > 0 ? d->found->units : 1;
    *tile = NULL;
    if (d->tune->n_tiles == 0) return "the device's table has no tiles";
    if (!ocl_product_of(node, p)) return OCL_NO_PRODUCT;
    if (p->m < LEAST || p->n < LEAST || p->k < LEAST) return "it is too small for tiles";
    for (int32_t i = 0; i < d->tune->n_tiles; i++) {
        const ocl_tile *t = &d->tune->tiles[i];
        const cl_ulong local = (cl_ulong)(2 * t->bk * (t->bm + t->bn + 8)) * sizeof(float);
        if ((size_t)items_of(t) > d->most_items[0] || (size_t)items_of(t) > d->most_group ||
            local > d->found->local_bytes)
            continue;
        if (!*tile || work_of(t, p, units) < work_of(*tile, p, units)) *tile = t;
    }
    return *tile ? NULL : "no tile is small enough for the device";
}

static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const ocl_tile *tile;
    ocl_product p;
    const char *why = cut(device, node, &p, &tile);
    if (why) return cnr_refuse(out, why);
    return ocl_product_take(node, out, groups_of(tile, &p) >= ocl_of(device)->found->units ? MANY : SOME);
}

static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace, void **out,
                       cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/matrix_tile.cl", matrix_tile_cl);
    char head[OCL_HEAD_BYTES], options[256];
    (void)workspace;
    tile_state *s = cnr_state(ocl_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    const char *why = cut(device, node, &s->p, &s->tile);
    cnr_status status = why ? ocl_host->fail(err, CNR_E_STATE, node->name, "%s", why) : CNR_OK;
    if (status == CNR_OK) status = ocl_chain_plan(node, &s->chain, head, err);
    if (status == CNR_OK) {
        const ocl_tile *t = s->tile;
        snprintf(options, sizeof options, "-DBM=%d -DBN=%d -DBK=%d -DTM=%d -DTN=%d%s%s", t->bm, t->bn, t->bk,
                 t->tm, t->tn, s->p.a_step == 1 ? " -DA_ALONG" : "", s->p.b_column == 1 ? " -DB_ALONG" : "");
        status = ocl_code_get(device, &source, head, options, "matrix_tile", &s->code, err);
    }
    if (status == CNR_OK) *out = s;
    else ocl_host->free(s);
    return status;
}

static cnr_status run_tile(const cnr_run *run, cnr_error *err) {
    const tile_state *s = run->state;
    const cnr_node *node = run->node;
    const ocl_product *p = &s->p;
    int64_t row[2], column[2];
    ocl_call call;
    ocl_product_range(run, p, row, column);
    if (row[0] >= row[1] || column[0] >= column[1] || p->batch < 1) return CNR_OK;
    const cl_int steps[8] = {(cl_int)p->a_row, (cl_int)p->a_step, (cl_int)p->b_column, (cl_int)p->b_step,
                             (cl_int)p->c_row, (cl_int)p->c_column, (cl_int)p->n};
    const cl_int range[8] = {(cl_int)row[0], (cl_int)row[1], (cl_int)column[0], (cl_int)column[1],
                             (cl_int)p->k, p->c != NULL};
    const cl_int batch[4] = {(cl_int)p->a_batch, (cl_int)p->b_batch, (cl_int)(p->m * p->n)};
    const union { cl_float f[2]; cl_int i[2]; } factors = {{(cl_float)p->alpha, (cl_float)p->beta}};
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &node->inputs[0]->mem);
    ocl_arg_buffer(&call, &node->inputs[1]->mem);
    ocl_arg_buffer(&call, p->c ? &node->inputs[2]->mem : &node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_ints(&call, steps, 8);
    ocl_arg_ints(&call, range, 8);
    ocl_arg_ints(&call, batch, 4);
    ocl_arg_ints(&call, factors.i, 2);
    ocl_chain_args(&call, &s->chain, node);
    const int32_t items = items_of(s->tile);
    return ocl_launch(&call, cnr_div_up(column[1] - column[0], s->tile->bn) * items,
                      cnr_div_up(row[1] - row[0], s->tile->bm), p->batch, items, err);
}

#define ROW(op_name)                                                                             \
    const cnr_kernel ocl_##op_name##_tile = {                                                    \
        .size = sizeof(cnr_kernel), .version = 1, .name = #op_name "_f32_tile", .op = #op_name,  \
        .accepts = accepts, .plan = plan, .unplan = ocl_free_state, .run = run_tile};
ROW(dense)
ROW(gemm)
ROW(matmul)
