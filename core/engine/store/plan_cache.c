/* Reads stored plans and compiled models (keep/ of common writes them). Numbers are little-endian;
 * blobs are weights that kernels packed.
 *
 *   0    magic[8]  u32 version  u32 header bytes  u64 file bytes
 *   24   u64 directory offset, bytes
 *   40   u64 identity bytes  u64 choices bytes  u64 number of blobs
 *   64   SHA-256 of the directory [32]    SHA-256 of the 96 bytes above [32]
 *   128  zeros up to a multiple of 4096, then the blobs, each at such a multiple
 *        directory: identity NUL choices NUL
 *                   n {u64 offset, u64 bytes, fingerprint[16], u32 length,
 *                      fingerprint of the blob's source [16], name NUL}
 *                   more rows of that form: the parts of a compiled model (CNRI_PART_MODEL ...),
 *                      whose data follows the blobs; a stored plan has none
 * Bytes between blobs and parts must be zeros. */
#include "store/store.h"

/* A little-endian number of that many bytes. */
static uint64_t get(const uint8_t *p, int bytes) {
    uint64_t x = 0;
    for (int i = 0; i < bytes; i++) x |= (uint64_t)p[i] << 8 * i;
    return x;
}

/* ---- reading ---- */

/* Fills err: the file is damaged. */
static cnr_status damaged(cnr_error *err, const char *path, const char *what) {
    return cnri_fail(err, CNR_E_FORMAT, path, "damaged: %s", what);
}

/* Checks magic, version, digest and lengths of a header. */
static cnr_status check_header(const uint8_t *h, uint64_t bytes, const char *path, cnr_error *err) {
    uint8_t digest[32];
    if (bytes < CNRI_CACHED_HEADER) return damaged(err, path, "it ends within the header");
    if (memcmp(h, CNRI_CACHED_MAGIC, sizeof CNRI_CACHED_MAGIC - 1) != 0)
        return damaged(err, path, "its magic is wrong");
    if (get(h + 8, 4) != CNRI_CACHED_VERSION)
        return cnri_fail(err, CNR_E_FORMAT, path, "of file version %u, want %d",
                         (unsigned)get(h + 8, 4), (int)CNRI_CACHED_VERSION);
    cnri_sha256_of(h, CNRI_CACHED_SIGNED, digest);
    if (memcmp(digest, h + CNRI_CACHED_SIGNED, sizeof digest) != 0)
        return damaged(err, path, "the header's digest is wrong");
    const uint64_t at = get(h + 24, 8), n = get(h + 32, 8);
    if (get(h + 12, 4) != CNRI_CACHED_HEADER || get(h + 16, 8) != bytes)
        return damaged(err, path, "it is not as long as it says");
    if (at < CNRI_CACHED_HEADER || at > bytes || n != bytes - at)
        return damaged(err, path, "its directory is outside the file");
    cnri_sha256_of(h + at, n, digest);
    if (memcmp(digest, h + 64, sizeof digest) != 0)
        return damaged(err, path, "the directory's digest is wrong");
    return CNR_OK;
}

/* Returns the text of `bytes` bytes at *at and moves *at past its NUL; NULL: it is malformed. */
static const char *take_text(const uint8_t **at, const uint8_t *end, uint64_t bytes) {
    const uint8_t *p = *at;
    if ((uint64_t)(end - p) <= bytes || p[bytes] != 0 || memchr(p, 0, (size_t)bytes)) return NULL;
    *at = p + bytes + 1;
    return (const char *)p;
}

/* True if all bytes from `from` up to `to` are 0. */
static bool all_zero(const uint8_t *from, const uint8_t *to) {
    while (from < to && !*from) from++;
    return from >= to;
}

/* *last: file offset where the data of the previous row ends; set to the end of this row's data. */
static cnr_status read_row(const cnri_cached *c, const uint8_t **at, const uint8_t *end,
                           uint64_t *last, cnri_cached_blob *b, const char *path, cnr_error *err) {
    const uint8_t *file = c->file.at, *row = *at;
    const uint64_t data_end = get(file + 24, 8);
    if (end - row < CNRI_CACHED_ROW) return damaged(err, path, "it ends early");
    const uint64_t offset = get(row, 8), length = get(row + 32, 4);
    b->bytes = get(row + 8, 8);
    memcpy(b->print, row + 16, sizeof b->print);
    memcpy(b->from, row + 36, sizeof b->from);
    *at += CNRI_CACHED_ROW;
    b->name = take_text(at, end, length);
    if (!b->name) return damaged(err, path, "a name is malformed");
    if (offset % CNRI_CACHED_ALIGN || offset < *last || offset > data_end ||
        b->bytes > data_end - offset)
        return damaged(err, path, "a blob is outside the file");
    if (!all_zero(file + *last, file + offset))
        return damaged(err, path, "bytes between its blobs are not zero");
    b->data = file + offset;
    *last = offset + b->bytes;
    return CNR_OK;
}

/* Reads identity, choices and the rows of blobs. */
static cnr_status read_directory(cnri_cached *c, const char *path, cnr_error *err) {
    const uint8_t *file = c->file.at, *at = file + get(file + 24, 8), *end = file + c->file.bytes;
    const uint64_t n = get(file + 56, 8);
    uint64_t last = CNRI_CACHED_HEADER;
    c->identity = take_text(&at, end, get(file + 40, 8));
    c->choices = c->identity ? take_text(&at, end, get(file + 48, 8)) : NULL;
    if (!c->choices) return damaged(err, path, "a text is malformed");
    if (n > (uint64_t)(end - at) / CNRI_CACHED_ROW)
        return damaged(err, path, "a count is too large");
    c->blobs = cnri_alloc_zero(((size_t)(end - at) / CNRI_CACHED_ROW + 1) * sizeof *c->blobs);
    if (!c->blobs) return cnri_out_of_memory(err, path);
    while (at < end) {
        CNR_TRY(read_row(c, &at, end, &last, &c->blobs[c->n_blobs + c->n_parts], path, err));
        if ((uint64_t)c->n_blobs < n) c->n_blobs++;
        else c->n_parts++;
    }
    if ((uint64_t)c->n_blobs < n) return damaged(err, path, "it ends early");
    return last == get(file + 24, 8) ? CNR_OK
                                     : damaged(err, path, "something follows its last blob");
}

bool cnri_cached_begins(const void *head, size_t bytes) {
    return bytes >= sizeof CNRI_CACHED_MAGIC - 1 &&
           memcmp(head, CNRI_CACHED_MAGIC, sizeof CNRI_CACHED_MAGIC - 1) == 0;
}

cnr_status cnri_cached_read(const char *path, cnri_mapping file, cnri_cached *out, cnr_error *err) {
    *out = (cnri_cached){.file = file};
    cnr_status status = check_header(file.at, file.bytes, path, err);
    if (!status) status = read_directory(out, path, err);
    if (status) cnri_free(out->blobs);
    if (status) *out = (cnri_cached){0};
    return status;
}

cnr_status cnri_cached_open(const char *path, cnri_cached *out, cnr_error *err) {
    cnri_mapping file;
    *out = (cnri_cached){0};
    cnr_status status = cnri_map_kept(path, &file, err);
    if (status) return status;
    status = cnri_cached_read(path, file, out, err);
    if (status) cnri_unmap_file(&file);
    return status;
}

const cnri_cached_blob *cnri_cached_part(const cnri_cached *c, const char *name) {
    for (int32_t i = c->n_blobs; i < c->n_blobs + c->n_parts; i++)
        if (strcmp(c->blobs[i].name, name) == 0) return &c->blobs[i];
    return NULL;
}

int32_t cnri_cached_damaged(const cnri_cached *c, const char *path) {
    int32_t n = 0;
    for (int32_t i = 0; i < c->n_blobs + c->n_parts; i++) {
        const cnri_cached_blob *b = &c->blobs[i];
        if (cnri_same_fingerprint(b->data, b->bytes, b->print)) continue;
        n++;
        cnri_log(CNR_LOG_WARN, path, "%s is damaged: its fingerprint does not match", b->name);
    }
    return n;
}

void cnri_cached_close(cnri_cached *c) {
    cnri_free(c->blobs);
    cnri_unmap_file(&c->file);
    *c = (cnri_cached){0};
}
