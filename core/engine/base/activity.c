/* What a plugin is doing for this thread, and for the process: signal handlers tell it. */
#include "base/base.h"

static _Thread_local const cnri_activity *own;
static const cnri_activity *latest; /* of any thread */

void cnri_activity_begin(cnri_activity *a) {
    a->outer = own;
    own = a;
    __atomic_store_n(&latest, a, __ATOMIC_RELEASE);
}

void cnri_activity_end(const cnri_activity *a) {
    const cnri_activity *mine = a;
    own = a->outer;
    __atomic_compare_exchange_n(&latest, &mine, a->outer, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

const cnri_activity *cnri_activity_of_thread(void) { return own; }

const cnri_activity *cnri_activity_latest(void) {
    return __atomic_load_n(&latest, __ATOMIC_ACQUIRE);
}
