/* meter-model: power estimated from frequency, voltage and load by a board file. */
#include "model.h"
#include <cnnrun/kit.h>
#include <stdio.h>

/* The machine's root folder and its modelled units. */
typedef struct machine {
    char root[GAUGE_PATH];
    model_unit *units;
    int32_t n;
} machine;

/* ---- load ---- */

/* *out: load since the last reading, 0 to 1; 1 if unknown. */
static cnr_status load_of(const machine *m, model_unit *u, double *out, cnr_error *err) {
    *out = 1;
    if (*u->load.path) {
        CNR_TRY(gauge_read_number(&u->load, out, err));
        *out *= 0.01;
    } else if (u->cpus.n) {
        CNR_TRY(gauge_cpus_load(m->root, &u->cpus, out, err));
    }
    *out = *out < 0 ? 0 : *out > 1 ? 1 : *out;
    return CNR_OK;
}

/* ---- a meter's hooks ---- */

/* Frees units and machine. */
static void close_meter(void *state) {
    machine *m = state;
    for (int32_t i = 0; i < m->n; i++) model_unit_free(&m->units[i]);
    gauge_host->free(m->units);
    gauge_host->free(m);
}

/* 1 if the device tree's model begins with the text "machine" of the board: a different machine may
 * have the same files. 1 also where the board has no such text; 0 where there is no device tree. */
static int is_the_machine(const char *root) {
    const char *wanted = gauge_host->board_text("machine");
    char path[600], is[128] = "";
    if (!wanted || !*wanted) return 1;
    snprintf(path, sizeof path, "%.490s/proc/device-tree/model",
             strcmp(root, "/") == 0 ? "" : root);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    is[fread(is, 1, sizeof is - 1, file)] = 0;
    fclose(file);
    return strncmp(is, wanted, strlen(wanted)) == 0;
}

/* Reads the units from the board, if this is its machine. */
static cnr_status take_units(machine *m, const char *root, cnr_error *err) {
    const int32_t n = gauge_host->board_count("model");
    if (n < 1)
        return gauge_host->fail(err, CNR_E_NOT_FOUND, "model",
                                "no board file says what things draw");
    if (!is_the_machine(root))
        return gauge_host->fail(err, CNR_E_NOT_FOUND, "model", "this machine is not the board's");
    m->units = gauge_host->alloc((size_t)n * sizeof *m->units);
    if (!m->units) return gauge_host->fail(err, CNR_E_MEMORY, "model", "out of memory");
    snprintf(m->root, sizeof m->root, "%s", root);
    for (int32_t row = 1; row <= n; row++) {
        const cnr_status status = model_unit_read(root, row, &m->units[m->n], err);
        if (!status) m->n++; /* start of the first load interval */
        else model_unit_free(&m->units[m->n]);
        if (status && status != CNR_E_NOT_FOUND) return status;
    }
    double ignored;
    for (int32_t i = 0; i < m->n; i++) load_of(m, &m->units[i], &ignored, NULL);
    return m->n
               ? CNR_OK
               : gauge_host->fail(err, CNR_E_NOT_FOUND, "model", "this machine is not the board's");
}

/* Opens the meter: *state receives the units of the board's model, *n their number. */
static cnr_status open_meter(const cnr_gauge_options *options, void **state, int32_t *n,
                             cnr_error *err) {
    machine *m = gauge_state(sizeof *m, "model", err);
    if (!m) return CNR_E_MEMORY;
    return gauge_state_opened(take_units(m, options->root, err), m, &m->n, close_meter, state, n);
}

/* Copies the description of a unit to *out, as many bytes as out->size says. */
static cnr_status describe(void *state, int32_t domain, cnr_meter_domain *out, cnr_error *err) {
    (void)err;
    return gauge_tell(out, &((machine *)state)->units[domain].domain, sizeof *out);
}

/* Estimates a unit's power, in microwatts, from its frequency and load, which it reads. */
static cnr_status read_meter(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    machine *m = state;
    model_unit *u = &m->units[domain];
    double told, load;
    CNR_TRY(gauge_read_number(&u->frequency, &told, err));
    CNR_TRY(load_of(m, u, &load, err));
    const double ghz = told * u->ghz_per, volts = model_volts(u, ghz);
    const double watts = load * (u->capacitance * volts * volts * ghz + volts * u->short_amperes) +
                         volts * u->leak_amperes + u->watts;
    out->value = (int64_t)(watts * 1e6 + 0.5);
    return CNR_OK;
}

static const cnr_meter meter = {.size = sizeof(cnr_meter),
                                .name = "board-model",
                                .summary = "power estimated by a board file",
                                .open = open_meter,
                                .describe = describe,
                                .read = read_meter,
                                .close = close_meter};

GAUGE_PLUGIN("meter-model", "power estimated from frequency, voltage and load by a board file",
             CNR_KIND_METER, meter)
