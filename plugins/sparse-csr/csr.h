/* The stored form of a sparse matrix, and what the plugin's files share.
 *
 *   csr_header | row_begin u32[rows + 1] | column u16 or u32[entries], to 4 bytes | value f32[entries]
 *
 * A tensor of any rank is the matrix of dim[0] rows and all its other dims as columns. Columns rise
 * within a row; little-endian, as the native file is. */
#ifndef CSR_H
#define CSR_H

#include <cnnrun/kit.h>

extern const cnr_host *csr_host;
extern const cnr_encoding csr_encoding;
extern const cnr_kernel csr_dense_f32;

typedef struct csr_header {
    uint32_t magic;       /* CSR_MAGIC */
    uint32_t index_bytes; /* 2 when every column fits, else 4 */
    uint64_t rows, columns, entries;
} csr_header;

#define CSR_MAGIC 0x31525343u /* "CSR1" */

typedef struct csr_matrix {
    const csr_header *head;
    const uint32_t *row_begin;
    const void *column;
    const float *value;
} csr_matrix;

static inline uint64_t csr_column_bytes(uint64_t entries, uint32_t index_bytes) {
    return (entries * index_bytes + 3) / 4 * 4;
}
static inline uint64_t csr_bytes(uint64_t rows, uint64_t entries, uint32_t index_bytes) {
    return sizeof(csr_header) + (rows + 1) * 4 + csr_column_bytes(entries, index_bytes) + entries * 4;
}

/* The parts of stored bytes that csr_encoding.check has approved of. */
static inline csr_matrix csr_view(const void *data) {
    csr_matrix m;
    m.head = (const csr_header *)data;
    m.row_begin = (const uint32_t *)(m.head + 1);
    m.column = m.row_begin + m.head->rows + 1;
    m.value = (const float *)((const char *)m.column +
                              csr_column_bytes(m.head->entries, m.head->index_bytes));
    return m;
}

static inline uint32_t csr_column_at(const csr_matrix *m, uint64_t i) {
    return m->head->index_bytes == 2 ? ((const uint16_t *)m->column)[i]
                                     : ((const uint32_t *)m->column)[i];
}

#endif
