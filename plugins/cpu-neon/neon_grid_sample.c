/* grid_sample of planes, linear and nearest: computes the taps of each position once for all
 * channels. */
#include <math.h>

#include "support.h"

/* Positions processed at a time, and about the number of outputs of a task. */
#define POINTS 64
#define TASK ((int64_t)1 << 14)

enum { ZEROS, BORDER, REFLECTION };

/* Plan of grid_sample. */
typedef struct grid_state {
    /* in: rows and columns of x; points: positions of an output */
    int64_t channels, in[2], points, batch;
    int64_t task;                 /* points of a task, a multiple of POINTS */
    int32_t padding, align, taps; /* taps: 1 nearest, 4 linear */
} grid_state;

/* Taps of some positions: index in a plane (-1: zero), and weight. */
typedef struct grid_taps {
    int32_t at[4][POINTS];
    float weight[4][POINTS];
    int32_t inside; /* none of them is zero */
} grid_taps;

/* Reads sizes and modes into s; returns 0: the kernel does not take the node. */
static int shape_of(const cnr_node *node, grid_state *s) {
    const cnr_tensor *x = cnr_own_input(node, 0), *grid = cnr_own_input(node, 1);
    memset(s, 0, sizeof *s);
    if (!x || !grid || x->rank != 4 || !neon_all_f32(node)) return 0;
    const int nearest = cnr_attr_is(node, "mode", "nearest");
    if (!nearest && !cnr_attr_is(node, "mode", "linear") && !cnr_attr_is(node, "mode", "bilinear"))
        return 0;
    s->taps = nearest ? 1 : 4;
    s->padding = cnr_attr_is(node, "padding_mode", "border")       ? BORDER
                 : cnr_attr_is(node, "padding_mode", "reflection") ? REFLECTION
                                                                   : ZEROS;
    s->align = cnr_attr_int(node, "align_corners") != 0;
    s->batch = x->dim[0];
    s->channels = x->dim[1];
    s->in[0] = x->dim[2];
    s->in[1] = x->dim[3];
    s->points = cnr_span(grid, 1, 3);
    s->task = cnr_round_up(cnr_max(1, TASK / cnr_max(1, s->channels)), POINTS);
    return s->in[0] > 0 && s->in[1] > 0 && s->in[0] * s->in[1] < 1 << 30;
}

/* Takes f32 planes with nearest or linear sampling; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    grid_state s;
    (void)device;
    if (!shape_of(node, &s))
        return cnr_refuse(out, "dense f32 planes are wanted, and no cubic sampling");
    return cnr_take(node, out, 500);
}

/* Notes sizes and modes in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    (void)workspace;
    grid_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    shape_of(node, s);
    *state = s;
    return CNR_OK;
}

/* Reflects v at low and high until it lies between. */
static double reflect(double v, double low, double high) {
    const double range = high - low;
    if (!(range > 0)) return 0;
    if (v < low) v = low + (low - v);
    v = fmod(v - low, 2 * range);
    return low + (v > range ? 2 * range - v : v);
}

/* The coordinate along an axis of x for g from -1 to 1. */
static double position(const grid_state *s, double g, int64_t dim) {
    const double size = (double)dim;
    const double low = s->align ? 0 : -0.5, high = s->align ? size - 1 : size - 0.5;
    double v = s->align ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
    if (!(fabs(v) < 1e9)) v = v < 0 ? -2 - size : 2 * size + 2; /* far outside, or NaN */
    if (s->padding == REFLECTION && (v < low || v > high)) v = reflect(v, low, high);
    if (s->padding != ZEROS) v = v < 0 ? 0 : v > size - 1 ? size - 1 : v;
    return v;
}

/* Sets a tap of point i; one outside the picture counts as 0. */
static void set_tap(const grid_state *s, grid_taps *t, int tap, int64_t i, int64_t row,
                    int64_t column, double weight) {
    const int there = row >= 0 && row < s->in[0] && column >= 0 && column < s->in[1];
    t->at[tap][i] = there ? (int32_t)(row * s->in[1] + column) : -1;
    t->weight[tap][i] = (float)weight;
    t->inside &= there;
}

/* Finds the taps (places and weights) of n points of the grid; t->inside 0: some lie outside. */
static void make_taps(const grid_state *s, const float *grid, int64_t n, grid_taps *t) {
    t->inside = 1;
    for (int64_t i = 0; i < n; i++) {
        const double x = position(s, (double)grid[2 * i], s->in[1]);
        const double y = position(s, (double)grid[2 * i + 1], s->in[0]);
        if (s->taps == 1) {
            set_tap(s, t, 0, i, (int64_t)rint(y), (int64_t)rint(x), 1);
            continue;
        }
        const double left = floor(x), top = floor(y);
        for (int k = 0; k < 4; k++) {
            const double row = top + k / 2, column = left + k % 2;
            set_tap(s, t, k, i, (int64_t)row, (int64_t)column,
                    (1 - fabs(row - y)) * (1 - fabs(column - x)));
        }
    }
}

/* y[i]: the sample at point i of n, whose taps all lie inside the picture x. */
static void sample_inside(const grid_taps *t, const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = (t->weight[0][i] * x[t->at[0][i]] + t->weight[1][i] * x[t->at[1][i]]) +
               (t->weight[2][i] * x[t->at[2][i]] + t->weight[3][i] * x[t->at[3][i]]);
}

/* Samples n points of a plane x into y; taps outside count as 0. */
static void sample(const grid_state *s, const grid_taps *t, const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int32_t k = 0; k < s->taps; k++)
            if (t->at[k][i] >= 0) sum += t->weight[k][i] * x[t->at[k][i]];
        y[i] = sum;
    }
}

/* Arguments of the tasks of a run. */
typedef struct grid_job {
    const grid_state *s;
    const cnr_run *run;
} grid_job;

/* Task i of the grid_job `arg`: samples some points in all channels. */
static void some_points(void *arg, int64_t i, int32_t thread) {
    const grid_job *job = arg;
    const grid_state *s = job->s;
    const int64_t tasks = cnr_div_up(s->points, s->task), image = i / tasks;
    const int64_t begin = i % tasks * s->task, end = cnr_min(s->points, begin + s->task);
    const int64_t area = s->in[0] * s->in[1];
    const float *x = neon_floats(job->run->node->inputs[0]) + image * s->channels * area;
    const float *grid = neon_floats(job->run->node->inputs[1]) + image * s->points * 2;
    float *y = (float *)job->run->outputs[0]->data + image * s->channels * s->points;
    grid_taps t;
    (void)thread;
    if (cnr_cancelled(job->run->stream)) return;
    for (int64_t at = begin; at < end; at += POINTS) {
        const int64_t n = cnr_min(POINTS, end - at);
        make_taps(s, grid + 2 * at, n, &t);
        for (int64_t c = 0; c < s->channels; c++) {
            if (t.inside && s->taps == 4)
                sample_inside(&t, x + c * area, y + c * s->points + at, n);
            else sample(s, &t, x + c * area, y + c * s->points + at, n);
        }
    }
}

/* Samples all points on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const grid_state *s = run->state;
    grid_job job = {s, run};
    (void)err;
    cnr_parallel(run->stream, s->batch * cnr_div_up(s->points, s->task), some_points, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_grid_sample, "grid_sample_f32", "grid_sample", plan, neon_free_state);
