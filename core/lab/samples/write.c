/* Writes pictures and sequences of pictures through source plugins. */
#include "samples/samples.h"

/* The source plugin that fits the path best among those that write pictures, or (sequence)
 * sequences; NULL: none. */
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

/* ---- sequences ---- */

/* A sequence of pictures that is being written, as a video. */
struct cnr_writer {
    const cnr_source *source;
    void *state;
    const cnri_limits *limits; /* limits of the thread that opened the writer */
    cnr_status status;         /* of the first cnr_writer_put that failed */
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
