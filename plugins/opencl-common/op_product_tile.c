/* dense, gemm and matmul by tiles in local memory, operands as they are stored, on devices whose
 * table has tiles: the row that is through first. */
#include "op_dense.h"

#include <math.h>
/* What plan keeps for run: the codes of product and sum, the tile, and the number of slices of
 * k. */
typedef struct tile_state {
    const ocl_code *code, *sum;
    ocl_chain chain;
    ocl_product p;
    const ocl_tile *tile;
    int32_t splits, line;
} tile_state;

enum { LEAST = 16, SCORE = 550 };

/* Chooses the row of the table, and how the sum is cut, with the estimated *ns; NULL, or why there
 * is none. */
static const char *cut(const cnr_device *device, const cnr_node *node, tile_state *s, double *ns) {
    const ocl_device *d = ocl_of(device);
    ocl_product *p = &s->p;
    s->tile = NULL;
    if (d->tune->n_tiles == 0) return "the device's table has no tiles";
    if (!ocl_product_of(node, p)) return OCL_NO_PRODUCT;
    if (p->m < LEAST || p->n < LEAST || p->k < LEAST) return "it is too small for tiles";
    for (int32_t i = 0; i < d->tune->n_tiles; i++) {
        const ocl_tile *t = &d->tune->tiles[i];
        const ocl_tile_work work = {.slices = cnr_div_up(p->k, t->bk),
                                    .groups = (double)(cnr_div_up(p->m, t->bm) *
                                                       cnr_div_up(p->n, t->bn) * p->batch),
                                    .outputs = (double)(p->m * p->n * p->batch)};
        int32_t splits = 1;
        if (!ocl_tile_fits(d, t, 8)) continue;
        const double time = ocl_tile_ns(d, t, &work, &splits);
        if (s->tile && time >= *ns) continue;
        s->tile = t;
        s->splits = splits;
        *ns = time;
    }
    return s->tile ? NULL : "no tile is small enough for the device";
}

/* Takes products that a tile of the device suits, with a score from the estimated nanoseconds; for
 * others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    tile_state s;
    double ns = 0;
    const char *why = cut(device, node, &s, &ns);
    if (why) return cnr_refuse(out, why);
    return ocl_product_take(node, out, s.p.m == LEAST ? SCORE : ocl_tile_score(ns, SCORE));
}

/* Method plan: finds the device code and keeps what run needs in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **out, cnr_error *err) {
    ocl_plan p;
    double ns = 0;
    tile_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    if (!ocl_plan_unless(&p, cut(device, node, s, &ns))) return ocl_plan_end(&p, out);
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_options(&p, "-DPRODUCT %s%s", s->p.a_step == 1 ? "-DA_ALONG " : "",
                     s->p.b_column == 1 ? "-DB_ALONG " : "");
    ocl_plan_tile(&p, s->tile);
    if (s->splits > 1) {
        ocl_plan_options(&p, "-DSPLIT ");
        ocl_plan_code(&p, &ocl_tile_source, "matrix_sum", &s->sum);
        workspace->bytes =
            (uint64_t)s->splits * (uint64_t)cnr_count(node->outputs[0]) * sizeof(float);
    }
    ocl_plan_code(&p, &ocl_tile_source, "matrix_tile", &s->code);
    s->line = ocl_of(device)->tune->line;
    return ocl_plan_end(&p, out);
}

/* Launches the product for the run's part, and the sum of its slices where k is split. */
static cnr_status run_tile(const cnr_run *run, cnr_error *err) {
    const tile_state *s = run->state;
    const int32_t items = ocl_tile_items(s->tile);
    int64_t row[2], column[2];
    ocl_call call;
    const int64_t split[2] = {s->splits, cnr_round_up(cnr_div_up(s->p.k, s->splits), s->tile->bk)};
    const cnr_mem *part = s->splits > 1 ? run->workspace : NULL;
    if (!ocl_product_begin(&call, run, s->code, &s->p, &s->chain, split, part, row, column))
        return CNR_OK;
    CNR_TRY(ocl_launch(&call, cnr_div_up(column[1] - column[0], s->tile->bn) * items,
                       cnr_div_up(row[1] - row[0], s->tile->bm), s->p.batch * s->splits, items,
                       err));
    if (!part) return CNR_OK;
    ocl_product_begin(&call, run, s->sum, &s->p, &s->chain, split, part, row, column);
    return ocl_launch(&call, column[1] - column[0], row[1] - row[0], s->p.batch, s->line, err);
}

/* Registers the tile kernel of operator op_name. */
#define ROW(op_name) \
    OCL_KERNEL(ocl_##op_name##_tile, #op_name "_f32_tile", #op_name, .accepts = accepts, \
               .plan = plan, .run = run_tile);
ROW(dense)
ROW(gemm)
ROW(matmul)
