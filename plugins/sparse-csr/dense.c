/* dense, and gemm in the form of a fully connected layer, with a sparse weight: one sample by
 * slices of rows; several samples are transposed to columns. */
#include "sparse.h"

enum { SIDE_BY_SIDE = 4 }; /* number of samples from which they are transposed to columns */

static int64_t samples_of(const cnr_node *node) { return node->outputs[0]->dim[0]; }
static int64_t depth_of(const cnr_node *node) { return node->inputs[1]->dim[1]; }
/* Floats from an input of all samples to the next input; independent of blocks. */
static int64_t pitch_of(const cnr_node *node) {
    const int64_t n = samples_of(node);
    return cnr_max(cnr_round_up(n, csr_uk->vl),
                   cnr_max(csr_tiles_reads(n, 1), csr_tiles_reads(n, CSR_BLOCK)));
}
static int by_columns(const cnr_node *node) { return samples_of(node) >= SIDE_BY_SIDE; }

/* Why the node can't be multiplied, as a constant text; NULL: it can. A gemm must be y = x *
 * weight^T + bias. */
static const char *unfit(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1], *y = node->outputs[0];
    const cnr_tensor *b = cnr_own_input(node, 2);
    const uint32_t f32 = 1u << CNR_f32;
    if (!cnr_is_plain(x, f32) || !cnr_is_plain(y, f32) || (b && !cnr_is_plain(b, f32)) ||
        !w->encoding || !(w->flags & CNR_TENSOR_CONST) || w->rank != 2)
        return "f32 with a constant weight in this encoding is wanted";
    if (strcmp(node->desc->name, "gemm") == 0 &&
        (cnr_attr_int(node, "transA") || !cnr_attr_int(node, "transB") ||
         cnr_attr_float(node, "alpha") != 1.0 || (b && cnr_attr_float(node, "beta") != 1.0)))
        return "a plain product with a transposed weight is wanted";
    if (cnr_span(x, 1, x->rank) != w->dim[1]) return "the weight's columns are not the inputs";
    if (b && (cnr_count(b) != w->dim[0] || b->dim[b->rank - 1] != w->dim[0]))
        return "a bias for each output is wanted";
    return NULL;
}

/* Takes products by a weight in compressed sparse rows; else out tells why not. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    const char *why = unfit(node);
    if (!why && by_columns(node) && depth_of(node) > UINT32_MAX / pitch_of(node))
        why = "the samples are too many";
    if (why) return cnr_refuse(out, why);
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1], *y = node->outputs[0];
    int sparse = 0;
    if (w->data) {
        const csr_header h = csr_header_of(w->data);
        const double samples = (double)samples_of(node);
        out->cost_ns = by_columns(node) ? csr_tiles_ns(&h, samples_of(node)) + (double)cnr_count(x)
                                        : samples * csr_vector_ns(&h);
        sparse =
            out->cost_ns < csr_dense_ns(samples * (double)cnr_count(w), (double)cnr_dense_bytes(w));
    }
    if (!sparse) out->cost_ns = 0; /* kernels that read it decoded give no time for comparison */
    out->prepared = 1u << 1;
    out->ranges = 1u << 1;
    out->epilogue = csr_host->chain_length(node, y->rank, y->dim, CSR_LINKS);
    return cnr_take(node, out, sparse ? 900 : 50); /* other kernels read it decoded */
}

/* Method prepare_size: bytes of the packed weights; 0: none. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    csr_matrix m;
    void *own;
    (void)device;
    out->alignment = 64;
    const csr_header h = csr_header_of(node->inputs[1]->data);
    if (by_columns(node)) {
        out->bytes = csr_rows_size(&h);
        return CNR_OK;
    }
    const csr_use use = csr_slices_are_told(&h) ? CSR_USE_ROWS : CSR_USE_ALL;
    CNR_TRY(csr_open(node->inputs[1], use, &m, &own, err));
    const cnr_status status = csr_slices_size(&m, &out->bytes, err);
    csr_host->free(own);
    return status;
}

/* Makes the packed rows, with offsets of the input's columns. */
static cnr_status make_rows(const cnr_node *node, const csr_matrix *m, void *blob, cnr_error *err) {
    uint32_t *offset = (uint32_t *)csr_host->alloc((m->head.columns + 1) * sizeof *offset);
    const uint32_t pitch = (uint32_t)pitch_of(node);
    if (!offset) return csr_host->fail(err, CNR_E_MEMORY, node->name, "out of memory");
    for (uint64_t k = 0; k < m->head.columns; k++) offset[k] = (uint32_t)k * pitch;
    const cnr_status status = csr_rows_make(m, offset, blob, err);
    csr_host->free(offset);
    return status;
}

/* Method prepare: packs the node's weights into blob. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    csr_matrix m;
    void *own;
    (void)device;
    CNR_TRY(csr_open(node->inputs[1], CSR_USE_ALL, &m, &own, err));
    const cnr_status status =
        by_columns(node) ? make_rows(node, &m, blob, err) : csr_slices_make(&m, blob, err);
    csr_host->free(own);
    return status;
}

/* Samples become columns; surplus columns are read but not used. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    (void)state;
    (void)err;
    if (by_columns(node))
        workspace->bytes = (uint64_t)pitch_of(node) * (uint64_t)depth_of(node) * sizeof(float);
    return CNR_OK;
}

/* Arguments of the tasks that turn the input. */
typedef struct turning {
    const float *x;
    float *to;
    int64_t samples, depth, pitch;
} turning;

enum { TURNED = 256 }; /* inputs of a task */

/* Task: turns some of the input's columns into rows. */
static void turn(void *arg, int64_t i, int32_t thread) {
    const turning *t = (const turning *)arg;
    (void)thread;
    for (int64_t k = i * TURNED; k < cnr_min(t->depth, (i + 1) * TURNED); k++) {
        float *to = t->to + k * t->pitch;
        for (int64_t n = 0; n < t->samples; n++) to[n] = t->x[n * t->depth + k];
        for (int64_t n = t->samples; n < t->pitch; n++) to[n] = 0;
    }
}

/* Computes rows [first, end) for all samples. */
static void run_columns(const cnr_run *run, int64_t first, int64_t end) {
    const cnr_node *node = run->node;
    const cnr_tensor *b = cnr_own_input(node, 2);
    const csr_rows *rows = (const csr_rows *)run->blob_data;
    turning t = {(const float *)node->inputs[0]->data, (float *)run->workspace_data,
                 samples_of(node), depth_of(node), pitch_of(node)};
    const int64_t outputs = run->outputs[0]->dim[1];
    cnr_parallel(run->stream, cnr_div_up(t.depth, TURNED), turn, &t);
    csr_tiles_job j = {.run = run,
                       .blob = rows,
                       .x = t.to,
                       .bias = b ? (const float *)b->data : NULL,
                       .y = (float *)run->outputs[0]->data,
                       .first = first,
                       .end = end,
                       .group_rows = outputs,
                       .lines = 1,
                       .width = t.samples,
                       .pitch = t.pitch,
                       .row_floats = 1,
                       .column_floats = outputs,
                       .readable = t.pitch};
    csr_chain_of(node, &j.chain);
    csr_tiles_run(&j);
    for (int64_t n = 0; n < t.samples; n++)
        csr_chain_run(&j.chain, csr_tiles_done(&j.chain), node, j.y + n * outputs + first,
                      n * outputs + first, end - first);
}

/* Method run: queues the code over the run's range on its stream; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *b = cnr_own_input(node, 2);
    const int64_t outputs = run->outputs[0]->dim[1];
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    (void)err;
    cnr_range_of(run, lo, hi);
    if (by_columns(node)) {
        run_columns(run, lo[1], hi[1]);
        return CNR_OK;
    }
    for (int64_t n = 0; n < samples_of(node); n++) {
        csr_vector_job j = {.run = run,
                            .blob = (const csr_slices *)run->blob_data,
                            .x = (const float *)node->inputs[0]->data + n * depth_of(node),
                            .bias = b ? (const float *)b->data : NULL,
                            .y = (float *)run->outputs[0]->data + n * outputs,
                            .first = lo[1],
                            .end = hi[1],
                            .at = n * outputs};
        csr_chain_of(node, &j.chain);
        csr_slices_run(&j);
    }
    return CNR_OK;
}

static const char *const encodings[] = {"", "sparse-csr", "", NULL};

/* Defines kernel `variable`, named kernel_name, of operator op_name. */
#define KERNEL(variable, kernel_name, op_name) \
    const cnr_kernel variable = {.size = sizeof(cnr_kernel), \
                                 .version = 2, \
                                 .name = kernel_name, \
                                 .op = op_name, \
                                 .device = "cpu", \
                                 .encodings = encodings, \
                                 .accepts = accepts, \
                                 .prepare_size = prepare_size, \
                                 .prepare = prepare, \
                                 .plan = plan, \
                                 .run = run, \
                                 .flags = CNR_KERNEL_SKIPS_ZEROS}
KERNEL(csr_dense, "dense_f32_csr", "dense");
KERNEL(csr_gemm, "gemm_f32_csr", "gemm");
