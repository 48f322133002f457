/* Sums, means, extremes and norms over adjacent axes, also within the planes of channel blocks;
 * sums and means over all axes but the channels, as the gradients of biases want them. */
#include "blocked.h"

#include <math.h>

/* Columns that are reduced at a time if the axes are not the last; elements of a task. */
#define COLUMNS 256
#define TASK ((int64_t)1 << 14)
/* Rows that are summed before they are added to the total. */
#define BLOCK 64

/* Which reduction is computed; the order is that of `names`. */
typedef enum reduction { SUM, MEAN, MAX, MIN, L1, L2, SQUARES, REDUCTIONS } reduction;
static const char *const names[REDUCTIONS] = {"reduce_sum",       "reduce_mean", "reduce_max",
                                              "reduce_min",       "reduce_l1",   "reduce_l2",
                                              "reduce_sum_square"};

/* Plan of a reduction: outer x n x inner elements, reduced along n. */
typedef struct reduce_state {
    reduction kind;
    int64_t outer, n, inner; /* x is outer by n by inner; n is reduced */
    int64_t rows;            /* if inner is 1: results of a task */
    int64_t fold;   /* rows of x that lie side by side in a row of accumulators; 1: columns are many
                     */
    int64_t images; /* 0; or x is images by outer by n, and images are reduced too */
} reduce_state;

/* Whether the reduction keeps channels apart, so that they may lie in blocks. */
static int within_planes(const cnr_node *node) {
    const int64_t set = shape_reduced_axes(node);
    return set > 0 && !(set & 3) && node->inputs[0]->rank > 2;
}

/* Reads kind and sizes of a reduction over channels in blocks of `block` into s; 0: not taken. */
static int shape_of(const cnr_node *node, int64_t block, reduce_state *s) {
    const cnr_tensor *x = cnr_own_input(node, 0), *y = node->outputs[0];
    memset(s, 0, sizeof *s);
    if (!x || !y || !cnr_is_plain(x, 1u << CNR_f32) || !cnr_is_plain(y, 1u << CNR_f32)) return 0;
    while (s->kind < REDUCTIONS && strcmp(node->desc->name, names[s->kind]) != 0) s->kind++;
    if (s->kind == REDUCTIONS) return 0;
    const int64_t set = shape_reduced_axes(node);
    if (set < 0) return 0;
    if (x->rank > 2 && x->dim[0] > 0 && (s->kind == SUM || s->kind == MEAN) &&
        set == (1 << x->rank) - 3) {
        s->images = x->dim[0];
        s->outer = x->dim[1];
        s->n = cnr_span(x, 2, x->rank);
        s->inner = 1;
    } else if (!shape_reduced_stretch(x, set, &s->outer, &s->n, &s->inner)) return 0;
    s->outer /= block;
    s->inner *= block;
    s->rows = cnr_max(1, TASK / cnr_max(1, s->n));
    s->fold =
        s->inner < COLUMNS / 2 ? cnr_max(1, cnr_min(s->n, COLUMNS / cnr_max(1, s->inner))) : 1;
    return s->n > 0;
}

/* Takes f32 reductions of neighbouring axes; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    reduce_state s;
    (void)device;
    if (!shape_of(node, 1, &s))
        return cnr_refuse(out, "dense f32 and axes that lie side by side are wanted");
    const cnr_tensor *x = node->inputs[0], *y = node->outputs[0];
    const int32_t block = out->in_block[0];
    const int whole = s.inner == 1 && s.outer == x->dim[0] * x->dim[1]; /* planes become numbers */
    const int blocked =
        block > 1 && within_planes(node) && (whole || block == neon_block_of(y->rank, y->dim));
    neon_blocked_take(node, out, 500, blocked ? block : 0, blocked && !whole ? block : 0);
    return CNR_OK;
}

/* Notes kind and sizes in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    (void)workspace;
    reduce_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    shape_of(node, cnr_max(1, node->inputs[0]->block), s);
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

/* y = larger (MAX) or smaller of y and x, n elements; NaN wins, on either side. */
static void keep_extreme(reduction kind, float *y, const float *x, int64_t n) {
    if (kind == MAX)
        for (int64_t i = 0; i < n; i++) y[i] = ((y[i] >= x[i]) | (y[i] != y[i])) ? y[i] : x[i];
    else
        for (int64_t i = 0; i < n; i++) y[i] = ((y[i] <= x[i]) | (y[i] != y[i])) ? y[i] : x[i];
}

/* Combines n partial results in x with those in y, in place. */
static void merge(reduction kind, float *y, const float *x, int64_t n) {
    if (kind == MAX || kind == MIN) keep_extreme(kind, y, x, n);
    else neon_uk->add(y, x, n);
}

/* Takes n elements of x into the partial results y. */
static void take(reduction kind, float *y, const float *x, int64_t n) {
    if (kind == L2 || kind == SQUARES) neon_uk->add_squares(x, y, n);
    else if (kind == L1)
        for (int64_t i = 0; i < n; i++) y[i] += fabsf(x[i]);
    else merge(kind, y, x, n);
}

/* Starts n partial results y from the first elements x, squared or made positive where the kind
 * does so. */
static void begin(reduction kind, float *y, const float *x, int64_t n) {
    if (kind >= L1) {
        memset(y, 0, (size_t)n * sizeof *y);
        take(kind, y, x, n);
    } else memcpy(y, x, (size_t)n * sizeof *y);
}

/* Finishes n results in place: divides by the count (MEAN) or takes the root (L2). */
static void finish(const reduce_state *s, float *y, int64_t n) {
    if (s->kind == MEAN)
        for (int64_t i = 0; i < n; i++) y[i] /= (float)s->n;
    else if (s->kind == L2)
        for (int64_t i = 0; i < n; i++) y[i] = sqrtf(y[i]);
}

/* Reduces n rows, `step` floats apart, in blocks of rows, for smaller rounding errors. */
static void reduce_columns(reduction kind, const float *x, int64_t n, int64_t step, float *y,
                           int64_t wide) {
    float block[COLUMNS];
    for (int64_t first = 0; first < n; first += BLOCK) {
        const int64_t end = cnr_min(n, first + BLOCK);
        float *to = first ? block : y;
        begin(kind, to, x + first * step, wide);
        for (int64_t k = first + 1; k < end; k++) take(kind, to, x + k * step, wide);
        if (first) merge(kind, y, block, wide);
    }
}

/* Reduces n rows of few columns into y: several rows side by side, then these. */
static void reduce_folded(const reduce_state *s, const float *x, float *y) {
    float part[COLUMNS];
    const int64_t wide = s->fold * s->inner, rest = s->n % s->fold;
    reduce_columns(s->kind, x, s->n / s->fold, wide, part, wide);
    take(s->kind, part, x + (s->n - rest) * s->inner, rest * s->inner);
    if (s->inner == 1 && s->kind != MAX && s->kind != MIN) {
        *y = neon_uk->sum(part, s->fold);
        return;
    }
    memcpy(y, part, (size_t)s->inner * sizeof *y);
    for (int64_t k = 1; k < s->fold; k++) merge(s->kind, y, part + k * s->inner, s->inner);
}

/* Task i: reduces some rows of contiguous elements; nothing once the run is cancelled. */
static void some_rows(void *arg, int64_t i, int32_t thread) {
    const reduce_job *job = arg;
    const reduce_state *s = job->s;
    const int64_t first = i * s->rows, end = cnr_min(s->outer, first + s->rows);
    (void)thread;
    if (cnr_cancelled(job->stream)) return;
    for (int64_t row = first; row < end; row++) {
        const float *x = job->x + row * s->n;
        if (s->kind >= L1) reduce_folded(s, x, job->y + row);
        else
            job->y[row] = s->kind == MAX   ? neon_uk->max(x, s->n)
                          : s->kind == MIN ? least(x, s->n)
                                           : (float)neon_long_sum(x, s->n);
    }
    finish(s, job->y + first, end - first);
}

/* Task c of the reduce_job `arg`: the sum of a channel's planes, in double over planes. */
static void one_channel(void *arg, int64_t c, int32_t thread) {
    const reduce_job *job = arg;
    const reduce_state *s = job->s;
    double sum = 0;
    (void)thread;
    if (cnr_cancelled(job->stream)) return;
    for (int64_t image = 0; image < s->images; image++)
        sum += neon_long_sum(job->x + (image * s->outer + c) * s->n, s->n);
    job->y[c] = (float)(s->kind == SUM ? sum : sum / ((double)s->images * (double)s->n));
}

/* Task i of the reduce_job `arg`: reduces some columns. */
static void some_columns(void *arg, int64_t i, int32_t thread) {
    const reduce_job *job = arg;
    const reduce_state *s = job->s;
    const int64_t blocks = cnr_div_up(s->inner, COLUMNS), from = i % blocks * COLUMNS;
    const int64_t wide = cnr_min(COLUMNS, s->inner - from);
    const float *x = job->x + i / blocks * s->n * s->inner + from;
    float *y = job->y + i / blocks * s->inner + from;
    (void)thread;
    if (cnr_cancelled(job->stream)) return;
    if (s->fold > 1) reduce_folded(s, x, y);
    else reduce_columns(s->kind, x, s->n, s->inner, y, wide);
    finish(s, y, wide);
}

/* Reduces everything on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const reduce_state *s = run->state;
    reduce_job job = {s, neon_floats(run->node->inputs[0]), run->outputs[0]->data, run->stream};
    (void)err;
    if (s->images) cnr_parallel(run->stream, s->outer, one_channel, &job);
    else if (s->inner == 1)
        cnr_parallel(run->stream, cnr_div_up(s->outer, s->rows), some_rows, &job);
    else cnr_parallel(run->stream, s->outer * cnr_div_up(s->inner, COLUMNS), some_columns, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_reduce_sum, "reduce_sum_f32", "reduce_sum", plan, neon_free_state);
NEON_KERNEL(neon_reduce_mean, "reduce_mean_f32", "reduce_mean", plan, neon_free_state);
NEON_KERNEL(neon_reduce_max, "reduce_max_f32", "reduce_max", plan, neon_free_state);
NEON_KERNEL(neon_reduce_min, "reduce_min_f32", "reduce_min", plan, neon_free_state);
NEON_KERNEL(neon_reduce_l1, "reduce_l1_f32", "reduce_l1", plan, neon_free_state);
NEON_KERNEL(neon_reduce_l2, "reduce_l2_f32", "reduce_l2", plan, neon_free_state);
NEON_KERNEL(neon_reduce_squares, "reduce_sum_square_f32", "reduce_sum_square", plan,
            neon_free_state);
