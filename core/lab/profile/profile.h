/* profile: measures how long each step of a run takes. It listens to a session's events, and
 * costs nothing when it is not used. */
#ifndef CNRI_PROFILE_H
#define CNRI_PROFILE_H

#include "run/run.h"
#include "show/show.h"

/* ---- profile.c: times of each step over many runs. While it listens, the session finishes each
 * step before the next, so that devices with queues can be timed by the clock. ---- *
 * cnri_profile *p = cnri_profile_new(plan); cnri_session_listen(session, cnri_profile_hear, p,
 * true, &id, &err); cnr_session_run(session, &err);   as often as wanted cnri_profile_row(p,
 * step, &row); cnr_session_unlisten(session, id); cnri_profile_free(p); */
typedef struct cnri_profile cnri_profile;
/* Number of runs, and their nanoseconds: in all, and of the shortest. */
typedef struct cnri_step_time {
    uint64_t runs, total_ns, least_ns;
} cnri_step_time;

/* NULL: out of memory. The plan must outlive the profile. */
cnri_profile *cnri_profile_new(const cnr_plan *plan);
void cnri_profile_free(cnri_profile *p); /* NULL: nothing */
/* Discards the measured times, for example after warming up. */
void cnri_profile_reset(cnri_profile *p);
/* Event function of a session: takes times into the profile. */
void cnri_profile_hear(void *profile, const cnri_event *event);
/* The times of step `step`, or of whole runs for -1. */
cnri_step_time cnri_profile_of(const cnri_profile *p, int32_t step);
/* Puts times of an earlier profile of the same plan back; step < 0: those of the whole run. */
void cnri_profile_put(cnri_profile *p, int32_t step, const cnri_step_time *time);
/* Fills *out with what is known of a step, with mean and least ms; its texts are the plan's. */
void cnri_profile_row(const cnri_profile *p, int32_t step, cnr_step_timing *out);
/* reads.c: estimates the bytes that each step reads from memory, when the caches of the devices
 * (`caches`: bytes, by device of the plan) hold what was used last. False: out of memory. */
bool cnri_profile_reads(const cnr_plan *plan, const double *caches, double *out);

#endif
