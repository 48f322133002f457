/* Guarded host memory: accesses past its end crash, and writes before it are detected. The system
 * maps it, so that no allocator uses the pages around it.
 *
 *     | no access | canary ... | bytes | no access |
 */
#include "judge/fence.h"
#include <sys/mman.h>
#include <unistd.h>

enum { CANARY = 0xc3, LEAST_CANARY = 64 };

bool cnri_fence_make(cnri_fence *f, uint64_t bytes, uint32_t alignment) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t used = (size_t)((bytes + alignment - 1) / alignment * alignment);
    const size_t inner = (used + LEAST_CANARY + page - 1) / page * page;
    *f = (cnri_fence){.bytes = bytes, .all = inner + 2 * page};
    f->map = mmap(NULL, f->all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f->map == MAP_FAILED || mprotect(f->map + page, inner, PROT_READ | PROT_WRITE) != 0 ||
        !(f->before = cnri_alloc((size_t)bytes + 1))) {
        cnri_fence_free(f);
        return false;
    }
    f->first = f->map + page;
    f->data = f->first + inner - used;
    memset(f->first, CANARY, inner);
    return true;
}

void cnri_fence_fill(cnri_fence *f, const void *data, uint8_t poison) {
    if (data) memcpy(f->data, data, (size_t)f->bytes);
    else memset(f->data, poison, (size_t)f->bytes);
    memcpy(f->before, f->data, (size_t)f->bytes);
}

bool cnri_fence_check(const cnri_fence *f, bool bytes, const char *name, cnri_text *why) {
    for (const uint8_t *p = f->data; p-- > f->first;)
        if (*p != CANARY) {
            cnri_text_add(why, "wrote %lld bytes before %s", (long long)(f->data - p), name);
            return false;
        }
    const uint8_t *end = f->map + f->all - sysconf(_SC_PAGESIZE);
    for (const uint8_t *p = f->data + f->bytes; p < end; p++)
        if (*p != CANARY) {
            cnri_text_add(why, "wrote %lld bytes past the end of %s",
                          (long long)(p - f->data - (int64_t)f->bytes + 1), name);
            return false;
        }
    if (!bytes || memcmp(f->data, f->before, (size_t)f->bytes) == 0) return true;
    uint64_t at = 0;
    while (f->data[at] == f->before[at]) at++;
    cnri_text_add(why, "%s was changed, at byte %llu", name, (unsigned long long)at);
    return false;
}

/* Unmaps the memory and zeroes f; never made: nothing. */
void cnri_fence_free(cnri_fence *f) {
    if (f->map && f->map != MAP_FAILED) munmap(f->map, f->all);
    cnri_free(f->before);
    *f = (cnri_fence){0};
}
