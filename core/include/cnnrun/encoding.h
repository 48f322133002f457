/* Encodings: other ways to store a tensor's data (compressed rows, quantised blocks). */
#ifndef CNNRUN_ENCODING_H
#define CNNRUN_ENCODING_H

#include <cnnrun/op.h>

CNR_BEGIN_C

enum {
    CNR_ENCODING_STORED = 1 << 0 /* only saves room: read as dense once decoded, by any kernel */
};

typedef struct cnr_encoding {
    uint32_t size;
    uint32_t version;
    const char *name; /* "sparse-csr" */
    const char *summary;
    int32_t n_attrs; /* options of encode: a schema, as an operator's */
    uint32_t attr_spec_size;
    const cnr_attr_spec *attrs;
    /* Bytes for `dense` (host data); the size may depend on the data. `attrs` follow the schema. */
    cnr_status (*encode_size)(const cnr_tensor *dense, const cnr_attr *const *attrs,
                              uint64_t *bytes, cnr_error *err);
    cnr_status (*encode)(const cnr_tensor *dense, const cnr_attr *const *attrs, void *out,
                         uint64_t bytes, cnr_error *err);
    /* `encoded` has dtype and dim of the dense tensor, data and bytes of the encoded. check refuses
     * anything that decode or a kernel could trip over (files are hostile). */
    cnr_status (*check)(const cnr_tensor *encoded, cnr_error *err);
    cnr_status (*decode)(const cnr_tensor *encoded, void *dense, cnr_error *err);
    uint32_t flags; /* CNR_ENCODING_...; without any, kernels that read it are what it is for */
    /* (optional: all) How many of the dense tensor's numbers a kernel that reads
     * `encoded` multiplies by: those that are stored. */
    uint64_t (*stored_count)(const cnr_tensor *encoded);
} cnr_encoding;

CNR_END_C
#endif
