/* Cost of work: seconds on a unit, joules of the rails. Scripts and governors use these functions
 * too (object.c). */
#include "sim.h"
#include <math.h>

/* ---- seconds ---- */

/* Whether `text` matches the pattern; a star matches anything. */
static int matches(const char *pattern, const char *text) {
    for (; *pattern != '*'; pattern++, text++)
        if (*pattern != *text || !*text) return *pattern == *text;
    for (; !matches(pattern + 1, text); text++)
        if (!*text) return 0;
    return 1;
}

double sim_hz(const sim_machine *m, const sim_unit *u, double *v2f) {
    *v2f = 1;
    if (u->clock < 0) return 1;
    const sim_clock *c = &m->clocks[u->clock];
    const sim_step *top = &c->steps[c->n - 1];
    const sim_step *is = sim_step_of(c);
    *v2f = is->volts * is->volts * is->hz / (top->volts * top->volts * top->hz);
    return is->hz / top->hz;
}

/* The unit's class of an operator; NULL: none. */
static const sim_class *class_of(const sim_unit *u, const char *op) {
    for (int32_t i = 0; i < u->n_classes; i++)
        if (matches(u->classes[i].op, op)) return &u->classes[i];
    return NULL;
}

/* Operations for each byte at which the class is as fast in both; infinite without a figure of
 * bytes. */
static double balance_of(const sim_class *c, double otherwise) {
    const double bytes = c->bytes > 0 ? c->bytes : otherwise;
    return bytes > 0 ? c->flops / bytes : INFINITY;
}

/* The class of the unit with the ratio of arithmetic to bytes nearest to the work's, among those
 * that have both figures; NULL: none. */
static const sim_class *nearest_class(const sim_unit *u, const sim_work *w, double bytes) {
    const sim_class *best = NULL;
    double least = INFINITY;
    const double wanted = w->bytes > 0 ? w->flops / w->bytes : INFINITY;
    for (int32_t i = 0; i < u->n_classes; i++) {
        const sim_class *c = &u->classes[i];
        if (c->flops <= 0) continue;
        const double is = balance_of(c, bytes);
        const double apart = isfinite(is) && isfinite(wanted) && wanted > 0 ? fabs(log(is / wanted))
                             : isfinite(is)                                 ? 1e3
                                                                            : 1e2;
        if (best && apart >= least) continue;
        best = c;
        least = apart;
    }
    return best;
}

/* 1 if the class has figures for this work; bytes alone suffice for work without
 * multiplications. */
static int is_known(const sim_class *c, const sim_work *w) {
    return c && (c->flops >= 0 || w->products <= 0);
}

/* Speed of the unit; of a unit made of others, the sum of theirs. True: figures of another class
 * were used. */
static int rates(const sim_machine *m, const sim_unit *u, const sim_work *w, double *flops,
                 double *bytes) {
    const sim_class *c = class_of(u, w->op), *near = NULL;
    double v2f;
    int other = 0;
    if (!is_known(c, w)) near = nearest_class(u, w, c ? c->bytes : 0);
    if (c || near) {
        const sim_class *by = near ? near : c;
        *flops += by->flops > 0 ? by->flops * sim_hz(m, u, &v2f) : 0;
        *bytes += c ? c->bytes : near->bytes;
        return near != NULL;
    }
    for (int32_t i = 0; i < u->n_members; i++)
        other |= rates(m, &m->units[u->members[i]], w, flops, bytes);
    return other;
}

int32_t sim_extrapolates(const sim_machine *m, int32_t unit, const sim_work *w) {
    double flops = 0, bytes = 0;
    return rates(m, &m->units[unit], w, &flops, &bytes);
}

/* Seconds that a unit takes for some work. */
static double seconds_of(const sim_machine *m, const sim_unit *u, const sim_work *w) {
    double flops = 0, bytes = 0;
    rates(m, u, w, &flops, &bytes);
    const double compute = flops > 0 ? w->flops / flops : 0;
    const double memory = bytes > 0 ? w->bytes / bytes : 0;
    return u->launch + fmax(compute, memory);
}

/* ---- joules ---- */

/* Adds watts from one time to another to the rail; out of memory: to its joules at once. */
static void add_span(sim_rail *r, uint64_t from, uint64_t to, double watts) {
    if (watts <= 0 || to <= from) return;
    if (r->n == r->room) {
        const int32_t room = r->room ? 2 * r->room : 64;
        sim_span *grown = sim_host->resize(r->spans, (size_t)room * sizeof *grown);
        if (!grown) {
            r->joules += watts * (double)(to - from) * 1e-9;
            return;
        }
        r->spans = grown;
        r->room = room;
    }
    r->spans[r->n++] = (sim_span){from, to, watts};
}

double sim_joules(const sim_machine *m, const sim_rail *r, uint64_t at) {
    double joules = r->joules + r->idle * (double)(at - m->born) * 1e-9;
    for (int32_t i = 0; i < r->n; i++) {
        const sim_span *s = &r->spans[i];
        const uint64_t to = s->to < at ? s->to : at;
        if (to > s->from) joules += s->watts * (double)(to - s->from) * 1e-9;
    }
    return joules;
}

double sim_all_joules(const sim_machine *m, uint64_t at) {
    double joules = 0;
    for (int32_t i = 0; i < m->n_rails; i++) joules += sim_joules(m, &m->rails[i], at);
    return joules;
}

void sim_fold(sim_machine *m, uint64_t before) {
    for (int32_t k = 0; k < m->n_rails; k++) {
        sim_rail *r = &m->rails[k];
        for (int32_t i = 0; i < r->n;) {
            const sim_span *s = &r->spans[i];
            if (s->to > before) {
                i++;
                continue;
            }
            r->joules += s->watts * (double)(s->to - s->from) * 1e-9;
            r->spans[i] = r->spans[--r->n];
        }
    }
}

/* Watts of a unit that computes an operator. */
static double busy_watts(const sim_machine *m, const sim_unit *u, const char *op) {
    const sim_class *c = class_of(u, op);
    double v2f;
    sim_hz(m, u, &v2f);
    return u->statics + u->dynamics * v2f * (c ? c->activity : 1);
}

/* Watts of a unit, or of all its members, that computes an operator. */
static double all_watts(const sim_machine *m, const sim_unit *u, const char *op) {
    double watts = u->n_members ? 0 : busy_watts(m, u, op);
    for (int32_t i = 0; i < u->n_members; i++) watts += all_watts(m, &m->units[u->members[i]], op);
    return watts;
}

void sim_takes(const sim_machine *m, int32_t unit, const sim_work *w, double *seconds,
               double *joules) {
    const sim_unit *u = &m->units[unit];
    *seconds = seconds_of(m, u, w);
    *joules = *seconds * all_watts(m, u, w->op);
    for (int32_t i = 0; i < m->n_rails; i++) *joules += w->bytes * m->rails[i].per_byte;
    if (!w->part || u->split_seconds <= 0) return;
    *seconds += u->split_seconds;
    *joules += u->split_joules;
}

/* Occupies a unit and its members for some time, with their power. */
static void occupy(sim_machine *m, sim_unit *u, uint64_t from, uint64_t to, const char *op) {
    for (int32_t i = 0; i < u->n_members; i++) occupy(m, &m->units[u->members[i]], from, to, op);
    u->free_at = to > u->free_at ? to : u->free_at;
    u->busy_ns += to - from;
    if (u->n_members == 0) add_span(&m->rails[u->rail], from, to, busy_watts(m, u, op));
}

/* ---- queues ---- */

/* Returns when (ns) a unit and all its members are free, from `ready` on. */
static uint64_t begin_of(const sim_machine *m, const sim_unit *u, uint64_t ready) {
    if (u->free_at > ready) ready = u->free_at;
    for (int32_t i = 0; i < u->n_members; i++) ready = begin_of(m, &m->units[u->members[i]], ready);
    return ready;
}

/* Seconds in nanoseconds; at most a day, since a board's numbers may be absurd. */
static uint64_t ns_of(double seconds) {
    return (uint64_t)llround(fmin(fmax(seconds, 0), 86400) * 1e9);
}

/* Adds the energy of moving bytes to the rails. */
static void move_bytes(sim_machine *m, uint64_t from, uint64_t to, double bytes) {
    for (int32_t i = 0; i < m->n_rails; i++)
        if (to > from)
            add_span(&m->rails[i], from, to,
                     m->rails[i].per_byte * bytes / ((double)(to - from) * 1e-9));
}

/* 1 if a unit is `whole` or one of its members. */
static int is_part_of(const sim_machine *m, int32_t unit, int32_t whole) {
    if (unit == whole) return 1;
    for (int32_t i = 0; i < m->units[whole].n_members; i++)
        if (is_part_of(m, unit, m->units[whole].members[i])) return 1;
    return 0;
}

/* Number of units that work at that time, but for this one and its members. */
static int32_t others_at_work(const sim_machine *m, int32_t unit, uint64_t at) {
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_units; i++)
        n += !m->units[i].n_members && m->units[i].free_at > at && !is_part_of(m, i, unit);
    return n;
}

/* Returns a number between -1 and 1; m->dice advances, the same for the same seed (splitmix64). */
static double draw(sim_machine *m) {
    uint64_t x = m->dice += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return (double)((x ^ x >> 31) >> 11) * 0x1p-52 - 1;
}

/* Returns the seconds as they come out: units that share memory slow each other down, and no time
 * is exact. */
static double disturb(sim_machine *m, int32_t unit, uint64_t from, double seconds) {
    if (m->contention > 0) seconds *= 1 + m->contention * others_at_work(m, unit, from);
    return m->jitter > 0 ? seconds * (1 + m->jitter * draw(m)) : seconds;
}

uint64_t sim_work_on(sim_machine *m, int32_t unit, uint64_t ready, const sim_work *w) {
    sim_unit *u = &m->units[unit];
    const uint64_t from = begin_of(m, u, ready);
    sim_heat(m, from);
    const uint64_t to = from + ns_of(disturb(m, unit, from, seconds_of(m, u, w)));
    occupy(m, u, from, to, w->op);
    move_bytes(m, from, to, w->bytes);
    if (!w->part || u->split_seconds <= 0) return to;
    /* the caller splits and joins the parts; the unit itself waits meanwhile */
    const uint64_t end = to + ns_of(u->split_seconds);
    add_span(&m->rails[u->rail], to, end, u->split_joules / u->split_seconds);
    u->free_at = end;
    return end;
}

uint64_t sim_move_on(sim_machine *m, int32_t unit, uint64_t ready, double bytes) {
    sim_unit *u = &m->units[unit];
    const double seconds =
        u->transfer_seconds + (u->transfer_bytes > 0 ? bytes / u->transfer_bytes : 0);
    const uint64_t from = begin_of(m, u, ready), to = from + ns_of(seconds);
    move_bytes(m, from, to, bytes);
    u->free_at = to;
    return to;
}
