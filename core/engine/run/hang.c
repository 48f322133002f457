/* Calls of a session whose devices may never return from them. */
#include "run/session.h"
#include <unistd.h>

enum { TIMES_THE_ESTIMATE = 100 };

/* Expected nanoseconds of a run: the net's operations at 10 a nanosecond, or the last run's time if
 * that was longer. */
static uint64_t estimate_ns(const cnr_session *s) {
    const uint64_t guess = (uint64_t)(s->plan->flops / 10);
    return guess > s->last_run_ns ? guess : s->last_run_ns;
}

/* Nanoseconds after which a run counts as hanging: as set, or from the plan's estimate. */
static uint64_t limit_ns(const cnr_session *s) {
    const uint64_t ms = 1000000, usual = TIMES_THE_ESTIMATE * estimate_ns(s);
    if (s->plan->hang_ms) return s->plan->hang_ms * ms;
    return usual > CNRI_HANG_MS * ms ? usual : CNRI_HANG_MS * ms;
}

/* Calls the session's function, on whichever thread. */
static cnr_status call(void *arg, cnr_error *err) {
    cnr_session *s = arg;
    return s->fn(s, err);
}

/* True if a device of the session hangs. */
static bool is_lost(const cnr_session *s) {
    for (int32_t i = 0; i < s->plan->n_devices; i++)
        if (cnri_device_is_lost(s->plan->devices[i])) return true;
    return false;
}

cnr_status cnri_session_call(cnr_session *s, cnri_session_fn fn, cnr_error *err) {
    static const int32_t cancelled = 1;
    const cnri_hang_guard g = {s->plan->devices, s->plan->n_devices, limit_ns(s),
                               s->plan->gives_up};
    /* A child after fork has no worker threads. */
    if (s->model && s->model->rt->pid != getpid()) return fn(s, err);
    s->fn = fn;
    const cnr_status status = cnri_hang_call(&s->worker, &g, call, s, err);
    if (!status || !is_lost(s)) return status;
    s->lost = true;
    if (s->model) s->model->lost = true;
    for (int32_t i = 0; i < s->opened; i++) s->streams[i].cancel = &cancelled;
    return status;
}
