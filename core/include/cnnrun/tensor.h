/* Data types, interned names, memory references and the tensor descriptor. */
#pragma once

#include <cnnrun/status.h>

#include <stddef.h>
#include <string.h>

/* An interned name: equal names have equal ids within one process. 0 is no name. */
typedef uint32_t cnr_id;

/* List of data types: name, fixed value, bits per element. */
/* clang-format off */
#define CNR_DTYPE_LIST(X) \
    X(f32, 1, 32) X(f64, 2, 64) X(f16, 3, 16) X(bf16, 4, 16) X(i8, 5, 8) X(u8, 6, 8) \
    X(i16, 7, 16) X(u16, 8, 16) X(i32, 9, 32) X(u32, 10, 32) X(i64, 11, 64) X(u64, 12, 64) \
    X(bool, 13, 8) X(i4, 14, 4) X(u4, 15, 4)
/* clang-format on */

enum {
    CNR_DTYPE_NONE = 0,
/* One data type. */
#define X(name, value, bits) CNR_##name = value,
    CNR_DTYPE_LIST(X)
#undef X
};

#define CNR_MAX_RANK 8

/* A dimension is >= 0 when known. Otherwise it is CNR_DIM_UNKNOWN, or CNR_DIM_SYMBOL(k) for the
 * k-th symbol of the graph ("batch"). Planning binds symbols, so kernels only see values >= 0. */
#define CNR_DIM_UNKNOWN (-1)
/* Dimension that stands for open dimension number k of a graph. */
#define CNR_DIM_SYMBOL(k) (-2 - (int64_t)(k))
/* Number of the open dimension that such a dimension stands for. */
#define CNR_SYMBOL_OF_DIM(d) ((int32_t)(-2 - (d)))

/* A piece of a device's memory. `handle` belongs to the device (a host pointer on the CPU, a cl_mem
 * in OpenCL). `offset` and `bytes` are in bytes. `memory_class` is an index into the device's list
 * of classes. */
typedef struct cnr_mem {
    void *handle;
    uint64_t offset, bytes;
    int64_t width, height; /* in pixels, for image classes; else 0 */
    int32_t memory_class;
} cnr_mem;

/* Quantisation: real = scale[i] * (stored - zero_point[i]), where i is the index along `axis` (axis
 * -1: one scale for all elements). */
typedef struct cnr_quant {
    uint32_t size;
    int32_t axis;
    int64_t count;
    const float *scale;
    const int32_t *zero_point; /* NULL: all 0 */
} cnr_quant;

enum {
    CNR_TENSOR_CONST = 1 << 0, /* `data` is set, and known before anything runs */
    /* constant during a run, but may change between runs (training) */
    CNR_TENSOR_VARIABLE = 1 << 1,
    /* dim[] are upper bounds, which the kernel lowers in a run. Data that is set while planning is
     * the result for these bounds. */
    CNR_TENSOR_DYNAMIC = 1 << 2
};

/* A tensor: contiguous, row-major (NCHW order for pictures), rank 0 to CNR_MAX_RANK.
 *
 * block > 1: axis 1 is stored in blocks of that many elements, innermost, as in N C/b H W b. The
 * block size divides dim[1], and dim[] stay logical. Only kernels that request a block get one.
 *
 * encoding != 0: `data` holds `bytes` bytes in that encoding; dim and dtype are those of the dense
 * tensor. */
typedef struct cnr_tensor {
    uint32_t size; /* sizeof(cnr_tensor) */
    int32_t dtype;
    cnr_id encoding;
    int32_t rank;
    int64_t dim[CNR_MAX_RANK];
    int32_t block; /* 0 or 1: plain */
    uint32_t flags;
    void *data;             /* host address; NULL if the data is elsewhere or does not exist */
    uint64_t bytes;         /* size of the stored data */
    cnr_mem mem;            /* device memory; handle NULL: none */
    const cnr_quant *quant; /* NULL: none */
    /* While planning: the minimum and the maximum that dim[0] can have in plans of this net, then
     * those of dim[1], and so on. Equal values: the dimension is fixed. All sizes of the net grow
     * together. NULL: no range was given (cnr_load_options.symbol_ranges), or the tensor's range
     * can't be derived. */
    const int64_t *dim_range;
} cnr_tensor;

/* Returns the maximal size of axis `i`, which is dim[i] if it is the same in all plans. */
static inline int64_t cnr_max_dim(const cnr_tensor *t, int32_t i) {
    return t->dim_range ? t->dim_range[2 * i + 1] : t->dim[i];
}

/* Bits of an element of a data type, 4 for packed nibbles; 0: no such type. */
static inline unsigned cnr_dtype_bits(int32_t dtype) {
/* Bits of one type. */
#define X(name, value, bits) dtype == value ? bits:
    return CNR_DTYPE_LIST(X) 0;
#undef X
}

/* Name of a type, "f32"; "none": no such type. */
static inline const char *cnr_dtype_name(int32_t dtype) {
/* Name of one type. */
#define X(name, value, bits) dtype == value ? #name:
    return CNR_DTYPE_LIST(X) "none";
#undef X
}

/* Returns the number of elements, 1 for rank 0; -1: a dimension is unknown, or the product
 * overflows. */
static inline int64_t cnr_count(const cnr_tensor *t) {
    int64_t n = 1;
    int zero = 0;
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0) return -1;
        if (t->dim[i] == 0) zero = 1;
        else if (n > INT64_MAX / t->dim[i]) return -1;
        else n *= t->dim[i];
    }
    return zero ? 0 : n;
}

/* Returns the bytes of the dense tensor; UINT64_MAX: unknown or too large. */
static inline uint64_t cnr_dense_bytes(const cnr_tensor *t) {
    const int64_t n = cnr_count(t);
    const unsigned bits = cnr_dtype_bits(t->dtype);
    if (n < 0 || bits == 0 || (uint64_t)n > UINT64_MAX / 64) return UINT64_MAX;
    return ((uint64_t)n * bits + 7) / 8;
}

/* Returns the product of dim[from..to). */
static inline int64_t cnr_span(const cnr_tensor *t, int32_t from, int32_t to) {
    int64_t n = 1;
    for (int32_t i = from; i < to; i++) n *= t->dim[i];
    return n;
}

/* 1 if both have the same rank and dimensions. */
static inline int cnr_same_shape(const cnr_tensor *a, const cnr_tensor *b) {
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

/* Receives one property of a device: a text, or a number if text is NULL. `name` consists of a-z,
 * 0-9 and _; in "caches.l2" l2 is within caches. The receiver copies both. */
typedef void (*cnr_property_fn)(void *arg, const char *name, const char *text, double value);
