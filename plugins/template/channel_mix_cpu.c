/* channel_mix on the CPU: weights transposed once, eight output channels a step, whatever comes
 * behind the layer computed while the row is hot, channels in blocks of 8 where they fit. */
#include "template.h"

enum { BLOCK = 8, ROW = 256 }; /* places a tile: input and output tiles stay in L1 */

/* Method accepts: takes f32 nodes with a constant weight; else out tells why not. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1], *y = node->outputs[0];
    const cnr_tensor *b = cnr_own_input(node, 2);
    if (!cnr_all_plain(node, 1u << CNR_f32)) return cnr_refuse(out, "dense f32 is wanted");
    if (!(w->flags & CNR_TENSOR_CONST) || (b && !(b->flags & CNR_TENSOR_CONST)))
        return cnr_refuse(out, "weights that are computed are left to the reference");
    const int blocks = w->dim[0] % BLOCK == 0 && w->dim[1] % BLOCK == 0 && x->rank > 2;
    cnr_take(node, out, 100);
    out->prepared = 1u << 1 | (b ? 1u << 2 : 0);
    out->ranges = 1u << 0;
    out->in_block[0] = out->out_block[0] = blocks ? BLOCK : 0;
    out->epilogue = template_host->chain_length(node, y->rank, y->dim, node->n_epilogue);
    for (int32_t i = 0; i < out->epilogue; i++) /* second operands lie as the output does */
        if (node->epilogue[i]->operand >= 0)
            out->in_block[node->epilogue[i]->operand] = out->out_block[0];
    return CNR_OK;
}

/* blob: bias[O rounded up], then weight[O / 8][C][8] */
static int64_t rounded(int64_t o) { return cnr_round_up(o, BLOCK); }

/* Method prepare_size: bytes of the packed weight and bias. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    (void)device;
    (void)err;
    const cnr_tensor *w = node->inputs[1];
    out->bytes = (uint64_t)(rounded(w->dim[0]) * (1 + w->dim[1])) * sizeof(float);
    return CNR_OK;
}

/* Method prepare: packs weight and bias into blob. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    (void)device;
    (void)err;
    const cnr_tensor *w = node->inputs[1];
    const cnr_tensor *b = cnr_own_input(node, 2);
    const int64_t O = w->dim[0], C = w->dim[1];
    float *bias = (float *)blob, *packed = bias + rounded(O);
    for (int64_t o = 0; o < rounded(O); o++) {
        bias[o] = b && o < O ? ((const float *)b->data)[o] : 0.0f;
        for (int64_t c = 0; c < C; c++)
            packed[(o / BLOCK * C + c) * BLOCK + o % BLOCK] =
                o < O ? ((const float *)w->data)[o * C + c] : 0.0f;
    }
    return CNR_OK;
}

/* Offset of element (channel c, position p) of one picture of `places` positions, in the tensor's
 * layout. */
static int64_t at(const cnr_tensor *t, int64_t c, int64_t p, int64_t places) {
    return t->block > 1 ? (c / BLOCK * places + p) * BLOCK + c % BLOCK : c * places + p;
}

/* Arguments of the tasks of a run. */
typedef struct job {
    const cnr_run *run;
    int64_t places, tiles, O, C, begin;
} job;

/* Task: computes one tile of places and output channels. */
static void tile(void *arg, int64_t index, int32_t thread) {
    (void)thread;
    const job *j = (const job *)arg;
    const cnr_run *run = j->run;
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int64_t groups = rounded(j->O) / BLOCK;
    const int64_t n = j->begin + index / (groups * j->tiles);
    const int64_t group = index / j->tiles % groups, first = index % j->tiles * ROW;
    const int64_t count = cnr_min(j->places - first, ROW);
    const int64_t lanes = cnr_min(j->O - group * BLOCK, BLOCK);
    const float *bias = (const float *)run->blob_data + group * BLOCK;
    const float *packed = (const float *)run->blob_data + rounded(j->O) + group * j->C * BLOCK;
    const float *in = (const float *)x->data + n * j->C * j->places;
    float *out = (float *)y->data + n * j->O * j->places;
    for (int64_t p = first; p < first + count; p++) {
        float sum[BLOCK];
        memcpy(sum, bias, sizeof sum);
        for (int64_t c = 0; c < j->C; c++) {
            const float v = in[at(x, c, p, j->places)];
            for (int l = 0; l < BLOCK; l++) sum[l] += v * packed[c * BLOCK + l];
        }
        for (int64_t l = 0; l < lanes; l++) out[at(y, group * BLOCK + l, p, j->places)] = sum[l];
    }
    /* The epilogue, over the runs of this tile that are contiguous. */
    const int64_t runs = y->block > 1 ? 1 : lanes, length = y->block > 1 ? count * BLOCK : count;
    for (int64_t l = 0; l < runs; l++) {
        const int64_t begin = at(y, group * BLOCK + l, first, j->places);
        cnr_chain_run(run->node, out + begin, n * j->O * j->places + begin, length);
    }
}

/* Method run: computes the run's range on the threads of the run; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    (void)err;
    const cnr_tensor *x = run->node->inputs[0];
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    cnr_range_of(run, lo, hi);
    job j = {run, cnr_span(x, 2, x->rank), 0, run->outputs[0]->dim[1], x->dim[1], lo[0]};
    j.tiles = cnr_div_up(j.places, ROW);
    cnr_parallel(run->stream, (hi[0] - lo[0]) * j.tiles * (rounded(j.O) / BLOCK), tile, &j);
    return CNR_OK;
}

const cnr_kernel template_channel_mix_f32 = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "channel_mix_f32_block8",
    .op = "channel_mix",
    .device = "cpu",
    .accepts = accepts,
    .prepare_size = prepare_size,
    .prepare = prepare,
    .run = run,
};
