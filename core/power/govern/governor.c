/* One tick: reads the machine, asks the policy, limits its wishes, sets what has changed. */
#include "govern/govern.h"
#include <math.h>
#include <string.h>
#include <time.h>

#define MAX_HZ 1e12 /* a higher wish is a mistake, and not treated as the highest step */

/* ---- scripts ---- */

static const cnri_governor_scripts *registered;

void cnri_governor_scripts_register(const cnri_governor_scripts *scripts) {
    __atomic_store_n(&registered, scripts, __ATOMIC_RELEASE);
}

cnr_status cnri_frequency_policy_open(const char *spec, const cnri_learns *from,
                                      cnri_frequency_policy *out, cnr_error *err) {
    const cnri_governor_scripts *scripts = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
    if (scripts) return scripts->policy_open(spec, from, out, err);
    *out = (cnri_frequency_policy){0};
    return cnri_fail(err, CNR_E_UNSUPPORTED, spec, "is a script, and nothing here runs scripts");
}

char *cnri_governors_folder(void) {
    const cnri_governor_scripts *scripts = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
    return scripts ? scripts->folder() : NULL;
}

/* ---- a tick ---- */

uint64_t cnri_step_below(const cnri_seen_knob *k, double hz) {
    if (k->n_steps == 0) {
        const double in = fmin(fmax(hz, (double)k->min_hz), (double)k->max_hz);
        return (uint64_t)in;
    }
    int32_t i = k->n_steps - 1;
    while (i > 0 && (double)k->steps[i] > hz * (1 + 1e-9)) i--;
    return k->steps[i];
}

/* True if a knob that feeds one name clocks the other: "cpu" by a knob for "cpu:big", and the
 * other way round. */
static bool is_fed(const char *device, size_t n, const char *feeds, size_t m) {
    const size_t both = n < m ? n : m;
    if (both == 0 || strncmp(device, feeds, both) != 0) return false;
    return n == m || (n > m ? device[m] : feeds[n]) == ':';
}

/* Start of the next name in a list with commas, or its end. */
static const char *next_name(const char *at) {
    at += strcspn(at, ",");
    return at + (*at == ',');
}

bool cnri_seen_feeds(const cnri_seen *s, int32_t knob) {
    for (const char *d = s->device; *d; d = next_name(d))
        for (const char *f = s->knobs[knob].feeds; *f; f = next_name(f))
            if (is_fed(d, strcspn(d, ","), f, strcspn(f, ","))) return true;
    return false;
}

int32_t cnri_seen_main(const cnri_seen *s) {
    for (int32_t i = 0; i < s->n_knobs && *s->device; i++)
        if (cnri_seen_feeds(s, i)) return i;
    if (*s->device || s->n_knobs == 0) return -1;
    for (int32_t i = s->n_knobs - 1; i >= 0; i--)
        if (*s->knobs[i].feeds && s->knobs[i].max_cores == 0) return i;
    return 0;
}

/* CPU time of this thread in ns. */
static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* ---- faults ---- */

/* Counts a fault; the last good setting stays. The first fault is logged, and that the policy is
 * turned off. */
static void fault(cnri_governor *g, const cnr_error *why) {
    cnri_governor_stats *s = &g->stats;
    if (s->faults++ == 0) {
        s->fault = *why;
        cnri_log(CNR_LOG_WARN, "govern", "%s%s%s; the last good setting stays", why->where,
                 why->where[0] ? ": " : "", why->text);
    }
    if (s->faults < CNRI_MAX_FAULTS || s->off) return;
    s->off = true;
    cnri_log(CNR_LOG_WARN, "govern",
             "the policy is off after %d faults; the last good setting stays",
             (int)CNRI_MAX_FAULTS);
}

/* ---- wishes ---- */

/* Fails if a policy's wish is no frequency at all: negative, NaN or above MAX_HZ. The knob's own
 * bounds are applied later. */
static cnr_status sound(const cnri_seen_knob *k, const cnri_wish *w, cnr_error *err) {
    if (w->hz == 0 || (w->hz > 0 && w->hz <= MAX_HZ)) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, "govern", "the policy wants %g Hz of %s, which has %g to %g",
                     w->hz, k->name, (double)k->min_hz, (double)k->max_hz);
}

/* Runs one step of the policy: fills and checks its wishes, and sets the period until the next
 * step, kept in bounds. */
static cnr_status ask(cnri_governor *g, cnri_wish *wishes, cnr_error *err) {
    double period = g->period;
    cnr_status status = g->policy.step(g->policy.arg, &g->seen, wishes, &period, err);
    for (int32_t i = 0; i < g->seen.n_knobs && !status; i++)
        status = sound(&g->seen.knobs[i], &wishes[i], err);
    if (!status) g->period = fmin(fmax(period, CNRI_TICK_LEAST), CNRI_TICK_MOST);
    return status;
}

/* ---- heat ---- */

/* Index of the highest step that is not above hz; 0 if all are. */
static int32_t index_of(const cnri_seen_knob *k, uint64_t hz) {
    int32_t i = 0;
    while (i + 1 < k->n_steps && k->steps[i + 1] <= hz) i++;
    return i;
}

/* Applies the temperature limit to *hz: one step less for each tick that is too hot, one more
 * when it is well below. True: *hz was lowered. */
static bool cap(cnri_governor *g, int32_t knob, uint64_t *hz) {
    const cnri_seen_knob *k = &g->seen.knobs[knob];
    const double degrees = fmax(g->seen.temperature, k->temperature); /* fmax ignores a NaN */
    int32_t *off = &g->capped[knob];
    if (isnan(g->limit) || k->n_steps < 2) return false;
    if (degrees > g->limit && *off < k->n_steps - 1) ++*off;
    else if (degrees < g->limit - 3 && *off > 0) --*off;
    const uint64_t most = k->steps[k->n_steps - 1 - *off];
    const uint64_t is = *hz ? *hz : k->asked ? k->asked : k->hz;
    if (*off == 0 || index_of(k, is) <= index_of(k, most)) return false;
    *hz = most;
    return true;
}

/* ---- setting ---- */

/* Sets a knob to what is wished; *capped: heat kept it below. */
static cnr_status apply(cnri_governor *g, int32_t knob, const cnri_wish *w, bool *capped,
                        cnr_error *err) {
    cnri_seen_knob *k = &g->seen.knobs[knob];
    uint64_t hz = w->hz > 0 ? cnri_step_below(k, w->hz) : 0;
    const bool held = cap(g, knob, &hz);
    *capped = *capped || held;
    const int32_t cores = w->cores >= 0 && w->cores != k->cores ? w->cores : -1;
    if (hz == k->asked) hz = 0;
    if (!hz && cores < 0) return CNR_OK;
    if (!k->writable) {
        g->stats.advises = true; /* settings that can't be made are counted as if they were */
        if (hz) k->asked = hz;
        g->stats.switches += hz != 0;
        return CNR_OK;
    }
    const cnr_status status = g->machine.set(g->machine.arg, knob, hz, cores, err);
    if (status) return status;
    if (hz) k->asked = hz;
    g->stats.switches++;
    return CNR_OK;
}

cnr_status cnri_governor_tick(cnri_governor *g, cnr_error *err) {
    cnri_wish wishes[CNRI_MAX_KNOBS];
    cnr_error why = CNR_ERROR_INIT;
    cnri_governor_stats *s = &g->stats;
    const uint64_t begun = cpu_ns();
    const cnr_status looked = g->machine.look(g->machine.arg, &g->seen, err);
    if (looked) return looked;
    for (int32_t i = 0; i < CNRI_MAX_KNOBS; i++) wishes[i] = (cnri_wish){.cores = -1};
    const cnr_status asked = s->off ? CNR_E_STATE : ask(g, wishes, &why);
    if (asked) {
        if (!s->off) fault(g, &why);
        for (int32_t i = 0; i < CNRI_MAX_KNOBS; i++) wishes[i] = (cnri_wish){.cores = -1};
    }
    bool capped = false;
    for (int32_t i = 0; i < g->seen.n_knobs; i++) {
        cnr_error one = CNR_ERROR_INIT;
        if (apply(g, i, &wishes[i], &capped, &one)) fault(g, &one);
    }
    const double took = (double)(cpu_ns() - begun) * 1e-9;
    /* The first tick is left out, because policies learn in it. */
    if (s->ticks) s->longest = fmax(s->longest, took);
    s->throttled = (s->throttled * (double)s->ticks + capped) / (double)(s->ticks + 1);
    s->ticks++;
    s->seconds = g->seen.time;
    s->watts_seconds = g->seen.joules;
    s->cpu_seconds += took;
    return CNR_OK;
}
