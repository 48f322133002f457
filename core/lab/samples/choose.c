/* Selects samples of a source, and reads them with augmentation. */
#include "samples/samples.h"

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
        return cnri_fail(err, CNR_E_ARG, s->source->name, "has no times to choose by");
    s->every = span->every;
    if (s->info.count > 0) s->info.count = (s->info.count + s->every - 1) / s->every;
    return CNR_OK;
}

bool cnri_samples_ended(const cnri_samples *s, cnr_status status) {
    return s->info.count < 0 && status == CNR_E_NOT_FOUND;
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
