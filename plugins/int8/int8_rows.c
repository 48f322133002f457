/* Products of many rows of bytes with constant weights on the CPU: matmul_integer, and
 * qlinear_dense of many samples. INT8_NR rows of x are interleaved, then multiplied by all weights.
 *
 * A task is such a block of rows by some panels of INT8_MR outputs. */
#include "int8.h"

enum { LEAST_SAMPLES = 8 };

/* Plan of a product of many rows. */
typedef struct rows_state {
    /* rows of x, their elements, steps of four elements, columns of y, and panels of these */
    int64_t rows, depth, k4, outputs, panels;
    int64_t parts, part; /* parts of the outputs; panels of a part */
    int64_t room;        /* packed bytes for a thread */
} rows_state;

/* 1 for matmul_integer. */
static int is_integer(const cnr_node *node) {
    return strcmp(node->desc->name, "matmul_integer") == 0;
}

/* Fills depth, k4, outputs, panels and rows of s from the node's tensors. */
static void sizes(const cnr_node *node, rows_state *s) {
    const int integer = is_integer(node);
    const cnr_tensor *w = node->inputs[integer ? INT8_INTEGER_W : INT8_W];
    const cnr_tensor *x = node->inputs[INT8_X];
    s->depth = w->dim[integer ? 0 : 1];
    s->outputs = w->dim[integer ? 1 : 0];
    s->rows = integer ? cnr_span(x, 0, x->rank - 1) : x->dim[0];
    s->k4 = cnr_div_up(s->depth, 4);
    s->panels = cnr_div_up(s->outputs, INT8_MR);
}

/* Takes matmul_integer with a constant matrix; for others out->why says why. */
static cnr_status integer_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    const char *why = int8_integer_fits(node);
    const cnr_tensor *w = node->inputs[INT8_INTEGER_W];
    if (!why && (w->rank != 2 || node->inputs[INT8_X]->rank < 2))
        why = "a constant matrix is wanted";
    if (!why) why = int8_integer_sums_fit(node, w->dim[1]);
    if (why) return cnr_refuse(out, why);
    cnr_take(node, out, 300);
    out->prepared = 1u << INT8_INTEGER_W;
    if (cnr_own_input(node, INT8_INTEGER_W_ZERO)) out->prepared |= 1u << INT8_INTEGER_W_ZERO;
    return CNR_OK;
}

/* Takes quantised dense layers of many samples; for others out->why says why. */
static cnr_status dense_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    const char *why = int8_layer_fits(node, 1);
    if (!why && node->outputs[0]->dim[0] < LEAST_SAMPLES) why = "more samples are wanted";
    if (why) return cnr_refuse(out, why);
    cnr_take(node, out, 400);
    out->prepared = int8_layer_prepared(node);
    return CNR_OK;
}

/* ---- weights: panels of INT8_MR outputs, [k / 4][INT8_MR][4] ---- */

/* Sets out to the bytes of head and packed weights, aligned to 64. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    rows_state s = {0};
    (void)device;
    (void)err;
    sizes(node, &s);
    out->alignment = 64;
    out->bytes = (uint64_t)(int8_blob_head(s.panels * INT8_MR) + s.panels * INT8_MR * s.k4 * 4);
    return CNR_OK;
}

/* Packs the matrix in panels of outputs into data, behind the head of `int8_blob`. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *data,
                          cnr_error *err) {
    const int integer = is_integer(node);
    const uint8_t *w = node->inputs[integer ? INT8_INTEGER_W : INT8_W]->data;
    int8_blob *blob = data;
    rows_state s = {0};
    (void)device;
    (void)err;
    sizes(node, &s);
    if (integer)
        int8_integer_fill(node, s.panels * INT8_MR, s.outputs, s.depth,
                          s.outputs == 1 ? 1 : s.outputs, blob);
    else int8_blob_fill(node, s.panels * INT8_MR, blob);
    uint8_t *to = (uint8_t *)data + blob->weight_at;
    memset(to, 0, (size_t)(s.panels * INT8_MR * s.k4 * 4));
    for (int64_t r = 0; r < s.outputs; r++) {
        uint8_t *panel = to + r / INT8_MR * INT8_MR * s.k4 * 4;
        for (int64_t k = 0; k < s.depth; k++)
            panel[(k / 4 * INT8_MR + r % INT8_MR) * 4 + k % 4] =
                w[integer ? k * s.outputs + r : r * s.depth + k] ^ blob->layer.w_flip;
    }
    return CNR_OK;
}

/* Allocates the state, dividing rows and panels into tasks for the device's threads, and sets the
 * workspace. Fails with CNR_E_MEMORY. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    const int64_t threads = cnr_max(1, device->concurrency);
    rows_state *s = cnr_state(int8_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    sizes(node, s);
    const int64_t blocks = cnr_max(1, cnr_div_up(s->rows, INT8_NR));
    const int64_t wanted =
        blocks >= 2 * threads || threads == 1 ? 1 : cnr_div_up(2 * threads, blocks);
    s->part = cnr_div_up(s->panels, cnr_max(1, cnr_min(wanted, s->panels)));
    s->parts = cnr_div_up(s->panels, s->part);
    s->room = cnr_round_up(s->k4 * 4 * INT8_NR, 64);
    workspace->alignment = 64;
    workspace->bytes = (uint64_t)(threads * s->room);
    *state = s;
    return CNR_OK;
}

/* ---- running ---- */

/* Arguments of the tasks of a run. */
typedef struct rows_job {
    const cnr_run *run;
    const rows_state *s;
    const int8_blob *blob;
    int32_t x_zero;
} rows_job;

/* Packs n rows of x from `from` on into `to`; also sums each row into total. */
static void pack(const rows_job *j, const uint8_t *from, int64_t n, uint8_t *to, int32_t *total) {
    const rows_state *s = j->s;
    const uint32_t flip = j->blob->layer.x_flip * 0x01010101u;
    if (n < INT8_NR) memset(to, 0, (size_t)(s->k4 * 4 * INT8_NR));
    for (int64_t r = 0; r < n; r++, from += s->depth) {
        uint8_t *place = to + r * 4;
        for (int64_t k = 0; k < s->depth / 4; k++, place += 4 * INT8_NR) {
            uint32_t four;
            memcpy(&four, from + 4 * k, 4);
            four ^= flip;
            memcpy(place, &four, 4);
        }
        for (int64_t k = s->depth / 4 * 4; k < s->k4 * 4; k++)
            place[k % 4] = k < s->depth ? (uint8_t)(from[k] ^ j->blob->layer.x_flip) : 0;
        total[r] = 0;
        for (int64_t k = 0; k < s->depth && j->blob->layer.shifts; k++)
            total[r] += from[k] ^ j->blob->layer.x_flip;
    }
}

/* Stores outputs [first, first + INT8_MR) of rows [row, row + n), which are interleaved. */
static void store(const rows_job *j, int32_t *sums, const int32_t *total, int64_t row, int64_t n,
                  int64_t first) {
    const int64_t outputs = j->s->outputs, count = cnr_min(INT8_MR, outputs - first);
    const int64_t at = row * outputs + first;
    const int8_layer *l = &j->blob->layer;
    uint8_t bytes[INT8_MR][INT8_NR];
    for (int64_t i = 0; i < count; i++) {
        int32_t *sum = sums + i * INT8_NR;
        const uint32_t zero = (uint32_t)int8_w_zeros(j->blob)[first + i];
        for (int64_t c = 0; c < INT8_NR && l->shifts; c++)
            sum[c] = (int32_t)((uint32_t)sum[c] - zero * (uint32_t)total[c]);
        const int32_t offset = int8_offsets(j->blob)[first + i];
        if (is_integer(j->run->node)) {
            const uint32_t shift = (uint32_t)offset * (uint32_t)j->x_zero;
            for (int64_t c = 0; c < INT8_NR; c++) sum[c] = (int32_t)((uint32_t)sum[c] + shift);
            continue;
        }
        const int8_requant how = int8_requant_of(j->blob, first + i);
        int8_uk->requantize(sum, n, &how, bytes[i]);
    }
    if (is_integer(j->run->node)) {
        int32_t *y = (int32_t *)j->run->outputs[0]->data + at;
        for (int64_t c = 0; c < n; c++)
            for (int64_t i = 0; i < count; i++) y[c * outputs + i] = sums[i * INT8_NR + c];
        return;
    }
    uint8_t *y = (uint8_t *)j->run->outputs[0]->data + at;
    for (int64_t c = 0; c < n; c++)
        for (int64_t i = 0; i < count; i++) y[c * outputs + i] = bytes[i][c];
}

/* Task index of the rows_job `arg`: computes INT8_NR rows, or those left, by one part of the
 * panels. */
static void one_task(void *arg, int64_t index, int32_t thread) {
    const rows_job *j = arg;
    const rows_state *s = j->s;
    const int64_t row = index / s->parts * INT8_NR, n = cnr_min(INT8_NR, s->rows - row);
    const int64_t begin = index % s->parts * s->part, end = cnr_min(s->panels, begin + s->part);
    const int64_t panel = INT8_MR * s->k4 * 4;
    uint8_t *packed = (uint8_t *)j->run->workspace_data + thread * s->room;
    int32_t sums[INT8_MR * INT8_NR], total[INT8_NR] = {0};
    if (cnr_cancelled(j->run->stream)) return;
    pack(j, (const uint8_t *)j->run->node->inputs[INT8_X]->data + row * s->depth, n, packed, total);
    for (int64_t p = begin; p < end; p++) {
        int8_uk->gemm(s->k4, int8_weights(j->blob) + p * panel, packed, sums);
        store(j, sums, total, row, n, p * INT8_MR);
    }
}

/* Computes everything on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const rows_state *s = run->state;
    rows_job j = {.run = run, .s = s, .blob = run->blob_data};
    (void)err;
    if (is_integer(run->node)) j.x_zero = int8_integer_x_zero(run->node);
    cnr_parallel(run->stream, cnr_div_up(s->rows, INT8_NR) * s->parts, one_task, &j);
    return CNR_OK;
}

INT8_KERNEL(int8_matmul_integer, 2, "matmul_integer_int8_gemm", "matmul_integer", integer_accepts);
INT8_KERNEL(int8_dense_gemm, 2, "qlinear_dense_int8_gemm", "qlinear_dense", dense_accepts);
