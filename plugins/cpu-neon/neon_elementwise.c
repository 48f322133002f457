/* Any element-wise operator of one or two f32 operands, by its apply_f32 hook: in chunks on all
 * threads, with broadcasting; the epilogue is applied while a chunk is in the cache. */
#include "support.h"
#include "shapes.h"

/* Elements of a task, and of a chunk, which fits the L1 cache. */
#define TASK 32768
#define CHUNK 2048

/* Operand strides along the output's axes; axes that are consecutive in both operands are
 * merged. */
typedef struct elementwise_state {
    neon_chain chain;
    neon_link link;
    int32_t rank, binary;
    int64_t dim[CNR_MAX_RANK], x_step[CNR_MAX_RANK], y_step[CNR_MAX_RANK];
} elementwise_state;

/* 1 if the node is an element-wise operator on one or two f32 inputs that broadcast to output 0;
 * else 0. */
static int fits(const cnr_node *node) {
    const int32_t n = cnr_own_inputs(node);
    const cnr_op *op = node->desc;
    int64_t step[CNR_MAX_RANK];
    if (!(op->flags & CNR_OP_ELEMENTWISE) || !CNR_HAS(op, apply_f32)) return 0;
    if (node->n_outputs != 1 || n < 1 || n > 2 || !neon_all_f32(node)) return 0;
    for (int32_t i = 0; i < n; i++)
        if (!node->inputs[i] || !shape_strides(node->inputs[i], node->outputs[0], step)) return 0;
    return n == 2 || cnr_same_shape(node->inputs[0], node->outputs[0]);
}

/* Takes elementwise f32 operators of one or two operands; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (!fits(node)) return cnr_refuse(out, "one or two f32 operands and apply_f32 are wanted");
    const cnr_tensor *y = node->outputs[0];
    cnr_take(node, out, 300);
    out->epilogue = neon_chain_accepts_broadcast(node, y->rank, y->dim);
    for (int32_t axis = 0; axis < y->rank; axis++) { /* merges consecutive ranges */
        out->ranges |= 1u << axis;
        if (y->dim[axis] != 1) break;
    }
    return CNR_OK;
}

/* Merges axes that lie behind each other in both operands. */
static void merge_axes(elementwise_state *s, const cnr_tensor *y, const int64_t *x_step,
                       const int64_t *y_step) {
    for (int32_t i = 0; i < y->rank; i++) {
        const int32_t last = s->rank - 1;
        if (y->dim[i] == 1) continue;
        if (last >= 0 && s->x_step[last] == x_step[i] * y->dim[i] &&
            s->y_step[last] == y_step[i] * y->dim[i]) {
            s->dim[last] *= y->dim[i];
            s->x_step[last] = x_step[i];
            s->y_step[last] = y_step[i];
            continue;
        }
        s->dim[s->rank] = y->dim[i];
        s->x_step[s->rank] = x_step[i];
        s->y_step[s->rank++] = y_step[i];
    }
    if (s->rank == 0) { /* one element */
        s->dim[0] = s->rank = 1;
        s->x_step[0] = s->y_step[0] = 1;
    }
}

/* Finds the strides of both operands in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    int64_t x_step[CNR_MAX_RANK] = {0}, y_step[CNR_MAX_RANK] = {0};
    (void)device;
    (void)workspace;
    elementwise_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    neon_chain_plan(node, &s->chain);
    s->link = neon_link_of(node);
    s->binary = cnr_own_inputs(node) == 2;
    shape_strides(node->inputs[0], node->outputs[0], x_step);
    shape_strides(node->inputs[s->binary], node->outputs[0], y_step);
    merge_axes(s, node->outputs[0], x_step, y_step);
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct elementwise_job {
    const elementwise_state *s;
    const cnr_run *run;
    const float *x, *y;
    float *out;
    int64_t begin, end;
} elementwise_job;

/* Returns n consecutive elements of an operand in place, or one element repeated n times in `room`
 * (step 0). */
static const float *operand(const float *at, int64_t step, int64_t n, float *room) {
    if (step) return at;
    for (int64_t i = 0; i < n; i++) room[i] = *at;
    return room;
}

/* Applies the operator to n elements of x and y (binary) into out. */
static void apply(const elementwise_job *job, const float *x, const float *y, float *out,
                  int64_t n) {
    const elementwise_state *s = job->s;
    const cnr_node *node = job->run->node;
    if (!s->binary) {
        neon_link_unary(&s->link, node, x, out, n);
        return;
    }
    const int fast = s->link.kind == NEON_LINK_ADD || s->link.kind == NEON_LINK_MUL ||
                     s->link.kind == NEON_LINK_DIV;
    if (!fast || (out == y && out != x)) {
        node->desc->apply_f32(node, x, y, out, n);
        return;
    }
    if (out != x) memcpy(out, x, (size_t)n * sizeof *x);
    if (s->link.kind == NEON_LINK_ADD) neon_uk->add(out, y, n);
    else if (s->link.kind == NEON_LINK_MUL) neon_uk->mul(out, y, n);
    else neon_uk->divide(out, y, n);
}

/* Task i of the elementwise_job `arg`: computes some of the output's elements. */
static void one_task(void *arg, int64_t i, int32_t thread) {
    const elementwise_job *job = arg;
    const elementwise_state *s = job->s;
    const int64_t end = cnr_min(job->end, job->begin + (i + 1) * TASK);
    const int32_t inner = s->rank - 1;
    float x_room[CHUNK], y_room[CHUNK];
    (void)thread;
    if (cnr_cancelled(job->run->stream)) return;
    for (int64_t at = job->begin + i * TASK; at < end;) {
        int64_t rest = at / s->dim[inner], x_at = 0, y_at = 0;
        const int64_t column = at % s->dim[inner];
        for (int32_t axis = inner - 1; axis >= 0; axis--) {
            x_at += rest % s->dim[axis] * s->x_step[axis];
            y_at += rest % s->dim[axis] * s->y_step[axis];
            rest /= s->dim[axis];
        }
        const int64_t n = cnr_min(cnr_min(CHUNK, end - at), s->dim[inner] - column);
        const int64_t xs = s->x_step[inner], ys = s->y_step[inner];
        const float *x = operand(job->x + x_at + column * xs, xs, n, x_room);
        const float *y = s->binary ? operand(job->y + y_at + column * ys, ys, n, y_room) : NULL;
        apply(job, x, y, job->out + at, n);
        neon_chain_run(&s->chain, job->run->node, job->out + at, at, n);
        at += n;
    }
}

/* Computes all elements on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const elementwise_state *s = run->state;
    const cnr_tensor *out = run->outputs[0];
    const cnr_pieces piece = cnr_pieces_of(run); /* the only one: see accepts */
    elementwise_job job = {s,
                           run,
                           neon_floats(run->node->inputs[0]),
                           s->binary ? neon_floats(run->node->inputs[1]) : NULL,
                           out->data,
                           piece.first,
                           piece.first + piece.length};
    (void)err;
    cnr_parallel(run->stream, cnr_div_up(job.end - job.begin, TASK), one_task, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_elementwise, "elementwise_f32", CNR_ANY_OP, plan, neon_free_state);
