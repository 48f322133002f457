/* watch: what runs cost. Listens to a session's events; nothing here runs when nobody asks. */
#ifndef CNRI_WATCH_H
#define CNRI_WATCH_H

#include "core/run/run.h"

/* ---- profile.c: time of each step over many runs. While it listens the session finishes each step
 * before the next, so that devices with queues can be timed by the clock. ----
 *
 *     cnri_profile *p = cnri_profile_new(plan);
 *     cnri_session_listen(session, cnri_profile_hear, p, true);
 *     cnr_session_run(session, &err);   as often as wanted
 *     cnri_profile_print(p, json, &text);
 *     cnri_session_listen(session, NULL, NULL, false);
 *     cnri_profile_free(p); */
typedef struct cnri_profile cnri_profile;
typedef struct cnri_step_time {
    uint64_t runs, total_ns, least_ns;
} cnri_step_time;

/* NULL when out of memory. The plan must outlive it. */
cnri_profile *cnri_profile_new(const cnr_plan *plan);
void cnri_profile_free(cnri_profile *p);
/* Forgets what was measured (after warming up). */
void cnri_profile_reset(cnri_profile *p);
void cnri_profile_hear(void *profile, const cnri_event *event);
/* Times of step `step`; of whole runs for -1. */
cnri_step_time cnri_profile_of(const cnri_profile *p, int32_t step);
/* A table of steps and one of operators, longest first; or JSON lines {"step":...} and {"op":...}.
 */
void cnri_profile_print(const cnri_profile *p, bool json, cnri_text *out);

#endif
