/* Clocks as knobs: the board's steps, below the thermal cap. */
#include "sim.h"
#include <limits.h>
#include <stdio.h>

typedef struct found { /* State of the open knob: the machine, and the steps that its clocks had. */
    sim_machine *m;
    int32_t asked[];
} found;

/* Opens the clocks of the simulated machine, *n of them. CNR_E_NOT_FOUND: no board is simulated, or
 * it has none. */
static cnr_status open_knob(const cnr_gauge_options *options, void **state, int32_t *n,
                            cnr_error *err) {
    sim_machine *m = sim_machine_now();
    (void)options;
    if (!m || m->n_clocks == 0)
        return sim_host->fail(err, CNR_E_NOT_FOUND, "sim", "no clock is simulated");
    found *f = sim_host->alloc(sizeof *f + (size_t)m->n_clocks * sizeof f->asked[0]);
    if (!f) return sim_host->fail(err, CNR_E_MEMORY, "sim", "out of memory");
    f->m = m;
    for (int32_t i = 0; i < m->n_clocks; i++) f->asked[i] = m->clocks[i].asked;
    *state = f;
    *n = m->n_clocks;
    return CNR_OK;
}

/* Clock of a domain. */
static const sim_clock *clock_of(void *state, int32_t domain) {
    return &((found *)state)->m->clocks[domain];
}

/* 1 if a unit runs at that clock. */
static int follows(const sim_unit *u, int32_t clock) {
    return u->clock == clock && u->n_members == 0;
}

/* 1 if a unit runs at that clock; a unit made of others depends on their clocks. */
static int is_fed(const sim_machine *m, const sim_unit *u, int32_t clock) {
    for (int32_t i = 0; i < u->n_members; i++)
        if (m->units[u->members[i]].clock == clock) return 1;
    return follows(u, clock);
}

/* Describes a clock: name, devices, steps. */
static cnr_status describe(void *state, int32_t domain, cnr_knob_domain *out, cnr_error *err) {
    const sim_machine *m = ((found *)state)->m;
    const sim_clock *c = clock_of(state, domain);
    size_t n = 0;
    (void)err;
    snprintf(out->name, sizeof out->name, "%s", c->name);
    for (int32_t i = 0; i < m->n_units && n < sizeof out->devices; i++)
        if (is_fed(m, &m->units[i], domain))
            n += (size_t)snprintf(out->devices + n, sizeof out->devices - n, "%ssim:%s",
                                  n ? "," : "", m->units[i].name);
    out->n_steps = c->n;
    out->is_writable = 1;
    out->min_hz = (uint64_t)c->steps[0].hz;
    out->max_hz = (uint64_t)c->steps[c->n - 1].hz;
    return CNR_OK;
}

/* *hz: frequency of step `index` of a clock. */
static cnr_status step(void *state, int32_t domain, int32_t index, uint64_t *hz, cnr_error *err) {
    (void)err;
    *hz = (uint64_t)clock_of(state, domain)->steps[index].hz;
    return CNR_OK;
}

/* Load in percent since the last reading, of the busiest unit at that clock; notes the reading. */
static int32_t load_of(const sim_machine *m, int32_t domain, sim_clock *c, uint64_t now) {
    uint64_t busy = 0;
    for (int32_t i = 0; i < m->n_units; i++)
        if (follows(&m->units[i], domain) && m->units[i].busy_ns > busy) busy = m->units[i].busy_ns;
    const uint64_t since = now - c->read_ns, worked = busy - c->read_busy;
    const int32_t load = since == 0 ? -1 : worked >= since ? 100 : (int32_t)(worked * 100 / since);
    c->read_ns = now;
    c->read_busy = busy;
    return load;
}

/* Reads step, load and temperature of a clock. */
static cnr_status read_knob(void *state, int32_t domain, cnr_knob_state *out, cnr_error *err) {
    sim_machine *m = ((found *)state)->m;
    sim_clock *c = &m->clocks[domain];
    (void)err;
    const uint64_t now = sim_now();
    sim_lock();
    sim_heat(m, now);
    out->hz = (uint64_t)sim_step_of(c)->hz;
    out->load_percent = load_of(m, domain, c, now);
    out->cores = -1;
    out->temperature_mc = m->ohms > 0 ? (int32_t)(m->degrees * 1e3) : INT32_MIN;
    sim_unlock();
    out->time_ns = now;
    return CNR_OK;
}

void sim_set(sim_clock *c, uint64_t hz) {
    for (int32_t i = 0; hz && i < c->n; i++)
        if (i == 0 || (uint64_t)c->steps[i].hz <= hz) c->asked = i;
}

/* Sets a clock to the highest step not above hz. */
static cnr_status set(void *state, int32_t domain, uint64_t hz, int32_t cores, cnr_error *err) {
    (void)cores, (void)err;
    sim_lock();
    sim_set(&((found *)state)->m->clocks[domain], hz);
    sim_unlock();
    return CNR_OK;
}

/* Gives the clocks the steps that they had at open. */
static cnr_status restore(void *state, cnr_error *err) {
    const found *f = state;
    (void)err;
    sim_lock();
    for (int32_t i = 0; i < f->m->n_clocks; i++) f->m->clocks[i].asked = f->asked[i];
    sim_unlock();
    return CNR_OK;
}

static void close_knob(void *state) { sim_host->free(state); }

const cnr_knob sim_knob = {.size = sizeof(cnr_knob),
                           .name = "sim-knob",
                           .summary = "the clocks of a simulated board",
                           .open = open_knob,
                           .describe = describe,
                           .step = step,
                           .read = read_knob,
                           .set = set,
                           .restore = restore,
                           .close = close_knob};
