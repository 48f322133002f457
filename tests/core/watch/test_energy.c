/* The sampler: counters, power and what goes wrong with them; regions by a plugin's clock. */
#include "watch/watch.h"
#include "work/work.h"
#include "tests/tap.h"
#include <math.h>

#define PLUGIN CNRT_BUILD_DIR "/tests/core/host/gauges/gauges.so"

/* ---- one reading after the other ---- */

static cnr_meter_domain counter = {.quantity = CNR_QUANTITY_ENERGY, .period_ms = 50};
static cnr_meter_domain power = {.quantity = CNR_QUANTITY_POWER, .period_ms = 50};

/* A sampled domain of a description. */
static cnri_sampled_domain domain_of(const cnr_meter_domain *desc) {
    return (cnri_sampled_domain){.desc = desc, .interval_ns = 50000000};
}
/* Adds a reading of `micro` micro-units at `ms` milliseconds. */
static void at(cnri_sampled_domain *d, double ms, int64_t micro) {
    const cnr_reading r = {.size = sizeof r, .value = micro, .time_ns = (uint64_t)(ms * 1e6)};
    cnri_sampled(d, &r);
}
/* A test: joules of the domain. */
static void is_joules(const cnri_sampled_domain *d, double joules, const char *what) {
    ok(fabs(d->totals.joules - joules) < 1e-9, "%s (%.6f J)", what, d->totals.joules);
}

/* Joules from a counter of energy, also when it wraps. */
static void test_counters(void) {
    cnri_sampled_domain d = domain_of(&counter);
    at(&d, 100, 5000000);
    is_joules(&d, 0, "the first reading is where it begins");
    at(&d, 150, 5500000);
    at(&d, 200, 5500000);
    at(&d, 250, 6500000);
    is_joules(&d, 1.5, "a counter, by difference");
    ok(d.totals.covered_ns == 150000000 && d.totals.n == 2,
       "of all of the time; two values are new");
    ok(fabs(d.totals.sum - (0.5 / 0.05 + 1 / 0.1)) < 1e-9,
       "watts go by when it last had another value");
    at(&d, 300, 7);
    is_joules(&d, 1.5, "one that goes back and never wraps adds nothing");
    is_int(d.totals.lapses, 1, "and that is told");
    at(&d, 350, 1000007);
    is_joules(&d, 2.5, "from there it goes on");

    cnr_meter_domain wrapping = counter;
    wrapping.wraps_at = 10000000;
    d = domain_of(&wrapping);
    at(&d, 0.001, 9900000);
    at(&d, 50, 100000);
    is_joules(&d, 0.2, "a wrap");
    at(&d, 100, 50000);
    is_joules(&d, 0.2, "a reset, which would be nearly all of its range, is none");
    ok(d.totals.lapses == 1 && strstr(d.totals.lapse, "went back"), "but told");
    at(&d, 150, 12000000);
    at(&d, 200, 1);
    ok(d.totals.joules > 0 && d.totals.lapses == 2, "a value above its own range is no wrap");
}

/* Joules from readings of power, by trapezoids. */
static void test_power(void) {
    cnri_sampled_domain d = domain_of(&power);
    at(&d, 100, 1000000);
    at(&d, 200, 3000000);
    is_joules(&d, 0.2, "power by trapezoids");
    at(&d, 200, 9000000);
    is_joules(&d, 0.2, "the same time again is the same reading");
    at(&d, 250, 3000000);
    is_joules(&d, 0.35, "a constant one");
    at(&d, 1000, 3000000);
    is_joules(&d, 2.6, "readings may come late");
    at(&d, 3600000, 3000000);
    is_joules(&d, 2.6, "an hour between two readings is nobody's");
    ok(d.totals.lapses == 1 && strstr(d.totals.lapse, "not read for long"), "and told");
    at(&d, 1000, 3000000);
    ok(d.totals.lapses == 2 && strstr(d.totals.lapse, "clock went back"),
       "a clock that goes back, too");
    at(&d, 1100, 5000000);
    is_joules(&d, 3.0, "from there it goes on");
    at(&d, 1200, -1000000);
    is_joules(&d, 3.2, "power that flows back is taken off");
}

/* ---- what is drawn at rest ---- */

/* True if twenty readings of 50 ms, at `first` micro watts and `by` more each, strayed by `noise`,
 * give a baseline in *out. */
static bool rest_of(const cnr_meter_domain *desc, int64_t first, int64_t by, int64_t noise,
                    cnri_idle_baseline *out) {
    cnri_sampled_domain d = domain_of(desc);
    cnri_domain_totals told[3] = {{0}};
    int64_t joules = 0;
    at(&d, 100, desc == &counter ? 0 : first);
    told[0] = d.totals;
    for (int i = 1; i <= 20; i++) {
        const int64_t watts = first + i * by + (i % 2 ? noise : -noise);
        joules += watts / 20;
        at(&d, 100 + 50 * i, desc == &counter ? joules : watts);
        if (i % 10 == 0) told[i / 10] = d.totals;
    }
    return cnri_idle_baseline_of(&told[0], &told[1], &told[2], out);
}

/* The watts at rest that are taken off. */
static void test_rest(void) {
    const cnr_meter_domain *both[] = {&counter, &power};
    cnri_idle_baseline r, later;
    for (int i = 0; i < 2; i++) {
        ok(rest_of(both[i], 40000000, 0, 0, &r) && fabs(r.watts - 40) < 1e-6 && r.spread == 0 &&
               !*r.why,
           "what holds still is at rest (%.6f W +- %.6f)", r.watts, r.spread);
        ok(rest_of(both[i], 40000000, 0, 12000000, &r) && fabs(r.spread - 12) < 1,
           "and so is what strays evenly");
        ok(rest_of(both[i], 40000000, -100000, 0, &r), "a drift of a twentieth is none");
        ok(!rest_of(both[i], 40000000, -1000000, 500000, &r), "what goes down has been at work");
        has_text(r.why, "idle power drifted while the baseline was measured (34", "and is told");
        ok(!rest_of(both[i], 40000000, 1000000, 0, &r), "as what goes up");
    }
    rest_of(&power, 40000000, 0, 0, &r);
    rest_of(&power, 39500000, 0, 0, &later);
    ok(cnri_idle_baseline_recheck(&r, &later) && !*r.why,
       "a fiftieth less behind is the sensor's noise");
    rest_of(&power, 90000000, 0, 0, &later);
    ok(cnri_idle_baseline_recheck(&r, &later), "a machine that is warm draws more behind");
    rest_of(&power, 22000000, 0, 0, &later);
    ok(!cnri_idle_baseline_recheck(&r, &later), "who draws less behind was not at rest");
    is_text(r.why, "the baseline was taken under load: 40 W before the run, 22 W after it",
            "which is told");
    cnri_domain_totals none = {.status = CNR_E_IO};
    ok(cnri_idle_baseline_of(&none, &none, &none, &later) && isnan(later.watts),
       "without readings nothing is known");
    ok(cnri_idle_baseline_recheck(&r, &later), "and nothing against anybody");
}

/* ---- regions of made-up machines ---- */

/* Opens the library with a meter's plugin and a made-up clock. */
static cnr_runtime *open_runtime(const char *plugin, const char *clock, const char *root) {
    const char *const dirs[] = {plugin, NULL};
    cnr_error err = CNR_ERROR_INIT;
    const cnr_open_options o = {.size = sizeof o,
                                .plugin_dirs = dirs,
                                .no_default_dirs = 1,
                                .log_level = CNR_LOG_ERROR,
                                .clock = clock,
                                .sysfs_root = root};
    cnr_runtime *rt = NULL;
    ok(cnr_open(&rt, &o, &err) == CNR_OK, "a runtime %s", err.text);
    return rt;
}

static int rounds;
/* Work that takes some time. */
static cnr_status work(void *arg, cnr_error *err) {
    rounds++;
    (void)err;
    cnri_wait_until(cnri_now_ns() + (uint64_t)(*(double *)arg * 1e6));
    return CNR_OK;
}
/* Work that fails. */
static cnr_status failing(void *arg, cnr_error *err) {
    (void)arg;
    return cnri_fail(err, CNR_E_IO, "work", "it broke");
}

/* Energy of work with the fake clock and meters. */
static void test_virtual(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = open_runtime(PLUGIN, "fake-time", "/no/such/tree");
    cnr_energy e = {.size = sizeof e};
    rounds = 0;
    double ms = 60; /* in which the counter goes through less than half its range */
    is_int(cnr_energy_of(rt, work, &ms, NULL, NULL, &e, &err), CNR_OK, "work of 60 ms");
    is_int(e.n, 1, "the temperature is no energy");
    is_int(rounds, (int)e.rounds, "rounds are told");
    ok(e.rounds >= 4 && e.rounds <= 7, "a counter renewed every 20 ms: 400 ms are wanted");
    ok(fabs(e.watts - 6) < 0.1 && fabs(e.idle_watts - 6) < 0.1, "6 W, before and meanwhile");
    ok(fabs(e.joules - 6 * e.seconds) < 0.06 && fabs(e.joules_net) < 0.06, "gross and net");
    ok(fabs(e.edp - e.joules * e.seconds) < 1e-9 && e.at[0].summed, "and EDP");
    is_int(e.source, CNR_ENERGY_SIMULATED, "by a made-up clock nothing is measured");
    is_text(e.at[0].feeds, "opencl:0", "what it feeds");
    ok(e.samples >= e.rounds, "samples are counted");
    cnr_energy_free(&e);
    is_int(cnr_energy_of(rt, failing, NULL, NULL, NULL, &e, &err), CNR_E_IO, "work that fails");
    has_text(err.text, "it broke", "is the result's error");
    cnr_close(rt);
}

/* Energy with the machine's clock and a fake card. */
static void test_real(void) {
    char root[] = "/tmp/cnnrun-energy-XXXXXX", path[64];
    cnr_error err = CNR_ERROR_INIT;
    if (!mkdtemp(root)) abort();
    /* counts from 0 as fast as a real one, and may be read late */
    cnr_runtime *rt = open_runtime(CNRT_BUILD_DIR "/plugins/meter-nvml.so", NULL,
                                   CNRT_BUILD_DIR "/tests/plugins/meter-nvml");
    const cnr_energy_options o = {.size = sizeof o, .no_idle = 1};
    cnr_energy_region *outer = NULL, *inner = NULL;
    cnr_energy e = {.size = sizeof e};
    double ms = 60;
    is_int(cnr_energy_begin(rt, &o, NULL, &outer, &err), CNR_OK, "a region, with a thread");
    is_int(cnr_energy_begin(rt, &o, NULL, &inner, &err), CNR_OK, "and one in it");
    ok(!cnr_energy_long_enough(inner), "which is short yet");
    work(&ms, &err);
    is_int(cnr_energy_end(inner, 1, &e, &err), CNR_OK, "the inner one");
    ok(fabs(e.watts - 340) < 20 && isnan(e.idle_watts) && isnan(e.joules_net),
       "is measured, and nothing is net of what wasn't asked (%.3f W)", e.watts);
    cnr_energy_free(&e);
    for (int i = 0; i < 6; i++) work(&ms, &err);
    is_int(cnr_energy_end(outer, 7, &e, &err), CNR_OK, "the outer one");
    ok(e.rounds == 7 && e.seconds > 0.055 && e.seconds < 3 && fabs(e.watts - 340) < 20,
       "of seven rounds (%.3f s, %.3f W)", e.seconds, e.watts);
    ok(e.samples >= 4, "the thread looked (%d)", (int)e.samples);
    ok(e.n == 3 && !e.at[1].summed && e.at[1].within == 1 && fabs(e.at[1].watts - 250) < 5,
       "power beside a counter is told, and not counted twice");
    cnr_energy_free(&e);

    snprintf(path, sizeof path, "%s/bad", root);
    FILE *bad = fopen(path, "w");
    if (bad) fclose(bad);
    cnr_close(rt);
    rt = open_runtime(PLUGIN, NULL, root);
    is_int(cnr_energy_of(rt, work, &ms, &o, NULL, &e, &err), CNR_OK,
           "a sensor that does not answer");
    ok(e.source == CNR_ENERGY_UNMEASURED && isnan(e.joules) && isnan(e.edp) && e.unmeasured == 1,
       "is unmeasured, not 0");
    ok(e.at[0].status == CNR_E_IO && strstr(e.at[0].why, "does not answer"), "and why");
    is_int(e.rounds, 1, "nothing is repeated for it");
    cnr_energy_free(&e);
    remove(path);
    remove(root);
    cnr_close(rt);
    is_int(cnr_energy_of(NULL, work, &ms, NULL, NULL, &e, &err), CNR_E_ARG, "without a runtime");
}

int main(void) {
    test_counters();
    test_power();
    test_rest();
    test_real(); /* plugins stay loaded: the made-up meter would be in its sums */
    test_virtual();
    return done();
}
