/* Device memory with guard bands: filled with known bytes, and checked afterwards. */
#include "judge/trial.h"

enum { GUARD = 4096 };

/* Fills a guard with bytes that are NaN as f32, and every second time as 16-bit float, so that
 * reading them shows in the results. */
static void guard(uint8_t *to, uint64_t from, uint64_t end) {
    static const uint8_t pattern[4] = {0xc3, 0xc3, 0xc3, 0x7f};
    for (uint64_t i = from; i < end; i++) to[i] = pattern[i % 4];
}

bool cnri_said(cnri_text *why, const char *what, cnr_status status, const cnr_error *err) {
    if (status == CNR_OK) return true;
    cnri_text_add(why, "%s failed: %s", what, err->text[0] ? err->text : cnr_status_text(status));
    return false;
}

bool cnri_piece_make(cnri_piece *p, cnr_stream *stream, const cnr_space *space, uint64_t at,
                     cnri_text *why) {
    const cnr_device *device = stream->device;
    const cnr_device_class *cls = device->cls;
    cnr_error err = CNR_ERROR_INIT;
    *p = (cnri_piece){.device = device, .stream = stream, .bytes = space->bytes};
    if (space->memory_class < 0 || space->memory_class >= device->n_memory) {
        cnri_text_add(why, "the kernel asks for a memory class that the device does not have");
        return false;
    }
    const cnr_memory_class *m = &device->memory[space->memory_class];
    const bool image = m->flags & CNR_MEMORY_IMAGE, parts = m->flags & CNR_MEMORY_PARTS;
    uint64_t step = m->alignment > space->alignment ? m->alignment : space->alignment;
    if (step < 4) step = 4;
    if (parts && !image) p->head = (GUARD + step - 1) / step * step + at / step * step;
    p->total = p->head + p->bytes + (image ? 0 : GUARD);
    p->whole = (cnr_mem){.bytes = p->total, .memory_class = space->memory_class};
    if (image) {
        p->whole.width = space->width;
        p->whole.height = space->height;
    }
    if (p->total > (UINT64_C(1) << 32) || !(p->before = cnri_alloc((size_t)p->total))) {
        cnri_text_add(why, "the kernel wants %llu bytes", (unsigned long long)p->bytes);
        return false;
    }
    if (!cnri_said(why, "alloc", cnri_device_alloc(device, &p->whole, &err), &err)) return false;
    p->made = true;
    p->mem = p->whole;
    p->mem.bytes = p->bytes;
    p->mem.offset += p->head;
    if (p->head && CNRI_HAS(cls, view)) {
        const cnr_status status = cls->view(device, &p->whole, p->head, p->bytes, &p->mem, &err);
        if (!cnri_said(why, "view", status, &err)) return false;
        p->viewed = true;
    }
    if (m->flags & CNR_MEMORY_HOST) p->host = (char *)p->mem.handle + p->mem.offset;
    return true;
}

/* Fills the piece with `data` (NULL: with bytes `poison`), and its guards. False: writing to the
 * device failed, see why. */
bool cnri_piece_fill(cnri_piece *p, const void *data, uint8_t poison, cnri_text *why) {
    const cnr_device_class *cls = p->device->cls;
    cnr_error err = CNR_ERROR_INIT;
    guard(p->before, 0, p->head);
    guard(p->before, p->head + p->bytes, p->total);
    if (data) memcpy(p->before + p->head, data, (size_t)p->bytes);
    else memset(p->before + p->head, poison, (size_t)p->bytes);
    if (p->total == 0) return true;
    cnr_status status = cls->write(p->stream, &p->whole, 0, p->before, p->total, &err);
    if (!status) status = cls->sync(p->stream, &err);
    return cnri_said(why, "write", status, &err);
}

/* The first byte from `at` to `end` that was changed; `end`: none was. */
static uint64_t changed(const cnri_piece *p, const uint8_t *now, uint64_t at, uint64_t end) {
    if (memcmp(now + at, p->before + at, (size_t)(end - at)) == 0) return end;
    while (now[at] == p->before[at]) at++;
    return at;
}

bool cnri_piece_check(cnri_piece *p, bool bytes, const char *name, void *data, cnri_text *why) {
    const cnr_device_class *cls = p->device->cls;
    cnr_error err = CNR_ERROR_INIT;
    uint8_t *now = cnri_alloc((size_t)p->total + 1);
    uint64_t at = 0;
    bool good = now != NULL;
    if (!good) cnri_text_add(why, "out of memory");
    cnr_status status = CNR_OK;
    if (good && p->total) status = cls->read(p->stream, &p->whole, 0, now, p->total, &err);
    if (good && !status) status = cls->sync(p->stream, &err);
    good = good && cnri_said(why, "read", status, &err);
    const uint64_t end = p->head + p->bytes;
    if (good && (at = changed(p, now, 0, p->head)) < p->head)
        cnri_text_add(why, "wrote %llu bytes before %s", (unsigned long long)(p->head - at), name);
    else if (good && bytes && (at = changed(p, now, p->head, end)) < end)
        cnri_text_add(why, "%s was changed, at byte %llu", name,
                      (unsigned long long)(at - p->head));
    else if (good && (at = changed(p, now, end, p->total)) < p->total)
        cnri_text_add(why, "wrote past the end of %s, by %llu bytes", name,
                      (unsigned long long)(at - end + 1));
    good = good && at == p->total;
    if (good && data) memcpy(data, now + p->head, (size_t)p->bytes);
    cnri_free(now);
    return good;
}

/* Frees the device's memory and the copies; never made: nothing. */
void cnri_piece_free(cnri_piece *p) {
    if (p->viewed && CNRI_HAS(p->device->cls, unview)) p->device->cls->unview(p->device, &p->mem);
    if (p->made) p->device->cls->free(p->device, &p->whole);
    cnri_free(p->before);
    *p = (cnri_piece){0};
}
