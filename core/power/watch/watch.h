/* watch: energy. One sampler for all meters, and accounts of the energy that was used. */
#ifndef CNRI_WATCH_H
#define CNRI_WATCH_H

#include "gauges/gauges.h"
#include <cnnrun/power.h>

/* ---- sampler.c: one thread reads all domains of energy and power of this machine, every 50 ms
 * or at their sensor's rate; less often if readings cost too much. Under a plugin's clock a
 * thread can't know when to read: then the measuring code reads, at the beginning, at the end,
 * and in between as often as it can. ---- */
typedef struct cnri_sampler cnri_sampler;
enum {
    CNRI_SAMPLE_MS = 50,
    CNRI_PERIODS = 20
}; /* measurements shorter than this many periods are inaccurate */

/* Sums of a domain since the sampler was opened. */
typedef struct cnri_domain_totals {
    double joules;
    uint64_t covered_ns; /* time that the joules cover */
    /* Samples: readings; lapses: readings that did not continue the one before. */
    int64_t samples, lapses;
    /* Number, sum and sum of squares of watts between readings at different times. */
    double n, sum, squares;
    const char *lapse; /* reason of the last lapse */
    int32_t status;    /* status of the last reading; why: its error text */
    char why[128];
} cnri_domain_totals;
/* Readings of all domains at one time. */
typedef struct cnri_reading_point {
    /* Time of the point; processor time of the sampling thread so far. */
    uint64_t now_ns, sampler_ns;
    cnri_domain_totals *at; /* sums of each domain */
} cnri_reading_point;
/* Idle power of a domain in watts: mean and standard deviation; NaN: not measured. why: the
 * reason why they are not reliable, or "". */
typedef struct cnri_idle_baseline {
    double watts, spread;
    char why[128];
} cnri_idle_baseline;
/* A domain that is sampled, and its sums so far. */
typedef struct cnri_sampled_domain {
    const cnri_meter_set *meter;
    int32_t index; /* index among the meter's domains */
    const cnr_meter_domain *desc;
    uint64_t interval_ns;       /* ns between two values of the sensor, at least 50 ms */
    uint64_t every_ns, cost_ns; /* ns between two readings; ns of processor time of one reading */
    bool counted;               /* a counter gives its energy, so few readings are enough */
    cnri_idle_baseline idle;
    cnri_domain_totals totals;
    int64_t value; /* of the last good reading */
    /* Ns: of the last good reading; when the value last changed; when to read next. */
    uint64_t time_ns, changed_ns, due_ns;
} cnri_sampled_domain;

/* Opens all meters of a machine. Free *out with cnri_sampler_close. */
cnr_status cnri_sampler_open(const cnr_gauge_options *options, cnri_sampler **out, cnr_error *err);
void cnri_sampler_close(void *sampler); /* NULL: nothing */
/* Number of domains of the sampler. */
int32_t cnri_sampler_count(const cnri_sampler *s);
/* Domain number `index`, owned by the sampler. Its constant fields may be read at any time, the
 * others only while no thread samples. */
const cnri_sampled_domain *cnri_sampler_domain(const cnri_sampler *s, int32_t index);
/* Starts sampling on a thread, if the clock is real; calls nest: each is undone by one
 * cnri_sampler_stop. */
cnr_status cnri_sampler_start(cnri_sampler *s, cnr_error *err);
/* Ends one use of the sampler; with the last its thread ends. */
void cnri_sampler_stop(cnri_sampler *s);
/* Reads the domains that are due; all: every domain. */
void cnri_sampler_read(cnri_sampler *s, bool all);
/* The sums of all domains, after reading those that are due; all: every domain. Free out->at
 * with cnri_free. */
cnr_status cnri_sampler_point(cnri_sampler *s, bool all, cnri_reading_point *out, cnr_error *err);
/* Measures the idle baseline of all domains for 20 periods or three seconds, up to three times
 * as long while power drifts after other work. Does nothing if it is known already. `cancel` may
 * be NULL. */
cnr_status cnri_sampler_idle(cnri_sampler *s, const volatile int32_t *cancel, cnr_error *err);
/* Measures idle power again after a region. If a domain draws less than before, it was not idle
 * before: its baseline is marked as taken under load. */
cnr_status cnri_sampler_idle_recheck(cnri_sampler *s, cnr_error *err);
/* Forgets the idle power, so that the next cnri_sampler_idle measures again. */
void cnri_sampler_forget_idle(cnri_sampler *s);
/* The shortest time, in ns, that the readable domains can measure. */
uint64_t cnri_sampler_shortest_ns(cnri_sampler *s);
/* Adds one reading to a domain. Pure arithmetic; does not touch the machine. */
void cnri_sampled(cnri_sampled_domain *d, const cnr_reading *reading);

/* ---- baseline.c: arithmetic of the baseline; does not touch the machine ---- */
/* The baseline of the time between three points at equal distances. False: the second half
 * differs from the first. */
bool cnri_idle_baseline_of(const cnri_domain_totals *begin, const cnri_domain_totals *middle,
                           const cnri_domain_totals *end, cnri_idle_baseline *out);
/* Difference from the idle baseline, in watts, that its noise explains. */
double cnri_idle_baseline_noise(double watts, double spread);
/* False, with before->why set, if `after` is so much lower that `before` was taken under load. */
bool cnri_idle_baseline_recheck(cnri_idle_baseline *before, const cnri_idle_baseline *after);

/* ---- account.c: energy of each domain, and of all, between two points. idle_watts: total idle
 * power as the caller gives it; 0: as measured ---- */
/* *out receives the energy between two points, for one of the `rounds` rounds of work between
 * them. */
cnr_status cnri_account(cnri_sampler *s, const cnri_reading_point *begin,
                        const cnri_reading_point *end, int64_t rounds, double idle_watts,
                        cnr_energy *out, cnr_error *err);

#endif
