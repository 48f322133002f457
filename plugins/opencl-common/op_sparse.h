/* Declarations shared by the kernels for sparse weights. */
#ifndef OCL_OP_SPARSE_H
#define OCL_OP_SPARSE_H

#include "csr.h"
#include "support.h"

/* True if kernels can make their blobs from the stored form; further compressed weights are
 * decoded first. */
static inline int ocl_sparse_is_plain(const cnr_tensor *w) {
    csr_header h;
    uint64_t at;
    return csr_header_read(w->data, w->bytes, &h, &at) && h.magic == CSR_MAGIC;
}

#endif
