/* attention by blocks of rows: the scores of a block stay in the L2 cache, and its operands are
 * read from wherever their strides say while they are packed. */
#include "attention.h"
#include "gemm.h"
#include "support.h"

#include <math.h>

/* Plan of attention: blocks of rows, and places in a thread's scratch. */
typedef struct attention_state {
    attention a;
    int64_t rows;  /* rows of a block */
    int64_t parts; /* tasks for a batch, whole blocks each */
    int64_t k_at, v_at, q_at, p_at, scores_at, sums_at, y_at; /* in a thread's scratch */
    int64_t room;                                             /* floats of a thread's scratch */
} attention_state;

/* Scores of a block. With them packed for the second product they fill a quarter of an L2 cache of
 * 512 KiB. */
#define MANY_SCORES ((int64_t)1 << 14)

/* Takes f32 attention; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    attention a;
    (void)device;
    if (!neon_all_f32(node) || attention_of(node, &a) || a.n < 1)
        return cnr_refuse(out, NEON_WANTS_F32);
    return cnr_take(node, out, 500);
}

/* Reserves floats of the thread's scratch and a vector more, as packing may write beyond a panel;
 * returns their offset. */
static int64_t reserve(attention_state *s, int64_t floats) {
    return neon_reserve(&s->room, floats + neon_uk->nr);
}

/* Divides rows into blocks and tasks in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    attention_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    attention_of(node, &s->a);
    const attention *a = &s->a;
    const int64_t threads = device->concurrency, batches = cnr_max(1, attention_batches(a));
    const int64_t mr = neon_uk->mr, blocks = cnr_div_up(a->m * cnr_max(1, a->n), MANY_SCORES);
    s->rows = cnr_round_up(cnr_max(4 * mr, cnr_div_up(a->m, cnr_max(1, blocks))), mr);
    s->parts = threads > 1 ? cnr_div_up(2 * threads, batches) : 1;
    s->rows = cnr_min(s->rows, cnr_max(4 * mr, cnr_round_up(cnr_div_up(a->m, s->parts), mr)));
    s->rows = cnr_max(mr, cnr_min(s->rows, cnr_round_up(a->m, mr)));
    s->parts = cnr_max(1, cnr_min(s->parts, cnr_div_up(a->m, s->rows)));
    s->k_at = reserve(s, neon_packed_b(a->n, a->e));
    s->v_at = reserve(s, neon_packed_b(a->d, a->n));
    s->q_at = reserve(s, neon_packed_a(s->rows, a->e));
    s->p_at = reserve(s, neon_packed_a(s->rows, a->n));
    s->scores_at = reserve(s, s->rows * a->n);
    s->sums_at = reserve(s, s->rows);
    s->y_at = reserve(s, a->to[4] == 1 ? 0 : s->rows * a->d);
    workspace->bytes = (uint64_t)(s->room * threads) * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* The block's scores start as bias and mask. */
static void start(const cnr_run *run, const attention *a, int64_t batch, int64_t m0, int64_t m,
                  float *scores) {
    int added = 0;
    for (int32_t port = ATTENTION_BIAS; port <= ATTENTION_MASK; port++) {
        if (!a->given[port]) continue;
        const int64_t *step = a->step[port];
        const float *from = neon_floats(run->node->inputs[port]) + a->at[port] +
                            attention_first(a, step, batch) + m0 * step[3];
        for (int64_t i = 0; i < m; i++, from += step[3]) {
            float *to = scores + i * a->n;
            if (step[4] == 1 && added) neon_uk->add(to, from, a->n);
            else if (step[4] == 1) memcpy(to, from, (size_t)a->n * sizeof *to);
            else
                for (int64_t j = 0; j < a->n; j++)
                    to[j] = (added ? to[j] : 0.0f) + from[j * step[4]];
        }
        added = 1;
    }
}

/* c = (add ? c : 0) + the product of a packed block of m rows and of a packed matrix. */
static void multiply(int64_t m, int64_t n, int64_t k, const float *left, const float *right,
                     float *c, int64_t ldc, int add) {
    const neon_product p =
        {.m = m, .n = n, .k = k, .a = left, .b = right, .c = c, .ldc = ldc, .add = add};
    for (int64_t j = 0; j < n; j += NEON_NC) neon_block(&p, 0, m, j, cnr_min(n, j + NEON_NC), NULL);
}

/* Rows [m0, m0 + m) of one batch; its k and v are packed in `room`. */
static void block(const cnr_run *run, int64_t batch, int64_t m0, int64_t m, float *room) {
    const attention_state *s = run->state;
    const attention *a = &s->a;
    const int64_t *q = a->step[ATTENTION_Q], panels = cnr_div_up(m, neon_uk->mr);
    float *scores = room + s->scores_at, *sum = room + s->sums_at;
    const float *x = neon_floats(run->node->inputs[ATTENTION_Q]) + a->at[ATTENTION_Q];
    const int direct = a->to[4] == 1;
    float *to = (float *)run->outputs[0]->data + attention_first(a, a->to, batch) + m0 * a->to[3];
    float *y = direct ? to : room + s->y_at;
    const int64_t line = direct ? a->to[3] : a->d;
    neon_pack_a(x + attention_first(a, q, batch) + m0 * q[3], q[3], q[4], m, a->e, a->scale, 0,
                panels, room + s->q_at);
    start(run, a, batch, m0, m, scores);
    multiply(m, a->n, a->e, room + s->q_at, room + s->k_at, scores, a->n,
             a->given[ATTENTION_BIAS] || a->given[ATTENTION_MASK]);
    for (int64_t i = 0; i < m; i++) {
        float *row = scores + i * a->n;
        sum[i] = neon_uk->exp_sum(row, neon_uk->max(row, a->n), row, a->n);
        if (!a->zero_rows || !isnan(sum[i])) continue;
        memset(row, 0, (size_t)a->n * sizeof *row);
        sum[i] = 1;
    }
    neon_pack_a(scores, a->n, 1, m, a->n, 1.0f, 0, panels, room + s->p_at);
    multiply(m, a->d, a->n, room + s->p_at, room + s->v_at, y, line, 0);
    for (int64_t i = 0; i < m; i++) {
        neon_uk->affine(y + i * line, 1.0f / sum[i], 0.0f, y + i * line, a->d);
        for (int64_t j = 0; !direct && j < a->d; j++)
            to[i * a->to[3] + j * a->to[4]] = y[i * line + j];
    }
}

/* Task i of the cnr_run `arg`: part i / batches of batch i % batches. */
static void task(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const attention_state *s = run->state;
    const attention *a = &s->a;
    const int64_t *k = a->step[ATTENTION_K], *v = a->step[ATTENTION_V], batch = i / s->parts;
    const int64_t blocks = cnr_div_up(a->m, s->rows), part = i % s->parts;
    const int64_t end = cnr_min(a->m, (part + 1) * blocks / s->parts * s->rows);
    float *room = (float *)run->workspace_data + thread * s->room;
    if (cnr_cancelled(run->stream)) return;
    neon_pack_b(neon_floats(run->node->inputs[ATTENTION_K]) + a->at[ATTENTION_K] +
                    attention_first(a, k, batch),
                k[4], k[3], a->n, a->e, 0, cnr_div_up(a->n, neon_uk->nr), room + s->k_at);
    neon_pack_b(neon_floats(run->node->inputs[ATTENTION_V]) + a->at[ATTENTION_V] +
                    attention_first(a, v, batch),
                v[3], v[4], a->d, a->n, 0, cnr_div_up(a->d, neon_uk->nr), room + s->v_at);
    for (int64_t m = part * blocks / s->parts * s->rows; m < end; m += s->rows)
        block(run, batch, m, cnr_min(s->rows, end - m), room);
}

/* Computes all blocks on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const attention_state *s = run->state;
    cnr_run copy = *run;
    (void)err;
    if (cnr_count(run->outputs[0]) > 0)
        cnr_parallel(run->stream, attention_batches(&s->a) * s->parts, task, &copy);
    return CNR_OK;
}

NEON_KERNEL(neon_attention, "attention_f32_blocks", "attention", plan, neon_free_state);
