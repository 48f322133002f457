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

/* Writes zeros up to the next multiple of the alignment. */
static cnr_status pad(cnri_writer *w, uint64_t *at, cnr_error *err) {
    static const uint8_t zeros[CNRI_CACHED_ALIGN];
    const uint64_t n = aligned(*at) - *at;
    *at += n;
    return cnri_write(w, zeros, n, err);
}

/* Bytes of header and directory. */
static uint64_t head_bytes(const cnri_cached *c) {
    uint64_t bytes = CNRI_CACHED_HEADER + strlen(c->identity) + strlen(c->choices) + 2;
    for (int32_t i = 0; i < c->n_blobs + c->n_parts; i++)
        bytes += CNRI_CACHED_ROW + strlen(c->blobs[i].name) + 1;
    return bytes;
}

/* Writes blobs and parts from offset *at on, as codecs encode them; sets their lengths and
 * fingerprints. */
static cnr_status write_blobs(cnri_writer *w, const cnri_cached *c, const cnri_coding *coding,
                              cnri_cached_fn data, void *arg, uint64_t *at, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < c->n_blobs + c->n_parts && !status; i++) {
        cnri_cached_blob *b = &c->blobs[i];
        const void *from = NULL;
        void *encoded = NULL;
        status = data(arg, i, &from, err);
        b->whole = b->bytes;
        if (!status && coding->n) {
            status = cnri_coding_encode(coding, from, b->whole, &encoded, &b->bytes, err);
            from = encoded;
        }
        if (!status) status = pad(w, at, err);
        if (!status) {
            cnri_fingerprint(from, b->bytes, b->print);
            status = cnri_write(w, from, b->bytes, err);
        }
        *at += b->bytes;
        cnri_free(encoded);
    }
    return status;
}

/* Appends a text with its NUL. */
static uint8_t *put_text(uint8_t *to, const char *text) {
    const size_t n = strlen(text) + 1;
    memcpy(to, text, n);
    return to + n;
}

/* Fills the directory. */
static void put_directory(const cnri_cached *c, uint64_t bytes, uint8_t *to) {
    uint64_t offset = bytes;
    to = put_text(put_text(to, c->identity), c->choices);
    for (int32_t i = 0; i < c->n_blobs + c->n_parts; i++) {
        const cnri_cached_blob *b = &c->blobs[i];
        offset = aligned(offset);
        put(to, offset, 8);
        put(to + 8, b->bytes, 8);
        put(to + 16, b->whole, 8);
        memcpy(to + 24, b->print, 16);
        put(to + 40, strlen(b->name), 4);
        memcpy(to + 44, b->from, 16);
        offset += b->bytes;
        to = put_text(to + CNRI_CACHED_ROW, b->name);
    }
}

/* Fills header and directory of a file of `total` bytes, `bytes` in all. */
static void put_head(const cnri_cached *c, uint64_t bytes, uint64_t total, uint8_t *to) {
    const size_t identity = strlen(c->identity);
    const uint64_t counts[] = {total,
                               bytes - CNRI_CACHED_HEADER,
                               identity,
                               strlen(c->choices),
                               (uint64_t)c->n_blobs,
                               (uint64_t)c->n_parts};
    memcpy(to, CNRI_CACHED_MAGIC, sizeof CNRI_CACHED_MAGIC - 1);
    put(to + 8, CNRI_CACHED_VERSION, 4);
    put(to + 12, CNRI_CACHED_HEADER, 4);
    for (size_t i = 0; i < CNRI_COUNT(counts); i++)
        put(to + CNRI_CACHED_COUNTS + 8 * i, counts[i], 8);
    cnri_sha256_of(c->identity, identity, to + CNRI_CACHED_ID);
    snprintf((char *)to + CNRI_CACHED_NAME, CNRI_CACHED_TEXT, "%s", c->net);
    snprintf((char *)to + CNRI_CACHED_CODECS, CNRI_CACHED_HEADER - CNRI_CACHED_CODECS, "%s",
             c->codecs);
    put_directory(c, bytes, to + CNRI_CACHED_HEADER);
}

/* Writes the file: first zeros for header and directory, which need the digests of the rest. */
static cnr_status write_all(cnri_writer *w, const char *path, const cnri_cached *c,
                            const cnri_coding *coding, cnri_cached_fn data, void *arg,
                            uint8_t *head, uint64_t bytes, cnr_error *err) {
    uint8_t tail[CNRI_CACHED_TAIL];
    uint64_t at = bytes;
    cnr_status status = cnri_write(w, head, bytes, err);
    if (!status) status = write_blobs(w, c, coding, data, arg, &at, err);
    if (status) return status;
    put_head(c, bytes, at + sizeof tail, head);
    cnri_sha256_of(head, bytes, tail);
    status = cnri_write(w, tail, sizeof tail, err);
    if (!status && fseek(w->file, 0, SEEK_SET) != 0)
        status = cnri_fail(err, CNR_E_IO, path, "can't be written: %s", strerror(errno));
    return status ? status : cnri_write(w, head, bytes, err);
}

cnr_status cnri_cached_write(const char *path, const cnri_cached *what, const cnri_coding *coding,
                             uint32_t flags, cnri_cached_fn data, void *arg, cnr_error *err) {
    static const cnri_coding none = {0};
    cnri_writer w;
    const uint64_t bytes = head_bytes(what);
    uint8_t *head = cnri_alloc_zero((size_t)bytes);
    if (!head) return cnri_out_of_memory(err, path);
    cnr_status status = cnri_write_begin(&w, path, flags, err);
    if (!status) {
        status = write_all(&w, path, what, coding ? coding : &none, data, arg, head, bytes, err);
        if (!status) status = cnri_write_commit(&w, err);
        else cnri_write_abandon(&w);
    }
    cnri_free(head);
    return status;
}
