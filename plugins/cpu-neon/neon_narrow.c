/* matmul by a matrix of few columns, as between heads of attention: a row of the result is one or
 * two short vectors, and packing would cost more than the product. */
#include "support.h"

enum { MOST_N = 8, MOST_K = 64, LEAST_M = 64, ROWS_A_TASK = 256 };

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

/* Plan of a product with few columns. */
typedef struct narrow_state {
    neon_chain chain;
    int64_t m, n, k;
} narrow_state;

/* Fills m, n and k of a m x k by k x n product; 0: the kernel can't run this node. */
static int shape_of(const cnr_node *node, narrow_state *s) {
    const cnr_tensor *a = cnr_own_input(node, 0), *b = cnr_own_input(node, 1);
    if (!neon_all_f32(node) || !a || !b || a->rank < 2 || b->rank != 2) return 0;
    s->m = cnr_span(a, 0, a->rank - 1);
    s->k = b->dim[0];
    s->n = b->dim[1];
    return s->m >= LEAST_M && s->n >= 1 && s->n <= MOST_N && s->k >= 1 && s->k <= MOST_K;
}

/* Takes products of many rows and few columns; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    narrow_state s;
    const cnr_tensor *y = node->outputs[0];
    (void)device;
    if (!shape_of(node, &s))
        return cnr_refuse(out, "many rows are wanted, and a dense f32 matrix of few columns");
    cnr_take(node, out, 520);
    out->epilogue = neon_chain_accepts_broadcast(node, y->rank, y->dim);
    return CNR_OK;
}

/* Notes the sizes in *state; fails with CNR_E_MEMORY or CNR_E_SHAPE. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    narrow_state *s = cnr_state(neon_host, node, sizeof *s, err);
    (void)device, (void)workspace;
    if (!s) return CNR_E_MEMORY;
    if (!shape_of(node, s)) {
        neon_host->free(s);
        return neon_host->fail(err, CNR_E_SHAPE, node->name, "wants a matrix of few columns");
    }
    neon_chain_plan(node, &s->chain);
    *state = s;
    return CNR_OK;
}

/* Shared data of one run for all threads: the right matrix, of at most 8 columns, with its rows
 * padded to 4 or 8 floats. */
typedef struct narrow_job {
    const cnr_run *run;
    const narrow_state *s;
    float b[MOST_K * MOST_N]; /* rows of 4 or 8, with zeros behind */
} narrow_job;

/* Multiplies `rows` rows of a by the matrix; its n columns are in `vectors` vectors of 4 floats. */
static inline void multiply(const narrow_job *job, const float *a, float *y, int64_t rows,
                            int vectors, int64_t n) {
    const int64_t k = job->s->k;
    for (int64_t i = 0; i < rows; i++, a += k, y += n) {
        four sum[2] = {{0}, {0}};
        for (int64_t j = 0; j < k; j++)
            for (int v = 0; v < vectors; v++)
                sum[v] += a[j] * *(const four *)&job->b[(j * vectors + v) * 4];
        memcpy(y, sum, (size_t)n * sizeof *y);
    }
}

/* Task i of the narrow_job `arg`: computes task i: ROWS_A_TASK rows of the result, and their
 * epilogue. */
static void some_rows(void *arg, int64_t i, int32_t thread) {
    const narrow_job *job = arg;
    const narrow_state *s = job->s;
    const int64_t first = i * ROWS_A_TASK, rows = cnr_min(ROWS_A_TASK, s->m - first);
    const float *a = neon_floats(job->run->node->inputs[0]) + first * s->k;
    float *y = (float *)job->run->outputs[0]->data + first * s->n;
    (void)thread;
    if (s->n == 8) multiply(job, a, y, rows, 2, 8);
    else if (s->n > 4) multiply(job, a, y, rows, 2, s->n);
    else if (s->n == 4) multiply(job, a, y, rows, 1, 4);
    else multiply(job, a, y, rows, 1, s->n);
    neon_chain_run(&s->chain, job->run->node, y, first * s->n, rows * s->n);
}

/* Computes the product, 4 or 8 columns at a time on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const narrow_state *s = run->state;
    const float *b = neon_floats(run->node->inputs[1]);
    narrow_job job = {.run = run, .s = s};
    const int64_t wide = s->n > 4 ? 8 : 4;
    (void)err;
    for (int64_t j = 0; j < s->k; j++)
        memcpy(&job.b[j * wide], b + j * s->n, (size_t)s->n * sizeof *b);
    cnr_parallel(run->stream, cnr_div_up(s->m, ROWS_A_TASK), some_rows, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_matmul_narrow, "matmul_f32_narrow", "matmul", plan, neon_free_state);
