/* Memory, files, options, numbers as text, rows of layers. */
#include "import_common.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

const cnr_host *imp_host;

void *imp_library_alloc(void *context, size_t bytes) {
    (void)context;
    return imp_host->alloc(bytes);
}
void imp_library_free(void *context, void *block) {
    (void)context;
    imp_host->free(block);
}

/* *out: the whole file in memory of the host's, followed by a zero byte, and its *bytes; fails
 * where the host does. */
cnr_status imp_read_file(const char *path, uint8_t **out, size_t *bytes, cnr_error *err) {
    void *data;
    uint64_t n;
    const cnr_status status = imp_host->file_read(path, SIZE_MAX / 4, &data, &n, err);
    *out = (uint8_t *)data;
    *bytes = (size_t)n;
    return status;
}

int imp_pread(int fd, void *out, uint64_t n, uint64_t offset) {
    uint8_t *to = out;
    while (n > 0) {
        const ssize_t got = pread(fd, to, n < 1 << 30 ? (size_t)n : 1 << 30, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        to += got;
        n -= (uint64_t)got;
        offset += (uint64_t)got;
    }
    return 1;
}

cnr_status imp_read_head(const char *path, uint8_t head[IMP_HEAD], size_t *n, cnr_error *err) {
    uint64_t bytes;
    const int fd = imp_host->file_open(path, &bytes, err);
    if (fd < 0) return (cnr_status)(err ? err->code : CNR_E_IO);
    *n = bytes < IMP_HEAD ? (size_t)bytes : IMP_HEAD;
    const int read = imp_pread(fd, head, *n, 0);
    close(fd);
    return read ? CNR_OK : imp_host->fail(err, CNR_E_IO, path, "cannot be read");
}

int imp_is_text(const uint8_t *head, size_t n) {
    for (size_t i = 0; i < n && i < 256; i++)
        if (head[i] < 9 || (head[i] > 13 && head[i] < 32)) return 0;
    return n > 0;
}

int imp_ends_with(const char *path, const char *tail) {
    const size_t n = strlen(path), k = strlen(tail);
    return n >= k && strcmp(path + n - k, tail) == 0;
}

const char *imp_option(const cnr_import_args *args, const char *name) {
    const size_t n = strlen(name);
    for (int32_t i = 0; i < args->n_options; i++)
        if (strncmp(args->options[i], name, n) == 0 && args->options[i][n] == '=')
            return args->options[i] + n + 1;
    return NULL;
}

double imp_number(const char *text, const char **end) {
    double value = 0;
    if (!imp_host->parse_number(text + strspn(text, " \t\r\n\v\f"), end, &value)) *end = text;
    return value;
}

int32_t imp_shape(const char *text, int64_t dim[CNR_MAX_RANK]) {
    int32_t rank = 0;
    if (!text) return 0;
    do {
        char *end;
        if (rank == CNR_MAX_RANK) return -1;
        dim[rank] = strtoll(text, &end, 10);
        if (end == text || (*end && *end != ',' && *end != 'x')) return -1;
        if (dim[rank] < 1 || dim[rank] > 1 << 24) return -1;
        rank++;
        text = *end ? end + 1 : NULL;
    } while (text);
    return rank;
}

int64_t imp_count(const int64_t *dim, int32_t rank) {
    int64_t n = 1;
    int zero = 0;
    for (int32_t i = 0; i < rank; i++) {
        if (dim[i] < 0 || (dim[i] && n > INT64_MAX / dim[i])) return -1;
        if (dim[i]) n *= dim[i]; /* a 0 must not hide an overflow of the other sizes */
        else zero = 1;
    }
    return zero ? 0 : n;
}

/* ---- memory that is freed all at once: a chain of chunks ---- */

enum { CHUNK = 1 << 16 };

/* A block of a pool. */
struct imp_chunk {
    struct imp_chunk *next;
    size_t room;
    max_align_t data[];
};

void *imp_take(imp_pool *pool, size_t bytes) {
    if (bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (bytes > pool->left || !pool->chunks) {
        const size_t room = bytes > CHUNK ? bytes : CHUNK;
        struct imp_chunk *chunk = (struct imp_chunk *)imp_host->alloc(sizeof *chunk + room);
        if (!chunk) return NULL;
        chunk->next = pool->chunks;
        chunk->room = room;
        pool->chunks = chunk;
        pool->left = room;
    }
    void *at = (char *)pool->chunks->data + pool->chunks->room - pool->left;
    pool->left -= bytes;
    return memset(at, 0, bytes);
}

/* Frees all blocks of the pool, which can be used again. */
void imp_pool_free(imp_pool *pool) {
    while (pool->chunks) {
        struct imp_chunk *next = pool->chunks->next;
        imp_host->free(pool->chunks);
        pool->chunks = next;
    }
    pool->left = 0;
}

/* Makes room in *at, which moves, for one more entry after n entries of `bytes` each. 1; 0: out of
 * memory, or 2^28 entries. */
int imp_grow(void **at, int32_t n, int32_t *room, size_t bytes) {
    if (n < *room) return 1;
    if (n >= 1 << 28) return 0;
    const int32_t more = *room ? *room * 2 : 32;
    void *grown = imp_host->resize(*at, (size_t)more * bytes);
    if (!grown) return 0;
    *at = grown;
    *room = more;
    return 1;
}

/* ---- rows ---- */

const void *imp_row_of(const void *rows, int32_t n, size_t bytes, const char *type) {
    for (const char *row = (const char *)rows; type && n > 0; n--, row += bytes)
        if (strcmp(*(const char *const *)(const void *)row, type) == 0) return row;
    return NULL;
}

int imp_is_one_of(const char *word, const char *const *list, int32_t n) {
    return imp_row_of(list, n, sizeof list[0], word) != NULL;
}

/* ---- sizes ---- */

/* Notes a size that fits; exact: nothing is rounded then. To be called in rising order. */
void imp_fits_add(imp_fits *f, int64_t size, int exact) {
    static const int64_t usual[] = {28, 32, 64, 96, 112, 128, 224, 227, 256, 299};
    if (!f->low) f->low = size;
    f->high = size;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (usual[i] == size) f->usual = size, f->n_usual++;
    if (exact) f->exact = size, f->n_exact++;
}

int64_t imp_fits_best(const imp_fits *f) {
    if (f->low == f->high) return f->low;
    return f->n_usual == 1 ? f->usual : f->n_exact == 1 ? f->exact : 0;
}
