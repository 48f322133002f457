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

/* The head of an encoded weight. */
typedef struct csr_header {
    uint32_t magic;      /* CSR_MAGIC, by which a stored image is known */
    uint8_t index_bits;  /* 0: all columns; 1 to 8: gaps; 16 or 32: columns */
    uint8_t value;       /* CNR_f32, CNR_f16, CNR_i8 or CSR_SHARED */
    uint8_t block, bits; /* rows of a block, 1 or 4; bits: 1 to 8 with CSR_SHARED, else 0 */
    uint64_t rows, columns, entries;
    uint32_t indices; /* count of numbers in `index`: entries and skips */
    uint32_t
        longest; /* the most columns between two entries; stored so that it need not be searched */
} csr_header;

enum { CSR_SHARED = 255, CSR_BLOCK = 4 };
#define CSR_MAGIC 0x33525343u /* "CSR3" */
/* The second form gave the index width in bytes, 1 for gaps, 2 or 4 for columns, and had no
 * `longest`. */
#define CSR_MAGIC_2 0x32525343u

/* The first form: columns of 2 or 4 bytes, f32 values, no table, no blocks. */
typedef struct csr_header_1 {
    uint32_t magic, index_bytes;
    uint64_t rows, columns, entries;
} csr_header_1;
#define CSR_MAGIC_1 0x31525343u /* "CSR1" */

/* Pointers to the parts of stored data. */
typedef struct csr_matrix {
    csr_header head;
    uint64_t blocks; /* number of blocks of rows */
    const float *table;
    const uint32_t *row_begin;
    const void *index, *value;
} csr_matrix;

/* Number of blocks of rows, the last perhaps with fewer rows. */
static inline uint64_t csr_blocks(const csr_header *h) {
    return (h->rows + h->block - 1) / h->block;
}
/* Entries of the table: a scale for each row, or the shared values; 0: no table. */
static inline uint64_t csr_table_length(const csr_header *h) {
    return h->value == CNR_i8 ? h->rows : h->value == CSR_SHARED ? (uint64_t)1 << h->bits : 0;
}
/* Bytes of a stored value: 4 of f32, 2 of f16, else 1. */
static inline uint64_t csr_value_bytes(const csr_header *h) {
    return h->value == CNR_f32 ? 4 : h->value == CNR_f16 ? 2 : 1;
}
/* The gap that means this number of columns without an entry. */
static inline uint32_t csr_skip(uint32_t bits) { return (1u << bits) - 1; }
/* Bytes of the index without padding to 4. */
uint64_t csr_index_bytes(const csr_header *h);
/* Byte sizes of the parts after the header, and in total, for a header that csr_header_fault
 * accepts. */
typedef struct csr_parts {
    uint64_t table, row_begin, index, value, all;
} csr_parts;
/* Bytes of each part of the image that the header describes. */
csr_parts csr_parts_of(const csr_header *h);

/* Reads a header of any form as the newest one, and where its parts begin; 0: it is none. */
int csr_header_read(const void *data, uint64_t bytes, csr_header *h, uint64_t *at);
/* What is wrong with the header for the tensor that it describes; NULL: nothing. */
const char *csr_header_fault(const csr_header *h, const cnr_tensor *t);
/* Pointers to the parts of data that csr_check accepts; they point into data. */
csr_matrix csr_view(const void *data);
/* What is wrong with a tensor's stored data, as a constant text; NULL: nothing, and the functions
 * below may be called. */
const char *csr_check(const cnr_tensor *t);
/* Writes the dense f32 rows, zeros included, to `dense`. */
void csr_decode(const csr_matrix *m, float *dense);

/* Reads the columns of block `b`. *cursor: where its indices begin, on return the next block's.
 * Blocks are read in order, from 0 with *cursor 0. `column` has room for row_begin[b + 1] -
 * row_begin[b]. */
void csr_columns(const csr_matrix *m, uint64_t b, uint64_t *cursor, uint32_t *column);
/* Reads n values from entry `first` on, of row `r` of block `b`. */
void csr_values(const csr_matrix *m, uint64_t b, uint64_t r, uint64_t first, uint64_t n,
                float *out);

#endif
