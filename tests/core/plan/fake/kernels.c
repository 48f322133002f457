/* Kernels of the made-up operators: with ranges, blobs, fusion, blocks, images, far memory. */
#include "fake.h"

/* ---- what a chain behind a node does, element by element ---- */

/* How many nodes of the epilogue the kernels can compute. */
static int32_t takes(const cnr_node *node) {
    int32_t n = 0;
    for (; n < node->n_epilogue; n++) {
        const cnr_epilogue *e = node->epilogue[n];
        if (!e->node->desc->apply_f32) break;
        if (e->operand >= 0 && !cnr_same_shape(node->inputs[e->operand], node->outputs[0])) break;
    }
    return n;
}

/* Applies the node's epilogue to *out, element `at` of the output. */
static void finish(const cnr_node *node, float *const *inputs, int64_t at, float *out) {
    for (int32_t i = 0; i < node->n_epilogue; i++) {
        const cnr_epilogue *e = node->epilogue[i];
        float *y = e->operand >= 0 ? inputs[e->operand] + at : NULL;
        e->node->desc->apply_f32(e->node, out, y, out, 1);
    }
}

/* ---- f_blur ---- */

/* Arguments of a blur. */
typedef struct blur {
    const cnr_node *node;
    float *in[4], *out;
    const float *weight;
    int64_t n, c, h, w, block;
    int32_t axis;
    int64_t begin, end;
} blur;

/* Element of a place, in planes or blocks. */
static int64_t at_of(const blur *b, int64_t n, int64_t c, int64_t y, int64_t x) {
    const int64_t k = b->block > 1 ? b->block : 1;
    return (((n * (b->c / k) + c / k) * b->h + y) * b->w + x) * k + c % k;
}

/* Computes the blur. */
static void blur_compute(void *arg) {
    const blur *b = arg;
    for (int64_t n = 0; n < b->n; n++)
        for (int64_t c = 0; c < b->c; c++)
            for (int64_t y = 0; y < b->h; y++)
                for (int64_t x = 0; x < b->w; x++) {
                    const int64_t place = b->axis == 1 ? c : y, at = at_of(b, n, c, y, x);
                    if (b->axis >= 0 && (place < b->begin || place >= b->end)) continue;
                    double sum = 2.0 * b->in[0][at];
                    if (y > 0) sum += b->in[0][at_of(b, n, c, y - 1, x)];
                    if (y + 1 < b->h) sum += b->in[0][at_of(b, n, c, y + 1, x)];
                    b->out[at] = (float)(b->weight[c] * sum);
                    finish(b->node, b->in, at, &b->out[at]);
                }
}

/* The blur's arguments, sizes, block and range, from a run. */
static blur blur_of(const cnr_run *run) {
    const cnr_tensor *x = run->node->inputs[0];
    return (blur){.node = run->node,
                  .n = x->dim[0],
                  .c = x->dim[1],
                  .h = x->dim[2],
                  .w = x->dim[3],
                  .block = x->block,
                  .axis = run->range_axis,
                  .begin = run->range_begin,
                  .end = run->range_end};
}

/* Method accepts of the blur near: prepares its weight, takes ranges of axes 1 and 2, with score
 * 100. */
static cnr_status near_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    out->score = 100;
    out->prepared = 1 << 1;
    out->ranges = 1 << 1 | 1 << 2;
    out->epilogue = takes(node);
    memset(out->in_block, 0, (size_t)node->n_inputs * sizeof(int32_t));
    return node->n_inputs > 4 ? CNR_E_LIMIT : CNR_OK;
}

/* A kernel that claims to store f16: it must win if that is requested, and never by its score. */
static cnr_status half_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_status status = near_accepts(device, node, out);
    out->score = 1;
    return status;
}

/* A baseline: it would win by its score, if it were not for those who ask for it alone. */
static cnr_status base_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    (void)node;
    out->score = 1000;
    return CNR_OK;
}

/* Method run: calls the operator's reference. */
static cnr_status base_run(const cnr_run *run, cnr_error *err) {
    return run->node->desc->reference(run, err);
}

/* Method prepare_size: sets out->bytes; returns CNR_OK. */
static cnr_status near_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                            cnr_error *err) {
    (void)device;
    (void)err;
    out->bytes = (uint64_t)node->inputs[1]->dim[0] * sizeof(double);
    return CNR_OK;
}

/* Method prepare: the weights as doubles. */
static cnr_status near_prepare(const cnr_device *device, const cnr_node *node, void *blob,
                               cnr_error *err) {
    (void)device;
    (void)err;
    for (int64_t i = 0; i < node->inputs[1]->dim[0]; i++)
        ((double *)blob)[i] = ((const float *)node->inputs[1]->data)[i];
    return CNR_OK;
}

/* Method plan: a workspace for the weights as floats, and 16 bytes of state, which plan_free
 * frees. */
static cnr_status near_plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                            void **state, cnr_error *err) {
    (void)device;
    workspace->bytes = (uint64_t)node->inputs[1]->dim[0] * sizeof(float);
    if (!(*state = fake_host->alloc(16)))
        return fake_host->fail(err, CNR_E_MEMORY, node->name, "out of memory");
    return CNR_OK;
}

/* Method plan_free of the kernels: frees their state. */
static void plan_free(const cnr_device *device, void *state) {
    (void)device;
    fake_host->free(state);
}

/* Method run of the blur near. */
static cnr_status near_blur(const cnr_run *run, cnr_error *err) {
    blur b = blur_of(run);
    float *weight = run->workspace_data;
    if (!run->blob_data || !weight || !run->state)
        return fake_host->fail(err, CNR_E_STATE, run->node->name, "no blob, workspace or state");
    for (int64_t i = 0; i < b.c; i++) weight[i] = (float)((const double *)run->blob_data)[i];
    for (int32_t i = 0; i < run->node->n_inputs; i++)
        if (i != 1) b.in[i] = run->node->inputs[i]->data;
    b.out = run->outputs[0]->data;
    b.weight = weight;
    blur_compute(&b);
    return CNR_OK;
}

/* Accepts a node in blocks of four channels, if it has at least four. */
static cnr_status block_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    near_accepts(device, node, out);
    out->score = node->inputs[0]->dim[1] % 4 == 0 ? 50 : 0;
    out->ranges = 0;
    out->out_block[0] = 4;
    for (int32_t i = 0; i < node->n_inputs; i++) out->in_block[i] = i == 1 ? 0 : 4;
    return CNR_OK;
}

/* ---- far: weights are read on the device; nothing is touched before the queue runs ---- */

/* Method accepts of the blur far: as near, without a prepared weight. */
static cnr_status far_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    near_accepts(device, node, out);
    out->prepared = 0;
    return CNR_OK;
}

/* Method accepts of the blur far that packs weights: as near, with score 50. */
static cnr_status far_blob_accepts(const cnr_device *device, const cnr_node *node,
                                   cnr_accept *out) {
    near_accepts(device, node, out);
    out->score = 50;
    return CNR_OK;
}

/* Method accepts of the blur far in images. */
static cnr_status image_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    block_accepts(device, node, out);
    out->prepared = 0;
    out->epilogue = 0;
    out->score = out->score ? 40 : 0;
    out->in_class[0] = out->out_class[0] = 1;
    out->in_class[1] = 0;
    return CNR_OK;
}

/* Method run of the blur far: queues it. */
static cnr_status far_blur(const cnr_run *run, cnr_error *err) {
    blur b = blur_of(run);
    for (int32_t i = 0; i < run->node->n_inputs; i++)
        if (run->node->inputs[i]->mem.handle) b.in[i] = fake_bytes(&run->node->inputs[i]->mem);
    b.out = fake_bytes(&run->outputs[0]->mem);
    b.weight = run->blob ? NULL : b.in[1];
    if (run->blob) b.weight = fake_bytes(run->blob);
    return fake_queue(run->stream, blur_compute, &b, sizeof b, err);
}

/* Method prepare_size of decoded weights: sets out->bytes; returns CNR_OK. */
static cnr_status float_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                             cnr_error *err) {
    (void)device;
    (void)err;
    out->bytes = (uint64_t)node->inputs[1]->dim[0] * sizeof(float);
    return CNR_OK;
}

/* Method prepare of decoded weights: copies them as floats. */
static cnr_status float_prepare(const cnr_device *device, const cnr_node *node, void *blob,
                                cnr_error *err) {
    (void)device;
    (void)err;
    memcpy(blob, node->inputs[1]->data, (size_t)node->inputs[1]->dim[0] * sizeof(float));
    return CNR_OK;
}

/* Arguments of an elementwise operator. */
typedef struct each {
    const cnr_node *node;
    float *in[4], *out;
    int64_t n;
} each;

/* Computes the elementwise operator of arg, an `each`, with its epilogue. */
static void each_compute(void *arg) {
    const each *e = arg;
    e->node->desc->apply_f32(e->node, e->in[0], e->in[1], e->out, e->n);
    for (int64_t i = 0; i < e->n; i++) finish(e->node, e->in, i, &e->out[i]);
}

/* Method accepts of elementwise operators. */
static cnr_status each_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    out->score = 100;
    out->epilogue = takes(node);
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (out->in_block[i] > 1) out->score = 0; /* blocks are the planner's affair */
    return node->n_inputs > 4 ? CNR_E_LIMIT : CNR_OK;
}

/* Method run of elementwise operators far. */
static cnr_status far_each(const cnr_run *run, cnr_error *err) {
    each e = {.node = run->node, .n = cnr_count(run->outputs[0])};
    for (int32_t i = 0; i < run->node->n_inputs; i++)
        e.in[i] = fake_bytes(&run->node->inputs[i]->mem);
    e.out = fake_bytes(&run->outputs[0]->mem);
    return fake_queue(run->stream, each_compute, &e, sizeof e, err);
}

/* First fields of a kernel. */
#define KERNEL(n, o, d) .size = sizeof(cnr_kernel), .version = 1, .name = n, .op = o, .device = d

const cnr_kernel fake_kernels[] =
    {{KERNEL("near_blur", "f_blur", "near"), .accepts = near_accepts, .prepare_size = near_size,
      .prepare = near_prepare, .plan = near_plan, .plan_free = plan_free, .run = near_blur},
     {KERNEL("near_blur_block", "f_blur", "near"), .accepts = block_accepts,
      .prepare_size = near_size, .prepare = near_prepare, .plan = near_plan, .plan_free = plan_free,
      .run = near_blur},
     {KERNEL("near_blur_half", "f_blur", "near"), .accepts = half_accepts,
      .prepare_size = near_size, .prepare = near_prepare, .plan = near_plan, .plan_free = plan_free,
      .run = near_blur, .flags = CNR_KERNEL_F16},
     {KERNEL("near_blur_base", "f_blur", "near"), .accepts = base_accepts, .run = base_run,
      .flags = CNR_KERNEL_BY_NAME_ONLY},
     {KERNEL("far_blur", "f_blur", "far"), .accepts = far_accepts, .run = far_blur},
     {KERNEL("far_blur_blob", "f_blur", "far"), .accepts = far_blob_accepts,
      .prepare_size = float_size, .prepare = float_prepare, .run = far_blur},
     {KERNEL("far_blur_image", "f_blur", "far-fake"), .accepts = image_accepts, .run = far_blur},
     {KERNEL("far_affine", "f_affine", "far"), .accepts = each_accepts, .run = far_each},
     {KERNEL("far_sum", "f_sum", "far"), .accepts = each_accepts, .run = far_each}};
const int32_t fake_n_kernels = sizeof fake_kernels / sizeof fake_kernels[0];
