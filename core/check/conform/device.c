/* Devices: judges how they describe themselves, how they open, and their memory. */
#include "conform/judging.h"
#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* ---- an open device ---- */

/* Gives a device the name that the host would give it. */
static void name_device(cnri_bay *b, const cnr_device_info *info) {
    const cnr_device_class *cls = b->cls;
    if (info->part[0]) snprintf(b->name, sizeof b->name, "%.20s:%.24s", cls->family, info->part);
    else if (cls->flags & CNR_DEVICE_SINGLE)
        snprintf(b->name, sizeof b->name, "%.40s", cls->family);
    else snprintf(b->name, sizeof b->name, "%.30s:%d", cls->family, (int)b->j->index);
}

bool cnri_bay_open(cnri_bay *b, cnri_judging *j, int32_t threads) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_device_info info = {.size = sizeof info};
    const cnr_device_options options = {.size = sizeof options, .threads = threads};
    *b = (cnri_bay){.j = j, .cls = j->descriptor, .memory_class = -1};
    const int32_t n = b->cls->count(&err);
    if (n <= j->index)
        return cnri_judging_fail(j, "count says %d, and there was a device %d before", (int)n,
                                 (int)j->index);
    if (!cnri_judging_ok(j, "describe", b->cls->describe(j->index, &info, &err), &err))
        return false;
    name_device(b, &info);
    b->device =
        (cnr_device){.size = sizeof b->device, .index = j->index, .cls = b->cls, .name = b->name};
    if (!cnri_judging_ok(j, "open", b->cls->open(&b->device, &options, &err), &err)) return false;
    b->is_open = true;
    if (!b->device.memory || b->device.n_memory < 1)
        return cnri_judging_fail(j, "open gave no memory class");
    for (int32_t i = b->device.n_memory - 1; i >= 0; i--)
        if (!(b->device.memory[i].flags & CNR_MEMORY_IMAGE)) b->memory_class = i;
    if (b->memory_class < 0) return cnri_judging_fail(j, "all memory classes are images");
    b->is_host = b->device.memory[b->memory_class].flags & CNR_MEMORY_HOST;
    return true;
}

bool cnri_bay_stream(cnri_bay *b, cnr_stream *out, uint32_t flags) {
    cnr_error err = CNR_ERROR_INIT;
    *out = (cnr_stream){.size = sizeof *out,
                        .device = &b->device,
                        .cancel = &b->cancel,
                        .flags = flags};
    return cnri_judging_ok(b->j, "stream_open", b->cls->stream_open(&b->device, out, &err), &err);
}

bool cnri_bay_begin(cnri_bay *b, cnri_judging *j) {
    return cnri_bay_open(b, j, cnri_check_threads()) &&
           (b->has_stream = cnri_bay_stream(b, &b->stream, 0));
}

void cnri_bay_close(cnri_bay *b) {
    if (b->has_stream) b->cls->stream_close(&b->stream);
    if (b->is_open) b->cls->close(&b->device);
    b->has_stream = b->is_open = false;
}

/* Allocates `bytes` in the class that is judged, into *out, for cnri_bay_free. False: it failed,
 * with a finding. */
bool cnri_bay_alloc(cnri_bay *b, cnr_mem *out, uint64_t bytes) {
    cnr_error err = CNR_ERROR_INIT;
    /* alloc sets handle and offset */
    *out = (cnr_mem){.bytes = bytes, .offset = UINT64_C(1) << 60, .memory_class = b->memory_class};
    if (!cnri_judging_ok(b->j, "alloc", b->cls->alloc(&b->device, out, &err), &err)) return false;
    if (!out->handle)
        return cnri_judging_fail(b->j, "alloc of %llu bytes gave no handle",
                                 (unsigned long long)bytes);
    if (out->bytes != bytes || out->memory_class != b->memory_class)
        return cnri_judging_fail(b->j, "alloc changed the size or the class of the memory");
    return true;
}

/* Frees the memory and clears it; accepts memory that was never allocated. */
void cnri_bay_free(cnri_bay *b, cnr_mem *mem) {
    if (mem->handle) b->cls->free(&b->device, mem);
    *mem = (cnr_mem){0};
}

bool cnri_bay_write(cnri_bay *b, cnr_stream *s, const cnr_mem *to, uint64_t at, const void *from,
                    uint64_t n) {
    cnr_error err = CNR_ERROR_INIT;
    return cnri_judging_ok(b->j, "write", b->cls->write(s, to, at, from, n, &err), &err);
}

bool cnri_bay_read(cnri_bay *b, cnr_stream *s, const cnr_mem *from, uint64_t at, void *to,
                   uint64_t n) {
    cnr_error err = CNR_ERROR_INIT;
    return cnri_judging_ok(b->j, "read", b->cls->read(s, from, at, to, n, &err), &err);
}

bool cnri_bay_sync(cnri_bay *b, cnr_stream *s) {
    cnr_error err = CNR_ERROR_INIT;
    return cnri_judging_ok(b->j, "sync", b->cls->sync(s, &err), &err);
}

bool cnri_bay_load(cnri_bay *b, cnr_stream *s, const cnr_mem *to, const void *from, int32_t times) {
    bool good = true;
    for (int32_t i = 0; i < times && good; i++) good = cnri_bay_write(b, s, to, 0, from, to->bytes);
    return good;
}

bool cnri_bay_queues(const cnri_bay *b) {
    return CNRI_HAS(b->cls, event_record) && CNRI_HAS(b->cls, event_wait);
}

/* ---- what it says of itself ---- */

/* Judges what the class says of one device. False: it failed. */
static bool describe_one(cnri_judging *j, int32_t index, cnr_device_info *info) {
    const cnr_device_class *cls = j->descriptor;
    cnr_error err = CNR_ERROR_INIT;
    *info = (cnr_device_info){.size = sizeof *info};
    cnri_judging_case(j, "describe device %d", (int)index);
    if (!cnri_judging_ok(j, "describe", cls->describe(index, info, &err), &err)) return false;
    if (info->size != sizeof *info) return cnri_judging_fail(j, "describe changed the size");
    if (!memchr(info->part, 0, sizeof info->part)) return cnri_judging_fail(j, "part has no end");
    if (info->score <= 0)
        return cnri_judging_name(j, "why of a device that can't be driven", info->why,
                                 sizeof info->why);
    if (info->concurrency < 1)
        return cnri_judging_fail(j, "concurrency is %d: want the number of its units, at least 1",
                                 (int)info->concurrency);
    if (CNRI_HAS(cls, max_score) && cls->max_score() < info->score)
        return cnri_judging_fail(j, "most says %d, and device %d scores %d", (int)cls->max_score(),
                                 (int)index, (int)info->score);
    return cnri_judging_name(j, "key", info->key, sizeof info->key) &&
           cnri_judging_name(j, "name", info->name, sizeof info->name) &&
           cnri_judging_name(j, "driver", info->driver, sizeof info->driver);
}

bool cnri_judge_describe(cnri_judging *j) {
    enum { MOST = 16 };
    static cnr_device_info list[MOST], again;
    const cnr_device_class *cls = j->descriptor;
    cnr_error err = CNR_ERROR_INIT;
    cnri_judging_case(j, "count");
    const int32_t n = cls->count(&err);
    if (n < 0 && !cnri_judging_spoke(j, "count", n, &err)) return false;
    if (n < 0) return cnri_judging_skip(j, "count failed: %.600s", err.text);
    if (n == 0) return cnri_judging_skip(j, "there is no such device here");
    for (int32_t i = 0; i < n && i < MOST; i++) {
        if (!describe_one(j, i, &list[i]) || !describe_one(j, i, &again)) return false;
        if (strcmp(list[i].key, again.key) != 0 || list[i].score != again.score)
            return cnri_judging_fail(j, "device %d: describe gives another key or score each time",
                                     (int)i);
        for (int32_t k = 0; k < i; k++)
            if (list[i].score > 0 && list[k].score > 0 && strcmp(list[i].key, list[k].key) == 0)
                return cnri_judging_fail(j, "devices %d and %d have one key, \"%s\"", (int)k,
                                         (int)i, list[i].key);
        if (list[i].score <= 0) continue;
        cnri_bay b = {.j = j, .cls = cls};
        j->index = i;
        name_device(&b, &list[i]);
        cnri_work_tell("device", i, b.name);
    }
    return cls->count(&err) == n || cnri_judging_fail(j, "count gives another number each time");
}

/* ---- opening ---- */

/* False, with a finding: a memory class of the open device has no name or a wrong alignment. */
static bool judge_classes(const cnri_bay *b) {
    for (int32_t i = 0; i < b->device.n_memory; i++) {
        const cnr_memory_class *m = &b->device.memory[i];
        if (!m->name || !*m->name)
            return cnri_judging_fail(b->j, "memory class %d has no name", (int)i);
        if (m->alignment == 0 || m->alignment & (m->alignment - 1))
            return cnri_judging_fail(b->j, "memory class %s: alignment %u is no power of two",
                                     m->name, m->alignment);
        if (m->max_bytes == 0 && !(m->flags & CNR_MEMORY_IMAGE))
            return cnri_judging_fail(b->j, "memory class %s: max_bytes is 0", m->name);
        if (m->flags & CNR_MEMORY_IMAGE && (m->max_width < 1 || m->max_height < 1))
            return cnri_judging_fail(b->j, "memory class %s: an image without sizes", m->name);
    }
    return b->device.concurrency >= 1 ||
           cnri_judging_fail(b->j, "open: concurrency is %d", (int)b->device.concurrency);
}

/* True if a few bytes can be written and read back. */
static bool works(cnri_bay *b) {
    uint8_t in[300], out[300] = {0};
    cnr_mem mem = {0};
    cnri_pattern(in, sizeof in, 7);
    const bool good = cnri_bay_alloc(b, &mem, sizeof in) &&
                      cnri_bay_write(b, &b->stream, &mem, 0, in, sizeof in) &&
                      cnri_bay_read(b, &b->stream, &mem, 0, out, sizeof out) &&
                      cnri_bay_sync(b, &b->stream);
    cnri_bay_free(b, &mem);
    if (!good) return false;
    return memcmp(in, out, sizeof in) == 0 ||
           cnri_judging_fail(b->j, "bytes that were written do not come back");
}

/* Judges opening and closing, also of two devices at once. False: a finding says why it isn't
 * so. */
bool cnri_judge_open(cnri_judging *j) {
    cnri_bay a = {0}, b = {0};
    bool good = true;
    for (int32_t turn = 0; turn < 3 && good; turn++) {
        cnri_judging_case(j, "opened for the %d. time, beside another", 2 * (int)turn + 1);
        good = cnri_bay_open(&a, j, 1) && judge_classes(&a) &&
               (a.has_stream = cnri_bay_stream(&a, &a.stream, 0)) && cnri_bay_open(&b, j, 3) &&
               (b.has_stream = cnri_bay_stream(&b, &b.stream, 0)) && works(&a) && works(&b);
        cnri_bay_close(&a);
        good = good && works(&b); /* the other has closed */
        cnri_bay_close(&b);
    }
    return good;
}

/* ---- memory ---- */

enum { BLOCKS = 24 };

/* Judges that an allocation of too many bytes fails with an error. False, with a finding: it
 * succeeds or says nothing. */
static bool judge_too_large(cnri_bay *b, uint64_t bytes) {
    cnr_mem mem = {.bytes = bytes, .memory_class = b->memory_class};
    cnr_error err = CNR_ERROR_INIT;
    cnri_judging_case(b->j, "alloc of %llu bytes", (unsigned long long)bytes);
    const cnr_status status = b->cls->alloc(&b->device, &mem, &err);
    if (status == CNR_OK)
        return cnri_judging_fail(b->j, "alloc of %llu bytes succeeded; max_bytes is %llu",
                                 (unsigned long long)bytes,
                                 (unsigned long long)b->device.memory[b->memory_class].max_bytes);
    return cnri_judging_spoke(b->j, "alloc", status, &err);
}

/* Allocates blocks of many sizes and fills each with its own pattern. False: it failed. */
static bool fill_blocks(cnri_bay *b, cnr_mem *blocks, uint8_t *data) {
    const cnr_memory_class *m = &b->device.memory[b->memory_class];
    static const uint32_t sizes[] = {1, 3, 4, 63, 64, 65, 1000, 4095, 4096, 4097, 70000, 262144};
    for (int32_t i = 0; i < BLOCKS; i++) {
        const uint32_t n = sizes[i % 12];
        cnri_judging_case(b->j, "alloc of %u bytes", n);
        if (!cnri_bay_alloc(b, &blocks[i], n)) return false;
        if (b->is_host && ((uintptr_t)blocks[i].handle + blocks[i].offset) % m->alignment)
            return cnri_judging_fail(b->j, "%u bytes: the address is not aligned to %u", n,
                                     m->alignment);
        cnri_pattern(data, n, (uint64_t)i);
        if (!cnri_bay_write(b, &b->stream, &blocks[i], 0, data, n)) return false;
        if (!cnri_bay_sync(b, &b->stream)) return false;
    }
    return true;
}

/* Checks that all blocks have kept their patterns. False: it failed. */
static bool check_blocks(cnri_bay *b, const cnr_mem *blocks, uint8_t *data, uint8_t *got) {
    for (int32_t i = 0; i < BLOCKS; i++) {
        const size_t n = (size_t)blocks[i].bytes;
        cnri_judging_case(b->j, "reading block %d of %zu bytes", (int)i, n);
        cnri_pattern(data, n, (uint64_t)i);
        if (!cnri_bay_read(b, &b->stream, &blocks[i], 0, got, n)) return false;
        if (!cnri_bay_sync(b, &b->stream)) return false;
        const size_t at = cnri_first_difference(data, got, n);
        if (at < n)
            return cnri_judging_fail(b->j,
                                     "byte %zu of a block of %zu bytes changed while others were "
                                     "written",
                                     at, n);
        if (!b->is_host) continue;
        const uint8_t *here = (const uint8_t *)blocks[i].handle + blocks[i].offset;
        if (memcmp(here, data, n) != 0)
            return cnri_judging_fail(b->j, "host memory: handle + offset is not where the bytes "
                                           "are");
    }
    return true;
}

/* Pages of the process that are in memory; 0: not known. */
static int64_t resident_pages(void) {
    long long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%lld %lld", &all, &resident) != 2) resident = 0;
    if (file) fclose(file);
    return resident;
}

/* Judges that freed memory can be allocated again: allocating a large block many times must not
 * take more memory. False, with a finding. */
static bool judge_freed(cnri_bay *b) {
    enum { TIMES = 40, PART = 262144 };
    static const uint8_t data[PART];
    const uint64_t bytes = 4 * CNRI_MIB;
    int64_t first = 0;
    bool good = true;
    cnri_judging_case(b->j, "%d blocks of 4 MiB, each freed before the next", (int)TIMES);
    for (int32_t i = 0; i < TIMES && good; i++) {
        cnr_mem block = {0};
        good = cnri_bay_alloc(b, &block, bytes);
        for (uint64_t at = 0; at < bytes && good; at += PART)
            good = cnri_bay_write(b, &b->stream, &block, at, data, PART);
        good = good && cnri_bay_sync(b, &b->stream);
        cnri_bay_free(b, &block);
        if (i == 4) first = resident_pages();
    }
    const int64_t more = (resident_pages() - first) * (int64_t)sysconf(_SC_PAGESIZE);
    if (!good || !first || more < (TIMES / 2) * (int64_t)bytes) return good;
    return cnri_judging_fail(b->j, "%lld MiB stay taken of blocks that were freed",
                             (long long)(more / (int64_t)CNRI_MIB));
}

/* Judges allocation: sizes, alignment, and refusal of what is too large. False: a finding says why
 * it isn't so. */
bool cnri_judge_memory(cnri_judging *j) {
    static uint8_t data[262144], got[262144];
    cnr_mem blocks[BLOCKS] = {{0}};
    cnri_bay b = {0};
    bool good = cnri_bay_begin(&b, j);
    const uint64_t most = good ? b.device.memory[b.memory_class].max_bytes : 0;
    good = good && fill_blocks(&b, blocks, data) && check_blocks(&b, blocks, data, got) &&
           judge_too_large(&b, UINT64_C(1) << 62) &&
           (most >= UINT64_C(1) << 62 || judge_too_large(&b, most + 1)) &&
           check_blocks(&b, blocks, data, got);
    for (int32_t i = 0; i < BLOCKS; i++) cnri_bay_free(&b, &blocks[i]);
    good = good && works(&b) && judge_freed(&b);
    cnri_bay_close(&b);
    return good;
}

/* ---- facts ---- */

/* Whether the facts of a device were right so far. */
typedef struct facts {
    cnri_judging *j;
    bool good;
} facts;

/* Judges one fact: its name, and that its number is finite and not negative. */
static void hear_fact(void *arg, const char *name, const char *text, double value) {
    facts *f = arg;
    const bool named =
        name && *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == strlen(name);
    if (f->good && !named)
        f->good = cnri_judging_fail(f->j, "fact \"%.60s\": names are of a-z, 0-9, _ and one dot",
                                    name ? name : "(none)");
    if (f->good && !text && !(isfinite(value) && value >= 0))
        f->good = cnri_judging_fail(f->j, "fact %.60s is %g", name, value);
}

/* Judges the device's properties: names and numbers; skipped without the method. False: a finding
 * says why it isn't so. */
bool cnri_judge_facts(cnri_judging *j) {
    cnri_bay b = {0};
    facts f = {.j = j, .good = true};
    cnr_error err = CNR_ERROR_INIT;
    if (!CNRI_HAS((const cnr_device_class *)j->descriptor, properties))
        return cnri_judging_skip(j, "the class has no properties");
    bool good = cnri_bay_begin(&b, j);
    cnri_judging_case(j, "without a stream");
    good = good && cnri_judging_ok(j, "facts",
                                   b.cls->properties(j->index, NULL, hear_fact, &f, &err), &err);
    cnri_judging_case(j, "measured on its stream");
    good = good &&
           cnri_judging_ok(j, "facts", b.cls->properties(j->index, &b.stream, hear_fact, &f, &err),
                           &err) &&
           f.good;
    cnri_bay_close(&b);
    return good;
}
