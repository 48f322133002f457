/* Converts TensorFlow's TensorProto. */
#include "tensorflow.h"

#include <unistd.h>

static const struct {
    int32_t type, dtype;
} types[] = {
    {1, CNR_f32},  {2, CNR_f64},   {3, CNR_i32},  {4, CNR_u8},   {5, CNR_i16},  {6, CNR_i8},
    {9, CNR_i64},  {10, CNR_bool}, {11, CNR_i8},  {12, CNR_u8},  {13, CNR_i32}, {14, CNR_bf16},
    {15, CNR_i16}, {16, CNR_u16},  {17, CNR_u16}, {19, CNR_f16}, {22, CNR_u32}, {23, CNR_u64},
};

int32_t tf_dtype(int32_t type) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].type == type) return types[i].dtype;
    return 0;
}

/* Element i of the typed field that is filled. The last element repeats; no elements mean 0. */
static void typed(const Tf__Tensor *p, int64_t i, cnr_tensor *out) {
    char *at = (char *)out->data;
/* Element i of a list in which the last element repeats. */
#define TAKE(field, n, type) \
    do { \
        ((type *)at)[i] = \
            p->n == 0 ? (type)0 : (type)p->field[(size_t)i < p->n ? (size_t)i : p->n - 1]; \
        return; \
    } while (0)
    switch (out->dtype) {
    case CNR_f32: TAKE(float_val, n_float_val, float);
    case CNR_f64: TAKE(double_val, n_double_val, double);
    case CNR_i64: TAKE(int64_val, n_int64_val, int64_t);
    case CNR_i32: TAKE(int_val, n_int_val, int32_t);
    case CNR_u32: TAKE(uint32_val, n_uint32_val, uint32_t);
    case CNR_u64: TAKE(uint64_val, n_uint64_val, uint64_t);
    case CNR_i16: TAKE(int_val, n_int_val, int16_t);
    case CNR_u16: TAKE(int_val, n_int_val, uint16_t);
    case CNR_i8: TAKE(int_val, n_int_val, int8_t);
    case CNR_u8: TAKE(int_val, n_int_val, uint8_t);
    case CNR_bool: TAKE(bool_val, n_bool_val, uint8_t);
    default: TAKE(half_val, n_half_val, uint16_t);
    }
#undef TAKE
}

/* Reads data that lies in the file. Returns NULL, or the problem. */
static const char *read_place(const char *path, const Tf__Tensor *p, cnr_tensor *out) {
    imp_place place;
    if (p->place.len != sizeof place) return "it has data without a place";
    memcpy(&place, p->place.data, sizeof place);
    if (place.bytes != out->bytes) return "its data does not fit its shape";
    const int fd = imp_host->file_open(path, NULL, NULL);
    if (fd < 0) return "its file can't be opened again";
    const int good = imp_pread(fd, out->data, place.bytes, place.offset);
    close(fd);
    return good ? NULL : "its file was cut short while it was read";
}

const char *tf_tensor(const char *path, const Tf__Tensor *p, cnr_tensor *out) {
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->dtype = tf_dtype(p->dtype);
    out->flags = CNR_TENSOR_CONST;
    if (!out->dtype) return "its data type is not supported";
    const size_t rank = p->tensor_shape ? p->tensor_shape->n_dim : 0;
    if (rank > CNR_MAX_RANK) return "its rank is over 8";
    out->rank = (int32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        out->dim[i] = p->tensor_shape->dim[i]->size;
        if (out->dim[i] < 0) return "a dimension is negative";
    }
    const int64_t n = cnr_count(out);
    out->bytes = cnr_dense_bytes(out);
    /* One element may stand for all, so the file's size is no bound: one gigabyte is. */
    if (n < 0 || out->bytes > (uint64_t)1 << 30) return "its dimensions are too large";
    out->data = imp_host->alloc((size_t)out->bytes + 1);
    if (!out->data) return "out of memory";
    if (p->has_place) {
        const char *wrong = read_place(path, p, out);
        if (!wrong) return NULL;
        imp_host->free(out->data);
        out->data = NULL;
        return wrong;
    }
    if (p->has_tensor_content && p->tensor_content.len) {
        if (p->tensor_content.len == out->bytes) {
            memcpy(out->data, p->tensor_content.data, (size_t)out->bytes);
            return NULL;
        }
        imp_host->free(out->data);
        out->data = NULL;
        return "its data does not fit its shape";
    }
    for (int64_t i = 0; i < n; i++) typed(p, i, out);
    return NULL;
}
