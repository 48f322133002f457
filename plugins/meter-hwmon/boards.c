/* Sensors of vendors' kernels: the ODROID-XU3's INA231, Jetson's INA3221 before 5.0. */
#include "hwmon.h"
#include <cnnrun/kit.h>
#include <stdio.h>

/* ---- ODROID-XU3: watts as text, an address for each domain, on any bus ---- */

static const struct {
    const char *address, *name, *feeds;
} odroid[] = {{"0040", "a15", "cpu:big"},
              {"0045", "a7", "cpu:little"},
              {"0044", "gpu", "opencl:0"},
              {"0041", "memory", ""}};

/* Switches the sensor on until the meter is closed; without permission, reading finds it off. */
static cnr_status switch_on(const char *folder, hwmon_switches *switched, cnr_error *err) {
    double on;
    gauge_file file;
    gauge_name(&file, folder, "enable");
    if (!gauge_look_number(folder, "enable", &on) || on != 0) return CNR_OK;
    if (gauge_write_text(file.path, "1", NULL)) return CNR_OK;
    gauge_file *at = gauge_host->resize(switched->at, (size_t)(switched->n + 1) * sizeof *at);
    if (!at) return gauge_host->fail(err, CNR_E_MEMORY, folder, "out of memory");
    switched->at = at;
    at[switched->n++] = file;
    return CNR_OK;
}

void hwmon_switch_off(hwmon_switches *switched) {
    GAUGE_EACH(i, switched->n) gauge_write_text(switched->at[i].path, "0", NULL);
    gauge_host->free(switched->at);
    memset(switched, 0, sizeof *switched);
}

/* Adds the sensors of an Odroid, which it switches on. */
static cnr_status add_odroid(gauge_sensors *list, const char *folder, int32_t row,
                             hwmon_switches *switched, cnr_error *err) {
    gauge_file watts;
    gauge_name(&watts, folder, "sensor_W");
    if (!gauge_is_there(&watts)) return CNR_OK;
    CNR_TRY(switch_on(folder, switched, err));
    gauge_sensor *s = gauge_add(list, odroid[row].name, gauge_last(folder));
    if (!s) return gauge_host->fail(err, CNR_E_MEMORY, folder, "out of memory");
    s->value = watts;
    s->scale = 1e6;
    s->magnitude = 1;
    snprintf(s->domain.device, sizeof s->domain.device, "%s", odroid[row].feeds);
    return CNR_OK;
}

/* Adds sensors of Odroid's INA231 drivers, switching on those that are off, which is noted in
 * `switched`; then waits two seconds for their first values. */
cnr_status hwmon_odroid(const char *root, gauge_sensors *list, hwmon_switches *switched,
                        cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t row = 0; row < CNR_ROWS(odroid) && !status; row++) {
        char pattern[64];
        gauge_found folders;
        snprintf(pattern, sizeof pattern, "/sys/bus/i2c/drivers/INA231/*-%s", odroid[row].address);
        status = gauge_find(root, pattern, &folders, err);
        for (int32_t i = 0; i < folders.n && !status; i++)
            status = add_odroid(list, folders.at[i], row, switched, err);
        gauge_found_free(&folders);
    }
    if (!status && switched->n) /* wait for the first values */
        gauge_host->wait_until(gauge_host->now_ns() + 2000000000u);
    return status;
}

/* ---- Jetson: milliwatts of up to three named rails on a chip ---- */

/* 1 if the text ends in `end`. */
static int ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Adds the rail whose power is in the file `path` to the list, named by its rail_name or else
 * "rail" and number. Fails with CNR_E_MEMORY. */
static cnr_status add_jetson(void *list, const char *path, cnr_error *err) {
    char folder[GAUGE_PATH], rail[32], name[GAUGE_TEXT];
    int channel = 0;
    snprintf(folder, sizeof folder, "%.*s", (int)(gauge_last(path) - path - 1), path);
    if (sscanf(gauge_last(path), "in_power%d_input", &channel) != 1) return CNR_OK;
    snprintf(rail, sizeof rail, "rail_name_%d", channel);
    if (!gauge_look(folder, rail, name, sizeof name))
        snprintf(name, sizeof name, "rail%d", channel);
    gauge_sensor *s = gauge_add(list, name, "");
    if (!s) return gauge_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    gauge_name(&s->value, folder, gauge_last(path));
    s->scale = 1e3;
    s->magnitude = 1;
    s->domain.is_whole_machine = ends_with(name, "VDD_IN") || ends_with(name, "5V_IN");
    snprintf(s->domain.device, sizeof s->domain.device, "%s", gauge_feeds(name));
    return CNR_OK;
}

cnr_status hwmon_jetson(const char *root, gauge_sensors *list, cnr_error *err) {
    return gauge_each(root, "/sys/bus/i2c/drivers/ina3221x/*-00*/iio:device*/in_power*_input",
                      add_jetson, list, err);
}
