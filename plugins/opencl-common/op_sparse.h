/* What the kernels of sparse weights share. */
#ifndef OCL_OP_SPARSE_H
#define OCL_OP_SPARSE_H

#include "csr.h"
#include "support.h"

/* Stored so that kernels' blobs can be made of it; what is compressed further is decoded first. */
static inline int ocl_sparse_is_plain(const cnr_tensor *w) {
    csr_header h;
    uint64_t at;
    return csr_header_read(w->data, w->bytes, &h, &at) && h.magic == CSR_MAGIC;
}

#endif
