/* meter-powercap: RAPL counters of Intel and AMD processors, below /sys/class/powercap. Since
 * kernel 5.10 only root may read them. */
#include "gauge.h"
#include <cnnrun/kit.h>
#include <stdio.h>

/* Length of the parent's name: "intel-rapl:0" of "intel-rapl:0:1"; 0: no parent. */
static size_t parent_length(const char *zone) {
    const char *first = strchr(zone, ':'), *last = strrchr(zone, ':');
    return first && last != first ? (size_t)(last - zone) : 0;
}

/* Name of a sensor's zone in its path, *length bytes long. */
static const char *zone_of(const gauge_sensor *s, size_t *length) {
    static const char file[] = "/energy_uj";
    const char *end = s->value.path + strlen(s->value.path) - (sizeof file - 1), *zone = end;
    while (zone > s->value.path && zone[-1] != '/') zone--;
    *length = (size_t)(end - zone);
    return zone;
}

/* 1 + index of the list's zone that contains this one, or 0; memory ("dram") is beside its package,
 * not inside. */
static int32_t parent_of(const gauge_sensors *list, const char *zone, const char *name) {
    const size_t n = parent_length(zone);
    if (n == 0 || strcmp(name, "dram") == 0) return 0;
    GAUGE_EACH(i, list->n) {
        size_t length;
        const char *other = zone_of(&list->at[i], &length);
        if (length == n && strncmp(other, zone, n) == 0) return i + 1;
    }
    return 0;
}

/* Whether a package's counter exists twice: by MSR and by MMIO. */
static int same_by_memory(const gauge_sensors *list, const char *zone, const char *name) {
    if (strncmp(zone, "intel-rapl-mmio", 15) != 0) return 0;
    GAUGE_EACH(i, list->n)
    if (strcmp(list->at[i].domain.name, name) == 0) return 1;
    return 0;
}

/* Adds the zone of powercap (RAPL) in `folder` as a counter of energy; one that can't be read is
 * left out. */
static cnr_status add(void *of, const char *folder, cnr_error *err) {
    gauge_sensors *list = of;
    const char *zone = gauge_last(folder);
    char name[GAUGE_TEXT], parent[GAUGE_TEXT], full[2 * GAUGE_TEXT];
    gauge_file counter;
    double most;
    gauge_name(&counter, folder, "energy_uj");
    if (!gauge_is_there(&counter) || !gauge_look(folder, "name", name, sizeof name)) return CNR_OK;
    const int32_t within = parent_of(list, zone, name);
    snprintf(full, sizeof full, "%s", name);
    if (parent_length(zone)) { /* every package has a "core" */
        char above[GAUGE_PATH];
        snprintf(above, sizeof above, "%.*s",
                 (int)(strlen(folder) - strlen(zone) + parent_length(zone)), folder);
        if (gauge_look(above, "name", parent, sizeof parent))
            snprintf(full, sizeof full, "%s/%s", parent, name);
    }
    if (same_by_memory(list, zone, full)) return CNR_OK;
    gauge_sensor *s = gauge_add(list, full, zone);
    if (!s) return gauge_host->fail(err, CNR_E_MEMORY, folder, "out of memory");
    s->value = counter;
    s->domain.quantity = CNR_QUANTITY_ENERGY;
    s->domain.period_ms = 1;
    s->domain.parent = within;
    s->domain.is_whole_machine = strcmp(name, "psys") == 0;
    if (gauge_look_number(folder, "max_energy_range_uj", &most) && most > 0)
        s->domain.wraps_at = (uint64_t)most;
    if (strncmp(name, "package", 7) == 0)
        snprintf(s->domain.device, sizeof s->domain.device, "cpu");
    return CNR_OK;
}

/* Finds all zones: *state receives them, *n their number. */
static cnr_status open_meter(const cnr_gauge_options *options, void **state, int32_t *n,
                             cnr_error *err) {
    gauge_sensors *list = gauge_sensors_new(err);
    if (!list) return CNR_E_MEMORY;
    const cnr_status status = gauge_each(options->root, "/sys/class/powercap/*:*", add, list, err);
    return gauge_opened(list, status, "powercap", state, n, err);
}

static const cnr_meter meter = {.size = sizeof(cnr_meter),
                                .name = "powercap",
                                .summary = "RAPL: energy of processor packages and memory",
                                .open = open_meter,
                                .describe = gauge_describe,
                                .read = gauge_read,
                                .close = gauge_free};

GAUGE_PLUGIN("meter-powercap", "energy of processors by RAPL, root only on most machines",
             CNR_KIND_METER, meter)
