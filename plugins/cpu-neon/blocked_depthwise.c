/* Depthwise conv on channel blocks, vectorised along the channels. */
#include "blocked_planes.h"

/* Takes depthwise f32 convolutions on blocked channels; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    cnr_window w;
    const cnr_tensor *x = cnr_own_input(node, 0), *weight = cnr_own_input(node, 1);
    if (!x || !weight || !neon_all_f32(node)) return cnr_refuse(out, NEON_WANTS_F32);
    if (!cnr_is_constant(weight)) return cnr_refuse(out, "constant weights are wanted");
    if (weight->dim[1] != 1 || cnr_attr_int(node, "group") != x->dim[1] ||
        weight->dim[0] != x->dim[1])
        return cnr_refuse(out, "a group for each channel is wanted");
    if ((out->why = neon_conv_window(node, x, weight, &w))) return CNR_OK;
    int64_t dim[CNR_MAX_RANK] = {x->dim[0], weight->dim[0]};
    memcpy(dim + 2, w.out, (size_t)w.spatial * sizeof dim[0]);
    if (w.spatial > 2 || !neon_channel_block(x->dim[1]))
        return cnr_refuse(out, "no block divides the channels");
    /* The operator before (a sparse product) wrote plain planes, and often the next one reads them:
     * two conversions would cost more than blocks gain. */
    const int32_t score = out->in_block[0] > 1 ? 700 : 550;
    neon_blocked_take(node, out, score, neon_block_of(x->rank, x->dim),
                      neon_block_of(x->rank, dim));
    out->epilogue = neon_chain_accepts(node, x->rank, dim);
    out->prepared = 1 << 1;
    out->cost_ns = neon_conv_cost(node, &w, 0.2, 0.2);
    return CNR_OK;
}

/* Bytes of the weights, by blocks of channels. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    (void)device;
    (void)err;
    out->bytes = (uint64_t)cnr_count(node->inputs[1]) * sizeof(float);
    return CNR_OK;
}

/* Packs the weights as [block][tap][channel of the block], missing channels as 0. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    const cnr_tensor *weight = node->inputs[1];
    const int64_t channels = weight->dim[0], taps = cnr_span(weight, 2, weight->rank);
    const int64_t b = neon_channel_block(channels);
    float *to = blob;
    (void)device;
    (void)err;
    for (int64_t q = 0; q < channels; q += b)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t c = q; c < q + b; c++) *to++ = neon_floats(weight)[c * taps + t];
    return CNR_OK;
}

/* Finds window and tasks. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    cnr_window w;
    (void)workspace;
    const char *why = neon_conv_window(node, node->inputs[0], node->inputs[1], &w);
    if (why) return neon_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    return neon_planes_plan(device, node, &w, NEON_WINDOW_FMA, state, err);
}

/* Computes all planes; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    (void)err;
    neon_planes_run(run, run->blob_data, neon_floats(cnr_own_input(run->node, 2)));
    return CNR_OK;
}

const cnr_kernel neon_conv_blocked_depthwise = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "conv_f32_blocked_depthwise",
    .op = "conv",
    .device = "cpu-neon",
    .accepts = accepts,
    .prepare_size = prepare_size,
    .prepare = prepare,
    .plan = plan,
    .plan_free = neon_free_state,
    .run = run,
};
