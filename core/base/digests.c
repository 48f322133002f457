/* SHA-256 of many blocks of memory, on several threads. */
#include "core/base/base.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_THREADS = 16 };
#define WORTH_A_THREAD ((uint64_t)1 << 20) /* bytes: less is done before it has begun */

typedef struct work {
    cnri_digest *list;
    int64_t n;
    uint64_t large; /* blocks of so many bytes are taken first, or the last thread to end has one */
    atomic_llong next;
} work;

static void *digest_some(void *arg) {
    work *w = arg;
    for (int64_t i; (i = atomic_fetch_add(&w->next, 1)) < 2 * w->n;) {
        cnri_digest *d = &w->list[i % w->n];
        if ((d->bytes >= w->large) == (i < w->n)) cnri_sha256_of(d->data, d->bytes, d->sha256);
    }
    return NULL;
}

static int32_t threads_for(uint64_t bytes, int64_t n, int32_t most) {
    const long there = sysconf(_SC_NPROCESSORS_ONLN);
    if (most <= 0) most = there > 0 && there < MOST_THREADS ? (int32_t)there : MOST_THREADS;
    if (most > MOST_THREADS) most = MOST_THREADS;
    if ((uint64_t)most > bytes / WORTH_A_THREAD) most = (int32_t)(bytes / WORTH_A_THREAD);
    return most < n ? most : (int32_t)n;
}

void cnri_digests(cnri_digest *list, int32_t n, int32_t threads) {
    uint64_t bytes = 0;
    pthread_t helpers[MOST_THREADS];
    int32_t running = 0;
    sigset_t all, before;
    for (int32_t i = 0; i < n; i++) bytes += list[i].bytes;
    const int32_t wanted = threads_for(bytes, n, threads);
    work w = {.list = list, .n = n, .large = wanted > 0 ? bytes / 4 / (uint64_t)wanted : 0};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the caller's own threads */
    while (running < wanted - 1 &&
           pthread_create(&helpers[running], NULL, digest_some, &w) == 0)
        running++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    digest_some(&w);
    for (int32_t i = 0; i < running; i++) pthread_join(helpers[i], NULL);
}
