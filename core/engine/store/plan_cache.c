/* Reads stored plans and compiled models (keep/ of common writes them). Numbers are little-endian;
 * blobs are weights that kernels packed.
 *
 *   0     magic[8]  u32 version  u32 header bytes
 *   16    u64 file bytes  u64 directory bytes  u64 identity bytes  u64 choices bytes
 *         u64 number of blobs  u64 number of parts
 *   64    SHA-256 of the identity [32]
 *   96    name of the net NUL, zeros
 *   608   names of the codecs NUL, zeros
 *   1024  directory: identity NUL choices NUL
 *                    a row for each blob, then for each part: {u64 offset, u64 bytes, u64 bytes
 *                      before codecs, fingerprint[16], u32 length, fingerprint of the blob's
 *                      source [16], name NUL}
 *         blobs and parts, each at a multiple of 4096, zeros between. Parts are those of a compiled
 *         model (CNRI_PART_MODEL ...); a stored plan has none
 *   tail  SHA-256 of header and directory [32], which hold the fingerprints of all that follows */
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

/* Number `i` of those that the header counts. */
static uint64_t count(const uint8_t *h, int i) { return get(h + CNRI_CACHED_COUNTS + 8 * i, 8); }

/* Offsets where the directory and the blobs and parts end. */
static uint64_t directory_end(const uint8_t *h) { return CNRI_CACHED_HEADER + count(h, 1); }
static uint64_t data_end(const uint8_t *h) { return count(h, 0) - CNRI_CACHED_TAIL; }

/* Checks magic, version, digest and lengths of a file. */
static cnr_status check_header(const uint8_t *h, uint64_t bytes, const char *path, cnr_error *err) {
    uint8_t digest[32];
    if (bytes < CNRI_CACHED_COUNTS) return damaged(err, path, "it ends within the header");
    if (memcmp(h, CNRI_CACHED_MAGIC, sizeof CNRI_CACHED_MAGIC - 1) != 0)
        return damaged(err, path, "its magic is wrong");
    const unsigned version = (unsigned)get(h + 8, 4);
    if (version != CNRI_CACHED_VERSION)
        return cnri_fail(err, CNR_E_FORMAT, path,
                         "of %s file version %u, want %d: it has to be made again",
                         version < CNRI_CACHED_VERSION ? "the older" : "the newer", version,
                         (int)CNRI_CACHED_VERSION);
    if (bytes < CNRI_CACHED_HEADER + CNRI_CACHED_TAIL)
        return damaged(err, path, "it ends within the header");
    if (get(h + 12, 4) != CNRI_CACHED_HEADER || count(h, 0) != bytes)
        return damaged(err, path, "it is not as long as it says");
    if (count(h, 1) > bytes - CNRI_CACHED_HEADER - CNRI_CACHED_TAIL)
        return damaged(err, path, "its directory is outside the file");
    cnri_sha256_of(h, directory_end(h), digest);
    if (memcmp(digest, h + data_end(h), sizeof digest) != 0)
        return damaged(err, path, "the digest of header and directory is wrong");
    if (h[CNRI_CACHED_CODECS - 1] || h[CNRI_CACHED_HEADER - 1])
        return damaged(err, path, "a text of the header is malformed");
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
    if (end - row < CNRI_CACHED_ROW) return damaged(err, path, "it ends early");
    const uint64_t offset = get(row, 8), length = get(row + 40, 4);
    b->bytes = get(row + 8, 8);
    b->whole = get(row + 16, 8);
    memcpy(b->print, row + 24, sizeof b->print);
    memcpy(b->from, row + 44, sizeof b->from);
    *at += CNRI_CACHED_ROW;
    b->name = take_text(at, end, length);
    if (!b->name) return damaged(err, path, "a name is malformed");
    if (offset % CNRI_CACHED_ALIGN || offset < *last || offset > data_end(file) ||
        b->bytes > data_end(file) - offset)
        return damaged(err, path, "a blob is outside the file");
    if (!all_zero(file + *last, file + offset))
        return damaged(err, path, "bytes between its blobs are not zero");
    if (b->whole != b->bytes && !*c->codecs)
        return damaged(err, path, "a blob has two lengths, but no codec");
    b->data = file + offset;
    *last = offset + b->bytes;
    return CNR_OK;
}

/* Reads identity, choices and the rows of blobs and parts. */
static cnr_status read_directory(cnri_cached *c, const char *path, cnr_error *err) {
    const uint8_t *file = c->file.at, *at = file + CNRI_CACHED_HEADER,
                  *end = file + directory_end(file);
    const uint64_t blobs = count(file, 4), parts = count(file, 5);
    uint64_t last = directory_end(file);
    c->net = (const char *)file + CNRI_CACHED_NAME;
    c->codecs = (const char *)file + CNRI_CACHED_CODECS;
    c->identity = take_text(&at, end, count(file, 2));
    c->choices = c->identity ? take_text(&at, end, count(file, 3)) : NULL;
    if (!c->choices) return damaged(err, path, "a text is malformed");
    const uint64_t most = (uint64_t)(end - at) / CNRI_CACHED_ROW;
    if (blobs > most || parts > most - blobs) return damaged(err, path, "a count is too large");
    c->blobs = cnri_alloc_zero((size_t)(blobs + parts + 1) * sizeof *c->blobs);
    if (!c->blobs) return cnri_out_of_memory(err, path);
    c->n_blobs = (int32_t)blobs;
    c->n_parts = (int32_t)parts;
    for (int32_t i = 0; i < c->n_blobs + c->n_parts; i++)
        CNR_TRY(read_row(c, &at, end, &last, &c->blobs[i], path, err));
    return at == end && last == data_end(file)
               ? CNR_OK
               : damaged(err, path, "something follows its last row or blob");
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
