/* Meters and knobs: found, read, bounded, put back; by a plugin's clock, where time is made up. */
#include "gauges/gauges.h"
#include "work/work.h"
#include "tests/tap.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLUGIN CNRT_BUILD_DIR "/tests/core/host/gauges/gauges.so"

/* Opens the library with the made-up gauges. */
static cnr_runtime *open_runtime(const char *clock, cnr_error *err) {
    static const char *const dirs[] = {PLUGIN, NULL};
    const cnr_open_options o = {.size = sizeof o,
                                .plugin_dirs = dirs,
                                .no_default_dirs = 1,
                                .log_level = CNR_LOG_ERROR,
                                .clock = clock};
    cnr_runtime *rt = NULL;
    cnr_open(&rt, &o, err);
    return rt;
}

/* A clock that a plugin brings is used, an unknown one refused. */
static void test_clock(void) {
    cnr_error err = CNR_ERROR_INIT;
    ok(!open_runtime("fake-tine", &err), "a clock that nobody brought");
    has_text(err.text, "no plugin brought a clock of that name; did you mean fake-time", "is told");
    const uint64_t real = cnri_real_ns();
    cnr_runtime *rt = open_runtime("fake-time", &err);
    const uint64_t a = cnri_host.now_ns();
    is_int((int64_t)(cnri_host.now_ns() - a), 1000000, "a plugin's clock is the host's now_ns");
    cnri_host.wait_until(a + 3600u * (uint64_t)1000000000);
    ok(cnri_now_ns() >= a + 3600u * (uint64_t)1000000000, "an hour is waited");
    ok(cnri_real_ns() - real < 60u * (uint64_t)1000000000, "which does not take one");
    cnr_close(rt);
    ok(cnri_now_ns() - real < 60u * (uint64_t)1000000000, "the machine's is in force again after");
}

/* The row of a gauge in the list; an empty one: it is not there. */
static const cnr_gauge *row_of(const cnr_gauge_list *list, const char *plugin, const char *name) {
    static const cnr_gauge none = {.quantity = -1};
    for (int32_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].plugin, plugin) == 0 && strcmp(list->at[i].name, name) == 0)
            return &list->at[i];
    return &none;
}

/* Meters and knobs are listed with what they read. */
static void test_list(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = open_runtime("fake-time", &err);
    cnr_gauge_list list = {0};
    is_int(cnr_gauges(rt, NULL, NULL, &list, &err), CNR_OK, "what there is, is read");
    is_int(list.n, 4, "two domains of the meter, two of the knob, none of what is absent");
    const cnr_gauge *gpu = row_of(&list, "fake-meter", "gpu");
    ok(gpu->quantity == CNR_QUANTITY_ENERGY && gpu->period_ms == 20 && !gpu->estimated,
       "a counter");
    is_text(gpu->feeds, "opencl:0", "which says what it feeds");
    ok(gpu->time_ns > 0 && gpu->value == (int64_t)(gpu->time_ns / 1000 * 6 % 1000000),
       "and when its value was so");
    const cnr_gauge *chip = row_of(&list, "fake-meter", "chip");
    ok(chip->quantity == CNR_QUANTITY_TEMPERATURE && chip->value == 45500, "a temperature");
    const cnr_gauge *knob = row_of(&list, "fake-knob", "gpu");
    ok(knob->quantity == 0 && knob->hz == 600000000 && knob->min_hz == 177000000 &&
           knob->load_percent == 37 && knob->cores == 4 && knob->temperature_mc == 45500,
       "a knob with load, cores and temperature");
    const cnr_gauge *bus = row_of(&list, "fake-knob", "bus");
    ok(bus->load_percent == -1 && bus->cores == -1 && bus->temperature_mc == INT32_MIN &&
           !bus->writable,
       "one that tells less");
    cnr_gauges_free(&list);
    is_int(cnr_gauges(rt, NULL, "/dev/ttyFAKE", &list, &err), CNR_OK, "with an address");
    const cnr_gauge *serial = row_of(&list, "fake-meter", "serial");
    ok(serial->quantity == CNR_QUANTITY_POWER && serial->estimated, "a meter that is no file");
    cnr_gauges_free(&list);
    is_int(cnr_gauges(NULL, NULL, NULL, &list, &err), CNR_E_ARG, "without a runtime");
    cnr_close(rt);
}

/* Meters that fail are told, the others stay. */
static void test_failing(void) {
    char root[] = "/tmp/cnnrun-gauges-XXXXXX", path[64];
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = open_runtime(NULL, &err);
    cnr_gauge_list list = {0};
    if (!mkdtemp(root)) abort();
    snprintf(path, sizeof path, "%s/bad", root);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    is_int(cnr_gauges(rt, root, NULL, &list, &err), CNR_OK, "a sensor that does not answer");
    const cnr_gauge *gpu = row_of(&list, "fake-meter", "gpu");
    is_int(gpu->status, CNR_E_IO, "is one row's error");
    has_text(gpu->why, "does not answer", "with its reason");
    cnr_gauges_free(&list);
    const cnr_gauge_options o = {.size = sizeof o, .root = root};
    cnri_gauges g;
    is_int(cnri_gauges_open(&g, &o, &err), CNR_OK, "a knob there");
    is_int(cnri_gauges_close(&g, &err), CNR_OK, "that nobody set is not put back");
    cnri_gauges_open(&g, &o, &err);
    is_int(cnri_knob_set_to(&g.knobs.at[0], 0, 177000000, -1, &err), CNR_OK, "one that was set");
    is_int(cnri_gauges_close(&g, &err), CNR_E_IO, "and can't be put back");
    has_text(err.text, "is not as it was found: permission is gone", "is told");
    unlink(path);
    rmdir(root);
    cnr_close(rt);
}

/* A knob is set and restored. */
static void test_setting(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = open_runtime("fake-time", &err);
    cnri_gauges g;
    cnr_knob_state now;
    cnri_gauges_open(&g, NULL, &err);
    cnri_knob_set *k = &g.knobs.at[0];
    cnri_knob_set_to(k, 0, 420000000, 2, &err);
    cnri_knob_read(k, 0, &now, &err);
    ok(now.hz == 420000000 && now.cores == 2, "a step, and cores switched off");
    const uint64_t first = now.time_ns;
    cnri_knob_set_to(k, 0, (uint64_t)10000000000000, 99, &err);
    cnri_knob_read(k, 0, &now, &err);
    ok(now.hz == 600000000 && now.cores == 4, "10 THz and 99 cores are what there is");
    ok(now.time_ns - first >= 95000000, "and not sooner than its period after");
    cnri_knob_set_to(k, 0, 500000000, 0, &err);
    cnri_knob_read(k, 0, &now, &err);
    ok(now.hz == 420000000 && now.cores == 1, "between steps the lower one; never no core");
    cnri_knob_set_to(k, 0, 1, -1, &err);
    cnri_knob_read(k, 0, &now, &err);
    ok(now.hz == 177000000 && now.cores == 1, "1 Hz is the lowest; cores as they were");
    is_int(cnri_knob_set_to(k, 1, 300000000, -1, &err), CNR_E_UNSUPPORTED, "one that is only read");
    is_int(cnri_gauges_close(&g, &err), CNR_OK, "closed");
    cnri_gauges_open(&g, NULL, &err);
    cnri_knob_read(&g.knobs.at[0], 0, &now, &err);
    cnri_gauges_close(&g, &err);
    ok(now.hz == 600000000 && now.cores == 4, "all is as it was found");
    cnr_close(rt);
}

int main(void) {
    test_clock();
    test_list();
    test_setting();
    test_failing();
    return done();
}
