/* Finds the source plugin that reads a spec, and reads samples through it. */
#include "data/data.h"
#include <sys/stat.h>

/* Reads the first bytes if `spec` is a regular file, and returns how many; else -1. */
static int64_t head_of(const char *spec, uint8_t *head, size_t capacity) {
    size_t n;
    return cnri_read_head(spec, head, capacity, &n, NULL) == CNR_OK ? (int64_t)n : -1;
}

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
    if (!out->source) return nothing_reads(spec, stat(spec, &about) == 0, err);
    return cnri_limits_source(out->limits, out->source, spec, 0, err);
}

static cnr_status open_plain(const char *spec, const char *split, cnri_samples *out,
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

cnr_status cnri_samples_open(const char *spec, const char *split, cnri_samples *out,
                             cnr_error *err) {
    cnri_augment augment = {0};
    char *plain = cnri_strdup(spec);
    memset(out, 0, sizeof *out);
    if (!plain) return cnri_out_of_memory(err, spec);
    cnr_status status = cnri_augment_read(plain, &augment, err);
    if (!status) status = open_plain(plain, split, out, err);
    out->augment = augment;
    cnri_free(plain);
    return status;
}

cnr_status cnri_samples_choose(cnri_samples *s, const cnr_selection *span, cnr_error *err) {
    if (span->every <= 1 && !span->from_ns && !span->to_ns) return CNR_OK;
    if (span->to_ns && span->to_ns <= span->from_ns)
        return cnri_fail(err, CNR_E_ARG, s->source->name, "the span ends before it begins");
    if (CNRI_HAS(s->source, select)) {
        const cnri_limits *outer = cnri_limits_enter(s->limits);
        const cnr_status status = s->source->select(s->state, span, &s->info, err);
        cnri_limits_enter(outer);
        return status;
    }
    if (span->from_ns || span->to_ns)
        return cnri_fail(err, CNR_E_ARG, s->source->name,
                         "these samples have no times to choose by");
    s->every = span->every;
    if (s->info.count > 0) s->info.count = (s->info.count + s->every - 1) / s->every;
    return CNR_OK;
}

bool cnri_samples_ended(const cnri_samples *s, cnr_status status) {
    return s->info.count < 0 && status == CNR_E_NOT_FOUND;
}

/* Checks a sample that a plugin returned. */
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

cnr_status cnri_samples_vary(cnri_samples *s, int64_t index, uint64_t seed, int64_t round,
                             cnr_sample *out, cnr_error *err) {
    cnr_status status = cnri_samples_read(s, index, out, err);
    if (status) return status;
    status = cnri_augment_apply(&s->augment, seed, round, index, &out->picture, err);
    if (!status) return status;
    cnri_free(out->picture.data);
    out->picture.data = NULL;
    return status;
}

void cnri_samples_close(cnri_samples *s) {
    if (s->source && s->source->close) s->source->close(s->state);
    memset(s, 0, sizeof *s);
}

/* ---- writing ---- */

static const cnr_source *writer_of(const char *path, bool sequence) {
    const cnr_source *best = NULL;
    int32_t maximum = 0;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_SOURCE); i++) {
        const cnr_source *source = cnri_descriptor_at(CNR_KIND_SOURCE, i);
        const bool writes = sequence ? CNRI_HAS(source, write_open) : CNRI_HAS(source, write);
        const int32_t score = writes ? source->accepts(path, NULL, 0) : 0;
        if (score > maximum) {
            maximum = score;
            best = source;
        }
    }
    return best;
}

bool cnri_picture_writable(const char *path) { return writer_of(path, false) != NULL; }

cnr_status cnri_picture_write(const char *path, const cnr_tensor *picture, cnr_error *err) {
    const cnr_source *source = writer_of(path, false);
    if (!source)
        return cnri_fail(err, CNR_E_UNSUPPORTED, path, "no source plugin writes such pictures");
    const cnri_limits *outer = cnri_limits_enter(cnri_limits_of_thread());
    cnr_status status = cnri_limits_source(cnri_limits_of_thread(), source, path, 1, err);
    if (!status) status = source->write(path, picture, err);
    cnri_limits_enter(outer);
    return status;
}

/* ---- writing one behind the other ---- */

struct cnr_writer {
    const cnr_source *source;
    void *state;
    const cnri_limits *limits; /* limits of the script that opened it; NULL: no script did */
    cnr_status status;         /* status of the first put that failed */
    cnr_error why;
};

cnr_status cnr_writer_open(cnr_runtime *rt, const char *spec, cnr_writer **out, cnr_error *err) {
    if (out) *out = NULL;
    cnr_status status = cnri_require_arguments(err, "runtime", rt, "spec", spec, "out", out, NULL);
    if (status) return status;
    const cnr_source *source = writer_of(spec, true);
    if (!source)
        return cnri_fail(err, CNR_E_UNSUPPORTED, spec, "no source plugin writes such sequences");
    cnr_writer *w = cnri_alloc_zero(sizeof *w);
    if (!w) return cnri_out_of_memory(err, spec);
    w->source = source;
    w->why.size = sizeof w->why;
    w->limits = cnri_limits_of_thread();
    const cnri_limits *outer = cnri_limits_enter(w->limits);
    status = cnri_limits_source(w->limits, source, spec, 1, err);
    if (!status)
        status =
            cnri_plugin_status(err, source->write_open(spec, &w->state, err), spec, source->name);
    cnri_limits_enter(outer);
    if (status) cnri_free(w);
    else *out = w;
    return status;
}

cnr_status cnr_writer_from(cnr_writer *w, const char *spec, uint64_t from_ns, uint64_t to_ns,
                           cnr_error *err) {
    cnr_status status = cnri_require_arguments(err, "writer", w, "spec", spec, NULL);
    const cnr_selection span = {.size = sizeof span, .from_ns = from_ns, .to_ns = to_ns};
    if (status || !CNRI_HAS(w->source, write_from)) return status;
    const cnri_limits *outer = cnri_limits_enter(w->limits);
    status = cnri_limits_source(w->limits, w->source, spec, 0, err);
    if (!status)
        status = cnri_plugin_status(err, w->source->write_from(w->state, spec, &span, err), spec,
                                    w->source->name);
    cnri_limits_enter(outer);
    return status;
}

cnr_status cnr_writer_put(cnr_writer *w, const cnr_tensor *picture, const char *name,
                          uint64_t time_ns, cnr_error *err) {
    cnr_status status = cnri_require_arguments(err, "writer", w, "picture", picture, NULL);
    if (!status) status = cnri_tensor_check(picture, "picture", err);
    if (status) return status;
    if (w->status) return cnri_fail(err, w->status, w->why.where, "%s", w->why.text);
    if (picture->dtype != CNR_u8 || picture->rank != 3 || !picture->data || picture->dim[0] < 1 ||
        picture->dim[1] < 1 || (picture->dim[2] != 1 && picture->dim[2] != 3))
        return cnri_fail(err, CNR_E_SHAPE, "picture", "want u8, H W C with 1 or 3 channels");
    cnr_sample sample = {.size = sizeof sample,
                         .label = -1,
                         .picture = *picture,
                         .time_ns = time_ns == CNR_NO_TIME ? 0 : time_ns,
                         .is_timed = time_ns != CNR_NO_TIME};
    if (name) snprintf(sample.name, sizeof sample.name, "%s", name);
    const cnri_limits *outer = cnri_limits_enter(w->limits);
    w->status = cnri_plugin_status(&w->why, w->source->write_next(w->state, &sample, &w->why),
                                   w->source->name, "writing");
    cnri_limits_enter(outer);
    return w->status ? cnri_fail(err, w->status, w->why.where, "%s", w->why.text) : CNR_OK;
}

cnr_status cnr_writer_close(cnr_writer *w, cnr_error *err) {
    if (!w) return cnri_require_arguments(err, "writer", w, NULL);
    const cnr_status status = w->status;
    if (status) cnri_fail(err, status, w->why.where, "%s", w->why.text);
    const cnri_limits *outer = cnri_limits_enter(w->limits);
    const cnr_status closed = w->source->write_close(w->state, status, err);
    cnri_limits_enter(outer);
    const cnr_status all =
        status ? status : cnri_plugin_status(err, closed, w->source->name, "closing");
    cnri_free(w);
    return all;
}
