/* Weight sharing: a table of few values that represents many, by k-means in one dimension. */
#include "sparse.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 100, MOST = 256 };

/* Compares two floats, for qsort. */
static int order(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* Index of the first sorted value, from `low` on, above `bound`. */
static uint64_t above(const float *sorted, uint64_t low, uint64_t n, double bound) {
    uint64_t high = n;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if ((double)sorted[middle] > bound) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* Writes all distinct values to the table if there are at most k. Returns how many; k + 1: more. */
static int32_t distinct(const float *sorted, uint64_t n, int32_t k, float *table) {
    int32_t found = 0;
    for (uint64_t i = 0; i < n; i = above(sorted, i, n, (double)sorted[i])) {
        if (found == k) return k + 1;
        table[found++] = sorted[i];
    }
    return found;
}

/* Midpoint of two table values; in double, so that it lies between adjacent floats. */
static double between(const float *table, int32_t i) {
    return ((double)table[i] + (double)table[i + 1]) / 2;
}

/* Lloyd's iterations on sorted values, starting with evenly spaced centres, which keeps large ones.
 * `sum`: prefix sums. */
static void settle(const float *sorted, const double *sum, uint64_t n, int32_t k, float *table) {
    const double low = sorted[0], high = sorted[n - 1];
    for (int32_t i = 0; i < k; i++)
        table[i] = (float)(k > 1 ? low + (high - low) * i / (k - 1) : (low + high) / 2);
    for (int32_t round = 0, moved = 1; round < ROUNDS && moved; round++) {
        uint64_t begin = 0;
        moved = 0;
        for (int32_t i = 0; i < k; i++) {
            const float here = table[i]; /* bounds use the centres of the round before */
            const uint64_t end = i + 1 < k ? above(sorted, begin, n, between(table, i)) : n;
            if (end > begin) {
                const float mean = (float)((sum[end] - sum[begin]) / (double)(end - begin));
                moved += mean != here;
                table[i] = mean;
            }
            begin = end;
        }
    }
}

/* Index of the nearest value, by the k - 1 middles between neighbours. */
static uint8_t nearest(const double *middle, int32_t k, float v) {
    int32_t low = 0, high = k - 1;
    while (low < high) {
        const int32_t i = (low + high) / 2;
        if ((double)v > middle[i]) low = i + 1;
        else high = i;
    }
    return (uint8_t)low;
}

cnr_status csr_share(const float *value, uint64_t n, int32_t bits, float *table, uint8_t *code,
                     cnr_error *err) {
    double middle[MOST];
    int32_t k = 1 << bits;
    memset(table, 0, (size_t)k * sizeof *table);
    if (n == 0) return CNR_OK;
    float *sorted = (float *)csr_host->alloc(n * sizeof *sorted);
    double *sum = (double *)csr_host->alloc((n + 1) * sizeof *sum);
    if (sorted && sum) {
        memcpy(sorted, value, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, order);
        sum[0] = 0;
        for (uint64_t i = 0; i < n; i++) sum[i + 1] = sum[i] + (double)sorted[i];
        const int32_t found = distinct(sorted, n, k, table);
        if (found > k) settle(sorted, sum, n, k, table);
        else k = found;
        for (int32_t i = 0; i + 1 < k; i++) middle[i] = between(table, i);
        for (uint64_t i = 0; i < n; i++) code[i] = nearest(middle, k, value[i]);
    }
    csr_host->free(sum);
    csr_host->free(sorted);
    return sorted && sum ? CNR_OK
                         : csr_host->fail(err, CNR_E_MEMORY, "sparse-csr", "out of memory");
}
