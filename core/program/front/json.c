/* Builds JSON objects piece by piece and prints them, one a line, on stdout. */
#include "front/front.h"
#include "people/people.h"
#include <errno.h>
#include <math.h>

/* Appends comma and key; NULL: no key. */
static void lead(cnri_json *j, const char *key) {
    if (j->comma) cnri_text_add(&j->text, ",");
    j->comma = true;
    if (!key) return;
    cnri_text_json(&j->text, key);
    cnri_text_add(&j->text, ":");
}

/* Begins an object or list. */
static void open_with(cnri_json *j, const char *key, char opener, char closer) {
    lead(j, key);
    cnri_text_add(&j->text, "%c", opener);
    if (j->depth < (int32_t)sizeof j->closers) j->closers[j->depth++] = closer;
    else j->text.failed = true;
    j->comma = false;
}

void cnri_json_begin(cnri_json *j) {
    memset(j, 0, sizeof *j);
    open_with(j, NULL, '{', '}');
}

void cnri_json_object(cnri_json *j, const char *key) { open_with(j, key, '{', '}'); }

void cnri_json_list(cnri_json *j, const char *key) { open_with(j, key, '[', ']'); }

void cnri_json_end(cnri_json *j) {
    if (j->depth < 1) return;
    cnri_text_add(&j->text, "%c", j->closers[--j->depth]);
    j->comma = true;
}

void cnri_json_text(cnri_json *j, const char *key, const char *value) {
    lead(j, key);
    if (value) cnri_text_json(&j->text, value);
    else cnri_text_add(&j->text, "null");
}

void cnri_json_int(cnri_json *j, const char *key, int64_t value) {
    lead(j, key);
    cnri_text_add(&j->text, "%lld", (long long)value);
}

void cnri_json_real(cnri_json *j, const char *key, double value) {
    char number[64];
    lead(j, key);
    if (isfinite(value)) cnri_print_double(number, sizeof number, value);
    else snprintf(number, sizeof number, "null");
    cnri_text_add(&j->text, "%s", number);
}

void cnri_json_bool(cnri_json *j, const char *key, bool value) {
    lead(j, key);
    cnri_text_add(&j->text, value ? "true" : "false");
}

void cnri_json_warnings(cnri_json *j, const cnr_graph *g) {
    if (g->warnings.n == 0) return;
    cnri_json_list(j, "warnings");
    for (int32_t i = 0; i < g->warnings.n; i++) cnri_json_text(j, NULL, g->warnings.at[i]);
    cnri_json_end(j);
}

cnr_status cnri_tell_text(const cnri_text *text, cnr_error *err) {
    if (text->failed) return cnri_out_of_memory(err, "output");
    if (text->n && (cnri_say_lines(stdout, text->at, text->n) < 0 || fflush(stdout) != 0))
        return cnri_fail(err, CNR_E_IO, "output", "can't write: %s", strerror(errno));
    return CNR_OK;
}

cnr_status cnri_json_print(cnri_json *j, cnr_error *err) {
    if (j->depth == 1) cnri_text_simulated(&j->text);
    while (j->depth > 0) cnri_json_end(j);
    cnri_text_bytes(&j->text, "\n", 1);
    const cnr_status status = cnri_tell_text(&j->text, err);
    cnri_text_free(&j->text);
    return status;
}
