/* Reads a unit from the board file: coefficients, steps, paths below /sys. */
#include "model.h"
#include <cnnrun/kit.h>
#include <stdarg.h>
#include <stdio.h>

static const char *key(char room[GAUGE_TEXT], const char *format, ...) CNR_PRINTF(2, 3);
/* Formats a path of the board into `room` and returns it. */
static const char *key(char room[GAUGE_TEXT], const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(room, GAUGE_TEXT, format, args);
    va_end(args);
    return room;
}

/* Text model.ROW.NAME of the board; NULL: there is none. */
static const char *text_of(int32_t row, const char *name) {
    char k[GAUGE_TEXT];
    return gauge_host->board_text(key(k, "model.%d.%s", (int)row, name));
}

/* Number model.ROW.NAME of the board; 0: there is none. */
static double number_of(int32_t row, const char *name) {
    char k[GAUGE_TEXT];
    double value = 0;
    gauge_host->board_number(key(k, "model.%d.%s", (int)row, name), &value);
    return value;
}

/* ---- steps ---- */

/* Reads a list of {mhz, volts} at `path`. */
static cnr_status read_steps(model_unit *u, const char *path, cnr_error *err) {
    char k[GAUGE_TEXT];
    const int32_t n = gauge_host->board_count(path);
    if (n < 1)
        return gauge_host->fail(err, CNR_E_FORMAT, path, "want steps of mhz and volts, rising");
    u->steps = gauge_host->alloc((size_t)n * sizeof *u->steps);
    if (!u->steps) return gauge_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    for (int32_t i = 0; i < n; i++) {
        double mhz = 0, volts = 0;
        gauge_host->board_number(key(k, "%s.%d.mhz", path, (int)i + 1), &mhz);
        gauge_host->board_number(key(k, "%s.%d.volts", path, (int)i + 1), &volts);
        u->steps[i] = (model_step){mhz * 1e-3, volts};
        if (!(mhz > 0) || !(volts > 0) || (i > 0 && u->steps[i].ghz <= u->steps[i - 1].ghz))
            return gauge_host->fail(err, CNR_E_FORMAT, path, "step %d: want mhz and volts, rising",
                                    (int)i + 1);
    }
    u->n_steps = n;
    return CNR_OK;
}

double model_volts(const model_unit *u, double ghz) {
    const model_step *s = u->steps;
    int32_t i = 1;
    if (u->n_steps == 1 || ghz <= s[0].ghz) return s[0].volts;
    while (i < u->n_steps - 1 && s[i].ghz < ghz) i++;
    const double part = (ghz - s[i - 1].ghz) / (s[i].ghz - s[i - 1].ghz);
    return s[i - 1].volts + (s[i].volts - s[i - 1].volts) * (part < 1 ? part : 1);
}

/* Index of the entry of a board's list with this "name"; 0: none. */
static int32_t named(const char *list, const char *name) {
    char k[GAUGE_TEXT];
    for (int32_t i = 1; name && i <= gauge_host->board_count(list); i++) {
        const char *is = gauge_host->board_text(key(k, "%s.%d.name", list, (int)i));
        if (is && strcmp(is, name) == 0) return i;
    }
    return 0;
}

/* Uses the simulator's figures of the unit: watts at the highest step, and its clock. */
static cnr_status take_simulated(model_unit *u, const char *name, cnr_error *err) {
    char k[GAUGE_TEXT], path[GAUGE_TEXT];
    const int32_t unit = named("units", name);
    if (!unit)
        return gauge_host->fail(err, CNR_E_FORMAT, name, "the board has no unit of this name");
    const int32_t clock =
        named("clocks", gauge_host->board_text(key(k, "units.%d.clock", (int)unit)));
    double dynamic = 0;
    CNR_TRY(read_steps(u, key(path, "clocks.%d.steps", (int)clock), err));
    gauge_host->board_number(key(k, "units.%d.power.dynamic", (int)unit), &dynamic);
    gauge_host->board_number(key(k, "units.%d.power.static", (int)unit), &u->watts);
    const model_step *top = &u->steps[u->n_steps - 1];
    u->capacitance = dynamic / (top->volts * top->volts * top->ghz);
    return CNR_OK;
}

/* ---- paths ---- */

/* Sets *out to the first file that fits a pattern below root; CNR_E_NOT_FOUND: none does. */
static cnr_status find_file(const char *root, const char *pattern, gauge_file *out,
                            cnr_error *err) {
    gauge_found found;
    CNR_TRY(gauge_find(root, pattern, &found, err));
    out->fd = -1;
    if (found.n) snprintf(out->path, sizeof out->path, "%s", found.at[0]);
    const int32_t n = found.n;
    gauge_found_free(&found);
    return n ? CNR_OK : gauge_host->fail(err, CNR_E_NOT_FOUND, pattern, "is not here");
}

/* Finds the files of a unit's frequency and load. */
static cnr_status find_files(const char *root, int32_t row, model_unit *u, cnr_error *err) {
    const char *frequency = text_of(row, "frequency"), *load = text_of(row, "load");
    const char *cpus = text_of(row, "cpus");
    if (!frequency)
        return gauge_host->fail(err, CNR_E_FORMAT, "model", "unit %d: want frequency, a file",
                                (int)row);
    CNR_TRY(find_file(root, frequency, &u->frequency, err));
    u->ghz_per = strstr(frequency, "cpufreq") ? 1e-6 : strstr(frequency, "mhz") ? 1e-3 : 1e-9;
    if (load) CNR_TRY(find_file(root, load, &u->load, err));
    if (!cpus) return CNR_OK;
    gauge_cpus_of(cpus, &u->cpus);
    if (u->cpus.n) return CNR_OK;
    return gauge_host->fail(err, CNR_E_FORMAT, "model", "unit %d: cpus: want \"4-7\", got \"%s\"",
                            (int)row, cpus);
}

cnr_status model_unit_read(const char *root, int32_t row, model_unit *u, cnr_error *err) {
    char path[GAUGE_TEXT];
    const char *name = text_of(row, "name"), *unit = text_of(row, "unit"),
               *feeds = text_of(row, "feeds");
    memset(u, 0, sizeof *u);
    u->domain.size = sizeof u->domain;
    u->domain.quantity = CNR_QUANTITY_POWER;
    u->domain.is_estimated = 1;
    if (!name) name = unit ? unit : "unit";
    snprintf(u->domain.name, sizeof u->domain.name, "%s", name);
    snprintf(u->domain.device, sizeof u->domain.device, "%s", feeds ? feeds : "");
    CNR_TRY(find_files(root, row, u, err));
    if (unit) return take_simulated(u, unit, err);
    u->capacitance = number_of(row, "capacitance");
    u->short_amperes = number_of(row, "short");
    u->leak_amperes = number_of(row, "leak");
    u->watts = number_of(row, "static");
    return read_steps(u, key(path, "model.%d.steps", (int)row), err);
}

/* Closes the unit's files and frees its steps, not the unit. */
void model_unit_free(model_unit *u) {
    gauge_close(&u->frequency);
    gauge_close(&u->load);
    gauge_host->free(u->steps);
}
