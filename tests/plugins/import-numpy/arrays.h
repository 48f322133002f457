/* Writes valid and invalid .npy arrays, and zip archives of them, byte by byte. */
#ifndef CNRT_ARRAYS_H
#define CNRT_ARRAYS_H

#include "plugins/importing.h"

/* Bytes that are written. */
typedef struct bytes {
    uint8_t *at;
    size_t n, room;
} bytes;

/* Writes n bytes. */
static void put(bytes *b, const void *data, size_t n) {
    if (n == 0) return;
    if (b->n + n > b->room) {
        b->room = 2 * (b->n + n) + 64;
        b->at = realloc(b->at, b->room);
        if (!b->at) exit(1);
    }
    if (n) memcpy(b->at + b->n, data, n);
    b->n += n;
}
/* Writes a number in `width` bytes, the lowest first. */
static void put_number(bytes *b, uint64_t value, int width) {
    for (int i = 0; i < width; i++, value >>= 8) put(b, &(uint8_t){(uint8_t)value}, 1);
}

/* ---- arrays ---- */

/* Writes the header's literal unchanged, then the elements. */
static bytes CNRT_UNUSED npy_text(int version, const char *literal, const void *data, size_t n) {
    bytes b = {0};
    put(&b, "\x93NUMPY", 6);
    put_number(&b, (uint64_t)version, 1);
    put_number(&b, 0, 1);
    put_number(&b, strlen(literal), version == 1 ? 2 : 4);
    put(&b, literal, strlen(literal));
    put(&b, data, n);
    return b;
}

/* shape: "(2, 3)" */
static bytes CNRT_UNUSED npy(const char *type, int fortran, const char *shape, const void *data,
                             size_t n) {
    char literal[300];
    snprintf(literal, sizeof literal, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }   \n",
             type, fortran ? "True" : "False", shape);
    return npy_text(1, literal, data, n);
}

static bytes CNRT_UNUSED floats(const char *shape, const float *data, int64_t n) {
    return npy("<f4", 0, shape, data, (size_t)n * sizeof *data);
}

/* ---- deflate: literals and runs of the byte before, in the fixed code ---- */

/* Bits that are written. */
typedef struct bits {
    bytes out;
    uint32_t last, n;
} bits;

/* Writes n bits of the value, the lowest or (high_first) the highest first. */
static void put_bits(bits *b, uint32_t value, uint32_t n, int high_first) {
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t bit = value >> (high_first ? n - 1 - i : i) & 1;
        b->last |= bit << b->n;
        if (++b->n < 8) continue;
        put_number(&b->out, b->last, 1);
        b->last = b->n = 0;
    }
}

static bytes CNRT_UNUSED deflated(const uint8_t *data, size_t n) {
    bits b = {.n = 0};
    put_bits(&b, 1, 1, 0);
    put_bits(&b, 1, 2, 0);
    for (size_t i = 0; i < n;) {
        size_t run = 0;
        while (i > 0 && run < 258 && i + run < n && data[i + run] == data[i - 1]) run++;
        if (run == 258) { /* length 258 at distance 1 */
            put_bits(&b, 0xc5, 8, 1);
            put_bits(&b, 0, 5, 1);
            i += run;
        } else {
            const uint32_t c = data[i++];
            if (c < 144) put_bits(&b, 0x30 + c, 8, 1);
            else put_bits(&b, 0x190 + c - 144, 9, 1);
        }
    }
    put_bits(&b, 0, 7, 1);
    put_bits(&b, 0, 7, 0); /* to a whole byte */
    return b.out;
}

/* ---- zip ---- */

enum { ZIP_DEFLATED = 1, ZIP_64 = 2, ZIP_BAD_SUM = 4 };

/* A zip archive that is written. */
typedef struct archive {
    bytes out, directory;
    int n;
} archive;

/* The checksum of zip. */
static uint32_t crc(const uint8_t *data, size_t n) {
    uint32_t sum = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        sum ^= data[i];
        for (int k = 0; k < 8; k++) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
    }
    return ~sum;
}

/* Appends what a local and a central head of zip have in common, from the version wanted to the
 * length of the extra field. name: length of the name. flags: ZIP_64: the sizes stand in an extra
 * field (see zip_wide); ZIP_DEFLATED; ZIP_BAD_SUM: a wrong checksum. */
static void zip_head(bytes *b, uint32_t sum, uint64_t packed, uint64_t whole, size_t name,
                     int flags) {
    const int wide = flags & ZIP_64;
    put_number(b, wide ? 45 : 20, 2);
    put_number(b, 0, 2);
    put_number(b, flags & ZIP_DEFLATED ? 8 : 0, 2);
    put_number(b, 0x21 << 16, 4);
    put_number(b, sum ^ (flags & ZIP_BAD_SUM ? 1 : 0), 4);
    put_number(b, wide ? 0xffffffff : packed, 4);
    put_number(b, wide ? 0xffffffff : whole, 4);
    put_number(b, name, 2);
    put_number(b, wide ? 20 : 0, 2);
}

/* Writes sizes of 8 bytes. */
static void zip_wide(bytes *b, uint64_t packed, uint64_t whole) {
    put_number(b, 1, 2);
    put_number(b, 16, 2);
    put_number(b, whole, 8);
    put_number(b, packed, 8);
}

/* Takes ownership of `array`. claims: a wrong size to state; 0: the real one. */
static void CNRT_UNUSED zip_add(archive *z, const char *name, bytes array, int flags,
                                uint64_t claims) {
    bytes packed = flags & ZIP_DEFLATED ? deflated(array.at, array.n) : array;
    const uint64_t whole = claims ? claims : array.n, offset = z->out.n;
    const uint32_t sum = crc(array.at, array.n);
    put(&z->out, "PK\3\4", 4);
    zip_head(&z->out, sum, packed.n, whole, strlen(name), flags);
    put(&z->out, name, strlen(name));
    if (flags & ZIP_64) zip_wide(&z->out, packed.n, whole);
    put(&z->out, packed.at, packed.n);
    put(&z->directory, "PK\1\2", 4);
    put_number(&z->directory, flags & ZIP_64 ? 45 : 20, 2);
    zip_head(&z->directory, sum, packed.n, whole, strlen(name), flags);
    put_number(&z->directory, 0, 10);
    put_number(&z->directory, offset, 4);
    put(&z->directory, name, strlen(name));
    if (flags & ZIP_64) zip_wide(&z->directory, packed.n, whole);
    z->n++;
    if (packed.at != array.at) free(packed.at);
    free(array.at);
}

/* Writes it into this test's folder; the archive is empty afterwards. */
static const char *CNRT_UNUSED zip_save(archive *z, const char *name) {
    const char *path = cnrt_path(name);
    const size_t offset = z->out.n;
    put(&z->out, z->directory.at ? z->directory.at : (uint8_t *)"", z->directory.n);
    put(&z->out, "PK\5\6\0\0\0", 8);
    put_number(&z->out, (uint64_t)z->n, 2);
    put_number(&z->out, (uint64_t)z->n, 2);
    put_number(&z->out, z->directory.n, 4);
    put_number(&z->out, offset, 4);
    put_number(&z->out, 0, 2);
    cnrt_write(path, z->out.at, z->out.n);
    free(z->out.at);
    free(z->directory.at);
    *z = (archive){0};
    return path;
}

static const char *CNRT_UNUSED npy_save(const char *name, bytes array) {
    const char *path = cnrt_path(name);
    cnrt_write(path, array.at, array.n);
    free(array.at);
    return path;
}

#endif
