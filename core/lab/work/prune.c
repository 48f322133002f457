/* Makes weights sparse: sets the small ones to 0. */
#include "work/work.h"
#include <math.h>

/* Swaps two numbers. */
static void swap(double *a, double *b) {
    const double kept = *a;
    *a = *b;
    *b = kept;
}

/* Finds the k-th largest of n numbers, k counted from 0, in linear time; reorders them. */
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

/* Magnitude of element i. NaN counts as the largest, so that it is kept and noticed. */
static double size_of(const cnr_tensor *t, int64_t i) {
    const double x = fabs(cnri_element(t->dtype, t->data, i));
    return isnan(x) ? INFINITY : x;
}

/* A tensor as rows of `columns` elements, which are kept or removed in blocks of several rows of
 * one column. */
typedef struct blocks {
    int64_t rows, columns, block, n;
} blocks;

/* A weight as blocks of `block` rows of one column. */
static blocks blocks_of(const cnr_tensor *t, int64_t block) {
    const int64_t rows = t->rank > 0 ? t->dim[0] : 1, columns = rows > 0 ? cnr_count(t) / rows : 0;
    return (blocks){rows, columns, block, (rows + block - 1) / block * columns};
}

/* The row after the last row of block i; the last block may be shorter. */
static int64_t end_row(const blocks *b, int64_t i) {
    const int64_t end = (i / b->columns + 1) * b->block;
    return end < b->rows ? end : b->rows;
}

/* Mean magnitude of a block, so that a shorter block at the end counts like the others. */
static double size_of_block(const cnr_tensor *by, const blocks *b, int64_t i) {
    const int64_t first = i / b->columns * b->block, end = end_row(b, i);
    double sum = 0;
    for (int64_t r = first; r < end; r++) sum += size_of(by, r * b->columns + i % b->columns);
    return sum / (double)(end - first);
}

/* Sets all numbers of block i to 0. */
static void clear(cnr_tensor *t, const blocks *b, int64_t i) {
    for (int64_t r = i / b->columns * b->block; r < end_row(b, i); r++)
        cnri_element_set(t->dtype, t->data, r * b->columns + i % b->columns, 0);
}

cnr_status cnri_prune(cnr_tensor *t, const cnr_tensor *by, int64_t block, double keep,
                      cnr_error *err) {
    const blocks b = blocks_of(t, block < 1 ? 1 : block);
    if (!(keep >= 0 && keep <= 1))
        return cnri_fail(err, CNR_E_ARG, "keep", "the part that stays, 0 to 1, is wanted, got %g",
                         keep);
    int64_t left = (int64_t)(keep * (double)b.n + 0.5);
    if (left >= b.n) return CNR_OK;
    double *sizes = cnri_alloc(2 * (size_t)b.n * sizeof *sizes), *sorted = sizes + b.n;
    if (!sizes) return cnri_out_of_memory(err, "keep");
    for (int64_t i = 0; i < b.n; i++) sorted[i] = sizes[i] = size_of_block(by ? by : t, &b, i);
    const double bound = left > 0 ? kth_largest(sorted, b.n, left - 1) : INFINITY;
    for (int64_t i = 0; i < b.n; i++) left -= sizes[i] > bound;
    /* Among blocks as large as the bound, the first ones stay. */
    for (int64_t i = 0; i < b.n; i++) {
        const bool stays = sizes[i] > bound || (sizes[i] == bound && left-- > 0);
        if (!stays) clear(t, &b, i);
    }
    cnri_free(sizes);
    return CNR_OK;
}
