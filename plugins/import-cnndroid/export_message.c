/* Writes nested arrays of floats in MessagePack, as CNNdroid's converters do: single floats,
 * big-endian. */
#include "export.h"

enum { BUFFER = 1 << 14 };

/* A file of weights that is being written, as MessagePack. */
typedef struct stream {
    struct cnr_output *out;
    cnr_error *err;
    cnr_status status;
    size_t n;
    uint8_t buffer[BUFFER];
} stream;

/* Writes the buffer to the file and empties it; after an earlier error (s->status) only empties
 * it. An error is kept in s->status and s->err. */
static void flush(stream *s) {
    if (!s->status && s->n > 0) s->status = imp_host->output_write(s->out, s->buffer, s->n, s->err);
    s->n = 0;
}

/* A mark, and a number of `bytes` bytes behind it. */
static void put(stream *s, uint8_t mark, uint32_t value, int bytes) {
    if (s->n + 5 > BUFFER) flush(s);
    s->buffer[s->n++] = mark;
    for (int i = bytes - 1; i >= 0; i--) s->buffer[s->n++] = (uint8_t)(value >> 8 * i);
}

/* Begins an array of n items. */
static void put_array(stream *s, int64_t n) {
    if (n < 16) put(s, (uint8_t)(0x90 | n), 0, 0);
    else if (n < 65536) put(s, 0xdc, (uint32_t)n, 2);
    else put(s, 0xdd, (uint32_t)n, 4);
}

/* Writes a float. */
static void put_float(stream *s, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put(s, 0xca, bits, 4);
}

/* Writes nested arrays of these dims with floats from *data, which advances. */
static void put_nested(stream *s, const float **data, const int64_t *dim, int32_t rank) {
    put_array(s, *dim);
    for (int64_t i = 0; i < *dim; i++)
        if (rank > 1) put_nested(s, data, dim + 1, rank - 1);
        else put_float(s, *(*data)++);
}

/* Writes n biases; NULL: zeros. */
static void put_biases(stream *s, const cnr_tensor *bias, int64_t n) {
    const float *data = bias ? (const float *)bias->data : NULL;
    put_array(s, n);
    for (int64_t i = 0; i < n; i++) put_float(s, data ? data[i] : 0.0f);
}

/* Begins a file, and returns its stream, for end(); NULL: *status says why. */
static stream *begin(const char *path, cnr_error *err, cnr_status *status) {
    stream *s = (stream *)imp_host->alloc(sizeof *s);
    if (!s) {
        *status = imp_host->fail(err, CNR_E_MEMORY, path, "out of memory");
        return NULL;
    }
    s->err = err;
    s->n = 0;
    s->status = CNR_OK;
    *status = imp_host->output_begin(path, 0, &s->out, err);
    if (!*status) return s;
    imp_host->free(s);
    return NULL;
}

/* Writes the rest, ends the file and frees the stream; after an error the file is removed. */
static cnr_status end(stream *s) {
    flush(s);
    const cnr_status status = imp_host->output_end(s->out, s->status, s->err);
    imp_host->free(s);
    return status;
}

cnr_status cd_message_write(const char *path, const cnr_tensor *weight, const cnr_tensor *bias,
                            cnr_error *err) {
    const int64_t count = cnr_count(weight);
    const float *data = (const float *)weight->data;
    cnr_status status;
    stream *s = begin(path, err, &status);
    if (!s) return status;
    if (weight->rank == 4) put_nested(s, &data, weight->dim, 4);
    else put_nested(s, &data, &count, 1);
    put_biases(s, bias, weight->dim[0]);
    return end(s);
}

cnr_status cd_picture_write(const char *path, const float *data, const int64_t dim[3],
                            cnr_error *err) {
    cnr_status status;
    stream *s = begin(path, err, &status);
    if (!s) return status;
    put_nested(s, &data, dim, 3);
    return end(s);
}
