/* Devices: judges transfers both ways, between memories, through views and maps, against bytes
 * on the host. */
#include "conform/judging.h"
#include <stdio.h>

/* Offsets and sizes near those at which implementations change their way of copying. */
static const uint32_t offsets[] = {0,  1,  2,  3,  4,  5,  7,   8,    12,   15,   16,
                                   17, 31, 32, 63, 64, 65, 127, 1000, 4095, 4096, 4097};
static const uint32_t sizes[] = {1,   2,    3,    4,    5,    7,    8,    9,    15,  16,
                                 17,  31,   33,   63,   64,   65,   127,  128,  255, 256,
                                 257, 1023, 1024, 1025, 4095, 4096, 4097, 65539};
enum { BYTES = 70 * 1024 };

/* Memory of a device and a copy of what it should hold. */
typedef struct copying {
    cnri_bay b;
    cnr_mem mem;
    /* Mirror: expected contents of the device's memory; got: what was read. */
    uint8_t mirror[BYTES], got[BYTES];
} copying;

/* True if the device's memory equals the mirror. */
static bool is_mirrored(copying *c, const cnr_mem *mem, const uint8_t *mirror, const char *after) {
    const size_t n = (size_t)mem->bytes;
    memset(c->got, 0x5a, n);
    if (!cnri_bay_read(&c->b, &c->b.stream, mem, 0, c->got, n)) return false;
    if (!cnri_bay_sync(&c->b, &c->b.stream)) return false;
    const size_t at = cnri_first_difference(mirror, c->got, n);
    return at == n || cnri_judging_fail(c->b.j, "%s: byte %zu of %zu is 0x%02x, 0x%02x is right",
                                        after, at, n, c->got[at], mirror[at]);
}

/* Opens a device and fills its memory. False: it failed, see the judging. */
static bool begin(copying *c, cnri_judging *j) {
    memset(c, 0, sizeof *c);
    if (!cnri_bay_begin(&c->b, j) || !cnri_bay_alloc(&c->b, &c->mem, BYTES)) return false;
    cnri_pattern(c->mirror, BYTES, 1);
    return cnri_bay_write(&c->b, &c->b.stream, &c->mem, 0, c->mirror, BYTES) &&
           is_mirrored(c, &c->mem, c->mirror, "after a write of all");
}

/* Frees the device's memory and closes the device. */
static void end(copying *c) {
    cnri_bay_free(&c->b, &c->mem);
    cnri_bay_close(&c->b);
}

/* Writes and reads once, each with host memory that ends with the data. False: it failed. */
static bool there_and_back(copying *c, uint32_t at, uint32_t n) {
    cnri_edge from, to;
    cnri_bay *b = &c->b;
    char after[64];
    snprintf(after, sizeof after, "%u bytes at offset %u", n, at);
    cnri_judging_case(b->j, "%s", after);
    bool good = cnri_edge_make(&from, n, 1);
    good = cnri_edge_make(&to, n, 1) && good;
    if (!good) cnri_judging_fail(b->j, "out of memory");
    if (good) {
        cnri_pattern(from.at, n, (uint64_t)at << 32 | n);
        memcpy(c->mirror + at, from.at, n);
    }
    good = good && cnri_bay_write(b, &b->stream, &c->mem, at, from.at, n) &&
           cnri_bay_sync(b, &b->stream) && cnri_bay_read(b, &b->stream, &c->mem, at, to.at, n) &&
           cnri_bay_sync(b, &b->stream);
    if (good && memcmp(from.at, to.at, n) != 0)
        good = cnri_judging_fail(b->j, "%s do not come back: byte %zu", after,
                                 cnri_first_difference(from.at, to.at, n));
    if (good && !cnri_edge_is_whole(&to))
        good = cnri_judging_fail(b->j, "%s: read wrote before its host memory", after);
    cnri_edge_free(&from);
    cnri_edge_free(&to);
    return good;
}

/* Queues 64 overlapping writes without waiting; false, with a finding: a later one didn't win. */
static bool overlapping(copying *c) {
    static uint8_t pieces[64][4096];
    cnri_bay *b = &c->b;
    bool good = true;
    cnri_judging_case(b->j, "64 overlapping writes, queued at once");
    for (int32_t i = 0; i < 64 && good; i++) {
        const uint64_t at = (uint64_t)cnri_dice_below(&b->j->dice, 12000);
        const uint64_t n = 1 + (uint64_t)cnri_dice_below(&b->j->dice, 4096);
        cnri_pattern(pieces[i], 4096, 1000 + (uint64_t)i);
        memcpy(c->mirror + at, pieces[i], n);
        good = cnri_bay_write(b, &b->stream, &c->mem, at, pieces[i], n);
    }
    return good && is_mirrored(c, &c->mem, c->mirror, "after overlapping writes");
}

/* Judges writes and reads at many offsets and sizes, also overlapping ones. False: a finding says
 * why it isn't so. */
bool cnri_judge_copies(cnri_judging *j) {
    static copying c;
    bool good = begin(&c, j);
    for (size_t i = 0; i < CNRI_COUNT(offsets) && good; i++) {
        for (size_t k = 0; k < CNRI_COUNT(sizes) && good; k++)
            if (offsets[i] + sizes[k] <= BYTES) good = there_and_back(&c, offsets[i], sizes[k]);
        good = good && is_mirrored(&c, &c.mem, c.mirror, "after writes to parts");
    }
    good = good && overlapping(&c);
    end(&c);
    return good;
}

/* ---- host memory of the device's own ---- */

enum { HOST_BLOCKS = 4 };

/* Copies bytes up from one block and down into the next, whose neighbours must not change. False:
 * it failed. */
static bool through_host_blocks(copying *c, uint8_t *const *blocks, uint32_t n, uint32_t turn) {
    cnri_bay *b = &c->b;
    uint8_t *from = blocks[turn % HOST_BLOCKS], *to = blocks[(turn + 1) % HOST_BLOCKS];
    cnri_judging_case(b->j, "%u bytes through host memory of the device", n);
    for (int32_t i = 0; i < HOST_BLOCKS; i++) memset(blocks[i], 0x30 + i, BYTES);
    cnri_pattern(from, n, 5000 + turn);
    const bool good = cnri_bay_write(b, &b->stream, &c->mem, 0, from, n) &&
                      cnri_bay_read(b, &b->stream, &c->mem, 0, to, n) &&
                      cnri_bay_sync(b, &b->stream);
    if (!good) return false;
    if (memcmp(from, to, n) != 0)
        return cnri_judging_fail(b->j, "%u bytes do not come back: byte %zu", n,
                                 cnri_first_difference(from, to, n));
    memcpy(c->mirror, from, n);
    for (int32_t i = 0; i < HOST_BLOCKS; i++)
        for (uint32_t k = blocks[i] == from || blocks[i] == to ? n : 0; k < BYTES; k++)
            if (blocks[i][k] != 0x30 + i)
                return cnri_judging_fail(b->j, "a transfer of %u bytes changed others", n);
    return true;
}

/* Judges host_alloc: memory that the device copies from and to; skipped without it. False: a
 * finding says why it isn't so. */
bool cnri_judge_host_memory(cnri_judging *j) {
    static copying c;
    const cnr_device_class *cls = j->descriptor;
    uint8_t *blocks[HOST_BLOCKS] = {NULL};
    if (!CNRI_HAS(cls, host_alloc)) return cnri_judging_skip(j, "the class has no host_alloc");
    if (!CNRI_HAS(cls, host_free)) return cnri_judging_fail(j, "host_alloc without host_free");
    bool good = begin(&c, j), has_all = true;
    for (int32_t i = 0; i < HOST_BLOCKS && good && has_all; i++) {
        blocks[i] = cls->host_alloc(&c.b.device, BYTES);
        has_all = blocks[i] != NULL;
        if ((uintptr_t)blocks[i] % 64)
            good = cnri_judging_fail(j, "host memory is not aligned to 64 bytes");
    }
    for (size_t k = 0; k < CNRI_COUNT(sizes) && good && has_all; k++)
        good = through_host_blocks(&c, blocks, sizes[k], (uint32_t)k);
    good = good && is_mirrored(&c, &c.mem, c.mirror, "after transfers through host memory");
    for (int32_t i = 0; i < HOST_BLOCKS; i++)
        if (blocks[i]) cls->host_free(&c.b.device, blocks[i]);
    end(&c);
    return good && !has_all ? cnri_judging_skip(j, "this device has no host memory of its own")
                            : good;
}

/* ---- on the device ---- */

/* Copies n bytes from one memory to another on the device. False: it failed. */
static bool copy(copying *c, const cnr_mem *from, const cnr_mem *to, uint64_t n) {
    cnr_error err = CNR_ERROR_INIT;
    return cnri_judging_ok(c->b.j, "copy", c->b.cls->copy(&c->b.stream, from, to, n, &err), &err);
}

/* Judges copies between two memories of the device; skipped without `copy`. False: a finding says
 * why it isn't so. */
bool cnri_judge_between(cnri_judging *j) {
    static copying c;
    static uint8_t other_mirror[BYTES];
    cnr_mem other = {0};
    if (!CNRI_HAS((const cnr_device_class *)j->descriptor, copy))
        return cnri_judging_skip(j, "the class has no copy");
    bool good = begin(&c, j) && cnri_bay_alloc(&c.b, &other, BYTES);
    cnri_pattern(other_mirror, BYTES, 2);
    good = good && cnri_bay_write(&c.b, &c.b.stream, &other, 0, other_mirror, BYTES);
    for (size_t k = 0; k < CNRI_COUNT(sizes) && good; k++) {
        cnri_judging_case(j, "copy of %u bytes", sizes[k]);
        memcpy(other_mirror, c.mirror, sizes[k]);
        good = copy(&c, &c.mem, &other, sizes[k]) &&
               is_mirrored(&c, &other, other_mirror, "after a copy to it") &&
               is_mirrored(&c, &c.mem, c.mirror, "after a copy from it");
        cnri_pattern(c.mirror, sizes[k], 77 + k); /* the next copy moves other bytes */
        good = good && cnri_bay_write(&c.b, &c.b.stream, &c.mem, 0, c.mirror, sizes[k]) &&
               cnri_bay_sync(&c.b, &c.b.stream);
    }
    cnri_bay_free(&c.b, &other);
    end(&c);
    return good;
}

/* ---- views ---- */

/* Judges a view of n bytes from byte `at` on. False: it failed. */
static bool view_one(copying *c, uint64_t at, uint64_t n) {
    cnri_bay *b = &c->b;
    const cnr_device_class *cls = b->cls;
    cnr_error err = CNR_ERROR_INIT;
    uint8_t data[600], got[600] = {0};
    cnr_mem part = c->mem;
    cnri_judging_case(b->j, "a view of %llu bytes at %llu", (unsigned long long)n,
                      (unsigned long long)at);
    part.offset += at; /* without the call: handle and offset */
    part.bytes = n;
    if (CNRI_HAS(cls, view) &&
        !cnri_judging_ok(b->j, "view", cls->view(&b->device, &c->mem, at, n, &part, &err), &err))
        return false;
    if (part.bytes != n) return cnri_judging_fail(b->j, "view gave another size");
    cnri_pattern(data, n, at + n);
    bool good = cnri_bay_read(b, &b->stream, &part, 0, got, n) && cnri_bay_sync(b, &b->stream);
    if (good && memcmp(got, c->mirror + at, n) != 0)
        good = cnri_judging_fail(b->j, "a view at %llu shows other bytes than lie there",
                                 (unsigned long long)at);
    good = good && cnri_bay_write(b, &b->stream, &part, 0, data, n) && cnri_bay_sync(b, &b->stream);
    memcpy(c->mirror + at, data, n);
    if (CNRI_HAS(cls, view) && CNRI_HAS(cls, unview)) cls->unview(&b->device, &part);
    return good && is_mirrored(c, &c->mem, c->mirror, "after a write through a view");
}

/* Judges views of parts of a memory; skipped if memory has no parts. False: a finding says why it
 * isn't so. */
bool cnri_judge_views(cnri_judging *j) {
    static copying c;
    bool good = begin(&c, j);
    const cnr_memory_class *m = good ? &c.b.device.memory[c.b.memory_class] : NULL;
    if (good && !(m->flags & CNR_MEMORY_PARTS)) {
        end(&c);
        return cnri_judging_skip(j, "memory has no parts");
    }
    for (uint32_t i = 0; i < 12 && good; i++) {
        const uint64_t at = (uint64_t)m->alignment * (i * i);
        if (at + 600 <= BYTES) good = view_one(&c, at, 1 + 53 * i);
    }
    end(&c);
    return good;
}

/* ---- maps ---- */

/* Judges map and unmap: the host sees and changes the memory's bytes; skipped without them. False:
 * a finding says why it isn't so. */
bool cnri_judge_map(cnri_judging *j) {
    static copying c;
    cnr_error err = CNR_ERROR_INIT;
    const cnr_device_class *cls = j->descriptor;
    if (!CNRI_HAS(cls, map) || !CNRI_HAS(cls, unmap))
        return cnri_judging_skip(j, "the class has no map");
    bool good = begin(&c, j);
    for (int32_t turn = 0; turn < 8 && good; turn++) {
        const int32_t writes = turn % 2;
        cnri_judging_case(j, "mapped to be %s", writes ? "written" : "read");
        cnri_pattern(c.mirror, 64, 300 + (uint64_t)turn);
        good = cnri_bay_write(&c.b, &c.b.stream, &c.mem, 0, c.mirror, 64);
        uint8_t *at = good ? cls->map(&c.b.stream, &c.mem, writes, &err) : NULL;
        if (!good) break;
        if (!at && c.b.is_host) {
            good = cnri_judging_fail(j, "map of host memory gives no address: %.300s", err.text);
            break;
        }
        if (!at) { /* then it is copied */
            end(&c);
            return cnri_judging_skip(j, "map says no: %.300s", err.text);
        }
        if (!writes) good = cnri_bay_sync(&c.b, &c.b.stream);
        if (good && memcmp(at, c.mirror, BYTES) != 0)
            good = cnri_judging_fail(j, "mapped memory is not what was written to it");
        if (writes) {
            cnri_pattern(c.mirror, BYTES, 400 + (uint64_t)turn);
            memcpy(at, c.mirror, BYTES);
        }
        cls->unmap(&c.b.stream, &c.mem, at);
        good = good && is_mirrored(&c, &c.mem, c.mirror, "after it was mapped");
    }
    end(&c);
    return good;
}
