/* Observers: report progress of long work, and stop it. */
#include "work/work.h"
#include <math.h>

bool cnri_stopped(const cnr_observer *o) {
    return o && CNRI_HAS(o, cancel) && __atomic_load_n(o->cancel, __ATOMIC_RELAXED) != 0;
}

bool cnri_notify_progress(const cnr_observer *o, const cnr_progress *p) {
    if (o && CNRI_HAS(o, progress) && o->progress(o->arg, p) != 0) return false;
    return !cnri_stopped(o);
}

bool cnri_notify_event(const cnr_observer *o, int32_t kind, const void *of) {
    if (o && CNRI_HAS(o, event) && o->event(o->arg, kind, of) != 0) return false;
    return !cnri_stopped(o);
}

cnr_status cnri_report_progress(const cnr_observer *o, const char *what, int64_t done,
                                int64_t total, cnr_error *err) {
    const cnr_progress p =
        {.size = sizeof p, .what = what, .done = done, .total = total, .top1 = NAN, .loss = NAN};
    return cnri_notify_progress(o, &p) ? CNR_OK : cnri_fail(err, CNR_E_CANCELLED, what, "stopped");
}
