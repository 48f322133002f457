/* conv as a matrix product: weights are packed once, the image's columns block by block.
 *
 * At stride 1 the gradient of conv's input is the same product: a convolution of the output's
 * gradient by the weights with their taps reversed and their channels exchanged. */
#include "gemm.h"
#include "support.h"

/* Plan of a convolution as a product of matrices. */
typedef struct conv_state {
    neon_padded *pad;
    neon_chain chain;
    int64_t cin, cout, group, n, k;                     /* n, k: of a group's product */
    int32_t pointwise, bare, by_image, packed, threads; /* bare: x is read in place */
    neon_grid grid;
    neon_stored as; /* storage type of packed weights */
    /* floats of: a thread's scratch, a padded image, packed weights; and offsets in the
     * workspace */
    int64_t room, image_floats, a_floats;
    int64_t rooms_at, images_at, a_at, floats;
} conv_state;

/* Bound for one padded image for each thread; above it, threads share one image. */
#define IMAGE_LIMIT ((int64_t)2 << 20)

/* Takes f32 convolutions, with constant weights stored as `as`; for others out->why says why. */
static cnr_status accepts(neon_stored as, const cnr_device *device, const cnr_node *node,
                          cnr_accept *out) {
    (void)device;
    cnr_window w;
    const cnr_tensor *x = cnr_own_input(node, 0), *weight = cnr_own_input(node, 1);
    if ((out->why = neon_turned_window(node, &w))) return CNR_OK;
    const int64_t group = cnr_max(1, cnr_attr_int(node, "group"));
    if (as != NEON_F32 &&
        (!cnr_is_constant(weight) || (group > 1 && weight->dim[0] / group < neon_uk->mr)))
        return cnr_refuse(out, "constant weights are wanted, and groups that fill a panel");
    int64_t dim[CNR_MAX_RANK] = {x->dim[0], weight->dim[0]};
    memcpy(dim + 2, w.out, (size_t)w.spatial * sizeof dim[0]);
    cnr_take(node, out, as == NEON_F32 ? 500 : 510);
    out->epilogue = neon_chain_accepts(node, x->rank, dim);
    /* rows that do not fill a panel cost as if they did, and columns are copied for them */
    const double rows = (double)(weight->dim[0] / group);
    const double full = rows < neon_uk->mr ? rows / (2.0 * neon_uk->mr) : 1.0;
    out->cost_ns = neon_conv_cost(node, &w, 0.65 * full, 0.4 * full);
    out->ranges = 1 << 0 | 1 << 1 | 1 << 2;
    if (cnr_is_constant(weight)) out->prepared = 1 << 1;
    return CNR_OK;
}

/* Takes f32 gradients of a convolution's input at stride 1, if a group has enough input channels;
 * for others out->why says why. */
static cnr_status accept_gradient(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *weight = cnr_own_input(node, 1);
    cnr_window w;
    (void)device;
    if ((out->why = neon_turned_window(node, &w))) return CNR_OK;
    /* with fewer rows, most of a panel would be empty */
    if (weight->dim[1] < neon_uk->mr / 2)
        return cnr_refuse(out, "groups of more input channels are wanted");
    cnr_take(node, out, 510);
    out->epilogue = 0;
    out->ranges = 1 << 0 | 1 << 1;
    if (cnr_is_constant(weight)) out->prepared = 1 << 1;
    return CNR_OK;
}

/* Sizes of a convolution's, or its gradient's, product: *group of them, *m rows (output channels)
 * and *k elements each. */
static void product_shape(const cnr_node *node, int64_t *group, int64_t *m, int64_t *k) {
    const cnr_tensor *weight = node->inputs[1];
    *group = cnr_max(1, cnr_attr_int(node, "group"));
    *m = neon_is_gradient(node) ? weight->dim[1] : weight->dim[0] / *group;
    *k = neon_is_gradient(node) ? weight->dim[0] / *group * cnr_span(weight, 2, weight->rank)
                                : cnr_span(weight, 1, weight->rank);
}

/* Sets out->bytes to those of the packed weights; 0 if they are not constant. */
static cnr_status prepare_size(neon_stored as, const cnr_device *device, const cnr_node *node,
                               cnr_space *out, cnr_error *err) {
    (void)device;
    (void)err;
    int64_t group, m, k;
    product_shape(node, &group, &m, &k);
    if (cnr_is_constant(node->inputs[1]))
        out->bytes = neon_stored_bytes(as, group * neon_packed_a(m, k));
    return CNR_OK;
}

/* Arguments of the tasks that pack weights, panel by panel. */
typedef struct packing {
    neon_stored as;
    const float *weight;
    int64_t m, k, panels; /* of a group: output channels, elements of each, and panels */
    int64_t turned;       /* 0, or the number of taps: the gradient's weights */
    void *to;
} packing;

/* Arguments of packing a node's weights to `to`. */
static packing packing_of(neon_stored as, const cnr_node *node, void *to) {
    packing p = {.as = as, .weight = neon_floats(node->inputs[1]), .to = to};
    int64_t group;
    product_shape(node, &group, &p.m, &p.k);
    p.panels = cnr_div_up(p.m, neon_uk->mr);
    p.turned = neon_is_gradient(node) ? cnr_span(node->inputs[1], 2, node->inputs[1]->rank) : 0;
    return p;
}

/* Packs weights w[k / taps][m][taps] of a group into `to`, their taps in reverse, for one panel of
 * rows. */
static void pack_turned(const packing *p, const float *w, int64_t panel, float *to) {
    const int64_t mr = neon_uk->mr, first = panel * mr, rows = cnr_min(mr, p->m - first);
    to += panel * p->k * mr;
    if (rows < mr) memset(to, 0, (size_t)(p->k * mr) * sizeof *to);
    for (int64_t k = 0; k < p->k; k++, to += mr) {
        const int64_t from = k / p->turned, tap = p->turned - 1 - k % p->turned;
        for (int64_t i = 0; i < rows; i++) to[i] = w[(from * p->m + first + i) * p->turned + tap];
    }
}

/* Task i: packs one panel of one group's weights, turned for a gradient. */
static void pack_panel(void *arg, int64_t i, int32_t thread) {
    const packing *p = arg;
    const int64_t g = i / p->panels, panel = i % p->panels;
    (void)thread;
    void *to = (char *)p->to + neon_stored_bytes(p->as, g * neon_packed_a(p->m, p->k));
    const float *weight = p->weight + g * p->m * p->k;
    if (p->turned) pack_turned(p, weight, panel, to);
    else neon_store_a(p->as, weight, p->k, 1, p->m, p->k, panel, to);
}

/* Packs all panels on all threads. */
static cnr_status prepare(neon_stored as, const cnr_device *device, const cnr_node *node,
                          void *blob, cnr_error *err) {
    packing p = packing_of(as, node, blob);
    (void)err;
    neon_parallel(device, cnr_max(1, cnr_attr_int(node, "group")) * p.panels, pack_panel, &p);
    return CNR_OK;
}

/* Finds geometry, blocks and workspace. */
static cnr_status plan(neon_stored as, const cnr_device *device, const cnr_node *node,
                       cnr_space *workspace, void **state, cnr_error *err) {
    cnr_window w;
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const char *why = neon_turned_window(node, &w);
    if (why) return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    conv_state *s = neon_padded_state(node, &w, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    int64_t m;
    product_shape(node, &s->group, &m, &s->k);
    neon_chain_plan(node, &s->chain);
    s->cin = x->dim[1];
    s->cout = m * s->group;
    s->n = s->pad->n;
    s->pointwise = neon_pointwise(&w);
    s->bare = s->pointwise || neon_unpadded(s->pad);
    s->packed = cnr_is_constant(weight);
    s->as = as;
    s->threads = device->concurrency;
    const int64_t batch = x->dim[0];
    s->image_floats = s->bare ? 0 : cnr_round_up(s->cin * s->pad->plane + NEON_SLACK, 16);
    s->by_image = !s->bare && s->threads > 1 && s->image_floats <= IMAGE_LIMIT &&
                  (batch >= 4 * s->threads || (batch > 1 && batch % s->threads == 0));
    const int64_t copies = s->group * (s->bare ? cnr_max(1, batch) : 1);
    s->grid = neon_grid_of(m, s->n, s->by_image ? 1 : copies, 0, s->by_image ? 1 : s->threads);
    s->room = cnr_round_up(neon_block_room(s->n, s->k), 16);
    s->a_floats = neon_packed_a(m, s->k);
    s->rooms_at = neon_reserve(&s->floats, s->room * s->threads);
    s->images_at = neon_reserve(&s->floats, s->image_floats * (s->by_image ? s->threads : 1));
    s->a_at = neon_reserve(&s->floats, s->packed ? 0 : s->a_floats * s->group);
    workspace->bytes = (uint64_t)s->floats * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* Arguments of a call, for its tasks. */
typedef struct conv_job {
    const conv_state *s;
    const cnr_run *run;
    const float *x, *weight, *bias;
    const void *a;
    float *y, *rooms, *images;
    neon_part part;
    int64_t image; /* first image of this round */
} conv_job;

/* Arguments for packing a group's columns. */
typedef struct conv_source {
    const conv_state *s;
    const float *base, *end; /* bounds of the readable memory */
} conv_source;

/* Packs columns of a padded image for the product. */
static void pack_padded(const void *arg, int64_t k, int64_t kn, int64_t col, int64_t n,
                        float *panel) {
    const conv_source *c = arg;
    neon_segment segment[64];
    const int64_t width = cnr_round_up(n, neon_uk->vl);
    const int64_t segments = neon_segments(c->s->pad, col, n, segment);
    if (n < width) memset(panel, 0, (size_t)(kn * width) * sizeof *panel);
    neon_uk->pack_taps(panel, width, k, k + kn, c->base, c->end, c->s->pad->plane, c->s->pad->tap,
                       c->s->pad->taps, segment, segments);
}

/* Computes one block of outputs of an image. */
static void conv_block(const conv_job *job, const float *padded, int64_t image, int64_t group,
                       int64_t row, int64_t column, float *room) {
    const conv_state *s = job->s;
    const int64_t m = s->cout / s->group, cg = s->cin / s->group;
    /* columns with the same index on axis 2 */
    const int64_t span = s->n / cnr_max(1, job->run->outputs[0]->dim[2]);
    const int64_t m0 = cnr_max(row * s->grid.mb, job->part.channel0 - group * m);
    const int64_t m1 = cnr_min(cnr_min(m, (row + 1) * s->grid.mb), job->part.channel1 - group * m);
    const int64_t n0 = cnr_max(column * s->grid.nb, job->part.row0 * span);
    const int64_t n1 = cnr_min(cnr_min(s->n, (column + 1) * s->grid.nb), job->part.row1 * span);
    if (m0 >= m1 || n0 >= n1) return;
    const float *base = s->bare ? job->x + (image * s->cin + group * cg) * s->pad->in
                                : padded + group * cg * s->pad->plane;
    const conv_source source = {s, base, base + cg * s->pad->plane + (s->bare ? 0 : NEON_SLACK)};
    const neon_strided strided = {base, s->n, 1};
    const int64_t first = (image * s->cout + group * m) * s->n;
    const neon_product p = {
        .m = m,
        .n = s->n,
        .k = s->k,
        .a_as = s->as,
        .a = neon_stored_at(s->as, job->a, group * s->a_floats),
        .pack = s->pointwise ? neon_pack_strided : pack_padded,
        .pack_arg = s->pointwise ? (const void *)&strided : (const void *)&source,
        .bias = job->bias ? job->bias + group * m : NULL,
        .c = job->y + first,
        .ldc = s->n,
        .chain = &s->chain,
        .node = job->run->node,
        .c_first = first,
    };
    neon_block(&p, m0, m1, n0, n1, room);
}

/* Task i: copies channel i of the image with its padding into scratch. */
static void pad_channel(void *arg, int64_t i, int32_t thread) {
    const conv_job *job = arg;
    const conv_state *s = job->s;
    (void)thread;
    neon_pad(s->pad, job->x + (job->image * s->cin + i) * s->pad->in, 0.0f,
             job->images + i * s->pad->plane);
}

/* Task i: computes a whole image, with a thread's own padded copy; nothing once the run is
 * cancelled. */
static void whole_image(void *arg, int64_t i, int32_t thread) {
    const conv_job *job = arg;
    const conv_state *s = job->s;
    const int64_t image = job->part.image0 + i;
    float *padded = job->images + thread * s->image_floats;
    if (cnr_cancelled(job->run->stream)) return;
    for (int64_t c = 0; c < s->cin; c++)
        neon_pad(s->pad, job->x + (image * s->cin + c) * s->pad->in, 0.0f,
                 padded + c * s->pad->plane);
    for (int64_t g = 0; g < s->group; g++)
        for (int64_t column = 0; column < s->grid.columns; column++)
            conv_block(job, padded, image, g, 0, column, job->rooms + thread * s->room);
}

/* Task i: computes one block of outputs of a group; nothing once the run is cancelled. */
static void one_block(void *arg, int64_t i, int32_t thread) {
    const conv_job *job = arg;
    const neon_grid *grid = &job->s->grid;
    const int64_t row = i % grid->rows, column = i / grid->rows % grid->columns;
    const int64_t rest = i / grid->rows / grid->columns;
    if (cnr_cancelled(job->run->stream)) return;
    conv_block(job, job->images, job->image + rest / job->s->group, rest % job->s->group, row,
               column, job->rooms + thread * job->s->room);
}

/* Computes the convolution, by images or by blocks on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const conv_state *s = run->state;
    float *scratch = run->workspace_data;
    const int64_t blocks = s->group * s->grid.rows * s->grid.columns;
    conv_job job = {
        .s = s,
        .run = run,
        .x = neon_floats(run->node->inputs[0]),
        .weight = neon_floats(run->node->inputs[1]),
        .bias = neon_is_gradient(run->node) ? NULL : neon_floats(cnr_own_input(run->node, 2)),
        .y = run->outputs[0]->data,
        .rooms = scratch + s->rooms_at,
        .images = scratch + s->images_at,
        .part = neon_part_of(run),
    };
    (void)err;
    job.a = run->blob_data;
    if (!s->packed) {
        packing p = packing_of(NEON_F32, run->node, scratch + s->a_at);
        job.a = p.to;
        cnr_parallel(run->stream, s->group * p.panels, pack_panel, &p);
    }
    const int64_t images = job.part.image1 - job.part.image0;
    job.image = job.part.image0;
    if (s->by_image) cnr_parallel(run->stream, images, whole_image, &job);
    else if (s->bare) cnr_parallel(run->stream, images * blocks, one_block, &job);
    else
        for (; job.image < job.part.image1; job.image++) {
            cnr_parallel(run->stream, s->cin, pad_channel, &job);
            cnr_parallel(run->stream, blocks, one_block, &job);
        }
    return CNR_OK;
}

NEON_WEIGHT_KERNELS(neon_conv_gemm, "conv", "_gemm", "conv", neon_free_padded_state)

/* prepare_size of the gradient's kernel, in f32. */
static cnr_status prepare_size_gradient(const cnr_device *device, const cnr_node *node,
                                        cnr_space *out, cnr_error *err) {
    return prepare_size(NEON_F32, device, node, out, err);
}

/* prepare of the gradient's kernel, in f32. */
static cnr_status prepare_gradient(const cnr_device *device, const cnr_node *node, void *blob,
                                   cnr_error *err) {
    return prepare(NEON_F32, device, node, blob, err);
}

/* plan of the gradient's kernel, in f32. */
static cnr_status plan_gradient(const cnr_device *device, const cnr_node *node,
                                cnr_space *workspace, void **state, cnr_error *err) {
    return plan(NEON_F32, device, node, workspace, state, err);
}

/* Weights are multiplied by padding too: one that is not finite spreads. */
const cnr_kernel neon_conv_grad_input_turned = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "conv_grad_input_f32_turned",
    .op = "conv_grad_input",
    .device = "cpu-neon",
    .accepts = accept_gradient,
    .prepare_size = prepare_size_gradient,
    .prepare = prepare_gradient,
    .plan = plan_gradient,
    .plan_free = neon_free_padded_state,
    .run = run,
    .flags = CNR_KERNEL_SPREADS_NAN,
};
