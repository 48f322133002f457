/* The median of measurements. */
#include "people/people.h"
#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double cnri_median(double *values, int64_t n) {
    if (n < 1) return 0;
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2] + values[n / 2 - 1]) / 2;
}
