/* The record of measured times: a row for each key and kernel. */
#include "plan/planner.h"

/* Orders rows by key, then kernel, as strcmp does, so that lookups stay fast in large records. */
static int compare(const cnri_timed *row, const char *key, const char *kernel) {
    const int order = strcmp(row->key, key);
    return order ? order : strcmp(row->kernel, kernel);
}

/* Index of the first row that is not before (key, kernel). */
static int32_t place_of(const cnri_tuning *t, const char *key, const char *kernel) {
    int32_t low = 0, high = t->rows.n;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (compare(&t->rows.at[middle], key, kernel) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

const cnri_timed *cnri_tuning_find(const cnri_tuning *t, const char *key, const char *kernel) {
    const int32_t i = place_of(t, key, kernel);
    const cnri_timed *row = i < t->rows.n ? &t->rows.at[i] : NULL;
    return row && strcmp(row->key, key) == 0 && (!*kernel || strcmp(row->kernel, kernel) == 0)
               ? row
               : NULL;
}

bool cnri_tuning_knows(const cnri_tuning *t, const char *key) {
    for (int32_t i = place_of(t, key, ""); i < t->rows.n && strcmp(t->rows.at[i].key, key) == 0;
         i++)
        if (t->rows.at[i].cost.ns < CNRI_TUNING_HANGS) return true;
    return false;
}

/* Sets or replaces the cost of a key and kernel; names too long for a row are ignored. */
cnr_status cnri_tuning_set(cnri_tuning *t, const char *key, const char *kernel, cnri_cost cost,
                           cnr_error *err) {
    const int32_t at = place_of(t, key, kernel);
    cnri_timed *row = cnri_tuning_find(t, key, kernel) ? &t->rows.at[at] : NULL;
    if (!row) {
        if (strlen(key) >= sizeof row->key || strlen(kernel) >= sizeof row->kernel) return CNR_OK;
        if (!cnri_push(&t->rows)) return cnri_no_memory(err);
        row = &t->rows.at[at];
        memmove(row + 1, row, (size_t)(t->rows.n - 1 - at) * sizeof *row);
        memset(row, 0, sizeof *row);
        snprintf(row->key, sizeof row->key, "%s", key);
        snprintf(row->kernel, sizeof row->kernel, "%s", kernel);
    }
    row->cost = cost;
    row->cost.from = CNRI_MEASURED;
    return CNR_OK;
}
