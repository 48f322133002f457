/* Weights made sparse: the small ones become 0. */
#include "core/work/work.h"
#include <math.h>

static void swap(double *a, double *b) {
    const double kept = *a;
    *a = *b;
    *b = kept;
}

/* The k-th largest of n numbers, k from 0, in a time that grows with n: they are put in another order. */
static double kth_largest(double *x, int64_t n, int64_t k) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const double pivot = x[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] > pivot) i++;
            while (x[j] < pivot) j--;
            if (i <= j) swap(&x[i++], &x[j--]);
        }
        if (k <= j) high = j;
        else if (k >= i) low = i;
        else break;
    }
    return x[k];
}

/* No number counts as the largest, so that it stays to be seen. */
static double size_of(const cnr_tensor *t, int64_t i) {
    const double x = fabs(cnri_element(t->dtype, t->data, i));
    return isnan(x) ? INFINITY : x;
}

cnr_status cnri_prune(cnr_tensor *t, double keep, cnr_error *err) {
    const int64_t n = cnr_count(t);
    if (!(keep >= 0 && keep <= 1))
        return cnri_fail(err, CNR_E_ARG, "keep", "the part that stays, 0 to 1, is wanted, got %g", keep);
    int64_t left = (int64_t)(keep * (double)n + 0.5);
    if (left >= n) return CNR_OK;
    double *sizes = cnri_alloc((size_t)n * sizeof *sizes);
    if (!sizes) return cnri_fail(err, CNR_E_MEMORY, "keep", "out of memory");
    for (int64_t i = 0; i < n; i++) sizes[i] = size_of(t, i);
    const double bound = left > 0 ? kth_largest(sizes, n, left - 1) : INFINITY;
    for (int64_t i = 0; i < n; i++) left -= size_of(t, i) > bound;
    for (int64_t i = 0; i < n; i++) { /* of those as large as the bound the first ones stay */
        const double size = size_of(t, i);
        const bool stays = size > bound || (size == bound && left-- > 0);
        if (!stays) cnri_element_set(t->dtype, t->data, i, 0);
    }
    cnri_free(sizes);
    return CNR_OK;
}
