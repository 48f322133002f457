/* Digests and fingerprints of many blocks of memory, on several threads. */
#include "base/base.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_THREADS = 16 };
#define WORTH_A_THREAD ((uint64_t)1 << 20) /* bytes; with less a thread is too costly */
/* Bytes of a piece whose fingerprint is taken; .cnr files depend on it, so it stays. */
#define PIECE ((uint64_t)1 << 20)

/* Blocks to digest, shared by the threads. */
typedef struct work {
    void (*of)(const void *data, uint64_t bytes, uint8_t *sum);
    cnri_digest *list;
    int64_t n;
    /* Blocks of at least this many bytes are taken first, so that no thread is left with one at
     * the end. */
    uint64_t large;
    atomic_llong next;
} work;

void cnri_release_pages(const void *data, uint64_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)data / page * page;
    const uintptr_t last = ((uintptr_t)data + bytes) / page * page;
    if (last > first) (void)madvise((void *)first, last - first, MADV_DONTNEED);
}

/* Computes the SHA-256 digest of a mapped block and releases its pages as it goes. */
static void digest_and_release(cnri_digest *d) {
    cnri_sha256 sum;
    cnri_sha256_begin(&sum);
    for (uint64_t at = 0, n; at < d->bytes; at += n) {
        n = d->bytes - at < PIECE ? d->bytes - at : PIECE;
        cnri_sha256_add(&sum, (const char *)d->data + at, (size_t)n);
        cnri_release_pages((const char *)d->data + at, n);
    }
    cnri_sha256_end(&sum, d->sum);
}

/* One thread: takes blocks until none is left, the large ones first. */
static void *digest_some(void *arg) {
    work *w = arg;
    for (int64_t i; (i = atomic_fetch_add(&w->next, 1)) < 2 * w->n;) {
        cnri_digest *d = &w->list[i % w->n];
        if ((d->bytes >= w->large) != (i < w->n)) continue;
        if (d->releases && w->of == cnri_sha256_of) digest_and_release(d);
        else w->of(d->data, d->bytes, d->sum);
        if (d->releases) cnri_release_pages(d->data, d->bytes);
    }
    return NULL;
}

/* Number of threads worth starting: at most one a block, and one for each WORTH_A_THREAD bytes. */
static int32_t threads_for(uint64_t bytes, int64_t n, int32_t maximum) {
    const long there = sysconf(_SC_NPROCESSORS_ONLN);
    if (maximum <= 0) maximum = there > 0 && there < MAX_THREADS ? (int32_t)there : MAX_THREADS;
    if (maximum > MAX_THREADS) maximum = MAX_THREADS;
    if ((uint64_t)maximum > bytes / WORTH_A_THREAD) maximum = (int32_t)(bytes / WORTH_A_THREAD);
    return maximum < n ? maximum : (int32_t)n;
}

/* Digests all blocks on this thread and helpers, which it joins. */
static void take_all(work w, int32_t threads) {
    uint64_t bytes = 0;
    pthread_t helpers[MAX_THREADS];
    int32_t running = 0;
    sigset_t all, before;
    for (int64_t i = 0; i < w.n; i++) bytes += w.list[i].bytes;
    const int32_t wanted = threads_for(bytes, w.n, threads);
    w.large = wanted > 0 ? bytes / 4 / (uint64_t)wanted : 0;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* a file that is cut short is told of by whoever handles that */
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals go to the caller's own threads only */
    while (running < wanted - 1 && pthread_create(&helpers[running], NULL, digest_some, &w) == 0)
        running++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    digest_some(&w);
    for (int32_t i = 0; i < running; i++) pthread_join(helpers[i], NULL);
}

void cnri_digests(cnri_digest *list, int32_t n, int32_t threads) {
    take_all((work){.of = cnri_sha256_of, .list = list, .n = n}, threads);
}

static int64_t pieces_of(uint64_t bytes) { return (int64_t)((bytes + PIECE - 1) / PIECE); }

bool cnri_fingerprints(cnri_digest *list, int32_t n, int32_t threads) {
    int64_t all = 0, k = 0;
    for (int32_t i = 0; i < n; i++) all += pieces_of(list[i].bytes);
    cnri_digest *pieces = cnri_alloc(((size_t)all + 1) * sizeof *pieces);
    uint8_t(*prints)[16] = cnri_alloc(((size_t)all + 1) * sizeof *prints);
    const bool good = pieces && prints;
    for (int32_t i = 0; good && i < n; i++)
        for (uint64_t at = 0, left = list[i].bytes; left > 0; at += PIECE) {
            const uint64_t bytes = left < PIECE ? left : PIECE;
            pieces[k++] =
                (cnri_digest){(const char *)list[i].data + at, bytes, {0}, list[i].releases};
            left -= bytes;
        }
    if (good) take_all((work){.of = cnri_fingerprint, .list = pieces, .n = all}, threads);
    for (int64_t i = 0; i < k; i++) memcpy(prints[i], pieces[i].sum, sizeof *prints);
    k = 0;
    for (int32_t i = 0; good && i < n; i++) {
        const int64_t own = pieces_of(list[i].bytes);
        cnri_fingerprint(prints + k, (uint64_t)own * sizeof *prints, list[i].sum);
        k += own;
    }
    cnri_free(pieces);
    cnri_free(prints);
    return good;
}
