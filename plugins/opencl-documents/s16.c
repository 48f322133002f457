/* Host side of S16's and WX18's steps. The documents' matrices lie in column-major order: what is y
 * = a * b of rows here, is C = A * B there with A = b, B = a, C = y. So a convolution's columns are
 * A and its weights B, as in S16. */
#include "documents.h"

#include "op_dense.h"
#include "s16.cl.h"

enum { TILE = 32, LOCAL_BYTES = 2 * TILE * TILE * 4 };

/* Steps of the tutorial, each a faster kernel than the last. */
typedef enum step { NAIVE, PADDED, ROWS, TILES, LOCAL, FLOAT4, UNROLLED } step;

/* What plan keeps for run: the codes of product, padding and cutting, and the padded sizes. */
typedef struct s16_state {
    const ocl_code *product, *pad_a, *pad_b, *cut;
    ocl_product p;
    int64_t m, n, k; /* the document's, padded */
    step step;
} s16_state;

static const ocl_source source = OCL_SOURCE("documents/s16.cl", s16_cl);

/* Why the kernels cannot do the node, or NULL; *p receives the product. */
static const char *unfit(const cnr_node *node, ocl_product *p) {
    if (!ocl_product_of(node, p)) return OCL_NO_PRODUCT;
    if (p->a_step != 1 || p->b_column != 1 || p->alpha != 1 || (p->c && p->beta != 1))
        return "a plain product of rows is wanted";
    const int64_t m = cnr_round_up(p->n, TILE), n = cnr_round_up(p->m, TILE);
    const int64_t k = cnr_round_up(p->k, TILE);
    if (m > INT32_MAX / k || n > INT32_MAX / k || m > INT32_MAX / n)
        return "the padded matrices are too large";
    return NULL;
}

/* Takes the products that `step` can compute on the device. */
static cnr_status accepts_as(const cnr_device *device, const cnr_node *node, cnr_accept *out,
                             step step) {
    ocl_product p;
    const char *why = unfit(node, &p);
    if (!why) why = documents_device_unfit(device);
    if (!why && step >= TILES && ocl_of(device)->most_group < TILE)
        why = "work-groups of 32 are wanted";
    if (!why && step >= LOCAL && ocl_of(device)->found->local_bytes < LOCAL_BYTES)
        why = "8 KiB of local memory are wanted";
    return documents_answer(device, node, why, out);
}

/* Finds the codes of `step`; *state keeps them and the padded sizes. */
static cnr_status plan_as(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                          void **state, step step, cnr_error *err) {
    static const char *const names[] = {"naive",       "padded",      "rows",       "tiles",
                                        "local_tiles", "local_tiles", "local_tiles"};
    ocl_plan p;
    s16_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_plan_unless(&p, unfit(node, &s->p));
    s->step = step;
    s->m = cnr_round_up(s->p.n, TILE);
    s->n = cnr_round_up(s->p.m, TILE);
    s->k = cnr_round_up(s->p.k, TILE);
    ocl_plan_options(&p, "-DWIDE=%d -DUNROLL=%d ", step >= FLOAT4 ? 4 : 1,
                     step >= UNROLLED ? 8 : 1);
    ocl_plan_code(&p, &source, names[step], &s->product);
    if (step > NAIVE) {
        ocl_plan_code(&p, &source, step >= ROWS ? "pad_rows" : "pad", &s->pad_a);
        ocl_plan_code(&p, &source, "pad", &s->pad_b);
        ocl_plan_code(&p, &source, "cut", &s->cut);
        workspace->bytes = (uint64_t)(s->m * s->k + s->k * s->n + s->m * s->n) * sizeof(float);
    }
    return ocl_plan_end(&p, state);
}

/* Queues the first step: one work-item an output. */
static cnr_status run_naive(const cnr_run *run, cnr_error *err) {
    const s16_state *s = run->state;
    const cnr_node *node = run->node;
    const cnr_tensor *d = cnr_own_input(node, 2);
    const int64_t size[4] = {s->p.n, s->p.m, s->p.k, d != NULL};
    const int64_t steps[2] = {s->p.c_column, s->p.c_row};
    ocl_call call;
    ocl_begin(&call, run->stream, s->product);
    ocl_arg_buffer(&call, &node->inputs[1]->mem);
    ocl_arg_buffer(&call, &node->inputs[0]->mem);
    ocl_arg_buffer(&call, d ? &d->mem : &node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, size, 4);
    ocl_arg_longs(&call, steps, 2);
    return ocl_launch(&call, s->p.n, s->p.m, 1, 1, err);
}

/* A matrix of `rows` x `columns` to one of `to_rows` x `to_columns`; work-items run along what lies
 * side by side there. */
static cnr_status pad(const cnr_run *run, const ocl_code *code, const cnr_mem *from,
                      const cnr_mem *to, const int64_t size[4], int by_rows, cnr_error *err) {
    const int32_t line = ocl_of(run->stream->device)->tune->line;
    ocl_call call;
    ocl_begin(&call, run->stream, code);
    ocl_arg_buffer(&call, from);
    ocl_arg_buffer(&call, to);
    ocl_arg_longs(&call, size, 4);
    return ocl_launch(&call, size[by_rows ? 3 : 2], size[by_rows ? 2 : 3], 1, line, err);
}

/* Queues the product of a and b into c, all padded. */
static cnr_status multiply(const cnr_run *run, const cnr_mem *a, const cnr_mem *b, const cnr_mem *c,
                           cnr_error *err) {
    const s16_state *s = run->state;
    const int64_t size[4] = {s->m, s->n, s->k};
    ocl_call call;
    ocl_begin(&call, run->stream, s->product);
    ocl_arg_buffer(&call, a);
    ocl_arg_buffer(&call, b);
    ocl_arg_buffer(&call, c);
    ocl_arg_longs(&call, size, 4);
    if (s->step < TILES) return ocl_launch(&call, s->m, s->n, 1, 1, err);
    return ocl_launch(&call, s->n, s->m / TILE, 1, TILE, err);
}

/* Queues the copy of the unpadded part of c to the output, with the bias. */
static cnr_status cut(const cnr_run *run, const cnr_mem *c, cnr_error *err) {
    const s16_state *s = run->state;
    const cnr_tensor *d = cnr_own_input(run->node, 2);
    const int64_t size[4] = {s->p.n, s->p.m, s->m, d != NULL};
    const int64_t steps[2] = {s->p.c_column, s->p.c_row};
    ocl_call call;
    ocl_begin(&call, run->stream, s->cut);
    ocl_arg_buffer(&call, c);
    ocl_arg_buffer(&call, d ? &d->mem : c);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, size, 4);
    ocl_arg_longs(&call, steps, 2);
    return ocl_launch(&call, s->p.n, s->p.m, 1, ocl_of(run->stream->device)->tune->line, err);
}

/* Method run: queues the code over the run's range on its stream. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const s16_state *s = run->state;
    const cnr_node *node = run->node;
    if (s->step == NAIVE) return run_naive(run, err);
    cnr_mem a = *run->workspace, b = a, c = a;
    b.offset += (uint64_t)(s->m * s->k) * sizeof(float);
    c.offset = b.offset + (uint64_t)(s->k * s->n) * sizeof(float);
    const int64_t size_a[4] = {s->p.n, s->p.k, s->m, s->k},
                  size_b[4] = {s->p.k, s->p.m, s->k, s->n};
    CNR_TRY(pad(run, s->pad_a, &node->inputs[1]->mem, &a, size_a, s->step >= ROWS, err));
    CNR_TRY(pad(run, s->pad_b, &node->inputs[0]->mem, &b, size_b, 0, err));
    CNR_TRY(multiply(run, &a, &b, &c, err));
    return cut(run, &c, err);
}

/* Defines the kernel of one step of the document. */
#define STEP(symbol, text, step) \
    static cnr_status symbol##_accepts(const cnr_device *device, const cnr_node *node, \
                                       cnr_accept *out) { \
        return accepts_as(device, node, out, step); \
    } \
    OCL_PLAN(symbol##_plan, plan_as(device, node, workspace, state, step, err)) \
    DOCUMENTS_KERNEL(documents_s16_##symbol, text, "gemm", .accepts = symbol##_accepts, \
                     .plan = symbol##_plan, .run = run);
STEP(naive, "gemm_f32_s16_naive", NAIVE)
STEP(padded, "gemm_f32_s16_padded", PADDED)
STEP(rows, "gemm_f32_s16_rows", ROWS)
STEP(tiles, "gemm_f32_s16_tiles", TILES)
STEP(local, "gemm_f32_s16_local", LOCAL)
STEP(float4, "gemm_f32_s16_float4", FLOAT4)
STEP(unrolled, "gemm_f32_s16_unrolled", UNROLLED)
