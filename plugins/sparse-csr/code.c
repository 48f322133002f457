/* Compressed form: each part separately, since their statistics differ, with bytes of the same
 * significance adjacent.
 *
 * coded_header | csr_header | table | row lengths, indices, values: a zstd frame each
 *
 * All sizes except the frames' follow from the header. No frame may unpack to more than MOST times
 * its size, so that a small file can't claim much memory. */
#include "sparse.h"

#ifdef CSR_ZSTD
#include <zstd.h>
#endif

enum { FRAMES = 3, MOST = 64 };
/* Such data has more literals than matches: the fastest level compresses best. */
enum { LEVEL = 1 };

/* Head of a compressed image: bytes of each frame. */
typedef struct coded_header {
    uint32_t magic, reserved;
    uint64_t frame[FRAMES]; /* bytes of each frame */
} coded_header;

#define CODED_MAGIC 0x5a525343u /* "CSRZ" */

/* A compressed part: its position in the plain form, and the width of its numbers. */
typedef struct part {
    uint64_t at, bytes, width;
} part;

/* out receives the parts that are frames, with the width of their numbers. */
static void parts_of(const csr_header *h, part *out) {
    const csr_parts p = csr_parts_of(h);
    const uint64_t first = sizeof *h + p.table;
    out[0] = (part){first, p.row_begin, 4};
    out[1] =
        (part){first + p.row_begin, csr_index_bytes(h), h->index_bits > 8 ? h->index_bits / 8 : 1};
    out[2] = (part){first + p.row_begin + p.index, h->entries * h->block * csr_value_bytes(h),
                    csr_value_bytes(h)};
}

/* 1: the data is a compressed image. */
int csr_is_coded(const void *data, uint64_t bytes) {
    uint32_t magic = 0;
    if (data && bytes >= sizeof magic) memcpy(&magic, data, sizeof magic);
    return magic == CODED_MAGIC;
}

csr_header csr_header_of(const void *data) {
    csr_header h = {0};
    uint64_t at;
    const uint64_t from = csr_is_coded(data, sizeof(uint32_t)) ? sizeof(coded_header) : 0;
    csr_header_read((const char *)data + from, sizeof h, &h, &at);
    return h;
}

/* Groups byte i of all numbers, for each i; and the inverse. */
static void spread(const uint8_t *from, uint64_t bytes, uint64_t width, uint8_t *to) {
    const uint64_t n = bytes / width;
    for (uint64_t b = 0; b < width; b++)
        for (uint64_t i = 0; i < n; i++) to[b * n + i] = from[i * width + b];
}
/* Joins bytes that stand apart by their place in a number. */
static void gather(const uint8_t *from, uint64_t bytes, uint64_t width, uint8_t *to) {
    const uint64_t n = bytes / width;
    for (uint64_t b = 0; b < width; b++)
        for (uint64_t i = 0; i < n; i++) to[i * width + b] = from[b * n + i];
}

/* Converts row pointers to lengths, which are smaller; and back. */
static void to_lengths(uint32_t *row, uint64_t n) {
    for (uint64_t i = n; i-- > 1;) row[i] -= row[i - 1];
}
/* Turns the lengths of rows into where they begin. */
static void to_pointers(uint32_t *row, uint64_t n) {
    for (uint64_t i = 1; i < n; i++) row[i] += row[i - 1];
}

#ifdef CSR_ZSTD

/* Fails: out of memory. */
static cnr_status no_memory(cnr_error *err) {
    return csr_host->fail(err, CNR_E_MEMORY, "sparse-csr", "out of memory");
}

/* Compresses each part to a frame; *n bytes of `out` are used. */
static cnr_status pack(const uint8_t *plain, const csr_header *h, coded_header *head, uint8_t *out,
                       uint64_t room, uint64_t *n, uint8_t *scratch, cnr_error *err) {
    part p[FRAMES];
    parts_of(h, p);
    for (int i = 0; i < FRAMES; i++) {
        uint8_t *lengths = scratch + p[i].bytes;
        memcpy(lengths, plain + p[i].at, p[i].bytes);
        if (i == 0) to_lengths((uint32_t *)(void *)lengths, p[i].bytes / 4);
        spread(lengths, p[i].bytes, p[i].width, scratch);
        const size_t made = ZSTD_compress(out + *n, room - *n, scratch, p[i].bytes, LEVEL);
        if (ZSTD_isError(made))
            return csr_host->fail(err, CNR_E_MEMORY, "sparse-csr", "zstd: %s",
                                  ZSTD_getErrorName(made));
        head->frame[i] = made;
        *n += made;
    }
    return CNR_OK;
}

/* Bytes of the longest part, rounded up to 8. */
static uint64_t largest(const csr_header *h) {
    part p[FRAMES];
    uint64_t most = 0;
    parts_of(h, p);
    for (int i = 0; i < FRAMES; i++)
        if (p[i].bytes > most) most = p[i].bytes;
    return (most + 7) / 8 * 8;
}

cnr_status csr_code(const void *plain, uint64_t bytes, void **out, uint64_t *coded,
                    cnr_error *err) {
    const csr_matrix m = csr_view(plain);
    coded_header head = {.magic = CODED_MAGIC};
    const uint64_t fixed = sizeof m.head + csr_parts_of(&m.head).table;
    const uint64_t room = sizeof head + fixed + ZSTD_compressBound(bytes) + FRAMES * 1024;
    uint8_t *to = (uint8_t *)csr_host->alloc(room);
    uint8_t *scratch = (uint8_t *)csr_host->alloc(2 * largest(&m.head) + 8);
    uint64_t n = sizeof head + fixed;
    cnr_status status = to && scratch ? CNR_OK : no_memory(err);
    if (!status) status = pack((const uint8_t *)plain, &m.head, &head, to, room, &n, scratch, err);
    csr_host->free(scratch);
    if (status) {
        csr_host->free(to);
        return status;
    }
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, plain, fixed);
    if (n >= bytes || bytes / MOST > n) {
        memcpy(to, plain, bytes); /* there is room: zstd's bound is above the size */
        n = bytes;
    }
    *out = to;
    *coded = n;
    return CNR_OK;
}

/* Unpacks the first `frames` frames; returns what is wrong with them, or NULL. */
static const char *unpack(const uint8_t *from, const coded_header *head, const csr_header *h,
                          int frames, uint8_t *plain, uint8_t *scratch) {
    part p[FRAMES];
    parts_of(h, p);
    for (int i = 0; i < frames; i++) {
        const size_t made = ZSTD_decompress(scratch, p[i].bytes, from, head->frame[i]);
        if (ZSTD_isError(made) || made != p[i].bytes) return "a compressed part is damaged";
        gather(scratch, p[i].bytes, p[i].width, plain + p[i].at);
        if (i == 0) to_pointers((uint32_t *)(void *)(plain + p[i].at), p[i].bytes / 4);
        from += head->frame[i];
    }
    return NULL;
}

/* Unpacks the first `frames` frames of a coded tensor; the caller frees *out; *wrong is what is
 * damaged. */
static cnr_status uncode(const cnr_tensor *t, int frames, void **out, uint64_t *bytes,
                         const char **wrong, cnr_error *err) {
    coded_header head;
    csr_header h;
    *wrong = "the compressed header is damaged";
    if (t->bytes < sizeof head + sizeof h) return CNR_OK;
    memcpy(&head, t->data, sizeof head);
    uint64_t at;
    if (head.reserved != 0 ||
        !csr_header_read((const char *)t->data + sizeof head, sizeof h, &h, &at) || at != sizeof h)
        return CNR_OK;
    if ((*wrong = csr_header_fault(&h, t)) != NULL) return CNR_OK;
    const csr_parts p = csr_parts_of(&h);
    const uint64_t fixed = sizeof h + p.table;
    uint64_t left = t->bytes - sizeof head;
    *wrong = "its compressed parts do not fit its size";
    if (left < fixed || p.all / MOST > t->bytes) return CNR_OK;
    left -= fixed;
    for (int i = 0; i < FRAMES; i++) {
        if (head.frame[i] > left) return CNR_OK;
        left -= head.frame[i];
    }
    if (left != 0) return CNR_OK;
    uint8_t *plain = (uint8_t *)csr_host->alloc(p.all);
    uint8_t *scratch = (uint8_t *)csr_host->alloc(largest(&h) + 8);
    if (plain && scratch) {
        memcpy(plain, (const char *)t->data + sizeof head, fixed);
        *wrong = unpack((const uint8_t *)t->data + sizeof head + fixed, &head, &h, frames, plain,
                        scratch);
    }
    csr_host->free(scratch);
    *out = plain;
    *bytes = p.all;
    return plain && scratch ? CNR_OK : no_memory(err);
}

#else

cnr_status csr_code(const void *plain, uint64_t bytes, void **out, uint64_t *coded,
                    cnr_error *err) {
    (void)plain, (void)bytes, (void)out, (void)coded;
    return csr_host->fail(err, CNR_E_UNSUPPORTED, "sparse-csr", "was built without zstd");
}

/* Where zstd was left out: fails. */
static cnr_status uncode(const cnr_tensor *t, int frames, void **out, uint64_t *bytes,
                         const char **wrong, cnr_error *err) {
    (void)t, (void)frames, (void)out, (void)bytes, (void)wrong;
    (void)spread, (void)gather, (void)to_lengths, (void)to_pointers, (void)parts_of;
    return csr_host->fail(err, CNR_E_UNSUPPORTED, "sparse-csr",
                          "is compressed by zstd, which this plugin was built without");
}

#endif

cnr_status csr_open(const cnr_tensor *t, csr_use use, csr_matrix *out, void **own, cnr_error *err) {
    const char *wrong = NULL;
    cnr_status status = CNR_OK;
    cnr_tensor plain = *t;
    *own = NULL;
    if (csr_is_coded(t->data, t->bytes)) {
        status = uncode(t, use == CSR_USE_ROWS ? 1 : FRAMES, own, &plain.bytes, &wrong, err);
        plain.data = *own;
    }
    if (!status && !wrong && use == CSR_USE_JUDGED) wrong = csr_check(&plain);
    if (!status && wrong) status = csr_host->fail(err, CNR_E_FORMAT, "sparse-csr", "%s", wrong);
    if (!status) {
        *out = csr_view(plain.data);
        return CNR_OK;
    }
    csr_host->free(*own);
    *own = NULL;
    return status;
}
