/* Selects the entries of a matrix that are kept: those of largest magnitude, alone or in blocks of
 * rows. */
#include "sparse.h"

#include <math.h>

/* NaN counts as the largest, so that it stays visible. */
static float magnitude(float v) { return isnan(v) ? INFINITY : fabsf(v); }

/* The k-th largest of n, k from 0, in linear time; reorders x. */
static float kth_largest(float *x, int64_t n, int64_t k) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const float pivot = x[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] > pivot) i++;
            while (x[j] < pivot) j--;
            if (i > j) break;
            const float kept = x[i];
            x[i++] = x[j];
            x[j--] = kept;
        }
        if (k <= j) high = j;
        else if (k >= i) low = i;
        else break;
    }
    return x[k];
}

/* Sum of magnitudes of a column's values in a block of rows. */
static float weigh(const csr_kept *k, const float *v, uint64_t block, uint64_t column) {
    const uint64_t from = block * (uint64_t)k->block;
    const uint64_t to = (uint64_t)cnr_min((int64_t)k->rows, (int64_t)from + k->block);
    float sum = 0;
    for (uint64_t r = from; r < to; r++) sum += magnitude(v[r * k->columns + column]);
    return sum;
}

/* Marks the part `keep` of the largest blocks; of equal ones the first. */
static cnr_status mark(const float *v, double keep, csr_kept *k, cnr_error *err) {
    const uint64_t n = k->blocks * k->columns;
    float bound = 0;
    int64_t ties = 0, left = (int64_t)((double)n * keep + 0.5);
    k->at = (uint8_t *)csr_host->alloc(n ? n : 1);
    float *size = (float *)csr_host->alloc((n ? n : 1) * sizeof *size);
    float *order = (float *)csr_host->alloc((n ? n : 1) * sizeof *order);
    cnr_status status = k->at && size && order
                            ? CNR_OK
                            : csr_host->fail(err, CNR_E_MEMORY, "sparse-csr", "out of memory");
    if (!status) {
        for (uint64_t b = 0, i = 0; b < k->blocks; b++)
            for (uint64_t c = 0; c < k->columns; c++, i++) order[i] = size[i] = weigh(k, v, b, c);
        if (keep < 1 && n > 0) {
            bound = left > 0 ? kth_largest(order, (int64_t)n, left - 1) : INFINITY;
            ties = left;
            for (uint64_t i = 0; i < n; i++) ties -= size[i] > bound;
            if (left <= 0) ties = 0;
        }
        k->entries = 0;
        /* of entries equal to the threshold, the first ones are kept */
        for (uint64_t i = 0; i < n; i++) {
            const int stays = size[i] > bound || (size[i] == bound && bound > 0 && ties-- > 0);
            k->at[i] = (uint8_t)stays;
            k->entries += (uint64_t)stays;
        }
    }
    csr_host->free(order);
    csr_host->free(size);
    if (status) {
        csr_host->free(k->at);
        k->at = NULL;
    }
    return status;
}

/* The sizes of a selection in blocks of `block` rows of weight `t`; nothing is marked yet. */
static csr_kept empty_selection(const cnr_tensor *t, int32_t block) {
    const uint64_t rows = (uint64_t)t->dim[0];
    return (csr_kept){.rows = rows,
                      .columns = rows ? (uint64_t)cnr_count(t) / rows : 0,
                      .blocks = (rows + (uint64_t)block - 1) / (uint64_t)block,
                      .block = block};
}

cnr_status csr_keep(const cnr_tensor *dense, double keep, int64_t block, csr_kept *out,
                    cnr_error *err) {
    const float *v = (const float *)dense->data;
    *out = empty_selection(dense, block == CSR_BLOCK ? CSR_BLOCK : 1);
    CNR_TRY(mark(v, keep, out, err));
    if (block != 0) return CNR_OK;
    /* A matrix pruned in blocks has zeros already; selecting by the same share would choose other
     * blocks. */
    csr_kept fours = empty_selection(dense, CSR_BLOCK);
    const int all = out->entries == out->rows * out->columns; /* such entries need no index */
    if (keep < 1 || fours.rows < CSR_BLOCK || all) return CNR_OK;
    const cnr_status status = mark(v, 1, &fours, err);
    csr_kept *less = out;
    if (!status && (double)fours.entries * CSR_BLOCK <= 1.15 * (double)out->entries) less = &fours;
    csr_host->free(less == out ? fours.at : out->at);
    if (status) {
        out->at = NULL;
        return status;
    }
    if (less == &fours) *out = fours;
    return CNR_OK;
}
