/* What the files of this plugin share: the host, the options of the encoding, coded forms, kernels.
 */
#ifndef SPARSE_H
#define SPARSE_H

#include "csr.h"
#include "ukernel/ukernel.h"

extern const cnr_host *csr_host;
extern const csr_ukernels *csr_uk; /* set by init, from what the processor can do */
extern const cnr_encoding csr_encoding;
extern const cnr_kernel csr_dense, csr_gemm, csr_conv;

/* The best microkernels that this processor runs. CNNRUN_CPU_ISA may name a lesser set. */
const csr_ukernels *csr_choose_isa(void);

/* ---- keep.c: what is pruned ---- */

/* What of a matrix is kept: one byte for each column of each block of rows, 1 or 0. */
typedef struct csr_kept {
    uint8_t *at; /* from the host */
    uint64_t rows, columns, blocks, entries;
    int32_t block;
} csr_kept;
/* The share `keep` of the entries with the largest magnitudes, 1: all that are not 0, in blocks of
 * that many rows; 0: in blocks of 4 where that stores hardly more numbers, else of 1. */
cnr_status csr_keep(const cnr_tensor *dense, double keep, int64_t block, csr_kept *out,
                    cnr_error *err);

/* ---- share.c: few numbers for many ---- */

/* table[1 << bits] and which of them stands for each value: all of them exactly where there are no
 * more that differ, else what is nearest to them on the whole. */
cnr_status csr_share(const float *value, uint64_t n, int32_t bits, float *table, uint8_t *code,
                     cnr_error *err);

/* ---- code.c: stored bytes, compressed ---- */

int csr_is_coded(const void *data, uint64_t bytes);
/* *out passes to the caller. Bytes that do not shrink stay as they are. */
cnr_status csr_code(const void *plain, uint64_t bytes, void **out, uint64_t *coded, cnr_error *err);
/* What csr_open is for: row pointers alone; all of it; and judged by csr_check, as
 * csr_encoding.check does once for all. */
typedef enum csr_use { CSR_USE_ROWS, CSR_USE_ALL, CSR_USE_JUDGED } csr_use;
/* The plain form of either: *own is what the caller frees, NULL when t->data is plain already. */
cnr_status csr_open(const cnr_tensor *t, csr_use use, csr_matrix *out, void **own, cnr_error *err);
/* The header alone, of either form, of a tensor that csr_encoding.check passes. */
csr_header csr_header_of(const void *data);

/* ---- chain.c ---- */

enum { CSR_LINKS = 8 }; /* most that a kernel takes along */
typedef enum csr_link_kind { CSR_LINK_APPLY, CSR_LINK_BOUND, CSR_LINK_ADD } csr_link_kind;
typedef struct csr_link {
    csr_link_kind kind;
    int32_t operand; /* an input, -1 */
    float low, high; /* BOUND */
} csr_link;
typedef struct csr_chain {
    int32_t n;
    csr_link link[CSR_LINKS];
} csr_chain;
void csr_chain_of(const cnr_node *node, csr_chain *out);
/* Links `from` on, on x[0 .. n), which are the elements of output 0 from `first` on. */
void csr_chain_run(const csr_chain *chain, int32_t from, const cnr_node *node, float *x,
                   int64_t first, int64_t n);

/* ---- slices.c: by one vector; the blob of a product with one sample ---- */

typedef struct csr_slices csr_slices;
/* The header and the row pointers are all that the size follows from: no gap needs more than a
 * byte. */
static inline int csr_slices_are_told(const csr_header *h) { return h->longest < 255; }
/* Bytes; then the blob itself, all zeros before. m's entries are read twice. */
cnr_status csr_slices_size(const csr_matrix *m, uint64_t *bytes, cnr_error *err);
cnr_status csr_slices_make(const csr_matrix *m, void *blob, cnr_error *err);
/* y[row] = bias[row] + row * x, and what stands behind the node, for rows first <= row < end;
 * element `at` of output 0 is y[0]. */
typedef struct csr_vector_job {
    const cnr_run *run;
    const csr_slices *blob;
    const float *x, *bias;
    float *y;
    int64_t first, end, at;
    csr_chain chain;
} csr_vector_job;
void csr_slices_run(const csr_vector_job *job);

/* ---- tiles.c: by many vectors side by side ---- */

typedef struct csr_rows csr_rows;
uint64_t csr_rows_size(const csr_header *h);
/* offset[column]: floats from x to the first of what that column multiplies. */
cnr_status csr_rows_make(const csr_matrix *m, const uint32_t *offset, void *blob, cnr_error *err);
/* How a row of products becomes a row of output 0: lines of `width` floats that are wanted of every
 * `pitch` computed, `lines` of them. What stands behind the node is computed, too, where products
 * of a row follow each other in y (`chained`); else only what csr_tiles_done counts. */
typedef struct csr_tiles_job {
    const cnr_run *run;
    const csr_rows *blob;
    const float *x, *bias;
    float *y;
    int64_t first, end;               /* rows */
    int64_t group_rows, group_floats; /* rows that read x + group * group_floats */
    int64_t lines, width, pitch;
    int64_t row_floats,
        column_floats; /* from one row of y to the next; from one product to the next */
    int64_t at;        /* y[0] is this element of output 0 */
    int64_t readable;  /* columns of x that may be read: csr_tiles_reads or more */
    int32_t chained;
    csr_chain chain;
} csr_tiles_job;
void csr_tiles_run(const csr_tiles_job *job);
/* The least of `readable`, for so many columns computed. */
int64_t csr_tiles_reads(int64_t columns, int64_t block);
/* Links that products meet before they are stored at all. */
static inline int32_t csr_tiles_done(const csr_chain *chain) {
    return chain->n > 0 && chain->link[0].kind == CSR_LINK_BOUND;
}

/* ---- what a product takes, in ns, as kernels estimate it ---- */

double csr_vector_ns(const csr_header *h);
double csr_tiles_ns(const csr_header *h, int64_t columns);
double csr_dense_ns(double macs, double bytes); /* of what others do with the decoded weight */

#endif
