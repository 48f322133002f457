/* Shared by this plugin's files: the host, the encoding's options, coded forms, kernels. */
#ifndef SPARSE_H
#define SPARSE_H

#include "csr.h"
#include "ukernel/ukernel.h"

extern const cnr_host *csr_host;
extern const csr_ukernels *csr_uk; /* set by init, from the processor's features */
extern const cnr_encoding csr_encoding;
extern const cnr_kernel csr_dense, csr_gemm, csr_conv;

/* Returns the widest microkernels that this processor supports; the environment's CNNRUN_CPU_ISA
 * may select narrower ones. */
const csr_ukernels *csr_choose_isa(void);

/* ---- keep.c: selection of entries ---- */

/* A selection: one byte for each column of each block of rows, 1 (kept) or 0. */
typedef struct csr_kept {
    uint8_t *at; /* from the host */
    uint64_t rows, columns, blocks, entries;
    int32_t block;
} csr_kept;
/* Marks in *out, for csr_kept_free, the share `keep` of the entries with the largest magnitudes (1:
 * all non-zero ones) in blocks of that many rows; block 0: of 4 if that stores hardly more numbers,
 * else of 1. Fails with CNR_E_MEMORY. */
cnr_status csr_keep(const cnr_tensor *dense, double keep, int64_t block, csr_kept *out,
                    cnr_error *err);

/* ---- share.c: weight sharing ---- */

/* Fills table[1 << bits] and the index for each value: exactly if there are no more distinct
 * values, else with the best approximation overall. */
cnr_status csr_share(const float *value, uint64_t n, int32_t bits, float *table, uint8_t *code,
                     cnr_error *err);

/* ---- code.c: compression ---- */

/* 1: the data is an image whose parts are compressed. */
int csr_is_coded(const void *data, uint64_t bytes);
/* *out receives the image compressed, which the caller frees; data that does not shrink stays
 * plain. */
cnr_status csr_code(const void *plain, uint64_t bytes, void **out, uint64_t *coded, cnr_error *err);
/* How much csr_open reads: the row pointers; everything; or everything, checked as
 * csr_encoding.check does. */
typedef enum csr_use { CSR_USE_ROWS, CSR_USE_ALL, CSR_USE_JUDGED } csr_use;
/* The plain form of either: the caller frees *own, which is NULL if t->data is plain already. */
cnr_status csr_open(const cnr_tensor *t, csr_use use, csr_matrix *out, void **own, cnr_error *err);
/* The header, of either form, of a tensor that csr_encoding.check accepts. */
csr_header csr_header_of(const void *data);

/* ---- chain.c ---- */

enum { CSR_LINKS = 8 }; /* maximum length of a chain */
/* Forms of a step of an epilogue: the operator's own function, a bound, or an addition. */
typedef enum csr_link_kind { CSR_LINK_APPLY, CSR_LINK_BOUND, CSR_LINK_ADD } csr_link_kind;
/* One step of an epilogue. */
typedef struct csr_link {
    csr_link_kind kind;
    int32_t operand; /* index of an input, or -1 */
    float low, high; /* limits of CSR_LINK_BOUND */
} csr_link;
/* An epilogue in the kernels' form. */
typedef struct csr_chain {
    int32_t n;
    csr_link link[CSR_LINKS];
} csr_chain;
/* *out receives the node's epilogue in the kernels' form. */
void csr_chain_of(const cnr_node *node, csr_chain *out);
/* Applies links from `from` on to x[0 .. n), the elements of output 0 from `first` on. */
void csr_chain_run(const csr_chain *chain, int32_t from, const cnr_node *node, float *x,
                   int64_t first, int64_t n);

/* ---- slices.c: matrix times vector; the blob of a product with one sample ---- */

typedef struct csr_slices csr_slices;
/* Whether the size follows from header and row pointers alone: no gap needs more than a byte. */
static inline int csr_slices_are_told(const csr_header *h) { return h->longest < 255; }
/* Bytes of the blob; then fills it (zeros before). Each reads all entries of m. */
cnr_status csr_slices_size(const csr_matrix *m, uint64_t *bytes, cnr_error *err);
/* Writes the image of m by slices into blob, which has csr_slices_size bytes; fails with
 * CNR_E_MEMORY. */
cnr_status csr_slices_make(const csr_matrix *m, void *blob, cnr_error *err);
/* y[row] = bias[row] + row * x, with the epilogue, for rows first <= row < end; y[0] is element
 * `at` of output 0. */
typedef struct csr_vector_job {
    const cnr_run *run;
    const csr_slices *blob;
    const float *x, *bias;
    float *y;
    int64_t first, end, at;
    csr_chain chain;
} csr_vector_job;
/* Multiplies by the slices that hold the rows [first, end), on the threads of the run. */
void csr_slices_run(const csr_vector_job *job);

/* ---- tiles.c: matrix times matrix with adjacent columns ---- */

typedef struct csr_rows csr_rows;
/* Bytes of the image by rows, aligned to lines. */
uint64_t csr_rows_size(const csr_header *h);
/* Writes the image of m by rows to blob, of csr_rows_size bytes. offset[column]: floats from x to
 * the first element that the column multiplies. Fails only with CNR_E_MEMORY. */
cnr_status csr_rows_make(const csr_matrix *m, const uint32_t *offset, void *blob, cnr_error *err);
/* How a row of products becomes a row of output 0: `lines` lines, each with `width` wanted of
 * `pitch` computed floats. The whole epilogue is applied if a row's products are adjacent in y
 * (`chained`); else only the first csr_tiles_done links. */
typedef struct csr_tiles_job {
    const cnr_run *run;
    const csr_rows *blob;
    const float *x, *bias;
    float *y;
    int64_t first, end;               /* range of blocks of rows */
    int64_t group_rows, group_floats; /* the rows of a group read x + group * group_floats */
    int64_t lines, width, pitch;
    int64_t row_floats,
        column_floats; /* floats from one row of y to the next; from one product to the next */
    int64_t at;        /* y[0] is this element of output 0 */
    int64_t readable;  /* columns of x that may be read: csr_tiles_reads or more */
    int32_t chained;
    csr_chain chain;
} csr_tiles_job;
/* Multiplies by the rows [first, end), on the threads of the run. */
void csr_tiles_run(const csr_tiles_job *job);
/* The minimum of `readable` for this number of computed columns. */
int64_t csr_tiles_reads(int64_t columns, int64_t block);
/* Number of links that are applied before products are stored. */
static inline int32_t csr_tiles_done(const csr_chain *chain) {
    return chain->n > 0 && chain->link[0].kind == CSR_LINK_BOUND;
}

/* ---- time of a product, in ns, as kernels estimate it ---- */

/* Estimated nanoseconds of a product by one vector. */
double csr_vector_ns(const csr_header *h);
/* Estimated nanoseconds of a product by `columns` columns. */
double csr_tiles_ns(const csr_header *h, int64_t columns);
/* estimated nanoseconds of other kernels on the decoded weight */
double csr_dense_ns(double macs, double bytes);

#endif
