/* Finds the source plugin that reads a spec, and reads samples through it. */
#include "pictures/pictures.h"
#include <sys/stat.h>

/* Reads the first bytes if `spec` is a regular file, and returns how many; else -1. */
static int64_t head_of(const char *spec, uint8_t *head, size_t capacity) {
    size_t n;
    return cnri_read_head(spec, head, capacity, &n, NULL) == CNR_OK ? (int64_t)n : -1;
}

/* Fails: no source reads the specification (CNR_E_NOT_FOUND, or CNR_E_UNSUPPORTED if such a file
 * exists); lists those that are known. */
static cnr_status nothing_reads(const char *spec, bool exists, cnr_error *err) {
    cnri_text known = {0};
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_SOURCE); i++) {
        const cnr_source *s = cnri_descriptor_at(CNR_KIND_SOURCE, i);
        cnri_text_add(&known, "%s%s", i ? ", " : "", s->syntax ? s->syntax : s->name);
    }
    const cnr_status status =
        cnri_fail(err, exists ? CNR_E_UNSUPPORTED : CNR_E_NOT_FOUND, spec, "%s; sources known: %s",
                  exists ? "no source reads this" : "no such file, and no source reads this",
                  known.at && *known.at ? known.at : "none (no source plugin was found)");
    cnri_text_free(&known);
    return status;
}

/* Finds the source that accepts the spec and checks that the script's limits allow it. */
static cnr_status find_source(const char *spec, cnri_samples *out, cnr_error *err) {
    uint8_t head[512];
    struct stat about;
    const int64_t n = cnri_limits_file(spec, 0, NULL) ? -1 : head_of(spec, head, sizeof head);
    int32_t best = 0;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_SOURCE); i++) {
        const cnr_source *source = cnri_descriptor_at(CNR_KIND_SOURCE, i);
        const int32_t score = source->accepts(spec, n < 0 ? NULL : head, n < 0 ? 0 : (size_t)n);
        if (score > best) {
            best = score;
            out->source = source;
        }
    }
    const bool exists = stat(spec, &about) == 0;
    if (!out->source && exists && S_ISFIFO(about.st_mode))
        return cnri_fail(err, CNR_E_UNSUPPORTED, spec,
                         "is a pipe; - reads standard input, if that is one");
    if (!out->source) return nothing_reads(spec, exists, err);
    return cnri_limits_source(out->limits, out->source, spec, 0, err);
}

cnr_status cnri_samples_open(const char *spec, const char *split, cnri_samples *out,
                             cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    memset(out, 0, sizeof *out);
    out->limits = cnri_limits_of_thread();
    const cnri_limits *outer = cnri_limits_enter(out->limits);
    cnr_status status = find_source(spec, out, err);
    if (out->limits && out->limits->vouched(out->limits->script, spec))
        cnri_limits_enter(out->limits = NULL);
    out->info.size = sizeof out->info;
    if (!status) status = out->source->open(spec, split, &out->state, &out->info, err);
    cnri_limits_enter(outer);
    const bool opened = status == CNR_OK;
    status = cnri_alloc_verdict(before, status, spec, err);
    if (status && opened) cnri_samples_close(out);
    if (status) memset(out, 0, sizeof *out);
    return status;
}

/* Fails unless a plugin's sample is a u8 picture of 1 or 3 channels; then its pixels are freed.
 * Ends its name with a NUL. */
static cnr_status check(const cnri_samples *s, cnr_sample *sample, cnr_error *err) {
    const cnr_tensor *t = &sample->picture;
    sample->name[sizeof sample->name - 1] = 0;
    const bool good = t->data && t->dtype == CNR_u8 && t->rank == 3 && t->dim[0] > 0 &&
                      t->dim[1] > 0 && (t->dim[2] == 1 || t->dim[2] == 3);
    if (good) return CNR_OK;
    cnri_free(sample->picture.data);
    sample->picture.data = NULL;
    return cnri_fail(err, CNR_E_FORMAT, s->source->name,
                     "sample %s is no u8 picture of 1 or 3 channels", sample->name);
}

cnr_status cnri_samples_read(cnri_samples *s, int64_t index, cnr_sample *out, cnr_error *err) {
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->label = -1;
    out->picture.size = sizeof out->picture;
    if (!s->source) return cnri_fail(err, CNR_E_STATE, "samples", "not open");
    if (index < 0 || (s->info.count >= 0 && index >= s->info.count))
        return cnri_fail(err, CNR_E_ARG, s->source->name, "there is no sample %lld",
                         (long long)index);
    const int64_t before = cnri_alloc_failures();
    const int64_t at = s->every > 1 ? index * s->every : index;
    const cnri_limits *outer = cnri_limits_enter(s->limits);
    cnr_status status = s->source->read(s->state, at, out, err);
    cnri_limits_enter(outer);
    status = cnri_alloc_verdict(before, status, s->source->name, err);
    if (status) {
        cnri_free(out->picture.data);
        out->picture.data = NULL;
        return status;
    }
    return check(s, out, err);
}

void cnri_samples_close(cnri_samples *s) {
    if (s->source && s->source->close) s->source->close(s->state);
    memset(s, 0, sizeof *s);
}
