/* layer, instance and group normalisation: normalises rows of consecutive elements. */
#include "support.h"
#include "shapes.h"

/* About the number of elements of a task. */
#define TASK ((int64_t)1 << 14)

/* How scale or shift lie along a row: element i uses number i / each % n. */
typedef struct row_operand {
    int64_t each, n;
} row_operand;

/* Plan of layer, group or instance normalisation. */
typedef struct row_norm_state {
    neon_chain chain;
    int64_t length;     /* elements of a row */
    int64_t rows, step; /* row r's scale and shift start at number r % rows * step */
    row_operand operand[2];
    double epsilon;
    int32_t centred; /* 0: RMS normalisation */
} row_norm_state;

/* Reads the sizes of layer_normalization into s; returns 0: the kernel does not take it. */
static int layer_shape(const cnr_node *node, const cnr_tensor *x, row_norm_state *s) {
    const int32_t axis = shape_axis(cnr_attr_int(node, "axis"), x->rank);
    if (axis < 0) return 0;
    s->length = cnr_span(x, axis, x->rank);
    s->rows = 1;
    for (int32_t i = 0; i < 2; i++) {
        const cnr_tensor *t = cnr_own_input(node, 1 + i);
        s->operand[i] = (row_operand){s->length, 1};
        if (t &&
            !shape_stretch(t, x->rank - axis, x->dim + axis, &s->operand[i].each, &s->operand[i].n))
            return 0;
    }
    return 1;
}

/* Sizes of a normalisation by groups into *s; of instance_normalization each channel is a group. 0:
 * not one that rows can do. */
static int group_shape(const cnr_node *node, const cnr_tensor *x, row_norm_state *s) {
    const cnr_tensor *scale = cnr_own_input(node, 1), *shift = cnr_own_input(node, 2);
    if (x->rank < 2 || x->dim[1] < 1 || !scale || !shift || cnr_count(scale) != cnr_count(shift))
        return 0;
    const int grouped = strcmp(node->desc->name, "group_normalization") == 0;
    s->rows = grouped ? cnr_attr_int(node, "num_groups") : x->dim[1];
    if (s->rows < 1 || cnr_count(scale) % s->rows) return 0;
    s->length = x->dim[1] / s->rows * cnr_span(x, 2, x->rank);
    s->step = cnr_count(scale) / s->rows;
    for (int32_t i = 0; i < 2; i++)
        s->operand[i] = (row_operand){s->length / cnr_max(1, s->step), s->step};
    return 1;
}

/* 1 for layer_normalization. */
static int is_layer(const cnr_node *node) {
    return strcmp(node->desc->name, "layer_normalization") == 0;
}

/* Reads the sizes into s; returns 0: the kernel does not take the node. */
static int shape_of(const cnr_node *node, row_norm_state *s) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    if (!x || x->rank < 1 || !neon_all_f32(node)) return 0;
    if (!(is_layer(node) ? layer_shape : group_shape)(node, x, s)) return 0;
    return s->length > 0;
}

/* Takes f32 layer, group and instance normalisation; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    row_norm_state s = {.length = 0};
    (void)device;
    if (!shape_of(node, &s))
        return cnr_refuse(out, "dense f32, and a scale along one stretch of axes are wanted");
    const cnr_tensor *y = node->outputs[0];
    cnr_take(node, out, 500);
    if (node->n_outputs > 1) return CNR_OK; /* mean and deviation are outputs too */
    out->epilogue = neon_chain_accepts_broadcast(node, y->rank, y->dim);
    out->ranges = is_layer(node) ? (1u << shape_axis(cnr_attr_int(node, "axis"), y->rank)) - 1 : 3;
    return CNR_OK;
}

/* Notes the sizes in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    (void)workspace;
    row_norm_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    neon_chain_plan(node, &s->chain);
    shape_of(node, s);
    s->epsilon = cnr_attr_float(node, "epsilon");
    s->centred = !is_layer(node) || cnr_attr_int(node, "centred");
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct row_norm_job {
    const row_norm_state *s;
    const cnr_run *run;
    cnr_pieces piece;
    int64_t rows, task_rows;
    const float *operand[2]; /* scale and shift; NULL: none */
} row_norm_job;

/* Scale or shift from element i of a row on: sets *many to consecutive numbers, or else *one to a
 * number. Returns how many elements it covers. */
static int64_t operand_at(const row_norm_job *job, int32_t port, int64_t base, int64_t i,
                          float *one, const float **many) {
    const row_operand *o = &job->s->operand[port];
    const float *from = job->operand[port];
    *many = NULL;
    if (!from) return job->s->length - i;
    if (o->each == 1) *many = from + base + i % o->n;
    else *one = from[base + i / o->each % o->n];
    return o->each == 1 ? o->n - i % o->n : o->each - i % o->each;
}

/* Scales a row that is normalised by mean and inverse deviation. */
static void scale_row(const row_norm_job *job, int64_t row, double mean, double inverse,
                      const float *x, float *y) {
    const row_norm_state *s = job->s;
    const int64_t base = row % s->rows * s->step;
    neon_normal by = {.mean = (float)mean};
    by.mean_rest = __builtin_isfinite(by.mean) ? (float)(mean - (double)by.mean) : 0.0f;
    for (int64_t i = 0; i < s->length;) {
        float scale = 1;
        by.start = 0;
        int64_t n = operand_at(job, 0, base, i, &scale, &by.scale);
        n = cnr_min(n, operand_at(job, 1, base, i, &by.start, &by.shift));
        n = cnr_min(n, s->length - i);
        by.factor = (float)(inverse * (double)scale);
        neon_uk->normalise(&by, x + i, y + i, n);
        i += n;
    }
}

/* Normalises row i. */
static void one_row(const row_norm_job *job, int64_t i) {
    const row_norm_state *s = job->s;
    const cnr_node *node = job->run->node;
    const int64_t per_piece = job->piece.length / s->length;
    const int64_t at =
        job->piece.first + i / per_piece * job->piece.pitch + i % per_piece * s->length;
    const float *x = neon_floats(node->inputs[0]) + at;
    float *y = (float *)job->run->outputs[0]->data + at;
    double mean, variance;
    if (s->centred) neon_uk->moments(x, s->length, &mean, &variance);
    else mean = 0, variance = neon_uk->centred(x, 0, x, 0, s->length) / (double)s->length;
    const double inverse = 1 / __builtin_sqrt(variance + s->epsilon);
    const double stats[] = {mean, inverse};
    for (int32_t o = 1; o < node->n_outputs; o++)
        ((float *)job->run->outputs[o]->data)[at / s->length] = (float)stats[o - 1];
    scale_row(job, at / s->length, mean, inverse, x, y);
    neon_chain_run(&s->chain, node, y, at, s->length);
}

/* Task i of the row_norm_job `arg`: normalises some rows. */
static void some_rows(void *arg, int64_t i, int32_t thread) {
    const row_norm_job *job = arg;
    const int64_t end = cnr_min(job->rows, (i + 1) * job->task_rows);
    (void)thread;
    if (cnr_cancelled(job->run->stream)) return;
    for (int64_t row = i * job->task_rows; row < end; row++) one_row(job, row);
}

/* Normalises all rows on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const row_norm_state *s = run->state;
    const cnr_pieces piece = cnr_pieces_of(run);
    const row_norm_job job = {s,
                              run,
                              piece,
                              piece.n * (piece.length / s->length),
                              cnr_max(1, TASK / s->length),
                              {neon_floats(cnr_own_input(run->node, 1)),
                               neon_floats(cnr_own_input(run->node, 2))}};
    (void)err;
    cnr_parallel(run->stream, cnr_div_up(job.rows, job.task_rows), some_rows, (void *)&job);
    return CNR_OK;
}

NEON_KERNEL(neon_layer_normalization, "layer_normalization_f32", "layer_normalization", plan,
            neon_free_state);
NEON_KERNEL(neon_instance_normalization, "instance_normalization_f32", "instance_normalization",
            plan, neon_free_state);
NEON_KERNEL(neon_group_normalization, "group_normalization_f32", "group_normalization", plan,
            neon_free_state);
