/* Reads protobuf files whose large fields stay in the file: a field that says where the bytes lie
 * takes their place. So weights are never in memory twice or thrice. */
#include "import_common.h"

#include <errno.h>
#include <unistd.h>

enum {
    WINDOW = 1 << 16, /* bytes that are read at a time */
    LENGTH_BYTES = 5, /* of a length that is written after what it counts */
    MOST_NESTED = 32  /* messages within messages, which an attacker's file chooses */
};

/* A file that is read from its begin to its end, and what is kept of it. */
typedef struct thin {
    const imp_thin_row *rows; /* ends with a row of zeros */
    int fd;
    uint64_t at, size;   /* in the file */
    uint64_t from, have; /* what of the file the window holds */
    uint8_t *window, *out;
    size_t n, room;
    int damaged; /* is no such message: it is read whole, and the parser says what is wrong */
    int failed;  /* out of memory, or not readable */
} thin;

/* Makes room for more bytes of output; NULL: out of memory. Else where they go. */
static uint8_t *extend(thin *t, uint64_t bytes) {
    if (bytes > SIZE_MAX / 4 - t->n) t->failed = 1;
    while (!t->failed && t->room - t->n < bytes + 1) {
        const size_t room = t->room * 2 + (size_t)bytes + WINDOW;
        uint8_t *more = imp_host->alloc(room);
        if (!more) t->failed = 1;
        else if (t->n) memcpy(more, t->out, t->n);
        imp_host->free(more ? t->out : NULL);
        if (more) t->out = more, t->room = room;
    }
    if (t->failed) return NULL;
    t->n += (size_t)bytes;
    return t->out + t->n - bytes;
}

/* The next byte of the file; -1: it ends or can't be read. */
static int next(thin *t) {
    if (t->at - t->from >= t->have || t->at < t->from) {
        ssize_t got;
        do got = pread(t->fd, t->window, WINDOW, (off_t)t->at);
        while (got < 0 && errno == EINTR);
        if (got < 0) t->failed = 1;
        t->from = t->at;
        t->have = got > 0 ? (uint64_t)got : 0;
        if (got <= 0) return -1;
    }
    return t->window[t->at++ - t->from];
}

/* Reads a number of up to 64 bits and copies its bytes if asked to. */
static uint64_t number(thin *t, int copied) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70 && !t->failed; shift += 7) {
        const int byte = next(t);
        uint8_t *to = copied && byte >= 0 ? extend(t, 1) : NULL;
        if (to) *to = (uint8_t)byte;
        if (byte < 0 || shift > 63) break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    t->damaged = 1;
    return 0;
}

/* Copies bytes of the file. */
static void copy(thin *t, uint64_t bytes) {
    uint8_t *to = extend(t, bytes);
    if (!to) return;
    const uint64_t in = t->at - t->from, left = in < t->have ? t->have - in : 0;
    const uint64_t here = bytes < left ? bytes : left;
    if (here) memcpy(to, t->window + in, (size_t)here);
    if (bytes > here && !imp_pread(t->fd, to + here, bytes - here, t->at + here)) t->damaged = 1;
    t->at += bytes;
}

/* Writes a number in the fewest bytes. */
static void put(thin *t, uint64_t value) {
    do {
        uint8_t *to = extend(t, 1);
        if (to) *to = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    } while (value >>= 7);
}

/* What a field of a message is: a message, IMP_THIN_BULK, or 0, which is copied as it is. */
static int32_t kind(const thin *t, int32_t of, uint64_t field) {
    for (const imp_thin_row *r = t->rows; r->of; r++)
        if (r->of == of && (uint64_t)r->field == field) return r->is;
    return 0;
}

/* Writes where bytes lie, and steps over them. */
static void refer(thin *t, uint64_t bytes) {
    const imp_place place = {t->at, bytes};
    put(t, (uint64_t)IMP_PLACE_FIELD << 3 | 2);
    put(t, sizeof place);
    uint8_t *to = extend(t, sizeof place);
    if (to) memcpy(to, &place, sizeof place);
    t->at += bytes;
}

static void message(thin *t, int32_t of, uint64_t end, int depth);

/* Copies a message that may hold bulk; its length is written once it is known. */
static void nested(thin *t, int32_t is, uint64_t bytes, int depth) {
    const size_t length = t->n;
    if (!extend(t, LENGTH_BYTES)) return;
    message(t, is, t->at + bytes, depth + 1);
    uint64_t value = t->n - length - LENGTH_BYTES;
    if (value >> (7 * LENGTH_BYTES - 3)) t->damaged = 1;
    for (int i = 0; i < LENGTH_BYTES && !t->failed; i++, value >>= 7)
        t->out[length + (size_t)i] = (uint8_t)((value & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
}

/* Copies a field that has a length, or refers to it. *bulk: how many fields of bulk came. */
static void counted(thin *t, int32_t of, uint64_t tag, uint64_t end, int depth, int *bulk) {
    const uint64_t bytes = number(t, 0);
    const int32_t known = kind(t, of, tag >> 3), is = bytes < IMP_BULK_LEAST ? 0 : known;
    if (known == IMP_THIN_BULK) ++*bulk;
    if (t->damaged || t->at > end || bytes > end - t->at || *bulk > 1) {
        t->damaged = 1; /* or bulk in several parts */
    } else if (is == IMP_THIN_BULK) {
        refer(t, bytes);
    } else {
        put(t, tag);
        if (is && depth < MOST_NESTED) nested(t, is, bytes, depth);
        else put(t, bytes), copy(t, bytes);
    }
}

/* Copies the fields of a message that ends at `end`. */
static void message(thin *t, int32_t of, uint64_t end, int depth) {
    int bulk = 0; /* fields of it */
    while (t->at < end && !t->damaged && !t->failed) {
        const uint64_t tag = number(t, 0);
        const unsigned wire = (unsigned)(tag & 7);
        if (t->at > end || tag >> 3 == 0 || tag >> 32) t->damaged = 1;
        else if (wire == 2) counted(t, of, tag, end, depth, &bulk);
        else {
            put(t, tag);
            if (wire == 0) number(t, 1);
            else if (wire == 1 || wire == 5) copy(t, wire == 1 ? 8 : 4);
            else t->damaged = 1;
        }
    }
    if (t->at != end) t->damaged = 1;
}

cnr_status imp_read_thin(const char *path, const imp_thin_row *rows, uint8_t **out, size_t *bytes,
                         cnr_error *err) {
    thin t = {.rows = rows};
    t.fd = imp_host->file_open(path, &t.size, err);
    if (t.fd < 0) return (cnr_status)(err ? err->code : CNR_E_IO);
    t.window = imp_host->alloc(WINDOW);
    if (t.window && t.size > 0) message(&t, rows->of, t.size, 0);
    close(t.fd);
    imp_host->free(t.window);
    if (t.window && t.out && !t.damaged && !t.failed) {
        t.out[t.n] = 0;
        *out = t.out;
        *bytes = t.n;
        return CNR_OK;
    }
    imp_host->free(t.out);
    return imp_read_file(path, out, bytes, err);
}
