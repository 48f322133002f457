/* resize and upsample of any axes in any mode: sums the input rows that contribute to an output
 * row, then computes its elements by a table of taps. */
#include "blocked.h"
#include "resize_node.h"
#include "shapes.h"

/* Floats of a task. */
#define TASK ((int64_t)1 << 14)

/* An input row that contributes to an output index along an axis before the last. */
typedef struct row_tap {
    int64_t at; /* offset of the input row, in floats */
    float weight;
} row_tap;

/* Plan of resize: taps of each axis. */
typedef struct resize_state {
    neon_chain chain;
    int32_t outer; /* axes before the one along which rows run */
    int64_t out[CNR_MAX_RANK], taps[CNR_MAX_RANK];
    row_tap *row[CNR_MAX_RANK];
    int64_t rows, mixes; /* mixes: input rows that contribute to an output row */
    int64_t wide;        /* floats of an input row */
    neon_resample along;
} resize_state;

/* Returns the last axis that changes, along which rows run; at least axis 2, so not across channel
 * blocks. */
static int32_t last_axis(const resize_plan *p, const cnr_tensor *x) {
    int32_t a = x->rank - 1;
    while (a > 2 && resize_stays(p, x, a)) a--;
    return a;
}

/* 1 if the node is dense f32 with known factors, which *p then has. */
static int fits(const cnr_node *node, resize_plan *p) {
    const cnr_tensor *x = cnr_own_input(node, 0), *y = node->outputs[0];
    if (!x || x->rank < 1 || !cnr_is_plain(x, 1u << CNR_f32) || !cnr_is_plain(y, 1u << CNR_f32))
        return 0;
    for (int32_t a = 0; a < x->rank; a++)
        if (x->dim[a] < 1 || x->dim[a] > INT32_MAX / 2 || y->dim[a] < 0) return 0;
    return resize_plan_of(neon_host, node, p);
}

/* Takes resize with known factors; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    resize_plan p;
    (void)device;
    if (!fits(node, &p)) return cnr_refuse(out, "f32, known factors and no region are wanted");
    const cnr_tensor *x = node->inputs[0], *y = node->outputs[0];
    const int32_t block = out->in_block[0];
    const int blocked = x->rank > 2 && block > 1 && resize_stays(&p, x, 0) &&
                        resize_stays(&p, x, 1) && block == neon_block_of(y->rank, y->dim);
    neon_blocked_take(node, out, 500, blocked ? block : 0, blocked ? block : 0);
    out->epilogue = neon_chain_accepts(node, y->rank, y->dim);
    return CNR_OK;
}

/* Fills the table of an axis before the rows' one, whose neighbours are `step` floats apart. */
static void fill_rows(const resize_plan *p, int32_t a, int64_t in, int64_t step, int64_t taps,
                      resize_tap *room, row_tap *out) {
    for (int64_t i = 0; i < p->size[a]; i++) {
        resize_fill(p, a, i, in, step, taps, room);
        for (int64_t k = 0; k < taps; k++)
            out[i * taps + k] = (row_tap){room[k].at, (float)room[k].weight};
    }
}

/* Taps with weight 0 get half of another tap's weight and index: 0 times infinity would be NaN. */
static void share_weights(resize_tap *tap, int64_t n) {
    int64_t most = 0;
    for (int64_t k = 1; k < n; k++)
        if (fabs(tap[k].weight) > fabs(tap[most].weight)) most = k;
    for (int64_t k = 0; k < n; k++) {
        if ((float)tap[k].weight != 0.0f) continue;
        tap[most].weight /= 2;
        tap[k] = tap[most];
    }
}

/* Fills the taps of axis a, along which rows run. */
static void fill_along(const resize_plan *p, int32_t a, int64_t in, resize_tap *room,
                       const neon_resample *along, int32_t *at, float *weight) {
    for (int64_t i = 0; i < along->n; i++) {
        resize_fill(p, a, i, in, 1, along->taps, room);
        share_weights(room, along->taps);
        for (int64_t k = 0; k < along->taps; k++) {
            at[k * along->pitch + i] = (int32_t)room[k].at;
            weight[k * along->pitch + i] = (float)room[k].weight;
        }
    }
}

/* Computes s's sizes and number of taps, without the tables; raises *most to the most taps of an
 * axis, and returns the tables' bytes. */
static int64_t measure(const resize_plan *p, const cnr_tensor *x, resize_state *s, int64_t *most) {
    const int32_t last = last_axis(p, x);
    const int64_t block = cnr_max(1, x->block);
    int64_t bytes = 0;
    s->rows = s->mixes = 1;
    s->outer = last;
    for (int32_t a = 0; a <= last; a++) {
        const int64_t taps = resize_taps(p, a, x->dim[a]);
        *most = cnr_max(*most, taps);
        if (a == last) break;
        s->out[a] = a == 1 ? p->size[a] / block : p->size[a];
        s->taps[a] = taps;
        s->rows *= s->out[a];
        s->mixes *= taps;
        bytes += p->size[a] * taps * (int64_t)sizeof(row_tap);
    }
    s->along = (neon_resample){.n = p->size[last],
                               .taps = resize_taps(p, last, x->dim[last]),
                               .pitch = cnr_round_up(p->size[last], 16),
                               .inner = cnr_span(x, last + 1, x->rank) * block};
    s->wide = x->dim[last] * s->along.inner;
    return bytes + s->along.pitch * s->along.taps * 8 + *most * (int64_t)sizeof(resize_tap);
}

/* Fills the tables of all axes. */
static void fill_tables(const resize_plan *p, const cnr_tensor *x, resize_state *s, int64_t most) {
    resize_tap *room = (resize_tap *)(s + 1);
    row_tap *row = (row_tap *)(room + most);
    int64_t step = s->wide;
    for (int32_t a = s->outer - 1; a >= 0; a--) {
        const int64_t in = a == 1 ? x->dim[a] / cnr_max(1, x->block) : x->dim[a];
        s->row[a] = row;
        fill_rows(p, a, x->dim[a], step, s->taps[a], room, row);
        row += p->size[a] * s->taps[a];
        step *= in;
    }
    const int64_t n = s->along.pitch * s->along.taps;
    float *weight = (float *)row;
    int32_t *at = (int32_t *)(weight + n);
    fill_along(p, s->outer, x->dim[s->outer], room, &s->along, at, weight);
    s->along.weight = weight;
    s->along.at = at;
}

/* Allocates and fills the tables in *state; fails with CNR_E_MEMORY or CNR_E_SHAPE. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    resize_state shape = {.outer = 0};
    resize_plan p;
    int64_t most = 1;
    if (!fits(node, &p)) return neon_host->fail(err, CNR_E_SHAPE, node->name, "wants f32");
    const int64_t bytes = measure(&p, node->inputs[0], &shape, &most);
    resize_state *s = cnr_state(neon_host, node, sizeof *s + (size_t)bytes, err);
    if (!s) return CNR_E_MEMORY;
    *s = shape;
    neon_chain_plan(node, &s->chain);
    fill_tables(&p, node->inputs[0], s, most);
    if (s->mixes > 1)
        workspace->bytes = (uint64_t)(cnr_round_up(s->wide, 16) * device->concurrency) * 4;
    *state = s;
    return CNR_OK;
}

/* Returns the input row for output row r: in place, or the weighted sum of several in `room`. */
static const float *source_row(const resize_state *s, const float *x, int64_t r, float *room) {
    const row_tap *tap[CNR_MAX_RANK];
    int begun = 0;
    for (int32_t a = s->outer - 1; a >= 0; a--) {
        tap[a] = s->row[a] + r % s->out[a] * s->taps[a];
        r /= s->out[a];
    }
    for (int64_t m = 0; m < s->mixes; m++) {
        int64_t left = m, at = 0;
        float weight = 1;
        for (int32_t a = s->outer - 1; a >= 0; a--) {
            at += tap[a][left % s->taps[a]].at;
            weight *= tap[a][left % s->taps[a]].weight;
            left /= s->taps[a];
        }
        if (s->mixes == 1) return x + at;
        if (weight == 0.0f) continue;
        if (begun++) neon_uk->add_scaled(room, x + at, weight, s->wide);
        else neon_uk->affine(x + at, weight, 0.0f, room, s->wide);
    }
    if (!begun) memset(room, 0, (size_t)s->wide * sizeof *room);
    return room;
}

/* Arguments of the tasks of a run. */
typedef struct resize_job {
    const resize_state *s;
    const cnr_run *run;
    int64_t task_rows;
} resize_job;

/* Task i of the resize_job `arg`: computes some rows of the output. */
static void some_rows(void *arg, int64_t i, int32_t thread) {
    const resize_job *job = arg;
    const resize_state *s = job->s;
    const int64_t length = s->along.n * s->along.inner, begin = i * job->task_rows;
    const float *x = neon_floats(job->run->node->inputs[0]), *before = NULL;
    float *y = (float *)job->run->outputs[0]->data;
    float *room = s->mixes == 1
                      ? NULL
                      : (float *)job->run->workspace_data + thread * cnr_round_up(s->wide, 16);
    if (cnr_cancelled(job->run->stream)) return;
    for (int64_t r = begin; r < cnr_min(s->rows, begin + job->task_rows); r++) {
        const float *from = source_row(s, x, r, room);
        if (from == before && from != room && s->chain.n == 0)
            memcpy(y + r * length, y + (r - 1) * length, (size_t)length * sizeof *y);
        else neon_uk->resample(&s->along, from, y + r * length);
        neon_chain_run(&s->chain, job->run->node, y + r * length, r * length, length);
        before = from;
    }
}

/* Computes all rows on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const resize_state *s = run->state;
    const int64_t length = cnr_max(1, s->along.n * s->along.inner);
    resize_job job = {s, run, cnr_max(1, TASK / length)};
    (void)err;
    if (s->along.n > 0)
        cnr_parallel(run->stream, cnr_div_up(s->rows, job.task_rows), some_rows, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_resize, "resize_f32", "resize", plan, neon_free_state);
NEON_KERNEL(neon_upsample, "upsample_f32", "upsample", plan, neon_free_state);
