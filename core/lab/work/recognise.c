/* Runs a net on pictures one after the other and reports its answers. */
#include "work/work.h"
#include "samples/samples.h"
#include <math.h>

enum { MAX_CLASSES = 1 << 20 }; /* most scores; more are a picture or a map */

/* Pictures that are being recognised. */
typedef struct job {
    const cnr_observer *observer;
    const cnr_selection *choice;
    cnri_runner runner;
    cnr_top *top; /* room for `capacity` entries */
    int32_t capacity;
} job;

/* Fills the best classes from output 0, if it has scores of classes. */
static cnr_status judge(job *j, cnri_recognised *a, cnr_error *err) {
    const cnr_tensor *whole;
    cnr_tensor sample;
    const cnr_status status = cnr_session_output(j->runner.session, 0, &whole, err);
    if (status) return status;
    if (!cnri_runner_slice(&j->runner, whole, 0, &sample) || !cnri_is_classes(&sample) ||
        cnr_count(&sample) > MAX_CLASSES)
        return CNR_OK;
    a->classes = true;
    a->shares = cnri_are_shares(&sample);
    a->n = cnr_topk(&sample, j->capacity, j->top);
    return CNR_OK;
}

/* Runs one picture, which is released once the input is made. */
static cnr_status run_sample(job *j, cnr_sample *sample, cnr_error *err) {
    const bool timed = sample->is_timed || sample->time_ns;
    cnri_recognised a = {.picture = sample->name,
                         .top = j->top,
                         .seconds = timed ? (double)sample->time_ns / 1e9 : (double)NAN};
    uint64_t ns = 0;
    cnr_status status = cnri_runner_shape(&j->runner, 1, &sample->picture, err);
    if (!status) status = cnri_runner_put(&j->runner, 0, &sample->picture, err);
    cnri_free(sample->picture.data);
    if (!status) status = cnri_runner_run(&j->runner, &ns, err);
    if (!status) status = judge(j, &a, err);
    a.ms = (double)ns * 1e-6;
    a.session = j->runner.session;
    if (status || cnri_notify_event(j->observer, CNRI_EVENT_PICTURE, &a)) return status;
    return cnri_fail(err, CNR_E_CANCELLED, sample->name, "stopped");
}

/* Reports a picture that can't be read, and goes on. */
static cnr_status passed_over(job *j, const char *name, const cnr_error *why, cnr_error *err) {
    const cnri_recognised a = {.picture = name, .err = why};
    const bool bad = why->code == CNR_E_FORMAT || why->code == CNR_E_NOT_FOUND ||
                     why->code == CNR_E_IO || why->code == CNR_E_LIMIT ||
                     why->code == CNR_E_UNSUPPORTED;
    if (!bad) return cnri_fail(err, why->code, why->where, "%s", why->text);
    if (cnri_notify_event(j->observer, CNRI_EVENT_PICTURE, &a)) return CNR_OK;
    return cnri_fail(err, CNR_E_CANCELLED, name, "stopped");
}

/* Recognises all samples of one source; one that can't be read is passed over. */
static cnr_status run_spec(job *j, const char *spec, cnr_error *err) {
    cnri_samples samples;
    cnr_error why = CNR_ERROR_INIT;
    if (cnri_augment_open(spec, "eval", &samples, &why)) return passed_over(j, spec, &why, err);
    if (cnri_samples_choose(&samples, j->choice, &why)) {
        cnri_samples_close(&samples);
        return cnri_fail(err, why.code, why.where, "%s", why.text);
    }
    const int64_t n = samples.info.count; /* negative: reads until the stream ends */
    cnr_status status = CNR_OK;
    for (int64_t i = 0; !status && (n < 0 || i < n); i++) {
        cnr_sample sample;
        why = (cnr_error)CNR_ERROR_INIT;
        if (cnri_samples_read(&samples, i, &sample, &why)) {
            if (cnri_samples_ended(&samples, why.code)) break;
            status = passed_over(j, spec, &why, err);
            if (n < 0) break; /* a stream that failed once fails again */
            continue;
        }
        status = run_sample(j, &sample, err);
    }
    cnri_samples_close(&samples);
    return status;
}

cnr_status cnri_recognise(cnr_model *model, const char *const *specs, int32_t n,
                          const cnr_selection *choice, int32_t top, const cnr_observer *observer,
                          cnr_error *err) {
    job j = {.observer = observer, .choice = choice, .capacity = top};
    cnr_status status = cnri_runner_open(&j.runner, model, observer, err);
    j.runner.adapts = model->adapting.state != NULL;
    j.top = cnri_alloc((size_t)top * sizeof *j.top + 1);
    if (!status && !j.top) status = cnri_out_of_memory(err, "scores");
    for (int32_t i = 0; i < n && !status; i++) status = run_spec(&j, specs[i], err);
    cnri_runner_close(&j.runner);
    cnri_free(j.top);
    return status;
}
