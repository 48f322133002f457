/* Frequency policies: what is wished is kept within bounds, faults keep the last good setting, a
 * limit of temperature wins; policies in Lua that throw, loop, allocate and ask for nonsense; time
 * warping, played machines, recordings. */
#include "govern/govern.h"
#include "work/work.h"
#include "tests/tap.h"
#include <math.h>
#include <unistd.h>

/* ---- a made-up machine of two knobs ---- */

/* A made-up machine. */
typedef struct fake {
    double temperature, time;
    uint64_t hz[2];
    int32_t sets, cores;
    bool broken;
} fake;

static const uint64_t steps[] = {177000000, 350000000, 480000000, 543000000};

/* What the machine shows: two clocks, described at first, and a temperature. */
static cnr_status look(void *arg, cnri_seen *s, cnr_error *err) {
    fake *f = arg;
    (void)err;
    if (s->n_knobs == 0) {
        *s = (cnri_seen){.n_knobs = 2, .runs = {.seconds = NAN, .cycle = NAN, .joules = NAN}};
        for (int i = 0; i < 2; i++) {
            cnri_seen_knob *k = &s->knobs[i];
            snprintf(k->name, sizeof k->name, "%s", i ? "cpu0-3" : "gpu");
            snprintf(k->feeds, sizeof k->feeds, "%s", i ? "cpu" : "opencl:0");
            k->writable = 1;
            k->min_hz = steps[0];
            k->max_hz = steps[3];
            if (i) k->max_cores = 4, k->min_cores = 1;
            else memcpy(k->steps, steps, sizeof steps), k->n_steps = 4;
        }
    }
    s->period = s->time > 0 || f->time > 0 ? 0.1 : 0;
    s->time = f->time;
    f->time += 0.1;
    for (int i = 0; i < 2; i++) {
        s->knobs[i].hz = f->hz[i];
        s->knobs[i].load = 0.5;
        s->knobs[i].cores = i ? f->cores : -1;
        s->knobs[i].temperature = NAN;
    }
    s->temperature = f->temperature;
    s->watts = 2;
    s->joules = 2 * s->time;
    return CNR_OK;
}

/* Sets the machine's clock to hz (0: as it is) and cores (below 0: as they are); CNR_E_IO if it is
 * broken. */
static cnr_status set(void *arg, int32_t knob, uint64_t hz, int32_t cores, cnr_error *err) {
    fake *f = arg;
    if (f->broken) return cnri_fail(err, CNR_E_IO, "gpu", "permission is gone");
    if (hz) f->hz[knob] = hz;
    if (cores >= 0) f->cores = cores;
    f->sets++;
    return CNR_OK;
}

static double wished;
/* A policy: clock 0 is to be `wished` Hz. */
static cnr_status wish(void *arg, const cnri_seen *seen, cnri_wish *wishes, double *period,
                       cnr_error *err) {
    (void)arg, (void)seen, (void)period, (void)err;
    wishes[0].hz = wished;
    return CNR_OK;
}

static int warnings;
static char last_warning[512];
/* A log: counts warnings and keeps the last one's text. */
static void hear(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg, (void)who;
    if (level > CNR_LOG_WARN) return;
    warnings++;
    snprintf(last_warning, sizeof last_warning, "%s", text);
}

/* A governor on the made-up machine *f, which it resets: two clocks at 480 MHz, ticks of 0.1 s, no
 * limit of heat. */
static cnri_governor governor_of(fake *f, cnri_frequency_policy policy) {
    *f = (fake){.temperature = NAN, .hz = {480000000, 480000000}, .cores = 4};
    return (
        cnri_governor){.machine = {f, look, set}, .policy = policy, .limit = NAN, .period = 0.1};
}

/* n ticks. */
static void tick(cnri_governor *g, int n) {
    cnr_error err = CNR_ERROR_INIT;
    for (int i = 0; i < n; i++)
        if (cnri_governor_tick(g, &err)) ok(0, "a tick: %s", err.text);
}

/* Wishes are clamped to the knob's range, and set only when they change. */
static void test_clamps(void) {
    fake f;
    cnri_governor g = governor_of(&f, (cnri_frequency_policy){.step = wish});
    wished = 350e6;
    tick(&g, 3);
    ok(f.hz[0] == 350000000 && f.sets == 1, "a wish is set, once");
    wished = 500e6;
    tick(&g, 1);
    is_int((long long)f.hz[0], 480000000, "between two steps: the lower one");
    wished = 900e6;
    tick(&g, 1);
    is_int((long long)f.hz[0], 543000000, "above the bounds: the highest within");
    wished = 1;
    tick(&g, 1);
    is_int((long long)f.hz[0], 177000000, "below them: the lowest");
    is_int(g.stats.switches, 4, "changes are counted");
    is_int((long long)f.hz[1], 480000000, "what nobody wished for is as it was");
    f.hz[0] = 480000000;
    g = governor_of(&f, (cnri_frequency_policy){.step = wish});
    wished = 350e6;
    look(&f, &g.seen, NULL);
    g.seen.knobs[0].writable = 0;
    tick(&g, 2);
    ok(g.stats.advises && f.sets == 0 && g.stats.switches == 1,
       "a knob that can't be set: advice, nothing more");
}

/* A policy that wishes nonsense three times is turned off, and told once; so is a knob that can't
 * be set any more. */
static void test_faults(void) {
    static const double nonsense[] = {10e12, -5, NAN, INFINITY};
    for (size_t i = 0; i < CNRI_COUNT(nonsense); i++) {
        fake f;
        cnri_governor g = governor_of(&f, (cnri_frequency_policy){.step = wish});
        wished = 350e6;
        tick(&g, 1);
        warnings = 0;
        wished = nonsense[i];
        tick(&g, 1);
        ok(f.hz[0] == 350000000 && warnings == 1, "%g Hz: the last good setting, told", wished);
        tick(&g, 10);
        ok(g.stats.off && g.stats.faults == CNRI_MAX_FAULTS && f.hz[0] == 350000000 &&
               warnings == 2,
           "three turn it off, told once");
    }
    fake f;
    cnri_governor g = governor_of(&f, (cnri_frequency_policy){.step = wish});
    wished = 350e6;
    f.broken = true;
    tick(&g, 5);
    ok(g.stats.off && f.hz[0] == 480000000, "a knob that can't be set any more is a fault, too");
    has_text(g.stats.fault.text, "permission is gone", "whose first is kept");
}

/* Heat above the limit lowers the clock. */
static void test_limit(void) {
    fake f;
    cnri_governor g = governor_of(&f, (cnri_frequency_policy){.step = wish});
    g.limit = 80;
    wished = 543e6;
    f.temperature = 70;
    tick(&g, 1);
    is_int((long long)f.hz[0], 543000000, "below the limit a policy may have its way");
    f.temperature = 85;
    tick(&g, 2);
    is_int((long long)f.hz[0], 350000000, "above it each tick takes a step");
    tick(&g, 9);
    is_int((long long)f.hz[0], 177000000, "down to the lowest");
    f.temperature = 79;
    tick(&g, 3);
    is_int((long long)f.hz[0], 177000000, "and stays while it is near");
    f.temperature = 60;
    tick(&g, 3);
    is_int((long long)f.hz[0], 543000000, "then gives them back");
    ok(g.stats.throttled > 0.5 && g.stats.throttled < 0.9, "how often it held is told");
}

/* ---- policies in Lua ---- */

static char folder[] = "/tmp/cnnrun-govern-XXXXXX";

/* Writes a policy to a new file in the test's folder; returns its path, which stays only until the
 * next call. Exits the program if it can't be written. */
static const char *write_policy(const char *text) {
    static char path[64];
    static int n;
    snprintf(path, sizeof path, "%s/p%d.lua", folder, n++);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0) exit(2);
    fclose(f);
    return path;
}

/* Ticks of a policy's text; `first` before it goes wrong. */
static cnri_governor run_policy(const char *text, fake *f, int ticks) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_frequency_policy p;
    const char *path = write_policy(text);
    if (cnri_frequency_policy_open(path, NULL, &p, &err)) {
        ok(0, "%s: %s", err.where, err.text);
        exit(1);
    }
    cnri_governor g = governor_of(f, p);
    warnings = 0;
    tick(&g, ticks);
    p.close(p.arg);
    return g;
}

#define AFTER_ONE \
    "return { step = function(s, m) m.n = (m.n or 0) + 1 if m.n == 1 then return { gpu = 350e6 } " \
    "end "

/* Policies that throw, loop or return nonsense are told. */
static void test_bad_policies(void) {
    static const struct {
        const char *text, *what, *told;
    } bad[] =
        {{AFTER_ONE "error('no more') end }", "throws", "no more"},
         {AFTER_ONE "while true do end end }", "loops", "longer than it may"},
         {AFTER_ONE "while true do pcall(function() while true do end end) end end }",
          "loops and catches", "longer than it may"},
         {AFTER_ONE "local t = 'x' while true do t = t .. t end end }", "allocates", "memory"},
         {AFTER_ONE "return { gpu = 10e12 } end }", "asks for 10 THz", "wants 1e+13 Hz of gpu"},
         {AFTER_ONE "return { gpu = -1 } end }", "asks for a negative number",
          "wants -1 Hz of gpu"},
         {AFTER_ONE "return { gpu = 0/0 } end }", "asks for no number", "Hz of gpu"},
         {AFTER_ONE "return { gpu = 'highes' } end }", "misspells a word",
          "did you mean 'highest'"},
         {AFTER_ONE "return { gpv = 350e6 } end }", "sets no knob", "did you mean 'gpu'"},
         {AFTER_ONE "return { gpu = {} , ['cpu0-3'] = { cores = -1 } } end }", "asks for no cores",
          "no number of cores"},
         {AFTER_ONE "return { period = 0 } end }", "never wants to sleep", "want seconds"},
         {AFTER_ONE "return { true } end }", "answers a list", "want names of knobs"},
         {AFTER_ONE "return io.open('/etc/passwd') end }", "wants files", "unknown global 'io'"}};
    for (size_t i = 0; i < CNRI_COUNT(bad); i++) {
        fake f;
        const cnri_governor g = run_policy(bad[i].text, &f, 8);
        ok(f.hz[0] == 350000000 && g.stats.off && g.stats.faults == 3 && warnings == 2 &&
               f.sets == 1,
           "one that %s: last good setting, off after three, told once", bad[i].what);
        has_text(g.stats.fault.text, bad[i].told, "and why");
    }
    cnr_error err = CNR_ERROR_INIT;
    cnri_frequency_policy p;
    is_int(cnri_frequency_policy_open(write_policy("return 7"), NULL, &p, &err), CNR_E_SCRIPT,
           "no policy at all");
    has_text(err.text, "want a table { step = function(seen, memory)", "is told so");
    is_int(cnri_frequency_policy_open("no_such", NULL, &p, &err), CNR_E_NOT_FOUND,
           "a name that nothing has");
}

/* What scripts may return as a wish. */
static void test_good_policies(void) {
    fake f;
    run_policy("return { step = function(s, m) m.n = (m.n or 0) + 1 return m.n % 2 == 1 and "
               "'lowest' or 'up' end }",
               &f, 2);
    is_int((long long)f.hz[0], 350000000, "words; memory lasts");
    run_policy("return { step = function(s) return { cpu = { hz = 200e6, cores = 2 }, gpu = "
               "s.knobs.gpu.steps[1] } end }",
               &f, 1);
    ok(f.hz[1] == 200000000 && f.cores == 2 && f.hz[0] == 177000000,
       "by device, cores, several knobs");
    cnri_governor g =
        run_policy("return { step = function(s) return { ['*'] = 'lowest', period = 99 } end }", &f,
                   1);
    ok(f.hz[0] == 177000000 && f.hz[1] == 177000000, "all of them");
    ok(g.period == CNRI_TICK_MOST, "ticks are never too rare");
    run_policy("return { step = function(s) assert(s.knob.name == 'gpu' and s.knob.load == .5 and "
               "s.watts == 2 and "
               "s.knobs[2].max_cores == 4 and s.runs.count == 0 and not s.runs.cycle) return "
               "'highest' end }",
               &f, 1);
    is_int((long long)f.hz[0], 543000000, "what it sees");
}

/* ---- dynamic time warping ---- */

/* The distance of two series of n and m numbers by dynamic time warping, as the plain recursion has
 * it. */
static double plain(const double *a, int n, const double *b, int m) {
    double d[41][41];
    for (int i = 0; i <= n; i++)
        for (int j = 0; j <= m; j++) d[i][j] = i || j ? (double)INFINITY : 0;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++)
            d[i][j] =
                fabs(a[i - 1] - b[j - 1]) + fmin(d[i - 1][j], fmin(d[i][j - 1], d[i - 1][j - 1]));
    return d[n][m];
}

/* Dynamic time warping: the bounds against the plain recursion, on random series. */
static void test_dtw(void) {
    double a[40], b[40];
    int same = 0, abandoned = 0, kept = 0, banded = 0;
    srand(7);
    for (int t = 0; t < 400; t++) {
        const int n = 1 + rand() % 40, m = 1 + rand() % 40;
        for (int i = 0; i < 40; i++) a[i] = rand() % 100, b[i] = rand() % 100;
        const double want = plain(a, n, b, m);
        same += fabs(cnri_dtw(a, n, b, m, 1, INFINITY) - want) < 1e-9;
        abandoned += isinf(cnri_dtw(a, n, b, m, 1, want * 0.99 - 1));
        kept += cnri_dtw(a, n, b, m, 1, want + 1e-6) <= want + 1e-6;
        const double narrow = cnri_dtw(a, n, b, m, 0.1, INFINITY);
        banded += narrow >= want - 1e-9 && isfinite(narrow);
    }
    is_int(same, 400, "as the plain recurrence has it");
    is_int(abandoned, 400, "given up when it is above the bound");
    is_int(kept, 400, "and not when it is below");
    is_int(banded, 400, "within a band there is a path, and none that is shorter");
    ok(cnri_dtw(a, 40, a, 40, 0, 0) == 0, "nothing from itself");
    ok(isnan(cnri_dtw(a, 0, b, 3, 1, 1)), "nothing has no distance");
}

/* ---- played machines and recordings ---- */

static const char scene[] =
    "return { clocks = { { name = 'gpu', feeds = 'opencl:0', static = .1, per_v2_mhz = .002, rest "
    "= 1,\n"
    " steps = { { mhz = 100, volts = .8 }, { mhz = 200, volts = 1 } } } },\n"
    " phases = { { clock = 'gpu', seconds = .2, megacycles = 40, run = true } } }\n";

static cnr_runtime *rt;

/* Plays a scene under a policy. */
static cnr_governed play(const char *policy, const char *what, double seconds, cnr_status want) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_governed g = {.size = sizeof g};
    char own[300];
    const int n = (int)strcspn(policy, ",");
    snprintf(own, sizeof own, CNRT_SOURCE_DIR "/governors/%.*s.lua%s", n, policy, policy + n);
    const char *const traces[] = {CNRT_SOURCE_DIR "/governors/traces/loop4.csv",
                                  CNRT_SOURCE_DIR "/governors/traces/mail.csv", NULL};
    const cnr_govern_options o = {.size = sizeof o,
                                  .policy = own,
                                  .scene = what,
                                  .seconds = seconds,
                                  .keep_ticks = 1,
                                  .traces = traces};
    const cnr_status status = cnr_govern(rt, &o, NULL, &g, &err);
    if (status != want) ok(0, "%s: %s: %s", what, err.where, err.text);
    return g;
}

/* A played scene gives the seconds and joules that its board has. */
static void test_play(void) {
    char path[80];
    snprintf(path, sizeof path, "%s", write_policy(scene));
    cnr_governed g = play("fixed,at=lowest", path, 60, CNR_OK);
    ok(fabs(g.run_seconds - 0.6) < 1e-3, "seconds and cycles over hertz (%g s)", g.run_seconds);
    ok(fabs(g.watts - (0.1 + 0.002 * 0.64 * 100)) < 1e-3, "static and k V^2 f (%g W)", g.watts);
    ok(fabs(g.load - 40.0 / 60) < 0.01, "load is what works (%g)", g.load);
    cnr_governed_free(&g);
    g = play("fixed", path, 60, CNR_OK);
    ok(fabs(g.run_seconds - 0.4) < 1e-9 && fabs(g.edp - 0.4 * 0.4 * 0.5) < 1e-9,
       "at the other step");
    is_int(g.n_ticks, 601, "a tick each 0.1 s");
    cnr_governed_free(&g);
    g = play("edp", path, 120, CNR_OK);
    ok(g.edp < 0.4 * 0.4 * 0.5 * 1.01, "edp finds the better (%g)", g.edp);
    cnr_governed_free(&g);
    char bad[80];
    snprintf(bad, sizeof bad, "%s",
             write_policy(
                 "return { clocks = { { name = 'gpu', steps = { { mhz = 2 }, { mhz = 1 } } } } }"));
    play("fixed", bad, 1, CNR_E_FORMAT);
    snprintf(bad, sizeof bad, "%s",
             write_policy("return { clocks = { { name = 'gpu', steps = { { mhz = 2 } } } }, phases "
                          "= { { clock = 'gpv', seconds = 1 } } }"));
    play("fixed", bad, 1, CNR_E_NOT_FOUND);
    snprintf(bad, sizeof bad, "%s",
             write_policy("return { clocks = { { name = 'gpu', steps = { { mhz = 2 } } } }, phases "
                          "= { { seconds = 0 } } }"));
    play("fixed", bad, 1, CNR_E_FORMAT);
    ok(1, "scenes that make no sense are refused");
}

/* What a tick of each policy costs. */
static void test_cost(void) {
    char path[80];
    snprintf(path, sizeof path, "%s", write_policy(scene));
    static const char *const all[] = {"default",        "fixed", "dtw", "dtw_learned",
                                      "deadline,fps=2", "edp",   "cool"};
    for (size_t i = 0; i < CNRI_COUNT(all); i++) {
        cnr_governed g = play(all[i], path, 1000, CNR_OK);
        ok(g.ticks > 10000 && g.cpu_seconds / g.seconds < 0.005,
           "%s: %.4f%% of a processor, the longest tick %.3f ms", all[i],
           100 * g.cpu_seconds / g.seconds, 1e3 * g.longest_tick);
        is_int(g.faults, 0, "without a fault");
        cnr_governed_free(&g);
    }
}

/* A trace in a file is read as a scene; bad ones are refused. */
static void test_trace(void) {
    cnr_error err = CNR_ERROR_INIT;
    char path[80], bad[80];
    cnri_trace t;
    snprintf(path, sizeof path, "%s/t.csv", folder);
    char scene_path[80];
    snprintf(scene_path, sizeof scene_path, "%s", write_policy(scene));
    const cnr_govern_options o = {.size = sizeof o,
                                  .policy = CNRT_SOURCE_DIR "/governors/fixed.lua",
                                  .scene = scene_path,
                                  .seconds = 20,
                                  .record = path,
                                  .note = "simulated\nscene: inference"};
    is_int(cnr_govern(rt, &o, NULL, NULL, &err), CNR_OK, "recorded");
    is_int(cnri_trace_read(path, &t, &err), CNR_OK, "and read again");
    is_text(t.note, "simulated\nscene: inference", "with its note");
    const cnri_trace_column *load = cnri_trace_column_of(&t, "gpu", CNRI_COLUMN_LOAD);
    ok(load && t.n == 201 && isnan(load->at[0]) && load->at[1] == 0 && load->at[5] == 0,
       "loads, one of which was not told");
    cnri_trace_free(&t);
    cnr_governed g = {.size = sizeof g};
    const cnr_govern_options again = {.size = sizeof again,
                                      .policy = CNRT_SOURCE_DIR "/governors/fixed.lua,at=lowest",
                                      .replay = path,
                                      .keep_ticks = 1};
    is_int(cnr_govern(rt, &again, NULL, &g, &err), CNR_OK, "replayed");
    ok(fabs(g.load - 0.5) < 0.02 && g.runs >= 49, "the work that was recorded (load %g)", g.load);
    cnr_governed_free(&g);
    static const struct {
        const char *text, *told;
    } wrong[] = {{"", "no two rows"},
                 {"time,gpu.hz\n0,1\n", "no two rows"},
                 {"gpu.hz\n1\n2\n", "no column \"time\""},
                 {"time,gpu.speed\n", "the column \"gpu.speed\""},
                 {"time,gpu.hz\n0,1\n1\n", "want 2 cells, got fewer"},
                 {"time,gpu.hz\n0,1,2\n", "want 2 cells, got more"},
                 {"time,gpu.hz\n0,x\n", "want a number for gpu.hz, got \"x\""},
                 {"time,gpu.hz\n1,1\n1,1\n", "the time does not rise"}};
    for (size_t i = 0; i < CNRI_COUNT(wrong); i++) {
        snprintf(bad, sizeof bad, "%s", write_policy(wrong[i].text));
        ok(cnri_trace_read(bad, &t, &err) == CNR_E_FORMAT && strstr(err.text, wrong[i].told),
           "a recording: %s", err.text);
    }
}

/* ---- this machine, by the clock ---- */

/* A governor with the fake plugin's meters and knobs. */
static void test_live(void) {
    const char *const dirs[] = {CNRT_BUILD_DIR "/tests/core/host/gauges/gauges.so", NULL};
    const cnr_open_options o = {.size = sizeof o,
                                .plugin_dirs = dirs,
                                .no_default_dirs = 1,
                                .log_level = CNR_LOG_WARN,
                                .log = hear};
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *own;
    cnr_governing *governing;
    cnr_governed g = {.size = sizeof g};
    is_int(cnr_open(&own, &o, &err), CNR_OK, "a machine of made-up knobs");
    const cnr_govern_options options = {.size = sizeof options,
                                        .policy = CNRT_SOURCE_DIR "/governors/fixed.lua,at=lowest",
                                        .period = 0.02,
                                        .keep_ticks = 1,
                                        .at_once = 1};
    if (!is_int(cnr_govern_begin(own, &options, &governing, &err), CNR_OK, "governed"))
        note("%s: %s", err.where, err.text);
    cnr_gauge_list list = {.size = sizeof list};
    uint64_t hz = 0;
    for (int tries = 0, long_enough = 0; tries < 200 && long_enough < 6; tries++) {
        usleep(50000);
        cnr_gauges(own, NULL, NULL, &list, &err);
        for (int32_t i = 0; i < list.n; i++)
            if (strcmp(list.at[i].name, "gpu") == 0 && list.at[i].quantity == 0) hz = list.at[i].hz;
        cnr_gauges_free(&list);
        long_enough += hz == 177000000;
    }
    is_int((long long)hz, 177000000, "on a thread of its own");
    is_int(cnr_govern_end(governing, &g, &err), CNR_OK, "until it ends");
    ok(g.ticks >= 3 && g.switches == 1, "%d ticks", (int)g.ticks);
    cnr_governed_free(&g);
    cnr_gauges(own, NULL, NULL, &list, &err);
    for (int32_t i = 0; i < list.n; i++)
        if (strcmp(list.at[i].name, "gpu") == 0 && list.at[i].quantity == 0) hz = list.at[i].hz;
    cnr_gauges_free(&list);
    is_int((long long)hz, 600000000, "and all is as it was");
    is_int(cnr_govern_end(NULL, NULL, &err), CNR_E_ARG, "nothing to end");
    cnr_close(own);
}

int main(void) {
    const char *const dirs[] = {CNRT_BUILD_DIR "/plugins/device-sim.so", NULL};
    const cnr_open_options o = {.size = sizeof o,
                                .plugin_dirs = dirs,
                                .no_default_dirs = 1,
                                .log_level = CNR_LOG_WARN,
                                .log = hear};
    cnr_error err = CNR_ERROR_INIT;
    if (!mkdtemp(folder)) return 2;
    setenv("CNNRUN_CACHE", folder, 1);
    is_int(cnr_open(&rt, &o, &err), CNR_OK, "a runtime");
    test_clamps();
    test_faults();
    test_limit();
    test_good_policies();
    test_bad_policies();
    test_dtw();
    test_play();
    test_trace();
    test_cost();
    cnr_close(rt);
    test_live();
    char command[80];
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command)) note("%s is left", folder);
    return done();
}
