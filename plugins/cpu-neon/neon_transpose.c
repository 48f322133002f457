/* transpose of any axes: copies runs that stay contiguous; otherwise transposes matrices in strips
 * of a cache line. */
#include "support.h"
#include "shapes.h"

/* Columns of a strip: a cache line. */
#define STRIP 16
/* Elements of a task that copies runs. */
#define TASK ((int64_t)1 << 14)

/* Axes in the output's order, with those that stay adjacent merged; strides in elements. The last
 * axis is the output's rows. */
typedef struct transpose_state {
    /* turned: the axis along which x is consecutive; if it is the last, runs stay contiguous */
    int32_t rank, turned;
    int64_t dim[CNR_MAX_RANK], in[CNR_MAX_RANK], out[CNR_MAX_RANK];
    int64_t outer; /* product of the sizes of all axes but the last */
} transpose_state;

/* Adds an axis of the output, merged with the last where possible. */
static void add_axis(transpose_state *s, int64_t dim, int64_t in) {
    const int32_t last = s->rank - 1;
    if (dim == 1) return;
    if (last >= 0 && s->in[last] == in * dim) {
        s->dim[last] *= dim;
        s->in[last] = in;
        return;
    }
    s->dim[s->rank] = dim;
    s->in[s->rank++] = in;
}

/* Finds the axes of the output and their steps in the input. */
static void measure(const cnr_node *node, transpose_state *s) {
    const cnr_tensor *x = node->inputs[0], *y = node->outputs[0];
    int64_t n, step = 1;
    const int64_t *perm = cnr_attr_ints(node, "perm", &n);
    for (int32_t i = 0; i < y->rank; i++) {
        const int32_t axis = n > 0 ? shape_axis(perm[i], x->rank) : x->rank - 1 - i;
        add_axis(s, y->dim[i], cnr_span(x, axis + 1, x->rank));
    }
    if (s->rank == 0) { /* one element */
        s->dim[0] = s->in[0] = s->rank = 1;
    }
    for (int32_t a = s->rank - 1; a >= 0; step *= s->dim[a--]) {
        s->out[a] = step;
        if (s->in[a] == 1) s->turned = a;
    }
    s->outer = 1;
    for (int32_t a = 0; a < s->rank - 1; a++)
        if (a != s->turned) s->outer *= s->dim[a];
}

/* Takes elements of 4 bytes; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    (void)device;
    if (!x || !cnr_all_plain(node, 1u << CNR_f32 | 1u << CNR_i32 | 1u << CNR_u32))
        return cnr_refuse(out, "dense elements of 4 bytes are wanted");
    for (int32_t a = 0; a < x->rank; a++)
        if (x->dim[a] < 1) return cnr_refuse(out, "there is nothing to move");
    return cnr_take(node, out, 500);
}

/* Notes the axes in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    (void)workspace;
    transpose_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    measure(node, s);
    *state = s;
    return CNR_OK;
}

/* Offsets in x and in y (*to) of index i over the axes other than the last and `turned`. */
static int64_t place(const transpose_state *s, int64_t i, int64_t *to) {
    int64_t from = 0;
    *to = 0;
    for (int32_t a = s->rank - 2; a >= 0; a--) {
        if (a == s->turned) continue;
        from += i % s->dim[a] * s->in[a];
        *to += i % s->dim[a] * s->out[a];
        i /= s->dim[a];
    }
    return from;
}

/* Task i of the cnr_run `arg`: transposes a strip. */
static void one_strip(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const transpose_state *s = run->state;
    const int32_t q = s->turned, last = s->rank - 1;
    const int64_t strips = cnr_div_up(s->dim[q], STRIP), first = i % strips * STRIP;
    int64_t to;
    const int64_t from = place(s, i / strips, &to);
    (void)thread;
    neon_uk->turn((const float *)run->node->inputs[0]->data + from + first, s->in[last],
                  (float *)run->outputs[0]->data + to + first * s->out[q], s->out[q], s->dim[last],
                  cnr_min(STRIP, s->dim[q] - first));
}

/* Returns how many runs of contiguous elements make a task; at least 1. */
static int64_t task_runs(const transpose_state *s) {
    return cnr_max(1, TASK / s->dim[s->rank - 1]);
}

/* Advances `index` to the next run of the output, whose runs are adjacent; returns the new input
 * offset, in elements. */
static int64_t next_run(const transpose_state *s, int64_t *index, int64_t from) {
    for (int32_t a = s->rank - 2; a >= 0; a--) {
        from += s->in[a];
        if (++index[a] < s->dim[a]) break;
        from -= s->in[a] * s->dim[a];
        index[a] = 0;
    }
    return from;
}

/* Task i of the cnr_run `arg`: copies some runs. */
static void some_runs(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const transpose_state *s = run->state;
    const int64_t n = s->dim[s->rank - 1], first = i * task_runs(s);
    const int64_t runs = cnr_min(s->outer - first, task_runs(s));
    int64_t index[CNR_MAX_RANK], to, left = first, from = place(s, first, &to);
    float *y = (float *)run->outputs[0]->data + to;
    (void)thread;
    for (int32_t a = s->rank - 2; a >= 0; left /= s->dim[a--]) index[a] = left % s->dim[a];
    for (int64_t r = 0; r < runs; r++, y += n, from = next_run(s, index, from))
        memcpy(y, neon_floats(run->node->inputs[0]) + from, (size_t)n * sizeof *y);
}

/* Transposes or copies everything on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const transpose_state *s = run->state;
    (void)err;
    if (run->outputs[0]->data == run->node->inputs[0]->data) return CNR_OK;
    if (s->turned == s->rank - 1)
        cnr_parallel(run->stream, cnr_div_up(s->outer, task_runs(s)), some_runs, (void *)run);
    else
        cnr_parallel(run->stream, s->outer * cnr_div_up(s->dim[s->turned], STRIP), one_strip,
                     (void *)run);
    return CNR_OK;
}

NEON_KERNEL(neon_transpose, "transpose_b32", "transpose", plan, neon_free_state);
