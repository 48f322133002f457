/* A stored matrix as textbooks have it: ptr u32[rows + 1] | indices u32[entries] | data
 * f32[entries]. Blocks of rows and coded values are taken apart. For kernels of `dense` with such a
 * weight. */
#ifndef CSR_ROWS_H
#define CSR_ROWS_H

#include "csr.h"

/* Layout of rows of words that a device reads. */
typedef struct csr_rows_layout {
    /* Number of stored numbers; then, in words of 4 bytes: places of the indices and of the values,
     * and the length of all. */
    uint64_t entries, index_at, value_at, words;
} csr_rows_layout;

/* Places of the parts of the matrix by single rows, in words of 4 bytes. */
csr_rows_layout csr_rows_layout_of(const csr_matrix *m);
/* Method prepare_size of a kernel of a `dense` with sparse weights: sets out->bytes to those of the
 * rows. */
cnr_status csr_rows_prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                                 cnr_error *err);
/* Writes the node's sparse weight as rows to blob, which has the bytes that csr_rows_prepare_size
 * sets. Fails with CNR_E_MEMORY only. */
cnr_status csr_rows_make(const cnr_node *node, void *blob, const cnr_host *host, cnr_error *err);
/* Why a node `dense` cannot multiply by sparse weights as rows, as a constant text; NULL: it
 * can. */
const char *csr_rows_unfit(const cnr_node *node);

#endif
