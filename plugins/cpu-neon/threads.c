/* A pool of threads that share out the indices of a loop.
 *
 * A loop ends when all its indices are done, whether or not every worker has come. pthreadpool, the
 * library for this, waits for each of them, and where others use the machine too, a worker may be
 * off its core for milliseconds. It was tried with workers that sleep between loops (its
 * PTHREADPOOL_FLAG_YIELD_WORKERS; spinning ones took ten times as long beside other work) and with
 * loops under 2 million multiply-adds left to the caller; 8 million was no better. Milliseconds, 2
 * threads on 2 cores, the two in turns; medians of 4 and 8 rounds of the median run, and of each
 * round's slowest:
 *
 *                                  quiet             beside 2 busy loops (slowest)
 *                             ours   pthreadpool         ours         pthreadpool
 *     lenet5                  0.073     0.096         0.089  (17)      0.093  (12)
 *     squeezenet_v1_1         5.1       5.5            23    (34)       39   (133)
 *     mobilenet_v1            8.7       9.9            38    (54)       33    (80)
 *     lenet5, training step  12.9      12.6            54    (65)      118   (201)
 *
 *     gate = workers inside the loop, + CLOSED while there is none to join
 *     open:  loop set, CLOSED cleared, epoch + 1, sleepers woken
 *     join:  gate + 1; if it was CLOSED, gate - 1 and back to waiting
 *     close: CLOSED set; the caller waits until gate shows no one inside */
#define _GNU_SOURCE
#include "threads.h"
#include "neon.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define CLOSED 0x40000000u
/* How long workers spin: layers follow each other within this time. */
#define SPIN_NS 100000

/* A worker and its number. */
typedef struct worker {
    neon_threads *pool;
    pthread_t thread;
    int32_t index;
} worker;

/* A thread's indices are adjacent, so that it reads in one loop what it wrote in the loop before
 * from its own cache. A thread that has finished takes indices of others. */
typedef struct share {
    _Alignas(64) atomic_llong next;
    long long end;
} share;

/* Threads that run tasks together. */
struct neon_threads {
    void (*fn)(void *arg, int64_t i, int32_t thread);
    void *arg;
    uint64_t modes; /* the caller's floating-point modes */
    int32_t n_shares;
    share *shares;
    _Alignas(64) atomic_uint gate;
    _Alignas(64) atomic_uint epoch;
    atomic_int busy, stop, asleep;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int32_t workers;
    int32_t pinned; /* 1: the workers have cores of their own, and the caller is not one of them */
    worker at[];
};

/* Tells the CPU that this is a waiting loop. */
static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
    __asm__ volatile("yield");
#endif
}

/* A thread's rounding mode and flush of denormals. Workers adopt the caller's, so that results do
 * not depend on the thread. */
#if defined(__SSE__)
static uint64_t float_modes(void) { return __builtin_ia32_stmxcsr() & ~0x3fu; }
static void set_float_modes(uint64_t modes) { __builtin_ia32_ldmxcsr((unsigned)modes); }
#elif defined(__aarch64__)
/* Floating-point modes of this thread. */
static uint64_t float_modes(void) {
    uint64_t modes;
    __asm__ volatile("mrs %0, fpcr" : "=r"(modes));
    return modes;
}
static void set_float_modes(uint64_t modes) { __asm__ volatile("msr fpcr, %0" : : "r"(modes)); }
#elif defined(__arm__) && defined(__ARM_FP)
#define FLAGS 0xf800009fu /* comparison flags and raised exceptions */
/* Floating-point modes of this thread, without its exception flags. */
static uint64_t float_modes(void) {
    uint32_t modes;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(modes));
    return modes & ~FLAGS;
}
/* Sets the floating-point modes of this thread. */
static void set_float_modes(uint64_t modes) {
    __asm__ volatile("vmsr fpscr, %0" : : "r"((uint32_t)modes));
}
#else
static uint64_t float_modes(void) { return 0; }
static void set_float_modes(uint64_t modes) { (void)modes; }
#endif

/* Runs the task indices of the thread's own share, then those that other threads have not
 * started. */
static void take_indices(neon_threads *p, int32_t thread) {
    for (int32_t k = 0; k < p->n_shares; k++) {
        share *s = &p->shares[(thread + k) % p->n_shares];
        for (;;) {
            if (k && atomic_load_explicit(&s->next, memory_order_relaxed) >= s->end) break;
            const int64_t i = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
            if (i >= s->end) break;
            p->fn(p->arg, i, thread);
        }
    }
}

/* Divides n tasks among the shares. */
static void share_out(neon_threads *p, int64_t n) {
    const int64_t each = n / p->n_shares, more = n % p->n_shares;
    int64_t at = 0;
    for (int32_t k = 0; k < p->n_shares; k++) {
        atomic_store_explicit(&p->shares[k].next, at, memory_order_relaxed);
        at += each + (k < more);
        p->shares[k].end = at;
    }
}

/* 1 if no task is left to take. */
static int all_taken(neon_threads *p) {
    for (int32_t k = 0; k < p->n_shares; k++)
        if (atomic_load_explicit(&p->shares[k].next, memory_order_relaxed) < p->shares[k].end)
            return 0;
    return 1;
}

/* Returns once epoch differs from `seen`: spins first, then yields, then sleeps. */
static unsigned await(neon_threads *p, unsigned seen) {
    unsigned now;
    const uint64_t begin = neon_host->now_ns();
    for (unsigned turn = 1;; turn++) {
        now = atomic_load_explicit(&p->epoch, memory_order_acquire);
        if (now != seen) return now;
        relax();
        if (turn % 64) continue;
        sched_yield();
        if (neon_host->now_ns() - begin > SPIN_NS) break;
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->asleep, 1);
    while ((now = atomic_load(&p->epoch)) == seen) pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->asleep, 1);
    pthread_mutex_unlock(&p->lock);
    return now;
}

/* A worker's thread: waits for tasks and runs them until the pool stops. */
static void *work(void *arg) {
    const worker *self = arg;
    neon_threads *p = self->pool;
    for (unsigned seen = 0;;) {
        seen = await(p, seen);
        if (atomic_load_explicit(&p->stop, memory_order_acquire)) return NULL;
        if (!(atomic_fetch_add_explicit(&p->gate, 1, memory_order_acquire) & CLOSED)) {
            if (float_modes() != p->modes) set_float_modes(p->modes);
            take_indices(p, self->index);
        }
        atomic_fetch_sub_explicit(&p->gate, 1, memory_order_release);
    }
}

/* Wakes the workers that sleep. */
static void call_workers(neon_threads *p) {
    atomic_fetch_add(&p->epoch, 1);
    if (!atomic_load(&p->asleep)) return;
    pthread_mutex_lock(&p->lock); /* no worker is between its check of epoch and its sleep */
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

/* With glibc, threads start on their cores; otherwise they are moved there. */
#ifndef __GLIBC__
/* Binds a thread to cores; not 0: it can't. */
static int pin(pthread_t thread, const cpu_set_t *set) {
#ifdef __ANDROID__
    return sched_setaffinity(pthread_gettid_np(thread), sizeof *set, set);
#else
    return pthread_setaffinity_np(thread, sizeof *set, set);
#endif
}
#endif

/* Starts a worker on those of the given cores that this process may use, none: on any core; 0: it
 * could not be started. */
static int start(worker *w, const int32_t *cpus, int32_t n_cpus) {
    cpu_set_t set, mine;
    pthread_attr_t attr;
    int32_t n = 0;
    if (pthread_attr_init(&attr) != 0) return 0;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_ZERO(&mine);
    for (int32_t i = 0; i < n_cpus; i++)
        if (cpus[i] < CPU_SETSIZE && CPU_ISSET((size_t)cpus[i], &mine)) {
            CPU_SET((size_t)cpus[i], &set);
            n++;
        }
    int failed = 0;
#ifdef __GLIBC__
    failed = n && pthread_attr_setaffinity_np(&attr, sizeof set, &set) != 0;
#endif
    if (!failed) failed = pthread_create(&w->thread, &attr, work, w) != 0;
#ifndef __GLIBC__
    if (!failed && n) pin(w->thread, &set); /* if this fails, workers run on any core */
#endif
    pthread_attr_destroy(&attr);
    return !failed;
}

neon_threads *neon_threads_open(int32_t n, const int32_t *cpus, int32_t n_cpus, int32_t *got) {
    const size_t own = (sizeof(neon_threads) + (size_t)n * sizeof(worker) + 63) / 64 * 64;
    const size_t bytes = own + (size_t)(n + 1) * sizeof(share);
    neon_threads *p = neon_host->alloc(bytes);
    *got = 1;
    if (!p) return NULL;
    memset(p, 0, bytes);
    atomic_init(&p->gate, CLOSED);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    p->pinned = n_cpus > 0;
    p->shares = (share *)(void *)((char *)p + own);
    for (int32_t i = p->pinned ? 0 : 1; i < n; i++) {
        worker *w = &p->at[p->workers];
        w->pool = p;
        w->index = i;
        if (!start(w, cpus, n_cpus)) break;
        p->workers++;
        *got = i + 1;
    }
    p->n_shares = p->pinned ? p->workers : p->workers + 1;
    return p;
}

/* Ends and joins all workers, and frees the pool; NULL: nothing. */
void neon_threads_close(neon_threads *p) {
    if (!p) return;
    atomic_store_explicit(&p->stop, 1, memory_order_release);
    call_workers(p);
    for (int32_t i = 0; i < p->workers; i++) pthread_join(p->at[i].thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    neon_host->free(p);
}

void neon_threads_run(neon_threads *p, int64_t n, void (*fn)(void *, int64_t, int32_t), void *arg) {
    if ((n < 2 && !p->pinned) || n < 1 || !p->workers ||
        atomic_exchange_explicit(&p->busy, 1, memory_order_acquire)) {
        for (int64_t i = 0; i < n; i++) fn(arg, i, 0);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    p->modes = float_modes();
    share_out(p, n);
    atomic_fetch_and_explicit(&p->gate, ~CLOSED, memory_order_release);
    call_workers(p);
    unsigned turn = 0;
    if (!p->pinned) take_indices(p, 0);
    else
        while (!all_taken(p))
            if (relax(), ++turn % 256 == 0) sched_yield();
    atomic_fetch_or_explicit(&p->gate, CLOSED, memory_order_relaxed);
    turn = 0;
    while (atomic_load_explicit(&p->gate, memory_order_acquire) != CLOSED) {
        relax();
        if (++turn % 256 == 0) sched_yield();
    }
    atomic_store_explicit(&p->busy, 0, memory_order_release);
}
