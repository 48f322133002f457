/* qlinear_dense on the CPU: rows of weights times samples, four rows at a time. */
#include "int8.h"

enum { ROWS = 16 }; /* rows of weights in a task */

/* Columns of the packed weights, padded to whole steps of INT8_DOT_STEP. */
static int64_t packed_depth(const cnr_node *node) {
    return cnr_round_up(node->inputs[INT8_W]->dim[1], INT8_DOT_STEP);
}
/* Rows of the packed weights, padded to a multiple of INT8_MR. */
static int64_t packed_rows(const cnr_node *node) {
    return cnr_round_up(node->inputs[INT8_W]->dim[0], INT8_MR);
}
/* Whether the samples can be read in whole steps without a copy. */
static int direct(const cnr_node *node) {
    return node->inputs[INT8_X]->dtype == CNR_u8 &&
           node->inputs[INT8_W]->dim[1] % INT8_DOT_STEP == 0;
}

/* Takes quantised dense layers; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    const char *why = int8_layer_fits(node, 1);
    if (why) return cnr_refuse(out, why);
    cnr_take(node, out, 300);
    out->prepared = int8_layer_prepared(node);
    return CNR_OK;
}

/* Sets out to the bytes of head and packed weights, aligned to 64. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    (void)device;
    (void)err;
    out->alignment = 64;
    out->bytes =
        (uint64_t)(int8_blob_head(packed_rows(node)) + packed_rows(node) * packed_depth(node));
    return CNR_OK;
}

/* Packs the weights, with rows and columns padded with zeros, into data behind the head of
 * `int8_blob`. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *data,
                          cnr_error *err) {
    const cnr_tensor *w = node->inputs[INT8_W];
    const int64_t rows = packed_rows(node), depth = packed_depth(node), k = w->dim[1];
    int8_blob *blob = data;
    (void)device;
    (void)err;
    int8_blob_fill(node, rows, blob);
    uint8_t *to = (uint8_t *)data + blob->weight_at;
    memset(to, 0, (size_t)(rows * depth));
    for (int64_t r = 0; r < w->dim[0]; r++)
        for (int64_t i = 0; i < k; i++)
            to[r * depth + i] = ((const uint8_t *)w->data)[r * k + i] ^ blob->layer.w_flip;
    return CNR_OK;
}

/* Asks for workspace, in bytes, for the samples if they have to be copied; returns CNR_OK. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    (void)state;
    (void)err;
    if (!direct(node)) workspace->bytes = (uint64_t)(node->outputs[0]->dim[0] * packed_depth(node));
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct dense_job {
    const cnr_run *run;
    const int8_blob *blob;
    const uint8_t *x;
    int64_t depth, samples, outputs;
} dense_job;

/* Task n of the dense_job `arg`: copies a sample to its padded place. */
static void copy_sample(void *arg, int64_t n, int32_t thread) {
    const dense_job *j = arg;
    const cnr_tensor *x = j->run->node->inputs[INT8_X];
    const int64_t k = j->run->node->inputs[INT8_W]->dim[1];
    const uint8_t *from = (const uint8_t *)x->data + n * k;
    uint8_t *to = (uint8_t *)j->run->workspace_data + n * j->depth;
    (void)thread;
    for (int64_t i = 0; i < k; i++) to[i] = from[i] ^ j->blob->layer.x_flip;
    memset(to + k, 0, (size_t)(j->depth - k)); /* weights there are 0 */
}

/* Sum of n bytes. */
static int32_t sum_of(const uint8_t *x, int64_t n) {
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

/* Task index of the dense_job `arg`: computes, for all samples, ROWS outputs from index * ROWS
 * on. */
static void some_rows(void *arg, int64_t index, int32_t thread) {
    const dense_job *j = arg;
    const int64_t end = cnr_min(j->outputs, (index + 1) * ROWS);
    uint8_t *y = j->run->outputs[0]->data;
    (void)thread;
    if (cnr_cancelled(j->run->stream)) return;
    for (int64_t r = index * ROWS; r < end; r += INT8_DOT_ROWS)
        for (int64_t n = 0; n < j->samples; n++) {
            const uint8_t *x = j->x + n * j->depth;
            int32_t sums[INT8_DOT_ROWS];
            int8_uk->dot(j->depth, x, int8_weights(j->blob) + r * j->depth, j->depth, sums);
            const int32_t total = j->blob->layer.shifts ? sum_of(x, j->depth) : 0;
            for (int64_t i = 0; i < INT8_DOT_ROWS && r + i < end; i++) {
                int8_requant how = int8_requant_of(j->blob, r + i);
                how.offset = int8_shifted(j->blob, r + i, total);
                int8_uk->requantize(&sums[i], 1, &how, y + n * j->outputs + r + i);
            }
        }
}

/* Computes all outputs on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    dense_job j = {.run = run,
                   .blob = run->blob_data,
                   .x = node->inputs[INT8_X]->data,
                   .depth = packed_depth(node),
                   .samples = run->outputs[0]->dim[0],
                   .outputs = run->outputs[0]->dim[1]};
    (void)err;
    if (!direct(node)) {
        cnr_parallel(run->stream, j.samples, copy_sample, &j);
        j.x = run->workspace_data;
    }
    cnr_parallel(run->stream, cnr_div_up(j.outputs, ROWS), some_rows, &j);
    return CNR_OK;
}

const cnr_kernel int8_dense = {
    .size = sizeof(cnr_kernel),
    .version = 4,
    .name = "qlinear_dense_int8_dot",
    .op = "qlinear_dense",
    .device = "cpu",
    .accepts = accepts,
    .prepare_size = prepare_size,
    .prepare = prepare,
    .plan = plan,
    .run = run,
};
