/* Converts TensorProto, with typed fields, raw bytes or an external file. */
#include "onnx.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Our type and size for each TensorProto.DataType */
static const struct {
    const char *name;
    int32_t dtype;
} types[] = {
    {"undefined", 0},       {"float", CNR_f32},  {"uint8", CNR_u8},     {"int8", CNR_i8},
    {"uint16", CNR_u16},    {"int16", CNR_i16},  {"int32", CNR_i32},    {"int64", CNR_i64},
    {"string", 0},          {"bool", CNR_bool},  {"float16", CNR_f16},  {"double", CNR_f64},
    {"uint32", CNR_u32},    {"uint64", CNR_u64}, {"complex64", 0},      {"complex128", 0},
    {"bfloat16", CNR_bf16}, {"float8e4m3fn", 0}, {"float8e4m3fnuz", 0}, {"float8e5m2", 0},
    {"float8e5m2fnuz", 0},  {"uint4", CNR_u4},   {"int4", CNR_i4},
};

int32_t onnx_dtype(int32_t t) {
    return t >= 0 && t < (int32_t)(sizeof types / sizeof types[0]) ? types[t].dtype : 0;
}

const char *onnx_dtype_name(int32_t t) {
    return t >= 0 && t < (int32_t)(sizeof types / sizeof types[0]) ? types[t].name : "unknown";
}

/* Value of a key of external data; NULL: there is none. */
static const char *entry(const Onnx__TensorProto *p, const char *key) {
    for (size_t i = 0; i < p->n_external_data; i++)
        if (p->external_data[i]->key && strcmp(p->external_data[i]->key, key) == 0)
            return p->external_data[i]->value;
    return NULL;
}

/* Reads n bytes from `offset` on; 0: the file is too short, or can't be read. */
static int read_at(int fd, uint8_t *out, uint64_t n, uint64_t offset) {
    while (n > 0) {
        const ssize_t got = pread(fd, out, n < 1 << 30 ? (size_t)n : 1 << 30, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        out += got;
        n -= (uint64_t)got;
        offset += (uint64_t)got;
    }
    return 1;
}

/* Reads the part of an open file that holds a tensor. */
static cnr_status read_range(int fd, uint64_t have, const char *path, const char *where,
                             const char *from, cnr_tensor *out, cnr_error *err) {
    const long long offset = from ? strtoll(from, NULL, 10) : 0;
    if (offset < 0 || (uint64_t)offset > have || out->bytes > have - (uint64_t)offset)
        return imp_host->fail(err, CNR_E_FORMAT, where,
                              "external data %s has %llu bytes, %llu are wanted from %lld on", path,
                              (unsigned long long)have, (unsigned long long)out->bytes, offset);
    if (!(out->data = imp_host->alloc((size_t)out->bytes + 1)))
        return imp_host->fail(err, CNR_E_MEMORY, where, "out of memory");
    if (read_at(fd, (uint8_t *)out->data, out->bytes, (uint64_t)offset)) return CNR_OK;
    return imp_host->fail(err, CNR_E_IO, where, "external data %s cannot be read", path);
}

/* Reads a tensor from the file beside the model. */
static cnr_status read_external(const Onnx__TensorProto *p, const char *model, const char *where,
                                cnr_tensor *out, cnr_error *err) {
    const char *location = entry(p, "location");
    cnr_error why = CNR_ERROR_INIT;
    uint64_t bytes;
    char *path;
    if (!location)
        return imp_host->fail(err, CNR_E_FORMAT, where, "its external data has no location");
    cnr_status status = imp_host->file_beside(model, location, &path, &why);
    const int fd = status ? -1 : imp_host->file_open(path, &bytes, &why);
    if (fd < 0)
        status = imp_host->fail(err, why.code, where, "external data %s %s", why.where, why.text);
    else {
        status = read_range(fd, bytes, path, where, entry(p, "offset"), out, err);
        close(fd);
    }
    imp_host->free(path);
    return status;
}

/* Copies n elements from int32_data, which holds all types of up to 32 bits except float, to out's
 * data in its type. */
static void narrow(const Onnx__TensorProto *p, cnr_tensor *out, int64_t n) {
    const unsigned bits = cnr_dtype_bits(out->dtype);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t v = (uint32_t)p->int32_data[i];
        if (bits == 32) ((uint32_t *)out->data)[i] = v;
        else if (bits == 16) ((uint16_t *)out->data)[i] = (uint16_t)v;
        else ((uint8_t *)out->data)[i] = (uint8_t)v; /* 4 bits: two elements in each value */
    }
}

/* Fills *out with the tensor and its data, which belong to the message or are new: free *made by
 * host->free, even after an error. where: for messages. */
cnr_status onnx_tensor(const Onnx__TensorProto *p, const char *model, const char *where,
                       cnr_tensor *out, void **made, cnr_error *err) {
    *made = NULL;
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->dtype = onnx_dtype(p->data_type);
    out->flags = CNR_TENSOR_CONST;
    if (!out->dtype)
        return imp_host->fail(err, CNR_E_UNSUPPORTED, where, "data type %s is not supported",
                              onnx_dtype_name(p->data_type));
    if (p->n_dims > CNR_MAX_RANK)
        return imp_host->fail(err, CNR_E_UNSUPPORTED, where, "rank %zu is over %d", p->n_dims,
                              CNR_MAX_RANK);
    out->rank = (int32_t)p->n_dims;
    for (size_t i = 0; i < p->n_dims; i++) out->dim[i] = p->dims[i];
    for (size_t i = 0; i < p->n_dims; i++)
        if (p->dims[i] < 0)
            return imp_host->fail(err, CNR_E_FORMAT, where, "a dimension is negative");
    const int64_t n = cnr_count(out);
    out->bytes = cnr_dense_bytes(out);
    if (n < 0 || out->bytes == UINT64_MAX)
        return imp_host->fail(err, CNR_E_FORMAT, where, "the dimensions are too large");
    if (p->data_location == 1) {
        const cnr_status status = read_external(p, model, where, out, err);
        *made = out->data;
        return status;
    }
    const unsigned bits = cnr_dtype_bits(out->dtype);
    const int64_t slots = bits == 4 ? (n + 1) / 2 : n; /* number of entries in int32_data */
    const void *typed = NULL;
    size_t have = 0;
    if (p->has_raw_data) typed = p->raw_data.data, have = p->raw_data.len;
    else if (out->dtype == CNR_f32) typed = p->float_data, have = p->n_float_data * 4;
    else if (out->dtype == CNR_f64) typed = p->double_data, have = p->n_double_data * 8;
    else if (out->dtype == CNR_i64) typed = p->int64_data, have = p->n_int64_data * 8;
    else if (out->dtype == CNR_u64) typed = p->uint64_data, have = p->n_uint64_data * 8;
    else if (out->dtype == CNR_u32 && p->n_uint64_data) typed = p->uint64_data;
    else have = (int64_t)p->n_int32_data == slots ? (size_t)out->bytes : 0;
    const int wide_u32 = !p->has_raw_data && out->dtype == CNR_u32 && p->n_uint64_data;
    if (wide_u32) have = p->n_uint64_data * 4;
    if (have != out->bytes)
        return imp_host->fail(err, CNR_E_FORMAT, where, "%zu bytes of data for %llu", have,
                              (unsigned long long)out->bytes);
    if (typed && out->bytes && !wide_u32 && out->dtype != CNR_bool) {
        out->data = (void *)typed; /* used in place */
        return CNR_OK;
    }
    out->data = *made = imp_host->alloc((size_t)out->bytes + 1);
    if (!out->data) return imp_host->fail(err, CNR_E_MEMORY, where, "out of memory");
    if (wide_u32)
        for (int64_t i = 0; i < n; i++) ((uint32_t *)out->data)[i] = (uint32_t)p->uint64_data[i];
    else if (typed) memcpy(out->data, typed, (size_t)out->bytes);
    else if (n > 0) narrow(p, out, slots);
    if (out->dtype == CNR_bool) /* any non-zero byte is true */
        for (int64_t i = 0; i < n; i++) ((uint8_t *)out->data)[i] = ((uint8_t *)out->data)[i] != 0;
    return CNR_OK;
}
