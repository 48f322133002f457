/* The record of measured times: a row for each key and kernel, as text that ends in a digest. */
#include "plan/planner.h"
#include <stdlib.h>

/* Orders rows by key, then kernel, so that lookups stay fast in large records. */
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

/* Names of a row's numbers; all but the first may be missing. */
static const char *const numbers[] = {"ns", "rest", "joules", "mhz"};

/* Address of one of the four numbers of a cost. */
static double *number_of(cnri_cost *cost, size_t which) {
    double *const all[] = {&cost->ns, &cost->remainder_ns, &cost->joules, &cost->mhz};
    return all[which];
}

/* Behind the rows stands what tells whether they are all there, as they were. */
static const char seal[] = "{\"sha256\":\"";
enum { SEAL = sizeof seal - 1 + 64 + 3 };

void cnri_tuning_print(const cnri_tuning *t, cnri_text *out) {
    const size_t begin = out->n;
    for (int32_t i = 0; i < t->rows.n; i++) {
        const cnri_timed *row = &t->rows.at[i];
        cnri_text_add(out, "{\"key\":");
        cnri_text_json(out, row->key);
        cnri_text_add(out, ",\"kernel\":");
        cnri_text_json(out, row->kernel);
        for (size_t k = 0; k < CNRI_COUNT(numbers); k++) {
            char number[64];
            const double value = *number_of((cnri_cost *)&row->cost, k);
            if (k > 0 && !(value > 0)) continue;
            cnri_print_double(number, sizeof number, value);
            cnri_text_add(out, ",\"%s\":%s", numbers[k], number);
        }
        cnri_text_add(out, "}\n");
    }
    uint8_t digest[32];
    char hex[65];
    if (out->failed) return;
    cnri_sha256_of(out->at + begin, out->n - begin, digest);
    cnri_hex(digest, sizeof digest, hex);
    cnri_text_add(out, "%s%s\"}\n", seal, hex);
}

/* Copies the text between `before` and the next quote; false if `before` is not at *at. */
static bool quoted(const char **at, const char *before, char *out, size_t capacity) {
    const size_t n = strlen(before);
    if (strncmp(*at, before, n) != 0) return false;
    const size_t length = strcspn(*at + n, "\"\\\n");
    if ((*at)[n + length] != '"' || length == 0 || length >= capacity) return false;
    memcpy(out, *at + n, length);
    out[length] = 0;
    *at += n + length + 1;
    return true;
}

/* Numbers follow in the order of `numbers`. False: it failed. */
static bool parse_row(const char *at, cnri_timed *row) {
    if (!quoted(&at, "{\"key\":\"", row->key, sizeof row->key) ||
        !quoted(&at, ",\"kernel\":\"", row->kernel, sizeof row->kernel))
        return false;
    for (size_t k = 0; k < CNRI_COUNT(numbers); k++) {
        char before[16];
        double *to = number_of(&row->cost, k);
        snprintf(before, sizeof before, ",\"%s\":", numbers[k]);
        if (strncmp(at, before, strlen(before)) != 0) continue;
        if (!cnri_parse_double(at + strlen(before), &at, to) || !(*to > 0 && *to < 1e15))
            return false;
    }
    row->cost.from = CNRI_MEASURED;
    return *at == '}' && row->cost.ns > 0;
}

/* Compares key and kernel, for sorting. */
static int by_name(const void *a, const void *b) {
    const cnri_timed *x = a, *y = b;
    return compare(x, y->key, y->kernel);
}

/* True if the text ends in the digest of what is before. */
static bool sealed(const char *text, size_t n) {
    uint8_t digest[32];
    char hex[65];
    if (n < SEAL || memcmp(text + n - SEAL, seal, sizeof seal - 1) != 0) return false;
    cnri_sha256_of(text, n - SEAL, digest);
    cnri_hex(digest, sizeof digest, hex);
    return memcmp(text + n - SEAL + sizeof seal - 1, hex, 64) == 0;
}

cnr_status cnri_tuning_parse(cnri_tuning *t, const char *text, cnr_error *err) {
    const size_t n = strlen(text);
    if (!sealed(text, n))
        return cnri_fail(err, CNR_E_FORMAT, "",
                         "its digest is missing or wrong: it was changed or "
                         "cut short");
    for (const char *end = text + n - SEAL; text < end;) {
        cnri_timed row = {.key = ""}, *slot;
        const char *line = text;
        text += strcspn(text, "\n") + 1;
        if (!parse_row(line, &row)) continue;
        if (!(slot = cnri_push(&t->rows))) return cnri_no_memory(err);
        *slot = row;
    }
    if (t->rows.n) qsort(t->rows.at, (size_t)t->rows.n, sizeof *t->rows.at, by_name);
    return CNR_OK;
}
