/* Loads and stores runs of elements of any data type as double, int64 or uint64, in which reference
 * kernels compute. */
#ifndef STD_ELEM_H
#define STD_ELEM_H

#include "ops.h"

/* Length of a run: fits the stack, and is long enough to make the dispatch on the data type
 * cheap. */
#define ELEM_RUN 256

/* The type in which a data type is computed: i64 and u64 do not fit a double. */
typedef enum elem_domain { ELEM_F = CNR_f64, ELEM_I = CNR_i64, ELEM_U = CNR_u64 } elem_domain;

typedef union elem_run {
    double f[ELEM_RUN];
    int64_t i[ELEM_RUN];
    uint64_t u[ELEM_RUN];
} elem_run;

/* In addition to the sets of ops.h. */
#define ELEM_BOOL (1u << CNR_bool)
#define ELEM_NIBBLES (1u << CNR_i4 | 1u << CNR_u4)

/* 1: the type is in the set of bits. */
static inline int elem_in(int32_t dtype, uint32_t set) {
    return dtype > 0 && dtype < 32 && (set >> dtype & 1u) != 0;
}

/* The type in which elements of dtype are computed: double, int64_t or uint64_t. */
static inline elem_domain elem_domain_of(int32_t dtype) {
    if (elem_in(dtype, OPS_FLOATS)) return ELEM_F;
    return elem_in(dtype, OPS_SIGNED | 1u << CNR_i4) ? ELEM_I : ELEM_U;
}

/* n <= ELEM_RUN elements data[first], data[first + stride] ... as `domain`. Floats become integers
 * by truncation, saturated, NaN as 0. */
static inline void elem_load(int32_t dtype, const void *data, int64_t first, int64_t stride,
                             int64_t n, elem_domain domain, elem_run *out) {
    ops_host->elements_read(dtype, data, first, stride, n, (int32_t)domain, out);
}
/* Stores n numbers of the domain to data[first] onwards, as elements of dtype. Integers wrap to the
 * type's bits, also those converted from floats (undefined in ONNX); bool is "not 0". */
void elem_store(int32_t dtype, void *data, int64_t first, int64_t n, elem_domain domain,
                const elem_run *in);

/* Element `index` as a double; slow, for small tensors. */
static inline double elem_f64(const cnr_tensor *t, int64_t index) {
    double v;
    ops_host->elements_read(t->dtype, t->data, index, 1, 1, CNR_f64, &v);
    return v;
}
/* Element `index` as int64_t. */
static inline int64_t elem_i64(const cnr_tensor *t, int64_t index) {
    int64_t v;
    ops_host->elements_read(t->dtype, t->data, index, 1, 1, CNR_i64, &v);
    return v;
}
/* Writes element `index` from an int64_t, wrapped to the type's bits. */
static inline void elem_set_i64(const cnr_tensor *t, int64_t index, int64_t value) {
    ops_host->elements_write(t->dtype, t->data, index, 1, CNR_i64, &value);
}
/* writes element `index` from a double, converted as elem_store does */
void elem_set_f64(const cnr_tensor *t, int64_t index, double value);

#endif
