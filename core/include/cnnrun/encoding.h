/* Encodings: alternative storage of a tensor's data (compressed rows, quantised blocks). */
#ifndef CNNRUN_ENCODING_H
#define CNNRUN_ENCODING_H

#include <cnnrun/op.h>

CNR_BEGIN_C

enum {
    CNR_ENCODING_STORED = 1 << 0 /* only saves space: once decoded, any kernel reads it as dense */
};

/* A way to store weights. */
typedef struct cnr_encoding {
    uint32_t size;
    uint32_t version;
    const char *name; /* such as "sparse-csr" */
    const char *summary;
    int32_t n_attrs; /* options of encode, described as an operator's attributes */
    uint32_t attr_spec_size;
    const cnr_attr_spec *attrs;
    /* encode_size computes the size in bytes of the encoded `dense` (host data), which may depend
     * on the data. encode writes that many bytes to `out`. `attrs` are in the order of the
     * schema. */
    cnr_status (*encode_size)(const cnr_tensor *dense, const cnr_attr *const *attrs,
                              uint64_t *bytes, cnr_error *err);
    cnr_status (*encode)(const cnr_tensor *dense, const cnr_attr *const *attrs, void *out,
                         uint64_t bytes, cnr_error *err);
    /* `encoded` has dtype and dim of the dense tensor, but data and bytes of the encoded form.
     * check refuses all data that decode or a kernel could fail on, since files may be malicious.
     * decode writes the dense data. */
    cnr_status (*check)(const cnr_tensor *encoded, cnr_error *err);
    cnr_status (*decode)(const cnr_tensor *encoded, void *dense, cnr_error *err);
    uint32_t flags; /* CNR_ENCODING_...; 0: for kernels that read the encoded data */
    /* (optional: all) Returns how many numbers of the dense tensor are stored. A kernel that reads
     * `encoded` multiplies only by these. */
    uint64_t (*stored_count)(const cnr_tensor *encoded);
} cnr_encoding;

CNR_END_C
#endif
