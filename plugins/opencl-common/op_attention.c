/* attention_f32: attention with an online softmax, which keeps no scores (common/attention.cl). */
#include "attention.h"

#include "support.h"

#include "attention.cl.h"

/* ITEMS: work-items of a work-group. BLOCK: rows of k in a block, and unit of columns of y.
 * MOST_WIDE, MOST_CUTS: maxima of `wide` and `cuts`. WHOLE: largest e for which q is loaded
 * once. */
enum { ITEMS = 128, BLOCK = 32, MOST_WIDE = 4, WHOLE = 64, MOST_CUTS = 16 };
/* RESIDENT: work-groups that a compute unit runs at once. JOIN: cost of another launch, in
 * blocks. */
enum { RESIDENT = 2, JOIN = 3 };

/* What plan keeps for run: the codes of the blocks and of joining cuts, and how queries and keys
 * are divided. */
typedef struct attention_state {
    const ocl_code *code, *join; /* join: NULL if each work-group reads all rows of k */
    attention a;
    /* rows, wide, part: ROWS, WIDE, PART of attention.cl. line: work-items of a group in the
     * joining launch. cuts: number of work-groups that share the rows of k; span: rows of k for
     * each. */
    int32_t rows, wide, part, line;
    int64_t cuts, span;
} attention_state;

/* Bytes of local memory that a work-group takes. */
static uint64_t local_bytes(const attention_state *s) {
    const int64_t bm = 16 * (int64_t)s->rows + 4;
    return (uint64_t)(s->part * (bm + BLOCK + 4) + BLOCK * (BLOCK * s->wide + bm) + (bm - 4) * 8) *
           sizeof(float);
}

/* Estimated time of all work-groups with `rows` rows a work-item and keys in `cuts` parts, in units
 * of a block of 16 rows of q by 32 rows of k. More rows per work-item read less local memory; cuts
 * take another launch. */
static double blocks_of(const ocl_device *d, const attention_state *s, int32_t rows, int64_t cuts) {
    const attention *a = &s->a;
    const int64_t groups = attention_batches(a) * cnr_div_up(a->m, 16 * rows) *
                           cnr_div_up(a->d, BLOCK * s->wide) * cuts;
    const int64_t waves = cnr_div_up(groups, RESIDENT * (int64_t)d->found->units);
    const int64_t blocks = cnr_div_up(cnr_div_up(a->n, BLOCK), cuts);
    return (double)(waves * blocks) * (0.4 + 0.75 * rows) +
           (cuts > 1 ? JOIN + 0.1 * (double)cuts : 0);
}

/* Chooses wide and part that fit local memory, then the rows and cuts of the least estimated
 * time. */
static void divide(const ocl_device *d, attention_state *s) {
    const attention *a = &s->a;
    double least = 0;
    s->wide = (int32_t)cnr_min(MOST_WIDE, cnr_div_up(a->d, BLOCK));
    s->part = (int32_t)(a->e <= WHOLE ? a->e : BLOCK);
    s->rows = 1;
    while (local_bytes(s) > d->found->local_bytes && (s->part > BLOCK || s->wide > 1)) {
        if (s->part > BLOCK) s->part = BLOCK;
        else s->wide /= 2;
    }
    attention_state best = *s;
    for (s->rows = 1; s->rows <= 4; s->rows *= 2)
        for (int64_t cuts = 1; cuts <= cnr_min(MOST_CUTS, cnr_div_up(a->n, BLOCK)); cuts++) {
            const double time = blocks_of(d, s, s->rows, cuts);
            if (local_bytes(s) > d->found->local_bytes || (least > 0 && time >= least)) continue;
            best = *s;
            least = time;
            best.span = cnr_round_up(cnr_div_up(a->n, cuts), BLOCK);
            best.cuts = cnr_div_up(a->n, best.span);
        }
    *s = best;
}

/* Reads the node and divides its work. Returns NULL, or why the kernel refuses it. */
static const char *shape_of(const cnr_device *device, const cnr_node *node, attention_state *s) {
    const ocl_device *d = ocl_of(device);
    if (!ocl_plain(node)) return OCL_WANTS_F32;
    const char *wrong = attention_of(node, &s->a);
    if (wrong) return wrong;
    if (s->a.n < 1 || s->a.e < 1) return "it is empty";
    if (d->most_group < ITEMS) return "the device's work-groups are too small";
    divide(d, s);
    return local_bytes(s) > d->found->local_bytes ? "the device has too little local memory" : NULL;
}

/* Takes f32 attention that fits local memory. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    attention_state s;
    const char *why = shape_of(device, node, &s);
    return why ? cnr_refuse(out, why) : cnr_take(node, out, 500);
}

/* Builds the code for the sizes, and sets the workspace that cuts need. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/attention.cl", attention_cl);
    ocl_plan p;
    attention_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    if (!ocl_plan_unless(&p, shape_of(device, node, s))) return ocl_plan_end(&p, state);
    ocl_plan_options(&p, "-DE=%d -DD=%d -DROWS=%d -DWIDE=%d -DPART=%d ", (int)s->a.e, (int)s->a.d,
                     (int)s->rows, (int)s->wide, (int)s->part);
    if (s->a.given[ATTENTION_BIAS]) ocl_plan_options(&p, "-DBIAS ");
    if (s->a.given[ATTENTION_MASK]) ocl_plan_options(&p, "-DMASK ");
    if (s->a.zero_rows) ocl_plan_options(&p, "-DZERO_ROWS ");
    if (s->cuts > 1) {
        ocl_plan_options(&p, "-DCUT ");
        ocl_plan_code(&p, &source, "attention_join", &s->join);
        workspace->bytes =
            (uint64_t)(s->cuts * attention_batches(&s->a) * s->a.m * (s->a.d + 2)) * sizeof(float);
    }
    s->line = ocl_of(device)->tune->line;
    ocl_plan_code(&p, &source, "attention", &s->code);
    return ocl_plan_end(&p, state);
}

/* Passes offset and strides of an operand as an int8. */
static void view(ocl_call *call, int64_t at, const int64_t step[ATTENTION_RANK]) {
    const int64_t list[8] = {at, step[0], step[1], step[2], step[3], step[4]};
    ocl_arg_longs(call, list, 8);
}

/* Launches the kernel, and the one that joins parts. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const attention_state *s = run->state;
    const attention *a = &s->a;
    const int64_t sizes[4] = {a->batch[1], a->batch[2], a->m, a->n}, cut[2] = {s->cuts, s->span};
    const union {
        cl_float f;
        cl_int i;
    } scale = {a->scale};
    ocl_call call;
    ocl_begin(&call, run->stream, s->code);
    for (int32_t i = 0; i < ATTENTION_INPUTS; i++)
        ocl_arg_buffer(&call, &run->node->inputs[a->given[i] ? i : ATTENTION_Q]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, sizes, 4);
    for (int32_t i = 0; i < ATTENTION_INPUTS; i++) view(&call, a->at[i], a->step[i]);
    view(&call, 0, a->to);
    ocl_arg_ints(&call, &scale.i, 1);
    ocl_arg_buffer(&call, s->join ? run->workspace : &run->outputs[0]->mem);
    ocl_arg_longs(&call, cut, 2);
    CNR_TRY(ocl_launch(&call, cnr_div_up(a->m, 16 * s->rows) * ITEMS, attention_batches(a),
                       cnr_div_up(a->d, BLOCK * s->wide) * s->cuts, ITEMS, err));
    if (!s->join) return CNR_OK;
    ocl_begin(&call, run->stream, s->join);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, sizes, 4);
    view(&call, 0, a->to);
    ocl_arg_longs(&call, cut, 2);
    ocl_arg_int(&call, attention_batches(a));
    return ocl_launch(&call, a->m * a->d, attention_batches(a), 1, s->line, err);
}

OCL_KERNEL(ocl_attention, "attention_f32", "attention", .accepts = accepts, .plan = plan,
           .run = run);
