/* Every allocation of cnnrun: 64-byte aligned, counted, and able to fail on purpose in tests. */
#include "base/base.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A block, and what a caller sees of it:
 *
 *     |<------- ALIGNMENT ------->|
 *     [ bytes |      unused       ][ the caller's bytes ... ]
 *
 * The size in front lets resize copy no more than was asked for, which malloc_usable_size does not
 * promise to be safe. */
enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

static atomic_llong count;
static atomic_llong fails_from, fails_to; /* numbers of the allocations that fail; 0: none fails */
static _Thread_local int64_t failures;

#ifdef CNRI_HOSTILE
/* Reads the variables by which tests let an allocation fail: CNNRUN_FAIL_ALLOC (from the n-th on),
 * _ONCE (only it) */
static void read_environment(void) {
    const char *text = getenv("CNNRUN_FAIL_ALLOC"), *once = getenv("CNNRUN_FAIL_ALLOC_ONCE");
    int64_t n;
    if (text && cnri_parse_int(text, &n)) cnri_alloc_fail_at(n);
    if (once && cnri_parse_int(once, &n)) cnri_alloc_fail_once(n);
}
#endif

/* True if this allocation is one that a test makes fail. */
static bool doomed(void) {
#ifdef CNRI_HOSTILE
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
#endif
    const long long n = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
    const long long from = atomic_load_explicit(&fails_from, memory_order_relaxed);
    return from != 0 && n >= from && n <= atomic_load_explicit(&fails_to, memory_order_relaxed);
}

static size_t *header(void *block) { return (size_t *)(void *)((char *)block - ALIGNMENT); }

/* Alignment in bytes of a block of this size. Large blocks use huge pages, because faulting in
 * small pages costs more than filling the memory. */
static size_t alignment_for(size_t bytes) {
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE) return HUGE_PAGE;
#endif
    (void)bytes;
    return ALIGNMENT;
}

/* Asks the operating system for huge pages in the whole huge pages of a block. */
static void prefer_huge(void *raw, size_t bytes) {
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE) (void)madvise(raw, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#else
    (void)raw;
    (void)bytes;
#endif
}

/* Allocates a block behind a header with its size. NULL: out of memory, counted as a failure. */
static void *aligned(size_t bytes, size_t alignment) {
    void *raw;
    if (doomed() || bytes > SIZE_MAX - 2 * HUGE_PAGE ||
        posix_memalign(&raw, alignment, bytes + ALIGNMENT) != 0) {
        failures++;
        return NULL;
    }
    if (alignment == HUGE_PAGE) prefer_huge(raw, bytes);
    *(size_t *)raw = bytes;
    return (char *)raw + ALIGNMENT;
}

void *cnri_alloc(size_t bytes) { return aligned(bytes, alignment_for(bytes)); }

void *cnri_alloc_sparse(size_t bytes) { return aligned(bytes, ALIGNMENT); }

void *cnri_alloc_optional(size_t bytes) {
    const int64_t before = failures;
    void *block = aligned(bytes, ALIGNMENT);
    failures = before;
    return block;
}

void *cnri_alloc_zero(size_t bytes) {
    void *block = cnri_alloc(bytes);
    if (block) memset(block, 0, bytes);
    return block;
}

void *cnri_resize(void *block, size_t bytes) {
    void *larger = cnri_alloc(bytes);
    if (!larger || !block) return larger;
    const size_t kept = *header(block) < bytes ? *header(block) : bytes;
    memcpy(larger, block, kept);
    cnri_free(block);
    return larger;
}

void cnri_free(void *block) {
    if (block) free(header(block));
}

char *cnri_strdup(const char *text) {
    if (!text) return NULL;
    const size_t bytes = strlen(text) + 1;
    char *copy = cnri_alloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

int64_t cnri_alloc_failures(void) { return failures; }

cnr_status cnri_alloc_verdict(int64_t before, cnr_status status, const char *where,
                              cnr_error *err) {
    const bool said = status == CNR_E_MEMORY && err && strstr(err->text, "memory");
    if (failures == before || said) return status;
    return cnri_out_of_memory(err, where);
}

/* Lets allocations fail from the n-th one from now on: `times` of them, or all if times is 0. n 0:
 * none fails. */
static void fail(int64_t n, int64_t times) {
    const int64_t from = n > 0 ? atomic_load(&count) + n : 0;
    atomic_store(&fails_to, times > 0 ? from + times - 1 : INT64_MAX);
    atomic_store(&fails_from, from);
}

void cnri_alloc_fail_at(int64_t n) { fail(n, 0); }

void cnri_alloc_fail_once(int64_t n) { fail(n, 1); }

int64_t cnri_alloc_count(void) { return atomic_load(&count); }
