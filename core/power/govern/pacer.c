/* Ticks by the clock in force, on a thread of their own, so that the workload does not wait for
 * a policy. */
#include "govern/govern.h"
#include <pthread.h>
#include <time.h>

/* A thread that calls a governor's tick each period, and `each` behind it. */
struct cnri_pacer {
    cnri_governor *governor;
    void (*each)(void *arg, const cnri_governor *g);
    void *arg;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;
};

/* Waits by a plugin's clock, which has no condition variable but returns by itself. Before
 * anything runs it must not wait there, because that would advance the clock. */
static bool wait_by_plugin(cnri_pacer *p, uint64_t ns) {
    while (!__atomic_load_n(&p->stopping, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&p->governor->driven, __ATOMIC_ACQUIRE)) {
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    if (!__atomic_load_n(&p->stopping, __ATOMIC_ACQUIRE)) cnri_wait_until(ns);
    return !__atomic_load_n(&p->stopping, __ATOMIC_ACQUIRE);
}

/* Waits until that time in ns; false: the thread is to stop. */
static bool wait_until(cnri_pacer *p, uint64_t ns) {
    if (!cnri_clock_is_real()) return wait_by_plugin(p, ns);
    const struct timespec until = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    pthread_mutex_lock(&p->lock);
    while (!p->stopping && cnri_real_ns() < ns) pthread_cond_timedwait(&p->wake, &p->lock, &until);
    const bool goes_on = !p->stopping;
    pthread_mutex_unlock(&p->lock);
    return goes_on;
}

/* The thread: ticks until it is stopped. */
static void *pace(void *arg) {
    cnri_pacer *p = arg;
    uint64_t next = cnri_now_ns();
    if (p->governor->stats.ticks) { /* the caller made the first tick */
        next += (uint64_t)(p->governor->period * 1e9);
        if (!wait_until(p, next)) return NULL;
    }
    do {
        cnr_error why = CNR_ERROR_INIT;
        if (cnri_governor_tick(p->governor, &why)) p->governor->stats.lapses++;
        else if (p->each) p->each(p->arg, p->governor);
        next += (uint64_t)(p->governor->period * 1e9);
        const uint64_t now = cnri_now_ns();
        if (next < now) next = now; /* missed ticks are skipped */
    } while (wait_until(p, next));
    return NULL;
}

/* Starts a thread in *out that ticks. `each` (may be NULL) is called there after each tick. The
 * thread owns g until cnri_pacer_stop. */
cnr_status cnri_pacer_start(cnri_governor *g, void (*each)(void *arg, const cnri_governor *g),
                            void *arg, cnri_pacer **out, cnr_error *err) {
    cnri_pacer *p = cnri_alloc_zero(sizeof *p);
    pthread_condattr_t monotonic;
    *out = NULL;
    if (!p) return cnri_fail(err, CNR_E_MEMORY, "govern", "out of memory");
    p->governor = g;
    p->each = each;
    p->arg = arg;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&p->thread, NULL, pace, p) == 0) {
        *out = p;
        return CNR_OK;
    }
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    cnri_free(p);
    return cnri_fail(err, CNR_E_LIMIT, "govern", "no thread can be started for the policy");
}

void cnri_pacer_stop(cnri_pacer *p) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    __atomic_store_n(&p->stopping, true, __ATOMIC_RELEASE);
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    cnri_free(p);
}
