/* Scenes: a loop of work on the clocks of a machine of its own, in its virtual time. */
#include "sim.h"
#include <math.h>
#include <stdio.h>

enum { MAX_IDLE = 1000 };   /* maximum of phase changes without any time */
enum { FIXED, WORK, WAIT }; /* stages of a phase */

/* ---- reading ---- */

/* Seconds in ns, limited to 0 .. 1e9 seconds. */
static uint64_t ns_of(double seconds) {
    return (uint64_t)llround(fmin(fmax(seconds, 0), 1e9) * 1e9);
}

/* A clock with power figures becomes a unit of its own that draws `static` all the time. */
static cnr_status read_clock(sim_machine *m, int32_t i, cnr_error *err) {
    sim_clock *c = &m->clocks[i];
    const double maximum = sim_number("clocks", i + 1, "most_mhz", 1e9) * 1e6;
    while (c->n > 1 && c->steps[c->n - 1].hz > maximum) c->n--;
    if (c->steps[0].hz > maximum)
        return sim_host->fail(err, CNR_E_FORMAT, "clocks", "all steps of %s are above most_mhz",
                              c->name);
    c->cap = c->n - 1;
    if (c->asked > c->cap) c->asked = c->cap;
    snprintf(c->feeds, sizeof c->feeds, "%s", sim_text("clocks", i + 1, "feeds"));
    c->idle = sim_number("clocks", i + 1, "rest", 0);
    const double fixed = sim_number("clocks", i + 1, "static", -1),
                 varies = sim_number("clocks", i + 1, "per_v2_mhz", -1);
    if (fixed < 0 && varies < 0) return CNR_OK;
    for (int32_t u = 0; u < m->n_units; u++)
        if (m->units[u].clock == i) m->units[u].clock = -1;
    const sim_step *top = &c->steps[c->n - 1];
    m->rails[m->n_rails - 1].idle += fmax(fixed, 0);
    m->units[m->n_units++] =
        (sim_unit){.rail = m->n_rails - 1,
                   .clock = i,
                   .dynamics = fmax(varies, 0) * top->volts * top->volts * top->hz * 1e-6};
    return CNR_OK;
}

/* Index of a clock by name; -1: none. */
static int32_t clock_of(const sim_machine *m, const char *name) {
    for (int32_t i = 0; i < m->n_clocks; i++)
        if (*name && strcmp(m->clocks[i].name, name) == 0) return i;
    return -1;
}

/* Number of phase i; `otherwise`: it does not say. */
static double of_phase(int32_t i, const char *key, double otherwise) {
    return sim_number("phases", i, key, otherwise);
}

/* Reads phase i (from 1) of a scene into *f; fails for an unknown clock. */
static cnr_status read_phase(const sim_machine *m, int32_t i, sim_phase *f, cnr_error *err) {
    const char *clock = sim_text("phases", i, "clock"), *bus = sim_text("phases", i, "bus");
    char where[32];
    snprintf(where, sizeof where, "phases.%d", (int)i);
    *f = (sim_phase){.clock = clock_of(m, clock),
                     .bus = clock_of(m, bus),
                     .seconds = of_phase(i, "seconds", 0),
                     .cycles = of_phase(i, "megacycles", 0) * 1e6,
                     .bus_cycles = of_phase(i, "bus_megacycles", 0) * 1e6,
                     .activity = of_phase(i, "activity", 1),
                     .pace = of_phase(i, "pace", 0),
                     .idle = of_phase(i, "rest", -1),
                     .ends_pass = of_phase(i, "run", 0) != 0};
    if ((*clock && f->clock < 0) || (*bus && f->bus < 0))
        return sim_host->fail(err, CNR_E_NOT_FOUND, where, "there is no clock \"%s\"",
                              *clock && f->clock < 0 ? clock : bus);
    if (f->seconds < 0 || f->cycles < 0 || f->bus_cycles < 0 || f->activity < 0 ||
        (f->cycles > 0 && f->clock < 0) || (f->bus_cycles > 0 && f->bus < 0))
        return sim_host->fail(err, CNR_E_FORMAT, where,
                              "want seconds, or megacycles of a clock, not below 0");
    return CNR_OK;
}

/* Fills err: out of memory. */
static cnr_status no_memory(cnr_error *err) {
    return sim_host->fail(err, CNR_E_MEMORY, "scene", "out of memory");
}

/* Allocates a unit for each clock, and a rail for all. */
static cnr_status make_room(sim_machine *m, cnr_error *err) {
    sim_unit *units =
        sim_host->resize(m->units, (size_t)(m->n_units + m->n_clocks + 1) * sizeof *units);
    if (units) m->units = units;
    sim_rail *rails = sim_host->resize(m->rails, (size_t)(m->n_rails + 1) * sizeof *rails);
    if (rails) m->rails = rails;
    if (!units || !rails) return no_memory(err);
    rails[m->n_rails++] = (sim_rail){.name = "all", .idle = sim_number("", 0, "watts", 0)};
    return CNR_OK;
}

cnr_status sim_scene_read(sim_machine *m, cnr_error *err) {
    sim_scene *s = &m->scene;
    const int32_t n = sim_count("phases");
    const double seed = sim_number("", 0, "seed", 1);
    cnr_status status = n ? make_room(m, err) : CNR_OK;
    double all = 0;
    if (status || !n) return status;
    if (!(s->phases = sim_host->alloc((size_t)n * sizeof *s->phases))) return no_memory(err);
    for (int32_t i = 0; i < m->n_clocks && !status; i++) status = read_clock(m, i, err);
    for (; s->n < n && !status; s->n++) {
        status = read_phase(m, s->n + 1, &s->phases[s->n], err);
        all += s->phases[s->n].seconds + s->phases[s->n].cycles + s->phases[s->n].bus_cycles;
    }
    if (!status && !(all > 0))
        status = sim_host->fail(err, CNR_E_FORMAT, "phases", "they take no time");
    if (!status && !(seed >= 0 && seed <= 0x1p53 && floor(seed) == seed))
        status = sim_host->fail(err, CNR_E_ARG, "seed", "want a whole number from 0 to 2^53");
    s->dice = status ? 1 : (uint64_t)seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    s->vary = sim_number("", 0, "vary", 0);
    s->scale = 1;
    s->wait = ns_of(s->phases[0].seconds);
    return status;
}

/* ---- playing ---- */

/* Returns a random number from 0 to 1 (xorshift); s->dice advances. */
static double throw_dice(sim_scene *s) {
    s->dice ^= s->dice << 13;
    s->dice ^= s->dice >> 7;
    s->dice ^= s->dice << 17;
    return (double)(s->dice >> 11) * 0x1p-53;
}

/* Advances the machine's time by ns in a phase: `clock` and `bus` are the fractions in which those
 * are busy. Adds joules and heat. */
static void spend(sim_machine *m, uint64_t ns, const sim_phase *f, double clock, double bus) {
    const double seconds = (double)ns * 1e-9;
    int held = 0;
    for (int32_t i = 0; i < m->n_units; i++) {
        const sim_unit *u = &m->units[i];
        if (u->clock < 0 || u->n_members) continue;
        const double busy = u->clock == f->clock ? clock : u->clock == f->bus ? bus : 0;
        const double idle =
            u->clock == f->clock && f->idle >= 0 ? f->idle : m->clocks[u->clock].idle;
        double v2f;
        sim_hz(m, u, &v2f);
        m->rails[u->rail].joules +=
            seconds *
            (u->statics * busy + u->dynamics * v2f * (busy * f->activity + (1 - busy) * idle));
    }
    for (int32_t i = 0; i < m->n_clocks; i++) held = held || m->clocks[i].cap < m->clocks[i].n - 1;
    if (f->clock >= 0)
        m->clocks[f->clock].busy += clock > 0 ? seconds : 0; /* a stalled unit is busy too */
    if (f->bus >= 0 && f->bus != f->clock) m->clocks[f->bus].busy += seconds * bus;
    if (held) m->scene.held += seconds;
    m->now += ns;
    sim_heat(m, m->now);
}

/* Notes time and joules at the end of a pass. */
static cnr_status keep_end(sim_machine *m, cnr_error *err) {
    sim_scene *s = &m->scene;
    double *ends = sim_host->resize(s->ends, (size_t)(s->n_ends + 1) * 3 * sizeof *ends);
    if (!ends) return no_memory(err);
    s->ends = ends;
    ends += 3 * s->n_ends++;
    ends[0] = (double)s->begun * 1e-9;
    ends[1] = (double)m->now * 1e-9;
    ends[2] = sim_all_joules(m, m->now);
    return CNR_OK;
}

/* Ends the stage. After the work, if there is a pace, the remainder of the frame is waited for. */
static cnr_status next_stage(sim_machine *m, const sim_phase *f, cnr_error *err) {
    sim_scene *s = &m->scene;
    s->stage = (s->stage + 1) % 3;
    s->left = 1;
    if (s->stage == WORK) return CNR_OK;
    if (s->stage == WAIT) {
        const uint64_t until = f->pace > 0 ? s->begun + ns_of(f->pace) : 0;
        s->wait = until > m->now ? until - m->now : 0;
        return f->ends_pass ? keep_end(m, err) : CNR_OK;
    }
    if (f->ends_pass) s->begun = m->now;
    s->phase = (s->phase + 1) % s->n;
    s->wait = ns_of(s->phases[s->phase].seconds);
    if (s->phase == 0 && s->vary > 0) s->scale = 1 + s->vary * (2 * throw_dice(s) - 1);
    return CNR_OK;
}

/* Seconds that so many cycles take at a clock's present frequency; 0 for none. */
static double seconds_on(const sim_machine *m, int32_t clock, double cycles) {
    return cycles > 0 ? cycles * m->scene.scale / sim_step_of(&m->clocks[clock])->hz : 0;
}

/* Continues the stage, for at most that long. */
static cnr_status go_on(sim_machine *m, uint64_t maximum, cnr_error *err) {
    sim_scene *s = &m->scene;
    const sim_phase *f = &s->phases[s->phase];
    if (s->stage != WORK) {
        const uint64_t ns = s->wait < maximum ? s->wait : maximum;
        spend(m, ns, f, 0, 0);
        s->wait -= ns;
        return s->wait ? CNR_OK : next_stage(m, f, err);
    }
    const double a = seconds_on(m, f->clock, f->cycles), b = seconds_on(m, f->bus, f->bus_cycles);
    const double all = fmax(a, b);
    if (!(all > 0)) return next_stage(m, f, err);
    const uint64_t to_come = ns_of(s->left * all), ns = to_come < maximum ? to_come : maximum;
    spend(m, ns, f, a / all, b / all);
    s->left -= (double)ns * 1e-9 / all;
    return ns < to_come ? CNR_OK : next_stage(m, f, err);
}

cnr_status sim_scene_pass(sim_machine *m, double seconds, cnr_error *err) {
    const uint64_t end = m->now + ns_of(seconds);
    cnr_status status = CNR_OK;
    if (!m->scene.n)
        return sim_host->fail(err, CNR_E_NOT_FOUND, "phases", "nothing is played: want a scene");
    for (int32_t idle = 0; m->now < end && !status && idle < MAX_IDLE; idle++) {
        const uint64_t before = m->now, look = m->cap_at + SIM_CAP_EVERY_NS;
        const int hot = m->limit > 0 && m->ohms > 0 && look < end;
        status = go_on(m, (hot ? look : end) - before, err);
        if (m->now > before) idle = 0;
    }
    return status;
}
