/* Reads IDX files: 0 0 type rank, big-endian extents, data; zlib reads plain ones as well. */
#include "idx.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

enum { UNSIGNED_BYTE = 8, MAX_RATIO = 1040 };

/* Writes the text of the file's last error into `room`, of `bytes` bytes, and returns it; without
 * one, that the file ends too early. */
static const char *why(gzFile file, char *room, size_t bytes) {
    int code = Z_OK;
    const char *text = gzerror(file, &code);
    if (code == Z_ERRNO) text = strerror(errno);
    snprintf(room, bytes, "%s",
             code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? "the file ends too early"
                                                                         : text);
    return room;
}

/* Reads n bytes; 0: the file ends too early or is damaged. */
static int read_all(gzFile file, uint8_t *to, int64_t n) {
    while (n > 0) {
        const unsigned part = n > 1 << 30 ? 1u << 30 : (unsigned)n;
        const int got = gzread(file, to, part);
        if (got <= 0) return 0;
        to += got;
        n -= got;
    }
    return 1;
}

/* Reads the head of the file: *count elements, and sizes in *out; fails if they exceed `limit`, so
 * that a header can't make us allocate more than the file's size allows. */
static cnr_status read_header(gzFile file, const char *path, int32_t rank, int64_t limit,
                              mnist_idx *out, int64_t *count, cnr_error *err) {
    uint8_t head[4 + 3 * 4];
    char text[128];
    if (!read_all(file, head, 4 + 4 * rank))
        return mnist_host->fail(err, CNR_E_FORMAT, path, "%s", why(file, text, sizeof text));
    if (head[0] || head[1] || head[2] != UNSIGNED_BYTE || head[3] != rank)
        return mnist_host->fail(err, CNR_E_FORMAT, path,
                                "no IDX file of unsigned bytes with %d dimensions", rank);
    *count = 1;
    out->rank = rank;
    for (int32_t i = 0; i < rank; i++) {
        const uint8_t *d = head + 4 + 4 * i;
        out->dim[i] = (int64_t)d[0] << 24 | d[1] << 16 | d[2] << 8 | d[3];
        if (out->dim[i] < 1 || out->dim[i] > limit / *count)
            return mnist_host->fail(err, CNR_E_FORMAT, path,
                                    "says that it holds more than a file of its size can");
        *count *= out->dim[i];
    }
    return CNR_OK;
}

cnr_status mnist_idx_read(const char *path, int32_t rank, mnist_idx *out, cnr_error *err) {
    cnr_error why_not = CNR_ERROR_INIT;
    uint64_t bytes;
    char text[128];
    int64_t count = 0;
    memset(out, 0, sizeof *out);
    const int fd = mnist_host->file_open(path, &bytes, &why_not);
    if (fd < 0) return mnist_host->fail(err, why_not.code, path, "%s", why_not.text);
    gzFile file = gzdopen(fd, "rb"); /* closes fd from now on */
    if (!file) {
        close(fd);
        return mnist_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    }
    gzbuffer(file, 1 << 17);
    const int64_t ratio = gzdirect(file) ? 1 : MAX_RATIO;
    cnr_status status = read_header(file, path, rank, (int64_t)bytes * ratio, out, &count, err);
    if (!status) {
        out->data = mnist_host->alloc((size_t)count);
        if (!out->data) status = mnist_host->fail(err, CNR_E_MEMORY, path, "out of memory");
        else if (!read_all(file, out->data, count))
            status = mnist_host->fail(err, CNR_E_FORMAT, path, "%s", why(file, text, sizeof text));
    }
    gzclose(file);
    if (status) mnist_idx_free(out);
    return status;
}

/* Frees the array's data, which becomes NULL. */
void mnist_idx_free(mnist_idx *array) {
    mnist_host->free(array->data);
    array->data = NULL;
}
