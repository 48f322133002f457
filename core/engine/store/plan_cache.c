/* Stored plans and compiled models: checked when read, replaced atomically when written, in a
 * folder of limited size. Numbers are little-endian; blobs are weights that kernels packed.
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
#define _GNU_SOURCE
#include "store/store.h"
#include <cnnrun/plugin.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 2, HEADER = 128, SIGNED = 96, ALIGN = 4096, ROW = 52 };
static const uint8_t magic[8] = {0x89, 'C', 'N', 'P', '\r', '\n', 0x1a, '\n'};

/* A little-endian number of that many bytes. */
static uint64_t get(const uint8_t *p, int bytes) {
    uint64_t x = 0;
    for (int i = 0; i < bytes; i++) x |= (uint64_t)p[i] << 8 * i;
    return x;
}

/* Writes a little-endian number of that many bytes. */
static void put(uint8_t *p, uint64_t x, int bytes) {
    for (int i = 0; i < bytes; i++) p[i] = (uint8_t)(x >> 8 * i);
}

static uint64_t aligned(uint64_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

/* ---- reading ---- */

/* Fills err: the file is damaged. */
static cnr_status damaged(cnr_error *err, const char *path, const char *what) {
    return cnri_fail(err, CNR_E_FORMAT, path, "damaged: %s", what);
}

/* Checks magic, version, digest and lengths of a header. */
static cnr_status check_header(const uint8_t *h, uint64_t bytes, const char *path, cnr_error *err) {
    uint8_t digest[32];
    if (bytes < HEADER) return damaged(err, path, "it ends within the header");
    if (memcmp(h, magic, sizeof magic) != 0) return damaged(err, path, "its magic is wrong");
    if (get(h + 8, 4) != VERSION)
        return cnri_fail(err, CNR_E_FORMAT, path, "of file version %u, want %d",
                         (unsigned)get(h + 8, 4), (int)VERSION);
    cnri_sha256_of(h, SIGNED, digest);
    if (memcmp(digest, h + SIGNED, sizeof digest) != 0)
        return damaged(err, path, "the header's digest is wrong");
    const uint64_t at = get(h + 24, 8), n = get(h + 32, 8);
    if (get(h + 12, 4) != HEADER || get(h + 16, 8) != bytes)
        return damaged(err, path, "it is not as long as it says");
    if (at < HEADER || at > bytes || n != bytes - at)
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
    if (end - row < ROW) return damaged(err, path, "it ends early");
    const uint64_t offset = get(row, 8), length = get(row + 32, 4);
    b->bytes = get(row + 8, 8);
    memcpy(b->print, row + 16, sizeof b->print);
    memcpy(b->from, row + 36, sizeof b->from);
    *at += ROW;
    b->name = take_text(at, end, length);
    if (!b->name) return damaged(err, path, "a name is malformed");
    if (offset % ALIGN || offset < *last || offset > data_end || b->bytes > data_end - offset)
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
    uint64_t last = HEADER;
    c->identity = take_text(&at, end, get(file + 40, 8));
    c->choices = c->identity ? take_text(&at, end, get(file + 48, 8)) : NULL;
    if (!c->choices) return damaged(err, path, "a text is malformed");
    if (n > (uint64_t)(end - at) / ROW) return damaged(err, path, "a count is too large");
    c->blobs = cnri_alloc_zero(((size_t)(end - at) / ROW + 1) * sizeof *c->blobs);
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
    return bytes >= sizeof magic && memcmp(head, magic, sizeof magic) == 0;
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

/* ---- writing ---- */

/* Writes zeros up to the next alignment; *at: the position. */
static cnr_status pad(cnri_writer *w, uint64_t *at, cnr_error *err) {
    static const uint8_t zeros[ALIGN];
    const uint64_t n = aligned(*at) - *at;
    *at += n;
    return cnri_write(w, zeros, n, err);
}

/* Writes bytes of the directory and adds them to its digest. */
static cnr_status write_row(cnri_writer *w, cnri_sha256 *digest, const void *data, uint64_t bytes,
                            uint64_t *at, cnr_error *err) {
    cnri_sha256_add(digest, data, bytes);
    *at += bytes;
    return cnri_write(w, data, bytes, err);
}

/* Writes all blobs, each aligned, and notes their offsets and fingerprints. */
static cnr_status write_blobs(cnri_writer *w, cnri_cached_blob *blobs, int32_t n,
                              cnri_cached_fn data, void *arg, uint64_t *at, cnr_error *err) {
    static const uint8_t zeros[HEADER];
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

/* Writes the directory behind the blobs, and fills the header. */
static cnr_status write_directory(cnri_writer *w, const char *identity, const char *choices,
                                  const cnri_cached_blob *blobs, int32_t n, int32_t n_parts,
                                  uint8_t *header, uint64_t *at, cnr_error *err) {
    cnri_sha256 digest;
    cnri_sha256_begin(&digest);
    uint64_t offset = HEADER;
    const uint64_t begin = *at, first = strlen(identity), second = strlen(choices);
    cnr_status status = write_row(w, &digest, identity, first + 1, at, err);
    if (!status) status = write_row(w, &digest, choices, second + 1, at, err);
    for (int32_t i = 0; i < n + n_parts && !status; i++) {
        uint8_t row[ROW];
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
    memcpy(header, magic, sizeof magic);
    put(header + 8, VERSION, 4);
    put(header + 12, HEADER, 4);
    put(header + 16, *at, 8);
    put(header + 24, begin, 8);
    put(header + 32, *at - begin, 8);
    put(header + 40, first, 8);
    put(header + 48, second, 8);
    put(header + 56, (uint64_t)n, 8);
    cnri_sha256_end(&digest, header + 64);
    cnri_sha256_of(header, SIGNED, header + SIGNED);
    return status;
}

cnr_status cnri_cached_write(const char *path, const cnri_cached *what, uint32_t flags,
                             cnri_cached_fn data, void *arg, cnr_error *err) {
    cnri_writer w;
    uint8_t header[HEADER];
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

/* ---- the folder ---- */

void cnri_cache_touch(const char *path) {
    (void)!utimensat(AT_FDCWD, path, NULL, 0); /* fails in a read-only folder: no harm */
}

/* True if the text ends in `tail` and is longer. */
static bool ends_with(const char *text, const char *tail) {
    const size_t n = strlen(text), k = strlen(tail);
    return n > k && strcmp(text + n - k, tail) == 0;
}

/* Whether the file can be created again: a stored plan, or a plugin's file that ends in "bin". */
static bool counts(const char *name) {
    return ends_with(name, CNRI_PLAN_SUFFIX) || ends_with(name, "bin");
}

/* Removes a temporary file that a writer left, if that process is gone. */
static void remove_temporary(const char *folder, const char *name) {
    char *path = cnri_path_join(folder, name);
    if (path) cnri_write_remove_temporary(path);
    cnri_free(path);
}

/* Compares the time of last use, then the name. */
static int by_use(const void *a, const void *b) {
    const cnri_cache_file *x = a, *y = b;
    if (x->used_ns != y->used_ns) return x->used_ns < y->used_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

bool cnri_cache_list(const char *folder, cnri_cache_files *out) {
    DIR *d = opendir(folder);
    bool good = true;
    for (const struct dirent *e; d && good && (e = readdir(d)) != NULL;) {
        struct stat info;
        if (ends_with(e->d_name, CNRI_TEMPORARY_SUFFIX)) remove_temporary(folder, e->d_name);
        if (!counts(e->d_name)) continue;
        if (fstatat(dirfd(d), e->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (!S_ISREG(info.st_mode)) continue;
        cnri_cache_file *file = cnri_push(out);
        good = file && (file->name = cnri_strdup(e->d_name)) != NULL;
        if (!good) break;
        file->bytes = (uint64_t)info.st_size;
        file->used_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
        file->is_plan = ends_with(e->d_name, CNRI_PLAN_SUFFIX);
    }
    if (d) closedir(d);
    if (good && out->n > 1) qsort(out->at, (size_t)out->n, sizeof *out->at, by_use);
    return good;
}

void cnri_cache_list_free(cnri_cache_files *files) {
    for (int32_t i = 0; i < files->n; i++) cnri_free(files->at[i].name);
    cnri_vec_free(files);
}

bool cnri_cache_remove(const char *folder, const char *name) {
    char *path = cnri_path_join(folder, name);
    const bool gone = path && counts(name) && (unlink(path) == 0 || errno == ENOENT);
    cnri_free(path);
    return gone;
}

/* Whether CNRI_CACHE_VARIANTS files that were used later share the first `shared` bytes of `name`
 * with this file. */
static bool is_one_too_many(const cnri_cache_files *files, int32_t index, const char *name,
                            size_t shared) {
    int32_t later = 0;
    if (!shared || strncmp(files->at[index].name, name, shared) != 0) return false;
    for (int32_t i = index + 1; i < files->n; i++)
        later += strncmp(files->at[i].name, name, shared) == 0;
    return later >= CNRI_CACHE_VARIANTS;
}

void cnri_cache_trim(const char *folder, uint64_t limit, const char *keep, size_t shared) {
    cnri_cache_files files = {0};
    uint64_t bytes = 0;
    const bool good = cnri_cache_list(folder, &files);
    for (int32_t i = 0; i < files.n; i++) bytes += files.at[i].bytes;
    for (int32_t i = 0; good && i < files.n; i++) {
        const cnri_cache_file *file = &files.at[i];
        const bool many = keep && is_one_too_many(&files, i, keep, shared);
        if ((keep && strcmp(file->name, keep) == 0) || (bytes <= limit && !many)) continue;
        if (!cnri_cache_remove(folder, file->name)) break;
        bytes -= file->bytes;
        cnri_log(CNR_LOG_INFO, "cache", "%s removed: %s", file->name,
                 many ? "plans for later weights are there" : "the folder is full");
    }
    cnri_cache_list_free(&files);
}

char *cnri_cache_latest(const char *folder, const char *prefix) {
    cnri_cache_files files = {0};
    char *found = NULL;
    cnri_cache_list(folder, &files);
    for (int32_t i = files.n - 1; i >= 0 && !found; i--)
        if (files.at[i].is_plan && strncmp(files.at[i].name, prefix, strlen(prefix)) == 0)
            found = cnri_path_join(folder, files.at[i].name);
    cnri_cache_list_free(&files);
    return found;
}
