/* Depthwise conv, and its input's gradient, without a matrix product: taps over a padded plane. */
#include "support.h"

/* Plan of a depthwise convolution. */
typedef struct depthwise_state {
    neon_padded *pad;
    neon_chain chain;
    int64_t cin, multiple;
    int64_t room;
} depthwise_state;

/* Takes depthwise f32 convolutions; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    cnr_window w;
    const cnr_tensor *x = cnr_own_input(node, 0), *weight = cnr_own_input(node, 1);
    if (!x || !weight || !neon_all_f32(node)) return cnr_refuse(out, NEON_WANTS_F32);
    if (weight->dim[1] != 1 || cnr_attr_int(node, "group") != x->dim[1] || x->dim[1] < 1)
        return cnr_refuse(out, "a group for each channel is wanted");
    if (weight->dim[0] > 4 * x->dim[1])
        return cnr_refuse(out, "many outputs a channel are better as a product");
    if ((out->why = neon_conv_window(node, x, weight, &w))) return CNR_OK;
    int64_t dim[CNR_MAX_RANK] = {x->dim[0], weight->dim[0]};
    memcpy(dim + 2, w.out, (size_t)w.spatial * sizeof dim[0]);
    cnr_take(node, out, 600);
    out->epilogue = neon_chain_accepts(node, x->rank, dim);
    out->cost_ns = neon_conv_cost(node, &w, 0.12, 0.05);
    out->ranges = 1 << 0 | 1 << 1;
    if (w.spatial > 1) out->ranges |= 1 << 2;
    return CNR_OK;
}

/* Takes f32 gradients of a depthwise convolution's input at stride 1; for others out->why says
 * why. */
static cnr_status accept_gradient(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    (void)device;
    if ((out->why = neon_turned_window(node, &w))) return CNR_OK;
    const cnr_tensor *x = node->inputs[2], *weight = node->inputs[1];
    if (weight->dim[1] != 1 || weight->dim[0] != x->dim[1] ||
        cnr_attr_int(node, "group") != x->dim[1])
        return cnr_refuse(out, "a group and an output for each channel are wanted");
    cnr_take(node, out, 600);
    out->epilogue = 0;
    out->ranges = 1 << 0 | 1 << 1;
    return CNR_OK;
}

/* Reverses a list of n numbers in place. */
static void reverse(int64_t *list, int64_t n) {
    for (int64_t i = 0; i < n / 2; i++) {
        const int64_t kept = list[i];
        list[i] = list[n - 1 - i];
        list[n - 1 - i] = kept;
    }
}

/* Finds geometry, taps and the operators behind, for the convolution or its gradient; *state keeps
 * them. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    cnr_window w;
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const char *why = neon_turned_window(node, &w);
    if (why) return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    depthwise_state *s = neon_padded_state(node, &w, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    neon_chain_plan(node, &s->chain);
    if (neon_is_gradient(node)) reverse(s->pad->tap, s->pad->taps);
    s->cin = x->dim[1];
    s->multiple = weight->dim[0] / s->cin;
    s->room = cnr_round_up(s->pad->plane + NEON_SLACK, 16);
    workspace->bytes = (uint64_t)(s->room * device->concurrency) * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct depthwise_job {
    const depthwise_state *s;
    const cnr_run *run;
    neon_part part;
} depthwise_job;

/* Computes one output channel of an image from its padded input. */
static void output_plane(const depthwise_job *job, int64_t image, int64_t channel,
                         const float *padded) {
    const depthwise_state *s = job->s;
    const neon_padded *g = s->pad;
    const cnr_node *node = job->run->node;
    const float *bias = neon_is_gradient(node) ? NULL : neon_floats(cnr_own_input(node, 2));
    const int64_t first = (image * s->cin * s->multiple + channel) * g->n;
    /* axis 2 is the depth if there are three spatial axes, the height if there are two */
    const int64_t a_row = node->inputs[0]->rank == 5 ? g->w.out[1] : 1;
    int64_t row0 = job->part.row0 * a_row, row1 = job->part.row1 * a_row;
    if (node->inputs[0]->rank == 3) row0 = 0, row1 = 1;
    float *y = (float *)job->run->outputs[0]->data + first;
    for (int64_t row = row0; row < row1;) {
        const int64_t rows = cnr_min(g->w.out[1] - row % g->w.out[1], row1 - row);
        const neon_window_rows w = {
            .base = padded + neon_padded_row(g, row),
            .row_stride = g->w.stride[1] * g->pitch,
            .tap = g->tap,
            .weight = neon_floats(node->inputs[1]) + channel * g->taps,
            .taps = g->taps,
            .start = bias ? bias[channel] : 0.0f,
            .out = y + row * g->w.out[2],
            .out_stride = g->w.out[2],
            .rows = rows,
            .n = g->w.out[2],
        };
        neon_uk->window(NEON_WINDOW_FMA, &w);
        row += rows;
    }
    neon_chain_run(&s->chain, node, y + row0 * g->w.out[2], first + row0 * g->w.out[2],
                   (row1 - row0) * g->w.out[2]);
}

/* Task i of the depthwise_job `arg`: computes the outputs of one input channel. */
static void one_channel(void *arg, int64_t i, int32_t thread) {
    const depthwise_job *job = arg;
    const depthwise_state *s = job->s;
    const int64_t image = job->part.image0 + i / s->cin, c = i % s->cin;
    const int64_t begin = cnr_max(c * s->multiple, job->part.channel0);
    const int64_t end = cnr_min((c + 1) * s->multiple, job->part.channel1);
    float *padded = (float *)job->run->workspace_data + thread * s->room;
    if (begin >= end || cnr_cancelled(job->run->stream)) return;
    neon_pad(s->pad, neon_floats(job->run->node->inputs[0]) + (image * s->cin + c) * s->pad->in,
             0.0f, padded);
    for (int64_t channel = begin; channel < end; channel++)
        output_plane(job, image, channel, padded);
}

/* Computes all channels on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const depthwise_state *s = run->state;
    depthwise_job job = {s, run, neon_part_of(run)};
    (void)err;
    cnr_parallel(run->stream, (job.part.image1 - job.part.image0) * s->cin, one_channel, &job);
    return CNR_OK;
}

NEON_KERNEL(neon_conv_depthwise, "conv_f32_depthwise", "conv", plan, neon_free_padded_state);

/* Weights are multiplied by padding too: one that is not finite spreads. */
const cnr_kernel neon_conv_grad_input_depthwise = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "conv_grad_input_f32_depthwise",
    .op = "conv_grad_input",
    .device = "cpu-neon",
    .accepts = accept_gradient,
    .plan = plan,
    .plan_free = neon_free_padded_state,
    .run = run,
    .flags = CNR_KERNEL_SPREADS_NAN,
};
