/* Current readings of the meters and knobs of this machine. */
#include "gauges/gauges.h"
#include "work/work.h"
#include <string.h>

/* Copies a plugin's text into a row, truncated to fit. */
static void put(char *to, size_t capacity, const char *from) {
    const size_t n = strnlen(from, capacity - 1);
    memcpy(to, from, n);
    to[n] = 0;
}

/* Fills a gauge from domain i of a meter, with a reading. */
static void add_meter(const cnri_meter_set *m, int32_t i, cnr_gauge *out) {
    const cnr_meter_domain *d = &m->domains[i];
    cnr_error why = CNR_ERROR_INIT;
    cnr_reading reading;
    *out = (cnr_gauge){.size = sizeof *out,
                       .plugin = m->meter->name,
                       .quantity = d->quantity,
                       .estimated = d->is_estimated,
                       .period_ms = d->period_ms,
                       .load_percent = -1,
                       .cores = -1,
                       .temperature_mc = INT32_MIN};
    put(out->name, sizeof out->name, d->name);
    put(out->feeds, sizeof out->feeds, d->device);
    out->status = cnri_meter_read(m, i, &reading, &why);
    out->value = reading.value;
    out->time_ns = reading.time_ns;
    if (out->status) put(out->why, sizeof out->why, why.text);
}

/* Fills a gauge from domain i of a knob, with its state. */
static void add_knob(const cnri_knob_set *k, int32_t i, cnr_gauge *out) {
    const cnr_knob_domain *d = &k->domains[i];
    cnr_error why = CNR_ERROR_INIT;
    cnr_knob_state state;
    const cnr_status status = cnri_knob_read(k, i, &state, &why);
    *out = (cnr_gauge){.size = sizeof *out,
                       .plugin = k->knob->name,
                       .period_ms = d->period_ms,
                       .status = status,
                       .time_ns = state.time_ns,
                       .hz = state.hz,
                       .min_hz = d->min_hz,
                       .max_hz = d->max_hz,
                       .writable = d->is_writable,
                       .load_percent = state.load_percent,
                       .cores = state.cores,
                       .max_cores = d->max_cores,
                       .temperature_mc = state.temperature_mc};
    put(out->name, sizeof out->name, d->name);
    put(out->feeds, sizeof out->feeds, d->devices);
    if (status) put(out->why, sizeof out->why, why.text);
}

/* Lists all domains of meters, then of knobs. */
static cnr_status list(const cnri_gauges *g, cnr_gauge_list *out, cnr_error *err) {
    int32_t n = 0, at = 0;
    for (int32_t i = 0; i < g->meters.n; i++) n += g->meters.at[i].n;
    for (int32_t i = 0; i < g->knobs.n; i++) n += g->knobs.at[i].n;
    out->at = cnri_alloc_zero(((size_t)n + 1) * sizeof *out->at);
    if (!out->at) return cnri_out_of_memory(err, "gauges");
    out->n = n;
    for (int32_t i = 0; i < g->meters.n; i++)
        for (int32_t d = 0; d < g->meters.at[i].n; d++)
            add_meter(&g->meters.at[i], d, &out->at[at++]);
    for (int32_t i = 0; i < g->knobs.n; i++)
        for (int32_t d = 0; d < g->knobs.at[i].n; d++) add_knob(&g->knobs.at[i], d, &out->at[at++]);
    return CNR_OK;
}

cnr_status cnr_gauges(cnr_runtime *rt, const char *root, const char *address, cnr_gauge_list *out,
                      cnr_error *err) {
    const cnr_status missing = cnri_require_arguments(err, "runtime", rt, "out", out, NULL);
    if (missing) return missing;
    const cnr_gauge_options options = {.size = sizeof options,
                                       .root = root ? root : rt->sysfs_root,
                                       .address = address ? address : rt->meter_address};
    const int64_t before = cnri_alloc_failures();
    cnri_gauges g;
    *out = (cnr_gauge_list){.size = sizeof *out};
    cnr_status status = cnri_gauges_open(&g, &options, err);
    if (status) return status;
    status = cnri_alloc_verdict(before, list(&g, out, err), "gauges", err);
    const cnr_status closed = cnri_gauges_close(&g, status ? NULL : err);
    if (status || closed) cnr_gauges_free(out);
    return status ? status : closed;
}

void cnr_gauges_free(cnr_gauge_list *list) {
    if (!list) return;
    cnri_free(list->at);
    list->at = NULL;
    list->n = 0;
}
