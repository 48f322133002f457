/* knob-cpufreq: clocks and cores of processors, a domain for each of the kernel's policies. */
#include "bounds.h"
#include <cnnrun/kit.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What a policy's cores have done so far, by /proc/stat. */
typedef struct cores {
    int32_t cpu[BOUNDS_CPUS], n;
    double speed; /* of the policy: higher is faster */
    uint64_t busy, all; /* at the last reading */
} cores;

/* ---- which cores ---- */

/* The numbers of "0 1 2 3" or "0-3". */
static void parse_cores(const char *text, cores *out) {
    while (*text) {
        char *end;
        if (!isdigit((unsigned char)*text)) {
            text++;
            continue;
        }
        const long first = strtol(text, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long cpu = first; cpu <= last && out->n < BOUNDS_CPUS; cpu++)
            out->cpu[out->n++] = (int32_t)cpu;
        text = end;
    }
}

/* A core without a switch is always on. */
static cnr_status find_switches(bounds_domain *d, const char *root, const cores *c,
                                cnr_error *err) {
    d->cores = gauge_host->alloc(((size_t)c->n + 1) * sizeof *d->cores);
    if (!d->cores) return gauge_host->fail(err, CNR_E_MEMORY, d->domain.name, "out of memory");
    GAUGE_EACH(i, c->n) {
        bounds_file *f = &d->cores[d->n_cores];
        char folder[GAUGE_PATH];
        snprintf(folder, sizeof folder, "%.440s/sys/devices/system/cpu/cpu%d", root,
                 (int)c->cpu[i]);
        const int n = snprintf(f->path, sizeof f->path, "%s/online", folder);
        if (n < (int)sizeof f->path && gauge_look(folder, "online", f->found, sizeof f->found) &&
            access(f->path, W_OK) == 0)
            d->n_cores++;
        else d->fixed_cores++;
    }
    return CNR_OK;
}

/* ---- how busy they are ---- */

/* Busy and all ticks of the line "cpu3 user nice system idle iowait irq softirq steal". */
static void add_line(const char *line, const cores *c, uint64_t *busy, uint64_t *all) {
    char *at;
    int mine = 0;
    const long cpu = strncmp(line, "cpu", 3) == 0 && isdigit((unsigned char)line[3])
                         ? strtol(line + 3, &at, 10) : -1;
    if (cpu < 0) return;
    GAUGE_EACH(i, c->n) mine = mine || c->cpu[i] == cpu;
    for (int i = 0; mine && i < 8; i++) {
        char *end;
        const unsigned long long ticks = strtoull(at, &end, 10);
        if (end == at) break;
        at = end;
        *all += ticks;
        if (i != 3 && i != 4) *busy += ticks;
    }
}

static void read_load(bounds_domain *d, cnr_knob_state *state) {
    static const size_t room = 1 << 16;
    cores *c = d->own;
    uint64_t busy = 0, all = 0;
    char *text = gauge_host->alloc(room);
    if (!text || gauge_read_text(&d->loads[0], text, room, NULL)) {
        gauge_host->free(text);
        return;
    }
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        add_line(line, c, &busy, &all);
    gauge_host->free(text);
    if (c->all && all > c->all && busy >= c->busy)
        state->load_percent = (int32_t)(100 * (busy - c->busy) / (all - c->all));
    c->busy = busy;
    c->all = all;
}

/* ---- policies ---- */

static cnr_status add_policy(bounds *list, const char *root, const char *folder, cnr_error *err) {
    char text[4096], name[64];
    cores *c = gauge_host->alloc(sizeof *c);
    if (!c) return gauge_host->fail(err, CNR_E_MEMORY, folder, "out of memory");
    memset(c, 0, sizeof *c);
    if (gauge_look(folder, "related_cpus", text, sizeof text)) parse_cores(text, c);
    if (c->n == 1) snprintf(name, sizeof name, "cpu%d", (int)c->cpu[0]);
    else snprintf(name, sizeof name, "cpu%d-%d", (int)c->cpu[0], (int)c->cpu[c->n ? c->n - 1 : 0]);
    bounds_domain *d = c->n ? bounds_add(list, name, 1000, err) : NULL;
    if (!d) {
        const cnr_status status = c->n ? CNR_E_MEMORY : CNR_OK; /* of no core: of no use */
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
    CNR_TRY(find_switches(d, root, c, err));
    bounds_files(d, folder, "scaling_min_freq", "scaling_max_freq");
    gauge_name(&d->loads[0], root, "proc/stat");
    snprintf(text, sizeof text, "%.400s/sys/devices/system/cpu/cpu%d", root, (int)c->cpu[0]);
    if (!gauge_look_number(text, "cpu_capacity", &c->speed))
        gauge_look_number(folder, "cpuinfo_max_freq", &c->speed);
    return CNR_OK;
}

/* As the processor's plugin calls its clusters: alike within a tenth; "cpu", where all are. */
static void name_feeds(bounds *list) {
    double most = 0, least = 1e300;
    GAUGE_EACH(i, list->n) {
        const cores *c = list->at[i]->own;
        if (c->speed > most) most = c->speed;
        if (c->speed < least) least = c->speed;
    }
    GAUGE_EACH(i, list->n) {
        const cores *c = list->at[i]->own;
        const char *feeds = most - least <= most / 10 ? "cpu"
                            : most - c->speed <= most / 10   ? "cpu:big"
                            : c->speed - least <= least / 10 ? "cpu:little"
                                                             : "cpu:middle";
        snprintf(list->at[i]->domain.feeds, sizeof list->at[i]->domain.feeds, "%s", feeds);
    }
}

static cnr_status find(bounds *list, const char *root, cnr_error *err) {
    gauge_found folders;
    cnr_status status = gauge_find(root, "/sys/devices/system/cpu/cpufreq/policy*", &folders, err);
    for (int32_t i = 0; i < folders.n && !status; i++)
        status = add_policy(list, root, folders.at[i], err);
    gauge_found_free(&folders);
    if (!status) name_feeds(list);
    return status;
}

static cnr_status open_knob(const cnr_gauge_options *options, void **state, int32_t *n,
                            cnr_error *err) {
    return bounds_open("cpufreq", options, find, state, n, err);
}

static const cnr_knob knob = {.size = sizeof(cnr_knob),
                              .name = "cpufreq",
                              .summary = "clocks and cores of processors",
                              .open = open_knob,
                              BOUNDS_HOOKS};

static cnr_status start(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    gauge_host = host;
    return host->add(registrar, CNR_KIND_KNOB, &knob);
}

CNR_PLUGIN_TOUCHES("knob-cpufreq", "1", "clocks and cores of processors, by cpufreq", "MIT",
                   start, CNR_TOUCHES_DEVICES)
