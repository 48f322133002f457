/* knob-devfreq: clocks of Mali and other GPUs, memory, buses (devfreq). */
#include "bounds.h"
#include <cnnrun/kit.h>
#include <stdio.h>
#include <strings.h>

/* Sets state->load_percent from the file of the clock's load, such as "37@585000000Hz", "37" or "37
 * %"; leaves it where that cannot be read. */
static void read_load(const bounds *list, bounds_domain *d, cnr_knob_state *state) {
    (void)list;
    double percent;
    if (gauge_read_number(&d->loads[0], &percent, NULL) == CNR_OK && percent >= 0 && percent <= 100)
        state->load_percent = (int32_t)percent;
}

/* Vendors' kernels have a file with devfreq's load; Mali's driver has its own. */
static void find_load(bounds_domain *d, const char *folder) {
    static const char *const names[] = {"load", "device/utilization", "device/utilisation",
                                        "gpu_busy_percentage"};
    for (int i = 0; i < CNR_ROWS(names); i++) {
        gauge_name(&d->loads[0], folder, names[i]);
        if (!gauge_is_there(&d->loads[0])) continue;
        d->load = read_load;
        return;
    }
}

/* The device that a clock of this name feeds, or "": "ff9a0000.gpu" and "11800000.mali" are the GPU
 * ("opencl:0"); "dmc" and "bus_wcore" belong to none. */
static const char *feeds_of(const char *name) {
    for (const char *p = name; *p; p++)
        if (strncasecmp(p, "mali", 4) == 0) return "opencl:0";
    return gauge_feeds(name);
}

/* Adds a device of devfreq as a clock. */
static cnr_status add_device(void *list, const char *folder, cnr_error *err) {
    char text[4096];
    gauge_file now;
    gauge_name(&now, folder, "cur_freq");
    if (!gauge_is_there(&now)) return CNR_OK;
    bounds_domain *d = bounds_add(list, gauge_last(folder), 1, err);
    if (!d) return CNR_E_MEMORY;
    d->now = now;
    double ms;
    if (gauge_look_number(folder, "polling_interval", &ms) && ms > 0 && ms < 10000)
        d->domain.period_ms = (int32_t)ms;
    snprintf(d->domain.devices, sizeof d->domain.devices, "%s", feeds_of(gauge_last(folder)));
    if (gauge_look(folder, "available_frequencies", text, sizeof text)) bounds_steps_of(d, text);
    bounds_files(d, folder, "min_freq", "max_freq");
    find_load(d, folder);
    return CNR_OK;
}

/* Mali's driver before devfreq (the ODROID-XU3's kernel): megahertz, read-only. */
static cnr_status add_mali(void *list, const char *folder, cnr_error *err) {
    gauge_file now;
    gauge_name(&now, folder, "clock");
    if (!gauge_is_there(&now)) return CNR_OK;
    bounds_domain *d = bounds_add(list, "gpu", 1e6, err);
    if (!d) return CNR_E_MEMORY;
    d->now = now;
    snprintf(d->domain.devices, sizeof d->domain.devices, "opencl:0");
    gauge_name(&d->loads[0], folder, "utilization");
    if (gauge_is_there(&d->loads[0])) d->load = read_load;
    return CNR_OK;
}

/* Finds all devices, or an old Mali driver. */
static cnr_status find(bounds *list, cnr_error *err) {
    CNR_TRY(gauge_each(list->root, "/sys/class/devfreq/*", add_device, list, err));
    return list->n ? CNR_OK
                   : gauge_each(list->root, "/sys/devices/platform/*.mali", add_mali, list, err);
}

BOUNDS_PLUGIN("devfreq", "clocks of GPUs, memory and buses",
              "clocks of GPUs (Mali and others), memory and buses, by devfreq")
