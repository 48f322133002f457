/* The record of measured times in a cache folder: lines of JSON that end in a digest. */
#include "keep/keep.h"
#include "people/people.h"
#include <stdlib.h>

/* Names of a row's numbers; all but the first may be missing. */
static const char *const numbers[] = {"ns", "rest", "joules", "mhz"};

/* Address of the cost's number `which`, in the order of `numbers`. */
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

/* Parses one printed row into *row; false if it is malformed. Numbers follow in the order of
 * `numbers`. */
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

/* Compares two rows by key, then by kernel, for qsort. */
static int by_name(const void *a, const void *b) {
    const cnri_timed *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    return order ? order : strcmp(x->kernel, y->kernel);
}

/* True if the n bytes of text end with a seal line that holds the SHA-256 of what is before it. */
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
        if (!(slot = cnri_push(&t->rows))) return cnri_out_of_memory(err, "record");
        *slot = row;
    }
    if (t->rows.n) qsort(t->rows.at, (size_t)t->rows.n, sizeof *t->rows.at, by_name);
    return CNR_OK;
}

/* ---- the file ---- */

enum { MAX_RECORD = 16 << 20 };

cnr_status cnri_tuning_load(const char *folder, cnri_tuning *out, uint8_t print[16],
                            cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    char *path = cnri_path_join(folder, CNRI_TUNING_FILE), *text = NULL;
    cnr_error why = CNR_ERROR_INIT;
    size_t bytes = 0;
    memset(print, 0, 16);
    if (!path) return cnri_out_of_memory(err, folder);
    cnr_status status = cnri_read_kept(path, MAX_RECORD, &text, &bytes, &why);
    if (!status) status = cnri_tuning_parse(out, text, &why);
    if (!status) cnri_fingerprint(text, bytes, print);
    if (status == CNR_E_NOT_FOUND) status = CNR_OK; /* no record exists yet */
    status = cnri_alloc_verdict(before, status, path, &why);
    if (status) cnri_fail(err, status, *why.where ? why.where : path, "%s", why.text);
    cnri_free(text);
    cnri_free(path);
    return status;
}
