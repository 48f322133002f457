/* Virtual time: it advances when simulated work is waited for, or when the thread that drives it
 * sleeps. Other threads (samplers of meters) wake in order, at the times they wait for. */
#define _GNU_SOURCE
#include "sim.h"
#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { MOST_SLEEPERS = 16 };
#define SECOND UINT64_C(1000000000)
/* Real time that a woken thread gets for its work before virtual time advances. */
#define GRACE_NS 5000000

static pthread_mutex_t machines = PTHREAD_MUTEX_INITIALIZER; /* guards the machines */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;     /* guards the following variables */
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER, asleep = PTHREAD_COND_INITIALIZER;
static uint64_t now = SECOND;
static uint64_t sleepers[MOST_SLEEPERS]; /* wake-up times; 0: free */
static uint64_t naps;                    /* number of times that a thread began to sleep */
static pthread_t driver;
static int driven;

void sim_lock(void) { pthread_mutex_lock(&machines); }
void sim_unlock(void) { pthread_mutex_unlock(&machines); }

/* Real time in ns. */
static uint64_t real_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* The time `ns` from now on the real-time clock, as pthread conditions need it. */
static struct timespec real_in(uint64_t ns) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    ns += (uint64_t)t.tv_nsec;
    t.tv_sec += (time_t)(ns / SECOND);
    t.tv_nsec = (long)(ns % SECOND);
    return t;
}

uint64_t sim_now(void) {
    pthread_mutex_lock(&lock);
    const uint64_t is = now;
    pthread_mutex_unlock(&lock);
    return is;
}

/* The first sleeper that is to wake before a time; NULL: none. */
static uint64_t *first_sleeper(uint64_t before) {
    uint64_t *first = NULL;
    for (int i = 0; i < MOST_SLEEPERS; i++)
        if (sleepers[i] && sleepers[i] <= before && (!first || sleepers[i] < *first))
            first = &sleepers[i];
    return first;
}

void sim_advance(uint64_t ns) {
    pthread_mutex_lock(&lock);
    driver = pthread_self();
    driven = 1;
    for (uint64_t *s; now < ns && (s = first_sleeper(ns));) {
        const uint64_t before = naps;
        const struct timespec end = real_in(GRACE_NS);
        if (*s > now) now = *s;
        *s = 0;
        pthread_cond_broadcast(&passed);
        while (naps == before && pthread_cond_timedwait(&asleep, &lock, &end) != ETIMEDOUT) {}
    }
    if (ns > now) now = ns;
    pthread_mutex_unlock(&lock);
}

/* A thread that does not drive time waits for the one that does, but no longer than the real
 * duration: the driver may have ended. */
static void wait_for_others(uint64_t ns) {
    pthread_mutex_lock(&lock);
    int slot = 0;
    while (slot < MOST_SLEEPERS && sleepers[slot]) slot++;
    const uint64_t left = ns > now ? ns - now : 0;
    const struct timespec end = real_in(left < SECOND ? left : SECOND);
    if (slot < MOST_SLEEPERS) sleepers[slot] = ns;
    naps++;
    pthread_cond_signal(&asleep);
    while (now < ns && pthread_cond_timedwait(&passed, &lock, &end) != ETIMEDOUT) {}
    if (slot < MOST_SLEEPERS) sleepers[slot] = 0;
    pthread_mutex_unlock(&lock);
}

static uint64_t now_ns(void) { return sim_machine_now() ? sim_now() : real_ns(); }

/* The clock's wait: lets simulated time pass until then. */
static void wait_until(uint64_t ns) {
    if (!sim_machine_now()) {
        const struct timespec t = {(time_t)(ns / SECOND), (long)(ns % SECOND)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
        return;
    }
    pthread_mutex_lock(&lock);
    const int mine = !driven || pthread_equal(driver, pthread_self());
    pthread_mutex_unlock(&lock);
    if (mine) sim_advance(ns);
    else wait_for_others(ns);
}

const cnr_clock sim_time = {.size = sizeof(cnr_clock),
                            .name = "simulated",
                            .summary = "the time of the simulated board; without one the machine's",
                            .now_ns = now_ns,
                            .wait_until = wait_until};
