/* The clock in force, waiting for it, and the median of times. */
#include "base/base.h"
#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* The clock in force; NULL: the machine's. One pointer: threads may read it while it changes. */
static const cnri_clock *in_force;

uint64_t cnri_real_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t cnri_now_ns(void) {
    const cnri_clock *c = __atomic_load_n(&in_force, __ATOMIC_ACQUIRE);
    return c ? c->now_ns() : cnri_real_ns();
}

bool cnri_clock_is_real(void) { return __atomic_load_n(&in_force, __ATOMIC_ACQUIRE) == NULL; }

const void *cnri_clock_descriptor(void) {
    const cnri_clock *c = __atomic_load_n(&in_force, __ATOMIC_ACQUIRE);
    return c ? c->descriptor : NULL;
}

void cnri_wait_until(uint64_t ns) {
    const cnri_clock *c = __atomic_load_n(&in_force, __ATOMIC_ACQUIRE);
    const struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    if (c) c->wait_until(ns);
    else
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

void cnri_clock_use(const cnri_clock *clock) {
    __atomic_store_n(&in_force, clock, __ATOMIC_RELEASE);
}

void cnri_clock_leave(const cnri_clock *clock) {
    const cnri_clock *is = clock;
    __atomic_compare_exchange_n(&in_force, &is, NULL, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Compares two doubles, for qsort. */
static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double cnri_median(double *values, int64_t n) {
    if (n < 1) return 0;
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2] + values[n / 2 - 1]) / 2;
}
