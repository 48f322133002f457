/* watch: what runs cost. Listens to a session's events; nothing here runs when nobody asks. */
#ifndef CNRI_WATCH_H
#define CNRI_WATCH_H

#include "core/run/run.h"

/* ---- profile.c: time of each step over many runs. While it listens the session finishes each step
 * before the next, so that devices with queues can be timed by the clock. ----
 *
 *     cnri_profile *p = cnri_profile_new(plan);
 *     cnri_session_listen(session, cnri_profile_hear, p, true, &id, &err);
 *     cnr_session_run(session, &err);   as often as wanted
 *     cnri_profile_row(p, step, &row);
 *     cnr_session_unlisten(session, id);
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
/* What is known of step `step`, with mean and least; texts are the plan's. */
void cnri_profile_row(const cnri_profile *p, int32_t step, cnr_step_timing *out);
/* reads.c: bytes that each step reads out of memory, `caches` (bytes, by device of the plan) having kept what they
 * can; false: out of memory. */
bool cnri_profile_reads(const cnr_plan *plan, const double *caches, double *out);

/* ---- sampler.c: all domains of energy and power of this machine, read every 50 ms, or as often as their
 * sensor has something new, by one thread; less often where a reading costs more than it may. By a plugin's clock no thread would know when to look: then
 * whoever measures reads, at the beginning, at the end, and in between as often as it can. ---- */
typedef struct cnri_sampler cnri_sampler;
enum { CNRI_SAMPLE_MS = 50, CNRI_PERIODS = 20 }; /* what lasts less periods than these tells little */

/* What a domain told since the sampler was opened. */
typedef struct cnri_told_energy {
    double joules;
    uint64_t covered_ns;     /* the time that they are of */
    int64_t samples, lapses; /* readings; those that did not follow from the one before */
    double n, sum, squares;  /* watts between two readings that differ in time */
    const char *lapse;       /* what the last one was */
    int32_t status;          /* of the last reading, and why */
    char why[128];
} cnri_told_energy;
typedef struct cnri_reading_point {
    uint64_t now_ns, sampler_ns; /* the latter: processor time of the thread so far */
    cnri_told_energy *at;    /* by domain */
} cnri_reading_point;
/* What is drawn while nothing is asked for; NaN: not measured. why: it is not to be believed; else "". */
typedef struct cnri_rest {
    double watts, spread;
    char why[80];
} cnri_rest;
typedef struct cnri_sampled_domain {
    const cnri_meter_set *meter;
    int32_t index;                   /* of the meter's domains */
    const cnr_meter_domain *desc;
    uint64_t interval_ns;            /* between two of the sensor's values, 50 ms at least */
    uint64_t every_ns, cost_ns;      /* between two readings; processor time of one */
    bool counted;                    /* of a counter, or of what a counter tells as well: seldom will do */
    cnri_rest rest;
    cnri_told_energy told;
    int64_t value;                   /* of the last good reading */
    uint64_t time_ns, changed_ns, due_ns; /* its time; when the value was last another; when to read */
} cnri_sampled_domain;

cnr_status cnri_sampler_open(const cnr_gauge_options *options, cnri_sampler **out, cnr_error *err);
void cnri_sampler_close(void *sampler);
int32_t cnri_sampler_count(const cnri_sampler *s);
/* Only what is constant of it; all else while no thread samples. */
const cnri_sampled_domain *cnri_sampler_domain(const cnri_sampler *s, int32_t index);
/* Readings are taken between these two; they nest. */
cnr_status cnri_sampler_start(cnri_sampler *s, cnr_error *err);
void cnri_sampler_stop(cnri_sampler *s);
/* Reads what is due; all: everything. */
void cnri_sampler_read(cnri_sampler *s, bool all);
/* Where all domains are, once those have been read that are due; all: every one. `at` by cnri_free. */
cnr_status cnri_sampler_point(cnri_sampler *s, bool all, cnri_reading_point *out, cnr_error *err);
/* Waits 20 periods, or three seconds, and keeps what is drawn meanwhile; up to three times as long while
 * that does not hold still, as behind other work. Once; `cancel` may be NULL. */
cnr_status cnri_sampler_idle(cnri_sampler *s, const volatile int32_t *cancel, cnr_error *err);
/* The same behind a region: a domain that draws less now was not at rest before, which is kept, too. */
cnr_status cnri_sampler_idle_behind(cnri_sampler *s, cnr_error *err);
/* The next cnri_sampler_idle measures anew. */
void cnri_sampler_forget_idle(cnri_sampler *s);
/* How long something must last to be told, as far as domains can be read. */
uint64_t cnri_sampler_least_ns(cnri_sampler *s);
/* One more reading of a domain: the arithmetic, without any machine. */
void cnri_sampled(cnri_sampled_domain *d, const cnr_reading *reading);

/* ---- rest.c: the arithmetic of that, without any machine ---- */
/* Of three points in equal distances; false: the second half was not like the first. */
bool cnri_rest_of(const cnri_told_energy *begin, const cnri_told_energy *middle,
                  const cnri_told_energy *end, cnri_rest *out);
/* What can't be told apart from what is drawn at rest, up and down. */
double cnri_rest_noise(double watts, double spread);
/* Has `before` say so if `behind` shows that it was under load. */
bool cnri_rest_confirm(cnri_rest *before, const cnri_rest *behind);

/* ---- account.c: what a domain, and all of them, took between two points. idle_watts: of all of them at
 * rest, by the caller's word; 0: as it was measured ---- */
cnr_status cnri_account(cnri_sampler *s, const cnri_reading_point *begin,
                        const cnri_reading_point *end, int64_t rounds, double idle_watts,
                        cnr_energy *out, cnr_error *err);

#endif
