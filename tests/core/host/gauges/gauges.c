/* Made-up meters, knobs, pictures with times and a clock: time passes when somebody looks (1 ms) or
 * waits, a fake GPU has a frequency, and what it draws follows from that. Under the root of a tree
 * with a file "bad" the meter can't be read, the knob says that it can't be put back.
 * plugins/README.md starts plugins from the sections of this file. */
#include <cnnrun/plugin.h>
#include <stdio.h>
#include <stdlib.h>

static const cnr_host *host;

/* ---- the clock ---- */

static uint64_t now; /* atomically: any thread looks */
static uint64_t now_ns(void) { return __atomic_add_fetch(&now, 1000000, __ATOMIC_RELAXED); }
/* Waits until the made-up clock shows ns. */
static void wait_until(uint64_t ns) {
    uint64_t is = __atomic_load_n(&now, __ATOMIC_RELAXED);
    while (is < ns &&
           !__atomic_compare_exchange_n(&now, &is, ns, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
static const cnr_clock fake_clock = {.size = sizeof(cnr_clock),
                                     .name = "fake-time",
                                     .summary = "a millisecond a look",
                                     .now_ns = now_ns,
                                     .wait_until = wait_until};

/* ---- the machine ---- */

/* A made-up machine. */
typedef struct machine {
    uint64_t hz;
    int32_t cores, bad;
    char address[64];
} machine;
static _Atomic uint64_t set_hz = 600000000; /* shared by all that opened the machine */
static _Atomic int32_t cores = 4;

/* Opens it; fails where the options say so. */
static cnr_status open_machine(const cnr_gauge_options *options, void **state, cnr_error *err) {
    machine *m = calloc(1, sizeof *m);
    char path[4096];
    if (!m) return host->fail(err, CNR_E_MEMORY, "fake", "out of memory");
    snprintf(path, sizeof path, "%s/bad", options->root);
    FILE *f = fopen(path, "r");
    m->bad = f != NULL;
    if (f) fclose(f);
    m->hz = set_hz;
    m->cores = cores;
    snprintf(m->address, sizeof m->address, "%s", options->address ? options->address : "");
    *state = m;
    return CNR_OK;
}
static void close_machine(void *state) { free(state); }

/* ---- meters: energy that wraps, power at an address, temperature ---- */

/* Method open of the meter: *n is 2 domains, 3 with an address. */
static cnr_status open_meter(const cnr_gauge_options *options, void **state, int32_t *n,
                             cnr_error *err) {
    *n = options->address ? 3 : 2;
    return open_machine(options, state, err);
}
/* Method describe of the meter: several domains. */
static cnr_status describe_meter(void *state, int32_t domain, cnr_meter_domain *out,
                                 cnr_error *err) {
    static const char *const names[] = {"gpu", "chip", "serial"};
    static const int32_t quantities[] = {CNR_QUANTITY_ENERGY, CNR_QUANTITY_TEMPERATURE,
                                         CNR_QUANTITY_POWER};
    (void)state, (void)err;
    snprintf(out->name, sizeof out->name, "%s", names[domain]);
    if (domain == 0) snprintf(out->device, sizeof out->device, "opencl:0");
    out->quantity = quantities[domain];
    out->period_ms = domain ? 0 : 20;
    out->is_estimated = domain == 2;
    out->wraps_at = domain ? 0 : 1000000;
    return CNR_OK;
}
/* Method read of the meter, by the made-up clock. */
static cnr_status read_meter(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    const machine *m = state;
    if (m->bad) return host->fail(err, CNR_E_IO, "fake", "the sensor does not answer");
    const uint64_t time = host->now_ns();
    if (domain == 0) out->value = (int64_t)(time / 1000 * (set_hz / 100000000) % 1000000);
    else out->value = domain == 1 ? 45500 : 2500000;
    if (domain == 0) out->time_ns = time;
    return CNR_OK;
}
static const cnr_meter fake_meter = {.size = sizeof(cnr_meter),
                                     .name = "fake-meter",
                                     .summary = "fake",
                                     .open = open_meter,
                                     .describe = describe_meter,
                                     .read = read_meter,
                                     .close = close_machine};

/* Method open of a meter that is not there: CNR_E_NOT_FOUND. */
static cnr_status open_absent(const cnr_gauge_options *options, void **state, int32_t *n,
                              cnr_error *err) {
    (void)options, (void)state, (void)n;
    return host->fail(err, CNR_E_NOT_FOUND, "absent", "this machine has none");
}
static const cnr_meter absent_meter = {.size = sizeof(cnr_meter),
                                       .name = "absent-meter",
                                       .summary = "fake",
                                       .open = open_absent,
                                       .describe = describe_meter,
                                       .read = read_meter,
                                       .close = close_machine};

/* ---- knobs: one with steps and cores, one that is only read ---- */

/* Method open of the knob: *n is two domains. */
static cnr_status open_knob(const cnr_gauge_options *options, void **state, int32_t *n,
                            cnr_error *err) {
    *n = 2;
    return open_machine(options, state, err);
}
/* Method describe of the knob. */
static cnr_status describe_knob(void *state, int32_t domain, cnr_knob_domain *out, cnr_error *err) {
    (void)state, (void)err;
    snprintf(out->name, sizeof out->name, "%s", domain ? "bus" : "gpu");
    snprintf(out->devices, sizeof out->devices, "%s", domain ? "" : "opencl:0");
    out->n_steps = domain ? 0 : 3;
    out->is_writable = domain == 0;
    out->period_ms = 100;
    out->min_hz = 177000000;
    out->max_hz = 600000000;
    out->min_cores = domain ? 0 : 1;
    out->max_cores = domain ? 0 : 4;
    return CNR_OK;
}
/* Method step of the knob: *hz of three steps. */
static cnr_status step(void *state, int32_t domain, int32_t index, uint64_t *hz, cnr_error *err) {
    static const uint64_t steps[] = {177000000, 420000000, 600000000};
    (void)state, (void)domain, (void)err;
    *hz = steps[index];
    return CNR_OK;
}
/* Method read of the knob: domain 0 (gpu) as it was set, 37% load and 45.5 degrees; domain 1 (bus)
 * 400 MHz. */
static cnr_status read_knob(void *state, int32_t domain, cnr_knob_state *out, cnr_error *err) {
    (void)state, (void)err;
    out->hz = domain ? 400000000 : set_hz;
    if (domain) return CNR_OK;
    out->load_percent = 37;
    out->cores = cores;
    out->temperature_mc = 45500;
    return CNR_OK;
}
/* Method set of the knob: keeps hz, unless that is 0, and n cores, unless below 0. */
static cnr_status set_knob(void *state, int32_t domain, uint64_t hz, int32_t n, cnr_error *err) {
    (void)state, (void)domain, (void)err;
    if (hz) set_hz = hz;
    if (n >= 0) cores = n;
    return CNR_OK;
}
/* Method restore of the knob: what was found at open; CNR_E_IO if m->bad. */
static cnr_status restore(void *state, cnr_error *err) {
    const machine *m = state;
    if (m->bad) return host->fail(err, CNR_E_IO, "fake", "permission is gone");
    set_hz = m->hz;
    cores = m->cores;
    return CNR_OK;
}
static const cnr_knob fake_knob = {.size = sizeof(cnr_knob),
                                   .name = "fake-knob",
                                   .summary = "fake",
                                   .open = open_knob,
                                   .describe = describe_knob,
                                   .step = step,
                                   .read = read_knob,
                                   .set = set_knob,
                                   .restore = restore,
                                   .close = close_machine};

/* ---- a source of "ticks:N" pictures, 40 ms apart; a writer of lines to "ticks:FILE" ---- */

/* Method accepts of a source that moves the clock: 50 for "ticks:" and names with ".ticks", else
 * 0. */
static int32_t accepts_ticks(const char *spec, const uint8_t *head, size_t n) {
    (void)head, (void)n;
    return strncmp(spec, "ticks:", 6) == 0 || strstr(spec, ".ticks") ? 50 : 0;
}
/* Method open of that source: as many samples as stand behind "ticks:". */
static cnr_status open_ticks(const char *spec, const char *split, void **state,
                             cnr_source_info *info, cnr_error *err) {
    (void)split, (void)err;
    info->count = atoi(spec + 6);
    *state = NULL;
    return CNR_OK;
}
/* Method read of that source: moves the clock on. */
static cnr_status read_tick(void *state, int64_t index, cnr_sample *out, cnr_error *err) {
    (void)state;
    out->picture.dtype = CNR_u8;
    out->picture.rank = 3;
    for (int i = 0; i < 3; i++) out->picture.dim[i] = i < 2 ? 2 : 1;
    out->picture.bytes = 4;
    out->picture.data = host->alloc(4);
    if (!out->picture.data) return host->fail(err, CNR_E_MEMORY, "ticks", "out of memory");
    memset(out->picture.data, (int)index, 4);
    snprintf(out->name, sizeof out->name, "tick %d", (int)index);
    out->time_ns = (uint64_t)(index + 1) * 40000000;
    return CNR_OK;
}
static void close_ticks(void *state) { (void)state; }
/* Method write_open: opens the file `spec`; CNR_E_IO: it can't be written. */
static cnr_status write_open(const char *spec, void **state, cnr_error *err) {
    *state = fopen(spec, "w");
    return *state ? CNR_OK : host->fail(err, CNR_E_IO, spec, "can't be written");
}
/* Method write_next: fails for a picture that is marked. */
static cnr_status write_next(void *state, const cnr_sample *sample, cnr_error *err) {
    if (((const uint8_t *)sample->picture.data)[0] == 99)
        return host->fail(err, CNR_E_IO, "ticks", "no 99 fits");
    fprintf(state, "%s at %d ms\n", sample->name, (int)(sample->time_ns / 1000000));
    return CNR_OK;
}
/* Method write_close: writes "end", or with a failure "given up", closes, and returns the status
 * given. */
static cnr_status write_close(void *state, int32_t status, cnr_error *err) {
    (void)err;
    fprintf(state, "%s\n", status ? "given up" : "end");
    fclose(state);
    return (cnr_status)status;
}
static const cnr_source ticks = {.size = sizeof(cnr_source),
                                 .name = "ticks",
                                 .syntax = "ticks:N",
                                 .summary = "for tests",
                                 .accepts = accepts_ticks,
                                 .open = open_ticks,
                                 .read = read_tick,
                                 .close = close_ticks,
                                 .write_open = write_open,
                                 .write_next = write_next,
                                 .write_close = write_close};

/* ---- the plugin ---- */

/* Registers gauges and source. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    host = h;
    (void)err;
    cnr_status status = CNR_OK;
    if (!status) status = h->add(registrar, CNR_KIND_CLOCK, &fake_clock);
    if (!status) status = h->add(registrar, CNR_KIND_METER, &fake_meter);
    if (!status) status = h->add(registrar, CNR_KIND_METER, &absent_meter);
    if (!status) status = h->add(registrar, CNR_KIND_KNOB, &fake_knob);
    if (!status) status = h->add(registrar, CNR_KIND_SOURCE, &ticks);
    return status;
}

static const cnr_plugin plugin = {.size = sizeof(cnr_plugin),
                                  .magic = CNR_PLUGIN_MAGIC,
                                  .abi = CNR_ABI,
                                  .signature = CNR_SIGNATURE,
                                  .name = "gauges",
                                  .version = "1",
                                  .summary = "for tests of gauges",
                                  .licence = "MIT",
                                  .init = init};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
