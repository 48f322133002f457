/* Converts TensorProto, with typed fields, raw bytes or an external file. */
#include "onnx.h"

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

/* Data outside the message: an open file, and where the data begins in it. */
typedef struct place_of_data {
    int fd;
    uint64_t offset;
} place_of_data;

/* Opens the file beside the model that has a tensor's data. */
static cnr_status open_external(const Onnx__TensorProto *p, const char *model, uint64_t bytes,
                                place_of_data *out, const char *where, cnr_error *err) {
    const char *location = entry(p, "location"), *from = entry(p, "offset");
    const long long offset = from ? strtoll(from, NULL, 10) : 0;
    cnr_error why = CNR_ERROR_INIT;
    uint64_t have = 0;
    char *path;
    if (!location)
        return imp_host->fail(err, CNR_E_FORMAT, where, "its external data has no location");
    cnr_status status = imp_host->file_beside(model, location, &path, &why);
    out->fd = status ? -1 : imp_host->file_open(path, &have, &why);
    out->offset = (uint64_t)offset;
    if (out->fd < 0)
        status = imp_host->fail(err, why.code, where, "external data %s %s", why.where, why.text);
    else if (offset < 0 || (uint64_t)offset > have || bytes > have - (uint64_t)offset)
        status = imp_host->fail(err, CNR_E_FORMAT, where,
                                "external data %s has %llu bytes, %llu are wanted from %lld on",
                                path, (unsigned long long)have, (unsigned long long)bytes, offset);
    imp_host->free(path);
    return status;
}

/* Opens the model's own file, which has a tensor's data. */
static cnr_status open_own(const Onnx__TensorProto *p, const char *model, uint64_t bytes,
                           place_of_data *out, const char *where, cnr_error *err) {
    imp_place place;
    uint64_t have;
    if (p->place.len != sizeof place)
        return imp_host->fail(err, CNR_E_FORMAT, where, "has data without a place");
    memcpy(&place, p->place.data, sizeof place);
    if (place.bytes != bytes)
        return imp_host->fail(err, CNR_E_FORMAT, where, "%llu bytes of data for %llu",
                              (unsigned long long)place.bytes, (unsigned long long)bytes);
    out->fd = imp_host->file_open(model, &have, err);
    out->offset = place.offset;
    if (out->fd < 0) return (cnr_status)(err ? err->code : CNR_E_IO);
    if (place.offset <= have && bytes <= have - place.offset) return CNR_OK;
    return imp_host->fail(err, CNR_E_IO, where, "the file was cut short while it was read");
}

/* 1: the data lies in a file, outside the message. */
static int is_outside(const Onnx__TensorProto *p) { return p->has_place || p->data_location == 1; }

/* Opens where the data lies. Close it, after an error too. */
static cnr_status place_open(const Onnx__TensorProto *p, const char *model, const char *where,
                             uint64_t bytes, place_of_data *out, cnr_error *err) {
    out->fd = -1;
    return p->has_place ? open_own(p, model, bytes, out, where, err)
                        : open_external(p, model, bytes, out, where, err);
}

/* Reads data from an offset on; see graph_constant_read. */
static cnr_status place_read(void *place, uint64_t offset, void *out, uint64_t bytes) {
    const place_of_data *from = place;
    return imp_pread(from->fd, out, bytes, from->offset + offset) ? CNR_OK : CNR_E_IO;
}

static void place_close(place_of_data *p) {
    if (p->fd >= 0) close(p->fd);
}

/* Any non-zero byte of a bool is true. */
static void normalise(cnr_tensor *t) {
    uint8_t *at = t->data;
    for (uint64_t i = 0; t->dtype == CNR_bool && i < t->bytes; i++) at[i] = at[i] != 0;
}

/* int32_data holds all types of up to 32 bits except float. */
static void narrow(const Onnx__TensorProto *p, cnr_tensor *out, int64_t n) {
    const unsigned bits = cnr_dtype_bits(out->dtype);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t v = (uint32_t)p->int32_data[i];
        if (bits == 32) ((uint32_t *)out->data)[i] = v;
        else if (bits == 16) ((uint16_t *)out->data)[i] = (uint16_t)v;
        else ((uint8_t *)out->data)[i] = (uint8_t)v; /* 4 bits: two elements in each value */
    }
}

/* The tensor's type, with its size in bytes; it has no data yet. */
static cnr_status type_of(const Onnx__TensorProto *p, const char *where, cnr_tensor *out,
                          cnr_error *err) {
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
    out->bytes = cnr_dense_bytes(out);
    if (cnr_count(out) < 0 || out->bytes == UINT64_MAX)
        return imp_host->fail(err, CNR_E_FORMAT, where, "the dimensions are too large");
    return CNR_OK;
}

/* Reads data that lies outside the message. */
static cnr_status read_outside(const Onnx__TensorProto *p, const char *model, const char *where,
                               cnr_tensor *out, cnr_error *err) {
    place_of_data place;
    cnr_status status = place_open(p, model, where, out->bytes, &place, err);
    if (!status && !(out->data = imp_host->alloc((size_t)out->bytes + 1)))
        status = imp_host->fail(err, CNR_E_MEMORY, where, "out of memory");
    if (!status && place_read(&place, 0, out->data, out->bytes))
        status = imp_host->fail(err, CNR_E_IO, where, "its data cannot be read");
    place_close(&place);
    if (!status) normalise(out);
    return status;
}

cnr_status onnx_tensor(const Onnx__TensorProto *p, const char *model, const char *where,
                       cnr_tensor *out, void **made, cnr_error *err) {
    *made = NULL;
    cnr_status status = type_of(p, where, out, err);
    if (status) return status;
    if (is_outside(p)) {
        status = read_outside(p, model, where, out, err);
        *made = out->data;
        return status;
    }
    const int64_t n = cnr_count(out);
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
    normalise(out);
    return CNR_OK;
}

cnr_status onnx_tensor_constant(const Onnx__TensorProto *p, struct cnr_graph *graph,
                                const char *model, const char *name, cnr_value *out,
                                cnr_error *err) {
    cnr_tensor t;
    void *made = NULL;
    place_of_data place = {.fd = -1};
    cnr_status status = type_of(p, name, &t, err);
    const int read = !status && is_outside(p) && t.dtype != CNR_bool;
    if (read) status = place_open(p, model, name, t.bytes, &place, err);
    else if (!status) status = onnx_tensor(p, model, name, &t, &made, err);
    if (!status)
        *out = read ? imp_host->graph_constant_read(graph, name, &t, place_read, &place)
                    : imp_host->graph_constant(graph, name, &t);
    place_close(&place);
    imp_host->free(made);
    return status;
}
