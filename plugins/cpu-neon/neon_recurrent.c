/* lstm, gru and rnn: one packed product for the inputs of a stretch of steps. Then for each step a
 * product of h with recurrent weights that stay in the cache, and the gates. */
#include "gemm.h"
#include "support.h"

enum { X, W, R, BIAS, LENGTHS, FIRST_H, FIRST_C, PEEPHOLES }; /* ports */

/* About the number of floats of gates that are computed ahead; they stay in the L2 cache. */
#define AHEAD ((int64_t)1 << 18)

/* Plan of rnn, lstm or gru. */
typedef struct recurrent_state {
    /* gates: how many, not their vectors */
    int64_t times, batch, inputs, hidden, directions, gates;
    int32_t reverse;      /* the first direction runs backwards */
    int32_t linear;       /* gru: the reset gate is applied after the product */
    int32_t packed;       /* the weights are constant and in the blob */
    int64_t stretch;      /* steps whose inputs are multiplied at once */
    int64_t blocks, rows; /* of sequences; each block in each direction is a task */
    int64_t part[2];      /* columns of r that are multiplied at a time; gru: two parts */
    /* Packed weights: floats of a direction, and offsets of the parts of r. */
    int64_t weights, part_at[2];
    /* Offsets in the workspace, in floats; those with an `each` exist for each direction. */
    int64_t room, rooms_at, x_at, each, gates_at, h_at, c_at, bias_at, a_at, other_at, weights_at;
    int64_t floats;
} recurrent_state;

/* 1 if the node's operator has that name. */
static int is(const cnr_node *node, const char *name) {
    return strcmp(node->desc->name, name) == 0;
}

/* 1 if all inputs and outputs have dense plain types. */
static int all_plain(const cnr_node *node) {
    for (int32_t i = 0; i < cnr_own_inputs(node); i++)
        if (node->inputs[i] &&
            !cnr_is_plain(node->inputs[i], 1u << (i == LENGTHS ? CNR_i32 : CNR_f32)))
            return 0;
    for (int32_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && !cnr_is_plain(node->outputs[i], 1u << CNR_f32)) return 0;
    return 1;
}

/* Reads the sizes into s; returns 0: the kernel does not take the node. */
static int shape_of(const cnr_node *node, recurrent_state *s) {
    const cnr_tensor *x = cnr_own_input(node, X), *w = cnr_own_input(node, W);
    const cnr_tensor *r = cnr_own_input(node, R);
    memset(s, 0, sizeof *s);
    if (!x || !w || !r || !all_plain(node)) return 0;
    s->times = x->dim[0];
    s->batch = x->dim[1];
    s->inputs = x->dim[2];
    s->hidden = r->dim[2];
    s->directions = r->dim[0];
    s->gates = r->dim[1];
    if (s->times < 0 || s->batch < 0 || s->inputs < 0 || s->hidden < 1) return 0;
    s->reverse = cnr_attr_is(node, "direction", "reverse");
    s->linear = is(node, "gru") && cnr_attr_int(node, "linear_before_reset") != 0;
    s->packed = cnr_is_constant(w) && cnr_is_constant(r);
    s->part[0] = is(node, "gru") ? 2 * s->hidden : s->gates;
    s->part[1] = s->gates - s->part[0];
    neon_reserve(&s->weights, neon_packed_b(s->gates, s->inputs));
    for (int i = 0; i < 2; i++)
        s->part_at[i] = neon_reserve(&s->weights, neon_packed_b(s->part[i], s->hidden));
    return 1;
}

/* Takes dense f32 rnn, lstm and gru; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    recurrent_state s;
    (void)device;
    if (!shape_of(node, &s)) return cnr_refuse(out, NEON_WANTS_F32);
    cnr_take(node, out, 500);
    if (s.packed) out->prepared = 1 << W | 1 << R;
    return CNR_OK;
}

/* ---- weights: for each direction w, then the parts of r ---- */

/* Sets out->bytes to those of the packed weights; 0 if they are not constant. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    recurrent_state s;
    (void)device, (void)err;
    if (shape_of(node, &s) && s.packed)
        out->bytes = (uint64_t)(s.directions * s.weights) * sizeof(float);
    return CNR_OK;
}

/* Weights that tasks pack. */
typedef struct weight_packing {
    const recurrent_state *s;
    const float *w, *r;
    float *to;
} weight_packing;

/* Task i of the weight_packing `arg`: packs w or a part of r of one direction. */
static void pack_weights(void *arg, int64_t i, int32_t thread) {
    const weight_packing *p = arg;
    const recurrent_state *s = p->s;
    const int64_t d = i / 3, part = i % 3 - 1;
    const int64_t k = part < 0 ? s->inputs : s->hidden, n = part < 0 ? s->gates : s->part[part];
    const float *from = part < 0 ? p->w : p->r + (part > 0 ? s->part[0] * k : 0);
    (void)thread;
    neon_pack_b(from + d * s->gates * k, 1, k, n, k, 0, cnr_div_up(n, neon_uk->nr),
                p->to + d * s->weights + (part < 0 ? 0 : s->part_at[part]));
}

/* Packs the weights on all threads. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    recurrent_state s;
    (void)err;
    if (!shape_of(node, &s) || !s.packed) return CNR_OK;
    weight_packing p = {&s, neon_floats(node->inputs[W]), neon_floats(node->inputs[R]), blob};
    neon_parallel(device, 3 * s.directions, pack_weights, &p);
    return CNR_OK;
}

/* ---- plan ---- */

/* Finds the places in the workspace in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    const int64_t mr = neon_uk->mr;
    recurrent_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    shape_of(node, s);
    const int64_t step = s->batch * s->directions * s->gates;
    s->stretch = cnr_max(1, cnr_min(s->times, AHEAD / cnr_max(1, step)));
    s->blocks = cnr_max(1, cnr_min(cnr_div_up(s->batch, mr), device->concurrency / s->directions));
    s->rows = cnr_round_up(cnr_div_up(s->batch, s->blocks), mr);
    s->room = neon_block_room(s->gates, cnr_max(s->inputs, s->hidden));
    s->rooms_at = neon_reserve(&s->floats, s->room * device->concurrency);
    s->x_at = neon_reserve(&s->floats, neon_packed_a(s->stretch * s->batch, s->inputs));
    const int64_t states = s->batch * s->hidden, base = s->floats;
    s->gates_at = neon_reserve(&s->floats, s->stretch * s->batch * s->gates);
    s->h_at = neon_reserve(&s->floats, states);
    s->c_at = neon_reserve(&s->floats, states);
    s->bias_at = neon_reserve(&s->floats, s->gates + s->hidden);
    s->a_at = neon_reserve(&s->floats, neon_packed_a(s->blocks * s->rows, s->hidden));
    if (s->part[1]) s->other_at = neon_reserve(&s->floats, states);
    s->each = s->floats - base;
    s->floats += (s->directions - 1) * s->each;
    if (!s->packed) s->weights_at = neon_reserve(&s->floats, s->directions * s->weights);
    workspace->bytes = (uint64_t)s->floats * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* ---- run ---- */

/* Arguments of the tasks of a run. */
typedef struct recurrent_job {
    const recurrent_state *s;
    const cnr_run *run;
    const float *weights;
    float *scratch;
    const int32_t *lengths; /* steps of each sequence; NULL: all steps */
    int64_t d, first, end;  /* direction and steps of the current stretch */
    int64_t done;           /* number of steps before this block */
} recurrent_job;

/* Address in the scratch of direction d. */
static float *scratch_of(const recurrent_job *job, int64_t at, int64_t d) {
    return job->scratch + at + d * job->s->each;
}

static int is_backward(const recurrent_state *s, int64_t d) { return s->reverse || d == 1; }

/* Adds the biases of w and r. The part of r's that the reset gate multiplies is kept apart, at the
 * end. */
static void sum_bias(const recurrent_job *job, int64_t d) {
    const recurrent_state *s = job->s;
    const float *b = neon_floats(cnr_own_input(job->run->node, BIAS));
    float *sum = scratch_of(job, s->bias_at, d);
    const int64_t both = s->linear ? s->part[0] : s->gates;
    memset(sum, 0, (size_t)(s->gates + s->hidden) * sizeof *sum);
    if (!b) return;
    b += 2 * d * s->gates;
    memcpy(sum, b, (size_t)s->gates * sizeof *sum);
    neon_uk->add(sum, b + s->gates, both);
    memcpy(sum + s->gates, b + s->gates + both, (size_t)(s->gates - both) * sizeof *sum);
}

/* Copies the initial state of a direction, or zeros. */
static void begin_state(const recurrent_job *job, int32_t port, int64_t at, int64_t d) {
    const int64_t n = job->s->batch * job->s->hidden;
    const float *from = neon_floats(cnr_own_input(job->run->node, port));
    float *to = scratch_of(job, at, d);
    if (from) memcpy(to, from + d * n, (size_t)n * sizeof *to);
    else memset(to, 0, (size_t)n * sizeof *to);
}

/* Copies the final state of a direction to an output, if there is one. */
static void end_state(const recurrent_job *job, int32_t output, int64_t at, int64_t d) {
    const cnr_run *run = job->run;
    const int64_t n = job->s->batch * job->s->hidden;
    if (output >= run->node->n_outputs || !run->outputs[output]) return;
    memcpy((float *)run->outputs[output]->data + d * n, scratch_of(job, at, d),
           (size_t)n * sizeof(float));
}

/* Task i: packs panel i of rows of x for the steps of this block. */
static void pack_x(void *arg, int64_t i, int32_t thread) {
    const recurrent_job *job = arg;
    const recurrent_state *s = job->s;
    const float *x = neon_floats(job->run->node->inputs[X]) + job->first * s->batch * s->inputs;
    (void)thread;
    neon_pack_a(x, s->inputs, 1, (job->end - job->first) * s->batch, s->inputs, 1.0f, i, i + 1,
                job->scratch + s->x_at);
}

/* Task i of the recurrent_job `arg`: begins a row of gates with the bias. */
static void start_row(void *arg, int64_t i, int32_t thread) {
    const recurrent_job *job = arg;
    const recurrent_state *s = job->s;
    (void)thread;
    memcpy(scratch_of(job, s->gates_at, job->d) + i * s->gates, scratch_of(job, s->bias_at, job->d),
           (size_t)s->gates * sizeof(float));
}

/* Sets the next stretch of steps of direction d. */
static void set_stretch(recurrent_job *job, int64_t d) {
    const recurrent_state *s = job->s;
    const int64_t n = cnr_min(s->stretch, s->times - job->done);
    job->d = d;
    job->first = is_backward(s, d) ? s->times - job->done - n : job->done;
    job->end = job->first + n;
}

/* Computes the parts of the gates that depend on x and the bias, for a stretch. */
static void multiply_inputs(recurrent_job *job, int64_t d) {
    const recurrent_state *s = job->s;
    set_stretch(job, d);
    const int64_t m = (job->end - job->first) * s->batch;
    const neon_product p = {
        .m = m,
        .n = s->gates,
        .k = s->inputs,
        .a = job->scratch + s->x_at,
        .b = job->weights + d * s->weights,
        .add = 1,
        .c = scratch_of(job, s->gates_at, d),
        .ldc = s->gates,
    };
    cnr_parallel(job->run->stream, cnr_div_up(m, neon_uk->mr), pack_x, job);
    cnr_parallel(job->run->stream, m, start_row, job);
    neon_multiply(&p, 0, m, job->run->stream, job->scratch + s->rooms_at);
}

/* Sequences [first, first + rows) of a direction, in one task. */
typedef struct lane {
    const recurrent_job *job;
    int64_t d, first, rows;
    float *h, *c, *a, *other, *room, *gates; /* gates: of the current step */
} lane;

/* c = (add: c +=) v times a part of the recurrent weights; ldc: floats from row to row of c. */
static void recur(const lane *l, int part, const float *v, float *c, int64_t ldc, int add) {
    const recurrent_state *s = l->job->s;
    const neon_product p = {
        .m = l->rows,
        .n = s->part[part],
        .k = s->hidden,
        .a = l->a,
        .b = l->job->weights + l->d * s->weights + s->part_at[part],
        .add = add,
        .c = c,
        .ldc = ldc,
    };
    neon_pack_a(v, s->hidden, 1, l->rows, s->hidden, 1.0f, 0, cnr_div_up(l->rows, neon_uk->mr),
                l->a);
    for (int64_t n = 0; n < p.n; n += NEON_NC)
        neon_block(&p, 0, l->rows, n, cnr_min(p.n, n + NEON_NC), l->room);
}

/* 1 if the sequence of a row has ended before step t. */
static int is_over(const lane *l, int64_t row, int64_t t) {
    return l->job->lengths && t >= l->job->lengths[l->first + row];
}

/* Computes step t of gru for the lane's rows: the new state in l->h. */
static void gru_step(const lane *l, int64_t t) {
    const recurrent_state *s = l->job->s;
    const int64_t n = s->hidden;
    recur(l, 0, l->h, l->gates, s->gates, 1);
    if (s->linear) {
        for (int64_t i = 0; i < l->rows; i++)
            memcpy(l->other + i * n, scratch_of(l->job, s->bias_at, l->d) + s->gates,
                   (size_t)n * sizeof(float));
        recur(l, 1, l->h, l->other, n, 1);
    } else {
        for (int64_t i = 0; i < l->rows; i++)
            neon_uk->gru_reset(l->gates + i * s->gates, l->h + i * n, l->other + i * n, n);
        recur(l, 1, l->other, l->gates + s->part[0], s->gates, 1);
    }
    for (int64_t i = 0; i < l->rows; i++)
        if (!is_over(l, i, t))
            neon_uk->gru_cell(l->gates + i * s->gates, s->linear ? l->other + i * n : NULL,
                              l->h + i * n, n);
}

/* Computes step t of lstm for the lane's rows: the new state and cell. */
static void lstm_step(const lane *l, int64_t t) {
    const recurrent_state *s = l->job->s;
    const float *peepholes = neon_floats(cnr_own_input(l->job->run->node, PEEPHOLES));
    const int64_t n = s->hidden;
    recur(l, 0, l->h, l->gates, s->gates, 1);
    for (int64_t i = 0; i < l->rows; i++)
        if (!is_over(l, i, t))
            neon_uk->lstm_cell(l->gates + i * s->gates, peepholes ? peepholes + 3 * n * l->d : NULL,
                               l->c + i * n, l->h + i * n, n);
}

/* Computes step t of rnn for the lane's rows: the new state in l->h. */
static void rnn_step(const lane *l, int64_t t) {
    const recurrent_state *s = l->job->s;
    recur(l, 0, l->h, l->gates, s->gates, 1);
    for (int64_t i = 0; i < l->rows; i++)
        if (!is_over(l, i, t))
            neon_uk->tanh(l->gates + i * s->gates, l->h + i * s->hidden, s->hidden);
}

/* Writes the hidden state of a step to the output. */
static void write_step(const lane *l, int64_t t) {
    const recurrent_state *s = l->job->s;
    float *y = (float *)l->job->run->outputs[0]->data +
               ((t * s->directions + l->d) * s->batch + l->first) * s->hidden;
    const size_t bytes = (size_t)s->hidden * sizeof *y;
    for (int64_t i = 0; i < l->rows; i++) {
        if (is_over(l, i, t)) memset(y + i * s->hidden, 0, bytes);
        else memcpy(y + i * s->hidden, l->h + i * s->hidden, bytes);
    }
}

/* Runs the steps of a stretch for some sequences in one direction. A shorter sequence is read
 * backwards from its own end; its state does not change before. */
static void some_steps(void *arg, int64_t i, int32_t thread) {
    recurrent_job job = *(const recurrent_job *)arg;
    const recurrent_state *s = job.s;
    const cnr_node *node = job.run->node;
    lane l = {.job = &job, .d = i / s->blocks, .first = i % s->blocks * s->rows};
    l.rows = cnr_min(s->rows, s->batch - l.first);
    if (l.rows < 1) return;
    l.h = scratch_of(&job, s->h_at, l.d) + l.first * s->hidden;
    l.c = scratch_of(&job, s->c_at, l.d) + l.first * s->hidden;
    l.a = scratch_of(&job, s->a_at, l.d) + l.first * s->hidden;
    l.other = scratch_of(&job, s->other_at, l.d) + l.first * s->hidden;
    l.room = job.scratch + s->rooms_at + thread * s->room;
    set_stretch(&job, l.d);
    for (int64_t k = 0; k < job.end - job.first; k++) {
        const int64_t at = is_backward(s, l.d) ? job.end - job.first - 1 - k : k;
        if (cnr_cancelled(job.run->stream)) return;
        l.gates = scratch_of(&job, s->gates_at, l.d) + (at * s->batch + l.first) * s->gates;
        (is(node, "lstm") ? lstm_step : is(node, "gru") ? gru_step : rnn_step)(&l, job.first + at);
        write_step(&l, job.first + at);
    }
}

/* Fails if a length is negative or above the number of steps. */
static cnr_status check_lengths(const recurrent_job *job, cnr_error *err) {
    const recurrent_state *s = job->s;
    for (int64_t i = 0; job->lengths && i < s->batch; i++)
        if (job->lengths[i] < 0 || job->lengths[i] > s->times)
            return neon_host->fail(err, CNR_E_ARG, job->run->node->name,
                                   "a length of %d, of at most %lld", (int)job->lengths[i],
                                   (long long)s->times);
    return CNR_OK;
}

/* Computes all steps in both directions. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const recurrent_state *s = run->state;
    const cnr_node *node = run->node;
    const cnr_tensor *lengths = cnr_own_input(node, LENGTHS);
    recurrent_job job = {.s = s,
                         .run = run,
                         .weights = run->blob_data,
                         .scratch = run->workspace_data};
    job.lengths = lengths ? lengths->data : NULL;
    CNR_TRY(check_lengths(&job, err));
    if (!s->packed) {
        float *to = job.scratch + s->weights_at;
        weight_packing p = {s, neon_floats(node->inputs[W]), neon_floats(node->inputs[R]), to};
        cnr_parallel(run->stream, 3 * s->directions, pack_weights, &p);
        job.weights = to;
    }
    for (int64_t d = 0; d < s->directions; d++) {
        sum_bias(&job, d);
        begin_state(&job, FIRST_H, s->h_at, d);
        begin_state(&job, FIRST_C, s->c_at, d);
    }
    for (; job.done < s->times && !cnr_cancelled(run->stream); job.done += s->stretch) {
        for (int64_t d = 0; d < s->directions; d++) multiply_inputs(&job, d);
        cnr_parallel(run->stream, s->directions * s->blocks, some_steps, &job);
    }
    for (int64_t d = 0; d < s->directions; d++) {
        end_state(&job, 1, s->h_at, d);
        end_state(&job, 2, s->c_at, d);
    }
    return CNR_OK;
}

/* A recurrent kernel. */
#define RECURRENT_KERNEL(variable, op_name) \
    const cnr_kernel variable = {.size = sizeof(cnr_kernel), \
                                 .version = 1, \
                                 .name = op_name "_f32_packed", \
                                 .op = op_name, \
                                 .device = "cpu-neon", \
                                 .accepts = accepts, \
                                 .prepare_size = prepare_size, \
                                 .prepare = prepare, \
                                 .plan = plan, \
                                 .plan_free = neon_free_state, \
                                 .run = run}
RECURRENT_KERNEL(neon_lstm, "lstm");
RECURRENT_KERNEL(neon_gru, "gru");
RECURRENT_KERNEL(neon_rnn, "rnn");
