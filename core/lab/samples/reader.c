/* Reads the pictures of a source one after another, for applications. */
#include "samples/samples.h"

/* An open source that an application reads one sample at a time. */
struct cnr_reader {
    cnri_samples samples;
    cnr_sample now; /* the last sample read; valid until the next read */
    int64_t next;
};

/* Opens a source of pictures by its spec ("images:FOLDER"). Close *out with cnr_reader_close; on
 * failure it is NULL. */
cnr_status cnr_reader_open(cnr_runtime *rt, const char *spec, cnr_reader **out, cnr_error *err) {
    if (out) *out = NULL;
    cnr_status status = cnri_require_arguments(err, "runtime", rt, "spec", spec, "out", out, NULL);
    if (status) return status;
    cnr_reader *r = cnri_alloc_zero(sizeof *r);
    if (!r) return cnri_out_of_memory(err, spec);
    status = cnri_augment_open(spec, NULL, &r->samples, err);
    if (status) cnri_free(r);
    else *out = r;
    return status;
}

cnr_status cnr_reader_next(cnr_reader *r, const cnr_tensor **picture, uint64_t *time_ns,
                           const char **name, cnr_error *err) {
    cnr_status status = cnri_require_arguments(err, "reader", r, "picture", picture, NULL);
    if (status) return status;
    *picture = NULL;
    cnri_free(r->now.picture.data);
    r->now = (cnr_sample){.size = sizeof r->now, .label = -1};
    if (r->samples.info.count >= 0 && r->next >= r->samples.info.count) return CNR_OK;
    status = cnri_samples_read(&r->samples, r->next, &r->now, err);
    if (cnri_samples_ended(&r->samples, status)) return CNR_OK;
    r->next++; /* a picture that can't be read is skipped by the next call */
    if (status) return status;
    const bool timed = r->now.is_timed || r->now.time_ns;
    if (time_ns) *time_ns = timed ? r->now.time_ns : CNR_NO_TIME;
    if (name) *name = r->now.name;
    *picture = &r->now.picture;
    return CNR_OK;
}

void cnr_reader_close(cnr_reader *r) {
    if (!r) return;
    cnri_free(r->now.picture.data);
    cnri_samples_close(&r->samples);
    cnri_free(r);
}
