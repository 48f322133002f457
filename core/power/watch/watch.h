/* watch: energy. One sampler of all meters, and accounts of what was used. */
#ifndef CNRI_WATCH_H
#define CNRI_WATCH_H

#include "gauges/gauges.h"
#include <cnnrun/power.h>

/* ---- sampler.c: all domains of energy and power of this machine, read every 50 ms, or as often as
 * their sensor has something new, by one thread; less often where a reading costs more than it may.
 * By a plugin's clock no thread would know when to look: then whoever measures reads, at the
 * beginning, at the end, and in between as often as it can. ---- */
typedef struct cnri_sampler cnri_sampler;
enum {
    CNRI_SAMPLE_MS = 50,
    CNRI_PERIODS = 20
}; /* what lasts less periods than these tells little */

/* What a domain told since the sampler was opened. */
typedef struct cnri_domain_totals {
    double joules;
    uint64_t covered_ns;     /* the time that they are of */
    int64_t samples, lapses; /* readings; those that did not follow from the one before */
    double n, sum, squares;  /* watts between two readings that differ in time */
    const char *lapse;       /* what the last one was */
    int32_t status;          /* of the last reading, and why */
    char why[128];
} cnri_domain_totals;
typedef struct cnri_reading_point {
    uint64_t now_ns, sampler_ns; /* the latter: processor time of the thread so far */
    cnri_domain_totals *at;      /* by domain */
} cnri_reading_point;
/* Idle power of a domain in watts, mean and standard deviation; NaN: not measured. why: the reason
 * not to believe them, or "". */
typedef struct cnri_idle_baseline {
    double watts, spread;
    char why[128];
} cnri_idle_baseline;
typedef struct cnri_sampled_domain {
    const cnri_meter_set *meter;
    int32_t index; /* of the meter's domains */
    const cnr_meter_domain *desc;
    uint64_t interval_ns;       /* between two of the sensor's values, 50 ms at least */
    uint64_t every_ns, cost_ns; /* between two readings; processor time of one */
    bool counted; /* of a counter, or of what a counter tells as well: seldom will do */
    cnri_idle_baseline idle;
    cnri_domain_totals totals;
    int64_t value; /* of the last good reading */
    /* its time; when the value was last another; when to read */
    uint64_t time_ns, changed_ns, due_ns;
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
/* Where all domains are, once those have been read that are due; all: every one. `at` by
 * cnri_free. */
cnr_status cnri_sampler_point(cnri_sampler *s, bool all, cnri_reading_point *out, cnr_error *err);
/* Measures the idle baseline of all domains for 20 periods, or three seconds; up to three times as
 * long while power drifts, as it does after other work. Does nothing if it is known already;
 * `cancel` may be NULL. */
cnr_status cnri_sampler_idle(cnri_sampler *s, const volatile int32_t *cancel, cnr_error *err);
/* Measures again after a region. A domain that draws less now was not idle before: its baseline is
 * marked as taken under load. */
cnr_status cnri_sampler_idle_recheck(cnri_sampler *s, cnr_error *err);
/* The next cnri_sampler_idle measures anew. */
void cnri_sampler_forget_idle(cnri_sampler *s);
/* The shortest time that sensors can measure, of the domains that can be read. */
uint64_t cnri_sampler_shortest_ns(cnri_sampler *s);
/* One more reading of a domain: the arithmetic, without any machine. */
void cnri_sampled(cnri_sampled_domain *d, const cnr_reading *reading);

/* ---- baseline.c: the arithmetic of that, without any machine ---- */
/* Baseline of the time between three points at equal distances. False: the second half differs from
 * the first. */
bool cnri_idle_baseline_of(const cnri_domain_totals *begin, const cnri_domain_totals *middle,
                           const cnri_domain_totals *end, cnri_idle_baseline *out);
/* Watts above or below the idle baseline that its own noise explains. */
double cnri_idle_baseline_noise(double watts, double spread);
/* False, with before->why set, if `after` is so much lower that `before` was taken under load. */
bool cnri_idle_baseline_recheck(cnri_idle_baseline *before, const cnri_idle_baseline *after);

/* ---- account.c: energy of each domain, and of all, between two points. idle_watts: idle power of
 * all as the caller gives it; 0: as it was measured ---- */
cnr_status cnri_account(cnri_sampler *s, const cnri_reading_point *begin,
                        const cnri_reading_point *end, int64_t rounds, double idle_watts,
                        cnr_energy *out, cnr_error *err);

#endif
