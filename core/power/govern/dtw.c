/* Dynamic time warping with two rows of the recurrence, within a band; stops once no path can be
 * good enough. */
#include "govern/govern.h"
#include <math.h>

/* The least of three numbers. */
static double least(double a, double b, double c) {
    const double d = a < b ? a : b;
    return d < c ? d : c;
}

/* *from .. *to: the columns (0 .. m - 1) that row i of n may use: those within `reach` of the
 * diagonal, and at least one next to the row before. */
static void bounds(int32_t i, int32_t n, int32_t m, double reach, int32_t *from, int32_t *to) {
    const double middle = n > 1 ? (double)i * (m - 1) / (n - 1) : 0;
    const double low = floor(middle - reach), high = ceil(middle + reach);
    *from = low > 0 ? (int32_t)low : 0;
    *to = high < m - 1 ? (int32_t)high : m - 1;
    if (n == 1) *to = m - 1;
}

double cnri_dtw(const double *a, int32_t n, const double *b, int32_t m, double band, double most) {
    if (n < 1 || m < 1) return NAN;
    double *rows = cnri_alloc(((size_t)m + 1) * 2 * sizeof *rows);
    if (!rows) return NAN;
    double *before = rows, *row = rows + m + 1; /* index 0 is the border */
    const double slope = n > 1 ? (double)(m - 1) / (n - 1) : (double)m;
    const double reach = fmax(band * (n > m ? n : m), fmax(1, slope));
    for (int32_t j = 0; j <= m; j++) before[j] = INFINITY;
    before[0] = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t from, to;
        double best = INFINITY;
        bounds(i, n, m, reach, &from, &to);
        for (int32_t j = 0; j <= m; j++) row[j] = INFINITY;
        for (int32_t j = from; j <= to; j++) {
            row[j + 1] = fabs(a[i] - b[j]) + least(before[j + 1], row[j], before[j]);
            best = fmin(best, row[j + 1]);
        }
        if (best > most) {
            cnri_free(rows);
            return INFINITY;
        }
        double *swap = before;
        before = row;
        row = swap;
    }
    const double d = before[m];
    cnri_free(rows);
    return d > most ? (double)INFINITY : d;
}
