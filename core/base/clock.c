/* The clock, and what many times have in common. */
#include "core/base/base.h"
#include <stdlib.h>
#include <time.h>

uint64_t cnri_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double cnri_median(double *values, int64_t n) {
    if (n < 1) return 0;
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2] + values[n / 2 - 1]) / 2;
}
