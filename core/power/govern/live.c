/* This machine as a policy sees it: knobs, meters, and passes that are reported. */
#include "govern/govern.h"
#include <math.h>
#include <pthread.h>
#include <string.h>

/* A knob of this machine: domain of an open plugin's knob. */
typedef struct knob_at {
    cnri_knob_set *set;
    int32_t domain;
} knob_at;
/* A meter of this machine, and its last reading. */
typedef struct meter_at {
    const cnri_meter_set *set;
    int32_t domain;
    int64_t value;    /* of the last reading */
    uint64_t time_ns; /* ns of the last reading; 0: none */
} meter_at;

/* The meters and knobs of this machine, and the passes that run on it. */
struct cnri_live {
    cnri_gauges gauges;
    knob_at knobs[CNRI_MAX_KNOBS];
    meter_at meters[CNRI_MAX_METERS];
    cnri_seen found; /* the constant part of what is seen */
    uint64_t begun_ns, last_ns;
    double joules;
    /* Passes, as any thread reports them. */
    pthread_mutex_t lock;
    int64_t ended, seen_ended;
    uint64_t run_begun_ns, run_took_ns, first_end_ns, last_end_ns;
    char device[64];
    double end_joules; /* joules at the end of the last pass before the tick */
};

/* ---- opening ---- */

/* True if some knob plugin can set a domain of that name. The same domain may be there twice,
 * and one that can only be read is then left out. */
static bool is_better(const cnri_live *l, const char *name) {
    for (int32_t i = 0; i < l->gauges.knobs.n; i++)
        for (int32_t d = 0; d < l->gauges.knobs.at[i].n; d++)
            if (l->gauges.knobs.at[i].domains[d].is_writable &&
                strcmp(l->gauges.knobs.at[i].domains[d].name, name) == 0)
                return true;
    return false;
}

/* Adds a domain of a knob to what is seen, unless another one sets the same frequency; beyond
 * CNRI_MAX_KNOBS it is dropped. */
static cnr_status find_knob(cnri_live *l, cnri_knob_set *set, int32_t domain, cnr_error *err) {
    const cnr_knob_domain *d = &set->domains[domain];
    if (!d->is_writable && is_better(l, d->name)) return CNR_OK;
    if (l->found.n_knobs == CNRI_MAX_KNOBS) return CNR_OK;
    cnri_seen_knob *k = &l->found.knobs[l->found.n_knobs];
    *k = (cnri_seen_knob){.writable = d->is_writable,
                          .min_hz = d->min_hz,
                          .max_hz = d->max_hz,
                          .min_cores = d->min_cores,
                          .max_cores = d->max_cores};
    memcpy(k->name, d->name, sizeof k->name);
    memcpy(k->feeds, d->devices, sizeof k->feeds);
    for (int32_t i = 0; i < d->n_steps && k->n_steps < CNRI_MAX_STEPS; i++) {
        uint64_t hz = 0;
        const cnr_status status =
            cnri_plugin_status(err, set->knob->step(set->state, domain, i, &hz, err),
                               set->knob->name, "a step");
        if (status) return status;
        if (hz >= d->min_hz && hz <= d->max_hz) k->steps[k->n_steps++] = hz;
    }
    l->knobs[l->found.n_knobs++] = (knob_at){set, domain};
    return CNR_OK;
}

/* Adds a domain of a meter to what is seen; beyond CNRI_MAX_METERS it is dropped. */
static void find_meter(cnri_live *l, const cnri_meter_set *set, int32_t domain) {
    const cnr_meter_domain *d = &set->domains[domain];
    if (l->found.n_meters == CNRI_MAX_METERS) return;
    cnri_seen_meter *m = &l->found.meters[l->found.n_meters];
    *m = (cnri_seen_meter){.quantity = d->quantity,
                           .whole = d->is_whole_machine,
                           .part = d->parent != 0 || d->is_estimated};
    memcpy(m->name, d->name, sizeof m->name);
    memcpy(m->feeds, d->device, sizeof m->feeds);
    l->meters[l->found.n_meters++] = (meter_at){.set = set, .domain = domain};
}

cnr_status cnri_live_open(const cnr_gauge_options *options, cnri_live **out, cnr_error *err) {
    cnri_live *l = cnri_alloc_zero(sizeof *l);
    *out = NULL;
    if (!l) return cnri_fail(err, CNR_E_MEMORY, "govern", "out of memory");
    pthread_mutex_init(&l->lock, NULL);
    cnr_status status = cnri_gauges_open(&l->gauges, options, err);
    for (int32_t i = 0; i < l->gauges.knobs.n && !status; i++)
        for (int32_t d = 0; d < l->gauges.knobs.at[i].n && !status; d++)
            status = find_knob(l, &l->gauges.knobs.at[i], d, err);
    for (int32_t i = 0; i < l->gauges.meters.n && !status; i++)
        for (int32_t d = 0; d < l->gauges.meters.at[i].n; d++)
            find_meter(l, &l->gauges.meters.at[i], d);
    if (status) cnri_live_close(l, NULL);
    else *out = l;
    return status;
}

cnr_status cnri_live_close(cnri_live *l, cnr_error *err) {
    if (!l) return CNR_OK;
    const cnr_status status = cnri_gauges_close(&l->gauges, err);
    pthread_mutex_destroy(&l->lock);
    cnri_free(l);
    return status;
}

int32_t cnri_live_knobs(const cnri_live *l) { return l->found.n_knobs; }

/* ---- looking ---- */

/* Reads a knob's state into what is seen. */
static void look_at_knob(const knob_at *at, cnri_seen_knob *k) {
    cnr_knob_state state;
    k->load = k->temperature = NAN;
    if (cnri_knob_read(at->set, at->domain, &state, NULL)) return; /* stays as it was */
    k->hz = state.hz;
    k->cores = state.cores;
    if (state.load_percent >= 0) k->load = state.load_percent * 0.01;
    if (state.temperature_mc != INT32_MIN) k->temperature = state.temperature_mc * 1e-3;
}

/* Power since the last reading: the difference of a counter, or what the sensor says. */
static void look_at_meter(meter_at *at, cnri_seen_meter *m) {
    const uint64_t wraps = at->set->domains[at->domain].wraps_at;
    cnr_reading r;
    if (cnri_meter_read(at->set, at->domain, &r, NULL)) {
        m->watts = m->temperature = NAN;
        return;
    }
    if (m->quantity == CNR_QUANTITY_TEMPERATURE) {
        m->temperature = (double)r.value * 1e-3;
        return;
    }
    m->temperature = NAN;
    if (m->quantity == CNR_QUANTITY_POWER) m->watts = (double)r.value * 1e-6;
    if (at->time_ns && r.time_ns > at->time_ns) {
        const double seconds = (double)(r.time_ns - at->time_ns) * 1e-9;
        double more = (double)(r.value - at->value) * 1e-6;
        if (more < 0) more = wraps ? more + (double)wraps * 1e-6 : 0;
        if (m->quantity == CNR_QUANTITY_POWER) m->joules += m->watts * seconds;
        else if (more > 0 || seconds > 1) {
            m->joules += more;
            m->watts = more / seconds;
        } else return; /* no new reading yet */
    } else if (m->quantity == CNR_QUANTITY_ENERGY) m->watts = NAN;
    at->value = r.value;
    at->time_ns = r.time_ns;
}

/* Sets the totals: power and energy of all meters that are not part of another one, or only of
 * those that cover the whole machine if there are such; and the highest temperature. */
static void sum_up(cnri_seen *s) {
    bool whole = false;
    s->watts = s->temperature = NAN;
    double joules = NAN;
    for (int32_t i = 0; i < s->n_meters; i++)
        whole = whole || (s->meters[i].whole && !isnan(s->meters[i].watts));
    for (int32_t i = 0; i < s->n_meters; i++) {
        const cnri_seen_meter *m = &s->meters[i];
        if (m->quantity == CNR_QUANTITY_TEMPERATURE) {
            s->temperature = fmax(s->temperature, m->temperature);
            continue;
        }
        if (m->part || isnan(m->watts) || (whole && !m->whole)) continue;
        s->watts = isnan(s->watts) ? m->watts : s->watts + m->watts;
        joules = isnan(joules) ? m->joules : joules + m->joules;
    }
    for (int32_t i = 0; i < s->n_knobs; i++)
        s->temperature = fmax(s->temperature, s->knobs[i].temperature);
    s->joules = joules;
}

/* Joules at the last end of a pass, interpolated by the power in its tick. */
static void count_runs(cnri_live *l, cnri_seen *s, uint64_t now) {
    cnri_seen_runs *r = &s->runs;
    pthread_mutex_lock(&l->lock);
    const int64_t fresh = l->ended - l->seen_ended;
    const uint64_t end = l->last_end_ns, before = l->first_end_ns;
    r->seconds = (double)l->run_took_ns * 1e-9;
    l->seen_ended = l->ended;
    l->first_end_ns = end;
    memcpy(s->device, l->device, sizeof s->device);
    pthread_mutex_unlock(&l->lock);
    r->count += fresh;
    r->fresh = fresh;
    r->cycle = r->joules = NAN;
    if (fresh == 0) return;
    const double then = s->joules - s->watts * (double)(now > end ? now - end : 0) * 1e-9;
    if (before) {
        r->cycle = (double)(end - before) * 1e-9 / (double)fresh;
        r->joules = (then - l->end_joules) / (double)fresh;
    }
    l->end_joules = then;
}

/* Reads all knobs and meters, and the passes since the last look. */
static cnr_status look(void *arg, cnri_seen *s, cnr_error *err) {
    cnri_live *l = arg;
    const uint64_t now = cnri_now_ns();
    (void)err;
    if (!l->begun_ns) {
        *s = l->found;
        s->runs.seconds = s->runs.cycle = s->runs.joules = NAN;
        l->begun_ns = l->last_ns = now;
    }
    for (int32_t i = 0; i < s->n_knobs; i++) look_at_knob(&l->knobs[i], &s->knobs[i]);
    for (int32_t i = 0; i < s->n_meters; i++) look_at_meter(&l->meters[i], &s->meters[i]);
    sum_up(s);
    s->time = (double)(now - l->begun_ns) * 1e-9;
    s->period = (double)(now - l->last_ns) * 1e-9;
    l->last_ns = now;
    count_runs(l, s, now);
    return CNR_OK;
}

/* Method set of cnri_machine: sets a knob of this machine to hz and a number of cores. */
static cnr_status set(void *arg, int32_t knob, uint64_t hz, int32_t cores, cnr_error *err) {
    const knob_at *at = &((cnri_live *)arg)->knobs[knob];
    return cnri_knob_set_to(at->set, at->domain, hz, cores, err);
}

cnri_machine cnri_live_machine(cnri_live *l) { return (cnri_machine){l, look, set}; }

void cnri_live_run(cnri_live *l, bool begins, uint64_t now_ns, const char *device) {
    pthread_mutex_lock(&l->lock);
    snprintf(l->device, sizeof l->device, "%s", device ? device : "");
    if (begins) l->run_begun_ns = now_ns;
    else {
        l->ended++;
        l->last_end_ns = now_ns;
        l->run_took_ns = l->run_begun_ns && now_ns > l->run_begun_ns ? now_ns - l->run_begun_ns : 0;
    }
    pthread_mutex_unlock(&l->lock);
}

double cnri_live_last_end(cnri_live *l) {
    pthread_mutex_lock(&l->lock);
    const bool ended = l->ended > 0 && l->last_end_ns > l->begun_ns;
    const double out = ended ? (double)(l->last_end_ns - l->begun_ns) * 1e-9 : -1;
    pthread_mutex_unlock(&l->lock);
    return out;
}
