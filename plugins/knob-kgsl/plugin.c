/* knob-kgsl: the clock of an Adreno GPU, by power levels; 0 is the fastest. */
#include "bounds.h"
#include <cnnrun/kit.h>
#include <stdio.h>

/* Parses "busy total" of the last window, both 0 while the GPU sleeps; else "N %". */
static void read_load(const bounds *list, bounds_domain *d, cnr_knob_state *state) {
    (void)list;
    char text[GAUGE_TEXT];
    const char *end;
    double busy, total;
    if (*d->loads[0].path && gauge_read_text(&d->loads[0], text, sizeof text, NULL) == CNR_OK &&
        gauge_host->parse_number(text, &end, &busy) && *end == ' ' &&
        gauge_host->parse_number(end + strspn(end, " "), &end, &total) && busy >= 0 && total >= 0) {
        state->load_percent = total > 0 && busy <= total ? (int32_t)(100 * busy / total)
                              : total > 0                ? 100
                                                         : 0;
        return;
    }
    if (*d->loads[1].path && gauge_read_number(&d->loads[1], &busy, NULL) == CNR_OK && busy >= 0 &&
        busy <= 100)
        state->load_percent = (int32_t)busy;
}

/* 1 if the steps correspond to the driver's levels; duplicates would shift them, so such a table is
 * read-only. */
static int steps_are_levels(bounds_domain *d, const char *folder) {
    double levels;
    return !gauge_look_number(folder, "num_pwrlevels", &levels) ||
           (int32_t)levels == d->domain.n_steps;
}

/* Finds the files of the clock, in hertz or megahertz. 0: there are none. */
static int find_clock(bounds_domain *d, const char *folder) {
    char text[1024];
    gauge_name(&d->now, folder, "gpuclk");
    if (!gauge_is_there(&d->now)) {
        gauge_name(&d->now, folder, "clock_mhz");
        d->unit = 1e6;
        if (!gauge_is_there(&d->now)) return 0;
    }
    const double unit = d->unit;
    d->unit = 1;
    if (gauge_look(folder, "gpu_available_frequencies", text, sizeof text))
        bounds_steps_of(d, text);
    d->unit = 1e6;
    if (!d->domain.n_steps && gauge_look(folder, "freq_table_mhz", text, sizeof text))
        bounds_steps_of(d, text);
    d->unit = unit;
    return 1;
}

/* Names a file, or none if it is not there. */
static void optional(gauge_file *file, const char *folder, const char *name) {
    gauge_name(file, folder, name);
    if (!gauge_is_there(file)) file->path[0] = 0;
}

/* Adds the GPU in `folder` as a clock; a folder without a clock adds none. */
static cnr_status add_gpu(void *of, const char *folder, cnr_error *err) {
    bounds *list = of;
    bounds_domain *d = bounds_add(list, "gpu", 1, err);
    if (!d) return CNR_E_MEMORY;
    if (!find_clock(d, folder)) {
        list->n--;
        gauge_host->free(d);
        return CNR_OK;
    }
    snprintf(d->domain.devices, sizeof d->domain.devices, "opencl:0");
    d->levels = 1;
    if (steps_are_levels(d, folder)) bounds_files(d, folder, "min_pwrlevel", "max_pwrlevel");
    optional(&d->loads[0], folder, "gpubusy");
    optional(&d->loads[1], folder, "gpu_busy_percentage");
    optional(&d->temperature, folder, "temp");
    d->load = read_load;
    return CNR_OK;
}

/* Finds the GPU below list->root; adds nothing where there is none. */
static cnr_status find(bounds *list, cnr_error *err) {
    return gauge_each(list->root, "/sys/class/kgsl/kgsl-3d0", add_gpu, list, err);
}

BOUNDS_PLUGIN("kgsl", "the clock of an Adreno GPU", "the clock of an Adreno GPU, by kgsl")
