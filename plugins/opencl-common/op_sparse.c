/* dense and gemm with a weight stored as compressed sparse rows: each sample by slices of rows. */
#include "op_dense.h"

#include "op_sparse.h"
#include "sparse.cl.h"

enum { LANES = 16, ALIGNED = 16 }; /* words between the parts of the blob */

/* What plan keeps for run: code, epilogue, sizes, and where indices and values begin in the packed
 * matrix. */
typedef struct sparse_state {
    const ocl_code *code;
    ocl_chain chain;
    int64_t samples, k, n, index_at, value_at;
    int32_t line, block;
} sparse_state;

/* Offsets of the parts of the blob, in words of 4 bytes. */
typedef struct layout {
    int64_t slices, steps, index_at, value_at, words;
    int32_t wide; /* columns of 4 bytes */
} layout;

/* Why this kernel cannot do the node, or NULL. */
static const char *unfit(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1], *y = node->outputs[0];
    const cnr_tensor *b = cnr_own_input(node, 2);
    const uint32_t f32 = 1u << CNR_f32;
    if (!cnr_is_plain(x, f32) || !cnr_is_plain(y, f32) || (b && !cnr_is_plain(b, f32)) ||
        !w->encoding || !(w->flags & CNR_TENSOR_CONST) || w->rank != 2 || y->rank != 2)
        return "f32 with a constant weight in this encoding is wanted";
    if (!ocl_sparse_is_plain(w)) return "it is compressed further, and decoded first";
    if (strcmp(node->desc->name, "gemm") == 0 &&
        (cnr_attr_int(node, "transA") || !cnr_attr_int(node, "transB") ||
         cnr_attr_float(node, "alpha") != 1.0 || (b && cnr_attr_float(node, "beta") != 1.0)))
        return "a plain product with a transposed weight is wanted";
    if (cnr_span(x, 1, x->rank) != w->dim[1]) return "the weight's columns are not the inputs";
    if (b && (cnr_count(b) != w->dim[0] || b->dim[b->rank - 1] != w->dim[0]))
        return "a bias for each output is wanted";
    if (cnr_count(x) > INT32_MAX || cnr_count(y) > INT32_MAX || cnr_count(w) > INT32_MAX)
        return OCL_WANTS_F32;
    return NULL;
}

/* Takes products by a weight in compressed sparse rows; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const char *why = unfit(node);
    (void)device;
    if (why) return cnr_refuse(out, why);
    const cnr_tensor *y = node->outputs[0];
    const csr_header h = csr_view(node->inputs[1]->data).head;
    /* Few samples are the vectors that it is for; from half the numbers on dense ones are faster.
     */
    const int few =
        y->dim[0] <= 4 && h.entries * h.block <= (uint64_t)cnr_count(node->inputs[1]) / 2;
    out->prepared = 1u << 1;
    out->ranges = 1 << 0 | 1 << 1;
    out->epilogue = ocl_chain_accepts(node, y->rank, y->dim);
    return cnr_take(node, out, few ? 900 : 50);
}

/* Most entries that any lane of slice `slice` of the rows has. */
static int64_t steps_of(const csr_matrix *m, int64_t slice) {
    int64_t most = 0;
    for (int64_t b = slice * LANES; b < cnr_min((int64_t)m->blocks, (slice + 1) * LANES); b++)
        most = cnr_max(most, m->row_begin[b + 1] - m->row_begin[b]);
    return most;
}

/* Number of slices and steps of the rows as the device reads them, and whether a column needs
 * more than 16 bits. */
static layout layout_of(const csr_matrix *m) {
    layout l = {.slices = cnr_div_up((int64_t)m->blocks, LANES), .wide = m->head.columns > 65536};
    for (int64_t s = 0; s < l.slices; s++) l.steps += steps_of(m, s);
    l.index_at = cnr_round_up(l.slices + 1, ALIGNED);
    l.value_at = cnr_round_up(l.index_at + l.steps * LANES / (l.wide ? 1 : 2), ALIGNED);
    l.words = l.value_at + l.steps * LANES * m->head.block;
    return l;
}

/* Method prepare_size: bytes of the packed weights; 0: none. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    const csr_matrix m = csr_view(node->inputs[1]->data);
    const layout l = layout_of(&m);
    (void)device;
    if (l.words > INT32_MAX)
        return ocl_host->fail(err, CNR_E_LIMIT, node->name, "the weight is too large");
    out->bytes = (uint64_t)l.words * 4;
    return CNR_OK;
}

/* Method prepare: packs the node's weights into blob. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    const csr_matrix m = csr_view(node->inputs[1]->data);
    const layout l = layout_of(&m);
    const int64_t block = m.head.block;
    uint32_t *begin = (uint32_t *)blob, *column = ocl_host->alloc((m.head.columns + 1) * 8);
    float *row = (float *)(void *)(column + m.head.columns + 1),
          *value = (float *)blob + l.value_at;
    uint64_t cursor = 0;
    (void)device;
    if (!column) return ocl_host->fail(err, CNR_E_MEMORY, node->name, "out of memory");
    memset(blob, 0, (size_t)l.words * 4);
    for (int64_t s = 0, step = 0; s < l.slices; s++) {
        begin[s] = (uint32_t)step;
        for (int64_t b = s * LANES; b < cnr_min((int64_t)m.blocks, (s + 1) * LANES); b++) {
            const int64_t first = m.row_begin[b], n = m.row_begin[b + 1] - first, lane = b % LANES;
            csr_columns(&m, (uint64_t)b, &cursor, column);
            for (int64_t i = 0; i < n; i++) {
                const int64_t at = (step + i) * LANES + lane;
                if (l.wide) (begin + l.index_at)[at] = column[i];
                else ((uint16_t *)(void *)(begin + l.index_at))[at] = (uint16_t)column[i];
            }
            for (int64_t r = 0; r < block; r++) {
                csr_values(&m, (uint64_t)b, (uint64_t)r, (uint64_t)first, (uint64_t)n, row);
                for (int64_t i = 0; i < n; i++)
                    value[((step + i) * block + r) * LANES + lane] = row[i];
            }
        }
        step += steps_of(&m, s);
        begin[s + 1] = (uint32_t)step;
    }
    ocl_host->free(column);
    return CNR_OK;
}

/* Method plan: finds the device code and keeps what run needs in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **out, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/sparse.cl", sparse_cl);
    const ocl_tune *tune = ocl_of(device)->tune;
    ocl_plan p;
    (void)workspace;
    sparse_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    const csr_matrix m = csr_view(node->inputs[1]->data);
    const layout l = layout_of(&m);
    s->samples = node->outputs[0]->dim[0];
    s->n = node->inputs[1]->dim[0];
    s->k = node->inputs[1]->dim[1];
    s->index_at = l.index_at;
    s->value_at = l.value_at;
    s->block = m.head.block;
    s->line = tune->rows ? 1 : tune->line;
    ocl_plan_options(&p, "-DLINE=%d -DBLOCK=%d -DINDEX=%s -DINDEX16=%s16 ", (int)s->line,
                     (int)s->block, l.wide ? "uint" : "ushort", l.wide ? "uint" : "ushort");
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_code(&p, &source, "sparse", &s->code);
    return ocl_plan_end(&p, out);
}

/* Method run: queues the code over the run's range on its stream. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const sparse_state *s = run->state;
    const cnr_node *node = run->node;
    const cnr_tensor *bias = cnr_own_input(node, 2);
    const int64_t rows = LANES * (int64_t)s->block;
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    ocl_call call;
    cnr_range_of(run, lo, hi);
    const int64_t first = lo[1] / rows;
    const int64_t range[8] = {lo[0], hi[0], lo[1], hi[1], first};
    const int64_t shape[8] = {s->k, s->n, bias != NULL, s->index_at, s->value_at};
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &node->inputs[0]->mem);
    ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, bias ? &bias->mem : &node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, range, 8);
    ocl_arg_longs(&call, shape, 8);
    ocl_chain_args(&call, &s->chain, node);
    return ocl_launch(&call, (cnr_div_up(hi[1], rows) - first) * s->line, hi[0] - lo[0], 1, s->line,
                      err);
}

static const char *const encodings[] = {"", "sparse-csr", "", NULL};

/* Registers the sparse kernel of operator op_name. */
#define ROW(op_name) \
    OCL_KERNEL(ocl_##op_name##_sparse, #op_name "_f32_csr", #op_name, .encodings = encodings, \
               .accepts = accepts, .prepare_size = prepare_size, .prepare = prepare, .plan = plan, \
               .run = run, .flags = CNR_KERNEL_SKIPS_ZEROS);
ROW(dense)
ROW(gemm)
