/* cnnrun govern: runs a frequency policy on this machine, on a recording, or on a simulated
 * board. */
#include "cli/cli.h"
#include "govern/govern.h"
#include "people/people.h"
#include <math.h>
#include <stdlib.h>

/* Options of govern. */
typedef struct govern {
    cnr_govern_options o;
    const char *out, *note;
    cnri_words traces;
    double seconds, limit, late, period, band;
    const char *replay, *scene;
} govern;

static const cnri_option options[] =
    {CNRI_OPTION(govern, replay, "--replay", "FILE", "a recording (CSV) instead of this machine"),
     CNRI_OPTION(govern, scene, "--scene", "SPEC",
                 "a scene, played on --board's clocks or its own: a file, or an installed "
                 "one's name"),
     CNRI_OPTION(govern, seconds, "--seconds", "X",
                 "duration (a scene: 60; a recording: all; this machine: until Ctrl-C)",
                 .max = 1e7),
     CNRI_OPTION(govern, limit, "--limit", "DEGREES",
                 "temperature limit, above which frequencies go down whatever the policy wishes "
                 "(none)",
                 .max = 1000),
     CNRI_OPTION(govern, late, "--late", "X",
                 "passes of a scene that take longer are counted as late", .max = 1e6),
     CNRI_OPTION(govern, period, "--period", "X", "seconds between two ticks (0.1)", .min = 0,
                 .max = 5),
     CNRI_OPTION(govern, out, "--output", "FILE", "record: the CSV that is written", .letter = 'o',
                 .writes = true),
     CNRI_OPTION(govern, note, "--note", "TEXT", "record: a line of the head: what ran, on what"),
     CNRI_OPTION(govern, band, "--band", "X",
                 "calibrate: how far a path of the warping may stray from the diagonal, as a part "
                 "of 40 loads (0.25; 1: anywhere)",
                 .max = 1),
     CNRI_OPTION(govern, traces, "--trace", "FILE",
                 "a recording that the policy may learn from (repeatable; the installed ones)")};

/* ---- what came of it ---- */

/* Result of govern. */
typedef struct result {
    const char *policy, *on, *mode, *fault, *why, *knob, *error, *feeds, *devices, *hz_why, *source;
    const char *joules_why;
    cnr_governed g;
    double mhz, run_ms, tick_ms;
    int32_t code;
    int64_t restored;
    bool off;
} result;
static const cnri_field fields[] = {CNRI_FIELD(result, "policy", policy),
                                    CNRI_FIELD(result, "on", on),
                                    CNRI_FIELD(result, "mode", mode),
                                    CNRI_FIELD(result, "seconds", g.seconds),
                                    CNRI_FIELD(result, "runs", g.runs),
                                    CNRI_FIELD(result, "fps", g.fps),
                                    CNRI_FIELD(result, "run_seconds", g.run_seconds),
                                    CNRI_FIELD(result, "joules", g.joules),
                                    CNRI_FIELD(result, "watts", g.watts),
                                    CNRI_FIELD(result, "run_joules", g.run_joules),
                                    CNRI_FIELD(result, "edp", g.edp),
                                    CNRI_FIELD(result, "knob", knob),
                                    CNRI_FIELD(result, "load", g.load),
                                    CNRI_FIELD(result, "hz", g.hz),
                                    CNRI_FIELD(result, "switches", g.switches),
                                    CNRI_FIELD(result, "switches_a_minute", g.switches_a_minute),
                                    CNRI_FIELD(result, "ticks", g.ticks),
                                    CNRI_FIELD(result, "late", g.late),
                                    CNRI_FIELD(result, "longest_run", g.longest_run),
                                    CNRI_FIELD(result, "limited_share", g.limited_share),
                                    CNRI_FIELD(result, "hot_share", g.hot_share),
                                    CNRI_FIELD(result, "cpu_seconds", g.cpu_seconds),
                                    CNRI_FIELD(result, "longest_tick", g.longest_tick),
                                    CNRI_FIELD(result, "faults", g.faults),
                                    CNRI_FIELD(result, "off", off),
                                    CNRI_FIELD(result, "fault", fault),
                                    CNRI_FIELD(result, "why", why),
                                    CNRI_FIELD(result, "source", source),
                                    CNRI_FIELD(result, "knob_feeds", feeds),
                                    CNRI_FIELD(result, "devices", devices),
                                    CNRI_FIELD(result, "hz_why", hz_why),
                                    CNRI_FIELD(result, "joules_why", joules_why),
                                    CNRI_ASIDE(result, "mhz", mhz),
                                    CNRI_ASIDE(result, "run_ms", run_ms),
                                    CNRI_ASIDE(result, "tick_ms", tick_ms)};
static const cnri_record record =
    CNRI_RECORD(fields,
                "{policy} on {on}{mode? ({mode})}: {seconds:.2f} s {source}, {ticks} ticks, "
                "{switches} switches "
                "({switches_a_minute:.1f} a minute)\n"
                "{runs?passes    {runs}, {run_ms:.2f} ms each, {fps:.3f} FPS\n}"
                "{watts?power     {watts:.3f} W, {joules:.3f} J{run_joules?, {run_joules:.4g} J a "
                "pass, EDP {edp:.4g} J s}\n}"
                "{joules_why?power     unknown: {joules_why}\n}"
                "{load?{knob:-10}{mhz:.1f} MHz, load {load:.2%}\n}"
                "{late?late      {late}, the longest {longest_run:.4f} s\n}"
                "{hot_share?throttled {hot_share:.1%} of the time\n}"
                "{faults?faults    {faults}{off?, the policy is off}: {fault}\n}");

/* ---- curves ---- */

enum { WIDTH = 64 };

/* Draws a curve of blocks: each column shows the mean of its ticks between the least and the
 * largest. */
static void draw(const char *name, const cnr_governed *g, size_t at, double unit,
                 const char *what) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double minimum = INFINITY, maximum = -INFINITY, columns[WIDTH];
    for (int32_t c = 0; c < WIDTH; c++) {
        const int64_t from = (int64_t)g->n_ticks * c / WIDTH,
                      to = (int64_t)g->n_ticks * (c + 1) / WIDTH;
        double sum = 0;
        int64_t n = 0;
        for (int64_t i = from; i < to || (i == from && i < g->n_ticks && to == from); i++) {
            const double value =
                *(const double *)(const void *)((const char *)&g->ticks_at[i] + at) * unit;
            if (isnan(value)) continue;
            sum += value;
            n++;
        }
        columns[c] = n ? sum / (double)n : (double)NAN;
        minimum = fmin(minimum, columns[c]);
        maximum = fmax(maximum, columns[c]);
    }
    if (!(maximum >= minimum)) return;
    const double from = at == offsetof(cnr_tick, hz) ? fmin(minimum, maximum * 0.5) : 0;
    cnri_say(stdout, "%-10s", name);
    for (int32_t c = 0; c < WIDTH; c++) {
        const double part = maximum > from ? (columns[c] - from) / (maximum - from) : 1;
        cnri_say(stdout, "%s",
                 isnan(columns[c]) ? " " : blocks[(int32_t)(fmin(fmax(part, 0), 1) * 8 + 0.5)]);
    }
    cnri_say(stdout, "  %.4g to %.4g %s\n", minimum, maximum, what);
}

/* Why the result has no joules, for people; NULL: it has. */
static const char *no_joules(const govern *v, const cnr_governed *g) {
    if (!isnan(g->joules)) return NULL;
    return v->replay ? "a recording tells what other frequencies do to the load, not what they "
                       "draw; a scene played on a board (--scene NAME --board NAME) has joules"
                     : "no meter measures this machine";
}

/* Prints the result of governing, as lines or JSON. */
static cnr_status tell(const cnri_call *call, const govern *v, const char *on, cnr_governed *g,
                       cnr_error *err) {
    result r = {.policy = v->o.policy ? v->o.policy : "no policy",
                .on = on,
                .g = *g,
                .off = g->off != 0,
                .mode = g->advises ? "advice: knobs can't be set here" : NULL,
                .knob = *g->knob ? g->knob : NULL,
                .feeds = *g->feeds ? g->feeds : NULL,
                .devices = *g->devices ? g->devices : NULL,
                .hz_why = *g->hz_why ? g->hz_why : NULL,
                .joules_why = no_joules(v, g),
                .source = g->simulated ? "simulated"
                          : v->replay  ? "recorded"
                                       : "measured",
                .fault = g->faults ? g->fault : NULL,
                .why = *g->why ? g->why : NULL,
                .mhz = g->hz * 1e-6,
                .run_ms = g->run_seconds * 1e3,
                .tick_ms = g->longest_tick * 1e3};
    const cnr_status status = cnri_tell(call, &record, &r, err);
    if (status || call->common.json || g->n_ticks < 2) return status;
    draw("load", g, offsetof(cnr_tick, load), 100, "%");
    draw("frequency", g, offsetof(cnr_tick, hz), 1e-6, "MHz");
    draw("power", g, offsetof(cnr_tick, watts), 1, "W");
    draw("heat", g, offsetof(cnr_tick, temperature), 1, "C");
    return CNR_OK;
}

/* ---- beside another command ---- */

cnr_status cnri_call_govern(cnri_call *call, cnr_error *err) {
    const cnr_govern_options o = {.size = sizeof o,
                                  .keep_ticks = 1,
                                  .policy = call->common.governor};
    return o.policy ? cnr_govern_begin(call->rt, &o, &call->governing, err) : CNR_OK;
}

/* Prints one line about the governor that ran beside a command. */
static void say_governed(const char *policy, const cnr_governed *g) {
    char hz[128], load[48] = "";
    if (isnan(g->hz))
        snprintf(hz, sizeof hz, "frequency unknown: %s", *g->hz_why ? g->hz_why : "nothing ran");
    else snprintf(hz, sizeof hz, "mean %.1f MHz", g->hz * 1e-6);
    if (!isnan(g->load)) snprintf(load, sizeof load, ", load %.1f%%", g->load * 100);
    cnri_say(stderr, "governor  %s%s: %lld switches of %s%s%s%s%s%s in %.1f s%s, %s%s%s%s\n",
             policy, g->advises ? " (advice: knobs can't be set here)" : "", (long long)g->switches,
             *g->knob ? g->knob : "no knob", *g->feeds ? " (feeds " : "", g->feeds,
             *g->feeds ? ")" : "", *g->devices ? ", net on " : "", g->devices, g->seconds,
             g->simulated ? " simulated" : "", hz, load, g->faults ? "; " : "",
             g->faults ? g->fault : "");
}

void cnri_call_end_govern(cnri_call *call) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_governed g = {.size = sizeof g};
    const govern v = {.o.policy = call->common.governor};
    if (!call->governing) return;
    cnr_status status = cnr_govern_end(call->governing, &g, &err);
    call->governing = NULL;
    if (!status && call->common.json) status = tell(call, &v, "this machine", &g, &err);
    else if (!status && !call->common.quiet) say_governed(v.o.policy, &g);
    cnr_governed_free(&g);
    if (status && !call->code) call->code = cnri_complain(call, &err);
    else if (status) cnri_complain(call, &err);
}

/* ---- ways to use it ---- */

/* Turns the command's options into those of the library, in v->o. */
static cnr_status run_options(cnri_call *call, govern *v, cnr_error *err) {
    v->o.size = sizeof v->o;
    v->o.keep_ticks = 1;
    v->o.board = call->common.board;
    v->o.scene = v->scene;
    v->o.replay = v->replay;
    v->o.seconds = v->seconds;
    v->o.limit = v->limit;
    v->o.late_after = v->late;
    v->o.period = v->period;
    v->o.record = v->out;
    v->o.note = v->note;
    if (v->traces.n && !cnri_push(&v->traces))
        return cnri_fail(err, CNR_E_MEMORY, "options", "out of memory");
    v->o.traces = v->traces.n ? v->traces.at : NULL;
    return CNR_OK;
}

/* Name of what is governed: recording, scene, board, or this machine. */
static const char *on_what(const govern *v) {
    return v->replay ? v->replay : v->scene ? v->scene : v->o.board ? v->o.board : "this machine";
}

/* Runs COMMAND as a process of its own, whose passes the policy does not see. */
static cnr_status beside_command(cnri_call *call, govern *v, cnr_governed *g, cnr_error *err) {
    const int32_t n = call->operands.n - 1;
    char **argv = cnri_alloc_zero(((size_t)n + 1) * sizeof *argv);
    cnr_governing *governing = NULL;
    cnr_energy energy = {.size = sizeof energy};
    if (!argv) return cnri_fail(err, CNR_E_MEMORY, "govern", "out of memory");
    for (int32_t i = 0; i < n; i++) argv[i] = (char *)(uintptr_t)call->operands.at[i + 1];
    v->o.at_once = 1;
    cnr_status status = cnr_govern_begin(call->rt, &v->o, &governing, err);
    int code = 0;
    if (!status)
        status = cnri_energy_command(call->rt, argv, NULL, cnri_watch(call), &energy, &code, err);
    cnr_energy_free(&energy);
    cnri_free(argv);
    const cnr_status ended =
        governing ? cnr_govern_end(governing, status ? NULL : g, status ? NULL : err) : CNR_OK;
    if (!status) call->code = code;
    return status ? status : ended;
}

/* Governs now, alone or beside a command, and prints the result. */
static cnr_status govern_now(cnri_call *call, govern *v, cnr_error *err) {
    cnr_governed g = {.size = sizeof g};
    cnr_status status = run_options(call, v, err);
    if (!status && call->operands.n > 1) status = beside_command(call, v, &g, err);
    else if (!status) status = cnr_govern(call->rt, &v->o, cnri_watch(call), &g, err);
    cnri_watch_end(&call->watching);
    if (!status) status = tell(call, v, on_what(v), &g, err);
    cnr_governed_free(&g);
    return status;
}

/* govern record: observes this machine without a policy, into the file of -o. */
static cnr_status keep_record(cnri_call *call, govern *v, cnr_error *err) {
    if (!v->out) {
        call->code = cnri_mistake("govern", NULL, "where to? want record -o TRACE.csv");
        return CNR_OK;
    }
    v->o.policy = NULL;
    return govern_now(call, v, err);
}

/* govern restore: sets knobs back that a killed process left set, and prints how many. */
static cnr_status restore(cnri_call *call, govern *v, cnr_error *err) {
    static const cnri_field own[] = {CNRI_FIELD(result, "restored", restored)};
    static const cnri_record line =
        CNRI_RECORD(own, "{restored?{restored} knob{restored+s} put back as found"
                         "|nothing was left set by a process that was killed}\n");
    int32_t brought = 0;
    (void)v;
    const cnr_status status = cnri_govern_restore(call->rt, &brought, err);
    const result r = {.restored = brought};
    return status ? status : cnri_tell(call, &line, &r, err);
}

/* ---- calibrate: distances of recordings from a template, by scene ---- */

enum { TEMPLATE = 40, FIRST = 5, MAX_PATH_SHOWN = 64 };
/* Result: how far recordings are from the template. */
typedef struct distance {
    const char *trace, *scene;
    double minimum, mean, maximum, threshold;
    int64_t windows, wrong;
    bool template;
} distance;
static const cnri_field distance_fields[] = {CNRI_FIELD(distance, "trace", trace),
                                             CNRI_FIELD(distance, "scene", scene),
                                             CNRI_FIELD(distance, "windows", windows),
                                             CNRI_FIELD(distance, "least", minimum),
                                             CNRI_FIELD(distance, "average", mean),
                                             CNRI_FIELD(distance, "most", maximum),
                                             CNRI_FIELD(distance, "template", template)};
static const cnri_record distance_record =
    CNRI_RECORD(distance_fields,
                "{trace:-36} {scene:-10} {windows:4} windows, distance {least:.0f} to "
                "{most:.0f}, {average:.0f} on average{template? (the template's)}\n");
static const cnri_field threshold_fields[] = {CNRI_FIELD(distance, "threshold", threshold),
                                              CNRI_FIELD(distance, "windows", windows),
                                              CNRI_FIELD(distance, "wrong", wrong)};
static const cnri_record threshold_record =
    CNRI_RECORD(threshold_fields, "{threshold?threshold {threshold:.0f}: {wrong} of {windows} "
                                  "windows on the wrong side"
                                  "|there is no other scene, from which to tell it}\n");

/* Scene that a recording names in its note; "unknown". */
static const char *scene_of(const cnri_trace *t) {
    static char text[MAX_PATH_SHOWN];
    const char *at = strstr(t->note, "scene: ");
    if (!at) return "unknown";
    snprintf(text, sizeof text, "%.*s", (int)strcspn(at + 7, "\n,;"), at + 7);
    return text;
}

/* Distance of a part of a recording, and whether it is the template's scene. */
typedef struct window {
    double distance;
    bool inside;
} window;
/* State of govern calibrate: the template, its scene, and distances of windows. */
typedef struct calibration {
    double template[TEMPLATE];
    char scene[MAX_PATH_SHOWN]; /* the template's */
    double band;
    CNRI_VEC(window) windows;
} calibration;

/* Computes distances of a recording's windows from the template. The first ticks are left out,
 * because they still show the time before. */
static cnr_status measure(calibration *c, const cnri_trace *t, const char *path, distance *out,
                          cnr_error *err) {
    const cnri_trace_column *load = cnri_trace_column_of(t, NULL, CNRI_COLUMN_LOAD);
    double at[TEMPLATE], sum = 0;
    *out =
        (distance){.trace = path, .scene = scene_of(t), .minimum = INFINITY, .maximum = -INFINITY};
    if (!load || t->n < TEMPLATE + FIRST)
        return cnri_fail(err, CNR_E_FORMAT, path, "want a column NAME.load of %d rows at least",
                         TEMPLATE + FIRST);
    const bool first = !*c->scene;
    if (first) snprintf(c->scene, sizeof c->scene, "%s", out->scene);
    out->template = strcmp(out->scene, c->scene) == 0;
    for (int32_t from = FIRST; from + TEMPLATE <= t->n; from += TEMPLATE) {
        for (int32_t i = 0; i < TEMPLATE; i++)
            at[i] = isnan(load->at[from + i]) ? 0 : load->at[from + i] * 100;
        if (first && from == FIRST) memcpy(c->template, at, sizeof at);
        window *w = cnri_push(&c->windows);
        const double d =
            w ? cnri_dtw(c->template, TEMPLATE, at, TEMPLATE, c->band, INFINITY) : (double)NAN;
        if (isnan(d)) return cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
        *w = (window){d, out->template};
        out->minimum = fmin(out->minimum, d);
        out->maximum = fmax(out->maximum, d);
        sum += d;
        out->windows++;
    }
    out->mean = sum / (double)out->windows;
    return CNR_OK;
}

/* Compares distances, for qsort. */
static int by_distance(const void *a, const void *b) {
    const double x = ((const window *)a)->distance, y = ((const window *)b)->distance;
    return (x > y) - (x < y);
}

/* The distance with the fewest windows on its wrong side, in the middle of the widest gap of that
 * kind; NaN: there is none. Sorts the windows. */
static distance threshold_of(calibration *c) {
    distance out = {.threshold = NAN};
    double gap = -1;
    int64_t inside = 0, minimum = INT64_MAX;
    qsort(c->windows.at, (size_t)c->windows.n, sizeof *c->windows.at, by_distance);
    for (int32_t i = 0; i < c->windows.n; i++) inside += c->windows.at[i].inside;
    int64_t wrong = inside;
    if (inside == c->windows.n) return out;
    for (int32_t i = 0; i + 1 < c->windows.n; i++) {
        const double low = c->windows.at[i].distance, high = c->windows.at[i + 1].distance;
        wrong += c->windows.at[i].inside ? -1 : 1;
        if (wrong > minimum || (wrong == minimum && high - low <= gap)) continue;
        minimum = wrong;
        gap = high - low;
        out.threshold = (low + high) / 2;
    }
    out.windows = c->windows.n;
    out.wrong = minimum;
    return out;
}

/* govern calibrate: finds the distance that separates windows of the first recording from those of
 * other scenes. */
static cnr_status calibrate(cnri_call *call, govern *v, cnr_error *err) {
    calibration c = {.band = v->band};
    if (call->operands.n < 3) {
        call->code =
            cnri_mistake("govern", NULL,
                         "want calibrate TRACE... : the template's first, then other scenes");
        return CNR_OK;
    }
    cnr_status status = CNR_OK;
    for (int32_t i = 1; i < call->operands.n && !status; i++) {
        cnri_trace t;
        distance d;
        status = cnri_trace_read(call->operands.at[i], &t, err);
        if (status) break;
        status = measure(&c, &t, call->operands.at[i], &d, err);
        if (!status) status = cnri_tell(call, &distance_record, &d, err);
        cnri_trace_free(&t);
    }
    const distance d = status ? (distance){0} : threshold_of(&c);
    cnri_vec_free(&c.windows);
    return status ? status : cnri_tell(call, &threshold_record, &d, err);
}

/* ---- the command ---- */

/* The subcommands by their first word; the names of some words alone would be operators. */
static const struct {
    const char *text;
    cnr_status (*run)(cnri_call *call, govern *v, cnr_error *err);
} verbs[] = {{"record what there is to see", keep_record},
             {"calibrate a threshold", calibrate},
             {"restore what was left", restore}};

/* The command govern. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    govern *v = values;
    const char *word = call->operands.at[0];
    for (size_t i = 0; i < CNRI_COUNT(verbs); i++) {
        const size_t n = strcspn(verbs[i].text, " ");
        if (strlen(word) == n && strncmp(word, verbs[i].text, n) == 0)
            return verbs[i].run(call, v, err);
    }
    v->o.policy = word;
    const cnr_status status = govern_now(call, v, err);
    return status;
}

const cnri_command cnri_cmd_govern = {
    .name = "govern",
    .example = "cnnrun govern edp -- cnnrun bench net.lua",
    .operands = "POLICY [-- COMMAND...] | record | calibrate TRACE... | restore",
    .summary =
        "Sets frequencies by a policy in Lua, each 0.1 s: of this machine until Ctrl-C or while a\n"
        "command runs, on a recording (--replay), or on a played board (--board, --scene).",
    .details = "POLICY is a file or an installed one's name (default, fixed, dtw, dtw_learned, "
               "deadline, edp,\n"
               "cool), with options behind commas: fixed,at=480e6. Bounds that were found are "
               "never passed, and\n"
               "all is put back at the end; restore does that for a process that was killed, as "
               "every start\n"
               "does. Who may not set knobs gets advice. record keeps loads, frequencies, watts "
               "and degrees of\n"
               "every domain; calibrate tells how far recordings are from the first one's first 40 "
               "loads by\n"
               "dynamic time warping, and the threshold between its scene (a line \"# scene: "
               "NAME\") and others.",
    .results = CNRI_RESULTS(&record, &distance_record, &threshold_record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(govern, .band = 0.25),
    .min_operands = 1,
    .max_operands = -1,
    .opens = cnri_call_runtime,
    .run = run,
};
