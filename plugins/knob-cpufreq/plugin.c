/* knob-cpufreq: clocks and cores of processors; a domain for each cpufreq policy. */
#include "bounds.h"
#include <cnnrun/kit.h>
#include <stdio.h>
#include <unistd.h>

typedef struct cores { /* What a policy has beside its clock: its cores, and their speed. */
    gauge_cpus cpus;
    double speed; /* largest frequency times capacity: higher is faster */
} cores;

/* ---- which cores ---- */

/* Finds the switches of cores. A core without one is always on. */
static cnr_status find_switches(bounds_domain *d, const char *root, const gauge_cpus *c,
                                cnr_error *err) {
    d->cores = gauge_host->alloc(((size_t)c->n + 1) * sizeof *d->cores);
    if (!d->cores) return gauge_host->fail(err, CNR_E_MEMORY, d->domain.name, "out of memory");
    GAUGE_EACH(i, c->n) {
        bounds_file *f = &d->cores[d->n_cores];
        char folder[GAUGE_PATH];
        snprintf(folder, sizeof folder, "%.440s/sys/devices/system/cpu/cpu%d", root, (int)c->at[i]);
        const int n = snprintf(f->path, sizeof f->path, "%s/online", folder);
        if (n < (int)sizeof f->path && gauge_look(folder, "online", f->found, sizeof f->found) &&
            access(f->path, W_OK) == 0)
            d->n_cores++;
        else d->fixed_cores++;
    }
    return CNR_OK;
}

/* ---- how busy they are ---- */

/* Sets state->load_percent to the load of the policy's cores since the last call, unless it is
 * unknown. */
static void read_load(const bounds *list, bounds_domain *d, cnr_knob_state *state) {
    double load;
    if (gauge_cpus_load(list->root, &((cores *)d->own)->cpus, &load, NULL) == CNR_OK && load >= 0)
        state->load_percent = (int32_t)(100 * load + 1e-9);
}

/* ---- policies ---- */

/* Adds a policy of cpufreq as a clock. */
static cnr_status add_policy(void *of, const char *folder, cnr_error *err) {
    bounds *list = of;
    char text[4096], name[64];
    cores *c = gauge_host->alloc(sizeof *c);
    if (!c) return gauge_host->fail(err, CNR_E_MEMORY, folder, "out of memory");
    memset(c, 0, sizeof *c);
    if (gauge_look(folder, "related_cpus", text, sizeof text)) gauge_cpus_of(text, &c->cpus);
    const int32_t n = c->cpus.n, first = c->cpus.at[0];
    if (n == 1) snprintf(name, sizeof name, "cpu%d", (int)first);
    else snprintf(name, sizeof name, "cpu%d-%d", (int)first, (int)c->cpus.at[n ? n - 1 : 0]);
    bounds_domain *d = n ? bounds_add(list, name, 1000, err) : NULL;
    if (!d) {
        const cnr_status status = n ? CNR_E_MEMORY : CNR_OK; /* no core, so no use */
        gauge_host->free(c);
        return status;
    }
    d->own = c;
    d->load = read_load;
    gauge_name(&d->now, folder, "scaling_cur_freq");
    if (gauge_look(folder, "scaling_available_frequencies", text, sizeof text))
        bounds_steps_of(d, text);
    if (gauge_look(folder, "scaling_boost_frequencies", text, sizeof text))
        bounds_steps_of(d, text);
    CNR_TRY(find_switches(d, list->root, &c->cpus, err));
    bounds_files(d, folder, "scaling_min_freq", "scaling_max_freq");
    snprintf(text, sizeof text, "%.400s/sys/devices/system/cpu/cpu%d", list->root, (int)first);
    if (!gauge_look_number(text, "cpu_capacity", &c->speed))
        gauge_look_number(folder, "cpuinfo_max_freq", &c->speed);
    return CNR_OK;
}

/* Names clusters as the CPU plugin does: speeds within a tenth are equal; "cpu" if all are. */
static void name_feeds(bounds *list) {
    double most = 0, least = 1e300;
    GAUGE_EACH(i, list->n) {
        const cores *c = list->at[i]->own;
        if (c->speed > most) most = c->speed;
        if (c->speed < least) least = c->speed;
    }
    GAUGE_EACH(i, list->n) {
        const cores *c = list->at[i]->own;
        const char *feeds = most - least <= most / 10        ? "cpu"
                            : most - c->speed <= most / 10   ? "cpu:big"
                            : c->speed - least <= least / 10 ? "cpu:little"
                                                             : "cpu:middle";
        snprintf(list->at[i]->domain.devices, sizeof list->at[i]->domain.devices, "%s", feeds);
    }
}

/* Adds a clock for each policy of cpufreq below list->root, and says which devices they feed. */
static cnr_status find(bounds *list, cnr_error *err) {
    CNR_TRY(
        gauge_each(list->root, "/sys/devices/system/cpu/cpufreq/policy*", add_policy, list, err));
    name_feeds(list);
    return CNR_OK;
}

BOUNDS_PLUGIN("cpufreq", "clocks and cores of processors",
              "clocks and cores of processors, by cpufreq")
