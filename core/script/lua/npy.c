/* The .npy file of NumPy:
 *
 *   "\x93NUMPY" major minor | length of the header (2 bytes; from version 2 on 4), little-endian
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (1, 10), }   spaces, newline
 *   the elements
 *
 * Read: C order, little-endian. The header is a Python literal, of which only this form is known.
 */
#include "lua/npy.h"
#include <string.h>

static const struct {
    const char *descr;
    int32_t dtype;
} kinds[] = {{"<f4", CNR_f32}, {"<f8", CNR_f64}, {"<f2", CNR_f16}, {"|i1", CNR_i8},
             {"|u1", CNR_u8},  {"<i2", CNR_i16}, {"<u2", CNR_u16}, {"<i4", CNR_i32},
             {"<u4", CNR_u32}, {"<i8", CNR_i64}, {"<u8", CNR_u64}, {"|b1", CNR_bool}};

static const char magic[6] = "\x93NUMPY";

/* ---- writing ---- */

/* NumPy's name of the type, such as "<f4", for the header; NULL: NumPy has none, and f32 is
 * written. */
static const char *descr_of(int32_t dtype) {
    for (size_t i = 0; i < CNRI_COUNT(kinds); i++)
        if (kinds[i].dtype == dtype) return kinds[i].descr;
    return NULL;
}

/* Writes the header of a .npy file; descr: element type as NumPy names it. */
static cnr_status write_header(cnri_writer *w, const cnr_tensor *t, const char *descr,
                               cnr_error *err) {
    cnri_text text = {0};
    cnri_text_add(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t i = 0; i < t->rank; i++)
        cnri_text_add(&text, "%s%lld", i ? ", " : "", (long long)t->dim[i]);
    cnri_text_add(&text, "%s), }", t->rank == 1 ? "," : "");
    while (!text.failed && (text.n + 11) % 64 != 0) cnri_text_add(&text, " ");
    cnri_text_add(&text, "\n");
    cnr_status status = text.failed ? cnri_out_of_memory(err, w->path) : CNR_OK;
    if (!status) {
        uint8_t head[10];
        memcpy(head, magic, sizeof magic);
        head[6] = 1;
        head[7] = 0;
        head[8] = (uint8_t)text.n;
        head[9] = (uint8_t)(text.n >> 8);
        status = cnri_write(w, head, sizeof head, err);
    }
    if (!status) status = cnri_write(w, text.at, text.n, err);
    cnri_text_free(&text);
    return status;
}

/* Writes all elements as 32-bit floats, for types that NumPy lacks. */
static cnr_status write_as_f32(cnri_writer *w, const cnr_tensor *t, cnr_error *err) {
    float buffer[1024];
    cnr_status status = CNR_OK;
    const int64_t n = cnr_count(t);
    for (int64_t i = 0; i < n && !status;) {
        int64_t k = 0;
        for (; k < (int64_t)CNRI_COUNT(buffer) && i < n; k++, i++)
            buffer[k] = (float)cnri_element(t->dtype, t->data, i);
        status = cnri_write(w, buffer, (uint64_t)k * sizeof *buffer, err);
    }
    return status;
}

cnr_status cnri_npy_write(const char *path, const cnr_tensor *t, cnr_error *err) {
    cnri_writer w;
    const char *descr = descr_of(t->dtype);
    cnr_status status = cnri_write_begin(&w, path, 0, err);
    if (status) return status;
    status = write_header(&w, t, descr ? descr : "<f4", err);
    if (!status)
        status =
            descr ? cnri_write(&w, t->data, cnr_dense_bytes(t), err) : write_as_f32(&w, t, err);
    if (!status) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return status;
}

/* ---- reading ---- */

/* The text behind a quoted key of the header; NULL: there is none. */
static const char *find_key(const char *header, const char *end, const char *key) {
    const size_t n = strlen(key);
    for (const char *p = header; p + n < end; p++) {
        if (strncmp(p, key, n) != 0) continue;
        for (p += n; p < end && (*p == ' ' || *p == ':'); p++) {}
        return p < end ? p : NULL;
    }
    return NULL;
}

/* Parses a shape such as "(1, 28, 28)", before `end`, into out->rank and out->dim; false: malformed
 * or too large. */
static bool read_shape(const char *p, const char *end, cnr_tensor *out) {
    if (*p++ != '(') return false;
    for (;;) {
        while (p < end && (*p == ' ' || *p == ',')) p++;
        if (p >= end) return false;
        if (*p == ')') return true;
        if (out->rank == CNR_MAX_RANK || *p < '0' || *p > '9') return false;
        int64_t n = 0;
        for (; p < end && *p >= '0' && *p <= '9'; p++) {
            if (n > INT64_MAX / 10 - 1) return false;
            n = n * 10 + (*p - '0');
        }
        out->dim[out->rank++] = n;
    }
}

cnr_status cnri_npy_read(const char *path, const char *text, size_t bytes, cnr_tensor *out,
                         size_t *offset, cnr_error *err) {
    const uint8_t *head = (const uint8_t *)text;
    *out = (cnr_tensor){.size = sizeof *out};
    if (bytes < 12 || memcmp(text, magic, sizeof magic) != 0)
        return cnri_fail(err, CNR_E_FORMAT, path, "no .npy file (its first bytes differ)");
    if (head[6] < 1 || head[6] > 3)
        return cnri_fail(err, CNR_E_VERSION, path, "version %d of .npy, want 1 to 3", head[6]);
    const size_t from = head[6] == 1 ? 10 : 12;
    size_t n = (size_t)head[8] | (size_t)head[9] << 8;
    if (head[6] > 1) n |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    if (n > bytes - from) return cnri_fail(err, CNR_E_FORMAT, path, "its header is cut short");
    const char *header = text + from, *end = header + n;
    const char *descr = find_key(header, end, "'descr'");
    const char *order = find_key(header, end, "'fortran_order'");
    const char *dims = find_key(header, end, "'shape'");
    if (!descr || !order || !dims || end - descr < 5)
        return cnri_fail(err, CNR_E_FORMAT, path, "its header lacks descr, order or shape");
    if (*order != 'F')
        return cnri_fail(err, CNR_E_UNSUPPORTED, path, "Fortran order; want C order");
    for (size_t i = 0; i < CNRI_COUNT(kinds); i++)
        if (strncmp(descr + 1, kinds[i].descr, 3) == 0) out->dtype = kinds[i].dtype;
    if (!out->dtype) return cnri_fail(err, CNR_E_UNSUPPORTED, path, "elements of type %.5s", descr);
    if (!read_shape(dims, end, out))
        return cnri_fail(err, CNR_E_FORMAT, path, "its shape is malformed");
    out->bytes = cnr_dense_bytes(out);
    *offset = from + n;
    if (out->bytes > bytes - *offset)
        return cnri_fail(err, CNR_E_FORMAT, path, "its data is cut short");
    return CNR_OK;
}
