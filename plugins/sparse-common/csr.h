/* The stored form of a sparse matrix: what writes it, what reads it, and kernels share.
 *
 *   csr_header | table f32[] | row_begin u32[blocks + 1] | index, to 4 bytes | values, to 4 bytes
 *
 * A tensor of any rank is the matrix of dim[0] rows and all its other dims as columns. An entry is
 * one column of a block of `block` rows (1 or 4; the last block may have fewer), and has that many
 * values, one behind the other. Columns rise within a block of rows. index: a column each of 16 or
 * 32 bits; or, of 1 to 8 bits, gaps: how many columns lie between an entry and the one before it
 * (or the row's begin), where the largest number stands for that many columns and no entry (a
 * skip). Those of less than 8 bits are packed, the first in the lowest, with 8 bytes behind them,
 * so that a word can be read at each. Where all columns are there, there is no index. table: of
 * CNR_i8 the rows' scales, of CSR_SHARED what the 1 << bits numbers stand for. Little-endian, as
 * the native file is. */
#ifndef CSR_H
#define CSR_H

#include <cnnrun/kit.h>

typedef struct csr_header {
    uint32_t magic;      /* CSR_MAGIC */
    uint8_t index_bits;  /* 0: all columns; 1 to 8: gaps; 16 or 32: columns */
    uint8_t value;       /* CNR_f32, CNR_f16, CNR_i8 or CSR_SHARED */
    uint8_t block, bits; /* bits: 1 to 8 with CSR_SHARED, else 0 */
    uint64_t rows, columns, entries;
    uint32_t indices; /* how many numbers `index` has: entries and skips */
    uint32_t
        longest; /* no more columns than that lie between two entries: told, so as not to look */
} csr_header;

enum { CSR_SHARED = 255, CSR_BLOCK = 4 };
#define CSR_MAGIC 0x33525343u /* "CSR3" */
/* The second form counted an index in bytes, 1 of gaps, 2 or 4 of columns, and did not tell the
 * longest. */
#define CSR_MAGIC_2 0x32525343u

/* The first form: columns of 2 or 4 bytes and f32 values, no table, no blocks. */
typedef struct csr_header_1 {
    uint32_t magic, index_bytes;
    uint64_t rows, columns, entries;
} csr_header_1;
#define CSR_MAGIC_1 0x31525343u /* "CSR1" */

/* Stored bytes taken apart. */
typedef struct csr_matrix {
    csr_header head;
    uint64_t blocks; /* of rows */
    const float *table;
    const uint32_t *row_begin;
    const void *index, *value;
} csr_matrix;

static inline uint64_t csr_blocks(const csr_header *h) {
    return (h->rows + h->block - 1) / h->block;
}
static inline uint64_t csr_table_length(const csr_header *h) {
    return h->value == CNR_i8 ? h->rows : h->value == CSR_SHARED ? (uint64_t)1 << h->bits : 0;
}
static inline uint64_t csr_value_bytes(const csr_header *h) {
    return h->value == CNR_f32 ? 4 : h->value == CNR_f16 ? 2 : 1;
}
/* The gap that stands for so many columns and no entry. */
static inline uint32_t csr_skip(uint32_t bits) { return (1u << bits) - 1; }
/* Of the numbers in `index`, before it is filled up to 4. */
uint64_t csr_index_bytes(const csr_header *h);
/* Bytes of the parts behind the header, and of all of it; of a header that csr_header_fault passes.
 */
typedef struct csr_parts {
    uint64_t table, row_begin, index, value, all;
} csr_parts;
csr_parts csr_parts_of(const csr_header *h);

/* The header of any form, as the newest has it, and where what is behind it begins; 0: there is
 * none. */
int csr_header_read(const void *data, uint64_t bytes, csr_header *h, uint64_t *at);
/* What is wrong with a header for the tensor it stands for; NULL: nothing. */
const char *csr_header_fault(const csr_header *h, const cnr_tensor *t);
/* Takes apart what csr_check approved of. */
csr_matrix csr_view(const void *data);
/* What is wrong with stored bytes; NULL: nothing, and all that follow here may be called. */
const char *csr_check(const cnr_tensor *t);
void csr_decode(const csr_matrix *m, float *dense);

/* The columns of block `b`, of which *cursor is where its indices begin and, then, the next one's:
 * blocks are asked for in their order, from 0 with *cursor 0. `column` has room for row_begin[b +
 * 1] - [b]. */
void csr_columns(const csr_matrix *m, uint64_t b, uint64_t *cursor, uint32_t *column);
/* The n values from entry `first` on, of row `r` of their block `b`. */
void csr_values(const csr_matrix *m, uint64_t b, uint64_t r, uint64_t first, uint64_t n,
                float *out);

#endif
