/* Sums, means and extremes over adjacent axes. */
#include "support.h"

/* Columns that are reduced at a time if the axes are not the last; elements of a task. */
#define COLUMNS 256
#define TASK ((int64_t)1 << 14)
/* Rows that are summed before they are added to the total. */
#define BLOCK 64

/* Kinds of reduction. */
typedef enum reduction { SUM, MEAN, MAX, MIN, REDUCTIONS } reduction;
static const char *const names[REDUCTIONS] = {"reduce_sum", "reduce_mean", "reduce_max",
                                              "reduce_min"};

/* Plan of a reduction. */
typedef struct reduce_state {
    reduction kind;
    int64_t outer, n, inner; /* x is outer by n by inner; n is reduced */
    int64_t rows;            /* if inner is 1: results of a task */
} reduce_state;

/* Reads kind and sizes. 0: not taken. */
static int shape_of(const cnr_node *node, reduce_state *s) {
    const cnr_tensor *x = cnr_own_input(node, 0), *y = node->outputs[0];
    memset(s, 0, sizeof *s);
    if (!x || !y || !cnr_is_plain(x, 1u << CNR_f32) || !cnr_is_plain(y, 1u << CNR_f32)) return 0;
    while (s->kind < REDUCTIONS && strcmp(node->desc->name, names[s->kind]) != 0) s->kind++;
    if (s->kind == REDUCTIONS) return 0;
    const int64_t set = cnr_reduced_axes(node);
    if (set < 0 || !cnr_reduced_stretch(x, set, &s->outer, &s->n, &s->inner)) return 0;
    s->rows = cnr_max(1, TASK / cnr_max(1, s->n));
    return s->n > 0;
}

/* Takes f32 reductions of neighbouring axes. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    reduce_state s;
    (void)device;
    if (!shape_of(node, &s))
        return cnr_refuse(out, "dense f32 and axes that lie side by side are wanted");
    return cnr_take(node, out, 500);
}

/* Notes kind and sizes. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    (void)workspace;
    reduce_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    shape_of(node, s);
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct reduce_job {
    const reduce_state *s;
    const float *x;
    float *y;
    cnr_stream *stream;
} reduce_job;

/* Least of n elements; NaN if there is one. */
static float least(const float *x, int64_t n) {
    float low = x[0];
    for (int64_t i = 1; i < n; i++) low = x[i] < low || x[i] != x[i] ? x[i] : low;
    return low;
}

/* NaN wins, on either side. */
static void keep_extreme(reduction kind, float *y, const float *x, int64_t n) {
    if (kind == MAX)
        for (int64_t i = 0; i < n; i++) y[i] = ((y[i] >= x[i]) | (y[i] != y[i])) ? y[i] : x[i];
    else
        for (int64_t i = 0; i < n; i++) y[i] = ((y[i] <= x[i]) | (y[i] != y[i])) ? y[i] : x[i];
}

/* Task: reduces some rows. */
static void some_rows(void *arg, int64_t i, int32_t thread) {
    const reduce_job *job = arg;
    const reduce_state *s = job->s;
    const int64_t end = cnr_min(s->outer, (i + 1) * s->rows);
    (void)thread;
    if (cnr_cancelled(job->stream)) return;
    for (int64_t row = i * s->rows; row < end; row++) {
        const float *x = job->x + row * s->n;
        job->y[row] = s->kind == MAX   ? neon_uk->max(x, s->n)
                      : s->kind == MIN ? least(x, s->n)
                      : s->kind == SUM ? neon_uk->sum(x, s->n)
                                       : neon_uk->sum(x, s->n) / (float)s->n;
    }
}

/* Sums columns in blocks of rows, for smaller rounding errors. */
static void add_columns(const reduce_state *s, const float *x, float *y, int64_t wide) {
    float block[COLUMNS];
    const size_t bytes = (size_t)wide * sizeof *y;
    for (int64_t first = 0; first < s->n; first += BLOCK) {
        const int64_t end = cnr_min(s->n, first + BLOCK);
        float *to = first ? block : y;
        memcpy(to, x + first * s->inner, bytes);
        for (int64_t k = first + 1; k < end; k++) neon_uk->add(to, x + k * s->inner, wide);
        if (first) neon_uk->add(y, block, wide);
    }
}

/* Task: reduces some columns. */
static void some_columns(void *arg, int64_t i, int32_t thread) {
    const reduce_job *job = arg;
    const reduce_state *s = job->s;
    const int64_t blocks = cnr_div_up(s->inner, COLUMNS), from = i % blocks * COLUMNS;
    const int64_t wide = cnr_min(COLUMNS, s->inner - from);
    const float *x = job->x + i / blocks * s->n * s->inner + from;
    float *y = job->y + i / blocks * s->inner + from;
    (void)thread;
    if (cnr_cancelled(job->stream)) return;
    if (s->kind == SUM || s->kind == MEAN) add_columns(s, x, y, wide);
    else {
        memcpy(y, x, (size_t)wide * sizeof *y);
        for (int64_t k = 1; k < s->n; k++) keep_extreme(s->kind, y, x + k * s->inner, wide);
    }
    if (s->kind == MEAN)
        for (int64_t j = 0; j < wide; j++) y[j] /= (float)s->n;
}

/* Reduces everything. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const reduce_state *s = run->state;
    reduce_job job = {s, neon_floats(run->node->inputs[0]), run->outputs[0]->data, run->stream};
    (void)err;
    if (s->inner == 1) cnr_parallel(run->stream, cnr_div_up(s->outer, s->rows), some_rows, &job);
    else cnr_parallel(run->stream, s->outer * cnr_div_up(s->inner, COLUMNS), some_columns, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_reduce_sum, "reduce_sum_f32", "reduce_sum", plan, neon_free_state);
NEON_KERNEL(neon_reduce_mean, "reduce_mean_f32", "reduce_mean", plan, neon_free_state);
NEON_KERNEL(neon_reduce_max, "reduce_max_f32", "reduce_max", plan, neon_free_state);
NEON_KERNEL(neon_reduce_min, "reduce_min_f32", "reduce_min", plan, neon_free_state);
