/* Samples energy and power of all domains while anyone measures: counters by their difference,
 * power by trapezoids. */
#include "watch/watch.h"
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define SAMPLE_NS ((uint64_t)CNRI_SAMPLE_MS * 1000000u)
/* Share of a processor that readings may take: for counters, which lose nothing between
 * readings, and for power sensors. */
#define COUNTER_SHARE 2e-4
#define POWER_SHARE 4e-3
#define LONGEST_EVERY_NS UINT64_C(5000000000)
#define LONGEST_IDLE_NS UINT64_C(3000000000)
#define LONGEST_WAIT_NS UINT64_C(20000000000)
#define IDLE_TRIES 3 /* attempts to measure a steady idle power */

/* A thread that reads all meters, and their sums. */
struct cnri_sampler {
    cnri_gauges gauges;
    CNRI_VEC(cnri_sampled_domain) domains;
    pthread_mutex_t lock; /* guards all fields below, and the meters */
    pthread_cond_t wake;
    pthread_t thread;
    int32_t users;
    bool running, stopping, idle_known;
    uint64_t cpu_before_ns; /* processor time of ended sampling threads */
};

/* ---- one reading after the other ---- */

/* Goes on from a new reading, without counting what was before; lapse: why, or NULL. */
static void begin_anew(cnri_sampled_domain *d, const cnr_reading *r, const char *lapse) {
    if (lapse) {
        d->totals.lapses++;
        d->totals.lapse = lapse;
    }
    d->value = r->value;
    d->time_ns = d->changed_ns = r->time_ns;
}

/* Adds joules since the last reading, and the time that they cover in ns; the reading becomes the
 * last. */
static void add(cnri_sampled_domain *d, const cnr_reading *r, double joules) {
    d->totals.joules += joules;
    d->totals.covered_ns += r->time_ns - d->time_ns;
    d->value = r->value;
    d->time_ns = r->time_ns;
}

/* Adds one value of power to mean and deviation. */
static void add_watts(cnri_sampled_domain *d, double watts) {
    d->totals.n += 1;
    d->totals.sum += watts;
    d->totals.squares += watts * watts;
}

/* The distance that a counter moved; negative: unknown. Readings are far more frequent than
 * wraps, so a counter that seems to have moved through most of its range was reset instead. */
static double counted(const cnri_sampled_domain *d, int64_t value) {
    if (value >= d->value) return (double)(value - d->value);
    const double all = (double)d->desc->wraps_at, round = all - (double)d->value + (double)value;
    return all > 0 && round >= 0 && round <= all / 2 ? round : -1;
}

/* Adds a reading of an energy counter in microjoules; one that went back begins anew. */
static void add_counted(cnri_sampled_domain *d, const cnr_reading *r) {
    const double micro = counted(d, r->value);
    if (micro < 0) {
        begin_anew(d, r, "its counter went back");
        return;
    }
    if (r->value != d->value) { /* otherwise the sensor has no new value */
        const double passed = (double)(r->time_ns - d->changed_ns) * 1e-9;
        if (passed > 0) add_watts(d, micro * 1e-6 / passed);
        d->changed_ns = r->time_ns;
    }
    add(d, r, micro * 1e-6);
}

/* Adds a reading of power, integrated over time. */
static void add_power(cnri_sampled_domain *d, const cnr_reading *r) {
    const uint64_t passed = r->time_ns - d->time_ns, maximum = CNRI_PERIODS * d->every_ns;
    if (passed > (maximum > 2000000000u ? maximum : 2000000000u)) {
        begin_anew(d, r, "it was not read for long");
        return;
    }
    add_watts(d, (double)r->value * 1e-6);
    add(d, r, 0.5e-6 * ((double)r->value + (double)d->value) * (double)passed * 1e-9);
}

void cnri_sampled(cnri_sampled_domain *d, const cnr_reading *r) {
    d->totals.status = CNR_OK;
    d->totals.samples++;
    if (d->time_ns == 0) begin_anew(d, r, NULL);
    else if (r->time_ns < d->time_ns) begin_anew(d, r, "its clock went back");
    /* The same reading again does not count. */
    else if (r->time_ns == d->time_ns) d->totals.samples--;
    else if (d->desc->quantity == CNR_QUANTITY_ENERGY) add_counted(d, r);
    else add_power(d, r);
}

/* ---- reading ---- */

/* Reads a domain and adds the reading; an error is kept in its totals. */
static void read_domain(cnri_sampled_domain *d) {
    cnr_error why = CNR_ERROR_INIT;
    cnr_reading reading;
    const cnr_status status = cnri_meter_read(d->meter, d->index, &reading, &why);
    if (!status) {
        cnri_sampled(d, &reading);
        return;
    }
    d->totals.status = status;
    snprintf(d->totals.why, sizeof d->totals.why, "%.127s", why.text);
}

/* CPU time of this thread in ns; 0: unknown. */
static uint64_t thread_ns(void) {
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t)
               ? 0
               : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Reads a domain and measures the processor time. Some libraries take milliseconds for what a
 * file in /sys gives in microseconds. */
static void read_and_weigh(cnri_sampled_domain *d) {
    const uint64_t begin = thread_ns();
    read_domain(d);
    const uint64_t cost = thread_ns() - begin;
    if (!cnri_clock_is_real()) return;
    d->cost_ns = d->cost_ns ? (3 * d->cost_ns + cost) / 4 : cost;
    const double every = (double)d->cost_ns / (d->counted ? COUNTER_SHARE : POWER_SHARE);
    d->every_ns = every < (double)LONGEST_EVERY_NS ? (uint64_t)every : LONGEST_EVERY_NS;
    if (d->every_ns < d->interval_ns) d->every_ns = d->interval_ns;
}

/* Reads the domains that are due, or all. Returns when, in ns, the next one is. The lock is
 * held. */
static uint64_t read_due(cnri_sampler *s, uint64_t now, bool all) {
    uint64_t next = now + LONGEST_EVERY_NS;
    for (int32_t i = 0; i < s->domains.n; i++) {
        cnri_sampled_domain *d = &s->domains.at[i];
        if (all || now >= d->due_ns) {
            read_and_weigh(d);
            d->due_ns = now + d->every_ns;
        }
        if (d->due_ns < next) next = d->due_ns;
    }
    return next;
}

void cnri_sampler_read(cnri_sampler *s, bool all) {
    pthread_mutex_lock(&s->lock);
    read_due(s, cnri_now_ns(), all);
    pthread_mutex_unlock(&s->lock);
}

/* Processor time of this sampling thread and the ones before it. The lock is held. */
static uint64_t sampler_ns(const cnri_sampler *s) {
    struct timespec t;
    clockid_t clock;
    if (!s->running || pthread_getcpuclockid(s->thread, &clock) != 0 ||
        clock_gettime(clock, &t) != 0)
        return s->cpu_before_ns;
    return s->cpu_before_ns + (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The thread: reads each meter when it is due. */
static void *sample(void *arg) {
    cnri_sampler *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        const uint64_t next = read_due(s, cnri_real_ns(), false);
        const struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        while (!s->stopping && cnri_real_ns() < next)
            pthread_cond_timedwait(&s->wake, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- opening and closing ---- */

/* True if the domain or its parent has an energy counter. */
static bool is_counted(const cnri_meter_set *set, const cnr_meter_domain *d) {
    const int32_t parent = d->parent - 1;
    return d->quantity == CNR_QUANTITY_ENERGY ||
           (parent >= 0 && parent < set->n && set->domains[parent].quantity == CNR_QUANTITY_ENERGY);
}

/* Lists all domains of the meters but temperatures. */
static cnr_status take_domains(cnri_sampler *s, cnr_error *err) {
    for (int32_t m = 0; m < s->gauges.meters.n; m++) {
        const cnri_meter_set *set = &s->gauges.meters.at[m];
        for (int32_t i = 0; i < set->n; i++) {
            const cnr_meter_domain *desc = &set->domains[i];
            if (desc->quantity == CNR_QUANTITY_TEMPERATURE) continue;
            cnri_sampled_domain *d = cnri_push(&s->domains);
            if (!d) return cnri_out_of_memory(err, "energy");
            const uint64_t period =
                (uint64_t)(desc->period_ms > 0 ? desc->period_ms : 0) * 1000000u;
            *d = (cnri_sampled_domain){.meter = set,
                                       .index = i,
                                       .desc = desc,
                                       .idle = {.watts = NAN, .spread = NAN},
                                       .interval_ns = period > SAMPLE_NS ? period : SAMPLE_NS,
                                       .counted = is_counted(set, desc)};
            d->every_ns = d->interval_ns;
        }
    }
    return CNR_OK;
}

cnr_status cnri_sampler_open(const cnr_gauge_options *options, cnri_sampler **out, cnr_error *err) {
    cnri_sampler *s = cnri_alloc_zero(sizeof *s);
    pthread_condattr_t monotonic;
    *out = NULL;
    if (!s) return cnri_out_of_memory(err, "energy");
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    cnr_status status = cnri_gauges_open(&s->gauges, options, err);
    if (!status) status = take_domains(s, err);
    if (status) cnri_sampler_close(s);
    else *out = s;
    return status;
}

/* Stops sampling, closes the gauges and frees the sampler; NULL: nothing. */
void cnri_sampler_close(void *sampler) {
    cnri_sampler *s = sampler;
    if (!s) return;
    s->users = 1;
    cnri_sampler_stop(s);
    cnri_gauges_close(&s->gauges, NULL);
    cnri_vec_free(&s->domains);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    cnri_free(s);
}

int32_t cnri_sampler_count(const cnri_sampler *s) { return s->domains.n; }

const cnri_sampled_domain *cnri_sampler_domain(const cnri_sampler *s, int32_t index) {
    return &s->domains.at[index];
}

cnr_status cnri_sampler_start(cnri_sampler *s, cnr_error *err) {
    cnr_status status = CNR_OK;
    pthread_mutex_lock(&s->lock);
    if (s->users == 0) { /* energy since the last use belongs to nobody */
        for (int32_t i = 0; i < s->domains.n; i++) s->domains.at[i].time_ns = 0;
        read_due(s, cnri_now_ns(), true);
        s->stopping = false;
        if (s->domains.n && cnri_clock_is_real()) {
            s->running = pthread_create(&s->thread, NULL, sample, s) == 0;
            if (!s->running)
                status = cnri_fail(err, CNR_E_LIMIT, "energy",
                                   "no thread can be started to take samples");
        }
    }
    if (!status) s->users++;
    pthread_mutex_unlock(&s->lock);
    return status;
}

void cnri_sampler_stop(cnri_sampler *s) {
    pthread_mutex_lock(&s->lock);
    const bool last = --s->users == 0 && s->running;
    if (last) {
        s->cpu_before_ns = sampler_ns(s);
        s->stopping = true;
        s->running = false;
        pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
    if (last) pthread_join(s->thread, NULL);
}

/* ---- points, and what is drawn before ---- */

cnr_status cnri_sampler_point(cnri_sampler *s, bool all, cnri_reading_point *out, cnr_error *err) {
    const size_t n = (size_t)s->domains.n;
    out->at = cnri_alloc((n + 1) * sizeof *out->at);
    if (!out->at) return cnri_out_of_memory(err, "energy");
    pthread_mutex_lock(&s->lock);
    out->now_ns = cnri_now_ns();
    read_due(s, out->now_ns, all);
    for (size_t i = 0; i < n; i++) out->at[i] = s->domains.at[i].totals;
    out->sampler_ns = sampler_ns(s);
    pthread_mutex_unlock(&s->lock);
    return CNR_OK;
}

/* Period in ns of the slowest domain that can be read; counters of energy count as read at their
 * own period unless counters_too. */
static uint64_t slowest(cnri_sampler *s, bool counters_too) {
    uint64_t maximum = 0;
    pthread_mutex_lock(&s->lock);
    for (int32_t i = 0; i < s->domains.n; i++) {
        const cnri_sampled_domain *d = &s->domains.at[i];
        const bool counter = d->desc->quantity == CNR_QUANTITY_ENERGY;
        const uint64_t own =
            counter && !counters_too
                ? (uint64_t)(d->desc->period_ms > 0 ? d->desc->period_ms : 0) * 1000000u
                : d->interval_ns;
        if (!d->totals.status && own > maximum) maximum = own;
    }
    pthread_mutex_unlock(&s->lock);
    return maximum;
}

uint64_t cnri_sampler_shortest_ns(cnri_sampler *s) {
    const uint64_t minimum = CNRI_PERIODS * slowest(s, false);
    return minimum < LONGEST_WAIT_NS ? minimum : LONGEST_WAIT_NS;
}

/* Measures all domains for 20 periods or three seconds. *steady: the power did not drift. */
static cnr_status measure_idle(cnri_sampler *s, const volatile int32_t *cancel,
                               cnri_idle_baseline *out, bool *steady, cnr_error *err) {
    cnri_reading_point at[3] = {{0}};
    cnr_status status = cnri_sampler_start(s, err);
    if (status) return status;
    status = cnri_sampler_point(s, true, &at[0], err);
    uint64_t wanted = CNRI_PERIODS * slowest(s, true);
    if (wanted > LONGEST_IDLE_NS) wanted = LONGEST_IDLE_NS;
    for (uint64_t half = 1; half <= 2 && !status; half++) {
        while (!status && cnri_now_ns() - at[0].now_ns < half * wanted / 2) {
            cnri_wait_until(cnri_now_ns() + SAMPLE_NS);
            if (!cnri_clock_is_real()) cnri_sampler_read(s, false);
            if (cancel && *cancel) status = cnri_fail(err, CNR_E_CANCELLED, "energy", "stopped");
        }
        if (!status) status = cnri_sampler_point(s, true, &at[half], err);
    }
    cnri_sampler_stop(s);
    *steady = true;
    for (int32_t i = 0; i < s->domains.n && !status; i++)
        if (!cnri_idle_baseline_of(&at[0].at[i], &at[1].at[i], &at[2].at[i], &out[i]))
            *steady = false;
    for (int32_t i = 0; i < 3; i++) cnri_free(at[i].at);
    return status;
}

/* Allocates n idle baselines in *out; CNR_E_MEMORY: it can't. */
static cnr_status alloc_baselines(cnri_idle_baseline **out, int32_t n, cnr_error *err) {
    *out = cnri_alloc_zero((size_t)(n + 1) * sizeof **out);
    return *out ? CNR_OK : cnri_out_of_memory(err, "energy");
}

cnr_status cnri_sampler_idle(cnri_sampler *s, const volatile int32_t *cancel, cnr_error *err) {
    cnri_idle_baseline *baselines;
    bool steady = false;
    if (s->idle_known || s->domains.n == 0) return CNR_OK;
    cnr_status status = alloc_baselines(&baselines, s->domains.n, err);
    for (int32_t i = 0; i < IDLE_TRIES && !steady && !status; i++)
        status = measure_idle(s, cancel, baselines, &steady, err);
    pthread_mutex_lock(&s->lock);
    for (int32_t i = 0; i < s->domains.n && !status; i++) s->domains.at[i].idle = baselines[i];
    s->idle_known = !status;
    pthread_mutex_unlock(&s->lock);
    cnri_free(baselines);
    return status;
}

cnr_status cnri_sampler_idle_recheck(cnri_sampler *s, cnr_error *err) {
    cnri_idle_baseline *baselines;
    bool steady;
    if (s->domains.n == 0) return CNR_OK;
    cnr_status status = alloc_baselines(&baselines, s->domains.n, err);
    if (!status) status = measure_idle(s, NULL, baselines, &steady, err);
    pthread_mutex_lock(&s->lock);
    for (int32_t i = 0; i < s->domains.n && !status; i++)
        if (!cnri_idle_baseline_recheck(&s->domains.at[i].idle, &baselines[i]))
            s->idle_known = false;
    pthread_mutex_unlock(&s->lock);
    cnri_free(baselines);
    return status;
}

void cnri_sampler_forget_idle(cnri_sampler *s) {
    pthread_mutex_lock(&s->lock);
    s->idle_known = false;
    pthread_mutex_unlock(&s->lock);
}
