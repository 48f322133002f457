/* Writes stored plans and compiled models, as store/plan_cache.c reads them. */
#include "keep/keep.h"
#include <errno.h>
#include <string.h>

/* Writes the lowest `bytes` bytes of x at p, the lowest first. */
static void put(uint8_t *p, uint64_t x, int bytes) {
    for (int i = 0; i < bytes; i++) p[i] = (uint8_t)(x >> 8 * i);
}

/* n rounded up to CNRI_CACHED_ALIGN, in bytes. */
static uint64_t aligned(uint64_t n) {
    return (n + CNRI_CACHED_ALIGN - 1) / CNRI_CACHED_ALIGN * CNRI_CACHED_ALIGN;
}

/* Writes zeros up to the next aligned offset and moves *at there. */
static cnr_status pad(cnri_writer *w, uint64_t *at, cnr_error *err) {
    static const uint8_t zeros[CNRI_CACHED_ALIGN];
    const uint64_t n = aligned(*at) - *at;
    *at += n;
    return cnri_write(w, zeros, n, err);
}

/* Writes bytes, adds them to the digest and moves *at past them. */
static cnr_status write_row(cnri_writer *w, cnri_sha256 *digest, const void *data, uint64_t bytes,
                            uint64_t *at, cnr_error *err) {
    cnri_sha256_add(digest, data, bytes);
    *at += bytes;
    return cnri_write(w, data, bytes, err);
}

/* Writes an empty header, then each blob at an aligned offset, with data from the callback; *at:
 * the end. */
static cnr_status write_blobs(cnri_writer *w, cnri_cached_blob *blobs, int32_t n,
                              cnri_cached_fn data, void *arg, uint64_t *at, cnr_error *err) {
    static const uint8_t zeros[CNRI_CACHED_HEADER];
    cnr_status status = cnri_write(w, zeros, sizeof zeros, err);
    *at = sizeof zeros;
    for (int32_t i = 0; i < n && !status; i++) {
        const void *from = NULL;
        status = data(arg, i, &from, err);
        if (status) break;
        cnri_fingerprint(from, blobs[i].bytes, blobs[i].print);
        status = pad(w, at, err);
        if (!status) status = cnri_write(w, from, blobs[i].bytes, err);
        *at += blobs[i].bytes;
    }
    return status;
}

/* Writes the directory of texts, blobs and parts at *at, and fills `header` with its place, size
 * and digest. */
static cnr_status write_directory(cnri_writer *w, const char *identity, const char *choices,
                                  const cnri_cached_blob *blobs, int32_t n, int32_t n_parts,
                                  uint8_t *header, uint64_t *at, cnr_error *err) {
    cnri_sha256 digest;
    cnri_sha256_begin(&digest);
    uint64_t offset = CNRI_CACHED_HEADER;
    const uint64_t begin = *at, first = strlen(identity), second = strlen(choices);
    cnr_status status = write_row(w, &digest, identity, first + 1, at, err);
    if (!status) status = write_row(w, &digest, choices, second + 1, at, err);
    for (int32_t i = 0; i < n + n_parts && !status; i++) {
        uint8_t row[CNRI_CACHED_ROW];
        const size_t length = strlen(blobs[i].name);
        offset = aligned(offset);
        put(row, offset, 8);
        put(row + 8, blobs[i].bytes, 8);
        memcpy(row + 16, blobs[i].print, 16);
        put(row + 32, length, 4);
        memcpy(row + 36, blobs[i].from, 16);
        offset += blobs[i].bytes;
        status = write_row(w, &digest, row, sizeof row, at, err);
        if (!status) status = write_row(w, &digest, blobs[i].name, length + 1, at, err);
    }
    memcpy(header, CNRI_CACHED_MAGIC, sizeof CNRI_CACHED_MAGIC - 1);
    put(header + 8, CNRI_CACHED_VERSION, 4);
    put(header + 12, CNRI_CACHED_HEADER, 4);
    put(header + 16, *at, 8);
    put(header + 24, begin, 8);
    put(header + 32, *at - begin, 8);
    put(header + 40, first, 8);
    put(header + 48, second, 8);
    put(header + 56, (uint64_t)n, 8);
    cnri_sha256_end(&digest, header + 64);
    cnri_sha256_of(header, CNRI_CACHED_SIGNED, header + CNRI_CACHED_SIGNED);
    return status;
}

cnr_status cnri_cached_write(const char *path, const cnri_cached *what, uint32_t flags,
                             cnri_cached_fn data, void *arg, cnr_error *err) {
    cnri_writer w;
    uint8_t header[CNRI_CACHED_HEADER];
    uint64_t at = 0;
    cnr_status status = cnri_write_begin(&w, path, flags, err);
    if (status) return status;
    status = write_blobs(&w, what->blobs, what->n_blobs + what->n_parts, data, arg, &at, err);
    if (!status)
        status = write_directory(&w, what->identity, what->choices, what->blobs, what->n_blobs,
                                 what->n_parts, header, &at, err);
    if (!status && fseek(w.file, 0, SEEK_SET) != 0)
        status = cnri_fail(err, CNR_E_IO, path, "can't be written: %s", strerror(errno));
    if (!status) status = cnri_write(&w, header, sizeof header, err);
    if (!status) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return status;
}
