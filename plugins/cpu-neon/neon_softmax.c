/* softmax along any axis. */
#include "support.h"
#include "shapes.h"

/* Plan of softmax: the axis has n elements, `inner` apart. */
typedef struct softmax_state {
    int64_t outer, n, inner;
} softmax_state;

/* Adjacent lanes processed at a time if the axis is not the last. */
#define LANES 64

/* Reads the sizes into s (outer x n x inner, softmax along n); returns 0: the kernel does not take
 * the node. */
static int shape_of(const cnr_node *node, softmax_state *s) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    if (!x || x->rank < 1 || !neon_all_f32(node)) return 0;
    const int32_t axis = shape_axis(cnr_attr_int(node, "axis"), x->rank);
    if (axis < 0) return 0;
    s->outer = cnr_span(x, 0, axis);
    s->n = x->dim[axis];
    s->inner = cnr_span(x, axis + 1, x->rank);
    return s->n > 0;
}

/* Takes f32 softmax; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    softmax_state s;
    (void)device;
    if (!shape_of(node, &s)) return cnr_refuse(out, NEON_WANTS_F32);
    return cnr_take(node, out, 500);
}

/* Notes the sizes in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    (void)workspace;
    softmax_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    shape_of(node, s);
    *state = s;
    return CNR_OK;
}

/* Task i of the cnr_run `arg`: softmax of a contiguous row. */
static void one_row(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const softmax_state *s = run->state;
    const float *x = neon_floats(run->node->inputs[0]) + i * s->n;
    float *y = (float *)run->outputs[0]->data + i * s->n;
    (void)thread;
    const float sum = neon_uk->exp_sum(x, neon_uk->max(x, s->n), y, s->n);
    neon_uk->affine(y, 1.0f / sum, 0.0f, y, s->n);
}

/* Task i of the cnr_run `arg`: softmax of some neighbouring columns. */
static void some_lanes(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const softmax_state *s = run->state;
    const int64_t blocks = cnr_div_up(s->inner, LANES), from = i % blocks * LANES;
    const int64_t wide = cnr_min(LANES, s->inner - from);
    const int64_t first = i / blocks * s->n * s->inner + from;
    const float *x = neon_floats(run->node->inputs[0]) + first;
    float *y = (float *)run->outputs[0]->data + first;
    float best[LANES], sum[LANES] = {0};
    (void)thread;
    memcpy(best, x, (size_t)wide * sizeof *best);
    for (int64_t k = 1; k < s->n; k++)
        for (int64_t j = 0; j < wide; j++)
            if (x[k * s->inner + j] > best[j]) best[j] = x[k * s->inner + j];
    for (int64_t k = 0; k < s->n; k++) {
        float *row = y + k * s->inner;
        for (int64_t j = 0; j < wide; j++) row[j] = x[k * s->inner + j] - best[j];
        neon_uk->exp_sum(row, 0.0f, row, wide);
        for (int64_t j = 0; j < wide; j++) sum[j] += row[j];
    }
    for (int64_t k = 0; k < s->n; k++)
        for (int64_t j = 0; j < wide; j++) y[k * s->inner + j] /= sum[j];
}

/* Computes everything on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const softmax_state *s = run->state;
    cnr_run copy = *run;
    (void)err;
    if (s->inner == 1) cnr_parallel(run->stream, s->outer, one_row, &copy);
    else cnr_parallel(run->stream, s->outer * cnr_div_up(s->inner, LANES), some_lanes, &copy);
    return CNR_OK;
}

NEON_KERNEL(neon_softmax, "softmax_f32_lanes", "softmax", plan, neon_free_state);
