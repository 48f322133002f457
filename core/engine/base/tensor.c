/* Checks tensors that callers pass in, before anything reads their data. */
#include "base/base.h"

const char *cnri_tensor_fault(const cnr_tensor *t) {
    if (t->rank < 0 || t->rank > CNR_MAX_RANK) return "a tensor's rank is 0 to 8";
    if (cnr_dtype_bits(t->dtype) == 0) return "a tensor of no known element type";
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dim[i] < 0) return "a tensor with a size below 0";
    return cnr_dense_bytes(t) == UINT64_MAX ? "a tensor of more elements than can be counted"
                                            : NULL;
}

bool cnri_dims_fit(const cnr_tensor *t) {
    int64_t n = 8; /* bytes of the largest element type */
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dim[i] > 0 && __builtin_mul_overflow(n, t->dim[i], &n)) return false;
    return true;
}

cnr_status cnri_tensor_check(const cnr_tensor *t, const char *where, cnr_error *err) {
    const char *fault = cnri_tensor_fault(t);
    if (fault) return cnri_fail(err, CNR_E_ARG, where, "%s", fault);
    const bool is_counted =
        t->data && t->bytes > 0 && !t->encoding; /* bytes 0: the caller did not give a size */
    if (!is_counted || t->bytes >= cnr_dense_bytes(t)) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, where,
                     "a tensor with %llu bytes of data; its %lld elements "
                     "want %llu",
                     (unsigned long long)t->bytes, (long long)cnr_count(t),
                     (unsigned long long)cnr_dense_bytes(t));
}
