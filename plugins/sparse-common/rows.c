/* Stored matrices as plain rows. */
#include "rows.h"

/* Number of rows of block `b`: the last may have fewer. */
static uint64_t rows_of(const csr_matrix *m, uint64_t b) {
    const uint64_t left = m->head.rows - b * m->head.block;
    return left < m->head.block ? left : m->head.block;
}

/* Places of the parts of the matrix by single rows, in words of 4 bytes. */
csr_rows_layout csr_rows_layout_of(const csr_matrix *m) {
    csr_rows_layout l = {.index_at = m->head.rows + 1};
    for (uint64_t b = 0; b < m->blocks; b++)
        l.entries += (m->row_begin[b + 1] - m->row_begin[b]) * rows_of(m, b);
    l.value_at = l.index_at + l.entries;
    l.words = l.value_at + l.entries;
    return l;
}

cnr_status csr_rows_prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                                 cnr_error *err) {
    const csr_matrix m = csr_view(node->inputs[1]->data);
    (void)device;
    (void)err;
    out->bytes = csr_rows_layout_of(&m).words * 4;
    return CNR_OK;
}

cnr_status csr_rows_make(const cnr_node *node, void *blob, const cnr_host *host, cnr_error *err) {
    const csr_matrix view = csr_view(node->inputs[1]->data), *m = &view;
    const csr_rows_layout l = csr_rows_layout_of(m);
    uint32_t *ptr = (uint32_t *)blob, *index = ptr + l.index_at;
    float *value = (float *)blob + l.value_at;
    uint32_t *column = (uint32_t *)host->alloc((m->head.columns + 1) * sizeof *column);
    uint64_t cursor = 0, at = 0;
    if (!column) return host->fail(err, CNR_E_MEMORY, NULL, "out of memory");
    for (uint64_t b = 0; b < m->blocks; b++) {
        const uint64_t first = m->row_begin[b], n = m->row_begin[b + 1] - first;
        csr_columns(m, b, &cursor, column);
        for (uint64_t r = 0; r < rows_of(m, b); r++, at += n) {
            ptr[b * m->head.block + r] = (uint32_t)at;
            memcpy(index + at, column, n * sizeof *column);
            csr_values(m, b, r, first, n, value + at);
        }
    }
    ptr[m->head.rows] = (uint32_t)at;
    host->free(column);
    return CNR_OK;
}

const char *csr_rows_unfit(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1], *b = cnr_own_input(node, 2);
    const uint32_t f32 = 1u << CNR_f32;
    csr_header h;
    uint64_t at;
    if (!cnr_is_plain(x, f32) || !cnr_is_plain(node->outputs[0], f32) ||
        (b && !cnr_is_plain(b, f32)))
        return "dense f32 beside the weight is wanted";
    if (!w->encoding || !(w->flags & CNR_TENSOR_CONST) || w->rank != 2 || !w->data)
        return "a constant weight in this encoding is wanted";
    if (!csr_header_read(w->data, w->bytes, &h, &at) || h.magic != CSR_MAGIC)
        return "it is compressed further, and decoded first";
    if (cnr_span(x, 1, x->rank) != w->dim[1]) return "the weight's columns are not the inputs";
    if (b && cnr_count(b) != w->dim[0]) return "a bias for each output is wanted";
    if (h.rows + 1 + 2 * h.entries * h.block > INT32_MAX) return "the weight is too large";
    return NULL;
}
