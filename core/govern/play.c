/* A played machine: clocks that draw P = static + k V^2 f and a loop of work on them, in a time of
 * its own. What it is made of comes from a board's file and a scene's. */
#include "core/govern/govern.h"
#include <math.h>
#include <string.h>

#define HEAT_EVERY 0.1 /* seconds between two looks of the hardware at its temperature */

/* ---- reading ---- */

typedef struct reading { const cnri_board *board, *scene; } reading;

/* The scene's, else the board's. */
static double number(const reading *r, const char *path, double otherwise) {
    double value;
    if (cnri_board_get_number(r->scene, path, &value) ||
        cnri_board_get_number(r->board, path, &value))
        return value;
    return otherwise;
}

static const char *text(const reading *r, const char *path) {
    const char *value = cnri_board_get_text(r->scene, path);
    return value ? value : cnri_board_get_text(r->board, path);
}

static int32_t count(const reading *r, const char *path) {
    const int32_t n = cnri_board_get_count(r->scene, path);
    return n ? n : cnri_board_get_count(r->board, path);
}

static double numberf(const reading *r, double otherwise, const char *format, int32_t i,
                      const char *key) {
    char path[128];
    snprintf(path, sizeof path, format, (int)i, key);
    return number(r, path, otherwise);
}

static const char *textf(const reading *r, const char *format, int32_t i, const char *key) {
    char path[128];
    snprintf(path, sizeof path, format, (int)i, key);
    return text(r, path);
}

static double v2f(const cnri_play_step *s) {
    return s->volts * s->volts * s->hz;
}

static cnr_status read_steps(const reading *r, int32_t at, cnri_play_clock *c, cnr_error *err) {
    char path[64];
    snprintf(path, sizeof path, "clocks.%d.steps", (int)at);
    const int32_t n = count(r, path);
    if (n < 1 || n > CNRI_MOST_STEPS)
        return cnri_fail(err, CNR_E_FORMAT, path, "want 1 to %d steps of mhz and volts",
                         (int)CNRI_MOST_STEPS);
    const double most = numberf(r, 1e9, "clocks.%d.%s", at, "most_mhz") * 1e6;
    for (int32_t i = 1; i <= n; i++) {
        char step[96];
        snprintf(step, sizeof step, "%s.%d.mhz", path, (int)i);
        const double hz = number(r, step, 0) * 1e6;
        snprintf(step, sizeof step, "%s.%d.volts", path, (int)i);
        const double volts = number(r, step, 1);
        if (!(hz > 0 && volts > 0) || (c->n_steps && hz <= c->steps[c->n_steps - 1].hz))
            return cnri_fail(err, CNR_E_FORMAT, step, "want steps of rising mhz, and volts");
        if (hz <= most) c->steps[c->n_steps++] = (cnri_play_step){hz, volts};
    }
    return c->n_steps ? CNR_OK : cnri_fail(err, CNR_E_FORMAT, path, "all are above most_mhz");
}

/* What the clock says itself, else the sum of the units that follow it. */
static void read_power(const reading *r, int32_t at, cnri_play_clock *c) {
    const double top = v2f(&c->steps[c->n_steps - 1]);
    double statics = 0, dynamics = 0;
    for (int32_t u = 1; u <= count(r, "units"); u++) {
        const char *clock = textf(r, "units.%d.%s", u, "clock");
        if (!clock || strcmp(clock, c->name) != 0) continue;
        statics += numberf(r, 0, "units.%d.%s", u, "power.static");
        dynamics += numberf(r, 0, "units.%d.%s", u, "power.dynamic");
    }
    c->statics = numberf(r, statics, "clocks.%d.%s", at, "static");
    c->per_v2_hz = numberf(r, dynamics / top * 1e6, "clocks.%d.%s", at, "per_v2_mhz") * 1e-6;
    c->rest = numberf(r, 0, "clocks.%d.%s", at, "rest");
}

static cnr_status read_clocks(const reading *r, cnri_play *p, cnr_error *err) {
    const int32_t n = count(r, "clocks");
    if (n < 1 || n > CNRI_MOST_KNOBS)
        return cnri_fail(err, CNR_E_FORMAT, "clocks", "want 1 to %d of them", (int)CNRI_MOST_KNOBS);
    for (int32_t i = 1; i <= n; i++) {
        cnri_play_clock *c = &p->clocks[p->n_clocks++];
        const char *name = textf(r, "clocks.%d.%s", i, "name"),
                   *feeds = textf(r, "clocks.%d.%s", i, "feeds");
        snprintf(c->name, sizeof c->name, "%s", name ? name : "clock");
        snprintf(c->feeds, sizeof c->feeds, "%s", feeds ? feeds : "");
        const cnr_status status = read_steps(r, i, c, err);
        if (status) return status;
        read_power(r, i, c);
        c->at = c->n_steps - 1;
    }
    return CNR_OK;
}

static int32_t clock_of(const cnri_play *p, const char *name) {
    for (int32_t i = 0; name && i < p->n_clocks; i++)
        if (strcmp(p->clocks[i].name, name) == 0) return i;
    return -1;
}

static cnr_status read_phase(const reading *r, cnri_play *p, int32_t i, cnr_error *err) {
    static const char format[] = "phases.%d.%s";
    const char *clock = textf(r, format, i, "clock"), *bus = textf(r, format, i, "bus");
    cnri_play_phase *f = cnri_push(&p->phases);
    if (!f) return cnri_fail(err, CNR_E_MEMORY, "phases", "out of memory");
    *f = (cnri_play_phase){.clock = clock_of(p, clock), .bus = clock_of(p, bus),
                           .seconds = numberf(r, 0, format, i, "seconds"),
                           .cycles = numberf(r, 0, format, i, "megacycles") * 1e6,
                           .bus_cycles = numberf(r, 0, format, i, "bus_megacycles") * 1e6,
                           .activity = numberf(r, 1, format, i, "activity"),
                           .pace = numberf(r, 0, format, i, "pace"),
                           .rest = numberf(r, -1, format, i, "rest"),
                           .ends_run = numberf(r, 0, format, i, "run") != 0};
    char where[32];
    snprintf(where, sizeof where, "phases.%d", (int)i);
    if ((clock && f->clock < 0) || (bus && f->bus < 0))
        return cnri_fail(err, CNR_E_NOT_FOUND, where, "there is no clock \"%s\"",
                         clock && f->clock < 0 ? clock : bus);
    if (!(f->seconds >= 0 && f->cycles >= 0 && f->bus_cycles >= 0 && f->activity >= 0) ||
        (f->cycles > 0 && f->clock < 0) || (f->bus_cycles > 0 && f->bus < 0))
        return cnri_fail(err, CNR_E_FORMAT, where,
                         "want seconds, or megacycles of a clock, not below 0");
    return CNR_OK;
}

/* Of a board without a scene: the application that it tells of. */
static cnr_status read_monitor(const reading *r, cnri_play *p, cnr_error *err) {
    const int32_t gpu = clock_of(p, "gpu");
    const double cycles = number(r, "monitor.megacycles", 0) * 1e6;
    cnri_play_phase *f = gpu >= 0 && cycles > 0 ? cnri_push(&p->phases) : NULL;
    if (!f) return cnri_fail(err, CNR_E_NOT_FOUND, "phases", "nothing is played: want a scene");
    p->clocks[gpu].statics = number(r, "monitor.static", 0);
    p->clocks[gpu].per_v2_hz = number(r, "monitor.per_v2_mhz", 0) * 1e-6;
    p->clocks[gpu].rest = 1;
    p->n_clocks = gpu + 1; /* what it was measured by is the GPU alone */
    p->watts = 0;
    *f = (cnri_play_phase){.clock = gpu, .bus = -1, .seconds = number(r, "monitor.seconds", 0),
                           .cycles = cycles, .activity = 1, .rest = -1, .ends_run = 1};
    return CNR_OK;
}

static void read_heat(const reading *r, cnri_play *p) {
    p->ambient = number(r, "heat.ambient", 25);
    p->ohms = number(r, "heat.ohms", 0);
    p->tau = number(r, "heat.tau", 60);
    p->hot = number(r, "heat.limit", NAN);
    if (p->hot <= 0 || p->ohms <= 0) p->hot = NAN;
    p->slack = number(r, "heat.slack", 5);
    p->degrees = p->ambient;
}

cnr_status cnri_play_open(const cnri_board *board, const cnri_board *scene, cnri_play *out,
                          cnr_error *err) {
    const reading r = {board, scene};
    *out = (cnri_play){.runs = {.seconds = NAN, .cycle = NAN, .joules = NAN}, .left = 1};
    cnr_status status = read_clocks(&r, out, err);
    out->watts = number(&r, "watts", 0);
    out->vary = number(&r, "vary", 0);
    if (!status && !cnri_seed_of(number(&r, "seed", 1), &out->dice))
        status = cnri_fail(err, CNR_E_ARG, "seed", "want a whole number from 0 to 2^53");
    out->dice = out->dice * UINT64_C(0x9E3779B97F4A7C15) + 1;
    out->scale = 1;
    read_heat(&r, out);
    const int32_t n = count(&r, "phases");
    for (int32_t i = 1; i <= n && !status; i++) status = read_phase(&r, out, i, err);
    if (!status && n == 0) status = read_monitor(&r, out, err);
    double all = 0;
    for (int32_t i = 0; i < out->phases.n; i++)
        all += out->phases.at[i].seconds + out->phases.at[i].cycles + out->phases.at[i].bus_cycles;
    if (!status && !(all > 0)) status = cnri_fail(err, CNR_E_FORMAT, "phases", "they take no time");
    if (status) cnri_play_close(out);
    return status;
}

void cnri_play_close(cnri_play *p) {
    cnri_vec_free(&p->phases);
}

/* ---- playing ---- */

static const cnri_play_step *step_of(const cnri_play *p, int32_t i) {
    const cnri_play_clock *c = &p->clocks[i];
    const int32_t most = c->n_steps - 1 - p->cap;
    return &c->steps[c->at < most ? c->at : most > 0 ? most : 0];
}

static double dice(cnri_play *p) {
    p->dice ^= p->dice << 13;
    p->dice ^= p->dice >> 7;
    p->dice ^= p->dice << 17;
    return (double)(p->dice >> 11) * 0x1p-53;
}

/* Time passes in one phase: `busy` is the part of it in which clock and bus work. */
static void spend(cnri_play *p, double seconds, const cnri_play_phase *f, double clock_busy,
                  double bus_busy) {
    double watts = p->watts;
    for (int32_t i = 0; i < p->n_clocks; i++) {
        cnri_play_clock *c = &p->clocks[i];
        const double busy = i == f->clock ? clock_busy : i == f->bus ? bus_busy : 0;
        const double rest = i == f->clock && f->rest >= 0 ? f->rest : c->rest;
        watts += c->statics +
                 c->per_v2_hz * v2f(step_of(p, i)) * (busy * f->activity + (1 - busy) * rest);
        c->busy +=
            seconds * (i == f->clock && clock_busy > 0 ? 1 : busy); /* who stalls is busy, too */
    }
    p->time += seconds;
    p->joules += watts * seconds;
    if (p->cap > 0) p->throttled += seconds;
    if (p->ohms > 0) {
        const double to = p->ambient + p->ohms * watts;
        p->degrees = to + (p->degrees - to) * exp(-seconds / p->tau);
    }
    p->until_cap -= seconds;
}

/* The work is done; where there is a pace, the rest of the frame is waited for. */
static void end_work(cnri_play *p, const cnri_play_phase *f) {
    if (f->ends_run) {
        const double took = p->time - p->begun;
        p->runs.count++;
        p->runs.fresh++;
        p->runs.seconds = took;
        p->last_end = p->time;
        p->last_joules = p->joules;
        p->longest_run = fmax(p->longest_run, took);
        p->late += p->late_after > 0 && took > p->late_after * (1 + 1e-9);
    }
    p->left = 0;
    p->wait = f->pace > 0 ? fmax(p->begun + f->pace - p->time, 0) : 0;
}

static void end_phase(cnri_play *p, const cnri_play_phase *f) {
    p->phase = (p->phase + 1) % p->phases.n;
    p->left = 1;
    p->waited = 0;
    if (p->phase == 0 && p->vary > 0) p->scale = 1 + p->vary * (2 * dice(p) - 1);
    if (f->ends_run) p->begun = p->time;
}

/* What is left of the phase, at most `seconds` of it: what no clock changes, the work, the wait. */
static double go_on(cnri_play *p, double seconds) {
    const cnri_play_phase *f = &p->phases.at[p->phase];
    if (p->waited < f->seconds) {
        const double d = fmin(seconds, f->seconds - p->waited);
        spend(p, d, f, 0, 0);
        p->waited = f->seconds - p->waited - d < 1e-12 ? f->seconds : p->waited + d;
        return d;
    }
    if (p->left > 0) {
        const double a = f->cycles > 0 ? f->cycles * p->scale / step_of(p, f->clock)->hz : 0;
        const double b = f->bus_cycles > 0 ? f->bus_cycles * p->scale / step_of(p, f->bus)->hz : 0;
        const double all = fmax(a, b), d = fmin(seconds, p->left * all);
        if (all > 0) spend(p, d, f, a / all, b / all);
        if (all > 0) p->left -= d / all;
        if (all <= 0 || p->left * all < 1e-12) end_work(p, f);
        return d;
    }
    const double d = fmin(seconds, p->wait);
    if (d > 0) spend(p, d, f, 0, 0);
    p->wait -= d;
    if (p->wait < 1e-12) end_phase(p, f);
    return d;
}

/* The hardware's own limit: a step less each tenth of a second that it is too hot. */
static void throttle(cnri_play *p) {
    if (p->until_cap > 0 || isnan(p->hot)) return;
    p->until_cap = HEAT_EVERY;
    if (p->degrees > p->hot) p->cap++;
    else if (p->degrees < p->hot - p->slack && p->cap > 0) p->cap--;
    int32_t most = 0;
    for (int32_t i = 0; i < p->n_clocks; i++)
        most = p->clocks[i].n_steps > most ? p->clocks[i].n_steps : most;
    if (p->cap > most - 1) p->cap = most - 1;
}

void cnri_play_pass(cnri_play *p, double seconds) {
    const double end = p->time + seconds;
    for (int32_t idle = 0; p->time < end - 1e-12 && idle < 1000;) {
        throttle(p);
        double most = end - p->time;
        if (!isnan(p->hot) && most > p->until_cap) most = fmax(p->until_cap, 1e-6);
        const double d = go_on(p, most);
        idle = d > 0 ? 0 : idle + 1;
    }
}

/* ---- as a machine ---- */

static void describe(const cnri_play *p, cnri_seen *s) {
    *s = (cnri_seen){.n_knobs = p->n_clocks, .n_meters = 1};
    for (int32_t i = 0; i < p->n_clocks; i++) {
        const cnri_play_clock *c = &p->clocks[i];
        cnri_seen_knob *k = &s->knobs[i];
        memcpy(k->name, c->name, sizeof k->name);
        memcpy(k->feeds, c->feeds, sizeof k->feeds);
        k->n_steps = c->n_steps;
        for (int32_t j = 0; j < c->n_steps; j++) k->steps[j] = (uint64_t)(c->steps[j].hz + 0.5);
        k->min_hz = k->steps[0];
        k->max_hz = k->steps[c->n_steps - 1];
        k->writable = 1;
        k->cores = -1;
    }
    s->meters[0] = (cnri_seen_meter){.name = "all", .quantity = CNR_QUANTITY_ENERGY, .whole = 1};
}

static cnr_status look(void *arg, cnri_seen *s, cnr_error *err) {
    cnri_play *p = arg;
    (void)err;
    if (s->n_knobs == 0) describe(p, s);
    s->period = p->time - s->time;
    s->watts = s->period > 0 ? (p->joules - s->joules) / s->period : (double)NAN;
    s->time = p->time;
    s->joules = p->joules;
    s->temperature = p->ohms > 0 ? p->degrees : (double)NAN;
    s->meters[0].watts = s->watts;
    s->meters[0].joules = s->joules;
    s->meters[0].temperature = NAN;
    for (int32_t i = 0; i < p->n_clocks; i++) {
        cnri_seen_knob *k = &s->knobs[i];
        k->hz = (uint64_t)(step_of(p, i)->hz + 0.5);
        k->load = s->period > 0 ? fmin(p->clocks[i].busy / s->period, 1) : (double)NAN;
        k->temperature = s->temperature;
        p->clocks[i].busy = 0;
    }
    p->runs.cycle = p->runs.joules = NAN;
    if (p->runs.fresh > 0) { /* between the ends of passes, as a live machine's are told */
        const double rate = isnan(s->watts) ? 0 : s->watts,
                     then = p->joules - rate * (p->time - p->last_end);
        if (p->ended > 0) {
            p->runs.cycle = (p->last_end - p->ended) / (double)p->runs.fresh;
            p->runs.joules = (then - p->ended_joules) / (double)p->runs.fresh;
        }
        p->ended = p->last_end;
        p->ended_joules = then;
    }
    s->runs = p->runs;
    p->runs.fresh = 0;
    return CNR_OK;
}

static cnr_status set(void *arg, int32_t knob, uint64_t hz, int32_t cores, cnr_error *err) {
    cnri_play_clock *c = &((cnri_play *)arg)->clocks[knob];
    (void)cores, (void)err;
    if (!hz) return CNR_OK;
    c->at = 0;
    while (c->at + 1 < c->n_steps && c->steps[c->at + 1].hz <= (double)hz + 0.5) c->at++;
    return CNR_OK;
}

cnri_machine cnri_play_machine(cnri_play *p) {
    return (cnri_machine){p, look, set};
}
