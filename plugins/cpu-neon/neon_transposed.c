/* conv_transpose, and the gradient of conv's input, which is the same arithmetic: a product
 * computes the contribution of every tap, which col2im then sums. */
#include "gemm.h"
#include "support.h"

/* Plan of a transposed convolution. */
typedef struct transposed_state {
    neon_padded *pad; /* of the convolution whose input is our output */
    neon_chain chain;
    int64_t group, each; /* each: output channels of a group */
    int64_t m, n, k;     /* of a group's product: each * taps, positions, input channels */
    int64_t block;       /* output channels of a task */
    int32_t packed, bias_port;
    int64_t room, cols, a_floats;
    int64_t rooms_at, cols_at, a_at, floats;
} transposed_state;

/* Floats of contributions that a task computes before it sums them. */
#define COLS_LIMIT ((int64_t)128 << 10)

/* 1 for conv_transpose, 0 for the gradient of a convolution's input. */
static int is_transpose(const cnr_node *node) {
    return strcmp(node->desc->name, "conv_transpose") == 0;
}

/* *w receives the window over y, for either operator; 0: it does not resolve. */
static int window_of(const cnr_node *node, const cnr_tensor *y, cnr_window *w, const char **why) {
    const cnr_tensor *x = cnr_own_input(node, 0), *weight = cnr_own_input(node, 1);
    if (!x || !weight || x->rank < 3 || x->rank > 2 + CNR_MAX_SPATIAL || weight->rank != x->rank ||
        !neon_all_f32(node))
        return *why = NEON_WANTS_F32, 0;
    if (!is_transpose(node)) *why = neon_conv_window(node, y, weight, w);
    else {
        shape_transposed_window(node, x, y, weight, w);
        *why = neon_padded_fits(w, y->dim[1]) ? NULL : "too large";
    }
    return !*why;
}

/* *group, *m and *k: number of groups, rows and inner size of a group's product. */
static void product_shape(const cnr_node *node, int64_t *group, int64_t *m, int64_t *k) {
    const cnr_tensor *weight = node->inputs[1];
    *group = cnr_max(1, cnr_attr_int(node, "group"));
    *m = cnr_span(weight, 1, weight->rank);
    *k = weight->dim[0] / *group;
}

/* Takes f32 nodes whose window fits; refuses others with the reason. */
static cnr_status accept_any(const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    if (!window_of(node, node->outputs[0], &w, &out->why)) return CNR_OK;
    cnr_take(node, out, 500);
    out->ranges = 1 << 0 | 1 << 1;
    if (cnr_is_constant(node->inputs[1])) out->prepared = 1 << 1;
    return CNR_OK;
}

/* Takes the gradient of a convolution's input, without operators behind. */
static cnr_status accept_grad(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    const cnr_status status = accept_any(node, out);
    if (out->score) out->epilogue = 0;
    return status;
}

/* Sets out->bytes to those of the packed weights; 0 if they are not constant. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    int64_t group, m, k;
    (void)device;
    (void)err;
    product_shape(node, &group, &m, &k);
    if (cnr_is_constant(node->inputs[1]))
        out->bytes = (uint64_t)(group * neon_packed_a(m, k)) * sizeof(float);
    return CNR_OK;
}

/* Packs the weights. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    int64_t group, m, k;
    (void)device;
    (void)err;
    product_shape(node, &group, &m, &k);
    for (int64_t g = 0; g < group; g++)
        neon_pack_a(neon_floats(node->inputs[1]) + g * m * k, 1, m, m, k, 1.0f, 0,
                    cnr_div_up(m, neon_uk->mr), (float *)blob + g * neon_packed_a(m, k));
    return CNR_OK;
}

/* Finds geometry and workspace; bias_port -1: no bias. */
static cnr_status plan_any(const cnr_device *device, const cnr_node *node, int32_t bias_port,
                           cnr_space *workspace, void **state, cnr_error *err) {
    cnr_window w;
    const char *why = "does not fit";
    const cnr_tensor *y = node->outputs[0];
    if (!window_of(node, y, &w, &why))
        return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    transposed_state *s = neon_padded_state(node, &w, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    product_shape(node, &s->group, &s->m, &s->k);
    neon_chain_plan(node, &s->chain);
    s->bias_port = bias_port;
    s->each = s->m / s->pad->taps;
    s->n = s->pad->n;
    s->packed = cnr_is_constant(node->inputs[1]);
    const int64_t threads = device->concurrency, tasks = cnr_max(1, y->dim[0] * s->group);
    s->block = cnr_max(1, cnr_min(COLS_LIMIT / cnr_max(1, s->pad->taps * s->n),
                                  cnr_div_up(s->each * tasks, 2 * threads)));
    s->block = cnr_max(1, cnr_min(s->block, s->each));
    s->room = cnr_round_up(neon_block_room(s->n, s->k), 16);
    s->cols = cnr_round_up(s->block * s->pad->taps * s->n, 16);
    s->a_floats = neon_packed_a(s->m, s->k);
    s->rooms_at = neon_reserve(&s->floats, s->room * threads);
    s->cols_at = neon_reserve(&s->floats, s->cols * threads);
    s->a_at = neon_reserve(&s->floats, s->packed ? 0 : s->a_floats * s->group);
    workspace->bytes = (uint64_t)s->floats * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct transposed_job {
    const transposed_state *s;
    const cnr_run *run;
    const float *x, *weight, *a, *bias;
    float *packed, *scratch;
    neon_part part;
} transposed_job;

/* Computes output channels [o0, o1) of one group of one image. */
static void one_block(const transposed_job *job, int64_t image, int64_t group, int64_t o0,
                      int64_t o1, int32_t thread) {
    const transposed_state *s = job->s;
    const int64_t taps = s->pad->taps, m0 = o0 * taps, m1 = o1 * taps;
    float *cols = job->scratch + s->cols_at + thread * s->cols;
    const neon_strided b = {job->x + (image * s->group + group) * s->k * s->n, s->n, 1};
    const neon_product p = {
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .a = job->a + group * s->a_floats,
        .pack = neon_pack_strided,
        .pack_arg = &b,
        /* row m0 is the first of cols */
        .c = (float *)((uintptr_t)cols - (uintptr_t)(m0 * s->n) * sizeof *cols),
        .ldc = s->n,
    };
    for (int64_t n0 = 0; n0 < s->n; n0 += NEON_NC)
        neon_block(&p, m0, m1, n0, cnr_min(s->n, n0 + NEON_NC),
                   job->scratch + s->rooms_at + thread * s->room);
    for (int64_t o = o0; o < o1; o++) {
        const int64_t channel = group * s->each + o;
        const int64_t first = (image * s->group * s->each + channel) * s->pad->in;
        float *y = (float *)job->run->outputs[0]->data + first;
        const float start = job->bias ? job->bias[channel] : 0.0f;
        for (int64_t i = 0; i < s->pad->in; i++) y[i] = start;
        for (int64_t t = 0; t < taps; t++)
            neon_col2im_tap(s->pad, t, cols + ((o - o0) * taps + t) * s->n, s->pad->w.out[2], y);
        neon_chain_run(&s->chain, job->run->node, y, first, s->pad->in);
    }
}

/* Task i of the transposed_job `arg`: computes some output channels of an image. */
static void task(void *arg, int64_t i, int32_t thread) {
    const transposed_job *job = arg;
    const transposed_state *s = job->s;
    const int64_t blocks = cnr_div_up(s->each, s->block);
    const int64_t group = i / blocks % s->group, o = i % blocks * s->block;
    const int64_t o0 = cnr_max(o, job->part.channel0 - group * s->each);
    const int64_t o1 =
        cnr_min(cnr_min(o + s->block, s->each), job->part.channel1 - group * s->each);
    if (o0 < o1 && !cnr_cancelled(job->run->stream))
        one_block(job, job->part.image0 + i / blocks / s->group, group, o0, o1, thread);
}

/* Task i of the transposed_job `arg`: packs one panel of weights that are not constant. */
static void pack_weights(void *arg, int64_t i, int32_t thread) {
    const transposed_job *job = arg;
    const transposed_state *s = job->s;
    const int64_t panels = cnr_div_up(s->m, neon_uk->mr), g = i / panels, panel = i % panels;
    (void)thread;
    neon_pack_a(job->weight + g * s->m * s->k, 1, s->m, s->m, s->k, 1.0f, panel, panel + 1,
                job->packed + g * s->a_floats);
}

/* Computes everything on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const transposed_state *s = run->state;
    transposed_job job = {
        .s = s,
        .run = run,
        .x = neon_floats(run->node->inputs[0]),
        .weight = neon_floats(run->node->inputs[1]),
        .a = run->blob_data,
        .bias = s->bias_port >= 0 ? neon_floats(cnr_own_input(run->node, s->bias_port)) : NULL,
        .scratch = run->workspace_data,
        .part = neon_part_of(run),
    };
    (void)err;
    if (!s->packed) {
        job.a = job.packed = job.scratch + s->a_at;
        cnr_parallel(run->stream, s->group * cnr_div_up(s->m, neon_uk->mr), pack_weights, &job);
    }
    const int64_t blocks = s->group * cnr_div_up(s->each, s->block);
    cnr_parallel(run->stream, (job.part.image1 - job.part.image0) * blocks, task, &job);
    return CNR_OK;
}

/* Takes conv_transpose. */
static cnr_status accept_transpose(const cnr_device *device, const cnr_node *node,
                                   cnr_accept *out) {
    (void)device;
    const cnr_status status = accept_any(node, out);
    if (out->score)
        out->epilogue = neon_chain_accepts(node, node->outputs[0]->rank, node->outputs[0]->dim);
    return status;
}

/* Plans the gradient of a convolution's input. */
static cnr_status plan_grad(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                            void **state, cnr_error *err) {
    return plan_any(device, node, -1, workspace, state, err);
}

/* Plans conv_transpose. */
static cnr_status plan_transpose(const cnr_device *device, const cnr_node *node,
                                 cnr_space *workspace, void **state, cnr_error *err) {
    return plan_any(device, node, 2, workspace, state, err);
}

const cnr_kernel neon_conv_grad_input = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "conv_grad_input_f32_gemm",
    .op = "conv_grad_input",
    .device = "cpu-neon",
    .accepts = accept_grad,
    .prepare_size = prepare_size,
    .prepare = prepare,
    .plan = plan_grad,
    .plan_free = neon_free_padded_state,
    .run = run,
};

const cnr_kernel neon_conv_transpose = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "conv_transpose_f32_gemm",
    .op = "conv_transpose",
    .device = "cpu-neon",
    .accepts = accept_transpose,
    .prepare_size = prepare_size,
    .prepare = prepare,
    .plan = plan_transpose,
    .plan_free = neon_free_padded_state,
    .run = run,
};
