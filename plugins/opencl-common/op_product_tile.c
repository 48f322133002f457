/* dense, gemm and matmul by tiles in local memory, operands as they are stored, on devices whose
 * table has tiles: the row that is through first. */
#include "op_dense.h"

#include <math.h>
typedef struct tile_state {
    const ocl_code *code;
    ocl_chain chain;
    ocl_product p;
    const ocl_tile *tile;
} tile_state;

enum { LEAST = 16, SOME = 300, MANY = 700 };

static double groups_of(const ocl_tile *t, const ocl_product *p) {
    return (double)(cnr_div_up(p->m, t->bm) * cnr_div_up(p->n, t->bn) * p->batch);
}

/* As long as its fullest unit takes; small tiles load more for each product. */
static double work_of(const ocl_tile *t, const ocl_product *p, double units) {
    const double each = t->tm * t->tn, beside = fmax(1, 256.0 / ocl_tile_items(t));
    return ceil(groups_of(t, p) / (units * beside)) * beside * t->bm * t->bn * (each + 4) / each;
}

static const char *cut(const cnr_device *device, const cnr_node *node, ocl_product *p,
                       const ocl_tile **tile) {
    const ocl_device *d = ocl_of(device);
    const double units = d->found->units > 0 ? d->found->units : 1;
    *tile = NULL;
    if (d->tune->n_tiles == 0) return "the device's table has no tiles";
    if (!ocl_product_of(node, p)) return OCL_NO_PRODUCT;
    if (p->m < LEAST || p->n < LEAST || p->k < LEAST) return "it is too small for tiles";
    for (int32_t i = 0; i < d->tune->n_tiles; i++) {
        const ocl_tile *t = &d->tune->tiles[i];
        if (!ocl_tile_fits(d, t, 8)) continue;
        if (!*tile || work_of(t, p, units) < work_of(*tile, p, units)) *tile = t;
    }
    return *tile ? NULL : "no tile is small enough for the device";
}

static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const ocl_tile *tile;
    ocl_product p;
    const char *why = cut(device, node, &p, &tile);
    if (why) return cnr_refuse(out, why);
    return ocl_product_take(node, out,
                            groups_of(tile, &p) >= ocl_of(device)->found->units ? MANY : SOME);
}

static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **out, cnr_error *err) {
    ocl_plan p;
    (void)workspace;
    tile_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    if (!ocl_plan_unless(&p, cut(device, node, &s->p, &s->tile))) return ocl_plan_end(&p, out);
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_options(&p, "-DPRODUCT %s%s", s->p.a_step == 1 ? "-DA_ALONG " : "",
                     s->p.b_column == 1 ? "-DB_ALONG " : "");
    ocl_plan_tile(&p, s->tile);
    ocl_plan_code(&p, &ocl_tile_source, "matrix_tile", &s->code);
    return ocl_plan_end(&p, out);
}

static cnr_status run_tile(const cnr_run *run, cnr_error *err) {
    const tile_state *s = run->state;
    const int32_t items = ocl_tile_items(s->tile);
    int64_t row[2], column[2];
    ocl_call call;
    if (!ocl_product_begin(&call, run, s->code, &s->p, &s->chain, row, column)) return CNR_OK;
    return ocl_launch(&call, cnr_div_up(column[1] - column[0], s->tile->bn) * items,
                      cnr_div_up(row[1] - row[0], s->tile->bm), s->p.batch, items, err);
}

#define ROW(op_name) \
    OCL_KERNEL(ocl_##op_name##_tile, #op_name "_f32_tile", #op_name, .accepts = accepts, \
               .plan = plan, .run = run_tile);
ROW(dense)
ROW(gemm)
ROW(matmul)
